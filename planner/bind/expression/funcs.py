"""Function calls: plain ones, aggregates, window functions, casts written as calls.

    bind_call   arguments -> resolve by name and types -> one of the four
    aggregates  belong to the query whose columns their arguments read (maybe an outer one)
    windows     OVER (...) enters a definition into ``Scope.windows``; equal ones are shared

What a name means where users have functions, too: ``planner.bind.expression.calls``. Argument notation is
positional, named, mixed or VARIADIC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.expression.calls import is_users_function, make_call, resolve_call
from planner.bind.expression.clauses import (
    check_aggregate,
    check_grouping,
    check_set,
    check_window,
    sets_in_call,
)
from planner.bind.expression.columns import is_row, row_columns, select_field
from planner.bind.expression.expr import bind_boolean, bind_clause, bind_expr, register
from planner.bind.query.sortgroup import sort_operators
from planner.bind.query.window import use_window
from planner.bind.scope import Scope, window_call_in
from planner.catalog.rights import RESTRICTED
from planner.conversion.casts import coerce, coerce_type
from planner.conversion.collations import COLLATION_FOR, COLLATIONS
from planner.conversion.common_types import coerce_all_to_common
from planner.conversion.composite import compose
from planner.conversion.order import default_equality, default_less
from planner.conversion.pathways import CastContext
from planner.conversion.resolve import ResolvedFunction, function_arguments, signature_text
from planner.facts import ANY, INT4, RECORD, TEXT, UNKNOWN, VOID, ProcFact, facts
from planner.functions.system.large_objects import CHANGING
from planner.query import (
    Aggregate,
    Const,
    Expr,
    FuncExpr,
    GroupingFunc,
    OwnAggregate,
    Param,
    RelabelType,
    SortBy,
    WindowFunc,
)
from planner.query.exprs import free_levels
from planner.query.location import location
from planner.query.walk import walk
from planner.types import SqlType
from planner.types.domains import base_oid
from planner.types.facts import element_of, format_type

# Functions of PostgreSQL take at most this many arguments.
MAX_ARGUMENTS = 100


def _func_call(scope: Scope, node: ast.FuncCall) -> Expr:
    return bind_call(scope, node)


def bind_call(scope: Scope, node: ast.FuncCall, *, in_from: bool = False) -> Expr:
    """Bind a call. ``in_from``: it stands as a FROM item, where it may return a set.

    Raises SqlError 42883, 42725, 42809 (decorations on the wrong kind of function), 42803, 42P20, 0A000.
    """
    span = node.span
    schema, name = _function_name(node)
    sets_before = scope.set_returning
    if node.filter is not None:
        filter_ = bind_boolean(scope, node.filter, "FILTER")
    else:
        filter_ = None
    args, names = bound_arguments(scope, node)
    order_args: list[Expr] = []
    if node.within_group:
        order_args = [bind_expr(scope, item.expr) for item in node.order]
    if len(node.args) > MAX_ARGUMENTS:
        raise SqlError("54023", f"cannot pass more than {MAX_ARGUMENTS} arguments to a function", span=span)
    if not scope.context.has_schema(schema, span):  # what is wrong with the arguments comes first
        raise SqlError("3F000", f'schema "{schema}" does not exist', span=span)
    types = [arg.type.oid for arg in [*args, *order_args]]
    try:
        found = _resolve(scope, node, schema, name, types, names, span)
    except SqlError as error:
        if error.sqlstate == "42883" and len(args) == 1 and not schema and _undecorated(node) and not names:
            columns = row_columns(scope, args[0]) if is_row(args[0]) else None
            if columns is not None and any(column == name for column, _ in columns):
                return select_field(scope, args[0], name, span)  # name(x) is x.name
        raise
    if found.kind == "cast":
        if not _undecorated(node):
            raise _not_aggregate(node, name, span)
        return coerce(args[0], SqlType(found.result), CastContext.EXPLICIT, scope.context.env, span=span)
    proc = found.fact
    if node.variadic and proc.variadic == ANY and not element_of(base_oid(args[-1].type.oid)):
        raise SqlError("42804", "VARIADIC argument must be an array", span=location(args[-1]))
    if proc.volatility == "v" and not is_users_function(proc.oid):
        scope.context.flags.add("volatile")
        if proc.oid in CHANGING:
            scope.context.flags |= {"calls", "changes"}
    if proc.kind == "a":
        return _aggregate(scope, node, found, args, order_args, filter_, sets_before)
    if proc.kind == "w":
        return _window_function(scope, node, found, args, filter_, sets_before)
    if proc.kind == "p":
        raise SqlError(
            "42809",
            f"{_shown(proc)} is a procedure",
            hint="To call a procedure, use CALL.",
            span=span,
        )
    if not _undecorated(node):
        raise _not_aggregate(node, name, span)
    if is_users_function(proc.oid):
        return users_call(scope, found, args, sets_before if in_from else None, span, names)
    if proc.oid in scope.context.catalog.guarded_functions:
        scope.context.flags.add(RESTRICTED)
    if proc.oid == COLLATION_FOR:
        scope.context.flags.add(COLLATIONS)
    made = function_arguments(found, args, scope.context.env)
    if proc.returns_set:
        if in_from:
            scope.set_returning = sets_before
        else:
            check_set(scope, span)
    return FuncExpr(
        type=SqlType(found.result),
        proc=proc.oid,
        args=_settled(scope, proc, made),
        variadic=found.variadic,
        returns_set=proc.returns_set,
        cast="sql" if node.sql_syntax else "call",
        named=_places(found, args, names) if names or (proc.defaults and not node.variadic) else (),
        span=span,
    )


def _places(
    found: ResolvedFunction, args: Sequence[Expr], names: Sequence[str]
) -> tuple[tuple[int, str], ...]:
    """Return which parameters the arguments are, the last of which were written with names."""
    all_names = [*[""] * (len(args) - len(names)), *names]
    return tuple([(found.sources.index(number), name) for number, name in enumerate(all_names)])


def users_call(
    scope: Scope,
    found: ResolvedFunction,
    args: Sequence[Expr],
    sets_in_from: bool | None,
    span: Span | None,
    names: Sequence[str] = (),
) -> Expr:
    """Return the call of a user's function; ``sets_in_from``: it stands as a FROM item."""
    call = make_call(scope, found, args, span)
    if names:
        call = replace(call, named=_places(found, args, names))
    scope.context.flags.add("function")
    if call.returns_set:
        if sets_in_from is None:
            check_set(scope, span)
        else:
            scope.set_returning = sets_in_from
    row = None
    if sets_in_from is None and call.type.oid == RECORD:
        row = scope.context.env.row_type(found.result)
    return call if row is None else compose(call, row, explicit=False, span=span)


def _function_name(node: ast.FuncCall) -> tuple[str, str]:
    if len(node.name) == 1:
        return "", node.name[0]
    return node.name[-2], node.name[-1]


def bound_arguments(scope: Scope, node: ast.FuncCall) -> tuple[list[Expr], list[str]]:
    """Return the arguments of a call, and the names of the last ones that have one.

    Parameters declared as void are none: that is how pgjdbc sends the OUT parameters of ``{? = call f(?)}``.
    """
    args: list[Expr] = []
    names: list[str] = []
    aggregate_clause = scope.clause
    for arg in node.args:
        if isinstance(arg, ast.NamedArg):
            if arg.name in names:
                raise SqlError("42601", f'argument name "{arg.name}" used more than once', span=arg.span)
            names.append(arg.name)
            args.append(bind_expr(scope, arg.arg))
        elif names:
            raise SqlError("42601", "positional argument cannot follow named argument", span=arg.span)
        else:
            bound = bind_expr(scope, arg)
            if not (isinstance(bound, Param) and bound.type.oid == VOID and not node.within_group):
                args.append(bound)
    scope.clause = aggregate_clause
    return args, names


def _undecorated(node: ast.FuncCall) -> bool:
    return not (
        node.star
        or node.distinct
        or node.within_group
        or node.order
        or node.filter is not None
        or node.over is not None
    )


def _not_aggregate(node: ast.FuncCall, name: str, span: Span | None) -> SqlError:
    shown = ".".join(node.name)
    if node.star:
        return SqlError("42809", f"{shown}(*) specified, but {shown} is not an aggregate function", span=span)
    for given, word in (
        (node.distinct, "DISTINCT"),
        (node.within_group, "WITHIN GROUP"),
        (bool(node.order), "ORDER BY"),
        (node.filter is not None, "FILTER"),
    ):
        if given:
            return SqlError("42809", f"{word} specified, but {shown} is not an aggregate function", span=span)
    return SqlError(
        "42809",
        f"OVER specified, but {shown} is not a window function nor an aggregate function",
        span=span,
    )


def _resolve(
    scope: Scope,
    node: ast.FuncCall,
    schema: str,
    name: str,
    types: Sequence[int],
    names: Sequence[str],
    span: Span | None,
) -> ResolvedFunction:
    if node.star and node.args:
        raise AssertionError("a call with * and arguments")
    return resolve_call(
        scope.context,
        schema,
        name,
        types,
        names=names,
        variadic=node.variadic,
        ordered=len(node.order) > 1 and not node.within_group,  # agg(x, ORDER BY y, z) was meant
        span=span,
    )


def _shown(proc: ProcFact) -> str:
    return f"{proc.name}({', '.join(format_type(t) for t in proc.arg_types)})"


def _settled(scope: Scope, proc: ProcFact, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Literals whose type nothing decided are text, except where the function asks for their type."""
    if not any(arg.type.oid == UNKNOWN for arg in args) or proc.name in ("pg_typeof", "pg_collation_for"):
        return args

    def settled(arg: Expr) -> Expr:
        if arg.type.oid != UNKNOWN or not isinstance(arg, Const):
            return arg
        made = coerce_type(arg, SqlType(TEXT), CastContext.IMPLICIT, scope.context.env)
        return replace(made, untyped=True) if isinstance(made, Const) else made

    return tuple([settled(arg) for arg in args])


def call_on(scope: Scope, name: str, arg: Expr, span: Span | None) -> Expr | None:
    """Return ``name(arg)`` for the notation ``arg.name``, or None when there is no such function or aggregate.

    Raises SqlError 42803 and others for aggregates where there may be none.
    """
    try:
        found = resolve_call(scope.context, "", name, [arg.type.oid], span=span)
    except SqlError:
        return None
    if found.kind == "cast" or found.fact.kind not in ("f", "a"):
        return None
    if found.fact.kind == "a":
        elsewhere = not any(isinstance(item, FuncExpr) and item.returns_set for item in walk(arg))
        return _aggregate(scope, ast.FuncCall(name=(name,), span=span), found, [arg], [], None, elsewhere)
    if is_users_function(found.fact.oid):
        return users_call(scope, found, [arg], None, span)
    if found.fact.oid in scope.context.catalog.guarded_functions:
        scope.context.flags.add(RESTRICTED)
    if found.fact.returns_set:
        check_set(scope, span)
    return FuncExpr(
        type=SqlType(found.result),
        proc=found.fact.oid,
        args=function_arguments(found, [arg], scope.context.env),
        returns_set=found.fact.returns_set,
        span=span,
    )


# --- aggregates ---------------------------------------------------------------------------------


def _aggregate(
    scope: Scope,
    node: ast.FuncCall,
    found: ResolvedFunction,
    args: list[Expr],
    order_args: list[Expr],
    filter_: Expr | None,
    sets_before: bool,
) -> Expr:
    span = node.span
    proc = found.fact
    shown = ".".join(node.name)
    own = _own_aggregate(scope, found)
    kind = facts().aggregates[proc.oid].kind if own is None else own.kind
    env = scope.context.env
    if kind == "n":
        if node.within_group:
            raise SqlError(
                "42809",
                f"{shown} is not an ordered-set aggregate, so it cannot have WITHIN GROUP",
                span=span,
            )
    else:
        _check_ordered_set(node, shown, kind, span)
    if not args and not node.star and kind == "n":
        raise SqlError(
            "42809", f"{shown}(*) must be used to call a parameterless aggregate function", span=span
        )
    if node.star and found.fact.arg_types:
        raise SqlError("42883", f"function {shown}() does not exist", span=span)
    made = function_arguments(found, [*args, *order_args], env)
    if kind == "h":
        made = _unify_hypothetical(scope, made, len(args), len(order_args), shown, span)
    made = _settled(scope, proc, made)
    if scope.set_returning and not sets_before:
        raise sets_in_call("window" if node.over is not None else "aggregate", scope.set_span)
    if node.over is not None:
        return _windowed_aggregate(scope, node, found, made, filter_)
    if kind == "n":
        direct: tuple[Expr, ...] = ()
        order = _aggregate_order(scope, node, args, made)
        if node.distinct:
            _check_distinct(scope, made)
    else:
        count = len(made) - len(order_args)
        direct, ordered = made[:count], made[count:]
        order = tuple(
            [sort_by(scope, expr, item, span) for expr, item in zip(ordered, node.order, strict=True)]
        )
        made = ()
    level = _aggregate_level((*made, *(key.expr for key in order), *((filter_,) if filter_ else ())))
    _check_direct(direct, level)
    owner = scope.at(level)
    check_aggregate(owner, span)
    owner.aggregates = True
    return Aggregate(
        type=SqlType(found.result),
        proc=proc.oid,
        args=made,
        star=node.star,
        distinct=node.distinct,
        order=order,
        filter=filter_,
        direct=direct,
        level=level,
        own=own,
        span=span,
    )


def _own_aggregate(scope: Scope, found: ResolvedFunction) -> OwnAggregate | None:
    """Return what is to be known of a user's aggregate in a call of it, None for a built-in one."""
    function = scope.context.catalog.function_by_oid(found.fact.oid)
    if function is None or function.aggregate is None:
        return None
    scope.context.flags.add("function")
    array = found.variadic and found.fact.variadic != ANY
    return OwnAggregate(schema=function.schema, name=function.name, kind=function.aggregate.kind, array=array)


def _no_window_calls(expr: Expr) -> None:
    window = window_call_in(expr)
    if window is not None:
        raise SqlError(
            "42803", "aggregate function calls cannot contain window function calls", span=window.span
        )


def _aggregate_level(exprs: Sequence[Expr]) -> int:
    """Return the level of the query an aggregate belongs to: the innermost one its arguments read."""
    levels: list[int] = []
    nested: list[tuple[int, Span | None]] = []
    for expr in exprs:
        columns, aggregates = free_levels(expr)
        levels += columns
        nested += aggregates
        _no_window_calls(expr)
    level = min([*levels, *[inner for inner, _ in nested]], default=0)
    for inner, place in nested:
        if inner == level:
            raise SqlError("42803", "aggregate function calls cannot be nested", span=place)
    return level


def _check_direct(exprs: Sequence[Expr], level: int) -> None:
    """Direct arguments are evaluated once per group: of the aggregate's own level, or further out."""
    for expr in exprs:
        columns, aggregates = free_levels(expr)
        _no_window_calls(expr)
        if any(inner < level for inner in columns):
            raise SqlError(
                "42803",
                "outer-level aggregate cannot contain a lower-level variable in its direct arguments",
                span=location(expr),
            )
        for inner, place in aggregates:
            if inner <= level:
                raise SqlError("42803", "aggregate function calls cannot be nested", span=place)


def _check_ordered_set(node: ast.FuncCall, shown: str, kind: str, span: Span | None) -> None:
    if not node.within_group:
        raise SqlError("42809", f"WITHIN GROUP is required for ordered-set aggregate {shown}", span=span)
    if node.over is not None:
        raise SqlError("0A000", f"OVER is not supported for ordered-set aggregate {shown}", span=span)
    if node.distinct:
        raise SqlError("42601", "cannot use DISTINCT with WITHIN GROUP", span=span)
    if node.variadic:
        raise SqlError("42601", "cannot use VARIADIC with WITHIN GROUP", span=span)


def _unify_hypothetical(
    scope: Scope, made: tuple[Expr, ...], direct: int, ordered: int, shown: str, span: Span | None
) -> tuple[Expr, ...]:
    """Give each direct argument of rank(...) WITHIN GROUP the type of its ORDER BY column, and back."""
    if direct != ordered:
        raise SqlError(
            "42883",
            f"function {signature_text(shown, [expr.type.oid for expr in made])} does not exist",
            hint=f"To use the hypothetical-set aggregate {shown}, the number of hypothetical direct arguments "
            f"(here {direct}) must match the number of ordering columns (here {ordered}).",
            span=span,
        )
    firsts, seconds = list(made[:direct]), list(made[direct:])
    for position in range(direct):
        pair, _ = coerce_all_to_common(
            [seconds[position], firsts[position]], "WITHIN GROUP", scope.context.env
        )
        seconds[position], firsts[position] = pair
    return (*firsts, *seconds)


def _stripped(expr: Expr) -> Expr:
    """Return what an implicit conversion was applied to."""
    if isinstance(expr, RelabelType) and not expr.explicit:
        return expr.arg
    if isinstance(expr, FuncExpr) and expr.cast == "implicit":
        return expr.args[0]
    return expr


def sort_by(scope: Scope, expr: Expr, item: ast.SortItem, span: Span | None) -> SortBy:
    """Return the ordering of a bound expression by an ORDER BY item. Raises 42883, 42809."""
    descending, lt, eq = sort_operators(
        expr.type.oid, item, item.expr.span or span, scope.context.env.row_type
    )
    nulls_first = item.nulls == "first" if item.nulls else descending
    return SortBy(expr=expr, descending=descending, nulls_first=nulls_first, lt=lt, eq=eq)


def _aggregate_order(
    scope: Scope, node: ast.FuncCall, args: Sequence[Expr], made: Sequence[Expr]
) -> tuple[SortBy, ...]:
    keys: list[SortBy] = []
    for item in node.order:
        expr = bind_clause(scope, item.expr, scope.clause)
        # the sort expression may be an argument before its conversion: then sort what is aggregated
        for arg in made:
            if expr == _stripped(arg):
                expr = arg
                break
        else:
            if node.distinct:
                raise SqlError(
                    "42P10",
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                    span=location(expr),
                )
        if expr.type.oid == UNKNOWN:
            expr = coerce_type(expr, SqlType(TEXT), CastContext.IMPLICIT, scope.context.env)
        key = sort_by(scope, expr, item, node.span)
        if not any(key.expr == other.expr for other in keys):
            keys.append(key)
    return tuple(keys)


def _check_distinct(scope: Scope, args: Sequence[Expr]) -> None:
    for arg in args:
        oid = TEXT if arg.type.oid == UNKNOWN else arg.type.oid
        default_equality(oid, arg.span, scope.context.env.row_type)
        default_less(oid, arg.span, scope.context.env.row_type)


# --- window functions ---------------------------------------------------------------------------


def _windowed_aggregate(
    scope: Scope,
    node: ast.FuncCall,
    found: ResolvedFunction,
    args: tuple[Expr, ...],
    filter_: Expr | None,
) -> Expr:
    if node.distinct:
        raise SqlError("0A000", "DISTINCT is not implemented for window functions", span=node.span)
    if node.order:
        raise SqlError("0A000", "aggregate ORDER BY is not implemented for window functions", span=node.span)
    return _window_call(scope, node, found, args, filter_, is_aggregate=True)


def _window_function(
    scope: Scope,
    node: ast.FuncCall,
    found: ResolvedFunction,
    args: list[Expr],
    filter_: Expr | None,
    sets_before: bool,
) -> Expr:
    span, shown = node.span, ".".join(node.name)
    if node.over is None:
        raise SqlError("42809", f"window function {shown} requires an OVER clause", span=span)
    if node.within_group:
        raise SqlError("42809", f"window function {shown} cannot have WITHIN GROUP", span=span)
    if node.star and not found.fact.arg_types:
        raise SqlError("42809", f"{shown}(*) specified, but {shown} is not an aggregate function", span=span)
    if node.distinct:
        raise SqlError("0A000", "DISTINCT is not implemented for window functions", span=span)
    if node.order:
        raise SqlError("0A000", "aggregate ORDER BY is not implemented for window functions", span=span)
    if filter_ is not None:
        raise SqlError("0A000", "FILTER is not implemented for non-aggregate window functions", span=span)
    if scope.set_returning and not sets_before:
        raise sets_in_call("window", scope.set_span)
    made = _settled(scope, found.fact, function_arguments(found, args, scope.context.env))
    return _window_call(scope, node, found, made, None, is_aggregate=False)


def _window_call(
    scope: Scope,
    node: ast.FuncCall,
    found: ResolvedFunction,
    args: tuple[Expr, ...],
    filter_: Expr | None,
    *,
    is_aggregate: bool,
) -> Expr:
    check_window(scope, node.span)
    for expr in (*args, *((filter_,) if filter_ is not None else ())):
        inner = window_call_in(expr)
        if inner is not None:
            raise SqlError("42P20", "window function calls cannot be nested", span=inner.span)
    if node.over is None:
        raise AssertionError("a window function has no OVER")
    window = use_window(scope, node.over)
    scope.window_calls = True
    return WindowFunc(
        type=SqlType(found.result),
        proc=found.fact.oid,
        args=args,
        window=window,
        star=node.star,
        is_aggregate=is_aggregate,
        filter=filter_,
        own=_own_aggregate(scope, found) if is_aggregate else None,
        span=node.span,
    )


# --- GROUPING -----------------------------------------------------------------------------------


def _grouping(scope: Scope, node: ast.Grouping) -> Expr:
    """Bind GROUPING(...): its arguments are matched later with the grouping expressions of the innermost
    query whose columns they read.
    """
    if len(node.args) > 31:
        raise SqlError("54023", "GROUPING must have fewer than 32 arguments", span=node.span)
    args = tuple([bind_expr(scope, arg) for arg in node.args])
    level = min([level for arg in args for level in free_levels(arg)[0]], default=0)
    owner = scope.at(level)
    check_grouping(owner, node.span)
    owner.aggregates = True
    return PendingGrouping(type=SqlType(INT4), indexes=(), level=level, args=args, span=node.span)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingGrouping(GroupingFunc):
    """GROUPING(...) before the grouping expressions are known; ``planner.bind.query.grouping`` replaces it."""

    args: tuple[Expr, ...] = ()


register(ast.FuncCall, _func_call)
register(ast.Grouping, _grouping)
