"""Row counts and bounds of columns for Spark's cost-based optimizer.

    footers of the files ─► rows, c1 1 .. 6000000, c11 1992-01-02 .. 1998-12-01 ─► LogicalRelation with a CatalogTable's statistics

Spark takes statistics of relations from its catalog only; a relation over files may carry the entry of a catalog that has none. They are used where
``spark.sql.cbo.enabled`` is set in ``spark_conf`` (docs/decisions/0011): then the size of what a filter or a join leaves is an estimate of its
rows. Distinct values are estimated as the rows, but no more than there are numbers between the bounds.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.spark.part_bounds import Bounds

CBO: Final = "spark.sql.cbo.enabled"
_EPOCH: Final = datetime.date(1970, 1, 1)
_KINDS: Final = {"SMALLINT": "int", "INT": "int", "BIGINT": "int", "DATE": "date"}


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """What is known of a column: its bounds as Spark's catalog writes them, and how many values there are about."""

    low: str
    high: str
    distinct: int


def is_wanted(conf: Mapping[str, str]) -> bool:
    """Return whether ``spark_conf`` asks for cost-based plans."""
    return conf.get(CBO, "").strip().lower() == "true"


def columns_of(ddl: str, paths: Sequence[str], rows: int, bounds: Bounds) -> dict[str, ColumnFigures]:
    """Return what the footers of files say of columns of whole numbers and dates. Blocks: it may read footers.

    Args:
        ddl: the columns, ``c1 INT, c2 STRING``.
        paths: the files; those that are not the server's own are not asked.
        rows: of all of them.
        bounds: what is remembered of footers.
    """
    found: dict[str, ColumnFigures] = {}
    if not paths or any("://" in path for path in paths):
        return found
    for column in ddl.split(", "):
        name, _, type_ = column.partition(" ")
        kind = _KINDS.get(type_)
        if kind is None or not name.startswith("c"):
            continue
        ranges = [bounds.range_of(path, int(name[1:])) for path in paths]
        known = [each for each in ranges if each is not None]
        if len(known) < len(ranges):
            continue
        low, high = min(each[0] for each in known), max(each[1] for each in known)
        try:
            shown = [
                str(_EPOCH + datetime.timedelta(days=n)) if kind == "date" else str(n) for n in (low, high)
            ]
        except OverflowError:
            continue
        found[name] = ColumnFigures(shown[0], shown[1], max(1, min(rows, high - low + 1)))
    return found


def with_figures(session: Any, frame: Any, rows: int, size: int, columns: Mapping[str, ColumnFigures]) -> Any:
    """Return a frame that reads files, with statistics. ``size``: bytes of the files. Some calls of the JVM per column."""
    from pyspark.sql import DataFrame

    jvm = session._jvm
    catalog = jvm.org.apache.spark.sql.catalyst.catalog
    nothing = jvm.scala.Option.apply(None)

    def entry(figures: Iterable[tuple[str, str]]) -> Any:
        made = jvm.java.util.HashMap()
        for name, value in (("version", "2"), ("nullCount", "0"), *figures):
            made.put(f"c.{name}", value)
        return catalog.CatalogColumnStat.fromMap("t", "c", jvm.PythonUtils.toScalaMap(made)).get()

    def big(number: int) -> Any:
        """Return an Option of scala's BigInt, which has no constructor that Python can reach."""
        return entry([("distinctCount", str(number))]).distinctCount()

    entries = jvm.java.util.HashMap()
    for name, figures in columns.items():
        known = [("distinctCount", str(figures.distinct)), ("min", figures.low), ("max", figures.high)]
        entries.put(name, entry(known))
    arguments = jvm.java.util.ArrayList(jvm.scala.jdk.javaapi.CollectionConverters.asJava(big(size).toList()))
    arguments.add(big(rows))
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
