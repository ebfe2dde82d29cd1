"""Views of tables that stay in a session, so that a query over what has not changed since another one
registers nothing.

    query ──enter(key)──> view, the file of its hot rows, how many queries read it ──> its name
          ──leave───────> one reader less; those that nobody reads go when there are too many, the least
          recently used first

Registering takes Spark tens of milliseconds a table: files are looked up and listed, a view is analysed
twice. A key says everything that a view's rows depend on. A part's file never has other content, the
positions of hidden rows are the very same object as long as none has come or gone, and hot rows that lie
where they lay are the same: Arrow data does not change, and an entry keeps its own in memory, so that nothing
else can come to lie there.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT_VIEWS: Final = 64
KEPT_BYTES: Final = 32 << 20
"""Arrow data that views keep in memory."""
MAX_CHUNKS: Final = 2000
"""Of a table of hot rows whose place in memory is looked up; one of more is another table each time."""


@dataclass(slots=True)
class Entry:
    """A view: its name, who reads it, what its key names (kept in memory), the file made for it."""

    view: str
    readers: int
    kept: object
    bytes: int
    file: Path | None


class TableViews:
    """The views of one session. Used by several threads; ``leave`` from any, the event loop too."""

    def __init__(self, session: SparkSession, name: str) -> None:
        """``name``: what the views' names begin with."""
        self._session = session
        self._name = name
        self._made = 0
        self._entries: OrderedDict[Hashable, Entry] = OrderedDict()
        self._lock = threading.Lock()

    def enter(
        self, key: Hashable, make: Callable[[str], tuple[Any, Path | None]], kept: object, kept_bytes: int
    ) -> Entry:
        """Return the view of a key, to be left once the query reads nothing any more. Blocks.

        Args:
            key: see above.
            make: given the view's name, returns its frame and a file that was written for it.
            kept: what the key names by its identity.
            kept_bytes: how much Arrow data that holds.
        """
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                self._made += 1
                view = f"{self._name}_{self._made}"
                frame, file = make(view)
                frame.createOrReplaceTempView(view)
                found = self._entries[key] = Entry(view, 0, kept, kept_bytes, file)
            self._entries.move_to_end(key)
            found.readers += 1
            self._make_room()
            return found

    def leave(self, entry: Entry) -> None:
        """Note that a query has ended."""
        with self._lock:
            entry.readers -= 1

    def _make_room(self) -> None:
        count, size = len(self._entries), sum(entry.bytes for entry in self._entries.values())
        for key, entry in list(self._entries.items()):
            if count <= KEPT_VIEWS and size <= KEPT_BYTES:
                return
            if entry.readers:
                continue
            del self._entries[key]
            count, size = count - 1, size - entry.bytes
            self._session.catalog.dropTempView(entry.view)
            if entry.file is not None:
                entry.file.unlink(missing_ok=True)

    def discard(self) -> None:
        """Delete the files; the JVM has ended."""
        with self._lock:
            for entry in self._entries.values():
                if entry.file is not None:
                    entry.file.unlink(missing_ok=True)
            self._entries.clear()


def place_of(table: Any) -> Hashable:
    """Return where an Arrow table lies in memory: equal of two tables in memory only if they are the same rows."""
    if table is None:
        return None
    if sum(column.num_chunks for column in table.columns) > MAX_CHUNKS:
        return object()
    return tuple(
        (name, tuple(_place(chunk) for chunk in column.chunks))
        for name, column in zip(table.column_names, table.columns, strict=True)
    )


def _place(chunk: Any) -> Hashable:
    buffers = tuple(0 if each is None else each.address for each in chunk.buffers())
    return str(chunk.type), chunk.offset, len(chunk), buffers
