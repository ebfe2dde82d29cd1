"""A transaction's own uncommitted writes to one shard (U5).

Each row it wrote has a stack of intents, newest first, each with the number of the statement that made it:

    row 7:  (statement 3: ('b',))  ->  (statement 1: ('a',))  ->  replaces the version that began at 40

A read in statement ``n`` sees the newest intent of an *earlier* statement, or the committed version where there is
none; constraint checks see the newest of all. Intents are entered in indexes of their own by indirection; what a
rollback leaves there is harmless, because every hit is resolved and re-checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import pyarrow.compute as pc

from txn.base.records import RowOp
from txn.base.slices import Slice, free
from txn.base.types import IndexId, Row, RowId
from txn.mvcc.generation import Generation
from txn.mvcc.index import HotIndex
from txn.mvcc.keys import IndexKey, under
from txn.mvcc.many_keys import NOT_JUDGED, Judged, Known, LongValues, held, is_long
from txn.mvcc.own_ends import Ended, OwnEnds
from txn.mvcc.parts import PartState

TAKE_APART: Final = 2000  # intents freed between two turns of the loop, at most
FILL_ROWS: Final = 2000  # entered in an index, likewise


class Intent(msgspec.Struct, gc=False):
    """One uncommitted write. ``values`` None: delete. ``base``: begin of the committed version, 0 for none."""

    values: Row | None
    statement: int
    older: Intent | None
    base: int


def _entered(index: HotIndex, long: LongValues, values: Row, row_id: RowId) -> Iterator[None]:
    """Enter a row in an inverted index, under very many keys a slice between two yields."""
    value = values[long.position]
    if value is None or not is_long(value):
        index.add(index.make.of_row(values), row_id)
        return
    with held([long], values) as making:
        yield from making
        yield from index.enter_ahead(index.make.of_row(values), row_id)
        index.settle()


class OwnWrites:
    """The intents of one transaction in one generation of a shard, with its bulk-loaded parts."""

    __slots__ = (
        "_ends_seen", "_filling", "_indexes", "_stacked", "cold", "ended", "generation", "ops", "parts", "rows",
    )  # fmt: skip

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.rows: dict[RowId, Intent] = {}
        self.cold: dict[RowId, Row] = {}
        """What rows were that lay in parts: to compare with others' scans at the commit
        (``txn.transaction.scan_watch``)."""
        self._stacked = False  # some row has more than one intent
        self.parts: list[tuple[int, PartState]] = []
        self.ended: list[tuple[int, Mapping[str, Ended]]] = []
        """Rows of committed parts ended in bulk, by statement and part (``txn.transaction.bulk_ends``)."""
        self._ends_seen: tuple[int, dict[str, OwnEnds]] = (0, {})
        self._indexes: dict[IndexId, HotIndex] = {}
        self._filling: set[IndexId] = set()
        """Indexes that do not have all intents yet."""
        self.ops: list[RowOp] | None = None
        """What a commit writes of ``rows``, where it was made ahead (``txn.transaction.writes.prepare``)."""

    def put(self, row_id: RowId, values: Row | None, statement: int, base: int) -> None:
        """Push an intent. ``base`` counts only for the row's first."""
        older = self.rows.get(row_id)
        if older is not None:
            self._stacked = True
        self.rows[row_id] = Intent(values, statement, older, base if older is None else older.base)
        if values is not None:
            for index in self._indexes.values():
                index.add(index.make.of_row(values), row_id)

    def pop(self, row_id: RowId) -> None:
        """Take the row's newest intent back (rollback to a savepoint)."""
        older = self.rows[row_id].older
        if older is None:
            del self.rows[row_id]
        else:
            self.rows[row_id] = older

    def seen(self, row_id: RowId, statement: int) -> Intent | None:
        """Return the intent a read in ``statement`` sees, or None: then the committed version counts."""
        intent = self.rows.get(row_id)
        while intent is not None and intent.statement >= statement:
            intent = intent.older
        return intent

    def index(self, index_id: IndexId) -> HotIndex:
        """Return the index over the intents, made at its first use; where they are many ``fill`` comes
        before, in slices.
        """
        index = self._indexes.get(index_id)
        if index is None or index_id in self._filling:
            for _ in self.fill(index_id):
                pass
            index = self._indexes[index_id]
        return index

    def fill(self, index_id: IndexId) -> Iterator[None]:
        """Make the index over the intents unless it is there, a slice between two yields; what is staged
        meanwhile is entered by ``put``.
        """
        if index_id in self._indexes and index_id not in self._filling:
            return
        self._filling.add(index_id)
        shared = self.generation.indexes[index_id]
        index = self._indexes[index_id] = HotIndex(shared.make, shared.definition)
        long = shared.make.long
        pause = Slice(FILL_ROWS)
        for row_id in list(self.rows):
            intent = self.rows.get(row_id)
            while intent is not None:
                if intent.values is None:
                    pass
                elif long is None:
                    index.add(index.make.of_row(intent.values), row_id)
                else:
                    yield from _entered(index, long, intent.values, row_id)
                intent = intent.older
            if pause.over():
                yield
                if self._indexes.get(index_id) is not index:
                    return  # somebody has begun anew, or the schema has changed
        self._filling.discard(index_id)

    def judge(self, index_id: IndexId, key: IndexKey, statement: int, judged: Judged) -> Iterator[None]:
        """Look ahead for ``rows_with`` whether own rows have a key of an inverted index (``Generation.judge``)."""
        index = self.index(index_id)
        long = index.make.long
        if long is None:
            return
        for row_id in list(index.ids(key)):
            intent = self.seen(RowId(row_id), statement)
            if intent is None or intent.values is None or id(intent) in judged:
                continue
            value = intent.values[long.position]
            if value is not None and is_long(value):
                judged[id(intent)] = intent, (yield from long.looked(intent.values, key))

    def rows_with(
        self,
        index_id: IndexId,
        key: IndexKey,
        statement: int,
        judged: Known = NOT_JUDGED,
    ) -> Iterator[tuple[RowId, Row]]:
        """Yield own rows that a read in ``statement`` sees under a key. ``judged``: what ``judge`` has found of it."""
        index = self.index(index_id)
        for row_id in sorted(index.ids(key)):
            intent = self.seen(RowId(row_id), statement)
            if intent is None or intent.values is None:
                continue
            known = judged.get(id(intent))
            if under(index.make.of_row(intent.values), key) if known is None else known[1]:
                yield RowId(row_id), intent.values

    def hides(self, row_id: RowId, statement: int) -> bool:
        """Tell whether a read in ``statement`` must not see the row's committed version."""
        return self.seen(row_id, statement) is not None

    def hidden_ids(self, statement: int) -> frozenset[RowId]:
        """Return all rows whose committed version a read in ``statement`` must not see."""
        return frozenset(r for r in self.rows if self.seen(r, statement) is not None)

    def visible_parts(self, statement: int) -> list[PartState]:
        """Return the own parts that a read in ``statement`` sees."""
        return [part for made, part in self.parts if made < statement]

    def end_rows(self, statement: int, ended: Mapping[str, Ended]) -> None:
        """Stage the end of rows of committed parts that have no intents."""
        self.ended.append((statement, ended))

    def undo_end(self) -> None:
        """Take the latest ``end_rows`` back."""
        self.ended.pop()
        self._ends_seen = (0, {})

    def without_ended(self, parts: tuple[PartState, ...], statement: int) -> tuple[PartState, ...]:
        """Return committed parts as a read in ``statement`` sees them: without what earlier ones have ended in bulk."""
        seen = [ended for made, ended in self.ended if made < statement]
        if not seen:
            return parts
        count, known = self._ends_seen
        if count != len(seen):
            self._ends_seen = (len(seen), known := {})
        out: list[PartState] = []
        for part in parts:
            name = part.ref.name
            if name not in known:
                masks = [ended[name].mask for ended in seen if name in ended]
                if not masks:
                    out.append(part)
                    continue
                mask = masks[0]
                for other in masks[1:]:
                    mask = pc.or_(mask, other)
                known[name] = OwnEnds(part, mask)
            out.append(known[name])
        return tuple(out)

    @property
    def staged(self) -> int:
        """How many rows have intents or have ended in bulk."""
        return len(self.rows) + sum(part.rows for _s, parts in self.ended for part in parts.values())

    def visible_rows(self, statement: int) -> Iterator[tuple[RowId, Row]]:
        """Yield all own rows a read in ``statement`` sees, in the order of their first write."""
        for row_id in self.rows:
            intent = self.seen(row_id, statement)
            if intent is not None and intent.values is not None:
                yield row_id, intent.values

    def take_apart(self) -> Iterator[None]:
        """Free everything once the transaction has ended, a piece between two yields.

        To free a row's stack of intents at its head would recurse, for a hundred thousand of them beyond what the
        processor's stack can hold.
        """
        pause = Slice(TAKE_APART)
        for intent in self.rows.values() if self._stacked else ():
            while (older := intent.older) is not None:
                intent.older = None
                intent = older
                if pause.over():
                    yield
        self._stacked = False
        indexes, self._indexes = self._indexes, {}
        self._filling.clear()
        for index in indexes.values():
            yield from index.take_apart()
        for rows in (self.rows, self.cold):
            yield from free(rows)
        if self.ops is not None:
            yield from free(self.ops)

    def __del__(self) -> None:
        """What is left without having been taken apart (TRUNCATE sets intents aside) may be deep as well."""
        if self._stacked:
            for _ in self.take_apart():
                pass

    def drop_indexes(self) -> Iterator[None]:
        """Do the same where most of what they hold is gone (``txn.transaction.spill``), and free them, a
        piece between two yields.
        """
        indexes = list(self._indexes.values())
        self.forget_indexes()
        for index in indexes:
            yield from index.take_apart()

    def forget_indexes(self) -> None:
        """Make the indexes anew at their next use (the schema has changed)."""
        self._indexes.clear()
        self._filling.clear()
