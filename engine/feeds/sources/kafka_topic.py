"""The topic of a KAFKA source: looked at when the source is created, opened when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.executors.spark.kafka import KafkaTopic, check_configured
from engine.feeds.sources.kafka_rows import layout, properties
from engine.feeds.sources.options import Options
from planner import statements as st
from planner.base.errors import SqlError

if TYPE_CHECKING:
    from engine.feeds.sources.feeding import FeedingServer


def topic_of(db: FeedingServer, given: Mapping[str, str]) -> KafkaTopic:
    """Return the topic that the options of a source name. Raises SqlError 0A000, 22023."""
    options = Options("kafka", given)
    if db.spark is None:
        raise SqlError("0A000", "KAFKA sources need Spark, which is switched off")
    return KafkaTopic(db.spark, options.need("brokers"), options.need("topic"), properties(options))


async def look(db: FeedingServer, table: st.CreateTable, given: Mapping[str, str]) -> None:
    """Check what a new source says of its topic, and that the brokers have it.

    Raises SqlError 42601, 42703, 42804, 22023; 0A000 without the connector, 08001, 28000 and 42704 from the brokers.
    """
    options = Options("kafka", given)
    layout({column.name: column.type.oid for column in table.columns}, options)
    properties(options)
    check_configured(dict(db.config.spark_conf))
    topic = topic_of(db, given)
    try:
        await topic.offsets()
    finally:
        await topic.close()
