"""COPY FROM in binary format.

    signature  flags  extension │ count  size bytes  size bytes ... │ ... │ -1
    the header                  │ a row: a size of -1 is NULL       │     │ the end, which may be missing

Fields come as bytes, for the codecs' binary forms. The number of a "line" is that of the row. Of a row that
is not complete the fields that are there are kept, and behind them only what has come: it is put together
once the field's last byte is there, so a field of many megabytes costs as much as many fields.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from pgwire.codecs.copy import BINARY_SIGNATURE, copy_context
from pgwire.codecs.copy.lines import EMPTY, NO_ROWS, CopyRows
from pgwire.codecs.errors import DataError
from pgwire.long.values import LONG, cut_bytes

MAX_FIELD_BYTES: Final = 1 << 30


class BinaryDecoder:
    """Binary format; fields are bytes."""

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        """See ``copy_decoder``."""
        self.table = table
        self.columns = tuple(columns)
        self.rest = EMPTY  # what has come of the header, or behind the fields of ``row``
        self.needed = 0  # bytes of it, before which nothing more can be told
        self.row: list[bytes | None] | None = None  # the fields so far of the row that has begun
        self.line = 0
        self.state = "header"

    def error(self, message: str, column: str | None = None) -> DataError:
        """Return an error about the row last begun, with its CONTEXT."""
        return DataError("22P04", message, where=copy_context(self.table, self.line, column, binary=True))

    def feed(self, data: bytes) -> CopyRows:
        """See CopyDecoder."""
        if self.state == "done":
            if data:
                raise self.error("received copy data after EOF marker")
            return NO_ROWS
        if self.rest.size + len(data) < self.needed:
            self.rest = self.rest.plus(bytes(data))
            return NO_ROWS
        buffer, self.rest = self.rest.whole(data), EMPTY
        at = 0
        if self.state == "header":
            after = self._header(buffer)
            if after is None:
                self.rest = EMPTY.plus(buffer)
                return NO_ROWS
            at = after
        return self._rows(buffer, at)

    @property
    def next_line(self) -> int | None:
        """See CopyDecoder."""
        return None if self.state == "header" else self.line + 1

    def save(self) -> dict[str, Any]:
        """See CopyDecoder."""
        return self.__dict__ | {"row": None if self.row is None else list(self.row)}

    def restore(self, state: dict[str, Any]) -> None:
        """See CopyDecoder."""
        self.__dict__.update(state)

    def _header(self, buffer: bytes, *, ended: bool = False) -> int | None:
        """Return where the header ends, None if it is not there yet. Errors in it have no CONTEXT. ``ended``:
        no more bytes will come.
        """
        known = buffer[: len(BINARY_SIGNATURE)]
        if not BINARY_SIGNATURE.startswith(known) or (ended and len(buffer) < len(BINARY_SIGNATURE)):
            raise DataError("22P04", "COPY file signature not recognized")
        if len(buffer) < 15:
            if ended:
                raise DataError("22P04", "invalid COPY file header (missing flags)")
            return None
        (flags,) = struct.unpack_from(">I", buffer, 11)
        if flags & 1 << 16:
            raise DataError("22P04", "invalid COPY file header (WITH OIDS)")
        if flags >> 16:
            raise DataError("22P04", "unrecognized critical flags in COPY file header")
        if len(buffer) < 19 and not ended:
            return None
        extension = struct.unpack_from(">i", buffer, 15)[0] if len(buffer) >= 19 else -1
        if extension < 0:
            raise DataError("22P04", "invalid COPY file header (missing length)")
        if len(buffer) < 19 + extension:
            if ended:
                raise DataError("22P04", "invalid COPY file header (wrong length)")
            self.needed = 19 + extension
            return None
        self.state = "rows"
        return 19 + extension

    def _rows(self, buffer: bytes, at: int) -> CopyRows:
        """Take the rows that end in ``buffer``, from ``at`` on, and keep what is left of it."""
        width, end = len(self.columns), len(buffer)
        rows: list[list[bytes | None]] = []
        first = self.line + 1
        row, needed = self.row, 2
        if row is not None:
            self.line = first
        int32: Callable[..., tuple[Any, ...]] = struct.Struct(">i").unpack_from
        while row is not None or at + 2 <= end:
            if row is None:
                count = int.from_bytes(buffer[at : at + 2], "big", signed=True)
                at += 2
                if count == -1:
                    self.state = "done"
                    if end > at:
                        raise self.error("received copy data after EOF marker")
                    break
                self.line = first + len(rows)
                if count != width:
                    raise self.error(f"row field count is {count}, expected {width}")
                row = []
            for _ in range(width - len(row)):
                if at + 4 > end:
                    needed = 4
                    break
                (size,) = int32(buffer, at)
                if size == -1:
                    row.append(None)
                    at += 4
                    continue
                if size < 0 or size > MAX_FIELD_BYTES:
                    raise self.error("invalid field size", self.columns[len(row)])
                position = at + 4
                if position + size > end:
                    needed = 4 + size
                    break
                at = position + size
                row.append(buffer[position:at] if size < LONG else cut_bytes(buffer, position, at))
            else:
                rows.append(row)
                row, needed = None, 2
                continue
            self.line = first + len(rows) - 1
            break
        self.row, self.needed = row, needed
        self.rest = EMPTY.plus(buffer[at:])
        return CopyRows(rows, range(first, first + len(rows)))

    def finish(self) -> CopyRows:
        """See CopyDecoder."""
        rest = self.rest.whole()
        if self.state == "header":
            rest = rest[self._header(rest, ended=True) :]
        if self.row is None and len(rest) < 2:  # no count of fields: the end, as PostgreSQL sees it
            return NO_ROWS
        self.line += 1
        raise self.error("unexpected EOF in COPY data", self.columns[len(self.row or ())])
