"""Guards: conditions that a row of a table has to meet before anything else of a statement looks at it
(``RelationRange.guard``).

Policies make them (``planner.bind.query.row_security``), and security_barrier views through which rows are
changed (``planner.bind.change.updatable``):

    CREATE VIEW v WITH (security_barrier) AS SELECT * FROM t WHERE owner = CURRENT_USER
    DELETE FROM v WHERE f(x)        range 0: t, guard: SELECT FROM t WHERE owner = CURRENT_USER

Where such a view is read it is a sub-query that lets no condition in (``SubqueryRange.barrier``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.catalog import RelationDef
from planner.query import Expr, QueryBase, RangeRef, Select, Var
from planner.query.tables import table_range
from planner.query.walk import children


def own_vars(expr: Expr) -> list[Var]:
    """Return the columns of range 0 that an expression names, be it from within its sub-queries."""
    found: list[Var] = []
    stack: list[tuple[Any, int]] = [(expr, 0)]
    while stack:
        node, level = stack.pop()
        if isinstance(node, Var):
            if node.range == 0 and node.level == level:
                found.append(node)
            continue
        inside = level + isinstance(node, QueryBase)
        stack.extend((child, inside) for child in children(node))
    return found


def guard_of(relation: RelationDef, where: Expr) -> Select:
    """Return a condition over range 0 as a guard of a table (``RelationRange.guard``)."""
    read = {v.attnum for v in own_vars(where)}
    return Select(
        columns=(),
        targets=(),
        ranges=(replace(table_range(relation), used=frozenset(read), only=relation.kind == "p"),),
        from_=(RangeRef(range=0),),
        where=where,
    )
