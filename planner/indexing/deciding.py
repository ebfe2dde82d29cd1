"""Which conditions of a query decide about the rows of which of its ranges.

SELECT … FROM a JOIN b ON x LEFT JOIN c ON y WHERE z

x    a, b    a row of either that meets it with no row of the other is in no result
y    c       a row of ``a`` that fails it stays, with NULLs beside it
z    a, b    in the place of ``c`` there may be NULLs, for which it may hold
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from planner.indexing.comparisons import conjuncts_of
from planner.query import Expr, FromItem, Join, JoinKind, RangeRef, Select


def deciding(query: Select) -> Iterator[tuple[Expr, AbstractSet[int]]]:
    """Yield each conjunct of WHERE and ON with the ranges whose rows have no part in the result unless it holds.

    A conjunct that names other ranges too says so of rows side by side with theirs.
    """
    never_null: set[int] = set()
    for item in query.from_:
        never_null |= _never_null(item)
    for test in conjuncts_of(query.where):
        yield test, never_null
    stack = list(query.from_)
    while stack:
        join = stack.pop()
        if not isinstance(join, Join):
            continue
        decided: set[int] = set()
        if join.kind in (JoinKind.INNER, JoinKind.RIGHT):
            decided |= _never_null(join.left)
        if join.kind in (JoinKind.INNER, JoinKind.LEFT):
            decided |= _never_null(join.right)
        for test in conjuncts_of(join.on):
            yield test, decided
        stack += (join.left, join.right)


def _never_null(item: FromItem) -> set[int]:
    """Return the ranges below ``item`` that give a row of their own to each of its rows."""
    if isinstance(item, RangeRef):
        return {item.range}
    found: set[int] = set()
    if item.kind in (JoinKind.INNER, JoinKind.LEFT):
        found |= _never_null(item.left)
    if item.kind in (JoinKind.INNER, JoinKind.RIGHT):
        found |= _never_null(item.right)
    return found
