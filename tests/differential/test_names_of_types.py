"""What messages call a user's type, by the search path of the session that meets them: in either protocol, in COPY, and where sessions take turns."""

from __future__ import annotations

import asyncio
from typing import Final

import psycopg
import pytest

from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

SETUP: Final = (
    "CREATE SCHEMA of_types",
    "CREATE TYPE of_types.mood AS ENUM ('sad')",
    "CREATE TABLE of_types.t (id int PRIMARY KEY, m of_types.mood)",
)
STATEMENTS: Final = (
    ("SELECT 'x'::of_types.mood", ()),
    ("SELECT %s::of_types.mood", ("x",)),
    ("INSERT INTO of_types.t VALUES (1, %s)", ("x",)),
    ("UPDATE of_types.t SET m = 'sad' WHERE m = %s", ("x",)),
    ("UPDATE of_types.t SET m = %s::text WHERE id = %s", ("x", 1)),
    ("SELECT m + 1 FROM of_types.t", ()),
    ("SELECT (%s::text)::of_types.mood", ("x",)),
    ("DO $$BEGIN PERFORM ('y' || i)::of_types.mood FROM generate_series(1, 2) i; END$$", ()),
    ("COPY of_types.t FROM STDIN", ()),
)
SLOW: Final = "SELECT count(*) FROM generate_series(1, 60000) i WHERE (CASE WHEN i < 60000 THEN 'sad' ELSE 'x' END)::of_types.mood = 'sad'"
"""Gives way several times before it fails."""


def _told(connection: psycopg.Connection[object], sql: str, values: tuple[object, ...]) -> str:
    try:
        with connection.cursor() as cursor:
            if sql.startswith("COPY"):
                with cursor.copy(sql.encode()) as copy:
                    copy.write("1\tx\n")
            else:
                cursor.execute(sql.encode(), values or None, prepare=False)
    except psycopg.Error as error:
        return f"{error.diag.sqlstate} {error.diag.message_primary}"
    return ""


def _all_told(dsn: str, path: str) -> list[str]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"SET search_path = {path}".encode())
        return [_told(connection, *statement) for statement in STATEMENTS]


async def _slowly(dsn: str, path: str) -> str:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(f"SET search_path = {path}".encode())
        with pytest.raises(psycopg.DataError) as caught:
            await connection.execute(SLOW.encode())
        return str(caught.value.diag.message_primary)


async def _side_by_side(dsn: str) -> list[str]:
    return await asyncio.gather(
        *(_slowly(dsn, path) for path in ("public", "of_types", "public", "of_types"))
    )


def test_types_are_called_by_the_search_path_of_the_session(postgres: str, server: ServerProcess) -> None:
    ours = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    for dsn in (ours, postgres):
        with psycopg.connect(dsn, autocommit=True) as connection:
            for statement in SETUP:
                connection.execute(statement.encode())
    told = {path: [_all_told(dsn, path) for dsn in (ours, postgres)] for path in ("public", "of_types")}
    assert told["public"][0] == told["public"][1]
    assert told["of_types"][0] == told["of_types"][1]
    assert all("of_types.mood" in line for line in told["public"][1])
    bare, full = ("invalid input value for enum " + name + ': "x"' for name in ("mood", "of_types.mood"))
    assert asyncio.run(_side_by_side(ours)) == [full, bare, full, bare]
    for dsn in (ours, postgres):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("DROP SCHEMA of_types CASCADE")
