"""Functions of the extension hstore (manual F.18): sets of keys with values (``pgwire.codecs.json.hstore``).

Comparison and grouping run on every executor, as those of bytes; everything else on the row executor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from pgwire.bounded import alike
from pgwire.codecs.array import dimensions, flatten
from pgwire.codecs.json import parse_jsonb
from pgwire.codecs.json.hstore import Pairs, pack, parse, show, unpack
from pgwire.codecs.registry import text_output
from pgwire.codecs.system import RecordValue
from pgwire.give_way import paced, paced_iter
from pgwire.long.arrays import gathered, holds, repeated, tupled
from pgwire.long.sets import distinct
from pgwire.long.values import joined, joined_up, mapped, run_end
from planner.base.errors import SqlError
from planner.facts import facts
from planner.functions.registry import REGISTRY, PythonForm
from planner.functions.session import EvalSession
from planner.functions.values.compare import register_comparisons
from planner.functions.values.range import comparisons

_DIGITS: Final = re.compile(r"[0-9]*")
Texts = tuple[str | None, ...]
PIECE: Final = 1 << 16
"""Characters of a text that are quoted in one call."""


def _null_key() -> SqlError:
    return SqlError("22004", "null value not allowed for hstore key")


def _flat(array: Any) -> list[Any]:
    sizes = dimensions(array, False)
    return flatten(array, len(sizes)) if sizes else []


# -- making ----------------------------------------------------------------------------------------------


def from_text(key: str | None, value: str | None) -> bytes | None:
    """SQL's ``hstore(text, text)``: NULL without a key."""
    return None if key is None else pack(((key, value),))


def from_arrays(keys: Any, values: Any) -> bytes | None:
    """SQL's ``hstore(text[], text[])``; 2202E, 22004."""
    if keys is None:
        return None
    sizes = dimensions(keys, False)
    if len(sizes) > 1 or (values is not None and len(dimensions(values, False)) > 1):
        raise SqlError("2202E", "wrong number of array subscripts")
    names = _flat(keys)
    texts = repeated(None, len(names)) if values is None else _flat(values)
    if values is not None and sizes != dimensions(values, False):
        raise SqlError("2202E", "arrays must have same bounds")
    if holds(names, None):
        raise _null_key()
    return pack(zip(names, texts, strict=True))


def from_array(array: Any) -> bytes:
    """SQL's ``hstore(text[])``: keys and values in turn, or pairs; 2202E, 22004."""
    sizes = dimensions(array, False)
    if len(sizes) == 1 and sizes[0] % 2:
        raise SqlError("2202E", "array must have even number of elements")
    if len(sizes) == 2 and sizes[1] != 2:
        raise SqlError("2202E", "array must have two columns")
    if len(sizes) > 2:
        raise SqlError("2202E", "wrong number of array subscripts")
    items = _flat(array)
    if any(items[at] is None for at in paced(range(0, len(items), 2))):
        raise _null_key()
    return pack((items[at], items[at + 1]) for at in range(0, len(items), 2))


def from_record(session: EvalSession, record: Any) -> bytes | None:
    """SQL's ``hstore(record)``: the columns and the texts of their values."""
    if record is None:
        return None
    if not isinstance(record, RecordValue):
        raise SqlError("0A000", "hstore of a record whose column types are unknown is not supported")
    names = record.names or tuple(f"f{number}" for number in range(1, len(record) + 1))
    settings = session.codec_settings
    return pack(
        (name, None if item is None else text_output(oid, item, settings))
        for name, oid, item in zip(names, record.types, record, strict=True)
    )


def populate(
    session: EvalSession, base: Any, value: bytes | None, domain: int = 0, *, types: tuple[int, ...]
) -> Any:
    """SQL's ``populate_record`` and ``#=``: a row with the values of the keys that are its columns."""
    form = REGISTRY.functions[facts().proc_by_signature["json_populate_record(anyelement,json,bool)"]].python
    if form is None:
        raise AssertionError("json_populate_record is not computed here")
    if value is None:
        return base
    try:
        return form(session, base, _json(unpack(value), loose=False), False, domain, types=types)
    except SqlError as error:
        if error.message.startswith("first argument of json_populate_record"):
            raise SqlError("42804", "first argument must be a rowtype") from None
        raise


# -- reading ---------------------------------------------------------------------------------------------


def _texts(array: Any) -> list[str]:
    return gathered(item for item in paced(_flat(array)) if item is not None)


def _slice_array(value: bytes, keys: Any) -> Any:
    return _picked(unpack(value), keys)


def _picked(pairs: Mapping[str, str | None], key: Any) -> Any:
    if isinstance(key, tuple):
        return alike(tupled(gathered(_picked(pairs, part) for part in paced(key))), key)
    return None if key is None else pairs.get(key)


def _slice(value: bytes, keys: Any) -> bytes:
    pairs = unpack(value)
    return pack((key, pairs[key]) for key in paced(_texts(keys)) if key in pairs)


def _without(value: bytes, keys: Any) -> bytes:
    gone = {keys} if isinstance(keys, str) else distinct(_texts(keys))
    return pack((key, text) for key, text in unpack(value).items() if key not in gone)


def _without_pairs(value: bytes, other: bytes) -> bytes:
    gone = unpack(other)
    return pack((k, v) for k, v in unpack(value).items() if not (k in gone and gone[k] == v))


def contains(value: bytes, other: bytes) -> bool:
    """SQL's ``@>``: whether all pairs of ``other`` are in ``value``."""
    pairs = unpack(value)
    wanted = paced_iter(unpack(other).items())
    return all(key in pairs and pairs[key] == text for key, text in wanted)


def _matrix(value: bytes) -> tuple[Texts, ...]:
    return tupled(gathered(paced_iter(unpack(value).items())))


def _in_turn(value: bytes) -> Texts:
    return tupled(gathered(item for pair in paced_iter(unpack(value).items()) for item in pair))


def _each(value: bytes) -> Iterator[tuple[str, str | None]]:
    yield from unpack(value).items()


def _json(pairs: Pairs, *, loose: bool) -> str:
    parts = [joined((_string(k), ": ", _member(v, loose))) for k, v in paced_iter(pairs.items())]
    return joined(("{", joined_up(parts, ", "), "}"))


def _string(text: str) -> str:
    if len(text) <= PIECE:
        return json.dumps(text, ensure_ascii=False)
    return joined(('"', mapped(text, lambda piece: json.dumps(piece, ensure_ascii=False)[1:-1], PIECE), '"'))


def _is_number(text: str) -> bool:
    at = int(text.startswith("-"))
    end = run_end(_DIGITS, text, at)
    if end == at or (end > at + 1 and text[at] == "0"):
        return False
    if text.startswith(".", end):
        at = end + 1
        end = run_end(_DIGITS, text, at)
        if end == at:
            return False
    if text[end : end + 1] in ("e", "E"):
        at = end + 1 + (text[end + 1 : end + 2] in ("+", "-"))
        end = run_end(_DIGITS, text, at)
        if end == at:
            return False
    return end == len(text)


def _member(text: str | None, loose: bool) -> str:
    if text is None:
        return "null"
    if loose and text in ("t", "f"):
        return "true" if text == "t" else "false"
    if loose and _is_number(text):
        return text
    return _string(text)


def _exists(value: bytes, key: str) -> bool:
    return key in unpack(value)


def _exists_some(value: bytes, keys: Any, some: Callable[[Iterable[bool]], bool]) -> bool:
    pairs = unpack(value)
    return some(key in pairs for key in paced(_texts(keys)))


def _defined(value: bytes, key: str) -> bool:
    return unpack(value).get(key) is not None


_FUNCTIONS: Final[dict[str, PythonForm]] = {
    "hstore_in(cstring)": parse,
    "hstore_out(hstore)": show,
    "hstore_version_diag(hstore)": lambda value: 2,
    "fetchval(hstore,text)": lambda value, key: unpack(value).get(key),
    "slice_array(hstore,_text)": _slice_array,
    "slice(hstore,_text)": _slice,
    "isexists(hstore,text)": _exists,
    "exist(hstore,text)": _exists,
    "exists_any(hstore,_text)": lambda value, keys: _exists_some(value, keys, any),
    "exists_all(hstore,_text)": lambda value, keys: _exists_some(value, keys, all),
    "isdefined(hstore,text)": _defined,
    "defined(hstore,text)": _defined,
    "delete(hstore,text)": _without,
    "delete(hstore,_text)": _without,
    "delete(hstore,hstore)": _without_pairs,
    "hs_concat(hstore,hstore)": lambda a, b: pack(chain(unpack(b).items(), unpack(a).items())),
    "hs_contains(hstore,hstore)": contains,
    "hs_contained(hstore,hstore)": lambda a, b: contains(b, a),
    "tconvert(text,text)": from_text,
    "hstore(text,text)": from_text,
    "hstore(_text,_text)": from_arrays,
    "hstore(_text)": from_array,
    "hstore_to_json(hstore)": lambda value: _json(unpack(value), loose=False),
    "hstore_to_json_loose(hstore)": lambda value: _json(unpack(value), loose=True),
    "hstore_to_jsonb(hstore)": lambda value: parse_jsonb(_json(unpack(value), loose=False)),
    "hstore_to_jsonb_loose(hstore)": lambda value: parse_jsonb(_json(unpack(value), loose=True)),
    "hstore_to_array(hstore)": _in_turn,
    "hstore_to_matrix(hstore)": _matrix,
    "akeys(hstore)": lambda value: tupled(gathered(paced_iter(unpack(value)))),
    "avals(hstore)": lambda value: tupled(gathered(text for _, text in paced_iter(unpack(value).items()))),
    "skeys(hstore)": lambda value: iter(unpack(value)),
    "svals(hstore)": lambda value: (text for _, text in unpack(value).items()),
    "each(hstore)": _each,
}


def _register() -> None:
    for signature, form in _FUNCTIONS.items():
        REGISTRY.python(f"hstore.{signature}", form)
    REGISTRY.python("hstore.hstore(record)", from_record, needs_session=True)
    REGISTRY.python(
        "hstore.populate_record(anyelement,hstore)", populate, needs_session=True, needs_types=True
    )
    register_comparisons(comparisons(bytes), "hstore.hstore_%s", "hstore", "hstore", "hstore.hstore_cmp")


_register()
