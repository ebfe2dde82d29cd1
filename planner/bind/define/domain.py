"""CREATE and ALTER DOMAIN: constraints bound over VALUE and kept as canonical texts (manual, CREATE DOMAIN).

CREATE DOMAIN price AS numeric(10,2) CHECK (value >= 0)
the CHECK  bound     OpExpr(>=, Var(DOMAIN_VALUE): numeric(10,2), Const 0)
kept      (VALUE >= (0)::numeric)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.table.table_parts import declared_collation
from planner.bind.define.types import creation_schema_of, is_taken, users_type
from planner.bind.stored import bind_default, with_oids
from planner.bind.stored.domain_checks import bound_check
from planner.bind.stored.runnable import check_runnable
from planner.catalog import TypeDef
from planner.conversion.domain_checks import default_sql
from planner.conversion.type_names import check_column_type, type_name_text
from planner.deparse import deparse_expr
from planner.facts import RECORD, TEXT, facts
from planner.query import Const
from planner.types import SqlType
from planner.types.domains import is_domain

_NO_CONSTRAINTS = {
    "unique": "unique",
    "primary key": "primary key",
    "exclusion": "exclusion",
    "exclude": "exclusion",
    "foreign key": "foreign key",
}
_TIMING = ("deferrable", "not deferrable", "deferred", "immediate")


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _without_position(binder: Callable[_P, _R]) -> Callable[_P, _R]:
    """Errors of definitions of domains point nowhere, as in PostgreSQL."""

    @functools.wraps(binder)
    def bound(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return binder(*args, **kwargs)
        except SqlError as error:
            error.span = None
            raise

    return bound


@_without_position
def bind_create_domain(context: BindContext, node: ast.CreateDomain) -> st.CreateDomain:
    """CREATE DOMAIN.

    Raises SqlError 3F000, 42704 and others for the type, 42804 (no type for a domain; a default of another
    type), 42601, 42P17, 0A000 (constraints that domains have not).
    """
    schema = creation_schema_of(context, node.name)
    if is_taken(context, schema, node.name[-1]):
        return st.CreateDomain(
            schema=schema, name=node.name[-1], base=SqlType(TEXT), not_null=False, default_sql=None, checks=(), collation=0
        )  # fmt: skip
    base = context.type_of(node.type)
    _check_base(base, type_name_text(node.type), node)
    default: ast.Constraint | None = None
    default_text: str | None = None
    null: bool | None = None
    checks: list[ast.Constraint] = []  # which PostgreSQL looks at when all else is found right
    for constraint in node.constraints:
        if constraint.kind == "default":
            if default is not None:
                raise SqlError("42601", "multiple default expressions")
            default = constraint
            default_text = _default(context, default.expr, node.name[-1], base)
        elif constraint.kind in ("null", "not null"):
            if null is not None and null != (constraint.kind == "null"):
                raise SqlError("42601", "conflicting NULL/NOT NULL constraints")
            null = constraint.kind == "null"
        else:
            _check_kind(constraint)
            checks.append(constraint)
    return st.CreateDomain(
        schema=schema,
        name=node.name[-1],
        base=base,
        not_null=null is False,
        default_sql=default_sql(context.catalog, base.oid) if default is None else default_text,
        checks=tuple([_check(context, constraint, base) for constraint in checks]),
        collation=declared_collation(context, node.collation, base, node.span),
        dims=len(node.type.dims),
        default_inherited=default is None,
    )


def _check_base(base: SqlType, shown: str, node: ast.CreateDomain) -> None:
    fact = facts().types.get(base.oid)
    if fact is None or fact.kind == "p":
        raise SqlError("42804", f'"{shown}" is not a valid base type for a domain')
    if base.oid == RECORD:
        raise not_supported("a domain over a composite type", span=node.type.span)
    check_column_type(shown, base, node.type.span)


def _default(context: BindContext, written: ast.Expression | None, domain: str, base: SqlType) -> str | None:
    """Return a default's canonical text; DEFAULT NULL is no default, unless it hides that of a domain below."""
    if written is None:
        return None
    expr = with_oids(context, bind_default(context, written, domain, base))
    check_runnable(expr, context.catalog)  # it has to be, later
    if isinstance(expr, Const) and expr.value is None and not is_domain(base.oid):
        return None
    return deparse_expr(expr)


def _check_kind(node: ast.Constraint) -> None:
    """Raise SqlError 42601, 0A000, 42P17 for a constraint that domains cannot have."""
    if node.kind in _NO_CONSTRAINTS:
        raise SqlError("42601", f"{_NO_CONSTRAINTS[node.kind]} constraints not possible for domains")
    if node.kind in _TIMING:
        raise SqlError("0A000", "specifying constraint deferrability not supported for domains")
    if node.kind != "check" or node.expr is None:
        raise SqlError("42601", f"{node.kind} constraints not possible for domains")
    if node.no_inherit:
        raise SqlError("42P17", "check constraints for domains cannot be marked NO INHERIT")


def _check(context: BindContext, node: ast.Constraint, base: SqlType) -> st.DomainCheck:
    _check_kind(node)
    if node.expr is None:
        raise AssertionError("a CHECK has no expression")
    check = bound_check(context, node.expr, base)
    check_runnable(check, context.catalog)  # it has to be, later
    return st.DomainCheck(name=node.name or None, sql=deparse_expr(with_oids(context, check)))


# --- ALTER ----------------------------------------------------------------------------------------


def users_domain(context: BindContext, name: ast.Name) -> TypeDef:
    """Return the domain that a name means. Raises SqlError 42704, 42809 for another type."""
    return users_type(context, name, what="domain")


@_without_position
def bind_alter_domain(context: BindContext, node: ast.AlterDomain) -> st.AlterDomain:
    """ALTER DOMAIN. Raises SqlError 42704, 42809 and as ``bind_create_domain``."""
    made = users_domain(context, node.name)
    shown = ".".join(node.name)
    match node.action:
        case "default":
            return st.SetDomainDefault(
                type=made.oid, default_sql=_default(context, node.default, made.name, made.base_type)
            )
        case "set not null" | "drop not null":
            return st.SetDomainNotNull(type=made.oid, not_null=node.action == "set not null")
        case "add":
            if node.constraint is None:
                raise AssertionError("ALTER DOMAIN adds no constraint")
            check = _check(context, node.constraint, made.base_type)
            return st.AddDomainCheck(type=made.oid, check=check, not_valid=node.constraint.not_valid)
        case "drop":
            return st.DropDomainConstraint(
                type=made.oid, name=node.constraint_name, if_exists=node.if_exists, shown=shown
            )
        case "validate":
            return st.ValidateDomainConstraint(type=made.oid, name=node.constraint_name, shown=shown)


def bind_rename_constraint(context: BindContext, node: ast.Rename) -> st.RenameDomainConstraint:
    """ALTER DOMAIN ... RENAME CONSTRAINT."""
    made = users_domain(context, node.name)
    return st.RenameDomainConstraint(type=made.oid, old=node.old, new=node.new)
