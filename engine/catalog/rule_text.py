"""``pg_rewrite.ev_action``: what a view's rule does, in the notation of PostgreSQL's node trees.

    ({QUERY :commandType 1 … :targetList ({TARGETENTRY :expr <> :resno 1 :resname id … :resorigtbl 16385
    :resorigcol 1 :resjunk false}) …})

Clients read it for one thing that no other catalog tells: which column of which table each column of a view
shows (they follow foreign keys through views with it). So the result columns are told with their origins, and
all else is empty (``<>``): expressions, ranges, conditions. ``pg_get_viewdef`` has the query.
"""

from __future__ import annotations

import re
from typing import Final

from planner.query.blocks import QueryExpr

NOTHING: Final = "<>"
# what a token may not hold as it is, and what it may not begin with: a reader takes those for the notation's own
_SPECIAL: Final = re.compile(r"[ \n\t(){}\\]|^[<\"]|^[+-]?(?=\d)|^[+-](?=\.)")


def token(text: str) -> str:
    """Return a name in the notation; an empty one is nothing."""
    return _SPECIAL.sub(lambda found: "\\" + found[0], text) if text else NOTHING


def select_rule(names: list[str], query: QueryExpr) -> str:
    """Return the action of a view's rule: its columns' names, and the bound query they come from, column by column."""
    entries = " ".join(
        f"{{TARGETENTRY :expr <> :resno {number} :resname {token(name)} :ressortgroupref 0"
        f" :resorigtbl {column.table_oid} :resorigcol {column.attnum} :resjunk false}}"
        for number, (name, column) in enumerate(zip(names, query.columns, strict=True), 1)
    )
    return (
        "({QUERY :commandType 1 :querySource 0 :canSetTag true :utilityStmt <> :resultRelation 0 :cteList <> :rtable <> :jointree <>"
        f" :targetList {f'({entries})' if entries else NOTHING} :override 0 :onConflict <> :returningList <> :groupClause <> :groupDistinct false"
        " :groupingSets <> :havingQual <> :windowClause <> :distinctClause <> :sortClause <> :limitOffset <> :limitCount <>"
        " :limitOption 0 :rowMarks <> :setOperations <> :constraintDeps <> :withCheckOptions <> :stmt_location 0 :stmt_len 0})"
    )
