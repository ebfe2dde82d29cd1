"""Adding, dropping and altering foreign keys, and what depends on them.

A foreign key is a constraint of the referencing table alone; the referenced table learns of it by a new
version, so that plans made without it are made again. Both are locked exclusively meanwhile: nobody writes
either while rows are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.base.eager import settle
from engine.catalog.reference_checks import references_to, with_partitions
from engine.changes.constraints.foreign_key import ForeignKey
from engine.changes.constraints.setwise import check_table
from engine.session.catalog.names import shown_name
from engine.session.transaction.timelines import crossing
from pgwire.give_way import paced_iter
from planner.base.errors import SqlError
from planner.bind.define.table.foreign_key import resolve
from planner.bind.define.table.naming import choose_name
from planner.catalog import ConstraintDef, RelationDef
from planner.statements import ForeignKeySpec
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session


async def add_foreign_keys(
    session: Session, relation: RelationDef, specs: Sequence[ForeignKeySpec], *, validated: bool | None = None
) -> RelationDef:
    """Return ``relation`` with foreign keys added; the referenced tables are locked and told.

    ``validated`` None: as each says (NOT VALID). Raises SqlError 42710 and what ``resolve`` raises.
    """
    for spec in specs:
        own = spec.table in (0, relation.oid)
        referenced = relation if own else _relation(session, spec.table)
        if referenced.timeline != relation.timeline:
            message = "a foreign key to a table of another timeline is not supported"
            raise crossing([relation, referenced], message)
        name = spec.name or _free_name(session, relation, spec)
        if any(c.name == name for c in relation.constraints):
            raise SqlError("42710", f'constraint "{name}" for relation "{relation.name}" already exists')
        found = resolve(spec, name, relation, referenced)
        constraint = ConstraintDef(
            oid=session.db.allocate_oids(1),
            name=name,
            kind="f",
            attnums=found.attnums,
            index_oid=found.index_oid,
            foreign=found.foreign,
            deferrable=spec.deferrable,
            deferred=spec.deferred,
            validated=(not spec.not_valid) if validated is None else validated,
        )
        ForeignKey(relation, constraint, referenced)  # 0A000 for types it cannot compare
        relation = replace(relation, constraints=(*relation.constraints, constraint))
        if not own:
            await touch(session, [referenced.oid])
    return relation


def _free_name(session: Session, relation: RelationDef, spec: ForeignKeySpec) -> str:
    others = [
        other.constraints for other in session.catalog.user_relations() if other.schema == relation.schema
    ]
    others.append(relation.constraints)

    def taken(name: str) -> bool:
        return any(c.name == name for constraints in others for c in constraints)

    return choose_name(relation.name, spec.columns, "fkey", taken)


def _relation(session: Session, oid: int) -> RelationDef:
    relation = session.catalog.relation_by_oid(oid)
    if relation is None:
        raise SqlError("42P01", f"relation with oid {oid} does not exist")
    return relation


async def touch(session: Session, oids: Iterable[int]) -> None:
    """Lock referenced tables, and their partitions, exclusively and give them new versions: who refers to
    them is changing.
    """
    for oid in sorted({below for named in oids for below in with_partitions(session.catalog, named)}):
        await settle(session.block.ensure_txn().lock_table(ShardId(oid), "X"))
        changed = replace(_relation(session, oid), version=session.db.next_catalog_version())
        await session.view.change([changed])


def referenced_oids(constraints: Iterable[ConstraintDef], besides: Collection[int]) -> set[int]:
    """Return the tables that foreign keys among ``constraints`` refer to, but for those of ``besides``."""
    return {c.foreign.table for c in constraints if c.foreign is not None} - set(besides)


async def validate(session: Session, relation: RelationDef, constraints: Iterable[ConstraintDef]) -> None:
    """Raise 23503 if a row breaks one of the foreign keys among ``constraints`` that count as validated."""
    for constraint in constraints:
        if constraint.kind == "f" and constraint.validated:
            await check_table(session, relation, constraint)


def dependents(
    session: Session, tables: Collection[int], indexes: Collection[int] | None = None
) -> list[tuple[RelationDef, ConstraintDef]]:
    """Return foreign keys of other tables that refer to ``tables``, by one of ``indexes`` if given; oldest first."""
    found = [
        (child, constraint)
        for oid in paced_iter(tables)
        for child, constraint in references_to(session.catalog, _relation(session, oid))
        if child.oid not in tables or indexes is not None
        if indexes is None or constraint.index_oid in indexes
    ]
    return sorted(found, key=lambda pair: pair[1].oid)


async def drop_foreign_keys(session: Session, found: Sequence[tuple[RelationDef, ConstraintDef]]) -> None:
    """Drop foreign keys (DROP ... CASCADE); the tables that have them are locked exclusively."""
    for child, constraint in found:
        await settle(session.block.ensure_txn().lock_table(ShardId(child.oid), "X"))
        latest = _relation(session, child.oid)
        kept = tuple(c for c in latest.constraints if c.oid != constraint.oid)
        version = session.db.next_catalog_version()
        await session.view.change([replace(latest, constraints=kept, version=version)])


def depends_texts(session: Session, found: Iterable[tuple[RelationDef, ConstraintDef]]) -> list[str]:
    """``depends_text`` of each but those that partitions have from their table: they go with its."""
    return [depends_text(session, pair) for pair in found if not pair[1].parent]


def depends_text(session: Session, pair: tuple[RelationDef, ConstraintDef]) -> str:
    """Return how a dependent foreign key is named: ``constraint x on table y``."""
    child, constraint = pair
    return f"constraint {constraint.name} on table {shown_name(session, child)}"


async def rebuild(session: Session, relation: RelationDef, attnum: int) -> None:
    """A column has another type: resolve and check the foreign keys that use it again. Raises 42804, 23503."""
    pairs = [(relation, c) for c in relation.foreign_keys if attnum in c.attnums]
    pairs += [
        (child, c)
        for child, c in session.catalog.foreign_keys_to(relation.oid)
        if c.foreign is not None
        and attnum in c.foreign.attnums
        and (child.oid != relation.oid or attnum not in c.attnums)
    ]
    for child, constraint in pairs:
        if constraint.foreign is None:
            raise AssertionError(f"constraint {constraint.name} is no foreign key")
        child = _relation(session, child.oid)
        parent = _relation(session, constraint.foreign.table)
        foreign = constraint.foreign
        spec = ForeignKeySpec(
            name=constraint.name,
            columns=tuple(child.column(a).name for a in constraint.attnums),
            table=parent.oid,
            referenced=tuple(parent.column(a).name for a in foreign.attnums),
            match=foreign.match,
            on_update=foreign.on_update,
            on_delete=foreign.on_delete,
            delete_columns=tuple(child.column(a).name for a in foreign.delete_attnums),
        )
        again = resolve(spec, constraint.name, child, parent)
        changed = replace(constraint, foreign=again.foreign, index_oid=again.index_oid)
        ForeignKey(child, changed, parent)
        others = {child.oid, parent.oid} - {relation.oid}
        await touch(session, others)
        latest = _relation(session, child.oid)
        constraints = tuple(changed if c.oid == changed.oid else c for c in latest.constraints)
        await session.view.change([replace(latest, constraints=constraints)])
        if changed.validated:
            await check_table(session, _relation(session, child.oid), changed)
