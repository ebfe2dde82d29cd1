"""information_schema's views of privileges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from engine.catalog.relations.sources import RowDict, by_name, of_each
from planner.catalog import RelationDef
from planner.catalog.acl import EVERYBODY, WORDS
from planner.catalog.acl_items import AclItem
from planner.catalog.relation_kinds import STANDARD_TABLES
from planner.catalog.rights import column_acl, relation_acl

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

COLUMN_WORDS = ("INSERT", "SELECT", "UPDATE", "REFERENCES")


def _yes(flag: bool) -> str:
    return "YES" if flag else "NO"


def _owner(session: Reading, oid: int) -> str:
    role = session.catalog.role_by_oid(oid)
    return role.name if role is not None else ""


def _granted(session: Reading, items: Iterable[AclItem]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield grantor, grantee, privilege and whether it may be granted on, of each letter of a list."""
    for item in items:
        grantee = "PUBLIC" if item.grantee == EVERYBODY else _owner(session, item.grantee)
        for letter in item.letters:
            word = next(word for word, code in WORDS.items() if code == letter)
            yield _owner(session, item.grantor), grantee, word, letter in item.grantable


def _privileges(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    if item.kind in STANDARD_TABLES:
        for grantor, grantee, privilege, option in _granted(session, relation_acl(session.catalog, item)):
            own = not item.virtual and grantee == _owner(session, item.owner)
            yield {
                "grantor": grantor, "grantee": grantee, "table_catalog": session.database,
                "table_schema": item.schema, "table_name": item.name, "privilege_type": privilege,
                "is_grantable": _yes(option or own), "with_hierarchy": _yes(privilege == "SELECT"),
            }  # fmt: skip


@of_each("information_schema.table_privileges", keys={"table_name": by_name}, builtin=True)
def table_privileges(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield the privileges on tables and views."""
    yield from _privileges(session, item)


@of_each("information_schema.role_table_grants", keys={"table_name": by_name}, builtin=True)
def role_table_grants(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield the privileges on tables and views."""
    yield from _privileges(session, item)


def _column_privileges(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    if item.kind in STANDARD_TABLES:
        whole = [g for g in _granted(session, relation_acl(session.catalog, item)) if g[2] in COLUMN_WORDS]
        for column in item.live:
            own = _granted(session, column_acl(session.catalog, item, column.attnum))
            for grantor, grantee, privilege, option in dict.fromkeys((*whole, *own)):
                yield {
                    "grantor": grantor, "grantee": grantee, "table_catalog": session.database,
                    "table_schema": item.schema, "table_name": item.name, "column_name": column.name,
                    "privilege_type": privilege,
                    "is_grantable": _yes(option or grantee == _owner(session, item.owner)),
                }  # fmt: skip


@of_each("information_schema.column_privileges", keys={"table_name": by_name}, builtin=True)
def column_privileges(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield the privileges on columns, those on whole tables included."""
    yield from _column_privileges(session, item)


@of_each("information_schema.role_column_grants", keys={"table_name": by_name}, builtin=True)
def role_column_grants(session: Reading, item: RelationDef) -> Iterator[RowDict]:
    """Yield the privileges on columns, those on whole tables included."""
    yield from _column_privileges(session, item)
