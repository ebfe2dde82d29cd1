r"""COPY FROM in text format: fields between delimiters, ``\N`` for NULL, backslash escapes, ``\.`` for the end.

    1|a\tb|\N     ["1", "a<tab>b", None]            delimiter "|"
    2|a\          an escaped line end is data: the row goes on with the next line
    b|c           ["2", "a<newline>b", "c"]

Lines without a backslash are split at once; the others field by field.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pgwire.codecs.copy import CopyOptions, copy_context
from pgwire.codecs.copy_lines import CopyRows, LineDecoder
from pgwire.codecs.errors import DataError
from pgwire.codecs.text import decode

_ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.)|\Z)", re.DOTALL)
_CONTROL: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class TextDecoder(LineDecoder):
    """Text format: a row a line, fields apart by the delimiter, backslashes before what is special."""

    first_line = re.compile(rb"(?:[^\\\r\n]|\\.)*", re.DOTALL)
    newline_found = "literal newline found in data"
    newline_hint = 'Use "\\n" to represent newline.'
    return_found = "literal carriage return found in data"
    return_hint = 'Use "\\r" to represent carriage return.'

    def __init__(self, options: CopyOptions, table: str, columns: Sequence[str]) -> None:
        """See ``copy_decoder``."""
        super().__init__(options, table, columns)
        self.open = ""  # a line that ended in a backslash: its line end is data

    @property
    def inside_row(self) -> bool:
        """Whether a line ended in a backslash."""
        return bool(self.open)

    def take(self, lines: list[str]) -> CopyRows:
        """See LineDecoder."""
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
        """Return the row whose last line end was escaped, too: what was open is its last field."""
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
