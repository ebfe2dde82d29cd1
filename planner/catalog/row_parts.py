"""Which composite types are within values of a type.

CREATE TYPE inner AS (a int); CREATE DOMAIN d AS inner[]; CREATE TABLE t (x d)     parts of t: t, inner
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.base.errors import SqlError
from planner.catalog.protocol import Catalog
from planner.types.facts import element_of, format_type


def parts_of(catalog: Catalog, oid: int) -> Iterator[int]:
    """Yield the composite types in values of a type, at any depth; the type itself first if it is one."""
    seen: set[int] = set()
    left = [oid]
    while left:
        own = left.pop()
        own = element_of(own) or own
        made = catalog.type_by_oid(own)
        if made is not None and made.kind in "dr":
            left.append(made.base)
            continue
        row = catalog.row_type(own)
        if row is None or own in seen:
            continue
        seen.add(own)
        yield own
        left += [column.declared.oid for column in row.live]


def refuse_member(catalog: Catalog, row: int, oid: int) -> None:
    """Raise SqlError 42P16 for a column or attribute, of type ``oid``, of a composite type or row type that is
    in its values.
    """
    if row in parts_of(catalog, oid):
        raise SqlError("42P16", f"composite type {format_type(row)} cannot be made a member of itself")
