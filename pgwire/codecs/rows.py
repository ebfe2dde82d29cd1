r"""Python rows -> framed DataRow messages.

    D | int32 length | int16 columns | per column: int32 length (-1 NULL), bytes

``row_encoder`` writes the source of a function for the given columns and compiles it, so that the loop over
columns costs nothing per row. Three shapes:

- **text**: the message is built as a ``str`` of characters up to U+00FF that stand for bytes (lengths come from a
  table of four-character strings) and encoded once per batch as Latin-1. Building strings is what CPython
  does fastest. Values that are not ASCII go through the client's encoding and back to such characters.
- **text, with values that repeat**: neighbouring columns that have few different values in a sample of a
  batch are written once for each combination of them, and looked up for the other rows.
- **all columns binary and of fixed size**: one ``struct`` pack per row that has no NULL.

Five int and text columns cost about 1 microsecond a row.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from pgwire import oids
from pgwire.codecs import domain
from pgwire.codecs.domain import EPOCH_2000_DAYS, EPOCH_2000_US
from pgwire.codecs.registry import binary_encoder, codec, kept_for_settings, text_printer
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.sizes import Measure, measure_of
from pgwire.codecs.text.encodings import encoding
from pgwire.give_way import give_way, paced

WIDE: Final = 128
"""Columns; of more, functions for ``PART`` of them are compiled one by one: one call of Python for 1,664
takes 0.2 s."""
CELLS: Final = 16 << 10
"""Cells that are written between two looks at the clock: two milliseconds."""
PART: Final = 32
LONG_BYTES: Final = 1 << 20


class LongRows(Exception):
    """Rows of more than ``LONG_BYTES`` are not put together in memory: ``pgwire.codecs.long_rows`` has the
    way for them.
    """


RowEncoder: TypeAlias = Callable[[Sequence[tuple[Any, ...]]], tuple[bytearray, int]]

MAX_COLUMNS: Final = 1664
NULL: Final = "\xff\xff\xff\xff"


class Lengths(dict[int, str]):
    """Length -> its four big-endian bytes as characters; filled on demand, small ones kept."""

    def __missing__(self, length: int) -> str:
        """Make the entry for ``length``."""
        text = length.to_bytes(4, "big").decode("latin-1")
        if length < 65536:
            self[length] = text
        return text


LENGTHS: Final = Lengths()
_SHORT: Final = tuple(LENGTHS[n] for n in range(8192))

# Binary types whose value packs as it is: struct code, size, offset to subtract, and the values that do not.
_FIXED: Final[dict[int, tuple[str, int]]] = {
    domain.BOOL: ("?", 1), domain.INT2: ("h", 2), domain.INT4: ("i", 4), domain.INT8: ("q", 8),
    domain.OID: ("I", 4), domain.XID: ("I", 4), domain.FLOAT4: ("f", 4), domain.FLOAT8: ("d", 8),
    domain.TIME: ("q", 8), domain.UUID: ("16s", 16), domain.DATE: ("i", 4), domain.TIMESTAMP: ("q", 8),
    domain.TIMESTAMPTZ: ("q", 8),
}  # fmt: skip
_SHIFT: Final = {
    domain.DATE: EPOCH_2000_DAYS, domain.TIMESTAMP: EPOCH_2000_US, domain.TIMESTAMPTZ: EPOCH_2000_US,
}  # fmt: skip


def _latin(text: str) -> str:
    """Return the UTF-8 bytes of ``text`` as characters."""
    return text.encode("utf-8").decode("latin-1")


def _latin_of(name: str) -> Callable[[str], str]:
    """Return the function from a text to its bytes in a client's encoding, as characters."""
    if name == "UTF8":
        return _latin
    write = encoding(name).encode
    return lambda text: write(text).decode("latin-1")


def format_of(formats: Sequence[int], index: int) -> int:
    """Return the format code of a column: none given = text, one = for all."""
    if not formats:
        return 0
    return formats[0] if len(formats) == 1 else formats[index]


@kept_for_settings(512)
def row_encoder(type_oids: tuple[int, ...], formats: tuple[int, ...], settings: CodecSettings) -> RowEncoder:
    """Return the function from rows (tuples as long as ``type_oids``) to (DataRow messages, their number).

    ``formats`` are format codes as in Bind: none, one for all, or one per column.

    Raises:
        DataError: 0A000 for a type without codec; the function 22P05, for a character that the client's encoding lacks.
        LongRows: the function, where a cell is long and all of them are very long.
    """
    each = tuple(format_of(formats, i) for i in range(len(type_oids)))
    general = _string_encoder(type_oids, each, settings)
    if type_oids and len(type_oids) <= WIDE and all(each) and all(oid in _FIXED for oid in type_oids):
        return _packed_encoder(type_oids, general)
    return general


class _Cells(NamedTuple):
    """How each column is written: sources over its value ``v``, and the names that they use.

    Attributes:
        shown: the source of the text of a value that is not NULL, as characters that stand for bytes.
        space: what the sources refer to.
        header: the number of columns, as characters.
        measure: of rows, None where none can be long.
    """

    shown: tuple[str, ...]
    space: dict[str, Any]
    header: str
    measure: Measure | None


def _string_encoder(
    type_oids: tuple[int, ...], formats: tuple[int, ...], settings: CodecSettings
) -> RowEncoder:
    """Compile the general shape."""
    space: dict[str, Any] = {"N": NULL, "latin": _latin_of(settings.encoding), "L": _SHORT}
    shown: list[str] = []
    for i in paced(range(len(type_oids))):
        oid, format_ = type_oids[i], formats[i]
        printer = text_printer(oid, settings) if not format_ else None
        found = codec(oid)
        if oid == domain.BOOL and not format_:
            shown.append("'t' if v else 'f'")
        elif format_:
            space[f"e{i}"] = _binary_latin(binary_encoder(oid, settings))
            shown.append(f"e{i}(v)")
        elif printer is str:
            shown.append("str(v)")
        elif oid == domain.BYTEA and printer is not None:
            space[f"e{i}"] = _within(printer)
            shown.append(f"e{i}(v, L)")
        elif oid in _AS_IS:
            shown.append("v if v.isascii() else latin(v)")
        elif not found.ascii:
            space[f"e{i}"] = printer
            shown.append(f"t if (t := e{i}(v)).isascii() else latin(t)")
        else:
            space[f"e{i}"] = printer
            shown.append(f"e{i}(v)")
    header = "".join(f"\\x{byte:02x}" for byte in len(type_oids).to_bytes(2, "big"))
    cells = _Cells(tuple(shown), space, header, measure_of(type_oids))
    encode_each = _encoder_of_each(cells)
    gains = (
        {i: _REPEATABLE[oid] for i, oid in enumerate(type_oids) if oid in _REPEATABLE}
        if len(type_oids) <= WIDE
        else {}
    )
    floats = [i for i in gains if type_oids[i] in (domain.FLOAT4, domain.FLOAT8)]
    by_pattern: dict[tuple[tuple[int, int], ...], RowEncoder] = {}

    def encode(rows: Sequence[tuple[Any, ...]]) -> tuple[bytearray, int]:
        chosen = encode_each
        if len(rows) >= MANY_ROWS and sum(gains.values()) >= _GAIN:
            signed = [i for i in floats if _has_minus_zero(rows, i)]
            pattern = _repeated(
                rows, gains if not signed else {i: gains[i] for i in gains if i not in signed}
            )
            if pattern:
                known = by_pattern.get(pattern)
                if known is None and len(by_pattern) < MAX_PATTERNS:
                    known = by_pattern[pattern] = _encoder_of_repeated(cells, pattern)
                chosen = known or encode_each
        return chosen(rows)

    return encode


def _within(show: Callable[[bytes], str]) -> Callable[[bytes, Sequence[str]], str]:
    """Return ``show`` for bytes that are in a table of lengths; IndexError before a long one is printed,
    which would be for nothing.
    """

    def shown(value: bytes, lengths: Sequence[str]) -> str:
        _ = lengths[len(value)]
        return show(value)

    return shown


def _compiled(body: str, cells: _Cells, space: dict[str, Any], parts: Sequence[str] = ()) -> RowEncoder:
    """Compile the function over ``rows``; ``body`` makes of a row ``b``, the message without type and length,
    by ``parts``: functions.
    """
    source = (
        "def encode(rows, L=L, N=N, len=len, str=str):\n"
        "    out = []\n"
        "    add = out.append\n"
        f"{body}"
        "        add(f'D{L[len(b) + 4]}{b}')\n"
        "    return bytearray(''.join(out), 'latin-1'), len(out)\n"
    )
    compiled = compile(source, "<row encoder>", "exec")
    short: dict[str, Any] = dict(space)
    unlimited: dict[str, Any] = {**space, "L": LENGTHS}
    for part in parts:
        give_way()
        made = compile(part, "<row encoder>", "exec")
        exec(made, short)
        exec(made, unlimited)
    exec(compiled, short)
    exec(compiled, unlimited)
    fast, slow = short.pop("encode"), unlimited.pop("encode")
    most = max(CELLS // max(len(cells.shown), 1), 1)

    def sliced(
        rows: Sequence[tuple[Any, ...]], encode: Callable[[Sequence[tuple[Any, ...]]], tuple[bytearray, int]]
    ) -> tuple[bytearray, int]:
        made = bytearray()
        for at in range(0, len(rows), most):
            made += encode(rows[at : at + most])[0]
            give_way()
        return made, len(rows)

    def encode(rows: Sequence[tuple[Any, ...]]) -> tuple[bytearray, int]:
        try:
            if len(rows) > most:
                return sliced(rows, fast)
            done: tuple[bytearray, int] = fast(rows)
        except IndexError:  # a cell or row longer than the table
            if cells.measure is not None and cells.measure(rows) > LONG_BYTES:
                raise LongRows from None
            done = slow(rows) if len(rows) <= most else sliced(rows, slow)
        return done

    return encode


def _lines_of_cell(cells: _Cells, i: int, indent: str = "        ") -> str:
    """Return the lines that make text ``s`` and length ``l`` of the value ``v`` of a column."""
    shown = re.sub(r"\bv\b", f"v{i}", cells.shown[i])
    return (
        f"{indent}if v{i} is None: s{i} = ''; l{i} = N\n{indent}else: s{i} = {shown}; l{i} = L[len(s{i})]\n"
    )


def _encoder_of_each(cells: _Cells) -> RowEncoder:
    """Return the encoder that writes every cell."""
    width = len(cells.shown)
    if width > WIDE:
        return _encoder_in_parts(cells)
    target = "".join(f"v{i}, " for i in range(width)) or "_"
    lines = "".join(_lines_of_cell(cells, i) for i in range(width))
    message = "".join(f"{{l{i}}}{{s{i}}}" for i in range(width))
    return _compiled(
        f"    for {target} in rows:\n{lines}        b = f'{cells.header}{message}'\n", cells, cells.space
    )


def _encoder_in_parts(cells: _Cells) -> RowEncoder:
    """Return the encoder of very many columns: a function for each ``PART`` of them, which Python compiles
    one by one.
    """
    parts: list[str] = []
    message = ""
    for start in range(0, len(cells.shown), PART):
        columns = range(start, min(start + PART, len(cells.shown)))
        parts.append(
            f"def p{start}(row, L=L, N=N, len=len, str=str):\n    {''.join(f'v{i}, ' for i in columns)} = row\n"
            + "".join(_lines_of_cell(cells, i, "    ") for i in columns)
            + f"    return f'{''.join(f'{{l{i}}}{{s{i}}}' for i in columns)}'\n"
        )
        message += f"{{p{start}(r[{start}:{start + PART}])}}"
    return _compiled(
        f"    for r in rows:\n        b = f'{cells.header}{message}'\n", cells, cells.space, parts
    )


# --- values that repeat -----------------------------------------------------------------------------

MANY_ROWS: Final = 256  # of a batch: from here on it is looked at for values that repeat
MAX_PATTERNS: Final = 4  # encoders for different columns that repeat, kept with one for all
_SAMPLE: Final = 32  # rows looked at
_FEW: Final = 8  # different values among them
_FEW_TEXTS: Final = (
    2  # of a column that gains little: one with more of them has more still in the batch, mostly
)
_GAIN: Final = 6  # of a run of columns: looking its values up takes as long as writing two or three

# Types whose values print alike when they are equal, which numerics do not (1.0 and 1.00) and floats but for
# one (-0 and 0), and what is gained by not printing one: texts are written nearly as fast as they are looked
# up, and what arrays hold here is mostly NULL.
_REPEATABLE: Final[dict[int, int]] = {
    **dict.fromkeys((domain.NAME, domain.TEXT, domain.VARCHAR, domain.BPCHAR, domain.PG_NODE_TREE), 1),
    **dict.fromkeys((oids.CHAR_ARRAY, oids.NAME_ARRAY, oids.TEXT_ARRAY, oids.OID_ARRAY, oids.ACLITEM_ARRAY), 1),
    **dict.fromkeys((domain.FLOAT4, domain.FLOAT8), 3),
    **dict.fromkeys((
        domain.BOOL, domain.INT2, domain.INT4, domain.INT8, domain.OID, domain.XID, domain.CHAR, domain.DATE, domain.TIME,
        domain.TIMESTAMP, domain.TIMESTAMPTZ, domain.UUID,
    ), 2),
}  # fmt: skip


_MINUS_ZERO: Final = struct.pack("=d", -0.0)


def _has_minus_zero(rows: Sequence[tuple[Any, ...]], i: int) -> bool:
    """Tell whether a column of floats may have a value that equals one that prints otherwise."""
    try:
        return _MINUS_ZERO in array("d", [row[i] for row in rows]).tobytes()
    except TypeError:  # a NULL: not worth a closer look
        return True


def _repeated(rows: Sequence[tuple[Any, ...]], gains: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    """Return the runs of neighbouring columns (first, behind the last) with few different values in a sample of rows.

    ``gains``: of the columns that may be in one.
    """
    sample = rows[:: len(rows) // _SAMPLE]
    runs: list[list[int]] = []
    for i, gain in gains.items():
        if len({row[i] for row in sample}) > (_FEW if gain > 1 else _FEW_TEXTS):
            continue
        if runs and runs[-1][1] == i:
            runs[-1][1] = i + 1
            runs[-1][2] += gain
        else:
            runs.append([i, i + 1, gain])
    return tuple(
        (start, stop)
        for start, stop, gain in runs
        if gain >= _GAIN and len({row[start:stop] for row in sample}) <= _FEW
    )


class _Written(dict[Any, str]):
    """Values of a run of columns -> their cells, written when they are met first in a batch."""

    __slots__ = ("write",)

    def __init__(self, write: Callable[[Any], str]) -> None:
        super().__init__()
        self.write = write

    def __missing__(self, values: Any) -> str:
        """Write."""
        text = self[values] = self.write(values)
        return text


def _encoder_of_repeated(cells: _Cells, runs: Sequence[tuple[int, int]]) -> RowEncoder:
    """Return the encoder that writes cells of ``runs`` once for each of their values in a batch."""
    begin_to_end = dict(runs)
    covered = {i for start, stop in runs for i in range(start, stop)}
    space = {**cells.space, "Written": _Written}
    begins = lines = message = ""
    for i in range(len(cells.shown)):
        if i in begin_to_end:
            stop = begin_to_end[i]
            space[f"write{i}"] = _writer_of(cells, i, stop)
            begins += f"    g{i} = Written(write{i})\n"
            message += f"{{g{i}[r[{i}:{stop}]]}}"
        elif i not in covered:
            lines += f"        v{i} = r[{i}]\n{_lines_of_cell(cells, i)}"
            message += f"{{l{i}}}{{s{i}}}"
    return _compiled(
        f"{begins}    for r in rows:\n{lines}        b = f'{cells.header}{message}'\n", cells, space
    )


def _writer_of(cells: _Cells, start: int, stop: int) -> Callable[[Any], str]:
    """Return the function from the values of a run of columns to their cells, of any length."""
    columns = range(start, stop)
    values = "".join(f"v{n}, " for n in columns)
    lines = "".join(_lines_of_cell(cells, n, "    ") for n in columns)
    text = "".join(f"{{l{n}}}{{s{n}}}" for n in columns)
    space: dict[str, Any] = {**cells.space, "L": LENGTHS}
    exec(f"def write(row):\n    {values} = row\n{lines}    return f'{text}'\n", space)
    write: Callable[[Any], str] = space.pop("write")
    return write


_AS_IS: Final = frozenset({
    domain.TEXT, domain.VARCHAR, domain.BPCHAR, domain.NAME, domain.JSON, domain.JSONB, domain.UNKNOWN,
    domain.CSTRING, domain.REFCURSOR, domain.ACLITEM, domain.PG_NODE_TREE,
})  # fmt: skip


def _binary_latin(encode: Callable[[Any], bytes]) -> Callable[[Any], str]:
    return lambda value: encode(value).decode("latin-1")


def _packed_encoder(type_oids: tuple[int, ...], general: RowEncoder) -> RowEncoder:
    """Compile the fixed-size binary shape; rows with NULL or infinity take the general one."""
    codes = [_FIXED[oid] for oid in type_oids]
    packer = struct.Struct(">cih" + "".join(f"i{code}" for code, _ in codes))
    names = [f"v{i}" for i in range(len(type_oids))]
    values: list[str] = []
    guards: list[str] = []
    for i, oid in enumerate(type_oids):
        shift = _SHIFT.get(oid)
        values.append(f"{codes[i][1]}, v{i}" + (f" - {shift}" if shift else ""))
        guards.append(f"v{i} is None")
        if shift:
            infinity = domain.DATE_INFINITY if oid == domain.DATE else domain.TIMESTAMP_INFINITY
            guards.append(f"v{i} == {infinity}")
            guards.append(f"v{i} == {-infinity}")
    source = (
        "def encode(rows):\n"
        "    out = []\n"
        "    add = out.append\n"
        f"    for row in rows:\n"
        f"        {', '.join(names)}, = row\n"
        f"        if {' or '.join(guards)}:\n"
        "            add(general((row,))[0])\n"
        "        else:\n"
        f"            add(pack(b'D', {packer.size - 1}, {len(type_oids)}, {', '.join(values)}))\n"
        "    return bytearray(b''.join(out)), len(out)\n"
    )
    space: dict[str, Any] = {"pack": packer.pack, "general": general}
    exec(compile(source, "<row encoder>", "exec"), space)
    encode: RowEncoder = space.pop("encode")
    return encode
