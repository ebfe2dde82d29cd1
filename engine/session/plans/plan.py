"""Plans: a bound statement with its compiled forms, cached by text and by what its meaning depends on.

The cache key is (text, parameter oids, session key); the session key holds every setting and name that binding
folds in: search path, role, DateStyle, IntervalStyle, TimeZone ... A plan is thrown away when a relation it
was bound against has another version, or when names may resolve differently (``namespace_version``); queries of the
catalog outlive DDL of relations, since what these are called is nothing to them.

No two catalogs and no two definitions of a relation ever had the same version, so this holds as well for a
transaction that sees its own DDL. Its plans are kept for it alone all the same
(``engine.session.plans.caches``): with those of the others they would throw out each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from engine.base.weight import HEAVY, weight_of
from engine.catalog.state import CatalogSnapshot
from engine.session.plans.by_text import ByText, TextKey
from pgwire.give_way import openly
from pgwire.release import mind
from planner.bind.query.locking import never_waits, statement_name
from planner.evaluate import Env, Shared, compile_expr
from planner.evaluate.short import is_short
from planner.functions.session import EvalSession
from planner.query import Delete, Insert, Merge, OutputColumn, Update
from planner.statements import (
    BoundStatement,
    DeclareCursor,
    LockTable,
    QueryStatement,
    StatementClass,
    Transaction,
    WithChanges,
)
from planner.statements.classify import Uses, row_of, uses_of
from planner.types import SqlType
from txn.base.types import ShardId

Passed: TypeAlias = tuple[int, int, int, bool, bool, int | None, bool]
"""As whom, and under which catalogs, a plan was found to be permitted (``engine.definitions.needs.privileges``)."""

PLAN_CACHE_MAX_TEXT = 32 * 1024  # characters; longer statements are planned every time
SURELY_WHOLE = 59  # characters: a longer name may be an identifier that was cut (63 bytes)
_WORD = re.compile("[a-z0-9_]+")

_CACHED = frozenset((StatementClass.READ_ONLY, StatementClass.WRITE_ONLY, StatementClass.READ_THEN_WRITE))
_IN_TRANSACTION = _CACHED | {StatementClass.DDL}


def _locking(bound: BoundStatement) -> str:
    """Return ``SELECT FOR UPDATE`` or its like for a query with a locking clause, at any depth."""
    cursor = isinstance(bound.statement, DeclareCursor)
    if bound.class_ is not StatementClass.READ_THEN_WRITE and not cursor:
        return ""
    return statement_name(bound.statement) or ""


def _control(bound: BoundStatement) -> str:
    statement = bound.statement
    if isinstance(statement, Transaction) and not statement.chain and statement.action in ("begin", "commit"):
        return statement.action
    return ""


class Replan(Exception):
    """The statement's plan no longer fits the catalog: bind it again and run that."""


def _timelines(uses: Uses, tables: Sequence[ShardId], catalog: CatalogSnapshot) -> frozenset[str]:
    """Return the timelines of the tables that a statement reads, writes, or says how to read."""
    if uses is Uses.NOTHING:
        return frozenset()
    return frozenset([r.timeline for r in map(catalog.relation_by_oid, tables) if r is not None])


def _worded(bound: BoundStatement, text: str, catalog: CatalogSnapshot) -> bool:
    """Tell whether every name that may be looked up to bind a statement again stands in its text, in which
    escapes could hide one.
    """
    return (
        isinstance(bound.statement, QueryStatement | Insert | Update | Delete | Merge | WithChanges)
        and bool(text)
        and "\\" not in text
        and "u&" not in text.lower()
        and not (bound.functions or bound.calls)  # their bodies have other names
        and all(
            (relation := catalog.relation_by_oid(oid)) is not None
            and (relation.virtual or relation.kind != "v")
            for oid, _version in bound.versions
        )
    )


def _names(text: str, name: str) -> bool:
    """Tell whether a text may name a relation of this name, or the array type over its rows. ``text``: in
    lower case.
    """
    if not name.isascii() or '"' in name:
        return True
    name = name.lower()
    if name not in text:
        return False
    if _WORD.fullmatch(name) is None or len(name) > SURELY_WHOLE:
        return True
    return re.search(rf"(?<![a-z0-9_])_?{name}(?![a-z0-9_])", text) is not None


class Plan:
    """One statement, ready to run. ``compiled`` holds executors' plans by route, made on demand."""

    __slots__ = (
        "_stable",
        "_text",
        "_tree",
        "as_of",
        "at_once",
        "basis",
        "bound",
        "catalog_version",
        "columns",
        "compiled",
        "control",
        "crosses",
        "dml",
        "encoders",
        "enters",
        "fails",
        "fields",
        "fixed_names",
        "in_transaction",
        "leaves_little",
        "locking",
        "namespace_version",
        "nowait",
        "only_reads",
        "permitted",
        "point",
        "quick",
        "retryable",
        "short",
        "tables",
        "timeline",
        "weight",
    )

    def __init__(
        self,
        bound: BoundStatement,
        catalog: CatalogSnapshot,
        search_path: tuple[str, ...] = (),
        *,
        text: str = "",
    ) -> None:
        """Make a plan bound against ``catalog``; ``search_path`` as the session resolved it.

        ``text``: all of the statement, if there is one: a plan survives new relations that are not named in it.
        """
        self.bound = bound
        # the error that planning it met in constants; it runs for nobody
        self.fails = bound.fails
        # of the result, None when the statement returns no rows
        self.columns: tuple[OutputColumn, ...] | None = bound.columns
        # whether it reads tables and has no effect: it then needs neither locks nor a read set
        self.only_reads = bound.class_ is StatementClass.READ_ONLY and not bound.volatile
        # Catalog relations alone, and pg_catalog searched first: no relation that a user makes can come
        # before them. Types and functions of users may be in them, which is what ``basis`` is for.
        self.fixed_names = (
            bool(bound.versions)
            and search_path[:1] == ("pg_catalog",)
            and all(
                relation is not None and relation.virtual
                for relation in (catalog.relation_by_oid(oid) for oid, _ in bound.versions)
            )
        )
        # the stored tables it reads or writes, by oid; its views are in what it was bound against, too
        self.tables = tuple(
            ShardId(oid)
            for oid, _version in bound.versions
            if (relation := catalog.relation_by_oid(oid)) is not None and relation.stored
        )
        # what it takes beside its text, in characters
        found = [catalog.relation_by_oid(oid) for oid, _ in bound.versions]
        self.weight = weight_of(bound.statement, [len(relation.columns) for relation in found if relation])
        if self.weight > HEAVY:
            self._tree = mind([bound.statement])  # freed in slices once the plan has gone
        uses = uses_of(bound.statement)
        timelines = _timelines(uses, self.tables, catalog)
        # the one that it is about, "" where none: its tables', but for most DDL, which is about all
        self.timeline = min(timelines, default="")
        self.crosses = len(timelines) > 1 and not isinstance(bound.statement, LockTable)
        # the timeline that its transaction has to be in
        self.enters = self.timeline if uses is Uses.ROWS and len(timelines) < 2 else ""
        self.catalog_version = catalog.version
        self.namespace_version = catalog.namespace_version
        self.basis = catalog.basis
        self._text = text if _worded(bound, text, catalog) else ""
        self.permitted: Passed | None = None
        # what errors call a statement that locks rows (SELECT FOR UPDATE), "" for others
        self.locking = _locking(bound)
        # NOWAIT: for no lock, those of what was read before among them
        self.nowait = bool(self.locking) and never_waits(bound.statement)
        # whether it runs in a transaction
        self.in_transaction = bound.class_ in _IN_TRANSACTION
        # whether running it again has no effect beyond the transaction (no volatile functions, no COPY)
        self.retryable = row_of(bound.statement).again and not bound.volatile
        # "begin" or "commit" for these statements in their plain form, "" for all others
        self.control = _control(bound)
        self.as_of: Any = None  # its AS OF SYSTEM TIME (engine.session.transaction.time_travel.AsOfValue)
        self.compiled: dict[str, Any] = {}
        self._stable: tuple[bool, list[Any]] | None = None  # whether they are short, and the functions
        self.dml: Any = None
        # what runs it on the spot, once it is known that nothing is left to decide (engine.statements.at_once)
        self.at_once: Callable[..., Any] | None = None
        # what it computes surely takes no time worth naming (planner.evaluate.short); known once the ways below are
        self.short = bool(self.control)
        # whether what a run of it leaves in its transaction is a small row at most; known with ``short``
        self.leaves_little = self.only_reads or self.short
        self.encoders: dict[Any, Any] = {}
        self.fields: dict[tuple[int, ...], Any] = {}
        # the row executor's plan when every table is reached by key: then nothing is left to decide
        self.quick: Any = None
        # its point lookup, when the statement as a transaction by itself needs nothing else of one
        self.point: Any = None

    @property
    def cacheable(self) -> bool:
        """Whether the plan may be shared.

        Utility statements are seldom repeated and often depend on state, but for those about the transaction
        block; a literal that was read under the current time (``timestamp 'now'``) means something else in the next
        transaction.
        """
        if isinstance(self.bound.statement, Transaction):
            return self.as_of is None
        return self.bound.class_ in _CACHED and "now" not in self.bound.settings

    @property
    def quick_serves(self) -> bool:
        """Whether ``quick`` may be set: a query that changes and locks nothing."""
        return (
            not self.locking
            and not self.bound.calls
            and self.as_of is None
            and isinstance(self.bound.statement, QueryStatement)
        )

    def stable_values(self, session: EvalSession, params: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values of the statement's stable expressions, in the order of their parameters."""
        if self._stable is None:
            stable = self.bound.stable
            self._stable = is_short(*stable), [openly(compile_expr, expr) for expr in stable]
        short, functions = self._stable
        values = params
        for function in functions:
            env = Env(values, session, shared=Shared())
            values = (*values, function((), env) if short else openly(function, (), env))
        return values[len(params) :]

    @property
    def shape(self) -> list[tuple[str, SqlType]] | None:
        """Names and types of its columns: what a prepared statement must keep."""
        columns = self.columns
        return None if columns is None else [(c.name, c.type) for c in columns]

    def fresh(self, catalog: CatalogSnapshot) -> bool:
        """Tell whether the plan still means the same under ``catalog``."""
        if catalog.version == self.catalog_version:
            return True
        if self.bound.row_security is not None:
            return False  # who is exempt, and a member of what, may have changed
        if catalog.namespace_version != self.namespace_version and not self._names_stay(catalog):
            return False
        for oid, version in self.bound.versions:
            relation = catalog.relation_by_oid(oid)
            if relation is None or relation.version != version:
                return False
        self.catalog_version, self.namespace_version = catalog.version, catalog.namespace_version
        return True

    def outdate(self) -> None:
        """Have a plan that rests on row-level security be made anew, whoever has kept it: what the roles are
        has changed in the meantime.
        """
        self.catalog_version = -1

    def _names_stay(self, catalog: CatalogSnapshot) -> bool:
        """Tell whether its names resolve under ``catalog`` as they did."""
        if self.fixed_names:
            return catalog.basis == self.basis
        if not self._text:
            return False
        # Versions are given once, so where this one is known ``catalog`` comes of the one it was bound against.
        if self.namespace_version != catalog.added_to and self.namespace_version not in catalog.added:
            return False
        text = self._text.lower()
        for version, names in reversed(catalog.added.items()):
            if version == self.namespace_version:
                break
            if any(_names(text, name) for name in names):
                return False
        return True


class PlanCache:
    """Plans by text, bounded as ``ByText`` says."""

    __slots__ = ("_plans",)

    def __init__(self, plans: ByText[Plan]) -> None:
        """``plans``: where they are kept."""
        self._plans = plans

    def get(self, key: TextKey, catalog: CatalogSnapshot) -> Plan | None:
        """Return a plan that is still fresh under ``catalog``."""
        plan = self._plans.get(key)
        if plan is not None and not plan.fresh(catalog):
            self._plans.drop(key)
            return None
        return plan

    def of_catalog(self, key: TextKey, catalog: CatalogSnapshot) -> Plan | None:
        """Return the plan of a catalog query if it is fresh under ``catalog``, which may be a transaction's
        own: nothing is thrown away.
        """
        plan = self._plans.peek(key)
        return plan if plan is not None and plan.fixed_names and plan.fresh(catalog) else None

    def put(self, key: TextKey, plan: Plan) -> None:
        """Remember a plan."""
        self._plans.put(key, plan, plan.weight)

    def clear(self) -> None:
        """Forget everything."""
        self._plans.clear()
