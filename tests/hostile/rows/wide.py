"""Objects of many parts, and many objects: rows, types, partitions, locks and constraints by the hundred in one statement."""

from __future__ import annotations

from tests.hostile.row import Row
from tests.hostile.rows.nesting import DEEP, doubling_types


def _list(n: int, item: str, between: str = ", ") -> str:
    """Return ``item`` with the numbers from 0 to ``n`` - 1 in it."""
    return between.join(item.format(i) for i in range(n))


def _table(n: int) -> str:
    """Return a table of ``n`` integers."""
    return f"CREATE TEMP TABLE w ({_list(n, 'c{0} int')})"


def _type(n: int) -> str:
    """Return a type of ``n`` integers."""
    return f"CREATE TYPE pg_temp.wide AS ({_list(n, 'c{0} int')})"


def _parts(n: int) -> str:
    """Return a table of ``n`` partitions."""
    parts = _list(n, "CREATE TEMP TABLE p{0} PARTITION OF p FOR VALUES IN ({0})", "; ")
    return f"CREATE TEMP TABLE p (a int) PARTITION BY LIST (a); {parts}"


def _domains(n: int) -> str:
    """Return ``n`` domains, each over the one before."""
    return "CREATE DOMAIN pg_temp.d0 AS int CHECK (VALUE > 0); " + "; ".join(
        f"CREATE DOMAIN pg_temp.d{i} AS pg_temp.d{i - 1} CHECK (VALUE > 0)" for i in range(1, n)
    )


INTO_KEYED = (
    "INSERT INTO keyed SELECT 1, (SELECT array_agg(x) FROM generate_series(1, <n>) x), (SELECT array_agg(x * 1.5) FROM generate_series(1, <n>) x), "
    "(SELECT jsonb_agg('k' || x) FROM generate_series(1, <n> / 4) x)"
)


def _row_literal(n: int) -> str:
    """Return the text of a row of ``n`` integers."""
    return "'(" + ",".join(["1"] * n) + ")'"


ROWS = (
    Row(
        name="INSERT of wide rows from a query",
        sql=lambda n: f"INSERT INTO w SELECT {_list(n, 'g')} FROM generate_series(1, {2 * n}) g",
        setup=(_table,),
        short=400,
        full=1600,
        expect=DEEP,
    ),
    Row(
        name="UPDATE over many partitions",
        sql="UPDATE p SET a = a",
        setup=(_parts, "INSERT INTO p SELECT g % <n> FROM generate_series(1, 40000) g"),
        short=60,
        full=1000,
    ),
    Row(name="DROP of many partitions", sql="DROP TABLE p", setup=(_parts,), short=60, full=1000),
    Row(
        name="a table of many checks",
        sql=lambda n: f"CREATE TEMP TABLE w ({_list(n, 'c{0} int NOT NULL DEFAULT 1 CHECK (c{0} > 0)')})",
        short=100,
        full=800,
    ),
    Row(
        name="a table LIKE one of many checks",
        sql="CREATE TEMP TABLE v (LIKE w INCLUDING ALL)",
        setup=(
            lambda n: f"CREATE TEMP TABLE w ({_list(n, 'c{0} int NOT NULL DEFAULT 1 CHECK (c{0} > 0)')})",
        ),
        short=100,
        full=800,
    ),
    Row(
        name="GRANT of many columns",
        sql=lambda n: f"GRANT SELECT ({_list(n, 'c{0}')}) ON w TO public",
        setup=(_table,),
        short=200,
        full=1600,
    ),
    Row(name="a type of many attributes", sql=_type, short=300, full=1600),
    Row(
        name="a row literal of many attributes for each row",
        sql=lambda n: (
            f"SELECT count(({_row_literal(n)[:-1]}' || left(g::text, 0))"
            "::pg_temp.wide) FROM generate_series(1, 500) g"
        ),
        setup=(_type,),
        short=100,
        full=1600,
    ),
    Row(
        name="a row literal that is spread",
        sql=lambda n: f"SELECT ({_row_literal(n)}::pg_temp.wide).*",
        setup=(_type,),
        short=100,
        full=1600,
    ),
    Row(
        name="a row of a function that is spread",
        sql=lambda n: "SELECT (json_populate_record(null::pg_temp.wide, '{}')).*",
        setup=(_type,),
        short=100,
        full=1600,
    ),
    Row(
        name="DROP DOMAIN CASCADE",
        sql="DROP DOMAIN pg_temp.d0 CASCADE",
        setup=(_domains,),
        short=30,
        full=300,
    ),
    Row(
        name="DROP SCHEMA of domains and sequences",
        sql="DROP SCHEMA wide_objects CASCADE",
        setup=(
            lambda n: (
                "DROP SCHEMA IF EXISTS wide_objects CASCADE; CREATE SCHEMA wide_objects; "
                + _list(n, "CREATE SEQUENCE wide_objects.s{0}; CREATE DOMAIN wide_objects.d{0} AS int", "; ")
            ),
        ),
        short=30,
        full=1000,
    ),
    Row(
        name="DROP of many types",
        sql=lambda n: f"DROP TYPE {_list(n, 'pg_temp.t{0}')}",
        setup=(lambda n: _list(n, "CREATE TYPE pg_temp.t{0} AS (a int, b text)", "; "),),
        short=600,
        full=1500,
    ),
    Row(
        name="DROP of many types that are used",
        sql=lambda n: f"DROP TYPE {_list(n, 'pg_temp.t{0}')} CASCADE",
        setup=(
            lambda n: _list(n, "CREATE TYPE pg_temp.t{0} AS (a int, b text)", "; "),
            lambda n: _list(n, "CREATE TYPE pg_temp.u{0} AS (a pg_temp.t{0}, b int)", "; "),
            lambda n: _list(n, "CREATE TEMP TABLE h{0} (a pg_temp.t{0}, b int)", "; "),
        ),
        short=40,
        full=500,
    ),
    Row(
        name="DROP of many domains",
        sql=lambda n: f"DROP DOMAIN {_list(n, 'pg_temp.d{0}')}",
        setup=(lambda n: _list(n, "CREATE DOMAIN pg_temp.d{0} AS int CHECK (VALUE > {0})", "; "),),
        short=600,
        full=1500,
    ),
    Row(
        name="DROP of many functions",
        sql=lambda n: f"DROP FUNCTION {_list(n, 'pg_temp.f{0}')}",
        setup=(
            lambda n: _list(
                n, "CREATE FUNCTION pg_temp.f{0}(a int) RETURNS int LANGUAGE sql AS 'SELECT a + {0}'", "; "
            ),
        ),
        short=600,
        full=1500,
    ),
    Row(
        name="DROP of many tables",
        sql=lambda n: f"DROP TABLE {_list(n, 't{0}')}",
        setup=(lambda n: _list(n, "CREATE TEMP TABLE t{0} (a int PRIMARY KEY, b text)", "; "),),
        short=600,
        full=1500,
    ),
    Row(
        name="DROP of many views",
        sql=lambda n: f"DROP VIEW {_list(n, 'v{0}')}",
        setup=(lambda n: _list(n, "CREATE TEMP VIEW v{0} AS SELECT id + {0} x FROM numbers", "; "),),
        short=600,
        full=1500,
    ),
    Row(
        name="DROP of a table of many sequences",
        sql="DROP TABLE w",
        setup=(lambda n: f"CREATE TEMP TABLE w ({_list(n, 'c{0} serial')})",),
        short=200,
        full=1600,
    ),
    Row(
        name="DISCARD TEMP of many tables",
        sql="DISCARD TEMP",
        setup=(lambda n: _list(n, "CREATE TEMP TABLE t{0} (a int PRIMARY KEY, b text)", "; "),),
        short=600,
        full=1500,
    ),
    Row(
        name="DISCARD TEMP of types that double",
        sql="DISCARD TEMP",
        setup=(doubling_types,),
        short=40,
        full=300,
    ),
    Row(
        name="DROP OWNED",
        sql="DROP OWNED BY wide_owner; DROP ROLE wide_owner",
        setup=(
            "DROP SCHEMA IF EXISTS owned_objects CASCADE",
            "DROP ROLE IF EXISTS wide_owner",
            lambda n: (
                "CREATE ROLE wide_owner; CREATE SCHEMA owned_objects AUTHORIZATION "
                "wide_owner; SET ROLE wide_owner; "
                + _list(n, "CREATE SEQUENCE owned_objects.s{0}", "; ")
                + "; RESET ROLE"
            ),
        ),
        short=50,
        full=1500,
    ),
    Row(
        name="pg_locks of many advisory locks",
        sql="SELECT count(*) FROM pg_locks",
        setup=("SELECT count(pg_advisory_lock(g)) FROM generate_series(1, <n>) g",),
        short=3000,
        full=99_000,
    ),
    Row(
        name="all advisory locks let go",
        sql="SELECT pg_advisory_unlock_all()",
        setup=("SELECT count(pg_advisory_lock(g)) FROM generate_series(1, <n>) g",),
        short=3000,
        full=99_000,
    ),
    Row(
        name="COMMIT of deferred constraints",
        sql="COMMIT",
        setup=(
            "CREATE TEMP TABLE dp (a int PRIMARY KEY)",
            "INSERT INTO dp SELECT * FROM generate_series(1, <n>)",
            "CREATE TEMP TABLE df (a int REFERENCES dp DEFERRABLE INITIALLY DEFERRED, u int UNIQUE DEFERRABLE INITIALLY "
            "DEFERRED)",
            "BEGIN",
            "INSERT INTO df SELECT g, g FROM generate_series(1, <n>) g",
        ),
        short=1500,
        full=100_000,
    ),
    Row(
        name="parameters in VALUES",
        sql=lambda n: (
            "SELECT count(*) FROM (VALUES " + ", ".join(f"(${i + 1}::text)" for i in range(n)) + ") x"
        ),
        values=(),
        prepared=True,
        short=400,
        full=30_000,
        expect=DEEP + " 08P01",
    ),
    Row(
        name="a cube",
        sql=lambda n: (
            f"SELECT count(*) FROM generate_series(1, 300) g(c0), LATERAL (SELECT "
            f"{', '.join(f'c0 % {i + 2} c{i + 1}' for i in range(n))}) x GROUP BY CUBE (c0, {', '.join(f'c{i + 1}' for i in range(n))})"
        ),
        short=4,
        full=11,
        expect="done 53200",
    ),
    Row(
        name="jsonb of many objects, stripped and written",
        sql="SELECT length(jsonb_pretty(j)), length(jsonb_strip_nulls(j)::text), "
        "length(jsonb_insert(j, '{5}', '4')::text), length((j #- '{7}')::text) FROM (SELECT jsonb_agg(jsonb_build_object('a', null, 'b', g)) j "
        "FROM generate_series(1, <n>) g) s",
        short=500,
        full=200_000,
    ),
    Row(
        name="information_schema.columns",
        sql="SELECT * FROM information_schema.columns",
        setup=(lambda n: "; ".join(f"CREATE TEMP TABLE w{t} ({_list(200, 'c{0} int')})" for t in range(n)),),
        short=1,
        full=8,
    ),
    Row(
        name="a row of one long text",
        sql="BEGIN; INSERT INTO long_text VALUES (repeat('é', <n>)); COMMIT; DELETE FROM long_text",
        setup=("CREATE TABLE IF NOT EXISTS long_text (t text)",),
        short=8_000_000,
        full=20_000_000,
        expect="done 53200",
    ),
    Row(
        name="rows of many keys in an index, changed",
        sql="SELECT count(*) FROM keyed WHERE a @> '{5}'",
        setup=(
            "CREATE TEMP TABLE keyed (a int[])",
            "CREATE INDEX ON keyed USING gin (a)",
            "INSERT INTO keyed SELECT (SELECT array_agg(x) FROM generate_series(10, <n>) x) FROM generate_series(1, 10)",
            "INSERT INTO keyed SELECT ARRAY[0] FROM generate_series(1, 100)",
            "UPDATE keyed SET a = a || 5 WHERE a[1] > 0",
        ),
        short=10_000,
        full=100_000,
        answer="10",
    ),
    *(
        Row(
            name=f"{what} of a row of many keys",
            sql=sql,
            setup=(
                "CREATE TEMP TABLE keyed (id int PRIMARY KEY, a int[], n numeric[], j jsonb)",
                "CREATE INDEX ON keyed USING gin (a)",
                "CREATE INDEX ON keyed USING gin (n)",
                "CREATE INDEX ON keyed USING gin (j)",
                "CREATE INDEX ON keyed USING gin ((a || 1))",
                f"{INTO_KEYED} RETURNING id",
            ),
            short=10_000,
            full=40_000,
        )
        for what, sql in (
            ("INSERT", f"{INTO_KEYED.replace('SELECT 1', 'SELECT 2')} RETURNING id"),
            (
                "ON CONFLICT",
                f"{INTO_KEYED} ON CONFLICT (id) DO UPDATE SET a = excluded.a || 7, n = excluded.n || 7",
            ),
            (
                "UPDATE",
                "UPDATE keyed SET a = a || 5, n = n || 5, j = j || '[5]' RETURNING id; SELECT pg_sleep(0.1)",
            ),
            (
                "MERGE",
                "MERGE INTO keyed k USING (SELECT 1 x) s ON k.id = s.x WHEN MATCHED THEN UPDATE SET a = a || 5, n = n || 5",
            ),
            ("DELETE", "DELETE FROM keyed RETURNING id; SELECT pg_sleep(0.1)"),
            (
                "rollback",
                "BEGIN; UPDATE keyed SET a = a || 5, n = n || 5, j = j || '[5]' RETURNING id; ROLLBACK",
            ),
            (
                "CHECKPOINT",
                "CHECKPOINT; SELECT pg_sleep(0.1); SELECT id FROM keyed WHERE a @> '{7}' OR n @> '{7}' OR j @> '[7]'",
            ),
            ("REINDEX", "REINDEX TABLE keyed; CHECKPOINT; REINDEX TABLE keyed"),
            ("CREATE INDEX", "CREATE INDEX ON keyed USING gin (n)"),
            ("the values", "SELECT a, n FROM keyed; CHECKPOINT; SELECT a, n FROM keyed"),
        )
    ),
    Row(
        name="a row of many dimensions, stored",
        sql="INSERT INTO nested SELECT array_agg(ARRAY[x, x + 1]) FROM generate_series(1, <n>) x RETURNING a[1:1]; CHECKPOINT; SELECT a[1:1] FROM nested",
        setup=("CREATE TEMP TABLE nested (a int[])",),
        short=10_000,
        full=300_000,
    ),
    Row(
        name="a row of many keys, looked for as a whole",
        sql="SELECT count(*) FROM keyed WHERE a = (SELECT array_agg(x) FROM generate_series(1, <n>) x)",
        setup=(
            "CREATE TEMP TABLE keyed (a int[])",
            "CREATE INDEX ON keyed USING gin (a)",
            "INSERT INTO keyed SELECT array_agg(x) FROM generate_series(1, <n>) x",
        ),
        short=20_000,
        full=100_000,
        answer="1",
    ),
)
"""The rows of this kind."""
