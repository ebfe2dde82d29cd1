"""What domains demand of values, as functions: NOT NULL, then CHECK, from the innermost domain outwards (manual 8.18).

    CREATE DOMAIN small AS integer CHECK (VALUE < 100)
    CREATE DOMAIN tiny  AS small NOT NULL CHECK (VALUE < 10)      tiny: not null, then small's check, then tiny's

    tiny  NULL   23502  domain tiny does not allow null values
    tiny  200    23514  value for domain tiny violates check constraint "small_check"

Messages name the domain that was asked for, as PostgreSQL's do. Within one domain checks go by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner import ast
from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.bind.expression.expr import bind_kept
from planner.bind.scope import Scope
from planner.bind.stored import stored_context, without_spans
from planner.bind.stored.runnable import runnable
from planner.catalog import Catalog, TypeDef
from planner.conversion.casts import coerce_to_boolean
from planner.conversion.domain_checks import chain
from planner.conversion.ports import Demand
from planner.evaluate import Env, Layout, Shared, compile_expr
from planner.functions.session import EvalSession
from planner.functions.system.names import type_name
from planner.parse import parse_expression
from planner.query import DOMAIN_VALUE, Expr, RangeColumn, RelationRange
from planner.rules.fold import fold
from planner.rules.plain import without_domains
from planner.types import SqlType
from planner.types.domains import is_domain, names_domain
from planner.types.facts import element_of, format_type


def bound_check(context: BindContext, node: ast.Expression, base: SqlType) -> Expr:
    """Bind a CHECK over VALUE. Raises SqlError 0A000 (sub-queries), 42703, 42804, 42803."""
    scope = Scope(context=context)
    columns = (RangeColumn(name="value", type=base, attnum=DOMAIN_VALUE),)
    made = RelationRange(alias="", columns=columns, oid=0, schema="", name="")
    index = scope.add_range(made, [(0, 0)])
    scope.add_namespace([scope.item(index)])
    return coerce_to_boolean(bind_kept(scope, node, "CHECK"), "CHECK", context.env)


def stored_check(
    catalog: Catalog, made: TypeDef, sql: str, functions: set[int] | None = None, *, plain: bool = True
) -> Expr:
    """Return the expression of a domain's CHECK; VALUE is a Var of range 0. ``plain``: for an executor;
    ``functions`` as in ``runnable``.
    """
    context = stored_context(catalog, sql)
    expr: Expr = without_spans(bound_check(context, parse_expression(sql), made.base_type))
    return fold(without_domains(runnable(expr, catalog, functions))) if plain else expr


def demanded_calls(catalog: Catalog, oid: int) -> set[int]:
    """Return the functions that are called for what a domain, or an array of domains, demands."""
    called: set[int] = set()
    while names_domain(oid):
        if not is_domain(oid):
            oid = element_of(oid)
            continue
        domains = chain(catalog, oid)
        for made in domains:
            for constraint in made.checks:
                stored_check(catalog, made, constraint.check_sql, called)
        oid = domains[-1].base
    return called


def demand(catalog: Catalog, oid: int) -> Demand | None:
    """Return what a domain, or an array of domains, demands of a value; None for nothing. Raises as the
    checks' binding.
    """
    if not names_domain(oid):
        return None
    if not is_domain(oid):
        return _of_elements(demand(catalog, element_of(oid)))
    return _of_domain(catalog, oid)


def _of_elements(element: Demand | None) -> Demand | None:
    if element is None:
        return None

    def check_array(value: Any, session: EvalSession | None) -> None:
        if value is not None:
            _check_elements(value, session, element)

    return check_array


def _check_elements(value: Any, session: EvalSession | None, element: Demand) -> None:
    if isinstance(value, tuple):
        for item in value:
            _check_elements(item, session, element)
    else:
        element(value, session)


def _of_domain(catalog: Catalog, oid: int) -> Demand | None:
    domains = chain(catalog, oid)
    outermost = domains[0]
    inner = demand(catalog, domains[-1].base)  # a domain over an array of domains
    tests: list[tuple[str, Callable[[Any, EvalSession | None], bool]]] = [
        (constraint.name, check_function(catalog, made, constraint.check_sql))
        for made in reversed(domains)
        for constraint in sorted(made.checks, key=lambda c: c.name)
    ]
    not_null = any(made.not_null for made in domains)
    if not (tests or not_null or inner):
        return None

    def check(value: Any, session: EvalSession | None) -> None:
        if value is None and not_null:
            raise SqlError(
                "23502",
                f"domain {_shown(oid, session)} does not allow null values",
                schema=outermost.schema,
                datatype=outermost.name,
            )
        if inner is not None:
            inner(value, session)
        for name, holds in tests:
            if not holds(value, session):
                raise SqlError(
                    "23514",
                    f'value for domain {_shown(oid, session)} violates check constraint "{name}"',
                    schema=outermost.schema,
                    datatype=outermost.name,
                    constraint=name,
                )

    return check


def _shown(oid: int, session: EvalSession | None) -> str:
    """Return what messages call a domain: with its schema where the search path does not find it."""
    return format_type(oid) if session is None else str(type_name(session, oid, None))


def check_function(catalog: Catalog, made: TypeDef, sql: str) -> Callable[[Any, EvalSession | None], bool]:
    """Return the function that says whether a value keeps one CHECK: it does unless that is false.

    It raises SqlError 42501 where the session's user may not call what the CHECK calls; without a session
    that has been asked before.
    """
    called: set[int] = set()
    function = compile_expr(stored_check(catalog, made, sql, called), Layout(columns={(0, DOMAIN_VALUE): 0}))

    def holds(value: Any, session: EvalSession | None) -> bool:
        if called and session is not None:
            session.ask_calls(called)
        return function((value,), Env((), session, shared=Shared())) is not False

    return holds
