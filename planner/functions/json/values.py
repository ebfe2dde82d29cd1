"""JSON text cut into its parts without rebuilding it, and SQL values turned into JSON.

A jsonb value is canonical text, so a piece of it is canonical too: field access is the same for json and jsonb
and costs one scan over the pieces before it.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from pgwire.codecs.array import dimensions
from pgwire.codecs.domain import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    JSON,
    JSONB,
    NUMERIC,
    RECORD,
    TIMESTAMP,
    TIMESTAMPTZ,
    TUPLE_TYPES,
)
from pgwire.codecs.json import check_escapes, dump, key_order, load, quote
from pgwire.codecs.json.long import WINDOW, Reader, past_blanks, value_end
from pgwire.codecs.registry import text_output
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.system import RecordValue
from pgwire.codecs.text import int_of
from pgwire.codecs.users.composite_keys import is_row
from pgwire.codecs.users.types import row_record
from pgwire.give_way import give_way, paced
from pgwire.long.values import cut, find, joined, joined_up, stripped
from planner.base.errors import SqlError, not_supported
from planner.functions.session import EvalSession
from planner.functions.values.casts import to_text
from planner.types.facts import element_of

__all__ = ["dump", "key_order", "load", "quote"]

_SKIMMER = json.JSONDecoder(parse_float=lambda _: None, parse_int=lambda _: None)
_SCAN: Callable[[str, int], tuple[Any, int]] = _SKIMMER.raw_decode
_WORD = re.compile(r"[A-Za-z0-9_]+")
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
_WHOLE = re.compile(r'(?:[^"]+|"(?:[^"\\]|\\.)*")+')
"""Text in which no string is cut off."""
_PLAIN = re.compile(r"[^,}\]]+")
_NUMBERS = frozenset((INT2, INT4, INT8, FLOAT4, FLOAT8, NUMERIC))
_OFFSET = re.compile(r"([+-][0-9][0-9])( BC)?\Z")


def read_escapes(text: str) -> None:
    r"""Raise 22P05 for ``\u0000`` and 22P02 for half a surrogate anywhere in a json, as whatever reads its
    strings does.
    """
    check_escapes(text)


def kind_of(text: str) -> str:
    """Return object, array, string, number, boolean or null."""
    char = text[past_blanks(text, 0)]
    return {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}.get(
        char, "number"
    )


def _parts(text: str) -> tuple[Callable[[int], tuple[Any, int]], Callable[[int], int]]:
    """Return what gives the string that begins at a place with its end, and the end of any value."""
    if len(text) <= WINDOW:
        return lambda at: _SCAN(text, at), lambda at: _SCAN(text, at)[1]
    reader = Reader(text, _SCAN, str)
    return reader.value, reader.end


def members(text: str) -> Iterator[tuple[str, str]]:
    """Yield (key, text of the value) of an object, duplicates included."""
    string, past = _parts(text)
    at = past_blanks(text, past_blanks(text, 0) + 1)
    while text[at] != "}":
        give_way()
        key, at = string(at)
        at = past_blanks(text, past_blanks(text, at) + 1)
        end = past(at)
        yield key, text[at:end] if end - at < WINDOW else cut(text, at, end)
        at = past_blanks(text, end)
        if text[at] == ",":
            at = past_blanks(text, at + 1)


def elements(text: str) -> Iterator[str]:
    """Yield the text of each element of an array."""
    _, past = _parts(text)
    at = past_blanks(text, past_blanks(text, 0) + 1)
    while text[at] != "]":
        give_way()
        end = past(at)
        yield text[at:end] if end - at < WINDOW else cut(text, at, end)
        at = past_blanks(text, end)
        if text[at] == ",":
            at = past_blanks(text, at + 1)


def field(text: str, key: str) -> str | None:
    """Return the value of a key (the last, if it is there twice), or None; None for what is no object."""
    if text[past_blanks(text, 0)] != "{":
        return None
    found = None
    for name, value in members(text):
        if name == key:
            found = value
    return found


def jsonb_field(text: str, key: str) -> str | None:
    """Return what ``field`` does of a jsonb, whose text is canonical: the key is looked for, not all members read.

    A quote inside a string stands behind a backslash, so a word in quotes with ``: `` behind it is a key, of
    this object if as many braces are closed as opened before it.
    """
    if text[0] != "{":
        return None
    if len(key) > WINDOW or _WORD.fullmatch(key) is None:
        return field(text, key)
    needle = f'"{key}": '
    depth, counted = 0, 1
    at = find(text, needle)
    while at > 0:
        depth += _opened(text, counted, at)
        if not depth:
            return _value_at(text, at + len(needle))
        counted, at = at, find(text, needle, at + 1)
    return None


def _opened(text: str, start: int, end: int) -> int:
    """Return how many more braces and brackets are opened than closed from ``start`` to ``end``, neither
    within a string.
    """
    found = 0
    while start < end:
        matched = _WHOLE.match(text, start, min(start + WINDOW, end))
        stop = start if matched is None else matched.end()
        if stop == start:
            stop = value_end(text, start)  # a string longer than a window
        else:
            marks = _STRINGS.sub("", text[start:stop])
            found += marks.count("{") + marks.count("[") - marks.count("}") - marks.count("]")
        start = stop
        give_way()
    return found


def _value_at(text: str, at: int) -> str:
    """Return the text of the value that begins here, in an object."""
    if len(text) > WINDOW:
        return cut(text, at, _parts(text)[1](at))
    if text[at] == '"':
        end = text.index('"', at + 1) + 1
        if "\\" not in text[at:end]:
            return text[at:end]
    elif text[at] not in "{[":
        plain = _PLAIN.match(text, at)
        if plain is not None:
            return plain.group()
    return text[at : _SCAN(text, at)[1]]


def element(text: str, index: int) -> str | None:
    """Return an element (negative: from the end), or None."""
    if text[past_blanks(text, 0)] != "[":
        return None
    if index >= 0:
        for number, value in enumerate(elements(text)):
            if number == index:
                return value
        return None
    last = deque(elements(text), -index)
    return last[0] if len(last) == -index else None


def as_text(text: str | None) -> str | None:
    """Return what ``->>`` shows: strings without quotes, JSON null as NULL, the rest as it is."""
    if text is None or text == "null":
        return None
    if text[0] == '"':
        if find(text, "\\") < 0:
            return cut(text, 1, len(text) - 1)
        check_escapes(text)
        value: str = load(text)
        return value
    return text


def path(text: str, steps: tuple[Any, ...], member: Callable[[str, str], str | None] = field) -> str | None:
    """Follow a path of keys and indexes; ``member``: how keys are found."""
    current: str | None = text
    for step in steps:
        if current is None or step is None:
            return None
        first = current[past_blanks(current, 0)]
        if first == "{":
            current = member(current, step)
        elif first == "[":
            index = integer(step)
            current = None if index is None else element(current, index)
        else:
            return None
    return None if current is None else stripped(current, " \t\n\r", True, True)


def jsonb_path(text: str, steps: tuple[Any, ...]) -> str | None:
    """Follow a path in a jsonb."""
    return path(text, steps, jsonb_field)


def integer(text: str) -> int | None:
    """Read a path step as an array index, or None."""
    if re.fullmatch(r"\s*[+-]?[0-9]+", text, re.ASCII) is None:
        return None
    value = int_of(text.lstrip())
    return value if -(2**31) <= value < 2**31 else None


# -- SQL values to JSON --------------------------------------------------------------------------


def to_json(value: Any, oid: int, session: EvalSession, *, pretty: bool = False) -> str:
    """Turn a value of type ``oid`` into JSON text as the SQL function of that name does.

    ``pretty`` puts the elements of the outermost array or record on lines of their own.

    Raises:
        SqlError: 0A000 for a record whose column types are unknown.
    """
    if value is None:
        return "null"
    if oid == BOOL:
        return "true" if value else "false"
    if oid in _NUMBERS:
        text = text_output(oid, value, session.codec_settings)
        return quote(text) if text[-1] in "Ny" else text
    if oid in (JSON, JSONB):
        return str(value)
    if oid in (DATE, TIMESTAMP, TIMESTAMPTZ):
        return quote(_iso(value, oid, session.codec_settings))
    inner = element_of(oid)
    if inner:  # int2vector and oidvector, too
        return _array(value, inner, session, pretty)
    if oid == RECORD or isinstance(value, RecordValue):
        return record(value, session, pretty=pretty)
    if is_row(oid):
        return record(row_record(value, oid, session.codec_settings), session, pretty=pretty)
    if isinstance(value, tuple) and oid not in TUPLE_TYPES:
        raise not_supported("JSON of a composite value whose column types are unknown")
    return quote(to_text(oid, value, session))


def _array(value: tuple[Any, ...], inner: int, session: EvalSession, pretty: bool) -> str:
    depth = len(dimensions(value, inner in TUPLE_TYPES))
    return _level(value, depth, inner, session, ",\n " if pretty else ",")


def _level(items: tuple[Any, ...], depth: int, inner: int, session: EvalSession, comma: str) -> str:
    if depth > 1:
        parts = [_level(item, depth - 1, inner, session, ",") for item in paced(items)]
    else:
        parts = [to_json(item, inner, session) for item in paced(items)]
    return joined(("[", joined_up(parts, comma), "]"))


def record(value: tuple[Any, ...], session: EvalSession, *, pretty: bool = False) -> str:
    """Return a record as an object, names in order."""
    if not isinstance(value, RecordValue):
        raise not_supported("JSON of a record whose column types are unknown")
    names = value.names or tuple(f"f{n}" for n in range(1, len(value) + 1))
    comma = ",\n " if pretty else ","
    parts: list[str] = []
    for name, item, oid in zip(names, value, value.types, strict=True):
        parts += (comma if parts else "{", quote(name), ":", to_json(item, oid, session))
    return joined((*parts, "}")) if parts else "{}"


def _iso(value: int, oid: int, settings: CodecSettings) -> str:
    """Return the XSD form: a T before the time, the zone with minutes."""
    text = text_output(oid, value, CodecSettings(time_zone=settings.time_zone))
    if oid == DATE or text in ("infinity", "-infinity"):
        return text
    text = text.replace(" ", "T", 1)
    return _OFFSET.sub(r"\1:00\2", text) if oid == TIMESTAMPTZ else text


def key_text(value: Any, oid: int, session: EvalSession) -> str:
    """Return the text of a value used as an object's key; 22023 for what is not scalar."""
    if element_of(oid) or oid in (JSON, JSONB, RECORD) or is_row(oid):
        raise SqlError("22023", "key value must be scalar, not array, composite, or json")
    text = to_json(value, oid, session)
    return str(load(text)) if text[0] == '"' else text


def same(a: Any, b: Any) -> bool:
    """Whether two scalars of jsonb are equal; true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, Decimal)) and isinstance(b, (int, Decimal)):
        return a == b
    return type(a) is type(b) and a == b
