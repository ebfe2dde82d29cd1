"""Functions about the session, the server and values as such; concat, format and quoting.

What needs the catalog's own rows (pg_get_*, *_is_visible, descriptions) is in ``system``.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from pgwire.codecs import numeric
from pgwire.codecs.invalid import quoting
from pgwire.codecs.network import show_cidr
from pgwire.codecs.text.encodings import longest_character
from pgwire.give_way import give_way, paced
from pgwire.long.arrays import tupled
from pgwire.long.values import cut, mapped, replaced, run_end, stripped
from pgwire.oids import INET
from pgwire.release import mind_long
from planner.base.errors import SqlError
from planner.base.large import concatenated, joined
from planner.base.quoting import for_reader, printed, quote_ident
from planner.base.suspend import Suspend
from planner.base.version import VERSION
from planner.facts import BOOL, BPCHAR, facts
from planner.functions.numbers.integer import check8
from planner.functions.numbers.numeric import add, div_trunc, mul, rounded
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.text.format_string import format_string, quote_literal
from planner.functions.values.casts import to_text
from planner.functions.values.compare import interval_length, sort_key
from planner.functions.values.record_keys import ordered
from planner.types.facts import format_type


def _text(session: EvalSession, oid: int, value: Any) -> str:
    if oid == BOOL:
        return "t" if value else "f"
    return to_text(oid, value, session)


def _cast_text(session: EvalSession, oid: int, value: Any) -> str:
    """Return ``value::text``: what the cast gives, which for booleans, bpchar and inet is not what output prints."""
    if oid == BOOL:
        return "true" if value else "false"
    if oid == INET:
        return show_cidr(value)
    return stripped(str(value), " ", False, True) if oid == BPCHAR else to_text(oid, value, session)


def concat(session: EvalSession, *args: Any, types: tuple[int, ...]) -> str:
    """SQL's ``concat``: NULLs are skipped."""
    return joined([_text(session, t, a) for t, a in zip(types, args, strict=True) if a is not None])


def concat_ws(session: EvalSession, separator: str | None, *args: Any, types: tuple[int, ...]) -> str | None:
    """SQL's ``concat_ws``: NULL separator gives NULL, NULL arguments are skipped."""
    if separator is None:
        return None
    texts = [_text(session, t, a) for t, a in zip(types[1:], args, strict=True) if a is not None]
    return joined(texts, separator)


def format_(session: EvalSession, pattern: str | None, *args: Any, types: tuple[int, ...] = ()) -> str | None:
    """SQL's ``format``."""
    text: str | None = printed(session, format_string, session, pattern, args, types[1:], _text)
    return text


def _types_of(session: EvalSession, oids: Sequence[int]) -> str:
    """SQL's ``oidvectortypes``."""
    return joined([format_type(oid) for oid in paced(oids)], ", ")


def parse_ident(text: str, strict: bool = True) -> tuple[str, ...]:
    """SQL's ``parse_ident``; ``strict`` False: what follows the last name is ignored. SqlError 22023."""
    names: list[str] = []
    at = run_end(_BLANKS, text, 0)

    def wrong(detail: str | None = None) -> SqlError:
        return SqlError("22023", quoting("string is not a valid identifier: ", text), detail=detail)

    while True:
        give_way()
        missing = text.startswith(".", at)
        if text.startswith('"', at):
            end = _quoted_end(text, at)
            if end is None:
                raise wrong("String has unclosed double quotes.")
            if end == at + 2:
                raise wrong("Quoted identifier must not be empty.")
            names.append(replaced(cut(text, at + 1, end - 1), '""', '"'))
            at = end
        elif _FIRST.match(text, at) is not None:
            end = run_end(_PLAIN, text, at)
            names.append(mapped(cut(text, at, end), str.lower, _PIECE))
            at = end
        elif missing:
            raise wrong('No valid identifier before ".".')
        elif names:
            raise wrong('No valid identifier after ".".')
        else:
            raise wrong()
        at = run_end(_BLANKS, text, at)
        if text.startswith(".", at):
            at = run_end(_BLANKS, text, at + 1)
        elif at == len(text) or not strict:
            return tupled(mind_long(names))
        else:
            raise wrong()


def _quoted_end(text: str, at: int) -> int | None:
    """Return where the name ends whose first quote is at ``at``, None where it does not."""
    while True:
        at = run_end(_WITHIN, text, at + 1)
        if at == len(text):
            return None
        if not text.startswith('""', at):
            return at + 1
        at += 1
        give_way()


_BLANKS = re.compile(r"[ \t\n\r\f]*")
_FIRST = re.compile(r"[A-Za-z_\x80-\U0010ffff]")
_PLAIN = re.compile(r"[A-Za-z0-9_$\x80-\U0010ffff]*")
_WITHIN = re.compile(r'[^"]*')
_PIECE = 1 << 16


def current_setting(session: EvalSession, name: str, missing_ok: bool | None = False) -> str | None:
    """SQL's ``current_setting``; 42704 unless ``missing_ok``."""
    try:
        return session.setting(name)
    except SqlError as error:
        if missing_ok and error.sqlstate == "42704":
            return None
        raise


def set_config(session: EvalSession, name: str | None, value: str | None, local: bool | None) -> str:
    """SQL's ``set_config``: a NULL value resets."""
    if name is None:
        raise SqlError("22004", "SET requires parameter name")
    return session.set_setting(name, value, local=bool(local))


def current_schema(session: EvalSession) -> str | None:
    """SQL's ``current_schema``: the first schema of the path that was asked for; temporary tables do not change it."""
    return next(iter(session.explicit_search_path), None)


def current_schemas(session: EvalSession, implicit: bool) -> tuple[str, ...]:
    """SQL's ``current_schemas``: the search path, with implicit schemas or without."""
    return session.search_path if implicit else session.explicit_search_path


def pg_typeof(*args: Any, types: tuple[int, ...]) -> int:
    """SQL's ``pg_typeof``: the argument's type as regtype."""
    return types[0]


def pg_sleep(session: EvalSession, seconds: float) -> str:
    """SQL's ``pg_sleep``: asks the executor to wait (never blocks here)."""
    if seconds != seconds or seconds <= 0:
        return ""
    raise Suspend("sleep", seconds)


def pg_sleep_for(session: EvalSession, interval: tuple[int, int, int]) -> str:
    """SQL's ``pg_sleep_for``: waits for an interval."""
    return pg_sleep(session, interval_length(interval) / 1e6)


def pg_sleep_until(session: EvalSession, moment: int) -> str:
    """SQL's ``pg_sleep_until``: waits until a timestamptz."""
    return pg_sleep(session, (moment - session.clock_time_us()) / 1e6)


@functools.lru_cache(1024)
def size_pretty(size: int) -> str:
    """SQL's ``pg_size_pretty``: bytes in the largest unit that keeps the number below 10240 (20480 halves)."""
    units = (("bytes", 10 * 1024, False), ("kB", 20 * 1024 - 1, True), ("MB", 20 * 1024 - 1, True),
             ("GB", 20 * 1024 - 1, True), ("TB", 20 * 1024 - 1, True), ("PB", 20 * 1024 - 1, True))  # fmt: skip
    shift = (0, 9, 10, 10, 10, 10)
    for n, (unit, limit, half) in enumerate(units):
        if n:
            size = size >> shift[n] if size >= 0 else -((-size) >> shift[n])
        if abs(size) < limit or n == len(units) - 1:
            if half:
                size = (size + (1 if size > 0 else -1)) // 2 if size >= 0 else -((-size + 1) // 2)
            return f"{size} {unit}"
    raise AssertionError("no unit")


def numeric_pretty(value: Decimal) -> str:
    """SQL's ``pg_size_pretty`` of a numeric, which may have any number of digits."""
    if value.is_finite() and abs(value) < 1 << 100:
        return size_pretty(int(value))
    if value.is_finite():
        halves = div_trunc(value, Decimal(1 << 49))
        value = div_trunc(add(halves, Decimal(1 if halves > 0 else -1)), Decimal(2))
    return f"{numeric.show(value)} PB"


def size_bytes(text: str) -> int:
    """SQL's ``pg_size_bytes``."""
    m = re.fullmatch(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)\s*", text)
    if not m:
        raise SqlError("22023", quoting("invalid size: ", text))
    powers = {"": 0, "bytes": 0, "kb": 1, "mb": 2, "gb": 3, "tb": 4, "pb": 5}
    unit = m.group(2).lower()
    if unit not in powers:
        raise SqlError(
            "22023", quoting("invalid size: ", text), detail=f'Invalid size unit: "{m.group(2)}".',
            hint='Valid units are "bytes", "kB", "MB", "GB", "TB", and "PB".',
        )  # fmt: skip

    return check8(int(rounded(mul(Decimal(m.group(1)), Decimal(1024 ** powers[unit])), 0)))


def setseed(session: EvalSession, seed: float) -> str:
    """SQL's ``setseed``; 22023 outside -1 .. 1."""
    if seed != seed or not -1 <= seed <= 1:
        raise SqlError("22023", f"setseed parameter {seed:g} is out of allowed range [-1,1]")
    session.set_seed(seed)
    return ""


def null_count(*args: Any) -> int:
    """SQL's ``num_nulls``."""
    return sum(a is None for a in args)


def _column_size(value: Any, types: tuple[int, ...]) -> int:
    fact = facts().types.get(types[0])
    if fact is not None and fact.length > 0:
        return fact.length
    text = value if isinstance(value, bytes) else str(value).encode()
    return len(text) + (1 if len(text) < 127 else 4)


def version(session: EvalSession) -> str:
    """SQL's ``version``: PostgreSQL's shape, so that clients read the number."""
    number = session.setting("server_version").split(" ")[0]
    return f"PostgreSQL {number} on Holdfast {VERSION}, a strictly serializable database, 64-bit"


def bucket_of(value: Any, thresholds: tuple[Any, ...], types: tuple[int, ...]) -> int:
    """Return how many of the sorted thresholds are at or below the value (width_bucket over an array)."""
    if thresholds and type(thresholds[0]) is tuple:
        raise SqlError("2202E", "thresholds must be one-dimensional array")
    if any(t is None for t in paced(thresholds, 1024)):
        raise SqlError("22004", "thresholds array must not contain NULLs")
    ordered(types[0])
    key = sort_key(types[0])
    return bisect.bisect_right(thresholds, value if key is None else key(value), key=key)


def _register() -> None:
    python = REGISTRY.python
    python("width_bucket(anycompatible,anycompatiblearray)", bucket_of, needs_types=True)
    python("oidvectortypes(oidvector)", for_reader(_types_of), needs_session=True)
    typed: dict[str, Any] = {"needs_session": True, "needs_types": True}
    python("concat(any)", concat, **typed)
    python("concat_ws(text,any)", concat_ws, **typed)
    python("format(text,any)", format_, **typed)
    python("format(text)", format_, **typed)
    python("quote_ident(text)", lambda session, name: printed(session, quote_ident, name), needs_session=True)
    python("quote_literal(text)", quote_literal)
    python("quote_nullable(text)", lambda s: "NULL" if s is None else quote_literal(s))

    def quote_any(session: EvalSession, value: Any, types: tuple[int, ...]) -> str:
        return quote_literal(_cast_text(session, types[0], value))

    def quote_nullable(session: EvalSession, value: Any, types: tuple[int, ...]) -> str:
        return "NULL" if value is None else quote_any(session, value, types)

    python("quote_literal(anyelement)", quote_any, **typed)
    python("quote_nullable(anyelement)", quote_nullable, **typed)

    def text_any(session: EvalSession, a: str, b: Any, types: tuple[int, ...]) -> str:
        return concatenated(a, _cast_text(session, types[1], b))

    def any_text(session: EvalSession, a: Any, b: str, types: tuple[int, ...]) -> str:
        return concatenated(_cast_text(session, types[0], a), b)

    python("textanycat(text,anynonarray)", text_any, **typed)
    python("anytextcat(anynonarray,text)", any_text, **typed)
    python("parse_ident(text,bool)", parse_ident)
    python("num_nulls(any)", null_count)
    python("num_nonnulls(any)", lambda *args: len(args) - null_count(*args))
    python("pg_typeof(any)", pg_typeof, needs_types=True)
    python("pg_column_size(any)", _column_size, needs_types=True)
    python("current_setting(text)", current_setting, needs_session=True)
    python("current_setting(text,bool)", current_setting, needs_session=True)
    python("set_config(text,text,bool)", set_config, needs_session=True)
    session_functions: dict[str, Callable[[EvalSession], Any]] = {
        "version()": version,
        "pg_backend_pid()": lambda s: s.pid,
        "current_database()": lambda s: s.database,
        "current_user()": lambda s: s.user,
        "session_user()": lambda s: s.session_user,
        "getpgusername()": lambda s: s.user,
        "current_schema()": current_schema,
        "random()": lambda s: s.random(),
        "pg_client_encoding()": lambda s: s.setting("client_encoding"),
    }
    for signature, function in session_functions.items():
        python(signature, function, needs_session=True)
    python("current_schemas(bool)", current_schemas, needs_session=True)
    python("setseed(float8)", setseed, needs_session=True)
    python("pg_sleep(float8)", pg_sleep, needs_session=True)
    python("pg_sleep_for(interval)", pg_sleep_for, needs_session=True)
    python("pg_sleep_until(timestamptz)", pg_sleep_until, needs_session=True)
    python("getdatabaseencoding()", lambda: "UTF8")
    python("pg_encoding_max_length(int4)", longest_character)
    python("pg_size_pretty(int8)", size_pretty)
    python("pg_size_pretty(numeric)", numeric_pretty)
    python("pg_size_bytes(text)", size_bytes)
    python("pg_is_in_recovery()", lambda: False)
    python("pg_jit_available()", lambda: False)
    python("pg_trigger_depth()", lambda s: s.system.trigger_depth, needs_session=True)


_register()
