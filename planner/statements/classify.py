"""Statement classes, command tags, result columns, and what a statement reads and writes.

    INSERT ... VALUES           WRITE_ONLY
    INSERT ... SELECT, UPDATE   READ_THEN_WRITE
    SELECT, COPY TO             READ_ONLY
    CREATE, ALTER, DROP         DDL

Everything here is a walk over a bound statement: no catalog, no session.
"""

from __future__ import annotations

from typing import Any, Final

from planner import ast, query
from planner import statements as st
from planner.facts import TEXT, facts
from planner.query import (
    Const,
    FuncExpr,
    OpExpr,
    OutputColumn,
    Param,
    ScalarArrayOp,
    SqlCall,
    SubLink,
    Values,
)
from planner.query.walk import walk
from planner.statements import StatementClass
from planner.types import SqlType

RUN: Final = (
    st.QueryStatement, query.Insert, query.Update, query.Delete, query.Merge, st.WithChanges, st.DeclareCursor, st.Copy,
    st.Subscribe, st.DeclareSubscribe, st.AcknowledgeSubscription, st.Call, st.MarkConstraints,
)  # fmt: skip
"""Statements that are run as they are bound."""

# Functions that are volatile only in name: they change nothing and may run anywhere.
_VOLATILE = "v"


def is_volatile(node: Any) -> bool:
    """Tell whether an expression, query or statement calls a volatile function."""
    return any(_proc_volatility(item) == _VOLATILE for item in walk(node))


def _proc_volatility(node: Any) -> str:
    if isinstance(node, SqlCall):
        return _VOLATILE if node.stays else "i"  # one that stays is run for each row
    if isinstance(node, FuncExpr | OpExpr | ScalarArrayOp):
        proc = facts().procs.get(node.proc)
        return proc.volatility if proc is not None else "i"
    return "i"


def classify(statement: st.Statement) -> StatementClass:
    """Return how the statement runs."""
    match statement:
        case st.QueryStatement() if _locks_rows(statement):
            return StatementClass.READ_THEN_WRITE
        case st.QueryStatement():
            return StatementClass.READ_ONLY
        case st.WithChanges() | st.Call() | st.Do():
            return StatementClass.READ_THEN_WRITE
        case query.Insert():
            return _insert_class(statement)
        case query.Update() | query.Delete() | query.Merge():
            return StatementClass.READ_THEN_WRITE
        case st.Copy() if statement.subscribe is not None:
            return StatementClass.UTILITY
        case st.Copy() if statement.change is not None:
            return StatementClass.READ_THEN_WRITE
        case st.Copy():
            if not statement.is_from and _locks_rows(statement):
                return StatementClass.READ_THEN_WRITE
            return StatementClass.WRITE_ONLY if statement.is_from else StatementClass.READ_ONLY
        case (
            st.CreateTable() | st.CreateSchema() | st.CreateView() | st.CreateMaterializedView()
            | st.RefreshMaterializedView() | st.MarkConstraints() | st.CreateIndex() | st.AlterTable()
            | st.AlterSchemaOwner() | st.AlterLargeObject() | st.Rename() | st.Drop() | st.Truncate() | st.RoleStatement() | st.Comment()
            | st.CreateTimeline() | st.DropTimeline() | st.CreateSource() | st.AlterSource() | st.DropSource()
            | st.CreateDatabase() | st.AlterDatabase() | st.DropDatabase() | st.AlterDefaults()
            | st.CreateSequence() | st.AlterSequence() | st.Grant() | st.GrantRole() | st.CreateEnum() | st.CreateComposite() | st.CreateRange() | st.AlterComposite()
            | st.CreateTrigger() | st.RenameTrigger() | st.DropTrigger()
            | st.CreatePolicy() | st.AlterPolicy() | st.RenamePolicy() | st.DropPolicy()
            | st.CreateConfiguration() | st.CreateDictionary() | st.AlterMapping() | st.AlterDictionary()
            | st.AlterTextSearch() | st.DropTextSearch()
            | st.CreateStatistics() | st.AlterStatistics() | st.DropStatistics()
            | st.CreateWrapper() | st.AlterWrapper() | st.CreateServer() | st.AlterServer()
            | st.CreateUserMapping() | st.AlterUserMapping() | st.DropUserMapping()
            | st.AlterForeign() | st.DropForeign() | st.ImportForeignSchema()
            | st.CreateConversion() | st.AlterConversion() | st.DropConversion()
            | st.CreateCollation() | st.AlterCollation() | st.DropCollation()
            | st.CreateOpfamily() | st.CreateOpclass() | st.ChangeOpfamily() | st.AlterOpclass() | st.DropOpclass()
            | st.ReassignOwned() | st.DropOwned() | st.AlterDefaultPrivileges()
            | st.CreateFunction() | st.CreateAggregate() | st.AlterFunction() | st.DropFunction()
            | st.CreateExtension() | st.AlterExtension() | st.DropExtension()
            | st.AddEnumValue() | st.RenameEnumValue() | st.AlterType() | st.DropType() | st.CreateDomain()
            | st.SetDomainDefault() | st.SetDomainNotNull() | st.AddDomainCheck() | st.DropDomainConstraint()
            | st.ValidateDomainConstraint() | st.RenameDomainConstraint()
        ):  # fmt: skip
            return StatementClass.DDL
        case st.Maintenance() if statement.index:
            return StatementClass.DDL
        case st.Transaction():
            return StatementClass.TRANSACTION_CONTROL
        case _:
            return StatementClass.UTILITY


def _locks_rows(statement: st.Statement) -> bool:
    return any(isinstance(item, query.Select) and item.row_marks for item in walk(statement))


def _insert_class(insert: query.Insert) -> StatementClass:
    source = insert.source
    if insert.on_conflict is not None or (source is not None and not isinstance(source, Values)):
        return StatementClass.READ_THEN_WRITE
    cells = [cell for row in source.rows for cell in row] if source is not None else []
    looks = any(
        isinstance(item, SubLink)
        for cell in (*cells, *insert.returning)
        if not isinstance(cell, Const | Param)
        for item in walk(cell)
    )
    return StatementClass.READ_THEN_WRITE if looks else StatementClass.WRITE_ONLY


def relations_written(statement: st.Statement) -> frozenset[int]:
    """Return the oids of tables whose rows the statement changes."""
    match statement:
        case query.Insert() | query.Update() | query.Delete() | query.Merge():
            return frozenset((statement.table,))
        case st.WithChanges():
            return frozenset().union(*map(relations_written, statement.parts))
        case st.Copy() if statement.change is not None:
            return relations_written(statement.change)
        case st.Copy() if statement.is_from:
            return frozenset((statement.table,))
        case st.Truncate():
            return frozenset(statement.tables)
        case _:
            return frozenset()


def returned_rows(statement: st.Statement) -> tuple[OutputColumn, ...] | None:
    """Return the result's columns, None when it has no rows (or only the engine knows: FETCH, EXECUTE)."""
    match statement:
        case st.QueryStatement():
            return statement.query.columns
        case query.Insert() | query.Update() | query.Delete():
            return statement.columns if statement.returning else None
        case st.WithChanges():
            return returned_rows(statement.body)
        case st.Call():
            return statement.call.outputs or None
        case st.Explain():
            oid = 114 if statement.options.get("format") == "json" else TEXT
            return (OutputColumn(name="QUERY PLAN", type=SqlType(oid)),)
        case st.Subscribe():
            return statement.columns
        case st.ShowVariable():
            return show_columns(statement.name)
        case _:
            return None


def show_columns(name: str) -> tuple[OutputColumn, ...]:
    """Return the columns of SHOW: one named as the setting is spelt, or three for SHOW ALL."""
    names = ("name", "setting", "description") if name == "all" else (setting_spelling(name),)
    return tuple(OutputColumn(name=n, type=SqlType(TEXT)) for n in names)


def setting_spelling(name: str) -> str:
    """Return a setting's own spelling (DateStyle, TimeZone); unknown ones as given."""
    from planner.facts import rows

    lowered = name.lower()
    return next((row["name"] for row in rows("settings") if row["name"].lower() == lowered), name)


_TAGS: dict[type, str] = {
    ast.Insert: "INSERT", ast.Update: "UPDATE", ast.Delete: "DELETE", ast.Copy: "COPY", ast.Merge: "MERGE",
    ast.CreateSchema: "CREATE SCHEMA", ast.CreateView: "CREATE VIEW",
    ast.CreateSequence: "CREATE SEQUENCE", ast.AlterSequence: "ALTER SEQUENCE",
    ast.CreateDomain: "CREATE DOMAIN", ast.AlterDomain: "ALTER DOMAIN", ast.CreateEnum: "CREATE TYPE", ast.CreateComposite: "CREATE TYPE", ast.CreateRange: "CREATE TYPE", ast.AddEnumValue: "ALTER TYPE", ast.RenameEnumValue: "ALTER TYPE",
    ast.CommentOnFunction: "COMMENT", ast.CreateAggregate: "CREATE AGGREGATE",
    ast.CreateTrigger: "CREATE TRIGGER", ast.RenameTrigger: "ALTER TRIGGER", ast.DropTrigger: "DROP TRIGGER",
    ast.CommentOnTrigger: "COMMENT", ast.CommentOnPolicy: "COMMENT",
    ast.CreatePolicy: "CREATE POLICY", ast.AlterPolicy: "ALTER POLICY", ast.RenamePolicy: "ALTER POLICY",
    ast.DropPolicy: "DROP POLICY",
    ast.AlterMapping: "ALTER TEXT SEARCH CONFIGURATION", ast.AlterDictionary: "ALTER TEXT SEARCH DICTIONARY",
    ast.CommentOnTextSearch: "COMMENT", ast.CommentOnStatistics: "COMMENT",
    ast.CreateStatistics: "CREATE STATISTICS", ast.AlterStatistics: "ALTER STATISTICS", ast.DropStatistics: "DROP STATISTICS",
    ast.CreateServer: "CREATE SERVER", ast.AlterServer: "ALTER SERVER", ast.CommentOnForeign: "COMMENT",
    ast.ImportForeignSchema: "IMPORT FOREIGN SCHEMA",
    ast.CreateCollation: "CREATE COLLATION", ast.AlterCollation: "ALTER COLLATION", ast.RefreshCollation: "ALTER COLLATION",
    ast.DropCollation: "DROP COLLATION", ast.CommentOnCollation: "COMMENT",
    ast.CreateConversion: "CREATE CONVERSION", ast.AlterConversion: "ALTER CONVERSION",
    ast.DropConversion: "DROP CONVERSION", ast.CommentOnConversion: "COMMENT",
    ast.CreateOpfamily: "CREATE OPERATOR FAMILY", ast.CreateOpclass: "CREATE OPERATOR CLASS",
    ast.ChangeOpfamily: "ALTER OPERATOR FAMILY", ast.CommentOnOpclass: "COMMENT",
    ast.ReassignOwned: "REASSIGN OWNED", ast.DropOwned: "DROP OWNED",
    ast.AlterDefaultPrivileges: "ALTER DEFAULT PRIVILEGES",
    ast.CreateTimeline: "CREATE TIMELINE", ast.DropTimeline: "DROP TIMELINE",
    ast.CreateSource: "CREATE SOURCE", ast.AlterSource: "ALTER SOURCE", ast.DropSource: "DROP SOURCE",
    ast.RefreshMaterializedView: "REFRESH MATERIALIZED VIEW",
    ast.CreateIndex: "CREATE INDEX", ast.Truncate: "TRUNCATE TABLE", ast.Comment: "COMMENT",
    ast.CreateDatabase: "CREATE DATABASE", ast.AlterDatabase: "ALTER DATABASE", ast.DropDatabase: "DROP DATABASE",
    ast.CreateRole: "CREATE ROLE", ast.AlterRole: "ALTER ROLE", ast.DropRole: "DROP ROLE",
    ast.SecurityLabel: "SECURITY LABEL", ast.Show: "SHOW", ast.Prepare: "PREPARE", ast.Execute: "EXECUTE", ast.DeclareCursor: "DECLARE CURSOR",
    ast.Subscribe: "SUBSCRIBE", ast.CreateSubscription: "CREATE SUBSCRIPTION",
    ast.AcknowledgeSubscription: "ALTER SUBSCRIPTION", ast.DropSubscription: "DROP SUBSCRIPTION", ast.Explain: "EXPLAIN", ast.LockTable: "LOCK TABLE", ast.SetConstraints: "SET CONSTRAINTS",
}  # fmt: skip


def command_tag(node: ast.Node) -> str:
    """Return the command tag of a parsed statement, without counts."""
    tag = _TAGS.get(type(node))
    if tag is not None:
        return tag
    match node:
        case ast.Select() if node.into is not None:
            return "SELECT INTO"
        case ast.Select() | ast.SetOp() | ast.Values():
            return "SELECT"
        case ast.CreateTableAs() if node.materialized:
            return "CREATE MATERIALIZED VIEW"
        case ast.CreateTableAs():
            return "SELECT INTO" if node.select_into else "CREATE TABLE AS"
        case ast.CreateTable():
            return "CREATE FOREIGN TABLE" if node.server else "CREATE TABLE"
        case ast.AlterTable() | ast.SetSchema():
            return f"ALTER {node.what.upper()}"
        case ast.Rename():
            if node.what in ("table constraint", "constraint", "tabconstraint"):
                return "ALTER TABLE"
            if node.what == "domain constraint":
                return "ALTER DOMAIN"
            what = (node.relation_what or "table") if node.what in ("column", "attribute") else node.what
            return f"ALTER {what.upper()}"
        case ast.AlterOwner():
            return f"ALTER {node.what.upper()}"
        case ast.Extension():
            return {"comment on": "COMMENT"}.get(
                node.verb, f"{node.verb.upper() if node.verb in ('create', 'drop') else 'ALTER'} EXTENSION"
            )
        case ast.Call():
            return "CALL"
        case ast.CreateFunction():
            return "CREATE PROCEDURE" if node.procedure else "CREATE FUNCTION"
        case ast.AlterFunction():
            return f"ALTER {node.what.upper()}"
        case ast.DropFunction():
            return f"DROP {node.what.upper()}"
        case ast.CreateTextSearch():
            return f"CREATE {node.what.upper()}"
        case ast.DefineWrapper():
            return f"{'CREATE' if node.create else 'ALTER'} FOREIGN DATA WRAPPER"
        case ast.UserMapping():
            return f"{node.verb.upper()} USER MAPPING"
        case ast.AlterTextSearch() | ast.AlterForeign() | ast.AlterOpclass():
            return f"ALTER {node.what.upper()}"
        case ast.Drop() | ast.DropAbsent() | ast.DropTextSearch() | ast.DropForeign() | ast.DropOpclass():
            return f"DROP {node.what.upper()}"
        case ast.AlterDefaults():
            return "ALTER ROLE" if node.of_role else "ALTER DATABASE"
        case ast.Grant():
            return "GRANT" if node.is_grant else "REVOKE"
        case ast.GrantRole():
            return "GRANT ROLE" if node.is_grant else "REVOKE ROLE"
        case ast.Transaction():
            return _TRANSACTION_TAGS.get(node.action, node.action.upper())
        case ast.SetVariable():
            return "RESET" if node.kind in ("reset", "reset all") else "SET"
        case ast.Deallocate():
            return "DEALLOCATE" if node.name is not None else "DEALLOCATE ALL"
        case ast.Fetch():
            return "MOVE" if node.move else "FETCH"
        case ast.ClosePortal():
            return "CLOSE CURSOR" if node.name is not None else "CLOSE CURSOR ALL"
        case ast.Maintenance():
            return node.what.upper()
        case ast.Discard():
            return f"DISCARD {node.what.upper()}"
        case ast.Notify():
            return node.action.upper()
        case _:
            return type(node).__name__.upper()


_TRANSACTION_TAGS = {"start": "START TRANSACTION", "rollback to": "ROLLBACK"}
