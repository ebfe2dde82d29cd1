"""Spark's properties: what the server sets, what ``spark_conf`` may add, and which masters there are. No JVM here.

    defaults  <  spark_conf (file < environment < command line)  <  fixed
                                                                     |
              what answers, cancellation or the driver's place rest on: spark_conf naming one is refused

Properties reach the JVM in a file that only the server can read, never on its command line, which every user of the
machine may list. ``shown`` is for people: values of properties that Spark itself would redact are left out.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

BATCH_ROWS: Final = 16_384
PARTITIONS: Final = "spark.sql.shuffle.partitions"
PARTITION_ROWS: Final = 4_000_000
"""Rows of a query's tables per partition of a shuffle, at most: what one task sorts has to fit a small heap well."""
MAX_PARTITIONS: Final = 4096
MERGED: Final = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_TASK_SHARES: Final = (
    32  # of a task's share of the heap: bytes of a shuffle are compressed, and a task may sort six of them
)
_LEAST_MERGED: Final = 4 << 20
_MOST_MERGED: Final = 64 << 20  # Spark's own default
LOOPBACK: Final = "127.0.0.1"
AUTHENTICATE: Final = "spark.authenticate"
HIDDEN: Final = "********"
REAPER_TIMEOUT: Final = "60s"

_NAME = re.compile(r"spark\.[A-Za-z0-9_.\-]+\Z")
# Spark's own default of spark.redaction.regex, and a few more words of object stores.
_SECRET = re.compile(r"(?i)secret|password|token|access[.]?key|account[.]key|credential|private")
_HOST = r"(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9_.\-]+)"
_MASTER = re.compile(
    r"local|local\[(?:\*|[1-9]\d{0,3})(?:,[1-9]\d?)?\]"
    rf"|spark://{_HOST}:\d{{1,5}}(?:,{_HOST}:\d{{1,5}})*"
    rf"|k8s://(?:https?://)?{_HOST}(?::\d{{1,5}})?(?:/\S*)?"
    r"|yarn"
)
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC")
_LOOPBACK_HOST = re.compile(r"localhost|127(?:\.\d{1,3}){3}|\[::1\]")

_FIXED: Final[dict[str, str]] = {
    "spark.app.name": "holdfast",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # Files of a result appear whole, by a rename (engine/executors/spark/spool.py).
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    "spark.sql.crossJoin.enabled": "true",
    # A constant that is grouped or ordered by is itself, not the place of a column.
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
    # It fails on a correlated sub-select above a union of a table's files and hot rows; columns are
    # pruned by another rule.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughUnion",
    "spark.scheduler.mode": "FAIR",
    # A literal is what was written, and a query reads what it was given: Spark replaces ${env:NAME},
    # ${system:NAME} and settings' values anywhere in a text unless told not to. The others are as they are by
    # default; no environment decides about them.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.scripting.enabled": "false",
}
COST_BASED: Final = "spark.sql.cbo.enabled"
REORDERS: Final = "spark.sql.cbo.joinReorder.enabled"
_DEFAULTS: Final[dict[str, str]] = {
    # Plans by what the server knows of tables (engine/executors/statistics, docs/decisions/0011).
    COST_BASED: "true",
    REORDERS: "true",
    "spark.ui.enabled": "false",
    # Listing a handful of files takes no job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "4096",
    "spark.cleaner.periodicGC.interval": "10min",
    # A table that is broadcast takes at least a page where it is made and one where it is read, however few
    # rows it has; by default that is 64 MB, to be zeroed and collected. A task has at most 8,192 pages: 32 GB
    # of these.
    "spark.buffer.pageSize": "4m",
    # What Spark remembers of ended queries for its web page, plans as text among it: by default gigabytes, where
    # expressions are long.
    "spark.sql.maxPlanStringLength": "65536",
    # What the parser has learnt from long texts: a fifth of a small heap after one query of many nested expressions.
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushRatio": "5",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "5000",
}
_REAPER: Final[dict[str, str]] = {
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": REAPER_TIMEOUT,
}
_ANSWERS = "the server's answers rest on it"
_REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys(_FIXED, _ANSWERS),
    **dict.fromkeys(_REAPER, "cancelling a statement rests on it"),
    "spark.master": "use spark_master",
    "spark.local.dir": "scratch files go to the data directory",
    "spark.sql.warehouse.dir": "scratch files go to the data directory",
    "spark.driver.memory": "the driver's heap is part of the memory setting",
    "spark.driver.extraLibraryPath": "it would not reach the driver, which runs already: set LD_LIBRARY_PATH",
    "spark.driver.defaultJavaOptions": "use spark.driver.extraJavaOptions",
    "spark.submit.deployMode": "the driver is a child process of the server",
    "spark.api.mode": "the server speaks to Spark's driver itself",
    "spark.remote": "the server speaks to Spark's driver itself",
    "spark.sql.mapKeyDedupPolicy": _ANSWERS,
    "spark.sql.charAsVarchar": _ANSWERS,
    "spark.sql.readSideCharPadding": _ANSWERS,
    "spark.sql.preserveCharVarcharTypeInfo": _ANSWERS,
    "spark.sql.storeAssignmentPolicy": _ANSWERS,
    "spark.sql.extensions": _ANSWERS,
    "spark.sql.files.ignoreCorruptFiles": _ANSWERS,
    "spark.sql.files.ignoreMissingFiles": _ANSWERS,
    "spark.files.ignoreCorruptFiles": _ANSWERS,
    "spark.files.ignoreMissingFiles": _ANSWERS,
}
_REFUSED_FAMILIES: Final[dict[str, str]] = {
    "spark.sql.variable.": _ANSWERS,
    "spark.sql.scripting.": _ANSWERS,
    "spark.sql.collation.": _ANSWERS,
    "spark.sql.session.": _ANSWERS,
    "spark.sql.legacy.": _ANSWERS,
    "spark.sql.ansi.": _ANSWERS,
    "spark.sql.parser.": _ANSWERS,
    "spark.sql.parquet.": _ANSWERS,
    "spark.sql.execution.arrow.": _ANSWERS,
    "spark.sql.execution.pyspark.": _ANSWERS,
    "spark.task.reaper.": "cancelling a statement rests on it",
    "spark.connect.": "the server speaks to Spark's driver itself",
}


def check_property(name: str, value: str) -> str | None:
    """Return why ``spark_conf`` may not set a property, None if it may."""
    if not _NAME.match(name):
        return "it is not the name of a Spark property (spark....; Hadoop's are spark.hadoop....)"
    if any(ch < " " and ch != "\t" for ch in value):
        return "its value has a control character"
    reason = _REFUSED.get(name) or next(
        (why for family, why in _REFUSED_FAMILIES.items() if name.startswith(family)), None
    )
    if reason is not None:
        return f"it cannot be set: {reason}"
    if name == "spark.driver.extraJavaOptions":
        try:
            words = shlex.split(value)
        except ValueError as error:
            return f"its value cannot be read: {error}"
        if any(word.startswith("-Xmx") or not word.startswith("-") for word in words):
            return "its value has to be JVM options other than -Xmx (the memory setting gives the heap)"
    return None


def check_master(master: str, conf: Mapping[str, str]) -> str | None:
    """Return what is wrong with a master URL and the driver's address, None if nothing is.

    Executors connect to the driver, and whoever reaches its ports could run code in it: so they ask for a
    secret. A driver that computes itself makes one (``application``), YARN and Kubernetes hand one out; the
    masters of a standalone cluster have their own, so that ``spark.authenticate`` has to be decided there,
    and wherever the driver does not listen on loopback alone.
    """
    if not _MASTER.fullmatch(master):
        return (
            f"spark_master cannot be {master!r}: it is local[N], local[*], spark://host:port, k8s://https://host:port "
            "or yarn"
        )
    if is_local(master):
        if conf.get(AUTHENTICATE, "true").lower() != "true":
            return f"{AUTHENTICATE} cannot be {conf[AUTHENTICATE]}: whoever reaches the ports of Spark's driver runs code in it"
        return None
    host = conf.get("spark.driver.host")
    if host is None and not _on_loopback(master):
        return (
            f"spark_master {master} is not on this machine, and its executors have to reach this server: set "
            "--spark-conf spark.driver.host=<address of this machine>"
        )
    exposed = [
        name
        for name in ("spark.driver.host", "spark.driver.bindAddress")
        if name in conf and not _LOOPBACK_HOST.fullmatch(conf[name])
    ]
    if not exposed and master.startswith("spark://") and AUTHENTICATE not in conf:
        return (
            f"spark_master {master}: every user of this machine reaches the ports of Spark's driver and could run code in it: set "
            f"{AUTHENTICATE}=true with the cluster's {AUTHENTICATE}.secret (or false on a machine of trusted users)"
        )
    if exposed and AUTHENTICATE not in conf:
        return (
            f"{exposed[0]} = {conf[exposed[0]]} is reachable from other machines, and whoever reaches the driver runs code "
            "in it: set spark.authenticate=true with spark.authenticate.secret (or false on a network of trusted machines)"
        )
    return None


def is_local(master: str) -> bool:
    """Return whether Spark runs inside the driver's JVM."""
    return master == "local" or master.startswith("local[")


def _on_loopback(master: str) -> bool:
    if not master.startswith("spark://"):
        return False
    hosts = (address.rpartition(":")[0] for address in master.removeprefix("spark://").split(","))
    return all(_LOOPBACK_HOST.fullmatch(host) for host in hosts)


def application(
    master: str, conf: Mapping[str, str], folder: Path, heap_bytes: int = 2**30, cores: int | None = None
) -> dict[str, str]:
    """Return the application's properties.

    ``folder``: scratch files go below it. ``conf``: checked, see ``check_property``. ``heap_bytes``: of the
    driver, which computes itself where Spark is local. ``cores``: of this machine.
    """
    found = dict(_DEFAULTS)
    if is_local(master):
        cores = cores or os.cpu_count() or 2
        # Adaptive execution merges partitions but still pays for each one written.
        found[PARTITIONS] = str(max(4, 2 * cores))
        found[MERGED] = str(min(max(heap_bytes // (cores * _TASK_SHARES), _LEAST_MERGED), _MOST_MERGED))
    host = conf.get("spark.driver.host", LOOPBACK)
    found["spark.driver.host"] = found["spark.driver.bindAddress"] = host
    found.update(conf)
    if not is_local(master):
        found.update(_REAPER)
        options = conf.get("spark.executor.extraJavaOptions", "")
        found["spark.executor.extraJavaOptions"] = f"{options} -Duser.timezone=UTC".strip()
    found.update(_FIXED)
    if AUTHENTICATE not in conf or is_local(master):
        found[AUTHENTICATE] = "true"  # with a secret that Spark makes
    found["spark.master"] = master
    found["spark.local.dir"] = str(folder / "tmp")
    found["spark.sql.warehouse.dir"] = str(folder / "warehouse")
    return found


def shuffle_partitions(rows: int, least: int) -> int:
    """Return how many partitions the shuffles of a query over so many rows begin with: ``least`` times a power of four.

    Adaptive execution merges small ones; it never divides what one task sorts or aggregates.
    """
    found = least
    while rows > found * PARTITION_ROWS and found * 4 <= MAX_PARTITIONS:
        found *= 4
    return found


def driver_options(properties: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return (class path, JVM options) that have to be on the driver's own command line.

    The parallel collector, unless ``spark_conf`` names one: Spark sorts in arrays of up to a tenth of a small
    heap, for which the default collector, G1, needs as many regions side by side, and ends the JVM where it
    finds none.
    """
    path = properties.get("spark.driver.extraClassPath", "")
    options = shlex.split(properties.get("spark.driver.extraJavaOptions", ""))
    if not any(_COLLECTOR.fullmatch(option) for option in options):
        options.insert(0, "-XX:+UseParallelGC")
    return [path] if path else [], options


def properties_text(properties: Mapping[str, str]) -> str:
    """Return the properties as a Java properties file (ASCII)."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(text: str) -> str:
    """Escape what ``java.util.Properties.load`` would read otherwise."""
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(
        chr(code) if code < 0x7F and (chr(code).isalnum() or chr(code) in "./-_*,@[]()+;$&|<>'\"^~`?{}%") else f"\\u{code:04x}"
        for code in codes
    )  # fmt: skip


def shown(conf: Iterable[tuple[str, str]]) -> str:
    """Return ``spark_conf`` for people: sorted, one line, without the values of secrets."""
    pairs = (
        f"{name}={HIDDEN if _SECRET.search(name) or _SECRET.search(value) else value}"
        for name, value in sorted(conf)
    )
    return ", ".join(pairs)
