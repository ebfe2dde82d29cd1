"""How long each builtin holds the event loop, with values of several megabytes: processor time between two looks at the clock.

    python -m bench.calls [--match PATTERN] [--part K/N] [--over MS] [--keep FILE]

Every builtin of the registry is called, with each argument that can grow long in turn and all at once, in several shapes of each
type (many short items, one long one, another width, nested …); an aggregate has many rows of short values and some rows of long ones. So are text
and binary forms of each type both ways, and what sorts, hashes
and compares its values. A line is printed for each call with a stretch of more than ``--over`` milliseconds: how long, the pages that it touched
first, and between which two looks it was. What runs in a process of its own counts for nothing. At the end stands what was not called, and why.

``tests/planner/builtins/test_costs.py`` counts lines of Python, the same on every machine; one long call of C is one line there, and shows here. Figures
are of a machine whose pages cost what ``tests.hostile.machine`` says, which comes first.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, cast

from engine.base import accounts
from engine.server.database import Database
from engine.server.preload import preload
from engine.session.catalog.virtual import VirtualCatalog
from pgwire import give_way, release
from pgwire.bounded import bounded
from pgwire.codecs import registry
from pgwire.codecs.json import hstore
from pgwire.codecs.registry import DEFAULT, text_input
from pgwire.codecs.system import RecordValue
from planner import functions as builtins
from planner.facts import facts
from planner.functions.registry import AggregateBuiltin, Builtin
from planner.functions.values.compare import hash_key, sort_key
from tests.hostile import machine
from tests.planner.builtins.costs import CONCRETE, argument_types, sample
from tests.support.engine import Session, open_database
from txn.persist.memory import MemoryDisk

BYTES: Final = 8 << 20
ITEMS: Final = 300_000
PAGE_US: Final = 5.0
"""Microseconds of a fresh page by which stretches are judged."""
FEW_PAGES: Final = 50
BRANCHES: Final = 60
KEYS: Final = 400_000
"""Of an object: more than a dict takes in before all are moved, 15 ms."""
MOST_S: Final = 0.7
"""Processor time after which a call is given up; a loop without a look after twice as long."""

ROWS: Final = 100_000
"""Rows of short values that an aggregate has."""
BATCH: Final = 1024
"""Rows that it is given at once, where it takes many."""
COLLECTED: Final = 50
"""Calls after which what refers to itself is freed: errors have the frames that have them."""
NOT_CALLED: Final = {
    "pg_sleep": "waits",
    "pg_sleep_for": "waits",
    "pg_sleep_until": "waits",
}
"""By name: what is not called, and why."""

Value = tuple[Any, str]
"""A value and the name of its type."""
FRACTIONS: Final[dict[str, Value]] = {
    "float8": (0.5, "float8"),
    "_float8": (tuple([i / ITEMS for i in range(ITEMS)]), "_float8"),
}
"""What ordered-set aggregates take before their rows, by type."""


class Stopped(BaseException):
    """A call has run long enough."""


@dataclass(slots=True)
class Found:
    """The longest stretch of a call: its seconds, pages touched for the first time, and where it began and ended."""

    seconds: float = 0.0
    pages: int = 0
    began: str = ""
    ended: str = ""
    failed: str = ""


# --- values ---------------------------------------------------------------------------------------


def _read(name: str, text: str) -> Value:
    return text_input(facts().types_by_name[name].oid, text, -1, DEFAULT), name


def _each(piece: str, count: int, separator: str = ",") -> str:
    return separator.join([piece.replace("#", str(i)) for i in range(count)])


def _texts() -> list[str]:
    escaped = '\\1"%_(' + "'&|{}[]"
    return [
        "ab c." * (BYTES // 5),
        "äb, " * (BYTES // 4),
        "a" * BYTES,
        escaped * (BYTES // len(escaped)),
        "\N{GRINNING FACE}" * (BYTES // 4),
        "\\a" * (BYTES // 2),
    ]


def _json() -> list[str]:
    return [
        "{" + _each('"k#": #', KEYS, ", ") + "}",
        "[" + _each('"w#"', ITEMS, ", ") + "]",
        "[" + _each('{"a": [#, [1, "x"]]}', ITEMS // 5, ", ") + "]",
        '{"a": "' + "x" * BYTES + '"}',
        '"' + "x " * (BYTES // 2) + '"',
        _tree("[", "null", "]", ""),
        _tree("{", "null", "}", '"k#": '),
    ]


def _tree(opening: str, leaf: str, closing: str, key: str) -> str:
    """Return containers of ``BRANCHES`` containers each, so that none has many: what looks at the clock once in some items does not."""
    for _ in range(3):
        leaf = (
            opening + ", ".join([key.replace("#", str(i)) + leaf for i in range(10, 10 + BRANCHES)]) + closing
        )
    return leaf


def _arrays() -> list[Value]:
    return [
        (tuple(range(ITEMS * 3)), "_int4"),
        (tuple([f"k{i}" for i in range(ITEMS)]), "_text"),
        (tuple([tuple(range(600)) for _ in range(600)]), "_int4"),
        (("x" * BYTES, None), "_text"),
        (bounded(tuple(range(ITEMS)), (5,)), "_int4"),
        (tuple([Decimal(i) for i in range(ITEMS)]), "_numeric"),
    ]


def _multiranges() -> list[Value]:
    spans = ITEMS // 3
    return [
        _read("int4multirange", "{" + _each("[#0,#5)", spans) + "}"),
        _read("nummultirange", "{" + _each("[#.5,#.75)", spans // 2) + "}"),
    ]


def _ranges() -> list[Value]:
    return [_read("numrange", f"[1,{'7' * 100_000}.5)"), _read("int4range", "[3,900)")]


def _plain(name: str, values: Sequence[Any]) -> list[Value]:
    return [(value, name) for value in values]


MAKERS: Final[dict[str, Callable[[], list[Value]]]] = {
    **{
        name: (lambda name=name: _plain(name, _texts()))  # type: ignore[misc]
        for name in ("text", "varchar", "bpchar", "unknown", "cstring")
    },
    "citext": lambda: [(registry_citext("aB c." * (BYTES // 5)), "citext")],
    "bytea": lambda: _plain("bytea", [b"ab\\ c" * (BYTES // 5), bytes(BYTES)]),
    "bit": lambda: _plain("bit", ["10" * (BYTES // 2)]),
    "varbit": lambda: _plain("varbit", ["10" * (BYTES // 2)]),
    "json": lambda: _plain("json", _json()),
    "jsonb": lambda: _plain("jsonb", _json()),
    "jsonpath": lambda: [_read("jsonpath", '$."' + "a" * BYTES + '"')],
    "tsvector": lambda: [_read("tsvector", _each("w#:1A,2", ITEMS // 6, " "))],
    "tsquery": lambda: [_read("tsquery", _each("w#", ITEMS // 10, " & "))],
    "polygon": lambda: [_read("polygon", _each("(#,1.5)", ITEMS // 2))],
    "path": lambda: [_read("path", "[" + _each("(#,1.5)", ITEMS // 2) + "]")],
    "numeric": lambda: _plain("numeric", [Decimal("7" * 130_000 + ".5")]),
    "hstore": lambda: _plain(
        "hstore",
        [
            hstore.parse(_each("k#=>#", ITEMS // 3)),
            hstore.pack([("a", "x" * BYTES)]),
            hstore.pack([("ä" * (BYTES // 2), None), ("b", "c")]),
        ],
    ),
    "pg_snapshot": lambda: [_read("pg_snapshot", "10:900000:" + _each("1#", ITEMS // 6 and 89_999))],
    "oidvector": lambda: _plain("oidvector", [tuple(range(ITEMS))]),
    "int2vector": lambda: _plain("int2vector", [tuple([5] * ITEMS)]),
    "record": lambda: _plain("record", [RecordValue(("x" * BYTES, tuple(range(ITEMS))), types=(25, 1007))]),
    "int4multirange": lambda: _multiranges()[:1],
    "anymultirange": _multiranges,
    "anyrange": _ranges,
    "numrange": lambda: _ranges()[:1],
    "_text": lambda: [value for value in _arrays() if value[1] == "_text"],
    "_int4": lambda: [value for value in _arrays() if value[1] == "_int4"],
    "_numeric": lambda: _arrays()[5:],
    "anyarray": _arrays,
    "anycompatiblearray": _arrays,
    **{
        name: (lambda: [*_plain("text", _texts()[:1]), *_plain("numeric", [Decimal("7" * 130_000)])])
        for name in (
            "anyelement",
            "any",
            "anynonarray",
            "anycompatible",
            "anycompatiblenonarray",
        )
    },
}
"""By type: values of several megabytes, in several shapes."""


def registry_citext(text: str) -> Any:
    """Return a value of citext."""
    from pgwire.codecs.text import citext

    return citext.parse(text)


_kept: dict[str, list[Value]] = {}


def long(name: str) -> list[Value]:
    """Return long values of a type; none where it has none."""
    if name not in _kept:
        made = MAKERS.get(name)
        _kept[name] = made() if made is not None else []
    return _kept[name]


def short(name: str) -> Value:
    """Return a short value. Raises LookupError where there is none."""
    return sample(name, 3), CONCRETE.get(name, name)


def arguments(names: Sequence[str]) -> Iterator[tuple[str, list[Value]]]:
    """Yield what a function is called with: all arguments short, all long in each shape, then each by itself. Raises LookupError as ``short``."""
    yield "short", [short(name) for name in names]
    shapes = max((len(long(name)) for name in names), default=0)
    for shape in range(shapes):
        yield f"all {shape}", [long(n)[shape % len(long(n))] if long(n) else short(n) for n in names]
    growing = [at for at, name in enumerate(names) if long(name)]
    if len(growing) > 1:
        for one in growing:
            yield f"${one + 1}", [long(n)[0] if at == one else short(n) for at, n in enumerate(names)]


# --- stretches ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Watch:
    """Looks at processor time whenever the code under it looks at the clock."""

    found: Found = field(default_factory=Found)
    since: float = 0.0
    pages: int = 0
    where: str = "the beginning"
    spent: float = 0.0
    away: bool = False

    def look(self) -> float:
        """Stand for ``perf_counter``."""
        if self.away:
            return 0.0
        now = time.thread_time()
        took = now - self.since
        self.spent += took
        pages = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") == "pgwire.give_way":
            frame = frame.f_back
        here = f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
        if took > self.found.seconds:
            self.found.seconds, self.found.pages = took, pages - self.pages
            self.found.began, self.found.ended = self.where, here
        if self.spent > MOST_S:
            raise Stopped
        self.where, self.pages, self.since = here, pages, time.thread_time()
        return 0.0

    def outside(self, name: str, args: tuple[Any, ...]) -> Any:
        """Run what belongs into a process."""
        self.look()
        self.away = True
        try:
            return give_way.OUTSIDE[name](*args)
        finally:
            self.away = False
            self.since = time.thread_time()


def _too_long(number: int, frame: object) -> None:
    raise Stopped


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch what runs within."""
    watch = Watch()
    kept = give_way.perf_counter, give_way._run_outside
    give_way.perf_counter, give_way._run_outside = watch.look, watch.outside  # type: ignore[attr-defined]
    signal.signal(signal.SIGVTALRM, _too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * MOST_S)
    watch.pages = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    watch.since = time.thread_time()
    try:
        yield watch
        watch.look()
    except Stopped:
        watch.found.failed = "stopped"
    except Exception as error:  # whatever a builtin raises of such values is an answer
        release.release_error(error)
        try:
            watch.look()
            watch.found.failed = f"{type(error).__name__}: {error}"[:60]
        except Stopped:
            watch.found.failed = "stopped"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        give_way.perf_counter, give_way._run_outside = kept  # type: ignore[attr-defined]


def called(row: Builtin, session: Any, values: Sequence[Value]) -> Found:
    """Call a builtin."""
    options = {}
    if row.needs_types:
        options["types"] = tuple([facts().types_by_name[name].oid for _, name in values])
    form = row.python
    assert form is not None
    with watched() as watch:
        result = form(*((session,) if row.needs_session else ()), *[value for value, _ in values], **options)
        watch.look()
        if hasattr(result, "__next__"):  # rows: the executor looks at the clock between them
            for _ in result:
                watch.look()
        del result
    return watch.found


def folded(
    row: AggregateBuiltin, session: Any, rows: Sequence[Sequence[Value]], direct: Sequence[Value]
) -> Found:
    """Give an aggregate rows as the row executor does, over and over until there are as many as a table may have of them, and ask it for the result."""
    options: dict[str, Any] = {}
    if row.needs_types:
        options["types"] = tuple([facts().types_by_name[name].oid for _, name in rows[0]])
    if direct:
        options["direct"] = tuple([value for value, _ in direct])
    form = row.python
    assert form is not None
    values = [tuple([value for value, _ in each]) for each in rows]
    with watched() as watch:
        state = form(*((session,) if row.needs_session else ()), **options)
        many = getattr(state, "many", None)
        for at in range(0, len(values), BATCH):
            batch = values[at : at + BATCH]
            if many is not None:
                many([one[0] for one in batch] if batch[0] else batch)
                watch.look()
                continue
            for number, one in enumerate(batch):
                state.step(*one)
                if not number % 16:
                    watch.look()
        watch.look()
        result = state.result()
        watch.look()
        del result, state
    return watch.found


class Left:
    """What was not called, by reason."""

    def __init__(self) -> None:
        self.reasons: dict[str, list[str]] = {}

    def add(self, reason: str, signature: str) -> None:
        """Note one."""
        self.reasons.setdefault(reason, []).append(signature)

    def sorted(self) -> dict[str, list[str]]:
        """Return them in order."""
        return {reason: sorted(signatures) for reason, signatures in sorted(self.reasons.items())}

    def show(self) -> None:
        """Print them."""
        for reason, signatures in sorted(self.reasons.items()):
            print(f"not called, {reason}: {', '.join(sorted(signatures))}")


def _why_not(row: Builtin | AggregateBuiltin, oid: int) -> str:
    """Say why a builtin is not called; empty if it is."""
    if row.python is None:
        return "no Python form"
    if oid not in facts().procs:
        return "of an extension or a user, without facts"
    made = sorted({name for name in argument_types(row) if name not in facts().types_by_name})
    if row.needs_types and made:
        return f"wants the oid of {', '.join(made)}, which a database has"
    return NOT_CALLED.get(facts().procs[oid].name, "")


def functions(session: Any, left: Left) -> Iterator[tuple[str, Callable[[], Found]]]:
    """Yield a name and a call for all that is called."""
    rows = sorted(builtins.load().functions.items(), key=lambda item: item[1].signature)
    for oid, row in rows:
        reason = _why_not(row, oid)
        if reason:
            left.add(reason, row.signature)
            continue
        try:
            for label, values in arguments(argument_types(row)):
                yield (
                    f"{row.signature} {label}",
                    lambda row=row, values=values: called(row, session, values),  # type: ignore[misc]
                )
        except LookupError as missing:
            left.add(f"no value of {missing}", row.signature)


def aggregates(session: Any, left: Left) -> Iterator[tuple[str, Callable[[], Found]]]:
    """As ``functions``, for aggregates."""
    rows = sorted(builtins.load().aggregates.items(), key=lambda item: item[1].signature)
    for oid, row in rows:
        reason = _why_not(row, oid)
        if reason:
            left.add(reason, row.signature)
            continue
        names = argument_types(row)
        ahead = facts().aggregates[oid].direct_args
        try:
            for label, values in arguments(names):
                given = [values[ahead:]] * (ROWS if label == "short" else 8)
                direct = [FRACTIONS[name] for _, name in values[:ahead]]
                yield (
                    f"{row.signature} {label}",
                    lambda row=row, given=given, direct=direct: folded(row, session, given, direct),  # type: ignore[misc]
                )
        except LookupError as missing:
            left.add(f"no value of {missing}", row.signature)


def forms() -> Iterator[tuple[str, Callable[[], Found]]]:
    """Yield what is done with values of each type by other than builtins."""

    def one(work: Callable[[], object]) -> Callable[[], Found]:
        def run() -> Found:
            with watched() as watch:
                result = work()
                watch.look()
                del result
            return watch.found

        return run

    for name in MAKERS:
        for shape, (value, kind) in enumerate(long(name)):
            label = f"{name} {shape}"
            if kind in ("hstore", "citext"):
                module = sys.modules[f"pgwire.codecs.{'json' if kind == 'hstore' else 'text'}.{kind}"]
                show = getattr(module, "show", None) or module.unpack
                parse, send, receive = module.parse, module.send, module.receive
                keys: list[Any] = [None, None]
            elif kind in ("record", "unknown", "cstring", "jsonpath"):
                continue
            else:
                oid = facts().types_by_name[kind].oid
                show, parse = registry.text_printer(oid), registry.text_decoder(oid)
                send, receive = registry.binary_encoder(oid), registry.binary_decoder(oid)
                keys = [sort_key(oid), hash_key(oid)]
            text, data = show(value), send(value)
            again = receive(data)
            yield f"text of {label}", one(lambda show=show, value=value: show(value))  # type: ignore[misc]
            yield f"value of text of {label}", one(lambda parse=parse, text=text: parse(text))  # type: ignore[misc]
            yield f"binary of {label}", one(lambda send=send, value=value: send(value))  # type: ignore[misc]
            yield f"value of binary of {label}", one(lambda receive=receive, data=data: receive(data))  # type: ignore[misc]
            for what, key in zip(("sort", "hash"), keys, strict=True):
                if key is not None:
                    yield f"{what} key of {label}", one(lambda key=key, value=value: key(value))  # type: ignore[misc]
            yield f"equality of {label}", one(lambda a=value, b=again: a == b)  # type: ignore[misc]
            if keys[1] is None:
                yield f"hash of {label}", one(lambda a=again: hash(a))  # type: ignore[misc]


async def _session() -> Any:
    preload(VirtualCatalog(cast("Database", None)))  # what a server does ahead
    database = await open_database(MemoryDisk())
    session = Session(database, 1)
    await session.run("SELECT 1")
    return session.connection.session


def judged(found: Found) -> float:
    """Return the milliseconds of a stretch on a machine whose pages cost no more than ``PAGE_US``."""
    taken = found.seconds * 1000
    if found.pages < FEW_PAGES:
        return taken
    return taken - found.pages * max(machine.speed().page_us - PAGE_US, 0) / 1000


async def walk(match: str, part: int, parts: int, over_ms: float, kept: Path | None) -> None:
    """Call everything and print what is long; ``kept``: where the figures go."""
    long_ones: list[dict[str, Any]] = []
    session = await _session()
    accounts.return_large(256 << 20)
    wanted = re.compile(match)
    gc.collect()
    gc.disable()
    count = 0
    left = Left()
    for source in (functions(session, left), aggregates(session, left), forms()):
        for number, (name, run) in enumerate(source):
            if number % parts != part or wanted.search(name) is None:
                continue
            print(name, end="\r", file=sys.stderr)
            found = run()
            count += 1
            if judged(found) >= over_ms:
                long_ones.append(
                    {
                        "call": name,
                        "ms": round(judged(found), 1),
                        "pages": found.pages,
                        "from": found.began,
                        "to": found.ended,
                        "ended": found.failed,
                    }
                )
                print(
                    f"{found.seconds * 1000:7.1f} ms {found.pages:6d} pages  {name}  {found.began} to {found.ended} {found.failed}",
                    flush=True,
                )
            for _ in range(1000):
                if not release.freeing():
                    break
                await asyncio.sleep(0)
            if release._minded.held:
                await asyncio.sleep(2 * release.LOOK_S)
            if not count % COLLECTED:
                gc.collect()
    if not part:
        left.show()
    if kept is not None:
        figures = {
            "commit": subprocess.run(
                ["git", "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True
            ).stdout.strip(),
            "machine": f"{os.cpu_count()} processors, {platform.machine()}",
            "unit": f"milliseconds of processor time between two looks at the clock, {over_ms:g} and more",
            "calls": count,
            "long": long_ones,
            "not called": left.sorted(),
        }
        kept.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{count} calls, pages at {machine.speed().page_us} us")


def main() -> None:
    """Take the options and walk."""
    options = argparse.ArgumentParser(prog="python -m bench.calls", description=__doc__)
    options.add_argument("--match", default="", help="a pattern of names")
    options.add_argument("--part", default="0/1", help="K/N: each Nth call, from the Kth on")
    options.add_argument("--keep", type=Path, metavar="FILE", help="where the figures go")
    options.add_argument("--over", type=float, default=6.0, metavar="MS", help="what is printed")
    given = options.parse_args()
    part, _, parts = given.part.partition("/")
    print(f"pages at {machine.speed().page_us} us")
    asyncio.run(walk(given.match, int(part), int(parts), given.over, given.keep))


if __name__ == "__main__":
    main()
