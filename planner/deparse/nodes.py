"""How each kind of bound expression prints: one function per node of the Query tree.

``planner.deparse.expr`` has the printer they write to and the rules for parentheses; importing this module
completes it. A function gets (printer, node, implicit); ``implicit`` says whether an implicit cast at the top
of the node is written out.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.base.errors import SqlError
from planner.base.quoting import quote_identifier
from planner.conversion.casts import RECORD_ARRAY
from planner.deparse.expr import (
    INDENT_COLUMN,
    NODES,
    Printer,
    collation_name,
    is_domain_value,
    is_whole_row,
    stored_function,
    subscripted,
)
from planner.deparse.syntax import sql_syntax, without_defaults
from planner.facts import (
    ANY,
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
    facts,
)
from planner.query import (
    Aggregate,
    ArrayCoerce,
    ArrayExpr,
    BooleanTest,
    BoolExpr,
    CaseExpr,
    CoalesceExpr,
    CoerceToDomain,
    CoerceTypmod,
    CoerceViaIO,
    CollateExpr,
    ComposeRow,
    Const,
    CurrentSetting,
    DecomposeRow,
    DistinctExpr,
    Expr,
    FieldSelect,
    FuncExpr,
    GroupingFunc,
    MinMaxExpr,
    NullIf,
    NullTest,
    OpExpr,
    Param,
    RelabelType,
    RowCompare,
    RowExpr,
    ScalarArrayOp,
    SqlCall,
    SubLink,
    SubLinkKind,
    Subscript,
    Var,
    WindowFunc,
)
from planner.query.rewrite import shift_levels
from planner.types.facts import FIRST_USER_OID, element_of


def _operator_name(op: int) -> str:
    return facts().operators[op].name


def _var(p: Printer, e: Var, implicit: bool) -> None:
    p.var(e)


def _const(p: Printer, e: Const, implicit: bool) -> None:
    p.const(e)


def _param(p: Printer, e: Param, implicit: bool) -> None:
    name = p.parameters[e.number - 1] if e.number <= len(p.parameters) else ""
    if name and p.function and any(level.ranges or level.unites or level.values for level in p.levels):
        p.out += f"{quote_identifier(p.function)}."
    p.out += quote_identifier(name) if name else f"${e.number}"


def _op(p: Printer, e: OpExpr, implicit: bool) -> None:
    container = subscripted(e)
    if container is not None:
        _subscripts(p, container, [(None, key) for key in e.keys], False, implicit)
        return
    p.open()
    if len(e.args) == 2:
        p.paren(e.args[0], True, e)
        p.out += f" {_operator_name(e.op)} "
        p.paren(e.args[1], True, e)
    else:
        name, [arg] = _operator_name(e.op), e.args
        p.out += f"{name} "
        if name == "-" and isinstance(arg, Const) and p.function_name is stored_function:
            p.const(arg, 1)  # a bare number would be read as one with its sign
        else:
            p.paren(arg, True, e)
    p.close()


_CATALOG_NAMES = frozenset(
    (REGPROC, REGPROCEDURE, REGOPER, REGOPERATOR, REGCLASS, REGTYPE, REGNAMESPACE, REGROLE, REGCOLLATION)
)


def _is_catalog_name(e: Expr, arg: Expr) -> bool:
    """Tell whether a cast is how ``'name'::regclass`` was bound: a literal read when it is evaluated."""
    return (element_of(e.type.oid) or e.type.oid) in _CATALOG_NAMES and isinstance(arg, Const)


def _func(p: Printer, e: FuncExpr, implicit: bool) -> None:
    if e.cast == "implicit" and _is_catalog_name(e, e.args[0]):
        p.const(e.args[0], -1)  # type: ignore[arg-type]
        p.out += f"::{p.type_name(e.type.oid, None)}"
        return
    if e.cast == "implicit" and not implicit:
        p.paren(e.args[0], False, e)
    elif e.cast in ("implicit", "explicit"):
        p.cast(e.args[0], e.type.oid, e.type.typmod if len(e.args) > 1 else -1, e)
    elif e.cast == "sql" and sql_syntax(p, e):
        return
    else:
        name = facts().procs[e.proc].name
        p.out += (
            quote_identifier(name) if e.proc < FIRST_USER_OID else p.function_name(e.proc, "", name)
        ) + "("
        _arguments(p, e.args if e.named else without_defaults(e), e.variadic, e.named)
        p.out += ")"


def _sql_call(p: Printer, e: SqlCall, implicit: bool) -> None:
    p.out += p.function_name(e.proc, e.schema, e.name) + "("
    args = e.args if e.named else e.args[: len(e.args) - e.defaulted]
    _arguments(p, args, e.variadic, e.named)
    p.out += ")"


def _arguments(
    p: Printer, args: Sequence[Expr], variadic: bool, named: Sequence[tuple[int, str]] = ()
) -> None:
    names = [""] * len(args)
    if named:
        args, names = [args[place] for place, _ in named], [name for _, name in named]
    for index, (name, arg) in enumerate(zip(names, args, strict=True)):
        if index:
            p.out += ", "
        if name:
            p.out += f"{quote_identifier(name)} => "
        if variadic and index == len(args) - 1:
            p.out += "VARIADIC "
        p.expr(arg)


def _cast_node(
    p: Printer, e: RelabelType | CoerceViaIO | CoerceTypmod | CoerceToDomain | ArrayCoerce, implicit: bool
) -> None:
    if isinstance(e, CoerceViaIO) and not e.explicit and _is_catalog_name(e, e.arg):
        p.const(e.arg, -1)  # type: ignore[arg-type]
        p.out += f"::{p.type_name(e.type.oid, None)}"
    elif isinstance(e, ArrayCoerce) and e.literal and isinstance(e.arg, Const):
        p.const(e.arg, -1)
        p.out += f"::{p.type_name(e.type.oid, e.type.typmod)}"
    elif not e.explicit and (not implicit or e.type.oid == RECORD_ARRAY):
        p.paren(e.arg, False, e)  # rows of any type are compared as they stand: no cast to records is written
    elif isinstance(e, CoerceToDomain):
        # the length that the domain has is not written
        arg = e.arg.arg if isinstance(e.arg, CoerceTypmod) else e.arg
        p.cast(arg, e.domain, -1, e)
    else:
        p.cast(e.arg, e.type.oid, e.type.typmod, e)


def _collate(p: Printer, e: CollateExpr, implicit: bool) -> None:
    p.open()
    p.paren(e.arg, implicit, e)
    p.out += f" COLLATE {collation_name(e.collation, p.function_name)}"
    p.close()


def _bool(p: Printer, e: BoolExpr, implicit: bool) -> None:
    p.open()
    if e.kind == "not":
        p.out += "NOT "
        p.paren(e.args[0], False, e)
    else:
        for index, arg in enumerate(e.args):
            p.out += f" {e.kind.upper()} " if index else ""
            p.paren(arg, False, e)
    p.close()


def _null_test(p: Printer, e: NullTest, implicit: bool) -> None:
    p.open()
    p.paren(e.arg, True, e)
    if e.whole:
        p.out += " IS DISTINCT FROM NULL" if e.negated else " IS NOT DISTINCT FROM NULL"
    else:
        p.out += " IS NOT NULL" if e.negated else " IS NULL"
    p.close()


def _boolean_test(p: Printer, e: BooleanTest, implicit: bool) -> None:
    p.open()
    p.paren(e.arg, False, e)
    p.out += f" IS {'NOT ' if e.negated else ''}{e.test.upper()}"
    p.close()


def _distinct(p: Printer, e: DistinctExpr, implicit: bool) -> None:
    if e.negated:
        p.open()
        p.out += "NOT "
    p.open()
    p.paren(e.left, True, e)
    p.out += " IS DISTINCT FROM "
    p.paren(e.right, True, e)
    p.close()
    if e.negated:
        p.close()


def _null_if(p: Printer, e: NullIf, implicit: bool) -> None:
    p.out += "NULLIF("
    p.list((e.left, e.right))
    p.out += ")"


def _scalar_array(p: Printer, e: ScalarArrayOp, implicit: bool) -> None:
    p.open()
    p.paren(e.scalar, True, e)
    p.out += f" {_operator_name(e.op)} {'ANY' if e.use_any else 'ALL'} ("
    p.paren(e.array, True, e)
    if isinstance(e.array, SubLink) and e.array.kind == SubLinkKind.SCALAR:
        p.out += f"::{p.type_name(e.array.type.oid, e.array.type.typmod)}"
    p.out += ")"
    p.close()


def _case(p: Printer, e: CaseExpr, implicit: bool) -> None:
    p.keyword("CASE", 0, INDENT_COLUMN, 0)
    subject = _case_subject(e)
    if subject is not None:
        p.out += " "
        p.expr(subject)
    for when in e.whens:
        p.out += "" if p.indented else " "
        p.keyword("WHEN ", 0, 0, 0)
        p.expr(when.condition if subject is None else _compared_with(when.condition), False)
        p.out += " THEN "
        p.expr(when.result)
    p.out += "" if p.indented else " "
    p.keyword("ELSE ", 0, 0, 0)
    p.expr(e.default)
    p.out += "" if p.indented else " "
    p.keyword("END", -INDENT_COLUMN, 0, 0)


def _case_subject(e: CaseExpr) -> Expr | None:
    """Return x of ``CASE x WHEN y ...``, before it was converted for the comparison."""
    if not e.simple or not all(
        isinstance(when.condition, OpExpr) and len(when.condition.args) == 2 for when in e.whens
    ):
        return None
    first = e.whens[0].condition
    subject = first.args[0] if isinstance(first, OpExpr) else first
    while isinstance(subject, FuncExpr | RelabelType | CoerceViaIO):
        if isinstance(subject, FuncExpr):
            if subject.cast != "implicit":
                break
            subject = subject.args[0]
        elif subject.explicit:
            break
        else:
            subject = subject.arg
    return subject


def _compared_with(condition: Expr) -> Expr:
    return condition.args[1] if isinstance(condition, OpExpr) else condition


def _coalesce(p: Printer, e: CoalesceExpr, implicit: bool) -> None:
    p.out += "COALESCE("
    p.list(e.args)
    p.out += ")"


def _min_max(p: Printer, e: MinMaxExpr, implicit: bool) -> None:
    p.out += "GREATEST(" if e.greatest else "LEAST("
    p.list(e.args)
    p.out += ")"


def _array(p: Printer, e: ArrayExpr, implicit: bool) -> None:
    p.out += "ARRAY["
    p.list(e.elements)
    p.out += "]" if e.elements else f"]::{p.type_name(e.type.oid, -1)}"


def _row(p: Printer, e: RowExpr, implicit: bool) -> None:
    if p.whole_join(e):
        return
    if e.names and e.names != tuple(f"f{n}" for n in range(1, len(e.names) + 1)):
        # of a join's alias: ROW(...) would lose the names, which functions like row_to_json show
        p.out += "( SELECT x.*::record AS x FROM ( SELECT "
        for index, (name, expr) in enumerate(zip(e.names, e.fields, strict=True)):
            p.out += ", " if index else ""
            p.expr(expr)
            p.out += f" AS {quote_identifier(name)}"
        p.out += ") x)"
        return
    _plain_row(p, e)


def _plain_row(p: Printer, e: RowExpr) -> None:
    _listed_row(p, e.fields)


def _listed_row(p: Printer, fields: Sequence[Expr]) -> None:
    p.out += "ROW("
    for index, item in enumerate(fields):
        p.out += ", " if index else ""
        p.value(item)
    p.out += ")"


def _compose(p: Printer, e: ComposeRow, implicit: bool) -> None:
    if is_whole_row(e.arg):
        p.whole_row(e.arg)
        p.out += ".*"
    elif isinstance(e.arg, RowExpr):
        _plain_row(p, e.arg)  # what it is assigned or given to makes it of its type again
        p.out += f"::{p.type_name(e.type.oid, -1)}" if e.explicit else ""
    elif e.explicit or (implicit and isinstance(e.arg, DecomposeRow)):
        p.cast(e.arg, e.type.oid, -1, e)  # a row of a typed table as one of the table's type
    else:
        p.paren(e.arg, False, e)


def _decompose(p: Printer, e: DecomposeRow, implicit: bool) -> None:
    p.expr(e.arg, implicit)


def _row_compare(p: Printer, e: RowCompare, implicit: bool) -> None:
    p.out += "("
    _listed_row(p, e.lefts)
    p.out += f" {e.kind} "
    _listed_row(p, e.rights)
    p.out += ")"


def _field(p: Printer, e: FieldSelect, implicit: bool) -> None:
    inner = e.arg.arg if isinstance(e.arg, DecomposeRow) else e.arg
    need = not isinstance(inner, Subscript | FieldSelect)
    p.out += "(" if need else ""
    p.expr(e.arg)
    p.out += (")" if need else "") + "." + quote_identifier(_field_name(p, e))


def _field_name(p: Printer, e: FieldSelect) -> str:
    arg = e.arg
    if isinstance(arg, RowExpr | DecomposeRow) and arg.names:
        return arg.names[e.index]
    if isinstance(arg, Var) and arg.attnum == 0:
        return p.levels[-1 - arg.level].ranges[arg.range].columns[e.index].name
    if isinstance(arg, SqlCall):
        return arg.outputs[e.index].name
    if isinstance(arg, FuncExpr):
        proc = facts().procs[arg.proc]
        if proc.arg_modes and proc.arg_names:
            outs = [n for n, m in zip(proc.arg_names, proc.arg_modes, strict=False) if m in ("o", "b", "t")]
            if e.index < len(outs):
                return outs[e.index]
    if e.name and arg.type.oid == RECORD:
        return e.name
    return f"f{e.index + 1}"


def _subscript(p: Printer, e: Subscript, implicit: bool) -> None:
    _subscripts(p, e.arg, e.indexes, e.is_slice, implicit)


def _subscripts(
    p: Printer, arg: Expr, indexes: Sequence[tuple[Expr | None, Expr | None]], is_slice: bool, implicit: bool
) -> None:
    while isinstance(arg, RelabelType) and not arg.explicit:
        arg = arg.arg  # parts of a domain's values are read as those of its base type
    need = not isinstance(arg, Var | FieldSelect) or is_domain_value(arg)
    p.out += "(" if need else ""
    p.expr(arg, implicit)
    p.out += ")" if need else ""
    for lower, upper in indexes:
        p.out += "["
        if is_slice:
            if lower is not None:
                p.expr(lower, False)
            p.out += ":"
        if upper is not None:
            p.expr(upper, False)
        p.out += "]"


_SETTING_WORDS = {
    "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_role",
    "current_user", "user", "session_user", "current_catalog", "current_schema",
}  # fmt: skip


def _setting(p: Printer, e: CurrentSetting, implicit: bool) -> None:
    p.out += e.what.upper()
    if e.type.typmod >= 0:
        p.out += f"({e.type.typmod})"


def _aggregate_name(p: Printer, e: Aggregate | WindowFunc) -> str:
    if e.own is not None:
        return p.function_name(e.proc, e.own.schema, e.own.name)
    return quote_identifier(facts().procs[e.proc].name)


def _gathers(e: Aggregate | WindowFunc) -> bool:
    """Tell whether the last argument is an array of variadic ones."""
    if e.own is not None:
        return e.own.array
    variadic = facts().procs[e.proc].variadic
    return bool(variadic) and variadic != ANY


def _aggregate(p: Printer, e: Aggregate, implicit: bool) -> None:
    p.out += _aggregate_name(p, e) + "(" + ("DISTINCT " if e.distinct else "")
    if (facts().aggregates[e.proc].kind if e.own is None else e.own.kind) != "n":
        p.list(e.direct)
        p.out += ") WITHIN GROUP (ORDER BY "
        p.order(e.order)
    else:
        if e.star:
            p.out += "*"
        _arguments(p, e.args, _gathers(e))
        if e.order:
            p.out += " ORDER BY "
            p.order(e.order)
    if e.filter is not None:
        p.out += ") FILTER (WHERE "
        p.expr(e.filter, False)
    p.out += ")"


def _grouping(p: Printer, e: GroupingFunc, implicit: bool) -> None:
    select = p.levels[-1 - e.level].select
    p.out += "GROUPING("
    if select is not None:
        p.list([shift_levels(select.group[index], e.level) for index in e.indexes])
    p.out += ")"


def _window_func(p: Printer, e: WindowFunc, implicit: bool) -> None:
    p.out += _aggregate_name(p, e) + "("
    if e.star:
        p.out += "*"
    _arguments(p, e.args, _gathers(e))
    p.out += ")"
    if e.filter is not None:
        p.out += " FILTER (WHERE "
        p.expr(e.filter, False)
        p.out += ")"
    p.out += " OVER "
    select = p.levels[-1].select
    if select is not None:
        window = select.windows[e.window]
        if window.name:
            p.out += quote_identifier(window.name)
        else:
            p.window(window, select.windows)


def _sublink(p: Printer, e: SubLink, implicit: bool) -> None:
    p.out += "ARRAY(" if e.kind == SubLinkKind.ARRAY else "("
    if e.lefts:
        if len(e.lefts) > 1:
            p.out += "("
        p.list(e.lefts)
        if len(e.lefts) > 1:
            p.out += ")"
    operator = e.row_kind or (_operator_name(e.ops[0]) if e.ops else "=")
    inner = True
    if e.kind == SubLinkKind.EXISTS:
        p.out += "EXISTS "
    elif e.kind == SubLinkKind.ANY:
        p.out += " IN " if operator == "=" else f" {operator} ANY "
    elif e.kind == SubLinkKind.ALL:
        p.out += f" {operator} ALL "
    elif e.kind == SubLinkKind.ROW:
        p.out += f" {operator} "
    else:
        inner = False
    p.out += "(" if inner else ""
    if p.query is None:
        raise SqlError("0A000", "cannot print a sub-query here")
    p.query(p, e.query, False)
    p.out += "))" if inner else ")"


NODES.update(
    {
        Var: _var,
        Const: _const,
        Param: _param,
        OpExpr: _op,
        FuncExpr: _func,
        SqlCall: _sql_call,
        RelabelType: _cast_node,
        CollateExpr: _collate,
        CoerceViaIO: _cast_node,
        CoerceToDomain: _cast_node,
        CoerceTypmod: _cast_node,
        ArrayCoerce: _cast_node,
        BoolExpr: _bool,
        NullTest: _null_test,
        BooleanTest: _boolean_test,
        DistinctExpr: _distinct,
        NullIf: _null_if,
        ScalarArrayOp: _scalar_array,
        CaseExpr: _case,
        CoalesceExpr: _coalesce,
        MinMaxExpr: _min_max,
        ArrayExpr: _array,
        RowExpr: _row,
        ComposeRow: _compose,
        DecomposeRow: _decompose,
        RowCompare: _row_compare,
        FieldSelect: _field,
        Subscript: _subscript,
        CurrentSetting: _setting,
        Aggregate: _aggregate,
        GroupingFunc: _grouping,
        WindowFunc: _window_func,
        SubLink: _sublink,
    }
)
