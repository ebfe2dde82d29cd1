"""Where figures stay over a restart: in the data directory, as what may be lost.

    <data>/statistics/<shard>.parts      the figures of a table's parts by their names
    <data>/statistics/analyzed           what ANALYZE has found, by table
    <data>/statistics/extended           what it has found by statistics objects, by their oids

A file is a line that names its format and whose sketches it has, then its content's CRC-32 and the content
(MessagePack). One that is of another version, cut short or damaged is taken for none: it is made again from
the parts. A file appears whole, by a rename.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from engine.base.statistics_records import ExtendedRecord, TableRecord
from engine.executors.statistics.figures import PartFigures
from txn.persist.trouble import opened, whole

FORMAT: Final = "holdfast statistics 1"
ANALYZED: Final = "analyzed"
EXTENDED: Final = "extended"
PARTS: Final = ".parts"
T = TypeVar("T")

log = logging.getLogger("holdfast")


class StatisticsFiles:
    """The files of one server. Blocks; its caller has one thread at a time write."""

    def __init__(self, folder: Path, sketches: str) -> None:
        """``sketches``: who made them, and by which version: those of others are not read."""
        self._folder = folder
        self._head = f"{FORMAT}, {sketches}\n".encode()

    def parts(self, shard: int) -> dict[str, PartFigures]:
        """Return the figures of a table's parts, as far as they are there."""
        return self._read(f"{shard}{PARTS}", dict[str, PartFigures]) or {}

    def write_parts(self, shard: int, parts: Mapping[str, PartFigures]) -> None:
        """Note the figures of a table's parts in place of those before. Raises OSError."""
        self._write(f"{shard}{PARTS}", parts)

    def records(self) -> dict[int, TableRecord]:
        """Return what ANALYZE has found."""
        return self._read(ANALYZED, dict[int, TableRecord]) or {}

    def write_records(self, records: Mapping[int, TableRecord]) -> None:
        """Note what ANALYZE has found. Raises OSError."""
        self._write(ANALYZED, records)

    def extended(self) -> dict[int, ExtendedRecord]:
        """Return what ANALYZE has found by statistics objects."""
        return self._read(EXTENDED, dict[int, ExtendedRecord]) or {}

    def write_extended(self, records: Mapping[int, ExtendedRecord]) -> None:
        """Note what ANALYZE has found by statistics objects. Raises OSError."""
        self._write(EXTENDED, records)

    def sweep(self, shards: Container[int]) -> None:
        """Remove files of tables that there are no more. Raises OSError."""
        for path in self._folder.glob(f"*{PARTS}") if self._folder.exists() else ():
            if not path.stem.isdecimal() or int(path.stem) not in shards:
                path.unlink(missing_ok=True)

    def _read(self, name: str, type_: type[T]) -> T | None:
        try:
            with opened(str(self._folder / name)) as file:
                data = whole(file)
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning("statistics are counted anew: %s", error)
            return None
        at = len(self._head) + 4
        if not data.startswith(self._head):
            return None
        if zlib.crc32(data[at:]) != int.from_bytes(data[at - 4 : at], "big"):
            log.warning("statistics are counted anew: %s is damaged", self._folder / name)
            return None
        return msgspec.msgpack.decode(data[at:], type=type_)

    def _write(self, name: str, content: object) -> None:
        data = msgspec.msgpack.encode(content)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / name
        temporary = self._folder / f"{name}.new"
        try:
            temporary.write_bytes(self._head + zlib.crc32(data).to_bytes(4, "big") + data)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)  # half of one would take what a full disk has left
            raise
