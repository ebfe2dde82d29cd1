"""Values that aggregates use more than once, as columns of the rows that are aggregated.

    SELECT sum(r1.c1 / r1.c2)             the sum of a varying scale reads its argument seven times

    SELECT sum(CASE v2.h2 WHEN 1 ...)     and what tells how to sum it, six times
    FROM (SELECT v1.*, class of v1.h1 AS h2
          FROM (SELECT r1.c1 / r1.c2 AS h1 FROM t AS r1 WHERE ...) AS v1) AS v2

DuckDB computes a repeated expression as often as it stands there: its optimizer of common sub-expressions lifts what
fails out of CASE branches that are not taken, and is off.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from planner.lower.kit import build as b
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect

Columns = Mapping[tuple[str, str], Node]
"""What (table, column) has become."""
_NOWHERE: Final = "staged"
"""The label of the columns until it is known where they are."""


class Stages:
    """Values of one grouped SELECT that get a column, in two levels: those of the second may use those of the first."""

    def __init__(self, d: Dialect) -> None:
        self._d = d
        self._levels: list[dict[str, Node]] = [{}, {}]
        self._names: dict[Hashable, str] = {}

    def put(self, node: Node, level: int, key: Hashable) -> Node:
        """Return the column that will hold ``node``.

        Args:
            node: over the columns of the FROM list, and at level 1 over columns returned for level 0.
            level: 0 or 1.
            key: what is computed; values of one key share a column.
        """
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._d.fresh("h")
            self._levels[level][name] = node
        return b.col(_NOWHERE, name)

    def below(
        self, source: Node | None, where: Node | None, used: Iterable[Node], own: set[str]
    ) -> tuple[Node | None, Node | None, Columns]:
        """Return FROM and WHERE with the values as columns, and what columns are called above them.

        Args:
            source: the FROM item.
            where: the condition on its rows.
            used: the expressions above.
            own: the labels of the FROM list: other tables' columns are of queries around.
        """
        known: dict[tuple[str, str], Node] = {}
        above = [*used]
        for level, items in enumerate(self._levels):
            if not items:
                continue
            later = [node for more in self._levels[level + 1 :] for node in more.values()]
            label = self._d.fresh("v")
            targets: list[Node] = []
            after: dict[tuple[str, str], Node] = {}
            for table, column in dict.fromkeys(b.columns_of([*above, *later])):
                if table in own or (table, column) in known:
                    here = known.get((table, column), b.col(table, column))
                    targets.append(b.alias(here, f"{table}_{column}"))
                    after[table, column] = b.col(label, f"{table}_{column}")
            for name, node in items.items():
                targets.append(b.alias(b.renamed(node, known), name))
                after[_NOWHERE, name] = b.col(label, name)
            source, where, known = (
                b.derived(b.select(targets, source=source, where=where), label),
                None,
                after,
            )
        return source, where, known
