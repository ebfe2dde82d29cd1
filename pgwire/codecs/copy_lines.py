"""COPY FROM in formats made of lines: what text and CSV share.

    feed ──bytes──> rest │ complete lines ──decode──> lines ──take──> rows      what a line is worth: the format says
                    └ an incomplete line waits for more

How lines end is learnt from the first one, and holds for all. Of several wrong lines in one block the first is reported: a block that
fails is read again, line by line, from the state before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from pgwire.codecs.copy import CopyOptions, copy_context
from pgwire.codecs.errors import DataError
from pgwire.codecs.text import decode

MAX_LINE_BYTES: Final = 1 << 30


class CopyRows(NamedTuple):
    """Decoded rows and the line number of each (for errors found later)."""

    rows: list[list[Any]]
    lines: Sequence[int]


class ShortRow(DataError):
    """A row with too few fields: its fields and its line. One of them that does not read is the error that counts."""

    def __init__(self, message: str, where: str | None, fields: Sequence[str | None], line: int) -> None:
        """Make a 22P04."""
        super().__init__("22P04", message, where=where)
        self.fields = fields
        self.line = line


class CopyDecoder(Protocol):
    """What reads one format."""

    @property
    def next_line(self) -> int | None:
        """Number of the line that would come next; None within a header that is none."""

    def feed(self, data: bytes) -> CopyRows:
        """Take more bytes; return the rows that are complete. Raises DataError 22P04, 22021."""

    def finish(self) -> CopyRows:
        """The data ended; return what is left. Raises DataError if it ends inside a row."""

    def save(self) -> dict[str, Any]:
        """Return the decoder's state, for ``restore``."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state; it may be used once."""


NO_ROWS: Final = CopyRows([], ())


class LineDecoder:
    """What text and CSV share: cutting into lines, header, end marker, errors."""

    first_line: re.Pattern[bytes]  # everything before the first line end that is not data
    newline_found: str
    newline_hint: str
    return_found: str
    return_hint: str

    def __init__(self, options: CopyOptions, table: str, columns: Sequence[str]) -> None:
        """See ``copy_decoder``; ``columns``: one for each field of a row."""
        self.options = options
        self.table = table
        self.columns = tuple(columns)
        self.width = len(self.columns)
        self.delimiter = options.effective_delimiter
        self.null = options.effective_null
        self.rest = b""
        self.line = 0
        self.eol = ""  # "\n", "\r\n" or "\r" once a line has ended
        self.header_pending = bool(options.header)
        self.ended = False
        self.unterminated = False  # the last line had no line end

    def error(
        self, message: str, *, line: str | None = None, at: int = 0, hint: str | None = None
    ) -> DataError:
        """Return an error about a line (by default the last one read), with its CONTEXT."""
        return DataError(
            "22P04", message, hint=hint, where=copy_context(self.table, at or self.line, None, line)
        )

    def feed(self, data: bytes) -> CopyRows:
        """Take more bytes; return the rows that are complete."""
        if self.ended or not data:
            return NO_ROWS
        data = self.rest + data if self.rest else bytes(data)
        if not self.eol and not self._find_eol(data):
            self.rest = data
            self._check_rest()
            return NO_ROWS
        mark = b"\r" if self.eol == "\r" else b"\n"
        cut = data.rfind(mark)
        if cut < 0:
            self.rest = data
            self._check_rest()
            return NO_ROWS
        self.rest = data[cut + 1 :]
        return self._block(data[:cut])

    @property
    def next_line(self) -> int | None:
        """See CopyDecoder."""
        return self.line + 1

    def resume(self, eol: str, line: int) -> None:
        """Begin in the middle of a file whose rows end in ``eol``, behind ``line`` lines and any header."""
        self.eol, self.line, self.header_pending = eol, line, False

    def save(self) -> dict[str, Any]:
        """See CopyDecoder."""
        return dict(self.__dict__)

    def restore(self, state: dict[str, Any]) -> None:
        """See CopyDecoder."""
        self.__dict__.update(state)

    # What lets a caller read plain blocks of rows by other means (``copy_columns``), in turn with ``feed``.

    @property
    def between_rows(self) -> bool:
        """Whether what comes next is the beginning of a row of data, and rows end in newlines."""
        return self.eol in ("\n", "\r\n") and not (
            self.rest or self.header_pending or self.ended or self.inside_row
        )

    @property
    def inside_row(self) -> bool:
        """Whether a line has ended that did not end its row."""
        raise NotImplementedError

    def take_rest(self) -> bytes:
        """Hand out the beginning of a line that ``feed`` keeps; it belongs before the next data."""
        rest, self.rest = self.rest, b""
        return rest

    def pass_lines(self, count: int) -> None:
        """Count lines that were read elsewhere."""
        self.line += count

    def _check_rest(self) -> None:
        if len(self.rest) > MAX_LINE_BYTES:
            raise DataError("54000", "line is too long", where=copy_context(self.table, self.line + 1))

    def _find_eol(self, data: bytes) -> bool:
        """Learn how lines end from the first one; False if no line has ended yet."""
        match = self.first_line.match(data)
        end = match.end() if match else 0
        mark, following = data[end : end + 1], data[end + 1 : end + 2]
        if mark == b"\n":
            self.eol = "\n"
        elif mark == b"\r" and following:
            self.eol = "\r\n" if following == b"\n" else "\r"
        return bool(self.eol)

    def finish(self) -> CopyRows:
        """Return what is left at the end of the data."""
        rest, self.rest = self.rest, b""
        if self.ended or not rest:
            if self.header_pending and self.width and not self.ended:
                self.line += 1
                self.header([None if self.null == "" else ""], "")
            return self.end(NO_ROWS)
        self.unterminated = True
        if rest.endswith(b"\r") and self.eol != "\n":
            rest = rest[:-1]
            self.eol = self.eol or "\r"
            if self.eol == "\r\n":
                rest += b"\r"
        elif self.eol == "\r\n":
            rest += b"\r"
        return self.end(self._block(rest))

    def end(self, rows: CopyRows) -> CopyRows:
        """Hook for formats that can be inside a row at the end."""
        return rows

    def _block(self, block: bytes) -> CopyRows:
        """Decode complete lines (without the final line end); of several wrong ones the first is reported."""
        mark = b"\r" if self.eol == "\r" else b"\n"
        if mark not in block:
            return self._lines(block)
        before = self.save()
        try:
            return self._lines(block)
        except DataError:
            self.restore(before)
        # Line by line: an earlier line may be wrong as well, or end the data.
        rows: list[list[Any]] = []
        numbers: list[int] = []
        for line in block.split(mark):
            found = self._lines(line)
            rows += found.rows
            numbers += found.lines
            if self.ended:
                break
        return CopyRows(rows, numbers)

    def _lines(self, block: bytes) -> CopyRows:
        """Decode complete lines. Raises DataError, not always that of the first wrong one."""
        try:
            text = decode(block)
        except DataError as error:
            error.where = copy_context(self.table, self.line + self._bad_line(block))
            raise
        if self.eol == "\r":
            if "\n" in text:
                self._literal(text.split("\r"), "\n")
            lines = text.split("\r")
        else:
            lines = text.split("\n")
            if "\r" in text:
                lines = self._returns(lines)
            elif self.eol == "\r\n":
                self._missing_return(lines)
        return self.take(lines)

    def _bad_line(self, block: bytes) -> int:
        for number, line in enumerate(block.split(b"\r" if self.eol == "\r" else b"\n"), 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
        return 1

    # CSV overrides these three: inside quotes every line end is data.
    def _returns(self, lines: list[str]) -> list[str]:
        if self.eol == "\r\n":
            self._missing_return(lines)
            lines = [line[:-1] for line in lines]
        for number, line in enumerate(lines, 1):
            if "\r" in line and not self._all_escaped(line, "\r"):
                raise self.error(self.return_found, at=self.line + number, hint=self.return_hint)
        return lines

    def _missing_return(self, lines: list[str]) -> None:
        for number, line in enumerate(lines, 1):
            if not line.endswith("\r"):
                raise self.error(self.newline_found, at=self.line + number, hint=self.newline_hint)

    def _literal(self, lines: list[str], mark: str) -> None:
        for number, line in enumerate(lines, 1):
            if mark in line and not self._all_escaped(line, mark):
                raise self.error(self.newline_found, at=self.line + number, hint=self.newline_hint)

    def _all_escaped(self, line: str, mark: str) -> bool:
        at = line.find(mark)
        while at >= 0:
            slashes = at - len(line[:at].rstrip("\\"))
            if slashes % 2 == 0:
                return False
            at = line.find(mark, at + 1)
        return True

    def take(self, lines: list[str]) -> CopyRows:
        """Decode complete lines, without their ends; the formats do this."""
        raise NotImplementedError

    def check_width(self, fields: list[Any], line: str, number: int) -> None:
        """Raise if a row has too few or too many fields."""
        if len(fields) < self.width:
            name = self.columns[len(fields)]
            where = copy_context(self.table, number, None, line)
            raise ShortRow(f'missing data for column "{name}"', where, fields, number)
        if len(fields) > self.width:
            raise self.error("extra data after last expected column", line=line, at=number)

    def header(self, fields: list[str | None], line: str) -> None:
        """Check a header line (MATCH), or just pass it."""
        self.header_pending = False
        if self.options.header != "match":
            return
        if len(fields) != self.width:
            raise self.error(
                f"wrong number of fields in header line: got {len(fields)}, expected {self.width}",
                line=line,
            )
        for number, (found, name) in enumerate(zip(fields, self.columns, strict=True), 1):
            if found is None:
                raise self.error(
                    f"column name mismatch in header line field {number}: "
                    f'got null value ("{self.null}"), expected "{name}"',
                    line=line,
                )
            if found != name:
                raise self.error(
                    f'column name mismatch in header line field {number}: got "{found}", expected "{name}"',
                    line=line,
                )
