"""DROP without CASCADE takes nothing along, also where pg_depend has no row of what hangs on the object."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from engine.definitions.dropping import dependency_walk, drop_schema
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk


@pytest.mark.parametrize(
    "sql", ["DROP SCHEMA s", "DROP TABLE s.t", "ALTER TABLE s.t DROP COLUMN a", "DROP TYPE s.e"]
)
def test_nothing_goes_untold(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(session: Any, asked: Sequence[Any]) -> list[Any]:
        return []

    async def body() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        await session.run("CREATE SCHEMA s; CREATE TYPE s.e AS ENUM ('x'); CREATE TABLE s.t (a int, e s.e)")
        await session.run("CREATE VIEW v AS SELECT a FROM s.t")
        monkeypatch.setattr(drop_schema, "told_with", nothing)
        monkeypatch.setattr(dependency_walk, "told", nothing)
        with pytest.raises(Failed) as caught:
            await session.run(sql)
        assert caught.value.report.sqlstate == "2BP01"
        assert await session.run("SELECT count(*) FROM v") == [("0",)]
        await database.close()

    asyncio.run(body())
