"""What foreign keys ask of the owners of tables: PostgreSQL looks after a key by statements that run as
whoever owns the table they are about.

    a row refers to a key              SELECT 1 FROM parent ... FOR KEY SHARE      as the parent's owner
    a key goes: NO ACTION              the same: another row may have it now
                NO ACTION, RESTRICT    SELECT 1 FROM child ... FOR KEY SHARE       as the child's owner
                CASCADE of a DELETE    DELETE FROM child ...
                all else               UPDATE child SET ...

So nobody else needs a right, and an owner has all of them but those that were taken away: who writes ``REVOKE
DELETE ON child FROM owner`` means that no rows go, be it by a foreign key. A table that is not reached (USAGE
of its schema) is not read either. What was found is kept with today's catalog, so it costs a look-up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from engine.changes.constraints.foreign_key import ForeignKey
from engine.changes.constraints.reference_texts import child_text, parent_text
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.catalog.relation_kinds import RELATION_KINDS
from planner.catalog.rights import Rights

if TYPE_CHECKING:
    from engine.session.session import Session


def ask_parent(session: Session, key: ForeignKey) -> None:
    """Ask the owner of the referenced table for what reading and locking it needs. Raises SqlError 42501."""
    try:
        _ask(session, key.parent, key.definition.attnums, "w", ())
    except SqlError as error:
        error.where = parent_text(key)
        raise


def ask_child(session: Session, key: ForeignKey) -> None:
    """Ask the owner of the referencing table for what reading and locking it needs; of a partition its
    partitioned table's was asked. Raises SqlError 42501.
    """
    if key.constraint.parent:
        return
    try:
        _ask(session, key.child, key.constraint.attnums, "w", ())
    except SqlError as error:
        error.where = child_text(key)
        raise


def ask_to_act(session: Session, key: ForeignKey, assigned: Sequence[int] | None) -> None:
    """Ask the owner of the referencing table for what an action needs that sets the columns ``assigned``,
    None: deletes. Raises SqlError 42501.
    """
    letter, written = ("d", ()) if assigned is None else ("w", assigned)
    _ask(session, key.child, key.constraint.attnums, letter, written)


def _ask(
    session: Session, table: RelationDef, read: Collection[int], letter: str, written: Sequence[int]
) -> None:
    """Raise SqlError 42501 unless a table's owner may reach it, read columns of it, and has ``letter`` on all
    of some, or on any.
    """
    today = session.today
    kept: dict[Any, Any] = today.derived
    at = ("asked of owner", table.oid, tuple(read), letter, tuple(written))
    refused: tuple[str, str] | None = kept.get(at, ("", ""))
    if refused == ("", ""):
        refused = kept[at] = _refused(
            session, today.relation_by_oid(table.oid) or table, read, letter, written
        )
    if refused is not None:
        raise SqlError("42501", "permission denied for {} {}".format(*refused))


def _refused(
    session: Session, table: RelationDef, read: Collection[int], letter: str, written: Sequence[int]
) -> tuple[str, str] | None:
    today = session.today
    rights = Rights(today, today.role_by_oid(table.owner))
    schema = today.schema_by_oid(table.schema_oid)
    mine = table.persistence == "t"
    if schema is not None and not mine and not rights.schema(schema, "U"):
        return "schema", schema.name
    may_write = rights.relation(table, "d") if letter == "d" else rights.columns(table, written, letter)
    if may_write and rights.columns(table, read, "r"):
        return None
    return RELATION_KINDS[table.kind].word, table.name
