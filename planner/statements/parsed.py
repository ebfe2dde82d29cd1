"""What is known of a statement as it was parsed: a row for each class of ``planner.ast`` that is a statement.

    ast.CreateView: ParsedSpec("define.relations:bind_create_view", "CREATE VIEW", "nothing")

A class of statements is a subclass of ``ast.StatementNode``; one without a row fails when this module is imported, as
does a row for what is none. What binds it is named and not imported: a server reads its first query before it needs the
rest (``planner.bind.load``).

``planner.statements.classify`` has the rows of what statements are bound to, ``engine.statements.registry``
of what runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from planner import ast
from planner.base.total import leaves, total

Tag: TypeAlias = str | Callable[[Any], str]
"""The command tag without counts, or what returns it for a node."""

First: TypeAlias = Literal[
    "nothing",
    "owner",
    "maker",
    "trigger",
    "domain",
    "mapping",
    "dictionary",
    "cluster",
    "wrapper",
    "opclass",
    "copy",
    "one by one",
]
"""Which right PostgreSQL asks for before it says what else is wrong (``engine.definitions.needs.first``)."""


@dataclass(frozen=True, slots=True)
class ParsedSpec:
    """A class of parsed statements.

    Attributes:
        binder: what binds it, ``module:function`` within ``planner.bind``; takes a ``BindContext`` and the node.
        tag: its command tag.
        first: which right is asked for first where it cannot be bound; "nothing": what is wrong is told to everybody.
        params: ``$n`` may stand in it (42P02).
        explained: EXPLAIN may stand before it (0A000).
        as_of: AS OF SYSTEM TIME may stand behind it (0A000).
        drops: it may name what cannot be read, in order to drop it.
    """

    binder: str
    tag: Tag
    first: First
    params: bool = False
    explained: bool = False
    as_of: bool = False
    drops: bool = False


def command_tag(node: ast.StatementNode) -> str:
    """Return the command tag of a parsed statement, without counts."""
    tag = PARSED[type(node)].tag
    return tag if isinstance(tag, str) else tag(node)


def _select_tag(node: ast.Select) -> str:
    return "SELECT" if node.into is None else "SELECT INTO"


def _create_table_as_tag(node: ast.CreateTableAs) -> str:
    if node.materialized:
        return "CREATE MATERIALIZED VIEW"
    return "SELECT INTO" if node.select_into else "CREATE TABLE AS"


def _create_table_tag(node: ast.CreateTable) -> str:
    return "CREATE FOREIGN TABLE" if node.server else "CREATE TABLE"


def _create_function_tag(node: ast.CreateFunction) -> str:
    return "CREATE PROCEDURE" if node.procedure else "CREATE FUNCTION"


def _create_tag(node: ast.CreateTextSearch) -> str:
    return f"CREATE {node.what.upper()}"


def _alter_tag(
    node: ast.AlterTable
    | ast.SetSchema
    | ast.AlterOwner
    | ast.AlterFunction
    | ast.AlterTextSearch
    | ast.AlterForeign
    | ast.AlterOpclass,
) -> str:
    return f"ALTER {node.what.upper()}"


def _drop_tag(
    node: ast.Drop
    | ast.DropAbsent
    | ast.DropFunction
    | ast.DropTextSearch
    | ast.DropForeign
    | ast.DropOpclass,
) -> str:
    return f"DROP {node.what.upper()}"


def _rename_tag(node: ast.Rename) -> str:
    if node.what in ("table constraint", "constraint", "tabconstraint"):
        return "ALTER TABLE"
    if node.what == "domain constraint":
        return "ALTER DOMAIN"
    what = (node.relation_what or "table") if node.what in ("column", "attribute") else node.what
    return f"ALTER {what.upper()}"


def _extension_tag(node: ast.Extension) -> str:
    if node.verb == "comment on":
        return "COMMENT"
    return f"{node.verb.upper() if node.verb in ('create', 'drop') else 'ALTER'} EXTENSION"


def _wrapper_tag(node: ast.DefineWrapper) -> str:
    return f"{'CREATE' if node.create else 'ALTER'} FOREIGN DATA WRAPPER"


def _mapping_tag(node: ast.UserMapping) -> str:
    return f"{node.verb.upper()} USER MAPPING"


def _defaults_tag(node: ast.AlterDefaults) -> str:
    return "ALTER ROLE" if node.of_role else "ALTER DATABASE"


def _grant_tag(node: ast.Grant) -> str:
    return "GRANT" if node.is_grant else "REVOKE"


def _grant_role_tag(node: ast.GrantRole) -> str:
    return "GRANT ROLE" if node.is_grant else "REVOKE ROLE"


_TRANSACTION_TAGS: Final = {"start": "START TRANSACTION", "rollback to": "ROLLBACK"}


def _transaction_tag(node: ast.Transaction) -> str:
    return _TRANSACTION_TAGS.get(node.action, node.action.upper())


def _set_tag(node: ast.SetVariable) -> str:
    return "RESET" if node.kind in ("reset", "reset all") else "SET"


def _deallocate_tag(node: ast.Deallocate) -> str:
    return "DEALLOCATE" if node.name is not None else "DEALLOCATE ALL"


def _fetch_tag(node: ast.Fetch) -> str:
    return "MOVE" if node.move else "FETCH"


def _close_tag(node: ast.ClosePortal) -> str:
    return "CLOSE CURSOR" if node.name is not None else "CLOSE CURSOR ALL"


def _maintenance_tag(node: ast.Maintenance) -> str:
    return node.what.upper()


def _discard_tag(node: ast.Discard) -> str:
    return f"DISCARD {node.what.upper()}"


def _notify_tag(node: ast.Notify) -> str:
    return node.action.upper()


PARSED: Final[Mapping[type[ast.StatementNode], ParsedSpec]] = total(
    "parsed statements",
    leaves(vars(ast), ast.StatementNode),
    {
        # planner.ast.query
        ast.Select: ParsedSpec(
            ":bind_query_statement", _select_tag, "nothing", explained=True, as_of=True, params=True
        ),
        ast.SetOp: ParsedSpec(
            ":bind_query_statement", "SELECT", "nothing", explained=True, as_of=True, params=True
        ),
        ast.Values: ParsedSpec(
            ":bind_query_statement", "SELECT", "nothing", explained=True, as_of=True, params=True
        ),
        # planner.ast.changes
        ast.Insert: ParsedSpec("change.dml:bind_insert", "INSERT", "nothing", explained=True, params=True),
        ast.Update: ParsedSpec(
            "define.table.constraint_marks:bind_update_or_marks",
            "UPDATE",
            "nothing",
            explained=True,
            params=True,
        ),
        ast.Delete: ParsedSpec("change.dml:bind_delete", "DELETE", "nothing", explained=True, params=True),
        ast.Merge: ParsedSpec("change.merge:bind_merge", "MERGE", "nothing", explained=True, params=True),
        ast.Copy: ParsedSpec("change.copy:bind_copy", "COPY", "copy", as_of=True, params=True),
        # planner.ast.definitions
        ast.CreateTable: ParsedSpec("define.table.table:bind_create_table", _create_table_tag, "maker"),
        ast.CreateTableAs: ParsedSpec(
            "define.table.table:bind_create_table_as",
            _create_table_as_tag,
            "nothing",
            explained=True,
            as_of=True,
            params=True,
        ),
        ast.RefreshMaterializedView: ParsedSpec(
            "define.materialized:bind_refresh", "REFRESH MATERIALIZED VIEW", "owner", explained=True
        ),
        ast.CreateSchema: ParsedSpec("define.relations:bind_create_schema", "CREATE SCHEMA", "nothing"),
        ast.CreateTimeline: ParsedSpec("define.relations:bind_create_timeline", "CREATE TIMELINE", "nothing"),
        ast.DropTimeline: ParsedSpec(
            "define.relations:bind_drop_timeline", "DROP TIMELINE", "nothing", drops=True
        ),
        ast.CreateSource: ParsedSpec("define.source:bind_create_source", "CREATE SOURCE", "nothing"),
        ast.AlterSource: ParsedSpec("define.source:bind_alter_source", "ALTER SOURCE", "nothing"),
        ast.DropSource: ParsedSpec("define.source:bind_drop_source", "DROP SOURCE", "nothing", drops=True),
        ast.CreateSequence: ParsedSpec(
            "define.table.sequence:bind_create_sequence", "CREATE SEQUENCE", "maker"
        ),
        ast.AlterSequence: ParsedSpec("define.table.sequence:bind_alter_sequence", "ALTER SEQUENCE", "owner"),
        ast.CreateView: ParsedSpec("define.relations:bind_create_view", "CREATE VIEW", "nothing"),
        ast.CreateIndex: ParsedSpec("define.table.index:bind_create_index", "CREATE INDEX", "owner"),
        ast.AlterTable: ParsedSpec("define.table.alter:bind_alter_table", _alter_tag, "owner"),
        ast.Rename: ParsedSpec("define.table.alter:bind_rename", _rename_tag, "owner"),
        ast.SetSchema: ParsedSpec("define.table.alter:bind_set_schema", _alter_tag, "owner"),
        ast.AlterOwner: ParsedSpec("define.table.alter:bind_alter_owner", _alter_tag, "nothing"),
        ast.Drop: ParsedSpec("define.relations:bind_drop", _drop_tag, "nothing", drops=True),
        ast.Truncate: ParsedSpec("define.relations:bind_truncate", "TRUNCATE TABLE", "one by one"),
        ast.Grant: ParsedSpec("define.grant:bind_grant", _grant_tag, "nothing"),
        ast.GrantRole: ParsedSpec("define.grant:bind_grant_role", _grant_role_tag, "nothing"),
        ast.CreateRole: ParsedSpec("session.utility:bind_create_role", "CREATE ROLE", "nothing"),
        ast.AlterRole: ParsedSpec("session.utility:bind_alter_role", "ALTER ROLE", "nothing"),
        ast.DropRole: ParsedSpec("session.utility:bind_drop_role", "DROP ROLE", "nothing", drops=True),
        ast.Comment: ParsedSpec("session.utility:bind_comment", "COMMENT", "nothing"),
        # planner.ast.trigger
        ast.CreateTrigger: ParsedSpec("define.trigger:bind_create_trigger", "CREATE TRIGGER", "trigger"),
        ast.RenameTrigger: ParsedSpec("define.trigger:bind_rename_trigger", "ALTER TRIGGER", "owner"),
        ast.DropTrigger: ParsedSpec("define.trigger:bind_drop_trigger", "DROP TRIGGER", "nothing"),
        ast.CommentOnTrigger: ParsedSpec("define.trigger:bind_comment_on_trigger", "COMMENT", "nothing"),
        # planner.ast.policy
        ast.CreatePolicy: ParsedSpec("define.policy:bind_create_policy", "CREATE POLICY", "owner"),
        ast.AlterPolicy: ParsedSpec("define.policy:bind_alter_policy", "ALTER POLICY", "owner"),
        ast.RenamePolicy: ParsedSpec("define.policy:bind_rename_policy", "ALTER POLICY", "owner"),
        ast.DropPolicy: ParsedSpec("define.policy:bind_drop_policy", "DROP POLICY", "nothing"),
        ast.CommentOnPolicy: ParsedSpec("define.policy:bind_comment_on_policy", "COMMENT", "nothing"),
        # planner.ast.statistics
        ast.CreateStatistics: ParsedSpec("define.statistics:bind_create", "CREATE STATISTICS", "nothing"),
        ast.AlterStatistics: ParsedSpec("define.statistics:bind_alter", "ALTER STATISTICS", "nothing"),
        ast.DropStatistics: ParsedSpec(
            "define.statistics:bind_drop", "DROP STATISTICS", "nothing", drops=True
        ),
        ast.CommentOnStatistics: ParsedSpec("define.statistics:bind_comment", "COMMENT", "nothing"),
        # planner.ast.type
        ast.CreateEnum: ParsedSpec("define.types:bind_create_enum", "CREATE TYPE", "nothing"),
        ast.CreateComposite: ParsedSpec("define.composite:bind_create_composite", "CREATE TYPE", "maker"),
        ast.CreateRange: ParsedSpec("define.own_range:bind_create_range", "CREATE TYPE", "nothing"),
        ast.AddEnumValue: ParsedSpec("define.types:bind_add_enum_value", "ALTER TYPE", "nothing"),
        ast.RenameEnumValue: ParsedSpec("define.types:bind_rename_enum_value", "ALTER TYPE", "nothing"),
        # planner.ast.domain
        ast.CreateDomain: ParsedSpec("define.domain:bind_create_domain", "CREATE DOMAIN", "maker"),
        ast.AlterDomain: ParsedSpec("define.domain:bind_alter_domain", "ALTER DOMAIN", "domain"),
        # planner.ast.function
        ast.CreateFunction: ParsedSpec(
            "define.functions:bind_create_function", _create_function_tag, "maker"
        ),
        ast.CreateAggregate: ParsedSpec(
            "define.aggregates:bind_create_aggregate", "CREATE AGGREGATE", "maker"
        ),
        ast.AlterFunction: ParsedSpec("define.named_functions:bind_alter_function", _alter_tag, "nothing"),
        ast.DropFunction: ParsedSpec(
            "define.named_functions:bind_drop_function", _drop_tag, "one by one", drops=True
        ),
        ast.Call: ParsedSpec("session.procedure:bind_call", "CALL", "nothing", params=True),
        ast.Do: ParsedSpec("session.procedure:bind_do", "DO", "nothing", params=True),
        ast.CommentOnFunction: ParsedSpec(
            "define.named_functions:bind_comment_on_function", "COMMENT", "nothing"
        ),
        # planner.ast.text_search
        ast.CreateTextSearch: ParsedSpec("define.text_search:bind_create", _create_tag, "nothing"),
        ast.AlterMapping: ParsedSpec(
            "define.text_search:bind_alter_mapping", "ALTER TEXT SEARCH CONFIGURATION", "mapping"
        ),
        ast.AlterDictionary: ParsedSpec(
            "define.text_search:bind_alter_dictionary", "ALTER TEXT SEARCH DICTIONARY", "dictionary"
        ),
        ast.AlterTextSearch: ParsedSpec("define.alter_placed:bind_alter", _alter_tag, "nothing"),
        ast.DropTextSearch: ParsedSpec("define.text_search:bind_drop", _drop_tag, "nothing", drops=True),
        ast.CommentOnTextSearch: ParsedSpec("define.text_search:bind_comment", "COMMENT", "nothing"),
        # planner.ast.foreign
        ast.DefineWrapper: ParsedSpec("define.foreign:bind_define_wrapper", _wrapper_tag, "wrapper"),
        ast.CreateServer: ParsedSpec("define.foreign:bind_create_server", "CREATE SERVER", "nothing"),
        ast.AlterServer: ParsedSpec("define.foreign:bind_alter_server", "ALTER SERVER", "nothing"),
        ast.UserMapping: ParsedSpec("define.foreign:bind_user_mapping", _mapping_tag, "nothing"),
        ast.AlterForeign: ParsedSpec("define.foreign:bind_alter", _alter_tag, "nothing"),
        ast.DropForeign: ParsedSpec("define.foreign:bind_drop", _drop_tag, "nothing", drops=True),
        ast.CommentOnForeign: ParsedSpec("define.foreign:bind_comment", "COMMENT", "nothing"),
        ast.ImportForeignSchema: ParsedSpec("define.foreign:bind_import", "IMPORT FOREIGN SCHEMA", "nothing"),
        # planner.ast.opclass
        ast.CreateOpfamily: ParsedSpec(
            "define.opclasses:bind_create_family", "CREATE OPERATOR FAMILY", "nothing"
        ),
        ast.CreateOpclass: ParsedSpec(
            "define.opclasses:bind_create_class", "CREATE OPERATOR CLASS", "opclass"
        ),
        ast.ChangeOpfamily: ParsedSpec(
            "define.opclasses:bind_change_family", "ALTER OPERATOR FAMILY", "nothing"
        ),
        ast.AlterOpclass: ParsedSpec("define.alter_placed:bind_alter", _alter_tag, "nothing"),
        ast.DropOpclass: ParsedSpec("define.opclasses:bind_drop", _drop_tag, "nothing", drops=True),
        ast.CommentOnOpclass: ParsedSpec("define.opclasses:bind_comment", "COMMENT", "nothing"),
        # planner.ast.conversion
        ast.CreateConversion: ParsedSpec("define.conversions:bind_create", "CREATE CONVERSION", "nothing"),
        ast.AlterConversion: ParsedSpec("define.alter_placed:bind_alter", "ALTER CONVERSION", "nothing"),
        ast.DropConversion: ParsedSpec("define.conversions:bind_drop", "DROP CONVERSION", "nothing"),
        ast.CommentOnConversion: ParsedSpec("define.conversions:bind_comment", "COMMENT", "nothing"),
        # planner.ast.collation
        ast.CreateCollation: ParsedSpec("define.collation:bind_create", "CREATE COLLATION", "nothing"),
        ast.RefreshCollation: ParsedSpec("define.collation:bind_refresh", "ALTER COLLATION", "nothing"),
        ast.AlterCollation: ParsedSpec("define.alter_placed:bind_alter", "ALTER COLLATION", "nothing"),
        ast.DropCollation: ParsedSpec("define.collation:bind_drop", "DROP COLLATION", "nothing"),
        ast.CommentOnCollation: ParsedSpec("define.collation:bind_comment", "COMMENT", "nothing"),
        # planner.ast.owned
        ast.ReassignOwned: ParsedSpec("define.owned:bind_reassign", "REASSIGN OWNED", "nothing"),
        ast.DropOwned: ParsedSpec("define.owned:bind_drop_owned", "DROP OWNED", "nothing", drops=True),
        ast.AlterDefaultPrivileges: ParsedSpec(
            "define.owned:bind_default_privileges", "ALTER DEFAULT PRIVILEGES", "nothing"
        ),
        ast.Extension: ParsedSpec("define.owned:bind_extension", _extension_tag, "nothing"),
        # planner.ast.absent
        ast.DropAbsent: ParsedSpec("define.absent:bind_drop_absent", _drop_tag, "nothing"),
        # planner.ast.server
        ast.CreateDatabase: ParsedSpec("define.database:bind_create", "CREATE DATABASE", "nothing"),
        ast.AlterDatabase: ParsedSpec("define.database:bind_alter", "ALTER DATABASE", "nothing"),
        ast.DropDatabase: ParsedSpec("define.database:bind_drop", "DROP DATABASE", "nothing", drops=True),
        ast.AlterDefaults: ParsedSpec("define.database:bind_defaults", _defaults_tag, "nothing"),
        ast.SecurityLabel: ParsedSpec("session.libraries:bind_security_label", "SECURITY LABEL", "nothing"),
        ast.Load: ParsedSpec("session.libraries:bind_load", "LOAD", "nothing"),
        # planner.ast.session
        ast.Execute: ParsedSpec(
            "session.utility:bind_execute", "EXECUTE", "nothing", explained=True, params=True
        ),
        ast.DeclareCursor: ParsedSpec(
            "session.utility:bind_declare",
            "DECLARE CURSOR",
            "nothing",
            explained=True,
            as_of=True,
            params=True,
        ),
        ast.Subscribe: ParsedSpec(
            "session.subscribe:bind_subscribe", "SUBSCRIBE", "nothing", explained=True, params=True
        ),
        ast.CreateSubscription: ParsedSpec("session.subscribe:bind_create", "CREATE SUBSCRIPTION", "nothing"),
        ast.AcknowledgeSubscription: ParsedSpec(
            "session.subscribe:bind_acknowledge", "ALTER SUBSCRIPTION", "nothing", params=True
        ),
        ast.DropSubscription: ParsedSpec("session.subscribe:bind_drop", "DROP SUBSCRIPTION", "nothing"),
        ast.Transaction: ParsedSpec(
            "session.utility:bind_transaction", _transaction_tag, "nothing", as_of=True, params=True
        ),
        ast.SetVariable: ParsedSpec("session.utility:bind_set", _set_tag, "nothing", as_of=True, params=True),
        ast.Show: ParsedSpec("session.utility:bind_show", "SHOW", "nothing"),
        ast.Discard: ParsedSpec("session.utility:bind_discard", _discard_tag, "nothing"),
        ast.Prepare: ParsedSpec(
            "session.utility:bind_prepare", "PREPARE", "nothing", as_of=True, params=True
        ),
        ast.Deallocate: ParsedSpec("session.utility:bind_deallocate", _deallocate_tag, "nothing"),
        ast.Fetch: ParsedSpec("session.utility:bind_fetch", _fetch_tag, "nothing"),
        ast.ClosePortal: ParsedSpec("session.utility:bind_close", _close_tag, "nothing"),
        ast.Maintenance: ParsedSpec("session.utility:bind_maintenance", _maintenance_tag, "cluster"),
        ast.Notify: ParsedSpec("session.utility:bind_notify", _notify_tag, "nothing"),
        ast.LockTable: ParsedSpec("session.utility:bind_lock", "LOCK TABLE", "one by one"),
        ast.SetConstraints: ParsedSpec("session.utility:bind_set_constraints", "SET CONSTRAINTS", "nothing"),
        ast.Explain: ParsedSpec(":bind_explain", "EXPLAIN", "nothing", as_of=True, params=True),
    },
)
