"""From a statement's text to its plan, through the caches.

text ──(plan cache)──> Plan                            the very text was met before
text ──(template)──> Plan + values of its literals     only literals differ (engine/session/plans/templates.py)
text ──parse, bind──> Plan                             otherwise; remembered when it may be shared
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from engine.base.loop.threads import beside
from engine.catalog.state import CatalogSnapshot
from engine.plans.named_queries import name_in, with_query
from engine.plans.query import compile_ahead
from engine.session.in_use import refuse_before_actions
from engine.session.plans.plan import PLAN_CACHE_MAX_TEXT, Plan
from engine.session.plans.template_slots import Template
from engine.session.plans.templates import decode_values, extract, same_statement
from engine.session.portal import Prepared
from engine.session.session import Session
from engine.session.transaction import time_travel
from engine.session.transaction.block_state import FAILED
from engine.session.transaction.timelines import check_alone
from pgwire.codecs.errors import DataError
from pgwire.give_way import openly
from pgwire.release import release_all
from planner import ast
from planner.base.errors import SqlError, result_type_changed
from planner.bind import bind_statement
from planner.parse import Parsed, parse
from planner.parse.as_of import AsOf
from planner.parse.long_names import truncated
from planner.parse.scanner import HERE
from planner.statements import BoundStatement, SetTransaction, Statement, StatementClass, Transaction
from planner.statements.parsed import PARSED
from txn.base.types import Timestamp

_READS_PAST = frozenset((StatementClass.READ_ONLY, StatementClass.UTILITY))
LONG_TEXT = 16 * 1024
"""Characters; longer texts are parsed and bound in a thread, for it would hold up everybody."""
_MISSING = frozenset(("3F000", "42P01", "42703", "42704", "42883"))
"""What others may have made meanwhile: schemas, relations, columns, types, functions."""
ENDS_FAILURE = ("commit", "rollback", "rollback to", "rollback_to")
IN_FAILED_BLOCK = "current transaction is aborted, commands ignored until end of transaction block"


@dataclass(frozen=True, slots=True)
class CachedText:
    """The text of a statement whose plan came from a cache without parsing."""

    text: str


class Planning:
    """Plans one session's statements; see the module."""

    __slots__ = ("db", "session")

    def __init__(self, session: Session) -> None:
        """Plan for ``session`` with the caches of ``database``."""
        self.db = session.db
        self.session = session

    def tell_truncated(self, text: str) -> bool:
        """Send a notice for each name in a text that is too long; False if there are none. Such texts are not
        cached.
        """
        names = truncated(text) if len(text) <= HERE else openly(truncated, text)
        for name, kept in names:
            self.session.notice(f'identifier "{name}" will be truncated to "{kept}"', sqlstate="42622")
        return bool(names)

    def kept(self, text: str, param_oids: tuple[int, ...]) -> Plan | None:
        """Return the plan of a single statement given as text, if it is in the cache."""
        session = self.session
        if len(text) > PLAN_CACHE_MAX_TEXT or session.block.state is FAILED:
            return None
        kept = session.view.plans
        return None if kept is None else kept.get((text, param_oids, session.plan_key), session.catalog)

    def plan_text(self, text: str, param_oids: tuple[int, ...], *, tell: bool = False) -> Plan | None:
        """Plan a single statement given as text (extended protocol); None for an empty text. ``tell``: of
        truncated names.
        """
        session = self.session
        # In a failed block binding says what is refused.
        cacheable = len(text) <= PLAN_CACHE_MAX_TEXT and session.block.state is not FAILED
        key = (text, param_oids, session.plan_key)
        kept = session.view.plans if cacheable else None
        if kept is not None:
            plan = kept.get(key, session.catalog)
            if plan is not None:
                return plan
        told = tell and self.tell_truncated(text)
        statements = openly(parse, text)
        if not statements:
            return None
        if len(statements) > 1:
            raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
        plan = self.bind(statements[0], param_oids)
        kept = session.view.plans if cacheable and not told and plan.cacheable else None
        if kept is not None:
            kept.put(key, plan)
        return plan

    async def plan_long_text(self, text: str, param_oids: tuple[int, ...]) -> Plan | None:
        """As ``plan_text`` for a text too long to be cached: in a thread. Tells of truncated names."""
        self.tell_truncated(text)
        statements = await beside(parse, text)
        if len(statements) != 1:
            return self.plan_text(text, param_oids)  # says what is wrong
        plan = await self.bind_long(statements[0], param_oids)
        release_all(statements)
        return plan

    async def bind_long(
        self, statement: Parsed, param_oids: tuple[int, ...] = (), *, variable_params: bool = True
    ) -> Plan:
        """As ``bind``, in a thread where that is all it takes: others go on, and a cancel ends the waiting."""
        session = self.session
        node = statement.statement
        simple = statement.as_of is None and name_in(node) is None
        if not simple or session.block.state is FAILED:
            return self.bind(statement, param_oids, variable_params=variable_params)
        session.view.renew()
        catalog, path = session.catalog, session.search_path
        bound = await beside(
            bind_statement,
            node,
            statement.text,
            catalog,
            path,
            param_types=param_oids,
            settings=session.bind_settings,
            database=session.database,
            variable_params=variable_params,
            security=session.row_security,
        )
        plan = await beside(Plan, bound, catalog, path)
        if plan.crosses or not plan.fresh(session.catalog):
            return self.bind(statement, param_oids, variable_params=variable_params)
        await beside(compile_ahead, plan, self.db.executors["index"], catalog)
        return plan

    def bind(
        self, statement: Parsed, param_oids: tuple[int, ...] = (), *, variable_params: bool = True
    ) -> Plan:
        """Bind a statement against the session's catalog; 25P02 in a failed block, binder's errors.

        ``variable_params`` False: the statement has no parameters but the declared ones (42P02).
        """
        session = self.session
        if session.block.state is FAILED and not _allowed_when_failed(statement.statement):
            raise SqlError("25P02", IN_FAILED_BLOCK)
        if (name := name_in(statement.statement)) is not None:
            return self._bind_named(name, statement, param_oids, variable_params=variable_params)
        if statement.as_of is not None and not isinstance(statement.statement, ast.Prepare):
            return self._bind_in_past(statement, param_oids, variable_params=variable_params)
        return self._bind(statement, param_oids, variable_params=variable_params)

    def _bind_named(
        self, name: str, statement: Parsed, param_oids: tuple[int, ...], *, variable_params: bool
    ) -> Plan:
        """Bind a statement that reads a named subscription: with its query, against the catalog of its position."""
        record = self.db.named.of(self.session, name).record
        whole = replace(statement, statement=with_query(statement.statement, record.sql))
        then = self.session.past(Timestamp(record.position), policies=False)
        with self.session.view.looking_at(then, within=True):
            return self._bind(whole, param_oids, variable_params=variable_params, worded=False)

    def _bind_in_past(self, statement: Parsed, param_oids: tuple[int, ...], *, variable_params: bool) -> Plan:
        """Bind a statement with AS OF SYSTEM TIME against the catalog of that time."""
        session, clause, node = self.session, statement.as_of, statement.statement
        if clause is None:
            raise AssertionError("a statement is bound in the past without AS OF")
        if not PARSED[type(node)].as_of or (isinstance(node, ast.CreateTableAs) and node.materialized):
            raise _not_here(clause, node)
        value = time_travel.AsOfValue(session, clause, param_oids, variable_params=variable_params)
        if value.params and isinstance(node, ast.Transaction | ast.SetVariable | ast.CreateTableAs):
            raise SqlError(
                "0A000",
                "parameters in AS OF SYSTEM TIME are not supported in this statement",
                span=clause.span,
            )
        if isinstance(node, ast.Transaction | ast.SetVariable):
            plan = self._bind(statement, param_oids, variable_params=variable_params)
            if not _takes_modes(plan):
                raise _not_here(clause)
        elif value.params:
            # When it runs, it is planned again where the catalog of then differs (``run``, ``Replan``).
            plan = self._bind(statement, value.with_types(param_oids), variable_params=variable_params)
        else:
            made = isinstance(node, ast.CreateTableAs)
            then = time_travel.catalog_at(session, value)
            if made:
                then = self._with_schemas_of_now(then)
            with session.view.looking_at(then, within=made):
                plan = self._bind(statement, param_oids, variable_params=variable_params)
        made = isinstance(node, ast.CreateTableAs)
        if made and plan.bound.uses_virtual:
            raise SqlError(
                "0A000", "CREATE TABLE AS of a catalog relation AS OF SYSTEM TIME is not supported"
            )
        if plan.locking or not (made or plan.bound.class_ in _READS_PAST or _takes_modes(plan)):
            raise _not_here(clause)
        plan.as_of = value
        return plan

    def _with_schemas_of_now(self, then: CatalogSnapshot) -> CatalogSnapshot:
        """Return a past catalog with the schemas made since: the table that is made is one of now."""
        new = [s for s in self.session.catalog.schemas() if then.schema(s.name) is None]
        return then.with_changes(new, (), self.db.next_catalog_version()) if new else then

    def _bind(
        self,
        statement: Parsed,
        param_oids: tuple[int, ...],
        *,
        variable_params: bool,
        worded: bool = True,
    ) -> Plan:
        """Bind a statement. ``worded``: what it names stands in its text."""
        session = self.session
        session.view.renew()
        catalog = session.catalog  # others may change it while binding gives way: the plan is one of this one
        try:
            bound = self._bound(statement, catalog, param_oids, variable_params=variable_params)
        except SqlError as error:
            newer = self._with_what_is_newer(error, statement, param_oids, variable_params=variable_params)
            if newer is None:
                refuse_before_actions(session, statement.statement)
                self._refuse_strangers(statement, error)
                raise
            bound, catalog = newer, session.catalog
        plan = openly(Plan, bound, catalog, session.search_path, text=statement.text if worded else "")
        if plan.crosses:
            check_alone(plan, catalog)
        return plan

    def _bound(
        self,
        statement: Parsed,
        catalog: CatalogSnapshot,
        param_oids: tuple[int, ...],
        *,
        variable_params: bool,
    ) -> BoundStatement:
        session = self.session
        return openly(  # binding reads a catalog that is what it is, and changes nothing
            bind_statement,
            statement.statement,
            statement.text,
            catalog,
            session.bind_path,
            param_types=param_oids,
            settings=session.bind_settings,
            database=session.database,
            variable_params=variable_params,
            security=session.row_security,
        )

    def _refuse_strangers(self, statement: Parsed, error: SqlError) -> None:
        """Raise SqlError 42501 where PostgreSQL asks for a right before it says what ``error`` does."""
        session = self.session
        if session.role.superuser:
            return

        def bind(node: ast.StatementNode) -> Statement:
            return self._bound(
                replace(statement, statement=node), session.catalog, (), variable_params=True
            ).statement

        session.db.ports.refuse_strangers(session, statement.statement, error, bind)

    def _with_what_is_newer(
        self, error: SqlError, statement: Parsed, param_oids: tuple[int, ...], *, variable_params: bool
    ) -> BoundStatement | None:
        """Bind a statement that misses an object which others have made since the transaction's timestamp.

        The transaction goes on in the present if it can (``Block.catch_up``); else, None, the error says what
        is the matter.
        """
        session = self.session
        latest = session.space.catalog
        if (
            error.sqlstate not in _MISSING
            or session.block.txn is None
            or latest.version <= session.catalog.version
        ):
            return None
        try:
            bound = self._bound(statement, latest, param_oids, variable_params=variable_params)
        except SqlError:
            return None
        if session.block.catch_up() and session.catalog is latest:
            return bound
        if error.hint is None:
            error.hint = "It has been made since this transaction's timestamp. End the transaction and begin another to see it."
        return None

    def plan_again(self, source: Prepared | Parsed | CachedText) -> tuple[Plan, tuple[Any, ...] | None]:
        """Bind a statement anew; the second value is its parameters where they are no longer the same."""
        if isinstance(source, CachedText):
            return self.bind(parse(source.text)[0]), ()
        if isinstance(source, Prepared):
            plan = self.plan_text(source.text, source.param_oids)
            if plan is None:
                raise AssertionError("a statement that had a plan is empty")
            if source.plan is not None and plan.shape != source.plan.shape:
                raise result_type_changed()
            source.plan = plan
            return plan, None
        return self.bind(source), None

    def remember(self, text: str, plan: Plan) -> None:
        """Cache a plan by its text, if it may be; prove its template once the same one was met before."""
        session = self.session
        kept = session.view.plans
        if kept is None or not plan.cacheable or len(text) > PLAN_CACHE_MAX_TEXT:
            return
        if truncated(text) if len(text) <= HERE else openly(truncated, text):
            return  # what is cached tells nothing
        kept.put((text, (), session.plan_key), plan)
        if plan.as_of is not None or self._literals_matter(plan):
            return
        template = extract(text)
        if template is not None:
            kept.learn(plan, text, template, session.plan_key, partial(self._prove, plan))

    def _prove(self, plan: Plan, template: Template) -> Plan | None:
        """Return the plan of ``template`` if with its literals for its parameters it is the statement of ``plan``."""
        try:
            candidate = self.bind(parse(template.text)[0], template.oids)
            params = candidate.bound.params
            if len(params) == len(template.values):
                values = decode_values(self.session, params, template)
                if same_statement(plan, candidate, values):
                    return candidate
        except DataError:
            pass  # a template that does not bind is no template
        return None

    def _literals_matter(self, plan: Plan) -> bool:
        """Tell whether an index may be found by a literal: by those of its expressions, or of its condition."""
        oids = plan.bound.reads | plan.bound.writes
        relations = [self.session.catalog.relation_by_oid(oid) for oid in oids]
        return any(index.computed for r in relations if r is not None for index in r.indexes)

    def cached(self, sql: str) -> tuple[Plan, tuple[Any, ...]] | None:
        """Return a plan for a whole Query text without parsing it, and its parameter values."""
        session = self.session
        if session.block.state is FAILED or len(sql) > LONG_TEXT:
            return None
        kept = session.view.plans
        if kept is None:
            return None
        plan_key = session.plan_key
        sql = sql.strip().removesuffix(";").rstrip()  # as the parser cuts statements out
        plan = kept.get((sql, (), plan_key), session.catalog)
        if plan is not None:
            # the text of a prepared statement may have parameters, which a simple query has not
            return None if plan.bound.params else (plan, ())
        template = extract(sql)
        if template is None:
            return None
        found = kept.find(template, plan_key, session.catalog)
        if found is None:
            return None
        plan, template = found
        try:
            return plan, decode_values(session, plan.bound.params, template)
        except DataError:
            return None  # the error is raised, with its position, when the text itself is bound


def _not_here(clause: AsOf, node: ast.StatementNode | None = None) -> SqlError:
    hint = "CREATE TABLE AS with the clause makes a table of what was there."
    return SqlError(
        "0A000",
        "AS OF SYSTEM TIME is not supported in this statement",
        hint=hint if isinstance(node, ast.Insert) else None,
        span=clause.span,
    )


def _takes_modes(plan: Plan) -> bool:
    """Tell whether it is BEGIN or SET TRANSACTION."""
    statement = plan.bound.statement
    if isinstance(statement, SetTransaction):
        return not statement.session and statement.snapshot is None
    return isinstance(statement, Transaction) and statement.action == "begin"


def _allowed_when_failed(node: ast.StatementNode) -> bool:
    return isinstance(node, ast.Transaction) and node.action in ENDS_FAILURE
