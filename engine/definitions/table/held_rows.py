"""Which columns hold values of composite types: what such a type is made of must not change under them.

CREATE TABLE t (a int)      CREATE TABLE u (x t)      ALTER TABLE t ALTER a TYPE bigint      0A000: u.x has rows of t
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from engine.catalog.row_parts import columns_holding
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import row_array_oid, row_type_oid
from engine.definitions.constraints import touch
from engine.definitions.table.rewrite import rewrite_rows
from pgwire.bounded import alike
from pgwire.codecs.users.composite import RowShape, pack, values_of
from pgwire.codecs.users.ranges import (
    Bound,
    RangeType,
    between,
    element,
    normalized,
    pack_multirange,
    pack_range,
    place,
    range_type,
    unpack_multirange,
    unpack_range,
)
from pgwire.give_way import openly
from planner.base.errors import SqlError, not_supported
from planner.catalog import ColumnDef, RelationDef, TypeDef
from planner.catalog.relation_kinds import RELATION_KINDS
from planner.catalog.row_parts import parts_of
from planner.conversion.order import is_ordered, unordered_field
from planner.types.facts import element_of, format_type
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.session.session import Session


def refuse_held_rows(catalog: CatalogSnapshot, relation: RelationDef) -> None:
    """Raise SqlError 0A000 for a change of a table whose rows are values of columns elsewhere."""
    for other, column in columns_holding(catalog, row_type_oid(relation.oid), row_array_oid(relation.oid)):
        raise SqlError(
            "0A000",
            f'cannot alter {RELATION_KINDS[relation.kind].word} "{relation.name}" because column "{other.name}.{column.name}" uses its row type',
        )


async def repack_rows(session: Session, oid: int, holding: Iterable[tuple[RelationDef, ColumnDef]]) -> None:
    """Store the values of columns anew that have values of a composite type in them, which has lost
    attributes: they no longer count.

    Nobody else reads or writes the tables from here on. Raises SqlError 23505 where keys of an index are no
    longer unique.
    """
    tables: dict[int, list[int]] = {}
    for relation, column in holding:
        tables.setdefault(relation.oid, []).append(column.attnum)
    for table, attnums in tables.items():
        relation_now = session.catalog.relation_by_oid(table)
        if relation_now is None or relation_now.kind == "p":
            continue
        known: dict[int, _Repack | None] = {}
        places = [
            (attnum - 1, repack)
            for attnum in attnums
            if not relation_now.column(attnum).dropped
            and (repack := _repacker(session.catalog, relation_now.column(attnum).declared.oid, oid, known))
        ]
        if not places:
            continue
        await touch(session, [table])
        changed = session.catalog.relation_by_oid(table)
        if changed is None:
            raise AssertionError(f"table {table} is gone while its rows are packed again")
        await rewrite_rows(session, relation_now, changed, partial(_repacked, places))


def _repacked(places: Sequence[tuple[int, _Repack]], rows: Sequence[Row]) -> Sequence[Row]:
    out = []
    for row in rows:
        values = list(row)
        for at, repack in places:
            values[at] = openly(repack, values[at])
        out.append(tuple(values))
    return out


_Repack = Callable[[Any], Any]


def _repacker(
    catalog: CatalogSnapshot, oid: int, of: int, known: dict[int, _Repack | None]
) -> _Repack | None:
    """Return what stores a value of the type ``oid`` anew, None where there are no values of the composite
    type ``of`` in it.

    ``known`` keeps the answers of composite types: each is asked for once, however many attributes are of it.
    """
    made = catalog.type_by_oid(oid)
    if made is not None and made.is_domain and oid == made.oid:
        return _repacker(catalog, made.base, of, known)
    if made is not None and made.kind == "r" and oid in (made.oid, made.multirange):
        within = _repacker(catalog, made.base, of, known)
        return None if within is None else _ranges(range_type(oid), oid == made.multirange, within)
    member = element_of(oid)
    if member:
        inner = _repacker(catalog, member, of, known)
        return None if inner is None else partial(_each, inner)
    shape = catalog.row_shape(oid)
    if shape is None:
        return None
    if oid not in known:
        known[oid] = _row_repacker(catalog, shape, oid == of, of, known)
    return known[oid]


def _row_repacker(
    catalog: CatalogSnapshot, shape: RowShape, itself: bool, of: int, known: dict[int, _Repack | None]
) -> _Repack | None:
    parts = [_repacker(catalog, attribute.oid, of, known) for attribute in shape.attributes]
    if not itself and not any(parts):
        return None

    def repack(value: Any) -> Any:
        if value is None:
            return None
        values = values_of(value, shape)
        return pack([part(v) if part else v for part, v in zip(parts, values, strict=True)], shape)

    return repack


def _each(inner: _Repack, value: Any) -> Any:
    """Return an array's value with ``inner`` of each element."""
    if isinstance(value, tuple):
        return alike(tuple([_each(inner, item) for item in value]), value)
    return inner(value)


def _ranges(type_: RangeType, many: bool, inner: _Repack) -> _Repack:
    def renewed(bound: Bound) -> Bound:
        if bound.infinite:
            return bound
        at = place(type_, inner(element(bound)))
        return Bound(at.key[:-1] + bound.key[-1:], at.scale, at.kept)

    def repack(value: Any) -> Any:
        if value is None:
            return None
        span = None if many else unpack_range(value)
        spans = unpack_multirange(value) if many else [] if span is None else [span]
        found = [between(type_, renewed(low), renewed(high)) for low, high in spans]
        kept = [one for one in found if one is not None]
        return (
            pack_multirange(type_, normalized(kept)) if many else pack_range(type_, kept[0] if kept else None)
        )

    return repack


def refuse_unordered(catalog: CatalogSnapshot, type_: TypeDef, oid: int) -> None:
    """Raise SqlError 0A000 for an attribute of a type without order where ranges are over the composite type."""
    if is_ordered(oid) and not unordered_field(oid, catalog.row_type, 1):
        return
    for made in catalog.user_types():
        if made.kind == "r" and type_.oid in parts_of(catalog, made.base):
            raise not_supported(f"an attribute of type {format_type(oid)} in a type that ranges are over")


async def renew_holders(session: Session, relation: RelationDef) -> None:
    """Give the tables whose columns hold rows of ``relation``, whose columns have changed, new versions:
    plans know the fields.
    """
    held = columns_holding(session.catalog, row_type_oid(relation.oid), row_array_oid(relation.oid))
    await touch(session, {other.oid for other, _ in held} - {relation.oid})
