"""COPY FROM in formats made of lines: what text and CSV share.

    feed ──bytes──> rest │ complete lines ──decode──> lines ──take──> rows      what a line is worth: the format says
                    └ an incomplete line waits for more

What is kept of an incomplete line is put together once, when its end has come, and an end is looked for in
what is new alone: a line of many megabytes costs as much as many lines. How lines end is learnt from the
first one, and holds for all. Of several wrong lines in one block the first is reported: a block that fails is
read again, line by line, from the state before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from pgwire.codecs.bytea import Piece, packed, unpacked
from pgwire.codecs.copy import CopyOptions, copy_context
from pgwire.codecs.copy import long as copy_long
from pgwire.codecs.errors import DataError
from pgwire.codecs.text import decode
from pgwire.give_way import give_way
from pgwire.long.values import LONG, PIECE, decoded, find, joined_bytes, split

T = TypeVar("T")

MAX_LINE_BYTES: Final = 1 << 30


class Rest:
    """The beginning of a line, piece by piece; unchangeable, so that a decoder can go back to it.

    Attributes:
        size: in bytes.
    """

    __slots__ = ("_before", "_data", "size")

    def __init__(self, data: Piece = b"", before: Rest | None = None) -> None:
        """``data`` behind what was ``before``."""
        self._before = before
        self._data = data
        self.size: int = len(data) + (before.size if before is not None else 0)

    def plus(self, data: Piece) -> Rest:
        """Return the rest with more behind it."""
        return Rest(data, self if self.size else None) if len(data) else self

    def pieces(self, data: bytes = b"") -> list[Piece]:
        """Return what there is, and ``data`` behind it."""
        pieces: list[Piece] = [data]
        at: Rest | None = self
        while at is not None:
            pieces.append(at._data)
            at = at._before
        pieces.reverse()
        return pieces

    def whole(self, data: bytes = b"") -> bytes:
        """Return what there is, and ``data`` behind it."""
        return joined_bytes([unpacked(piece) for piece in self.pieces(data)]) if self.size else bytes(data)


EMPTY: Final = Rest()


class CopyRows(NamedTuple):
    """Decoded rows and the line number of each (for errors found later)."""

    rows: list[list[Any]]
    lines: Sequence[int]


class Fields(Generic[T]):
    """The first fields of a line, and how many there are: of a line of millions no more are kept than show
    that it is wrong.

    Attributes:
        kept: up to ``most`` and one.
        count: of all that were added.
    """

    __slots__ = ("_most", "count", "kept")

    def __init__(self, most: int) -> None:
        """There are none."""
        self._most = most
        self.kept: list[T] = []
        self.count = 0

    def append(self, field: T) -> None:
        """Add one."""
        self.count += 1
        if self.count <= self._most + 1:
            self.kept.append(field)


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


def is_escaped(line: str, at: int) -> bool:
    """Tell whether what stands at ``at`` has an odd number of backslashes before it."""
    start = at
    while start and line[start - 1] == "\\":
        start -= 1
        if not start % 4096:
            give_way()
    return (at - start) % 2 == 1


class LineDecoder:
    """What text and CSV share: cutting into lines, header, end marker, errors."""

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
        self.rest = EMPTY
        self.line = 0
        self.eol = ""  # "\n", "\r\n" or "\r" once a line has ended
        self.header_pending = bool(options.header)
        self.ended = False
        self._returned = False  # the data so far end in a carriage return that may be half a line end
        self.unterminated = False  # the last line had no line end
        self.long = False  # of the lines at hand one may be long
        self.digits: frozenset[int] = frozenset()
        """The fields that are bytea: of a long line their digits stay in pieces (``copy_long``), and the
        caller reads those."""

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
        if not self.eol:
            data = self._find_eol(data)
        if self.rest.size >= copy_long.LINE_BYTES and self.eol == "\n" and (end := data.find(b"\n")) >= 0:
            row = self._long_row(data[:end])
            if row is not None:
                number = self.line
                more = self.feed(data[end + 1 :])
                return CopyRows([row, *more.rows], [number, *more.lines])
        cut = data.rfind(b"\r" if self.eol == "\r" else b"\n") if self.eol else -1
        if cut < 0:
            long = self.digits and self.rest.size >= copy_long.LINE_BYTES
            self.rest = self.rest.plus(packed(bytes(data)) if long else bytes(data))
            self._check_rest()
            return NO_ROWS
        held = [self.rest.whole(data[:cut])]
        self.rest = EMPTY.plus(bytes(data[cut + 1 :]))
        return self._block(held)

    def _long_row(self, last: bytes) -> list[Any] | None:
        """Read the line that ``rest`` begins and ``last`` ends, from its pieces; None, and all as it was,
        where it has to be a text first.
        """
        if not self.digits or self.eol not in ("", "\n") or self.header_pending or self.inside_row:
            return None
        try:
            fields = self.fields_of_pieces(self.rest.pieces(last))
        except DataError:
            return None  # whoever reads the text says where that is
        if fields is not None:
            self.rest = EMPTY
            self.line += 1
        return fields

    def fields_of_pieces(self, pieces: list[Piece]) -> list[Any] | None:
        """Return the fields of a long line, those among ``digits`` as Digits where they are; None where it is
        not plain. Raises DataError.
        """
        raise NotImplementedError

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
            self.rest.size or self.header_pending or self.ended or self.inside_row
        )

    @property
    def inside_row(self) -> bool:
        """Whether a line has ended that did not end its row."""
        raise NotImplementedError

    def take_rest(self) -> bytes:
        """Hand out the beginning of a line that ``feed`` keeps; it belongs before the next data."""
        rest, self.rest = self.rest, EMPTY
        self._returned = False
        self.look_again()
        return rest.whole()

    def pass_lines(self, count: int) -> None:
        """Count lines that were read elsewhere."""
        self.line += count

    def _check_rest(self) -> None:
        if self.rest.size > MAX_LINE_BYTES:
            raise DataError("54000", "line is too long", where=copy_context(self.table, self.line + 1))

    def _find_eol(self, data: bytes) -> bytes:
        """Learn from what is new how lines end, if the first one does; returns that, or all there is where an
        end was cut in two.
        """
        if self._returned:
            at, self._returned = 0, False
            data = b"\r" + data
            self.rest = EMPTY.plus(self.rest.whole()[:-1])
        else:
            at = self.first_end(data)
        mark, following = data[at : at + 1], data[at + 1 : at + 2]
        if at >= 0 and mark == b"\n":
            self.eol = "\n"
        elif at >= 0 and following:
            self.eol = "\r\n" if following == b"\n" else "\r"
        else:
            self._returned = at >= 0
        return data

    def first_end(self, data: bytes) -> int:
        """Return where the first line end is that is no data, else -1; what came before was looked at by the
        same function.
        """
        raise NotImplementedError

    def look_again(self) -> None:
        """Have ``first_end`` begin with the first byte of a row."""
        raise NotImplementedError

    def finish(self) -> CopyRows:
        """Return what is left at the end of the data."""
        if not self.ended and self.rest.size >= copy_long.LINE_BYTES:
            row = self._long_row(b"")
            if row is not None:
                return CopyRows([row], [self.line])
        rest = self.take_rest()
        if self.ended or not rest:
            if self.header_pending and self.width and not self.ended:
                self.line += 1
                self.header([None if self.null == "" else ""], "", 1)
            return self.end(NO_ROWS)
        self.unterminated = True
        if rest.endswith(b"\r") and self.eol != "\n":
            rest = rest[:-1]
            self.eol = self.eol or "\r"
            if self.eol == "\r\n":
                rest += b"\r"
        elif self.eol == "\r\n":
            rest += b"\r"
        held = [rest]
        del rest
        return self.end(self._block(held))

    def end(self, rows: CopyRows) -> CopyRows:
        """Hook for formats that can be inside a row at the end."""
        return rows

    def _block(self, held: list[bytes]) -> CopyRows:
        """Decode complete lines (without the final line end), the one entry of ``held``; of several wrong
        ones the first is reported.
        """
        mark = b"\r" if self.eol == "\r" else b"\n"
        if find(held[0], mark) < 0:
            return self._lines(held)
        block = held[0]
        before = self.save()
        try:
            return self._lines(held)
        except DataError:
            self.restore(before)
        # Line by line: an earlier line may be wrong as well, or end the data.
        rows: list[list[Any]] = []
        numbers: list[int] = []
        for line in block.split(mark):
            found = self._lines([line])
            rows += found.rows
            numbers += found.lines
            if self.ended:
                break
        return CopyRows(rows, numbers)

    def _lines(self, held: list[bytes]) -> CopyRows:
        """Decode complete lines, which are taken out of ``held``: once they are read, a long one need not be
        there twice.

        Raises DataError, not always that of the first wrong one.
        """
        block = held.pop()
        try:
            text = decode(block)
        except DataError as error:
            error.where = copy_context(self.table, self.line + self._bad_line(block))
            raise
        del block
        self.long = len(text) > LONG
        if self.eol == "\r":
            lines = split(text, "\r")
            if find(text, "\n") >= 0:
                self._literal(lines, "\n")
        else:
            lines = split(text, "\n")
            if find(text, "\r") >= 0:
                lines = self._returns(lines)
            elif self.eol == "\r\n":
                self._missing_return(lines)
        return self.take(lines)

    def _bad_line(self, block: bytes) -> int:
        """Return the number of the line that ``decode`` refuses, from 1."""
        try:
            decoded(block)
        except UnicodeDecodeError as error:
            at = error.start
        else:
            at = find(block, b"\0")
        mark = b"\r" if self.eol == "\r" else b"\n"
        number = 1
        for start in range(0, at, PIECE):
            number += block.count(mark, start, min(start + PIECE, at))
            give_way()
        return number

    # CSV overrides these three: inside quotes every line end is data.
    def _returns(self, lines: list[str]) -> list[str]:
        if self.eol == "\r\n":
            self._missing_return(lines)
            lines = [line[:-1] for line in lines]
        for number, line in enumerate(lines, 1):
            if find(line, "\r") >= 0 and not self._all_escaped(line, "\r"):
                raise self.error(self.return_found, at=self.line + number, hint=self.return_hint)
        return lines

    def _missing_return(self, lines: list[str]) -> None:
        for number, line in enumerate(lines, 1):
            if not line.endswith("\r"):
                raise self.error(self.newline_found, at=self.line + number, hint=self.newline_hint)

    def _literal(self, lines: list[str], mark: str) -> None:
        for number, line in enumerate(lines, 1):
            if find(line, mark) >= 0 and not self._all_escaped(line, mark):
                raise self.error(self.newline_found, at=self.line + number, hint=self.newline_hint)

    def _all_escaped(self, line: str, mark: str) -> bool:
        at = find(line, mark)
        while at >= 0:
            if not is_escaped(line, at):
                return False
            at = find(line, mark, at + 1)
            give_way()
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

    def header(self, fields: list[str | None], line: str, count: int) -> None:
        """Check a header line (MATCH), or just pass it. ``count``: of its fields, of which not all need be there."""
        self.header_pending = False
        if self.options.header != "match":
            return
        if count != self.width:
            raise self.error(
                f"wrong number of fields in header line: got {count}, expected {self.width}",
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
