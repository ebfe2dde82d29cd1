"""json[b]_to_record, json[b]_populate_record and theirs of sets: objects as rows (manual 9.16.3).

    FROM jsonb_to_recordset('[{"a": 1}, {"b": "x"}]') AS t(a int, b text)
    the function's value is the text of each object; ``reader`` makes a row of it, for the columns of the FROM entry

A member is read as its column's type reads text: strings without quotes, arrays as SQL arrays, everything
else as it is written. What domains demand is looked at on every level: of columns, attributes, elements and
the row itself, of NULLs too, but not of what the row has already.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pgwire.codecs.domain import RECORD
from pgwire.codecs.registry import text_input
from pgwire.codecs.system import RecordValue
from pgwire.codecs.users.composite import RowShape, pack, values_of
from pgwire.codecs.users.composite_keys import is_row
from pgwire.codecs.users.types import row_shape
from pgwire.give_way import paced_iter
from pgwire.long.arrays import gathered, tupled
from planner.base.errors import SqlError, not_supported
from planner.conversion.domain_checks import DomainCheck
from planner.facts import JSON, JSONB, facts
from planner.functions.json.values import as_text, elements, kind_of, members, read_escapes
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.query import Const, Expr, FuncExpr, RelabelType
from planner.types import SqlType
from planner.types.domains import base_type, is_domain, names_domain, plain_type
from planner.types.facts import element_of

python = REGISTRY.python
_NAMES: Final = ("json_to_record", "json_to_recordset", "jsonb_to_record", "jsonb_to_recordset")


def is_reader(proc: int) -> bool:
    """Tell whether a function's values are objects that ``reader`` makes rows of."""
    fact = facts().procs.get(proc)
    return fact is not None and fact.name in _NAMES


def as_reader(expr: Expr) -> Expr:
    """Return a call of FROM that populates NULL of type record as the call that reads the columns asked for."""
    if not isinstance(expr, FuncExpr) or expr.type.oid != RECORD or expr.proc not in _readers():
        return expr
    base, text = expr.args[:2]
    while isinstance(base, RelabelType):
        base = base.arg
    if not isinstance(base, Const) or base.value is not None:
        return expr
    return replace(expr, proc=_readers()[expr.proc], args=(text,))


@functools.cache
def _readers() -> Mapping[int, int]:
    by_signature = facts().proc_by_signature
    return {
        by_signature[f"{t}_populate_{kind}(anyelement,{t}{rest})"]: by_signature[f"{t}_to_{kind}({t})"]
        for t, rest in (("json", ",bool"), ("jsonb", ""))
        for kind in ("record", "recordset")
    }


def _invalid(message: str, detail: str | None = None, hint: str | None = None) -> SqlError:
    return SqlError("22P02" if hint else "22023", message, detail=detail, hint=hint)


def _object(text: str | None) -> str | None:
    if text is None:
        return None
    kind = kind_of(text)
    if kind != "object":
        raise _invalid(f"cannot call populate_composite on {'an array' if kind == 'array' else 'a scalar'}")
    return text


def _json_object(text: str | None) -> str | None:
    if text is not None:
        read_escapes(text)
    return _object(text)


def _objects(name: str) -> Callable[[str | None], Iterator[str]]:
    binary = name.startswith("jsonb")

    def each(text: str | None) -> Iterator[str]:
        if text is None:
            return
        if not binary:
            read_escapes(text)
        kind = kind_of(text)
        if kind != "array":
            if binary:
                raise _invalid(f"cannot call {name} on a non-array")
            raise _invalid(f"cannot call {name} on {'an object' if kind == 'object' else 'a scalar'}")
        for item in paced_iter(elements(text)):
            if kind_of(item) != "object":
                raise _invalid(f"argument of {name} must be an array of objects")
            yield item

    return each


def reader(
    names: Sequence[str], types: Sequence[SqlType], session: EvalSession
) -> Callable[[str], tuple[Any, ...]]:
    """Return what makes a row of an object's text; ``types`` as declared, domains among them.

    SqlError 0A000 for columns of type record; the row's 22P02, 23502, 23514 and what the types' input raises.
    """
    for type_ in types:
        if type_.oid == RECORD:
            raise not_supported("a column of type record of json_to_record")

    def read(text: str) -> tuple[Any, ...]:
        found = dict(members(text))
        return tuple(
            _value(found.get(name), type_, session, name) for name, type_ in zip(names, types, strict=True)
        )

    return read


def _value(text: str | None, type_: SqlType, session: EvalSession, column: str, base: Any = None) -> Any:
    """Return a member as a value of its column's type; None for null and where there is none.

    ``base``: the row that an object is put into, where the column is one.
    """
    if names_domain(type_.oid):
        if is_domain(type_.oid):
            value = _value(text, base_type(type_), session, column, base)
        else:
            value = _plain_value(text, type_, session, column, base)
        return DomainCheck(type_.oid)(value, session)
    return _plain_value(text, type_, session, column, base)


def _plain_value(text: str | None, type_: SqlType, session: EvalSession, column: str, base: Any) -> Any:
    if text is None:
        return None
    kind = kind_of(text)
    if kind == "null":
        return None
    if type_.oid in (JSON, JSONB):
        return text
    settings = session.codec_settings
    if is_row(type_.oid) and kind != "string":
        return _composite(text, base, row_shape(type_.oid, settings), session)
    element = element_of(type_.oid)
    if element and kind != "string":
        return _array(text, SqlType(element, type_.typmod), session, column)
    shown = as_text(text)
    plain = plain_type(type_)
    return None if shown is None else text_input(plain.oid, shown, type_.typmod, settings)


def _composite(text: str, base: bytes | None, shape: RowShape, session: EvalSession) -> bytes:
    """Return an object as a value of a composite type; attributes that it does not have are those of ``base``.

    Where there is no ``base`` they are NULL, which their domains have to allow.
    """
    found = dict(members(str(_object(text))))
    values = [None] * len(shape.attributes) if base is None else values_of(base, shape)
    for position, attribute in enumerate(shape.attributes):
        if base is None or attribute.name in found:
            type_ = SqlType(attribute.oid, attribute.typmod)
            member = found.get(attribute.name)
            values[position] = _value(member, type_, session, attribute.name, values[position])
    return pack(values, shape)


def _record(text: str, base: RecordValue, session: EvalSession) -> RecordValue:
    """Return an anonymous record with the members of an object in the place of its fields of the same names."""
    found = dict(members(str(_object(text))))
    names = base.names or tuple(f"f{number}" for number in range(1, len(base) + 1))
    values = [
        _value(found[name], SqlType(oid), session, name, value) if name in found else value
        for name, oid, value in zip(names, base.types, base, strict=True)
    ]
    return RecordValue(values, base.types, names)


def _known(base: Any, name: str) -> RecordValue:
    """Return a record that tells the row type of the function ``name``. Raises SqlError 0A000 where there is none."""
    if isinstance(base, RecordValue):
        return base
    raise SqlError(
        "0A000",
        f"could not determine row type for result of {name}",
        hint="Provide a non-null record argument, or call the function in the FROM clause using a column definition list.",
    )


def _populated(name: str) -> Callable[[EvalSession, Any, str, int, int], Any]:
    """Return what puts an object into a row of the type ``oid``, for ``name``, and looks at a ``domain`` over
    it (0: none).
    """

    def populated(session: EvalSession, base: Any, text: str, oid: int, domain: int) -> Any:
        if oid == RECORD:
            return _record(text, _known(base, name), session)
        if not is_row(oid):
            raise SqlError("42804", f"first argument of {name} must be a row type")
        value = _composite(text, base, row_shape(oid, session.codec_settings), session)
        return DomainCheck(domain)(value, session) if domain else value

    return populated


def _populate(name: str) -> Callable[..., Any]:
    """json[b]_populate_record: a row of the first argument's type. Raises SqlError 22023; 42804, 0A000 for no
    such type.
    """
    populated = _populated(name)
    binary = name.startswith("jsonb")

    def populate(
        session: EvalSession,
        base: Any,
        text: str | None,
        _as_text: bool | None = False,
        domain: int = 0,
        *,
        types: tuple[int, ...],
    ) -> Any:
        if text is None:
            return base
        if not binary:
            read_escapes(text)
        return populated(session, base, text, types[0], domain)

    return populate


def _populate_set(name: str) -> Callable[..., Iterator[Any]]:
    """json[b]_populate_recordset: ``_populate`` of each object of an array."""
    objects, populate = _objects(name), _populate(name)

    def each(
        session: EvalSession, base: Any, text: str | None, *options: Any, types: tuple[int, ...]
    ) -> Iterator[Any]:
        if types[0] == RECORD:
            _known(base, name)
        for item in objects(text):
            yield populate(session, base, item, *options, types=types)

    return each


def _array(text: str, element: SqlType, session: EvalSession, column: str) -> tuple[Any, ...]:
    """Return an array of as many dimensions as lead to its first element; 22P02 where others differ. Arrays
    in json[] are elements.
    """
    depth = 1 if element.oid in (JSON, JSONB) else _depth(text)
    sizes: list[int | None] = [None] * depth

    def value(item: str) -> Any:
        return _value(item, element, session, column)

    found = _level(text, (), sizes, value, column)
    return () if 0 in sizes else found


def _level(
    text: str, at: tuple[int, ...], sizes: list[int | None], value: Callable[[str], Any], column: str
) -> tuple[Any, ...]:
    """Return the array at ``at`` of an array of ``len(sizes)`` dimensions; ``sizes``: those met so far."""
    if kind_of(text) != "array":
        where = f'key "{column}"' if not at else "".join(f"[{i}]" for i in at)
        hint = f"See the value of {where}." if not at else f'See the array element {where} of key "{column}".'
        raise _invalid("expected JSON array", hint=hint)
    items = gathered(elements(text))
    if len(at) + 1 == len(sizes):
        found = tupled(gathered(value(item) for item in items))
    else:
        found = tupled(gathered(_level(item, (*at, i), sizes, value, column) for i, item in enumerate(items)))
    size = sizes[len(at)]
    if size is not None and size != len(items):
        raise SqlError(
            "22P02",
            "malformed JSON array",
            detail="Multidimensional arrays must have sub-arrays with matching dimensions.",
        )
    sizes[len(at)] = len(items)
    return found


def _depth(text: str) -> int:
    """Return how many arrays lead to the first element: 1 for one that is empty, or is no array."""
    depth = 1
    while kind_of(text) == "array" and (text := next(iter(elements(text)), "")) and kind_of(text) == "array":
        depth += 1
    return depth


def _register() -> None:
    for t, rest in (("json", ",bool"), ("jsonb", "")):
        python(
            f"{t}_populate_record(anyelement,{t}{rest})",
            _populate(f"{t}_populate_record"),
            needs_session=True,
            needs_types=True,
        )
        name = f"{t}_populate_recordset"
        python(f"{name}(anyelement,{t}{rest})", _populate_set(name), needs_session=True, needs_types=True)
        python(f"{t}_to_record({t})", _object if t == "jsonb" else _json_object)
        python(f"{t}_to_recordset({t})", _objects(f"{t}_to_recordset"))


_register()
