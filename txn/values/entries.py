"""What an inverted index enters a row under: the pieces of one value, each a key of its own.

    elements     {red,blue}          ->  'red'  'blue'             {} -> NULL      NULL elements are no keys
    json         {"a": [1, "b"]}     ->  key a   number 1   key b   a string in an array counts as a key
    json_paths   {"a": [1, "b"]}     ->  a/number 1   a/string b    leaves with the object keys above them
    lexemes      'fat':2 'rat':3     ->  fat   rat                  of a tsvector, whose bytes ``pgwire.codecs.text.tsvector`` describes

A document is taken apart as PostgreSQL's jsonb_ops and jsonb_path_ops do it (manual 8.14.4), so a document
that contains another has all of its entries. Entries of documents and tsvectors are 64 bit digests: rows
found are candidates, to be tested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from txn.base.types import PhysicalType, ShardIndex

_INT64: Final = PhysicalType(kind="int64")
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_SHORT_BYTES: Final = 64
_KEPT_CHARS: Final = 8192
"""Longer documents are taken apart each time: what is kept of shorter ones then takes a few megabytes."""


def entry_type(kind: str, column: PhysicalType) -> PhysicalType:
    """Return the type of the keys of an inverted index over a column. ValueError where it cannot be over it."""
    if kind == "elements":
        if column.element is None:
            raise ValueError("an index of elements needs a list")
        return column.element
    if kind == "lexemes":
        if column.kind != "bytes":
            raise ValueError("an index of lexemes needs tsvectors")
        return _INT64
    if column.kind != "text":
        raise ValueError("an index of documents needs their texts")
    return _INT64


def key_entry(key: str) -> int:
    """Return the entry of an object's key, or of a string that is an array's element, in an index of kind ``json``."""
    return _digest(b"K" + key.encode("utf-8", "surrogatepass"))


def lexeme_entry(lexeme: str) -> int:
    """Return the entry of a lexeme in an index of kind ``lexemes``."""
    return _digest(b"L" + lexeme.encode("utf-8", "surrogatepass"))


def document_entries(kind: str, document: str | bytes) -> frozenset[int]:
    """Return the entries of a document, or of a tsvector, for an index of a kind but elements; they may be none."""
    if len(document) <= _KEPT_CHARS:
        return _kept_entries(kind, document)
    return _fresh_entries(kind, document)


def each_document_entry(kind: str, document: str | bytes) -> Iterator[int]:
    """Yield the entries that ``document_entries`` returns, one by one, some of them repeatedly."""
    if isinstance(document, bytes):
        return _lexemes(document)
    return _json(document) if kind == "json" else _json_paths(document)


def _fresh_entries(kind: str, document: str | bytes) -> frozenset[int]:
    return frozenset(each_document_entry(kind, document))


_kept_entries = lru_cache(maxsize=512)(_fresh_entries)


def _digest(data: bytes) -> int:
    return _kept_digest(data) if len(data) <= _SHORT_BYTES else _fresh_digest(data)


def _fresh_digest(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


_kept_digest = lru_cache(maxsize=8192)(_fresh_digest)  # documents have keys in common


def _string(token: str) -> bytes:
    text = json.loads(token) if "\\" in token else token[1:-1]
    return str(text).encode("utf-8", "surrogatepass")


def _scalar(token: str) -> bytes:
    """Return a number, true, false or null such that equal numbers are equal."""
    if token[0] in "tfn":
        return token[0].encode("ascii")
    if token.isdigit():
        kept = token.rstrip("0")
        return f"N{kept}e{len(token) - len(kept)}".encode("ascii") if kept else b"N0"
    mantissa, _, exponent = token.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return b"N0"
    power = int(exponent or 0) - len(fraction) + len(digits) - len(kept)
    return f"N{'-' if token[0] == '-' else ''}{kept}e{power}".encode("ascii")


def _lexemes(value: bytes) -> Iterator[int]:
    """Yield an entry for each lexeme: 8 bytes before the first, NUL behind each, then 65535 less the number
    of its places, if any.
    """
    at, end = 8, len(value)
    while at < end:
        stop = value.index(0, at + 1)
        yield _digest(b"L" + value[at + 1 : stop])
        places = 0 if value[at] else 1 + 0xFFFF - (value[stop + 1] << 8 | value[stop + 2])
        at = stop + 1 + 2 * places


def _tokens(text: str) -> Iterable[str]:
    """Return the tokens of a document; a long one's are looked for as they are asked for."""
    if len(text) <= _KEPT_CHARS:
        found: list[str] = _TOKEN.findall(text)
        return found
    return (match.group() for match in _TOKEN.finditer(text))


def _json(text: str) -> Iterator[int]:
    """Yield an entry for each key and each scalar of a document."""
    open_: list[bool] = []  # whether each container is an object
    is_key = False
    for token in _tokens(text):
        first = token[0]
        if first == '"':
            named = is_key or not open_ or not open_[-1]
            yield _digest((b"K" if named else b"S") + _string(token))
        elif first in "{[":
            open_.append(first == "{")
            is_key = open_[-1]
        elif first in "}]":
            open_.pop()
        elif first == ",":
            is_key = open_[-1]
        elif first == ":":
            is_key = False
        else:
            yield _digest(_scalar(token))


def _json_paths(text: str) -> Iterator[int]:
    """Yield an entry for each scalar of a document with the keys of the objects around it."""
    open_: list[tuple[bool, bytes]] = []  # of each container: whether it is an object, the digest of its path
    is_key = False
    path = b""
    for token in _tokens(text):
        first = token[0]
        if first == '"':
            if is_key:
                path = blake2b(open_[-1][1] + _string(token), digest_size=8).digest()
            else:
                yield _digest(path + b"S" + _string(token))
        elif first in "{[":
            open_.append((first == "{", path))
            is_key = open_[-1][0]
        elif first in "}]":
            open_.pop()
        elif first == ",":
            is_key, path = open_[-1]
        elif first == ":":
            is_key = False
        else:
            yield _digest(path + _scalar(token))


def entry_arrays(index: ShardIndex, column: Any) -> tuple[Any, Any]:
    """Return the entries of a part's column as Arrow arrays: keys (NULL: an empty list), positions (uint32).

    ``column``: one chunk, in part order; lists flat. Runs in a thread; takes about ten microseconds for a
    short document.
    """
    if index.kind == "elements":
        keys = column.flatten()
        positions = pc.list_parent_indices(column).cast(pa.uint32())
        there = keys.is_valid()
        keys, positions = keys.filter(there), positions.filter(there)
        empty = pc.indices_nonzero(pc.fill_null(pc.equal(pc.list_value_length(column), 0), False))
        if len(empty):
            keys = pa.concat_arrays([keys, pa.nulls(len(empty), keys.type)])
            positions = pa.concat_arrays([positions, empty.cast(pa.uint32())])
        return keys, positions
    found: list[int] = []
    places: list[int] = []
    for position, text in enumerate(column):
        if text.is_valid:
            entries = document_entries(index.kind, text.as_py())
            found.extend(entries)
            places.extend([position] * len(entries))
    return pa.array(found, pa.int64()), pa.array(places, pa.uint32())
