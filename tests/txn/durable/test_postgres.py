"""Consensus in PostgreSQL where things go wrong: lost answers, killed backends, full disks, foreign schemas."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.support.durable import run
from tests.support.postgres import fresh_schema, postgres, url_of  # noqa: F401 - a fixture
from txn.base.errors import Fenced, OutOfSpace, UnknownFormat
from txn.persist.location import Indeterminate, SequenceConflict
from txn.persist.logs.postgres import _APPEND, PostgresConsensus, shown
from txn.wal.cache import LogMap
from txn.wal.txns import TxnsLog


class Proxy:
    """A TCP relay that can be told to lose answers, or to stop relaying."""

    def __init__(self, url: str) -> None:
        address = url.rpartition("@")[2].partition("/")[0]
        host, _, port = address.partition(":")
        self.target = host, int(port)
        self.lose_answers = False
        self.swallow: bytes | None = None
        """What is sent with these bytes in it, and all after it, arrives nowhere."""
        self.server: asyncio.Server
        self.url = ""
        self._base = url
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Proxy:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        head, _, tail = self._base.rpartition("@")
        self.url = f"{head}@127.0.0.1:{port}/{tail.partition('/')[2]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.server.wait_closed()

    def cut(self) -> None:
        """Break every connection, as a cable does."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self.target)
        self._writers += [writer, server_writer]

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, answers: bool) -> None:
            try:
                while data := await source.read(1 << 16):
                    if answers and self.lose_answers:
                        writer.transport.abort()
                        break
                    if not answers and self.swallow is not None and self.swallow in data:
                        continue
                    sink.write(data)
                    await sink.drain()
            except OSError:
                pass
            finally:
                sink.close()

        for task in (
            asyncio.create_task(pump(reader, server_writer, False)),
            asyncio.create_task(pump(server_reader, writer, True)),
        ):
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


class Rig:
    """A consensus in a schema of its own, and a plain connection to look behind it."""

    def __init__(self, url: str, consensus: PostgresConsensus, raw: Any, schema: str) -> None:
        self.url, self.consensus, self.raw, self.schema = url, consensus, raw, schema

    def sql(self, text: str) -> str:
        return text.replace("{s}", self.schema)

    async def backend(self, lane: str) -> int:
        pid = await self.raw.fetchval(
            "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND query LIKE $2 "
            "ORDER BY query_start DESC LIMIT 1",
            f"holdfast {lane}",
            f"%{self.schema}%",
        )
        assert pid is not None
        return int(pid)


@asynccontextmanager
async def rigged(dsn: str, *, through: Proxy | None = None, log_timeout_s: float = 5.0) -> AsyncIterator[Rig]:
    url, schema = url_of(dsn), fresh_schema()
    raw = await asyncpg.connect(url)
    consensus = await PostgresConsensus.open(
        through.url if through else url, schema=schema, cluster="c", log_timeout_s=log_timeout_s
    )
    try:
        yield Rig(url, consensus, raw, schema)
    finally:
        await consensus.close()
        await raw.execute(f"DROP SCHEMA {schema} CASCADE")
        await raw.close()


def with_rig(dsn: str, body: Callable[[Rig], Awaitable[None]], **more: Any) -> None:
    async def work() -> None:
        async with rigged(dsn, **more) as rig:
            await body(rig)

    run(work)


async def leading(consensus: PostgresConsensus) -> int:
    epoch = await consensus.acquire_epoch()
    assert epoch is not None
    return epoch


def test_an_append_that_was_done_but_not_answered_is_found_and_not_repeated(postgres: str) -> None:  # noqa: F811
    async def work() -> None:
        async with Proxy(url_of(postgres)) as proxy, rigged(postgres, through=proxy) as rig:
            epoch = await leading(rig.consensus)
            log = TxnsLog(rig.consensus, epoch, LogMap(1))
            await log.append(b"first")
            log.map.note(1, 5, [])
            proxy.lose_answers = True
            with pytest.raises(Indeterminate):
                await rig.consensus.append(epoch, 2, b"second")
            assert await rig.raw.fetchval(rig.sql("SELECT count(*) FROM {s}.log")) == 2  # done, not answered
            proxy.lose_answers = False
            assert await log.append(b"second") == 2
            assert await rig.consensus.read_log(1) == [(1, b"first"), (2, b"second")]

    run(work)


def test_a_killed_backend_costs_one_attempt_at_most(postgres: str) -> None:  # noqa: F811
    async def body(rig: Rig) -> None:
        epoch = await leading(rig.consensus)
        await rig.consensus.append(epoch, 1, b"a")
        register = await rig.consensus.compare_and_set("r", None, b"1", epoch=epoch)
        for lane in ("log", "register"):
            assert await rig.raw.fetchval("SELECT pg_terminate_backend($1, 5000)", await rig.backend(lane))
        with contextlib.suppress(Indeterminate):
            await rig.consensus.append(epoch, 2, b"b")
        with contextlib.suppress(SequenceConflict):
            await rig.consensus.append(epoch, 2, b"b")
        with contextlib.suppress(Indeterminate):
            register = await rig.consensus.compare_and_set("r", register, b"2", epoch=epoch)
        assert await rig.consensus.compare_and_set("r", register, b"3", epoch=epoch) is not None
        assert await rig.consensus.log_bounds() == (1, 3)

    with_rig(postgres, body)


def test_what_a_lost_connection_left_behind_comes_too_late(postgres: str) -> None:  # noqa: F811
    """The server may still have to run a statement whose connection was given up."""

    async def body(rig: Rig) -> None:
        epoch = await leading(rig.consensus)
        await rig.consensus.append(epoch, 1, b"a")
        session = await rig.raw.fetchval(rig.sql("SELECT log_session FROM {s}.state"))
        late = rig.sql(_APPEND), epoch, session, 2, b"of the first connection"
        rig.consensus._log.drop()
        await rig.raw.execute(rig.sql("ALTER TABLE {s}.log ADD CHECK (seq < 2) NOT VALID"))
        with pytest.raises(Indeterminate):
            await rig.consensus.append(epoch, 2, b"refused")
        await rig.raw.execute(rig.sql("ALTER TABLE {s}.log DROP CONSTRAINT log_seq_check"))
        assert await rig.raw.fetchval(*late) is None
        assert await rig.consensus.log_bounds() == (1, 2)

    with_rig(postgres, body)


def test_an_old_claim_that_comes_late_does_not_stop_the_log(postgres: str) -> None:  # noqa: F811
    async def body(rig: Rig) -> None:
        epoch = await leading(rig.consensus)
        log = TxnsLog(rig.consensus, epoch, LogMap(1))
        await log.append(b"a")
        log.map.note(1, 1, [])
        await rig.consensus.compare_and_set("r", None, b"1", epoch=epoch)
        await rig.raw.execute(
            rig.sql("UPDATE {s}.state SET log_session = log_session + 1, register_session = 77")
        )
        assert await log.append(b"b") == 2
        assert await rig.consensus.compare_and_set("q", None, b"1", epoch=epoch) is not None

    with_rig(postgres, body)


def test_raising_the_epoch_waits_for_an_append_under_way_and_sees_it(postgres: str) -> None:  # noqa: F811
    async def body(rig: Rig) -> None:
        epoch = await leading(rig.consensus)
        await rig.consensus.append(epoch, 1, b"a")
        session = await rig.raw.fetchval(rig.sql("SELECT log_session FROM {s}.state"))
        other = await PostgresConsensus.open(rig.url, schema=rig.schema, cluster="c")
        try:
            transaction = rig.raw.transaction()
            await transaction.start()
            assert await rig.raw.fetchval(rig.sql(_APPEND), epoch, session, 2, b"under way") == 2
            seen = await other.pulse()
            raising = asyncio.ensure_future(other.acquire_epoch(seen))
            late = asyncio.ensure_future(rig.consensus.append(epoch, 2, b"behind both"))
            await asyncio.sleep(0.2)
            assert not raising.done()
            await transaction.commit()
            new = await raising
            assert new == epoch + 1
            with pytest.raises((Fenced, SequenceConflict)):
                await late
            bounds = await other.log_bounds()
            assert bounds == (1, 3)
            with pytest.raises(Fenced):
                await rig.consensus.append(epoch, 3, b"late")
            assert await other.read_log(2) == [(2, b"under way")]
        finally:
            await other.close()

    with_rig(postgres, body)


def test_no_answer_in_time_is_indeterminate_and_the_next_attempt_decides(postgres: str) -> None:  # noqa: F811
    async def body(rig: Rig) -> None:
        epoch = await leading(rig.consensus)
        await rig.consensus.append(epoch, 1, b"a")
        async with rig.raw.transaction():
            await rig.raw.execute(rig.sql("SELECT FROM {s}.state FOR UPDATE"))
            with pytest.raises(Indeterminate, match="did not answer within"):
                await rig.consensus.append(epoch, 2, b"b")
        log = TxnsLog(rig.consensus, epoch, LogMap(2))
        assert await log.append(b"b") == 2
        assert await rig.consensus.read_log(1) == [(1, b"a"), (2, b"b")]

    with_rig(postgres, body, log_timeout_s=0.4)


def test_a_server_that_falls_silent_right_after_the_connection_is_not_waited_for(
    postgres: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the renewal of a lease would hang, and every client with it, for as long as TCP is patient."""

    async def body() -> None:
        async with Proxy(url_of(postgres)) as proxy, rigged(postgres, through=proxy) as rig:
            epoch = await leading(rig.consensus)
            monkeypatch.setattr("txn.persist.logs.postgres.CONNECT_TIMEOUT_S", 0.5)
            proxy.cut()
            proxy.swallow = b"synchronous_commit"
            async with asyncio.timeout(20):
                for _ in range(3):  # the first finds out that the connection has gone
                    with pytest.raises(Indeterminate):
                        await rig.consensus.append(epoch, 1, b"a")
            proxy.swallow = None
            await rig.consensus.append(epoch, 1, b"a")
            assert await rig.consensus.read_log(1) == [(1, b"a")]

    run(body)


_FULL = """
CREATE FUNCTION {s}.no_space() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER no_space BEFORE INSERT OR UPDATE ON {s}.log FOR EACH ROW EXECUTE FUNCTION {s}.no_space();
CREATE TRIGGER no_space BEFORE INSERT OR UPDATE ON {s}.register FOR EACH ROW EXECUTE FUNCTION {s}.no_space();
"""


def test_a_full_disk_refuses_and_later_appends_go_on(postgres: str) -> None:  # noqa: F811
    async def body(rig: Rig) -> None:
        epoch = await leading(rig.consensus)
        await rig.consensus.append(epoch, 1, b"a")
        await rig.raw.execute(rig.sql(_FULL))
        with pytest.raises(OutOfSpace):
            await rig.consensus.append(epoch, 2, b"b")
        with pytest.raises(OutOfSpace):
            await rig.consensus.compare_and_set("r", None, b"1", epoch=epoch)
        assert await rig.consensus.log_bounds() == (1, 2)
        await rig.raw.execute(rig.sql("DROP FUNCTION {s}.no_space() CASCADE"))
        await rig.consensus.append(epoch, 2, b"b")

    with_rig(postgres, body)


def test_a_full_disk_settles_nothing_while_a_lost_connection_may_have_left_something_behind(
    postgres: str,  # noqa: F811
) -> None:
    """Else a commit would be refused for good, and the statement of its first attempt take effect all the same."""

    async def body(rig: Rig) -> None:
        epoch = await leading(rig.consensus)
        await rig.consensus.append(epoch, 1, b"a")
        session = await rig.raw.fetchval(rig.sql("SELECT log_session FROM {s}.state"))
        late = rig.sql(_APPEND), epoch, session, 2, b"b"
        rig.consensus._log.drop()
        await rig.raw.execute(
            rig.sql(
                _FULL + "CREATE TRIGGER no_space BEFORE UPDATE OF log_session ON {s}.state "
                "FOR EACH ROW EXECUTE FUNCTION {s}.no_space();"
            )
        )
        with pytest.raises(Indeterminate):
            await rig.consensus.append(epoch, 2, b"b")
        await rig.raw.execute(rig.sql("DROP FUNCTION {s}.no_space() CASCADE"))
        assert await rig.raw.fetchval(*late) == 2, "what was left behind"
        log = TxnsLog(rig.consensus, epoch, LogMap(2))
        assert await log.append(b"b") == 2
        await rig.raw.execute(rig.sql(_FULL))
        with pytest.raises(OutOfSpace):  # now that a number was taken a refusal is one
            await rig.consensus.append(epoch, 3, b"c")
        assert await rig.consensus.log_bounds() == (1, 3)

    with_rig(postgres, body)


def test_an_unknown_format_is_refused_and_left_alone(postgres: str) -> None:  # noqa: F811
    async def body(rig: Rig) -> None:
        await rig.raw.execute(rig.sql("UPDATE {s}.format SET version = 99"))
        with pytest.raises(UnknownFormat, match="99"):
            await PostgresConsensus.open(rig.url, schema=rig.schema, cluster="c")
        foreign = fresh_schema()
        await rig.raw.execute(f"CREATE SCHEMA {foreign}; CREATE TABLE {foreign}.theirs (a int)")
        with pytest.raises(UnknownFormat, match="other tables"):
            await PostgresConsensus.open(rig.url, schema=foreign, cluster="c")
        assert await rig.raw.fetchval(f"SELECT count(*) FROM pg_tables WHERE schemaname = '{foreign}'") == 1
        await rig.raw.execute(f"DROP SCHEMA {foreign} CASCADE")

    with_rig(postgres, body)


def test_several_first_starts_at_once_agree_on_one_cluster(postgres: str) -> None:  # noqa: F811
    async def work() -> None:
        schema, url = fresh_schema(), url_of(postgres)
        opened = await asyncio.gather(
            *(PostgresConsensus.open(url, schema=schema, cluster=f"c{i}") for i in range(4))
        )
        assert len({c.cluster for c in opened}) == 1
        epochs = await asyncio.gather(*(c.acquire_epoch() for c in opened))
        assert sorted(e or 0 for e in epochs) == [1, 2, 3, 4]
        for consensus in opened:
            await consensus.close()
        raw = await asyncpg.connect(url)
        await raw.execute(f"DROP SCHEMA {schema} CASCADE")
        await raw.close()

    run(work)


def test_passwords_do_not_reach_messages() -> None:
    url = "postgresql://me:s3cret@127.0.0.1:1/db?password=s3cret&sslmode=disable"
    assert shown(url) == "postgresql://me@127.0.0.1:1/db"
    assert shown("postgresql://me:s3cret@[::1]:1,b:2/db") == "postgresql://me@[::1]:1,b:2/db"
    for sign in "/?#[":  # not escaped, they end the part that has the password
        assert "s3" not in shown(f"postgresql://me:s3{sign}cret@127.0.0.1:1/db")

    async def work() -> None:
        for bad in (url, "postgresql://me:s3cret@127.0.0.1:port/db", "nonsense://me:s3cret@x/db"):
            with pytest.raises(Indeterminate) as raised:
                await PostgresConsensus.open(bad, cluster="c")
            assert "s3cret" not in str(raised.value)
        with pytest.raises(ValueError, match="schema"):
            await PostgresConsensus.open(url, schema="a; DROP", cluster="c")

    run(work)


@pytest.mark.parametrize("seed", [1, 2])
def test_cut_connections_lose_and_double_nothing(postgres: str, seed: int) -> None:  # noqa: F811
    async def work() -> None:
        rng = random.Random(seed)
        async with Proxy(url_of(postgres)) as proxy, rigged(postgres, through=proxy) as rig:
            epoch = await leading(rig.consensus)
            log = TxnsLog(rig.consensus, epoch, LogMap(1), attempts=25)
            stop = asyncio.Event()

            async def saboteur() -> None:
                while not stop.is_set():
                    await asyncio.sleep(rng.uniform(0.1, 0.2))
                    proxy.lose_answers = rng.random() < 0.5
                    if not proxy.lose_answers:
                        proxy.cut()
                    await asyncio.sleep(rng.uniform(0.0, 0.01))
                    proxy.lose_answers = False

            task = asyncio.create_task(saboteur())
            expected = []
            for number in range(1, 301):
                payload = b"entry %d" % number
                assert await log.append(payload) == number
                log.map.note(number, len(payload), [])
                expected.append((number, payload))
            stop.set()
            await task
            rows = await rig.raw.fetch(rig.sql("SELECT seq, data FROM {s}.log ORDER BY seq"))
            assert [(r["seq"], r["data"]) for r in rows] == expected

    run(work)
