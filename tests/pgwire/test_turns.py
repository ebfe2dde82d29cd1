"""Whose turn it is: readers first, writers in slices, and nobody is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pgwire import messages as m
from pgwire.backend import Responder
from pgwire.connection import COPY_CHUNK_BYTES
from pgwire.messages.encode import encode_frontend
from pgwire.server import Server, ServerConfig
from pgwire.session import Session
from pgwire.session.turns import READERS_S, SLICE_S, WRITERS_SHARE, Turns
from tests.pgwire.test_session import START, Recorder, settle
from tests.support.wire_backend import TinyBackend, TinyDatabase


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def turns_taken(costs: list[float], between: float = 0.0) -> list[int]:
    """Put off one piece of work for each cost; return how many ran in each turn of the loop.

    ``between``: processor time that others take between two turns.
    """
    spent = Clock()
    turns = Turns(spent=spent)
    done: list[float] = []

    def work(cost: float) -> Callable[[], None]:
        def run() -> None:
            spent.now += cost
            done.append(cost)

        return run

    for cost in costs:
        turns.put_off(work(cost))
    counts = []
    while len(done) < len(costs):
        before = len(done)
        spent.now += between
        await asyncio.sleep(0)
        counts.append(len(done) - before)
    assert done == costs
    return counts


def test_a_turn_takes_one_long_piece_or_several_short_ones() -> None:
    assert asyncio.run(turns_taken([SLICE_S * 2] * 3)) == [1, 1, 1]
    assert asyncio.run(turns_taken([SLICE_S * 0.4] * 6)) == [3, 3]
    assert asyncio.run(turns_taken([])) == []


def test_after_long_work_of_others_the_slice_is_longer() -> None:
    others = SLICE_S * 10
    mine = others * WRITERS_SHARE
    assert asyncio.run(turns_taken([mine / 4 * 0.99] * 10, between=others)) == [5, 5]


def test_work_that_raises_does_not_hold_up_the_rest() -> None:
    async def main() -> list[int]:
        said: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: said.append(context))
        turns, done = Turns(), list[int]()

        def fails() -> None:
            raise ValueError("planted")

        turns.put_off(fails)
        turns.put_off(lambda: done.append(1))
        for _ in range(5):
            await asyncio.sleep(0)
        turns.put_off(lambda: done.append(2))
        for _ in range(5):
            await asyncio.sleep(0)
        assert [str(context["exception"]) for context in said] == ["planted"]
        return done

    assert asyncio.run(main()) == [1, 2]


class Rig:
    """Sessions over transports that record, on one server; ``order`` has the Query messages as they are handled."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.clock, self.spent = Clock(), Clock()
        database = TinyDatabase()
        database.connect = self._connect  # type: ignore[method-assign]
        self._writes = False
        self.server = Server(database, ServerConfig())
        self.server.turns = Turns(self.clock, self.spent)

    def _connect(self, *args: object) -> tuple[TinyBackend, dict[str, str]]:
        rig = self

        class Watched(TinyBackend):
            def query(self, sql: str, out: Responder) -> Any:
                rig.order.append(sql)
                rig.spent.now += SLICE_S
                return super().query(sql, out)

        return Watched(wrote=self._writes), {}

    async def session(self, *, writes: bool) -> Session:
        recorder: Any = Recorder()
        session = Session(self.server, recorder, "test")
        self._writes = writes
        session.data_received(START)
        await settle(session)
        return session


def ask(session: Session, number: int) -> None:
    session.data_received(encode_frontend(m.Query(f"SELECT {number}")))


def said(session: Session) -> bytes:
    recorder: Any = session.transport
    return bytes(recorder.written)


def test_a_read_waits_for_one_statement_of_the_writers_not_for_all() -> None:
    async def main() -> None:
        rig = Rig()
        reader = await rig.session(writes=False)
        writers = [await rig.session(writes=True) for _ in range(8)]
        ask(reader, 1)
        assert rig.order == ["SELECT 1"]
        for number, writer in enumerate(writers, 10):  # one turn of the loop brings all of this
            ask(writer, number)
        ask(reader, 2)
        assert rig.order == ["SELECT 1", "SELECT 2"]
        await asyncio.sleep(0)
        ask(reader, 3)
        assert rig.order[2:] == ["SELECT 10", "SELECT 3"]
        for writer in writers:
            await settle(writer)
        assert rig.order[4:] == [f"SELECT {number}" for number in range(11, 18)]
        assert all(said(writer).endswith(b"Z\0\0\0\5I") for writer in writers)

    asyncio.run(main())


def test_where_nobody_reads_nothing_is_put_off() -> None:
    async def main() -> None:
        rig = Rig()
        writer, reader = await rig.session(writes=True), await rig.session(writes=False)
        ask(writer, 1)
        assert rig.order == ["SELECT 1"]
        ask(reader, 2)
        rig.clock.now += READERS_S / 2
        ask(writer, 3)
        assert rig.order == ["SELECT 1", "SELECT 2"]
        await settle(writer)
        rig.clock.now += READERS_S
        ask(writer, 4)
        assert rig.order == ["SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4"]

    asyncio.run(main())


def test_what_arrives_meanwhile_keeps_its_order() -> None:
    async def main() -> None:
        rig = Rig()
        reader, writer = await rig.session(writes=False), await rig.session(writes=True)
        ask(reader, 1)
        for number in (2, 3, 4):
            ask(writer, number)
        assert writer.busy
        assert not writer.idle
        await settle(writer)
        assert rig.order == ["SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4"]
        assert said(writer).count(b"Z\0\0\0\5I") == 4
        assert writer.idle

    asyncio.run(main())


def test_a_connection_that_ends_before_its_turn_has_none() -> None:
    async def main() -> None:
        rig = Rig()
        reader = await rig.session(writes=False)
        lost, told = await rig.session(writes=True), await rig.session(writes=True)
        ask(reader, 1)
        ask(lost, 2)
        ask(told, 3)
        lost.connection_lost()
        told.terminate()
        for _ in range(10):
            await asyncio.sleep(0)
        assert rig.order == ["SELECT 1"]
        assert b"57P01" in said(told)
        last = await rig.session(writes=True)
        ask(last, 4)
        await settle(last)
        assert rig.order == ["SELECT 1", "SELECT 4"]

    asyncio.run(main())


def test_a_server_that_drains_lets_what_has_arrived_finish() -> None:
    async def main() -> None:
        rig = Rig()
        reader, writer = await rig.session(writes=False), await rig.session(writes=True)
        ask(reader, 1)
        ask(writer, 2)
        writer.terminate(when_idle=True)
        await settle(writer)
        assert rig.order == ["SELECT 1", "SELECT 2"]
        assert b"57P01" in said(writer)

    asyncio.run(main())


def test_the_answer_to_a_commit_takes_its_turn_too() -> None:
    async def main() -> None:
        rig = Rig()
        reader, writer = await rig.session(writes=False), await rig.session(writes=True)
        backend: Any = writer.backend
        commit: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        backend.sync = lambda: commit
        backend.synced = lambda outcome: outcome.result()
        writer.data_received(encode_frontend(m.Sync()))
        before = said(writer)
        ask(reader, 1)
        commit.set_result(None)
        await asyncio.sleep(0)
        assert said(writer) == before  # put off once
        await settle(writer)
        assert said(writer) == before + b"Z\0\0\0\5I"

    asyncio.run(main())


def test_copy_data_that_has_all_arrived_does_not_hold_the_loop() -> None:
    async def main() -> int:
        rig = Rig()
        session = await rig.session(writes=False)
        session.data_received(encode_frontend(m.Query("COPY t FROM STDIN")))
        await asyncio.sleep(0)
        line = encode_frontend(m.CopyData(b"1\n"))
        session.data_received(line * (10 * COPY_CHUNK_BYTES // len(line)) + encode_frontend(m.CopyDone()))
        turns = 0
        while session.busy:
            turns += 1
            await asyncio.sleep(0)
        assert b"COPY " in said(session)
        return turns

    assert asyncio.run(main()) >= 10
