"""Raw parse tree -> AST, for queries: SELECT, VALUES, set operations and the clauses they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from planner import ast
from planner.base.errors import Span, SqlError
from planner.parse.reader.expr import ExpressionReader
from planner.parse.reader.reader import Raw, read_each, strings
from planner.parse.reader.tables import JSON_SYNTAX, LOCK_STRENGTHS, LOCK_WAITS


def into_of(body: Raw) -> Raw | None:
    """Return the INTO of a SelectStmt's body: in a set operation that of its first SELECT."""
    while body.get("op", "SETOP_NONE") != "SETOP_NONE":
        body = body["larg"]
    return body.get("intoClause")


def without_into(body: Raw) -> Raw:
    """Return a SelectStmt's body without what ``into_of`` finds."""
    chain = []  # UNION chains lean left, and may be long
    while body.get("op", "SETOP_NONE") != "SETOP_NONE":
        chain.append(body)
        body = body["larg"]
    made = {key: value for key, value in body.items() if key != "intoClause"}
    for outer in reversed(chain):
        made = {**outer, "larg": made}
    return made


class RawReader(ExpressionReader):
    """Reads queries, and the table references, aliases and WITH lists that other statements have too."""

    def targets(self, nodes: Sequence[Raw] | None) -> tuple[ast.TargetItem, ...]:
        """Read a select list."""
        if not nodes:
            return ()
        return read_each(self._target, nodes)

    def _target(self, node: Raw) -> ast.TargetItem:
        body = node["ResTarget"]
        return ast.TargetItem(expr=self.expr(body["val"]), name=body.get("name", ""), span=self.span(body))

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
                return self._sampled(body)
            if kind == "RangeTableFunc":
                raise self.refuse("XMLTABLE", body)
            raise self.refuse(JSON_SYNTAX.get(kind, kind), body)
        raise AssertionError("empty node")

    def _sampled(self, body: Raw) -> ast.TableRef:
        sample = ast.TableSample(
            method=strings(body["method"]),
            args=self.exprs(body["args"]),
            seed=self.optional(body.get("repeatable")),
            span=self.span(body),
        )
        return replace(self.table(body["relation"]["RangeVar"]), sample=sample)

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

    def statement(self, node: Raw) -> ast.StatementNode:
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
            rows = read_each(lambda row: self.exprs(row["List"]["items"]), body["valuesLists"])
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
            from_=read_each(self.from_item, body["fromClause"]) if "fromClause" in body else (),
            where=self.optional(body.get("whereClause")),
            group=read_each(self._group_item, body["groupClause"]) if "groupClause" in body else (),
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
