"""Expression and partial indexes as the row executor sees them: what their keys are, and when they hold all rows.

    CREATE INDEX ON t (lower(b))            WHERE lower(b) = 'x'            the conjunct's left side is the key
    CREATE INDEX ON t (a) WHERE NOT done    WHERE a = 5 AND NOT done        the condition follows from the conjuncts

Expressions are compared as trees; ``planner.indexing.implication`` tells whether a condition follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from engine.session.plans.by_text import ByText
from planner.bind.define.table.index import index_keys
from planner.bind.stored.runnable import runnable
from planner.catalog import Catalog, IndexDef, RelationDef
from planner.conversion.collations import without_collations
from planner.indexing.comparisons import conjuncts_of
from planner.indexing.implication import implied
from planner.query import (
    Expr,
    Var,
)
from planner.query.rewrite import replace_children
from planner.rules.decided import condition as chosen
from planner.rules.fold import fold
from planner.rules.plain import without_domains


class ComputedKeys(NamedTuple):
    """The keys of an index over range 0 of its table, and the conjuncts of the condition of its rows."""

    keys: tuple[Expr, ...]
    where: tuple[Expr, ...]


KEPT: Final = 4096
CHARACTERS: Final = 1 << 17
"""Of the texts of all that are kept, each of some 90 bytes (``by_text``)."""
_kept: Final = ByText[ComputedKeys](KEPT, CHARACTERS)


def computed_keys(index: IndexDef, table: RelationDef, catalog: Catalog) -> ComputedKeys:
    """Return the keys of an expression or partial index (kept per version of its table, those that were asked
    for last).
    """
    text = index.where_sql + "".join(index.expressions)
    name = (text, (index.oid, table.oid), table.version)
    found = _kept.get(name)
    if found is None:
        written, condition = index_keys(index, table, catalog)
        keys = [_as_queried(key, catalog) for key in written]
        where = None if condition is None else chosen(_as_queried(condition, catalog))
        found = ComputedKeys(tuple(keys), tuple(conjuncts_of(where)))
        _kept.put(name, found)
    return found


def _as_queried(expr: Expr, catalog: Catalog) -> Expr:
    """Return an expression as queries have it when they run: without COLLATE, domains and calls, and folded."""
    expr = without_domains(runnable(without_collations(expr), catalog))
    return fold(expr)


def over_range(expr: Any, range_: int) -> Any:
    """Return an expression over range 0 as one over another range."""
    if isinstance(expr, Var):
        return replace(expr, range=range_)
    return replace_children(expr, lambda child: over_range(child, range_))


def key_expressions(table: RelationDef, catalog: Catalog, range_: int) -> list[tuple[Expr, int]]:
    """Return the expressions that indexes of a table have as keys, each with the attnum of the key's hidden column."""
    found: list[tuple[Expr, int]] = []
    for index in table.indexes:
        if index.computed:
            keys = computed_keys(index, table, catalog).keys
            for position, text in enumerate(index.expressions):
                if text:
                    found.append((over_range(keys[position], range_), index.attnums[position]))
    return found


def holds_rows_of(
    index: IndexDef, table: RelationDef, catalog: Catalog, range_: int, conjuncts: Sequence[Expr]
) -> bool:
    """Tell whether every row for which ``conjuncts`` hold is in an index."""
    if not index.where_sql:
        return True
    where = computed_keys(index, table, catalog).where
    return all(implied(over_range(wanted, range_), conjuncts) for wanted in where)
