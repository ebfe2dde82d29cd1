"""What storing a row of one table needs, compiled once: width, NOT NULL, CHECK; and how its rows are laid out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from engine.session.transaction.shown_values import shown_value
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.sizes import is_bounded
from pgwire.codecs.system import RecordValue
from pgwire.give_way import PACE, paced
from planner.base.errors import SqlError
from planner.bind import bind_check, generations
from planner.bind.define.table.partition import partition_check
from planner.bind.stored.domain_checks import demand
from planner.bind.stored.evaluated import bind_key_expr
from planner.bind.stored.runnable import runnable
from planner.catalog import ConstraintDef, RelationDef
from planner.catalog.rights import Rights
from planner.conversion.ports import Demand
from planner.evaluate import Env, Layout, RowFunction, Shared, compile_expr
from planner.evaluate.runtime import record_maker
from planner.evaluate.short import is_short
from planner.functions.session import EvalSession
from planner.functions.system.reg_output import named_output
from planner.functions.values.reg import NAMED
from planner.partitions.bounds import ancestors, column_map
from planner.partitions.rows import slots_of
from planner.query import CTID, TABLEOID, Expr
from planner.rules.fold import fold
from planner.rules.plain import without_domains
from txn.base.types import Row, ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

DETAIL_VALUE_CHARS: Final = 64

PARTITION_BOUND: Final = ""
"""The name under which ``bound_checks`` has a partition's bound: no constraint is called so."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What an error may show of a row: the columns that the user may read, and those that the statement gives
    values to.

    Attributes:
        attnums: None for all; such rows are shown without names.
        secured: row-level security counts, and nothing is shown.
    """

    attnums: frozenset[int] | None = None
    secured: bool = False

    @classmethod
    def of(cls, relation: RelationDef, session: Session) -> Shown:
        """Return what the current user may see of rows of a table."""
        if session.row_security_counts(relation):
            return cls(frozenset(), secured=True)
        rights = Rights(session.rights_catalog, session.role)
        if session.role.superuser or rights.relation(relation, "r"):
            return ALL_SHOWN
        return cls(frozenset(c.attnum for c in relation.live if rights.column(relation, c.attnum, "r")))

    def given(self, attnums: Iterable[int]) -> Shown:
        """Return it with columns that the statement gives values to."""
        if self.attnums is None or self.secured:
            return self
        return Shown(self.attnums | frozenset(attnums))

    def of_part(self, parent: RelationDef, part: RelationDef) -> Shown:
        """Return what this, of a partitioned table, is of a partition."""
        if not self.attnums:
            return self
        attnums = column_map(parent, part)
        return Shown(frozenset(attnums[a] for a in self.attnums if a in attnums))


ALL_SHOWN: Final = Shown()


class TableShape:
    """What storing a row of one table needs, compiled once per plan: width, generated columns, NOT NULL, checks."""

    __slots__ = (
        "bounded", "checks", "demands", "generated", "not_null", "oid", "relation", "settings", "shard", "shards", "short", "shown",
        "told", "width",
    )  # fmt: skip

    def __init__(
        self,
        relation: RelationDef,
        settings: CodecSettings,
        checks: Sequence[tuple[str, Expr]],
        generated: Sequence[tuple[int, Expr]],
        demands: Sequence[tuple[int, Demand]] = (),
    ) -> None:
        """Compile the table's checks (``bound_checks``) and its generated columns (``bound_generations``).

        ``demands``: of the domains of its columns, by attnum (``bound_demands``).
        """
        self.relation = relation
        self.settings = settings
        self.oid = relation.oid
        self.shard = ShardId(relation.oid)
        self.shards = (self.shard,) if relation.stored else ()  # a view with INSTEAD OF triggers has none
        self.width = len(relation.columns)
        self.not_null = [(c.attnum - 1, c.name) for c in relation.live if c.not_null]
        layout = table_layout(relation)
        self.checks: list[tuple[str, RowFunction]] = [
            (name, compile_expr(expr, layout)) for name, expr in checks
        ]
        self.generated: list[tuple[int, RowFunction]] = [
            (attnum - 1, compile_expr(expr, layout)) for attnum, expr in generated
        ]
        # whether what storing a row computes surely takes no time worth naming
        self.short = not demands and is_short(*[expr for _, expr in (*checks, *generated)])
        # whether each row is small, whatever is stored
        self.bounded = all(is_bounded(c.type.oid, c.type.typmod) for c in relation.live)
        self.demands = [(attnum - 1, demand) for attnum, demand in demands]
        self.told = relation.live  # the columns of a row that DETAIL shows, in order
        self.shown = ALL_SHOWN

    @classmethod
    def of(
        cls, relation: RelationDef, session: Session, *, routed: bool = False, stores: bool = True
    ) -> TableShape:
        """Return that of a table as a session sees it. Raises SqlError 42501 for functions in its expressions
        that the user may not call.

        ``routed``: it is a partition whose rows are brought to it, so its bound need not be asked, unless
        triggers look at new rows first. ``stores``: rows are stored; who only deletes them calls nothing.
        """
        called: set[int] = set()
        changeable = any(t.timing == "b" and t.row and "i" in t.events for t in relation.triggers)
        checks = bound_checks(relation, session, called, bound=changeable or not routed)
        if routed:
            called |= _key_calls(relation, session)
        generated = bound_generations(relation, session, called)
        shape = cls(relation, session.codec_settings, checks, generated, bound_demands(relation, session))
        shape.shown = Shown.of(relation, session)
        if stores and called:
            session.ask_calls(called)
        return shape

    def showing(self, attnums: Collection[int]) -> TableShape:
        """Let DETAIL show columns that the statement gives values to, whoever may read them. Returns itself."""
        self.shown = self.shown.given(attnums)
        return self

    def assigning(self, attnums: Collection[int]) -> TableShape:
        """Ask what domains demand of these columns only: the others keep the values they have. Returns itself."""
        self.demands = [(position, demand) for position, demand in self.demands if position + 1 in attnums]
        return self.showing(attnums)

    def part_of(self, parent: RelationDef, shown: Shown) -> TableShape:
        """Let DETAIL show a partition's rows as those of ``parent``, which the statement names: in its order.
        Returns itself.

        ``shown``: what of them, in the partition's columns.
        """
        self.shown = shown
        attnums = column_map(parent, self.relation)
        self.told = tuple([self.relation.column(attnums[column.attnum]) for column in parent.live])
        return self

    @property
    def by_row(self) -> bool:
        """Whether there is something to compute from each row before it is stored."""
        return bool(self.checks or self.generated or self.demands)

    def complete(
        self, rows: Sequence[Row], env: Env, only: Sequence[tuple[int, RowFunction]] | None = None
    ) -> Sequence[Row]:
        """Return rows with their generated columns computed, or with ``only`` some. Raises what their
        expressions raise.
        """
        generated = self.generated if only is None else only
        if not generated:
            return rows
        result: list[Row] = []
        for row in paced(rows, 16):
            cells = list(row)
            seen = (*row, self.oid)
            for position, make in generated:
                cells[position] = make(seen, env)
            result.append(tuple(cells))
        return result

    def made(self, rows: Sequence[Row], env: Env) -> Sequence[Row]:
        """Return rows as they are stored: ``complete`` and ``check``."""
        rows = self.complete(rows, env)
        self.check(rows, env)
        return rows

    def check(self, rows: Sequence[Row], env: Env) -> None:
        """Raise 23502 or 23514 for the first row that breaks a constraint, 22003 for what cannot be stored."""
        self.check_stored(rows, env.session)
        for name, predicate in self.checks:
            for row in paced(rows):
                if predicate((*row, self.oid), env) is False:
                    if name == PARTITION_BOUND:
                        raise self.out_of_bound(row, env.session)
                    raise SqlError(
                        "23514",
                        f'new row for relation "{self.relation.name}" violates check constraint "{name}"',
                        detail=self.failing_row(row, env.session),
                        schema=self.relation.schema,
                        table=self.relation.name,
                        constraint=name,
                    )

    def in_bound(self, row: Row, env: Env) -> bool:
        """Tell whether a partition's bound lets a row in; always where it is not asked for."""
        return not any(
            name == PARTITION_BOUND and predicate((*row, self.oid), env) is False
            for name, predicate in self.checks
        )

    def out_of_bound(self, row: Row, session: EvalSession | None) -> SqlError:
        """Return 23514 for a row that a partition's bound does not let in."""
        return SqlError(
            "23514",
            f'new row for relation "{self.relation.name}" violates partition constraint',
            detail=self.failing_row(row, session),
            schema=self.relation.schema,
            table=self.relation.name,
        )

    def check_stored(self, rows: Sequence[Row], session: EvalSession | None) -> None:
        """As ``check``, without the table's CHECK constraints; ``session``: for those of domains."""
        each: Iterable[Row] = rows if len(rows) <= PACE else paced(rows)
        for position, check in self.demands:
            for row in each:
                check(row[position], session)
        for position, name in self.not_null:
            for row in each:
                if row[position] is None:
                    raise self.null_in(row, name, session)

    def null_in(self, row: Row, column: str, session: EvalSession | None) -> SqlError:
        """Return 23502 for a row that has NULL in ``column``."""
        return SqlError(
            "23502",
            f'null value in column "{column}" of relation "{self.relation.name}" violates not-null constraint',
            detail=self.failing_row(row, session),
            schema=self.relation.schema,
            table=self.relation.name,
            column=column,
        )

    def failing_row(self, row: Row, session: EvalSession | None) -> str | None:
        """Return DETAIL's "Failing row contains (...)"; long values are cut as PostgreSQL cuts them.

        ``session``: whose names of relations and functions it shows, None: their oids. Of a table that the
        user may not read it has the columns that are ``shown``, with their names; None without any.
        """
        attnums = self.shown.attnums
        shown = []
        names = []
        for column in self.told:
            oid = column.type.oid
            if attnums is not None:
                if column.attnum not in attnums:
                    continue
                names.append(column.name)
            value = row[column.attnum - 1]
            if value is None:
                shown.append("null")
                continue
            if oid in NAMED and session is not None:
                text = named_output(session, oid, value)
            else:
                text = shown_value(oid, value, self.settings)
            cut = text.encode()[:DETAIL_VALUE_CHARS].decode("utf-8", "ignore")
            shown.append(text if len(cut) == len(text) else cut + "...")
        if attnums is not None and not names:
            return None
        which = f"({', '.join(names)}) = " if names else ""
        return f"Failing row contains {which}({', '.join(shown)})."


def whole_rows(session: Session, relation: RelationDef) -> Callable[[Sequence[Row]], Sequence[Row]]:
    """Return the function from rows of what can be seen of a materialized view, or a new table, to rows as
    they are stored.

    Columns that indexes keep for themselves are behind those.
    """
    if len(relation.columns) == len(relation.live):
        return lambda rows: rows
    shape = TableShape.of(relation, session)
    env = Env((), session, shared=Shared())
    more = (None,) * (len(relation.columns) - len(relation.live))
    return lambda rows: shape.complete([(*row, *more) for row in rows], env)


def bound_checks(
    relation: RelationDef, session: Session, called: set[int] | None = None, *, bound: bool = True
) -> tuple[tuple[str, Expr], ...]:
    """Return a table's CHECK constraints in the order in which PostgreSQL goes through them: by name.

    The oids of the users' functions in them are added to ``called``. A partition's bound, if asked for, comes
    last, under the name "".
    """
    found = [
        (c.name, bound_check(c, relation, session, called))
        for c in sorted(relation.constraints, key=lambda c: c.name)
        if c.kind == "c"
    ]
    test = partition_check(relation, session.catalog) if bound and relation.partition_of else None
    if test is not None:
        found.append((PARTITION_BOUND, runnable_check(test, session, called)))
    return tuple(found)


def _key_calls(partition: RelationDef, session: Session) -> set[int]:
    """Return the functions that bringing a row to a partition calls: those of the keys of the tables that it
    belongs to.
    """
    called: set[int] = set()
    for table in ancestors(partition, session.catalog):
        for text in () if table.partition_key is None else filter(None, table.partition_key.expressions):
            bind_key_expr(text, table, session.catalog, called)
    return called


def runnable_check(expr: Expr, session: Session, called: set[int] | None = None) -> Expr:
    """Return a bound condition over a table's columns, for executors."""
    made: Expr = fold(without_domains(runnable(expr, session.catalog, called)))
    return made


def bound_check(
    constraint: ConstraintDef, relation: RelationDef, session: Session, called: set[int] | None = None
) -> Expr:
    """Return the expression of a CHECK, for executors."""
    expr = bind_check(constraint.check_sql, relation, session.catalog, settings=session.bind_settings)
    return runnable_check(expr, session, called)


def bound_generations(
    relation: RelationDef, session: Session, called: set[int] | None = None
) -> tuple[tuple[int, Expr], ...]:
    """Return (attnum, expression) of a table's generated columns, for executors; ``called`` as in ``bound_checks``."""
    found = generations(relation, session.catalog, called)
    return tuple((attnum, fold(without_domains(expr))) for attnum, expr in found)


def bound_demands(relation: RelationDef, session: Session) -> tuple[tuple[int, Demand], ...]:
    """Return what the domains of a table's columns demand, by attnum; columns without demands are left out."""
    found = ((c.attnum, demand(session.catalog, c.domain)) for c in relation.live if c.domain)
    return tuple((attnum, made) for attnum, made in found if made is not None)


OF_ROWS: Final = ("22", "23", "44")
"""Classes of errors in rows: PostgreSQL stores them one after the other, so the first row that has one
decides which it is."""


def row_record(
    relation: RelationDef, parent: RelationDef | None = None, *, at: int = 0
) -> Callable[[Row], RecordValue]:
    """Return the function from a stored row to the row as one value: its live columns, with types and names.

    ``parent``: the partitioned table of which it is a row. ``at``: where the stored row begins in what is given.
    """
    live = relation.live if parent is None else parent.live
    make = record_maker(tuple(c.type.oid for c in live), tuple(c.name for c in live))
    slots = None if parent is None else slots_of(relation, parent)
    positions = [at + (c.attnum - 1 if slots is None else slots[c.attnum - 1]) for c in live]
    return lambda row: make(tuple([row[i] for i in positions]))


def table_layout(relation: RelationDef, parent: RelationDef | None = None) -> Layout:
    """Return the layout of a stored row as range 0: columns, then tableoid and ctid. ``parent``: whose row a
    whole row is.
    """
    width = len(relation.columns)
    columns = {(0, c.attnum): c.attnum - 1 for c in relation.live}
    columns[0, TABLEOID] = width
    columns[0, CTID] = width + 1
    return Layout(columns=columns, records={0: partial(row_record, relation, parent)})
