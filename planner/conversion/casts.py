"""Coercion: whether and how a value of one type becomes another (manual chapter 10, pg_cast).

    WHERE id = '42'         unknown literal -> Const int4 42                  (read by the type's own codec)
    numeric_column + 1      integer -> numeric by pg_cast function            FuncExpr numeric(int4), implicit
    'x'::text -> varchar    binary coercible                                  RelabelType
    text -> json            no pg_cast row, string source, explicit           CoerceViaIO
    integer[] -> text[]     element by element                                ArrayCoerce
    ... into varchar(3)     then the length                                   CoerceTypmod

Three contexts, each allowing what the one before does: IMPLICIT (operators, function arguments), ASSIGNMENT
(INSERT, UPDATE), EXPLICIT (``::``). The order of tests below is PostgreSQL's. Untyped ``$n`` take the type
the first coercion asks for; ``planner.conversion.env.ParamTypes`` remembers it. Which way there is, is in
``planner.conversion.pathways``, whether there is any in ``planner.conversion.polymorphic``.

Promise: a bound tree never contains a value that its type's input function would refuse, and a literal that
is refused is reported with its own span.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from pgwire.codecs import array
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_input
from planner.base.errors import Span, SqlError
from planner.conversion.composite import decomposed, is_row_of, row_as, typed_row
from planner.conversion.env import CoerceEnv
from planner.conversion.pathways import CastContext, find_pathway
from planner.conversion.polymorphic import POLYMORPHIC, can_coerce
from planner.facts import (
    ANY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLENONARRAY,
    ANYELEMENT,
    ANYNONARRAY,
    BOOL,
    DATE,
    INT4,
    INTERVAL,
    RECORD,
    REGCLASS,
    REGCOLLATION,
    REGNAMESPACE,
    REGOPER,
    REGOPERATOR,
    REGPROC,
    REGPROCEDURE,
    REGROLE,
    REGTYPE,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    UNKNOWN,
    facts,
    of_types,
)
from planner.query import (
    ArrayCoerce,
    CoerceToDomain,
    CoerceTypmod,
    CoerceViaIO,
    CollateExpr,
    Const,
    Expr,
    FuncExpr,
    Param,
    RelabelType,
    Var,
)
from planner.query.location import location
from planner.textsearch.names import SEARCH_NAMES
from planner.types import SqlType
from planner.types.domains import base_type, is_domain, names_domain, plain_type
from planner.types.facts import (
    element_of,
    format_type,
    has_input,
    plain_collation,
)

RECORD_ARRAY = 2287
ACLITEM = 1033

_TAKES_ANYTHING = frozenset((ANY, ANYELEMENT, ANYNONARRAY, ANYCOMPATIBLE, ANYCOMPATIBLENONARRAY))
_DATETIME = frozenset((DATE, TIME, TIMETZ, TIMESTAMP, TIMESTAMPTZ, INTERVAL))
_BY_CATALOG = frozenset(
    (
        REGCLASS,
        REGNAMESPACE,
        REGROLE,
        REGTYPE,
        REGPROC,
        REGPROCEDURE,
        REGOPER,
        REGOPERATOR,
        REGCOLLATION,
        ACLITEM,
    )
)
_MOVING_WORDS = ("now", "today", "tomorrow", "yesterday")


# --- building coerced expressions -----------------------------------------------------------------


def coerce(
    expr: Expr, target: SqlType, context: CastContext, env: CoerceEnv, *, span: Span | None = None
) -> Expr:
    """Return ``expr`` as a value of ``target``, typmod included.

    Raises SqlError 42846 when there is no such cast in ``context``, whatever the literal's input raises
    when ``expr`` is an unknown literal, and 42P08 for parameters of conflicting types.
    """
    result = try_coerce(expr, target, context, env, span=span)
    if result is None:
        raise _no_cast(expr.type.oid, target.oid, span or location(expr))
    return result


def _no_cast(source: int, target: int, span: Span | None) -> SqlError:
    return SqlError("42846", f"cannot cast type {format_type(source)} to {format_type(target)}", span=span)


def try_coerce(
    expr: Expr, target: SqlType, context: CastContext, env: CoerceEnv, *, span: Span | None = None
) -> Expr | None:
    """As ``coerce``, but None where no cast exists, so that callers word their own error."""
    if expr.type == target and target.oid != UNKNOWN:
        return expr
    if not can_coerce(expr.type.oid, target.oid, context):
        return None
    result = coerce_type(expr, target, context, env, span=span)
    if is_domain(target.oid):
        return result  # which has applied what length the domain has
    return coerce_typmod(result, target, context, span=span, hide=result is not expr)


def coerce_type(
    expr: Expr, target: SqlType, context: CastContext, env: CoerceEnv, *, span: Span | None = None
) -> Expr:
    """Convert to ``target.oid``; apply no length (``coerce_typmod`` does). ``can_coerce`` must hold."""
    source, oid = expr.type.oid, target.oid
    if source == oid:
        return expr
    if oid in _TAKES_ANYTHING:
        env.params.left_open(expr)
        return expr
    if isinstance(expr, CollateExpr):
        return _under_collate(expr, coerce_type(expr.arg, target, context, env, span=span))
    if oid in POLYMORPHIC and source != UNKNOWN:
        return expr
    if is_domain(oid):
        return _coerce_to_domain(expr, oid, context, env, span)
    literal = False
    if source == UNKNOWN and names_domain(oid) and isinstance(expr, Const | Param):
        # an array of domains: elements are checked one by one
        plain = plain_type(target)
        if isinstance(expr, Const) and expr.value is None:
            return replace(expr, type=SqlType(oid), span=span or expr.span)
        if isinstance(expr, Const):
            expr = read_literal(expr, plain, env, span=span)
            literal = True
        else:
            expr = RelabelType(arg=env.params.deduce(expr, oid, span), type=plain, span=span or expr.span)
        source = expr.type.oid
    if source == UNKNOWN:
        if isinstance(expr, Const):
            return read_literal(expr, target, env, span=span)
        if isinstance(expr, Param):
            return env.params.deduce(expr, oid, span)
    if is_row_of(source, oid):
        return typed_row(expr, oid, env, explicit=context == CastContext.EXPLICIT, span=span)
    pathway = find_pathway(source, oid, context)
    if pathway is None:
        if source == UNKNOWN:
            return CoerceViaIO(
                arg=expr, type=SqlType(oid), explicit=context == CastContext.EXPLICIT, span=span or expr.span
            )
        raise _no_cast(source, oid, span)
    explicit = context == CastContext.EXPLICIT
    where = span or expr.span
    if pathway.kind == "relabel":
        return RelabelType(arg=expr, type=SqlType(oid), explicit=explicit, span=where)
    if pathway.kind == "io":
        return CoerceViaIO(arg=expr, type=SqlType(oid), explicit=explicit, span=where)
    if pathway.kind == "row":
        if oid == RECORD:
            return decomposed(expr, env.row_type)

        def convert(item: Expr, wanted: SqlType) -> Expr | None:
            return try_coerce(item, wanted, context, env, span=span)

        return row_as(expr, oid, env, convert, explicit=explicit, span=span)
    if pathway.kind == "array":
        return replace(_coerce_array(expr, target, context, env, where), literal=literal)
    return _call_cast(pathway.proc, expr, target, explicit, where)


def _under_collate(written: CollateExpr, converted: Expr) -> Expr:
    """Return what COLLATE says of a value that is converted: the same of what comes of it, if that has a
    collation at all.
    """
    if not plain_collation(plain_type(converted.type).oid):
        return converted
    return replace(written, arg=converted, type=converted.type)


def _coerce_to_domain(
    expr: Expr, oid: int, context: CastContext, env: CoerceEnv, span: Span | None
) -> CoerceToDomain:
    """Convert to the type under a domain, length included, and check what comes out of it."""
    base = base_type(SqlType(oid))
    explicit = context == CastContext.EXPLICIT
    if isinstance(expr, Param) and expr.type.oid == UNKNOWN:
        # the client is told of the domain; what it sends is checked here
        param = env.params.deduce(expr, oid, span)
        arg: Expr = RelabelType(arg=param, type=base, span=span or expr.span)
    else:
        arg = coerce_type(expr, base, context, env, span=span)
        arg = _hidden(coerce_typmod(arg, base, context, span=span, hide=True))
    return CoerceToDomain(arg=arg, domain=oid, type=SqlType(oid), explicit=explicit, span=span or expr.span)


def coerce_to_column(expr: Expr, declared: SqlType, env: CoerceEnv) -> Expr | None:
    """Return a value fit for a column that was declared so, None where there is no such assignment.

    What a domain demands is checked by whoever stores the row.
    """
    coerced = try_coerce(expr, declared, CastContext.ASSIGNMENT, env)
    if coerced is expr:
        return expr  # a cast that was written
    if isinstance(coerced, ArrayCoerce) and isinstance(coerced.element, CoerceToDomain):
        return replace(coerced, element=coerced.element.arg)
    return coerced.arg if isinstance(coerced, CoerceToDomain) else coerced


def _call_cast(proc: int, expr: Expr, target: SqlType, explicit: bool, span: Span | None) -> Expr:
    """Build the call of a cast function; those with more arguments take the typmod and explicitness."""
    arity = len(facts().procs[proc].arg_types)
    args: list[Expr] = [expr]
    typmod = -1
    if arity > 1:
        args.append(Const(type=SqlType(INT4), value=target.typmod, span=span))
        typmod = target.typmod
    if arity > 2:
        args.append(Const(type=SqlType(BOOL), value=explicit, span=span))
    made = FuncExpr(
        proc=proc,
        args=tuple(args),
        type=SqlType(target.oid, typmod),
        cast="explicit" if explicit else "implicit",
        span=span,
    )
    if target.oid == INT4 or facts().procs[proc].result != INT4:
        return made
    # smallint becomes an oid by int4(smallint), whose values below 0 are other oids
    inner = replace(made, type=SqlType(INT4), cast="implicit")
    return RelabelType(arg=inner, type=made.type, explicit=explicit, span=span)


def _coerce_array(
    expr: Expr, target: SqlType, context: CastContext, env: CoerceEnv, span: Span | None
) -> ArrayCoerce:
    source = base_type(expr.type)
    source_element = SqlType(element_of(source.oid), source.typmod)
    placeholder = Var(type=source_element, range=-1, attnum=1, name="element")
    element = try_coerce(placeholder, SqlType(element_of(target.oid), target.typmod), context, env, span=span)
    if element is None:
        raise _no_cast(expr.type.oid, target.oid, span)
    return ArrayCoerce(
        arg=expr,
        element=element,
        type=SqlType(target.oid, element.type.typmod),
        explicit=context == CastContext.EXPLICIT,
        span=span,
    )


@of_types
def has_typmod_cast(oid: int) -> bool:
    """Tell whether values of the type (or of an array of it) are cut or rounded to a typmod."""
    oid = element_of(oid) or oid
    return (oid, oid) in facts().casts


def coerce_typmod(
    expr: Expr, target: SqlType, context: CastContext, *, span: Span | None = None, hide: bool = False
) -> Expr:
    """Apply ``target.typmod`` to a value that already has type ``target.oid``.

    ``hide``: the conversion just below is part of the same written cast, so it does not print on its own.
    A target without typmod relabels a value that has one.
    """
    if expr.type.typmod == target.typmod:
        return expr
    if isinstance(expr, CollateExpr):
        return _under_collate(expr, coerce_typmod(expr.arg, target, context, span=span, hide=hide))
    explicit = context == CastContext.EXPLICIT
    if hide:
        expr = _hidden(expr)
    where = span or expr.span
    if target.typmod < 0:
        return RelabelType(arg=expr, type=target, explicit=explicit, span=where)
    if not has_typmod_cast(target.oid):
        return expr
    element = element_of(target.oid)
    if not element:
        return CoerceTypmod(arg=expr, type=target, explicit=explicit, span=where)
    placeholder = Var(type=SqlType(element, expr.type.typmod), range=-1, attnum=1, name="element")
    return ArrayCoerce(
        arg=expr,
        element=CoerceTypmod(arg=placeholder, type=SqlType(element, target.typmod), explicit=explicit),
        type=target,
        explicit=explicit,
        span=where,
    )


def _hidden(expr: Expr) -> Expr:
    """Return a conversion marked as implicit, which is how it prints: not at all."""
    if isinstance(expr, FuncExpr) and expr.cast == "explicit":
        return replace(expr, cast="implicit")
    if isinstance(expr, RelabelType | CoerceViaIO) and expr.explicit:
        return replace(expr, explicit=False)
    if isinstance(expr, ArrayCoerce) and expr.explicit:
        return replace(expr, explicit=False)
    return expr


def read_literal(const: Const, target: SqlType, env: CoerceEnv, *, span: Span | None = None) -> Expr:
    """Read an unknown literal as ``target`` (its typmod only where input needs it: interval).

    Names of relations, schemas and roles depend on the catalog, so those become a stable expression that is
    evaluated with the statement; they have to mean something now all the same. Raises what the type's input
    raises, at the literal's span.
    """
    oid = target.oid
    typmod = target.typmod if oid == INTERVAL else -1
    where = const.span or span
    if not has_input(oid, null=const.value is None):
        raise SqlError("0A000", f"cannot accept a value of type {format_type(oid)}", span=where)
    if const.value is None:
        return Const(type=SqlType(oid, typmod), value=None, span=where)
    text = str(const.value)
    base = element_of(oid) or oid
    if base in _BY_CATALOG and not is_oid_text(text, array=base != oid):
        try:
            env.check_name(oid, text)
        except SqlError as error:
            error.span = error.span or where
            raise
        if base != oid:
            return CoerceViaIO(
                arg=Const(type=SqlType(TEXT), value=text, span=where), type=SqlType(oid), span=where
            )
        return _catalog_name(text, oid, where)
    if base in SEARCH_NAMES:
        return _search_name(text, oid, base, where, env)
    if base in _DATETIME:
        _note_settings(text, base, env)
    try:
        value = text_input(oid, text, typmod, env.settings)
    except SqlError as error:  # of a domain's CHECK, say
        if error.span is None and error.query is None:
            error.span = where
        raise
    except DataError as error:
        raise SqlError(
            error.sqlstate, error.message, detail=error.detail, hint=error.hint, where=error.where, span=where
        ) from None
    return Const(type=SqlType(oid, typmod), value=value, span=where)


def is_oid_text(text: str, *, array: bool) -> bool:
    """Tell whether a text is a value of a reg* type, or an array of them as it is printed, that needs no
    catalog to be read: numbers.
    """
    return (_OIDS if array else _OID).fullmatch(text.strip()) is not None


_OID = re.compile(r"-|[0-9]+")
_OIDS = re.compile(r"\{(?:[0-9{},-]|NULL)*\}")


def _catalog_name(text: str, oid: int, span: Span | None) -> Expr:
    name = Const(type=SqlType(TEXT), value=text, span=span)
    cast = facts().casts.get((TEXT, oid))
    if cast is not None and cast.method == "f":
        return FuncExpr(proc=cast.func, args=(name,), type=SqlType(oid), cast="implicit", span=span)
    return CoerceViaIO(arg=name, type=SqlType(oid), span=span)


def _search_name(text: str, oid: int, base: int, span: Span | None, env: CoerceEnv) -> Const:
    """Return a regconfig or regdictionary, or an array of them: what it names now, as PostgreSQL has it."""
    element = functools.partial(env.search_name, base)
    try:
        value = element(text) if base == oid else array.parse(text, element)
    except DataError as error:
        raise SqlError(error.sqlstate, error.message, detail=error.detail, span=span) from None
    return Const(type=SqlType(oid), value=value, span=span)


def _note_settings(text: str, oid: int, env: CoerceEnv) -> None:
    """Record which settings the meaning of a date/time literal depends on."""
    if oid == INTERVAL:
        env.folded.add("intervalstyle")
        return
    env.folded.add("datestyle")
    if oid in (TIMESTAMPTZ, TIMETZ):
        env.folded.add("timezone")
    lowered = text.lower()
    if any(word in lowered for word in _MOVING_WORDS):
        env.folded.update(("now", "timezone"))


# --- what a place demands ---------------------------------------------------------------------------


def coerce_to_boolean(expr: Expr, construct: str, env: CoerceEnv) -> Expr:
    """Convert the argument of WHERE, AND, CASE/WHEN ... to boolean; 42804 in PostgreSQL's words."""
    return coerce_to_specific(expr, BOOL, construct, env)


def coerce_to_specific(expr: Expr, oid: int, construct: str, env: CoerceEnv) -> Expr:
    """Convert to ``oid`` as an assignment; 42804 ``argument of <construct> must be type ...``."""
    if expr.type.oid != oid:
        coerced = try_coerce(expr, SqlType(oid), CastContext.ASSIGNMENT, env)
        if coerced is None:
            raise SqlError(
                "42804",
                f"argument of {construct} must be type {format_type(oid)}, "
                f"not type {format_type(expr.type.oid)}",
                span=location(expr),
            )
        expr = coerced
    return expr


def resolve_unknown(expr: Expr, env: CoerceEnv) -> Expr:
    """Return an output expression whose type is settled: what is still unknown becomes text."""
    if expr.type.oid != UNKNOWN:
        return expr
    return coerce_type(expr, SqlType(TEXT), CastContext.IMPLICIT, env)
