"""Prepared statements of one session, of the protocol (Parse) and of SQL (PREPARE): one name space.

text ──> plan, parameter types          made anew when the catalog or the search path has moved on (``fresh_plan``)
wire values ──> parameter values        decoders are kept with the statement while formats stay the same
EXECUTE's arguments ──> parameter values
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.base.loop.threads import beside
from engine.plans.planning import LONG_TEXT, Planning
from engine.session.plans.plan import Plan
from engine.session.portal import Prepared
from engine.session.transaction.time_travel import catalog_at
from engine.statements.output import expand_formats, param_decoder
from pgwire.backend import SMALL_BYTES
from pgwire.codecs.copy import with_context
from pgwire.codecs.errors import DataError
from pgwire.codecs.text import clip_bytes
from pgwire.codecs.text.encodings import encoding
from pgwire.give_way import give_way, openly
from pgwire.release import release_all
from planner import ast
from planner.base.errors import Span, SqlError, result_type_changed
from planner.base.large import LARGE_BYTES
from planner.bind import coerce_argument
from planner.catalog import SystemCatalog
from planner.evaluate import Env, Shared, compile_expr
from planner.facts import CITEXT
from planner.functions.values.acl_items import input_by_catalog
from planner.functions.values.reg import reg_input
from planner.parse import parse
from planner.statements import ExecutePrepared, QueryStatement
from planner.types.facts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.session.session import Session

MAX_PREPARED = 10_000
T = TypeVar("T")

PARAMETERS_AT_ONCE: Final = 512
NO_ROOM: Final = "53"
"""The class of errors that say nothing of a value: insufficient resources."""


def _in_turns(items: Sequence[T]) -> Iterable[T]:
    """Return parameters, or what stands for each; of many some are taken at a time, and others run in between."""
    return items if len(items) <= PARAMETERS_AT_ONCE else _paused(items)


def _paused(items: Sequence[T]) -> Iterator[T]:
    for number, item in enumerate(items, 1):
        yield item
        if not number % PARAMETERS_AT_ONCE:
            openly(give_way)


def _check_type(catalog: SystemCatalog, oid: int) -> None:
    """Check that the type of a parameter is still there, as PostgreSQL, whose drivers forget what they know
    of types by this error: XX000.
    """
    made = FIRST_USER_OID <= oid < CITEXT  # the first type of an extension
    if made and catalog.type_by_oid(oid) is None and catalog.row_type_relation(oid) is None:
        raise SqlError("XX000", f"cache lookup failed for type {oid}")


PLAN_BYTES: Final = 4 << 10
PLAN_FACTOR: Final = 2
WEIGHT_FACTOR: Final = 90
"""What a prepared statement takes, about: so much, so many times its text, and so many times its plan's
weight (``engine.base.weight``)."""


def _kept_bytes(sql: str, plan: Plan | None) -> int:
    return PLAN_BYTES + PLAN_FACTOR * len(sql) + (0 if plan is None else WEIGHT_FACTOR * plan.weight)


class PreparedStatements:
    """The prepared statements of one session; the one without a name is the protocol's and is replaced at will."""

    __slots__ = ("_by_name", "_planning", "_session")

    def __init__(self, session: Session, planning: Planning) -> None:
        """Start with none."""
        self._session = session
        self._planning = planning
        self._by_name: dict[str, Prepared] = {}

    def find(self, name: str) -> Prepared | None:
        """Return a statement, or None."""
        return self._by_name.get(name)

    def get(self, name: str) -> Prepared:
        """Return a statement; SqlError 26000 if there is none."""
        prepared = self._by_name.get(name)
        if prepared is None:
            shown = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise SqlError("26000", f"{shown} does not exist")
        return prepared

    def all(self) -> list[Prepared]:
        """Return all statements (pg_prepared_statements)."""
        return list(self._by_name.values())

    def prepare(
        self,
        name: str,
        sql: str,
        oids: tuple[int, ...],
        *,
        from_sql: bool = False,
        plan: Plan | None = None,
    ) -> Prepared:
        """Plan ``sql`` and remember it as ``name``. ``plan``: what it was planned to already.

        Raises SqlError 42P05 for a name that is taken, 53400 if there are too many, and what planning raises.
        """
        self._check_new(name)
        text = sql
        if plan is None:
            if not from_sql:
                text = self._session.standard_text(sql)
            plan = self._planning.plan_text(text, oids, tell=not from_sql)
        return self._keep(name, text, oids, plan, from_sql=from_sql, shown=sql)

    async def prepare_long(
        self, name: str, sql: str, oids: tuple[int, ...], *, from_sql: bool = False
    ) -> Prepared:
        """As ``prepare``, for a long text: in a thread. ``from_sql``: PREPARE, whose own text has been looked
        through for long names.
        """
        self._check_new(name)
        plan: Plan | None
        text = sql
        if from_sql:
            (statement,) = await beside(parse, sql)
            plan = await self._planning.bind_long(statement, oids)
        else:
            text = self._session.standard_text(sql)
            plan = await self._planning.plan_long_text(text, oids)
        return self._keep(name, text, oids, plan, from_sql=from_sql, shown=sql)

    def _check_new(self, name: str) -> None:
        if name and name in self._by_name:
            raise SqlError("42P05", f'prepared statement "{name}" already exists')
        if len(self._by_name) >= MAX_PREPARED:
            raise SqlError("53400", f"more than {MAX_PREPARED} prepared statements")

    def _keep(
        self,
        name: str,
        sql: str,
        oids: tuple[int, ...],
        plan: Plan | None,
        *,
        from_sql: bool,
        shown: str,
    ) -> Prepared:
        params = plan.bound.params if plan is not None else oids
        session = self._session
        prepared = Prepared(name, sql, plan, params, session.search_path, from_sql, session.db.clock_us())
        if shown != sql:
            prepared.shown = shown
        if name or len(sql) >= LARGE_BYTES:
            session.held.hold(f"prepared {name}", _kept_bytes(sql, plan))
        self._by_name[name] = prepared
        return prepared

    def close(self, name: str) -> bool:
        """Forget a statement; False if there is none."""
        prepared = self._by_name.pop(name, None)
        if prepared is None:
            return False
        if len(prepared.text) > LONG_TEXT:
            release_all([prepared])
        held = self._session.held
        if held.bytes:
            held.hold(f"prepared {name}", 0)
        return True

    def clear(self) -> None:
        """DEALLOCATE ALL."""
        for name in list(self._by_name):
            self.close(name)

    def fresh_plan(self, prepared: Prepared) -> Plan | None:
        """Return the statement's plan, made anew if catalog or search path moved on; None for an empty query string.

        Raises SqlError 0A000 when its result would have other columns, XX000 when the type of a parameter is gone.
        """
        session = self._session
        plan = prepared.plan
        if plan is None:
            return None
        if plan.as_of is not None and not plan.as_of.params and session.block.txn is None:
            with session.view.looking_at(catalog_at(session, plan.as_of)):
                fresh = plan.fresh(session.catalog)
        else:
            fresh = plan.fresh(session.view.catalog)
        path = session.search_path
        whose = plan.bound.row_security
        mine = whose is None or whose == session.row_security.key
        if fresh and mine and path == prepared.path:
            return plan
        for oid in prepared.param_oids:
            _check_type(session.view.catalog, oid)
        try:
            again = self._planning.plan_text(prepared.text, prepared.param_oids)
        except SqlError as error:
            at = prepared.shown.rfind(prepared.text)
            if at > 0 and error.span is not None:  # PREPARE's text is what positions are in
                error.span = Span(error.span.start + at, error.span.end + at)
            raise
        if again is None or again.shape != plan.shape:
            raise result_type_changed()
        prepared.plan, prepared.path = again, path
        return again

    def wire_values(
        self,
        prepared: Prepared,
        formats: Sequence[int],
        raw: Sequence[bytes | None],
        portal: str,
        small: bool = False,
    ) -> tuple[Any, ...]:
        """Return the parameter values that a Bind message carries; ``formats``: none, one for all, or one each.

        ``small``: they have ``SMALL_BYTES`` at most, all together.

        Raises DataError with the parameter and ``portal`` in its CONTEXT.
        """
        session = self._session
        settings = session.codec_settings if prepared.reads_clock else session.output_settings
        # Settings that differ in the time alone are equal.
        key = (tuple(formats), settings, settings.now_us if prepared.reads_clock else 0)
        if prepared.decoder_key != key:
            each = expand_formats(key[0], len(raw))
            made = []
            for number, (oid, format_) in enumerate(
                zip(_in_turns(prepared.param_oids), each, strict=True), 1
            ):
                try:
                    made.append(param_decoder(oid, format_, settings, session))
                except DataError as error:
                    what = f'portal "{portal}"' if portal else "unnamed portal"
                    raise with_context(error, f"{what} parameter ${number}") from None
            prepared.decoders = made
            prepared.decoder_key = key
        try:
            if small:
                return tuple(
                    [
                        None if data is None else decode(data)
                        for decode, data in zip(prepared.decoders, raw, strict=True)
                    ]
                )
            return tuple(
                [
                    None
                    if data is None
                    else decode(data)
                    if len(data) <= SMALL_BYTES
                    else openly(decode, data)
                    for decode, data in zip(prepared.decoders, _in_turns(raw), strict=True)
                ]
            )
        except DataError as error:
            if not error.sqlstate.startswith(NO_ROOM):
                self._name_value(prepared, formats, raw, portal)
            raise

    def _name_value(
        self, prepared: Prepared, formats: Sequence[int], raw: Sequence[bytes | None], portal: str
    ) -> None:
        """Decode parameters again, so that the error says which one is wrong."""
        each = expand_formats(tuple(formats), len(raw))
        for number, (decode, format_, data) in enumerate(zip(prepared.decoders, each, raw, strict=True), 1):
            if data is None:
                continue
            try:
                openly(decode, data)
            except DataError as error:
                what = f'portal "{portal}"' if portal else "unnamed portal"
                where = f"{what} parameter ${number}"
                if (
                    format_ == 1
                    and error.sqlstate == "22P03"
                    and error.message == "incorrect binary data format"
                ):
                    error.message += f" in bind parameter {number}"
                shown = None if format_ == 1 else self._shown(data)
                raise with_context(error, where if shown is None else f"{where} = {shown}") from None

    def _shown(self, data: bytes) -> str | None:
        """Return a parameter as errors show it (log_parameter_max_length_on_error); None where it is no text."""
        try:
            text = openly(encoding(self._session.output_settings.encoding).decode, data)
        except DataError:
            return None
        most = self._session.settings.integer("log_parameter_max_length_on_error")
        if 0 <= most < len(text) or 0 <= most < len(text.encode()):
            text = clip_bytes(text[: most + 1], most) + "..."
        return "'" + text.replace("'", "''") + "'"

    def to_execute(
        self, plan: Plan, statement: ExecutePrepared, params: tuple[Any, ...]
    ) -> tuple[Plan, tuple[Any, ...]]:
        """Return the plan that EXECUTE runs, of the CREATE TABLE AS that it is in where it is in one, and its
        parameter values.

        ``plan`` is that of the EXECUTE itself. Raises SqlError 26000, 42601 (wrong number of arguments),
        42804, 42809 (no query for a table).
        """
        prepared = self.get(statement.name)
        inner = self.fresh_plan(prepared)
        if inner is None:
            raise RuntimeError("PREPARE keeps no empty statement")
        prepared.check_count(len(statement.args))
        values = self._argument_values(plan, statement, prepared.param_oids, params)
        return inner if statement.into is None else self._filling(statement.into, prepared, inner), values

    def _filling(self, made: ast.CreateTableAs, prepared: Prepared, inner: Plan) -> Plan:
        """Return the plan of a CREATE TABLE AS whose query is a prepared statement's, ``inner``. Raises
        SqlError 42809 for what is none.
        """
        if not isinstance(inner.bound.statement, QueryStatement):
            raise SqlError("42809", "prepared statement is not a SELECT")
        (parsed,) = openly(parse, prepared.text)
        whole = replace(parsed, statement=replace(made, query=parsed.statement, executed=True))
        return self._planning.bind(whole, prepared.param_oids, variable_params=False)

    def _argument_values(
        self, plan: Plan, statement: ExecutePrepared, oids: tuple[int, ...], params: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Return EXECUTE's argument values, converted to the prepared statement's parameter types."""
        session = self._session
        env = Env(params + plan.stable_values(session, params), session, shared=Shared())
        values = []
        for position, (expr, oid) in enumerate(zip(statement.args, oids, strict=True), 1):
            try:
                coerced = coerce_argument(
                    expr,
                    oid,
                    settings=session.codec_settings,
                    row_type=session.catalog.row_type,
                    check_name=partial(input_by_catalog, session),
                    search_name=partial(reg_input, session),
                )
            except SqlError as error:
                if error.sqlstate == "42804":
                    error.message = error.message.replace("$n", f"${position}")
                raise
            values.append(openly(compile_expr(coerced), (), env))
        return tuple(values)
