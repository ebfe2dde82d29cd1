"""Expressions: AST -> typed expression.

``bind_expr`` looks the node's class up in one table; each family of nodes has a module that fills its
rows (``columns``, ``compare``, ``funcs``, ``sublinks``), the simple ones stand here. ``bind_clause`` binds
under a clause name, which decides whether aggregates, window functions, set-returning functions and
sub-queries may stand there.

Operands are bound left to right, then the operator is resolved and its arguments coerced: exactly
PostgreSQL's order, since the order decides which ``$n`` takes which type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

from pgwire.codecs.domain import VECTORS
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_input
from pgwire.codecs.settings import STORED_TEXT
from pgwire.give_way import give_way, paced
from pgwire.long.values import PIECE, cut, filled, run_end
from planner import ast
from planner.base.errors import Span, SqlError, not_supported
from planner.base.large import foresee
from planner.bind.define.collation import find_collation
from planner.bind.scope import Scope
from planner.conversion.casts import coerce, coerce_to_boolean, try_coerce
from planner.conversion.collations import COLLATIONS, expr_collation, type_collation
from planner.conversion.common_types import coerce_all_to_common, coerce_to_common, select_common_type
from planner.conversion.composite import opened
from planner.conversion.order import find_less, unordered_field
from planner.conversion.pathways import CastContext
from planner.conversion.resolve import make_operator, make_scalar_array_op
from planner.conversion.type_names import names_by_oid, time_precision
from planner.facts import (
    BIT,
    BOOL,
    DATE,
    INT4,
    INT8,
    NAME,
    NUMERIC,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNKNOWN,
    facts,
)
from planner.query import (
    ArrayExpr,
    BooleanTest,
    BoolExpr,
    CaseExpr,
    CaseWhen,
    CoalesceExpr,
    CollateExpr,
    Const,
    CurrentSetting,
    Expr,
    MinMaxExpr,
    NullTest,
    RelabelType,
)
from planner.types import SqlType
from planner.types.domains import names_domain, no_array_type, plain_type
from planner.types.facts import FIRST_USER_OID, array_of, element_of, format_type

Binder = Callable[[Scope, Any], Expr]

_BOOLEAN = SqlType(BOOL)
_INT4, _UNKNOWN = SqlType(INT4), SqlType(UNKNOWN)


def bind_expr(scope: Scope, node: ast.Expression) -> Expr:
    """Bind one expression under the scope's current clause.

    Raises SqlError with PostgreSQL's SQLSTATE, wording and position; 0A000 for what is not supported.
    """
    give_way()
    return _BINDERS[type(node)](scope, node)


def bind_clause(scope: Scope, node: ast.Expression, clause: str) -> Expr:
    """Bind an expression as part of ``clause`` ("WHERE", "JOIN/ON", "LIMIT" ...)."""
    before = scope.clause
    scope.clause = clause
    try:
        return bind_expr(scope, node)
    finally:
        scope.clause = before


def bind_kept(scope: Scope, node: ast.Expression, clause: str) -> Expr:
    """As ``bind_clause`` for an expression that is kept: its collations are settled now. Raises SqlError
    42P21, 42P22 as well.
    """
    expr = bind_clause(scope, node, clause)
    if COLLATIONS in scope.context.flags:
        expr_collation(expr, scope.ranges, scope.context.catalog)
    return expr


def bind_boolean(scope: Scope, node: ast.Expression, clause: str) -> Expr:
    """Bind a condition: WHERE, HAVING, JOIN/ON, FILTER. 42804 when it is not boolean."""
    expr = bind_clause(scope, node, clause)
    return coerce_to_boolean(expr, clause, scope.context.env)


def register(kind: type[ast.Node], binder: Binder) -> None:
    """Enter the binder of an AST class (each family does this once, at import)."""
    _BINDERS[kind] = binder


def check_total() -> None:
    """Raise RuntimeError where a class of expressions has no binder; asked once all families are imported."""
    missing = [kind.__name__ for kind in get_args(ast.Expression) if kind not in _BINDERS]
    if missing:
        raise RuntimeError(f"nobody binds {', '.join(missing)}")


# --- constants and parameters -------------------------------------------------------------------

_INT8_CHARS = len(str(-(2**63)))
_DIGITS = {"b": (re.compile("[01]*"), "binary"), "x": (re.compile("[0-9a-fA-F]*"), "hexadecimal")}


def _constant(scope: Scope, node: ast.Constant) -> Expr:
    kind, value = node.kind, node.value
    if kind == "string" or kind == "null":
        return Const(type=_UNKNOWN, value=value, span=node.span)
    if kind == "int":
        return Const(type=_INT4, value=value, span=node.span)
    if kind == "bool":
        return Const(type=_BOOLEAN, value=value, span=node.span)
    text = str(value)
    if kind == "bits":
        return Const(type=SqlType(BIT), value=_bits(text, node.span), span=node.span)
    if len(text) <= _INT8_CHARS and text.lstrip("-").isdigit():
        number = int(text)
        if -(2**31) <= number < 2**31:
            return Const(type=_INT4, value=number, span=node.span)
        if -(2**63) <= number < 2**63:
            return Const(type=SqlType(INT8), value=number, span=node.span)

    try:
        decimal = text_input(NUMERIC, text, -1, scope.context.env.settings)
    except DataError as error:
        raise SqlError(
            error.sqlstate,
            error.message,
            detail=error.detail,
            hint=error.hint,
            where=error.where,
            span=node.span,
        ) from None
    return Const(type=SqlType(NUMERIC), value=decimal, span=node.span)


def _bits(text: str, span: Span | None) -> str:
    digits, base = _DIGITS[text[0]]
    end = run_end(digits, text, 1)
    if end < len(text):
        raise SqlError("22P02", f'"{text[end]}" is not a valid {base} digit', span=span)
    if text[0] == "b":
        return cut(text, 1)
    foresee(4 * (len(text) - 1))
    hexadecimal = (text[at : at + PIECE] for at in paced(range(1, len(text), PIECE), 1))
    return filled(4 * (len(text) - 1), "", (f"{int(piece, 16):0{4 * len(piece)}b}" for piece in hexadecimal))


def _is_there(scope: Scope, oid: int) -> bool:
    """Tell whether a type that a client has named by its oid is one of its database."""
    if oid < FIRST_USER_OID:
        return oid in facts().types
    catalog = scope.context.catalog
    return catalog.type_by_oid(oid) is not None or catalog.row_type(element_of(oid) or oid) is not None


def _param(scope: Scope, node: ast.ParamRef) -> Expr:
    param = scope.context.env.params.reference(node.number, node.span)
    if not _is_there(scope, param.type.oid):
        raise SqlError("42704", f"type with OID {param.type.oid} does not exist", span=node.span)
    if names_domain(param.type.oid):  # what the client sends was only read as what is under the domain
        under = RelabelType(arg=param, type=plain_type(param.type), span=node.span)
        return coerce(under, param.type, CastContext.IMPLICIT, scope.context.env, span=node.span)
    return param


_SQL_VALUES: dict[str, tuple[int, bool]] = {  # type, takes a precision
    "current_date": (DATE, False),
    "current_time": (TIMETZ, True),
    "current_timestamp": (TIMESTAMPTZ, True),
    "localtime": (TIME, True),
    "localtimestamp": (TIMESTAMP, True),
    "current_role": (NAME, False),
    "current_user": (NAME, False),
    "user": (NAME, False),
    "session_user": (NAME, False),
    "current_catalog": (NAME, False),
    "current_schema": (NAME, False),
}


def _sql_value(scope: Scope, node: ast.SqlValue) -> Expr:
    oid, precise = _SQL_VALUES[node.what]
    typmod = time_precision(oid, node.precision, node.span) if precise and node.precision >= 0 else -1
    return CurrentSetting(type=SqlType(oid, typmod), what=node.what, span=node.span)


# --- operators and tests ------------------------------------------------------------------------


def operator_name(name: ast.Name, span: Span | None) -> str:
    """Return the bare operator name; operators live in pg_catalog only (42883 for another schema)."""
    if len(name) > 1 and name[-2] != "pg_catalog":
        raise SqlError("42883", f"operator does not exist: {'.'.join(name)}", span=span)
    return name[-1]


def _bool_op(scope: Scope, node: ast.BoolOp) -> Expr:
    word = node.kind.upper()
    env = scope.context.env
    args = tuple([coerce_to_boolean(bind_expr(scope, arg), word, env) for arg in node.args])
    return BoolExpr(type=_BOOLEAN, kind=node.kind, args=args, span=node.span)


def _null_test(scope: Scope, node: ast.NullTest) -> Expr:
    arg = bind_expr(scope, node.arg)
    scope.context.env.params.left_open(arg)
    arg = opened(arg, scope.context.env.row_type)
    return NullTest(type=_BOOLEAN, arg=arg, negated=node.negated, span=node.span)


def _boolean_test(scope: Scope, node: ast.BooleanTest) -> Expr:
    word = f"IS {'NOT ' if node.negated else ''}{node.test.upper()}"
    arg = coerce_to_boolean(bind_expr(scope, node.arg), word, scope.context.env)
    return BooleanTest(type=_BOOLEAN, arg=arg, test=node.test, negated=node.negated, span=node.span)


def _operator_any(scope: Scope, node: ast.OperatorAny) -> Expr:
    left, right = bind_expr(scope, node.left), bind_expr(scope, node.right)
    return make_scalar_array_op(
        operator_name(node.name, node.span),
        left,
        right,
        not node.all,
        scope.context.env,
        node.span,
    )


# --- CASE, COALESCE, GREATEST, LEAST ------------------------------------------------------------


def no_sets(scope: Scope, construct: str, before: bool) -> None:
    """Refuse set-returning functions found since ``before`` (the flag's old value) inside a construct."""
    if scope.set_returning and not before:
        raise SqlError(
            "0A000",
            f"set-returning functions are not allowed in {construct}",
            hint="You might be able to move the set-returning function into a LATERAL FROM item.",
            span=scope.set_span,
        )


def _case(scope: Scope, node: ast.Case) -> Expr:
    env = scope.context.env
    before = scope.set_returning
    arg: Expr | None = None
    if node.arg is not None:
        arg = bind_expr(scope, node.arg)
        if arg.type.oid == UNKNOWN:
            arg = coerce(arg, SqlType(TEXT), CastContext.IMPLICIT, env)
    conditions, results = [], []
    for when in node.whens:
        condition = bind_expr(scope, when.condition)
        if arg is not None:
            condition = make_operator("=", arg, condition, env, when.span)
        conditions.append(coerce_to_boolean(condition, "CASE/WHEN", env))
        results.append(bind_expr(scope, when.result))
    default = bind_expr(scope, node.default) if node.default is not None else Const(type=_UNKNOWN, value=None)
    no_sets(scope, "CASE", before)
    # PostgreSQL lets ELSE decide first
    (default, *results), type_ = coerce_all_to_common([default, *results], "CASE", env)
    whens = tuple(
        [
            CaseWhen(condition=condition, result=result)
            for condition, result in zip(conditions, results, strict=True)
        ]
    )
    return CaseExpr(type=type_, whens=whens, default=default, simple=node.arg is not None, span=node.span)


def _coalesce(scope: Scope, node: ast.Coalesce) -> Expr:
    before = scope.set_returning
    args = [bind_expr(scope, arg) for arg in node.args]
    coerced, type_ = coerce_all_to_common(args, "COALESCE", scope.context.env)
    no_sets(scope, "COALESCE", before)
    return CoalesceExpr(type=type_, args=coerced, span=node.span)


def _min_max(scope: Scope, node: ast.MinMax) -> Expr:
    word = "GREATEST" if node.greatest else "LEAST"
    args = [bind_expr(scope, arg) for arg in node.args]
    coerced, type_ = coerce_all_to_common(args, word, scope.context.env)
    less = find_less(type_.oid)
    if less is None or unordered_field(type_.oid, scope.context.env.row_type, 1):
        raise SqlError("42883", f"could not identify a comparison function for type {format_type(type_.oid)}")
    return MinMaxExpr(type=type_, greatest=node.greatest, args=coerced, lt=less.proc, span=node.span)


# --- arrays ----------------------------------------------------------------------------


def bind_array(scope: Scope, node: ast.ArrayLiteral, target: SqlType | None, context: str = "ARRAY") -> Expr:
    """Bind ARRAY[...]; ``target`` is the array type of a cast written around it."""
    env = scope.context.env
    nested = False
    elements: list[Expr] = []
    for item in node.elements:
        if isinstance(item, ast.ArrayLiteral):
            elements.append(bind_array(scope, item, target))
            nested = True
        else:
            element = bind_expr(scope, item)
            nested = nested or (element.type.oid not in VECTORS and element_of(element.type.oid) != 0)
            elements.append(element)
    if target is not None:
        wanted = target if nested else SqlType(element_of(target.oid), target.typmod)
        coerced = []
        for element in elements:
            made = try_coerce(element, wanted, CastContext.EXPLICIT, env)
            if made is None:
                raise SqlError(
                    "42846",
                    f"cannot cast type {format_type(element.type.oid)} to {format_type(wanted.oid)}",
                    span=element.span,
                )
            coerced.append(made)
        return ArrayExpr(type=target, elements=tuple(coerced), nested=nested, span=node.span)
    if not elements:
        raise SqlError(
            "42P18",
            "cannot determine type of empty array",
            hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
            span=node.span,
        )
    common = select_common_type(elements, "ARRAY")
    array = common if nested else array_of(common)
    if nested and not element_of(common):
        raise SqlError(
            "42704",
            f"could not find element type for data type {format_type(common)}",
            span=node.span,
        )
    if not array:
        raise no_array_type(common, node.span)
    items = tuple([coerce_to_common(element, common, "ARRAY", env) for element in elements])
    typmods = {item.type.typmod for item in items}
    typmod = typmods.pop() if len(typmods) == 1 else -1
    return ArrayExpr(type=SqlType(array, typmod), elements=items, nested=nested, span=node.span)


def _array(scope: Scope, node: ast.ArrayLiteral) -> Expr:
    return bind_array(scope, node, None)


# --- casts, collations, refusals ----------------------------------------------------------------


def _cast(scope: Scope, node: ast.TypeCast) -> Expr:
    names = node.type.names
    try:
        target = scope.context.type_of(node.type)
    except SqlError as error:
        schema = names[-2] if len(names) > 1 else ""
        if error.sqlstate == "42704" and scope.context.find_relation(schema, names[-1]) is not None:
            raise not_supported(f"the row type of table {names[-1]}", span=node.type.span) from None
        raise
    arg_node = node.arg
    array = plain_type(target)  # of a domain
    # what is printed with its cast is an array that was cast as a whole
    kept = scope.context.env.settings is STORED_TEXT
    if isinstance(arg_node, ast.ArrayLiteral) and element_of(array.oid) and not (kept and arg_node.elements):
        arg = bind_array(scope, arg_node, array)
    else:
        arg = bind_expr(scope, arg_node)
    env = scope.context.env
    if names_by_oid(names):
        env = replace(env, settings=STORED_TEXT)  # such a name stands in stored texts alone
    return coerce(arg, target, CastContext.EXPLICIT, env, span=node.span)


def _collate(scope: Scope, node: ast.Collate) -> Expr:
    if node.arg is None:
        raise AssertionError("COLLATE without an argument")
    arg = bind_expr(scope, node.arg)
    if arg.type.oid != UNKNOWN and not type_collation(arg.type, scope.context.catalog):
        raise SqlError(
            "42804",
            f"collations are not supported by type {format_type(arg.type.oid)}",
            span=node.span,
        )

    collation = find_collation(scope.context, node.name, node.span)
    if arg.type.oid == UNKNOWN:
        arg = coerce(arg, SqlType(TEXT), CastContext.IMPLICIT, scope.context.env)
    scope.context.flags.add(COLLATIONS)
    return CollateExpr(type=arg.type, arg=arg, collation=collation, span=node.span)


def _default(scope: Scope, node: ast.Default) -> Expr:
    raise SqlError("42601", "DEFAULT is not allowed in this context", span=node.span)


def _named_arg(scope: Scope, node: ast.NamedArg) -> Expr:
    raise SqlError("42601", "named argument is not allowed in this context", span=node.span)


def _current_of(scope: Scope, node: ast.CurrentOf) -> Expr:
    raise not_supported("WHERE CURRENT OF", span=node.span)


_BINDERS: dict[type, Binder] = {
    ast.Constant: _constant,
    ast.ParamRef: _param,
    ast.SqlValue: _sql_value,
    ast.BoolOp: _bool_op,
    ast.NullTest: _null_test,
    ast.BooleanTest: _boolean_test,
    ast.OperatorAny: _operator_any,
    ast.Case: _case,
    ast.Coalesce: _coalesce,
    ast.MinMax: _min_max,
    ast.ArrayLiteral: _array,
    ast.TypeCast: _cast,
    ast.Collate: _collate,
    ast.Default: _default,
    ast.NamedArg: _named_arg,
    ast.CurrentOf: _current_of,
}
