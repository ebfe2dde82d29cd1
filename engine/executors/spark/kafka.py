"""A topic of Kafka through Spark's connector: which messages there are, and those between two offsets.

    offsets    KafkaConsumer of the connector's own client, in the JVM      partition -> first offset, offset behind the last
    read       spark.read.format("kafka"), assign, startingOffsets,         messages as Arrow: partition, offset, timestamp,
               endingOffsets                                                key, value

Both are exact: the same offsets give the same messages, however often they are read. Messages of transactions
that were aborted are not read, those of open ones not yet (isolation.level = read_committed, unless the
properties say otherwise). Nothing is told to the brokers: they keep no offsets for us.

The connector is no part of PySpark; its jars come with the setting ``spark_conf`` (``JARS``).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from engine.executors.spark.executor import SparkExecutor
from engine.executors.spark.runtime import Live
from planner.base.errors import SqlError

FORMAT: Final = "kafka"
CONNECTOR: Final = "spark-sql-kafka-0-10"
JARS: Final = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
TIMEOUT_MS: Final = 10_000
COLUMNS: Final = ("partition", "offset", "timestamp", "key", "value")
_CONSUMER: Final = "org.apache.kafka.clients.consumer.KafkaConsumer"
_TOPIC_PARTITION: Final = "org.apache.kafka.common.TopicPartition"
_BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_DEFAULTS: Final[Mapping[str, str]] = {
    "isolation.level": "read_committed",
    "allow.auto.create.topics": "false",
    "default.api.timeout.ms": str(TIMEOUT_MS),
    "request.timeout.ms": str(TIMEOUT_MS),
    "metadata.max.age.ms": "30000",  # how soon a new partition is seen
}


def check_configured(conf: Mapping[str, str]) -> None:
    """Raise SqlError 0A000 if no setting can have brought the connector's jars."""
    if not any(conf.get(name) for name in JARS):
        raise SqlError(
            "0A000",
            "KAFKA sources need Spark's connector for Kafka, which is not configured",
            detail=f"It is {CONNECTOR}, in the version of Spark; its jars are named by {', '.join(JARS[:-1])} or {JARS[-1]}.",
            hint="Start the server with --spark-conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION, "
            "or spark.jars=PATH,...",
        )


class KafkaTopic:
    """One topic. Methods raise SqlError: 0A000 without the connector or Spark, 58000 where Spark fails,
    08001, 42704.
    """

    def __init__(
        self, spark: SparkExecutor, brokers: str, topic: str, properties: Mapping[str, str] | None = None
    ) -> None:
        """``properties``: of Kafka's clients, by their names there. Nothing is connected yet."""
        self._spark = spark
        self._brokers = brokers
        self._topic = topic
        self._properties = dict(_DEFAULTS) | dict(properties or {})
        self._consumer: Any = None
        self._of: Live | None = None  # the JVM that the consumer lives in

    async def offsets(self) -> dict[int, tuple[int, int]]:
        """Return, for each partition, the offset of its first message and that behind its last."""
        tasks = await self._spark.own_tasks(id(self))
        return await tasks.run(self._offsets)

    async def read(self, ranges: Mapping[int, tuple[int, int]]) -> Any:
        """Return the messages of partitions from one offset to before another, as a pyarrow.Table of ``COLUMNS``.

        In no particular order. Offsets without a message are possible: compacted, or of transactions.
        """
        tasks = await self._spark.own_tasks(id(self))
        return await tasks.run(lambda live: self._read(live, ranges))

    async def close(self) -> None:
        """Give up the connections; nothing is waited for."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None and self._spark.ready:
            with contextlib.suppress(RuntimeError):  # the threads are gone: the server stops
                self._spark.runtime.jobs.submit(_close, consumer)

    # -- in the JVM, each in a thread --------------------------------------------------------------

    def _offsets(self, live: Live) -> dict[int, tuple[int, int]]:
        jvm = live.context._jvm
        try:
            consumer = self._connected(live)
            infos = consumer.partitionsFor(self._topic)
            if not infos:
                raise SqlError("42704", f'topic "{self._topic}" does not exist')
            types = [_class(live, "java.lang.String"), jvm.java.lang.Integer.TYPE]
            make = _class(live, _TOPIC_PARTITION).getConstructor(_array(live, jvm.java.lang.Class, types))
            partitions = jvm.java.util.ArrayList()
            known = {}
            # by index: the end of a Java iterator is an exception, which PySpark asks the JVM about at length
            for number in (infos[i].partition() for i in range(len(infos))):
                values = _array(live, jvm.java.lang.Object, [self._topic, number])
                known[number] = make.newInstance(values)
                partitions.add(known[number])
            first = consumer.beginningOffsets(partitions)
            end = consumer.endOffsets(partitions)
            return {number: (int(first[known[number]]), int(end[known[number]])) for number in sorted(known)}
        except SqlError:
            raise
        except Exception as error:
            self._consumer = None
            raise _translated(error, self._topic) from error

    def _connected(self, live: Live) -> Any:
        if self._consumer is None or self._of is not live:
            jvm = live.context._jvm
            given = jvm.java.util.HashMap()
            for name, value in self._properties.items():
                given.put(name, value)
            given.put("bootstrap.servers", self._brokers)
            given.put("key.deserializer", _BYTES)
            given.put("value.deserializer", _BYTES)
            made = _class(live, _CONSUMER).getConstructor(
                _array(live, jvm.java.lang.Class, [_class(live, "java.util.Map")])
            )
            self._consumer = made.newInstance(_array(live, jvm.java.lang.Object, [given]))
            self._of = live
        return self._consumer

    def _read(self, live: Live, ranges: Mapping[int, tuple[int, int]]) -> Any:
        options = {f"kafka.{name}": value for name, value in self._properties.items()}
        options |= {
            "kafka.bootstrap.servers": self._brokers,
            "assign": json.dumps({self._topic: sorted(ranges)}),
            "startingOffsets": json.dumps({self._topic: {str(p): r[0] for p, r in ranges.items()}}),
            "endingOffsets": json.dumps({self._topic: {str(p): r[1] for p, r in ranges.items()}}),
            "failOnDataLoss": "true",
        }
        frame = live.session.read.format(FORMAT).options(**options).load()
        found: pa.Table = frame.select(*COLUMNS).toArrow()
        return found


def _close(consumer: Any) -> None:
    with contextlib.suppress(Exception):  # the JVM may end at any moment, and with it what is to be closed
        consumer.close()


def _class(live: Live, name: str) -> Any:
    """Return a class that the application's jars have. Raises SqlError 0A000."""
    try:
        # by Spark's class loader: py4j's own does not see jars that came by spark.jars
        return live.context._jvm.org.apache.spark.util.Utils.classForName(name, True, False)
    except Exception as error:
        if "ClassNotFoundException" not in str(error):
            raise
        raise SqlError(
            "0A000",
            "Spark's connector for Kafka is not among the jars of Spark",
            detail=f"Class {name} is not there.",
            hint=f"{CONNECTOR} and what it depends on have to be named by {', '.join(JARS[:-1])} or {JARS[-1]} in spark_conf.",
        ) from None


def _array(live: Live, of: Any, items: list[Any]) -> Any:
    made = live.context._gateway.new_array(of, len(items))
    for i, item in enumerate(items):
        made[i] = item
    return made


def _translated(error: Exception, topic: str) -> Exception:
    """Return what an exception of Kafka's client means; one that is not known stays."""
    text = str(error)
    said = next((line for line in text.splitlines() if "org.apache.kafka.common" in line), "")
    message = said.partition("Exception: ")[2].strip().rstrip(".") or said.strip()
    if "UnknownTopicOrPartitionException" in said or "InvalidTopicException" in said:
        return SqlError("42704", f'topic "{topic}" does not exist', detail=message or None)
    if "AuthenticationException" in said or "AuthorizationException" in said:
        return SqlError("28000", f'topic "{topic}" cannot be read', detail=message or None)
    if "TimeoutException" in said or "DisconnectException" in said:
        return SqlError("08001", "the brokers of Kafka do not answer", detail=message or None)
    if "KafkaException" in said or "ConfigException" in said:
        return SqlError("08001", "could not connect to the brokers of Kafka", detail=message or None)
    return error
