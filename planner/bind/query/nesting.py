"""How deep what is stored may nest: less deep than a statement that only runs.

    CREATE TABLE t (a int CHECK (a + a + … > 0))     bound once here, and again, deeper in the stack, wherever it is used, shown or dumped

A definition at the very edge of what can be bound could be made and then neither used nor printed, and
pg_dump of its whole database would fail. So a definition is refused beyond a bound that leaves room for that.
"""

from __future__ import annotations

from typing import Any, Final

from planner import ast
from planner.ast.domain import AlterDomain, CreateDomain
from planner.ast.function import CreateAggregate, CreateFunction
from planner.ast.policy import AlterPolicy, CreatePolicy
from planner.ast.session import CreateSubscription
from planner.ast.statistics import CreateStatistics
from planner.ast.trigger import CreateTrigger
from planner.base.errors import SqlError
from planner.query.walk import nests_deeper

MAX_LEVELS: Final = 500
_LEVEL_CHARS: Final = 2
"""A level takes at least so many characters of a statement: ``+a``."""
_STORING: Final = frozenset(
    (
        ast.CreateTable, ast.AlterTable, ast.CreateView, ast.CreateIndex, ast.CreateSchema, ast.CreateTableAs, CreateDomain, AlterDomain,
        CreateFunction, CreateAggregate, CreatePolicy, AlterPolicy, CreateTrigger, CreateSubscription,
        CreateStatistics,
    )
)  # fmt: skip


def check_nesting(statement: Any, text: str) -> None:
    """Raise SqlError 54001 for a definition that nests deeper than what is stored may."""
    if len(text) <= MAX_LEVELS * _LEVEL_CHARS or statement.__class__ not in _STORING:
        return
    if isinstance(statement, ast.CreateTableAs) and not statement.materialized:
        return  # its query is not kept
    if nests_deeper(statement, MAX_LEVELS):
        raise SqlError(
            "54001", "stack depth limit exceeded", hint=f"What is stored may nest {MAX_LEVELS} levels deep."
        )
