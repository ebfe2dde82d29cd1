"""Exclusion constraints: no two rows for which all of a list of operators hold (23P01).

    EXCLUDE USING gist (room WITH =, during WITH &&) WHERE (NOT cancelled)
      statement ──> its new rows, each beside the rows of the table that have the same room ──> a pair that
      conflicts: 23P01
                                    └─ the constraint's index finds them, where its first operators are =

Whoever writes a table that has such a constraint locks it SIX from the start
(``engine.session.catalog.view``), so writers of the table come one after the other and readers pass. That is
what keeps two transactions from adding rows that conflict with each other: what a check has not found cannot
appear before its transaction ends. Checks are made when a statement has made all its changes, or at COMMIT
where they are deferred.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from engine.base.eager import settle
from engine.changes.writes.shape import table_layout
from engine.session.conflicts import key_word
from engine.session.transaction.shown_values import shown_value
from pgwire.give_way import between, openly
from pgwire.long.values import in_order
from planner.base.errors import SqlError
from planner.bind import bind_check
from planner.bind.stored.runnable import runnable
from planner.catalog import ConstraintDef, RelationDef
from planner.evaluate import Env, RowFunction, Shared, compile_expr, compile_operator
from planner.facts import (
    BOOL,
    BYTEA,
    DATE,
    INT2,
    INT4,
    INT8,
    OID,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VARCHAR,
    facts,
)
from planner.rules.fold import fold
from planner.rules.plain import without_domains
from txn.base.types import IndexId, KeyRange, Row, ShardId, StoredRow

if TYPE_CHECKING:
    from engine.session.session import Session

MAX_LOOKUPS: Final = 100
"""So many keys are looked up in the index; for more the table is scanned."""
SLICE_PAIRS: Final = 5000
"""Pairs compared between two turns of the event loop."""


_PLAIN: Final = frozenset(
    (BOOL, BYTEA, INT8, INT2, INT4, TEXT, OID, VARCHAR, DATE, TIMESTAMP, TIMESTAMPTZ, UUID)
)
"""Types whose equal values are equal in Python, too."""


class Exclusion:
    """A compiled exclusion constraint."""

    def __init__(self, session: Session, relation: RelationDef, constraint: ConstraintDef) -> None:
        """Compile against the session's catalog."""
        self.relation = relation
        self.constraint = constraint
        self.index = next(index for index in relation.indexes if index.oid == constraint.index_oid)
        self.positions = [attnum - 1 for attnum in constraint.attnums]  # of expressions: of hidden columns
        found = [facts().operators[oid] for oid in constraint.operators]
        types = [relation.columns[i].type.oid for i in self.positions]
        self.operators = [compile_operator(op.proc, oid, oid) for op, oid in zip(found, types, strict=True)]
        equal = [op.name == "=" and kind in _PLAIN for op, kind in zip(found, types, strict=True)]
        self.prefix = equal.index(False) if False in equal else len(equal)
        """So many of the first operators are =, of types that ``_PLAIN`` has: equal keys stand beside each
        other in the index."""
        left = found[self.prefix :]
        kind = facts().types[found[-1].left].name
        self.sweeps = len(left) == 1 and left[0].name == "&&" and kind == "anyrange"
        """What is left is one && of ranges: in their order, if any two overlap then two beside each other do."""
        self.where: RowFunction | None = None
        if constraint.check_sql:
            expr = bind_check(constraint.check_sql, relation, session.catalog, settings=session.bind_settings)
            expr = fold(without_domains(runnable(expr, session.catalog)))
            self.where = compile_expr(expr, table_layout(relation))

    @property
    def by_index(self) -> bool:
        """Whether the constraint's index finds the rows that have the first part of a key."""
        return self.prefix > 0 and self.where is None

    def key(self, row: Row, env: Env) -> Row | None:
        """Return the key of a row, None for one that the constraint does not look at: it has a NULL, or WHERE
        does not hold.
        """
        key = tuple([row[i] for i in self.positions])
        if None in key:
            return None
        if self.where is not None and openly(self.where, (*row, self.relation.oid), env) is not True:
            return None
        return key

    def conflict(self, one: Row, other: Row, env: Env) -> bool:
        """Tell whether two keys exclude each other."""
        return all(
            openly(operator, x, y, env) is True
            for operator, x, y in zip(self.operators, one, other, strict=True)
        )

    def violation(self, new: Row, existing: Row, session: Session, *, defining: bool) -> SqlError:
        """Return 23P01 for two keys, which show to who may read them; ``defining``: the constraint is being added."""
        name = self.constraint.name
        message = (
            f'could not create exclusion constraint "{name}"'
            if defining
            else f'conflicting key value violates exclusion constraint "{name}"'
        )
        if session.may_read(self.relation, self.index.key_columns):
            with_ = "conflicts with key" if defining else "conflicts with existing key"
            detail = f"Key {self._shown(new, session)} {with_} {self._shown(existing, session)}."
        else:
            detail = "Key conflicts exist." if defining else "Key conflicts with existing key."
        return SqlError(
            "23P01",
            message,
            detail=detail,
            schema=self.relation.schema,
            table=self.relation.name,
            constraint=name,
        )

    def _shown(self, key: Row, session: Session) -> str:
        columns = [self.relation.columns[i] for i in self.positions]
        names = ", ".join(
            key_word(session.catalog, self.relation, self.index, place) for place in range(len(columns))
        )
        values = ", ".join(
            shown_value(column.type.oid, value, session.codec_settings)
            for column, value in zip(columns, key, strict=True)
        )
        return f"({names})=({values})"


def compiled(session: Session, relation: RelationDef, constraint: ConstraintDef) -> Exclusion:
    """Return the compiled form of a constraint of the session's catalog, kept with that catalog."""
    kept: dict[Any, Any] = session.catalog.derived
    key = ("exclusion", constraint.oid, session.output_settings)
    made = kept.get(key)
    if made is None:
        made = kept[key] = Exclusion(session, relation, constraint)
    return made


async def check_new(session: Session, relation: RelationDef, rows: Sequence[Row]) -> None:
    """Check what a statement has stored, or let that wait for the commit. Raises SqlError 23P01."""
    for constraint in relation.exclusions:
        if session.timing.is_deferred(constraint):
            session.timing.note(constraint, relation.oid, "exclusion", {})
        else:
            await _check(session, compiled(session, relation, constraint), rows)


async def check_whole(
    session: Session, relation: RelationDef, constraint: ConstraintDef, *, defining: bool = False
) -> None:
    """Check all rows of a table. Raises SqlError 23P01."""
    exclusion = (
        Exclusion(session, relation, constraint) if defining else compiled(session, relation, constraint)
    )
    await _check(session, exclusion, None, defining=defining)


async def _check(
    session: Session, exclusion: Exclusion, rows: Sequence[Row] | None, *, defining: bool = False
) -> None:
    env = Env((), session, shared=Shared())
    fresh: set[Row] | None = None
    if rows is not None:
        fresh = set()
        for row in rows:
            if (key := exclusion.key(row, env)) is not None:
                fresh.add(key)
            between()
        if not fresh:
            return
    groups: dict[Row, list[tuple[int, Row]]] = {}
    for stored in await candidates(session, exclusion, fresh):
        key = exclusion.key(stored.values, env)
        if key is not None:
            groups.setdefault(key[: exclusion.prefix], []).append((stored.row_id, key))
        between()
    pairs = 0
    for group in groups.values():
        for (at, one), (other_at, other) in _pairs(exclusion, group, fresh):
            pairs += 1
            between()
            if pairs % SLICE_PAIRS == 0:
                session.cancelled.check()
                await asyncio.sleep(0)
            if not exclusion.conflict(one, other, env):
                continue
            # the new row is told first, of two new ones the later
            turned = (
                other in fresh if fresh is not None and (one in fresh) != (other in fresh) else other_at > at
            )
            new, existing = (other, one) if turned else (one, other)
            raise exclusion.violation(new, existing, session, defining=defining)


_Numbered: TypeAlias = tuple[int, Row]


def _pairs(
    exclusion: Exclusion, group: list[_Numbered], fresh: set[Row] | None
) -> Iterator[tuple[_Numbered, _Numbered]]:
    """Yield pairs of rows, enough to find a conflict if there is one; of each row its number and its key."""
    if exclusion.sweeps:
        last = exclusion.prefix
        # empty ranges come first, and overlap nothing
        yield from itertools.pairwise(openly(in_order, group, lambda item: item[1][last]))
        return
    group.sort()
    for place, one in enumerate(group):
        if fresh is not None and one[1] not in fresh:
            continue
        for other_place, other in enumerate(group):
            if other_place < place or (other_place > place and fresh is not None and other[1] not in fresh):
                yield one, other


async def candidates(session: Session, exclusion: Exclusion, fresh: set[Row] | None) -> list[StoredRow]:
    """Return rows of the table, at least all that may conflict with a key of ``fresh`` (None: with any)."""
    txn = session.block.ensure_txn()
    shard = ShardId(exclusion.relation.oid)
    found: list[StoredRow] = []
    prefixes = {key[: exclusion.prefix] for key in fresh} if fresh is not None and exclusion.prefix else set()
    if prefixes and len(prefixes) <= MAX_LOOKUPS and exclusion.by_index:
        index = IndexId(exclusion.constraint.index_oid)
        for prefix in prefixes:
            if exclusion.prefix == len(exclusion.positions):
                found += await settle(txn.lookup(shard, index, [prefix]))
            else:
                found += await settle(txn.range(shard, index, KeyRange(prefix=prefix)))
        return found
    async for some in txn.scan(shard):
        found += some
    return found
