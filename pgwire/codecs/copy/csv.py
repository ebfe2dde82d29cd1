"""COPY FROM in CSV format: quotes around what is special, NULL an empty field without them.

    1,"a,b",,""      ["1", "a,b", None, ""]
    2,"a             a line end inside quotes is data: the row goes on with the next line
    b"

Lines without a quote are split at once; of the others those whose fields are quoted as a whole, too; what is
left character by character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pgwire.codecs.bytea import Piece
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy.lines import EMPTY, CopyRows, Fields, LineDecoder
from pgwire.codecs.copy.long import quoted_fields
from pgwire.give_way import give_way, paced, paced_iter
from pgwire.long.values import PIECE, count, cut, find, joined, replaced, split
from pgwire.long.values import fields as fields_of

_SHORT: Final = 1 << 14  # characters that a pattern may look at in one call


class CsvDecoder(LineDecoder):
    """CSV format: a row a line or, with line ends inside quotes, several."""

    newline_found = "unquoted newline found in data"
    newline_hint = "Use quoted CSV field to represent newline."
    return_found = "unquoted carriage return found in data"
    return_hint = "Use quoted CSV field to represent carriage return."

    def __init__(self, options: CopyOptions, table: str, columns: Sequence[str]) -> None:
        """See ``copy_decoder``."""
        super().__init__(options, table, columns)
        self.quote, self.escape = options.effective_quote, options.effective_escape
        self.open: list[str] = []  # lines of a row whose quote is still open
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        body = rf"[^{quote}]|{quote}{quote}" if self.quote == self.escape else (
            rf"[^{quote}{escape}]|{escape}[{quote}{escape}]|{escape}(?![{quote}{escape}])"
        )  # fmt: skip
        self.quoted = re.compile(rf"{quote}((?:{body})*){quote}(?={re.escape(self.delimiter)}|\Z)", re.DOTALL)
        self.forced = bool(options.force_null or options.force_not_null)
        self.special = re.compile(rf"[{quote}{escape}]")
        self._outside = re.compile(rf"[{quote}\r\n]".encode())
        self._inside = re.compile(rf"[{quote}{escape}]".encode())
        self._quoted = self._escaped = (
            False  # the data so far, in the first line: inside quotes; behind an escape
        )
        self.first_row = True

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

    def first_end(self, data: bytes) -> int:
        """See LineDecoder."""
        at, quote, escape = 0, self.quote.encode(), self.escape.encode()
        while True:
            give_way()
            if self._escaped and at < len(data):
                self._escaped = False
                at += data[at : at + 1] in (quote, escape)
            match = (self._inside if self._quoted else self._outside).search(data, at)
            if match is None:
                return -1
            at = match.end()
            if match[0] == quote:
                self._quoted = not self._quoted
            elif self._quoted:
                self._escaped = True
            else:
                return match.start()

    def look_again(self) -> None:
        """See LineDecoder."""
        self._quoted = self._escaped = False

    def opens(self, line: str, inside: bool = False) -> bool:
        """Whether a quote is open at the end of ``line``; ``inside``: at its beginning."""
        if self.quote == self.escape:
            return (count(line, self.quote) % 2 == 1) != inside
        escaped = False
        for char in paced(line, 1024):
            if inside and char == self.escape:
                escaped = not escaped
            if char == self.quote and not escaped:
                inside = not inside
            if char != self.escape:
                escaped = False
        return inside

    def take(self, lines: list[str]) -> CopyRows:
        """See LineDecoder."""
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
                if quote not in line or self.opens(line, True):
                    continue
                whole = joined(self.open, mark)
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
                self.ended, self.rest = True, EMPTY
                break
            if quote not in line:
                if check_returns and "\r" in line:
                    raise self.error(self.return_found, at=number, hint=self.return_hint)
                if mark == "\r" and "\n" in line:
                    raise self.error(self.newline_found, at=number, hint=self.newline_hint)
                fields: list[Any] = (
                    split(line, delimiter, max(width, 1))
                    if not self.long
                    else self._plain(line, max(width, 1))
                )
                seen = len(fields) if not self.header_pending else count(line, delimiter) + 1
                if plain_null and null in fields:
                    fields = [None if f == null else f for f in fields]
                elif not plain_null:
                    fields = self.apply_null([(f, False) for f in fields])
            else:
                found = self.careful(line, number)
                fields, seen = found.kept, found.count
            self.first_row = False
            if self.header_pending:
                self.line = number
                self.header(fields, line, seen)
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

    def fields_of_pieces(self, pieces: list[Piece]) -> list[Any] | None:
        """See LineDecoder."""
        if self.quote != self.escape:
            return None
        quote, null = self.quote.encode(), len(self.null.encode())
        found = quoted_fields(pieces, self.delimiter.encode(), quote, self.width)
        if found is None:
            return None
        fields: list[tuple[Any, bool]] = []
        for i, raw in enumerate(found):
            quoted = raw.marks > 0
            mark = quote if quoted else b""
            if i in self.digits and raw.marks in (0, 2) and raw.size != null + 2 * len(mark):
                digits = raw.digits(mark + b"\\x", mark)
                if digits is not None:
                    fields.append((digits, quoted))
                    continue
            text = raw.text()
            if quoted:
                close = self._close(text, 0)
                if close != len(text) - 1:
                    return None
                text = cut(text, 1, close)
                if raw.marks > 2:
                    text = self._unescape(text)
            fields.append((text, quoted))
        self.first_row = False
        return self.apply_null(fields)

    def _plain(self, line: str, most: int) -> list[str]:
        """Split a long row without quotes; of one with more than ``most`` fields not all are returned."""
        found: list[str] = []
        for part in fields_of(line, self.delimiter):
            found.append(part)
            if len(found) > most:
                break
        return found

    def careful(self, line: str, number: int) -> Fields[str | None]:
        """Split a row with quotes."""
        delimiter, quote, escape = self.delimiter, self.quote, self.escape
        if not self.forced and "\r" not in line and "\n" not in line:
            # The common case: fields are quoted as a whole or not at all.
            null = self.null
            simple: Fields[str | None] = Fields(self.width)
            short = len(line) <= _SHORT
            for part in line.split(delimiter) if short else paced_iter(fields_of(line, delimiter)):
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
        fields: Fields[tuple[str, bool]] = Fields(self.width)
        at, end = 0, len(line)
        while True:
            give_way()
            close = self._close(line, at)
            if close >= 0:
                text = cut(line, at + 1, close)
                if find(text, escape) >= 0:
                    text = self._unescape(text)
                fields.append((text, True))
                at = close + 1
            else:
                text, quoted, at = self._slow(line, at, number)
                fields.append((text, quoted))
            if at >= end:
                break
            at += 1  # the delimiter
            if at == end:
                fields.append(("", False))
                break
        found: Fields[str | None] = Fields(self.width)
        found.kept, found.count = self.apply_null(fields.kept), fields.count
        return found

    def _close(self, line: str, at: int) -> int:
        """Return where the quote ends that begins at ``at``, if a field is quoted as a whole there, else -1."""
        if len(line) - at <= _SHORT:
            match = self.quoted.match(line, at)
            return match.end() - 1 if match is not None else -1
        if not line.startswith(self.quote, at):
            return -1
        at += 1
        while at < len(line):
            give_way()
            found = self.special.search(line, at, at + PIECE)
            if found is None:
                at += PIECE
                continue
            at = found.end()
            following = line[at : at + 1]
            if found[0] == self.escape and following and following in (self.quote, self.escape):
                at += 1
            elif found[0] == self.quote:
                return at - 1 if following in ("", self.delimiter) else -1
        return -1

    def _unescape(self, text: str) -> str:
        if self.quote == self.escape:
            return replaced(text, self.quote * 2, self.quote)
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        pairs = re.compile(rf"{escape}([{quote}{escape}])")
        if len(text) <= _SHORT:
            return pairs.sub(r"\1", text)
        parts: list[str] = []
        at = 0
        while at < len(text):
            give_way()
            found = text.find(self.escape, at, at + PIECE)
            parts.append(text[at:found] if found >= 0 else text[at : at + PIECE])
            at += PIECE
            if found >= 0:
                pair = pairs.match(text, found)
                parts.append(text[found] if pair is None else pair[1])
                at = found + 1 if pair is None else pair.end()
        return joined(parts)

    def _slow(self, line: str, at: int, number: int) -> tuple[str, bool, int]:
        """Read one field whose quotes begin or end inside it."""
        out: list[str] = []
        quoted = inside = False
        looked = at
        while at < len(line):
            char = line[at]
            if at - looked >= 1024:
                looked = at
                give_way()
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
        return joined(out), quoted, at

    def apply_null(self, fields: list[tuple[Any, bool]]) -> list[Any]:
        """Turn the null string into None, as the FORCE options want it."""
        null = self.null
        if not self.forced:
            return [None if not quoted and text == null else text for text, quoted in paced(fields, 1024)]
        not_null, force_null = self.options.force_not_null, self.options.force_null
        return [
            None if text == null and (index in force_null if quoted else index not in not_null) else text
            for index, (text, quoted) in enumerate(fields)
        ]

    def end(self, rows: CopyRows) -> CopyRows:
        """Raise DataError 22P04 if a quote is open."""
        if self.open:
            line = joined(self.open, "\n") + ("" if self.unterminated else self.eol or "\n")
            if self.first_row:
                self.line -= len(self.open) - 1
            raise self.error("unterminated CSV quoted field", line=line)
        return rows
