"""Types of parameters that a client names by oid: those of its database, and what is asked of others leaves nothing behind."""

from __future__ import annotations

import asyncio
from typing import Any

from pgwire import messages as m
from pgwire.server import Server, ServerConfig
from tests.support.engine import open_database
from tests.support.sessions import Client
from txn.persist.memory import MemoryDisk

ASKED = (
    "SELECT $1",
    "SELECT $1::text",
    "SELECT ARRAY[$1]",
    "SELECT $1 = $1",
    "INSERT INTO other VALUES ($1)",
    "SELECT $1::int4[]",
)


def said(events: list[Any]) -> list[Any]:
    errors = [(e.report.sqlstate, e.report.message) for e in events if isinstance(e, m.ErrorResponse)]
    return errors or [e.values[0] for e in events if isinstance(e, m.DataRow)]


def test_a_parameter_has_a_type_of_the_database() -> None:
    async def main() -> None:
        database = await open_database(MemoryDisk())
        server = Server(database, ServerConfig())
        one = Client(server)
        await one.answers()

        async def query(sql: str) -> list[Any]:
            return said(await one.run(m.Query(sql)))

        async def parse(sql: str, oid: int) -> list[Any]:
            return said(await one.run(m.Parse("", sql, (oid,)), m.Sync()))

        assert await query("CREATE TYPE first AS ENUM ('a'); CREATE TABLE other (k text)") == []
        [last] = await query("SELECT 'other'::regtype::oid")
        for oid in (4, 9999, 3_999_999_999, *range(int(last) + 2, int(last) + 40)):
            for sql in ASKED:
                assert await parse(sql, oid) == [("42704", f"type with OID {oid} does not exist")], sql
            assert await parse("SELECT 1", oid) == []  # nobody asks for it
        assert await query("CREATE TYPE mood AS ENUM ('b'); CREATE TYPE pair AS (m mood)") == []
        assert await query("CREATE DOMAIN few AS int[] CHECK (cardinality(VALUE) < 3)") == []
        assert await query("CREATE TYPE span AS RANGE (subtype = float8); CREATE TABLE t (p pair)") == []
        for type_, value in (
            ("mood", "b"),
            ("pair", "(b)"),
            ("span", "[1,2)"),
            ("t", '("(b)")'),
            ("few", "{1}"),
        ):
            [oid] = map(int, await query(f"SELECT '{type_}'::regtype::oid"))
            assert await parse("SELECT $1", oid) == []
            if type_ != "few":
                assert await query(f"SELECT (array_agg('{value}'::{type_}))[1]") == [value.encode()]
                [array] = map(int, await query(f"SELECT '{type_}[]'::regtype::oid"))
                assert await parse("SELECT $1[1]", array) == []
        [oid] = map(int, await query("SELECT 'mood'::regtype::oid"))
        assert await query("CREATE DATABASE beside") == []
        two = Client(server, "beside")
        await two.answers()
        foreign = said(await two.run(m.Parse("", "SELECT $1", (oid,)), m.Sync()))
        assert foreign == [("42704", f"type with OID {oid} does not exist")]
        assert await query("SELECT to_regtype('public.gone[]') IS NULL") == [b"t"]
        assert await query("DROP TYPE mood CASCADE") == []
        assert await parse("SELECT $1", oid) == [("42704", f"type with OID {oid} does not exist")]
        await database.close()

    asyncio.run(main())
