"""Bound expressions -> SQL text, as PostgreSQL 15 prints them (pg_get_expr).

    OpExpr(>, Var a, Const 0)                 (a > 0)        pretty: a > 0
    FuncExpr numeric(int4), implicit          argument only, or (argument)::numeric below an operator

``Printer`` holds the text built so far, the indentation of the query being printed, and one ``Level`` per
query around the place (innermost last), which is how a Var finds the name of its range. In plain form every
operator has its own parentheses; ``pretty`` leaves out those that precedence makes needless.

Promise: the text, bound again, means the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from pgwire.codecs.registry import text_output
from pgwire.codecs.settings import STORED_TEXT, CodecSettings
from pgwire.give_way import give_way
from planner.base.errors import JoinSpan, SqlError
from planner.base.quoting import everything, quote_identifier
from planner.conversion.order import find_less
from planner.facts import BOOL, INT4, NUMERIC, UNKNOWN, facts, rows
from planner.query import (
    DOMAIN_VALUE,
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
    ComposeRow,
    Const,
    CurrentSetting,
    DecomposeRow,
    DistinctExpr,
    Expr,
    FieldSelect,
    FrameBound,
    FuncExpr,
    GroupingFunc,
    MinMaxExpr,
    NullIf,
    NullTest,
    OpExpr,
    Param,
    QueryExpr,
    Range,
    RelabelType,
    RowExpr,
    SortBy,
    SubLink,
    Subscript,
    Var,
    Window,
    WindowFunc,
)
from planner.query.walk import walk
from planner.textsearch.names import SEARCH_NAMES, built_in_name
from planner.types.facts import FIRST_USER_OID, stored_type

if TYPE_CHECKING:
    from planner.catalog import RelationDef
    from planner.deparse.names import LevelNames
    from planner.query import Select

INDENT_STEP, INDENT_JOIN, INDENT_COLUMN, INDENT_LIMIT = 8, 4, 4, 40

_SYSTEM_COLUMNS = {-1: "ctid", -2: "xmin", -3: "cmin", -4: "xmax", -5: "cmax", -6: "tableoid"}


def collation_name(oid: int, name: FunctionName) -> str:
    """Return a collation's name as it is written; ``name``: what tells a user's, by its oid
    (``Printer.function_name``).
    """
    if oid >= FIRST_USER_OID:
        return (
            f"pg_catalog.{stored_function(oid, '', '')}"
            if name is stored_function
            else name(oid, "", str(oid))
        )
    return next(
        quote_identifier(str(row["collname"])) for row in rows("collations") if int(row["oid"]) == oid
    )


def quote_literal(text: str) -> str:
    """Return ``text`` as a string literal (standard_conforming_strings)."""
    return "'" + text.replace("'", "''") + "'"


_STYLED = re.compile(
    r"'::(?!(?:text|character|bpchar|name|regclass|smallint|integer|bigint|numeric|boolean|uuid|jsonb?|oid)\b)"
)


def depends_on_styles(sql: str, settings: CodecSettings) -> bool:
    """Tell whether a stored text may look otherwise under a reader's settings: its constants (DateStyle,
    TimeZone ...), or all names of it.
    """
    return everything() or (settings.styles != STORED_TEXT.styles and _STYLED.search(sql) is not None)


# Expression class -> function(printer, expression, implicit); ``planner.deparse.nodes`` fills it.
NODES: dict[type[Expr], Callable[[Printer, Any, bool], None]] = {}


TypeName = Callable[[int, int | None], str]
FunctionName = Callable[[int, str, str], str]


def stored_function(oid: int, schema: str, name: str) -> str:
    """Return how a stored text names a user's function or text search object, so that it means the same when
    that is renamed.
    """
    return f'"#{oid}"'


@dataclass(slots=True)
class Level:
    """One query around the expression: its ranges, the columns of each under names of their own, with the
    names they print under.

    ``ctes``: the columns of those that it defines; ``unites``: it is a set operation; ``made``: the names of
    its joins, and how its ranges are printed; ``values``: what VALUES that it consists of are called.
    """

    ranges: Sequence[Range]
    names: Sequence[str]
    select: Select | None = None
    ctes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unites: bool = False
    made: LevelNames | None = None
    values: str = ""

    def all_names(self) -> Iterator[str]:
        """Yield what queries inside may not call anything of theirs."""
        yield from self.names
        if self.values:
            yield self.values
        for join in self.made.joins.values() if self.made is not None else ():
            if join.name:
                yield join.name


@dataclass(slots=True)
class Printer:
    """Text under construction.

    ``qualify``: told (schema, name), says whether a relation needs its schema written. ``type_name``: what a
    type, with its typmod (None: not given), is called; ``function_name``: what a user's function, text search
    object or collation, (oid, schema, name) is. ``parameters``: names of ``$1`` ... of ``function``, "" or
    missing prints the number. ``prefix``: Vars of the innermost level print with their range's name.
    ``table``: finds the tables that items of WITH change. ``indented``: queries break lines as
    pg_get_viewdef.
    """

    pretty: bool = False
    indented: bool = True
    prefix: bool = False
    settings: CodecSettings = STORED_TEXT
    qualify: Callable[[str, str], bool] = field(default=lambda schema, name: True)
    type_name: TypeName = stored_type
    function_name: FunctionName = stored_function
    function: str = ""
    parameters: Sequence[str] = ()
    levels: list[Level] = field(default_factory=list)
    out: str = ""
    indent: int = 0
    query: Callable[[Printer, QueryExpr, bool], None] | None = None
    table: Callable[[int], RelationDef | None] | None = None

    # --- layout ---------------------------------------------------------------------------------

    def keyword(self, text: str, before: int, after: int, plus: int) -> None:
        """Append a keyword, on a line of its own where lines are broken."""
        if not self.indented:
            self.out += text
            return
        self.indent += before
        self.out = self.out.rstrip(" ") + "\n"
        if self.indent < INDENT_LIMIT:
            amount = max(self.indent, 0) + plus
        else:
            amount = INDENT_LIMIT + (self.indent - INDENT_LIMIT) // (INDENT_STEP // 2)
            amount = amount % INDENT_LIMIT + plus
        self.out += " " * amount + text
        self.indent = max(self.indent + after, 0)

    def list(self, exprs: Sequence[Expr], implicit: bool = True) -> None:
        """Append expressions separated by commas."""
        for index, item in enumerate(exprs):
            if index:
                self.out += ", "
            self.expr(item, implicit)

    # --- expressions ----------------------------------------------------------------------------

    def paren(self, expr: Expr, implicit: bool, parent: Expr) -> None:
        """Append an operand; pretty form adds parentheses here, plain form inside the operators."""
        need = self.pretty and not is_simple(expr, parent, self.pretty)
        if need:
            self.out += "("
        self.expr(expr, implicit)
        if need:
            self.out += ")"

    def open(self) -> None:
        """Append the parenthesis that every operator has in plain form."""
        if not self.pretty:
            self.out += "("

    def close(self) -> None:
        """Close what ``open`` opened."""
        if not self.pretty:
            self.out += ")"

    def expr(self, expr: Expr, implicit: bool = True) -> None:
        """Append ``expr``. ``implicit``: an implicit cast at its top is written out."""
        give_way()
        if type(expr.span) is JoinSpan and self.reference(expr) is not None:
            return
        method = NODES.get(type(expr))
        if method is None:
            raise SqlError("XX000", f"cannot print expression {type(expr).__name__}")
        method(self, expr, implicit)

    def reference(self, expr: Expr) -> str | None:
        """Append a column reference; returns the name the column would get as an output, None where ``expr``
        is something else.
        """
        span = expr.span
        if isinstance(span, JoinSpan) and span.column >= 0:
            level = expr.level if isinstance(expr, Var) else _level_of(expr)
            made = self.levels[-1 - level].made
            names = None if made is None else made.joins.get(span.join)
            if names is not None:
                column = _present(names.columns[span.column], expr)
                if names.name:
                    self.out += quote_identifier(names.name) + "."
                self.out += quote_identifier(column)
                return column
        return self.var(expr) if isinstance(expr, Var) and expr.attnum != 0 else None

    def whole_join(self, expr: RowExpr) -> bool:
        """Append ``j.*`` for the whole row of a join; returns False for any other row."""
        span = expr.span
        if not isinstance(span, JoinSpan) or span.column >= 0 or not expr.fields:
            return False
        made = self.levels[-1 - _level_of(expr)].made
        names = None if made is None else made.joins.get(span.join)
        if names is None or tuple([name for name, _ in names.visible]) != expr.names:
            return False  # the row is what it was, whatever columns its join has got since
        self.out += quote_identifier(names.name) + ".*"
        return True

    def value(self, expr: Expr, implicit: bool = True) -> None:
        """Append an expression where a star would stand for several columns."""
        self.expr(expr, implicit)
        joined = isinstance(expr, RowExpr) and isinstance(expr.span, JoinSpan) and self.out.endswith(".*")
        if joined or is_whole_row(expr.arg if isinstance(expr, ComposeRow) else expr):
            self.out += f"::{self.type_name(expr.type.oid, -1)}"

    def var(self, var: Var, implicit: bool = True) -> str:
        """Append a column reference; returns the name the column would get as an output."""
        if is_domain_value(var):
            self.out += "VALUE"
            return "value"
        level = self.levels[-1 - var.level]
        name = level.names[var.range]
        if var.attnum == 0:
            # in a query the bare name would be a column's, where there is one of that name or comes to be
            self.whole_row(var)
            self.out += ".*"
            return name
        column = _SYSTEM_COLUMNS.get(var.attnum) or next(
            (c.name for c in level.ranges[var.range].columns if c.attnum == var.attnum), var.name
        )
        column = _present(column, var)
        if (self.prefix or var.level) and name:
            self.out += quote_identifier(name) + "."
        self.out += quote_identifier(column)
        return column

    def whole_row(self, var: Var) -> None:
        """Append the name of the range that a whole row is of."""
        self.out += quote_identifier(self.levels[-1 - var.level].names[var.range])

    def const(self, const: Const, show_type: int = 0) -> None:
        """Append a constant: ``show_type`` -1 never labels it, 0 when its look would mislead, 1 always."""
        oid = const.type.oid
        label = self.type_name(oid, const.type.typmod)
        if const.value is None:
            label = "unknown" if const.untyped else label
            self.out += "NULL" + (f"::{label}" if show_type >= 0 else "")
            return
        text = const.value if oid == UNKNOWN else text_output(oid, const.value, self.settings)
        if oid in SEARCH_NAMES:
            text = self._search_name(oid, cast("int", const.value))
        text = str(text)
        need = oid not in (BOOL, UNKNOWN, INT4, NUMERIC) and not const.untyped
        if oid == BOOL:
            self.out += "true" if const.value else "false"
        elif oid == INT4 and not text.startswith("-"):
            self.out += text
        elif oid == NUMERIC and text[0].isdigit() and any(c in "eE." for c in text):
            self.out += text
            need = const.type.typmod >= 0
        else:
            self.out += quote_literal(text)
            need = need or oid in (INT4, NUMERIC)
        if show_type > 0 or (show_type == 0 and need):
            self.out += f"::{label}"

    def _search_name(self, oid: int, made: int) -> str:
        """Return what a regconfig or regdictionary is called; PostgreSQL's own by name in stored texts, which
        are read without a path.
        """
        name = built_in_name(oid, made)
        if name is not None and self.function_name is stored_function:
            return name
        return self.function_name(made, "pg_catalog" if name is not None else "", name or str(made))

    def cast(self, arg: Expr, oid: int, typmod: int, parent: Expr) -> None:
        """Append ``(arg)::type``."""
        if isinstance(arg, Const) and arg.type.oid == oid and arg.type.typmod == -1:
            self.const(arg, -1)
        else:
            self.open()
            self.paren(arg, False, parent)
            self.close()
        self.out += f"::{self.type_name(oid, typmod)}"

    def sort_item(self, expr: Expr) -> None:
        """Append an expression of ORDER BY, GROUP BY ...: constants labelled, calls in parentheses."""
        if isinstance(expr, Const):
            self.const(expr, 1)
        elif isinstance(expr, Var) or (isinstance(expr, ComposeRow) and is_whole_row(expr.arg)):
            self.expr(expr)
        elif isinstance(expr.span, JoinSpan) and self.reference(expr) is not None:
            return
        else:
            need = self.pretty or _prints_as_call(expr)
            self.out += "(" if need else ""
            self.expr(expr)
            self.out += ")" if need else ""

    def order_suffix(self, oid: int, descending: bool, nulls_first: bool, lt: int) -> None:
        """Append DESC, NULLS FIRST or LAST where they differ from the default."""
        default = find_less(oid)
        if lt and default is not None and lt not in (default.proc, _greater_proc(oid)):
            less = next(o for o in facts().operators.values() if o.proc == lt)
            name = facts().operators[less.commutator].name if descending else less.name
            self.out += f" USING {name} NULLS {'FIRST' if nulls_first else 'LAST'}"
            return
        if descending:
            self.out += " DESC" + ("" if nulls_first else " NULLS LAST")
        elif nulls_first:
            self.out += " NULLS FIRST"

    def order(self, items: Sequence[SortBy]) -> None:
        """Append the items of an ORDER BY inside an aggregate or a window."""
        for index, item in enumerate(items):
            if index:
                self.out += ", "
            self.sort_item(item.expr)
            self.order_suffix(item.expr.type.oid, item.descending, item.nulls_first, item.lt)

    def window(self, window: Window, others: Sequence[Window]) -> None:
        """Append a window specification in parentheses; ``others``: those of its query, one of which it may
        build on.
        """
        base = next((w for w in others if w.name == window.base), None) if window.base else None
        parts: list[str] = [] if base is None else [quote_identifier(window.base)]
        if window.partition and base is None:
            before, self.out = self.out, ""
            for index, item in enumerate(window.partition):
                self.out += ", " if index else ""
                self.sort_item(item.expr)
            parts.append(f"PARTITION BY {self.out}")
            self.out = before
        if window.order and not (base is not None and base.order):
            before, self.out = self.out, ""
            self.order(window.order)
            parts.append(f"ORDER BY {self.out}")
            self.out = before
        default = (window.mode, window.start.kind, window.end.kind, window.exclude)
        if window.written or default != ("range", "unbounded_preceding", "current", "none"):
            before, self.out = self.out, ""
            between = window.written != "start"
            self.out += f"{window.mode.upper()} " + ("BETWEEN " if between else "")
            self._bound(window.start)
            if between:
                self.out += " AND "
                self._bound(window.end)
            self.out += _EXCLUDE[window.exclude]
            parts.append(self.out)
            self.out = before
        self.out += "(" + " ".join(parts) + ")"

    def _bound(self, bound: FrameBound) -> None:
        if bound.offset is not None:
            self.expr(bound.offset, False)
            self.out += " "
        self.out += "CURRENT ROW" if bound.kind == "current" else bound.kind.replace("_", " ").upper()


def is_whole_row(expr: Expr) -> TypeGuard[Var]:
    """Tell whether ``expr`` is the whole row of a range."""
    return isinstance(expr, Var) and expr.attnum == 0


def is_domain_value(expr: Expr) -> bool:
    """Tell whether ``expr`` is what a domain's CHECK calls VALUE."""
    return isinstance(expr, Var) and expr.attnum == DOMAIN_VALUE


def _level_of(expr: Expr) -> int:
    """Return the level that the columns of a join's column are of."""
    return next((node.level for node in walk(expr) if isinstance(node, Var)), 0)


def _present(column: str | None, expr: Expr) -> str:
    """Return a column's name; 42703 where it is gone."""
    if not column:
        raise SqlError("42703", f"column {getattr(expr, 'name', '')} does not exist")
    return column


_EXCLUDE = {
    "none": "",
    "current": " EXCLUDE CURRENT ROW",
    "group": " EXCLUDE GROUP",
    "ties": " EXCLUDE TIES",
}


def _greater_proc(oid: int) -> int:
    less = find_less(oid)
    if less is None or not less.commutator:
        return 0
    return facts().operators[less.commutator].proc


# --- which operands need no parentheses in pretty form ----------------------------------------------

_ALWAYS_SIMPLE = (
    Var, Const, Param, Subscript, ArrayExpr, RowExpr, CoalesceExpr, MinMaxExpr, CurrentSetting, NullIf,
    Aggregate, GroupingFunc, WindowFunc, FuncExpr, CaseExpr,
)  # fmt: skip
_CASTS = (RelabelType, CoerceViaIO, ArrayCoerce, CoerceTypmod, CoerceToDomain, ComposeRow)
_ENCLOSING = (
    Subscript, ArrayExpr, RowExpr, CoalesceExpr, MinMaxExpr, NullIf, Aggregate, GroupingFunc, WindowFunc,
    CaseExpr,
)  # fmt: skip


def _prints_as_call(expr: Expr) -> bool:
    return isinstance(expr, FuncExpr | Aggregate | WindowFunc | CoerceTypmod)


def subscripted(node: OpExpr) -> Expr | None:
    """Return what an operator that was written as subscripts reads a part of, None for any other operator."""
    container: Expr = node
    for count in range(len(node.keys), 0, -1):
        if not isinstance(container, OpExpr) or len(container.keys) != count:
            return None
        container = container.args[0]
    return None if container is node else container


def is_simple(node: Expr, parent: Expr, pretty: bool) -> bool:
    """Tell whether ``node`` reads unambiguously below ``parent`` without parentheses."""
    if isinstance(node, CoerceTypmod):
        return True  # PostgreSQL's length coercions are function calls
    if isinstance(node, _ALWAYS_SIMPLE):
        return True
    if isinstance(node, FieldSelect):
        return not isinstance(parent, FieldSelect)
    if isinstance(node, RelabelType | CoerceViaIO | ArrayCoerce | CoerceToDomain | ComposeRow | DecomposeRow):
        return is_simple(node.arg, node, pretty)
    if isinstance(node, OpExpr) and subscripted(node) is not None:
        return True
    if isinstance(node, OpExpr) and pretty and isinstance(parent, OpExpr):
        return _binds_tighter(node, parent)
    if isinstance(node, OpExpr | SubLink | NullTest | BooleanTest | DistinctExpr):
        if isinstance(parent, FuncExpr):
            return parent.cast == "call"
        return isinstance(parent, (BoolExpr, *_ENCLOSING))
    if isinstance(node, BoolExpr):
        if isinstance(parent, BoolExpr):
            if not pretty:
                return False
            if node.kind in ("not", "and"):
                return parent.kind in ("and", "or")
            return parent.kind == "or"
        if isinstance(parent, FuncExpr):
            return parent.cast == "call"
        return isinstance(parent, _ENCLOSING)
    return False


def _arithmetic(node: OpExpr) -> str:
    if len(node.args) != 2:
        return ""
    name = facts().operators[node.op].name
    return name if len(name) == 1 and name in "+-*/%" else ""


def _binds_tighter(node: OpExpr, parent: OpExpr) -> bool:
    op, outer = _arithmetic(node), _arithmetic(parent)
    if not op or not outer:
        return False
    if op in "*/%" and outer in "+-":
        return True
    if op in "+-" and outer in "*/%":
        return False
    return node is parent.args[0]
