"""EXCLUDE: columns or expressions and operators of an exclusion constraint, and its WHERE.

EXCLUDE USING gist (room WITH =, during WITH &&) WHERE (NOT cancelled)
columns room, during    operators =(integer,integer), &&(anyrange,anyrange)    where (NOT cancelled)
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.extension_operators import check_class_made
from planner.bind.define.table.index import index_expression, key_expression, key_names
from planner.bind.define.table.options import check_storage_options
from planner.bind.define.table.table_parts import check_tablespace
from planner.bind.stored import with_oids
from planner.bind.stored.evaluated import bind_check_expr
from planner.bind.stored.runnable import runnable
from planner.catalog import RelationDef
from planner.conversion.resolve import make_operator
from planner.deparse import deparse_expr
from planner.facts import BOOL, facts, rows
from planner.indexing.opclass import METHOD_OIDS, check_indexable, named_class
from planner.indexing.opclass_extensions import BLOOM
from planner.query import Expr, OpExpr, Var
from planner.rules.stable import is_immutable
from planner.types.domains import base_oid
from planner.types.facts import format_type

_EQUAL_ONLY: Final = ("btree", "hash")


def exclusions_of_partitions(node: ast.Constraint) -> SqlError:
    """Return the error for an exclusion constraint of a partitioned table."""
    text = "exclusion constraints are not supported on partitioned tables"
    return SqlError("0A000", text, span=node.span)


def exclusion_spec(context: BindContext, node: ast.Constraint, relation: RelationDef) -> st.KeySpec:
    """Bind an exclusion constraint over its table.

    Raises SqlError 42703, 42704 (no such method), 42809 (an operator that is not commutative, or not of the
    method), 42883, 42P17; 0A000 for classes that are not the default one, and other methods than btree, hash,
    gist and spgist.
    """
    if relation.kind == "p":
        raise exclusions_of_partitions(node)
    method = _method(context, node)
    if relation.source_oid:
        raise not_supported("EXCLUDE on the table of a source", span=node.span)
    check_tablespace(node.tablespace)
    options = check_storage_options(node.options, method)
    names: list[str] = []
    expressions: list[str] = []
    operators: list[int] = []
    for element, operator in node.exclusions:
        if element.collation or element.opclass_options:
            raise not_supported("a collation or operator class parameter in EXCLUDE", span=element.span)
        _check_order(element, method)
        name, key = _key(context, relation, element, method)
        declared = relation.column(key.attnum).declared if isinstance(key, Var) else key.type
        _check_class(context, element, declared.oid, operator, method)
        names.append(name)
        expressions.append("" if isinstance(key, Var) else deparse_expr(key, relation))
        operators.append(_operator(context, key, operator, method))
    where = None
    if node.where is not None:
        where = with_oids(context, bind_check_expr(context, node.where, relation))
        if not (is_immutable(where) or is_immutable(runnable(where, context.catalog))):
            raise SqlError("42P17", "functions in index predicate must be marked IMMUTABLE")
    return st.KeySpec(
        name=node.name or None,
        primary=False,
        columns=key_names(names) if any(expressions) else tuple(names),
        expressions=tuple(expressions) if any(expressions) else (),
        deferrable=node.deferrable,
        deferred=node.initially_deferred,
        operators=tuple(operators),
        method=method,
        where_sql="" if where is None else deparse_expr(where, relation),
        include=node.include,
        options=options,
    )


def _key(
    context: BindContext, relation: RelationDef, element: ast.IndexElement, method: str
) -> tuple[str, Expr]:
    """Return what an element is called, and the column or expression. A column in parentheses is a column."""
    if element.expr is not None:
        return index_expression(context, element, key_expression(context, relation, element.expr), method)
    column = next((c for c in relation.live if c.name == element.name), None)
    if column is None:
        raise SqlError("42703", f'column "{element.name}" named in key does not exist')
    return column.name, Var(type=column.type, range=0, attnum=column.attnum, name=column.name)


_Method: TypeAlias = Literal["btree", "hash", "gist", "spgist"]
_METHODS: Final[tuple[_Method, ...]] = ("btree", "hash", "gist", "spgist")


def _method(context: BindContext, node: ast.Constraint) -> _Method:
    name = node.method or "btree"
    for method in _METHODS:
        if method == name:
            if name in ("hash", "spgist") and len(node.exclusions) > 1:
                raise SqlError("0A000", f'access method "{name}" does not support multicolumn indexes')
            return method
    brought = name == BLOOM and context.catalog.extension(BLOOM) is not None
    if brought or any(row["amname"] == name and row["amtype"] == "i" for row in rows("am")):
        raise SqlError("0A000", f'access method "{name}" does not support exclusion constraints')
    raise SqlError("42704", f'access method "{name}" does not exist')


def _operator(context: BindContext, key: Expr, name: ast.Name, method: str) -> int:
    """Return the operator between two values of a key. Raises SqlError 42809, 42883; 0A000 for one that is no
    condition.
    """
    made = make_operator(name[-1], key, key, context.env, None)
    if not isinstance(made, OpExpr):
        raise AssertionError(f"an operator between two keys is {type(made).__name__}")
    fact = facts().operators[made.op]
    shown = f"{fact.name}({format_type(fact.left)},{format_type(fact.right)})"
    if fact.commutator != fact.oid:
        raise SqlError(
            "42809",
            f"operator {shown} is not commutative",
            detail="Only commutative operators can be used in exclusion constraints.",
        )
    by_family = _is_geometric(fact.left) and fact.left == fact.right
    if (method in _EQUAL_ONLY and fact.name != "=") or (
        by_family and not _is_member(fact.oid, fact.left, method)
    ):
        raise SqlError(
            "42809",
            f'operator {shown} is not a member of operator family "{_family(fact.left, method)}"',
            detail="The exclusion operator must be related to the index operator class for the constraint.",
        )
    if made.type.oid != BOOL:
        raise not_supported(f"operator {shown} in EXCLUDE")
    return fact.oid


def _check_order(element: ast.IndexElement, method: str) -> None:
    """Raise 0A000 for ASC, DESC, NULLS FIRST and LAST: only btree knows them, and of a constraint they are not kept."""
    for written, what in ((element.direction, "ASC/DESC"), (element.nulls, "NULLS FIRST/LAST")):
        if written and method != "btree":
            raise SqlError("0A000", f'access method "{method}" does not support {what} options')
        if written:
            raise not_supported(f"{what} in EXCLUDE", span=element.span)


def _check_class(
    context: BindContext, element: ast.IndexElement, type_oid: int, operator: ast.Name, method: str
) -> None:
    """Check the operator class of an element: its type has one, and none but the default one is written.

    Raises SqlError 42704 for a type without operator class (the method's own; for "=", which is told by
    comparing, that of btree or hash does) and for a class that is not there, 42804 for one of another type,
    0A000.
    """
    base = base_oid(type_oid)
    own = _is_geometric(base) or operator[-1] != "="
    if element.opclass or own:
        check_class_made(context, method, element.opclass, type_oid, element.span)
    if element.opclass and named_class(base, method, element.opclass, element.span):
        raise not_supported(f'operator class "{element.opclass[-1]}" in EXCLUDE', span=element.span)
    if own:
        check_indexable(type_oid, method)
    else:
        check_indexable(type_oid, "hash" if method == "hash" else "btree", told=method)


def _is_geometric(type_oid: int) -> bool:
    return facts().types[type_oid].category == "G"


def _is_member(operator: int, type_oid: int, method: str) -> bool:
    """Tell whether an operator is one that the method finds rows by, in the default family of a type."""
    family = _family_oid(type_oid, method)
    return any(
        row["amopfamily"] == family and row["amopopr"] == str(operator) and row["amoppurpose"] == "s"
        for row in rows("amop")
    )


def _family_oid(type_oid: int, method: str) -> str:
    am = str(METHOD_OIDS[method])
    for row in rows("opclass"):
        if row["opcmethod"] == am and row["opcintype"] == str(type_oid) and row["opcdefault"] == "t":
            return str(row["opcfamily"])
    return ""


def _family(type_oid: int, method: str) -> str:
    """Return the name of a type's default operator family."""
    family = _family_oid(type_oid, method)
    return next(
        (str(one["opfname"]) for one in rows("opfamily") if one["oid"] == family), format_type(type_oid)
    )
