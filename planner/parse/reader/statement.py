"""Raw parse tree -> AST, for statements other than queries (see ``planner.parse.reader.query``).

``StatementReader.statement`` looks the raw node's kind up in one table. Kinds that PostgreSQL has and this
server refuses altogether stand in ``raw_tables.REFUSED`` with the name the error gives them; anything else unknown is
refused by its raw name, so nothing slips through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner import ast
from planner.base.errors import not_supported
from planner.parse.reader import absent as raw_absent
from planner.parse.reader import conversion as raw_conversion
from planner.parse.reader import foreign as raw_foreign
from planner.parse.reader import function as raw_function
from planner.parse.reader import opclass as raw_opclass
from planner.parse.reader import owned as raw_owned
from planner.parse.reader import policy as raw_policy
from planner.parse.reader import statistics as raw_statistics
from planner.parse.reader import text_search as raw_text_search
from planner.parse.reader import trigger as raw_trigger
from planner.parse.reader import type as raw_type
from planner.parse.reader.option import object_word
from planner.parse.reader.query import into_of
from planner.parse.reader.reader import Places, Raw, strings
from planner.parse.reader.server import ServerReader
from planner.parse.reader.tables import (
    CURSOR_ASENSITIVE,
    CURSOR_BINARY,
    CURSOR_HOLD,
    CURSOR_INSENSITIVE,
    CURSOR_NO_SCROLL,
    CURSOR_SCROLL,
    DEFINE,
    FETCH_ALL,
    REFUSED,
    TRANSACTION,
)


class StatementReader(ServerReader):
    """Reads statements. ``inner_text`` is asked for the text of a statement inside PREPARE."""

    def __init__(self, places: Places, inner_text: Callable[[str], str]) -> None:
        """``inner_text(keyword)``: the statement's text after that keyword."""
        super().__init__(places)
        self._inner_text = inner_text

    def statement(self, node: Raw) -> ast.StatementNode:
        """Read any statement; 0A000 for those the server refuses."""
        for kind, body in node.items():
            if kind == "SelectStmt":
                into = into_of(body)
                return self.query(body) if into is None else self._select_into(into, body)
            about = raw_function.about_function(self, kind, body)
            about = about or raw_owned.about_extension(self, kind, body)
            about = about or raw_trigger.about_trigger(self, kind, body)
            about = about or raw_policy.about_policy(self, kind, body)
            about = about or raw_text_search.about_text_search(self, kind, body)
            about = about or raw_statistics.about_statistics(self, kind, body)
            about = about or raw_foreign.about_foreign(self, kind, body)
            about = about or raw_opclass.about_opclass(self, kind, body)
            about = about or raw_conversion.about_conversion(self, kind, body)
            about = about or raw_absent.about_absent(self, kind, body)
            if about is not None:
                return about
            reader = _STATEMENTS.get(kind)
            if reader is not None:
                return reader(self, body)
            if kind == "DefineStmt" and body["kind"] == "OBJECT_AGGREGATE":
                return raw_function.create_aggregate(self, body)
            if kind == "DefineStmt" and body["kind"] == "OBJECT_COLLATION":
                return self._create_collation(body)
            if kind == "DefineStmt":
                what = DEFINE.get(body["kind"], "CREATE " + object_word(body["kind"]).upper())
                raise not_supported(what)
            raise not_supported(REFUSED.get(kind, kind.removesuffix("Stmt")))
        raise AssertionError("empty statement")

    # --- session --------------------------------------------------------------------------------

    def _transaction(self, body: Raw) -> ast.StatementNode:
        return ast.Transaction(
            action=TRANSACTION[body["kind"]],
            name=body.get("savepoint_name") or body.get("gid") or "",
            options=self.options(body.get("options")),
            chain=body.get("chain", False),
        )

    def _show(self, body: Raw) -> ast.StatementNode:
        return ast.Show(name=body["name"])

    def _prepare(self, body: Raw) -> ast.StatementNode:
        return ast.Prepare(
            name=body["name"],
            types=tuple([self.type_name(node["TypeName"]) for node in body.get("argtypes", ())]),
            query=self.statement(body["query"]),
            text=self._inner_text("AS"),
        )

    def _execute(self, body: Raw) -> ast.StatementNode:
        return ast.Execute(name=body["name"], args=self.exprs(body.get("params")))

    def _deallocate(self, body: Raw) -> ast.StatementNode:
        return ast.Deallocate(name=body.get("name"))

    def _declare(self, body: Raw) -> ast.StatementNode:
        bits = body.get("options", 0)
        return ast.DeclareCursor(
            name=body["portalname"],
            query=self.query_node(body["query"]),
            scroll=True if bits & CURSOR_SCROLL else False if bits & CURSOR_NO_SCROLL else None,
            hold=bool(bits & CURSOR_HOLD),
            binary=bool(bits & CURSOR_BINARY),
            insensitive=bool(bits & CURSOR_INSENSITIVE),
            asensitive=bool(bits & CURSOR_ASENSITIVE),
        )

    def _fetch(self, body: Raw) -> ast.StatementNode:
        count = int(body.get("howMany", 0))
        return ast.Fetch(
            cursor=body["portalname"],
            direction=body["direction"].removeprefix("FETCH_").lower(),
            count=None if count == FETCH_ALL else count,
            move=body.get("ismove", False),
        )

    def _close(self, body: Raw) -> ast.StatementNode:
        return ast.ClosePortal(name=body.get("portalname"))

    def _explain(self, body: Raw) -> ast.StatementNode:
        return ast.Explain(statement=self.statement(body["query"]), options=self.options(body.get("options")))

    def _vacuum(self, body: Raw) -> ast.StatementNode:
        relations = []
        for node in body.get("rels", ()):
            raw = node["VacuumRelation"]
            relations.append((self.table(raw["relation"]), strings(raw.get("va_cols", ()))))
        return ast.Maintenance(
            what="vacuum" if body.get("is_vacuumcmd") else "analyze",
            options=self.options(body.get("options")),
            relations=tuple(relations),
        )

    def _checkpoint(self, body: Raw) -> ast.StatementNode:
        return ast.Maintenance(what="checkpoint")

    def _reindex(self, body: Raw) -> ast.StatementNode:
        relation = body.get("relation")
        return ast.Maintenance(
            what="reindex",
            options=self.options(body.get("params")),
            relations=() if relation is None else ((self.table(relation), ()),),
            object=body["kind"].removeprefix("REINDEX_OBJECT_").lower(),
            name=body.get("name", ""),
        )

    def _cluster(self, body: Raw) -> ast.StatementNode:
        relation = body.get("relation")
        return ast.Maintenance(
            what="cluster",
            options=self.options(body.get("params")),
            relations=() if relation is None else ((self.table(relation), ()),),
            name=body.get("indexname", ""),
        )

    def _discard(self, body: Raw) -> ast.StatementNode:
        return ast.Discard(what=body["target"].removeprefix("DISCARD_").lower())

    def _listen(self, body: Raw) -> ast.StatementNode:
        return ast.Notify(action="listen", channel=body["conditionname"])

    def _unlisten(self, body: Raw) -> ast.StatementNode:
        return ast.Notify(action="unlisten", channel=body.get("conditionname", ""))

    def _notify(self, body: Raw) -> ast.StatementNode:
        return ast.Notify(action="notify", channel=body["conditionname"], payload=body.get("payload", ""))

    def _set_constraints(self, body: Raw) -> ast.StatementNode:
        named = [self.table(node["RangeVar"]) for node in body.get("constraints", ())]
        return ast.SetConstraints(
            names=tuple([(*filter(None, (r.catalog, r.schema)), r.name) for r in named]),
            deferred=body.get("deferred", False),
        )

    def _lock(self, body: Raw) -> ast.StatementNode:
        return ast.LockTable(
            relations=tuple([self.table(node["RangeVar"]) for node in body["relations"]]),
            mode=body["mode"],
            nowait=body.get("nowait", False),
        )


_STATEMENTS: dict[str, Callable[[StatementReader, Any], ast.StatementNode]] = {
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
    "AlterRoleSetStmt": StatementReader._alter_role_set,
    "CreatedbStmt": StatementReader._create_database,
    "AlterDatabaseStmt": StatementReader._alter_database,
    "AlterDatabaseRefreshCollStmt": StatementReader._refresh_database,
    "AlterCollationStmt": StatementReader._refresh_collation,
    "AlterDatabaseSetStmt": StatementReader._alter_database_set,
    "DropdbStmt": StatementReader._drop_database,
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
    "SecLabelStmt": StatementReader._security_label,
    "LoadStmt": StatementReader._load,
    "ListenStmt": StatementReader._listen,
    "UnlistenStmt": StatementReader._unlisten,
    "NotifyStmt": StatementReader._notify,
    "CreateEnumStmt": raw_type.create_enum,
    "AlterEnumStmt": raw_type.alter_enum,
    "CompositeTypeStmt": raw_type.create_composite,
    "CreateRangeStmt": raw_type.create_range,
    "CreateExtensionStmt": raw_owned.create_extension,
    "AlterExtensionStmt": raw_owned.update_extension,
    "AlterExtensionContentsStmt": raw_owned.alter_extension,
    "ReassignOwnedStmt": raw_owned.reassign,
    "DropOwnedStmt": raw_owned.drop,
    "AlterDefaultPrivilegesStmt": raw_owned.default_privileges,
    "CreateFunctionStmt": raw_function.create_function,
    "AlterFunctionStmt": raw_function.alter_function,
    "CallStmt": raw_function.call,
    "CreateTrigStmt": raw_trigger.create_trigger,
    "CreatePolicyStmt": raw_policy.create_policy,
    "AlterPolicyStmt": raw_policy.alter_policy,
    "AlterTSConfigurationStmt": raw_text_search.alter_mapping,
    "AlterTSDictionaryStmt": raw_text_search.alter_dictionary,
    "CreateStatsStmt": raw_statistics.create_statistics,
    "AlterStatsStmt": raw_statistics.alter_statistics,
    "CreateFdwStmt": raw_foreign.create_wrapper,
    "AlterFdwStmt": raw_foreign.alter_wrapper,
    "CreateForeignTableStmt": StatementReader._create_foreign_table,
    "CreateForeignServerStmt": raw_foreign.create_server,
    "AlterForeignServerStmt": raw_foreign.alter_server,
    "CreateUserMappingStmt": raw_foreign.create_mapping,
    "AlterUserMappingStmt": raw_foreign.alter_mapping,
    "DropUserMappingStmt": raw_foreign.drop_mapping,
    "ImportForeignSchemaStmt": raw_foreign.import_schema,
    "CreateConversionStmt": raw_conversion.create_conversion,
    "CreateOpFamilyStmt": raw_opclass.create_family,
    "CreateOpClassStmt": raw_opclass.create_class,
    "AlterOpFamilyStmt": raw_opclass.change_family,
    "DoStmt": raw_function.do,
    "CreateDomainStmt": raw_type.create_domain,
    "AlterDomainStmt": raw_type.alter_domain,
    "LockStmt": StatementReader._lock,
    "ConstraintsSetStmt": StatementReader._set_constraints,
}
