"""What a role may do with an object of the catalog, by its own rights and those it inherits (manual 5.7).

superusers            everything
access control list   what is granted to the role, to everybody, to roles it is a member of; owners have all by default
pg_read_all_data      SELECT everywhere, USAGE of schemas;  pg_write_all_data: INSERT, UPDATE, DELETE everywhere
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from planner.catalog import FunctionDef, RelationDef, RoleDef, SchemaDef, SystemCatalog, TypeDef
from planner.catalog.acl import (
    DATABASE_OWNER,
    READ_ALL_DATA,
    READ_ALL_STATS,
    READ_SERVER_FILES,
    WRITE_ALL_DATA,
    WRITE_SERVER_FILES,
    default_acl,
    grantable,
    held,
    inherited,
)
from planner.catalog.acl_items import AclItem
from planner.catalog.foreign import ServerDef, WrapperDef
from planner.catalog.parameters import PG_PARAMETER_ACL, parameter_oid
from planner.catalog.relation_kinds import SYSTEM_COLUMNED
from planner.facts import INFORMATION_SCHEMA_OID, PG_CATALOG_OID, PUBLIC_OID, rows
from planner.types.facts import element_of

PG_CLASS, PG_NAMESPACE, PG_DATABASE, PG_TYPE, PG_PROC = 1259, 2615, 1262, 1247, 1255
PG_LANGUAGE = 2612
SUPERUSER = 10
SYSTEM_COLUMNS: Final = {-6: "tableoid", -5: "cmax", -4: "xmax", -3: "cmin", -2: "xmin", -1: "ctid"}
READ_ALL, WRITE_ALL = "r", "awd"  # what pg_read_all_data and pg_write_all_data may do with every relation
RESTRICTED: Final = "restricted"
"""The flag of a statement that calls built-in functions which not everybody may call (``planner.bind.context``)."""

# Catalog relations that show secrets or other people's data: PostgreSQL keeps them from everybody but superusers.
_SECRET = frozenset(
    (
        "pg_statistic", "pg_authid", "pg_shadow", "pg_statistic_ext_data", "pg_file_settings", "pg_hba_file_rules",
        "pg_ident_file_mappings", "pg_config", "pg_shmem_allocations", "pg_backend_memory_contexts", "pg_user_mapping",
        "pg_replication_origin_status", "pg_subscription", "pg_largeobject", "sql_parts", "transforms",
        "_pg_foreign_table_columns", "_pg_foreign_data_wrappers", "_pg_foreign_servers", "_pg_foreign_tables",
        "_pg_user_mappings",
    )
)  # fmt: skip
_SECRET_COLUMNS = {"pg_subscription": frozenset(("subconninfo",))}
"""Columns kept back of relations whose others everybody may read (PostgreSQL's ``system_views.sql``)."""
_OF_STATISTICS = frozenset(("pg_shmem_allocations", "pg_backend_memory_contexts"))  # for pg_read_all_stats


def readable_by_all(relation: RelationDef) -> bool:
    """Tell whether everybody may read a relation: the catalog's, except what shows secrets."""
    return relation.virtual and relation.name not in _SECRET


def relation_acl(catalog: SystemCatalog, relation: RelationDef) -> tuple[AclItem, ...]:
    """Return the list of a table, view or sequence."""
    if relation.virtual:
        changed = catalog.acl(PG_CLASS, relation.oid)
        return builtin_relation_acl(relation) if changed is None else changed
    kind = "sequence" if relation.kind == "S" else "relation"
    found = catalog.acl(PG_CLASS, relation.oid)
    return default_acl(kind, relation.owner) if found is None else found


def builtin_relation_acl(relation: RelationDef) -> tuple[AclItem, ...]:
    """Return the list that a relation of the catalog has until it is changed."""
    own = default_acl("relation", SUPERUSER)
    reader = 0 if readable_by_all(relation) else READ_ALL_STATS if relation.name in _OF_STATISTICS else None
    return own if reader is None else (*own, AclItem(grantee=reader, grantor=SUPERUSER, letters="r"))


def grantable_columns(relation: RelationDef) -> dict[int, str]:
    """Return the columns of a relation on which there are rights, system columns first, with their names."""
    system = SYSTEM_COLUMNS if relation.kind in SYSTEM_COLUMNED and not relation.virtual else {}
    return system | {column.attnum: column.name for column in relation.live}


def column_acl(catalog: SystemCatalog, relation: RelationDef, attnum: int) -> tuple[AclItem, ...]:
    """Return the list of a column, beside that of its table."""
    if relation.virtual and (changed := catalog.acl(PG_CLASS, relation.oid, attnum)) is not None:
        return changed
    if relation.virtual:
        secret = _SECRET_COLUMNS.get(relation.name)
        open_ = secret is not None and attnum > 0 and relation.column(attnum).name not in secret
        return (AclItem(grantee=0, grantor=SUPERUSER, letters="r"),) if open_ else ()
    return catalog.acl(PG_CLASS, relation.oid, attnum) or ()


def schema_acl(catalog: SystemCatalog, schema: SchemaDef) -> tuple[AclItem, ...]:
    """Return the list of a schema."""
    found = catalog.acl(PG_NAMESPACE, schema.oid)
    return default_acl("schema", schema.owner, public=is_public(schema)) if found is None else found


def is_public(schema: SchemaDef) -> bool:
    """Whether everybody may use a schema from the start: the catalogs, and the ``public`` that is there then."""
    return schema.oid in (PUBLIC_OID, PG_CATALOG_OID, INFORMATION_SCHEMA_OID)


def type_acl(catalog: SystemCatalog, type_: TypeDef) -> tuple[AclItem, ...]:
    """Return the list of a user's type."""
    found = catalog.acl(PG_TYPE, type_.oid)
    return default_acl("type", type_.owner) if found is None else found


def builtin_type_acl(catalog: SystemCatalog, oid: int) -> tuple[AclItem, ...]:
    """Return the list of a type of PostgreSQL's own."""
    found = catalog.acl(PG_TYPE, oid)
    return default_acl("type", SUPERUSER) if found is None else found


def function_acl(catalog: SystemCatalog, function: FunctionDef) -> tuple[AclItem, ...]:
    """Return the list of a user's function."""
    found = catalog.acl(PG_PROC, function.oid)
    return default_acl("function", function.owner) if found is None else found


def builtin_function_acl(catalog: SystemCatalog, oid: int) -> tuple[AclItem, ...]:
    """Return the list of a function of PostgreSQL's own."""
    found = catalog.acl(PG_PROC, oid)
    if found is not None:
        return found
    return restricted_functions().get(oid) or default_acl("function", SUPERUSER)


@cache
def languages() -> Mapping[str, tuple[int, bool]]:
    """Return of each language its oid, and whether it is trusted: those that are not are for superusers."""
    return {row["lanname"]: (int(row["oid"]), row["lanpltrusted"] == "t") for row in rows("language")}


def language_acl(catalog: SystemCatalog, language: int) -> tuple[AclItem, ...]:
    """Return the list of a language; one that is not trusted has the default one."""
    found = catalog.acl(PG_LANGUAGE, language)
    return default_acl("language", SUPERUSER) if found is None else found


def foreign_kind(item: WrapperDef | ServerDef) -> str:
    """Return what messages call a wrapper or a server where they are about rights."""
    return "foreign-data wrapper" if isinstance(item, WrapperDef) else "foreign server"


def foreign_acl(catalog: SystemCatalog, item: WrapperDef | ServerDef) -> tuple[AclItem, ...]:
    """Return the list of a foreign-data wrapper or server."""
    found = catalog.acl(item.class_oid, item.oid)
    return default_acl(foreign_kind(item), item.owner) if found is None else found


def database_acl(catalog: SystemCatalog, database: int) -> tuple[AclItem, ...]:
    """Return the list of a database."""
    found = catalog.acl(PG_DATABASE, database)
    return default_acl("database", database_owner(catalog, database)) if found is None else found


def database_owner(catalog: SystemCatalog, database: int) -> int:
    """Return the role that owns a database, by oid."""
    found = catalog.database_by_oid(database)
    return SUPERUSER if found is None else found.owner


# EXECUTE on built-in functions cannot be granted here, so who may touch the server's files may do so by
# these: lo_import, lo_export, pg_read_file and its kin.
_OF_FILES = {764: READ_SERVER_FILES, 767: READ_SERVER_FILES, 765: WRITE_SERVER_FILES} | dict.fromkeys(
    (2623, 2624, 3293, 3295, 3307, 3826, 3827, 3828), READ_SERVER_FILES
)


@cache
def restricted_functions() -> Mapping[int, tuple[AclItem, ...]]:
    """Return the lists of the built-in functions that not everybody may call, by oid, as they are until they
    are changed: those of a fresh PostgreSQL, and for files.
    """
    found: dict[int, tuple[AclItem, ...]] = {}
    for row in rows("function_acls"):
        oid = int(row["oid"])
        grantees = [SUPERUSER, *map(int, row["grantees"].split())]
        if oid in _OF_FILES:
            grantees.append(_OF_FILES[oid])
        found[oid] = tuple(AclItem(grantee=g, grantor=SUPERUSER, letters="X") for g in grantees)
    return found


class Rights:
    """The rights of one role under one catalog."""

    def __init__(self, catalog: SystemCatalog, role: RoleDef | None) -> None:
        """``role`` None: what everybody may do."""
        self._catalog = catalog
        self.superuser = role is not None and role.superuser
        roles = frozenset[int]() if role is None else inherited(role, catalog.role_by_oid)
        if database_owner(catalog, catalog.database) in roles:
            roles |= {DATABASE_OWNER}  # whoever owns the database is its one member
        self.roles = roles

    def owns(self, owner: int) -> bool:
        """Whether it has the rights of an owner."""
        return self.superuser or owner in self.roles

    def relation(self, relation: RelationDef, letters: str, *, option: bool = False) -> bool:
        """Whether it has any of some privileges on a whole table, view or sequence; ``option``: may grant it."""
        if self.superuser:
            return True
        if not relation.virtual and not option:
            if READ_ALL_DATA in self.roles and set(letters) & set(READ_ALL):
                return True
            if WRITE_ALL_DATA in self.roles and set(letters) & set(WRITE_ALL):
                return True
        return self._any(relation_acl(self._catalog, relation), relation.owner, "relation", letters, option)

    def column(self, relation: RelationDef, attnum: int, letters: str, *, option: bool = False) -> bool:
        """Whether it has any of some privileges on a column, be it through its table; one that has been
        dropped is the owner's alone.
        """
        if attnum in self._catalog.lost_columns(relation.oid):
            return self.owns(relation.owner)
        if self.relation(relation, letters, option=option):
            return True
        items = column_acl(self._catalog, relation, attnum)
        return self._any(items, relation.owner, "column", letters, option)

    def columns(self, relation: RelationDef, attnums: Iterable[int], letter: str) -> bool:
        """Whether it has a privilege on all of some columns; of none: on any column; 0: the whole row."""
        if self.relation(relation, letter):
            return True
        attnums = set(attnums)
        if 0 in attnums:
            attnums |= {column.attnum for column in relation.live}
        wanted = attnums - {0}
        if any(attnum < 0 and attnum not in SYSTEM_COLUMNS for attnum in wanted):
            return False  # what rows are locked and changed by goes with the whole table
        if not wanted:
            return any(self.column(relation, column.attnum, letter) for column in relation.live)
        return all(self.column(relation, attnum, letter) for attnum in wanted)

    def schema(self, schema: SchemaDef, letters: str, *, option: bool = False) -> bool:
        """Whether it has any of some privileges on a schema."""
        if self.superuser:
            return True
        if "U" in letters and not option and {READ_ALL_DATA, WRITE_ALL_DATA} & self.roles:
            return True
        return self._any(schema_acl(self._catalog, schema), schema.owner, "schema", letters, option)

    def type(self, type_: TypeDef, *, option: bool = False) -> bool:
        """Whether it may use a user's type in definitions."""
        return self.superuser or self._any(type_acl(self._catalog, type_), type_.owner, "type", "U", option)

    def builtin_type(self, oid: int, *, option: bool = False) -> bool:
        """Whether it may use a type of PostgreSQL's own, or the one that an array type is over, in definitions."""
        items = builtin_type_acl(self._catalog, element_of(oid) or oid)
        return self.superuser or self._any(items, SUPERUSER, "type", "U", option)

    def language(self, name: str, *, option: bool = False) -> bool:
        """Whether it may define functions in a language."""
        acl = language_acl(self._catalog, languages()[name][0])
        return self.superuser or self._any(acl, SUPERUSER, "language", "U", option)

    def function(self, function: FunctionDef, *, option: bool = False) -> bool:
        """Whether it may call a user's function."""
        return self.superuser or self._any(
            function_acl(self._catalog, function), function.owner, "function", "X", option
        )

    def foreign(self, item: WrapperDef | ServerDef, *, option: bool = False) -> bool:
        """Whether it may use a foreign-data wrapper or server in definitions."""
        acl = foreign_acl(self._catalog, item)
        return self.superuser or self._any(acl, item.owner, foreign_kind(item), "U", option)

    def system_function(self, oid: int, *, option: bool = False) -> bool:
        """Whether it may call a built-in function."""
        if self.superuser or (oid not in self._catalog.guarded_functions and not option):
            return True
        return self._any(builtin_function_acl(self._catalog, oid), SUPERUSER, "function", "X", option)

    def database(self, letters: str, *, option: bool = False, oid: int = 0) -> bool:
        """Whether it has any of some privileges on a database; 0: on the one whose catalog this is."""
        catalog, oid = self._catalog, oid or self._catalog.database
        return self.superuser or self._any(
            database_acl(catalog, oid), database_owner(catalog, oid), "database", letters, option
        )

    def parameter(self, name: str, letters: str, *, option: bool = False) -> bool:
        """Whether it has any of some privileges on a setting."""
        found = self._catalog.acl(PG_PARAMETER_ACL, parameter_oid(name))
        items = default_acl("parameter", SUPERUSER) if found is None else found
        return self.superuser or self._any(items, SUPERUSER, "parameter", letters, option)

    def _any(self, items: tuple[AclItem, ...], owner: int, kind: str, letters: str, option: bool) -> bool:
        have = grantable(items, self.roles, owner, kind) if option else held(items, self.roles)
        return bool(set(letters) & set(have))
