"""Raw parse tree -> AST, for statements other than queries (see ``planner.raw_query``).

``StatementReader.statement`` looks the raw node's kind up in one table. Kinds that PostgreSQL has and this
server refuses altogether stand in ``raw_tables.REFUSED`` with the name the error gives them; anything else unknown is
refused by its raw name, so nothing slips through.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from planner import ast
from planner.errors import SqlError, not_supported
from planner.raw_query import Raw, RawReader, strings
from planner.raw_tables import (
    CONSTRAINT_KINDS,
    CURSOR_ASENSITIVE,
    CURSOR_BINARY,
    CURSOR_HOLD,
    CURSOR_INSENSITIVE,
    CURSOR_NO_SCROLL,
    CURSOR_SCROLL,
    DEFINE,
    FETCH_ALL,
    LIKE_OPTIONS,
    MERGE_ACTIONS,
    ON_COMMIT,
    OVERRIDING,
    REFUSED,
    TRANSACTION,
)


def _words(kind: str, prefix: str) -> str:
    return kind.removeprefix(prefix).replace("_", " ").lower()


def _object_word(kind: str) -> str:
    return {
        "OBJECT_MATVIEW": "materialized view",
        "OBJECT_TABCONSTRAINT": "table constraint",
        "OBJECT_DOMCONSTRAINT": "domain constraint",
        "OBJECT_FOREIGN_TABLE": "foreign table",
    }.get(kind, _words(kind, "OBJECT_"))


class StatementReader(RawReader):
    """Reads statements. ``inner_text`` is asked for the text of a statement inside PREPARE and DECLARE."""

    def __init__(self, text: str, inner_text: Callable[[str], str]) -> None:
        """``inner_text(keyword)``: the statement's text after that keyword (AS or FOR)."""
        super().__init__(text)
        self._inner_text = inner_text

    def statement(self, node: Raw) -> ast.Node:
        """Read any statement; 0A000 for those the server refuses."""
        for kind, body in node.items():
            if kind == "SelectStmt":
                query = self.query(body)
                if isinstance(query, ast.Select) and query.into is not None:
                    return self._select_into(query, body)
                return query
            reader = _STATEMENTS.get(kind)
            if reader is not None:
                return reader(self, body)
            if kind == "DefineStmt":
                what = DEFINE.get(body["kind"], "CREATE " + _object_word(body["kind"]).upper())
                raise not_supported(what)
            raise not_supported(REFUSED.get(kind, kind.removesuffix("Stmt")))
        raise AssertionError("empty statement")

    # --- options and names ----------------------------------------------------------------------

    def _option_value(self, node: Raw | None) -> ast.OptionValue:
        if node is None:
            return None
        for kind, body in node.items():
            if kind == "String":
                return str(body.get("sval", ""))
            if kind == "Integer":
                return int(body.get("ival", 0))
            if kind == "Float":
                return ast.NumberText(text=body["fval"])
            if kind == "Boolean":
                return bool(body.get("boolval", False))
            if kind == "List":
                return tuple(
                    [
                        item["String"].get("sval", "") if "String" in item else self._role(next(iter(item.values()))).name
                        for item in body.get("items", ())
                    ]
                )  # fmt: skip
            if kind == "A_Star":
                return "*"
            if kind == "TypeName":
                return self.type_name(body)
            if kind == "RoleSpec":
                return self._role(body).name
            return self.expr(node)
        raise AssertionError("empty option value")

    def options(self, nodes: list[Raw] | None) -> tuple[ast.Option, ...]:
        """Read a list of DefElem."""
        return tuple(
            [
                ast.Option(
                    name=body["defname"],
                    value=self._option_value(body.get("arg")),
                    namespace=body.get("defnamespace", ""),
                    span=self.span(body),
                )
                for body in [node["DefElem"] for node in nodes or ()]
            ]
        )

    def _role(self, body: Raw) -> ast.Role:
        special = body["roletype"].removeprefix("ROLESPEC_").lower()
        return ast.Role(
            name=body.get("rolename", ""),
            special="" if special == "cstring" else special,
            span=self.span(body),
        )

    def _name(self, node: Raw) -> ast.Name:
        for kind, body in node.items():
            if kind == "String":
                return (body.get("sval", ""),)
            if kind == "List":
                return strings([item for item in body["items"] if "String" in item])
            if kind == "TypeName":
                return strings(body.get("names", ()))
            if kind == "ObjectWithArgs":
                return strings(body["objname"])
        return ()

    # --- data-modifying -------------------------------------------------------------------------

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

    def _insert(self, body: Raw) -> ast.Node:
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
            overriding=overriding,  # type: ignore[arg-type]
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

    def _update(self, body: Raw) -> ast.Node:
        return ast.Update(
            relation=self.table(body["relation"]),
            assignments=self._assignments(body["targetList"]),
            from_=tuple([self.from_item(node) for node in body.get("fromClause", ())]),
            where=self.optional(body.get("whereClause")),
            returning=self.returning(body.get("returningClause")),
            with_=self.with_clause(body.get("withClause")),
        )

    def _delete(self, body: Raw) -> ast.Node:
        return ast.Delete(
            relation=self.table(body["relation"]),
            using=tuple([self.from_item(node) for node in body.get("usingClause", ())]),
            where=self.optional(body.get("whereClause")),
            returning=self.returning(body.get("returningClause")),
            with_=self.with_clause(body.get("withClause")),
        )

    def _merge(self, body: Raw) -> ast.Node:
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
            action=action,  # type: ignore[arg-type]
            condition=self.optional(body.get("condition")),
            assignments=self._assignments(targets) if action == "update" else (),
            columns=tuple([self._target_column(n["ResTarget"]) for n in targets]) if inserts else (),
            values=tuple([self.expr(value) for value in body["values"]]) if "values" in body else None,
            overriding=OVERRIDING.get(body.get("override", ""), ""),  # type: ignore[arg-type]
        )

    def _copy(self, body: Raw) -> ast.Node:
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

    # --- definitions ----------------------------------------------------------------------------

    def constraint(self, body: Raw) -> ast.Constraint:
        """Read a Constraint (its body)."""
        raw_kind = body["contype"]
        kind = CONSTRAINT_KINDS.get(raw_kind)
        span = self.span(body)
        if kind is None:  # attributes newer than version 15: NOT ENFORCED ...
            raise self.syntax_error(span)
        if kind == "generated" and body.get("generated_kind") == "v":
            raise self.syntax_error(span)
        if kind in ("check", "foreign key") and not body.get("is_enforced", False):
            raise self.syntax_error(span)
        if body.get("without_overlaps") or body.get("fk_with_period"):
            raise self.syntax_error(span)
        if kind == "not null" and "keys" in body:
            raise self.syntax_error(span)
        references = body.get("pktable")
        return ast.Constraint(
            kind=kind,
            name=body.get("conname", ""),
            expr=self.optional(body.get("raw_expr")),
            columns=strings(body.get("keys") or body.get("fk_attrs") or ()),
            include=strings(body.get("including", ())),
            options=self.options(body.get("options")),
            nulls_not_distinct=body.get("nulls_not_distinct", False),
            no_inherit=body.get("is_no_inherit", False),
            deferrable=body.get("deferrable", False),
            initially_deferred=body.get("initdeferred", False),
            not_valid=body.get("skip_validation", False),
            using_index=body.get("indexname", ""),
            tablespace=body.get("indexspace", ""),
            references=None if references is None else self.table(references),
            referenced=strings(body.get("pk_attrs", ())),
            match=body.get("fk_matchtype", "s"),
            on_update=body.get("fk_upd_action", "a"),
            on_delete=body.get("fk_del_action", "a"),
            delete_columns=strings(body.get("fk_del_set_cols", ())),
            generated_when=body.get("generated_when", "") if kind == "identity" else "",
            span=span,
        )

    def column_def(self, body: Raw) -> ast.ColumnDef:
        """Read a ColumnDef (its body)."""
        collation = body.get("collClause")
        type_name = body.get("typeName")
        if "fdwoptions" in body:
            raise self.refuse("OPTIONS of a column", body)
        return ast.ColumnDef(
            name=body.get("colname", ""),
            type=None if type_name is None else self.type_name(type_name),
            constraints=tuple([self.constraint(n["Constraint"]) for n in body.get("constraints", ())]),
            collation=strings(collation["collname"]) if collation else (),
            compression=body.get("compression", ""),
            storage=body.get("storage_name", ""),
            using=self.optional(body.get("raw_default")),
            span=self.span(body),
        )

    def _table_element(self, node: Raw) -> ast.ColumnDef | ast.Constraint | ast.TableLike:
        for kind, body in node.items():
            if kind == "ColumnDef":
                return self.column_def(body)
            if kind == "Constraint":
                return self.constraint(body)
            if kind == "TableLikeClause":
                bits = body.get("options", 0)
                words = [word for i, word in enumerate(LIKE_OPTIONS) if bits >> i & 1]
                relation = self.table(body["relation"])
                return ast.TableLike(relation=relation, including=frozenset(words), span=relation.span)
            raise self.refuse(kind, body)
        raise AssertionError("empty table element")

    def _create_table(self, body: Raw) -> ast.Node:
        refused = (
            ("partbound", "PARTITION OF"),
            ("inhRelations", "INHERITS"),
            ("partspec", "PARTITION BY"),
            ("ofTypename", "OF type"),
        )
        return ast.CreateTable(
            relation=self.table(body["relation"]),
            elements=tuple([self._table_element(node) for node in body.get("tableElts", ())]),
            if_not_exists=body.get("if_not_exists", False),
            on_commit=ON_COMMIT.get(body.get("oncommit", ""), ""),  # type: ignore[arg-type]
            options=self.options(body.get("options")),
            tablespace=body.get("tablespacename", ""),
            access_method=body.get("accessMethod", ""),
            unsupported=tuple([what for key, what in refused if key in body]),
        )

    def _create_table_as(self, body: Raw) -> ast.Node:
        into = body["into"]
        return ast.CreateTableAs(
            relation=self.table(into["rel"]),
            query=self.statement(body["query"]),
            columns=strings(into.get("colNames", ())),
            if_not_exists=body.get("if_not_exists", False),
            with_data=not into.get("skipData", False),
            on_commit=ON_COMMIT.get(into.get("onCommit", ""), ""),  # type: ignore[arg-type]
            options=self.options(into.get("options")),
            tablespace=into.get("tableSpaceName", ""),
            access_method=into.get("accessMethod", ""),
            materialized=body.get("objtype") == "OBJECT_MATVIEW",
            select_into=body.get("is_select_into", False),
        )

    def _refresh(self, body: Raw) -> ast.Node:
        return ast.RefreshMaterializedView(
            relation=self.table(body["relation"]),
            concurrently=body.get("concurrent", False),
            with_data=not body.get("skipData", False),
        )

    def _select_into(self, query: ast.Select, body: Raw) -> ast.Node:
        into = query.into
        assert into is not None
        raw = {key: value for key, value in body.items() if key != "intoClause"}
        return ast.CreateTableAs(relation=into, query=self.query(raw), select_into=True)

    def _create_schema(self, body: Raw) -> ast.Node:
        owner = body.get("authrole")
        return ast.CreateSchema(
            name=body.get("schemaname", ""),
            owner=None if owner is None else self._role(owner),
            elements=tuple([self.statement(node) for node in body.get("schemaElts", ())]),
            if_not_exists=body.get("if_not_exists", False),
        )

    def _create_sequence(self, body: Raw) -> ast.Node:
        return ast.CreateSequence(
            relation=self.table(body["sequence"]),
            options=self.options(body.get("options")),
            if_not_exists=body.get("if_not_exists", False),
        )

    def _alter_sequence(self, body: Raw) -> ast.Node:
        return ast.AlterSequence(
            relation=self.table(body["sequence"]),
            options=self.options(body.get("options")),
            if_exists=body.get("missing_ok", False),
        )

    def _create_view(self, body: Raw) -> ast.Node:
        check = body.get("withCheckOption", "NO_CHECK_OPTION")
        return ast.CreateView(
            relation=self.table(body["view"]),
            query=self.query_node(body["query"]),
            columns=strings(body.get("aliases", ())),
            replace=body.get("replace", False),
            options=self.options(body.get("options")),
            check_option={"LOCAL_CHECK_OPTION": "local", "CASCADED_CHECK_OPTION": "cascaded"}.get(check, ""),  # type: ignore[arg-type]
        )  # fmt: skip

    def _create_index(self, body: Raw) -> ast.Node:
        return ast.CreateIndex(
            name=body.get("idxname", ""),
            relation=self.table(body["relation"]),
            method=body.get("accessMethod", "btree"),
            elements=tuple([self.index_element(n) for n in body["indexParams"]]),
            include=tuple([self.index_element(n) for n in body.get("indexIncludingParams", ())]),
            where=self.optional(body.get("whereClause")),
            unique=body.get("unique", False),
            concurrently=body.get("concurrent", False),
            if_not_exists=body.get("if_not_exists", False),
            nulls_not_distinct=body.get("nulls_not_distinct", False),
            options=self.options(body.get("options")),
            tablespace=body.get("tableSpace", ""),
        )

    def _alter_action(self, node: Raw) -> ast.AlterAction:
        body = node["AlterTableCmd"]
        subtype = body["subtype"].removeprefix("AT_")
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", subtype).lower()
        definition: ast.Node | None = None
        options: tuple[ast.Option, ...] = ()
        raw = body.get("def")
        if raw is not None:
            for key, inner in raw.items():
                if key == "ColumnDef":
                    definition = self.column_def(inner)
                elif key == "Constraint":
                    definition = self.constraint(inner)
                elif key == "ATAlterConstraint":
                    definition = self._altered_constraint(inner)
                elif key == "List":
                    items = inner.get("items", [])
                    if items and all("DefElem" in item for item in items):
                        options = self.options(items)
                elif kind in ("column default", "cooked column default"):
                    definition = self.expr(raw)
        role = body.get("newowner")
        return ast.AlterAction(
            kind=kind,
            name=body.get("name", ""),
            definition=definition,
            options=options,
            role=None if role is None else self._role(role),
            cascade=body.get("behavior") == "DROP_CASCADE",
            missing_ok=body.get("missing_ok", False),
        )

    def _altered_constraint(self, body: Raw) -> ast.Constraint:
        if body.get("noinherit", False):
            raise SqlError("0A000", "FOREIGN KEY constraints cannot be marked NO INHERIT")
        if not body.get("alterDeferrability", False):  # ENFORCED, INHERIT: newer than version 15
            raise self.syntax_error(None)
        return ast.Constraint(
            kind="altered",
            name=body["conname"],
            deferrable=body.get("deferrable", False),
            initially_deferred=body.get("initdeferred", False),
        )

    def _alter_table(self, body: Raw) -> ast.Node:
        return ast.AlterTable(
            what=_object_word(body["objtype"]),
            relation=self.table(body["relation"]),
            actions=tuple([self._alter_action(node) for node in body["cmds"]]),
            if_exists=body.get("missing_ok", False),
        )

    def _rename(self, body: Raw) -> ast.Node:
        relation = body.get("relation")
        what = _object_word(body["renameType"])
        old = body.get("subname", "")
        if relation is None and not old and "object" in body:
            old = ".".join(self._name(body["object"]))
        return ast.Rename(
            what=what,
            relation=None if relation is None else self.table(relation),
            old=old,
            new=body["newname"],
            relation_what=_object_word(body.get("relationType", "OBJECT_TABLE")),
            if_exists=body.get("missing_ok", False),
        )

    def _set_schema(self, body: Raw) -> ast.Node:
        relation = body.get("relation")
        return ast.SetSchema(
            what=_object_word(body["objectType"]),
            relation=None if relation is None else self.table(relation),
            new=body["newschema"],
            if_exists=body.get("missing_ok", False),
        )

    def _alter_owner(self, body: Raw) -> ast.Node:
        return ast.AlterOwner(
            what=_object_word(body["objectType"]),
            name=self._name(body["object"]),
            role=self._role(body["newowner"]),
        )

    def _drop(self, body: Raw) -> ast.Node:
        return ast.Drop(
            what=_object_word(body["removeType"]),
            names=tuple([self._name(node) for node in body["objects"]]),
            if_exists=body.get("missing_ok", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
            concurrently=body.get("concurrent", False),
        )

    def _truncate(self, body: Raw) -> ast.Node:
        return ast.Truncate(
            relations=tuple([self.table(node["RangeVar"]) for node in body["relations"]]),
            restart_identity=body.get("restart_seqs", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )

    def _comment(self, body: Raw) -> ast.Node:
        return ast.Comment(
            what=_object_word(body["objtype"]),
            name=self._name(body["object"]),
            text=body.get("comment"),
        )

    # --- roles ----------------------------------------------------------------------------------

    def _grant(self, body: Raw) -> ast.Node:
        objects = body.get("objects", [])
        grantor = body.get("grantor")
        return ast.Grant(
            is_grant=body.get("is_grant", False),
            kind=_object_word(body["objtype"]),
            every=body.get("targtype") == "ACL_TARGET_ALL_IN_SCHEMA",
            relations=tuple([self.table(node["RangeVar"]) for node in objects if "RangeVar" in node]),
            names=strings([node for node in objects if "String" in node]),
            privileges=tuple([self._privilege(node["AccessPriv"]) for node in body.get("privileges", [])]),
            grantees=tuple([self._role(node["RoleSpec"]) for node in body["grantees"]]),
            option=body.get("grant_option", False),
            grantor=None if grantor is None else self._role(grantor),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )

    def _privilege(self, body: Raw) -> ast.Privilege:
        return ast.Privilege(
            word=body.get("priv_name", ""), columns=strings(body.get("cols", ())), span=self.span(body)
        )

    def _grant_role(self, body: Raw) -> ast.Node:
        options = self.options(body.get("opt"))
        for option in options:
            if option.name != "admin" or (not body.get("is_grant", False) and option.value is True):
                raise self.syntax_error(option.span)
        grantor = body.get("grantor")
        return ast.GrantRole(
            is_grant=body.get("is_grant", False),
            roles=tuple([node["AccessPriv"].get("priv_name", "") for node in body["granted_roles"]]),
            grantees=tuple([self._role(node["RoleSpec"]) for node in body["grantee_roles"]]),
            admin=any(option.name == "admin" for option in options),
            grantor=None if grantor is None else self._role(grantor),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )

    def _create_role(self, body: Raw) -> ast.Node:
        return ast.CreateRole(
            kind=body["stmt_type"].removeprefix("ROLESTMT_").lower(),
            name=body["role"],
            options=self.options(body.get("options")),
        )

    def _alter_role(self, body: Raw) -> ast.Node:
        return ast.AlterRole(role=self._role(body["role"]), options=self.options(body.get("options")))

    def _drop_role(self, body: Raw) -> ast.Node:
        return ast.DropRole(
            roles=tuple([self._role(node["RoleSpec"]) for node in body["roles"]]),
            if_exists=body.get("missing_ok", False),
        )

    # --- session --------------------------------------------------------------------------------

    def _transaction(self, body: Raw) -> ast.Node:
        return ast.Transaction(
            action=TRANSACTION[body["kind"]],  # type: ignore[arg-type]
            name=body.get("savepoint_name") or body.get("gid") or "",
            options=self.options(body.get("options")),
            chain=body.get("chain", False),
        )

    def _set(self, body: Raw) -> ast.Node:
        kind = {
            "VAR_SET_VALUE": "value",
            "VAR_SET_DEFAULT": "default",
            "VAR_SET_CURRENT": "current",
            "VAR_SET_MULTI": "multi",
            "VAR_RESET": "reset",
            "VAR_RESET_ALL": "reset all",
        }[body["kind"]]
        raw = body.get("args", [])
        modes = bool(raw) and "DefElem" in raw[0]
        args = () if modes else self.exprs(raw)
        options = self.options(raw) if modes else ()
        return ast.SetVariable(
            kind=kind,  # type: ignore[arg-type]
            name=body.get("name", ""),
            args=args,
            options=options,
            local=body.get("is_local", False),
            span=args[0].span if args else None,
        )

    def _show(self, body: Raw) -> ast.Node:
        return ast.Show(name=body["name"])

    def _prepare(self, body: Raw) -> ast.Node:
        return ast.Prepare(
            name=body["name"],
            types=tuple([self.type_name(node["TypeName"]) for node in body.get("argtypes", ())]),
            query=self.statement(body["query"]),
            text=self._inner_text("AS"),
        )

    def _execute(self, body: Raw) -> ast.Node:
        return ast.Execute(name=body["name"], args=self.exprs(body.get("params")))

    def _deallocate(self, body: Raw) -> ast.Node:
        return ast.Deallocate(name=body.get("name"))

    def _declare(self, body: Raw) -> ast.Node:
        bits = body.get("options", 0)
        return ast.DeclareCursor(
            name=body["portalname"],
            query=self.query_node(body["query"]),
            text=self._inner_text("FOR"),
            scroll=True if bits & CURSOR_SCROLL else False if bits & CURSOR_NO_SCROLL else None,
            hold=bool(bits & CURSOR_HOLD),
            binary=bool(bits & CURSOR_BINARY),
            insensitive=bool(bits & CURSOR_INSENSITIVE),
            asensitive=bool(bits & CURSOR_ASENSITIVE),
        )

    def _fetch(self, body: Raw) -> ast.Node:
        count = int(body.get("howMany", 0))
        return ast.Fetch(
            cursor=body["portalname"],
            direction=body["direction"].removeprefix("FETCH_").lower(),
            count=None if count == FETCH_ALL else count,
            move=body.get("ismove", False),
        )

    def _close(self, body: Raw) -> ast.Node:
        return ast.ClosePortal(name=body.get("portalname"))

    def _explain(self, body: Raw) -> ast.Node:
        return ast.Explain(statement=self.statement(body["query"]), options=self.options(body.get("options")))

    def _vacuum(self, body: Raw) -> ast.Node:
        relations = []
        for node in body.get("rels", ()):
            raw = node["VacuumRelation"]
            relations.append((self.table(raw["relation"]), strings(raw.get("va_cols", ()))))
        return ast.Maintenance(
            what="vacuum" if body.get("is_vacuumcmd") else "analyze",
            options=self.options(body.get("options")),
            relations=tuple(relations),
        )

    def _checkpoint(self, body: Raw) -> ast.Node:
        return ast.Maintenance(what="checkpoint")

    def _reindex(self, body: Raw) -> ast.Node:
        relation = body.get("relation")
        return ast.Maintenance(
            what="reindex",
            options=self.options(body.get("params")),
            relations=() if relation is None else ((self.table(relation), ()),),
            object=body["kind"].removeprefix("REINDEX_OBJECT_").lower(),
            name=body.get("name", ""),
        )

    def _cluster(self, body: Raw) -> ast.Node:
        relation = body.get("relation")
        return ast.Maintenance(
            what="cluster",
            options=self.options(body.get("params")),
            relations=() if relation is None else ((self.table(relation), ()),),
            name=body.get("indexname", ""),
        )

    def _discard(self, body: Raw) -> ast.Node:
        return ast.Discard(what=body["target"].removeprefix("DISCARD_").lower())

    def _listen(self, body: Raw) -> ast.Node:
        return ast.Notify(action="listen", channel=body["conditionname"])

    def _unlisten(self, body: Raw) -> ast.Node:
        return ast.Notify(action="unlisten", channel=body.get("conditionname", ""))

    def _notify(self, body: Raw) -> ast.Node:
        return ast.Notify(action="notify", channel=body["conditionname"], payload=body.get("payload", ""))

    def _set_constraints(self, body: Raw) -> ast.Node:
        named = [self.table(node["RangeVar"]) for node in body.get("constraints", ())]
        return ast.SetConstraints(
            names=tuple([(*filter(None, (r.catalog, r.schema)), r.name) for r in named]),
            deferred=body.get("deferred", False),
        )

    def _lock(self, body: Raw) -> ast.Node:
        return ast.LockTable(
            relations=tuple([self.table(node["RangeVar"]) for node in body["relations"]]),
            mode=body["mode"],
            nowait=body.get("nowait", False),
        )


_STATEMENTS: dict[str, Callable[[StatementReader, Any], ast.Node]] = {
    "InsertStmt": StatementReader._insert,
    "UpdateStmt": StatementReader._update,
    "DeleteStmt": StatementReader._delete,
    "MergeStmt": StatementReader._merge,
    "CopyStmt": StatementReader._copy,
    "CreateStmt": StatementReader._create_table,
    "CreateTableAsStmt": StatementReader._create_table_as,
    "RefreshMatViewStmt": StatementReader._refresh,
    "CreateSchemaStmt": StatementReader._create_schema,
    "CreateSeqStmt": StatementReader._create_sequence,
    "AlterSeqStmt": StatementReader._alter_sequence,
    "ViewStmt": StatementReader._create_view,
    "IndexStmt": StatementReader._create_index,
    "AlterTableStmt": StatementReader._alter_table,
    "RenameStmt": StatementReader._rename,
    "AlterObjectSchemaStmt": StatementReader._set_schema,
    "AlterOwnerStmt": StatementReader._alter_owner,
    "DropStmt": StatementReader._drop,
    "TruncateStmt": StatementReader._truncate,
    "CommentStmt": StatementReader._comment,
    "GrantStmt": StatementReader._grant,
    "GrantRoleStmt": StatementReader._grant_role,
    "CreateRoleStmt": StatementReader._create_role,
    "AlterRoleStmt": StatementReader._alter_role,
    "DropRoleStmt": StatementReader._drop_role,
    "TransactionStmt": StatementReader._transaction,
    "VariableSetStmt": StatementReader._set,
    "VariableShowStmt": StatementReader._show,
    "PrepareStmt": StatementReader._prepare,
    "ExecuteStmt": StatementReader._execute,
    "DeallocateStmt": StatementReader._deallocate,
    "DeclareCursorStmt": StatementReader._declare,
    "FetchStmt": StatementReader._fetch,
    "ClosePortalStmt": StatementReader._close,
    "ExplainStmt": StatementReader._explain,
    "VacuumStmt": StatementReader._vacuum,
    "CheckPointStmt": StatementReader._checkpoint,
    "ReindexStmt": StatementReader._reindex,
    "ClusterStmt": StatementReader._cluster,
    "DiscardStmt": StatementReader._discard,
    "ListenStmt": StatementReader._listen,
    "UnlistenStmt": StatementReader._unlisten,
    "NotifyStmt": StatementReader._notify,
    "LockStmt": StatementReader._lock,
    "ConstraintsSetStmt": StatementReader._set_constraints,
}
