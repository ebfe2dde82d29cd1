r"""COPY FROM: chunks of bytes of any size -> rows of field texts (or bytes, in binary format).

    decoder = copy_decoder(options, "t", ("a", "b"))
    batch = decoder.feed(data)      rows [["1", None], ...], lines [1, ...]
    batch = decoder.finish()

Whole blocks of lines are split at C speed as long as they hold nothing special (no backslash in text format, no
quote in CSV); other lines take the careful path. Rows always have one field per column. Line numbers are
PostgreSQL's: the number of lines read when the row was complete.

After an error a decoder is dead, unless it is restored to what ``save`` returned.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from pgwire.codecs.copy import BINARY_SIGNATURE, CopyOptions, copy_context
from pgwire.codecs.errors import DataError
from pgwire.codecs.text import decode

MAX_FIELD_BYTES: Final = 1 << 30
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


_EMPTY: Final = CopyRows([], ())
_ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.)|\Z)", re.DOTALL)
_CONTROL: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def copy_decoder(options: CopyOptions, table: str, columns: Sequence[str]) -> CopyDecoder:
    """Return the decoder for ``options`` (already checked); names serve HEADER MATCH and errors."""
    if options.format == "binary":
        return _BinaryDecoder(table, columns)
    if options.format == "csv":
        return _CsvDecoder(options, table, columns)
    return _TextDecoder(options, table, columns)


class LineDecoder:
    """What text and CSV share: cutting into lines, header, end marker, errors."""

    first_line: re.Pattern[bytes]  # everything before the first line end that is not data
    newline_found: str
    newline_hint: str
    return_found: str
    return_hint: str

    def __init__(self, options: CopyOptions, table: str, columns: Sequence[str]) -> None:
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
            return _EMPTY
        data = self.rest + data if self.rest else bytes(data)
        if not self.eol and not self._find_eol(data):
            self.rest = data
            self._check_rest()
            return _EMPTY
        mark = b"\r" if self.eol == "\r" else b"\n"
        cut = data.rfind(mark)
        if cut < 0:
            self.rest = data
            self._check_rest()
            return _EMPTY
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
            return self.end(_EMPTY)
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


class _TextDecoder(LineDecoder):
    """Text format."""

    first_line = re.compile(rb"(?:[^\\\r\n]|\\.)*", re.DOTALL)
    newline_found = "literal newline found in data"
    newline_hint = 'Use "\\n" to represent newline.'
    return_found = "literal carriage return found in data"
    return_hint = 'Use "\\r" to represent carriage return.'

    def __init__(self, options: CopyOptions, table: str, columns: Sequence[str]) -> None:
        super().__init__(options, table, columns)
        self.open = ""  # a line that ended in a backslash: its line end is data

    @property
    def inside_row(self) -> bool:
        """Whether a line ended in a backslash."""
        return bool(self.open)

    def take(self, lines: list[str]) -> CopyRows:
        first = self.line + 1
        delimiter, null, width = self.delimiter, self.null, self.width
        special = self.open or any("\\" in line for line in lines)
        if special:
            lines = self._logical(lines)
        if self.header_pending and lines:
            self.line = first
            self.header(self.careful(lines[0], first), lines[0])
            lines, first = lines[1:], first + 1
        if not width:
            for number, line in enumerate(lines, first):
                if line:
                    raise self.error("extra data after last expected column", line=line, at=number)
            rows: list[list[Any]] = [[] for _ in lines]
        elif special:
            careful = self.careful
            rows = [
                careful(line, number) if "\\" in line else line.split(delimiter)
                for number, line in enumerate(lines, first)
            ]
        else:
            rows = [line.split(delimiter) for line in lines]
        if "\\" not in null and width:
            rows = [
                [None if f == null else f for f in row] if null in row else row for row in rows
            ] if not special else [
                row if "\\" in line else [None if f == null else f for f in row]
                for row, line in zip(rows, lines, strict=True)
            ]  # fmt: skip
        for number, row in enumerate(rows, first):
            if len(row) != width:
                self.check_width(row, lines[number - first], number)
        self.line = first + len(rows) - 1
        return CopyRows(rows, range(first, first + len(rows)))

    def _logical(self, lines: list[str]) -> list[str]:
        r"""Join lines whose end is escaped, and stop at ``\.``."""
        out: list[str] = []
        open_, self.open = self.open, ""
        mark = "\r" if self.eol == "\r" else "\n"
        for line in lines:
            if open_:
                line, open_ = open_ + line, ""
            marker = self._end_marker(line) if "\\." in line else -1
            if marker >= 0:
                if len(line) > marker + 2:
                    raise self.error("end-of-copy marker corrupt", at=self.line + len(out) + 1)
                # What stands before the marker is a last row.
                if marker:
                    out.append(line[:marker])
                self.ended, self.rest = True, b""
                break
            if line.endswith("\\") and (len(line) - len(line.rstrip("\\"))) % 2:
                open_ = line + mark
                continue
            out.append(line)
        self.open = open_
        return out

    @staticmethod
    def _end_marker(line: str) -> int:
        r"""Return where ``\.`` stands whose backslash is not escaped, or -1."""
        at = line.find("\\.")
        while at >= 0:
            if (at - len(line[:at].rstrip("\\"))) % 2 == 0:
                return at
            at = line.find("\\.", at + 1)
        return -1

    def end(self, rows: CopyRows) -> CopyRows:
        if self.open:
            line, self.open = self.open, ""
            more = self.take_open(line[:-1] if self.unterminated else line)
            return CopyRows(rows.rows + more.rows, [*rows.lines, *more.lines])
        return rows

    def take_open(self, line: str) -> CopyRows:
        """The data ended after a backslash, or after an escaped line end."""
        self.line += 1
        fields = self.careful(line, self.line)
        self.check_width(fields, line, self.line)
        return CopyRows([fields], [self.line])

    def careful(self, line: str, number: int) -> list[str | None]:
        """Split a line with backslashes."""
        delimiter, null = self.delimiter, self.null
        parts = line.split(delimiter)
        if null == "\\N" and line.count("\\") == parts.count(null):
            return [None if part == null else part for part in parts]
        fields: list[str | None] = []
        at = 0
        while at < len(parts):
            raw = parts[at]
            # An escaped delimiter belongs to the field.
            while raw.endswith("\\") and (len(raw) - len(raw.rstrip("\\"))) % 2 and at + 1 < len(parts):
                at += 1
                raw += delimiter + parts[at]
            at += 1
            if raw == null:
                fields.append(None)
            elif "\\" in raw:
                fields.append(self._unescape(raw, line, number))
            else:
                fields.append(raw)
        return fields

    def _unescape(self, raw: str, line: str, number: int) -> str:
        high = False

        def replace(match: re.Match[str]) -> str:
            nonlocal high
            octal, hexadecimal, char = match.groups()
            if octal is not None or hexadecimal is not None:
                code = int(octal, 8) & 0xFF if octal is not None else int(hexadecimal, 16)
                high = high or code > 127 or code == 0
                return chr(0xDC00 + code) if code > 127 else chr(code)
            if char is None:
                return ""
            return _CONTROL.get(char, char)

        text = _ESCAPE.sub(replace, raw)
        if not high:
            return text
        # Bytes above 127 came by escapes: put them together as UTF-8.
        data = b"".join(
            [bytes([ord(c) - 0xDC00]) if 0xDC80 <= ord(c) <= 0xDCFF else c.encode("utf-8") for c in text]
        )
        try:
            return decode(data)
        except DataError as error:
            error.where = copy_context(self.table, number, None, line)
            raise


class _CsvDecoder(LineDecoder):
    """CSV format."""

    newline_found = "unquoted newline found in data"
    newline_hint = "Use quoted CSV field to represent newline."
    return_found = "unquoted carriage return found in data"
    return_hint = "Use quoted CSV field to represent carriage return."

    def __init__(self, options: CopyOptions, table: str, columns: Sequence[str]) -> None:
        super().__init__(options, table, columns)
        self.quote, self.escape = options.effective_quote, options.effective_escape
        self.open: list[str] = []  # lines of a row whose quote is still open
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        body = rf"[^{quote}]|{quote}{quote}" if self.quote == self.escape else (
            rf"[^{quote}{escape}]|{escape}[{quote}{escape}]|{escape}(?![{quote}{escape}])"
        )  # fmt: skip
        self.quoted = re.compile(rf"{quote}((?:{body})*){quote}(?={re.escape(self.delimiter)}|\Z)", re.DOTALL)
        self.forced = bool(options.force_null or options.force_not_null)
        self.first_line = re.compile(rf"(?:[^{quote}\r\n]|{quote}(?:{body})*{quote})*".encode(), re.DOTALL)
        self.first_row = True

    @property
    def next_line(self) -> int | None:
        """See CopyDecoder."""
        return self.line + 1

    def resume(self, eol: str, line: int) -> None:
        """See LineDecoder."""
        super().resume(eol, line)
        self.first_row = False

    def save(self) -> dict[str, Any]:
        """See CopyDecoder."""
        return self.__dict__ | {"open": list(self.open)}

    @property
    def inside_row(self) -> bool:
        """Whether a quote is open."""
        return bool(self.open)

    def _returns(self, lines: list[str]) -> list[str]:
        return lines

    def _missing_return(self, lines: list[str]) -> None:
        """Checked per row, since a quoted line end may be anything."""

    def _literal(self, lines: list[str], mark: str) -> None:
        """Checked per row."""

    def opens(self, line: str) -> bool:
        """Whether a quote is still open at the end of ``line``."""
        if self.quote == self.escape:
            return line.count(self.quote) % 2 == 1
        inside = escaped = False
        for char in line:
            if inside and char == self.escape:
                escaped = not escaped
            if char == self.quote and not escaped:
                inside = not inside
            if char != self.escape:
                escaped = False
        return inside

    def take(self, lines: list[str]) -> CopyRows:
        rows: list[list[Any]] = []
        numbers: list[int] = []
        crlf, mark = self.eol == "\r\n", "\r" if self.eol == "\r" else "\n"
        quote, delimiter, null, width = self.quote, self.delimiter, self.null, self.width
        plain_null = not self.options.force_not_null
        check_returns = any("\r" in line for line in lines)
        number = self.line
        for line in lines:
            number += 1
            if self.open:
                self.open.append(line)
                if quote not in line:
                    continue
                whole = mark.join(self.open)
                if self.opens(whole):
                    continue
                if self.first_row:
                    # PostgreSQL counts line ends inside quotes only once it knows how lines end.
                    number -= len(self.open) - 1
                self.open = []
                line = whole
            elif quote in line and self.opens(line):
                self.open = [line]
                continue
            if crlf:
                if not line.endswith("\r"):
                    raise self.error(self.newline_found, at=number, hint=self.newline_hint)
                line = line[:-1]
            if line == "\\.":
                self.ended, self.rest = True, b""
                break
            if quote not in line:
                if check_returns and "\r" in line:
                    raise self.error(self.return_found, at=number, hint=self.return_hint)
                if mark == "\r" and "\n" in line:
                    raise self.error(self.newline_found, at=number, hint=self.newline_hint)
                fields: list[Any] = line.split(delimiter)
                if plain_null and null in fields:
                    fields = [None if f == null else f for f in fields]
                elif not plain_null:
                    fields = self.apply_null([(f, False) for f in fields])
            else:
                fields = self.careful(line, number)
            self.first_row = False
            if self.header_pending:
                self.line = number
                self.header(fields, line)
                continue
            if len(fields) != width:
                if not width and not line:
                    fields = []
                else:
                    self.check_width(fields, line, number)
            rows.append(fields)
            numbers.append(number)
        self.line = number
        return CopyRows(rows, numbers)

    def careful(self, line: str, number: int) -> list[str | None]:
        """Split a row with quotes."""
        delimiter, quote, escape = self.delimiter, self.quote, self.escape
        if not self.forced and "\r" not in line and "\n" not in line:
            # The common case: fields are quoted as a whole or not at all.
            null = self.null
            simple: list[str | None] = []
            for part in line.split(delimiter):
                if quote not in part:
                    if escape in part:
                        break
                    simple.append(None if part == null else part)
                elif (
                    part.count(quote) == 2
                    and part[0] == quote
                    and part[-1] == quote
                    and (escape == quote or escape not in part)
                ):
                    simple.append(part[1:-1])
                else:
                    break
            else:
                return simple
        fields: list[tuple[str, bool]] = []
        at, end = 0, len(line)
        while True:
            match = self.quoted.match(line, at)
            if match is not None:
                text = match[1]
                if escape in text:
                    text = self._unescape(text)
                fields.append((text, True))
                at = match.end()
            else:
                text, quoted, at = self._slow(line, at, number)
                fields.append((text, quoted))
            if at >= end:
                break
            at += 1  # the delimiter
            if at == end:
                fields.append(("", False))
                break
        del delimiter, quote
        return self.apply_null(fields)

    def _unescape(self, text: str) -> str:
        if self.quote == self.escape:
            return text.replace(self.quote * 2, self.quote)
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        return re.sub(rf"{escape}([{quote}{escape}])", r"\1", text)

    def _slow(self, line: str, at: int, number: int) -> tuple[str, bool, int]:
        """Read one field whose quotes begin or end inside it."""
        out: list[str] = []
        quoted = inside = False
        while at < len(line):
            char = line[at]
            if not inside:
                if char == self.delimiter:
                    break
                if char == self.quote:
                    quoted = inside = True
                elif char in "\r\n":
                    found = (self.return_found, self.return_hint) if char == "\r" else (
                        self.newline_found, self.newline_hint)  # fmt: skip
                    raise self.error(found[0], at=number, hint=found[1])
                else:
                    out.append(char)
                at += 1
                continue
            following = line[at + 1 : at + 2]
            if char == self.escape and following and following in (self.escape, self.quote):
                out.append(following)
                at += 2
                continue
            if char == self.quote:
                inside = False
            else:
                out.append(char)
            at += 1
        if inside:
            raise self.error("unterminated CSV quoted field", line=line, at=number)
        return "".join(out), quoted, at

    def apply_null(self, fields: list[tuple[str, bool]]) -> list[str | None]:
        """Turn the null string into None, as the FORCE options want it."""
        null = self.null
        if not self.forced:
            return [None if not quoted and text == null else text for text, quoted in fields]
        not_null, force_null = self.options.force_not_null, self.options.force_null
        return [
            None if text == null and (index in force_null if quoted else index not in not_null) else text
            for index, (text, quoted) in enumerate(fields)
        ]

    def end(self, rows: CopyRows) -> CopyRows:
        if self.open:
            line = "\n".join(self.open) + ("" if self.unterminated else self.eol or "\n")
            if self.first_row:
                self.line -= len(self.open) - 1
            raise self.error("unterminated CSV quoted field", line=line)
        return rows


class _BinaryDecoder:
    """Binary format; fields are bytes."""

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        self.table = table
        self.columns = tuple(columns)
        self.buffer = bytearray()
        self.line = 0
        self.state = "header"

    def error(self, message: str, column: str | None = None) -> DataError:
        return DataError("22P04", message, where=copy_context(self.table, self.line, column, binary=True))

    def feed(self, data: bytes) -> CopyRows:
        if self.state == "done":
            if data:
                raise self.error("received copy data after EOF marker")
            return _EMPTY
        self.buffer += data
        if self.state == "header" and not self._header():
            return _EMPTY
        return self._rows()

    @property
    def next_line(self) -> int | None:
        return None if self.state == "header" else self.line + 1

    def save(self) -> dict[str, Any]:
        return self.__dict__ | {"buffer": bytearray(self.buffer)}

    def restore(self, state: dict[str, Any]) -> None:
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
        if self.state == "header":
            self._header(ended=True)
        if len(self.buffer) < 2:  # no count of fields: the end, as PostgreSQL sees it
            return _EMPTY
        self.line += 1
        at, column = 2, 0
        while at + 4 <= len(self.buffer):
            at += 4 + max(int.from_bytes(self.buffer[at : at + 4], "big", signed=True), 0)
            column += at <= len(self.buffer)
        raise self.error("unexpected EOF in COPY data", self.columns[column])
