"""Raw parse tree -> AST: definitions, roles and privileges."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from planner import ast
from planner.base.errors import Span, SqlError
from planner.parse.reader.changes import DmlReader
from planner.parse.reader.foreign import foreign_options
from planner.parse.reader.function import function_name
from planner.parse.reader.option import large_object_number, object_word
from planner.parse.reader.query import without_into
from planner.parse.reader.reader import Raw, strings
from planner.parse.reader.tables import CHECK_OPTIONS, CONSTRAINT_KINDS, LIKE_OPTIONS, ON_COMMIT

_STORAGE = re.compile(r"\bstorage\b", re.IGNORECASE)


class DdlReader(DmlReader):
    """Reads definitions."""

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
            exclusions=tuple(
                [
                    (
                        self.index_element(pair["List"]["items"][0]),
                        strings(pair["List"]["items"][1]["List"]["items"]),
                    )
                    for pair in body.get("exclusions", ())
                ]
            ),
            method=body.get("access_method", ""),
            where=self.optional(body.get("where_clause")),
            span=span,
        )

    def column_def(self, body: Raw) -> ast.ColumnDef:
        """Read a ColumnDef (its body)."""
        collation = body.get("collClause")
        type_name = body.get("typeName")
        if "storage_name" in body:  # newer than version 15; the word has no location of its own
            found = _STORAGE.search(self.text, self.offset(type_name["location"]) if type_name else 0)
            raise self.syntax_error(Span(*found.span()) if found else None)
        return ast.ColumnDef(
            name=body.get("colname", ""),
            type=None if type_name is None else self.type_name(type_name),
            constraints=tuple([self.constraint(n["Constraint"]) for n in body.get("constraints", ())]),
            collation=strings(collation["collname"]) if collation else (),
            collation_span=self.span(collation) if collation else None,
            compression=body.get("compression", ""),
            using=self.optional(body.get("raw_default")),
            foreign_options=foreign_options(body.get("fdwoptions")),
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

    def _create_table(self, body: Raw) -> ast.StatementNode:
        refused = [("inhRelations", "INHERITS")]
        bound, spec = body.get("partbound"), body.get("partspec")
        parent: ast.TableRef | None = None
        if bound is not None:
            parent = self.table(body["inhRelations"][0]["RangeVar"])
            refused = []
        of_type = body.get("ofTypename")
        return ast.CreateTable(
            of_type=None if of_type is None else self.type_name(of_type),
            partition_by=None if spec is None else self._partition_by(spec),
            parent=parent,
            bound=None if bound is None else self._partition_bound(bound),
            relation=self.table(body["relation"]),
            elements=tuple([self._table_element(node) for node in body.get("tableElts", ())]),
            if_not_exists=body.get("if_not_exists", False),
            on_commit=ON_COMMIT.get(body.get("oncommit", ""), ""),
            options=self.options(body.get("options")),
            tablespace=body.get("tablespacename", ""),
            access_method=body.get("accessMethod", ""),
            unsupported=tuple([what for key, what in refused if key in body]),
        )

    def _create_foreign_table(self, body: Raw) -> ast.StatementNode:
        made = self._create_table(body["base"])
        if not isinstance(made, ast.CreateTable):
            raise AssertionError(f"CREATE FOREIGN TABLE is read as {type(made).__name__}")
        return replace(made, server=body["servername"], foreign_options=foreign_options(body.get("options")))

    def _partition_by(self, body: Raw) -> ast.PartitionBy:
        strategies: dict[str, Literal["r", "l", "h"]] = {"RANGE": "r", "LIST": "l", "HASH": "h"}
        return ast.PartitionBy(
            strategy=strategies[body["strategy"].removeprefix("PARTITION_STRATEGY_")],
            elements=tuple(
                [
                    ast.PartitionElement(
                        name=element.get("name", ""),
                        expr=self.optional(element.get("expr")),
                        collation=strings(element.get("collation", ())),
                        opclass=strings(element.get("opclass", ())),
                        span=self.span(element),
                    )
                    for element in (node["PartitionElem"] for node in body["partParams"])
                ]
            ),
            span=self.span(body),
        )

    def _partition_bound(self, body: Raw) -> ast.PartitionBound:
        return ast.PartitionBound(
            strategy="" if body.get("is_default", False) else body["strategy"],
            values=self.exprs(body.get("listdatums")),
            lower=self.exprs(body.get("lowerdatums")),
            upper=self.exprs(body.get("upperdatums")),
            modulus=body.get("modulus", 0),
            remainder=body.get("remainder", 0),
            span=self.span(body),
        )

    def _create_table_as(self, body: Raw) -> ast.StatementNode:
        into, query = body["into"], body["query"]
        # an INTO in the query stays there, and is refused when that is bound
        select = query.get("SelectStmt")
        return ast.CreateTableAs(
            relation=self.table(into["rel"]),
            query=self.statement(query) if select is None else self.query(select),
            columns=strings(into.get("colNames", ())),
            if_not_exists=body.get("if_not_exists", False),
            with_data=not into.get("skipData", False),
            on_commit=ON_COMMIT.get(into.get("onCommit", ""), ""),
            options=self.options(into.get("options")),
            tablespace=into.get("tableSpaceName", ""),
            access_method=into.get("accessMethod", ""),
            materialized=body.get("objtype") == "OBJECT_MATVIEW",
            select_into=body.get("is_select_into", False),
        )

    def _refresh(self, body: Raw) -> ast.StatementNode:
        return ast.RefreshMaterializedView(
            relation=self.table(body["relation"]),
            concurrently=body.get("concurrent", False),
            with_data=not body.get("skipData", False),
        )

    def _select_into(self, into: Raw, body: Raw) -> ast.StatementNode:
        query = self.query(without_into(body))
        return ast.CreateTableAs(relation=self.table(into["rel"]), query=query, select_into=True)

    def _create_schema(self, body: Raw) -> ast.StatementNode:
        owner = body.get("authrole")
        return ast.CreateSchema(
            name=body.get("schemaname", ""),
            owner=None if owner is None else self.role(owner),
            elements=tuple([self.statement(node) for node in body.get("schemaElts", ())]),
            if_not_exists=body.get("if_not_exists", False),
        )

    def _create_sequence(self, body: Raw) -> ast.StatementNode:
        return ast.CreateSequence(
            relation=self.table(body["sequence"]),
            options=self.options(body.get("options")),
            if_not_exists=body.get("if_not_exists", False),
        )

    def _alter_sequence(self, body: Raw) -> ast.StatementNode:
        return ast.AlterSequence(
            relation=self.table(body["sequence"]),
            options=self.options(body.get("options")),
            if_exists=body.get("missing_ok", False),
        )

    def _create_view(self, body: Raw) -> ast.StatementNode:
        return ast.CreateView(
            relation=self.table(body["view"]),
            query=self.query_node(body["query"]),
            columns=strings(body.get("aliases", ())),
            replace=body.get("replace", False),
            options=self.options(body.get("options")),
            check_option=CHECK_OPTIONS[body.get("withCheckOption", "NO_CHECK_OPTION")],
        )

    def _create_index(self, body: Raw) -> ast.StatementNode:
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
        foreign: tuple[ast.ForeignOption, ...] = ()
        of_type: ast.TypeName | None = None
        word, name, value = "", body.get("name", ""), 0
        parent: ast.TableRef | None = None
        raw = body.get("def")
        if raw is not None:
            for key, inner in raw.items():
                if key == "ColumnDef":
                    definition = self.column_def(inner)
                elif key == "Constraint":
                    definition = self.constraint(inner)
                elif key == "TypeName":
                    of_type = self.type_name(inner)
                elif key == "String":
                    word = inner.get("sval", "")
                elif key == "Integer":
                    value = inner.get("ival", 0)
                elif key == "ReplicaIdentityStmt":
                    word, name = inner["identity_type"], inner.get("name", "")
                elif key == "RangeVar":
                    parent = self.table(inner)
                elif key == "PartitionCmd":
                    bound = inner.get("bound")
                    definition = ast.PartitionAction(
                        relation=self.table(inner["name"]),
                        bound=None if bound is None else self._partition_bound(bound),
                        concurrently=inner.get("concurrent", False),
                    )
                elif key == "ATAlterConstraint":
                    definition = self._altered_constraint(inner)
                elif key == "List":
                    items = inner.get("items", [])
                    if kind.endswith("generic options"):
                        foreign = foreign_options(items)
                    elif items and all("DefElem" in item for item in items):
                        options = self.options(items)
                elif kind in ("column default", "cooked column default"):
                    definition = self.expr(raw)
        role = body.get("newowner")
        return ast.AlterAction(
            kind=kind,
            name=name,
            number=body.get("num", 0),
            value=value,
            word=word,
            definition=definition,
            of_type=of_type,
            parent=parent,
            options=options,
            foreign_options=foreign,
            role=None if role is None else self.role(role),
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

    def _alter_table(self, body: Raw) -> ast.StatementNode:
        return ast.AlterTable(
            what=object_word(body["objtype"]),
            relation=self.table(body["relation"]),
            actions=tuple([self._alter_action(node) for node in body["cmds"]]),
            if_exists=body.get("missing_ok", False),
        )

    def _rename(self, body: Raw) -> ast.StatementNode:
        relation = body.get("relation")
        what = object_word(body["renameType"])
        old = body.get("subname", "")
        if relation is None and not old and "object" in body:
            old = ".".join(self.object_name(body["object"]))
        return ast.Rename(
            what=what,
            relation=None if relation is None else self.table(relation),
            old=old,
            new=body["newname"],
            relation_what=object_word(body.get("relationType", "OBJECT_TABLE")),
            name=self.object_name(body["object"]) if "object" in body else (),
            if_exists=body.get("missing_ok", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )

    def _set_schema(self, body: Raw) -> ast.StatementNode:
        relation = body.get("relation")
        return ast.SetSchema(
            what=object_word(body["objectType"]),
            relation=None if relation is None else self.table(relation),
            new=body["newschema"],
            name=self.object_name(body["object"]) if "object" in body else (),
            if_exists=body.get("missing_ok", False),
        )

    def _alter_owner(self, body: Raw) -> ast.StatementNode:
        return ast.AlterOwner(
            what=object_word(body["objectType"]),
            name=self.object_name(body["object"]),
            role=self.role(body["newowner"]),
        )

    def _drop(self, body: Raw) -> ast.StatementNode:
        return ast.Drop(
            what=object_word(body["removeType"]),
            names=tuple([self.object_name(node) for node in body["objects"]]),
            if_exists=body.get("missing_ok", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
            concurrently=body.get("concurrent", False),
        )

    def _truncate(self, body: Raw) -> ast.StatementNode:
        return ast.Truncate(
            relations=tuple([self.table(node["RangeVar"]) for node in body["relations"]]),
            restart_identity=body.get("restart_seqs", False),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )

    def _comment(self, body: Raw) -> ast.StatementNode:
        return ast.Comment(
            what=object_word(body["objtype"]),
            name=self.object_name(body["object"]),
            text=body.get("comment"),
        )

    # --- roles ----------------------------------------------------------------------------------

    def _grant(self, body: Raw) -> ast.StatementNode:
        objects = body.get("objects", [])
        grantor = body.get("grantor")
        return ast.Grant(
            is_grant=body.get("is_grant", False),
            kind=object_word(body["objtype"]),
            every=body.get("targtype") == "ACL_TARGET_ALL_IN_SCHEMA",
            relations=tuple([self.table(node["RangeVar"]) for node in objects if "RangeVar" in node]),
            names=strings([node for node in objects if "String" in node]),
            qualified=tuple([self.object_name(node) for node in objects if "List" in node]),
            functions=tuple([function_name(self, node) for node in objects if "ObjectWithArgs" in node]),
            numbers=tuple([large_object_number(n) for n in objects if "Integer" in n or "Float" in n]),
            privileges=tuple([self.privilege(node["AccessPriv"]) for node in body.get("privileges", [])]),
            grantees=tuple([self.role(node["RoleSpec"]) for node in body["grantees"]]),
            option=body.get("grant_option", False),
            grantor=None if grantor is None else self.role(grantor),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )

    def privilege(self, body: Raw) -> ast.Privilege:
        """Read one right of a GRANT or REVOKE, with its columns; its word is empty for ALL."""
        return ast.Privilege(
            word=body.get("priv_name", ""), columns=strings(body.get("cols", ())), span=self.span(body)
        )

    def _grant_role(self, body: Raw) -> ast.StatementNode:
        options = self.options(body.get("opt"))
        for option in options:
            if option.name != "admin" or (not body.get("is_grant", False) and option.value is True):
                raise self.syntax_error(option.span)
        grantor = body.get("grantor")
        return ast.GrantRole(
            is_grant=body.get("is_grant", False),
            roles=tuple([node["AccessPriv"].get("priv_name", "") for node in body["granted_roles"]]),
            grantees=tuple([self.role(node["RoleSpec"]) for node in body["grantee_roles"]]),
            admin=any(option.name == "admin" for option in options),
            grantor=None if grantor is None else self.role(grantor),
            cascade=body.get("behavior") == "DROP_CASCADE",
        )

    def _create_role(self, body: Raw) -> ast.StatementNode:
        return ast.CreateRole(
            kind=body["stmt_type"].removeprefix("ROLESTMT_").lower(),
            name=body["role"],
            options=self.options(_without_members(body)),
            members=self._members(body, "rolemembers"),
            admins=self._members(body, "adminmembers"),
            in_roles=self._members(body, "addroleto"),
        )

    def _members(self, body: Raw, option: str) -> tuple[ast.Role, ...]:
        found = [node["DefElem"] for node in body.get("options", ()) if node["DefElem"]["defname"] == option]
        if len(found) > 1:
            raise SqlError("42601", "conflicting or redundant options", span=self.span(found[1]))
        return tuple([self.role(node["RoleSpec"]) for item in found for node in item["arg"]["List"]["items"]])

    def _alter_role(self, body: Raw) -> ast.StatementNode:
        return ast.AlterRole(
            role=self.role(body["role"]),
            options=self.options(_without_members(body)),
            members=self._members(body, "rolemembers"),
            adds=body.get("action", 1) > 0,
        )

    def _drop_role(self, body: Raw) -> ast.StatementNode:
        return ast.DropRole(
            roles=tuple([self.role(node["RoleSpec"]) for node in body["roles"]]),
            if_exists=body.get("missing_ok", False),
        )


def _without_members(body: Raw) -> list[Raw]:
    """Return a role's options but those that are lists of roles."""
    lists = ("rolemembers", "adminmembers", "addroleto")
    return [option for option in body.get("options", ()) if option["DefElem"]["defname"] not in lists]
