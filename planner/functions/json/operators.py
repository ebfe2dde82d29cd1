"""json and jsonb: operators and functions (Python forms).

Reading works on the text (``json_values``); what changes a jsonb parses it, changes it and prints it again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from pgwire.codecs import numeric as numeric_codec
from pgwire.codecs.json import parse_jsonb
from pgwire.codecs.json.long import minded
from pgwire.give_way import give_way, paced, paced_iter
from pgwire.long import dicts as long_dicts
from pgwire.long.arrays import PIECE, gathered, holds
from pgwire.long.sets import Spread, distinct
from pgwire.long.values import joined, joined_up
from pgwire.release import mind_long
from planner.base.errors import SqlError
from planner.facts import JSONB
from planner.functions.json.values import (
    as_text,
    dump,
    element,
    elements,
    field,
    integer,
    jsonb_field,
    jsonb_path,
    key_text,
    kind_of,
    load,
    members,
    path,
    quote,
    read_escapes,
    record,
    same,
    to_json,
)
from planner.functions.numbers.floating import numeric_to_float4, numeric_to_float8
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.values.compare import jsonb_order, register_comparisons

python = REGISTRY.python


def _invalid(message: str, hint: str | None = None) -> SqlError:
    return SqlError("22023", message, hint=hint)


# -- access --------------------------------------------------------------------------------------


def _length(text: str) -> int:
    kind = kind_of(text)
    if kind != "array":
        raise _invalid(f"cannot get array length of a {'non-array' if kind == 'object' else 'scalar'}")
    return sum(1 for _ in elements(text))


def _object_keys(name: str) -> Callable[[str], Iterator[str]]:
    def keys(text: str) -> Iterator[str]:
        kind = kind_of(text)
        if kind == "array":
            raise _invalid(f"cannot call {name} on an array")
        if kind != "object":
            raise _invalid(f"cannot call {name} on a scalar")
        return iter(gathered(key for key, _ in members(text)))

    return keys


def _each(name: str, binary: bool, show: Callable[[str], Any]) -> Callable[[str], Iterator[tuple[str, Any]]]:
    def each(text: str) -> Iterator[tuple[str, Any]]:
        kind = kind_of(text)
        if kind != "object":
            if binary:
                raise _invalid(f"cannot call {name} on a non-object")
            raise _invalid(
                "cannot deconstruct an array as an object"
                if kind == "array"
                else "cannot deconstruct a scalar"
            )
        return iter(gathered((key, show(value)) for key, value in members(text)))

    return each


def _array_elements(name: str, binary: bool, show: Callable[[str], Any]) -> Callable[[str], Iterator[Any]]:
    def expand(text: str) -> Iterator[Any]:
        kind = kind_of(text)
        if kind != "array":
            what = "an object" if kind == "object" else "a scalar"
            if binary:
                raise _invalid(f"cannot extract elements from {what}")
            raise _invalid(f"cannot call {name} on {'a non-array' if kind == 'object' else 'a scalar'}")
        return iter(gathered(show(value) for value in elements(text)))

    return expand


def _jsonb_element(text: str, index: int) -> str | None:
    """Return an element; a scalar jsonb counts as an array of one."""
    if text[0] not in "{[":
        return text if index in (0, -1) else None
    return element(text, index)


def _element_text(item: Callable[[str, int], str | None]) -> Callable[[str, int], str | None]:
    return lambda text, index: as_text(item(text, index))


def _member_text(member: Callable[[str, str], str | None]) -> Callable[[str, str], str | None]:
    return lambda text, key: as_text(member(text, key))


def _path_text(
    follow: Callable[[str, tuple[Any, ...]], str | None],
) -> Callable[[str, tuple[Any, ...]], str | None]:
    return lambda text, steps: as_text(follow(text, steps))


def _unescaped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of json as PostgreSQL has it: it reads the whole text, escapes and all, whatever part
    is wanted.
    """

    def apply(text: str, *args: Any) -> Any:
        read_escapes(text)
        return function(text, *args)

    return apply


def _register_access() -> None:
    for t in ("json", "jsonb"):
        binary = t == "jsonb"
        whole: Callable[[Callable[..., Any]], Callable[..., Any]] = (lambda f: f) if binary else _unescaped
        member = whole(jsonb_field if binary else field)
        python(f"{t}_object_field({t},text)", member)
        python(f"{t}_object_field_text({t},text)", _member_text(member))
        item = whole(_jsonb_element if binary else element)
        python(f"{t}_array_element({t},int4)", item)
        python(f"{t}_array_element_text({t},int4)", _element_text(item))
        follow = whole(jsonb_path if binary else path)
        python(f"{t}_extract_path({t},_text)", follow)
        python(f"{t}_extract_path_text({t},_text)", _path_text(follow))
        python(f"{t}_typeof({t})", kind_of)
        python(f"{t}_array_length({t})", _length)
        python(f"{t}_object_keys({t})", whole(_object_keys(f"{t}_object_keys")))
        python(f"{t}_each({t})", whole(_each(f"{t}_each", binary, str)))
        python(f"{t}_each_text({t})", whole(_each(f"{t}_each_text", binary, as_text)))
        python(f"{t}_array_elements({t})", _array_elements(f"{t}_array_elements", binary, str))
        python(
            f"{t}_array_elements_text({t})",
            whole(_array_elements(f"{t}_array_elements_text", binary, as_text)),
        )


# -- construction --------------------------------------------------------------------------------


def _build_array(session: EvalSession, *values: Any, types: tuple[int, ...] = ()) -> str:
    parts = [to_json(v, oid, session) for v, oid in zip(values, types, strict=True)]
    return joined(("[", joined(parts, ", "), "]"))


def _build_object(binary: bool) -> Callable[..., str]:
    name = "jsonb_build_object" if binary else "json_build_object"

    def build(session: EvalSession, *values: Any, types: tuple[int, ...] = ()) -> str:
        if len(values) % 2:
            raise _invalid(
                "argument list must have even number of elements",
                f"The arguments of {name}() must consist of alternating keys and values.",
            )
        parts: list[str] = []
        for i in range(0, len(values), 2):
            if values[i] is None:
                if binary:
                    raise _invalid(f"argument {i + 1}: key must not be null")
                raise _invalid(f"argument {i + 1} cannot be null", "Object keys should be text.")
            key = quote(key_text(values[i], types[i], session))
            parts.append(joined((key, " : ", to_json(values[i + 1], types[i + 1], session))))
        text = joined(("{", joined(parts, ", "), "}"))
        return parse_jsonb(text) if binary else text

    return build


def _object_of(binary: bool) -> Callable[..., str]:
    def build(keys: tuple[Any, ...], values: tuple[Any, ...] | None = None) -> str:
        pairs = _pairs(keys) if values is None else _two_arrays(keys, values)
        parts: list[str] = []
        for key, value in paced(pairs):
            if key is None:
                raise SqlError("22004", "null value not allowed for object key")
            parts.append(joined((quote(key), " : ", "null" if value is None else quote(value))))
        text = joined(("{", joined_up(parts, ", "), "}"))
        return parse_jsonb(text) if binary else text

    return build


def _pairs(items: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    if not items:
        return []
    if isinstance(items[0], tuple):
        if isinstance(items[0][0], tuple):
            raise SqlError("2202E", "wrong number of array subscripts")
        if len(items[0]) != 2:
            raise SqlError("2202E", "array must have two columns")
        return gathered((pair[0], pair[1]) for pair in paced(items))
    if len(items) % 2:
        raise SqlError("2202E", "array must have even number of elements")
    return gathered((items[at], items[at + 1]) for at in paced(range(0, len(items), 2)))


def _two_arrays(keys: tuple[Any, ...], values: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    if any(isinstance(items[0], tuple) for items in (keys, values) if items):
        raise SqlError("2202E", "wrong number of array subscripts")
    if len(keys) != len(values):
        raise SqlError("2202E", "mismatched array dimensions")
    return gathered(paced_iter(zip(keys, values, strict=True)))


def _register_construction() -> None:
    both: dict[str, Any] = {"needs_session": True, "needs_types": True}

    def to_jsonb(session: EvalSession, value: Any, *, types: tuple[int, ...]) -> str:
        return str(value) if types[0] == JSONB else parse_jsonb(to_json(value, types[0], session))

    python("to_json(anyelement)", lambda s, value, *, types: to_json(value, types[0], s), **both)
    python("to_jsonb(anyelement)", to_jsonb, **both)
    python("array_to_json(anyarray)", lambda s, value, *, types: to_json(value, types[0], s), **both)
    python(
        "array_to_json(anyarray,bool)",
        lambda s, value, pretty, *, types: to_json(value, types[0], s, pretty=pretty),
        **both,
    )
    python("row_to_json(record)", lambda s, value: record(value, s), needs_session=True)
    python("row_to_json(record,bool)", lambda s, value, p: record(value, s, pretty=p), needs_session=True)
    python("json_build_array(any)", _build_array, **both)
    python("json_build_array()", lambda: "[]")
    python(
        "jsonb_build_array(any)",
        lambda s, *values, types: parse_jsonb(_build_array(s, *values, types=types)),
        **both,
    )
    python("jsonb_build_array()", lambda: "[]")
    python("json_build_object(any)", _build_object(False), **both)
    python("json_build_object()", lambda: "{}")
    python("jsonb_build_object(any)", _build_object(True), **both)
    python("jsonb_build_object()", lambda: "{}")
    for t in ("json", "jsonb"):
        python(f"{t}_object(_text)", _object_of(t == "jsonb"))
        python(f"{t}_object(_text,_text)", _object_of(t == "jsonb"))


# -- jsonb as a value ----------------------------------------------------------------------------


def contains(value: Any, part: Any, *, root: bool = True) -> bool:
    """Whether ``value`` contains ``part`` as ``@>`` has it; at the root an array contains a scalar."""
    give_way()
    if isinstance(part, dict):
        return isinstance(value, dict) and all(
            key in value and contains(value[key], item, root=False) for key, item in part.items()
        )
    if isinstance(part, list):
        if not isinstance(value, list):
            return False
        return all(any(contains(item, wanted, root=False) for item in value) for wanted in part)
    if isinstance(value, list):
        return root and any(same(item, part) for item in value)
    return not isinstance(value, dict) and same(value, part)


def _exists(value: Any, key: str) -> bool:
    if isinstance(value, list):
        return holds(value, key)
    if isinstance(value, (dict, set, Spread)):
        return key in value
    return isinstance(value, str) and value == key


def jsonb_concat(left: str, right: str) -> str:
    """SQL's ``jsonb || jsonb``: objects merged, anything else an array of both."""
    a, b = load(left), load(right)
    if isinstance(a, dict) and isinstance(b, dict):
        a = long_dicts.grown(a, len(b))
        for key, item in paced_iter(b.items()):
            a[key] = item
        return dump(a)
    made = a if isinstance(a, list) else [a]
    if isinstance(b, list):
        for at in paced(range(0, len(b), PIECE), 1):
            made += b[at : at + PIECE]
    else:
        made.append(b)
    return dump(made)


def _delete_keys(text: str, keys: tuple[Any, ...]) -> str:
    value = load(text)
    gone = distinct(key for key in paced(keys) if key is not None)
    if isinstance(value, dict):
        return dump(long_dicts.gathered((key, item) for key, item in value.items() if key not in gone))
    if isinstance(value, list):
        return dump(gathered(item for item in paced(value) if not (isinstance(item, str) and item in gone)))
    raise _invalid("cannot delete from scalar")


def _delete_index(text: str, index: int) -> str:
    value = load(text)
    if isinstance(value, dict):
        raise _invalid("cannot delete from object using integer index")
    if not isinstance(value, list):
        raise _invalid("cannot delete from scalar")
    if -len(value) <= index < len(value):
        del value[index]
    return dump(value)


def _strip_nulls(value: Any) -> Any:
    give_way()  # of many containers none may have many items
    if isinstance(value, dict):
        return long_dicts.gathered(
            (key, _strip_nulls(item)) for key, item in value.items() if item is not None
        )
    if isinstance(value, list):
        return mind_long([_strip_nulls(item) for item in paced(value)])
    return value


def _strip_json(text: str) -> str:
    """json_strip_nulls: no blanks, numbers and duplicate keys as they were."""
    give_way()
    kind = kind_of(text)
    if kind == "object":
        parts = [joined((quote(k), ":", _strip_json(v))) for k, v in members(text) if v != "null"]
        return joined(("{", joined_up(parts, ","), "}"))
    if kind == "array":
        return joined(("[", joined_up([_strip_json(item) for item in elements(text)], ","), "]"))
    return quote(load(text)) if kind == "string" else text.strip(" \t\n\r")


def pretty(value: Any, indent: int = 0) -> str:
    """Return jsonb_pretty's text: four blanks per level."""
    give_way()
    inside = "\n" + " " * (indent + 4)
    if isinstance(value, dict):
        parts = [
            joined((quote(key), ": ", pretty(item, indent + 4))) for key, item in paced_iter(value.items())
        ]
        marks = "{}"
    elif isinstance(value, list):
        parts = [pretty(item, indent + 4) for item in paced(value)]
        marks = "[]"
    else:
        return dump(value)
    body = joined((inside, joined_up(parts, "," + inside))) if parts else ""
    return joined((marks[0], body, "\n", " " * indent, marks[1]))


# -- changing at a path --------------------------------------------------------------------------


def _index(step: str, position: int) -> int:
    index = integer(step)
    if index is None:
        raise SqlError("22P02", f'path element at position {position} is not an integer: "{step}"')
    return index


def _change(value: Any, steps: tuple[str, ...], position: int, at_end: Callable[[Any, Any], None]) -> None:
    """Walk to the container that the last step names and let ``at_end`` change it in place."""
    step, last = steps[position], position == len(steps) - 1
    if isinstance(step, tuple):
        raise SqlError("2202E", "wrong number of array subscripts")
    if step is None:
        raise SqlError("22004", f"path element at position {position + 1} is null")
    if isinstance(value, dict):
        if last:
            at_end(value, step)
        elif step in value:
            _change(value[step], steps, position + 1, at_end)
    elif isinstance(value, list):
        index = _index(step, position + 1)
        if last:
            at_end(value, index)
        elif -len(value) <= index < len(value):
            _change(value[index], steps, position + 1, at_end)


def _set(text: str, steps: tuple[Any, ...], new: str, create: bool) -> str:
    value = load(text)
    if not isinstance(value, (dict, list)):
        raise _invalid("cannot set path in scalar")
    if not steps or (not value and not create):
        return text
    item = load(new)

    def replace(container: Any, step: Any) -> None:
        if isinstance(container, dict):
            if create or step in container:
                container[step] = item
        elif -len(container) <= step < len(container):
            container[step] = item
        elif create:
            container.insert(0 if step < 0 else len(container), item)

    _change(value, steps, 0, replace)
    return dump(value)


def _insert(text: str, steps: tuple[Any, ...], new: str, after: bool) -> str:
    value = load(text)
    if not isinstance(value, (dict, list)):
        raise _invalid("cannot set path in scalar")
    if not steps:
        return text
    item = load(new)

    def put(container: Any, step: Any) -> None:
        if isinstance(container, dict):
            if step in container:
                raise _invalid(
                    "cannot replace existing key", "Try using the function jsonb_set to replace key value."
                )
            container[step] = item
        elif step < 0:
            at = len(container) + step
            container.insert(0 if at < 0 else at + after, item)
        else:
            container.insert(min(step + (after and step < len(container)), len(container)), item)

    _change(value, steps, 0, put)
    return dump(value)


def _delete_path(text: str, steps: tuple[Any, ...]) -> str:
    value = load(text)
    if not isinstance(value, (dict, list)):
        raise _invalid("cannot delete path in scalar")
    if not steps or not value:
        return text

    def remove(container: Any, step: Any) -> None:
        if isinstance(container, dict):
            container.pop(step, None)
        elif -len(container) <= step < len(container):
            del container[step]

    _change(value, steps, 0, remove)
    return dump(value)


def _set_lax(text: Any, steps: Any, new: Any, create: Any, null_treatment: Any) -> str | None:
    if text is None or steps is None or create is None:
        return None
    if null_treatment not in ("raise_exception", "use_json_null", "delete_key", "return_target"):
        raise _invalid(
            'null_value_treatment must be "delete_key", "return_target", "use_json_null", or "raise_exception"'
        )
    if new is not None:
        return _set(text, steps, new, create)
    if null_treatment == "raise_exception":
        raise SqlError(
            "22004",
            "JSON value must not be null",
            detail='Exception was raised because null_value_treatment is "raise_exception".',
            hint="To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
        )
    if null_treatment == "use_json_null":
        return _set(text, steps, "null", create)
    return _delete_path(text, steps) if null_treatment == "delete_key" else str(text)


# -- casts from jsonb ----------------------------------------------------------------------------


def _cast(type_name: str, wanted: str, convert: Callable[[Any], Any]) -> Callable[[str], Any]:
    def cast(text: str) -> Any:
        kind = kind_of(text)
        if kind != wanted:
            shown = kind if kind in ("object", "array") else {"number": "numeric"}.get(kind, kind)
            shown = {"object": "object", "array": "array"}.get(kind, shown)
            raise _invalid(f"cannot cast jsonb {shown} to type {type_name}")
        return convert(load(text))

    return cast


def _whole(bits: int, type_name: str) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        number = int(numeric_codec.round_to(Decimal(value), 0))
        if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise SqlError("22003", f"{type_name} out of range")
        return number

    return convert


def _register_jsonb() -> None:
    names = ("eq", "ne", "lt", "le", "gt", "ge")
    register_comparisons(
        {name: _ordered(getattr(operator, name)) for name in names}, "jsonb_%s", "jsonb", "jsonb"
    )
    python("jsonb_cmp(jsonb,jsonb)", jsonb_order)
    python("jsonb_contains(jsonb,jsonb)", lambda a, b: contains(load(a), load(b)))
    python("jsonb_contained(jsonb,jsonb)", lambda a, b: contains(load(b), load(a)))
    python("jsonb_exists(jsonb,text)", lambda text, name: _exists(load(text), name))
    python("jsonb_exists_any(jsonb,_text)", lambda text, keys: _exists_some(text, keys, any))
    python("jsonb_exists_all(jsonb,_text)", lambda text, keys: _exists_some(text, keys, all))
    python("jsonb_concat(jsonb,jsonb)", jsonb_concat)
    python("jsonb_delete(jsonb,text)", lambda text, name: _delete_keys(text, (name,)))
    python("jsonb_delete(jsonb,_text)", _delete_keys)
    python("jsonb_delete(jsonb,int4)", _delete_index)
    python("jsonb_delete_path(jsonb,_text)", _delete_path)
    python("jsonb_set(jsonb,_text,jsonb,bool)", _set)
    python("jsonb_set_lax(jsonb,_text,jsonb,bool,text)", _set_lax)
    python("jsonb_insert(jsonb,_text,jsonb,bool)", _insert)
    python("jsonb_strip_nulls(jsonb)", lambda text: dump(minded(text, _strip_nulls(load(text)))))
    python("json_strip_nulls(json)", _unescaped(_strip_json))
    python("jsonb_pretty(jsonb)", lambda text: pretty(load(text)))
    python("bool(jsonb)", _cast("boolean", "boolean", bool))
    python("numeric(jsonb)", _cast("numeric", "number", Decimal))
    python("int2(jsonb)", _cast("smallint", "number", _whole(16, "smallint")))
    python("int4(jsonb)", _cast("integer", "number", _whole(32, "integer")))
    python("int8(jsonb)", _cast("bigint", "number", _whole(64, "bigint")))
    python(
        "float8(jsonb)", _cast("double precision", "number", lambda value: numeric_to_float8(Decimal(value)))
    )
    python("float4(jsonb)", _cast("real", "number", lambda value: numeric_to_float4(Decimal(value))))


def _ordered(compare: Callable[[int, int], bool]) -> Callable[[str, str], bool]:
    return lambda a, b: compare(jsonb_order(a, b), 0)


def _exists_some(text: str, keys: tuple[Any, ...], some: Callable[[Any], bool]) -> bool:
    value = load(text)
    if type(value) is list:  # of strings: asked for many keys it is looked through once
        value = distinct(item for item in paced(value) if type(item) is str)
    return some(_exists(value, key) for key in paced(keys) if key is not None)


_register_access()
_register_construction()
_register_jsonb()
