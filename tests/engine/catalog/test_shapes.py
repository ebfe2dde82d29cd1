"""Composite types for other processes: settings of a load go to Spark's tasks with the shapes that are in use."""

from __future__ import annotations

import asyncio
import gc
import pickle

from engine.catalog.storage.stored import row_type_oid
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk


def test_types_go_to_another_process_with_what_they_are_made_of() -> None:
    async def main() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE TYPE inner_row AS (a int, gone int, b text)")
        await session.run("ALTER TYPE inner_row DROP ATTRIBUTE gone")
        await session.run("CREATE TABLE base (x inner_row[], y int)")
        await session.run("CREATE TABLE unused (z int)")
        await session.run("CREATE TABLE holder (h base)")
        catalog = session.connection.session.catalog
        there = pickle.loads(pickle.dumps(catalog.codec_types))
        names = {name: catalog.relation("public", name) for name in ("base", "unused", "holder")}
        base, unused = (row_type_oid(names[name].oid) for name in ("base", "unused"))  # type: ignore[union-attr]
        (inner,) = (type_.oid for type_ in catalog.user_types())
        for oid in (base, inner):
            assert there.row(oid) == catalog.row_shape(oid) is not None
        assert there.row(unused) is None
        assert there.row(23) is None
        await database.close()

    asyncio.run(main())
    gc.collect()
