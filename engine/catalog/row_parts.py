"""Which composite types are in the values of a type: of a row, an array of rows, a domain over either, a range of such."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot


def parts_of(catalog: CatalogSnapshot, oid: int) -> Iterator[int]:
    """Yield the composite types in values of a type, at any depth; the type itself first if it is one."""
    seen: set[int] = set()
    left = [oid]
    while left:
        current = left.pop()
        made = catalog.type_by_oid(current)
        relation = catalog.row_type_relation(current)
        if made is not None and made.kind in "dr":
            left.append(made.base)
            continue
        own = made.oid if made is not None else relation[0].oid + 1 if relation is not None else 0
        row = catalog.row_type(own) if own else None
        if row is None or own in seen:
            continue
        seen.add(own)
        yield own
        left += [column.declared.oid for column in row.live]
