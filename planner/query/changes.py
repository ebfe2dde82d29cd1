"""Statements that change rows: INSERT, UPDATE, DELETE, MERGE.

Each has a ``source``, a query that finds the rows and computes the new values in an order of columns that its
class describes, so that any executor can run it; what is done with the rows is the same whoever found them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.query.blocks import ItemChange, QueryExpr, Select, Target
from planner.query.expressions import Expr, OutputColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class OnConflict:
    """ON CONFLICT. ``arbiters``: index oids that may arbitrate; empty = any unique index or exclusion
    constraint (DO NOTHING).

    ``arbiter_where``: the condition of the target where that has parameters: which of ``arbiters`` arbitrate
    depends on their values. ``asked``: the columns of the table that the target names, or whose constraint it
    names; they are read. DO UPDATE expressions see range 0 = the existing row, range 1 = the proposed one
    (EXCLUDED); both have the table's columns.
    """

    action: Literal["nothing", "update"]
    arbiters: tuple[int, ...]
    arbiter_where: tuple[Expr, ...] = ()
    asked: frozenset[int] = frozenset()
    assignments: tuple[tuple[int, Expr], ...] = ()
    where: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetUse:
    """What a statement does to what it changes, or to what a view is over through which it does: the columns
    it inserts, updates and reads.

    ``read`` None: nothing is read; empty: something is, but no column by its name.
    """

    oid: int
    inserted: frozenset[int]
    updated: frozenset[int]
    read: frozenset[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughViews:
    """DML through views: ``uses`` of those on the way, outermost first, and at last of the table.

    Each is used as who owns the one before (``planner.bind.stored.readers``). Of what a view is over all
    columns are read that its query names, where the statement reads any column at all (PostgreSQL's rule).
    """

    uses: tuple[TargetUse, ...]


RowCheckKind: TypeAlias = Literal["insert", "update", "conflict", "merge update", "merge delete", "stored"]
"""When a row is looked at: before it is stored, by an insert or an update; the row that is there already,
before ON CONFLICT or MERGE changes it; or once it is stored, its keys included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCheck:
    """What a row (range 0) has to meet: row-level security, else 42501 (``policy``: the restrictive one of this name).

    ``view``: the condition of the view of this name, which a row that ON CONFLICT changes through it has to
    meet, else 55000, or which WITH CHECK OPTION asks of what is stored through it, else 44000.
    """

    kind: RowCheckKind
    condition: Expr
    policy: str = ""
    view: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(ItemChange):
    """INSERT. ``source`` yields one column per entry of ``attnums``, already of the column's type.

    ``defaults``: (attnum, expression) for live columns not in ``attnums`` that have a default. The last of
    ``attnums`` may be ``filled``: by defaults that call functions, as ``source`` does, not by what the
    statement says. ``source`` None is DEFAULT VALUES. A ``Const``-free VALUES cell that was DEFAULT is
    already replaced by the default expression (or NULL). ``returning`` uses Var(range=0) for the row as
    stored. WITH is part of ``source``, ``with_items`` of one that is kept to be printed: so many are the
    statement's own, the first ones. ``alias``: what the statement calls the table, "" for its name. ``kept``:
    ON CONFLICT of one that is kept to be printed.
    """

    table: int
    attnums: tuple[int, ...]
    source: QueryExpr | None
    defaults: tuple[tuple[int, Expr], ...] = ()
    on_conflict: OnConflict | None = None
    returning: tuple[Target, ...] = ()
    columns: tuple[OutputColumn, ...] = ()
    overriding: str = ""
    through: ThroughViews | None = None
    row_checks: tuple[RowCheck, ...] = ()
    filled: frozenset[int] = frozenset()
    alias: str = ""
    kept: KeptConflict | None = None
    with_items: int = 0

    @property
    def given(self) -> tuple[int, ...]:
        """The columns that the statement names."""
        return tuple(attnum for attnum in self.attnums if attnum not in self.filled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """UPDATE.

    ``source`` is a Select that finds rows and computes values; its output columns are

        [0]            the row id (Var attnum ROW_ID of range 0, the target)
        [1 .. n]       the old values of all n live columns of the target, in table order
        [n+1 .. n+k]   the new values, in the order of ``assigned`` (attnums), already coerced
        [n+k+1 ..]     whatever RETURNING needs beside the row: columns of other ranges, sub-selects
        [-1]           of a partitioned table: the table that has the row, one of ``leaves``

    A target row joined with several source rows is updated once, by the first. ``returning`` sees range 0 =
    the new row, range 1 = the extra outputs (attnum 1 = column n+k+1). ``current_of``: its WHERE is CURRENT
    OF.
    """

    table: int
    source: Select
    assigned: tuple[int, ...]
    returning: tuple[Target, ...] = ()
    columns: tuple[OutputColumn, ...] = ()
    through: ThroughViews | None = None
    row_checks: tuple[RowCheck, ...] = ()
    leaves: tuple[int, ...] = ()
    current_of: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """DELETE. ``source`` outputs [0] row id, [1..n] old values, [n+1..] extras, as for Update.

    ``returning`` sees range 0 = the old row, range 1 = the extras. ``current_of``: as for Update.
    """

    table: int
    source: Select
    returning: tuple[Target, ...] = ()
    columns: tuple[OutputColumn, ...] = ()
    through: ThroughViews | None = None
    leaves: tuple[int, ...] = ()
    current_of: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptChange(ItemChange):
    """UPDATE or DELETE as the body of a function keeps it, to be printed: nothing is computed by it.

    Range 0 of ``shown`` is the table, the others are those of FROM or USING. Its targets are what RETURNING
    gives, then the values of SET. ``assigned``: of each of these the columns, several for a sub-select of as
    many; NULL for DEFAULT, which ``defaults`` numbers.
    """

    kind: Literal["update", "delete"]
    table: int
    shown: Select
    assigned: tuple[tuple[int, ...], ...] = ()
    defaults: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptConflict:
    """ON CONFLICT of an INSERT as the body of a function keeps it, to be printed.

    ``keys``, ``key_where``: the target as it is written, over range 0 = the table; ``constraint``: by oid, 0
    for none. ``change``: DO UPDATE, whose ranges are the table and EXCLUDED; None for DO NOTHING.
    """

    keys: tuple[Expr, ...] = ()
    key_where: Expr | None = None
    constraint: int = 0
    change: KeptChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAction:
    """One WHEN clause of MERGE as the body of a function keeps it, to be printed.

    ``assigned``: of each of ``values`` the columns, several for a sub-select of as many; those numbered in
    ``defaults`` are DEFAULT.
    """

    matched: bool
    action: Literal["update", "delete", "insert", "nothing"]
    condition: Expr | None
    assigned: tuple[tuple[int, ...], ...] = ()
    values: tuple[Expr, ...] = ()
    defaults: frozenset[int] = frozenset()
    overriding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMerge:
    """MERGE as the body of a function keeps it, to be printed: range 0 of ``shown`` is the table, FROM the
    source, WHERE what ON says.
    """

    table: int
    shown: Select
    actions: tuple[KeptAction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeAction:
    """One WHEN clause of MERGE over range 0 = the target's row and range 1 = the source's extras.

    ``values`` of the columns ``assigned`` (attnums), already coerced; an INSERT's other columns are NULL.
    Those ``filled`` have the values of their defaults, which the statement does not name.
    """

    matched: bool
    action: Literal["update", "delete", "insert", "nothing"]
    condition: Expr | None
    assigned: tuple[int, ...] = ()
    values: tuple[Expr, ...] = ()
    filled: frozenset[int] = frozenset()

    @property
    def given(self) -> tuple[int, ...]:
        """The columns that the statement names."""
        return tuple(attnum for attnum in self.assigned if attnum not in self.filled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """MERGE: of the actions that fit a row of ``source``, the first whose condition holds is done.

    ``source`` outputs [0] the row id, NULL where nothing matches, [1..n] the old values of the target's live columns,
    [n+1..] the extras: what the actions ask of other ranges, and of the target beside its columns.
    """

    table: int
    source: Select
    actions: tuple[MergeAction, ...]
    row_checks: tuple[RowCheck, ...] = ()
    leaves: tuple[int, ...] = ()
