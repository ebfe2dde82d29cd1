"""What builtins do as their arguments grow, counted in lines of Python between two looks at the clock: the same on every machine.

    measured(row)      arguments of 64, 128, 256 … elements, until ENOUGH lines have run ──► Measured(lines, longest, looks, …)

A line takes some 50 ns to 1 µs; one pass of C is no line. Texts count as long from 64 characters on, so that what goes piece by
piece shows at small sizes (``pgwire.long.values``). What was made of a text before, for another builtin too, is forgotten: else what a call does
would hang on which ran first.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from types import FrameType
from typing import Any, Final

from pgwire import give_way
from pgwire.codecs.json import hstore
from pgwire.codecs.registry import DEFAULT, text_input
from pgwire.codecs.system import RecordValue
from pgwire.long import values as long_values
from planner.facts import facts
from planner.functions.registry import Builtin

ENOUGH: Final = 24_000
MOST: Final = 150_000
"""Lines, after which a call is given up: what it does between two looks has been seen."""
LARGEST: Final = 8192
PIECE: Final = 64


class Stopped(BaseException):
    """It has run long enough, or was handed to a process."""


@dataclass(slots=True)
class Measured:
    """What one call did.

    Attributes:
        lines: in all, at ``size`` elements.
        longest: lines between two looks at the clock.
        looks: at the clock.
        outside: whether a process was asked for.
        failed: the error it ended with, if any.
    """

    size: int = 0
    lines: int = 0
    longest: int = 0
    looks: int = 0
    outside: bool = False
    failed: str = ""


FIXED: Final[dict[str, Any]] = {
    "int4": 5, "int8": 5, "int2": 5, "bool": True, "float8": 1.5, "float4": 1.5, "name": "utf8", "oid": 23,
    "interval": (0, 1, 0), "date": 0, "timestamp": 1, "timestamptz": 1, "time": 1, "timetz": (1, 0), "char": "a",
    "regconfig": 3748, "regdictionary": 3765, "regclass": 1259, "xid8": 5, "xid": 5,
    "anyelement": 5, "anynonarray": 5, "anycompatible": 5, "any": 5, "anycompatiblenonarray": 5, "pg_lsn": bytes(8), "void": "", "cid": 5, "tid": (0, 5),
    **{f"reg{kind}": 1 for kind in ("proc", "procedure", "oper", "operator", "type", "namespace", "role", "collation")},
}  # fmt: skip
CONCRETE: Final = {
    "anyarray": "_int4", "anycompatiblearray": "_int4", "anyelement": "int4", "anynonarray": "int4",
    "anycompatible": "int4", "any": "int4", "anymultirange": "int4multirange", "anyrange": "int4range",
    "anycompatiblenonarray": "int4",
}  # fmt: skip
"""What the pseudo-types of polymorphic functions stand for here."""


def _read(name: str, text: str) -> Any:
    return text_input(facts().types_by_name[name].oid, text, -1, DEFAULT)


def sample(name: str, n: int) -> Any:
    """Return a value of a type with about ``n`` elements or words; LookupError where there is none."""

    def each(piece: str, separator: str = ",") -> str:
        return separator.join([piece.replace("#", str(i)) for i in range(n)])

    if name in FIXED:
        return FIXED[name]
    arrays: dict[str, Callable[[int], Any]] = {
        "_text": "k{}".format, "_varchar": "k{}".format, "_cstring": "k{}".format, "_char": lambda _: "a",
        "_float8": float, "_float4": float, "_int4": int, "_int8": int, "_oid": int, "oidvector": int, "int2vector": int,
        "_numeric": Decimal, "_bool": bool, "_interval": lambda i: (0, i, 0), "anyarray": int, "anycompatiblearray": int,
    }  # fmt: skip
    if name in arrays:
        return tuple([arrays[name](i) for i in range(n)])
    literals: dict[str, Callable[[], str]] = {
        "bit": lambda: "10" * n, "varbit": lambda: "10" * n, "inet": lambda: "10.1.2.3/8", "cidr": lambda: "10.0.0.0/8",
        "json": lambda: "[" + each('{"a": #, "b": "x"}') + "]", "jsonb": lambda: "{" + each('"k#": #') + "}",
        "tsvector": lambda: each("w#:1A,2", " "), "tsquery": lambda: each("w#", " & "),
        "polygon": lambda: each("(#,1.5)"), "path": lambda: "[" + each("(#,1.5)") + "]",
        "int4multirange": lambda: "{" + each("[#0,#5)") + "}", "anymultirange": lambda: "{" + each("[#0,#5)") + "}",
        "point": lambda: "(1,2)", "circle": lambda: "<(1,2),3>", "anyrange": lambda: "[3,900)", "int4range": lambda: "[3,900)", "jsonpath": lambda: "$" + ".a" * min(n, 200),
        **{name: lambda: "10:90000000:" + each("1#") for name in ("pg_snapshot", "txid_snapshot")}, "box": lambda: "(1,2),(3,4)", "lseg": lambda: "[(1,2),(3,4)]",
        "line": lambda: "{1,2,3}", "money": lambda: "1.50", "macaddr": lambda: "08:00:2b:01:02:03", "macaddr8": lambda: "08:00:2b:01:02:03:04:05",
        "uuid": lambda: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "daterange": lambda: "[2000-01-01,2000-02-01)", "int8range": lambda: "[3,900)",
        "tsrange": lambda: "[2000-01-01,2000-02-01)", "tstzrange": lambda: "[2000-01-01,2000-02-01)", "numrange": lambda: "[3,900.5)",
        **{f"_{kind}range": lambda: "{" + each('"[#,900000)"') + "}" for kind in ("int4", "int8", "num")},
        **{f"_{kind}range": lambda: "{" + each('"[2000-01-01,2000-02-01)"') + "}" for kind in ("date", "ts", "tstz")},
    }  # fmt: skip
    if name in literals:
        kind = CONCRETE.get(name, name)
        return _read(kind, literals[name]())
    if name in ("text", "varchar", "bpchar", "citext", "unknown", "cstring"):
        return "ab c." * n
    if name == "numeric":
        return Decimal("7" * min(n, 8000) + ".5")
    if name == "bytea":
        return b"ab\\ c" * n
    if name == "hstore":
        return hstore.parse(each("k#=>#"))
    if name == "record":
        fields = min(n, 300)  # there are no more than 1664 columns
        return RecordValue(tuple(range(fields)), types=(23,) * fields)
    raise LookupError(name)


def argument_types(row: Builtin) -> list[str]:
    """Return the names of a function's argument types, an extension's too."""
    names = row.signature.partition("(")[2].rstrip(")")
    return names.split(",") if names else []


def grows(oid: int) -> bool:
    """Tell whether a function has an argument of no fixed size."""
    types = facts().types
    return any((fact := types.get(t)) is None or fact.length < 0 for t in facts().procs[oid].arg_types)


@contextmanager
def counting(found: Measured) -> Iterator[Callable[[], None]]:
    """Count lines and looks of what runs within; yields what counts as a look besides."""
    since = 0

    def line(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal since
        if event == "line":
            since += 1
            found.lines += 1
            if found.lines > MOST:
                raise Stopped
        return line

    def look() -> float:
        nonlocal since
        found.longest, since = max(found.longest, since), 0
        found.looks += 1
        return 0.0

    def outside(name: str, args: tuple[Any, ...]) -> Any:
        found.outside = True
        raise Stopped

    kept = (
        give_way.perf_counter,
        give_way._run_outside,
        long_values.PIECE,
        long_values.LONG,
    )
    give_way.perf_counter, give_way._run_outside = look, outside
    long_values.PIECE, long_values.LONG = PIECE, 2 * PIECE  # type: ignore[misc]
    before = sys.gettrace()
    sys.settrace(line)
    try:
        yield lambda: (look(), None)[1]
    finally:
        sys.settrace(before)
        found.longest = max(found.longest, since)
        (
            give_way.perf_counter,
            give_way._run_outside,
            long_values.PIECE,  # type: ignore[misc]
            long_values.LONG,  # type: ignore[misc]
        ) = kept


def call(oid: int, row: Builtin, session: Any, n: int) -> Measured:
    """Call a builtin once. LookupError where there is no value of an argument's type."""
    names = argument_types(row)
    args = [sample(name, n) for name in names]
    options = {}
    if row.needs_types:
        options["types"] = tuple([facts().types_by_name[CONCRETE.get(name, name)].oid for name in names])
    found = Measured(size=n)
    form = row.python
    assert form is not None
    with counting(found) as look:
        try:
            result = form(*((session,) if row.needs_session else ()), *args, **options)
            if hasattr(result, "__next__"):  # rows: the executor looks at the clock between them
                for _ in result:
                    look()
        except Stopped:
            pass
        except Exception as error:
            found.failed = f"{type(error).__name__}: {error}"[:80]
    return found


@functools.cache
def caches() -> list[Any]:
    """Return the caches of what was made of values; what is read once (without bound) is none of them."""
    return [
        found
        for found in gc.get_objects()
        if isinstance(found, functools._lru_cache_wrapper) and found.cache_parameters()["maxsize"] is not None
    ]


def measured(oid: int, row: Builtin, session: Any) -> Measured:
    """Call a builtin with ever larger arguments until enough has run. LookupError as ``call``."""
    call(oid, row, session, 8)  # what is imported or read once is no part of it
    n = 64
    while True:
        for cache in caches():
            cache.cache_clear()
        found = call(oid, row, session, n)
        if found.lines >= ENOUGH or found.outside or n >= LARGEST:
            return found
        n = min(n * 8, LARGEST)
