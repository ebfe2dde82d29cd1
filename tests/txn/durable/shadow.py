"""The smallest possible memory half: a dict of rows over parts, to drive the durable half in tests."""

from __future__ import annotations

from collections.abc import Iterable

from txn.base.records import Batch, PartSwap, RowOp, SchemaChange, ShardWrites, WriteSet
from txn.base.types import PartRef, Row, RowId, ShardId, ShardSpec, Timestamp, TxnId
from txn.log.durable import DurableLog
from txn.persist.parts.manifest import Ends, Manifest, ManifestPart
from txn.persist.parts.part import Part
from txn.values.columns import rows_to_table

NO_TS = Timestamp(0)


class Table:
    """One shard: hot versions (begin, values), the newest per row; parts with the ends of their rows."""

    def __init__(self, spec: ShardSpec) -> None:
        self.spec = spec
        self.generation = 0
        self.hot: dict[int, tuple[int, Row]] = {}
        self.parts: dict[str, PartRef] = {}
        self.ends: dict[str, dict[int, int]] = {}
        self.open: dict[str, Part] = {}
        self.next_row_id = 1
        self.pending: list[PartRef] = []  # applied, not opened yet
        self.ended: dict[tuple[int, int], int] = {}  # (row id, begin) -> end, of all versions

    def end_in_parts(self, row_id: int, replaced: int, ts: int) -> None:
        for name, part in self.open.items():
            for position in part.positions(RowId(row_id)):
                if part.begin(position) == replaced:
                    self.ends[name][position] = ts


class Shadow:
    """Applies batches the way recovery and commit both do."""

    def __init__(self, log: DurableLog) -> None:
        self.log = log
        self.tables: dict[int, Table] = {}
        self.order: list[int] = []  # transactions in the order in which they were applied

    @classmethod
    async def start(cls, log: DurableLog) -> Shadow:
        self = cls(log)
        for shard, manifest in log.manifests.items():
            if manifest.forgotten:
                continue
            table = self.tables[shard] = Table(manifest.spec)
            table.generation = manifest.generation
            table.next_row_id = manifest.next_row_id
            for part in manifest.parts:
                await self._add(table, part.ref, zip(part.ends.positions, part.ends.timestamps, strict=True))
        async for seq, batch in log.replay():
            self.apply(batch, seq)
            await self.open_pending()
        log.committer.applier = self.apply
        log.start()
        return self

    async def _add(self, table: Table, ref: PartRef, ends: Iterable[tuple[int, int]] = ()) -> None:
        table.open[ref.name] = await self.log.open_part(ref)
        table.parts[ref.name] = ref
        table.ends[ref.name] = dict(ends)

    async def open_pending(self) -> None:
        for table in self.tables.values():
            while table.pending:
                await self._add(table, table.pending.pop())

    def apply(self, batch: Batch, seq: int) -> None:
        for w in batch.writes:
            self.order.append(w.txn)
            for change in w.schema:
                self._change(change)
            for s in w.shards:
                table = self.tables[s.shard]
                for op in s.ops:
                    self._op(table, op, w.ts)
                table.pending.extend(s.parts)
        for swap in batch.swaps:
            table = self.tables[swap.shard]
            for name in swap.removed:
                del table.parts[name], table.ends[name], table.open[name]

    def _change(self, change: SchemaChange) -> None:
        if change.forget:
            self.tables.pop(change.shard, None)
        elif change.spec is not None:
            if change.shard in self.tables:
                self.tables[change.shard].spec = change.spec
            else:
                self.tables[change.shard] = Table(change.spec)

    def _op(self, table: Table, op: RowOp, ts: int) -> None:
        table.next_row_id = max(table.next_row_id, op.row_id + 1)
        table.hot.pop(op.row_id, None)
        if op.replaced:
            table.ended[op.row_id, op.replaced] = ts
            table.end_in_parts(op.row_id, op.replaced, ts)
        if op.values is not None:
            table.hot[op.row_id] = (ts, op.values)

    # -- using it ----------------------------------------------------------------------------------

    def begin_of(self, shard: int, row_id: int) -> int:
        """The begin of the row's live version, 0 if there is none."""
        table = self.tables[shard]
        if row_id in table.hot:
            return table.hot[row_id][0]
        for name, part in table.open.items():
            for position in part.positions(RowId(row_id)):
                if position not in table.ends[name]:
                    return part.begin(position)
        return 0

    def writes(
        self, txn: int, *rows: tuple[int, Row | None], shard: int = 7, schema: tuple[SchemaChange, ...] = ()
    ) -> WriteSet:
        ops = tuple(
            RowOp(RowId(i), Timestamp(self.begin_of(shard, i) if shard in self.tables else 0), values)
            for i, values in rows
        )
        writes = (ShardWrites(shard=ShardId(shard), ops=ops),) if ops else ()
        return WriteSet(txn=TxnId(txn), ts=NO_TS, shards=writes, schema=schema)

    async def create(self, spec: ShardSpec, txn: int = 1) -> None:
        change = SchemaChange(shard=spec.shard, spec=spec)
        await self.log.committer.submit(WriteSet(txn=TxnId(txn), ts=NO_TS, shards=(), schema=(change,)))

    async def rows(self, shard: int = 7) -> dict[int, Row]:
        """The shard's rows, from memory and parts."""
        await self.open_pending()
        table = self.tables[shard]
        found: dict[int, Row] = {}
        for name, part in table.open.items():
            async for first, rows in part.scan(table.spec):
                for i, row in enumerate(rows):
                    if first + i not in table.ends[name]:
                        found[part.row_id(first + i)] = row
        for row_id, (_, values) in table.hot.items():
            assert row_id not in found, f"row {row_id} is both hot and in a part"
            found[row_id] = values
        return found

    async def flush(self, shard: int = 7, *, compact: bool = False) -> None:
        """Hot rows (and with ``compact`` all parts) into a new part, then the manifest."""
        await self.open_pending()
        table = self.tables[shard]
        cut = self.log.committer.applied_seq
        hot = dict(table.hot)
        old = list(table.parts) if compact else []
        rows: list[tuple[int, int, Row]] = [(i, b, v) for i, (b, v) in hot.items()]
        for name in old:
            part = table.open[name]
            ended = dict(table.ends[name])
            async for first, values in part.scan(table.spec):
                for i, row in enumerate(values):
                    if first + i not in ended:
                        rows.append((part.row_id(first + i), part.begin(first + i), row))
        added: tuple[PartRef, ...] = ()
        if rows:
            ids, begins = [r[0] for r in rows], [r[1] for r in rows]
            arrow = rows_to_table(table.spec, [r[2] for r in rows], ids, begins)
            added = (await self.log.write_part(ShardId(shard), table.spec, arrow),)
        opened = [(ref, await self.log.open_part(ref)) for ref in added]
        if added or old:
            await self.log.committer.submit_swap(
                PartSwap(shard=ShardId(shard), removed=tuple(old), added=added)
            )
            for ref, part in opened:
                table.open[ref.name], table.parts[ref.name] = part, ref
                # Commits since the cut, also those while the part was written, are in ``ended``.
                table.ends[ref.name] = {
                    part.positions(RowId(i))[0]: table.ended[i, begin]
                    for i, begin, _ in rows
                    if (i, begin) in table.ended
                }
                for i, begin, _ in rows:
                    if i in table.hot and table.hot[i][0] == begin:
                        del table.hot[i]
        await self.checkpoint(shard, cut)
        await self.log.discard(old)

    async def checkpoint(self, shard: int, cut: int) -> None:
        table = self.tables[shard]
        await self.log.checkpoint(
            Manifest(
                shard=ShardId(shard),
                spec=table.spec,
                generation=table.generation,
                flushed_through=cut,
                next_row_id=table.next_row_id,
                since=NO_TS,
                parts=tuple(
                    ManifestPart(ref=ref, ends=Ends.of(table.ends[name].items()))
                    for name, ref in table.parts.items()
                ),
            )
        )
