"""Foreign data in pg_catalog and information_schema: wrappers, servers, user mappings, tables, their options
and dependencies.

Options are shown to whom PostgreSQL's views show them; the catalogs themselves say all, pg_user_mapping to
superusers alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from engine.catalog.acl_texts import acl_of
from engine.catalog.relations.dependency_rows import depends
from engine.catalog.relations.sources import RowDict, by_oid, of_each, relation
from engine.catalog.storage.stored import (
    PG_FOREIGN_DATA_WRAPPER_OID,
    PG_FOREIGN_SERVER_OID,
    PG_USER_MAPPING_OID,
)
from planner.catalog import ColumnDef, RelationDef
from planner.catalog.foreign import MappingDef, Options, ServerDef, WrapperDef
from planner.catalog.rights import Rights

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


def shown(options: Options) -> tuple[str, ...] | None:
    """Return options as catalogs show them: ``{name=value}``, NULL for none."""
    return tuple(f"{name}={value}" for name, value in options) or None


def _wrappers(session: Reading) -> Iterator[WrapperDef]:
    return (item for item in session.catalog.foreign() if isinstance(item, WrapperDef))


def _servers(session: Reading) -> Iterator[ServerDef]:
    return (item for item in session.catalog.foreign() if isinstance(item, ServerDef))


def _mappings(session: Reading) -> Iterator[tuple[MappingDef, ServerDef]]:
    for item in session.catalog.foreign():
        if isinstance(item, MappingDef):
            server = session.catalog.foreign_by_oid(item.server)
            if isinstance(server, ServerDef):  # else its row is lost (engine.catalog.storage.fences)
                yield item, server


def _role(session: Reading, oid: int, default: str = "") -> str:
    role = session.catalog.role_by_oid(oid)
    return default if role is None else role.name


# --- pg_catalog -----------------------------------------------------------------------------------


@relation("pg_foreign_data_wrapper", "catalog")
def pg_foreign_data_wrapper(session: Reading) -> Iterator[RowDict]:
    """Yield pg_foreign_data_wrapper."""
    for item in _wrappers(session):
        yield {
            "oid": item.oid, "fdwname": item.name, "fdwowner": item.owner, "fdwhandler": 0,
            "fdwvalidator": item.validator, "fdwacl": acl_of(session, item.class_oid, item.oid),
            "fdwoptions": shown(item.options),
        }  # fmt: skip


@relation("pg_foreign_server", "catalog")
def pg_foreign_server(session: Reading) -> Iterator[RowDict]:
    """Yield pg_foreign_server."""
    for item in _servers(session):
        yield {
            "oid": item.oid, "srvname": item.name, "srvowner": item.owner, "srvfdw": item.wrapper, "srvtype": item.type,
            "srvversion": item.version, "srvacl": acl_of(session, item.class_oid, item.oid),
            "srvoptions": shown(item.options),
        }  # fmt: skip


@relation("pg_user_mapping", "catalog")
def pg_user_mapping(session: Reading) -> Iterator[RowDict]:
    """Yield pg_user_mapping."""
    for item, server in _mappings(session):
        yield {
            "oid": item.oid,
            "umuser": item.owner,
            "umserver": server.oid,
            "umoptions": shown(item.options),
        }


@relation("pg_user_mappings", "session")
def pg_user_mappings(session: Reading) -> Iterator[RowDict]:
    """Yield pg_user_mappings: options to who may use the mapping, and to superusers."""
    rights = Rights(session.rights_catalog, session.role)
    for item, server in _mappings(session):
        if item.owner:
            open_ = item.owner == session.role.oid and _may_use(rights, server)
        else:
            open_ = rights.owns(server.owner)
        yield {
            "umid": item.oid, "srvid": server.oid, "srvname": server.name, "umuser": item.owner,
            "usename": _role(session, item.owner, "public"),
            "umoptions": shown(item.options) if open_ or rights.superuser else None,
        }  # fmt: skip


@of_each("pg_foreign_table", keys={"ftrelid": by_oid})
def pg_foreign_table(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield pg_foreign_table."""
    if item.server:
        yield {"ftrelid": item.oid, "ftserver": item.server, "ftoptions": shown(item.foreign_options)}


@relation("pg_depend", "catalog")
def foreign_depends(session: Reading) -> Iterator[RowDict]:
    """Yield pg_depend of servers on wrappers, of user mappings on servers."""
    for item in session.catalog.foreign():
        if isinstance(item, ServerDef):
            yield depends(PG_FOREIGN_SERVER_OID, item.oid, PG_FOREIGN_DATA_WRAPPER_OID, item.wrapper)
        elif isinstance(item, MappingDef):
            yield depends(PG_USER_MAPPING_OID, item.oid, PG_FOREIGN_SERVER_OID, item.server)


# --- information_schema ---------------------------------------------------------------------------


def _may_use(rights: Rights, item: WrapperDef | ServerDef) -> bool:
    return rights.owns(item.owner) or rights.foreign(item)


def _each(options: Options) -> Iterable[RowDict]:
    return ({"option_name": name, "option_value": value} for name, value in options)


def _shown_wrappers(session: Reading) -> Iterator[tuple[WrapperDef, RowDict]]:
    rights = Rights(session.rights_catalog, session.role)
    for item in _wrappers(session):
        if _may_use(rights, item):
            yield item, {
                "foreign_data_wrapper_catalog": session.database, "foreign_data_wrapper_name": item.name,
                "authorization_identifier": _role(session, item.owner), "foreign_data_wrapper_language": "c",
            }  # fmt: skip


def _shown_servers(session: Reading) -> Iterator[tuple[ServerDef, RowDict]]:
    rights = Rights(session.rights_catalog, session.role)
    for item in _servers(session):
        wrapper = session.catalog.foreign_by_oid(item.wrapper)
        if isinstance(wrapper, WrapperDef) and _may_use(rights, item):
            yield item, {
                "foreign_server_catalog": session.database, "foreign_server_name": item.name,
                "foreign_data_wrapper_catalog": session.database, "foreign_data_wrapper_name": wrapper.name,
                "foreign_server_type": item.type, "foreign_server_version": item.version,
                "authorization_identifier": _role(session, item.owner),
            }  # fmt: skip


def _shown_mappings(session: Reading) -> Iterator[tuple[MappingDef, ServerDef, RowDict]]:
    rights = Rights(session.rights_catalog, session.role)
    for item, server in _mappings(session):
        if _may_use(rights, server):
            yield item, server, {
                "authorization_identifier": _role(session, item.owner, "PUBLIC"),
                "foreign_server_catalog": session.database, "foreign_server_name": server.name,
            }  # fmt: skip


@relation("information_schema.foreign_data_wrappers", "session")
def foreign_data_wrappers(session: Reading) -> Iterator[RowDict]:
    """Yield the wrappers that the user may use."""
    return (row for _, row in _shown_wrappers(session))


@relation("information_schema._pg_foreign_data_wrappers", "session")
def _pg_foreign_data_wrappers(session: Reading) -> Iterator[RowDict]:
    for item, row in _shown_wrappers(session):
        yield {**row, "oid": item.oid, "fdwowner": item.owner, "fdwoptions": shown(item.options)}


@relation("information_schema.foreign_data_wrapper_options", "session")
def foreign_data_wrapper_options(session: Reading) -> Iterator[RowDict]:
    """Yield their options."""
    for item, row in _shown_wrappers(session):
        named = {name: row[name] for name in ("foreign_data_wrapper_catalog", "foreign_data_wrapper_name")}
        yield from ({**named, **option} for option in _each(item.options))


@relation("information_schema.foreign_servers", "session")
def foreign_servers(session: Reading) -> Iterator[RowDict]:
    """Yield the servers that the user may use."""
    return (row for _, row in _shown_servers(session))


@relation("information_schema._pg_foreign_servers", "session")
def _pg_foreign_servers(session: Reading) -> Iterator[RowDict]:
    for item, row in _shown_servers(session):
        yield {**row, "oid": item.oid, "srvoptions": shown(item.options)}


@relation("information_schema.foreign_server_options", "session")
def foreign_server_options(session: Reading) -> Iterator[RowDict]:
    """Yield their options."""
    for item, row in _shown_servers(session):
        named = {name: row[name] for name in ("foreign_server_catalog", "foreign_server_name")}
        yield from ({**named, **option} for option in _each(item.options))


@relation("information_schema.user_mappings", "session")
def user_mappings(session: Reading) -> Iterator[RowDict]:
    """Yield the user mappings at servers that the user may use."""
    return (row for _, _, row in _shown_mappings(session))


@relation("information_schema._pg_user_mappings", "session")
def _pg_user_mappings(session: Reading) -> Iterator[RowDict]:
    for item, server, row in _shown_mappings(session):
        owner = _role(session, server.owner)
        yield {
            **row,
            "oid": item.oid,
            "umoptions": shown(item.options),
            "umuser": item.owner,
            "srvowner": owner,
        }


@relation("information_schema.user_mapping_options", "session")
def user_mapping_options(session: Reading) -> Iterator[RowDict]:
    """Yield their options, with values for whom they are, and for superusers."""
    rights = Rights(session.rights_catalog, session.role)
    for item, server, row in _shown_mappings(session):
        own = item.owner == session.role.oid if item.owner else rights.owns(server.owner)
        for name, value in item.options:
            told = value if own or rights.superuser else None
            yield {**row, "option_name": name, "option_value": told}


_OF_COLUMNS: Final = "arwx"


def _some_right(rights: Rights, table: RelationDef) -> bool:
    return (
        rights.owns(table.owner)
        or rights.relation(table, _OF_COLUMNS + "dDt")
        or any(_some_right_on(rights, table, column) for column in table.live)
    )


def _some_right_on(rights: Rights, table: RelationDef, column: ColumnDef) -> bool:
    return rights.owns(table.owner) or rights.column(table, column.attnum, _OF_COLUMNS)


def _shown_tables(session: Reading) -> Iterator[tuple[RelationDef, RowDict]]:
    rights = Rights(session.rights_catalog, session.role)
    for item in session.catalog.user_relations():
        server = session.catalog.foreign_by_oid(item.server) if item.server else None
        if isinstance(server, ServerDef) and _some_right(rights, item):
            yield item, {
                "foreign_table_catalog": session.database, "foreign_table_schema": item.schema, "foreign_table_name": item.name,
                "foreign_server_catalog": session.database, "foreign_server_name": server.name,
            }  # fmt: skip


_TABLE: Final = ("foreign_table_catalog", "foreign_table_schema", "foreign_table_name")


@relation("information_schema.foreign_tables", "session")
def foreign_tables(session: Reading) -> Iterator[RowDict]:
    """Yield the foreign tables that the user may use."""
    return (row for _, row in _shown_tables(session))


@relation("information_schema._pg_foreign_tables", "session")
def _pg_foreign_tables(session: Reading) -> Iterator[RowDict]:
    for item, row in _shown_tables(session):
        owner = _role(session, item.owner)
        yield {**row, "ftoptions": shown(item.foreign_options), "authorization_identifier": owner}


@relation("information_schema.foreign_table_options", "session")
def foreign_table_options(session: Reading) -> Iterator[RowDict]:
    """Yield their options."""
    for item, row in _shown_tables(session):
        named = {name: row[name] for name in _TABLE}
        yield from ({**named, **option} for option in _each(item.foreign_options))


@relation("information_schema.column_options", "session")
def column_options(session: Reading) -> Iterator[RowDict]:
    """Yield the options of their columns."""
    rights = Rights(session.rights_catalog, session.role)
    for item in session.catalog.user_relations():
        for column in item.live if item.server else ():
            if column.foreign_options and _some_right_on(rights, item, column):
                named = {
                    "table_catalog": session.database, "table_schema": item.schema, "table_name": item.name,
                    "column_name": column.name,
                }  # fmt: skip
                yield from ({**named, **option} for option in _each(column.foreign_options))


@relation("information_schema._pg_foreign_table_columns", "session")
def _pg_foreign_table_columns(session: Reading) -> Iterator[RowDict]:
    rights = Rights(session.rights_catalog, session.role)
    for item in session.catalog.user_relations():
        for column in item.live if item.server else ():
            if _some_right_on(rights, item, column):
                yield {
                    "nspname": item.schema, "relname": item.name, "attname": column.name,
                    "attfdwoptions": shown(column.foreign_options),
                }  # fmt: skip
