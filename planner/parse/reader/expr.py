"""Raw parse tree -> AST, for expressions.

    {"A_Const": {"ival": {"ival": 1}, "location": 7}}  ->  Constant(kind="int", value=1, span=7..8)

Whatever it does not know is refused with 0A000 naming the construct; what the grammar accepts but PostgreSQL 15
does not (JSON constructors, hexadecimal numbers ...) is a syntax error as it is there. Expressions nest as deep as
Python's recursion limit allows; ``planner.parse`` reports more as 54001.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from pgwire.give_way import give_way
from pgwire.long.values import cut, find, run_end
from planner import ast
from planner.base.errors import Span, SqlError
from planner.parse.reader.reader import PlaceReader, Raw, read_each, strings
from planner.parse.reader.tables import (
    FRAME_BETWEEN,
    FRAME_NONDEFAULT,
    JSON_SYNTAX,
    SUBLINKS,
    TRUTHS,
    frame_words,
)

_BLANKS = re.compile(r"\s*")
_NUMBER = re.compile(r"[\w.]*")
_ODD_NUMBER = re.compile(r"-?\s{0,4096}0[xXoObB]")


class ExpressionReader(PlaceReader, ABC):
    """Reads expressions, and what calls contain beside them: orderings and windows."""

    @abstractmethod
    def query_node(self, node: Raw) -> ast.QueryNode:
        """Read a wrapped SelectStmt: the query of a sub-select."""

    def expr(self, node: Raw) -> ast.Expression:
        """Read an expression."""
        give_way()
        for kind, body in node.items():
            reader = _EXPRESSIONS.get(kind)
            if reader is None:
                if kind in JSON_SYNTAX:
                    raise self.refuse(JSON_SYNTAX[kind], body)
                raise self.refuse(kind, body)
            return reader(self, body)
        raise AssertionError("empty node")

    def optional(self, node: Raw | None) -> ast.Expression | None:
        """Read an expression that may be absent."""
        return None if node is None else self.expr(node)

    def exprs(self, nodes: Sequence[Raw] | None) -> tuple[ast.Expression, ...]:
        """Read a list of expressions."""
        return read_each(self.expr, nodes) if nodes else ()

    def _const(self, body: Raw) -> ast.Expression:
        span = self.span(body)
        if "ival" in body:
            value = body["ival"].get("ival", 0)
            if span is not None and (span.end - span.start > 11 or not self._is_plain(span)):
                span = self._number(span)
            return ast.Constant(kind="int", value=value, span=span)
        if "sval" in body:
            return ast.Constant(kind="string", value=body["sval"].get("sval", ""), span=span)
        if "fval" in body:
            if span is not None:
                span = self._number(span)
            return ast.Constant(kind="float", value=body["fval"]["fval"], span=span)
        if "boolval" in body:
            return ast.Constant(kind="bool", value=body["boolval"].get("boolval", False), span=span)
        if "bsval" in body:
            return ast.Constant(kind="bits", value=body["bsval"].get("bsval", ""), span=span)
        return ast.Constant(kind="null", value=None, span=span)

    def _is_plain(self, span: Span) -> bool:
        return self.text[span.start : span.end].isdecimal()

    def _number(self, span: Span) -> Span:
        """Return the span of a number, its sign included; a spelling newer than version 15 is 42601."""
        if self.text[span.start] == "-":
            digits = run_end(_BLANKS, self.text, span.start + 1)
            span = Span(span.start, run_end(_NUMBER, self.text, digits))
        token = cut(self.text, span.start, span.end)
        if _ODD_NUMBER.match(token) or find(token, "_") >= 0:
            raise SqlError("42601", f'trailing junk after numeric literal at or near "{token}"', span=span)
        return span

    def _param(self, body: Raw) -> ast.Expression:
        return ast.ParamRef(number=body.get("number", 0), span=self.span(body))

    def _column(self, body: Raw) -> ast.Expression:
        names: list[str] = []
        star = False
        for field in body["fields"]:
            if "String" in field:
                names.append(field["String"].get("sval", ""))
            else:
                star = True
        return ast.ColumnRef(names=tuple(names), star=star, span=self.span(body))

    def _a_expr(self, body: Raw) -> ast.Expression:
        kind = body["kind"]
        span = self.span(body)
        if kind in ("AEXPR_OP", "AEXPR_LIKE", "AEXPR_ILIKE", "AEXPR_SIMILAR"):
            return self._operator(body, span)
        name = strings(body.get("name", ()))
        if kind == "AEXPR_IN":
            return ast.In(
                left=self.expr(body["lexpr"]),
                items=self.exprs(body["rexpr"]["List"]["items"]),
                negated=name[-1] == "<>",
                span=span,
            )
        if kind in ("AEXPR_OP_ANY", "AEXPR_OP_ALL"):
            return ast.OperatorAny(
                name=name,
                left=self.expr(body["lexpr"]),
                right=self.expr(body["rexpr"]),
                all=kind == "AEXPR_OP_ALL",
                span=span,
            )
        if "BETWEEN" in kind:
            low, high = body["rexpr"]["List"]["items"]
            return ast.Between(
                arg=self.expr(body["lexpr"]),
                low=self.expr(low),
                high=self.expr(high),
                negated="NOT" in kind,
                symmetric=kind.endswith("SYM"),
                span=span,
            )
        left, right = self.expr(body["lexpr"]), self.expr(body["rexpr"])
        if kind == "AEXPR_NULLIF":
            return ast.NullIf(left=left, right=right, span=span)
        if kind in ("AEXPR_DISTINCT", "AEXPR_NOT_DISTINCT"):
            return ast.Distinct(left=left, right=right, negated=kind == "AEXPR_NOT_DISTINCT", span=span)
        raise self.refuse(kind, body)

    def _operator(self, body: Raw, span: Span | None) -> ast.Expression:
        # a + b + c ... leans left: walk down first, so that long chains do not nest calls
        chain = [(body, span)]
        left = body.get("lexpr")
        while left is not None and "A_Expr" in left and left["A_Expr"]["kind"] == "AEXPR_OP":
            inner = left["A_Expr"]
            chain.append((inner, self.span(inner)))
            left = inner.get("lexpr")
        result = None if left is None else self.expr(left)
        for raw, place in reversed(chain):
            result = ast.Operator(
                name=strings(raw["name"]), left=result, right=self.expr(raw["rexpr"]), span=place
            )
        if result is None:
            raise AssertionError("an operator is read as nothing")
        return result

    def _bool(self, body: Raw) -> ast.Expression:
        kind = body["boolop"]
        return ast.BoolOp(
            kind="and" if kind == "AND_EXPR" else "or" if kind == "OR_EXPR" else "not",
            args=self.exprs(body["args"]),
            span=self.span(body),
        )

    def _null_test(self, body: Raw) -> ast.Expression:
        return ast.NullTest(
            arg=self.expr(body["arg"]),
            negated=body["nulltesttype"] == "IS_NOT_NULL",
            span=self.span(body),
        )

    def _boolean_test(self, body: Raw) -> ast.Expression:
        kind: str = body["booltesttype"]
        return ast.BooleanTest(
            arg=self.expr(body["arg"]),
            test=TRUTHS[kind.rsplit("_", 1)[1]],
            negated="NOT" in kind,
            span=self.span(body),
        )

    def _named_arg(self, body: Raw) -> ast.Expression:
        return ast.NamedArg(name=body["name"], arg=self.expr(body["arg"]), span=self.span(body))

    def func(self, body: Raw) -> ast.FuncCall:
        """Read a function call (its body, unwrapped)."""
        name = strings(body["funcname"])
        sql_syntax = body.get("funcformat") == "COERCE_SQL_SYNTAX"
        span = self.span(body)
        if sql_syntax and name[-1] == "system_user":
            return ast.FuncCall(name=("system_user",), span=span)
        if sql_syntax and name[-1] == "timezone" and len(body.get("args", ())) == 1:
            raise self.syntax_error(span)  # AT LOCAL
        over = body.get("over")
        return ast.FuncCall(
            name=name,
            args=self.exprs(body.get("args")),
            star=body.get("agg_star", False),
            distinct=body.get("agg_distinct", False),
            variadic=body.get("func_variadic", False),
            within_group=body.get("agg_within_group", False),
            order=self.sort_items(body.get("agg_order")),
            filter=self.optional(body.get("agg_filter")),
            over=None if over is None else self.window(over),
            sql_syntax=sql_syntax,
            span=span,
        )

    def type_name(self, body: Raw) -> ast.TypeName:
        """Read a TypeName (its body, unwrapped)."""
        return ast.TypeName(
            names=strings(body.get("names", ())),
            typmods=self.exprs(body.get("typmods")),
            dims=tuple([dim["Integer"].get("ival", 0) for dim in body.get("arrayBounds", ())]),
            setof=body.get("setof", False),
            percent_type=body.get("pct_type", False),
            span=self.span(body),
        )

    def _cast(self, body: Raw) -> ast.Expression:
        target = self.type_name(body["typeName"])
        return ast.TypeCast(arg=self.expr(body["arg"]), type=target, span=self.span(body) or target.span)

    def _collate(self, body: Raw) -> ast.Expression:
        return ast.Collate(
            arg=self.optional(body.get("arg")),
            name=strings(body["collname"]),
            span=self.span(body),
        )

    def _case(self, body: Raw) -> ast.Expression:
        whens = []
        for node in body["args"]:
            when = node["CaseWhen"]
            whens.append(
                ast.When(
                    condition=self.expr(when["expr"]),
                    result=self.expr(when["result"]),
                    span=self.span(when),
                )
            )
        return ast.Case(
            arg=self.optional(body.get("arg")),
            whens=tuple(whens),
            default=self.optional(body.get("defresult")),
            span=self.span(body),
        )

    def _coalesce(self, body: Raw) -> ast.Expression:
        return ast.Coalesce(args=self.exprs(body["args"]), span=self.span(body))

    def _min_max(self, body: Raw) -> ast.Expression:
        return ast.MinMax(
            greatest=body["op"] == "IS_GREATEST",
            args=self.exprs(body["args"]),
            span=self.span(body),
        )

    def _array(self, body: Raw) -> ast.Expression:
        return ast.ArrayLiteral(elements=self.exprs(body.get("elements")), span=self.span(body))

    def _row(self, body: Raw) -> ast.Expression:
        return ast.Row(
            items=self.exprs(body.get("args")),
            explicit=body.get("row_format") == "COERCE_EXPLICIT_CALL",
            span=self.span(body),
        )

    def _sublink(self, body: Raw) -> ast.Expression:
        return ast.SubLink(
            kind=SUBLINKS[body["subLinkType"]],
            query=self.query_node(body["subselect"]),
            test=self.optional(body.get("testexpr")),
            op=strings(body.get("operName", ())),
            span=self.span(body),
        )

    def steps(self, nodes: Sequence[Raw]) -> tuple[str | ast.SubscriptStep | ast.Star, ...]:
        """Read indirection: field names, subscripts, a star."""
        steps: list[str | ast.SubscriptStep | ast.Star] = []
        for node in nodes:
            if "String" in node:
                steps.append(node["String"].get("sval", ""))
            elif "A_Star" in node:
                steps.append(ast.Star())
            else:
                indices = node["A_Indices"]
                lower = self.optional(indices.get("lidx"))
                upper = self.optional(indices.get("uidx"))
                place = lower or upper
                steps.append(
                    ast.SubscriptStep(
                        lower=lower,
                        upper=upper,
                        is_slice=indices.get("is_slice", False),
                        span=place.span if place is not None else None,
                    )
                )
        return tuple(steps)

    def _indirection(self, body: Raw) -> ast.Expression:
        arg = self.expr(body["arg"])
        return ast.Indirection(arg=arg, steps=self.steps(body["indirection"]), span=arg.span)

    def _sql_value(self, body: Raw) -> ast.Expression:
        what = body["op"].removeprefix("SVFOP_").removesuffix("_N").lower()
        return ast.SqlValue(what=what, precision=body.get("typmod", 0), span=self.span(body))

    def _grouping(self, body: Raw) -> ast.Expression:
        return ast.Grouping(args=self.exprs(body.get("args")), span=self.span(body))

    def _default(self, body: Raw) -> ast.Expression:
        return ast.Default(span=self.span(body))

    def _current_of(self, body: Raw) -> ast.Expression:
        if "cursor_param" in body:
            raise self.refuse("WHERE CURRENT OF a parameter")
        return ast.CurrentOf(cursor=body.get("cursor_name", ""))

    def _xml(self, body: Raw) -> ast.Expression:
        raise self.refuse("XML", body)

    # --- ordering and windows -------------------------------------------------------------------

    def sort_items(self, nodes: Sequence[Raw] | None) -> tuple[ast.SortItem, ...]:
        """Read an ORDER BY list."""
        if not nodes:
            return ()
        items = []
        for node in nodes:
            body = node["SortBy"]
            direction = body.get("sortby_dir", "").removeprefix("SORTBY_").lower()
            nulls = body.get("sortby_nulls", "").removeprefix("SORTBY_NULLS_").lower()
            expr = self.expr(body["node"])
            items.append(
                ast.SortItem(
                    expr=expr,
                    direction="" if direction == "default" else direction,
                    nulls="" if nulls == "default" else nulls,
                    using=strings(body.get("useOp", ())),
                    span=(self.span(body) if "location" in body else None) or expr.span,
                )
            )
        return tuple(items)

    def window(self, body: Raw) -> ast.WindowDef:
        """Read a WindowDef (its body)."""
        options = body.get("frameOptions", 0)
        frame = None
        if options & FRAME_NONDEFAULT:
            frame = self._frame(body, options)
        return ast.WindowDef(
            name=body.get("name", ""),
            base=body.get("refname", ""),
            partition=self.exprs(body.get("partitionClause")),
            order=self.sort_items(body.get("orderClause")),
            frame=frame,
            span=self.span(body),
        )

    def _frame(self, body: Raw, options: int) -> ast.Frame:
        mode, start, end, exclude = frame_words(options)
        return ast.Frame(
            mode=mode,
            start=start,
            end=end,
            start_offset=self.optional(body.get("startOffset")),
            end_offset=self.optional(body.get("endOffset")),
            exclude=exclude,
            between=bool(options & FRAME_BETWEEN),
            span=self.span(body),
        )


_EXPRESSIONS: dict[str, Callable[[ExpressionReader, Raw], ast.Expression]] = {
    "A_Const": ExpressionReader._const,
    "ParamRef": ExpressionReader._param,
    "ColumnRef": ExpressionReader._column,
    "A_Expr": ExpressionReader._a_expr,
    "BoolExpr": ExpressionReader._bool,
    "NullTest": ExpressionReader._null_test,
    "BooleanTest": ExpressionReader._boolean_test,
    "NamedArgExpr": ExpressionReader._named_arg,
    "FuncCall": ExpressionReader.func,
    "TypeCast": ExpressionReader._cast,
    "CollateClause": ExpressionReader._collate,
    "CaseExpr": ExpressionReader._case,
    "CoalesceExpr": ExpressionReader._coalesce,
    "MinMaxExpr": ExpressionReader._min_max,
    "A_ArrayExpr": ExpressionReader._array,
    "RowExpr": ExpressionReader._row,
    "SubLink": ExpressionReader._sublink,
    "A_Indirection": ExpressionReader._indirection,
    "SQLValueFunction": ExpressionReader._sql_value,
    "GroupingFunc": ExpressionReader._grouping,
    "SetToDefault": ExpressionReader._default,
    "CurrentOfExpr": ExpressionReader._current_of,
    "XmlExpr": ExpressionReader._xml,
    "XmlSerialize": ExpressionReader._xml,
}
