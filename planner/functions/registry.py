"""The builtins table: one row per function, operator implementation, cast function and aggregate.

A row is keyed by its pg_proc signature, ``"int4pl(int4,int4)"``: operators and casts of PostgreSQL are
implemented by functions, so one key space serves all of them. A row holds up to three forms:

    python   a callable on values of ``planner.types`` (row executor, defaults, constraints, constants)
    duckdb   a callable that builds the DuckDB expression from lowered arguments
    spark    the same for Spark

An empty cell means: 0A000 on that route, and the router avoids it. The Python forms
of a family stand in ``<family>.py``, its engine forms beside it in ``<family>_sql.py``; both fill the same
rows at import time.

Python forms of strict functions (pg_proc.proisstrict) are never called with None; the evaluator returns
NULL before. They raise ``SqlError``/``DataError`` with PostgreSQL's SQLSTATE and wording.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from planner.base.quoting import for_reader, for_reader_of_rows
from planner.facts import facts, forget_proc
from planner.functions.costs import Cost, cost_of
from planner.query.expressions import Const, Expr
from planner.types import SqlType
from planner.types.facts import FIRST_USER_OID

PythonForm = Callable[..., Any]

PRINTERS: Final = (
    "planner.information", "planner.functions.values.reg", "planner.functions.system.names", "planner.functions.system.files",
    "planner.information.information_schema", "planner.functions.system.server",
)  # fmt: skip
"""Modules whose functions print names and definitions as the session reads them (``planner.base.quoting``)."""


class SqlForm(Protocol):
    """Builds an engine expression.

    ``target`` is the ``planner.lower.kit.dialect.Dialect`` (for aggregates and window functions the
    ``planner.lower.query.aggregation.AggregateCall``), ``args`` are ``planner.lower.kit.value.Val``s. Returns an engine
    expression or, where the result is numeric, a Val that says how it is held. Forms use the constructor library
    ``planner.lower.kit.build`` and never parse text; 0A000 raised by a form means: not with these arguments.
    """

    def __call__(self, target: Any, args: Sequence[Any], result: SqlType, /) -> Any:
        """Build the expression."""


@dataclass(slots=True, kw_only=True)
class Builtin:
    """One row. ``needs_session``: the Python form takes the ``Session`` (settings, catalog) first.

    ``needs_types``: it takes the keyword ``types``, the argument type oids of the call (polymorphic functions).

    ``for_rows``: takes the session and constants for all arguments but the first, and returns the function of
    that one for many rows of one statement: what does not depend on the row is looked up once. Only of
    functions with ``needs_session`` that are stable, or as good as that.

    ``of_users``: the form of calls whose first argument may name an object that users make (a text search
    configuration or dictionary); it takes the session first. ``python`` then is for constants that are
    PostgreSQL's own objects.

    ``note`` says in one sentence how PostgreSQL's behaviour is reached, for the generated docs table.

    ``cost``: what a call of the Python form costs as its arguments grow; None without one, and of users' ranges.
    """

    signature: str
    python: PythonForm | None = None
    duckdb: SqlForm | None = None
    spark: SqlForm | None = None
    needs_session: bool = False
    needs_types: bool = False
    for_rows: PythonForm | None = None
    of_users: PythonForm | None = None
    note: str = ""
    cost: Cost | None = None

    def form_for(self, args: Sequence[Expr]) -> tuple[PythonForm | None, bool]:
        """Return the Python form of a call with these arguments, and whether it takes the session first."""
        if self.of_users is not None and not _is_built_in(args[0]):
            return self.of_users, True
        return self.python, self.needs_session


def _is_built_in(arg: Expr) -> bool:
    """Tell whether an argument is a constant that is none of what users have made."""
    return isinstance(arg, Const) and (arg.value is None or int(str(arg.value)) < FIRST_USER_OID)


class AggregateState(Protocol):
    """Python form of an aggregate: one instance per group."""

    def step(self, *args: Any) -> None:
        """Take one row's arguments (NULLs are filtered out before when the transition is strict)."""

    def result(self) -> Any:
        """Return the aggregate's value; NULL for an empty group where PostgreSQL says so."""


@dataclass(slots=True, kw_only=True)
class AggregateBuiltin:
    """An aggregate row: ``python`` makes an AggregateState; ``skip_nulls`` as for strict transitions.

    ``needs_session`` / ``needs_types``: the maker takes the session first / the keyword ``types`` (oids of the
    aggregated arguments). Direct arguments of ordered-set aggregates come as keyword ``direct`` (a tuple).
    """

    signature: str
    python: Callable[..., AggregateState] | None = None
    duckdb: SqlForm | None = None
    spark: SqlForm | None = None
    skip_nulls: bool = True
    needs_session: bool = False
    needs_types: bool = False
    note: str = ""


@dataclass(slots=True)
class Registry:
    """All rows, by pg_proc oid. Filled by importing the family modules (``planner.functions.load``); users'
    ranges add theirs.
    """

    functions: dict[int, Builtin] = field(default_factory=dict)
    aggregates: dict[int, AggregateBuiltin] = field(default_factory=dict)

    def _oid(self, signature: str) -> int:
        try:
            return facts().proc_by_signature[signature]
        except KeyError:
            raise LookupError(f"no pg_proc row {signature}") from None

    def _function(self, signature: str) -> Builtin:
        return self.functions.setdefault(self._oid(signature), Builtin(signature=signature))

    def _aggregate(self, signature: str) -> AggregateBuiltin:
        return self.aggregates.setdefault(self._oid(signature), AggregateBuiltin(signature=signature))

    def python(
        self,
        signature: str,
        form: PythonForm,
        *,
        needs_session: bool = False,
        needs_types: bool = False,
        for_rows: PythonForm | None = None,
        of_users: PythonForm | None = None,
        note: str = "",
    ) -> None:
        """Register the Python form of a function (called from a module of its family). LookupError where it
        has no cost.
        """
        row = self._function(signature)
        if row.python is not None:
            raise LookupError(f"{signature} has two Python forms")
        row.cost = cost_of(signature)
        if needs_session and form.__module__.startswith(PRINTERS):
            form = for_reader(form)
            for_rows = None if for_rows is None else for_reader_of_rows(for_rows)
        row.python, row.needs_session, row.needs_types = form, needs_session, needs_types
        row.for_rows, row.of_users = for_rows, of_users
        row.note = note or row.note

    def sql(
        self, signature: str, *, duckdb: SqlForm | None = None, spark: SqlForm | None = None, note: str = ""
    ) -> None:
        """Register the engine forms of a function (from ``planner/lower/forms``)."""
        row = self._function(signature)
        row.duckdb, row.spark = duckdb or row.duckdb, spark or row.spark
        row.note = note or row.note

    def aggregate_python(
        self,
        signature: str,
        form: Callable[..., AggregateState],
        *,
        skip_nulls: bool = True,
        needs_session: bool = False,
        needs_types: bool = False,
    ) -> None:
        """Register the Python form of an aggregate."""
        row = self._aggregate(signature)
        row.python, row.skip_nulls = form, skip_nulls
        row.needs_session, row.needs_types = needs_session, needs_types

    def aggregate_sql(
        self, signature: str, *, duckdb: SqlForm | None = None, spark: SqlForm | None = None, note: str = ""
    ) -> None:
        """Register the engine forms of an aggregate."""
        row = self._aggregate(signature)
        row.duckdb, row.spark = duckdb or row.duckdb, spark or row.spark
        row.note = note or row.note


REGISTRY = Registry()


def forget_constructor(oid: int) -> None:
    """Have a function of a catalog be no constructor of ranges, whatever had its oid in another catalog of
    this process.

    Oids are unique over the databases of a server; a process may have several servers, one after the other.
    """
    if forget_proc(oid):
        REGISTRY.functions.pop(oid, None)
