"""Long calls of C in processes of their own, which end with their statement (``engine.base.loop.outside``)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import pytest

from engine.base.accounts import Statements, give_back
from engine.base.eager import LaidAside, call_on_strand
from engine.base.loop import strands
from engine.base.loop.outside import Outside
from engine.base.loop.outside_wire import PIECE, Unpacking, pack
from engine.base.loop.outside_worker import function_of
from pgwire import give_way as way
from pgwire.codecs.errors import DataError
from pgwire.codecs.json import OUTSIDE_BYTES, parse_jsonb
from pgwire.give_way import openly, size_of
from planner import parse
from planner.base.errors import SqlError
from planner.base.large import METER

CANONICAL = "pgwire.codecs.json:parse_jsonb"
VALUES = [
    (None, True, -(2**200), 1.5, "t\ud800ext", b"\xff"),
    ((1, ("a", [Decimal("1.50"), Decimal("NaN")])), []),
    ("x" * PIECE, "é" * (2 * PIECE + 1), b"b" * (PIECE + 1), b"b" * (2 * PIECE), "y" * (PIECE + 1)),
]


@pytest.mark.parametrize("values", VALUES)
def test_values_come_back_as_they_are(values: tuple[Any, ...]) -> None:
    head, pieces = pack("tag", values)
    back = Unpacking(head)
    for piece in pieces:
        assert len(piece) <= 4 * PIECE
        back.add(piece)
    assert back.tag == "tag"
    assert repr(back.values) == repr(values)


def test_only_declared_functions_are_run() -> None:
    for name in (
        "os:system",
        "planner.conversion.casts:coerce_type",
        "engine.statements.run:run",
        "pgwire.give_way:give_way",
    ):
        with pytest.raises((LookupError, ModuleNotFoundError)):
            function_of(name)


def test_weights() -> None:
    assert size_of(("abc", b"de", [1, 2**80])) >= 3 + 2 + 10


@asynccontextmanager
async def processes(bytes_: int = 256 << 20, ceiling: int = 1 << 62) -> AsyncIterator[Outside]:
    outside = Outside(Statements(4 * bytes_, bytes_, ceiling))
    way.install(strands.lay_aside, outside.run)
    try:
        yield outside
    finally:
        way.install(strands.lay_aside, None)
        await outside.close()


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(body())


LARGE = "a" * (3 * PIECE + OUTSIDE_BYTES)


def test_a_call_runs_in_a_process_while_others_go_on() -> None:
    async def body() -> None:
        async with processes() as outside:
            waiting: Any = call_on_strand(openly, parse_jsonb, f'{{"b":1,  "a":"{LARGE}"}}')
            assert isinstance(waiting, LaidAside)
            assert await waiting == f'{{"a": "{LARGE}", "b": 1}}'
            assert outside.started == 1
            waiting = call_on_strand(openly, parse_jsonb, f'["{LARGE}"]')
            assert await waiting == f'["{LARGE}"]'
            assert await asyncio.to_thread(parse_jsonb, f'["{LARGE}"]') == f'["{LARGE}"]'
            assert outside.started == 1  # the same one
            assert call_on_strand(openly, parse_jsonb, '["here"]') == '["here"]'
            assert call_on_strand(parse_jsonb, f'["{LARGE}"]') == f'["{LARGE}"]'  # a turn that is not open

    run(body)


def test_a_process_that_nobody_wants_has_nothing_of_its_last_call() -> None:
    def resident(pid: int) -> int:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    async def body() -> None:
        async with processes() as outside:
            await asyncio.to_thread(parse_jsonb, f'["{LARGE}"]')
            (pid,) = outside.pids
            before = resident(pid)
            text = "x" * 40_000_000
            assert len(await asyncio.to_thread(parse_jsonb, f'["{text}"]')) == len(text) + 4
            end = asyncio.get_running_loop().time() + 20
            while resident(pid) > before + (20 << 20) and asyncio.get_running_loop().time() < end:
                await asyncio.sleep(0.02)
            assert outside.pids == {pid}
            assert resident(pid) <= before + (20 << 20)

    run(body)


@pytest.mark.parametrize(("ceiling", "sqlstate"), [(1 << 62, "58000"), (0, "53200")])
def test_a_process_that_ends_by_itself_had_too_little_where_there_was_little_to_lend(
    ceiling: int, sqlstate: str
) -> None:
    async def body() -> None:
        async with processes(ceiling=ceiling) as outside:
            call = asyncio.ensure_future(asyncio.to_thread(parse_jsonb, "[" + "1," * 3_000_000 + "1]"))
            while not outside.running and not call.done():
                await asyncio.sleep(0.01)
            for pid in outside.running:
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(SqlError) as caught:
                await call
            assert caught.value.sqlstate == sqlstate

    run(body)


@pytest.mark.parametrize("name", ["a_long_name_of_a_function", "pg_catalog.int4(text)"])
def test_a_grammar_that_ends_its_process_for_want_of_memory_took_too_much(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of these is a segmentation fault of the library, the other ends the process as PostgreSQL ends one of its."""

    async def body() -> None:
        async with processes(128 << 20) as outside:
            monkeypatch.setattr(METER, "room", lambda: 1 << 20)
            text = f"GRANT EXECUTE ON FUNCTION {','.join([name] * 300_000)} TO PUBLIC"
            with pytest.raises(SqlError) as caught:
                await asyncio.to_thread(parse._raw_json, text)
            assert caught.value.sqlstate == "53200"
            assert not outside.running

    run(body)


@pytest.mark.parametrize(
    ("room", "started"), [(parse.GRAMMAR_BYTES * 80_010, 0), (parse.GRAMMAR_BYTES * 79_000, 1)]
)
def test_the_grammar_runs_outside_where_it_may_take_more_than_there_is(
    room: int, started: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with processes() as outside:
            monkeypatch.setattr(METER, "room", lambda: room)
            found = await asyncio.to_thread(parse.parse, "SELECT " + "1,2+3," * 13_332 + "1")
            assert len(found[0].statement.targets) == 2 * 13_332 + 1  # type: ignore[attr-defined]
            assert outside.started == started

    run(body)


def test_an_answer_that_does_not_fit_into_the_server_is_not_taken() -> None:
    async def body() -> None:
        async with processes() as outside:
            statements = outside._statements
            text = '["' + "x" * 6_000_000 + '"]'
            assert len(await asyncio.to_thread(parse_jsonb, text)) == len(text)
            give_back()  # what is free is given back before anything is refused
            statements.ceiling = statements.has() + (15 << 20)
            with pytest.raises(SqlError, match="out of memory") as caught:
                await asyncio.to_thread(parse_jsonb, text)
            assert "The server has" in (caught.value.detail or "")

    run(body)


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_it_is_killed_with_its_statement(how: str) -> None:
    """A list of ten million numbers takes some ten seconds to read."""

    async def body() -> None:
        async with processes() as outside:
            waiting: Any = call_on_strand(openly, parse_jsonb, "[" + "1," * 10_000_000 + "1]")
            if how == "close":
                waiting.close()
                assert not outside.running
                return
            task = asyncio.ensure_future(waiting)
            while not outside.running:
                await asyncio.sleep(0.01)
            (pid,) = outside.running
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await outside.close()
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)

    run(body)


def test_a_thread_is_told_of_a_cancel() -> None:
    def cancelled() -> None:
        raise SqlError("57014", "canceled")

    def beside() -> None:
        with way.polled(cancelled):
            parse_jsonb("[" + "1," * 5_000_000 + "1]")

    async def body() -> None:
        async with processes():
            with pytest.raises(SqlError, match="canceled"):
                await asyncio.to_thread(beside)

    run(body)


def test_errors_come_back_as_they_are() -> None:
    async def body() -> None:
        async with processes(100 << 20) as outside:
            with pytest.raises(DataError) as error:
                await outside.call(CANONICAL, ("[1,]",))
            assert type(error.value) is DataError
            assert (error.value.sqlstate, error.value.detail) == (
                "22P02",
                'Expected JSON value, but found "]".',
            )
            with pytest.raises(SqlError) as refused:
                await outside.call(CANONICAL, ("[" + "1," * 3_000_000 + "1]",))
            assert refused.value.sqlstate == "53200"
            assert await outside.call(CANONICAL, ('["goes on"]',)) == '["goes on"]'
            (pid,) = outside.pids
            os.kill(pid, signal.SIGKILL)
            assert await outside.call(CANONICAL, ('["again"]',)) == '["again"]'

    run(body)
