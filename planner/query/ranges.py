"""What FROM lists: relations, sub-queries, functions, and how they are joined.

    FROM a JOIN b ON a.x = b.x, c      ranges [a, b, c]     from_ (Join(RangeRef 0, RangeRef 1), RangeRef 2)

A range stands in the flat list ``Select.ranges``, which is what Vars count; the tree of joins refers to it by number.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from planner.query.expressions import Expr
from planner.query.sampling import Method
from planner.types import SqlType

if TYPE_CHECKING:
    from planner.query.blocks import QueryExpr, Select


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeColumn:
    """A visible column of a range; ``attnum`` is what Vars use (dropped columns leave gaps)."""

    name: str
    type: SqlType
    attnum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How an entry of FROM was written, for printing it.

    ``aliased``: with an alias, whose list of columns had ``named`` names; ``own``: what the columns are
    called without it, () if they are called the same, "" for one that is gone. ``fresh``: how many of the
    last columns came after the query. ``only``: ONLY stood before it. ``order``: the places of the columns as
    the text has them, where fresh ones are not its last (ROWS FROM); else (). ``unnamed``: how many columns
    before these the list of a stored text does not name: they came to the row type of a function since it was
    written.
    """

    aliased: bool = False
    named: int = 0
    own: tuple[str, ...] = ()
    fresh: int = 0
    only: bool = False
    order: tuple[int, ...] = ()
    unnamed: int = 0


PLAIN: Final = Written()
ALIASED: Final = Written(aliased=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Base of FROM entries."""

    alias: str
    columns: tuple[RangeColumn, ...]
    written: Written = field(default=PLAIN, compare=False)
    # of a relation or view in a function's body: whoever runs the statement needs the rights to it
    invoker: bool = field(default=False, compare=False)
    # of such a body by BEGIN ATOMIC or RETURN: its names were looked up when it was made, so nobody needs
    # USAGE of its schema
    looked_up: bool = field(default=False, compare=False)
    # in a view's condition, of a change through it: the view, as which it is read (``planner.bind.stored.readers``)
    within: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """TABLESAMPLE: the rows that ``method`` chooses by ``key``, a ``SampleKey`` or, where that is fixed for a
    statement, its value.
    """

    method: Method
    key: Expr


class Leaf(NamedTuple):
    """A table that holds rows of a partitioned one."""

    oid: int
    schema: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRange(Range):
    """A table (or virtual catalog relation) by oid; views are already expanded to SubqueryRange.

    ``columns`` lists all live columns in table order; ``used`` the attnums that the statement refers to
    (system ones included), so that executors read no more. ``guard``: row-level security; a row for which its
    WHERE, over range 0, is not TRUE does not exist for this query, and nothing else may look at it before
    that is known. ``sample``: the rows that are read. ``only``: of a partitioned table none of its
    partitions. ``parent``, ``asked``: of a partition that stands in its parent's place, that and what was
    ``used`` of it. ``leaves``: partitions with the same columns, this one the first, that the SELECT of which
    it is all of FROM reads one after the other (``planner.rules.arms``).
    """

    oid: int
    schema: str
    name: str
    virtual: bool = False
    materialized: bool = False
    used: frozenset[int] = frozenset()
    guard: Select | None = None
    sample: Sample | None = None
    only: bool = False
    parent: int = field(default=0, compare=False)
    asked: frozenset[int] = field(default=frozenset(), compare=False)
    leaves: tuple[Leaf, ...] = ()

    @property
    def tables(self) -> tuple[int, ...]:
        """The tables that are read, by oid."""
        return tuple([leaf.oid for leaf in self.leaves]) or (self.oid,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubqueryRange(Range):
    """``(SELECT ...) alias``; with ``lateral`` its body may use Vars (level 1) of earlier ranges.

    ``view``: (oid, schema, name) of the view whose expansion this is, for printing; None for a sub-query.
    ``barrier``: no condition from outside may look at a row before ``query`` has chosen it (a security_barrier view).
    ``parent``: the partitioned table whose partitions these are, 0 for none, and ``asked``, what is used of it.
    """

    query: QueryExpr
    lateral: bool = False
    view: tuple[int, str, str] | None = field(default=None, compare=False)
    barrier: bool = field(default=False, compare=False)
    parent: int = field(default=0, compare=False)
    asked: frozenset[int] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CteRange(Range):
    """A reference to ``ctes[name]`` of the query ``level`` levels out (0 = this query's own WITH).

    ``recursive_ref``: the self-reference inside the recursive term (the working table).
    """

    name: str
    level: int
    recursive_ref: bool = False


OLD_ROWS: Final = -1
NEW_ROWS: Final = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRange(Range):
    """The rows of part ``step`` of a statement whose WITH changes data (``planner.statements.WithChanges``).

    ``OLD_ROWS`` and ``NEW_ROWS`` stand for the transition tables of the trigger whose function runs.
    """

    step: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRange(Range):
    """``function(...) [WITH ORDINALITY]``, or ROWS FROM of several; implicitly lateral.

    Each function's columns follow each other; a scalar function gives one row of one column. The ordinality
    column (bigint) is last. ``slots``: of functions whose values are of a composite type the places of its
    attributes, which are the columns; None for others; empty where there are none such. ``defined``: the
    columns that a column definition list gives each function, whatever an alias calls them, of types as
    declared; () for functions without one; empty where there are no lists.
    """

    functions: tuple[Expr, ...]
    widths: tuple[int, ...]  # columns each function contributes
    slots: tuple[tuple[int, ...] | None, ...] = ()
    defined: tuple[tuple[tuple[str, SqlType], ...], ...] = ()
    ordinality: bool = False
    lateral: bool = False


class JoinKind(enum.Enum):
    """Join kinds; CROSS is INNER without a condition."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRef:
    """A leaf of the FROM tree: index into ``Select.ranges``."""

    range: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWritten:
    """How a join was written, for printing it: its number among those of its query, which ``JoinSpan`` refers
    to, and its names.

    ``using``: the columns that it merges, which are its first; ``merged``: where they are among the columns
    of the left and the right side; ``computed``: whether each is something else than one of the two.
    ``called``: the alias after USING.
    """

    number: int = 0
    using: tuple[str, ...] = ()
    merged: tuple[tuple[int, int], ...] = ()
    computed: tuple[bool, ...] = ()
    called: str = ""
    alias: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A join; USING and NATURAL are already an ON condition, merged columns already expressions."""

    kind: JoinKind
    left: FromItem
    right: FromItem
    on: Expr | None
    written: JoinWritten = field(default=JoinWritten(), compare=False)


FromItem: TypeAlias = RangeRef | Join
