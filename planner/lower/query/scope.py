"""What is in scope while a query is lowered: ranges, WITH items, and expressions that are columns already.

Lowering.scopes    [Scope of the statement, Scope of its sub-query, ...]      Var(level=1) looks one further out
Scope              ranges[i] -> attnum -> Val      ctes      known, lifted: expression -> Val
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from planner import query as q
from planner.evaluate import Env
from planner.lower.kit import build as b
from planner.lower.kit.value import Val
from planner.types import SqlType

if TYPE_CHECKING:
    pass

from dataclasses import field

from pgwire.give_way import paced
from planner.lower.kit.build import Node
from planner.lower.kit.value import Num


@dataclass(frozen=True, slots=True)
class Column:
    """An output column of a lowered query: its name there and how it is held."""

    name: str
    type: SqlType
    num: Num | None = None
    padded: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """A lowered query with its columns."""

    node: Node
    columns: tuple[Column, ...]

    def values(self, label: str) -> list[Val]:
        """Return the columns as seen through alias ``label``."""
        return [Val(b.col(label, c.name), c.type, c.num, padded=c.padded) for c in paced(self.columns)]


@dataclass(slots=True)
class RelationUse:
    """A relation as one range of the statement reads it.

    Attributes:
        placeholder: the table name to replace.
        tables: the tables it stands for: one, or partitions with the same columns.
        columns: attnum -> (SQL type, form) of the columns read, as ``c<attnum>``.
        row_id: whether ``s_row_id`` is read.
        table: whether ``s_table`` is read, the table that a row is in.
    """

    placeholder: str
    tables: tuple[int, ...]
    columns: dict[int, tuple[SqlType, Num | None]] = field(default_factory=dict)
    row_id: bool = False
    table: bool = False

    @property
    def oid(self) -> int:
        """The one table it stands for."""
        (oid,) = self.tables
        return oid


@dataclass(slots=True)
class RangeBinding:
    """A range in scope: attnum -> value; a relation notes what is read."""

    values: dict[int, Val]
    use: RelationUse | None = None
    hidden: bool = False  # not yet in the FROM list


@dataclass(frozen=True, slots=True)
class CteBinding:
    """A WITH item: its generated name and columns."""

    label: str
    columns: tuple[Column, ...]


@dataclass(slots=True)
class Scope:
    """One query level.

    ``known``: expressions that are already columns (after grouping). ``lifted``: sub-selects that are columns of the
    FROM list (``lifting``).
    """

    ranges: dict[int, RangeBinding] = field(default_factory=dict)
    ctes: dict[str, CteBinding] = field(default_factory=dict)
    known: dict[q.Expr, Val] | None = None
    lifted: dict[q.Expr, Val] = field(default_factory=dict)
    windows: tuple[q.Window, ...] = ()


Compute: TypeAlias = Callable[[Sequence[tuple[Any, ...]], Env], Sequence[tuple[Any, ...]]]
"""From rows of arguments to rows of one value."""


@dataclass(frozen=True, slots=True)
class Callout:
    """One function that the engine calls.

    Attributes:
        name: its name in the SQL text, a placeholder that the executor replaces. function: what computes it.
        args: types of the arguments, and the engine's types of them. result: type of the value, and the
        engine's. repeats: whether equal arguments give values that cannot be told apart, so that they may be
        remembered. (1.0 and 1.00
            are equal, 0.0 and -0.0 are.)
        rows: where the value is a set, the types of its columns.
    """

    name: str
    function: Compute
    args: tuple[tuple[SqlType, str], ...]
    result: tuple[SqlType, str]
    repeats: bool
    rows: tuple[SqlType, ...] = ()
