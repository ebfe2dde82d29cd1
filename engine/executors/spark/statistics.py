"""What is known of tables' columns, for Spark's cost-based optimizer.

    engine.executors.statistics ─► rows; c1 1 .. 6000000, 6,000,000 different; c9 3 different, 1 byte ─►
    LogicalRelation with a CatalogTable's statistics

Spark takes statistics of relations from its catalog only; a relation over files may carry the entry of a
catalog that has none. By them the size of what a filter, a join or a grouping leaves is an estimate of its
rows, and joins are ordered (docs/decisions/0011). The sizes of relations that have none are those of their
files, as without ``spark.sql.cbo.enabled``.
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from engine.base.spark_properties import COST_BASED
from engine.executors.statistics.figures import Bound, ColumnSummary
from pgwire.codecs.numeric import CONTEXT
from txn.base.types import PhysicalType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPOCH: Final = datetime.date(1970, 1, 1)
_START: Final = datetime.datetime(1970, 1, 1)
_VERSION: Final = "2"  # of the form that Spark's catalog writes
_HANDED: Final = frozenset((
    "bool", "int16", "int32", "int64", "float32", "float64", "decimal", "date", "timestamp", "timestamptz", "text", "bytes", "tailed", "uuid",
    "time",
))  # fmt: skip
"""Kinds of columns that Spark compares by themselves; those of others are structs and arrays to it."""
_UUID_BYTES: Final = 16
Figures = dict[str, str]
"""Of a column, as Spark's catalog writes them: ``distinctCount``, ``nullCount``, ``min``, ``max``,
``avgLen``, ``maxLen``."""


def is_wanted(conf: Mapping[str, str]) -> bool:
    """Return whether Spark makes cost-based plans; ``conf``: the properties of ``spark_conf``, where they may
    be switched off.
    """
    return conf.get(COST_BASED, "true").strip().lower() == "true"


def figures_of(
    columns: Mapping[int, ColumnSummary], types: Mapping[int, PhysicalType], rows: int, *, bounded: bool
) -> dict[str, Figures]:
    """Return the figures of columns for Spark, by the columns' names.

    Args:
        columns: what is known of each.
        types: of these.
        rows: how many the table has.
        bounded: the bounds are those of all rows. Spark takes a value outside of them for one that is not there.
    """
    found: dict[str, Figures] = {}
    for attnum, column in columns.items():
        type_ = types[attnum]
        if type_.kind not in _HANDED:
            continue
        nulls = round(rows * column.null_share)
        distinct = min(max(round(column.distinct), 1), max(rows - nulls, 0))
        figures = {"version": _VERSION, "distinctCount": str(distinct), "nullCount": str(nulls)}
        if bounded and column.low is not None and column.high is not None:
            low, high = (_shown(bound, type_) for bound in (column.low, column.high))
            if low is not None and high is not None:
                figures |= {"min": low, "max": high}
        if type_.kind in ("text", "bytes", "tailed", "uuid"):
            fixed = type_.kind == "uuid"
            figures["avgLen"] = str(_UUID_BYTES if fixed else round(column.length))
            figures["maxLen"] = str(_UUID_BYTES if fixed else column.longest)
        found[f"c{attnum}"] = figures
    return found


def _shown(bound: Bound, type_: PhysicalType) -> str | None:
    """Return a bound as Spark's catalog writes it; None where it cannot (infinity)."""
    if isinstance(bound, float):
        return repr(bound)
    try:
        match type_.kind:
            case "bool":
                return "true" if bound else "false"
            case "date":
                return str(_EPOCH + datetime.timedelta(days=bound))
            case "timestamp" | "timestamptz":
                return (_START + datetime.timedelta(microseconds=bound)).isoformat(" ", "microseconds")
            case "decimal":
                return str(Decimal(bound).scaleb(-type_.scale, CONTEXT))
    except OverflowError:
        return None
    return str(bound)


def with_figures(
    session: SparkSession, frame: Any, rows: int, size: int, columns: Mapping[str, Figures]
) -> Any:
    """Return a frame that reads files, with statistics. ``size``: bytes of the files. Three calls of the JVM
    per column.
    """
    from pyspark.sql import DataFrame

    jvm = session._jvm
    catalog = jvm.org.apache.spark.sql.catalyst.catalog
    nothing = jvm.scala.Option.apply(None)
    written = io.StringIO()
    for name, figures in columns.items():
        written.writelines(f"{name}.{key}={value}\n" for key, value in figures.items())
    # two more, for numbers: Scala's BigInt has no constructor that Python can reach
    for name, number in (("rows", rows), ("size", size)):
        written.write(f"{name}.version={_VERSION}\n{name}.distinctCount={number}\n")
    properties = jvm.java.util.Properties()
    properties.load(jvm.java.io.StringReader(written.getvalue()))
    every = jvm.PythonUtils.toScalaMap(properties)

    def entry(name: str) -> Any:
        return catalog.CatalogColumnStat.fromMap("t", name, every).get()

    entries = jvm.java.util.HashMap()
    for name in columns:
        entries.put(name, entry(name))
    sizes = entry("size").distinctCount().toList()  # an Option as a list, which Java's reflection takes apart
    arguments = jvm.java.util.ArrayList(jvm.scala.jdk.javaapi.CollectionConverters.asJava(sizes))
    arguments.add(entry("rows").distinctCount())
    arguments.add(jvm.PythonUtils.toScalaMap(entries))
    statistics = jvm.java.lang.Class.forName(
        "org.apache.spark.sql.catalyst.catalog.CatalogStatistics"
    ).getConstructors()[0]
    plan = frame._jdf.queryExecution().analyzed()
    table = jvm.org.apache.spark.sql.catalyst.catalog.CatalogTable
    fields = [
        jvm.org.apache.spark.sql.catalyst.TableIdentifier("t"), catalog.CatalogTableType.VIEW(),
        catalog.CatalogStorageFormat.empty(), plan.schema(),
        *(getattr(table, f"$lessinit$greater$default${n}")() for n in range(5, 23)),
    ]  # fmt: skip
    fields[12] = jvm.scala.Option.apply(statistics.newInstance(arguments.toArray()))
    relation = jvm.org.apache.spark.sql.execution.datasources.LogicalRelation(
        plan.relation(), plan.output(), jvm.scala.Option.apply(table(*fields)), False, nothing
    )
    return DataFrame(
        jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, relation), session
    )
