"""Which composite types are in the values of a type: of a row, an array of rows, a domain over either, a
range of such.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from engine.catalog.state import CatalogSnapshot
from planner.catalog import ColumnDef, RelationDef
from planner.catalog.row_parts import parts_of
from planner.types.facts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot


def holds(catalog: CatalogSnapshot, oid: int, family: Collection[int]) -> bool:
    """Tell whether values of a type have values of one of a composite type's family in them, or may have:
    ranges, of anything.
    """
    if oid < FIRST_USER_OID:
        return False
    made = catalog.type_by_oid(oid)
    is_range = made is not None and made.kind == "r"
    return is_range or oid in family or any(part in family for part in parts_of(catalog, oid))


def columns_holding(
    catalog: CatalogSnapshot, oid: int, array_oid: int
) -> Iterator[tuple[RelationDef, ColumnDef]]:
    """Yield the stored columns whose values have values of a composite type in them, newest column of a table first."""
    for relation in catalog.with_made_types():
        for column in reversed(relation.stored_columns):
            declared = column.declared.oid
            if declared < FIRST_USER_OID:
                continue
            if declared in (oid, array_oid) or oid in set(parts_of(catalog, declared)):
                yield relation, column
