"""Parts: immutable Parquet files of row versions, with their sidecars.

    <shard>/<epoch>-<id>.parquet    c1 c2 ... s_row_id s_begin; row groups of 16,384 or less; zstd; sorted by primary key
    <shard>/<epoch>-<id>.sys        row ids and begins (persist.sidecar)
    <shard>/<epoch>-<id>.x<index>   keys of one index

A part records the schema that it was written under in its footer, so RENAME, DROP and ADD COLUMN never touch it:
readers pad (``RowPlan``). A bulk load is written before its timestamp is known: its ``s_begin`` is 0 throughout
and the part's reference carries the timestamp once it is committed.

A row group has 2^n rows: as many as ``GROUP_BYTES`` hold, at most 16,384, so that one of values of a megabyte
is a few of them.

Point reads keep decoded row groups as Arrow in one cache with a byte budget: a cold row costs one row group
(a millisecond, in a thread), a warm one a microsecond or two on the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from txn.base.errors import CopyDamaged, DamagedFile, MissingFile, TxnError, UnknownFormat, anew
from txn.base.huge_values import LONG_LIST, SLOW_BYTES, minded, python_of
from txn.base.slices import in_turns
from txn.base.types import (
    IndexId,
    Key,
    KeyRange,
    PartRef,
    PhysicalType,
    Row,
    RowId,
    ShardColumn,
    ShardIndex,
    ShardSpec,
    Timestamp,
)
from txn.base.writers import Writers
from txn.persist.checksum import check_file, check_footer
from txn.persist.location import Blob, Offload
from txn.persist.parts.sidecar import KeySidecar, SortedKeys, SystemSidecar
from txn.persist.trouble import opened, reading, renewing, telling
from txn.values.arrow import ArrowTable
from txn.values.columns import Getter, RowPlan, column_fields, has_long, one_chunk, table_rows, value_getter
from txn.values.encoding import decode_spec
from txn.values.entries import entry_type
from txn.values.exact import exact_columns
from txn.values.keycodec import KeyCodec

_log = logging.getLogger(__name__)
T = TypeVar("T")

GROUP_BITS: Final = 14
GROUP_ROWS: Final = 1 << GROUP_BITS
GROUP_BYTES: Final = 8 << 20  # of Arrow data, on average over a part
DIGITS_BYTES: Final = 1 << 20
SCAN_BYTES: Final = 4 << 20  # of a scan's rows, made at once
FORMAT: Final = b"1"
BOUNDED_FORMAT: Final = b"2"
"""Of parts with arrays whose lower bounds are not all 1; else it is as format 1."""
BOUNDED_ROWS_FORMAT: Final = b"3"
"""Of parts with such arrays inside values of row types; else it is as format 2."""
EXACT_FORMAT: Final = b"4"
"""Of parts with columns in their exact form (``txn.values.exact``); else it is as format 3."""
_KNOWN: Final = (FORMAT, BOUNDED_FORMAT, BOUNDED_ROWS_FORMAT, EXACT_FORMAT)
GATHERED: Final = 32 << 10  # cells of rows that are made in one turn; more are made in a thread
_CHUNK_ROWS: Final = 4096  # rows turned into tuples between two chances for other threads
_CHUNK_CELLS: Final = (
    32 * _CHUNK_ROWS
)  # what rows that are read at once have together: freed in a few milliseconds
LISTS_BYTES: Final = LONG_LIST // 8  # of a column of lists that one may be long in, at least: of booleans
_TAKE_SHARE: Final = 32  # more than a 32nd of a group wanted: gather by column


def parquet_name(part: str) -> str:
    """Return the blob name of a part's file."""
    return f"{part}.parquet"


def system_name(part: str) -> str:
    """Return the blob name of a part's system sidecar."""
    return f"{part}.sys"


def sidecar_name(part: str, index: IndexId) -> str:
    """Return the blob name of a part's key sidecar for an index."""
    return f"{part}.x{index}"


def group_rows(row_bytes: int) -> int:
    """Return how many rows a row group of a part has whose rows take so many bytes on average."""
    fitting = max(GROUP_BYTES // max(row_bytes, 1), 1)
    return min(1 << (fitting.bit_length() - 1), GROUP_ROWS)


def part_of_blob(name: str) -> str:
    """Return the part that a blob belongs to."""
    return name.rpartition(".")[0]


def epoch_of_blob(name: str) -> int | None:
    """Return the epoch that wrote a blob, as far as its name tells (sidecars: the epoch of their part)."""
    stem, _, suffix = name.rpartition(".")
    text = suffix.removeprefix("ends") if suffix.startswith("ends") else stem.rpartition("/")[2]
    epoch = text.partition("-")[0]
    return int(epoch) if epoch.isdigit() else None


def index_codec(spec: ShardSpec, index: ShardIndex) -> KeyCodec:
    """Return the key codec of an index of a shard."""
    types = {c.attnum: c.type for c in spec.columns}
    if index.inverted:
        return KeyCodec([entry_type(index.kind, types[index.attnums[0]])])
    if index.kind == "intervals":
        return KeyCodec([PhysicalType(kind="bytes")])
    return KeyCodec([types[a] for a in index.attnums])


# -- reading ---------------------------------------------------------------------------------------


class RowGroup:
    """A decoded row group: Arrow columns, and functions that read one value of them."""

    __slots__ = ("_getters", "_lists", "_plan", "_plan_getters", "digits", "huge", "nbytes", "slow", "table")

    def __init__(self, table: ArrowTable) -> None:
        """``table``: one chunk per column."""
        self.table = table
        self.huge: dict[str, Huge] = _huge_columns(table) if table.nbytes >= SLOW_BYTES else {}
        """Columns with values that are read in steps (``row_slowly``)."""
        self._lists: list[memoryview] = _long_lists(table) if table.nbytes >= LISTS_BYTES else []
        """The offsets of columns with lists that are made in a thread."""
        self.slow = bool(self.huge or self._lists)
        """Whether there may be rows that take long to be made."""
        self.nbytes: int = table.nbytes
        self.digits = self.nbytes >= DIGITS_BYTES and bool(exact_columns(table.schema))
        """Whether there are numbers of which many are read in a thread: they may take half a millisecond each."""
        self._getters: dict[int, Getter] = {}
        self._plan: RowPlan | None = None  # the plan of ``_plan_getters``
        self._plan_getters: list[Getter] = []

    def _getter(self, attnum: int, type_: PhysicalType) -> Getter:
        getter = self._getters.get(attnum)
        if getter is None:
            dims = None
            if type_.kind == "list":
                dims = one_chunk(self.table.column(f"c{attnum}_dims"))
            getter = value_getter(one_chunk(self.table.column(f"c{attnum}")), type_, dims)
            self._getters[attnum] = getter
        return getter

    def row(self, i: int, plan: RowPlan) -> Row:
        """Return row ``i`` of the group."""
        if self._plan is plan:
            getters = self._plan_getters
        else:
            getters = [self._getter(a, t) for a, t in zip(plan.attnums, plan.types, strict=True)]
            self._plan, self._plan_getters = plan, getters
        if len(getters) == plan.width:
            return tuple([get(i) for get in getters])
        values = list(plan.constants)
        for attnum, get in zip(plan.attnums, getters, strict=True):
            values[attnum - 1] = get(i)
        return tuple(values)

    def is_huge(self, i: int) -> bool:
        """Tell whether a row has values that are read in steps."""
        return any(offsets[i + 1] - offsets[i] >= SLOW_BYTES for offsets, _data in self.huge.values())

    def elements(self, i: int) -> int:
        """Return how many elements the lists of a row have, of columns where one has many."""
        return sum([offsets[i + 1] - offsets[i] for offsets in self._lists])

    def is_slow(self, i: int) -> bool:
        """Tell whether a row takes long to be made."""
        return self.is_huge(i) or self.elements(i) > LONG_LIST

    def row_slowly(self, i: int, plan: RowPlan) -> Generator[None, None, Row]:
        """As ``row``, a millisecond's work between two yields."""
        values = list(plan.constants)
        for attnum, type_ in zip(plan.attnums, plan.types, strict=True):
            huge = self.huge.get(f"c{attnum}")
            start, end = (0, 0) if huge is None else huge[0][i : i + 2]
            if huge is None or end - start < SLOW_BYTES:
                values[attnum - 1] = self._getter(attnum, type_)(i)
            else:
                values[attnum - 1] = yield from python_of(huge[1][start:end], type_.kind == "text")
        return tuple(values)

    def rows(self, wanted: Sequence[int], plan: RowPlan) -> list[Row]:
        """Return several rows of the group."""
        if len(wanted) * _TAKE_SHARE < self.table.num_rows or len(wanted) < 4:
            return [self.row(i, plan) for i in wanted]
        return self.taken(wanted, plan)

    def taken(self, wanted: Sequence[int], plan: RowPlan) -> list[Row]:
        """Return several rows of the group by columns. Also for a thread: it changes nothing."""
        return table_rows(self.table.take(pa.array(wanted, pa.int64())), plan)


Huge: TypeAlias = tuple[memoryview, memoryview]
"""The offsets of a column's values, and their bytes."""


def _long_lists(table: ArrowTable) -> list[memoryview]:
    lists = [one_chunk(c) for c in table.columns if pa.types.is_list(c.type) and c.nbytes >= LISTS_BYTES]
    return [memoryview(c.buffers()[1]).cast("i")[c.offset :] for c in lists if has_long(c)]


def _huge_columns(table: ArrowTable) -> dict[str, Huge]:
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.nbytes >= SLOW_BYTES and (
            pa.types.is_string(column.type) or pa.types.is_binary(column.type)
        ):
            chunk = one_chunk(column)
            if (pc.max(pc.binary_length(chunk)).as_py() or 0) >= SLOW_BYTES:
                _, offsets, data = chunk.buffers()
                found[name] = memoryview(offsets).cast("i")[chunk.offset :], memoryview(data)
    return found


class RowGroupCache:
    """Decoded row groups of all parts, least recently used out first. Used on the loop only."""

    def __init__(self, budget_bytes: int) -> None:
        """``budget_bytes``: of Arrow data; a group larger than that is not kept."""
        self.budget_bytes = budget_bytes
        self.bytes = 0
        self.hits = 0
        self.misses = 0
        self._groups: OrderedDict[tuple[str, int], RowGroup] = OrderedDict()

    def get(self, part: str, group: int) -> RowGroup | None:
        """Return a group and mark it as used, None if it is not here."""
        key = (part, group)
        found = self._groups.get(key)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._groups.move_to_end(key)
        return found

    def put(self, part: str, group: int, value: RowGroup) -> None:
        """Keep a group, within the budget."""
        if value.nbytes > self.budget_bytes or (part, group) in self._groups:
            return
        self._groups[part, group] = value
        self.bytes += value.nbytes
        while self.bytes > self.budget_bytes:
            _, old = self._groups.popitem(last=False)
            self.bytes -= old.nbytes

    def drop(self, part: str) -> None:
        """Forget a part's groups."""
        for key in [k for k in self._groups if k[0] == part]:
            self.bytes -= self._groups.pop(key).nbytes


class Part:
    """An open part. Immutable and shared; made by ``open_part``. Positions are 0 .. ref.rows - 1.

    What is synchronous takes microseconds; the rest runs in a thread and may be awaited concurrently.
    """

    def __init__(
        self, ref: PartRef, blob: Blob, offload: Offload, cache: RowGroupCache, system: SystemSidecar,
        footer: Any,
    ) -> None:  # fmt: skip
        """Use ``open_part``."""
        self.ref = ref
        self.spec: ShardSpec = decode_spec(footer.metadata[b"holdfast.spec"], f"the schema in {ref.path}")
        """The schema that the part was written under."""
        self.remote = blob.remote
        """Whether the file has to be held (``hold``) while engines read it by its path."""
        self.row_bytes = int(footer.metadata.get(b"holdfast.row_bytes", 0))
        """What a row takes as Arrow data, on average."""
        self.exact = frozenset(map(int, footer.metadata.get(b"holdfast.exact", b"").split()))
        """The attnums of columns that are in their exact form."""
        self.verified = False
        """Whether the whole file has been checked (``verify``)."""
        self.damage: DamagedFile | None = None
        """What a read of a file of this part has found; merges leave the part alone from then on."""
        self._blob = blob
        self._offload = offload
        self._cache = cache
        self._system = system
        self._footer = footer
        groups = footer.num_row_groups
        rows = GROUP_ROWS if groups < 2 else footer.row_group(0).num_rows
        self._bits = rows.bit_length() - 1  # of a position within its group
        self._mask = (1 << self._bits) - 1
        self._sidecars: dict[IndexId, KeySidecar] = {}
        self._absent = set[IndexId]()  # sidecars that an object store does not have
        self._renewing: dict[IndexId, asyncio.Task[None]] = {}
        self._plans: dict[int, RowPlan] = {}
        self._loading: dict[int, asyncio.Task[RowGroup]] = {}
        self._known: dict[tuple[int, ...], Sequence[int]] = {}  # of keys that somebody has looked up ahead

    # -- by sidecar --------------------------------------------------------------------------------

    def row_id(self, position: int) -> RowId:
        """Return the row id at ``position``."""
        return RowId(self._system.row_id(position))

    def row_ids(self) -> Any:
        """Return the row ids by position as an Arrow int64 array."""
        return self._system.row_ids()

    def begin(self, position: int) -> Timestamp:
        """Return the begin at ``position`` (0 while a bulk load is not committed)."""
        ref = self.ref
        if ref.min_begin == ref.max_begin:
            return ref.min_begin
        return Timestamp(self._system.begin(position))

    @property
    def writers(self) -> Writers | None:
        """The told transactions among those that made its rows."""
        return self._system.writers

    def positions(self, row_id: RowId) -> Sequence[int]:
        """Return the positions of a row's versions (normally none or one)."""
        return self._system.positions(row_id)

    def _sidecar(self, index: IndexId) -> KeySidecar:
        sidecar = self._sidecars.get(index)
        if sidecar is None:
            path = self._blob.local_path(sidecar_name(self.ref.name, index))
            try:
                sidecar = reading(path, lambda: KeySidecar(path, lambda damage: self._found(index, damage)))
            except DamagedFile as error:
                raise self._found(index, error) from error
            self._sidecars[index] = sidecar
        return sidecar

    def _found(self, index: IndexId, damage: DamagedFile) -> Exception:
        """Return what to raise for damage that a sidecar shows, and remember it: not where a copy of it can
        be fetched anew.
        """
        if self.remote and self.damage is None and index not in self._absent:
            self._sidecars.pop(index, None)
            self._renew(index)
            return CopyDamaged(damage)
        if not isinstance(damage, MissingFile):
            self.damage = damage
        return damage

    def _renew(self, index: IndexId) -> None:
        """Fetch a sidecar anew and check it: at once in a thread, beside everything else on the loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._fetch_anew(index)
            return
        if index not in self._renewing:
            self._renewing[index] = task = loop.create_task(self._renewed(index))
            task.add_done_callback(lambda _: self._renewing.pop(index, None))

    async def _renewed(self, index: IndexId) -> None:
        try:
            await self._offload(lambda: self._fetch_anew(index))
        except TxnError as error:  # it is tried at the next use
            _log.warning("%s", error)
        self._sidecars.pop(index, None)

    def _fetch_anew(self, index: IndexId) -> None:
        """Fetch a sidecar; what is damaged, or missing, then is so. Raises StoreUnavailable, FileTrouble,
        OutOfSpace.
        """
        name = sidecar_name(self.ref.name, index)
        path = self._blob.local_path(name)

        def fetch() -> None:
            self._blob.renew(name)
            KeySidecar(path).check_all()

        try:
            reading(path, fetch)
        except MissingFile:
            self._absent.add(index)
        except DamagedFile as error:
            self.damage = error

    def forget_sidecar(self, index: IndexId) -> None:
        """Open the index's sidecar anew at its next use: it has been replaced."""
        self._sidecars.pop(index, None)
        self._absent.discard(index)

    def lookup(self, index: IndexId, key: Key) -> Sequence[int]:
        """Return positions whose key equals ``key`` (full, no NULLs). MissingFile: no such sidecar."""
        if self._known:
            found = self._known.get((index, *map(id, key)))
            if found is not None:
                return found
        return self._sidecar(index).lookup(key)

    async def look_up(self, index: IndexId, key: Key) -> None:
        """Look a key of megabytes up in a thread: until ``forget_key``, ``lookup`` knows what was found, of
        these very values.
        """
        try:
            sidecar = self._sidecar(index)
            self._known[index, *map(id, key)] = await self._offload(lambda: sidecar.lookup(key))
        except TxnError:
            return  # who looks it up is told, if anybody does

    def forget_key(self, index: IndexId, key: Key) -> None:
        """Forget what ``look_up`` has found."""
        self._known.pop((index, *map(id, key)), None)

    def count(self, index: IndexId, key: Key) -> int:
        """Return how many entries equal ``key`` (NULLs allowed). MissingFile: no such sidecar."""
        return self._sidecar(index).count(KeyRange(prefix=key))

    def count_range(self, index: IndexId, wanted: KeyRange) -> int:
        """Return how many entries lie in a range."""
        return self._sidecar(index).count(wanted)

    def sorted_keys(self, index: IndexId) -> SortedKeys:
        """Return the keys of an index as arrays; in a thread. Raises MissingFile, DamagedFile."""
        try:
            return self._sidecar(index).arrays()
        except CopyDamaged:  # in a thread it has been fetched anew by now
            return self._sidecar(index).arrays()

    def range(
        self, index: IndexId, key_range: KeyRange, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, int]]:
        """Yield (memcomparable key, position) in key order (``txn.values.keycodec``)."""
        return self._sidecar(index).range(key_range, reverse=reverse)

    def entries(
        self, index: IndexId, key_range: KeyRange, *, reverse: bool = False
    ) -> Iterator[tuple[Key, int]]:
        """Yield (key, position) in key order; the key's values equal the row's (``KeyCodec.decode``)."""
        return self._sidecar(index).entries(key_range, reverse=reverse)

    def key_after(self, index: IndexId, key_range: KeyRange) -> Key | None:
        """Return the first key beyond a range, whatever became of its row; None if there is none."""
        return self._sidecar(index).after(key_range)

    def key_ceiling(self, index: IndexId, key: Key) -> Key | None:
        """Return the first key at or above ``key``, whatever became of its row; None if there is none."""
        return self._sidecar(index).ceiling(key)

    # -- rows --------------------------------------------------------------------------------------

    def _plan(self, spec: ShardSpec) -> RowPlan:
        plan = self._plans.get(spec.version)
        if plan is None or (plan.spec is not spec and plan.spec != spec):
            plan = self._plans[spec.version] = RowPlan(spec, self.ref.columns)
        return plan

    def row(self, position: int, spec: ShardSpec) -> Row | Coroutine[Any, Any, Row]:
        """Return the row padded to ``spec``: at once if its row group is cached, else a coroutine, to be
        awaited or closed.
        """
        group = self._cache.get(self.ref.name, position >> self._bits)
        if group is not None and not (group.slow and group.is_slow(position & self._mask)):
            return group.row(position & self._mask, self._plan(spec))
        return self._load_row(position, spec)

    async def _load_row(self, position: int, spec: ShardSpec) -> Row:
        number = position >> self._bits
        group = self._cache.get(self.ref.name, number) or await self._load(number)
        return await self._row(group, position & self._mask, self._plan(spec))

    async def _row(self, group: RowGroup, i: int, plan: RowPlan) -> Row:
        if group.huge and group.is_huge(i):
            return await in_turns(group.row_slowly(i, plan))
        if group.slow and group.is_slow(i):
            (row,) = await self._offload(partial(group.taken, [i], plan))
            minded(row)
            return row
        return group.row(i, plan)

    def rows(self, positions: Sequence[int], spec: ShardSpec) -> list[Row] | Awaitable[list[Row]]:
        """Return the rows at ``positions`` in their order; at once if all their groups are cached."""
        by_group: dict[int, list[int]] = {}
        for i, position in enumerate(positions):
            by_group.setdefault(position >> self._bits, []).append(i)
        groups: dict[int, RowGroup] = {}
        for number in by_group:
            group = self._cache.get(self.ref.name, number)
            if group is None:
                return self._load_rows(positions, spec, by_group)
            if group.slow or (group.digits and len(positions) > 1):
                return self._load_rows(positions, spec, by_group)
            groups[number] = group
        if len(positions) * self._plan(spec).width > GATHERED:
            return self._load_rows(positions, spec, by_group)
        return self._gather(positions, spec, by_group, groups)

    async def _load_rows(
        self, positions: Sequence[int], spec: ShardSpec, by_group: dict[int, list[int]]
    ) -> list[Row]:
        result: list[Row] = [()] * len(positions)
        plan = self._plan(spec)
        for number, slots in by_group.items():  # one group at a time: they may not fit together
            group = self._cache.get(self.ref.name, number) or await self._load(number)
            wanted = [positions[i] & self._mask for i in slots]
            if group.huge:
                found = [await self._row(group, i, plan) for i in wanted]
            elif (
                group.digits
                or len(wanted) * plan.width > GATHERED
                or (group.slow and sum(map(group.elements, wanted)) > LONG_LIST)
            ):  # a thousand columns take as long for few rows as for many
                found = await self._offload(partial(group.taken, wanted, plan))
                for row in found if group.slow else ():
                    minded(row)
            else:
                found = group.rows(wanted, plan)
            for i, row in zip(slots, found, strict=True):
                result[i] = row
        return result

    def _gather(
        self, positions: Sequence[int], spec: ShardSpec, by_group: dict[int, list[int]],
        groups: dict[int, RowGroup],
    ) -> list[Row]:  # fmt: skip
        result: list[Row] = [()] * len(positions)
        plan = self._plan(spec)
        for number, slots in by_group.items():
            found = groups[number].rows([positions[i] & self._mask for i in slots], plan)
            for i, row in zip(slots, found, strict=True):
                result[i] = row
        return result

    async def _load(self, number: int) -> RowGroup:
        """Decode a row group in a thread, once for all who wait for it, and cache it."""
        task = self._loading.get(number)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._decode(number))
            self._loading[number] = task
            task.add_done_callback(lambda _: self._loading.pop(number, None))
        return await asyncio.shield(task)

    async def _decode(self, number: int) -> RowGroup:
        columns = self._names(self.ref.columns)
        group = await self._offload(lambda: RowGroup(self._read(number, columns)))
        self._cache.put(self.ref.name, number, group)
        return group

    def _names(self, attnums: Sequence[int]) -> list[str]:
        by_attnum: dict[int, ShardColumn] = {c.attnum: c for c in self.spec.columns}
        return [f.name for a in attnums for f in column_fields(by_attnum[a])]

    def _read(self, number: int, columns: list[str]) -> Any:
        # A reader of its own per call: they are not for several threads; the footer is shared.
        def read() -> Any:
            with self._open() as file:
                return file.read_row_group(number, columns=columns, use_threads=False).combine_chunks()

        return self._from_file(read)

    def _open(self) -> Any:
        return pq.ParquetFile(
            self._blob.source(parquet_name(self.ref.name)),
            metadata=self._footer,
            memory_map=True,
            pre_buffer=self.remote,
            page_checksum_verification=True,
        )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Tell of what a read of the file meets as ``telling`` does, and remember damage: nothing else."""
        try:
            with telling(self.ref.path):
                yield
        except DamagedFile as error:
            self.damage = error
            raise

    def _from_file(self, work: Callable[[], T]) -> T:
        """Do work that reads the file, again where what it meets may pass or the file can be fetched anew; in
        a thread.
        """
        with self._reading():
            return renewing(self.ref.path, work, lambda: self._blob.renew(parquet_name(self.ref.name)))

    async def verify(self) -> None:
        """Check the whole file, once: engines that read it by themselves check less. Raises DamagedFile."""
        if self.damage is not None:
            raise anew(self.damage)
        if not self.verified:
            held = await self.hold() if self.remote else None

            await self._offload(
                lambda: self._from_file(lambda: check_file(self.ref.path, self._system.file_crc))
            )
            del held
            self.verified = True

    async def hold(self) -> object:
        """Return what keeps the file at ``ref.path`` while it is referenced, where blobs are ``remote``.

        Raises DamagedFile, StoreUnavailable, OutOfSpace.
        """
        with self._reading():
            return await self._blob.hold(parquet_name(self.ref.name))

    async def scan(self, spec: ShardSpec) -> AsyncIterator[tuple[int, list[Row]]]:
        """Yield (first position, rows), in order: a row group, or of long rows some of it; decoded in a
        thread, not cached.
        """
        plan = self._plan(spec)
        columns = self._names(plan.attnums)
        cells = _CHUNK_CELLS // max(len(columns), 1)
        step = max(min(SCAN_BYTES // max(self.row_bytes, 1), cells, _CHUNK_ROWS), 1)
        first = 0
        for number in range(self._footer.num_row_groups):
            count = self._footer.row_group(number).num_rows
            if not columns:
                yield first, [plan.constants] * count
            elif step == _CHUNK_ROWS:
                yield first, await self._offload(partial(self._decoded, number, columns, plan))
            else:
                table = await self._offload(partial(self._read, number, columns))
                for at in range(0, count, step):
                    rows = await self._offload(partial(table_rows, table.slice(at, step), plan))
                    for row in rows:
                        minded(row)
                    yield first + at, rows
                    del rows
                del table
            first += count

    def _decoded(self, number: int, columns: list[str], plan: RowPlan) -> list[Row]:
        table = self._read(number, columns)
        rows: list[Row] = []
        for at in range(0, table.num_rows, _CHUNK_ROWS):
            rows += table_rows(table.slice(at, _CHUNK_ROWS), plan)
        return rows

    async def read_arrow(self, attnums: Sequence[int] | None = None) -> Any:
        """Return the part as a pyarrow.Table: the columns asked for (None: all), s_row_id and s_begin.

        ``s_begin`` is the true one, also for a bulk load.
        """
        names = [*self._names(self.ref.columns if attnums is None else attnums), "s_row_id", "s_begin"]

        def read_columns() -> Any:
            with self._open() as file:
                return file.read(columns=names, use_threads=False)

        def read() -> Any:
            table = self._from_file(read_columns)
            ref = self.ref
            if ref.min_begin == ref.max_begin:
                begins = pa.repeat(pa.scalar(ref.min_begin, pa.int64()), table.num_rows)
                table = table.set_column(table.column_names.index("s_begin"), "s_begin", begins)
            return table.replace_schema_metadata(None)

        return await self._offload(read)

    def forget_pages(self) -> Iterator[None]:
        """Let go of what has been read of sidecars, in slices: it comes back from the page cache when it is needed."""
        opened: list[KeySidecar | SystemSidecar] = [self._system, *self._sidecars.values()]
        for sidecar in opened:
            yield from sidecar.forget_slices()

    def close(self) -> None:
        """Drop cached groups. Mappings go with the last reference."""
        self._cache.drop(self.ref.name)
        self._sidecars.clear()


async def open_part(ref: PartRef, blob: Blob, offload: Offload, cache: RowGroupCache) -> Part:
    """Open a part: footer and system sidecar are read in a thread, key sidecars at first use.

    Raises:
        MissingFile: the part, or its system sidecar, is not there.
        UnknownFormat: a newer server wrote it.
        DamagedFile: footer or system sidecar are damaged, or their lengths are not the reference's.
        StoreUnavailable, OutOfSpace: an object store did not answer, or there is no space for the sidecars.
    """
    path = blob.local_path(parquet_name(ref.name))
    with telling(path):
        await blob.keep(ref.name)

    def load_footer(system: SystemSidecar) -> Any:
        source: Any = blob.source(parquet_name(ref.name))
        if isinstance(source, str):
            with opened(source) as local:
                check_footer(path, local, ref.bytes, system.footer_crc)
        else:
            check_footer(path, source, ref.bytes, system.footer_crc)
        with pq.ParquetFile(source, memory_map=True) as file:
            return file.metadata

    def load() -> tuple[Any, SystemSidecar]:
        name = system_name(ref.name)
        beside = blob.local_path(name)
        system = renewing(beside, lambda: SystemSidecar(beside), lambda: blob.renew(name))
        footer = renewing(path, lambda: load_footer(system), lambda: blob.renew(parquet_name(ref.name)))
        written = (footer.metadata or {}).get(b"holdfast.format")
        if written not in _KNOWN:
            raise UnknownFormat(f"{path} has format {written!r}; this server knows {_KNOWN[-1]!r}")
        if not footer.num_rows == system.rows == ref.rows:
            raise DamagedFile(
                path, f"it has {footer.num_rows} rows, its sidecar {system.rows}, not {ref.rows}"
            )
        return footer, system

    footer, system = await offload(load)
    return Part(ref, blob, offload, cache, system, footer)
