"""Coercion: whether and how a value of one type becomes another (manual chapter 10, pg_cast).

    WHERE id = '42'         unknown literal -> Const int4 42                  (read by the type's own codec)
    numeric_column + 1      integer -> numeric by pg_cast function            FuncExpr numeric(int4), implicit
    'x'::text -> varchar    binary coercible                                  RelabelType
    text -> json            no pg_cast row, string source, explicit           CoerceViaIO
    integer[] -> text[]     element by element                                ArrayCoerce
    ... into varchar(3)     then the length                                   CoerceTypmod

Three contexts, each allowing what the one before does: IMPLICIT (operators, function arguments), ASSIGNMENT
(INSERT, UPDATE), EXPLICIT (``::``). The order of tests below is PostgreSQL's. Untyped ``$n`` take the type
the first coercion asks for; ``ParamTypes`` remembers it.

Promise: a bound tree never contains a value that its type's input function would refuse, and a literal that
is refused is reported with its own span.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pgwire.codecs import array
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_input
from pgwire.codecs.settings import CodecSettings
from planner.base.errors import Span, SqlError
from planner.catalog import RowType
from planner.conversion.composite import decomposed, is_composite, is_row_of, note_typed, row_as, typed_row
from planner.conversion.polymorphic import POLYMORPHIC, consistent
from planner.facts import (
    ANY,
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLENONARRAY,
    ANYELEMENT,
    ANYENUM,
    ANYMULTIRANGE,
    ANYNONARRAY,
    ANYRANGE,
    BOOL,
    DATE,
    INT2VECTOR,
    INT4,
    INTERNAL,
    INTERVAL,
    OIDVECTOR,
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
    RowExpr,
    Var,
)
from planner.query.location import location
from planner.textsearch.names import SEARCH_NAMES, read_stored
from planner.types import SqlType
from planner.types.domains import base_oid, base_type, is_domain, names_domain, plain_type
from planner.types.facts import (
    STRING,
    category,
    element_of,
    format_type,
    has_input,
    plain_collation,
    type_kind,
)

RECORD_ARRAY = 2287
ACLITEM = 1033
# numbered parameters a statement may have: the wire's Bind message counts them in 16 bits
MAX_PARAMS = 65535

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


class CastContext(enum.IntEnum):
    """How willingly a value is converted; a larger context allows all that a smaller one does."""

    IMPLICIT = 0
    ASSIGNMENT = 1
    EXPLICIT = 2


_ALLOWED_FROM = {"i": CastContext.IMPLICIT, "a": CastContext.ASSIGNMENT, "e": CastContext.EXPLICIT}


class ParamTypes:
    """The types of ``$1`` .. ``$n`` while one statement is bound.

    Oid 0 (or unknown) is open until a coercion or ``finish`` settles it. With ``variable`` False only the
    declared ones exist, and any other number is 42P02.
    """

    __slots__ = ("types", "unsettled", "variable")

    def __init__(self, declared: Sequence[int] = (), *, variable: bool = True) -> None:
        """Start with the client's declared types (0 = not declared)."""
        self.types: list[int] = [UNKNOWN if oid == 0 else oid for oid in declared]
        self.variable = variable
        self.unsettled: dict[int, Span | None] = {}

    def left_open(self, expr: Expr) -> None:
        """Note that a place takes a parameter of any type: one that gets its type later in the statement is
        refused (``finish``).
        """
        parts = expr.fields if isinstance(expr, RowExpr) else (expr,)
        for part in parts:
            if isinstance(part, Param) and part.type.oid == UNKNOWN:
                self.unsettled.setdefault(part.number, part.span)

    def reference(self, number: int, span: Span | None = None) -> Param:
        """Return the Param for ``$number``, of unknown type while it is open. Raises 42P02."""
        if number < 1 or number > MAX_PARAMS or (not self.variable and number > len(self.types)):
            raise SqlError("42P02", f"there is no parameter ${number}", span=span)
        while len(self.types) < number:
            self.types.append(UNKNOWN)
        return Param(type=SqlType(self.types[number - 1]), number=number, span=span)

    def deduce(self, param: Param, target: int, span: Span | None = None) -> Param:
        """Settle an open parameter as ``target``; 42P08 if it was settled differently before."""
        known = self.types[param.number - 1]
        if known == UNKNOWN:
            self.types[param.number - 1] = target
        elif known != target:
            raise SqlError(
                "42P08",
                f"inconsistent types deduced for parameter ${param.number}",
                detail=f"{format_type(known)} versus {format_type(target)}",
                span=param.span or span,
            )
        return replace(param, type=SqlType(target))

    def finish(self) -> tuple[int, ...]:
        """Return all types; 42P18 when one is still open, 42P08 when one was where it was met first (``$1 IS
        NULL OR a = $1``).
        """
        for number, span in self.unsettled.items():
            if self.types[number - 1] != UNKNOWN:
                raise SqlError("42P08", f"could not determine data type of parameter ${number}", span=span)
        for index, oid in enumerate(self.types):
            if oid == UNKNOWN:
                raise SqlError("42P18", f"could not determine data type of parameter ${index + 1}")
        return tuple(self.types)


@dataclass(slots=True)
class CoerceEnv:
    """What coercions of one statement share.

    ``folded`` collects the lower-case names of settings that a literal was read under (datestyle, timezone,
    intervalstyle), plus ``now`` when it named the current time: such a plan is good for that value only.
    ``row_type``: what attributes composite types have. ``check_name``: raises what is wrong with the name of
    an object in a literal of the statement's own text, by the oid of the type (reg* and arrays of them).
    ``whole_rows``: what the anonymous rows of entries of FROM are made of, for the one place that asks: a
    cast to a composite type. By identity, as equal Vars of two sub-queries differ in what they stand for; the
    Var is kept so that its identity is. ``extensions``: those whose operators are found. ``search_name``:
    reads a regconfig or regdictionary by the oid of the type.
    """

    settings: CodecSettings
    params: ParamTypes
    folded: set[str] = field(default_factory=set)
    row_type: Callable[[int], RowType | None] = field(default=lambda oid: None)
    check_name: Callable[[int, str], object] = field(default=lambda oid, text: None)
    search_name: Callable[[int, str], int] = field(default=read_stored)
    whole_rows: dict[int, tuple[Expr, Callable[[], RowExpr]]] = field(default_factory=dict)
    extensions: tuple[str, ...] = ()


PathKind = Literal["relabel", "function", "io", "array", "row"]


@dataclass(frozen=True, slots=True)
class Pathway:
    """How a cast is done: ``proc`` is the pg_proc oid of kind "function", else 0."""

    kind: PathKind
    proc: int = 0


_RELABEL, _IO, _ARRAY, _ROW = Pathway("relabel"), Pathway("io"), Pathway("array"), Pathway("row")


@functools.lru_cache(maxsize=65536)
def find_pathway(source: int, target: int, context: CastContext) -> Pathway | None:
    """Return the way from ``source`` to ``target`` that ``context`` allows, or None."""
    source, target = base_oid(source), base_oid(target)
    if source == target:
        return _RELABEL
    if (source == RECORD and is_composite(target)) or (target == RECORD and is_composite(source)):
        return _ROW
    cast = facts().casts.get((source, target))
    if cast is not None:
        if context < _ALLOWED_FROM[cast.context]:
            return None
        if cast.method == "f":
            return Pathway("function", cast.func)
        return _RELABEL if cast.method == "b" else _IO
    if target not in (OIDVECTOR, INT2VECTOR):
        source_element, target_element = element_of(source), element_of(target)
        both = source_element and target_element
        found = find_pathway(source_element, target_element, context) if both else None
        # records are made rows of a type one by one, where each has its columns to be seen
        if found is not None and not (found is _ROW and base_oid(source_element) == RECORD):
            return _ARRAY
    if context >= CastContext.ASSIGNMENT and category(target) == STRING:
        return _IO
    if context >= CastContext.EXPLICIT and category(source) == STRING:
        return _IO
    return None


def register_typed(row: int, of: int) -> None:
    """Make known that the rows of a table, whose type is ``row``, are those of the composite type ``of``.

    For ever, like all that is known of types: rows of a table that is of it no more are compared column by
    column when they are cast.
    """
    if note_typed(row, of):
        for judged in (can_coerce, can_coerce_all):
            judged.cache_clear()


_BY_KIND = {ANYENUM: "e", ANYRANGE: "r", ANYMULTIRANGE: "m"}


def is_binary_coercible(source: int, target: int) -> bool:
    """Tell whether a ``source`` value is a ``target`` value as it stands."""
    if source == target or target in (ANY, ANYELEMENT, ANYCOMPATIBLE):
        return True
    source = base_oid(source)
    if source == target:
        return True
    if target == ANYARRAY:
        return element_of(source) != 0
    if target in (ANYNONARRAY, ANYCOMPATIBLENONARRAY):
        return element_of(source) == 0
    if target == RECORD:
        return is_composite(source)
    if target in _BY_KIND:
        return type_kind(source) == _BY_KIND[target]
    cast = facts().casts.get((source, target))
    return cast is not None and cast.method == "b" and cast.context == "i"


@functools.lru_cache(maxsize=65536)
def can_coerce(source: int, target: int, context: CastContext) -> bool:
    """Tell whether one value can be coerced; polymorphic targets are judged alone."""
    return can_coerce_all((source,), (target,), context)


@functools.lru_cache(maxsize=65536)
def can_coerce_all(sources: tuple[int, ...], targets: tuple[int, ...], context: CastContext) -> bool:
    """Tell whether each source can become its target, polymorphic targets consistently."""
    generic = False
    for source, target in zip(sources, targets, strict=True):
        if source == target or target == ANY:
            continue
        if target in POLYMORPHIC:
            generic = True
        elif (source == UNKNOWN and target != INTERNAL) or is_row_of(source, target):
            continue
        elif find_pathway(source, target, context) is None:
            return False
    return not generic or consistent(sources, targets)


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
