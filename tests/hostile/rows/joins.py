"""Queries whose work is in the executor: joins, windows, sorts, recursion, sets, aggregates."""

from __future__ import annotations

from tests.hostile.row import Row

A, B = "generate_series(1, <n>) a", "generate_series(1, <n>) b"

ROWS = (
    Row(name="a nested loop without a match", sql=f"SELECT count(*) FROM {A}, {B} WHERE a + b < 0", short=1100, full=30_000, answer="0",
        executor="index"),
    Row(name="a nested loop of tables", sql="SELECT count(*) FROM numbers a, numbers b WHERE a.n * b.n < 0 AND a.id <= <n>", short=120,
        full=3000, answer="0", executor="index"),
    Row(name="a left join by inequality", sql=f"SELECT count(*) FROM {A} LEFT JOIN {B} ON a > b + <n>", short=930, full=30_000,
        executor="index"),
    Row(name="a full join by a function", sql="SELECT count(*) FROM numbers a FULL JOIN numbers b ON a.id = b.id AND a.s || b.s < ''",
        short=1, full=1, executor="index"),
    Row(name="an anti-join by inequality", sql=f"SELECT count(*) FROM {A} WHERE NOT EXISTS (SELECT FROM {B} WHERE b > a + <n>)", short=700,
        full=30_000, executor="index"),
    Row(name="NOT IN of a list with NULL", sql=f"SELECT count(*) FROM {A} WHERE a NOT IN (SELECT nullif(b, 1) FROM {B})", short=61_000,
        full=1_000_000, answer="0", executor="index"),
    Row(name="a sub-select for each row", sql=f"SELECT count((SELECT max(b) FROM {B} WHERE b <> a)) FROM {A}", short=520, full=30_000,
        executor="index"),
    Row(name="a lateral sub-select", sql=f"SELECT count(*) FROM {A}, LATERAL (SELECT a * b FROM {B} WHERE b % 7 = a % 7) s", short=550,
        full=30_000, executor="index"),
    Row(name="a hash join of one key", sql="SELECT count(*) FROM numbers a JOIN numbers b ON a.n % 2 = b.n % 2 WHERE a.id <= <n>",
        short=350, full=3000, executor="index"),
    Row(name="cross joins", sql="SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.id <= <n> AND b.id <= <n> AND c.id <= <n>",
        short=140, full=3000, executor="index"),
    Row(name="a cross join with large rows", sql="SELECT count(DISTINCT a.s || b.s) FROM numbers a, numbers b WHERE a.id <= <n>", short=21,
        full=3000, executor="index", expect="done 53200"),
    Row(name="a table of values joined to itself", sql=lambda n: "WITH v(x) AS (VALUES " + ",".join(f"({i})" for i in range(n)) + ") "
        "SELECT count(*) FROM v a, v b WHERE a.x + b.x < 0", short=700, full=20_000, answer="0", executor="index"),
    Row(name="a window over everything so far", sql="SELECT max(m) FROM (SELECT max(g) OVER (ORDER BY g ROWS BETWEEN <n> PRECEDING AND "
        "<n> FOLLOWING) m FROM generate_series(1, <n>) g) s", short=2400, full=50_000, executor="index"),
    Row(name="a window in groups", sql="SELECT max(m) FROM (SELECT string_agg(g::text, '') OVER (ORDER BY g GROUPS BETWEEN <n> PRECEDING "
        "AND 1 FOLLOWING) m FROM generate_series(1, <n>) g) s", short=500, full=5000, executor="index", expect="done 53200"),
    Row(name="a window by range", sql="SELECT max(m) FROM (SELECT count(*) OVER (ORDER BY g RANGE BETWEEN <n> PRECEDING AND <n> FOLLOWING)"
        " m FROM generate_series(1, <n>) g) s", short=6800, full=50_000, executor="index"),
    Row(name="many windows", sql=lambda n: "SELECT " + ",".join(f"rank() OVER (ORDER BY n, id % {i + 2})" for i in range(n)) +
        " FROM numbers LIMIT 1", short=13, full=200, executor="index"),
    Row(name="a window that excludes ties", sql="SELECT max(m) FROM (SELECT sum(g) OVER (ORDER BY g % 3 RANGE BETWEEN UNBOUNDED PRECEDING "
        "AND CURRENT ROW EXCLUDE TIES) m FROM generate_series(1, <n>) g) s", short=900, full=10_000, executor="index"),
    Row(name="array_agg in a window", sql="SELECT max(array_length(m, 1)) FROM (SELECT array_agg(g) OVER (ORDER BY g) m "
        "FROM generate_series(1, <n>) g) s", short=4800, full=20_000, executor="index", expect="done 53200"),
    Row(name="a sort of texts", sql="SELECT s FROM (SELECT md5(g::text) s FROM generate_series(1, <n>) g) x ORDER BY s DESC OFFSET <n> - 1",
        short=13_000, full=1_000_000, executor="index", expect="done 53200"),
    Row(name="a sort by many keys", sql=lambda n: "SELECT id FROM numbers ORDER BY " + ",".join(f"n % {i + 2}" for i in range(n)) +
        " OFFSET 2999", short=70, full=1000, executor="index"),
    Row(name="a sort of long equal texts", sql="SELECT count(*) FROM (SELECT repeat('x', 100000) || g s FROM generate_series(1, <n>) g "
        "ORDER BY s) x", short=1200, full=20_000, executor="index", expect="done 53200"),
    Row(name="DISTINCT of texts", sql="SELECT count(*) FROM (SELECT DISTINCT md5(g::text) FROM generate_series(1, <n>) g) x", short=16_000,
        full=3_000_000, executor="index", expect="done 53200"),
    Row(name="many groups", sql="SELECT count(*) FROM (SELECT g, count(*) FROM generate_series(1, <n>) g GROUP BY g) x", short=30_000,
        full=3_000_000, executor="index", expect="done 53200"),
    Row(name="grouping sets", sql="SELECT count(*) FROM (SELECT count(*) FROM generate_series(1, <n>) g GROUP BY CUBE (g % 2, g % 3, g % 5,"
        " g % 7, g % 11, g % 13, g % 17)) x", short=300, full=100_000, executor="index"),
    Row(name="too many grouping sets", sql=lambda n: "SELECT count(*) FROM numbers GROUP BY CUBE (" + ",".join(f"n % {i + 2}" for i in range(n))
        + ")", short=40, full=40, expect="54011"),
    Row(name="EXCEPT ALL", sql=f"SELECT count(*) FROM (SELECT a FROM {A} EXCEPT ALL SELECT b + 1 FROM {B}) x", short=70_000, full=2_000_000,
        answer="1", executor="index", expect="done 53200"),
    Row(name="recursion that counts", sql="WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < <n>) SELECT max(n) FROM r",
        short=8000, full=100_000_000, answer="8000", expect="done 53200"),
    Row(name="recursion that remembers", sql="WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT (n * 7) % <n> FROM r) SELECT count(*) FROM r",
        short=7900, full=9_999_991, expect="done 53200"),
    Row(name="recursion that doubles", sql="WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r, (VALUES (1), (2)) v WHERE n < <n>)"
        " SELECT count(*) FROM r", short=16, full=60, expect="done 53200"),
    Row(name="recursion whose rows grow", sql="WITH RECURSIVE r(n, s) AS (SELECT 1, 'x' UNION ALL SELECT n + 1, s || s FROM r WHERE n < <n>)"
        " SELECT max(length(s)) FROM r", short=26, full=60, expect="done 53200 54000"),
    Row(name="a search in a graph", sql="WITH RECURSIVE r(n, path) AS (SELECT 1, ARRAY[1] UNION ALL SELECT v, path || v FROM r, "
        "generate_series(1, <n>) v WHERE v <> ALL (path)) SELECT count(*) FROM r", short=7, full=12, expect="done 53200"),
    Row(name="generate_series of integers", sql="SELECT count(*) FROM generate_series(1, <n>)", short=300_000, full=10**12, executor="index"),
    Row(name="generate_series in the list", sql="SELECT count(*) FROM (SELECT generate_series(1, <n>)) s", short=330_000, full=10**12,
        executor="index"),
    Row(name="generate_series of times", sql="SELECT count(*) FROM generate_series('2000-01-01'::timestamp, '2000-01-01'::timestamp + <n> * "
        "interval '1 second', '1 second')", short=80_000, full=10**9, executor="index"),
    Row(name="generate_series of numerics", sql="SELECT count(*) FROM generate_series(1.0, <n>, 0.5)", short=67_000, full=10**9, executor="index"),
    Row(name="generate_series that is not asked for", sql="SELECT g FROM generate_series(1, <n>) g LIMIT 1", short=1_000_000, full=10**12,
        answer="1"),
    Row(name="generate_subscripts", sql="SELECT count(*) FROM generate_subscripts(array_fill(1, ARRAY[<n>]), 1)", short=380_000,
        full=10_000_000, executor="index", expect="done 53200"),
    Row(name="unnest of a long array", sql="SELECT count(*) FROM unnest(array_fill(1, ARRAY[<n>]))", short=450_000, full=10_000_000,
        executor="index", expect="done 53200"),
    Row(name="string_agg", sql="SELECT length(string_agg(repeat('x', 1000), ',')) FROM generate_series(1, <n>)", short=95_000, full=2_000_000,
        executor="index", expect="done 53200 54000"),
    Row(name="array_agg", sql="SELECT array_length(array_agg(g), 1) FROM generate_series(1, <n>) g", short=200_000, full=10_000_000,
        executor="index", expect="done 53200 54000"),
    Row(name="json_agg", sql="SELECT length(json_agg(g)::text) FROM generate_series(1, <n>) g", short=35_000, full=10_000_000,
        executor="index", expect="done 53200 54000"),
    Row(name="jsonb_object_agg", sql="SELECT length(jsonb_object_agg(g, g)::text) FROM generate_series(1, <n>) g", short=10_000,
        full=5_000_000, executor="index", expect="done 53200 54000"),
    Row(name="xmlagg in place of a string", sql="SELECT length(string_agg(s, '' ORDER BY s DESC)) FROM (SELECT md5(g::text) s FROM "
        "generate_series(1, <n>) g) x", short=15_000, full=5_000_000, executor="index", expect="done 53200 54000"),
    Row(name="percentile_cont", sql="SELECT percentile_cont(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY g) FROM generate_series(1, <n>) g",
        short=13_000, full=10_000_000, executor="index", expect="done 53200"),
    Row(name="range_agg", sql="SELECT length(range_agg(int4range(g * 2, g * 2 + 1))::text) FROM generate_series(1, <n>) g", short=5700,
        full=1_000_000, executor="index", expect="done 53200"),
    Row(name="distinct aggregates", sql=lambda n: "SELECT " + ",".join(f"count(DISTINCT id % {i + 500})" for i in range(n)) +
        " FROM numbers", short=30, full=1000, executor="index"),
    Row(name="conditions of many terms", sql=lambda n: "SELECT count(*) FROM numbers WHERE " + " OR ".join(f"id = -{i}" for i in range(n)),
        short=700, full=5000, executor="index", answer="0", expect="done 54001"),
    Row(name="an array searched for each row", sql=lambda n: "SELECT count(*) FROM numbers WHERE -id = ANY (ARRAY[" +
        ",".join(map(str, range(n))) + "])", short=3500, full=100_000, executor="index", answer="0"),
    Row(name="an update of everything", sql="UPDATE numbers SET n = n WHERE id <= <n>", short=3000, full=3000),
    Row(name="INSERT … SELECT", sql="INSERT INTO taken SELECT g, md5(g::text) FROM generate_series(1, <n>) g",
        setup=("CREATE TEMP TABLE taken (id int PRIMARY KEY, s text)",), short=7000, full=2_000_000, expect="done 53200"),
    Row(name="INSERT of a thousand rows", sql=lambda n: "INSERT INTO taken VALUES " + ",".join(f"({i}, 'x')" for i in range(n)),
        setup=("CREATE TEMP TABLE taken (id int PRIMARY KEY, s text)",), short=3000, full=200_000, expect="done 54000"),
    Row(name="DELETE by a nested loop", sql="DELETE FROM numbers a USING numbers b WHERE a.n * b.n < 0 AND b.id <= <n>", short=160, full=3000),
    Row(name="MERGE by a nested loop", sql="MERGE INTO numbers a USING numbers b ON a.n * b.n < 0 AND b.id <= <n> WHEN MATCHED THEN DELETE",
        short=160, full=3000),
    Row(name="ON CONFLICT for every row", sql="INSERT INTO taken SELECT g % 10, 'x' FROM generate_series(1, <n>) g ON CONFLICT DO NOTHING",
        setup=("CREATE TEMP TABLE taken (id int PRIMARY KEY, s text)",), short=9300, full=1_000_000, expect="done 53200"),
    Row(name="VALUES of many rows", sql=lambda n: "VALUES " + ",".join(f"({i}, 'row {i}')" for i in range(n)), short=2700, full=300_000),
    Row(name="FOR UPDATE of everything", sql="SELECT count(*) FROM (SELECT id FROM numbers WHERE id <= <n> FOR UPDATE) s", short=3000,
        full=3000),
    Row(name="a nested loop in DuckDB", sql="SELECT count(*) FROM numbers a, numbers b WHERE a.n * b.n < 0 AND a.id <= <n>", short=3000,
        full=3000, answer="0", executor="local"),
    Row(name="many rows from DuckDB", sql="SELECT a.s, b.s FROM numbers a, numbers b WHERE a.id <= <n>", short=32, full=3000,
        executor="local"),
)  # fmt: skip
