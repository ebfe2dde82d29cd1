"""Raw parse tree -> AST: INSERT, UPDATE, DELETE, MERGE, COPY."""

from __future__ import annotations

from planner import ast
from planner.base.errors import not_supported
from planner.parse.reader.option import OptionReader
from planner.parse.reader.reader import Raw, read_each, strings
from planner.parse.reader.tables import MERGE_ACTIONS, OVERRIDING


class DmlReader(OptionReader):
    """Reads the statements that modify data."""

    def _target_column(self, body: Raw) -> ast.TargetColumn:
        return ast.TargetColumn(
            name=body["name"], steps=self.steps(body.get("indirection", ())), span=self.span(body)
        )

    def _assignments(self, nodes: list[Raw]) -> tuple[ast.Assignment, ...]:
        found: list[ast.Assignment] = []
        pending: list[ast.TargetColumn] = []
        for node in nodes:
            body = node["ResTarget"]
            column = self._target_column(body)
            multi = body["val"].get("MultiAssignRef")
            if multi is None:
                value = self.expr(body["val"])
                found.append(ast.Assignment(columns=(column,), value=value, span=column.span))
                continue
            pending.append(column)
            if multi.get("colno", 0) == multi["ncolumns"]:
                found.append(
                    ast.Assignment(
                        columns=tuple(pending),
                        value=self.expr(multi["source"]),
                        multiple=True,
                        span=pending[0].span,
                    )
                )
                pending = []
        return tuple(found)

    def index_element(self, node: Raw) -> ast.IndexElement:
        """Read an IndexElem."""
        body = node["IndexElem"]
        direction = body.get("ordering", "").removeprefix("SORTBY_").lower()
        nulls = body.get("nulls_ordering", "").removeprefix("SORTBY_NULLS_").lower()
        expr = self.optional(body.get("expr"))
        return ast.IndexElement(
            name=body.get("name", ""),
            expr=expr,
            collation=strings(body.get("collation", ())),
            opclass=strings(body.get("opclass", ())),
            opclass_options=self.options(body.get("opclassopts")),
            direction="" if direction == "default" else direction,
            nulls="" if nulls == "default" else nulls,
            span=expr.span if expr is not None else None,
        )

    def _insert(self, body: Raw) -> ast.StatementNode:
        conflict = body.get("onConflictClause")
        overriding = OVERRIDING.get(body.get("override", ""), "")
        query = body.get("selectStmt")
        return ast.Insert(
            relation=self.table(body["relation"]),
            columns=tuple([self._target_column(n["ResTarget"]) for n in body.get("cols", ())]),
            query=None if query is None else self.query_node(query),
            on_conflict=None if conflict is None else self._on_conflict(conflict),
            returning=self.returning(body.get("returningClause")),
            with_=self.with_clause(body.get("withClause")),
            overriding=overriding,
        )

    def _on_conflict(self, body: Raw) -> ast.OnConflict:
        infer = body.get("infer", {})
        return ast.OnConflict(
            action="update" if body["action"] == "ONCONFLICT_UPDATE" else "nothing",
            elements=tuple([self.index_element(n) for n in infer.get("indexElems", ())]),
            element_where=self.optional(infer.get("whereClause")),
            constraint=infer.get("conname", ""),
            infer_span=self.span(infer) if infer else None,
            assignments=self._assignments(body.get("targetList", [])),
            where=self.optional(body.get("whereClause")),
            span=self.span(body),
        )

    def _update(self, body: Raw) -> ast.StatementNode:
        return ast.Update(
            relation=self.table(body["relation"]),
            assignments=self._assignments(body["targetList"]),
            from_=tuple([self.from_item(node) for node in body.get("fromClause", ())]),
            where=self.optional(body.get("whereClause")),
            returning=self.returning(body.get("returningClause")),
            with_=self.with_clause(body.get("withClause")),
        )

    def _delete(self, body: Raw) -> ast.StatementNode:
        return ast.Delete(
            relation=self.table(body["relation"]),
            using=tuple([self.from_item(node) for node in body.get("usingClause", ())]),
            where=self.optional(body.get("whereClause")),
            returning=self.returning(body.get("returningClause")),
            with_=self.with_clause(body.get("withClause")),
        )

    def _merge(self, body: Raw) -> ast.StatementNode:
        if "returningClause" in body:
            raise not_supported("MERGE ... RETURNING")
        return ast.Merge(
            relation=self.table(body["relation"]),
            source=self.from_item(body["sourceRelation"]),
            on=self.expr(body["joinCondition"]),
            clauses=tuple([self._merge_when(node["MergeWhenClause"]) for node in body["mergeWhenClauses"]]),
            with_=self.with_clause(body.get("withClause")),
        )

    def _merge_when(self, body: Raw) -> ast.MergeWhen:
        kind = body["matchKind"]
        if kind == "MERGE_WHEN_NOT_MATCHED_BY_SOURCE":
            raise not_supported("MERGE ... WHEN NOT MATCHED BY SOURCE")
        action = MERGE_ACTIONS[body["commandType"]]
        targets = body.get("targetList", [])
        inserts = action == "insert"
        return ast.MergeWhen(
            matched=kind == "MERGE_WHEN_MATCHED",
            action=action,
            condition=self.optional(body.get("condition")),
            assignments=self._assignments(targets) if action == "update" else (),
            columns=tuple([self._target_column(n["ResTarget"]) for n in targets]) if inserts else (),
            values=read_each(self.expr, body["values"]) if "values" in body else None,
            overriding=OVERRIDING.get(body.get("override", ""), ""),
        )

    def _copy(self, body: Raw) -> ast.StatementNode:
        relation, query = body.get("relation"), body.get("query")
        return ast.Copy(
            relation=None if relation is None else self.table(relation),
            query=None if query is None else self.statement(query),
            columns=strings(body.get("attlist", ())),
            is_from=body.get("is_from", False),
            program=body.get("is_program", False),
            filename=body.get("filename"),
            options=self.options(body.get("options")),
            where=self.optional(body.get("whereClause")),
        )
