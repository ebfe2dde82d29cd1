"""Raw parse tree -> AST, for expressions and queries.

The raw tree is the parser's JSON, decoded: every node is ``{"Kind": {fields}}``, fields that are zero, false or
empty are left out, and locations are byte offsets. ``RawReader`` turns one such tree into ``planner.ast`` nodes.

    {"A_Const": {"ival": {"ival": 1}, "location": 7}}  ->  Constant(kind="int", value=1, span=7..8)

Whatever it does not know is refused with 0A000 naming the construct; what the grammar accepts but PostgreSQL 15
does not (JSON constructors, hexadecimal numbers ...) is a syntax error as it is there. Expressions nest as deep as
Python's recursion limit allows; ``planner.parse`` reports more as 54001.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from planner import ast
from planner.errors import Span, SqlError, not_supported
from planner.raw_tables import (
    FRAME_NONDEFAULT,
    JSON_SYNTAX,
    LOCK_STRENGTHS,
    LOCK_WAITS,
    SUBLINKS,
    TRUTHS,
    frame_words,
)

Raw: TypeAlias = dict[str, Any]

# One token, good enough to find where it ends: the span an error message would blame.
_TOKEN = re.compile(
    r"""\w[\w$]*(?:\.\d\w*)?|'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|\$\d+|\.\d\w*|::|:=|=>"""
    r"""|[-+*/<>=~!@#%^&|`?]+|."""
)
_NEGATIVE = re.compile(r"-\s*[\w.]+")
_ODD_NUMBER = re.compile(r"[-\s]*0[xXoObB]|.*_")


def strings(nodes: Sequence[Raw]) -> tuple[str, ...]:
    """Return the texts of a list of String nodes."""
    return tuple([node["String"].get("sval", "") for node in nodes])


class RawReader:
    """Reads one raw tree over ``text``; spans are characters of ``text``."""

    def __init__(self, text: str) -> None:
        """Prepare for trees parsed from ``text``."""
        self.text = text
        self._chars: list[int] | None = None
        if not text.isascii():
            chars: list[int] = []
            for index, char in enumerate(text):
                chars.extend([index] * len(char.encode("utf-8")))
            chars.append(len(text))
            self._chars = chars

    # --- places ---------------------------------------------------------------------------------

    def offset(self, location: int) -> int:
        """Return the character offset of a byte offset."""
        if self._chars is None:
            return location
        return self._chars[min(location, len(self._chars) - 1)]

    def span(self, body: Raw) -> Span | None:
        """Return the token at a node's location, None where it has none."""
        location = body.get("location", 0)
        if location < 0:
            return None
        start = location if self._chars is None else self.offset(location)
        match = _TOKEN.match(self.text, start)
        return Span(start, match.end() if match else start)

    def refuse(self, construct: str, body: Raw | None = None) -> SqlError:
        """Return the 0A000 error for a construct that has a location."""
        span = self.span(body) if body is not None and "location" in body else None
        return not_supported(construct, span=span)

    def syntax_error(self, span: Span | None) -> SqlError:
        """Return PostgreSQL's syntax error at a span (for grammar newer than version 15)."""
        near = self.text[span.start : span.end] if span else ""
        return SqlError("42601", f'syntax error at or near "{near}"', span=span)

    # --- expressions ----------------------------------------------------------------------------

    def expr(self, node: Raw) -> ast.Expression:
        """Read an expression."""
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
        return tuple([self.expr(node) for node in nodes]) if nodes else ()

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
            match = _NEGATIVE.match(self.text, span.start)
            if match:
                span = Span(span.start, match.end())
        token = self.text[span.start : span.end]
        if _ODD_NUMBER.match(token):
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
        assert result is not None
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

    # --- parts of queries -----------------------------------------------------------------------

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
            span=self.span(body),
        )

    def targets(self, nodes: Sequence[Raw] | None) -> tuple[ast.TargetItem, ...]:
        """Read a select list."""
        if not nodes:
            return ()
        return tuple(
            [
                ast.TargetItem(expr=self.expr(body["val"]), name=body.get("name", ""), span=self.span(body))
                for body in [node["ResTarget"] for node in nodes]
            ]
        )

    def returning(self, clause: Raw | None) -> tuple[ast.TargetItem, ...]:
        """Read a RETURNING clause."""
        if clause is None:
            return ()
        if "options" in clause:
            raise self.refuse("RETURNING WITH")
        return self.targets(clause.get("exprs"))

    def _group_item(self, node: Raw) -> ast.Expression | ast.GroupingSet:
        body = node.get("GroupingSet")
        if body is None:
            return self.expr(node)
        kind = body["kind"].removeprefix("GROUPING_SET_").lower()
        return ast.GroupingSet(
            kind=kind,
            items=tuple([self._group_item(item) for item in body.get("content", ())]),
            span=self.span(body),
        )

    def alias(self, body: Raw | None) -> ast.Alias | None:
        """Read an Alias (its body)."""
        if body is None:
            return None
        return ast.Alias(name=body["aliasname"], columns=strings(body.get("colnames", ())))

    def table(self, body: Raw) -> ast.TableRef:
        """Read a RangeVar (its body)."""
        return ast.TableRef(
            name=body["relname"],
            schema=body.get("schemaname", ""),
            catalog=body.get("catalogname", ""),
            alias=self.alias(body.get("alias")),
            only=not body.get("inh", False),
            persistence=body.get("relpersistence", "p"),
            span=self.span(body),
        )

    def from_item(self, node: Raw) -> ast.FromNode:
        """Read an entry of FROM."""
        for kind, body in node.items():
            if kind == "RangeVar":
                return self.table(body)
            if kind == "JoinExpr":
                return self._join(body)
            if kind == "RangeSubselect":
                query = self.query_node(body["subquery"])
                if "alias" not in body:
                    where = self._opening_parenthesis(query.span)
                    what = "VALUES" if isinstance(query, ast.Values) else "subquery"
                    raise SqlError(
                        "42601",
                        f"{what} in FROM must have an alias",
                        hint="For example, FROM (VALUES ...) [AS] foo."
                        if what == "VALUES"
                        else "For example, FROM (SELECT ...) [AS] foo.",
                        span=where,
                    )
                return ast.SubqueryRef(
                    query=query,
                    alias=self.alias(body.get("alias")),
                    lateral=body.get("lateral", False),
                    span=query.span,
                )
            if kind == "RangeFunction":
                return self._range_function(body)
            if kind == "RangeTableSample":
                raise self.refuse("TABLESAMPLE", body)
            if kind == "RangeTableFunc":
                raise self.refuse("XMLTABLE", body)
            raise self.refuse(JSON_SYNTAX.get(kind, kind), body)
        raise AssertionError("empty node")

    def _opening_parenthesis(self, span: Span | None) -> Span | None:
        """Return the parenthesis before a sub-select's first value (the raw tree does not place it)."""
        start = self.text.rfind("(", 0, span.start) if span is not None else -1
        while start > 0 and self.text[:start].rstrip().lower().endswith("values"):
            start = self.text.rfind("(", 0, start)
        return Span(start, start + 1) if start >= 0 else span

    def _join(self, body: Raw) -> ast.JoinRef:
        kind = body["jointype"].removeprefix("JOIN_").lower()
        on = self.optional(body.get("quals"))
        left, right = self.from_item(body["larg"]), self.from_item(body["rarg"])
        return ast.JoinRef(
            kind=kind,
            left=left,
            right=right,
            natural=body.get("isNatural", False),
            using=strings(body.get("usingClause", ())),
            using_alias=self.alias(body.get("join_using_alias")),
            on=on,
            alias=self.alias(body.get("alias")),
            span=right.span,
        )

    def definitions(self, nodes: Sequence[Raw] | None) -> tuple[ast.ColumnDefinition, ...]:
        """Read a column definition list of a function in FROM."""
        found = []
        for node in nodes or ():
            body = node["ColumnDef"]
            collation = body.get("collClause")
            found.append(
                ast.ColumnDefinition(
                    name=body["colname"],
                    type=self.type_name(body["typeName"]),
                    collation=strings(collation["collname"]) if collation else (),
                    span=self.span(body),
                )
            )
        return tuple(found)

    def _range_function(self, body: Raw) -> ast.FunctionRef:
        functions = []
        for node in body["functions"]:
            call, columns = node["List"]["items"]
            listed = columns["List"]["items"] if columns else None
            functions.append((self.expr(call), self.definitions(listed)))
        return ast.FunctionRef(
            functions=tuple(functions),
            alias=self.alias(body.get("alias")),
            definitions=self.definitions(body.get("coldeflist")),
            ordinality=body.get("ordinality", False),
            lateral=body.get("lateral", False),
            rows_from=body.get("is_rowsfrom", False),
            span=functions[0][0].span,
        )

    def with_clause(
        self, body: Raw | None, statement: Callable[[Raw], ast.Node] | None = None
    ) -> ast.With | None:
        """Read a WITH clause (its body)."""
        if body is None:
            return None
        read = statement or self.statement
        ctes = []
        for node in body["ctes"]:
            cte = node["CommonTableExpr"]
            materialized = cte.get("ctematerialized", "CTEMaterializeDefault")
            ctes.append(
                ast.Cte(
                    name=cte["ctename"],
                    query=read(cte["ctequery"]),
                    columns=strings(cte.get("aliascolnames", ())),
                    materialized={"CTEMaterializeAlways": True, "CTEMaterializeNever": False}.get(
                        materialized
                    ),
                    search=self._search(cte.get("search_clause")),
                    cycle=self._cycle(cte.get("cycle_clause")),
                    span=self.span(cte),
                )
            )
        return ast.With(ctes=tuple(ctes), recursive=body.get("recursive", False), span=self.span(body))

    def _search(self, body: Raw | None) -> ast.SearchClause | None:
        if body is None:
            return None
        return ast.SearchClause(
            columns=strings(body["search_col_list"]),
            breadth=body.get("search_breadth_first", False),
            sequence=body["search_seq_column"],
            span=self.span(body),
        )

    def _cycle(self, body: Raw | None) -> ast.CycleClause | None:
        if body is None:
            return None
        return ast.CycleClause(
            columns=strings(body["cycle_col_list"]),
            mark=body["cycle_mark_column"],
            value=self.expr(body["cycle_mark_value"]),
            default=self.expr(body["cycle_mark_default"]),
            path=body["cycle_path_column"],
            span=self.span(body),
        )

    def statement(self, node: Raw) -> ast.Node:
        """Read a statement inside WITH; the statement reader overrides it to allow DML."""
        return self.query_node(node)

    # --- queries --------------------------------------------------------------------------------

    def query_node(self, node: Raw) -> ast.QueryNode:
        """Read a wrapped SelectStmt."""
        return self.query(node["SelectStmt"])

    def query(self, body: Raw) -> ast.QueryNode:
        """Read a SelectStmt (its body): SELECT, VALUES or a set operation."""
        tail: dict[str, Any] = {}
        if "withClause" in body:
            tail["with_"] = self.with_clause(body["withClause"])
        if "sortClause" in body:
            tail["order"] = self.sort_items(body["sortClause"])
        if "limitCount" in body:
            tail["limit"] = self.expr(body["limitCount"])
        if "limitOffset" in body:
            tail["offset"] = self.expr(body["limitOffset"])
        if body.get("limitOption") == "LIMIT_OPTION_WITH_TIES":
            tail["with_ties"] = True
        if "lockingClause" in body:
            tail["locking"] = tuple([self._locking(node) for node in body["lockingClause"]])
        if body.get("op", "SETOP_NONE") != "SETOP_NONE":
            return self._set_operation(body, tail)
        if "valuesLists" in body:
            rows = tuple([self.exprs(row["List"]["items"]) for row in body["valuesLists"]])
            return ast.Values(rows=rows, span=rows[0][0].span, **tail)
        targets = self.targets(body.get("targetList"))
        distinct: tuple[ast.Expression, ...] | None = None
        if "distinctClause" in body:
            # plain DISTINCT is a list of one empty node
            listed = [node for node in body["distinctClause"] if node]
            distinct = self.exprs(listed)
        into = body.get("intoClause")
        return ast.Select(
            targets=targets,
            from_=tuple([self.from_item(node) for node in body["fromClause"]])
            if "fromClause" in body
            else (),
            where=self.optional(body.get("whereClause")),
            group=tuple([self._group_item(node) for node in body["groupClause"]])
            if "groupClause" in body
            else (),
            group_distinct=body.get("groupDistinct", False),
            having=self.optional(body.get("havingClause")),
            windows=tuple([self.window(node["WindowDef"]) for node in body["windowClause"]])
            if "windowClause" in body
            else (),
            distinct=distinct,
            into=self.table(into["rel"]) if into else None,
            span=targets[0].span if targets else None,
            **tail,
        )

    def _set_operation(self, body: Raw, tail: dict[str, Any]) -> ast.QueryNode:
        # UNION chains lean left: walk down first, as for operators
        chain = [(body, tail)]
        left = body["larg"]
        plain = ("withClause", "sortClause", "limitCount", "limitOffset", "lockingClause")
        while left.get("op", "SETOP_NONE") != "SETOP_NONE" and not any(key in left for key in plain):
            chain.append((left, {}))
            left = left["larg"]
        result = self.query(left)
        for raw, rest in reversed(chain):
            right = self.query(raw["rarg"])
            op = raw["op"].removeprefix("SETOP_").lower()
            result = ast.SetOp(
                op="except" if op == "except" else op,
                all=raw.get("all", False),
                left=result,
                right=right,
                span=result.span,
                **rest,
            )
        return result

    def _locking(self, node: Raw) -> ast.Locking:
        body = node["LockingClause"]
        wait = LOCK_WAITS[body.get("waitPolicy", "LockWaitBlock")]
        tables = tuple([self.table(item["RangeVar"]) for item in body.get("lockedRels", ())])
        return ast.Locking(strength=LOCK_STRENGTHS[body["strength"]], tables=tables, wait=wait, span=None)


_EXPRESSIONS: dict[str, Callable[[RawReader, Raw], ast.Expression]] = {
    "A_Const": RawReader._const,
    "ParamRef": RawReader._param,
    "ColumnRef": RawReader._column,
    "A_Expr": RawReader._a_expr,
    "BoolExpr": RawReader._bool,
    "NullTest": RawReader._null_test,
    "BooleanTest": RawReader._boolean_test,
    "NamedArgExpr": RawReader._named_arg,
    "FuncCall": RawReader.func,
    "TypeCast": RawReader._cast,
    "CollateClause": RawReader._collate,
    "CaseExpr": RawReader._case,
    "CoalesceExpr": RawReader._coalesce,
    "MinMaxExpr": RawReader._min_max,
    "A_ArrayExpr": RawReader._array,
    "RowExpr": RawReader._row,
    "SubLink": RawReader._sublink,
    "A_Indirection": RawReader._indirection,
    "SQLValueFunction": RawReader._sql_value,
    "GroupingFunc": RawReader._grouping,
    "SetToDefault": RawReader._default,
    "CurrentOfExpr": RawReader._current_of,
    "XmlExpr": RawReader._xml,
    "XmlSerialize": RawReader._xml,
}
