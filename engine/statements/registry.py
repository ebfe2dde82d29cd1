"""The one table of statement classes: a ``StatementSpec`` for each member of ``planner.statements.Statement``.

    engine/statements/families/*.py      rows, by what belongs together
    SPECS                                 all of them

A class without a row fails when this module is imported, and so does one with two: nothing runs, is allowed or locks
anything because nobody thought of it. The planner's rows (``planner.statements.parsed`` and ``classify``) are total in
the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from engine.session.spec import StatementSpec
from engine.statements.families import (
    databases,
    feeds,
    foreign,
    functions,
    operators,
    parts_of_tables,
    roles,
    rows,
    session,
    tables,
    text_search,
    types,
)
from planner import statements as st
from planner.base.total import joined, members, total

_FAMILIES: Final = (
    rows, tables, parts_of_tables, types, functions, text_search, foreign, operators, roles, databases, feeds, session,
)  # fmt: skip


def registered(*families: Iterable[StatementSpec]) -> Mapping[type, StatementSpec]:
    """Return the rows of all families by their classes. Raises TypeError unless each class has exactly one."""
    every = [{spec.statement: spec} for family in families for spec in family]
    return total("statements", members(st.Statement), joined("statements", *every))


SPECS: Final = registered(*(family.SPECS for family in _FAMILIES))
