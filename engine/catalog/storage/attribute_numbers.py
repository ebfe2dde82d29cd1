"""Attribute numbers in the rows of pg_catalog: makers give the ids that columns have here, clients read SQL's numbers.

    t (a, b; an index's hidden column 3, c)        attnum     1  2  3  4
    pg_attribute, pg_index.indkey, conkey ...      number     1  2     3

A relation's hidden columns have ids among the others' (``planner.catalog.ColumnDef``), but no numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from engine.catalog.storage.stored import PG_CLASS_OID
from planner.catalog import RelationDef

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

# By relation of pg_catalog: a column of one number or several, that of the oid of the relation they are of,
# and that of the catalog which says whether it is a relation, "" where it always is.
NUMBERED: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "pg_attribute": (("attnum", "attrelid", ""),),
    "pg_attrdef": (("adnum", "adrelid", ""),),
    "pg_index": (("indkey", "indrelid", ""),),
    "pg_constraint": (
        ("conkey", "conrelid", ""),
        ("confkey", "confrelid", ""),
        ("confdelsetcols", "conrelid", ""),
    ),
    "pg_depend": (("objsubid", "objid", "classid"), ("refobjsubid", "refobjid", "refclassid")),
    "pg_description": (("objsubid", "objoid", "classoid"),),
    "pg_partitioned_table": (("partattrs", "partrelid", ""),),
    "pg_statistic": (("staattnum", "starelid", ""),),
    "pg_trigger": (("tgattr", "tgrelid", ""),),
}


def numbered(
    definition: RelationDef, rows: Iterable[Mapping[str, Any]], session: Reading | None
) -> Iterable[Mapping[str, Any]]:
    """Return rows of a catalog relation with SQL's numbers for columns. ``session`` None: of what is built
    in, which has the same.
    """
    places = NUMBERED.get(definition.name)
    if places is None or session is None or definition.schema != "pg_catalog":
        return rows
    return _numbered(places, rows, session)


def _numbered(
    places: tuple[tuple[str, str, str], ...], rows: Iterable[Mapping[str, Any]], session: Reading
) -> Iterator[Mapping[str, Any]]:
    known: dict[int, RelationDef | None] = {}  # the relations that have hidden columns, None for others
    for row in rows:
        changed: dict[str, Any] = {}
        for name, owner, class_ in places:
            value = row.get(name)
            if not value or (class_ and row[class_] != PG_CLASS_OID):
                continue
            oid = row[owner]
            if oid not in known:
                relation = session.catalog.relation_by_oid(oid)
                hides = relation is not None and any(column.hidden for column in relation.columns)
                known[oid] = relation if hides else None
            found = known[oid]
            if found is not None:
                several = isinstance(value, tuple)
                changed[name] = tuple(map(found.number, value)) if several else found.number(value)
        yield {**row, **changed} if changed else row
