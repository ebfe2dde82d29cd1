"""What runs is what the catalog says, however fast that changes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from engine.feeds.sources import registry
from engine.feeds.sources.registry import Sources
from planner.catalog import SourceDef

SOURCE = SourceDef(oid=20000, name="s", kind="rate", owner=10)


class FakeRunner:
    """A task that a test ends."""

    made: ClassVar[list[FakeRunner]] = []

    def __init__(self, db: Any, space: Any, source: SourceDef, status: Any, make_reader: Any) -> None:
        self.source, self.halted, self.stopped = source, False, False
        FakeRunner.made.append(self)

    async def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[FakeRunner]:
    monkeypatch.setattr(registry, "Runner", FakeRunner)
    FakeRunner.made = []
    return FakeRunner.made


def test_runs_follow_the_catalog(made: list[FakeRunner]) -> None:
    async def script() -> None:
        catalog = SimpleNamespace(sources={"s": SOURCE})
        sources = Sources(SimpleNamespace(spaces=[SimpleNamespace(catalog=catalog)]))  # type: ignore[arg-type]
        sources.follow()
        assert made == []  # nothing before the start
        sources.start()
        await sources._follow(None)
        assert [runner.stopped for runner in made] == [False]
        catalog.sources = {"s": replace(SOURCE, paused=True)}
        await sources._follow(None)
        assert [runner.stopped for runner in made] == [True]
        assert sources.status(SOURCE).state == "paused"
        catalog.sources = {"s": SOURCE}
        await sources._follow(SOURCE.oid)
        assert [runner.stopped for runner in made] == [True, False]
        catalog.sources = {}
        await sources._follow(None)
        assert [runner.stopped for runner in made] == [True, True]
        await sources.close()

    asyncio.run(script())


def test_one_that_saw_a_pause_which_is_over_begins_again(made: list[FakeRunner]) -> None:
    async def script() -> None:
        sources = Sources(
            SimpleNamespace(spaces=[SimpleNamespace(catalog=SimpleNamespace(sources={"s": SOURCE}))])
        )  # type: ignore[arg-type]
        sources.start()
        await sources._follow(None)
        made[0].halted = True  # between PAUSE and RESUME, neither of which this has seen yet
        await sources._follow(SOURCE.oid)
        assert [runner.stopped for runner in made] == [True, False]
        await sources.close()

    asyncio.run(script())
