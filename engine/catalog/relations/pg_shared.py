"""pg_catalog of what all databases share: databases, roles and their memberships, tablespaces, settings by
role and database.

Who may look at a password's verifier is what tells pg_authid and pg_shadow from pg_roles and pg_user.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.acl_texts import acl_texts
from engine.catalog.relations.sources import RowDict, relation
from engine.catalog.storage.stored import PG_DATABASE_OID, SUPERUSER_OID
from planner.catalog import DefaultsDef
from planner.statements.classify import setting_spelling

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

DEFAULT_TABLESPACE, GLOBAL_TABLESPACE = 1663, 1664
UTF8_ENCODING = 6


@relation("pg_database", "session")
def pg_database(session: Reading) -> Iterator[RowDict]:
    """Yield pg_database. No transaction id has to be frozen: none but those of running transactions means anything."""
    oldest = session.system.oldest_transaction_id
    for database in session.catalog.databases.values():
        yield {
            "oid": database.oid, "datname": database.name, "datdba": database.owner,
            "encoding": UTF8_ENCODING, "datlocprovider": "c", "datistemplate": database.is_template,
            "datallowconn": database.allow_connections, "datconnlimit": database.connection_limit,
            "datfrozenxid": oldest, "datminmxid": 1, "dattablespace": DEFAULT_TABLESPACE, "datcollate": database.collate,
            "datctype": database.ctype,
            "datacl": acl_texts(session, session.catalog.acl(PG_DATABASE_OID, database.oid)),
        }  # fmt: skip


@relation("pg_db_role_setting", "catalog")
def pg_db_role_setting(session: Reading) -> Iterator[RowDict]:
    """Yield pg_db_role_setting: what ALTER DATABASE and ALTER ROLE ... SET have said."""
    for item in session.catalog.defaults():
        yield {"setdatabase": item.database, "setrole": item.role, "setconfig": _settings_text(item)}


def _settings_text(item: DefaultsDef | None) -> list[str] | None:
    return (
        None
        if item is None
        else [f"{setting_spelling(name)}={value}" for name, value in item.settings.items()]
    )


def _role_settings(session: Reading, role: int) -> list[str] | None:
    return _settings_text(session.catalog.defaults_of(0, role))


@relation("pg_tablespace", "static")
def pg_tablespace(session: Reading) -> Iterator[RowDict]:
    """Yield pg_tablespace."""
    for oid, name in ((DEFAULT_TABLESPACE, "pg_default"), (GLOBAL_TABLESPACE, "pg_global")):
        yield {"oid": oid, "spcname": name, "spcowner": SUPERUSER_OID}


@relation("pg_authid", "catalog")
def pg_authid(session: Reading) -> Iterator[RowDict]:
    """Yield pg_authid; verifiers are shown to superusers only (through pg_shadow and here)."""
    for role in session.catalog.roles.values():
        yield {
            "oid": role.oid, "rolname": role.name, "rolsuper": role.superuser, "rolinherit": role.inherit,
            "rolcreaterole": role.create_role, "rolcreatedb": role.create_db,
            "rolcanlogin": role.can_login, "rolreplication": role.replication,
            "rolbypassrls": role.bypass_rls, "rolconnlimit": role.connection_limit,
            "rolpassword": role.verifier, "rolvaliduntil": role.valid_until,
        }  # fmt: skip


@relation("pg_auth_members", "catalog")
def pg_auth_members(session: Reading) -> Iterator[RowDict]:
    """Yield pg_auth_members."""
    for role in session.catalog.roles.values():
        for membership in role.member_of:
            yield {
                "roleid": membership.role, "member": role.oid, "grantor": membership.grantor,
                "admin_option": membership.admin,
            }  # fmt: skip


@relation("pg_roles", "catalog")
def pg_roles(session: Reading) -> Iterator[RowDict]:
    """Yield pg_roles."""
    for row in pg_authid(session):
        yield {**row, "rolpassword": "********", "rolconfig": _role_settings(session, row["oid"])}


@relation("pg_shadow", "catalog")
def pg_shadow(session: Reading) -> Iterator[RowDict]:
    """Yield pg_shadow."""
    for row in pg_authid(session):
        if row["rolcanlogin"]:
            yield {
                "usename": row["rolname"], "usesysid": row["oid"], "usecreatedb": row["rolcreatedb"],
                "usesuper": row["rolsuper"], "userepl": row["rolreplication"],
                "usebypassrls": row["rolbypassrls"], "passwd": row["rolpassword"],
                "valuntil": row["rolvaliduntil"], "useconfig": _role_settings(session, row["oid"]),
            }  # fmt: skip


@relation("pg_user", "catalog")
def pg_user(session: Reading) -> Iterator[RowDict]:
    """Yield pg_user."""
    for row in pg_shadow(session):
        yield {**row, "passwd": "********"}
