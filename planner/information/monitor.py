"""Sizes, sessions, transactions, settings and properties: what monitoring tools and drivers ask a server.

Figures come from the store where it keeps them (bytes and rows of tables, the lock table, sessions). PostgreSQL's
counters of its own storage (blocks fetched, tuples inserted since a reset, times of maintenance ...) have nothing to
count here: they answer NULL, as the views over them do, and ``docs/reference/catalog.md`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NoReturn

from pgwire.codecs.invalid import quoting
from pgwire.codecs.network import address_of
from pgwire.long.arrays import holds
from planner.base.errors import SqlError, not_supported
from planner.bind.change.updatable import updatable_columns
from planner.catalog import RelationDef, extensions
from planner.catalog.acl import inherited
from planner.catalog.relation_kinds import FILED, TABLES
from planner.catalog.rights import Rights
from planner.facts import FLOAT8, INT4, INT8, OID, TIMESTAMPTZ, facts, rows
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.system.names import is_other_temp_schema
from planner.functions.values.reg import find_relation
from planner.indexing.opclass_extensions import BLOOM_METHOD_OID
from planner.information.definitions import find_index
from planner.statements.foreign_options import check_names

_TABLESPACES = {"pg_default": 1663, "pg_global": 1664}


# --- sizes ----------------------------------------------------------------------------------------


def relation_size(session: EvalSession, oid: int, fork: str = "main") -> int | None:
    """SQL's ``pg_relation_size``: a table's bytes in memory and parts; NULL for an unknown oid."""
    if fork not in ("main", "fsm", "vm", "init"):
        raise SqlError(
            "22023", "invalid fork name", hint='Valid fork names are "main", "fsm", "vm", and "init".'
        )
    size = session.system.relation_sizes()(oid)
    return size if size is None or fork == "main" else 0


def relation_sizes(session: EvalSession) -> Callable[[int], int | None]:
    """Return ``pg_relation_size`` for many relations."""
    return session.system.relation_sizes()


def indexes_size(session: EvalSession, oid: int) -> int | None:
    """SQL's ``pg_indexes_size``: indexes are counted with their table."""
    return None if session.catalog.relation_by_oid(oid) is None else 0


def database_size(session: EvalSession, wanted: Any) -> int | None:
    """SQL's ``pg_database_size``, by name or oid."""
    if isinstance(wanted, str):
        found = session.catalog.database_named(wanted)
        if found is None:
            raise SqlError("3D000", f'database "{wanted}" does not exist')
    else:
        found = session.catalog.database_by_oid(wanted)
        if found is None:
            return None
    return session.system.database_size(found.oid)


def tablespace_size(session: EvalSession, wanted: Any) -> int | None:
    """SQL's ``pg_tablespace_size``, by name or oid: all tables are in pg_default."""
    if isinstance(wanted, str):
        if wanted not in _TABLESPACES:
            raise SqlError("42704", f'tablespace "{wanted}" does not exist')
        wanted = _TABLESPACES[wanted]
    elif wanted not in _TABLESPACES.values():
        return None
    return session.system.database_size(0) if wanted == _TABLESPACES["pg_default"] else 0


# --- sessions and transactions --------------------------------------------------------------------


def _may_signal(session: EvalSession, pid: int, what: str) -> bool:
    """Tell whether the session exists; 42501 unless the user is a superuser, or may signal those of its role."""
    owner = session.system.backend_user(pid)
    if owner is None:
        session.system.warn(f"PID {pid} is not a PostgreSQL backend process")
        return False
    today = session.today
    mine = today.role(session.user)
    theirs = today.role_by_oid(owner)
    if mine is not None and mine.superuser:
        return True
    if theirs is not None and theirs.superuser:
        raise SqlError("42501", f"must be a superuser to {what} superuser {_NOUN[what]}")
    if mine is None or inherited(mine, today.role_by_oid).isdisjoint((owner, PG_SIGNAL_BACKEND)):
        raise SqlError(
            "42501", f"must be a member of the role whose {_OBJECT[what]} or member of pg_signal_backend"
        )
    return True


PG_SIGNAL_BACKEND: Final = 4200
_NOUN = {"cancel": "query", "terminate": "process"}
_OBJECT = {
    "cancel": "query is being canceled",
    "terminate": "process is being terminated",
}


def cancel_backend(session: EvalSession, pid: int) -> bool:
    """SQL's ``pg_cancel_backend``; false with a warning where there is no such session; 42501."""
    return _may_signal(session, pid, "cancel") and session.system.cancel_backend(pid)


def terminate_backend(session: EvalSession, pid: int, timeout: int = 0) -> bool:
    """SQL's ``pg_terminate_backend``; it never waits, so a timeout other than 0 is 0A000."""
    if timeout:
        if timeout < 0:
            raise SqlError("22003", '"timeout" must not be negative')
        raise not_supported("pg_terminate_backend with a timeout")
    return _may_signal(session, pid, "terminate") and session.system.terminate_backend(pid)


def log_memory(session: EvalSession, pid: int) -> bool:
    """SQL's ``pg_log_backend_memory_contexts``: the log gets what the session has; false with a warning where
    there is no such session.
    """
    if session.system.log_memory(pid):
        return True
    session.system.warn(f"PID {pid} is not a PostgreSQL server process")
    return False


def xid_age(session: EvalSession, xid: int) -> int:
    """SQL's ``age(xid)``: how many transactions ago, in the circle of 32 bits; special xids are as old as can be."""
    if xid < 3:
        return 2**31 - 1
    return (session.system.transaction_id() - xid + 2**31) % 2**32 - 2**31


# --- properties -----------------------------------------------------------------------------------


def replica_identity_index(session: EvalSession, oid: int) -> int | None:
    """SQL's ``pg_get_replica_identity_index``: the index of REPLICA IDENTITY USING INDEX, the primary key by
    default.
    """
    table = session.catalog.relation_by_oid(oid)
    if table is None or table.replica_identity not in ("d", "i"):
        return None
    by_default = table.replica_identity == "d"
    return next(
        (
            i.oid
            for i in table.indexes
            if (i.primary and not i.deferrable if by_default else i.replica_identity)
        ),
        None,
    )


def filenode(session: EvalSession, oid: int) -> int | None:
    """SQL's ``pg_relation_filenode``: the oid itself where something is stored, else NULL."""
    relation = session.catalog.relation_by_oid(oid)
    return oid if relation is not None and relation.kind in FILED else None


def filenode_relation(session: EvalSession, tablespace: int, node: int) -> int | None:
    """SQL's ``pg_filenode_relation``: the relation whose ``pg_relation_filenode`` this is; all are in
    pg_default (0: the database's tablespace).
    """
    known = node and tablespace in (0, _TABLESPACES["pg_default"]) and filenode(session, node) == node
    return node if known else None


def filepath(session: EvalSession, oid: int) -> str | None:
    """SQL's ``pg_relation_filepath``: tables have parts, not files of their own name, so NULL."""
    return None


def is_publishable(session: EvalSession, oid: int) -> bool | None:
    """SQL's ``pg_relation_is_publishable``: permanent tables of users."""
    relation = session.catalog.relation_by_oid(oid)
    if relation is None:
        return None
    return relation.kind in TABLES and not relation.virtual and relation.persistence == "p"


INSERT_UPDATE_DELETE = (1 << 3) | (1 << 2) | (1 << 4)


def _updatable(relation: RelationDef | None) -> bool:
    return relation is not None and relation.kind in TABLES and not relation.virtual


_BITS = {"i": 1 << 3, "u": 1 << 2, "d": 1 << 4}
_CHANGED = _BITS["u"] | _BITS["d"]


def is_updatable(session: EvalSession, oid: int, triggers: bool, attnum: int = 0) -> int:
    """SQL's ``pg_relation_is_updatable``: a bit mask of INSERT, UPDATE, DELETE; with ``triggers`` also by
    INSTEAD OF ones.

    ``attnum``: count INSERT and UPDATE of a view only where this column can be given a value, 0: where any can.
    """
    relation = session.catalog.relation_by_oid(oid)
    if relation is None or relation.kind != "v" or relation.virtual:
        return INSERT_UPDATE_DELETE if _updatable(relation) else 0
    found = 0
    columns = updatable_columns(session.catalog, relation)
    if columns is not None:
        found = INSERT_UPDATE_DELETE if attnum in columns or (columns and not attnum) else _BITS["d"]
    for letter, bit in _BITS.items():
        found |= bit if triggers and relation.has_instead(letter) else 0
    return found


def column_is_updatable(session: EvalSession, oid: int, attnum: int, triggers: bool) -> bool:
    """SQL's ``pg_column_is_updatable``: whether the column can be updated, in rows that can be deleted."""
    return attnum > 0 and is_updatable(session, oid, triggers, attnum) & _CHANGED == _CHANGED


_LONGEST: Final = 64
"""Characters of a property's name; none that is known has as many."""


def index_column_property(session: EvalSession, oid: int, position: int, name: str) -> bool | None:
    """SQL's ``pg_index_column_has_property``; NULL for what is unknown or does not apply."""
    found = find_index(session, oid)
    if found is None:
        return None
    index = found[1]
    if not 1 <= position <= len(index.attnums) + len(index.include):
        return None
    property_ = name[:_LONGEST].lower()
    if position > len(index.attnums):  # an INCLUDE column
        return {"returnable": True, "distance_orderable": False}.get(property_)
    btree = index.method == "btree"
    descending = bool(index.descending) and index.descending[position - 1]
    nulls_first = index.nulls_first[position - 1] if index.nulls_first else descending
    return {
        "asc": btree and not descending,
        "desc": btree and descending,
        "nulls_first": btree and nulls_first,
        "nulls_last": btree and not nulls_first,
        "orderable": btree,
        "distance_orderable": False,
        "returnable": btree or index.method in ("gist", "spgist"),
        "search_array": btree,
        "search_nulls": btree or index.method in ("gist", "spgist", "brin"),
    }.get(property_)


def index_property(session: EvalSession, oid: int, name: str) -> bool | None:
    """SQL's ``pg_index_has_property``."""
    found = find_index(session, oid)
    if found is None:
        return None
    method = found[1].method
    return {
        "clusterable": method in ("btree", "gist"), "index_scan": method not in ("gin", "brin", "bloom"), "bitmap_scan": True,
        "backward_scan": method in ("btree", "hash"),
    }.get(name[:_LONGEST].lower())  # fmt: skip


_AM_PROPERTY_NAMES = ("can_order", "can_unique", "can_multi_col", "can_exclude", "can_include")
_AM_PROPERTIES = {
    am: dict(zip(_AM_PROPERTY_NAMES, values, strict=True))
    for am, values in {
        403: (True, True, True, True, True), 405: (False, False, False, True, False),
        783: (False, False, True, True, True), 4000: (False, False, False, True, True),
        2742: (False, False, True, False, False), 3580: (False, False, True, False, False),
        BLOOM_METHOD_OID: (False, False, True, False, False),
    }.items()
}  # fmt: skip


def row_security_active(session: EvalSession, oid: int) -> bool:
    """SQL's ``row_security_active``: whether policies count for the current user; FALSE for an unknown oid."""
    relation = session.catalog.relation_by_oid(oid)
    return relation is not None and session.row_security_counts(relation)


def row_security_active_by_name(session: EvalSession, name: str) -> bool:
    """The same by name. Raises SqlError 42P01."""
    relation = find_relation(session, name)
    if relation is None:
        raise SqlError("42P01", quoting("relation ", name, " does not exist"))
    return session.row_security_counts(relation)


def index_method_property(oid: int, name: str) -> bool | None:
    """SQL's ``pg_indexam_has_property``: what PostgreSQL's method can, also where it is not all supported here."""
    return _AM_PROPERTIES.get(oid, {}).get(name[:_LONGEST].lower())


# --- sets -----------------------------------------------------------------------------------------

_KEYWORD_CLASSES = {
    "U": "unreserved", "C": "unreserved (cannot be function or type name)",
    "T": "reserved (can be function or type name)", "R": "reserved",
}  # fmt: skip


def keywords() -> Iterator[tuple[str, str, bool, str, str]]:
    """SQL's ``pg_get_keywords``."""
    for row in rows("keywords"):
        bare = row["barelabel"] == "t"
        yield (
            row["word"], row["catcode"], bare, _KEYWORD_CLASSES[row["catcode"]],
            "can be bare label" if bare else "requires AS",
        )  # fmt: skip


def options_to_table(options: Sequence[str | None]) -> Iterator[tuple[str, str | None]]:
    """SQL's ``pg_options_to_table``: ``name=value`` texts as rows."""
    for option in options:
        if option is not None:
            name, equals, value = option.partition("=")
            yield name, value if equals else None


def foreign_options_valid(options: Sequence[str | None], catalog: int) -> bool:
    """SQL's ``postgresql_fdw_validator``: true. Raises SqlError 42601 for an option that objects of a catalog
    have not.
    """
    check_names((option.partition("=")[0] for option in options if option is not None), catalog)
    return True


def tablespace_location(oid: int) -> str | None:
    """SQL's ``pg_tablespace_location``: empty for the two tablespaces there are."""
    return "" if oid == 0 or oid in _TABLESPACES.values() else None


def _same_as(relation: str) -> Callable[[EvalSession], Iterable[tuple[Any, ...]]]:
    """Return the function under a view of pg_catalog that has the same columns."""
    return lambda session: session.system.catalog_rows(relation)


def no_recovery() -> NoReturn:
    """Functions that steer a standby of PostgreSQL's: there is none. Raises SqlError 55000."""
    raise SqlError(
        "55000",
        "recovery is not in progress",
        hint="Recovery control functions can only be executed during recovery.",
    )


def _nth_backend(session: EvalSession, number: int) -> int | None:
    pids = session.system.backends()
    return pids[number - 1] if 1 <= number <= len(pids) else None


def _backend_user_oid(session: EvalSession, number: int) -> int | None:
    pid = _nth_backend(session, number)
    return session.system.backend_user(pid) if pid is not None else None


def _address(side: str, position: int) -> Callable[[EvalSession], Any]:
    """Return inet_client_addr() and its kin: NULL where there is no address."""

    def address(session: EvalSession) -> Any:
        system = session.system
        found = system.client_address if side == "client" else system.server_address
        if found is None:
            return None
        return found[position] if position else address_of(found[0])

    return address


_OF_CHECKPOINTS = (
    "bgwriter_timed_checkpoints", "bgwriter_requested_checkpoints", "checkpoint_write_time", "checkpoint_sync_time",
    "bgwriter_buf_written_checkpoints", "bgwriter_buf_written_clean", "bgwriter_maxwritten_clean", "buf_written_backend",
    "buf_fsync_backend", "buf_alloc", "bgwriter_stat_reset_time",
)  # fmt: skip
"""The columns of pg_stat_bgwriter as functions are named for them."""


def _register_statistics() -> None:
    """Let every counter of PostgreSQL's statistics that nothing else answers be unknown."""
    known = facts()
    python = REGISTRY.python
    python("pg_stat_get_live_tuples(oid)", lambda s, oid: s.system.row_estimate(oid), needs_session=True)
    python("pg_stat_get_db_numbackends(oid)", lambda s, oid: len(s.system.backends()), needs_session=True)
    python(
        "pg_stat_get_backend_idset()", lambda s: range(1, len(s.system.backends()) + 1), needs_session=True
    )
    python("pg_stat_get_backend_pid(int4)", _nth_backend, needs_session=True)
    python("pg_stat_get_backend_userid(int4)", _backend_user_oid, needs_session=True)
    python(
        "pg_stat_get_backend_dbid(int4)",
        lambda s, n: s.system.backend_database(_nth_backend(s, n) or 0),
        needs_session=True,
    )
    for place, what in enumerate(_OF_CHECKPOINTS):
        python(
            f"pg_stat_get_{what}()",
            lambda s, place=place: s.system.catalog_rows("pg_stat_bgwriter")[0][place],
            needs_session=True,
        )
    for what, place in (("last_vacuum_time", 0), ("vacuum_count", 1)):
        python(
            f"pg_stat_get_{what}(oid)",
            lambda s, oid, place=place: s.system.vacuumed(oid)[place],
            needs_session=True,
        )
    for kind, place in (("", 0), ("auto", 1)):
        python(
            f"pg_stat_get_last_{kind}analyze_time(oid)",
            lambda s, oid, place=place: s.system.analyzed_us(oid)[place],
            needs_session=True,
        )
    figures = (INT4, INT8, FLOAT8, TIMESTAMPTZ)
    for proc in list(known.procs.values()):
        counts = proc.name.startswith("pg_stat_get_") and proc.arg_types in ((OID,), ())
        if not counts or proc.returns_set or proc.result not in figures:
            continue
        signature = known.signature(proc.oid)
        if (row := REGISTRY.functions.get(proc.oid)) is None or row.python is None:
            python(signature, lambda *_: None)


def brin_ranges_missing(session: EvalSession, oid: int, block: int = 0) -> int:
    """Return how many ranges of a brin index have no bounds yet: 0, they are written with the rows. SqlError
    as ``_own_index``, 22003.
    """
    if not 0 <= block < 1 << 32:
        raise SqlError("22003", f"block number out of range: {block}")
    _own_index(session, oid, "brin")
    return 0


def _own_index(session: EvalSession, oid: int, method: str) -> None:
    """Check that an oid is an index's, of a method, and the user's own to look after.

    Raises SqlError 42P01, 42809, 42501, 0A000 for those of other sessions' temporary tables.
    """
    found = find_index(session, oid)
    if found is None:
        relation = session.catalog.relation_by_oid(oid)
        if relation is None:
            raise SqlError("42P01", f"could not open relation with OID {oid}")
        raise SqlError("42809", f'"{relation.name}" is not an index')
    table, index = found
    if index.method != method:
        raise SqlError("42809", f'"{index.name}" is not a {method.upper()} index')
    catalog = session.rights_catalog
    owned = catalog.relation_by_oid(table.oid) or table
    if not Rights(catalog, catalog.role(session.user)).owns(owned.owner):
        raise SqlError("42501", f"must be owner of index {index.name}")
    if is_other_temp_schema(session, table.schema_oid):
        raise SqlError("0A000", "cannot access temporary tables of other sessions")


def forget_brin_range(session: EvalSession, oid: int, block: int) -> str:
    """SQL's ``brin_desummarize_range``: bounds go with the rows that they are of. Raises SqlError as
    ``brin_ranges_missing``.
    """
    brin_ranges_missing(session, oid, block)
    return ""


def pending_gin_pages(session: EvalSession, oid: int) -> int:
    """SQL's ``gin_clean_pending_list``: 0, keys are in their index with their rows. Raises SqlError as
    ``_own_index``.
    """
    _own_index(session, oid, "gin")
    return 0


def notify(session: EvalSession, channel: str | None, payload: str | None) -> str:
    """SQL's ``pg_notify``: NULL counts as the empty text; 22023."""
    if not channel:
        raise SqlError("22023", "channel name cannot be empty")
    session.system.channels.notify(channel, payload or "")
    return ""


def _register() -> None:
    python = REGISTRY.python

    def session_form(signature: str, form: Callable[..., Any]) -> None:
        python(signature, form, needs_session=True)

    session_form("pg_relation_size(regclass,text)", relation_size)
    for kind in ("relation", "table", "total_relation"):
        python(f"pg_{kind}_size(regclass)", relation_size, needs_session=True, for_rows=relation_sizes)
    session_form("pg_indexes_size(regclass)", indexes_size)
    for kind in ("name", "oid"):
        session_form(f"pg_database_size({kind})", database_size)
        session_form(f"pg_tablespace_size({kind})", tablespace_size)
    # Figures are there with what they count, and each statement reads them anew.
    for at_once in ("pg_stat_force_next_flush()", "pg_stat_clear_snapshot()"):
        python(at_once, lambda: "")
    session_form("brin_summarize_new_values(regclass)", brin_ranges_missing)
    session_form("brin_summarize_range(regclass,int8)", brin_ranges_missing)
    session_form("brin_desummarize_range(regclass,int8)", forget_brin_range)
    session_form("gin_clean_pending_list(regclass)", pending_gin_pages)
    session_form("pg_postmaster_start_time()", lambda session: session.system.start_time_us)
    session_form("pg_conf_load_time()", lambda session: session.system.load_time_us)
    session_form("pg_cancel_backend(int4)", cancel_backend)
    session_form("pg_terminate_backend(int4,int8)", terminate_backend)
    session_form("pg_blocking_pids(int4)", lambda session, pid: tuple(session.system.blocking_pids(pid)))
    session_form("pg_safe_snapshot_blocking_pids(int4)", lambda session, pid: ())
    session_form(
        "pg_isolation_test_session_is_blocked(int4,_int4)",
        lambda session, pid, others: any(holds(others, x) for x in session.system.blocking_pids(pid)),
    )
    session_form("age(xid)", xid_age)
    session_form("current_query()", lambda session: session.system.query_text)
    session_form("pg_export_snapshot()", lambda session: session.system.export_snapshot())
    for side, part, position in (
        ("client", "addr", 0), ("client", "port", 1), ("server", "addr", 0), ("server", "port", 1),
    ):  # fmt: skip
        session_form(f"inet_{side}_{part}()", _address(side, position))
    session_form("pg_notify(text,text)", notify)
    session_form("pg_listening_channels()", lambda session: iter(session.system.channels.listening))
    session_form("pg_notification_queue_usage()", lambda session: session.system.channels.queue_usage)
    session_form("pg_relation_filenode(regclass)", filenode)
    session_form("pg_relation_filepath(regclass)", filepath)
    session_form("pg_filenode_relation(oid,oid)", filenode_relation)
    session_form("pg_log_backend_memory_contexts(int4)", log_memory)
    session_form("pg_config()", lambda session: session.system.catalog_rows("pg_config"))
    session_form("pg_relation_is_publishable(regclass)", is_publishable)
    session_form("pg_relation_is_updatable(regclass,bool)", is_updatable)
    session_form("pg_column_is_updatable(regclass,int2,bool)", column_is_updatable)
    session_form("pg_index_column_has_property(regclass,int4,text)", index_column_property)
    session_form("pg_index_has_property(regclass,text)", index_property)
    python("pg_indexam_has_property(oid,text)", index_method_property)
    session_form("row_security_active(oid)", row_security_active)
    session_form("row_security_active(text)", row_security_active_by_name)
    python("pg_tablespace_location(oid)", tablespace_location)
    python("pg_tablespace_databases(oid)", lambda oid: iter(()))
    python("pg_get_keywords()", keywords)
    python("pg_options_to_table(_text)", options_to_table)
    python("postgresql_fdw_validator(_text,oid)", foreign_options_valid)
    for function, view in (
        ("pg_show_all_settings()", "pg_settings"), ("pg_cursor()", "pg_cursors"), ("pg_lock_status()", "pg_locks"),
        ("pg_prepared_statement()", "pg_prepared_statements"), ("pg_hba_file_rules()", "pg_hba_file_rules"), ("pg_timezone_names()", "pg_timezone_names"),
        ("pg_timezone_abbrevs()", "pg_timezone_abbrevs"),
    ):  # fmt: skip
        session_form(function, _same_as(view))
    python("pg_available_extensions()", extensions.available)
    python("pg_available_extension_versions()", extensions.versions)
    # What does not exist here has no rows: replication, prepared transactions, ways to update extensions.
    for signature in (
        "pg_get_replication_slots()",
        "pg_extension_update_paths(name)", "pg_prepared_xact()", "pg_ident_file_mappings()",
        "pg_get_publication_tables(text)", "pg_stat_get_wal_senders()", "pg_show_replication_origin_status()",
        "pg_show_all_file_settings()", "pg_event_trigger_dropped_objects()",
    ):  # fmt: skip
        python(signature, lambda *_: iter(()))
    session_form("pg_get_replica_identity_index(regclass)", replica_identity_index)
    python("pg_column_compression(any)", lambda value: None)  # nothing is compressed by value
    python("pg_collation_actual_version(oid)", lambda oid: None)
    python("pg_database_collation_actual_version(oid)", lambda oid: None)
    for nothing in (
        "pg_last_xact_replay_timestamp()",
        "pg_last_wal_receive_lsn()",
        "pg_last_wal_replay_lsn()",
    ):
        python(nothing, lambda: None)
    for control in (
        "is_wal_replay_paused",
        "wal_replay_pause",
        "wal_replay_resume",
        "get_wal_replay_pause_state",
    ):
        python(f"pg_{control}()", no_recovery)
    python("pg_current_logfile()", lambda: None)  # the log goes to stderr
    python("pg_current_logfile(text)", lambda format_: None)
    _register_statistics()


_register()
