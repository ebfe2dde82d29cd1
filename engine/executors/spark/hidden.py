"""The rows of part files that a snapshot does not see, as an array of 64-bit words that Spark looks each row up in.

    bases    bit | bit | ... | bit                      words    bits of part A ... | bits of part B ... |
             slot 0            slot n-1

    a row    slot = size of its file % n       bit = base of the slot + its position in the file

An anti-join with the positions costs 100 ns a row (a hash probe, and a job that broadcasts them); this costs 25 ns,
and what stands above it still sees a plain scan: filters reach the files, sizes are theirs. One bit for each row of a
part with hidden rows is 1.5 % of a byte per column read, at most ``MAX_BITS`` in all; beyond, the anti-join serves.

A file is told by its size, a number that Spark knows without reading. ``slots_for`` finds how many slots keep the
parts with hidden rows apart from each other and from everything else; files of exactly the same size cannot be, and are
read by themselves. The base of an empty slot is far below zero, so that no bit is found there.

The expression names ``words`` once, since Spark's tasks get a copy of an array for each time an expression does.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_BITS: Final = 2**26
"""Rows of parts with hidden rows in one scan: eight megabytes, which travel with each task."""
MAX_SLOTS: Final = 2**14
_NOWHERE: Final = -(2**36)  # negative after any position is added; as an index it still fits 32 bits
KEPT_VIEWS: Final = 16
KEPT_BYTES: Final = 2**25
"""Arrays that stay in a session, so that a query over what has not changed hands nothing over; the newest
always does."""


@dataclass(frozen=True, slots=True)
class HoledPart:
    """A part with hidden rows: its file, how many rows it has, the sorted positions (Arrow int64)."""

    path: str
    rows: int
    positions: Any


def slots_for(holed: Sequence[int], others: Sequence[int]) -> int | None:
    """Return the least number of slots in which files of these sizes are told apart.

    ``holed`` differ from each other and from ``others``, which may share slots. None: ``MAX_SLOTS`` are too few, or
    two sizes are the same.
    """
    for slots in range(max(len(holed), 1), MAX_SLOTS + 1):
        taken = {size % slots for size in holed}
        if len(taken) == len(holed) and not any(size % slots in taken for size in others):
            return slots
    return None


def words_of(parts: Sequence[HoledPart], sizes: Sequence[int], slots: int) -> tuple[Any, Any]:
    """Return bases and words (Arrow int64) for parts of these file sizes."""
    bases = array("q", [_NOWHERE]) * slots
    pieces: list[bytes] = []
    at = 0
    for part, size in zip(parts, sizes, strict=True):
        bases[size % slots] = at
        bits = _bits(part)
        pieces.append(bits)
        at += len(bits) * 8
    return _int64(bases.tobytes()), _int64(b"".join(pieces))


def _int64(data: bytes) -> Any:
    return pa.Array.from_buffers(pa.int64(), len(data) // 8, [None, pa.py_buffer(data)])


def _bits(part: HoledPart) -> bytes:
    """Return one bit a row, the lowest first, set where it is hidden; whole words.

    Scattering values by position makes an array that is valid where one landed: its validity is the bits.
    """
    size = (part.rows + 63) // 64 * 8
    if len(part.positions) == part.rows:
        return b"\xff" * size
    spread = pc.call_function(
        "scatter",
        [pa.repeat(pa.scalar(True), len(part.positions)), part.positions],
        pc.ScatterOptions(max_index=part.rows - 1),
    )
    return bytes(spread.buffers()[0])[: (part.rows + 7) // 8].ljust(size, b"\0")


def is_hidden(arrays: tuple[str, str], slots: int, file_size: str, position: str) -> str:
    """Return the SQL that tells whether a row is hidden; never NULL. ``arrays``: SQL of bases and words."""
    bases, words = arrays
    bit = f"(get({bases}, CAST({file_size} % {slots} AS INT)) + {position})"
    word = f"get({words}, CAST(shiftright({bit}, 6) AS INT))"
    return f"coalesce(shiftright({word}, CAST({bit} & 63 AS INT)) & 1, 0) = 1"


class HiddenViews:
    """The arrays that a session's queries use, as one-row views, the latest ``KEPT_VIEWS`` of at most ``KEPT_BYTES``.

    Used by several threads.

    One that is dropped stays with the queries that were analysed with it.
    """

    def __init__(self, session: SparkSession, name: str) -> None:
        """``name``: what the views' names begin with."""
        self._session = session
        self._name = name
        self._made = 0
        self._kept: OrderedDict[tuple[object, ...], tuple[str, tuple[HoledPart, ...], int]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def arrays_sql(
        self, parts: tuple[HoledPart, ...], sizes: tuple[int, ...], slots: int
    ) -> Iterator[tuple[str, str]]:
        """Yield SQL for the parts' bases and words, good until the context ends: analyse what uses it before.
        Blocks.
        """
        # The positions are the very same object as long as nothing of the part has ended.
        key = (slots, *((part.path, id(part.positions)) for part in parts))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            else:
                self._made += 1
                view = f"{self._name}_{self._made}"
                arrays = words_of(parts, sizes, slots)
                table = pa.table(
                    {n: pa.ListArray.from_arrays([0, len(a)], a) for n, a in zip("bw", arrays, strict=True)}
                )
                frame = self._session.createDataFrame(
                    table, schema=_parsed("b ARRAY<BIGINT>, w ARRAY<BIGINT>")
                )
                frame.createOrReplaceTempView(view)
                self._kept[key] = (view, parts, sum(a.nbytes for a in arrays))
                self._make_room()
            view = self._kept[key][0]
            yield f"(SELECT b FROM {view})", f"(SELECT w FROM {view})"

    def _make_room(self) -> None:
        while len(self._kept) > 1 and (
            len(self._kept) > KEPT_VIEWS or sum(size for *_, size in self._kept.values()) > KEPT_BYTES
        ):
            _, (view, *_) = self._kept.popitem(last=False)
            self._session.catalog.dropTempView(view)


def _parsed(ddl: str) -> Any:
    from pyspark.sql.types import _parse_datatype_string

    return _parse_datatype_string(ddl)
