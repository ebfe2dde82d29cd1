"""The expressions and clauses of ``bench.expressions``, as statements over the tables ``facts`` and ``days``.

The makers below put an expression where each row's value counts: ``group`` by it, ``where`` by it, ``most`` and ``total``
over it. Answers are short, so that sending them does not count.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """One statement; ``random``: its answers need not be equal."""

    name: str
    sql: str
    random: bool = False


def group(name: str, expression: str) -> Case:
    """Group by the expression, which has few values."""
    return Case(name, f"SELECT {expression} AS x, count(*), sum(n) FROM facts GROUP BY 1 ORDER BY 1 LIMIT 50")


def where(name: str, condition: str) -> Case:
    """Filter by the condition."""
    return Case(name, f"SELECT count(*), sum(n) FROM facts WHERE {condition}")


def most(name: str, expression: str) -> Case:
    """Take the least and the greatest value."""
    return Case(name, f"SELECT count(x), min(x), max(x) FROM (SELECT {expression} AS x FROM facts) AS s")


def total(name: str, expression: str) -> Case:
    """Sum up."""
    return Case(name, f"SELECT sum({expression}) FROM facts")


def by_k(name: str, call: str) -> Case:
    """Aggregate by k."""
    return Case(name, f"SELECT k, {call} AS x FROM facts GROUP BY k ORDER BY k")


def over(name: str, call: str) -> Case:
    """Call a window function over the months of each k, and sum what it says by k."""
    inner = f"SELECT k, {call} AS x FROM facts"
    return Case(name, f"SELECT k, count(x), min(x), max(x) FROM ({inner}) AS s GROUP BY k ORDER BY k")


def documents(name: str, call: str) -> Case:
    """Aggregate into documents, and say how long they are."""
    return Case(name, f"SELECT k, length(({call})::text) FROM facts GROUP BY k ORDER BY k")


CASES: tuple[Case, ...] = (
    # --- dates and times
    group("date_trunc month of timestamp", "date_trunc('month', ts)"),
    group("date_trunc week of timestamp", "date_trunc('week', ts)"),
    group("date_trunc month of date", "date_trunc('month', d)"),
    group("date_trunc month of timestamptz", "date_trunc('month', tz)"),
    group("date_trunc day of timestamptz", "date_trunc('day', tz)"),
    group("date_trunc hour of timestamptz", "date_trunc('hour', tz)"),
    group("date_trunc with zone", "date_trunc('day', tz, 'America/New_York')"),
    group("extract year of timestamp", "extract(year FROM ts)"),
    group("extract dow of date", "extract(dow FROM d)"),
    group("extract isoyear, week", "extract(isoyear FROM ts) * 100 + extract(week FROM ts)"),
    group("extract hour of timestamptz", "extract(hour FROM tz)"),
    group("date_part month of timestamptz", "date_part('month', tz)"),
    total("extract epoch of a difference", "extract(epoch FROM ts - timestamp '2020-01-01')"),
    total("extract epoch of timestamptz", "extract(epoch FROM tz)"),
    total("extract second", "extract(second FROM ts)"),
    group("extract julian", "extract(julian FROM d)"),
    group("extract day of interval", "extract(day FROM iv)"),
    group("to_char YYYY-MM of timestamp", "to_char(ts, 'YYYY-MM')"),
    group("to_char of date", "to_char(d, 'Mon YYYY')"),
    group("to_char Day of timestamptz", "to_char(tz, 'Day')"),
    most("to_char of each moment", "to_char(ts, 'DD.MM.YYYY HH24:MI:SS')"),
    most("to_char of numeric", "to_char(n, 'FM999,999,990.00')"),
    most("to_char of integer", "to_char(id, '0000000')"),
    most("to_date", "to_date(d::text, 'YYYY-MM-DD')"),
    most("to_timestamp of seconds", "to_timestamp(id * 60)"),
    most("age of two timestamps", "age(timestamp '2025-01-01', ts)"),
    group("years of age", "extract(year FROM age(timestamp '2025-01-01', ts))"),
    most("timestamp + n * interval", "ts + k * interval '1 hour'"),
    most("timestamp + interval column", "ts + iv"),
    most("timestamptz + interval '1 month'", "tz + interval '1 month'"),
    most("date + integer", "d + k"),
    most("date + interval", "d + interval '3 months'"),
    most("make_interval", "ts - make_interval(days => k)"),
    total("difference of dates", "date '2025-01-01' - d"),
    by_k("sum of intervals", "sum(iv)"),
    by_k("avg of intervals", "avg(iv)"),
    by_k("sum of differences of timestamps", "sum(ts - timestamp '2020-01-01')"),
    most("interval * number", "iv * 1.5"),
    most("justify_hours", "justify_hours(iv)"),
    group("AT TIME ZONE of timestamptz, date", "(tz AT TIME ZONE 'America/New_York')::date"),
    most("AT TIME ZONE of timestamp", "ts AT TIME ZONE 'Europe/Berlin'"),
    group("timestamptz::date", "tz::date"),
    where("timestamptz and a day", "tz >= date '2022-03-01' AND tz < date '2022-04-01'"),
    where("now() - interval", "ts < now() - interval '2 years'"),
    where("CURRENT_DATE arithmetic", "d > CURRENT_DATE - 3000"),
    group("date_bin", "date_bin('15 minutes', ts, timestamp '2020-01-01')::time"),
    group("make_date", "make_date(extract(year FROM d)::int, 1, 1)"),
    where("OVERLAPS", "(d, d + 10) OVERLAPS (date '2022-01-01', date '2022-02-01')"),
    Case(
        "generate_series of days joined",
        "SELECT s.day::date, count(f.id), sum(f.n) FROM generate_series(timestamp '2020-01-01', "
        "timestamp '2023-12-30', interval '1 day') AS s (day) LEFT JOIN facts f ON f.d = s.day::date GROUP BY 1 ORDER BY 1 LIMIT 50",
    ),
    Case(
        "generate_series of integers joined",
        "SELECT s.i, count(f.id) FROM generate_series(0, 99) AS s (i) LEFT JOIN facts f ON f.k = s.i "
        "GROUP BY 1 ORDER BY 1",
    ),
    # --- numbers
    total("numeric division", "n / m"),
    total("numeric division by integer", "n / (k + 1)"),
    most("numeric division rounded", "round(n / m, 2)"),
    total("numeric division rounded, summed", "round(n / m, 4)"),
    most("division of 16+ digits", "big / n"),
    total("division by 16+ digits", "n / big"),
    most("plain numeric division", "v / n"),
    by_k("avg of numeric", "avg(n)"),
    by_k("avg of plain numeric", "avg(v)"),
    by_k("sum of a product", "sum(n * (1 - m / 100))"),
    by_k("ratio of sums", "round(100.0 * sum(n) / sum(n + m), 2)"),
    total("sum of plain numeric", "v"),
    total("round of numeric", "round(n * 1.19, 2)"),
    total("round of float cast", "round(f::numeric, 2)"),
    most("trunc, ceil, floor", "trunc(n / 7) + ceil(n) - floor(m)"),
    most("modulo", "mod(n, 7) + id % 13"),
    most("power and sqrt of float", "power(abs(f), 1.5) + sqrt(abs(f))"),
    most("power of numeric", "power(m, 2)"),
    most("ln and exp", "ln(abs(f) + 1) + exp(f / 1000)"),
    most("log of numeric", "log(n)"),
    group("width_bucket of numeric", "width_bucket(n, 0, 100000, 20)"),
    group("width_bucket of float", "width_bucket(f, -1000, 1000, 20)"),
    Case("random()", "SELECT count(*) FROM facts WHERE random() < 0.1", random=True),
    most("greatest and least", "greatest(n, m) - least(n, m)"),
    most("float to text", "f::text"),
    most("numeric to text", "n::text"),
    total("text to numeric", "(n::text)::numeric"),
    total("text to integer", "right(t, 3)::int"),
    most("text to date", "(d::text)::date"),
    most("float to integer", "f::int"),
    # --- aggregates
    by_k("percentile_cont of float", "percentile_cont(0.5) WITHIN GROUP (ORDER BY f)"),
    by_k("percentile_cont of numeric", "percentile_cont(0.9) WITHIN GROUP (ORDER BY n)"),
    by_k("percentile_cont of an array", "percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY f)"),
    by_k("percentile_disc", "percentile_disc(0.5) WITHIN GROUP (ORDER BY n)"),
    by_k("mode", "mode() WITHIN GROUP (ORDER BY maybe)"),
    by_k("stddev of float", "stddev(f)"),
    by_k("stddev of numeric", "stddev(n)"),
    by_k("variance of integer", "variance(id)"),
    by_k("corr", "corr(f, g)"),
    by_k(
        "regr_slope and its kin",
        "regr_slope(f, g) + regr_intercept(f, g) + regr_avgx(f, g) + regr_count(f, g)",
    ),
    by_k("bool_and, every, bool_or", "bool_and(b) OR bool_or(maybe > 990)"),
    by_k("count(DISTINCT)", "count(DISTINCT mail)"),
    by_k("several DISTINCT", "count(DISTINCT d) + count(DISTINCT maybe)"),
    by_k("FILTER", "sum(n) FILTER (WHERE b) - sum(n) FILTER (WHERE NOT b)"),
    documents("string_agg ORDER BY", "string_agg(t, ', ' ORDER BY id)"),
    documents("string_agg DISTINCT", "string_agg(DISTINCT left(t, 5), ',')"),
    documents("array_agg ORDER BY", "array_agg(id ORDER BY ts, id)"),
    documents("json_agg", "json_agg(id ORDER BY id)"),
    documents("json_agg of objects", "json_agg(json_build_object('id', id, 'n', n) ORDER BY id)"),
    documents("jsonb_object_agg", "jsonb_object_agg(id, n)"),
    by_k("first by array_agg", "(array_agg(t ORDER BY ts DESC, id))[1]"),
    Case(
        "GROUPING SETS",
        "SELECT k % 10 AS p, b, grouping(b), count(*), sum(n) FROM facts GROUP BY GROUPING SETS ((1, 2), (1), ())",
    ),
    Case("CUBE", "SELECT date_trunc('year', ts), b, k % 5, sum(n) FROM facts GROUP BY CUBE (1, 2, 3)"),
    Case(
        "ROLLUP of to_char",
        "SELECT to_char(ts, 'YYYY'), to_char(ts, 'MM'), sum(n) FROM facts GROUP BY ROLLUP (1, 2)",
    ),
    Case("DISTINCT ON", "SELECT DISTINCT ON (k) k, id, ts, t FROM facts ORDER BY k, ts DESC, id"),
    Case(
        "HAVING",
        "SELECT mail, count(*), sum(n) FROM facts GROUP BY mail HAVING count(*) > 45 AND sum(n) > 1000 ORDER BY 2 DESC, 1 LIMIT 10",
    ),
    # --- windows
    over("row_number", "row_number() OVER (PARTITION BY k ORDER BY ts, id)"),
    over("ntile", "ntile(4) OVER (PARTITION BY k ORDER BY n, id)"),
    over("lag, difference", "n - lag(n) OVER (PARTITION BY k ORDER BY ts, id)"),
    over("lead with default", "lead(d, 1, d) OVER (PARTITION BY k ORDER BY ts, id)"),
    over("first_value", "first_value(t) OVER (PARTITION BY k ORDER BY ts, id)"),
    over("running sum", "sum(n) OVER (PARTITION BY k ORDER BY ts, id)"),
    over("moving average", "avg(f) OVER (PARTITION BY k ORDER BY ts, id ROWS 6 PRECEDING)"),
    over("moving average of numeric", "avg(n) OVER (PARTITION BY k ORDER BY ts, id ROWS 6 PRECEDING)"),
    over(
        "RANGE interval frame",
        "sum(n) OVER (PARTITION BY k ORDER BY d RANGE BETWEEN interval '7 days' PRECEDING AND CURRENT ROW)",
    ),
    over("share of the total", "round(100 * n / sum(n) OVER (PARTITION BY k), 6)"),
    over("percent_rank", "percent_rank() OVER (PARTITION BY k ORDER BY n)"),
    # --- text
    group("upper, left", "upper(left(t, 3))"),
    group("initcap", "initcap(left(t, 5))"),
    group("split_part", "split_part(mail, '@', 2)"),
    group("split_part then cast", "split_part(t, '-', 2)::int % 10"),
    group("substring FROM pattern", "substring(mail FROM '@([a-z]+)')"),
    group("substring FROM position", "substring(t FROM 1 FOR 4)"),
    group("regexp_replace", "regexp_replace(t, '[0-9]+', '')"),
    most("regexp_replace global", "regexp_replace(mail, '[aeiou]', '*', 'g')"),
    most("regexp_replace with groups", "regexp_replace(mail, '^([a-z]+)[.]([a-z]+)', '\\2 \\1')"),
    group("regexp_match", "(regexp_match(mail, '@([a-z]+)[.]'))[1]"),
    where("~ with classes", "mail ~ '^[a-d][a-z]+[.]\\w+\\d{2,3}@'"),
    where("~* alternatives", "t ~* '(AMBER|CEDAR) (birch|delta)'"),
    where("regular expression with \\y", "t ~ '\\yamber\\y'"),
    where("SIMILAR TO", "t SIMILAR TO '(amber|birch)%-0__'"),
    where("LIKE", "mail LIKE '%haven%'"),
    where("ILIKE", "mail ILIKE '%HAVEN%'"),
    Case(
        "regexp_split_to_table",
        "SELECT w, count(*) FROM facts, regexp_split_to_table(t, '[ -]') AS w GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
    ),
    Case(
        "string_to_table, unnest",
        "SELECT w, count(*) FROM facts, unnest(string_to_array(t, ' ')) AS w GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
    ),
    group("string_to_array element", "(string_to_array(t, ' '))[1]"),
    most("concat_ws and ||", "concat_ws('/', k, t, maybe) || '!'"),
    most("format", "format('%s: %s', k, t)"),
    most("lpad of a cast", "lpad(id::text, 10, '0')"),
    most("md5", "md5(mail)"),
    most("encode and decode", "encode(convert_to(mail, 'UTF8'), 'base64')"),
    most("encode(sha256)", "encode(sha256(mail::bytea), 'hex')"),
    most("translate, replace, reverse", "reverse(replace(translate(mail, 'aei', '431'), '.', ''))"),
    group("length and position", "length(mail) - position('@' IN mail)"),
    most("overlay", "overlay(mail PLACING '***' FROM 2 FOR 3)"),
    most("ascii and chr", "chr(ascii(t) + 1)"),
    most("trim", "trim(both 'a' FROM t) || ltrim(t, 'b') || btrim(t)"),
    # --- conditions
    group(
        "CASE chain",
        "CASE WHEN n < 1000 THEN 'small' WHEN n < 10000 THEN 'medium' WHEN n < 50000 THEN 'large' ELSE 'huge' END",
    ),
    total("sum(CASE)", "CASE WHEN b AND k < 50 THEN n ELSE 0 END"),
    total("COALESCE and NULLIF", "coalesce(maybe, 0) + coalesce(nullif(k, 7), -1)"),
    where("IN list", "k IN (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)"),
    where("IN list of texts", "left(t, 5) IN ('amber', 'birch', 'cedar')"),
    where("NOT IN and IS DISTINCT FROM", "k NOT IN (1, 2) AND maybe IS DISTINCT FROM 7"),
    where("EXISTS", "EXISTS (SELECT FROM days WHERE days.d = facts.d AND name = 'day 3')"),
    where("BETWEEN of dates", "d BETWEEN '2021-01-01' AND '2021-12-31'"),
    where("scalar sub-select", "n > (SELECT avg(n) FROM facts)"),
    # --- arrays and documents
    where("= ANY (array)", "3 = ANY (a)"),
    where("@> of arrays", "tags @> ARRAY['amber']"),
    where("&& of arrays", "tags && ARRAY['amber', 'birch']"),
    group("subscript", "a[1]"),
    group("cardinality, array_length", "cardinality(a) + array_length(tags, 1)"),
    group("array_to_string", "left(array_to_string(tags, '+'), 6)"),
    Case("unnest", "SELECT tag, count(*) FROM facts, unnest(tags) AS tag GROUP BY 1 ORDER BY 1"),
    Case(
        "unnest in the select list",
        "SELECT x, count(*) FROM (SELECT unnest(a) AS x FROM facts) AS s GROUP BY 1 ORDER BY 1",
    ),
    group("jsonb ->>", "js ->> 'kind'"),
    group("jsonb -> ->>", "js -> 'at' ->> 'city'"),
    group("jsonb #>>", "js #>> '{at,xy,0}'"),
    total("jsonb number", "(js ->> 'size')::int"),
    where("jsonb boolean", "(js ->> 'ok')::boolean"),
    where("jsonb @>", 'js @> \'{"kind": "amber"}\''),
    where("jsonb ?", "js ? 'size'"),
    where("jsonb_path_exists", "js @? '$.at.xy[*] ? (@ > 9)'"),
    Case(
        "jsonb_array_elements LATERAL",
        "SELECT e, count(*) FROM facts, LATERAL jsonb_array_elements_text(js #> '{at,xy}') AS e GROUP BY 1 ORDER BY 1",
    ),
    Case("jsonb_each_text", "SELECT key, count(*) FROM facts, jsonb_each_text(js) GROUP BY 1 ORDER BY 1"),
    most("jsonb_build_object", "jsonb_build_object('k', k, 't', t)::text"),
    group("jsonb_typeof", "jsonb_typeof(js -> 'size')"),
)
