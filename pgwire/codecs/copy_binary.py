"""COPY FROM in binary format.

    signature  flags  extension │ count  size bytes  size bytes ... │ ... │ -1
    the header                  │ a row: a size of -1 is NULL       │     │ the end, which may be missing

Fields come as bytes, for the codecs' binary forms. The number of a "line" is that of the row.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from pgwire.codecs.copy import BINARY_SIGNATURE, copy_context
from pgwire.codecs.copy_lines import NO_ROWS, CopyRows
from pgwire.codecs.errors import DataError

MAX_FIELD_BYTES: Final = 1 << 30


class BinaryDecoder:
    """Binary format; fields are bytes."""

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        """See ``copy_decoder``."""
        self.table = table
        self.columns = tuple(columns)
        self.buffer = bytearray()
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
        self.buffer += data
        if self.state == "header" and not self._header():
            return NO_ROWS
        return self._rows()

    @property
    def next_line(self) -> int | None:
        """See CopyDecoder."""
        return None if self.state == "header" else self.line + 1

    def save(self) -> dict[str, Any]:
        """See CopyDecoder."""
        return self.__dict__ | {"buffer": bytearray(self.buffer)}

    def restore(self, state: dict[str, Any]) -> None:
        """See CopyDecoder."""
        self.__dict__.update(state)

    def _header(self, *, ended: bool = False) -> bool:
        """Take the header if it is there. Errors in it have no CONTEXT. ``ended``: no more bytes will come."""
        buffer = self.buffer
        known = buffer[: len(BINARY_SIGNATURE)]
        if not BINARY_SIGNATURE.startswith(bytes(known)) or (ended and len(buffer) < len(BINARY_SIGNATURE)):
            raise DataError("22P04", "COPY file signature not recognized")
        if len(buffer) < 15:
            if ended:
                raise DataError("22P04", "invalid COPY file header (missing flags)")
            return False
        (flags,) = struct.unpack_from(">I", buffer, 11)
        if flags & 1 << 16:
            raise DataError("22P04", "invalid COPY file header (WITH OIDS)")
        if flags >> 16:
            raise DataError("22P04", "unrecognized critical flags in COPY file header")
        if len(buffer) < 19 and not ended:
            return False
        extension = struct.unpack_from(">i", buffer, 15)[0] if len(buffer) >= 19 else -1
        if extension < 0:
            raise DataError("22P04", "invalid COPY file header (missing length)")
        if len(buffer) < 19 + extension:
            if ended:
                raise DataError("22P04", "invalid COPY file header (wrong length)")
            return False
        del buffer[: 19 + extension]
        self.state = "rows"
        return True

    def _rows(self) -> CopyRows:
        buffer = bytes(self.buffer)
        width, end = len(self.columns), len(buffer)
        rows: list[list[bytes | None]] = []
        first = self.line + 1
        at = 0
        int32: Callable[..., tuple[Any, ...]] = struct.Struct(">i").unpack_from
        while at + 2 <= end:
            count = int.from_bytes(buffer[at : at + 2], "big", signed=True)
            if count == -1:
                self.state = "done"
                if end > at + 2:
                    raise self.error("received copy data after EOF marker")
                at = end
                break
            self.line = first + len(rows)
            if count != width:
                raise self.error(f"row field count is {count}, expected {width}")
            position = at + 2
            row: list[bytes | None] = []
            for _ in range(width):
                if position + 4 > end:
                    break
                (size,) = int32(buffer, position)
                position += 4
                if size == -1:
                    row.append(None)
                    continue
                if size < 0 or size > MAX_FIELD_BYTES:
                    raise self.error("invalid field size", self.columns[len(row)])
                if position + size > end:
                    break
                row.append(buffer[position : position + size])
                position += size
            else:
                rows.append(row)
                at = position
                continue
            self.line = first + len(rows) - 1
            break
        del self.buffer[:at]
        return CopyRows(rows, range(first, first + len(rows)))

    def finish(self) -> CopyRows:
        """See CopyDecoder."""
        if self.state == "header":
            self._header(ended=True)
        if len(self.buffer) < 2:  # no count of fields: the end, as PostgreSQL sees it
            return NO_ROWS
        self.line += 1
        at, column = 2, 0
        while at + 4 <= len(self.buffer):
            at += 4 + max(int.from_bytes(self.buffer[at : at + 4], "big", signed=True), 0)
            column += at <= len(self.buffer)
        raise self.error("unexpected EOF in COPY data", self.columns[column])
