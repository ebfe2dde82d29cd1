"""As whom the rows of a cursor or portal are computed: the role that opened it, whoever fetches them; and what WHERE CURRENT OF asks for."""

from __future__ import annotations

from collections import Counter
from typing import Final

import psycopg
import pytest

from sqllogictest.client import ServerError
from tests.support.server import ServerProcess

ROWS: Final = 12_000
"""More than a batch, so that the rest is computed when it is fetched."""
SETUP: Final = (
    "CREATE ROLE cr_low", "CREATE ROLE cr_other", f"CREATE TABLE cr_rows AS SELECT a FROM generate_series(1, {ROWS}) a",
    "GRANT SELECT ON cr_rows TO cr_low", "CREATE FUNCTION cr_who() RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN current_user; END'",
    "CREATE TABLE cr_only (a int)", "INSERT INTO cr_only VALUES (42)", "GRANT SELECT ON cr_only TO cr_other",
    "CREATE FUNCTION cr_peek(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN IF n < 11000 THEN RETURN n; END IF; RETURN (SELECT a FROM cr_only); END'",
    "CREATE FUNCTION cr_opens() RETURNS refcursor LANGUAGE plpgsql SECURITY DEFINER AS "
    "$$DECLARE r refcursor := 'c'; BEGIN OPEN r FOR SELECT a, cr_who() FROM cr_rows; RETURN r; END$$",
    "ALTER FUNCTION cr_opens() OWNER TO cr_low", "CREATE TABLE cr_keyed (a int PRIMARY KEY, b text, c text)",
    "CREATE TABLE cr_plain (a int, b text)", "CREATE TABLE cr_parts (a int PRIMARY KEY, b text) PARTITION BY LIST (a)",
    "CREATE TABLE cr_part PARTITION OF cr_parts DEFAULT", "INSERT INTO cr_keyed VALUES (1, 'x')", "INSERT INTO cr_plain VALUES (1, 'x')",
    "INSERT INTO cr_parts VALUES (1, 'x')", "GRANT SELECT (b), UPDATE (b), DELETE ON cr_keyed, cr_plain, cr_parts TO cr_low",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _made(server: ServerProcess) -> None:
    for statement in SETUP:
        server.sql(statement)


DECLARED: Final = "SELECT a, cr_who(), current_user FROM cr_rows"


@pytest.mark.parametrize("hold", ["", "WITH HOLD"])
@pytest.mark.parametrize("then", ["RESET ROLE", "SET ROLE cr_other", "SET SESSION AUTHORIZATION cr_other"])
def test_rows_are_those_of_the_role_that_declared_the_cursor(
    server: ServerProcess, hold: str, then: str
) -> None:
    with psycopg.connect(server.url, autocommit=True) as c:
        for statement in (
            "BEGIN",
            "SET ROLE cr_low",
            f"DECLARE c CURSOR {hold} FOR {DECLARED}",
            "FETCH 1 c",
            then,
        ):
            c.execute(statement)
        if hold:
            c.execute("COMMIT")
        rows = c.execute("FETCH ALL c").fetchall()
        assert Counter(row[1:] for row in rows) == {("cr_low", "cr_low"): ROWS - 1}
        assert c.execute("SELECT current_user").fetchone() != ("cr_low",)


def test_a_cursor_of_a_definer_is_read_as_the_definer(server: ServerProcess) -> None:
    with psycopg.connect(server.url, autocommit=True) as c:
        for statement in ("BEGIN", "SET ROLE cr_other", "SELECT cr_opens()"):
            c.execute(statement)
        assert Counter(row[1] for row in c.execute("FETCH ALL c").fetchall()) == {"cr_low": ROWS}


def test_what_the_present_role_may_read_is_not_read_by_an_earlier_ones_cursor(server: ServerProcess) -> None:
    with psycopg.connect(server.url, autocommit=True) as c:
        for statement in (
            "BEGIN",
            "SET ROLE cr_low",
            "DECLARE c CURSOR FOR SELECT cr_peek(a) FROM cr_rows",
            "FETCH 1 c",
            "SET ROLE cr_other",
        ):
            c.execute(statement)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="cr_only"):
            c.execute("FETCH ALL c")


def test_a_portal_goes_on_as_the_role_that_it_began_with(server: ServerProcess) -> None:
    client = server.connect()
    try:
        client.run("BEGIN")
        client.run("SET ROLE cr_low")
        client._send(b"P", f"\0{DECLARED}\0\0\0".encode())
        client._send(b"B", b"p\0\0\0\0\0\0\0\0")
        client._send(b"E", b"p\0\0\0\0\x05")
        client._send(b"H", b"")
        seen: list[bytes] = []

        def read(until: bytes) -> None:
            while True:
                kind, body = client._receive()
                assert kind != b"E", body
                if kind == b"D":
                    seen.append(body)
                if kind == until:
                    return

        read(b"s")
        client._send(b"S", b"")
        read(b"Z")
        client.run("SET ROLE cr_other")
        client._send(b"E", b"p\0\0\0\0\0")
        client._send(b"S", b"")
        read(b"Z")
        assert len(seen) == ROWS
        assert all(body.endswith(b"cr_low") and body.count(b"cr_low") == 2 for body in seen)
    finally:
        client.close()


@pytest.mark.parametrize("table", ["cr_keyed", "cr_plain", "cr_parts"])
def test_current_of_asks_for_no_right_to_read_the_key(server: ServerProcess, table: str) -> None:
    for change, state in (
        ("UPDATE {} SET b = 'z' WHERE CURRENT OF c", ""), ("DELETE FROM {} WHERE CURRENT OF c", ""),
        ("UPDATE {} SET b = b || 'z' WHERE CURRENT OF c RETURNING b", ""), ("UPDATE {} SET b = a::text WHERE CURRENT OF c", "42501"),
        ("UPDATE {} SET b = 'q' WHERE CURRENT OF c RETURNING a", "42501"), ("UPDATE {} SET b = 'q' WHERE a = 1", "42501"),
    ):  # fmt: skip
        client = server.connect()
        try:
            client.run("BEGIN")
            client.run("SET ROLE cr_low")
            client.run(f"DECLARE c CURSOR FOR SELECT b FROM {table} FOR UPDATE")
            client.run("FETCH c")
            if state:
                with pytest.raises(ServerError) as caught:
                    client.run(change.format(table))
                assert caught.value.sqlstate == state
            else:
                assert client.run(change.format(table)).tag in ("UPDATE 1", "DELETE 1")
        finally:
            client.close()


def test_a_file_without_a_name_is_none(server: ServerProcess) -> None:
    for side in ("FROM ''", "FROM E''", "TO ''", "TO U&'' (FORMAT csv)"):
        with pytest.raises(ServerError) as caught:
            server.sql(f"COPY cr_keyed {side}")
        assert caught.value.sqlstate == "42602"
    with pytest.raises(ServerError) as caught:
        server.sql("SET ROLE cr_low; COPY cr_keyed (b) FROM ''")
    assert caught.value.sqlstate == "42501"


def test_large_objects_change_owners_with_all_else(server: ServerProcess) -> None:
    client = server.connect()
    try:
        for statement in (
            "CREATE ROLE cr_both", "GRANT cr_low, cr_other TO cr_both", "GRANT CREATE ON SCHEMA public TO cr_other", "CREATE ROLE cr_half", "GRANT cr_low TO cr_half",
            "SET SESSION AUTHORIZATION cr_low", "SELECT lo_create(70001)", "RESET SESSION AUTHORIZATION",
        ):  # fmt: skip
            client.run(statement)
        for role, state in (("cr_half", "42501"), ("cr_other", "42501"), ("cr_both", "")):
            client.run(f"SET SESSION AUTHORIZATION {role}")
            if state:
                with pytest.raises(ServerError) as caught:
                    client.run("REASSIGN OWNED BY cr_low TO cr_other")
                assert caught.value.sqlstate == state
            else:
                client.run("REASSIGN OWNED BY cr_low TO cr_other")
            client.run("RESET SESSION AUTHORIZATION")
        owner = "SELECT lomowner::regrole::text FROM pg_largeobject_metadata WHERE oid = 70001"
        assert client.run(owner).rows == [("cr_other",)]
        client.run("SET SESSION AUTHORIZATION cr_half")
        with pytest.raises(ServerError):
            client.run("DROP OWNED BY cr_other")
        client.run("SET SESSION AUTHORIZATION cr_other")
        client.run("DROP OWNED BY cr_other")
        client.run("RESET SESSION AUTHORIZATION")
        assert client.run(owner).rows == []
    finally:
        client.close()
