"""What the locks of several kinds of definitions have in common; ``engine.definitions.locks`` says which are taken.

Each takes (wants, session, statement) and fills ``wants``: the rows of ``engine.statements.registry`` name them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_AUTHID_OID, PG_DATABASE_OID, PG_NAMESPACE_OID, key_of
from engine.session.catalog.wants import WHOLE, Wants, name_key, object_key
from engine.session.session import Session
from engine.session.spec import Locks
from pgwire.give_way import paced_iter
from planner.catalog import RelationDef


def all_databases(wants: Wants, _session: Session, _statement: object) -> None:
    """Want the catalogs of all databases: what databases share changes, or much of it is looked at."""
    wants.everything = True


def whole_database(wants: Wants, _session: Session, _statement: object) -> None:
    """Want the catalog of the session's database: much may depend on what changes."""
    wants.change(WHOLE)


def found_later(_wants: Wants, _session: Session, _statement: object) -> None:
    """Want nothing yet: what it is about its query says, and that is locked where it changes."""


def whole_if(finds: Callable[[CatalogSnapshot, Any], object]) -> Locks:
    """Return what wants the database's catalog where ``finds`` finds something to do; else nobody is waited for."""

    def wanted(wants: Wants, session: Session, statement: Any) -> None:
        if finds(session.catalog, statement):
            wants.change(WHOLE)

    return wanted


def create(wants: Wants, catalog: CatalogSnapshot, schema: str, name: str, *, skips: bool = False) -> None:
    """Take a name in a schema; one that is taken already, and is to be left alone then, only stays taken."""
    wants.schema(schema)
    if skips and catalog.relation(schema, name) is not None:
        wants.keys[name_key(schema, name)] = False
    else:
        wants.name(schema, name)


def read(wants: Wants, oids: Iterable[int], sql: str) -> None:
    """Rely on the relations that a query reads, and on what else its text names."""
    for oid in oids:
        wants.rely(("relation", oid, 0))
    wants.text(sql)


def sequences(wants: Wants, catalog: CatalogSnapshot, table: RelationDef) -> None:
    """Change the sequences that a table's columns own."""
    for sequence in catalog.sequences_of(table.oid):
        wants.relation(sequence.oid)


def about(wants: Wants, catalog: CatalogSnapshot, class_oid: int, oid: int) -> None:
    """Lock what a comment or a list of rights is about: X, but S for what much else is within."""
    key = object_key(catalog, class_oid, oid)
    if key is None:
        return
    if class_oid in (PG_NAMESPACE_OID, PG_AUTHID_OID, PG_DATABASE_OID):
        wants.rely(key)
    else:
        wants.change(key)


def roles(wants: Wants, catalog: CatalogSnapshot, names: Iterable[str], *, exclusive: bool) -> None:
    """Lock the roles of these names that there are, X where ``exclusive``."""
    for name in paced_iter(names):
        role = catalog.role(name)
        if role is not None:
            wants.keys[key_of(role)] = exclusive or wants.keys.get(key_of(role), False)
