"""COPY FROM in the format json: one object a line -> rows of field texts.

    {"id": 1, "name": "ann", "tags": ["x", null], "extra": {"a": 1.50}}
      1        ann            {"x",NULL}           {"a": 1.50}

Keys are the names of the copied columns. A key that is not there is NULL, as in json_populate_record; one
that is no column is an error. A string counts as its characters, everything else as its text in the file, so
that each type reads it as it reads any text: no digit is lost on the way. For array columns a JSON array
becomes the array's text. Empty lines count, and are passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pgwire.codecs.copy import CopyOptions, copy_context
from pgwire.codecs.copy.lines import EMPTY, MAX_LINE_BYTES, CopyRows
from pgwire.codecs.errors import DataError
from pgwire.codecs.text import decode

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_STRING: Final = msgspec.json.Decoder(str)
_EMPTY: Final = CopyRows([], ())
_QUOTE, _NULL, _BRACKET = b'"'[0], b"n"[0], b"["[0]


class JsonDecoder:
    """Reads lines; the interface is ``copy_in.CopyDecoder``."""

    def __init__(
        self, options: CopyOptions, table: str, columns: Sequence[str], arrays: frozenset[int] = frozenset()
    ) -> None:
        """``arrays``: positions of columns of array types."""
        del options
        self.table = table
        self.columns = tuple(columns)
        self.arrays = arrays
        self.line = 0
        self.rest = EMPTY
        self._position = {name: i for i, name in enumerate(columns)}

    @property
    def next_line(self) -> int | None:
        """See CopyDecoder."""
        return self.line + 1

    def save(self) -> dict[str, Any]:
        """See CopyDecoder."""
        return dict(self.__dict__)

    def restore(self, state: dict[str, Any]) -> None:
        """See CopyDecoder."""
        self.__dict__.update(state)

    def resume(self, eol: str, line: int) -> None:
        """Begin in the middle of a file, behind ``line`` lines."""
        del eol
        self.line = line

    def feed(self, data: bytes) -> CopyRows:
        """Take more bytes; return the rows that are complete."""
        cut = data.rfind(b"\n") + 1
        if not cut:
            self.rest = self.rest.plus(bytes(data))
            if self.rest.size > MAX_LINE_BYTES:
                raise DataError("54000", "line is too long", where=copy_context(self.table, self.line + 1))
            return _EMPTY
        first, *lines = bytes(data[:cut]).split(b"\n")[:-1]
        first, self.rest = self.rest.whole(first), EMPTY.plus(bytes(data[cut:]))
        return self._take([first, *lines])

    def finish(self) -> CopyRows:
        """Return what is left at the end of the data."""
        rest, self.rest = self.rest, EMPTY
        return self._take([rest.whole()]) if rest.size else _EMPTY

    def _take(self, lines: Sequence[bytes]) -> CopyRows:
        rows: list[list[str | None]] = []
        numbers: list[int] = []
        for line in lines:
            self.line += 1
            if not line.strip():
                continue
            rows.append(self.row(line))
            numbers.append(self.line)
        return CopyRows(rows, numbers)

    def row(self, line: bytes) -> list[str | None]:
        """Return the field texts of one object. Raises DataError 22P02, 22P04, 22P05, 22021."""
        fields: list[str | None] = [None] * len(self.columns)
        try:
            found = _OBJECT.decode(decode(line))
            for name, raw in found.items():
                at = self._position.get(name)
                if at is None:
                    raise DataError("22P04", f'key "{name}" is not a copied column')
                fields[at] = self._text(memoryview(raw), at in self.arrays)  # no copy of a long value
        except msgspec.ValidationError as error:
            raise self._error(
                DataError("22P04", "line is not a JSON object", detail=f"{error}."), line
            ) from None
        except msgspec.DecodeError as error:
            wrong = DataError("22P02", "invalid input syntax for type json", detail=f"{error}.")
            raise self._error(wrong, line) from None
        except DataError as error:
            raise self._error(error, line) from None
        return fields

    def _error(self, error: DataError, line: bytes) -> DataError:
        error.where = copy_context(self.table, self.line, None, line.decode("utf-8", "replace"))
        return error

    def _text(self, raw: memoryview, array: bool) -> str | None:
        first = raw[0]
        if first == _QUOTE:
            return _characters(raw)
        if first == _NULL:
            return None
        if array and first == _BRACKET:
            return self._array(raw)
        return str(raw, "utf-8")

    def _array(self, raw: memoryview) -> str:
        items = []
        for item in _LIST.decode(raw):
            inner = memoryview(item)
            if inner[0] == _BRACKET:
                items.append(self._array(inner))
                continue
            text = self._text(inner, False)
            if text is None:
                items.append("NULL")
            else:
                items.append('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')
        return "{" + ",".join(items) + "}"


def _characters(raw: memoryview) -> str:
    text = _STRING.decode(raw)
    if "\0" in text:
        raise DataError(
            "22P05", "unsupported Unicode escape sequence", detail="\\u0000 cannot be converted to text."
        )
    return text
