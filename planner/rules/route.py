"""Which executor runs a query, and why (docs/internals/architecture.md).

A pure decision over figures the engine gathers. Compilation of a route may fail with 0A000; the engine then
records the refusal and asks again, so an empty cell of the builtins table steers instead of failing.

    pinned (SET executor)           that one, or its refusal
    catalog relations, no tables    index
    reached by key or short range   index
    few rows in all                 index   (a Python pass is cheaper than an engine's set-up)
    a long series in FROM           local   (up to a length that it holds in memory)
    more bytes than local may read  spark, if it is there
    else                            local
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

ExecutorName: TypeAlias = Literal["index", "local", "spark"]
EXECUTORS: Final[tuple[ExecutorName, ...]] = ("index", "local", "spark")

# Below these the row executor beats DuckDB's fixed cost of one to four milliseconds (bench/routes.py).
ROW_EXECUTOR_MAX_ROWS = 1000
ROW_EXECUTOR_MAX_RANGES = 3
LOCAL_SERIES_ROWS = range(20_000, 20_000_001)
STEPS = "rows of a data-modifying WITH item are read by the row executor"
BY_KEY = "every table is reached by key"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteFacts:
    """What the choice depends on. ``refusals``: route -> message, for routes known not to work.

    A partitioned table is one of ``tables``; ``partitions``: how many are in the plan. ``rows`` are of those
    that the parameters leave. ``pairs``: a pass over them may look at each row together with each of another
    table, or of a sub-select.
    """

    pinned: str = "auto"
    uses_virtual: bool = False
    uses_steps: bool = False
    tables: int = 0
    partitions: int = 0
    pairs: bool = True
    by_key: bool = False
    rows: int = 0
    series_rows: int = 0
    bytes: int = 0
    local_max_bytes: int = 0
    local_max_origin: str = "the default"
    spark_available: bool = False
    refusals: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """The choice and its reason, as EXPLAIN prints it."""

    executor: ExecutorName
    reason: str


def choose(facts: RouteFacts) -> Route:
    """Choose a route among those that were not refused; the last resort is the row executor."""
    name = next((known for known in EXECUTORS if known == facts.pinned), None)
    if name is not None:
        if facts.uses_virtual and name != "index":
            return Route("index", "catalog relations are answered by the row executor whatever is pinned")
        if facts.uses_steps and name != "index":
            return Route("index", STEPS)
        if facts.tables == 0 and name != "spark" and name in facts.refusals:
            return Route("index", f"no table is read, and {name} cannot run it: {facts.refusals[name]}")
        return Route(name, f"pinned by SET executor = {name}")
    refused = facts.refusals
    if facts.uses_virtual:
        return Route("index", "reads catalog relations")
    if facts.uses_steps:
        return Route("index", STEPS)
    if facts.tables == 0 and facts.series_rows in LOCAL_SERIES_ROWS and "local" not in refused:
        return Route("local", f"generates about {facts.series_rows} rows")
    if facts.tables == 0 and "index" not in refused:
        return Route("index", "reads no table")
    if facts.by_key and "index" not in refused:
        return Route("index", BY_KEY)
    # An engine is told of every partition, each of which costs it about as much as a query of its own. Pairs
    # of rows are worth that.
    alone = facts.tables == 1 or not facts.pairs
    most = ROW_EXECUTOR_MAX_ROWS * (max(facts.partitions, 1) if alone else 1)
    if facts.rows <= most and facts.tables <= ROW_EXECUTOR_MAX_RANGES and "index" not in refused:
        of = f" of {facts.partitions} partitions" if facts.partitions else ""
        return Route("index", f"{facts.rows} rows in {facts.tables} tables{of}: a row-wise pass is cheapest")
    above = facts.bytes > facts.local_max_bytes
    if above and facts.spark_available and "spark" not in refused:
        return Route("spark", f"reads about {facts.bytes} bytes, more than {_threshold(facts)}")
    if "local" not in refused:
        text = f"reads about {facts.bytes} bytes ({facts.rows} rows)"
        if not above:
            return Route("local", f"{text}, no more than {_threshold(facts)}")
        cause = f"Spark cannot run it: {refused['spark']}" if "spark" in refused else "Spark is not up"
        return Route("local", f"{text}, more than {_threshold(facts)}, but {cause}")
    if "index" not in refused:
        return Route("index", f"local cannot run it: {refused['local']}")
    if facts.spark_available and "spark" not in refused:
        return Route("spark", f"only Spark can run it: {refused['index']}")
    return Route("index", "no executor can run it")


def _threshold(facts: RouteFacts) -> str:
    return f"local_executor_max_bytes = {facts.local_max_bytes} ({facts.local_max_origin})"
