"""What a plan takes beside its text: stars, views and wide tables make large plans of short texts.

    SELECT * FROM w          24 characters, 1,500 columns: 1.4 MB with what executors and encoders are compiled to

Caches count a plan as its text (``by_text``) and this many characters more.

The catalog that it was bound against it does not keep: of 2,000 tables one takes 400 kB of its own, and each
DDL makes another (``Planning.end``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pgwire.give_way import give_way, opening
from planner.query import QueryBase, Range
from planner.query.walk import walk

OF_NODE: Final = 4
"""Characters that a node, or a column, counts for, each of some 90 bytes (``by_text``)."""
OF_COLUMN: Final = 8
USUAL: Final = 1000
"""What is not counted: nearly all plans are smaller, and their texts tell of them."""
HEAVY: Final = 40_000
"""Of a tree that takes milliseconds to be freed."""


@opening
def weight_of(statement: Any, widths: Iterable[int]) -> int:
    """Return the characters that a statement's plan counts for beside its text. ``widths``: numbers of
    columns of the tables that it is about.
    """
    size = OF_COLUMN * sum(widths)
    for node in walk(statement):
        give_way()
        size += OF_NODE
        if isinstance(node, Range | QueryBase):
            size += OF_COLUMN * len(node.columns)
    return size if size > USUAL else 0
