"""Queries through the lowering: what an engine answers is what PostgreSQL 15 prints, digits and scales included."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.executors.local.executor import LocalExecutor
from planner.base.errors import SqlError
from tests.golden.harness import check
from tests.support.lowered import PostgreSQL, World, database_of, printed, sample_world
from tests.support.postgres import postgres  # noqa: F401 - a fixture

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return sample_world(tmp_path_factory.mktemp("lower"))


@pytest.fixture(scope="module")
def postgresql(postgres: str, world: World) -> Iterator[PostgreSQL]:  # noqa: F811
    with database_of(postgres) as server:
        for statement in world.statements:
            server.run(statement)
        yield server


def _runner(answer: Callable[[str], list[tuple[str | None, ...]]]) -> Callable[[list[str]], list[str]]:
    def run(commands: list[str]) -> list[str]:
        query = "\n".join(commands)
        try:
            return printed(answer(query), query)
        except Exception as error:
            sqlstate = getattr(error, "sqlstate", None)
            if sqlstate is None:
                raise
            return [f"ERROR {sqlstate}"]

    return run


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_local_answers_as_postgresql_does(
    script: Path, world: World, rewrite: bool, request: pytest.FixtureRequest
) -> None:
    with asyncio.Runner() as runner:
        executor = LocalExecutor(blob_dir=world.folder)

        def answer(query: str) -> list[tuple[str | None, ...]]:
            return runner.run(world.answer(executor, query))

        if rewrite:  # the truth is PostgreSQL's, never ours
            check(script, _runner(request.getfixturevalue("postgresql").run), rewrite=True)
        check(script, _runner(answer), rewrite=False)
        runner.run(executor.close())


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_scripts_are_postgresql_s_answers(script: Path, postgresql: PostgreSQL) -> None:
    check(script, _runner(postgresql.run), rewrite=False)


def test_refusals_name_the_construct(world: World) -> None:
    executor: Any = LocalExecutor(blob_dir=world.folder)
    with pytest.raises(SqlError) as caught:
        executor.prepare(world.bind("SELECT a FROM t ORDER BY gen_random_uuid()"), world.catalog)
    assert caught.value.sqlstate == "0A000"
    assert "gen_random_uuid()" in caught.value.message
