"""Pieces of a PL/pgSQL body bound as statements, values converted as assignments convert them, parts of
variables replaced.

n := price * 2      Piece "price * 2"     ->  SELECT $1 * 2, of numeric
numeric -> integer    ->  a function from the value to the rounded one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pgwire.codecs.domain import VECTORS
from pgwire.codecs.errors import DataError
from planner import ast
from planner import statements as st
from planner.base.errors import Span, SqlError
from planner.bind import bind_node, envelope
from planner.bind.change.assign_part import with_part
from planner.bind.change.current_of import for_cursor
from planner.bind.context import BindContext
from planner.bind.expression.subscripts import subscripts_of
from planner.bind.query.fetched import as_asked
from planner.bind.scope import Scope
from planner.bind.stored.bodies import is_simple
from planner.conversion.casts import coerce_typmod, try_coerce
from planner.conversion.env import CoerceEnv, ParamTypes
from planner.conversion.pathways import CastContext
from planner.evaluate import Layout, RowFunction, compile_expr, compile_predicate, compile_row
from planner.facts import HSTORE, INT4, INT8, JSONB, RECORD, TEXT
from planner.parse import ALONE, parse
from planner.plpgsql.stream import PREFIX, parse_piece
from planner.plpgsql.tree import Piece, Target
from planner.plpgsql.variables import Source, VariableNames
from planner.query import (
    ArrayAssign,
    ArrayCoerce,
    CoerceViaIO,
    Const,
    Delete,
    Expr,
    Insert,
    Param,
    RelabelType,
    RowExpr,
    Select,
    SqlCall,
    SubLink,
    Update,
    Values,
    Var,
)
from planner.query.rewrite import replace_children
from planner.query.walk import walk
from planner.rules.fold import fold
from planner.rules.plain import without_domains
from planner.types import SqlType
from planner.types.domains import base_oid, base_type, is_domain, plain_type
from planner.types.facts import element_of

_ONE_VALUE: Final = "SELECT NULL"
_FEW: Final = 2
"""Rows of a change that INTO looks at."""
VALUE: Final = Source(-1)
"""Stands for the value that is assigned, among the sources of a part's new whole."""


def bind_piece(
    context: BindContext, piece: Piece, names: VariableNames
) -> tuple[ast.StatementNode, st.BoundStatement, tuple[int, ...]]:
    """Return the tree of a piece, what it means, and the types of the fields of the row that it is, if some
    are domains. Spans of errors count in its text, which they name.

    Raises SqlError as binding does, 42702 and 55000 as ``VariableNames``, 0A000 for statements that no
    function may run.
    """
    prefix = PREFIX if piece.kind == "expression" else ""
    read = False
    try:
        node = parse_piece(piece)
        _check(node)
        read = True
        text = prefix + piece.text
        if names.zero_based:
            node = _shifted(node, names)
        inner = replace(context, text=text, env=replace(context.env, params=names.params), variables=names)
        bound = bind_node(inner, node)
        if piece.keeps:
            bound = for_cursor(inner, bound)
        elif piece.loops:
            bound = of_loop(bound)
        elif piece.few:
            bound = _of_few(inner, bound)
        fields = _row_fields(bound)
        return node, envelope(node, text, inner, bound), fields
    except SqlError as error:
        if error is names.refusal:
            error.span, error.where, names.refusal = None, piece.words, None
        elif error.span is not None and error.query is None:
            error.query = piece.target + piece.text
            moved = len(piece.target) - len(prefix)
            error.span = Span(error.span.start + moved, error.span.end + moved)
        elif read and error.span is None and error.where is None:
            error.where = piece.words  # what has no place in the text is told to be of it
        raise
    except DataError as error:
        if error.where is None:
            error.where = piece.words  # a constant could not be computed
        raise


def _row_fields(bound: st.Statement) -> tuple[int, ...]:
    """Return the types of the fields of an expression that is a row, where some are domains; nothing for others."""
    row: Any = bound
    while isinstance(row, st.QueryStatement | SubLink):  # or what a sub-select gives
        query = row.query
        row = query.targets[0].expr if isinstance(query, Select) and len(query.targets) == 1 else None
    if not isinstance(row, RowExpr) or row.type.oid != RECORD:
        return ()
    types = tuple([field.type.oid for field in row.fields])
    return types if any(map(is_domain, types)) else ()


def of_loop(bound: st.Statement) -> st.Statement:
    """Return a statement as a loop over its rows reads it: a query is begun by the first of them, and goes on
    as they are asked for.
    """
    if not isinstance(bound, st.QueryStatement):
        return bound
    return replace(bound, query=as_asked(bound.query), fetched=True)


def _of_few(context: BindContext, bound: st.Statement) -> st.Statement:
    """Return a statement of whose rows INTO takes one: a change ends behind the second, with which it fails.

    Where a row may come of several, or none, nobody knows before how many of them make two.
    """
    if isinstance(bound, st.QueryStatement):
        return replace(bound, query=as_asked(bound.query))
    if not isinstance(bound, Insert | Update | Delete) or not bound.returning:
        return bound
    source, relation = bound.source, context.catalog.relation_by_oid(bound.table)
    if source is None or source.limit is not None or source.offset is not None or relation is None:
        return bound
    if isinstance(bound, Insert):
        alone = bound.on_conflict is None and not (isinstance(source, Values) and len(source.rows) <= _FEW)
    else:
        alone = len(source.ranges) == 1 if isinstance(source, Select) else False
    if not alone or any(trigger.row and trigger.timing in "bi" for trigger in relation.triggers):
        return bound
    few: Any = replace(as_asked(source), limit=Const(type=SqlType(INT8), value=_FEW))
    return replace(bound, source=few)


def _shifted(node: object, names: VariableNames) -> Any:
    """Return a tree in which subscripts of arrays that begin at 0 (TG_ARGV) are counted from 1, as arrays here do."""
    node = replace_children(node, lambda child: _shifted(child, names))
    if not isinstance(node, ast.Indirection) or not isinstance(node.arg, ast.ColumnRef):
        return node
    found = names.names.find(node.arg.names, names.variables)
    if found is None or found[0] not in names.zero_based:
        return node
    steps = tuple(
        replace(s, lower=_next(s.lower), upper=_next(s.upper)) if isinstance(s, ast.SubscriptStep) else s
        for s in node.steps
    )
    return replace(node, steps=steps)


def _next(index: ast.Expression | None) -> ast.Expression | None:
    one = ast.Constant(kind="int", value=1)
    return None if index is None else ast.Operator(name=("+",), left=index, right=one, span=index.span)


def _check(node: ast.StatementNode) -> None:
    if isinstance(node, ast.Transaction):
        raise SqlError("0A000", "unsupported transaction command in PL/pgSQL")
    if isinstance(node, ast.Copy) and node.filename is None:
        raise SqlError("0A000", "cannot COPY to/from client in PL/pgSQL")


def expressions_of(bound: st.BoundStatement) -> RowFunction | None:
    """Return what gives the values of a query that reads nothing, as a tuple; None where it has to be run as
    a query.
    """
    statement = bound.statement
    if not isinstance(statement, st.QueryStatement) or bound.reads or bound.uses_virtual:
        return None
    query = statement.query
    if not isinstance(query, Select) or not is_simple(query):
        return None
    if any(isinstance(node, SubLink) for target in query.targets for node in walk(target.expr)):
        return None
    return compile_row([target.expr for target in query.targets if not target.junk])


# --- pieces over the variables themselves ---------------------------------------------------------


def direct_value(
    env: CoerceEnv, bound: st.BoundStatement, sources: Sequence[Source], target: SqlType | None
) -> RowFunction | None:
    """Return what gives the value of a piece over the list of a call's variables, as an assignment to
    ``target`` makes it.

    ``sources``: those of its parameters, all of them whole variables. None where it is no plain expression.
    Raises SqlError 42846.
    """
    expr = only_target(bound)
    if expr is None:
        return None
    made = expr if target is None or expr.type == target else assigned(env, expr, target)
    return compile_expr(fold(without_domains(_over_variables(made, sources))), _layout(sources))


def direct_test(bound: st.BoundStatement, sources: Sequence[Source]) -> RowFunction:
    """As ``direct_value`` of a boolean piece: what is true where it is TRUE."""
    expr = only_target(bound)
    if expr is None:
        raise AssertionError("a condition has no only target")
    return compile_predicate([_over_variables(expr, sources)], _layout(sources))


def only_target(bound: st.BoundStatement) -> Expr | None:
    """Return the first expression of a query's select list, None for what has none."""
    statement = bound.statement
    if not isinstance(statement, st.QueryStatement) or not isinstance(statement.query, Select):
        return None
    return next((target.expr for target in statement.query.targets if not target.junk), None)


def _over_variables(node: object, sources: Sequence[Source]) -> Any:
    if isinstance(node, Param):
        number = sources[node.number - 1].variable
        return Var(type=node.type, range=0, attnum=number + 1, name="")
    return replace_children(node, lambda child: _over_variables(child, sources))


def _layout(sources: Sequence[Source]) -> Layout:
    return Layout(columns={(0, source.variable + 1): source.variable for source in sources})


# --- conversions ----------------------------------------------------------------------------------


def assignment_cast(env: CoerceEnv, source: SqlType, target: SqlType) -> RowFunction | None:
    """Return the function of ``$1`` that makes a value fit a variable; None where it fits as it is.

    By a cast that assignments may use, else by printing and reading (manual 43.5.1). Raises SqlError 42846.
    """
    own = replace(env, params=ParamTypes((source.oid,), variable=False))
    under = base_type(source)
    value: Expr = Param(type=under, number=1)
    if under != source:
        value = RelabelType(type=source, arg=value)
    made = assigned(own, value, target)
    if made is value:
        return None
    relabelled = (
        isinstance(made, RelabelType) and made.arg is value and base_oid(made.type.oid) == made.type.oid
    )
    if relabelled and INT4 not in (
        under.oid,
        made.type.oid,
    ):  # as which an oid reads its four bytes otherwise
        return None
    return compile_expr(fold(without_domains(made)))


def assigned(env: CoerceEnv, value: Expr, target: SqlType) -> Expr:
    """Return a value as assignments convert it to ``target``. Raises SqlError 42846."""
    if value.type.oid == target.oid and target.typmod < 0:
        return value
    record = value.type.oid == RECORD and isinstance(value, Var)  # of which no columns are known
    made = None if record else try_coerce(value, target, CastContext.ASSIGNMENT, env)
    if made is None:
        plain = plain_type(target)
        made = _by_elements(env, value, plain)
        if made is None:
            made = CoerceViaIO(type=SqlType(plain.oid), arg=value, explicit=False)
        made = coerce_typmod(made, plain, CastContext.ASSIGNMENT)
        if plain.oid != target.oid:
            made = try_coerce(made, target, CastContext.ASSIGNMENT, env)
            if made is None:
                raise AssertionError("a value that was assignable is not coerced")
    return made


def _by_elements(env: CoerceEnv, value: Expr, target: SqlType) -> Expr | None:
    """Return an array whose elements are converted as assignments do, None where one of the two is no array."""
    source = base_type(value.type)
    given, wanted = element_of(source.oid), element_of(target.oid)
    if not given or not wanted or target.oid in VECTORS:
        return None
    placeholder = Var(type=SqlType(given, source.typmod), range=-1, attnum=1, name="element")
    element = assigned(env, placeholder, SqlType(wanted, target.typmod))
    return ArrayCoerce(
        arg=value, element=element, type=SqlType(target.oid, element.type.typmod), explicit=False
    )


# --- parts ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Subscripts:
    """The subscripts of an assignment to a part: ``function`` computes them, ``kinds`` says of what each is one."""

    function: RowFunction
    kinds: tuple[str, ...]


@dataclass(slots=True)
class Part:
    """The new whole of a variable a part of which is assigned to: ``function`` of ``sources``, with a value
    of ``type``.

    ``subscripts``: computes those of ``function``, whose NULLs are told before a value is computed.
    Subscripts with sub-selects or calls of users' functions are a query, ``bound``, in the place of the
    function. ``made``: the new whole as an expression.
    """

    function: RowFunction | None
    sources: list[Source]
    type: SqlType
    made: Expr
    bound: st.BoundStatement | None = None
    subscripts: Subscripts | None = None


def bind_part(
    context: BindContext,
    target: Target,
    whole: SqlType,
    name: str,
    names: VariableNames,
    source: Source,
    skip: int,
) -> Part:
    """Return how a part of ``source``, which is of type ``whole``, is replaced; the first ``skip`` steps lead to it.

    Raises SqlError 42804, 42703 as assignments to parts do, and what the subscripts raise.
    """
    inner = replace(context, env=replace(context.env, params=names.params), variables=names)
    scope = Scope(context=inner)
    steps = target.steps[skip:]
    old = names.param(source, whole)
    type_ = _leaf(scope, whole, steps)
    value = names.param(VALUE, type_)
    written = Span(len(ALONE), len(ALONE) + len(target.text))
    made = with_part(scope, old, name, whole, steps, value, written)
    if any(isinstance(node, SubLink | SqlCall) for node in walk(made)):
        return Part(None, names.sources, type_, made, _as_query(inner, made))
    plain = fold(without_domains(made))
    return Part(compile_expr(plain), names.sources, type_, made, subscripts=_subscripts(plain))


def _subscripts(made: Expr) -> Subscripts | None:
    """Return what computes the subscripts of arrays and jsonb that are assigned to; None where all are constants."""
    asked: list[Expr] = []
    kinds: list[str] = []
    for node in walk(made):
        if isinstance(node, ArrayAssign) and node.type.oid != HSTORE:
            found = [expr for pair in node.indexes for expr in pair if expr is not None]
            asked += found
            kinds += ["jsonb" if node.type.oid == JSONB else "array"] * len(found)
    if all(isinstance(expr, Const) for expr in asked):
        return None
    return Subscripts(compile_row(asked), tuple(kinds))


def _as_query(context: BindContext, expr: Expr) -> st.BoundStatement:
    """Return the query of one row that gives an expression's value."""
    (parsed,) = parse(_ONE_VALUE)
    bound = bind_node(context, parsed.statement)
    if not isinstance(bound, st.QueryStatement):
        raise AssertionError(f"a query is bound as {type(bound).__name__}")
    if not isinstance(bound.query, Select):
        raise AssertionError(f"an expression is bound as {type(bound.query).__name__}")
    (target,), (column,) = bound.query.targets, bound.query.columns
    query = replace(
        bound.query, targets=(replace(target, expr=expr),), columns=(replace(column, type=expr.type),)
    )
    return envelope(parsed.statement, _ONE_VALUE, context, st.QueryStatement(query=query))


def _leaf(scope: Scope, whole: SqlType, steps: tuple[str | ast.SubscriptStep, ...]) -> SqlType:
    """Return the type of the part that steps lead to; that of the whole where ``with_part`` will refuse them."""
    at = 0
    while at < len(steps):
        step = steps[at]
        whole = base_type(whole)
        if isinstance(step, str):
            row = scope.context.env.row_type(whole.oid)
            found = [] if row is None else [c for c in row.live if c.name == step]
            if not found:
                return whole
            whole = found[0].declared
            at += 1
            continue
        subscripts = []
        while at < len(steps) and isinstance(found_step := steps[at], ast.SubscriptStep):
            subscripts.append(found_step)
            at += 1
        if whole.oid in (JSONB, HSTORE):  # a part of a jsonb is one, too
            whole = SqlType(TEXT) if whole.oid == HSTORE else whole
            continue
        element, _, is_slice = subscripts_of(scope, whole.oid, subscripts, None)
        whole = whole if is_slice else SqlType(element, whole.typmod)
    return whole
