"""DuckDB's postgres extension: tables attached, read in parallel by ctid and binary COPY, changed, made, and left by ROLLBACK."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from uuid import UUID

import duckdb
from duckdb_extensions import import_extension
from steps import ADDRESS, raised, run, same, step

import_extension("postgres_scanner")
DUCK = duckdb.connect()
DUCK.execute("LOAD postgres_scanner")
DUCK.execute("SET TimeZone = 'UTC'")
PLACE = f"host={ADDRESS.host} port={ADDRESS.port} user={ADDRESS.user} dbname={ADDRESS.database}"
ROWS = 5000
TABLE = """
CREATE TABLE ducks.t (id int PRIMARY KEY, s text, b bool, i2 int2, i8 int8, f4 float4, f8 float8, n numeric(10,2), d date, tm time, ts timestamp,
    tz timestamptz, u uuid, y bytea, a int[], aa int[][], ta text[], m ducks.mood, ma ducks.mood[], na numeric(8,3)[], p ducks.pair, c varchar(5))
"""
FILL = f"""
INSERT INTO ducks.t SELECT g, 's' || g, g % 2 = 0, g, g::int8 * 1000000000, g / 4.0, g / 8.0, g / 4.0, date '2020-01-01' + g, time '10:00',
    timestamp '2020-01-01' + g * interval '1 h', timestamptz '2020-01-01 00:00+00' + g * interval '1 h', '00000000-0000-0000-0000-00000000000a',
    'ab', ARRAY[g, NULL], ARRAY[[g, 1], [2, 3]], ARRAY['x', NULL, 'y'], 'ok', ARRAY['sad', 'ok']::ducks.mood[], ARRAY[1.5, 2.25], ROW(g, 'z')::ducks.pair,
    'cde' FROM generate_series(1, {ROWS}) g
"""


def there(sql: str) -> None:
    """Have the server run something as it is."""
    DUCK.execute("CALL postgres_execute('pg', ?)", [sql])


def rows(sql: str) -> list[tuple[object, ...]]:
    """Return what DuckDB answers."""
    return DUCK.execute(sql).fetchall()


@step("attach, and read every type")
def read() -> None:
    DUCK.execute(f"ATTACH '{PLACE}' AS pg (TYPE postgres)")
    for sql in (
        "CREATE SCHEMA ducks",
        "CREATE TYPE ducks.mood AS ENUM ('sad', 'ok')",
        "CREATE TYPE ducks.pair AS (x int, y text)",
        TABLE,
        FILL,
    ):
        there(sql)
    DUCK.execute("CALL pg_clear_cache()")
    same(
        rows("SELECT * EXCLUDE tz FROM pg.ducks.t WHERE id = 3"),
        [(3, "s3", False, 3, 3000000000, 0.75, 0.375, Decimal("0.75"), dt.date(2020, 1, 4), dt.time(10), dt.datetime(2020, 1, 1, 3),
          UUID(int=10), b"ab", [3, None], [[3, 1], [2, 3]], ["x", None, "y"], "ok", ["sad", "ok"], [Decimal("1.500"), Decimal("2.250")],
          {"x": 3, "y": "z"}, "cde")],
    )  # fmt: skip
    same(rows("SELECT epoch(tz) FROM pg.ducks.t WHERE id = 1"), [(1577840400.0,)])
    same(
        rows("SELECT count(*), sum(n), max(ts) FROM pg.ducks.t"),
        [(ROWS, Decimal("3125625.00"), dt.datetime(2020, 7, 27, 8))],
    )
    types = {name: type_ for name, type_, *_ in rows("DESCRIBE pg.ducks.t")}
    same([types[n] for n in ("a", "aa", "ma", "na", "p")],
         ["INTEGER[]", "INTEGER[][]", "ENUM('sad', 'ok')[]", "DECIMAL(8,3)[]", "STRUCT(x INTEGER, y VARCHAR)"])  # fmt: skip


@step("conditions: keys, ctid, enums, filters that the server gets")
def conditions() -> None:
    for pushed in ("true", "false"):
        DUCK.execute(f"SET pg_experimental_filter_pushdown = {pushed}")
        same(
            rows("SELECT id FROM pg.ducks.t WHERE s LIKE 's12%' AND ts < TIMESTAMP '2020-01-06' ORDER BY id"),
            [(12,)],
        )
        same(rows("SELECT count(*) FROM pg.ducks.t WHERE m = 'ok' AND id BETWEEN 10 AND 19"), [(10,)])
    for scan in ("false", "true"):
        DUCK.execute(f"SET pg_use_ctid_scan = {scan}")
        same(rows("SELECT count(*), sum(id) FROM pg.ducks.t"), [(ROWS, ROWS * (ROWS + 1) // 2)])
    same(
        rows("SELECT * FROM postgres_query('pg', 'select a, p::text from ducks.t where id = 2')"),
        [([2, None], "(2,z)")],
    )


@step("UPDATE, DELETE, INSERT, MERGE, ON CONFLICT")
def changes() -> None:
    same(rows("UPDATE pg.ducks.t SET s = 'new', n = n + 1 WHERE id <= 3"), [(3,)])
    same(rows("SELECT id, s, n FROM pg.ducks.t WHERE id < 5 ORDER BY id"),
         [(1, "new", Decimal("1.25")), (2, "new", Decimal("1.50")), (3, "new", Decimal("1.75")), (4, "s4", Decimal("1.00"))])  # fmt: skip
    same(rows(f"DELETE FROM pg.ducks.t WHERE id > {ROWS - 10}"), [(10,)])
    same(
        rows(
            "INSERT INTO pg.ducks.t (id, a, aa, ta, m) SELECT 10000 + i, [i], [[i, 1], [2, i]], ['q'], 'sad' FROM range(3) r(i)"
        ),
        [(3,)],
    )
    same(
        rows("SELECT a, aa, ta, m FROM pg.ducks.t WHERE id = 10002"), [([2], [[2, 1], [2, 2]], ["q"], "sad")]
    )
    DUCK.execute("CREATE TABLE pg.ducks.u (id INTEGER PRIMARY KEY, v VARCHAR DEFAULT 'd')")
    DUCK.execute("INSERT INTO pg.ducks.u (id) VALUES (1)")
    same(rows("INSERT INTO pg.ducks.u VALUES (1, 'x') ON CONFLICT DO NOTHING"), [(0,)])
    assert "duplicate key" in str(
        raised(duckdb.Error, lambda: DUCK.execute("INSERT INTO pg.ducks.u VALUES (1, 'x')"))
    )
    source = "SELECT 1 AS id, 'm' AS v UNION ALL SELECT 2, 'n'"
    same(rows(f"MERGE INTO pg.ducks.u t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"),
         [(2,)])  # fmt: skip
    same(rows("SELECT * FROM pg.ducks.u ORDER BY id"), [(1, "m"), (2, "n")])


@step("CREATE TABLE AS, COPY, ALTER, indexes and views")
def definitions() -> None:
    columns = "i AS id, i * 1.5 AS d, [i, i] AS l, [[i]] AS ll, DATE '2020-01-01' AS dt, INTERVAL 1 DAY AS iv, 'x' || i AS s"
    same(rows(f"CREATE TABLE pg.ducks.made AS SELECT {columns} FROM range({ROWS}) r(i)"), [(ROWS,)])
    same(
        rows("SELECT count(*), sum(d), max(l), max(ll) FROM pg.ducks.made"),
        [(ROWS, Decimal("18746250.0"), [4999, 4999], [[4999]])],
    )
    DUCK.execute("CREATE TABLE own AS SELECT id, s FROM pg.ducks.made WHERE id < 3")
    same(rows("INSERT INTO pg.ducks.made (id, s) SELECT id + 100000, s FROM own"), [(3,)])
    DUCK.execute("CREATE INDEX made_id ON pg.ducks.made (id)")
    DUCK.execute("ALTER TABLE pg.ducks.made ADD COLUMN z INTEGER")
    DUCK.execute("ALTER TABLE pg.ducks.made RENAME COLUMN z TO zz")
    same(rows("SELECT zz, s FROM pg.ducks.made WHERE id = 100002"), [(None, "x2")])
    DUCK.execute("CREATE VIEW pg.ducks.one AS SELECT 1 AS x")
    same(rows("SELECT x FROM pg.ducks.one"), [(1,)])
    same(
        rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'ducks' ORDER BY 1"),
        [("made",), ("one",), ("t",), ("u",)],
    )


@step("what declares no dimensions is read as one")
def undeclared() -> None:
    there("CREATE VIEW ducks.v AS SELECT aa FROM ducks.t")
    there("CREATE TABLE ducks.copied AS SELECT aa, a FROM ducks.t WHERE id < 3")
    DUCK.execute("CALL pg_clear_cache()")
    for name in ("v", "copied"):
        error = raised(
            duckdb.InvalidInputException,
            lambda name=name: DUCK.execute(f"SELECT aa FROM pg.ducks.{name}").fetchall(),
        )
        assert "1 dimensions" in str(error), error
    same(rows("SELECT a FROM pg.ducks.copied ORDER BY a"), [([1, None],), ([2, None],)])


@step("transactions")
def transactions() -> None:
    DUCK.execute("BEGIN")
    DUCK.execute("INSERT INTO pg.ducks.u VALUES (7, 'gone')")
    same(rows("SELECT count(*) FROM pg.ducks.u WHERE id = 7"), [(1,)])
    DUCK.execute("ROLLBACK")
    same(rows("SELECT count(*) FROM pg.ducks.u WHERE id = 7"), [(0,)])
    there("DROP SCHEMA ducks CASCADE")
    DUCK.execute("DETACH pg")


run()
