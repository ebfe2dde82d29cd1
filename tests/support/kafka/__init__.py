"""What stands in for Kafka and Spark's connector: a folder for the brokers, a jar for the client, a data source for Spark.

    folder/events/0/log      a JSON object a line: key, value (base64 or null), microseconds
                   /first    the offset of the first message (retention)      KafkaConsumer.java answers beginningOffsets, ...
                   /end      that behind the last                             endOffsets of these

The data source has the connector's schema and takes its options (assign, startingOffsets, endingOffsets); it is registered under
``FORMAT`` in the place of "kafka". What is not stood in for: the brokers' protocol, the connector's own code, and how its
jars are resolved.
"""

from __future__ import annotations

import json
import subprocess
import zipfile
from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

FORMAT = "kafka_stand_in"
SCHEMA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
SOURCES = ("KafkaConsumer.java", "TopicPartition.java", "PartitionInfo.java")


class Brokers:
    """Writes topics into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, topic: str, partitions: int) -> None:
        for number in range(partitions):
            place = self.folder / topic / str(number)
            if place.exists():
                continue
            hidden = self.folder / f".{topic}.{number}"
            hidden.mkdir(parents=True)
            (hidden / "log").touch()
            (hidden / "first").write_text("0")
            (hidden / "end").write_text("0")
            place.parent.mkdir(exist_ok=True)
            hidden.rename(place)

    def put(self, topic: str, partition: int, *messages: tuple[str | None, str | None]) -> None:
        """Append (key, value) to a partition; they are there once ``end`` says so."""
        place = self.folder / topic / str(partition)
        count = int((place / "end").read_text())
        with (place / "log").open("a") as log:
            for i, (key, value) in enumerate(messages):
                log.write(
                    json.dumps([_encoded(key), _encoded(value), 1_700_000_000_000_000 + count + i]) + "\n"
                )
        self._set(place / "end", count + len(messages))

    def expire(self, topic: str, partition: int, first: int) -> None:
        """Let retention take the messages before ``first``."""
        self._set(self.folder / topic / str(partition) / "first", first)

    @staticmethod
    def _set(path: Path, value: int) -> None:
        hidden = path.with_name(f".{path.name}")
        hidden.write_text(str(value))
        hidden.rename(path)


def _encoded(text: str | None) -> str | None:
    return None if text is None else b64encode(text.encode()).decode()


def jar(folder: Path) -> Path:
    """Compile the client's stand-in. Needs a JDK."""
    classes = folder / "classes"
    here = Path(__file__).parent
    subprocess.run(
        ["javac", "--release", "17", "-d", str(classes), *(str(here / name) for name in SOURCES)],
        check=True,
        timeout=300,
    )
    path = folder / "kafka-stand-in.jar"
    with zipfile.ZipFile(path, "w") as file:
        for entry in sorted(classes.rglob("*.class")):
            file.write(entry, str(entry.relative_to(classes)))
    return path


class Span(InputPartition):
    """Messages of one partition."""

    def __init__(self, folder: str, topic: str, partition: int, start: int, stop: int) -> None:
        super().__init__((folder, topic, partition, start, stop))


class StandInReader(DataSourceReader):
    """Reads what the options say, and nothing else."""

    def __init__(self, options: dict[str, str]) -> None:
        self._folder = options["kafka.bootstrap.servers"]
        assert options["kafka.isolation.level"] == "read_committed"
        self._assigned = json.loads(options["assign"])
        self._starts = json.loads(options["startingoffsets"])
        self._ends = json.loads(options["endingoffsets"])

    def partitions(self) -> list[InputPartition]:
        return [
            Span(self._folder, topic, p, self._starts[topic][str(p)], self._ends[topic][str(p)])
            for topic, numbers in self._assigned.items()
            for p in numbers
        ]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        folder, topic, number, start, stop = partition.value
        place = Path(folder) / topic / str(number)
        assert int((place / "first").read_text()) <= start < stop <= int((place / "end").read_text())
        with (place / "log").open() as log:
            for offset, line in enumerate(log):
                if start <= offset < stop:
                    key, value, time_us = json.loads(line)
                    key, value = (None if v is None else b64decode(v) for v in (key, value))
                    yield key, value, topic, number, offset, datetime.fromtimestamp(time_us / 1e6, UTC), 0


class StandIn(DataSource):
    """The data source."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        return StandInReader({name.lower(): value for name, value in self.options.items()})


def stand_in() -> None:
    """Have the server of this process read topics through the data source."""
    import engine.executors.spark.kafka
    import engine.executors.spark.runtime
    from engine.executors.spark.workers import prepare_workers

    engine.executors.spark.kafka.FORMAT = FORMAT  # type: ignore[misc]
    true_join = engine.executors.spark.runtime._join

    def join(*given: Any, **named: Any) -> Any:
        live = true_join(*given, **named)
        prepare_workers(live.context)
        live.session.dataSource.register(StandIn)
        return live

    engine.executors.spark.runtime._join = join
