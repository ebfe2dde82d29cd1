"""A plan as EXPLAIN shows it: nodes with PostgreSQL's names, whatever executes them.

    Sort  (cost=0.00..20.10 rows=10 width=8) (actual time=0.210..0.215 rows=10 loops=1)      heading, guess, actual
      Sort Key: (count(*)) DESC                                                              details
      ->  HashAggregate ...                                                                  inputs

A node is made once for one EXPLAIN; ``filtered`` and ``renamed`` change it while the tree is put together,
for what is a step of its own in an executor and a property of the node below in PostgreSQL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Detail = str | list[str] | int
Role = Literal["Outer", "Inner", "InitPlan", "SubPlan", "Subquery", "Member", ""]


@dataclass(slots=True)
class Measured:
    """What a node did while its statement ran.

    Attributes:
        loops: how often it was started.
        rows: rows it gave, in all loops together.
        first_s: seconds from a start to the first rows, in all loops together; those of the nodes below it are in it.
        total_s: seconds to its end, likewise.
    """

    loops: int = 0
    rows: int = 0
    first_s: float = 0.0
    total_s: float = 0.0


@dataclass(slots=True)
class PlanNode:
    """One node.

    Attributes:
        kind: PostgreSQL's name in the structured formats ("Index Scan").
        heading: the same in the text format, with what it is about ("Index Scan using t_pkey on t").
        facts: what the heading tells, by PostgreSQL's names, for the structured formats.
        details: conditions, keys and the like, by PostgreSQL's names; a list stands for several.
        inputs: the nodes below.
        role: what it is to the node above.
        name: of a sub-plan ("CTE x", "SubPlan 1").
        rows: guessed; None where nothing is guessed.
        width: bytes of a row, guessed.
        cost: guessed, with all below.
        actual: what was measured.
        removed: rows that its filter left out, in all loops together.
    """

    kind: str
    heading: str
    facts: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Detail] = field(default_factory=dict)
    inputs: list[PlanNode] = field(default_factory=list)
    role: Role = ""
    name: str = ""
    rows: float | None = None
    width: int = 0
    cost: float = 0.0
    actual: Measured | None = None
    removed: int = 0

    def filtered(self, condition: str, actual: Measured | None) -> None:
        """Take in a filter above it: ``condition`` over its rows, of which ``actual`` were left."""
        if self.actual is not None and actual is not None:
            self.removed += max(self.actual.rows - actual.rows, 0)
        known = self.details.get("Filter")
        self.details["Filter"] = condition if known is None else f"({known} AND {condition})"
        self.actual = actual
        if self.rows is not None:
            self.rows = max(self.rows / 4, 1.0)

    def unmeasured(self) -> None:
        """Take back what was measured of it and of all below."""
        self.actual, self.removed = None, 0
        for node in self.inputs:
            node.unmeasured()

    def add(self, node: PlanNode, role: Role, name: str = "") -> None:
        """Put a node below."""
        node.role, node.name = role, name
        self.inputs.append(node)
