"""Statements that are large or deep: what parsing, binding and planning take of them."""

from __future__ import annotations

from tests.hostile.row import Row

DEEP = "done 54001"


def _list(n: int, item: str, between: str = ", ") -> str:
    """Return ``item`` with the numbers from 0 to ``n`` - 1 in it."""
    return between.join(item.format(i) for i in range(n))


def doubling(kind: str, n: int) -> str:
    """Return views (or CTEs) of which each joins the one below with itself."""
    return kind.join(f"v{i + 1} AS (SELECT a.x FROM v{i} a, v{i} b)" for i in range(n))


def views(n: int) -> str:
    """Return statements that make such views."""
    made = ["CREATE TEMP VIEW v0 AS SELECT 1 x"] + [
        f"CREATE TEMP VIEW v{i + 1} AS SELECT a.x FROM v{i} a, v{i} b" for i in range(n)
    ]
    return "; ".join(made)


def doubling_types(n: int) -> str:
    """Return a chain of temporary types, each of two attributes of the one before: 2^n attributes below the last."""
    made = "; ".join(
        f"CREATE TYPE pg_temp.double{i} AS (a double{i - 1}, b double{i - 1})" for i in range(1, n + 1)
    )
    return f"SET search_path = pg_temp, public; CREATE TYPE pg_temp.double0 AS (a int, b int); {made}"


def long_enum(n: int) -> str:
    """Return a type of the labels e0 to e<n>."""
    labels = ", ".join(f"'e{i}'" for i in range(n + 1))
    return f"CREATE TYPE long_enum AS ENUM ({labels})"


ROWS = (
    Row(name="views that double", sql=lambda n: f"DO $$ BEGIN {views(n)}; PERFORM count(*) FROM v{n}; END $$", short=5, full=24,
        expect=DEEP + " 54000"),
    Row(name="views that double, explained", sql="EXPLAIN SELECT count(*) FROM v<n>", setup=(views,), short=5, full=9,
        expect=DEEP + " 54000"),
    Row(name="CTEs that double", sql=lambda n: f"WITH v0 AS (SELECT 1 x), {doubling(', ', n)} SELECT count(*) FROM v{n}", short=24, full=24,
        expect=DEEP + " 54000"),
    Row(name="functions that are inlined twice", sql="SELECT pg_temp.t<n>(1)", setup=tuple(["CREATE FUNCTION pg_temp.t0(x int) RETURNS int "
        "LANGUAGE sql IMMUTABLE AS 'SELECT x + 1'"] + [f"CREATE FUNCTION pg_temp.t{i + 1}(x int) RETURNS int LANGUAGE sql IMMUTABLE AS "
        f"'SELECT pg_temp.t{i}(x) + pg_temp.t{i}(x)'" for i in range(24)]), short=2, full=24, expect=DEEP + " 54000 22003"),
    Row(name="parentheses", sql=lambda n: "SELECT " + "(" * n + "1" + ")" * n, short=12_000, full=1_000_000, expect=DEEP),
    Row(name="unary minus", sql=lambda n: "SELECT " + "- " * n + "1", short=20_000, full=1_000_000, expect=DEEP),
    Row(name="NOT", sql=lambda n: "SELECT " + "NOT " * n + "true", short=18_000, full=1_000_000, expect=DEEP),
    Row(name="a chain of plus", sql=lambda n: "SELECT 1" + " + 1" * n, short=12_000, full=500_000, expect=DEEP),
    Row(name="a chain of concatenations", sql=lambda n: "SELECT length(''" + " || 'x'" * n + ")", short=12_000, full=500_000, expect=DEEP),
    Row(name="a chain of ANDs", sql=lambda n: "SELECT true" + " AND true" * n, short=3000, full=500_000, expect=DEEP),
    Row(name="a chain of ORs", sql=lambda n: "SELECT id FROM numbers WHERE id = 0" + "".join(f" OR id = {-i}" for i in range(n)), short=1500,
        full=200_000, expect=DEEP),
    Row(name="casts", sql=lambda n: "SELECT 1" + "::int" * n, short=10_000, full=300_000, expect=DEEP),
    Row(name="CASE within CASE", sql=lambda n: "SELECT " + "CASE WHEN true THEN " * n + "1" + " END" * n, short=6000, full=200_000, expect=DEEP),
    Row(name="CASE of many arms", sql=lambda n: "SELECT CASE 0 " + "".join(f"WHEN {i + 1} THEN {i} " for i in range(n)) + "END", short=1200,
        full=200_000, expect=DEEP),
    Row(name="COALESCE of many", sql=lambda n: "SELECT coalesce(" + "NULL, " * n + "1)", short=1300, full=500_000, answer="1", expect=DEEP),
    Row(name="functions within functions", sql=lambda n: "SELECT " + "abs(" * n + "1" + ")" * n, short=6000, full=200_000, expect=DEEP),
    Row(name="arrays within arrays", sql=lambda n: "SELECT " + "ARRAY[" * n + "1" + "]" * n, short=6000, full=200_000, expect="54001 54000"),
    Row(name="rows within rows", sql=lambda n: "SELECT " + "ROW(" * n + "1" + ")" * n, short=6000, full=200_000, expect=DEEP),
    Row(name="sub-selects within sub-selects", sql=lambda n: "SELECT " + "(SELECT " * n + "1" + ")" * n, short=3200, full=50_000, expect=DEEP),
    Row(name="FROM within FROM", sql=lambda n: "SELECT * FROM " + "(SELECT * FROM " * n + "(VALUES (1)) t" + ") t" * n, short=100, full=50_000,
        expect=DEEP),
    Row(name="EXISTS within EXISTS", sql=lambda n: "SELECT 1 WHERE " + "EXISTS (SELECT 1 WHERE " * n + "true" + ")" * n, short=230, full=50_000,
        expect=DEEP),
    Row(name="WITH within WITH", sql=lambda n: "WITH a AS (" * n + "SELECT 1 x" + ") SELECT * FROM a" * n, short=150, full=50_000, expect=DEEP),
    Row(name="joins within joins", sql=lambda n: "SELECT count(*) FROM " + "(" * n + "(VALUES (1)) t0(a)" + "".join(
        f" CROSS JOIN (VALUES (1)) t{i + 1}(a{i}))" for i in range(n)), short=80, full=5000, expect=DEEP + " 54000"),
    Row(name="many joins", sql=lambda n: "SELECT count(*) FROM numbers t0" + "".join(f" JOIN numbers t{i + 1} USING (id)" for i in range(n)) +
        " WHERE id = 1", short=93, full=1000, answer="1", expect=DEEP + " 54000"),
    Row(name="many tables", sql=lambda n: "SELECT count(*) FROM " + ", ".join(f"numbers t{i}" for i in range(n)) + " WHERE " + " AND ".join(
        f"t{i}.id = 1" for i in range(n)), short=110, full=1000, answer="1", expect=DEEP + " 54000"),
    Row(name="UNIONs", sql=lambda n: "SELECT 1" + " UNION ALL SELECT 1" * n, short=290, full=50_000, expect=DEEP),
    Row(name="UNIONs that nest", sql=lambda n: "(" * n + "SELECT 1" + " UNION SELECT 1)" * n, short=400, full=50_000, expect=DEEP),
    Row(name="EXCEPT and INTERSECT in turn", sql=lambda n: "SELECT 1" + " EXCEPT SELECT 2 INTERSECT SELECT 1" * n, short=150, full=20_000,
        expect=DEEP),
    Row(name="IN of constants", sql=lambda n: f"SELECT id FROM numbers WHERE id IN ({','.join(map(str, range(n)))}) LIMIT 1", short=4300,
        full=1_000_000, expect=DEEP),
    Row(name="IN of texts", sql=lambda n: "SELECT id FROM numbers WHERE s IN (" + ",".join(f"'x{i}'" for i in range(n)) + ") LIMIT 1", short=6000,
        full=500_000, expect=DEEP),
    Row(name="NOT IN of constants", sql=lambda n: f"SELECT count(*) FROM numbers WHERE id NOT IN ({','.join(map(str, range(n)))})", short=1200,
        full=500_000, expect=DEEP),
    Row(name="IN of rows", sql=lambda n: "SELECT id FROM numbers WHERE (id, n) IN (" + ",".join(f"({i}, {i})" for i in range(n)) + ") LIMIT 1",
        short=120, full=50_000, expect=DEEP),
    Row(name="IN of expressions", sql=lambda n: "SELECT id FROM numbers WHERE id IN (" + ",".join(f"n + {i}" for i in range(n)) + ") LIMIT 1",
        short=220, full=50_000, expect=DEEP),
    Row(name="many targets", sql=lambda n: "SELECT " + ",".join(f"{i}" for i in range(n)), short=1664, full=1664),
    Row(name="too many targets", sql=lambda n: "SELECT " + ",".join(f"{i}" for i in range(n)), short=20_000, full=1_000_000, expect="54011"),
    Row(name="many expressions of a table", sql=lambda n: "SELECT " + ",".join(f"id + {i}" for i in range(n)) + " FROM numbers WHERE id = 1",
        short=1000, full=1664),
    Row(name="a wide table", sql=lambda n: "CREATE TEMP TABLE wide (" + ",".join(f"c{i} int DEFAULT {i} CHECK (c{i} >= 0)" for i in range(n)) + ")",
        short=300, full=1600),
    Row(name="a row of a wide table", sql="INSERT INTO wide DEFAULT VALUES", setup=("CREATE TEMP TABLE wide (" + ",".join(
        f"c{i} int DEFAULT {i}" for i in range(1600)) + ")",), short=1, full=1),
    Row(name="too many columns", sql=lambda n: "CREATE TEMP TABLE wide (" + ",".join(f"c{i} int" for i in range(n)) + ")", short=3200,
        full=300_000, expect="54011"),
    Row(name="GROUP BY of many", sql=lambda n: "SELECT count(*) FROM numbers WHERE id = 1 GROUP BY " + ",".join(f"n + {i}" for i in range(n)),
        short=800, full=1664, expect=DEEP + " 54011"),
    Row(name="ORDER BY of many", sql=lambda n: "SELECT id FROM numbers WHERE id = 1 ORDER BY " + ",".join(f"n + {i}" for i in range(n)), short=800,
        full=1600, expect=DEEP + " 54011"),
    Row(name="many CTEs", sql=lambda n: "WITH " + ",".join(f"a{i} AS (SELECT {i})" for i in range(n)) + " SELECT 1", short=800, full=50_000,
        answer="1", expect=DEEP),
    Row(name="CTEs in a chain", sql=lambda n: "WITH a0 AS (SELECT 1 x)" + "".join(f", a{i + 1} AS (SELECT x FROM a{i})" for i in range(n)) +
        f" SELECT x FROM a{n}", short=300, full=20_000, answer="1", expect=DEEP),
    Row(name="a statement of many statements", sql=lambda n: "SELECT 1;" * n, short=190, full=200_000, answer="1"),
    Row(name="a text of semicolons", sql=lambda n: ";" * n, short=500_000, full=50_000_000),
    Row(name="a text of words", sql=lambda n: "SELECT " + "a " * n, short=200_000, full=20_000_000, expect="42601"),
    Row(name="a text of operators", sql=lambda n: "SELECT 1 " + "+" * n + " 1", short=15_000, full=20_000_000, expect="42601 42883 54001"),
    Row(name="comments that begin in a row", sql=lambda n: "SELECT " + "/*" * n + "*/" * n + " 1", short=3900, full=200_000, answer="1"),
    Row(name="signs in a row", sql=lambda n: "SELECT 1 " + "+" * n + " 1", short=3900, full=200_000, expect=DEEP),
    Row(name="a long name", sql=lambda n: f"SELECT 1 AS {'a' * n}", short=2_300_000, full=50_000_000, answer="1"),
    Row(name="parameters", sql=lambda n: "SELECT 1 WHERE 1 IN (" + ",".join(f"${i + 1}::int" for i in range(n)) + ")",
        values=tuple("1" for _ in range(3000)), short=3000, full=3000, answer="1"),
    Row(name="PREPARE with many types", sql=lambda n: "PREPARE p (" + ",".join(["int"] * n) + ") AS SELECT 1", short=2900, full=500_000,
        expect="done 54000 42601"),
    Row(name="EXECUTE with many values", sql=lambda n: "EXECUTE p (" + ",".join(["1"] * n) + ")", setup=("PREPARE p (int) AS SELECT 1",), short=10_000,
        full=500_000, expect="42601"),
    Row(name="a partition tree", sql=lambda n: "CREATE TEMP TABLE parts (a int) PARTITION BY LIST (a); " + "; ".join(
        f"CREATE TEMP TABLE parts{i} PARTITION OF parts FOR VALUES IN ({','.join(str(i * 100 + j) for j in range(20))})" for i in range(n)),
        short=35, full=1000),
    Row(name="GRANT to many", sql=lambda n: "GRANT SELECT ON numbers TO " + ",".join(["postgres"] * n), short=3000, full=300_000),
    Row(name="GRANT on many", sql=lambda n: "GRANT USAGE ON SCHEMA " + ",".join(["public"] * n) + " TO postgres", short=1500, full=300_000),
    Row(name="DROP ROLE of many", sql=lambda n: "DROP ROLE IF EXISTS " + ",".join(f"nobody{i}" for i in range(n)), short=6000, full=100_000),
    Row(name="DROP SCHEMA of many", sql=lambda n: "DROP SCHEMA IF EXISTS " + ",".join(f"nothing{i}" for i in range(n)), short=5000, full=100_000),
    Row(name="default privileges of many", sql=lambda n: "ALTER DEFAULT PRIVILEGES FOR ROLE " + ",".join(["postgres"] * n) +
        " REVOKE SELECT ON TABLES FROM PUBLIC", short=8000, full=300_000),
    Row(name="ALTER TABLE of many actions", sql=lambda n: "ALTER TABLE numbers " + ",".join(["ADD COLUMN IF NOT EXISTS id int"] * n), short=4000,
        full=50_000),
    Row(name="ALTER TABLE of many defaults", sql=lambda n: f"BEGIN; ALTER TABLE numbers {_list(n, 'ALTER n SET DEFAULT {}')}; ROLLBACK", short=500,
        full=50_000),
    Row(name="GRANT on many functions", sql=lambda n: "GRANT EXECUTE ON FUNCTION " + ",".join(["granted()"] * n) + " TO postgres", short=2000,
        full=300_000, setup=("CREATE OR REPLACE FUNCTION granted() RETURNS int LANGUAGE sql AS 'SELECT 1'",), expect=DEEP),
    Row(name="SET CONSTRAINTS of many", sql=lambda n: "SET CONSTRAINTS " + ",".join(["later_n_key"] * n) + " DEFERRED", short=30_000, full=300_000,
        setup=("CREATE TEMP TABLE later (n int UNIQUE DEFERRABLE)",)),
    Row(name="DROP of many", sql=lambda n: "DROP TABLE IF EXISTS " + ",".join(f"nothing{i}" for i in range(n)), short=2000, full=50_000),
    Row(name="COMMENT of a megabyte", sql=lambda n: f"COMMENT ON TABLE numbers IS '{'x' * n}'", short=1_800_000, full=100_000_000, expect="done 53200"),
    Row(name="an enum of many", sql=lambda n: "CREATE TYPE pg_temp.many AS ENUM (" + ",".join(f"'e{i}'" for i in range(n)) + ")", short=3000,
        full=100_000),
    Row(name="an enum of many, with one more", sql="ALTER TYPE long_enum ADD VALUE 'last'; ALTER TYPE long_enum ADD VALUE 'more' BEFORE 'e1'; "
        "ALTER TYPE long_enum RENAME VALUE 'e0' TO 'x'", setup=("DROP TYPE IF EXISTS long_enum", long_enum), short=20_000, full=300_000),
    Row(name="functions of an enum of many", sql="SELECT count(enum_first(v)) + count(enum_last(v)) + count(hashenum(v)) + "
        "sum(array_length(enum_range(v, NULL), 1)) FROM (SELECT unnest(ARRAY['e<n>', 'e1', 'e2', 'e3']::long_enum[]) v) x",
        setup=("DROP TYPE IF EXISTS long_enum", long_enum), short=20_000, full=100_000),
    Row(name="a JSON constructor", sql=lambda n: "SELECT length(json_build_array(" + ",".join(["1"] * n) + ")::text)", short=99, full=100_000,
        expect="done 54023"),
    Row(name="too many arguments", sql=lambda n: "SELECT abs(" + ",".join(["1"] * n) + ")", short=11_000, full=1_000_000, expect="54023 42883"),
    Row(name="EXPLAIN of a large statement", sql=lambda n: f"EXPLAIN VERBOSE SELECT {','.join(f'id + {i}' for i in range(1000))} FROM numbers WHERE "
        f"id IN ({','.join(map(str, range(n)))})", short=490, full=100_000, expect=DEEP),
    Row(name="UPDATE of many columns", sql=lambda n: "UPDATE wide SET " + ",".join(f"c{i} = c{n - i - 1} + 1" for i in range(n)),
        setup=("CREATE TEMP TABLE wide (" + ",".join(f"c{i} int DEFAULT {i}" for i in range(1600)) + ")", "INSERT INTO wide DEFAULT VALUES"),
        short=400, full=1600),
    Row(name="window definitions", sql=lambda n: "SELECT " + ",".join(f"count(*) OVER w{i}" for i in range(n)) + " FROM numbers WHERE id = 1 WINDOW "
        + ",".join(f"w{i} AS (ORDER BY id + {i})" for i in range(n)), short=150, full=1600, expect=DEEP + " 54011"),
    Row(name="a search path of many", sql=lambda n: "SET search_path = " + ",".join(f"s{i}" for i in range(n)), short=5000, full=500_000),
    Row(name="look-ups along a long path", sql="SELECT count(*) FROM numbers a, numbers b WHERE a.id = 1 AND b.id = 1",
        setup=("SELECT set_config('search_path', (SELECT string_agg('s' || g, ',') FROM generate_series(1, <n>) g) || ',public', false)",),
        short=5000, full=8000, answer="1"),
    Row(name="composite types that double", sql=lambda n: f"SELECT x FROM (VALUES (ROW(NULL, NULL)::double{n}), ('(,)'::double{n})) v(x) "
        "ORDER BY x", setup=(doubling_types,), short=40, full=300, answer="(,)"),
    Row(name="composite types that double, stored", sql=lambda n: f"CREATE TEMP TABLE held (x double{n}); INSERT INTO held VALUES ('(,)'); "
        "SELECT a.x FROM held a JOIN held b ON a.x = b.x", setup=(doubling_types,), short=40, full=300, answer="(,)"),
    Row(name="composite types that double, an attribute less", sql="ALTER TYPE double0 DROP ATTRIBUTE b CASCADE",
        setup=(doubling_types, lambda n: f"CREATE TEMP TABLE held (x double{n})"), short=40, full=300),
    Row(name="EXISTS within EXISTS over series", sql=lambda n: "SELECT x FROM generate_series(1, 3) x WHERE " + "".join(
        f"EXISTS (SELECT 1 FROM generate_series(1, 2) y{i} WHERE y{i} >= x AND " for i in range(n)) + "true" + ")" * n, short=40, full=500, expect=DEEP),
    Row(name="a cross join of many", sql=lambda n: "SELECT count(*) FROM " + ",".join(f"(SELECT 1) a{i}" for i in range(n)), short=150, full=5000,
        answer="1", expect=DEEP),
    Row(name="full joins of many", sql=lambda n: "SELECT count(*) FROM (SELECT 1 a) a0" + "".join(
        f" FULL JOIN (SELECT 1 a) a{i} USING (a)" for i in range(1, n + 1)), short=30, full=1000, answer="1", expect=DEEP),
    Row(name="set operations of many columns", sql=lambda n: f"SELECT {_list(n, 'id + {}')} FROM numbers WHERE id < 3 UNION SELECT "
        f"{_list(n, 'id + {}')} FROM numbers WHERE id < 3", short=1500, full=1664),
    Row(name="DROP SCHEMA of many tables", sql="DROP SCHEMA crowd CASCADE", setup=("DROP SCHEMA IF EXISTS crowd CASCADE", "CREATE SCHEMA crowd",
        "DO $$ BEGIN FOR i IN 1..<n> LOOP EXECUTE 'CREATE TABLE crowd.t' || i || ' (a int)'; END LOOP; END $$"), short=150, full=1000),
    Row(name="natural joins of wide tables", sql="SELECT count(*) FROM broad a NATURAL JOIN broad b NATURAL JOIN broad c",
        setup=(lambda n: f"CREATE TEMP TABLE broad ({_list(n, 'c{} int')})",), short=800, full=1600, answer="0", expect=DEEP),
    Row(name="USING of many columns", sql=lambda n: f"SELECT count(*) FROM broad a JOIN broad b USING ({_list(n, 'c{}')})",
        setup=(lambda n: f"CREATE TEMP TABLE broad ({_list(n, 'c{} int')})",), short=800, full=1600, answer="0", expect=DEEP),
    Row(name="the definition of a wide view", sql="SELECT pg_get_viewdef('seen'::regclass) LIKE '%id + 7)%'",
        setup=(lambda n: f"CREATE TEMP VIEW seen AS SELECT {_list(n, 'id + {0} AS c{0}')} FROM numbers",), short=1500, full=1600, answer="t"),
    Row(name="ON CONFLICT that sets many columns", sql=lambda n: "INSERT INTO broad (id, c1) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET "
        f"{_list(n, 'c{0} = excluded.c{0} + {0}')}", setup=(lambda n: f"CREATE TEMP TABLE broad (id int PRIMARY KEY, {_list(n, 'c{} int')})",
        "INSERT INTO broad (id) VALUES (1)"), short=800, full=1599),
    Row(name="MERGE that inserts many columns", sql=lambda n: "MERGE INTO broad USING (SELECT 5 x) s ON broad.id = s.x WHEN NOT MATCHED THEN "
        f"INSERT VALUES (5, {_list(n, 'x + {}')})", setup=(lambda n: f"CREATE TEMP TABLE broad (id int PRIMARY KEY, {_list(n, 'c{} int')})",),
        short=800, full=1599),
    Row(name="MERGE of many actions", sql=lambda n: "MERGE INTO broad USING (SELECT 5 x) s ON broad.id = s.x "
        f"{_list(n, 'WHEN MATCHED AND c1 = {0} THEN UPDATE SET c1 = {0}', ' ')}", setup=("CREATE TEMP TABLE broad (id int PRIMARY KEY, c1 int)",),
        short=500, full=5000, expect=DEEP),
)  # fmt: skip
