r"""COPY TO: rows of values or Arrow batches -> text, CSV or binary rows.

``framed`` encoders wrap every row in a CopyData message of its own, as PostgreSQL sends them:

    d | int32 length | row

The result then is ready for the socket; without framing it is the bytes of a file.

Texts are escaped first, then put into the encoding of the settings. That is the same as the other way round,
since no encoding has ASCII's bytes for other characters, but for a few that look like it
(``Encoding.lookalikes``): those are replaced before.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from pgwire.codecs import domain
from pgwire.codecs.columnar import CHUNK_ROWS, in_encoding, length_table, text_column, values_of
from pgwire.codecs.copy import BINARY_SIGNATURE, CopyOptions
from pgwire.codecs.long_rows import (
    PIECE_BYTES,
    Cell,
    LongRow,
    Pieces,
    byte_pieces,
    framed_parts,
    hex_pieces,
    long_binary_row,
    text_pieces,
)
from pgwire.codecs.registry import binary_encoder, codec, kept_for_settings, text_printer
from pgwire.codecs.rows import PART, WIDE
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.text.encodings import encoding
from pgwire.give_way import give_way
from pgwire.long.values import joined, mapped, pieces, replaced

CopyEncoder: TypeAlias = Callable[[Sequence[tuple[Any, ...]]], tuple[bytes, int]]

_CONTROLS: Final = {
    "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\",
}  # fmt: skip
_PIECE: Final = 1 << 16
# Types whose text holds neither backslash, control character nor any possible delimiter but these.
_SAFE_CHARACTERS: Final = frozenset("0123456789+-.:eEtfaInNyi ")


def copy_header(options: CopyOptions, columns: Sequence[str], settings: CodecSettings) -> bytes:
    """Return what precedes the rows: the binary signature, the header line, or nothing. Raises DataError 22P05."""
    if options.format == "binary":
        return BINARY_SIGNATURE + bytes(8)
    if not options.header:
        return b""
    delimiter = options.effective_delimiter
    to = encoding(settings.encoding)
    names = [name.translate(to.lookalikes) for name in columns]
    if options.format == "csv":
        quote = _csv_quoter(options, forced=False, single=len(columns) == 1)
        return to.encode(delimiter.join([quote(name) for name in names]) + "\n")
    escape = _text_escaper(options)
    return to.encode(delimiter.join([escape(name) for name in names]) + "\n")


def copy_trailer(options: CopyOptions) -> bytes:
    """Return what follows the rows: the binary end marker, or nothing."""
    return b"\xff\xff" if options.format == "binary" else b""


def _text_escaper(options: CopyOptions) -> Callable[[str], str]:
    delimiter = options.effective_delimiter
    special = re.compile("[\b\f\n\r\t\v\\\\" + re.escape(delimiter) + "]")
    table = {"\\": "\\\\", **_CONTROLS}  # the backslash first, which the others bring in
    if delimiter not in table:
        table[delimiter] = "\\" + delimiter

    def escaped(text: str) -> str:
        for character, written in table.items():
            text = text.replace(character, written)
        return text

    def escape(text: str) -> str:
        if len(text) > 256:
            return mapped(text, escaped, _PIECE)
        if special.search(text):
            return special.sub(lambda match: table[match[0]], text)
        return text

    return escape


def _csv_quoter(options: CopyOptions, *, forced: bool, single: bool) -> Callable[[str], str]:
    quote, escape = options.effective_quote, options.effective_escape
    delimiter, null = options.effective_delimiter, options.effective_null
    special = re.compile("[\r\n" + re.escape(delimiter + quote) + "]")

    def show(text: str) -> str:
        has = forced or text == null or (single and text == "\\.")
        if not (has or any(map(special.search, pieces(text, _PIECE)))):
            return text
        if escape != quote:
            text = replaced(text, escape, escape + escape)
        return joined((quote, replaced(text, quote, escape + quote), quote))

    return show


def _cell_functions(
    type_oids: Sequence[int], options: CopyOptions, settings: CodecSettings
) -> list[Callable[[Any], str]]:
    """Return per column the function from a value that is not NULL to its escaped text."""
    functions: list[Callable[[Any], str]] = []
    escape = _text_escaper(options)
    safe_delimiter = options.effective_delimiter not in _SAFE_CHARACTERS
    lookalikes = encoding(settings.encoding).lookalikes
    for index, oid in enumerate(type_oids):
        printer = text_printer(oid, settings)
        if lookalikes and not codec(oid).ascii:
            printer = _then(printer, lambda text: text.translate(lookalikes))
        safe = codec(oid).plain and safe_delimiter
        if options.format == "csv":
            forced = index in options.force_quote
            if safe and not forced and options.effective_null == "" and options.effective_quote == '"':
                functions.append(printer)
                continue
            functions.append(_then(printer, _csv_quoter(options, forced=forced, single=len(type_oids) == 1)))
        elif safe:
            functions.append(printer)
        else:
            functions.append(_then(printer, escape))
    return functions


def _then(first: Callable[[Any], str], second: Callable[[str], str]) -> Callable[[Any], str]:
    return lambda value: second(first(value))


@kept_for_settings(128)
def copy_row_encoder(
    type_oids: tuple[int, ...], options: CopyOptions, settings: CodecSettings, *, framed: bool = False
) -> CopyEncoder:
    """Return the function from rows of values to (encoded rows, their number).

    Raises:
        DataError: 0A000 for a type without codec; the function 22P05, for a character that the encoding lacks.
    """
    if options.format == "binary":
        return _binary_rows(type_oids, settings, framed)
    functions = _cell_functions(type_oids, options, settings)
    utf8 = settings.encoding == "UTF8"
    space: dict[str, Any] = {
        "N": options.effective_null, "D": options.effective_delimiter, "to": encoding(settings.encoding).encode,
    }  # fmt: skip
    cells: list[str] = []
    for i, function in enumerate(functions):
        if function is not str:
            space[f"e{i}"] = function
        name = "str" if function is str else f"e{i}"
        cells.append(f"{{N if v{i} is None else {name}(v{i})}}")
    target = "".join(f"v{i}, " for i in range(len(type_oids))) or "_"
    if len(cells) > WIDE:
        target, cells = "r", [_part(cells, start, space) for start in range(0, len(cells), PART)]
    body = "{D}".join(cells) + "\\n"
    add = "add(f'" + body + "')"
    if framed:
        row = f"f'{body}'.encode()" if utf8 else f"to(f'{body}')"
        add = f"b = {row}; add(b'd' + (len(b) + 4).to_bytes(4, 'big') + b)"
    whole = "b''.join(out)" if framed else "''.join(out).encode()" if utf8 else "to(''.join(out))"
    source = (
        "def encode(rows):\n"
        "    out = []\n"
        "    add = out.append\n"
        f"    for {target} in rows:\n"
        f"        {add}\n"
        f"    return {whole}, len(out)\n"
    )
    exec(compile(source, "<copy encoder>", "exec"), space)
    encode: CopyEncoder = space.pop("encode")
    return encode


def _part(cells: Sequence[str], start: int, space: dict[str, Any]) -> str:
    """Compile a function of ``PART`` columns of very many; return the source of the call for a row ``r``."""
    give_way()
    some = cells[start : start + PART]
    values = "".join(f"v{i}, " for i in range(start, start + len(some)))
    source = f"def p{start}(row):\n    {values} = row\n    return f'{'{D}'.join(some)}'\n"
    exec(compile(source, "<copy encoder>", "exec"), space)
    return f"{{p{start}(r[{start}:{start + PART}])}}"


def _binary_rows(type_oids: tuple[int, ...], settings: CodecSettings, framed: bool) -> CopyEncoder:
    encoders = [binary_encoder(oid, settings) for oid in type_oids]
    columns = struct.pack(">h", len(type_oids))

    def encode(rows: Sequence[tuple[Any, ...]]) -> tuple[bytes, int]:
        out: list[bytes] = []
        for row in rows:
            parts = [columns]
            for value, encoder in zip(row, encoders, strict=True):
                if value is None:
                    parts.append(b"\xff\xff\xff\xff")
                else:
                    data = encoder(value)
                    parts.append(len(data).to_bytes(4, "big"))
                    parts.append(data)
            body = b"".join(parts)
            out.append(b"d" + (len(body) + 4).to_bytes(4, "big") + body if framed else body)
        return b"".join(out), len(rows)

    return encode


def copy_long_row(type_oids: Sequence[int], options: CopyOptions, settings: CodecSettings) -> LongRow:
    """Return the function from a row to the pieces of its CopyData, in text, CSV or binary; see ``long_rows``."""
    if options.format == "binary":
        return long_binary_row(type_oids, settings)
    to = encoding(settings.encoding)
    cells = [_long_cell(i, type_oids, options, settings) for i in range(len(type_oids))]
    null, delimiter = to.encode(options.effective_null), to.encode(options.effective_delimiter)

    def encode(row: tuple[Any, ...]) -> Iterator[bytes | memoryview]:
        parts: list[Pieces] = []
        for value, cell in zip(row, cells, strict=True):
            parts += [
                partial(byte_pieces, null) if value is None else cell(value),
                partial(byte_pieces, delimiter),
            ]
        parts[-1:] = [partial(byte_pieces, b"\n")]
        return framed_parts(b"d", parts)

    return encode


def _long_cell(i: int, type_oids: Sequence[int], options: CopyOptions, settings: CodecSettings) -> Cell:
    oid = type_oids[i]
    to = encoding(settings.encoding)
    if options.format == "text":
        if oid == domain.BYTEA and settings.bytea_output == "hex":
            return lambda value: partial(hex_pieces, value, b"\\\\x")  # no delimiter is a hexadecimal digit
        escape = _text_escaper(options)
        return _printed(
            oid, settings, lambda text: partial(text_pieces, text, lambda piece: to.encode(escape(piece)))
        )
    quote, escape_with = options.effective_quote, options.effective_escape
    special = re.compile("[\r\n" + re.escape(options.effective_delimiter + quote) + "]")
    always = i in options.force_quote

    def doubled(piece: str) -> bytes:
        if escape_with != quote:
            piece = piece.replace(escape_with, escape_with + escape_with)
        return to.encode(piece.replace(quote, escape_with + quote))

    def quoted(text: str) -> Pieces:
        known = always or text == options.effective_null or (len(type_oids) == 1 and text == "\\.")
        odd: bool | None = True if known else None  # None: not looked yet

        def pieces() -> Iterator[bytes]:
            nonlocal odd
            if odd is None:
                found = False
                for at in range(0, len(text), PIECE_BYTES):
                    found = found or special.search(text, at, at + PIECE_BYTES) is not None
                    yield b""
                odd = found
            if not odd:
                yield from text_pieces(text, to.encode)
                return
            yield to.encode(quote)
            yield from text_pieces(text, doubled)
            yield to.encode(quote)

        return pieces

    return _printed(oid, settings, quoted)


def _printed(oid: int, settings: CodecSettings, cut: Callable[[str], Pieces]) -> Cell:
    """Return what cuts the text of a value, with the characters replaced that look like ASCII to the client."""
    show = text_printer(oid, settings)
    lookalikes = encoding(settings.encoding).lookalikes
    if lookalikes and not codec(oid).ascii:
        return lambda value: cut(show(value).translate(lookalikes))
    return lambda value: cut(show(value))


@kept_for_settings(128)
def copy_batch_encoder(
    type_oids: tuple[int, ...], options: CopyOptions, settings: CodecSettings, *, framed: bool = False
) -> Callable[[Any], tuple[Any, int]]:
    """Return the function from an Arrow RecordBatch to (encoded rows, their number).

    Text and CSV are built by Arrow's kernels as long as no cell of a column needs escaping; other columns go
    value by value. Pure: may run in any thread.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    by_row = copy_row_encoder(type_oids, options, settings, framed=framed)
    if options.format == "binary" or not type_oids or encoding(settings.encoding).lookalikes:

        def encode_rows(batch: Any) -> tuple[bytes, int]:
            columns = [values_of(batch.column(i)) for i in range(len(type_oids))]
            rows: list[tuple[Any, ...]] = (
                list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows
            )
            return by_row(rows)

        return encode_rows

    functions = _cell_functions(type_oids, options, settings)
    delimiter, null = options.effective_delimiter, options.effective_null
    text = options.format == "text"
    special = (
        "[\b\f\n\r\t\v\\\\" if text else "[\r\n" + re.escape(options.effective_quote)
    ) + re.escape(delimiter) + "]"  # fmt: skip

    def cells(column: Any, index: int) -> Any:
        oid = type_oids[index]
        if not (not text and index in options.force_quote) and oid not in (domain.BYTEA, domain.RECORD):
            plain = text_column(column, oid, settings)
            odd = pc.match_substring_regex(plain, special)
            if not text:
                odd = pc.or_(odd, pc.equal(plain, pa.scalar(null.encode(), pa.binary())))
                if len(type_oids) == 1:
                    odd = pc.or_(odd, pc.equal(plain, pa.scalar(b"\\.", pa.binary())))
            if not pc.any(odd).as_py():
                return pc.fill_null(plain, null.encode()) if plain.null_count else plain
        function = functions[index]
        values = values_of(column)
        return pa.array([(null if v is None else function(v)).encode() for v in values], pa.binary())

    def chunk(batch: Any) -> Any:
        parts: list[Any] = []
        for i in range(len(type_oids)):
            parts += [cells(batch.column(i), i), delimiter.encode()]
        parts[-1] = b"\n"
        rows = in_encoding(pc.binary_join_element_wise(*parts, b""), settings.encoding)
        if framed:
            lengths = pc.add(pc.binary_length(rows), 4)
            if pc.max(lengths).as_py() >= len(length_table()):
                return b"".join([b"d" + (len(row) + 4).to_bytes(4, "big") + row for row in rows.to_pylist()])
            rows = pc.binary_join_element_wise(b"d", length_table().take(lengths), rows, b"")
        offsets = memoryview(rows.buffers()[1]).cast("i")
        start, end = offsets[rows.offset], offsets[rows.offset + len(rows)]
        return memoryview(rows.buffers()[2])[start:end]

    def encode(batch: Any) -> tuple[Any, int]:
        count = batch.num_rows
        if count <= CHUNK_ROWS:
            return (chunk(batch) if count else b""), count
        out = bytearray()
        for at in range(0, count, CHUNK_ROWS):
            out += chunk(batch.slice(at, CHUNK_ROWS))
        return out, count

    return encode
