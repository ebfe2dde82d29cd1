"""What DuckDB asks Python for in the middle of a query: PostgreSQL's answers, and its errors with all their fields."""

from __future__ import annotations

import psycopg
import pytest

from tests.differential.test_scripts import run_ours, run_theirs
from tests.support.fields import connect
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

TABLE = """
CREATE TABLE e (k int PRIMARY KEY, n numeric(8,2), v numeric, f float8, s text, d date, t time, ts timestamp, z timestamptz, iv interval,
    a int[], b bytea, u uuid, j jsonb);
INSERT INTO e VALUES
(1, 1.50, 1.0, 0, 'abc def', '2020-01-31', '10:11:12', '2020-01-31 10:11:12.5', '2020-03-29 00:30:00+00', '1 mon 2 days', '{1,2}', '\\x00ff',
    '00112233-4455-6677-8899-aabbccddeeff', '{"k": 1, "l": [7]}'),
(2, -2.25, 1.00, '-0', 'bob', '1999-12-31', '00:00:00', '1999-12-31 23:59:59', '1999-12-31 23:59:59+00', '-3 days 04:00:00', '{}', '\\x',
    '00000000-0000-0000-0000-000000000000', '{"k": "x", "l": []}'),
(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
(4, 0.00, 2.50, 1e300, '', '2024-02-29', '23:59:59.999999', '2024-02-29 00:00:00', '2021-10-31 00:30:00+00', '00:00:01', '{NULL,7}',
    '\\xdeadbeef', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '{"l": ["8"]}'),
(5, 999.99, 2.5, -1.5, '12', 'infinity', '12:00:00', '-infinity', '2021-10-31 01:30:00+00', '1 year', '{5}', '\\x61',
    '00112233-4455-6677-8899-aabbccddeeff', '{"k": 1}');
SET timezone = 'Europe/Berlin'
"""
QUERIES = (
    # one of each type of argument and of value
    "select to_char(d, 'FMDay DD Mon YYYY') x, count(*) from e group by 1 order by 1",
    "select max(to_char(n, 'FM999,990.000')), min(to_char(v, 'S9999.99')) from e",
    "select max(x), min(x) from (select power(n, 2) x from e) s",
    "select x, count(*) from (select to_char(f, '9.99EEEE') x from e) s group by x order by x",
    "select max(iv * 1.5), min(iv / 3), max(justify_interval(iv)) from e",
    "select iv * 2 x, count(*) from e group by 1 order by 1",
    "select max(d + t), min(ts::time) from e",
    "select age(ts, timestamp '2000-02-29 10:00') x, count(*) from e group by 1 order by 1",
    "select date_trunc('month', d) x, count(*) from e group by 1 order by 1",
    "select date_trunc('day', z) x, extract(hour from z) y, count(*) from e group by 1, 2 order by 1, 2",
    "select (z at time zone 'America/New_York')::date x, count(*) from e group by 1 order by 1",
    "select string_to_array(s, ' ') x, count(*) from e group by 1 order by 1",
    "select (string_to_array(s, ' '))[1] x, count(*) from e group by 1 order by 1",
    "select count(*) from e where a && array[1, 7]",
    "select count(*) from e where a @> array[2]",
    "select max(array_length(a, 1)), max(array_to_string(a, '+', '?')) from e",
    "select max(encode(b, 'base64')), max(sha256(b)), count(u::text) from e",
    "select max(u::text) from e",
    "select max(x) from (select decode(md5(s), 'hex') x from e) s",
    "select initcap(s) x, count(*) from e group by 1 order by 1",
    "select j ->> 'k' x, count(*) from e group by 1 order by 1",
    "select count(*) from e where j @> '{\"k\": 1}' and j ? 'k'",
    "select (j #>> '{l,0}')::int x, sum(n) from e group by 1 order by 1",
    # scales and signs are kept apart where they are equal
    "select x, count(*) from (select concat(v) x from e) s group by x order by x",
    "select x, count(*) from (select format('%s', f) x from e) s group by x order by x",
    # guarded, nested, in conditions of joins, in windows, in aggregates, in sub-selects
    "select max(case when s ~ '^\\d+$' then to_number(s, '999') else -1 end) from e",
    "select to_char(to_date(to_char(d, 'YYYYMMDD'), 'YYYYMMDD') + 1, 'YYYY') x, count(*) from e group by 1 order by 1",
    "select count(*) from e x join e y on to_char(x.d, 'MM') = to_char(y.d, 'MM')",
    "select x, count(*) over (partition by x) from (select to_char(d, 'YYYY') x from e) s order by 1, 2",
    "select string_agg(initcap(s), ',' order by initcap(s)) from e",
    "select k, (select max(to_char(y.d, 'YYYY')) from e y where y.k < x.k) from e x order by k",
    "select k from e where regexp_replace(s, '[aeiou]', '', 'g') ~ '\\yb' order by k",
    "select split_part(s, ' ', k) x, count(*) from e group by 1 order by 1",
    "select sum(width_bucket(n, 0, 10, 5)) from e",
    "select upper(to_char(max(d), 'mon')) || '!' x from e having to_char(min(d), 'YYYY') < '3000' order by x",
    # evaluated once, however often its value is used
    "select max(ts + k * interval '1 hour'), min(d + k * interval '1 month') from e where k <> 5",
    "select extract(epoch from ts - timestamp '2020-01-01') x, count(*) from e where k <> 5 group by 1 order by 1",
    "select max(extract(epoch from iv)), min(extract(epoch from -iv)), sum(date_part('epoch', iv)) from e",
    "select count(*), bool_and(x >= 0 and x < 1), count(distinct x) > 3 from (select random() x from e, generate_series(1, 100)) s",
    "select count(*) > 0 from (select random() a, random() b from e, generate_series(1, 100)) s where a <> b",
    "select bool_and(round(x) = r and x::int = r::int) from (select random() * 100 x from e) s, lateral (select round(x) r) t",
    # geometric types
    "select count(*), sum(area(circle(point(k, f), k))) from e where point(k, n::float8) <@ box '(6,100),(0,-100)'",
    "select k, point(k, 2) <-> point '(3,4)' x from e order by x, k",
    "select (point(k, 2))[0] x, count(*), array_agg(point(k, 1) order by k) from e group by 1 order by 1",
    "select x.k, y.k from e x join e y on point(x.k, 0) ~= point(y.k, 0.0000001) order by 1, 2",
    "select max(area(box(point(k, 1e300), point(0, -1e300))) * 1e300) from e",
    # sets
    "select x, count(*) from e, unnest(string_to_array(s, ' ')) as x group by 1 order by 1",
    "select k, x from e, regexp_split_to_table(s, '[ b]') as x order by 1, 2",
    "select k, x, n from e, string_to_table(s, ' ') with ordinality as t (x, n) order by k, n",
    "select key, value, count(*) from e, jsonb_each_text(j) group by 1, 2 order by 1, 2",
    "select key, value from e, jsonb_each(j) where k < 3 order by key, value::text",
    "select k, x from e, lateral jsonb_array_elements_text(j -> 'l') as x order by 1",
    "select k, x from e left join lateral jsonb_object_keys(j) as x on true order by 1, 2",
    "select x, count(k) from generate_series(timestamp '2020-01-01', '2020-03-01', interval '1 month') as x left join e "
    "on x = date_trunc('month', ts) group by 1 order by 1",
    "select x from e, generate_series(n, n + 1, 0.25) as x where k < 3 order by x",
    "select x from e, unnest(array[n, v]) as x order by x, scale(x)",
    "select m[1], m[2] from e, regexp_matches(s, '([a-c])(.)', 'g') as m order by 1, 2",
    # aggregates
    "select k % 2, percentile_disc(0.5) within group (order by n), percentile_disc(0.3) within group (order by s desc) from e group by 1 order by 1",
    "select percentile_cont(array[0.1, 0.5, null]) within group (order by f), percentile_cont(0.5) within group (order by iv) from e",
    "select mode() within group (order by j ->> 'k'), mode() within group (order by n desc) from e",
    "select stddev(n), variance(v), var_pop(k), stddev_pop(n * k) from e",
    "select k % 2, stddev(n) filter (where n > 0), count(*) from e group by 1 order by 1",
    "select sum(iv), avg(iv), sum(iv) filter (where k > 5) from e",
    "select regr_count(f, k), regr_avgx(k, n), regr_sxx(k, n), regr_syy(k, n), regr_sxy(k, n) from e where f < 1e10 or f is null",
    "select json_agg(n order by k desc), jsonb_agg(s order by s) from e",
    "select json_agg(json_build_object('k', k, 'd', d) order by k) from e",
    "select jsonb_object_agg(k, n), json_object_agg(s, iv order by k) from e where s is not null",
    "select (array_agg(s order by d desc, k))[1], array_agg(distinct u) from e",
    "select array_agg(to_char(d, 'YYYY') order by k), string_agg(distinct initcap(s), ',') from e",
    "select json_agg(distinct k % 2) from e",
    "select k % 2, percentile_disc(0.5) within group (order by k), grouping(k % 2) from e group by rollup (k % 2) order by 1",
    "select json_agg(k), stddev(n), mode() within group (order by k), sum(iv) from e where k > 9",
    "select string_agg(s, k::text order by k) from e",
    "select bit_and(k), range_agg(int4range(k, k + 2)) from e",
    # errors, with what they say
    "select percentile_disc(1.5) within group (order by n) from e",
    "select x from e, generate_series(n, n + 1, 0 * n) as x",
    "select jsonb_object_agg(s, k) from e",
    "select max((j ->> 'l')::int) from e",
    "select max(to_date(s, 'YYYY')) from e",
    "select max(decode(s, 'hex')) from e",
    "select max(make_interval(days => k) * 1e300) from e",
    "select count(*) from e where s ~ ('(' || s)",
)  # fmt: skip


@pytest.fixture(scope="module")
def servers(postgres: str, server: ServerProcess):  # type: ignore[no-untyped-def]
    client = connect(server.port)
    with psycopg.connect(postgres, autocommit=True) as theirs:
        for run, peer in ((run_ours, client), (run_theirs, theirs)):
            for sql in ("DROP SCHEMA IF EXISTS public CASCADE", "CREATE SCHEMA public", *TABLE.split(";\n")):
                run(peer, sql)
        run_ours(client, "SET executor = local")
        yield client, theirs
    client.close()


@pytest.mark.parametrize("query", QUERIES)
def test_python_in_the_middle_answers_as_postgresql_does(query: str, servers) -> None:  # type: ignore[no-untyped-def]
    client, theirs = servers
    assert run_ours(client, query) == run_theirs(theirs, query)


def test_setseed_decides_what_random_gives(server: ServerProcess) -> None:
    client = connect(server.port)
    client.run("CREATE TABLE seeded AS SELECT i FROM generate_series(1, 3000) AS s (i)")
    found = []
    for _ in range(2):
        client.run("SELECT setseed(0.25)")
        found.append(client.run("SELECT sum(random()), max(random()) FROM seeded").rows)
    assert found[0] == found[1]
    client.run("DROP TABLE seeded")
    client.close()
