"""Executors see no domains: in place of each stands the type under it.

    SELECT d + 1 FROM t          bound     RelabelType(Var d: price -> numeric) + 1
                                 plain     Var d: numeric + 1
    CAST($1 AS price)            bound     CoerceToDomain(RelabelType(Param: price -> numeric))
                                 plain     CoerceToDomain(Param: numeric)

What the client is told of a statement (its columns, its parameters) was settled before. What a domain demands
of values stays, as ``CoerceToDomain``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from planner.facts import BOOL, OID, facts
from planner.query import (
    ArrayCoerce,
    CaseExpr,
    CaseWhen,
    Const,
    Delete,
    Expr,
    FuncExpr,
    Insert,
    NullTest,
    OutputColumn,
    QueryBase,
    Range,
    RelabelType,
    SqlCall,
    Update,
    Var,
)
from planner.query.rewrite import replace_children
from planner.types import SqlType
from planner.types.domains import any_domains, base_type, is_domain, names_domain, plain_type

_T = TypeVar("_T")
_Columns = TypeVar("_Columns", tuple[OutputColumn, ...], tuple[OutputColumn, ...] | None)


def without_domains(node: _T) -> _T:
    """Return ``node`` (expression, query or statement) with plain types."""
    return _plain(node) if node is not None and any_domains() else node


_TYPEOF = facts().proc_by_signature["pg_typeof(any)"]
_POPULATE = frozenset(
    facts().proc_by_signature[signature]
    for signature in (
        "json_populate_record(anyelement,json,bool)",
        "json_populate_recordset(anyelement,json,bool)",
        "jsonb_populate_record(anyelement,jsonb)",
        "jsonb_populate_recordset(anyelement,jsonb)",
    )
)
"""They make values of their first argument's type, so they are told of a domain
(``planner.functions.json.records``)."""


def _plain(node: object) -> Any:
    if isinstance(node, FuncExpr) and node.proc == _TYPEOF and names_domain(node.args[0].type.oid):
        return _known_type(node)
    if isinstance(node, FuncExpr) and node.proc in _POPULATE and is_domain(node.type.oid):
        node = _told_domain(node)
    if isinstance(node, SqlCall) and any(names_domain(arg.type.oid) for arg in node.args):
        node = replace(node, domains=tuple([arg.type.oid for arg in node.args]))
    told_apart = isinstance(node, RelabelType) and node.arg.type == node.type  # ``sortgroup.Grouping``
    node = replace_children(node, _plain)
    if isinstance(node, Expr):
        plain = plain_type(node.type)
        if isinstance(node, RelabelType) and node.arg.type == plain and not told_apart:
            return node.arg
        if isinstance(node, ArrayCoerce) and isinstance(node.element, Var) and node.arg.type == plain:
            return node.arg
        return node if plain is node.type else replace(node, type=plain)
    if isinstance(node, Insert | Update | Delete):
        return replace(node, columns=told_columns(node.columns))
    if isinstance(node, Range | QueryBase):
        columns: Any = tuple(_column(column) for column in node.columns)
        return node if columns == node.columns else replace(node, columns=columns)
    return node


def _known_type(node: FuncExpr) -> CaseExpr:
    """Return ``pg_typeof`` of a domain as the oid it is; the argument is still evaluated, as it may raise."""
    known = Const(type=node.type, value=node.args[0].type.oid)
    test = NullTest(type=SqlType(BOOL), arg=_plain(node.args[0]))
    return CaseExpr(type=node.type, whens=(CaseWhen(condition=test, result=known),), default=known)


def _told_domain(node: FuncExpr) -> FuncExpr:
    """Return a call whose arguments behind those that SQL writes are false and the domain whose values it makes."""
    filling = (Const(type=SqlType(BOOL), value=False),) * (3 - len(node.args))
    return replace(node, args=(*node.args, *filling, Const(type=SqlType(OID), value=node.type.oid)))


def _column(column: Any) -> Any:
    plain = plain_type(column.type)
    return column if plain is column.type else replace(column, type=plain)


def declared_types(columns: Sequence[OutputColumn] | None) -> tuple[SqlType, ...]:
    """Return the types of a result's columns where some are domains, of which clients are not told; nothing
    where none is.
    """
    if columns is None or not any_domains() or not any(is_domain(column.type.oid) for column in columns):
        return ()
    return tuple([column.type for column in columns])


def told_columns(columns: _Columns) -> _Columns:
    """Return a result's columns as the client is told of them: under domains, but arrays are of what they are of."""
    if columns is None or not any_domains():
        return columns
    return tuple(replace(column, type=base_type(column.type)) for column in columns)
