r"""COPY FROM in text format: fields between delimiters, ``\N`` for NULL, backslash escapes, ``\.`` for the end.

    1|a\tb|\N     ["1", "a<tab>b", None]            delimiter "|"
    2|a\          an escaped line end is data: the row goes on with the next line
    b|c           ["2", "a<newline>b", "c"]

Lines without a backslash are split at once; the others field by field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pgwire.codecs.bytea import Piece
from pgwire.codecs.copy import CopyOptions, copy_context
from pgwire.codecs.copy.lines import EMPTY, CopyRows, Fields, LineDecoder, is_escaped
from pgwire.codecs.copy.long import escaped_fields
from pgwire.codecs.errors import DataError
from pgwire.codecs.text import decode
from pgwire.give_way import give_way, paced
from pgwire.long.values import PIECE, count, fields, find, joined, split

_ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.)|\Z)", re.DOTALL)
_CODE: Final = re.compile(r"\\[0-7x]")
_CUT_OFF: Final = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:[0-7]{0,2}|x[0-9a-fA-F]?))?\Z")
"""What stands at the end of a piece that may be cut off within an escape."""
_BEFORE_END: Final = re.compile(rb"(?:[^\\\r\n]++|\\.)*+", re.DOTALL)
_SHORT: Final = 1 << 14
_CONTROL: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _has_codes(line: str) -> bool:
    """Tell whether there are escapes in a line that may stand for bytes above 127, which may be wrong."""
    for start in range(0, len(line), PIECE // 4):
        if _CODE.search(line, start, start + PIECE // 4 + 1) is not None:
            return True
        give_way()
    return False


def _named_escapes(text: str) -> str | None:
    """Replace escapes that have a name, and escaped backslashes; None where there are others."""
    parts = text.split("\\\\")
    for i, part in enumerate(parts):
        if "\\" in part:
            for letter, character in _CONTROL.items():
                part = part.replace("\\" + letter, character)
            if "\\" in part:
                return None
            parts[i] = part
    return "\\".join(parts)


class TextDecoder(LineDecoder):
    """Text format: a row a line, fields apart by the delimiter, backslashes before what is special."""

    newline_found = "literal newline found in data"
    newline_hint = 'Use "\\n" to represent newline.'
    return_found = "literal carriage return found in data"
    return_hint = 'Use "\\r" to represent carriage return.'

    def __init__(self, options: CopyOptions, table: str, columns: Sequence[str]) -> None:
        """See ``copy_decoder``."""
        super().__init__(options, table, columns)
        self.open: list[str] = []  # lines that ended in a backslash: their line end is data
        self._escapes = False  # the data so far end in a backslash that escapes what comes

    @property
    def inside_row(self) -> bool:
        """Whether a line ended in a backslash."""
        return bool(self.open)

    def first_end(self, data: bytes) -> int:
        """See LineDecoder."""
        match = _BEFORE_END.match(data, 1 if self._escapes else 0)
        if match is None:
            raise AssertionError("a pattern that matches what is empty, too, has not matched")
        at = match.end()
        self._escapes = data[at : at + 1] == b"\\"
        return at if at < len(data) and not self._escapes else -1

    def look_again(self) -> None:
        """See LineDecoder."""
        self._escapes = False

    def save(self) -> dict[str, Any]:
        """See CopyDecoder."""
        return self.__dict__ | {"open": list(self.open)}

    def take(self, lines: list[str]) -> CopyRows:
        """See LineDecoder."""
        first = self.line + 1
        delimiter, null, width = self.delimiter, self.null, self.width
        special = self.open or any(find(line, "\\") >= 0 for line in lines)
        if special:
            lines = self._logical(lines)
        if self.header_pending and lines:
            self.line = first
            if self.options.header == "match":
                names = self._fields(lines[0], first)
                self.header(names.kept, lines[0], names.count)
            else:  # whatever its escapes mean
                self.header([], lines[0], 0)
            lines, first = lines[1:], first + 1
        if not width:
            for number, line in enumerate(lines, first):
                if line:
                    raise self.error("extra data after last expected column", line=line, at=number)
            rows: list[list[Any]] = [[] for _ in lines]
        elif special or self.long:
            careful = self.careful
            rows = [
                careful(line, number) if self.long or "\\" in line else split(line, delimiter, width)
                for number, line in enumerate(lines, first)
            ]
        else:
            rows = [split(line, delimiter, width) for line in lines]
        if "\\" not in null and width:
            rows = [
                [None if f == null else f for f in row] if null in row else row for row in rows
            ] if not (special or self.long) else [
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
        open_, self.open = self.open, []
        mark = "\r" if self.eol == "\r" else "\n"
        for line in paced(lines, 1024):
            if line.endswith("\\") and is_escaped(line, len(line)) and self._end_marker(line) < 0:
                open_ += (line, mark)
                continue
            if open_:
                line, open_ = joined([*open_, line]), []
            marker = self._end_marker(line)
            if marker >= 0:
                if len(line) > marker + 2 or self.unterminated:
                    raise self.error("end-of-copy marker corrupt", at=self.line + len(out) + 1)
                # What stands before the marker is a last row.
                if marker:
                    out.append(line[:marker])
                self.ended, self.rest = True, EMPTY
                break
            out.append(line)
        self.open = open_
        return out

    @staticmethod
    def _end_marker(line: str) -> int:
        r"""Return where ``\.`` stands whose backslash is not escaped, or -1."""
        at = find(line, "\\.")
        while at >= 0:
            if not is_escaped(line, at):
                return at
            at = find(line, "\\.", at + 1)
            give_way()
        return -1

    def fields_of_pieces(self, pieces: list[Piece]) -> list[Any] | None:
        """See LineDecoder."""
        found = escaped_fields(pieces, self.delimiter.encode(), self.width)
        if found is None:
            return None
        null = self.null.encode()
        fields: list[Any] = []
        for i, raw in enumerate(found):
            if raw.is_same(null):
                fields.append(None)
            elif i in self.digits and (digits := raw.digits(b"\\\\x")) is not None:
                fields.append(digits)
            else:
                text = raw.text()
                fields.append(self._unescape(text, "", self.line + 1) if raw.marks else text)
        return fields

    def end(self, rows: CopyRows) -> CopyRows:
        """Return the row whose last line end was escaped, too: what was open is its last field."""
        if self.open:
            line, self.open = joined(self.open), []
            more = self.take_open(line[:-1] if self.unterminated else line)
            return CopyRows(rows.rows + more.rows, [*rows.lines, *more.lines])
        return rows

    def take_open(self, line: str) -> CopyRows:
        """The data ended after a backslash, or after an escaped line end."""
        self.line += 1
        fields = self._fields(line, self.line).kept
        self.check_width(fields, line, self.line)
        return CopyRows([fields], [self.line])

    def careful(self, line: str, number: int) -> list[str | None]:
        """Split a line with backslashes; of one with too many fields not all are returned."""
        delimiter, null = self.delimiter, self.null
        if len(line) <= _SHORT:
            parts = line.split(delimiter)
            if null == "\\N" and line.count("\\") == parts.count(null):
                return [None if part == null else part for part in parts]
        return self._fields(line, number).kept

    def _fields(self, line: str, number: int) -> Fields[str | None]:
        delimiter, null = self.delimiter, self.null
        found: Fields[str | None] = Fields(self.width)
        plain = find(line, "\\") < 0 or (self.long and not _has_codes(line))
        rest = fields(line, delimiter)
        for raw in rest:
            if raw.endswith("\\") and is_escaped(raw, len(raw)):
                raw = self._with_delimiters(raw, rest)
            if raw == null:
                found.append(None)
            elif find(raw, "\\") >= 0:
                found.append(self._unescape(raw, line, number))
            else:
                found.append(raw)
            if plain and found.count > self.width:  # nothing can be wrong with the others
                found.count = count(line, delimiter) + 1
                break
        return found

    def _with_delimiters(self, raw: str, rest: Iterator[str]) -> str:
        """Return a field whose escaped delimiters belong to it."""
        parts = [raw]
        while parts[-1].endswith("\\") and is_escaped(parts[-1], len(parts[-1])):
            more = next(rest, None)
            if more is None:
                break
            parts += (self.delimiter, more)
            give_way()
        return joined(parts)

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

        parts: list[str] = []
        at, size = 0, len(raw)
        while at < size:
            slash = raw.find("\\", at, at + PIECE)
            plain = min(at + PIECE, size) if slash < 0 else slash
            if plain - at >= _SHORT:
                parts.append(raw[at:plain])
                at = plain
                give_way()
                continue
            piece = raw[at : at + _SHORT]
            at += len(piece)
            if at < size and (inside := _CUT_OFF.search(piece)) is not None and inside[1]:
                at -= len(inside[1])
                piece = piece[: inside.start(1)]
            named = _named_escapes(piece)
            parts.append(_ESCAPE.sub(replace, piece) if named is None else named)
            give_way()
        text = joined(parts)
        if not high:
            return text
        # Bytes above 127 came by escapes: put them together as UTF-8.
        data = b"".join(
            [
                bytes([ord(c) - 0xDC00]) if 0xDC80 <= ord(c) <= 0xDCFF else c.encode("utf-8")
                for c in paced(text, 1024)
            ]
        )
        try:
            return decode(data)
        except DataError as error:
            error.where = copy_context(self.table, number, None, line)
            raise
