"""Rows of statement classes agree with what the planner says of them; lower floors refuse what no row allows."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.statements.begin import begin_definition
from engine.statements.registry import SPECS
from planner import statements as st
from planner.statements import StatementClass
from planner.statements.classify import BOUND
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk

PLANTED = """
import typing
from planner import statements as st
Planted = type("Planted", (), {})
st.Statement = typing.Union[st.Statement, Planted]
from planner.statements import classify
"""
"""A class is added to the union of bound statements, and nothing else."""


def test_what_the_planner_calls_a_definition_locks_the_catalog() -> None:
    defined_by_handlers = {st.CreateDatabase, st.DropDatabase, st.CreateSource, st.AlterSource, st.DropSource}
    for kind, spec in SPECS.items():
        ddl = BOUND[kind].class_ is StatementClass.DDL
        assert (spec.locks is not None) == ddl, kind
        assert (
            (spec.begin is begin_definition) == spec.defines == (ddl and kind not in defined_by_handlers)
        ), kind


def test_what_is_about_the_session_alone_rests_on_no_data() -> None:
    """All others wait until the server leads: what they say may rest on what another leader has changed."""
    assert {kind.__name__ for kind, spec in SPECS.items() if not spec.rests} == {
        "CloseCursor", "Deallocate", "Discard", "Load", "Prepare", "SetConstraints", "SetTransaction", "SetVariable", "ShowVariable",
        "Transaction",
    }  # fmt: skip
    assert [kind for kind, spec in SPECS.items() if spec.when_failed] == [st.Transaction]


def planted(code: str) -> str:
    """Return the last line of what a process says that runs it."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    return done.stderr.splitlines()[-1]


def test_a_bound_class_without_rows_keeps_both_halves_from_being_imported() -> None:
    assert planted(PLANTED) == "TypeError: bound statements: no row for Planted"
    without_the_planners = PLANTED.replace(
        "from planner.statements import classify", "import planner.base.total as t; joined = t.joined"
    ) + (
        "t.joined = lambda what, *parts: {**joined(what, *parts), **({Planted: 0} if what == 'bound statements' else {})}\n"
        "import engine.server.database\n"
    )
    assert planted(without_the_planners) == "TypeError: statements: no row for Planted"


def test_what_is_no_definition_cannot_lock_the_catalog(tmp_path: Path) -> None:
    plan: Any = SimpleNamespace(bound=SimpleNamespace(statement=st.Skip(notice="")))

    async def main() -> None:
        database = await open_database(MemoryDisk(), data_dir=str(tmp_path))
        try:
            with pytest.raises(TypeError, match="Skip locks nothing of the catalog"):
                await Session(database, 1).connection.session.view.locks.take_for(plan)
        finally:
            await database.close()

    asyncio.run(main())
