r"""Python rows -> framed DataRow messages.

    D | int32 length | int16 columns | per column: int32 length (-1 NULL), bytes

``row_encoder`` writes the source of a function for the given columns and compiles it, so that the loop over
columns costs nothing per row. Two shapes:

- **text**: the message is built as a ``str`` of characters up to U+00FF that stand for bytes (lengths come from a
  table of four-character strings) and encoded once per batch as Latin-1. Building strings is what CPython
  does fastest. Values that are not ASCII go through the client's encoding and back to such characters.
- **all columns binary and of fixed size**: one ``struct`` pack per row that has no NULL.

Five int and text columns cost about 1 microsecond a row.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from pgwire.codecs import domain
from pgwire.codecs.domain import EPOCH_2000_DAYS, EPOCH_2000_US
from pgwire.codecs.encodings import encoding
from pgwire.codecs.registry import binary_encoder, codec, kept_for_settings, text_printer
from pgwire.codecs.settings import CodecSettings

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
    """
    each = tuple(format_of(formats, i) for i in range(len(type_oids)))
    general = _string_encoder(type_oids, each, settings)
    if type_oids and all(each) and all(oid in _FIXED for oid in type_oids):
        return _packed_encoder(type_oids, general)
    return general


def _string_encoder(
    type_oids: tuple[int, ...], formats: tuple[int, ...], settings: CodecSettings
) -> RowEncoder:
    """Compile the general shape."""
    names = [f"v{i}" for i in range(len(type_oids))]
    space: dict[str, Any] = {"N": NULL, "latin": _latin_of(settings.encoding)}
    lines: list[str] = []
    for i, (oid, format_) in enumerate(zip(type_oids, formats, strict=True)):
        lines.append(f"        if v{i} is None: s{i} = ''; l{i} = N")
        printer = text_printer(oid, settings) if not format_ else None
        found = codec(oid)
        if oid == domain.BOOL and not format_:
            lines.append(f"        else: s{i} = 't' if v{i} else 'f'; l{i} = L[1]")
            continue
        if format_:
            space[f"e{i}"] = _binary_latin(binary_encoder(oid, settings))
            shown = f"e{i}(v{i})"
        elif printer is str:
            shown = f"str(v{i})"
        elif oid in _AS_IS:
            shown = f"v{i} if v{i}.isascii() else latin(v{i})"
        elif not found.ascii:
            space[f"e{i}"] = printer
            shown = f"t if (t := e{i}(v{i})).isascii() else latin(t)"
        else:
            space[f"e{i}"] = printer
            shown = f"e{i}(v{i})"
        lines.append(f"        else: s{i} = {shown}; l{i} = L[len(s{i})]")
    columns = "".join(f"\\x{byte:02x}" for byte in len(type_oids).to_bytes(2, "big"))
    cells = "".join(f"{{l{i}}}{{s{i}}}" for i in range(len(names)))
    target = f"{', '.join(names)}," if names else "_"
    source = (
        "def encode(rows, L=L, N=N, len=len, str=str):\n"
        "    out = []\n"
        "    add = out.append\n"
        f"    for {target} in rows:\n"
        + "".join(line + "\n" for line in lines)
        + f"        b = f'{columns}{cells}'\n"
        "        add(f'D{L[len(b) + 4]}{b}')\n"
        "    return bytearray(''.join(out), 'latin-1'), len(out)\n"
    )
    compiled = compile(source, "<row encoder>", "exec")
    short: dict[str, Any] = {**space, "L": _SHORT}
    unlimited: dict[str, Any] = {**space, "L": LENGTHS}
    exec(compiled, short)
    exec(compiled, unlimited)
    fast, slow = short["encode"], unlimited["encode"]

    def encode(rows: Sequence[tuple[Any, ...]]) -> tuple[bytearray, int]:
        try:
            done: tuple[bytearray, int] = fast(rows)
        except IndexError:  # a cell or row longer than the table
            done = slow(rows)
        return done

    return encode


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
    encode: RowEncoder = space["encode"]
    return encode
