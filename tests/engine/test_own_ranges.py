"""Range types of one's own: the same on every executor and in both wire formats. That they last: ``test_kept_calls``."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import psycopg
import pytest
from psycopg.types.range import Range, register_range

from sqllogictest.client import ServerError
from tests.support.engine import Session, open_database
from tests.support.server import ServerProcess
from txn.persist.memory import MemoryDisk

SETUP = """
DROP SCHEMA IF EXISTS orx CASCADE;
CREATE SCHEMA orx;
SET search_path = orx, public;
CREATE TYPE floatrange AS RANGE (subtype = float8, subtype_diff = float8mi);
CREATE TYPE intspan AS RANGE (subtype = int4);
CREATE TYPE textrange AS RANGE (subtype = text);
CREATE TYPE amounts AS RANGE (subtype = numeric);
CREATE TYPE timerange AS RANGE (subtype = time);
CREATE TYPE listrange AS RANGE (subtype = numeric[]);
CREATE TYPE spans AS RANGE (subtype = interval);
CREATE DOMAIN named AS int;
CREATE TABLE many (id int PRIMARY KEY, f floatrange, s intspan, w textrange, n amounts, t timerange, a floatrange[], m floatmultirange,
  l listrange, v spans, k listmultirange);
INSERT INTO many SELECT g, floatrange(g / 2.0, g), intspan(g, g + 3, '[]'), textrange(chr(97 + g % 20), NULL), amounts(g * 1.10, g * 2),
  timerange(NULL, time '00:00' + g * interval '1 second'), ARRAY[floatrange(g, g + 1), NULL], floatmultirange(floatrange(g, g + 1), floatrange(g + 2, g + 3)),
  listrange(ARRAY[g, 1.50], ARRAY[g + 1]), spans(g * interval '1 hour', NULL), listmultirange(listrange(NULL, ARRAY[g]), listrange('{}', ARRAY[g, NULL]))
  FROM generate_series(1, 3000) g;
"""

QUERIES = {
    "SELECT count(*) FROM many WHERE f && '[10,20)'": [("29",)],
    "SELECT count(*) FROM many WHERE s @> 7": [("4",)],
    "SELECT count(*) FROM many WHERE w @> 'c'::text": [("450",)],
    "SELECT count(*) FROM many WHERE n && '[1.5,2.5]'": [("2",)],
    "SELECT t FROM many WHERE t @> time '00:40' ORDER BY t DESC LIMIT 1": [("(,00:50:00)",)],
    "SELECT id FROM many WHERE f = '[3,6)'": [("6",)],
    "SELECT f FROM many ORDER BY f LIMIT 1": [("[0.5,1)",)],
    "SELECT s FROM many ORDER BY s DESC LIMIT 1": [("[3000,3003]",)],
    "SELECT count(DISTINCT w), count(DISTINCT n) FROM many": [("20", "3000")],
    "SELECT a.id FROM many a JOIN many b ON a.f = b.f AND a.s = b.s WHERE b.id = 9": [("9",)],
    "SELECT w, count(*) FROM many GROUP BY w ORDER BY w LIMIT 2": [("[a,)", "150"), ("[b,)", "150")],
    "SELECT id, lower(f), upper(s), a, m FROM many WHERE id = 2": [
        ("2", "1", "5", '{"[2,3)",NULL}', "{[2,3),[4,5)}")
    ],
    "SELECT l, lower(l), v, upper(k), k FROM many WHERE id = 2": [
        ('["{2,1.50}",{3})', "{2,1.50}", "[02:00:00,)", "{2,NULL}", '{(,"{2,NULL}")}')
    ],
    "SELECT count(*) FROM many WHERE l @> ARRAY[7.0, 2]": [("1",)],
    "SELECT count(*) FROM many WHERE v @> interval '1 day'": [("24",)],
    "SELECT l FROM many ORDER BY l DESC LIMIT 1": [('["{3000,1.50}",{3001})',)],
    "SELECT count(DISTINCT l), count(DISTINCT v), count(DISTINCT k) FROM many": [("3000", "3000", "3000")],
    "SELECT a.id FROM many a JOIN many b ON a.l = b.l AND a.v = b.v AND a.k = b.k WHERE b.id = 9": [("9",)],
    "SELECT lower(s), count(*) FROM many WHERE upper(s) < 6 GROUP BY 1 ORDER BY 1": [("1", "1"), ("2", "1")],
}


@pytest.fixture(scope="module")
def ranges(server: ServerProcess) -> ServerProcess:
    server.sql(SETUP)
    return server


@pytest.mark.parametrize("executor", ["index", "auto", "local"])
def test_every_executor_gives_the_same(ranges: ServerProcess, executor: str) -> None:
    client = ranges.connect()
    client.run(f"SET search_path = orx, public; SET executor = {executor}")
    for sql, expected in QUERIES.items():
        assert [tuple(row) for row in client.run(sql).rows] == expected, sql
    client.close()


def test_both_wire_formats_and_copy(ranges: ServerProcess) -> None:
    with psycopg.connect(ranges.url, autocommit=True) as connection:
        connection.execute("SET search_path = orx, public")
        for binary in (False, True):
            row = connection.execute(
                "SELECT f::text, f, s, m, a FROM many WHERE id = %s", [3], binary=binary
            ).fetchone()
            assert row is not None
            assert row[0] == "[1.5,3)"
        info = psycopg.types.range.RangeInfo.fetch(connection, "floatrange")
        assert info is not None
        register_range(info, connection)
        many = psycopg.types.multirange.MultirangeInfo.fetch(connection, "floatmultirange")
        assert many is not None
        assert (many.range_oid, many.subtype_oid) == (info.oid, 701)
        for binary in (False, True):
            sent = "%b" if binary else "%s"
            got = connection.execute(
                f"SELECT {sent}::floatrange, '[1,2)'::floatrange, 'empty'::floatrange",
                [Range(-1.5, float("inf"), "[]")],
                binary=binary,
            ).fetchone()
            assert got == (Range(-1.5, float("inf"), "[]"), Range(1.0, 2.0, "[)"), Range(empty=True))
        connection.execute("CREATE TABLE back (LIKE many)")
        for form in ("text", "csv", "binary"):
            connection.execute("TRUNCATE back")
            with connection.cursor().copy(f"COPY many TO STDOUT (FORMAT {form})") as out:
                data = b"".join(bytes(block) for block in out)
            with connection.cursor().copy(f"COPY back FROM STDIN (FORMAT {form})") as into:
                into.write(data)
            for pair in ("many EXCEPT TABLE back", "back EXCEPT TABLE many"):
                assert connection.execute(f"TABLE {pair}").fetchall() == [], form
        connection.execute("DROP TABLE back")


def test_what_a_domain_demands_of_bounds_is_asked_in_every_format(ranges: ServerProcess) -> None:
    with psycopg.connect(ranges.url, autocommit=True) as connection:
        connection.execute("SET search_path = orx, public")
        connection.execute("CREATE DOMAIN above AS int CHECK (value > 0)")
        connection.execute("CREATE TYPE aboves AS RANGE (subtype = above)")
        connection.execute("CREATE TABLE a (r aboves)")
        connection.execute("CREATE TABLE b (r intspan)")
        for lower, taken in ((1, 1), (0, 0)):
            connection.execute("TRUNCATE b")
            connection.execute("INSERT INTO b VALUES (intspan(%s, 5))", [lower])
            for form in ("text", "csv", "binary"):
                connection.execute("TRUNCATE a")
                with connection.cursor().copy(f"COPY b TO STDOUT (FORMAT {form})") as out:
                    data = b"".join(bytes(block) for block in out)
                with (
                    nullcontext() if taken else pytest.raises(psycopg.errors.CheckViolation),
                    connection.cursor().copy(f"COPY a FROM STDIN (FORMAT {form})") as into,
                ):
                    into.write(data)
                assert connection.execute("SELECT count(*) FROM a").fetchone() == (taken,), form
        connection.execute("DROP TABLE a, b")


def test_the_order_of_elements(ranges: ServerProcess) -> None:
    client = ranges.connect()
    client.run("SET search_path = orx, public")
    rows = client.run(
        "SELECT r FROM unnest(ARRAY[floatrange('-Infinity', 0), floatrange(-2, 0), floatrange(-1e-300, 0), floatrange(0, 1),"
        " floatrange(1e300, NULL), floatrange('Infinity', NULL), floatrange('NaN', NULL), floatrange(NULL, 5), 'empty'])"
        " WITH ORDINALITY u(r, n) ORDER BY r, n DESC"
    ).rows
    assert [row[0] for row in rows] == [
        "empty", "(,5)", "[-Infinity,0)", "[-2,0)", "[-1e-300,0)", "[0,1)", "[1e+300,)", "[Infinity,)", "[NaN,)",
    ]  # fmt: skip
    rows = client.run(
        "SELECT r FROM unnest(ARRAY['[a,b)', '[,b)', '[\"\",b)', '[aa,b)', '[a,ba)', '(a,b)', '[ä,)']::textrange[]) u(r) ORDER BY r"
    ).rows
    assert [row[0] for row in rows] == ["(,b)", '["",b)', "[a,b)", "[a,ba)", "(a,b)", "[aa,b)", "[ä,)"]
    assert [tuple(r) for r in client.run("SELECT floatrange('-0', 1) = floatrange(0, 1)").rows] == [("t",)]
    client.close()


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("CREATE TYPE n AS RANGE (subtype = int4, canonical = f)", "a range type with CANONICAL"),
        ("CREATE TYPE n AS RANGE (subtype = orx.many)", "a range type over orx.many"),
        ("CREATE TYPE n AS RANGE (subtype = text, subtype_opclass = text_pattern_ops)", 'operator class "text_pattern_ops" of a range type'),
        ("ALTER TYPE orx.floatrange SET SCHEMA public", "ALTER TYPE ... SET SCHEMA of a range type"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named(ranges: ServerProcess, sql: str, what: str) -> None:
    with pytest.raises(ServerError) as caught:
        ranges.sql(sql)
    assert (caught.value.sqlstate, caught.value.message) == ("0A000", f"{what} is not supported")


def test_functions_of_another_server_of_the_process_are_no_constructors() -> None:
    """What a range type brings along is known to the process by its oid, which another server's function may have."""

    async def made(statements: list[str]) -> list[int]:
        database = await open_database(MemoryDisk(), own_oids=False)
        session = Session(database, 1)
        for sql in statements:
            await session.run(sql)
        rows = await session.run(
            "SELECT oid, proname, prosrc FROM pg_proc WHERE oid BETWEEN 16384 AND 1000000"
        )
        for oid, name, source in rows:
            if source is not None and name is not None and name.startswith("f"):
                number = name[1:]
                assert await session.run(f"SELECT {name}({number}, 1)") == [(number,)], oid
        await database.close()
        return [int(oid or 0) for oid, _, _ in rows]

    functions = [
        f"CREATE FUNCTION f{n}(a int, b int) RETURNS int LANGUAGE sql AS 'SELECT a * b'" for n in range(9)
    ]
    ranges = [f"CREATE TYPE r{n} AS RANGE (subtype = float8)" for n in range(3)]
    assert set(asyncio.run(made(ranges))) & set(asyncio.run(made(functions)))
