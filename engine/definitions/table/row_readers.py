"""Which stored texts read some relations, or rows of some composite types: those that name them, and those
that get such rows otherwise.

SELECT * FROM t                           depends on t
SELECT * FROM rows_of_t() r(a, b)         depends on the function, and has the columns that t has
SELECT * FROM x, unnest(x.many_t) r(a, b)    depends on a relation with a column of such rows, be it in arrays or within others

All are written anew when the columns of the relation, or the attributes of the type, change. They are found
along the edges of the graph (``engine.catalog.graph``), so that a change costs what reads the relation, not
what the catalog has.
"""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Final

from engine.catalog.graph import naming
from engine.catalog.row_parts import holds
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import Stored, row_array_oid, row_type_oid
from pgwire.give_way import opening, paced_iter
from planner.catalog import FunctionDef, RelationDef, TypeDef
from planner.catalog.named_oids import named_oids
from planner.catalog.relation_kinds import ROW_TYPED


class Readers:
    """What reads some relations of a catalog, or rows of some composite types."""

    __slots__ = ("_catalog", "_named", "_objects", "_oids")

    def __init__(self, catalog: CatalogSnapshot, oids: Set[int], objects: Set[int], named: Set[int]) -> None:
        """Take the relations themselves, and what has their rows: ``objects`` by what depends on it,
        ``named`` by texts that name it.
        """
        self._catalog: Final = catalog
        self._oids: Final = oids
        self._objects: Final = objects
        self._named: Final = named

    def reads(self, depends_on: Collection[int], text: str | None) -> bool:
        """Tell whether a text reads one of the relations, or such rows; it may say so of one that does not.

        ``depends_on``: what the text belongs to and depends on, relations and functions.
        """
        return not self._objects.isdisjoint(depends_on) or not self._named.isdisjoint(named_oids(text))

    def relations(self, now: CatalogSnapshot) -> list[RelationDef]:
        """Return as they are in ``now`` the relations, themselves included, that may have a text which reads
        any, oldest first.
        """
        found = {item.oid for item in self._items() if isinstance(item, RelationDef)}
        every = (now.relation_by_oid(oid) for oid in paced_iter(sorted(found | self._oids)))
        return [relation for relation in every if relation is not None]

    def functions(self, now: CatalogSnapshot) -> list[FunctionDef]:
        """Return as they are in ``now`` the functions that may have a text which reads any, oldest first."""
        found = {item.oid for item in self._items() if isinstance(item, FunctionDef)}
        own = self._objects  # functions that have such rows among their arguments
        every = (now.function_by_oid(oid) for oid in paced_iter(sorted(found | own)))
        return [function for function in every if function is not None]

    def _items(self) -> list[Stored]:
        return naming(self._catalog, {*self._objects, *self._named})


@opening
def readers_of(catalog: CatalogSnapshot, oids: Set[int], types: Set[int] = frozenset()) -> Readers:
    """Return what reads the relations ``oids``, or rows of ``types``, the family of a composite type."""
    rows = {*types, *(made for oid in paced_iter(oids) for made in (row_type_oid(oid), row_array_oid(oid)))}
    objects, named = set(oids), set(rows)
    seen, fresh = set(rows), rows
    while fresh:
        more = set[int]()
        for item in paced_iter(naming(catalog, fresh)):
            if isinstance(item, TypeDef):
                more.update(item.family)
                if item.relation_oid:
                    more.add(item.relation_oid)
            elif isinstance(item, FunctionDef):
                objects.add(item.oid)
                if holds(catalog, item.result, rows):
                    named.add(item.oid)
            elif isinstance(item, RelationDef) and _has(catalog, item, rows):
                objects.add(item.oid)
                if item.kind in ROW_TYPED:
                    more.update((row_type_oid(item.oid), row_array_oid(item.oid)))
        fresh = more - seen
        seen |= fresh
    return Readers(catalog, frozenset(oids), objects, named)


def _has(catalog: CatalogSnapshot, relation: RelationDef, rows: Set[int]) -> bool:
    return any(holds(catalog, column.declared.oid, rows) for column in relation.live)
