"""The one way a Query tree prints: for EXPLAIN, golden scripts and debugging.

    SELECT e.name, count(*) FROM emp e WHERE e.id > $1 GROUP BY e.name

    Select
      range 0: public.emp e (id, name)
      from: 0
      where: e.id > $1
      group: e.name
      name text: e.name
      count bigint: count(*)

Nothing implicit is hidden: conversions that change a value print as calls or ``::type``, constants carry their
type unless it shows, columns of outer queries have one ``^`` per level. It is for reading, not for
parsing again: ``planner.deparse`` prints SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_output
from pgwire.codecs.settings import DEFAULT
from planner.facts import BOOL, INT4, facts
from planner.query import (
    Aggregate,
    ArrayAssign,
    ArrayCoerce,
    ArrayExpr,
    BooleanTest,
    BoolExpr,
    CaseExpr,
    CoalesceExpr,
    CoerceToDomain,
    CoerceTypmod,
    CoerceViaIO,
    ComposeRow,
    Const,
    Cte,
    CteRange,
    CurrentSetting,
    DecomposeRow,
    Delete,
    DistinctExpr,
    Expr,
    FieldSelect,
    FrameBound,
    FromItem,
    FuncExpr,
    FunctionRange,
    GroupingFunc,
    Insert,
    Join,
    Merge,
    MinMaxExpr,
    NullIf,
    NullTest,
    OpExpr,
    Param,
    QueryBase,
    QueryExpr,
    Range,
    RangeRef,
    RelabelType,
    RelationRange,
    RowCompare,
    RowExpr,
    ScalarArrayOp,
    Select,
    SetOp,
    SortBy,
    SortKey,
    SqlCall,
    StepRange,
    SubLink,
    SubLinkKind,
    SubqueryRange,
    Subscript,
    Target,
    Update,
    Values,
    Var,
    Window,
    WindowFunc,
)
from planner.query.exprs import aggregate_name
from planner.statements import WithChanges
from planner.types.facts import format_type

_INDENT = "  "


def explain_statement(statement: object) -> list[str]:
    """Return the lines of a bound statement: a query's tree, DML with its source, else the value itself."""
    printer = _Printer()
    if isinstance(statement, WithChanges):
        lines: list[str] = []
        for number, step in enumerate(statement.steps):
            lines.append(f"With {step.name} (step {number})")
            lines += [_INDENT + line for line in explain_statement(step.statement)]
        return lines + explain_statement(statement.body)
    query = getattr(statement, "query", None)
    if isinstance(statement, Insert):
        printer.insert(statement)
    elif isinstance(statement, Update):
        printer.change("Update", statement, [f"set: {_numbers(statement.assigned)}"])
    elif isinstance(statement, Delete):
        printer.change("Delete", statement, [])
    elif isinstance(statement, Merge):
        printer.merge(statement)
    elif isinstance(query, QueryBase):
        name = type(statement).__name__
        if name != "QueryStatement":
            printer.line(0, name)
        printer.query(query, 0 if name == "QueryStatement" else 1)  # type: ignore[arg-type]
    else:
        printer.line(0, repr(statement))
    return printer.lines


def explain_expr(expr: Expr, ranges: Sequence[Range] = ()) -> str:
    """Return one expression as text; ``ranges`` name the columns of its own query level."""
    printer = _Printer()
    printer.scopes.append(ranges)
    return printer.expr(expr)


def _numbers(values: Iterable[int]) -> str:
    return ", ".join([str(value) for value in values])


def _type(expr: Expr) -> str:
    return format_type(expr.type.oid, expr.type.typmod if expr.type.typmod >= 0 else None)


class _Printer:
    """Collects lines; ``scopes`` holds the ranges of each open query level, innermost last."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scopes: list[Sequence[Range]] = []

    def line(self, depth: int, text: str) -> None:
        self.lines.append(_INDENT * depth + text)

    # --- queries --------------------------------------------------------------------------------

    def query(self, query: QueryExpr, depth: int) -> None:
        """Print a query as a new level."""
        self.scopes.append(query.ranges if isinstance(query, Select) else ())
        if isinstance(query, Select):
            self._select(query, depth)
        elif isinstance(query, SetOp):
            self._set_op(query, depth)
        else:
            self._values(query, depth)
        self.scopes.pop()

    def _ctes(self, ctes: Sequence[Cte], depth: int) -> None:
        for cte in ctes:
            word = "with recursive" if cte.recursive else "with"
            hint = {True: " materialized", False: " not materialized", None: ""}[cte.materialized]
            names = ", ".join([column.name for column in cte.columns])
            self.line(depth, f"{word} {cte.name} ({names}){hint}:")
            self.query(cte.query, depth + 1)

    def _tail(self, query: QueryExpr, depth: int) -> None:
        if query.order:
            keys = [self._sort_key(query, key) for key in query.order]
            self.line(depth, "order: " + ", ".join(keys))
        if query.offset is not None:
            self.line(depth, f"offset: {self.expr(query.offset)}")
        if query.limit is not None:
            ties = " with ties" if query.with_ties else ""
            self.line(depth, f"limit: {self.expr(query.limit)}{ties}")

    def _sort_key(self, query: QueryExpr, key: SortKey) -> str:
        if isinstance(query, Select):
            target = query.targets[key.target]
            text = self.expr(target.expr) if target.junk or not target.name else target.name
        else:
            text = query.columns[key.target].name
        return text + _direction(key.descending, key.nulls_first)

    def _select(self, query: Select, depth: int) -> None:
        self.line(depth, "Select" + (" distinct" if query.distinct is True else ""))
        depth += 1
        self._ctes(query.ctes, depth)
        for index, made in enumerate(query.ranges):
            self._range(index, made, depth)
        if query.from_:
            self.line(depth, "from: " + ", ".join([self._from(item) for item in query.from_]))
        if query.where is not None:
            self.line(depth, f"where: {self.expr(query.where)}")
        if query.grouped:
            self._grouping(query, depth)
        if query.having is not None:
            self.line(depth, f"having: {self.expr(query.having)}")
        for index, window in enumerate(query.windows):
            self.line(depth, f"window {index}: {self._window(window)}")
        if isinstance(query.distinct, tuple):
            listed = [self.expr(query.targets[i].expr) for i in query.distinct]
            self.line(depth, f"distinct on: {', '.join(listed)}")
        for target in query.targets:
            self._target(target, depth)
        self._tail(query, depth)

    def _target(self, target: Target, depth: int) -> None:
        if not target.junk:
            self.line(depth, f"{target.name} {_type(target.expr)}: {self.expr(target.expr)}")

    def _grouping(self, query: Select, depth: int) -> None:
        keys = [self.expr(expr) for expr in query.group]
        self.line(depth, "group: " + (", ".join(keys) if keys else "()"))
        if query.grouping_sets is not None:
            sets = ["(" + ", ".join([keys[i] for i in one]) + ")" for one in query.grouping_sets]
            self.line(depth, "grouping sets: " + ", ".join(sets))

    def _set_op(self, query: SetOp, depth: int) -> None:
        columns = ", ".join([f"{c.name} {format_type(c.type.oid, c.type.typmod)}" for c in query.columns])
        self.line(depth, f"{query.op.capitalize()}{' all' if query.all else ''} ({columns})")
        self._ctes(query.ctes, depth + 1)
        self.query(query.left, depth + 1)
        self.query(query.right, depth + 1)
        self._tail(query, depth + 1)

    def _values(self, query: Values, depth: int) -> None:
        columns = ", ".join([f"{c.name} {format_type(c.type.oid, c.type.typmod)}" for c in query.columns])
        self.line(depth, f"Values ({columns})")
        self._ctes(query.ctes, depth + 1)
        for row in query.rows:
            self.line(depth + 1, "(" + self.exprs(row) + ")")
        self._tail(query, depth + 1)

    def _range(self, index: int, made: Range, depth: int) -> None:
        head = f"range {index}: "
        names = ", ".join([column.name for column in made.columns])
        if isinstance(made, RelationRange):
            used = [column.name for column in made.columns if column.attnum in made.used]
            used += [str(attnum) for attnum in sorted(made.used) if attnum <= 0]
            alias = f" {made.alias}" if made.alias != made.name else ""
            others = f" and {len(made.leaves) - 1} more" if made.leaves else ""
            self.line(depth, f"{head}{made.schema}.{made.name}{alias}{others} ({', '.join(used)})")
            if made.guard is not None:
                self.line(depth + 1, "guard:")
                self.query(made.guard, depth + 2)
        elif isinstance(made, SubqueryRange):
            word = "view" if made.view is not None else "subquery"
            lateral = "lateral " if made.lateral else ""
            self.line(depth, f"{head}{lateral}{word} {made.alias} ({names})")
            self.query(made.query, depth + 1)
        elif isinstance(made, CteRange):
            word = "working table" if made.recursive_ref else "with item"
            self.line(depth, f"{head}{word} {'^' * made.level}{made.name} {made.alias} ({names})")
        elif isinstance(made, StepRange):
            self.line(depth, f"{head}step {made.step} {made.name} {made.alias} ({names})")
        elif isinstance(made, FunctionRange):
            lateral = "lateral " if made.lateral else ""
            calls = self.exprs(made.functions)
            ordinality = " with ordinality" if made.ordinality else ""
            self.line(depth, f"{head}{lateral}{calls}{ordinality} {made.alias} ({names})")
        else:
            self.line(depth, f"{head}{type(made).__name__} {made.alias} ({names})")

    def _from(self, item: FromItem) -> str:
        if isinstance(item, RangeRef):
            return str(item.range)
        return self._join(item)

    def _join(self, join: Join) -> str:
        left, right = self._from(join.left), self._from(join.right)
        if join.on is None:
            return f"({left} {join.kind.value} join {right})"
        return f"({left} {join.kind.value} join {right} on {self.expr(join.on)})"

    # --- windows --------------------------------------------------------------------------------

    def _sort_by(self, key: SortBy) -> str:
        return self.expr(key.expr) + _direction(key.descending, key.nulls_first)

    def _window(self, window: Window) -> str:
        parts = []
        if window.partition:
            parts.append("partition " + ", ".join([self.expr(key.expr) for key in window.partition]))
        if window.order:
            parts.append("order " + ", ".join([self._sort_by(key) for key in window.order]))
        frame = f"{window.mode} {self._bound(window.start)} .. {self._bound(window.end)}"
        if window.exclude != "none":
            frame += f" exclude {window.exclude}"
        return ", ".join([*parts, frame])

    def _bound(self, bound: FrameBound) -> str:
        words = bound.kind.replace("_", " ")
        return words if bound.offset is None else f"{self.expr(bound.offset)} {words}"

    # --- DML ------------------------------------------------------------------------------------

    def insert(self, statement: Insert) -> None:
        """Print an INSERT."""
        self.line(0, f"Insert into {statement.table} ({_numbers(statement.attnums)})")
        if statement.source is not None:
            self.query(statement.source, 1)
        for attnum, expr in statement.defaults:
            self.line(1, f"default {attnum}: {self.expr(expr)}")
        conflict = statement.on_conflict
        if conflict is not None:
            self.line(1, f"on conflict ({_numbers(conflict.arbiters)}) do {conflict.action}")
            for attnum, expr in conflict.assignments:
                self.line(2, f"set {attnum}: {self.expr(expr)}")
            if conflict.where is not None:
                self.line(2, f"where: {self.expr(conflict.where)}")
        self._returning(statement.returning)

    def change(self, word: str, statement: Update | Delete, extra: Sequence[str]) -> None:
        """Print an UPDATE or DELETE."""
        self.line(0, f"{word} {statement.table}")
        for text in extra:
            self.line(1, text)
        self.query(statement.source, 1)
        self._returning(statement.returning)

    def merge(self, statement: Merge) -> None:
        """Print a MERGE."""
        self.line(0, f"Merge into {statement.table}")
        self.query(statement.source, 1)
        for action in statement.actions:
            self.line(1, f"{'matched' if action.matched else 'not matched'}: {action.action}")
            if action.condition is not None:
                self.line(2, f"if: {self.expr(action.condition)}")
            for attnum, value in zip(action.assigned, action.values, strict=True):
                self.line(2, f"set {attnum}: {self.expr(value)}")

    def _returning(self, targets: Sequence[Target]) -> None:
        for target in targets:
            self.line(1, f"returning {target.name} {_type(target.expr)}: {self.expr(target.expr)}")

    # --- expressions ----------------------------------------------------------------------------

    def exprs(self, exprs: Iterable[Expr]) -> str:
        """Return a comma-separated list."""
        return ", ".join([self.expr(expr) for expr in exprs])

    def operand(self, expr: Expr) -> str:
        """Return an expression in parentheses where it needs them as an operand."""
        text = self.expr(expr)
        compound = OpExpr | BoolExpr | NullTest | BooleanTest | DistinctExpr | ScalarArrayOp | RowCompare
        return f"({text})" if isinstance(expr, compound) else text

    def expr(self, expr: Expr) -> str:
        """Return one expression."""
        match expr:
            case Const():
                return _constant(expr)
            case Param():
                return f"${expr.number}"
            case Var():
                return self._var(expr)
            case OpExpr(args=(only,)):
                return f"{facts().operators[expr.op].name} {self.operand(only)}"
            case OpExpr(args=(left, right)):
                name = facts().operators[expr.op].name
                return f"{self.operand(left)} {name} {self.operand(right)}"
            case SqlCall():
                return f"{expr.name}({self.exprs(expr.args)})"
            case FuncExpr():
                variadic = " variadic" if expr.variadic else ""
                return f"{facts().procs[expr.proc].name}({self.exprs(expr.args)}){variadic}"
            case RelabelType() | CoerceTypmod() | ArrayCoerce():
                return f"{self.operand(expr.arg)}::{_type(expr)}"
            case CoerceToDomain():
                return f"{self.operand(expr.arg)}::{format_type(expr.domain)}"
            case CoerceViaIO():
                return f"io({self.expr(expr.arg)})::{_type(expr)}"
            case BoolExpr(kind="not", args=(only,)):
                return f"not {self.operand(only)}"
            case BoolExpr():
                return f" {expr.kind} ".join([self.operand(arg) for arg in expr.args])
            case NullTest(whole=True):
                return f"{self.operand(expr.arg)} is {'' if expr.negated else 'not '}distinct from null"
            case NullTest():
                return f"{self.operand(expr.arg)} is {'not ' if expr.negated else ''}null"
            case BooleanTest():
                return f"{self.operand(expr.arg)} is {'not ' if expr.negated else ''}{expr.test}"
            case DistinctExpr():
                word = "is not distinct from" if expr.negated else "is distinct from"
                return f"{self.operand(expr.left)} {word} {self.operand(expr.right)}"
            case NullIf():
                return f"nullif({self.expr(expr.left)}, {self.expr(expr.right)})"
            case ScalarArrayOp():
                name = facts().operators[expr.op].name
                word = "any" if expr.use_any else "all"
                return f"{self.operand(expr.scalar)} {name} {word} ({self.expr(expr.array)})"
            case _:
                return self._other(expr)

    def _other(self, expr: Expr) -> str:
        match expr:
            case CaseExpr():
                arms = [f"when {self.expr(w.condition)} then {self.expr(w.result)}" for w in expr.whens]
                return f"case {' '.join(arms)} else {self.expr(expr.default)} end"
            case CoalesceExpr():
                return f"coalesce({self.exprs(expr.args)})"
            case MinMaxExpr():
                return f"{'greatest' if expr.greatest else 'least'}({self.exprs(expr.args)})"
            case ArrayExpr():
                return f"array[{self.exprs(expr.elements)}]" + ("" if expr.elements else f"::{_type(expr)}")
            case RowExpr():
                return f"row({self.exprs(expr.fields)})"
            case RowCompare():
                return f"row({self.exprs(expr.lefts)}) {expr.kind} row({self.exprs(expr.rights)})"
            case ComposeRow():
                return f"{self.operand(expr.arg)}::{_type(expr)}"
            case DecomposeRow():
                return f"row({self.expr(expr.arg)}.*)"
            case FieldSelect():
                return f"({self.expr(expr.arg)}).{expr.index + 1}"
            case Subscript():
                return self.operand(expr.arg) + "".join([self._index(*pair, expr.is_slice) for pair in expr.indexes])  # fmt: skip
            case ArrayAssign():
                part = "".join([self._index(*pair, expr.is_slice) for pair in expr.indexes])
                return f"({self.operand(expr.arg)} with {part} = {self.expr(expr.value)})"
            case CurrentSetting():
                return expr.what
            case Aggregate():
                return self._aggregate(expr)
            case GroupingFunc():
                return f"grouping({_numbers(expr.indexes)})"
            case WindowFunc():
                args = "*" if expr.star else self.exprs(expr.args)
                filter_ = f" filter ({self.expr(expr.filter)})" if expr.filter is not None else ""
                return f"{aggregate_name(expr)}({args}){filter_} over {expr.window}"
            case SubLink():
                return self._sublink(expr)
            case _:
                return f"<{type(expr).__name__}>"

    def _var(self, expr: Var) -> str:
        if expr.range < 0:
            return f"#{expr.attnum}"
        prefix = "^" * expr.level
        if expr.level < len(self.scopes):
            ranges = self.scopes[-1 - expr.level]
            if expr.range < len(ranges):
                made = ranges[expr.range]
                if expr.attnum == 0:
                    return f"{prefix}{made.alias}.*"
                for column in made.columns:
                    if column.attnum == expr.attnum:
                        return f"{prefix}{made.alias}.{column.name}"
                return f"{prefix}{made.alias}.{expr.name or expr.attnum}"
        return f"{prefix}{expr.range}.{expr.name or expr.attnum}"

    def _index(self, lower: Expr | None, upper: Expr | None, is_slice: bool) -> str:
        high = self.expr(upper) if upper is not None else ""
        if not is_slice:
            return f"[{high}]"
        return f"[{self.expr(lower) if lower is not None else ''}:{high}]"

    def _aggregate(self, expr: Aggregate) -> str:
        name = "^" * expr.level + aggregate_name(expr)
        order = ", ".join([self._sort_by(key) for key in expr.order])
        if expr.direct or (expr.order and not expr.args and not expr.star):
            text = f"{name}({self.exprs(expr.direct)}) within group (order {order})"
        else:
            args = "*" if expr.star else self.exprs(expr.args)
            distinct = "distinct " if expr.distinct else ""
            text = f"{name}({distinct}{args}{' order ' + order if order else ''})"
        if expr.filter is not None:
            text += f" filter ({self.expr(expr.filter)})"
        return text

    def _sublink(self, expr: SubLink) -> str:
        inner = _Printer()
        inner.scopes = list(self.scopes)
        inner.query(expr.query, 0)
        body = "; ".join([line.strip() for line in inner.lines])
        if expr.kind in (SubLinkKind.EXISTS, SubLinkKind.ARRAY):
            return f"{expr.kind.value} {{{body}}}"
        if expr.kind is SubLinkKind.SCALAR:
            return f"{{{body}}}"
        names = "/".join([facts().operators[op].name for op in expr.ops])
        lefts = self.exprs(expr.lefts)
        if len(expr.lefts) > 1:
            lefts = f"row({lefts})"
        word = "" if expr.kind is SubLinkKind.ROW else f" {expr.kind.value}"
        return f"{lefts} {names}{word} {{{body}}} as ({self.exprs(expr.casts)})"


def _direction(descending: bool, nulls_first: bool) -> str:
    text = " desc" if descending else ""
    if nulls_first != descending:
        text += " nulls first" if nulls_first else " nulls last"
    return text


def _constant(expr: Const) -> str:
    if expr.value is None:
        return f"null::{_type(expr)}"
    if expr.type.oid == BOOL:
        return "true" if expr.value else "false"
    if expr.type.oid == INT4:
        return str(expr.value)

    try:
        text = text_output(expr.type.oid, expr.value, DEFAULT)
    except (DataError, LookupError):
        text = str(expr.value)
    return "'" + str(text).replace("'", "''") + f"'::{_type(expr)}"
