"""Which stored texts read some relations, or rows of some composite types: those that name them, and those that get such rows otherwise.

SELECT * FROM t                           depends on t
SELECT * FROM rows_of_t() r(a, b)         depends on the function, and has the columns that t has
SELECT * FROM x, unnest(x.many_t) r(a, b)    depends on a relation with a column of such rows, be it in arrays or within others

All are written anew when the columns of the relation, or the attributes of the type, change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Set

from engine.catalog.row_parts import holds
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import row_array_oid, row_type_oid
from pgwire.give_way import opening, paced, paced_iter
from planner.catalog import RelationDef
from planner.catalog.named_oids import named_oids

Reads = Callable[[Collection[int], str | None], bool]


@opening
def reading(catalog: CatalogSnapshot, oids: Set[int], types: Set[int] = frozenset()) -> Reads:
    """Return what tells of a text whether it reads one of the relations ``oids`` or rows of ``types``; it may say so of one that does not.

    It is asked with what the text belongs to and depends on, relations and functions, and the text itself.
    """
    rows = {*types, *(made for oid in oids for made in (row_type_oid(oid), row_array_oid(oid)))}
    if not rows:
        return lambda depends_on, text: False
    functions = list(catalog.functions())
    named = rows | {function.oid for function in paced(functions) if holds(catalog, function.result, rows)}
    objects = {
        *oids,
        *(table.oid for table in paced(catalog.with_made_types()) if _has(catalog, table, rows)),
        *(f.oid for f in paced(functions) if any(holds(catalog, oid, rows) for oid in f.types)),
    }

    def reads(depends_on: Collection[int], text: str | None) -> bool:
        return not objects.isdisjoint(depends_on) or not named.isdisjoint(named_oids(text))

    for view in paced_iter(catalog.user_relations()):
        if view.kind == "v" and reads(view.depends_on, view.view_sql) and _has(catalog, view, rows):
            objects.add(view.oid)
    return reads


def _has(catalog: CatalogSnapshot, relation: RelationDef, rows: Set[int]) -> bool:
    return any(holds(catalog, column.declared.oid, rows) for column in relation.live)
