"""KAFKA sources in a server with Spark, a stand-in for connector and brokers (tests/support/kafka) in the place of Kafka's own."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest

from tests.engine.sources.support import Connection, connect, refused, rows, value
from tests.engine.sources.test_files_on_spark import kill_jvm, wait_for
from tests.support.kafka import Brokers, jar
from tests.support.server import ServerProcess

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(1800),  # the machine may be busy
    pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK: install default-jdk-headless"),
]


def serve(folder: Path, client: Path) -> ServerProcess:
    return ServerProcess(
        folder / "data",
        "--spark-start",
        "background",
        "--spark-conf",
        f"spark.jars={client}",
        odd={"HFTEST_KAFKA": "1"},
    )


def stopped(c: Connection, name: str) -> str:
    wait_for(c, f"SELECT DISTINCT state FROM holdfast_sources WHERE name = '{name}'", "stopped")
    return str(value(c, f"SELECT DISTINCT last_error FROM holdfast_sources WHERE name = '{name}'"))


def test_messages_come_once_whatever_is_killed(tmp_path: Path) -> None:
    brokers = Brokers(tmp_path / "brokers")
    brokers.create("events", 2)
    brokers.create("people", 1)
    client = jar(tmp_path)
    server = serve(tmp_path, client)
    rng = random.Random(3)
    written = [0, 0, 0]

    def write(partition: int, count: int) -> None:
        first = written[partition]
        brokers.put("events", partition, *((None, f'{{"n": {first + i}}}') for i in range(count)))
        written[partition] += count

    with connect(server) as c:
        at = f"brokers = '{tmp_path}/brokers', poll_interval_ms = 20"
        diag = refused(c, f"CREATE SOURCE odd (n int) FROM KAFKA ({at}, topic = 'nothing')", "42704")
        assert diag.message_primary == 'topic "nothing" does not exist'
        c.execute(
            "CREATE SOURCE events (p int, o bigint, n bigint, at timestamptz, PRIMARY KEY (p, o)) FROM KAFKA"
            f" ({at}, topic = 'events', partition_column = p, offset_column = o, timestamp_column = at, max_batch_rows = 400)"
        )
        c.execute(
            "CREATE SOURCE people (name text PRIMARY KEY, age int) FROM KAFKA"
            f" ({at}, topic = 'people', key_column = name, envelope = upsert)"
        )
        write(0, 500)
        write(1, 20)
        brokers.put("people", 0, ("ann", '{"age": 30}'), ("bob", '{"age": 40}'), ("ann", '{"age": 31}'))
        wait_for(c, "SELECT count(*) FROM events", 520)
        wait_for(c, "SELECT string_agg(name || age, ',' ORDER BY name) FROM people", "ann31,bob40")
        brokers.put("people", 0, ("bob", None))
        wait_for(c, "SELECT string_agg(name || age, ',' ORDER BY name) FROM people", "ann31")
        shown = "SELECT partition, position, rows, acknowledged_position = position, lag_unit FROM holdfast_sources"
        wait_for(c, "SELECT sum(lag) FROM holdfast_sources WHERE name = 'events'", 0)
        assert rows(c, f"{shown} WHERE name = 'events' ORDER BY partition") == [
            ("0", "offset 500", 500, True, "messages"), ("1", "offset 20", 20, True, "messages"),
        ]  # fmt: skip
        assert (
            value(c, "SELECT at = '2023-11-14 22:13:20.000007+00' FROM events WHERE p = 0 AND o = 7") is True
        )
    brokers.create("events", 3)
    for what in ("jvm", "server"):
        for partition in range(3):
            write(partition, rng.randrange(200, 400))
        time.sleep(rng.random())  # anywhere in a batch
        if what == "jvm":
            kill_jvm(server)
        else:
            server.kill()
            server = serve(tmp_path, client)
        with connect(server) as c:
            wait_for(c, "SELECT count(*) FROM events", sum(written))
            assert rows(c, "SELECT p, count(DISTINCT o), count(DISTINCT n), max(n) FROM events GROUP BY p ORDER BY p") == [
                (p, count, count, count - 1) for p, count in enumerate(written)
            ]  # fmt: skip
    with connect(server) as c:
        brokers.put("people", 0, ("eve", '{"age": "old"}'))
        assert stopped(c, "people") == (
            '22P02: invalid input syntax for type integer: "old"\n'
            'CONTEXT: topic "people", partition 0, offset 4, column age: "old"'
        )
        c.execute("ALTER SOURCE events PAUSE")
        wait_for(c, "SELECT DISTINCT state FROM holdfast_sources WHERE name = 'events'", "paused")
        write(0, 10)
        brokers.expire("events", 0, written[0] - 5)
        c.execute("ALTER SOURCE events RESUME")
        assert stopped(c, "events").startswith(
            '55000: topic "events" is not as it was left: messages are lost'
        )
    assert server.stop() == 0


def test_a_server_whose_jars_lack_the_connector_says_so(tmp_path: Path) -> None:
    server = ServerProcess(
        tmp_path / "data",
        "--spark-start",
        "background",
        "--spark-conf",
        f"spark.driver.extraClassPath={tmp_path}",
    )
    with connect(server) as c:
        diag = refused(c, "CREATE SOURCE odd (n int) FROM KAFKA (brokers = 'h:1', topic = 't')", "0A000")
        assert diag.message_primary == "Spark's connector for Kafka is not among the jars of Spark"
        assert "spark.jars" in str(diag.message_hint)
    assert server.stop() == 0
