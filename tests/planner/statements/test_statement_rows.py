"""Each class of statements has one row of what is known of it as it was parsed, and one as it is bound: a forgotten one fails at import."""

from __future__ import annotations

import enum
import subprocess
import sys
from dataclasses import dataclass

import pytest

from planner import ast, bind
from planner import statements as st
from planner.base.errors import SqlError
from planner.base.total import joined, leaves, members, total
from planner.statements.classify import BOUND, BoundSpec, Runs, Uses
from planner.statements.parsed import PARSED
from tests.planner.tables import bind as bound
from tests.planner.tables import make_catalog


def test_every_class_that_is_parsed_has_a_row_whose_binder_is_there() -> None:
    assert set(PARSED) == set(leaves(vars(ast), ast.StatementNode))
    assert len(PARSED) > 110
    for kind in PARSED:
        assert bind.binder_of(kind).__module__.startswith("planner.bind")


def test_every_class_that_is_bound_has_a_row() -> None:
    assert set(BOUND) == set(members(st.Statement))


def test_a_statement_that_is_parsed_and_has_no_row_is_told_by_name() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Forgotten(ast.StatementNode):
        """What somebody has added to the AST."""

    wanted = leaves({**vars(ast), "Forgotten": Forgotten}, ast.StatementNode)
    with pytest.raises(TypeError, match="parsed statements: no row for Forgotten"):
        total("parsed statements", wanted, PARSED)
    assert ast.StatementNode not in wanted
    assert set(wanted) == {*PARSED, Forgotten}


def test_a_row_is_neither_forgotten_nor_given_twice() -> None:
    rows = dict(BOUND)
    del rows[st.CreateTable]
    with pytest.raises(TypeError, match="bound statements: no row for CreateTable"):
        total("bound statements", members(st.Statement), rows)
    with pytest.raises(TypeError, match="bound statements: two rows for CreateTable"):
        joined("bound statements", BOUND, {st.CreateTable: BOUND[st.Skip]})


def test_a_class_that_is_added_without_a_row_keeps_the_planner_from_being_imported() -> None:
    planted = (
        "import planner.ast as a\n"
        "a.Planted = type('Planted', (a.StatementNode,), {})\n"
        "import planner.statements.parsed\n"
    )
    run = subprocess.run([sys.executable, "-c", planted], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == "TypeError: parsed statements: no row for Planted"


def test_what_of_a_statement_is_run_is_said_for_all_that_hold_a_query() -> None:
    """A class with a query that no row says to run keeps types of domains, COLLATE and what row-level security hides."""
    kept = {
        st.CreateView,
        st.CreateSubscription,
    }  # as texts; the second is told to row-level security by name
    for kind, row in BOUND.items():
        if "query" in getattr(kind, "__dataclass_fields__", ()) and kind not in kept:
            assert row.runs is not Runs.NOTHING, kind


def test_rows_are_of_closed_kinds() -> None:
    for row in BOUND.values():
        assert isinstance(row, BoundSpec)
        assert isinstance(row.class_, enum.Enum) or callable(row.class_)


def test_what_may_run_again_and_uses_rows_is_what_it_was_when_it_was_told_by_classes() -> None:
    """Written out, since a wrong value shows itself in a lost race, or in a block that reads two timelines, alone."""
    again = {kind.__name__ for kind, row in BOUND.items() if row.again}
    assert again == {
        "QueryStatement", "Insert", "Update", "Delete", "Merge", "WithChanges", "Call", "Do", "RefreshMaterializedView", "MarkConstraints",
    }  # fmt: skip
    assert {kind.__name__ for kind, row in BOUND.items() if row.uses is Uses.NAMES} == {
        "CreateView", "CreateSubscription", "Subscribe", "DeclareSubscribe", "Prepare",
    }  # fmt: skip
    told = {kind.__name__ for kind, row in BOUND.items() if not isinstance(row.uses, Uses)}
    assert told == {"CreateTable", "CreateMaterializedView", "Copy"}
    reading = {
        "CreateView",
        "CreateTable",
        "CreateMaterializedView",
        "RefreshMaterializedView",
        "MarkConstraints",
    }
    for kind, row in BOUND.items():
        definition = row.class_ is st.StatementClass.DDL and kind.__name__ not in reading
        assert (row.uses is Uses.NOTHING) == (definition or kind is st.Maintenance), kind


def test_classes_take_parameters_where_their_rows_say_so_alone() -> None:
    """Written out: what is forgotten has none. Definitions keep expressions as texts, in which a parameter would never get a value."""
    assert {kind.__name__ for kind, row in PARSED.items() if row.params} == {
        "Select", "SetOp", "Values", "Insert", "Update", "Delete", "Merge", "Copy", "CreateTableAs", "Execute", "DeclareCursor",
        "Subscribe", "AcknowledgeSubscription", "Transaction", "SetVariable", "Prepare", "Call", "Do", "Explain",
    }  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE DOMAIN d AS int DEFAULT $1",
        "CREATE DOMAIN d AS int CHECK (VALUE > $1)",
        "CREATE TABLE made (a int CHECK (a > $1))",
        "CREATE VIEW v AS SELECT $1::int AS a",
    ],
)
def test_definitions_have_no_parameters(sql: str) -> None:
    with pytest.raises(SqlError, match=r"there is no parameter \$1") as caught:
        bound(sql, make_catalog())
    assert caught.value.sqlstate == "42P02"
