"""A view whose query cannot be read fails alone; none is made whose stored text would mean another query."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import pytest

from tests.support.durable import run
from tests.support.engine import Failed, Session, open_database
from txn.persist.memory import MemoryDisk


def test_a_view_that_cannot_be_read_fails_alone() -> None:
    async def go() -> None:
        database = await open_database(MemoryDisk())
        session = Session(database, 1)
        for sql in (
            "CREATE TABLE a (id int PRIMARY KEY, n int)", "CREATE VIEW bad AS SELECT n FROM a", "CREATE VIEW good AS SELECT id FROM a",
            "BEGIN", "CREATE TABLE b (id int)",
        ):  # fmt: skip
            await session.run(sql)
        inner = session.connection.session
        [view] = [item for item in inner.catalog.user_relations() if item.name == "bad"]
        await inner.view.change([replace(view, view_sql="SELECT nothing FROM public.a")])
        await session.run("COMMIT")
        with pytest.raises(Failed, match="42703"):
            await session.run("SELECT * FROM bad")
        texts = dict(
            await session.run("SELECT relname, pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND relnamespace = 2200")
        )  # fmt: skip
        assert texts == {"bad": "SELECT nothing FROM public.a;", "good": " SELECT a.id\n   FROM a;"}
        assert await session.run("SELECT count(*) FROM pg_depend WHERE refobjid = 'a'::regclass") != [("0",)]
        for sql in ("ALTER TABLE b ADD c int", "ALTER TABLE a ADD o int", "ALTER TABLE a RENAME n TO m", "ALTER TABLE a DROP m",
                    "ALTER TABLE a RENAME TO c", "DROP VIEW bad"):  # fmt: skip
            await session.run(sql)
        assert await session.run("SELECT id FROM good") == []

    run(go)


@pytest.mark.parametrize("text", ["SELECT n AS id FROM public.a", "SELECT id FROM public.a WHERE n > 0", "SELECT id FROM nowhere"])  # fmt: skip
def test_a_text_that_means_another_query_is_refused(text: str) -> None:
    async def go() -> None:
        session = Session(await open_database(MemoryDisk()), 1)
        await session.run("CREATE TABLE a (id int PRIMARY KEY, n int)")
        with (
            mock.patch("planner.bind.stored.deparse_query", return_value=text),
            pytest.raises(Failed, match="0A000"),
        ):
            await session.run("CREATE VIEW v AS SELECT id FROM a")
        await session.run("CREATE VIEW v AS SELECT id FROM a")

    run(go)
