"""Statements about the session and the server: settings, transactions, cursors, roles, maintenance, comments.

Each function takes the BindContext and an AST node and returns the bound statement of ``planner.statements``.
Values of settings stay text, joined as PostgreSQL joins a list; what they mean is the engine's business. Names of
objects are looked up here, so errors about them come before anything runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_input, text_output
from pgwire.give_way import paced
from pgwire.release import mind_long
from planner import ast
from planner import statements as st
from planner.base.errors import Span, SqlError, not_supported
from planner.base.quoting import quote_identifier
from planner.bind.change.changing_items import modifies
from planner.bind.change.current_of import with_keys
from planner.bind.context import BindContext
from planner.bind.define.table.options import boolean_option, check_words, option_text, redundant
from planner.bind.define.table.table_parts import check_clusterable
from planner.bind.expression.expr import bind_clause
from planner.bind.query.fetched import as_fetched
from planner.bind.query.locking import clause_name
from planner.bind.query.select import bind_query
from planner.bind.scope import Scope
from planner.bind.session.subscribe import bind_cursor
from planner.bind.stored.readers import invokes
from planner.bind.stored.runnable import restricted_calls, runnable_now
from planner.catalog import RelationDef
from planner.catalog.relation_kinds import CALLED, COLUMNED, LOCKED, RELATION_KINDS, STORING, called
from planner.facts import INTERVAL, TIMESTAMPTZ
from planner.partitions.bounds import descendants

# --- transactions -------------------------------------------------------------------------------

_ACTIONS: dict[str, Literal["begin", "commit", "rollback", "savepoint", "release", "rollback_to"]] = {
    "begin": "begin",
    "start": "begin",
    "commit": "commit",
    "rollback": "rollback",
    "savepoint": "savepoint",
    "release": "release",
    "rollback to": "rollback_to",
}


def bind_transaction(context: BindContext, node: ast.Transaction) -> st.Transaction:
    """BEGIN ... ROLLBACK TO; two-phase commit is 0A000."""
    action = _ACTIONS.get(node.action)
    if action is None:
        raise not_supported(node.action.upper(), span=node.span)
    return st.Transaction(action=action, name=node.name, chain=node.chain, **_modes(node.options))


def _modes(options: Sequence[ast.Option]) -> dict[str, Any]:
    modes: dict[str, Any] = {}
    for option in options:
        text = option_text(option)
        if option.name == "transaction_isolation":
            modes["isolation"] = text
        elif option.name == "transaction_read_only":
            modes["read_only"] = text in ("1", "true", "on")
        elif option.name == "transaction_deferrable":
            modes["deferrable"] = text in ("1", "true", "on")
    return modes


# --- settings -----------------------------------------------------------------------------------

# Settings that are lists, and of those the ones whose elements are quoted as identifiers.
_LISTS = frozenset(
    ("search_path", "datestyle", "session_preload_libraries", "shared_preload_libraries", "temp_tablespaces",
     "local_preload_libraries", "unix_socket_directories", "listen_addresses", "log_destination",
     "wal_consistency_checking", "synchronous_standby_names", "debug_io_direct")
)  # fmt: skip
_QUOTED_LISTS = frozenset(
    ("search_path", "session_preload_libraries", "shared_preload_libraries", "temp_tablespaces",
     "local_preload_libraries", "unix_socket_directories")
)  # fmt: skip


def bind_set(context: BindContext, node: ast.SetVariable) -> st.SetVariable | st.SetTransaction:
    """SET, RESET, SET TRANSACTION. Raises 22023 for several values of a setting that takes one."""
    if node.kind == "multi":
        return _set_transaction(node)
    if node.kind == "current":
        return st.SetVariable(name=node.name, value=None, current=True, local=node.local, span=node.span)
    if node.kind == "reset all":
        return st.SetVariable(name="all", value=None)
    value = _setting_value(context, node) if node.kind == "value" else None
    return st.SetVariable(name=node.name, value=value, local=node.local, span=node.span)


def _set_transaction(node: ast.SetVariable) -> st.SetTransaction:
    name = node.name.upper()
    if name == "TRANSACTION SNAPSHOT":
        if node.local:
            raise SqlError("0A000", "SET LOCAL TRANSACTION SNAPSHOT is not implemented")
        snapshot = str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else ""
        return st.SetTransaction(session=False, snapshot=snapshot)
    return st.SetTransaction(session=name == "SESSION CHARACTERISTICS", **_modes(node.options))


def _setting_value(context: BindContext, node: ast.SetVariable) -> str:
    name = node.name.lower()
    if len(node.args) > 1 and name not in _LISTS:
        raise SqlError("22023", f"SET {node.name} takes only one argument")
    parts: list[str] = []
    for arg in node.args:
        if isinstance(arg, ast.TypeCast):
            parts.append(_interval_text(context, arg))
        elif isinstance(arg, ast.Constant):
            text = str(arg.value)
            quoted = name in _QUOTED_LISTS and arg.kind == "string"
            parts.append(quote_identifier(text) if quoted else text)
        elif isinstance(arg, ast.ColumnRef):
            parts.append(arg.names[-1])
        else:
            raise not_supported("this value in SET", span=arg.span)
    return ", ".join(parts)


def _interval_text(context: BindContext, cast: ast.TypeCast) -> str:
    """SET TIME ZONE INTERVAL '...': the one setting written as a typed literal."""
    target = context.type_of(cast.type)
    if target.oid != INTERVAL or not isinstance(cast.arg, ast.Constant):
        raise not_supported("a typed value in SET", span=cast.span)
    settings = context.env.settings
    value = positioned(INTERVAL, str(cast.arg.value), target.typmod, context, cast.arg.span)
    return f"INTERVAL '{text_output(INTERVAL, value, settings)}'"


def positioned(oid: int, text: str, typmod: int, context: BindContext, span: Span | None) -> Any:
    """Read a literal of the statement; its input error points at ``span``."""
    try:
        return text_input(oid, text, typmod, context.env.settings)
    except DataError as error:
        raise SqlError(
            error.sqlstate, error.message, detail=error.detail, hint=error.hint, where=error.where, span=span
        ) from None


def bind_show(context: BindContext, node: ast.Show) -> st.ShowVariable:
    """SHOW name, SHOW ALL."""
    return st.ShowVariable(name=node.name)


def bind_discard(context: BindContext, node: ast.Discard) -> st.Discard:
    """DISCARD."""
    return st.Discard(what=node.what)


# --- prepared statements and cursors ------------------------------------------------------------


def bind_prepare(context: BindContext, node: ast.Prepare) -> st.Prepare:
    """PREPARE: the inner statement is planned by whoever keeps it, from its text."""
    types = tuple(context.type_of(name).oid for name in paced(node.types))
    return st.Prepare(name=node.name, param_types=types, text=node.text, at=node.at)


def bind_deallocate(context: BindContext, node: ast.Deallocate) -> st.Deallocate:
    """DEALLOCATE."""
    return st.Deallocate(name=node.name)


def bind_fetch(context: BindContext, node: ast.Fetch) -> st.Fetch:
    """FETCH, MOVE."""
    timeout = None
    if node.timeout is not None:
        months, days, timeout = text_input(INTERVAL, node.timeout, -1, context.env.settings)
        timeout += (months * 30 + days) * 86_400_000_000
        if timeout < 0:
            raise SqlError("22023", "timeout must not be negative")
    return st.Fetch(
        cursor=node.cursor,
        direction=node.direction,
        count=node.count,
        move=node.move,
        timeout_us=timeout,
    )


def bind_close(context: BindContext, node: ast.ClosePortal) -> st.CloseCursor:
    """CLOSE."""
    return st.CloseCursor(name=node.name)


def bind_declare(context: BindContext, node: ast.DeclareCursor) -> st.DeclareCursor | st.DeclareSubscribe:
    """DECLARE CURSOR. Raises SqlError 42P11 for contradicting options."""
    if isinstance(node.query, ast.Subscribe):
        return bind_cursor(context, node, node.query)
    if node.insensitive and node.asensitive:
        raise SqlError("42P11", "cannot specify both INSENSITIVE and ASENSITIVE")
    if modifies(node.query):
        raise SqlError("0A000", "DECLARE CURSOR must not contain data-modifying statements in WITH")
    query = bind_query(context, node.query)
    _check_locking_cursor(node)
    query, keys = with_keys(context, query)
    return st.DeclareCursor(
        keys=keys,
        name=node.name,
        query=as_fetched(query),
        scroll=node.scroll,
        hold=node.hold,
        binary=node.binary,
    )


def _check_locking_cursor(node: ast.DeclareCursor) -> None:
    """Raise 0A000 or 42P11 for options that a cursor whose query locks rows cannot have."""
    if isinstance(node.query, ast.Subscribe) or not node.query.locking:
        return
    clause = clause_name(node.query.locking[0].strength)
    for given, sqlstate, words, verdict in (
        (node.hold, "0A000", ("CURSOR WITH HOLD", "Holdable"), "supported"),
        (node.scroll, "0A000", ("SCROLL CURSOR", "Scrollable"), "supported"),
        (node.insensitive, "42P11", ("INSENSITIVE CURSOR", "Insensitive"), "valid"),
    ):
        if given:
            raise SqlError(
                sqlstate,
                f"DECLARE {words[0]} ... {clause} is not {verdict}",
                detail=f"{words[1]} cursors must be READ ONLY.",
            )


def bind_execute(context: BindContext, node: ast.Execute) -> st.ExecutePrepared:
    """EXECUTE: arguments without a context type; ``coerce_argument`` converts them when it runs."""
    scope = Scope(context=context)
    args = tuple(runnable_now(bind_clause(scope, arg, "EXECUTE"), context) for arg in node.args)
    for arg in args:
        context.functions |= restricted_calls(arg, context.catalog.guarded_functions)
    return st.ExecutePrepared(name=node.name, args=args)


# --- roles --------------------------------------------------------------------------------------

_ROLE_OPTIONS = {
    "superuser": "superuser",
    "inherit": "inherit",
    "createrole": "create_role",
    "createdb": "create_db",
    "canlogin": "can_login",
    "isreplication": "replication",
    "bypassrls": "bypass_rls",
    "connectionlimit": "connection_limit",
    "password": "password",
    "validUntil": "valid_until",
}


def _role_options(context: BindContext, options: Sequence[ast.Option]) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for option in options:
        if option.name == "sysid":
            continue  # PostgreSQL only says that it ignores it
        name = _ROLE_OPTIONS.get(option.name)
        if name is None:
            raise SqlError("42601", f'unrecognized role option "{option.name}"', span=option.span)
        if name in found:
            raise redundant(option.span)
        text = option_text(option)
        if name == "password":
            found[name] = text
        elif name == "connection_limit":
            limit = int(text or "-1")
            if limit < -1:
                raise SqlError("22023", f"invalid connection limit: {limit}")
            found[name] = limit
        elif name == "valid_until":
            found[name] = positioned(TIMESTAMPTZ, text or "", -1, context, None)
            context.env.folded.update(("timezone", "datestyle", "now"))
        else:
            found[name] = text in ("1", "true", "on")
    return found


def bind_create_role(context: BindContext, node: ast.CreateRole) -> st.RoleStatement:
    """CREATE ROLE, USER, GROUP."""
    return st.RoleStatement(
        action="create",
        names=(node.name,),
        options=_role_options(context, node.options),
        is_user=node.kind == "user",
        memberships=tuple(
            _members(roles, members, admin=admin)
            for roles, members, admin in (
                (node.in_roles, (ast.Role(name=node.name),), False),
                ((ast.Role(name=node.name),), node.admins, True),
                ((ast.Role(name=node.name),), node.members, False),
            )
            if roles and members
        ),
    )


def _members(roles: Sequence[ast.Role], members: Sequence[ast.Role], *, admin: bool = False) -> st.GrantRole:
    try:
        names = tuple(owner_name(role) for role in roles)
        return st.GrantRole(
            is_grant=True, roles=names, members=tuple(owner_name(role) for role in members), admin=admin
        )
    except SqlError as error:
        error.span = None
        raise


def _role_name(role: ast.Role, command: str) -> str:
    if role.special in ("", None):
        return role.name
    if role.special == "public":
        raise SqlError("42704", 'role "public" does not exist')
    raise not_supported(f"{command} {role.special.upper()}", span=role.span)


def bind_alter_role(context: BindContext, node: ast.AlterRole) -> st.RoleStatement | st.GrantRole:
    """ALTER ROLE ... WITH options; ALTER GROUP ... ADD and DROP USER are GRANT and REVOKE of the group."""
    if node.members:
        return replace(_members((node.role,), node.members), is_grant=node.adds, alters_group=True)
    return st.RoleStatement(
        action="alter",
        names=(_role_name(node.role, "ALTER ROLE"),),
        options=_role_options(context, node.options),
    )


def bind_drop_role(context: BindContext, node: ast.DropRole) -> st.RoleStatement:
    """DROP ROLE, USER, GROUP."""
    for role in paced(node.roles):
        if role.special:
            raise SqlError("22023", "cannot use special role specifier in DROP ROLE")
    return st.RoleStatement(
        action="drop",
        names=tuple(role.name for role in paced(node.roles)),
        options={},
        if_exists=node.if_exists,
    )


def owner_name(role: ast.Role) -> str:
    """Return the role of OWNER TO / AUTHORIZATION: a name, or current_user / session_user as such."""
    if role.special == "public":
        raise SqlError("42704", 'role "public" does not exist')
    return role.name or role.special


# --- maintenance and comments ---------------------------------------------------------------------

_MAINTENANCE_OPTIONS = {
    "vacuum": (
        "verbose", "skip_locked", "analyze", "freeze", "full", "disable_page_skipping", "index_cleanup",
        "process_toast", "truncate", "parallel",
    ),
    "analyze": ("verbose", "skip_locked"),
    "reindex": ("verbose", "tablespace", "concurrently"),
    "cluster": ("verbose",),
    "checkpoint": (),
}  # fmt: skip


def bind_maintenance(context: BindContext, node: ast.Maintenance) -> st.Maintenance:
    """VACUUM, ANALYZE, CHECKPOINT, REINDEX, CLUSTER; options are checked, only FULL, ANALYZE and VERBOSE are
    passed on.
    """
    options = check_words(node.options, node.what.upper(), _MAINTENANCE_OPTIONS[node.what])
    for name, option in options.items():
        if name == "parallel":
            _parallel_workers(option)
        elif name != "tablespace" and not (
            name == "index_cleanup" and (option_text(option) or "auto").lower() == "auto"
        ):
            boolean_option(option)
    if node.what == "vacuum":
        _check_vacuum(options, columns=any(columns for _, columns in node.relations))
    if "tablespace" in options:
        raise not_supported("REINDEX with TABLESPACE", span=options["tablespace"].span)
    tables: list[int] = []
    named: list[int] = []
    not_tables: list[str] = []
    wrong: list[tuple[int, str, str]] = []
    index = 0
    alone = _alone(node, options)
    for reference, columns in paced(node.relations):
        relation = context.relation(reference.schema, reference.name, catalog=reference.catalog)
        _check_kind(node, relation)
        if (error := _wrong_column(relation, columns)) is not None:
            wrong.append((relation.oid, *error))
        named.append(relation.oid)
        if node.what == "cluster":
            index = _clustered_by(relation, node.name)
            alone = "CLUSTER" if relation.kind == "p" else alone
        if relation.kind == "i" and node.what == "reindex":
            tables.append(relation.table_oid)
        elif relation.stored:
            tables.append(relation.oid)
        elif relation.kind not in STORING:
            not_tables.append(relation.name)
    over = node.object if node.object in ("schema", "database", "system") else ""
    if node.object in ("database", "system") and node.name not in ("", context.database):
        raise SqlError("0A000", "can only reindex the currently open database")
    if node.object == "schema" and context.catalog.schema(node.name) is None:
        raise SqlError("3F000", f'schema "{node.name}" does not exist')
    full, analyze, verbose, concurrently = (
        name in options and boolean_option(options[name])
        for name in ("full", "analyze", "verbose", "concurrently")
    )
    return st.Maintenance(
        what=node.what,
        tables=tuple(tables),
        full=full,
        analyze=analyze or node.what == "analyze",
        relations=tuple(named),
        object=over,
        name=node.name,
        not_tables=tuple(not_tables) if node.what in ("vacuum", "analyze") else (),
        alone=alone,
        verbose=verbose,
        index=index if node.name else 0,
        wrong_columns=tuple(wrong),
        concurrently=concurrently,
    )


_MOST_WORKERS: Final = 1024


def _parallel_workers(option: ast.Option) -> int:
    text = option_text(option)
    if text is None:
        raise SqlError(
            "42601", f"parallel option requires a value between 0 and {_MOST_WORKERS}", span=option.span
        )
    if not re.fullmatch(r"-?\d+", text):
        raise SqlError("42601", "parallel requires an integer value")
    if not 0 <= int(text) <= _MOST_WORKERS:
        raise SqlError(
            "42601", f"parallel workers for vacuum must be between 0 and {_MOST_WORKERS}", span=option.span
        )
    return int(text)


def _check_vacuum(options: Mapping[str, ast.Option], *, columns: bool) -> None:
    """Refuse combinations of VACUUM's options that exclude each other, whether or not they have an effect here."""

    def asked(name: str, default: bool = False) -> bool:
        return boolean_option(options[name]) if name in options else default

    full = asked("full")
    if full and "parallel" in options and _parallel_workers(options["parallel"]) > 0:
        raise SqlError("0A000", "VACUUM FULL cannot be performed in parallel")
    if columns and not asked("analyze"):
        raise SqlError("0A000", "ANALYZE option must be specified when a column list is provided")
    if full and asked("disable_page_skipping"):
        raise SqlError("0A000", "VACUUM option DISABLE_PAGE_SKIPPING cannot be used with FULL")
    if full and not asked("process_toast", True):
        raise SqlError("0A000", "PROCESS_TOAST required with VACUUM FULL")


def _alone(node: ast.Maintenance, options: Mapping[str, ast.Option]) -> str:
    """Return how PostgreSQL names a statement that it runs in transactions of its own, one after the other;
    "" for others.
    """
    if node.what == "vacuum" or (node.what == "cluster" and not node.relations):
        return node.what.upper()
    if node.what != "reindex":
        return ""
    if node.object in ("schema", "system", "database"):
        return f"REINDEX {node.object.upper()}"
    return (
        "REINDEX CONCURRENTLY"
        if "concurrently" in options and boolean_option(options["concurrently"])
        else ""
    )


def _wrong_column(relation: RelationDef, columns: Sequence[str]) -> tuple[str, str] | None:
    """Return what is wrong with the columns that ANALYZE is to count: SQLSTATE and message, None for nothing."""
    names = {column.name for column in relation.live}
    for column in columns:
        if column not in names:
            return "42703", f'column "{column}" of relation "{relation.name}" does not exist'
        if columns.count(column) > 1:
            return "42701", f'column "{column}" of relation "{relation.name}" appears more than once'
    return None


def _check_kind(node: ast.Maintenance, relation: RelationDef) -> None:
    if node.what == "reindex":
        if node.object == "index" and relation.kind != "i":
            raise SqlError("42809", f'"{relation.name}" is not an index')
        if node.object == "table" and relation.kind not in STORING:
            raise SqlError("42809", f'"{relation.name}" is not a table or materialized view')
    if node.what == "cluster" and relation.kind not in STORING:
        raise SqlError("42809", f'"{relation.name}" is not a table or materialized view')


def _clustered_by(relation: RelationDef, name: str) -> int:
    """Return the index that CLUSTER goes by: the one that is named, or was marked before. Raises SqlError
    42704, 0A000.
    """
    found = next((i.oid for i in relation.every_index if (i.name == name if name else i.clustered)), None)
    if found is None and name:
        raise SqlError("42704", f'index "{name}" for table "{relation.name}" does not exist')
    if found is None:
        raise SqlError("42704", f'there is no previously clustered index for table "{relation.name}"')
    check_clusterable(relation, name)
    return found


# pg_class, pg_namespace, pg_constraint, pg_authid
_PG_CLASS: Final = 1259
_PG_NAMESPACE: Final = 2615
_PG_CONSTRAINT: Final = 2606
_PG_AUTHID: Final = 1260
_PG_DATABASE: Final = 1262
_PG_LARGEOBJECT: Final = 2613


def bind_comment(context: BindContext, node: ast.Comment) -> st.Comment | st.Skip:
    """COMMENT ON TABLE, VIEW, MATERIALIZED VIEW, INDEX, SEQUENCE, COLUMN, CONSTRAINT, SCHEMA, ROLE, DATABASE,
    LARGE OBJECT; others 0A000.
    """
    if node.what in CALLED:
        relation = _named_relation(context, node.name, node.span)
        if relation.kind not in CALLED[node.what]:
            raise SqlError("42809", f'"{relation.name}" is not {called(node.what)}')
        return st.Comment(class_oid=_PG_CLASS, object_oid=relation.oid, sub_id=0, text=node.text)
    if node.what == "column":
        if len(node.name) < 2:
            raise SqlError("42601", "column name must be qualified")
        relation = _named_relation(context, node.name[:-1], node.span)
        if relation.kind not in COLUMNED:
            raise SqlError(
                "42809",
                f'cannot set comment on relation "{relation.name}"',
                detail=f"This operation is not supported for {RELATION_KINDS[relation.kind].plural}.",
            )
        for column in relation.live:
            if column.name == node.name[-1]:
                return st.Comment(
                    class_oid=_PG_CLASS, object_oid=relation.oid, sub_id=column.attnum, text=node.text
                )
        shown = ".".join(node.name[:-1])
        raise SqlError("42703", f'column "{node.name[-1]}" of relation "{shown}" does not exist')
    if node.what in ("table constraint", "constraint", "tabconstraint"):
        relation = _named_relation(context, node.name[:-1], node.span)
        for constraint in relation.constraints:
            if constraint.name == node.name[-1]:
                return st.Comment(
                    class_oid=_PG_CONSTRAINT, object_oid=constraint.oid, sub_id=0, text=node.text
                )
        raise SqlError("42704", f'constraint "{node.name[-1]}" for table "{relation.name}" does not exist')
    if node.what == "schema":
        schema = context.catalog.schema(node.name[-1])
        if schema is None:
            raise SqlError("3F000", f'schema "{node.name[-1]}" does not exist')
        return st.Comment(class_oid=_PG_NAMESPACE, object_oid=schema.oid, sub_id=0, text=node.text)
    if node.what == "role":
        role = context.catalog.role(node.name[-1])
        if role is None:
            raise SqlError("42704", f'role "{node.name[-1]}" does not exist')
        return st.Comment(class_oid=_PG_AUTHID, object_oid=role.oid, sub_id=0, text=node.text)
    if node.what == "database":
        database = context.catalog.database_named(node.name[-1])
        if database is None:  # which may be that of a dump that is read elsewhere
            return st.Skip(
                notice=f'database "{node.name[-1]}" does not exist', severity="WARNING", sqlstate="3D000"
            )
        return st.Comment(class_oid=_PG_DATABASE, object_oid=database.oid, sub_id=0, text=node.text)
    if node.what in ("type", "domain"):
        from planner.bind.define.types import bind_comment_on_type  # which asks here for owners

        return bind_comment_on_type(context, node)
    if node.what == "large object":
        return st.Comment(class_oid=_PG_LARGEOBJECT, object_oid=int(node.name[0]), sub_id=0, text=node.text)
    if node.what == "domain constraint":
        from planner.bind.define.types import bind_comment_on_domain_constraint  # as above

        return bind_comment_on_domain_constraint(context, node)
    raise not_supported(f"COMMENT ON {node.what.upper()}", span=node.span)


def _named_relation(context: BindContext, name: Sequence[str], span: Span | None) -> RelationDef:
    schema = name[-2] if len(name) > 1 else ""
    return context.relation(schema, name[-1], span, catalog=name[-3] if len(name) > 2 else "")


# --- EXPLAIN --------------------------------------------------------------------------------------

_EXPLAIN_OPTIONS = (
    "analyze", "verbose", "costs", "buffers", "wal", "settings", "timing", "summary", "format", "timestamp",
)  # fmt: skip
_FORMATS = ("text", "xml", "json", "yaml")


def explain_options(options: Sequence[ast.Option]) -> dict[str, str]:
    """Check EXPLAIN's options; returns lower-case name -> "on"/"off", and "format" -> its word.

    Raises SqlError 42601 for unknown ones, 22023 for a bad format and for WAL or TIMING without ANALYZE.
    """
    found = check_words(options, "EXPLAIN", _EXPLAIN_OPTIONS)
    result: dict[str, str] = {}
    for name, option in found.items():
        if name == "format":
            text = option_text(option) or ""
            if text not in _FORMATS:
                raise SqlError(
                    "22023",
                    f'unrecognized value for EXPLAIN option "format": "{text}"',
                    span=option.span,
                )
            result[name] = text
        else:
            result[name] = "on" if boolean_option(option) else "off"
    if result.get("analyze", "off") == "off":
        for name in ("wal", "timing"):
            if result.get(name) == "on":
                raise SqlError("22023", f"EXPLAIN option {name.upper()} requires ANALYZE")
    return result


def bind_lock(context: BindContext, node: ast.LockTable) -> st.LockTable:
    """LOCK TABLE of stored tables and views. Raises SqlError 42P01, 42809; 0A000 for catalog relations."""
    tables: dict[int, None] = {}
    partitions: dict[int, None] = {}
    beneath: dict[tuple[int, int], None] = {}
    for reference in paced(node.relations):
        relation = context.relation(reference.schema, reference.name, catalog=reference.catalog)
        if relation.kind not in LOCKED:
            raise SqlError(
                "42809",
                f'cannot lock relation "{relation.name}"',
                detail=f"This operation is not supported for {RELATION_KINDS[relation.kind].plural}.",
            )
        if relation.virtual:
            raise not_supported(
                f'LOCK TABLE of "{relation.name}", which is not a stored table', span=node.span
            )
        tables[relation.oid] = None
        divided = [] if reference.only else [relation]
        if relation.kind == "v":
            divided = _read_by(context, relation, beneath)
        for table in divided:
            below = descendants(table, context.catalog) if table.kind == "p" else ()
            partitions.update((part.oid, None) for part in below)
            context.versions.update((part.oid, part.version) for part in below)
    return st.LockTable(
        tables=tuple(tables),
        partitions=tuple(partitions),
        beneath=tuple(beneath),
        mode=node.mode,
        nowait=node.nowait,
    )


def _read_by(
    context: BindContext, view: RelationDef, beneath: dict[tuple[int, int], None]
) -> list[RelationDef]:
    """Note in ``beneath`` the tables and views that a view reads, at all levels, each with who is asked about
    it; return them.
    """
    found: list[RelationDef] = []
    asked = 0 if invokes(view) else view.owner
    for oid in view.depends_on:
        relation = context.catalog.relation_by_oid(oid)
        if relation is None or relation.kind not in LOCKED or (oid, asked) in beneath:
            continue
        beneath[oid, asked] = None
        context.versions[oid] = relation.version
        found.append(relation)
        if relation.kind == "v" and not relation.virtual:
            found += _read_by(context, relation, beneath)
    return found


def bind_set_constraints(context: BindContext, node: ast.SetConstraints) -> st.SetConstraints:
    """SET CONSTRAINTS: names are resolved when it runs. Raises SqlError 0A000 for another database's."""
    names: list[tuple[str, str]] = []
    for name in paced(node.names):
        if len(name) > 2 and context.database and name[0] != context.database:
            raise SqlError("0A000", f'cross-database references are not implemented: "{".".join(name)}"')
        names.append((name[-2] if len(name) > 1 else "", name[-1]))
    return st.SetConstraints(names=mind_long(tuple(names)), deferred=node.deferred)


def bind_notify(context: BindContext, node: ast.Notify) -> st.Notify:
    """LISTEN, UNLISTEN, NOTIFY."""
    return st.Notify(action=node.action, channel=node.channel, payload=node.payload)
