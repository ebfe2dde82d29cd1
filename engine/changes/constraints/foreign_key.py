"""One FOREIGN KEY, compiled: the keys of rows on both sides, and how to find rows by them.

            child (a, b)                          parent (x, y)
    row ──> key, none where NULL frees it ──────> looked up by the parent's unique index
    found by an index over (a, b), else a scan <── key of a row that goes or changes

A key is known by its *canonical* form (``txn.mvcc.keys``): equal values of both columns, whatever their types and
scales, have one.

Why no race leaves a row without the one it refers to: who refers to a row holds KEY SHARE on it to its end,
who deletes it or changes its key holds UPDATE, and these exclude each other. So a referenced row that was
found and locked stays; and while a referenced row is locked for deletion no new row can refer to it, which is
why referring rows are searched past all locks: those that are found are locked and looked at again, those
that are not cannot appear. Reads see the changes of earlier statements only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from engine.base.eager import settle
from engine.catalog.physical import physical_type
from engine.catalog.reference_checks import Reference, references_above, references_to, topmost
from engine.changes.constraints.values import NO_SUCH_VALUE, Convert, assigner, converter
from engine.session.transaction.shown_values import shown_value
from engine.session.transaction.timing import Canonical, Keys
from pgwire.give_way import PACE, between
from pgwire.release import let_go
from planner.base.errors import SqlError
from planner.catalog import ConstraintDef, IndexDef, RelationDef
from planner.evaluate import Env
from planner.partitions.rows import place_of
from txn.api import RowLock, Transaction
from txn.base.types import IndexId, Key, KeyRange, Row, ShardId, StoredRow
from txn.mvcc.keys import value_mapper
from txn.transaction.writes import ESCALATE_ROWS

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.session.session import Session

CHUNK_KEYS: Final = 500
"""Keys looked up between two turns of the event loop."""
PIECE_ROWS: Final = 2000
"""Referencing rows that are locked, and changed, together."""
MANY_ROWS: Final = 20_000
"""Referencing rows that are looked up together; a key that has more of them by itself is found by a scan of
the table."""


class ForeignKey:
    """A foreign key between two tables of one catalog.

    Attributes:
        child, parent: the referencing and the referenced table.
        child_at, parent_at: positions of the key's columns in their rows.
        named: where the constraint of a partition comes from: so messages about referenced rows call it.
    """

    def __init__(self, child: RelationDef, constraint: ConstraintDef, parent: RelationDef) -> None:
        """Compile ``constraint`` of ``child``."""
        foreign = constraint.foreign
        if foreign is None:
            raise AssertionError(f"constraint {constraint.name} is no foreign key")
        self.child, self.constraint, self.parent = child, constraint, parent
        self.definition = foreign
        self.full = foreign.match == "f"
        self.child_at = [a - 1 for a in constraint.attnums]
        self.parent_at = [a - 1 for a in foreign.attnums]
        child_types = [child.columns[i].type for i in self.child_at]
        parent_types = [parent.columns[i].type for i in self.parent_at]
        pairs = list(zip(child_types, parent_types, strict=True))
        self._to_parent: list[Convert] = []
        for own, other in pairs:
            convert = converter(own, other)
            if convert is None:
                raise AssertionError(f"foreign key {constraint.name}: no conversion to the referenced type")
            self._to_parent.append(convert)
        self._to_child = [converter(other, own) for own, other in pairs]
        self.assign = [assigner(other, own) for own, other in pairs]
        self._mappers = [value_mapper(physical_type(other)) for other in parent_types]
        self.named: Reference = (child, constraint)
        index = next(i for i in parent.indexes if i.oid == constraint.index_oid)
        self._parent_index = IndexId(index.oid)
        self._parent_order = _order(index, foreign.attnums)
        self._child_access = _access(child, constraint.attnums)

    # -- keys --------------------------------------------------------------------------------------

    def _canonical(self, values: Iterable[Any]) -> Canonical:
        return tuple(
            [v if m is None else m(v) for v, m in zip(values, self._mappers, strict=True)]
        )  # fmt: skip

    def parent_key(self, row: Row) -> Canonical | None:
        """Return the canonical key of a referenced row, None if a NULL keeps it from being referred to."""
        values = [row[i] for i in self.parent_at]
        return None if None in values else self._canonical(values)

    def child_key(self, row: Row) -> Canonical | None:
        """Return the canonical key that a referencing row refers to, None if it refers to nothing.

        A value that the referenced column cannot hold stands for itself: it is found nowhere.
        """
        return self._child_canonical([row[i] for i in self.child_at])

    def _child_canonical(self, own: Sequence[Any]) -> Canonical | None:
        """Return the same for values of the referencing columns."""
        values = []
        for value, convert in zip(own, self._to_parent, strict=True):
            if value is None:
                return None
            values.append(convert(value))
        if NO_SUCH_VALUE in values:
            return (NO_SUCH_VALUE, *own)
        return self._canonical(values)

    def is_mixed(self, row: Row) -> bool:
        """Tell whether MATCH FULL forbids the row: some of its columns are NULL and some are not."""
        nulls = [row[i] is None for i in self.child_at]
        return self.full and any(nulls) and not all(nulls)

    def child_values(self, row: Row) -> Key:
        """Return the referencing columns of a row."""
        return tuple([row[i] for i in self.child_at])

    def as_parent(self, values: Key) -> Key:
        """Return values of the referencing columns as the referenced ones hold them."""
        return tuple([convert(value) for convert, value in zip(self._to_parent, values, strict=True)])

    def parent_values(self, row: Row) -> Key:
        """Return the referenced columns of a row."""
        return tuple([row[i] for i in self.parent_at])

    # -- look-ups ----------------------------------------------------------------------------------

    async def missing(self, txn: Transaction, keys: Keys) -> Keys:
        """Return those of ``keys`` that no referenced row has. The rows found stay locked (KEY SHARE).

        ``keys`` show values of the referencing columns.
        """
        absent = dict(keys)
        wanted: list[Key] = []
        for canonical, shown in keys.items():
            if canonical[0] is not NO_SUCH_VALUE:
                values = [convert(v) for convert, v in zip(self._to_parent, shown, strict=True)]
                wanted.append(tuple([values[i] for i in self._parent_order]))
                if not len(wanted) % PACE:
                    between()
        await self._strike_found(txn, wanted, absent)
        let_go(wanted)
        return absent

    async def vanished(self, txn: Transaction, keys: Keys) -> Keys:
        """The same for keys that show values of the referenced columns."""
        absent = dict(keys)
        wanted: list[Key] = []
        for shown in keys.values():
            wanted.append(tuple([shown[i] for i in self._parent_order]))
            if not len(wanted) % PACE:
                between()
        await self._strike_found(txn, wanted, absent)
        let_go(wanted)
        return absent

    async def _strike_found(self, txn: Transaction, wanted: Sequence[Key], absent: Keys) -> None:
        shard = ShardId(self.parent.oid)
        for start in range(0, len(wanted), CHUNK_KEYS):
            if start:
                await asyncio.sleep(0)
            chunk = wanted[start : start + CHUNK_KEYS]
            seen = await settle(txn.lookup(shard, self._parent_index, chunk, peek=True))
            rows = await _locked(txn, shard, seen, "key share")
            held = {self.parent_key(row.values) for row in rows}
            if len(held) < len(chunk):
                # Somebody may be inserting a missing key: the lock on the key waits for the outcome.
                unseen = [key for key in chunk if self._canonical_of_ordered(key) not in held]
                rows += await settle(txn.lookup(shard, self._parent_index, unseen, for_update="key share"))
            for row in rows:
                found = self.parent_key(row.values)
                if found is not None:
                    absent.pop(found, None)

    def _canonical_of_ordered(self, key: Key) -> Canonical:
        """Return the canonical form of a key in the order of the referenced index."""
        values: list[Any] = [None] * len(key)
        for place, value in zip(self._parent_order, key, strict=True):
            values[place] = value
        return self._canonical(values)

    async def children(
        self, txn: Transaction, keys: Keys, *, of_parent: bool, for_update: bool = False
    ) -> list[StoredRow]:
        """Return the referencing rows that have one of ``keys``, locked (KEY SHARE, or UPDATE with ``for_update``).

        ``of_parent`` tells whose columns' values the keys show. The caller holds locks that keep other transactions
        from making rows refer to these keys.
        """
        found: list[StoredRow] = []
        async for some in self.children_in_pieces(txn, keys, of_parent=of_parent, for_update=for_update):
            found += some
        return found

    async def children_in_pieces(
        self, txn: Transaction, keys: Keys, *, of_parent: bool, for_update: bool = False
    ) -> AsyncGenerator[list[StoredRow]]:
        """Yield them some at a time, never none. What the caller makes of them within the statement changes
        nothing of what comes.
        """
        mode: RowLock = "update" if for_update else "key share"
        shard = ShardId(self.child.oid)
        seen: list[StoredRow] = []
        count = 0

        async def locked() -> list[StoredRow]:
            nonlocal seen, count
            some, seen = seen, []
            count += len(some)
            if mode == "update" and count > ESCALATE_ROWS:
                await settle(txn.lock_table(shard, "X"))  # as their change will, in the end
            rows = await _locked(txn, shard, some, mode)
            found: list[StoredRow] = []
            for start in range(0, len(rows), CHUNK_KEYS):
                if start:
                    await asyncio.sleep(0)
                found += [
                    row for row in rows[start : start + CHUNK_KEYS] if self.child_key(row.values) in keys
                ]
            let_go(some, rows)
            return found

        async for some in self._candidates(txn, keys, of_parent):
            seen += some
            if len(seen) >= PIECE_ROWS and (found := await locked()):
                yield found
        if seen and (found := await locked()):
            yield found

    async def _candidates(
        self, txn: Transaction, keys: Keys, of_parent: bool
    ) -> AsyncGenerator[Sequence[StoredRow]]:
        """Yield rows that have one of ``keys`` now, or had it a moment ago."""
        shard = ShardId(self.child.oid)
        access = self._child_access
        wanted = None if access is None else await self._child_keys(keys, of_parent)
        if access is None or wanted is None:
            async for some in txn.scan(shard, peek=True):
                yield [row for row in some if self.child_key(row.values) in keys]
            return
        index, order, whole = access
        many: list[Key] = []
        if whole:
            for start in range(0, len(wanted), CHUNK_KEYS):
                if start:
                    await asyncio.sleep(0)
                chunk: list[Key] = []
                size = 0
                keys_here = [tuple([key[i] for i in order]) for key in wanted[start : start + CHUNK_KEYS]]
                counts = txn.count_entries(shard, index, keys_here)
                for place, (key, count) in enumerate(zip(keys_here, counts, strict=True), start):
                    if count > MANY_ROWS:
                        many.append(wanted[place])
                        continue
                    if chunk and size + count > MANY_ROWS:
                        yield await settle(txn.lookup(shard, index, chunk, peek=True))
                        chunk, size = [], 0
                    chunk.append(key)
                    size += count
                if chunk:
                    yield await settle(txn.lookup(shard, index, chunk, peek=True))
        else:
            for key in wanted:
                within = KeyRange(prefix=tuple([key[i] for i in order]))
                if txn.count_range(shard, index, within, MANY_ROWS) > MANY_ROWS:
                    many.append(key)
                else:
                    yield await settle(txn.range(shard, index, within, peek=True))
        if many:  # all their rows at once are more than memory may hold
            known = {self._child_canonical(key) for key in many}
            async for some in txn.scan(shard, peek=True):
                yield [row for row in some if self.child_key(row.values) in known]

    async def _child_keys(self, keys: Keys, of_parent: bool) -> list[Key] | None:
        """Return the keys as the referencing columns hold them, None where that is not sure to be found."""
        if not of_parent:
            return list(keys.values())
        made = []
        for number, shown in enumerate(keys.values(), 1):
            if not number % CHUNK_KEYS:
                await asyncio.sleep(0)
            values = []
            for convert, value in zip(self._to_child, shown, strict=True):
                if convert is None:
                    return None
                values.append(convert(value))
            if NO_SUCH_VALUE not in values:
                made.append(tuple(values))
        return made

    async def has_mixed_rows(self, txn: Transaction) -> bool:
        """Tell whether a row breaks MATCH FULL's rule on NULLs."""
        async for rows in txn.scan(ShardId(self.child.oid), peek=True):
            if any(self.is_mixed(row.values) for row in rows):
                return True
        return False

    # -- errors ------------------------------------------------------------------------------------

    def not_present(self, shown: Key, session: Session) -> SqlError:
        """Return 23503 for a referencing row without a referenced one; its key shows to who may read it."""
        key = _key_text(self.child, self.child_at, shown, session)
        return self.violation(
            f'insert or update on table "{self.child.name}" violates foreign key constraint '
            f'"{self.constraint.name}"',
            f'Key {key}is not present in table "{self.parent.name}".',
        )

    def mixed_nulls(self) -> SqlError:
        """Return 23503 for a row that MATCH FULL forbids."""
        return self.violation(
            f'insert or update on table "{self.child.name}" violates foreign key constraint '
            f'"{self.constraint.name}"',
            "MATCH FULL does not allow mixing of null and nonnull key values.",
        )

    def still_referenced(self, shown: Key, session: Session) -> SqlError:
        """Return 23503 for a referenced row that goes, or changes its key, while rows refer to it; its key as above."""
        child, constraint = self.named
        return self.referenced(
            f'update or delete on table "{self.parent.name}" violates foreign key constraint '
            f'"{constraint.name}" on table "{child.name}"',
            shown,
            session,
        )

    def referenced(self, message: str, shown: Key, session: Session) -> SqlError:
        """Return 23503 for a referenced key that goes."""
        key = _key_text(self.parent, self.parent_at, shown, session)
        child, constraint = self.named
        detail = f'Key {key}is still referenced from table "{child.name}".'
        return _violation(child, constraint, message, detail)

    def violation(self, message: str, detail: str) -> SqlError:
        """Return 23503 with the constraint's fields."""
        return _violation(self.child, self.constraint, message, detail)


class PartitionedKey(ForeignKey):
    """A foreign key to a partitioned table: each referenced row is looked up in the partition that its key
    belongs to.
    """

    def __init__(
        self, child: RelationDef, constraint: ConstraintDef, parent: RelationDef, catalog: CatalogSnapshot
    ) -> None:
        """``catalog``: where the partitions are."""
        super().__init__(child, constraint, parent)
        self._catalog = catalog
        self._parts: dict[int, ForeignKey] = {}

    async def _strike_found(self, txn: Transaction, wanted: Sequence[Key], absent: Keys) -> None:
        by_part: dict[int, list[Key]] = {}
        for key in wanted:
            row: list[Any] = [None] * len(self.parent.columns)
            for place, value in zip(self._parent_order, key, strict=True):
                row[self.parent_at[place]] = value
            found, unknown = place_of(self.parent, tuple(row), Env(), self._catalog)
            if unknown is None:
                by_part.setdefault(found.oid, []).append(key)
        for oid, keys in by_part.items():
            await self._part(oid)._strike_found(txn, keys, absent)

    def _part(self, oid: int) -> ForeignKey:
        made = self._parts.get(oid)
        if made is None:
            part = self._catalog.relation_by_oid(oid)
            if part is None:
                raise AssertionError(f"partition {oid} is gone, though its table is locked")
            references = references_above(self._catalog, part)
            constraint = next(c for _, c in references if c.oid == self.constraint.oid)
            made = self._parts[oid] = ForeignKey(self.child, constraint, part)
        return made


def _violation(table: RelationDef, constraint: ConstraintDef, message: str, detail: str) -> SqlError:
    return SqlError(
        "23503",
        message,
        detail=detail,
        schema=table.schema,
        table=table.name,
        constraint=constraint.name,
    )


async def _locked(
    txn: Transaction, shard: ShardId, seen: Sequence[StoredRow], mode: RowLock
) -> list[StoredRow]:
    """Lock rows and return those that are still there, as they are now."""
    if not seen:
        return []
    if mode == "update" and len(seen) > ESCALATE_ROWS:
        await settle(txn.lock_table(shard, "X"))  # as their change will, in the end
    latest = await settle(txn.lock_rows(shard, [row.row_id for row in seen], mode, "block"))
    return [row for row in latest if row is not None]


def _key_text(relation: RelationDef, positions: Sequence[int], values: Key, session: Session) -> str:
    """Return ``(a, b)=(1, 2) ``, or nothing where the user may not read these columns."""
    if not session.may_read(relation, [relation.columns[i].attnum for i in positions]):
        return ""
    names = ", ".join(relation.columns[i].name for i in positions)
    shown = [
        shown_value(relation.columns[i].type.oid, v, session.codec_settings)
        for i, v in zip(positions, values, strict=True)
    ]
    return f"({names})=({', '.join(shown)}) "


def _order(index: IndexDef, attnums: Sequence[int]) -> list[int]:
    """Return for each of the index's first columns its place among ``attnums``."""
    return [attnums.index(a) for a in index.attnums[: len(attnums)]]


Access: TypeAlias = tuple[IndexId, list[int], bool]


def _access(child: RelationDef, attnums: Sequence[int]) -> Access | None:
    """Return (index, order of its columns, whether they are all of its columns) that finds rows by ``attnums``."""
    best: Access | None = None
    for index in child.indexes:
        width = len(attnums)
        if not index.by_value:
            continue
        if len(index.attnums) < width or set(index.attnums[:width]) != set(attnums):
            continue
        whole = len(index.attnums) == width
        if whole or (best is None and index.method == "btree"):
            best = (IndexId(index.oid), _order(index, attnums), whole)
            if whole:
                break
    return best


def compiled(session: Session, child: RelationDef, constraint: ConstraintDef) -> ForeignKey:
    """Return the compiled form of a constraint of the session's catalog, kept with that catalog; also as
    ``references_to`` gives it.
    """
    catalog = session.catalog
    kept: dict[Any, Any] = catalog.derived
    if constraint.foreign is None:
        raise AssertionError(f"constraint {constraint.name} is no foreign key")
    at = ("foreign key", constraint.oid, constraint.foreign.table)
    made: ForeignKey | None = kept.get(at)
    if made is None:
        parent = catalog.relation_by_oid(constraint.foreign.table)
        if parent is None:
            raise RuntimeError(f"foreign key {constraint.name} refers to a table that is gone")
        if parent.kind == "p":
            made = PartitionedKey(child, constraint, parent, catalog)
        else:
            made = ForeignKey(child, constraint, parent)
        made.named = topmost(catalog, child, constraint)
        kept[at] = made
    return made


def outgoing(session: Session, relation: RelationDef) -> list[ForeignKey]:
    """Return the foreign keys of a table, oldest first."""
    return [compiled(session, relation, c) for c in relation.foreign_keys]


def incoming(session: Session, oid: int, *, above: bool = True) -> list[ForeignKey]:
    """Return the foreign keys that refer to rows of a table, oldest first; not ``above``: not those to a
    table it is a partition of.
    """
    catalog = session.catalog
    found = catalog.foreign_keys_to(oid)
    relation = catalog.relation_by_oid(oid)
    if above and relation is not None:
        found = references_to(catalog, relation)
    return [compiled(session, child, c) for child, c in found]
