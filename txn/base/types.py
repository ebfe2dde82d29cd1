"""Values the transaction layer exchanges with its user: shard schemas, rows, snapshots.

``txn`` knows nothing of SQL. A shard has columns of *physical types*; a row is a tuple in the value domain
that the engine's users see (``planner.types`` documents it; the physical kinds below fix it):

    kind         Python value                    Parquet / Arrow
    bool         bool                            bool
    int16/32/64  int                             int16/32/64
    float32/64   float                           float32/64
    decimal      Decimal, exponent = -scale, NaN decimal128(precision, scale)
    numeric      Decimal of any scale, NaN, inf  struct<u: decimal128(38,0), s: int32>; s -1 is NaN,
                                                 -2 -Infinity, -3 Infinity (txn.values.columns); of both kinds,
                                                 where a value does not fit, the exact form (txn.values.exact)
    text         str                             string
    bytes        bytes                           binary
    tailed       bytes, whose last four say      binary
                 how many before them are not
                 compared
    uuid         bytes of 16                     fixed_size_binary(16)
    date         int days (+-(2**31-1) = inf)    date32
    time         int us                          time64[us]
    timetz       (int us, int s west)            struct<t: int64, z: int32>
    timestamp    int us (+-(2**63-1) = inf)      timestamp[us]
    timestamptz  int us                          timestamp[us, UTC]
    interval     (months, days, us)              struct<m: int32, d: int32, u: int64>
    list         tuple, or a BoundedArray        list<element>, flat, beside it a column c<attnum>_dims,
                                                 list<int32>: null where there is one dimension that begins
                                                 at 1; the sizes; or 0, the sizes, the lower bounds

A row's tuple is indexed by ``attnum - 1``: dropped columns leave a None slot, rows written before ADD COLUMN are
padded with the column's missing value when read, so RENAME, DROP and ADD COLUMN never touch stored rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NewType, TypeAlias

import msgspec

from pgwire.bounded import ROW_MARK as ROW_MARK
from pgwire.bounded import BoundedArray as BoundedArray
from pgwire.bounded import bounded as bounded
from pgwire.bounded import row_keeps_bounds as row_keeps_bounds

Timestamp = NewType("Timestamp", int)
ShardId = NewType("ShardId", int)
IndexId = NewType("IndexId", int)
RowId = NewType("RowId", int)
TxnId = NewType("TxnId", int)

Row: TypeAlias = tuple[Any, ...]
Key: TypeAlias = tuple[Any, ...]

Kind: TypeAlias = Literal[
    "bool", "int16", "int32", "int64", "float32", "float64", "decimal", "numeric", "text", "bytes", "tailed",
    "uuid", "date", "time", "timetz", "timestamp", "timestamptz", "interval", "list",
]  # fmt: skip


IndexKind: TypeAlias = Literal["sorted", "hash", "elements", "json", "json_paths", "lexemes", "intervals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalType:
    """A physical column type; ``precision``/``scale`` for decimal, ``element`` for list."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    element: PhysicalType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardColumn:
    """A column of a shard; ``missing_value`` stands for rows written before it existed."""

    attnum: int
    type: PhysicalType
    missing_value: Any = None
    dropped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardIndex:
    """An index: key attnums in order. NULLs sort last. ``kind`` hash serves equality only.

    Inverted indexes are of kind elements, json, json_paths or lexemes: a row has a key for each piece of the
    value of their one column (``txn.values.entries``), and they serve equality with one piece. In an index of
    kind intervals the key is made of the value of its one column, bytes (``txn.values.intervals``); else it
    is as a sorted one.

    Of a unique index two rows may share a key that is ``exempt``: one with NULL if ``nulls_distinct``; if
    ``guarded``, one whose last column is NULL, whatever the others are (a partial index whose NULLs are
    equal: the last column tells which rows are in it).
    """

    index: IndexId
    attnums: tuple[int, ...]
    unique: bool
    kind: IndexKind = "sorted"
    primary: bool = False
    nulls_distinct: bool = True
    guarded: bool = False

    def exempt(self, key: Key) -> bool:
        """Tell whether several rows may have a key, given by its values."""
        if self.guarded:
            return key[-1] is None
        return self.nulls_distinct and None in key

    @property
    def inverted(self) -> bool:
        """Whether a row has any number of keys in it."""
        return self.kind in ("elements", "json", "json_paths", "lexemes")

    @property
    def ordered(self) -> bool:
        """Whether ranges of its keys can be read."""
        return self.kind in ("sorted", "intervals")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSpec:
    """A shard's schema at one version. Parts record the version they were written under.

    ``timeline``: what its timestamps are of (``txn.log.timeline``); the same in all versions.
    """

    shard: ShardId
    version: int
    columns: tuple[ShardColumn, ...]
    indexes: tuple[ShardIndex, ...] = ()
    timeline: str = "epoch_ms"


class StoredRow(msgspec.Struct, frozen=True, gc=False):
    """A visible row: its id, values (padded to the reader's schema) and the begin timestamp.

    ``begin`` is 0 for the reader's own uncommitted version. A ``msgspec.Struct`` because point reads make one
    per row: it costs a tenth of a frozen dataclass.
    """

    row_id: RowId
    values: Row
    begin: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """A range of index keys: an equality prefix, then optional bounds on the next column.

    ``lower``/``upper`` None = unbounded. NULL never satisfies a bound. Empty ``prefix`` and no bounds = all.
    """

    prefix: Key = ()
    lower: Any = None
    lower_inclusive: bool = True
    upper: Any = None
    upper_inclusive: bool = True
    has_lower: bool = False
    has_upper: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRef:
    """An immutable Parquet file of row versions. ``path`` is absolute or a URL, as engines read it.

    Physical columns are ``c<attnum>`` plus ``s_row_id`` and ``s_begin`` (both int64). ``rows`` is its length;
    ``max_begin`` lets a reader at a later timestamp skip the begin filter.
    """

    name: str
    path: str
    rows: int
    bytes: int
    schema_version: int
    columns: tuple[int, ...]  # attnums present in the file
    min_begin: Timestamp
    max_begin: Timestamp


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """A part as one snapshot sees it.

    ``hidden``: an Arrow int64 array (sorted) of positions in the file whose rows the snapshot does not see
    (ended at or before its timestamp, begun after it, or replaced by the reader's own intents); None = none.
    ``row_bytes``: what a row takes as Arrow data, on average; 0 where it is not known.
    ``exact``: attnums of the columns that are in their exact form (``txn.values.exact``).
    """

    ref: PartRef
    hidden: Any  # pyarrow.Int64Array | None
    row_bytes: int = 0
    exact: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything of one shard that is visible at ``ts`` to one transaction: parts minus hidden, plus hot.

    ``hot`` is a pyarrow.Table with columns ``s_row_id``, ``s_begin`` and ``c<attnum>`` for every live column
    of ``spec`` (already padded), holding exactly the visible hot rows, own intents included. Immutable; what
    it names stays readable until ``release`` of the owning transaction's hold.
    """

    spec: ShardSpec
    ts: Timestamp
    parts: tuple[SnapshotPart, ...]
    hot: Any  # pyarrow.Table
    held: object = None
    """Keeps local copies of the parts, where these lie in an object store: readers of files reference the snapshot."""

    @property
    def rows(self) -> int:
        """Number of visible rows."""
        hidden = sum(0 if p.hidden is None else len(p.hidden) for p in self.parts)
        return sum(p.ref.rows for p in self.parts) - hidden + int(self.hot.num_rows)

    @property
    def row_bytes(self) -> int:
        """What a row takes as Arrow data on average, where that is most."""
        hot = int(self.hot.nbytes) // int(self.hot.num_rows) if self.hot.num_rows else 0
        return max([hot, *(part.row_bytes for part in self.parts)])

    @property
    def bytes(self) -> int:
        """Estimated bytes an engine reads (file sizes plus hot Arrow bytes)."""
        return sum(p.ref.bytes for p in self.parts) + int(self.hot.nbytes)


RowWait: TypeAlias = Literal["block", "nowait", "skip"]
"""What is done about a row that somebody else has locked."""


class ShardStats(NamedTuple):
    """Figures the router uses; cheap, possibly a little stale."""

    rows: int
    """Those that a scan would look at: rows deleted of late that are still in memory count."""
    hot_rows: int
    parts: int
    bytes: int
    ids: int
    """How many row ids have been given out: none is greater."""
    live: int
    """Rows without those that have been deleted."""
