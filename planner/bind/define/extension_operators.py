"""Operators and operator classes of extensions.

    name % 'word'       no text % text is built in; pg_trgm is there     ->  public.similarity_op(name, 'word')
    gin_trgm_ops        of pg_trgm                                       ->  an index of public.show_trgm(name)
    gin (id)            the default class of integers, with btree_gin    ->  an index of the values

They are found where their extension's schema is in the search path, or named. Operators are rows of no
catalog, and are shown as calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from planner import ast
from planner.base.errors import Span, SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.expression.calls import make_call, resolve_call
from planner.bind.expression.expr import operator_name
from planner.bind.scope import Scope
from planner.catalog.extensions import with_operators
from planner.catalog.opclasses import PG_OPCLASS, OperatorClassDef
from planner.conversion.resolve import make_operator
from planner.facts import facts
from planner.indexing.opclass import METHOD_OIDS, check_default_made, has_own_class
from planner.indexing.opclass_extensions import class_named
from planner.query import Expr

OPERATORS: Final[Mapping[str, Mapping[str, str]]] = {
    "pg_trgm": {
        "%": "similarity_op",
        "<->": "similarity_dist",
        "<%": "word_similarity_op",
        "%>": "word_similarity_commutator_op",
        "<<->": "word_similarity_dist_op",
        "<->>": "word_similarity_dist_commutator_op",
        "<<%": "strict_word_similarity_op",
        "%>>": "strict_word_similarity_commutator_op",
        "<<<->": "strict_word_similarity_dist_op",
        "<->>>": "strict_word_similarity_dist_commutator_op",
    }
}
"""By extension the function of each binary operator."""

_NOT_KEPT: Final = {("gist", "gist_trgm_ops"): "pg_trgm"}
"""Operator classes of extensions of which there are no indexes here."""
_UNRESOLVED: Final = ("42883", "42725")


def bind_operator(scope: Scope, written: ast.Name, left: Expr | None, right: Expr, span: Span | None) -> Expr:
    """Return ``left written right``, built in or an extension's. Raises as
    ``planner.conversion.resolve.make_operator``.
    """
    try:
        if len(written) > 1 and written[-2] != "pg_catalog":
            return _of_schema(scope, written, left, right, span)
        return make_operator(written[-1], left, right, scope.context.env, span)
    except SqlError as error:
        if left is None or error.sqlstate not in _UNRESOLVED:
            raise
        found = _extension_call(scope, written, left, right, span)
        if found is None:
            raise
        return found


def _of_schema(scope: Scope, written: ast.Name, left: Expr | None, right: Expr, span: Span | None) -> Expr:
    """Return ``left OPERATOR(schema.written) right`` by an operator of the types of an extension there.
    Raises SqlError 42883.
    """
    env = scope.context.env
    found = with_operators(scope.context.catalog, written[-2:-1])
    if not found:
        operator_name(written, span)  # raises
    made = make_operator(written[-1], left, right, replace(env, extensions=found), span)
    if made.op not in {
        op.oid for name in found for op in facts().extensions[name].operators.get(written[-1], ())
    }:
        operator_name(written, span)
    return made


def _extension_call(
    scope: Scope, written: ast.Name, left: Expr, right: Expr, span: Span | None
) -> Expr | None:
    context, name = scope.context, written[-1]
    for extension, functions in OPERATORS.items():
        schema = _schema(context, extension, written) if name in functions else None
        if schema is None:
            continue
        args = (left, right)
        try:
            found = resolve_call(context, schema, functions[name], [a.type.oid for a in args], span=span)
        except SqlError as error:
            if error.sqlstate in _UNRESOLVED:
                continue  # no operator for these types either: what was said of the built-in ones holds
            raise
        context.flags.add("function")
        return make_call(scope, found, args, span)
    return None


def _schema(context: BindContext, extension: str, written: ast.Name) -> str | None:
    """Return the schema of an extension, None where it is not there, or what is written does not find its members."""
    made = context.catalog.extension(extension)
    for name in context.search_path if len(written) == 1 else written[-2:-1]:
        schema = context.catalog.schema(name)
        if made is not None and schema is not None and schema.oid == made.schema_oid:
            return name
    return None


def _check_schema(context: BindContext, method: str, written: ast.Name) -> None:
    """Check that a class that is there from the start is named in the schema where it is."""
    if len(written) == 1 or written[-2] == "pg_catalog":
        return
    if context.catalog.schema(written[-2]) is None:
        raise SqlError("3F000", f'schema "{written[-2]}" does not exist')
    raise SqlError(
        "42704", f'operator class "{".".join(written)}" does not exist for access method "{method}"'
    )


def made_by_users(context: BindContext, method: str, written: ast.Name) -> OperatorClassDef | None:
    """Return the user's operator class that a name means, None for any other."""
    for schema in written[-2:-1] or context.search_path:
        if schema == "pg_catalog" and has_own_class(method, written[-1]):
            return None
        found = context.catalog.opclass_named(PG_OPCLASS, METHOD_OIDS[method], schema, written[-1])
        if isinstance(found, OperatorClassDef):
            return found
    return None


def check_class_made(
    context: BindContext, method: str, written: ast.Name, type_oid: int, span: Span | None
) -> None:
    """Check that the operator class of a key is there: its schema, its extension if one brings it. Raises
    SqlError 3F000, 42704, 0A000.

    A default class counts wherever its extension is, one that is named where its schema is found.
    """
    if not written:
        check_default_made(context.catalog, method, type_oid)
        return
    if made_by_users(context, method, written) is not None:
        shown = ".".join(written)
        raise not_supported(
            f'operator class "{shown}" of one\'s own for an index or a partition key', span=span
        )
    name = written[-1]
    refused = _NOT_KEPT.get((method, name))
    found = class_named(method, name)
    extension = refused or (found.extension if found is not None else "")
    if not extension:
        _check_schema(context, method, written)
        return
    if _schema(context, extension, written) is None:
        shown = ".".join(written)
        raise SqlError(
            "42704", f'operator class "{shown}" does not exist for access method "{method}"', span=span
        )
    if refused:
        raise not_supported(f'operator class "{name}"', span=span)
