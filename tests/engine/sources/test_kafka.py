"""KAFKA sources without Kafka: which messages a batch has, what becomes of them, and what stops the source."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.feeds.sources.kafka import KafkaReader, shares
from engine.feeds.sources.reader import Batch, Temporary
from pgwire.codecs.errors import DataError
from planner.base.errors import SqlError
from planner.catalog import ColumnDef, IndexDef, RelationDef, SourceDef
from planner.types import SqlType
from tests.engine.sources.support import connect, refused
from tests.support.server import ServerProcess

INT8, TEXT, BYTEA, INT4, TIMESTAMPTZ = 20, 25, 17, 23, 1184
T0 = 1_700_000_000_000_000


class FakeTopic:
    """A topic in memory: (key, value) by partition; ``first``: offsets that retention has reached."""

    def __init__(self, partitions: int = 1) -> None:
        self.logs: dict[int, list[tuple[bytes | None, bytes | None]]] = {p: [] for p in range(partitions)}
        self.first: dict[int, int] = {}
        self.reads: list[dict[int, tuple[int, int]]] = []
        self.extra: list[tuple[int, int]] = []  # answers nobody asked for
        self.fail: Exception | None = None

    def put(self, partition: int, *values: str | None, key: str | None = None) -> None:
        self.logs.setdefault(partition, []).extend(
            (None if key is None else key.encode(), None if v is None else v.encode()) for v in values
        )

    async def offsets(self) -> dict[int, tuple[int, int]]:
        if self.fail is not None:
            raise self.fail
        return {p: (self.first.get(p, 0), len(log)) for p, log in self.logs.items()}

    async def read(self, ranges: Mapping[int, tuple[int, int]]) -> Any:
        self.reads.append(dict(ranges))
        wanted = [(p, o) for p, (start, stop) in ranges.items() for o in reversed(range(start, stop))]
        wanted += self.extra
        return pa.table(
            {
                "partition": pa.array([p for p, _ in wanted], pa.int32()),
                "offset": pa.array([o for _, o in wanted], pa.int64()),
                "timestamp": pa.array([T0 + o for _, o in wanted], pa.timestamp("us", "UTC")),
                "key": pa.array([self.logs[p][o][0] for p, o in wanted], pa.binary()),
                "value": pa.array([self.logs[p][o][1] for p, o in wanted], pa.binary()),
            }
        )

    async def close(self) -> None:
        return


class Reading:
    """A reader over a fake topic, and what it has committed, as the runner does it."""

    def __init__(
        self, topic: FakeTopic, columns: dict[str, int], key: str | None = None, **options: str
    ) -> None:
        names = list(columns)
        defs = tuple(
            ColumnDef(attnum=i, name=name, type=SqlType(oid, -1), not_null=name == key)
            for i, (name, oid) in enumerate(columns.items(), 1)
        )
        indexes = ()
        if key is not None:
            indexes = (
                IndexDef(oid=9, name="pk", attnums=(names.index(key) + 1,), unique=True, primary=True),
            )
        self.relation = RelationDef(
            oid=1, schema_oid=1, schema="public", name="t", kind="r", columns=defs, indexes=indexes
        )
        self.source = SourceDef(
            oid=2, name="s", kind="kafka", owner=10,
            options={"brokers": "h:1", "topic": "events"} | options, tables=(1,), created_us=0,
        )  # fmt: skip
        self.topic = topic
        self.offsets: dict[str, bytes] = {}
        self.rows: list[tuple[Any, ...]] = []
        self.reader = KafkaReader(self.source, self.relation, topic)

    async def begin(self) -> None:
        """Open a reader at the stored offsets, as after a crash."""
        self.reader = KafkaReader(self.source, self.relation, self.topic)
        await self.reader.open(self.offsets)

    async def poll(self, *, crash: bool = False) -> Batch | None:
        """Take a batch; commit it unless there is a crash before."""
        batch = await self.reader.poll()
        if batch is None or crash:
            return batch
        for changes in batch.changes.values():
            self.rows += changes.appended
            for key, row in changes.net.items():
                self.rows = [r for r in self.rows if r[: len(key)] != key] + ([] if row is None else [row])
        self.offsets |= {p: body for p, body in batch.offsets.items() if body is not None}
        await self.reader.acknowledge(batch)
        return batch

    async def all(self) -> list[tuple[Any, ...]]:
        while await self.poll() is not None:
            pass
        return self.rows


async def _reading(
    topic: FakeTopic, columns: dict[str, int], key: str | None = None, **options: str
) -> Reading:
    made = Reading(topic, columns, key, **options)
    await made.begin()
    return made


def test_json_messages_in_the_order_of_their_partitions() -> None:
    async def check() -> None:
        topic = FakeTopic(2)
        topic.put(0, '{"id": 1, "v": "a"}', '{\n "id": 2\n}')
        topic.put(1, '{"v": "b"}', key="7")
        reading = await _reading(
            topic,
            {"id": INT8, "v": TEXT, "p": INT4, "o": INT8, "at": TIMESTAMPTZ, "k": INT8},
            partition_column="p", offset_column="o", timestamp_column="at", key_column="k",
        )  # fmt: skip
        assert await reading.all() == [
            (1, "a", 0, 0, T0, None), (2, None, 0, 1, T0 + 1, None), (None, "b", 1, 0, T0, 7),
        ]  # fmt: skip
        assert reading.reader.progress.lag.amount == 0
        batch = await reading.poll()
        assert batch is None

    asyncio.run(check())


def test_text_and_bytes() -> None:
    async def check() -> None:
        topic = FakeTopic()
        topic.put(0, "12", None)
        assert await (await _reading(topic, {"n": INT8}, format="text")).all() == [(12,), (None,)]
        raw = await _reading(topic, {"n": BYTEA, "k": BYTEA}, format="bytes", key_column="k")
        topic.logs[0].append((b"\xfe", b"\x00\xff"))
        assert await raw.all() == [(b"12", None), (None, None), (b"\x00\xff", b"\xfe")]

    asyncio.run(check())


def test_upserts_and_deletions_by_the_messages_key() -> None:
    async def check() -> None:
        topic = FakeTopic()
        for key, value in (("a", '{"n": 1}'), ("b", '{"n": 2}'), ("a", '{"n": 3}'), ("b", None)):
            topic.put(0, value, key=key)
        reading = await _reading(topic, {"k": TEXT, "n": INT8}, "k", envelope="upsert", key_column="k")
        assert await reading.all() == [("a", 3)]
        topic.put(0, None, '{"n": 1}')
        with pytest.raises(DataError) as error:
            await reading.all()
        assert (error.value.sqlstate, error.value.where) == ("22004", 'topic "events", partition 0, offset 4')

    asyncio.run(check())


def test_what_is_before_a_malformed_message_is_here_and_its_place_is_named() -> None:
    async def check() -> None:
        topic = FakeTopic(2)
        topic.put(0, *(f'{{"id": {i}}}' for i in range(5)), '{"id": "x"}', '{"id": 6}')
        topic.put(1, '{"id": 100}')
        reading = await _reading(topic, {"id": INT8})
        with pytest.raises(DataError) as error:
            await reading.all()
        assert reading.rows == [(0,), (1,), (2,), (3,), (4,), (100,)]
        assert error.value.message == 'invalid input syntax for type bigint: "x"'
        assert error.value.where == 'topic "events", partition 0, offset 5, column id: "x"'
        for _ in range(2):  # whoever tries again
            await reading.begin()
            with pytest.raises(DataError) as error:
                await reading.poll()
            assert error.value.where == 'topic "events", partition 0, offset 5, column id: "x"'
        for value, sqlstate in (("[]", "22P04"), ('{"id"', "22P02"), ('{"more": 1}', "22P04")):
            topic.logs[0][5] = (None, value.encode())
            await reading.begin()
            with pytest.raises(DataError) as error:
                await reading.poll()
            assert (error.value.sqlstate, error.value.where) == (
                sqlstate,
                'topic "events", partition 0, offset 5',
            )
        topic.logs[0][5] = (None, b'{"id": 5}')
        await reading.begin()
        assert sorted(await reading.all()) == [(0,), (1,), (2,), (3,), (4,), (5,), (6,), (100,)]

    asyncio.run(check())


def test_start_at_the_latest_and_partitions_that_come_later() -> None:
    async def check() -> None:
        topic = FakeTopic(1)
        topic.put(0, "1", "2")
        reading = await _reading(topic, {"n": INT8}, format="text", start="latest")
        first = await reading.poll()
        assert first is not None
        assert (first.changes, first.positions) == ({}, {"0": "offset 2"})
        await reading.begin()  # what it began at is kept
        topic.put(0, "3")
        topic.put(1, "4")
        assert sorted(await reading.all()) == [(3,), (4,)]

    asyncio.run(check())


@pytest.mark.parametrize("change", ["expired", "shorter", "gone"])
def test_messages_that_are_gone_before_they_were_read_stop_the_source(change: str) -> None:
    async def check() -> None:
        topic = FakeTopic(2)
        topic.put(0, "1", "2")
        reading = await _reading(topic, {"n": INT8}, format="text")
        await reading.all()
        topic.put(0, "3", "4")
        if change == "expired":
            topic.first[0] = 3
        elif change == "shorter":
            topic.logs[0] = topic.logs[0][:1]
        else:
            del topic.logs[0]
        with pytest.raises(SqlError) as error:
            await reading.poll()
        assert error.value.sqlstate == "55000"
        assert "partition 0 up to offset 2" in str(error.value.detail)

    asyncio.run(check())


def test_brokers_that_do_not_answer_are_asked_again_and_others_are_not() -> None:
    async def check() -> None:
        topic = FakeTopic()
        reading = await _reading(topic, {"n": INT8}, format="text")
        topic.fail = SqlError("08001", "the brokers of Kafka do not answer")
        with pytest.raises(Temporary, match=r"^08001: the brokers"):
            await reading.poll()
        topic.fail = SqlError("42704", 'topic "events" does not exist')
        with pytest.raises(SqlError):
            await reading.poll()
        topic.fail = None
        topic.put(0, "1", "2")
        await reading.poll()
        topic.extra = [(0, 1)]
        with pytest.raises(Temporary, match="offset 1 of partition 0"):
            await reading.poll()

    asyncio.run(check())


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(0, 3), st.integers(1, 9)),
            st.tuples(st.just("poll"), st.booleans(), st.just(0)),
            st.tuples(st.just("crash"), st.just(0), st.just(0)),
        ),
        max_size=30,
    )
)
def test_every_message_comes_once_whatever_happens_between(steps: list[tuple[str, int, int]]) -> None:
    async def check() -> None:
        topic = FakeTopic(1)
        reading = await _reading(
            topic, {"v": TEXT, "p": INT4, "o": INT8}, format="text", partition_column="p", offset_column="o",
            max_batch_rows="5",
        )  # fmt: skip
        for what, a, b in steps:
            if what == "put":
                topic.put(a, *(f"{a}/{i}" for i in range(b)))
            elif what == "poll":
                await reading.poll(crash=bool(a))
                if a:
                    await reading.begin()
            else:
                await reading.begin()
        expected = [
            (f"{v.decode()}", p, o) for p, log in topic.logs.items() for o, (_, v) in enumerate(log) if v
        ]
        found = await reading.all()
        assert sorted(found, key=lambda row: row[1:]) == sorted(expected, key=lambda row: row[1:])
        for p in topic.logs:
            assert [row[2] for row in found if row[1] == p] == list(range(len(topic.logs[p])))

    asyncio.run(check())


@given(st.dictionaries(st.integers(0, 20), st.integers(0, 1000)), st.integers(1, 500))
def test_shares_are_fair(waiting: dict[int, int], most: int) -> None:
    taken = shares(waiting, most)
    some = {p for p, count in waiting.items() if count}
    assert set(taken) == some
    assert all(1 <= taken[p] <= waiting[p] for p in taken)
    assert sum(taken.values()) <= max(most, len(some))
    if sum(waiting.values()) >= most >= len(some):
        assert sum(taken.values()) == most


REFUSED = [
    ("(a int) FROM KAFKA (brokers = 'h:1', topic = 't', key_column = k)", "42703"),
    ("(a int) FROM KAFKA (brokers = 'h:1', topic = 't', key_column = a, offset_column = a)", "42601"),
    ("(a int, o int) FROM KAFKA (brokers = 'h:1', topic = 't', offset_column = o)", "42804"),
    ("(a int, b int) FROM KAFKA (brokers = 'h:1', topic = 't', format = text)", "42601"),
    ("(a int) FROM KAFKA (brokers = 'h:1', topic = 't', format = bytes)", "42804"),
    ("(a int) FROM KAFKA (brokers = 'h:1', topic = 't', format = avro)", "22023"),
    ("(a int) FROM KAFKA (brokers = 'h:1', topic = 't', properties = '{\"a\": 1}')", "22023"),
]


@pytest.mark.parametrize(("sql", "sqlstate"), REFUSED)
def test_what_create_source_refuses(server: ServerProcess, sql: str, sqlstate: str) -> None:
    with connect(server) as c:
        refused(c, f"CREATE SOURCE odd {sql}", sqlstate)


def test_without_the_connector_the_error_names_the_setting(server: ServerProcess) -> None:
    with connect(server) as c:
        diag = refused(c, "CREATE SOURCE odd (a int) FROM KAFKA (brokers = 'h:1', topic = 't')", "0A000")
        assert "spark-sql-kafka-0-10" in str(diag.message_detail)
        assert "--spark-conf spark.jars.packages=" in str(diag.message_hint)
