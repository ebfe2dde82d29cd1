"""Which columns hold values of composite types: what such a type is made of must not change under them.

CREATE TABLE t (a int)      CREATE TABLE u (x t)      ALTER TABLE t ALTER a TYPE bigint      0A000: u.x has rows of t
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog.state import CatalogSnapshot
from engine.catalog.stored import row_array_oid, row_type_oid
from engine.constraints.define import touch
from planner.catalog import ColumnDef, RelationDef
from planner.errors import SqlError, not_supported
from planner.typefacts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.connection.session import Session


def parts_of(catalog: CatalogSnapshot, oid: int) -> Iterator[int]:
    """Yield the composite types in values of a type, at any depth; the type itself first if it is one."""
    seen: set[int] = set()
    left = [oid]
    while left:
        current = left.pop()
        made = catalog.type_by_oid(current)
        relation = catalog.row_type_relation(current)
        if made is not None and made.kind == "d":
            left.append(made.base)
            continue
        own = made.oid if made is not None else relation[0].oid + 1 if relation is not None else 0
        row = catalog.row_type(own) if own else None
        if row is None or own in seen:
            continue
        seen.add(own)
        yield own
        left += [column.declared.oid for column in row.live]


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


def refuse_held_rows(catalog: CatalogSnapshot, relation: RelationDef, what: str = "") -> None:
    """Raise SqlError 0A000 for a change of a table whose rows are values of columns elsewhere.

    ``what``: a change that PostgreSQL makes, and that is not supported here: values would compare otherwise.
    """
    for other, column in columns_holding(catalog, row_type_oid(relation.oid), row_array_oid(relation.oid)):
        if what:
            raise not_supported(
                f'{what} of table "{relation.name}", whose row type column "{other.name}.{column.name}" uses,'
            )
        raise SqlError(
            "0A000",
            f'cannot alter table "{relation.name}" because column "{other.name}.{column.name}" uses its row type',
        )


async def renew_holders(session: Session, relation: RelationDef) -> None:
    """Give the tables whose columns hold rows of ``relation``, whose columns have changed, new versions: plans know the fields."""
    held = columns_holding(session.catalog, row_type_oid(relation.oid), row_array_oid(relation.oid))
    await touch(session, {other.oid for other, _ in held} - {relation.oid})
