"""The one interface of the three executors (docs/internals/architecture.md).

    index   the row executor: Python over version chains, part sidecars and virtual catalog relations
    local   DuckDB over parts and hot rows
    spark   PySpark over parts and hot rows

All read the same snapshot through ``ExecContext.txn``; which one runs is ``planner.rules.route``'s choice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from engine.base.explain.texts import Texts
from engine.base.explain.tree import PlanNode
from engine.base.rows import ReadyRows, RowStream, Wanted
from engine.base.temp_files import TempFiles
from planner.base.errors import SqlError
from planner.catalog import Catalog
from planner.functions.session import EvalSession
from planner.query import QueryExpr
from txn.api import Transaction


class RowsChanged(Exception):
    """A row that FOR UPDATE or SHARE locked has changed since it was read: the statement runs again, locks kept."""


class EngineLimit(SqlError):
    """An engine gives up a query that another executor may well answer; the error is for those who pinned the engine.

    ``lasting``: it is a failure of the engine itself, which other values would meet again. Else values are
    beyond its types.
    """

    def __init__(self, sqlstate: str, message: str, *, lasting: bool = False) -> None:
        """Make an error of an engine."""
        super().__init__(sqlstate, message)
        self.lasting = lasting


class VirtualRelations(Protocol):
    """Rows of catalog relations (pg_catalog, information_schema)."""

    def rows(self, oid: int, session: EvalSession) -> list[tuple[Any, ...]]:
        """Return all rows in attnum order. Cached per catalog version where possible. Nobody changes the list."""

    def prepare(self, oid: int, session: EvalSession, attnum: int = 0) -> Iterator[None]:
        """Make the rows of a relation ready for ``rows``, or those by a column for ``finder``.

        This is done in steps, between which others may have their turns.
        """

    def finder(
        self, oid: int, attnum: int, session: EvalSession
    ) -> Callable[[Any], list[tuple[Any, ...]]] | None:
        """Return the function from a value to the rows whose column equals it, or None if there is no index.

        It serves one statement. Nobody changes the lists.
        """

    def find_all(
        self, oid: int, attnum: int, session: EvalSession
    ) -> Callable[[Sequence[Any]], list[Any]] | None:
        """Return the function from values to what each has: None, a row, or a list of several.

        For so many values that an index over all rows is worth it (``prepare`` has made all). None where
        ``finder`` is, too.
        """


READS = 0
CHANGES = 1  # deletes rows, or changes a unique key of them
CHANGES_NO_KEY = 2


@dataclass(slots=True)
class ExecContext:
    """What a query runs with.

    ``params[i]`` is the value of ``Param(i + 1)``: the client's first, then the stable values.
    ``for_update``: rows found are about to be changed (DML sources): READS, CHANGES or CHANGES_NO_KEY.
    ``spark_start_ms``: how long to wait for a Spark JVM that is not up; 0: as long as it takes.
    ``cancelled``: an object with ``is_set()``; long Python loops poll it and raise 57014.
    ``steps``: the rows of the parts of the statement that have run already (``StepRange``).
    ``temp``: with what its session's temporary files count, where there is a limit and an engine may write some.
    ``wanted``: how many rows of a query are computed at a time where that matters (``planner.bind.query.fetched``).
    """

    txn: Transaction
    session: EvalSession
    virtual: VirtualRelations
    params: tuple[Any, ...] = ()
    for_update: int = READS
    cancelled: Any = None
    steps: Mapping[int, Sequence[tuple[Any, ...]]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    spark_start_ms: int = 0
    wanted: Wanted | None = None
    temp: TempFiles | None = None


Result: TypeAlias = ReadyRows | RowStream


class Executor(Protocol):
    """An executor."""

    name: str

    def prepare(self, query: QueryExpr, catalog: Catalog) -> Any:
        """Compile once (cached with the plan): returns an opaque plan for ``run``.

        ``catalog`` is the one the query was bound against: it names the indexes that may serve.

        Raises SqlError 0A000 naming the construct when this route cannot run it (the router then looks
        further).
        """

    def run(self, plan: Any, ctx: ExecContext) -> Result | Awaitable[Result]:
        """Execute; may answer at once."""

    def explain(self, plan: Any, texts: Texts) -> PlanNode:
        """Describe a plan, with what was measured of it, written by ``texts``."""

    def measure(self, plan: Any) -> None:
        """Have what the plan's nodes do measured from now on, as far as the executor can tell them apart.
        Nobody else runs the plan.
        """

    async def close(self) -> None:
        """Release what it holds; nothing runs any more."""
