"""Which stored texts read some relations: those that name them, and those that call functions of their rows.

SELECT * FROM t                        depends on t
SELECT * FROM rows_of_t() r(a, b)      depends on the function, and has the columns that t has

Both are written anew when the columns of the relation change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Set

from engine.catalog.state import CatalogSnapshot
from engine.catalog.stored import row_type_oid
from planner.domains import base_oid


def reading(catalog: CatalogSnapshot, oids: Set[int]) -> Callable[[Collection[int], str], bool]:
    """Return what tells of a text, and of the relations that it names, whether it reads one of ``oids``; it may say so of one that does not."""
    rows = {row_type_oid(oid) for oid in oids}
    named = rows | {function.oid for function in catalog.functions() if base_oid(function.result) in rows}
    if not named:
        return lambda depends_on, text: False
    # stored texts name types and functions by oid (``planner.deparse_expr.stored_function``)
    by_oid = re.compile('"#(?:' + "|".join(map(str, sorted(named))) + ')"')

    def reads(depends_on: Collection[int], text: str) -> bool:
        return not oids.isdisjoint(depends_on) or by_oid.search(text) is not None

    return reads
