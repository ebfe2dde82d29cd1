"""json[b]_to_record, json[b]_populate_record and theirs of sets: objects as rows (manual 9.16.3).

    FROM jsonb_to_recordset('[{"a": 1}, {"b": "x"}]') AS t(a int, b text)
    the function's value is the text of each object; ``reader`` makes a row of it, for the columns of the FROM entry

A member is read as its column's type reads text: strings without quotes, arrays as SQL arrays, everything else as it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pgwire.codecs.composite import RowShape, pack, values_of
from pgwire.codecs.composite_keys import is_row
from pgwire.codecs.domain import RECORD
from pgwire.codecs.registry import text_input
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.user_types import row_shape
from planner.builtins.json_values import as_text, elements, kind_of, load, members
from planner.builtins.registry import REGISTRY
from planner.builtins.session import EvalSession
from planner.errors import SqlError, not_supported
from planner.facts import JSON, JSONB, facts
from planner.typefacts import element_of
from planner.types import SqlType

python = REGISTRY.python
_NAMES: Final = ("json_to_record", "json_to_recordset", "jsonb_to_record", "jsonb_to_recordset")


def is_reader(proc: int) -> bool:
    """Tell whether a function's values are objects that ``reader`` makes rows of."""
    fact = facts().procs.get(proc)
    return fact is not None and fact.name in _NAMES


def _invalid(message: str, detail: str | None = None, hint: str | None = None) -> SqlError:
    return SqlError("22P02" if hint else "22023", message, detail=detail, hint=hint)


def _object(text: str | None) -> str | None:
    if text is None:
        return None
    kind = kind_of(text)
    if kind != "object":
        raise _invalid(f"cannot call populate_composite on {'an array' if kind == 'array' else 'a scalar'}")
    return text


def _objects(name: str) -> Callable[[str | None], Iterator[str]]:
    binary = name.startswith("jsonb")

    def each(text: str | None) -> Iterator[str]:
        if text is None:
            return
        kind = kind_of(text)
        if kind != "array":
            if binary:
                raise _invalid(f"cannot call {name} on a non-array")
            raise _invalid(f"cannot call {name} on {'an object' if kind == 'object' else 'a scalar'}")
        for item in elements(text):
            if kind_of(item) != "object":
                raise _invalid(f"argument of {name} must be an array of objects")
            yield item

    return each


def reader(
    names: Sequence[str], types: Sequence[SqlType], settings: CodecSettings
) -> Callable[[str], tuple[Any, ...]]:
    """Return what makes a row of an object's text. SqlError 0A000 for columns of type record."""
    for type_ in types:
        if type_.oid == RECORD:
            raise not_supported("a column of type record of json_to_record")

    def read(text: str) -> tuple[Any, ...]:
        found = dict(members(text))
        return tuple(
            _value(found.get(name), type_, settings, name) for name, type_ in zip(names, types, strict=True)
        )

    return read


def _value(text: str | None, type_: SqlType, settings: CodecSettings, column: str) -> Any:
    """Return a member as a value of its column's type, None where there is none."""
    if type_.oid in (JSON, JSONB):
        return text
    if text is None or kind_of(text) == "null":
        return None
    if is_row(type_.oid) and kind_of(text) != "string":
        return _composite(text, None, row_shape(type_.oid, settings), settings)
    element = element_of(type_.oid)
    if element and kind_of(text) != "string":
        return _array(text, SqlType(element, type_.typmod), settings, column, ())
    shown = as_text(text)
    return None if shown is None else text_input(type_.oid, shown, type_.typmod, settings)


def _composite(text: str, base: bytes | None, shape: RowShape, settings: CodecSettings) -> bytes:
    """Return an object as a value of a composite type; attributes that it does not have are those of ``base``."""
    found = dict(members(str(_object(text))))
    values = [None] * len(shape.attributes) if base is None else values_of(base, shape)
    for position, attribute in enumerate(shape.attributes):
        if attribute.oid != attribute.plain:
            raise not_supported("populating an attribute of a domain from JSON")
        if attribute.name in found:
            type_ = SqlType(attribute.oid, attribute.typmod)
            values[position] = _value(found[attribute.name], type_, settings, attribute.name)
    return pack(values, shape)


def _populate(
    session: EvalSession,
    base: bytes | None,
    text: str | None,
    _as_text: bool | None = False,
    *,
    types: tuple[int, ...],
) -> bytes | None:
    """json[b]_populate_record: a row of the first argument's type. Raises SqlError 22023; 42804, 0A000 for no such type."""
    if text is None:
        return base
    settings = session.codec_settings
    return _composite(text, base, _shape_of(types[0], settings), settings)


def _shape_of(oid: int, settings: CodecSettings) -> RowShape:
    if oid == RECORD:
        raise not_supported("populating a value of type record from JSON")
    if not is_row(oid):
        raise SqlError("42804", "first argument of json_populate_record must be a row type")
    return row_shape(oid, settings)


def _populate_set(name: str) -> Callable[..., Iterator[bytes]]:
    objects = _objects(name)

    def each(
        session: EvalSession,
        base: bytes | None,
        text: str | None,
        _as_text: bool | None = False,
        *,
        types: tuple[int, ...],
    ) -> Iterator[bytes]:
        settings = session.codec_settings
        shape = _shape_of(types[0], settings)
        for item in objects(text):
            yield _composite(item, base, shape, settings)

    return each


def _array(
    text: str, element: SqlType, settings: CodecSettings, column: str, at: tuple[int, ...]
) -> tuple[Any, ...]:
    if kind_of(text) != "array":
        where = f'key "{column}"' if not at else "".join(f"[{i}]" for i in at)
        hint = f"See the value of {where}." if not at else f'See the array element {where} of key "{column}".'
        raise _invalid("expected JSON array", hint=hint)
    items = list(elements(text))
    nested = [kind_of(item) == "array" for item in items]
    if any(nested) and element.oid not in (JSON, JSONB):
        if not all(nested) or len({len(load(item)) for item in items}) > 1:
            first = nested.index(False) if not all(nested) else 0
            if not all(nested) and nested[0]:
                _array(items[first], element, settings, column, (*at, first))
            raise _invalid(
                "malformed JSON array",
                detail="Multidimensional arrays must have sub-arrays with matching dimensions.",
                hint=None,
            )
        return tuple(_array(item, element, settings, column, (*at, i)) for i, item in enumerate(items))
    return tuple(_value(item, element, settings, column) for item in items)


def _register() -> None:
    for t, rest in (("json", ",bool"), ("jsonb", "")):
        python(f"{t}_populate_record(anyelement,{t}{rest})", _populate, needs_session=True, needs_types=True)
        name = f"{t}_populate_recordset"
        python(f"{name}(anyelement,{t}{rest})", _populate_set(name), needs_session=True, needs_types=True)
        python(f"{t}_to_record({t})", _object)
        python(f"{t}_to_recordset({t})", _objects(f"{t}_to_recordset"))


_register()
