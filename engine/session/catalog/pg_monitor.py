"""pg_catalog's views over settings, relations, and what a session prepared (``pg_activity`` has sessions and locks)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from engine.base.settings.classes import EFFECTIVE, REASONS
from engine.base.settings.defs import OURS, PLPGSQL, SERVER_VERSION
from engine.catalog.relations.pg_catalog import has_triggers
from engine.catalog.relations.sources import RowDict, by_index_oid, by_name, by_oid, of_each
from engine.session.catalog.session_rows import relation
from pgwire.codecs.time.zone import ABBREVIATIONS, abbreviation_offset_at, names
from pgwire.give_way import give_way
from planner.bind.stored.shown import index_definition
from planner.catalog.named_oids import relations_in_text
from planner.catalog.relation_kinds import STORING, TABLES
from planner.catalog.rights import Rights
from planner.information.definitions import reader_of, view_text
from planner.information.named_constants import as_literals_are, with_names

if TYPE_CHECKING:
    from engine.catalog.reading import Reading
    from engine.catalog.state import CatalogSnapshot
    from engine.session.session import Session
    from planner.catalog import RelationDef


def _owner(session: Reading, oid: int) -> str:
    role = session.catalog.role_by_oid(oid)
    return role.name if role is not None else f"unknown (OID={oid})"


@relation("pg_settings", "session")
def pg_settings(session: Session) -> Iterator[RowDict]:
    """Yield pg_settings."""
    for definition, _shown in session.settings_to_list():
        key = definition.name.lower()
        value = session.settings.get(key)
        yield {
            "name": definition.name, "setting": value, "unit": definition.unit or None,
            "category": definition.category, "short_desc": definition.description,
            "context": definition.context, "vartype": definition.kind,
            "source": "default"
            if value == definition.default or definition.context == "internal"
            else "session",
            "min_val": definition.minimum or None, "max_val": definition.maximum or None,
            "enumvals": definition.choices or None, "boot_val": definition.default,
            "reset_val": definition.default, "pending_restart": False,
            "extra_desc": None if key in EFFECTIVE or any(o.name == key for o in (*OURS, *PLPGSQL))
            else "Accepted without effect." if key in REASONS else "Shown only.",
        }  # fmt: skip


@of_each("pg_tables", keys={"tablename": by_name}, builtin=True)
def pg_tables(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_tables."""
    if item.kind in TABLES:
        yield {
            "schemaname": item.schema, "tablename": item.name,
            "tableowner": _owner(session, item.owner), "hasindexes": bool(item.every_index),
            "hasrules": False, "hastriggers": has_triggers(session, item), "rowsecurity": item.row_security,
        }  # fmt: skip


@relation("pg_views", "session")
def pg_views(session: Session) -> Iterator[RowDict]:
    """Yield pg_views."""
    for item in session.catalog.all_relations():
        if item.kind == "v":
            yield {
                "schemaname": item.schema, "viewname": item.name, "viewowner": _owner(session, item.owner),
                "definition": view_text(session, item, pretty=False),
            }  # fmt: skip


@relation("pg_matviews", "session")
def pg_matviews(session: Session) -> Iterator[RowDict]:
    """Yield pg_matviews."""
    for item in session.catalog.user_relations():
        if item.kind == "m":
            yield {
                "schemaname": item.schema, "matviewname": item.name, "matviewowner": _owner(session, item.owner),
                "hasindexes": bool(item.every_index), "ispopulated": item.populated,
                "definition": view_text(session, item, pretty=False),
            }  # fmt: skip


@relation("pg_sequences", "session")
def pg_sequences(session: Session) -> Iterator[RowDict]:
    """Yield pg_sequences; where they stand is shown to those who may read them or draw from them."""
    rights = Rights(session.rights_catalog, session.role)
    for item in session.catalog.user_relations():
        made = item.sequence
        if made is not None:
            counter = session.db.sequences.of(item)
            shown = counter.called and rights.relation(item, "rU") and not session.withholds(item)
            yield {
                "schemaname": item.schema, "sequencename": item.name, "sequenceowner": _owner(session, item.owner),
                "data_type": made.type_oid, "start_value": made.start, "min_value": made.minimum,
                "max_value": made.maximum, "increment_by": made.increment, "cycle": made.cycle,
                "cache_size": made.cache, "last_value": counter.value if shown else None,
            }  # fmt: skip


def _named_by_indexes(catalog: CatalogSnapshot, item: RelationDef) -> list[int]:
    """Return the relations that expressions and conditions of indexes name by constants."""
    texts = [text for index in item.every_index for text in (*index.expressions, index.where_sql)]
    return [oid for text in texts for oid in relations_in_text(text)]


@of_each("pg_indexes", keys={"tablename": by_name}, needs=_named_by_indexes)
def pg_indexes(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_indexes."""
    for index in item.every_index:
        shown = with_names(index_definition(index, item, reader=reader_of(session)), session.catalog)
        yield {
            "schemaname": item.schema, "tablename": item.name, "indexname": index.name,
            "indexdef": as_literals_are(session, shown),
        }  # fmt: skip


@relation("pg_prepared_statements", "session")
def pg_prepared_statements(session: Session) -> Iterator[RowDict]:
    """Yield pg_prepared_statements of the session."""
    connection = session.db.sessions.get(session.pid)
    for prepared in connection.prepared.all() if connection is not None else ():
        if prepared.name:
            yield {
                "name": prepared.name, "statement": prepared.shown or prepared.text, "prepare_time": prepared.prepare_time_us,
                "parameter_types": prepared.param_oids, "from_sql": prepared.from_sql,
                "generic_plans": 0, "custom_plans": 0,
            }  # fmt: skip


@relation("pg_cursors", "session")
def pg_cursors(session: Session) -> Iterator[RowDict]:
    """Yield pg_cursors of the session."""
    connection = session.db.sessions.get(session.pid)
    for cursor in connection.cursors.all() if connection is not None else ():
        yield {
            "name": cursor.name, "statement": cursor.text, "is_holdable": cursor.hold,
            "is_binary": cursor.binary, "is_scrollable": cursor.scroll, "creation_time": cursor.created_us,
        }  # fmt: skip
    for portal in connection.portals.values() if connection is not None else ():
        if portal.name:
            yield {
                "name": portal.name, "statement": portal.prepared.text, "is_holdable": False,
                "is_binary": False, "is_scrollable": False, "creation_time": portal.created_us,
            }  # fmt: skip


@relation("pg_hba_file_rules", "session")
def pg_hba_file_rules(session: Session) -> Iterator[RowDict]:
    """Yield the access rules in force; none where all authenticate alike."""
    for rule in session.db.access_rules:
        network = rule.network
        yield {
            "line_number": rule.line, "type": rule.kind,
            "database": tuple(word.text for word in rule.databases),
            "user_name": tuple(word.text for word in rule.users),
            "address": str(network.network_address) if network is not None else None if rule.kind == "local" else "all",
            "netmask": str(network.netmask) if network is not None else None, "auth_method": rule.method,
        }  # fmt: skip


def _table_stats(session: Session, *, system: bool, user: bool) -> Iterator[RowDict]:
    for item in session.catalog.all_relations():
        if item.kind in STORING and ((item.virtual and system) or (not item.virtual and user)):
            rows = 0 if item.virtual else session.system.row_estimate(item.oid)
            asked_us, by_itself_us = session.system.analyzed_us(item.oid)
            vacuumed_us, vacuums = session.system.vacuumed(item.oid)
            yield {
                "relid": item.oid, "schemaname": item.schema, "relname": item.name, "n_live_tup": rows,
                "n_dead_tup": 0, "last_analyze": asked_us, "last_autoanalyze": by_itself_us, "last_vacuum": vacuumed_us,
                "vacuum_count": vacuums,
            }  # fmt: skip


@relation("pg_stat_all_tables", "session")
def pg_stat_all_tables(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_all_tables."""
    yield from _table_stats(session, system=True, user=True)


@relation("pg_stat_user_tables", "session")
def pg_stat_user_tables(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_user_tables."""
    yield from _table_stats(session, system=False, user=True)


@relation("pg_stat_sys_tables", "session")
def pg_stat_sys_tables(session: Session) -> Iterator[RowDict]:
    """Yield pg_stat_sys_tables."""
    yield from _table_stats(session, system=True, user=False)


def _register_families() -> None:
    """Register the views that name tables and indexes beside counters which are unknown (NULL) here."""
    for family in ("all", "user", "sys"):
        for prefix in ("pg_statio", "pg_stat_xact"):
            _register_tables(f"{prefix}_{family}_tables")
        for prefix in ("pg_statio", "pg_stat"):
            _register_indexes(f"{prefix}_{family}_indexes")


def _shown(name: str, item: RelationDef) -> bool:
    """Tell whether a view of the all/user/sys family shows a relation."""
    return item.kind in STORING and ("_all_" in name or item.virtual == ("_sys_" in name))


_KEYS = {"relid": by_oid, "relname": by_name}


def _register_tables(name: str) -> None:
    @of_each(name, keys=_KEYS, builtin=True)
    def tables(session: Reading, item: RelationDef) -> Iterator[RowDict]:
        if _shown(name, item):
            yield {"relid": item.oid, "schemaname": item.schema, "relname": item.name}


def _register_indexes(name: str) -> None:
    @of_each(name, keys={**_KEYS, "indexrelid": by_index_oid}, builtin=True)
    def indexes(session: Reading, item: RelationDef) -> Iterator[RowDict]:
        for index in item.every_index if _shown(name, item) else ():
            yield {
                "relid": item.oid, "indexrelid": index.oid, "schemaname": item.schema,
                "relname": item.name, "indexrelname": index.name,
            }  # fmt: skip


_register_families()


_CONFIG: Final = (
    "BINDIR", "DOCDIR", "HTMLDIR", "INCLUDEDIR", "PKGINCLUDEDIR", "INCLUDEDIR-SERVER", "LIBDIR", "PKGLIBDIR", "LOCALEDIR",
    "MANDIR", "SHAREDIR", "SYSCONFDIR", "PGXS", "CONFIGURE", "CC", "CPPFLAGS", "CFLAGS", "CFLAGS_SL", "LDFLAGS", "LDFLAGS_EX",
    "LDFLAGS_SL", "LIBS",
)  # fmt: skip
"""What pg_config tells of how a PostgreSQL was built and installed: this server was not."""


@relation("pg_config", "static")
def pg_config(session: Session) -> Iterator[RowDict]:
    """Yield pg_config: which release it is like; of what was not recorded it says so, as PostgreSQL does."""
    for name in _CONFIG:
        yield {"name": name, "setting": "not recorded"}
    yield {"name": "VERSION", "setting": f"PostgreSQL {SERVER_VERSION}"}


@relation("pg_timezone_abbrevs", "session")
def pg_timezone_abbrevs(session: Session) -> Iterator[RowDict]:
    """Yield pg_timezone_abbrevs: one that is bound to a zone has the offset that it means there at the
    transaction's time.
    """
    now = session.transaction_time_us
    moment = datetime.fromtimestamp(now / 1e6, UTC)
    for word, entry in sorted(ABBREVIATIONS.items()):
        give_way()  # a zone is read from its file, the first time
        offset = abbreviation_offset_at(word, now) or 0
        if isinstance(entry, tuple):
            summer = entry[1]
        else:  # one that its zone no longer uses differs from the zone's time by being its summer time
            local = moment.astimezone(ZoneInfo(entry))
            summer = bool(local.dst()) or local.utcoffset() != timedelta(seconds=offset)
        yield {"abbrev": word.upper(), "utc_offset": (0, 0, offset * 1_000_000), "is_dst": summer}


@relation("pg_timezone_names", "session")
def pg_timezone_names(session: Session) -> Iterator[RowDict]:
    """Yield pg_timezone_names at the transaction's time."""
    now = datetime.fromtimestamp(session.transaction_time_us / 1e6, UTC)
    for name in sorted(names().values()):
        give_way()
        local = now.astimezone(ZoneInfo(name))
        offset = local.utcoffset() or timedelta()
        yield {
            "name": name, "abbrev": local.tzname(), "is_dst": bool(local.dst()),
            "utc_offset": (0, 0, int(offset.total_seconds() * 1_000_000)),
        }  # fmt: skip
