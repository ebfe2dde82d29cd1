"""What the catalog knows of an extended statistics object (manual 14.2.2): a row of pg_statistic_ext."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PG_STATISTIC_EXT: Final = 3381
DEFAULT_TARGET: Final = -1
MAX_TARGET: Final = 10000
KINDS: Final = {"ndistinct": "d", "dependencies": "f", "mcv": "m"}
"""The words for kinds of statistics, and their letters in pg_statistic_ext.stxkind, in PostgreSQL's order."""
OF_EXPRESSIONS: Final = "e"
"""The letter of statistics of each single expression, which nobody asks for by a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsDef:
    """Statistics over several columns, or over expressions, of one table; they are kept with it
    (``RelationDef.statistics``).

    Their schema and owner are their own: neither follows the table's. ``attnums``: the columns among what
    they are over, ascending; ``expressions``: canonical texts of the others, in the order written. ``kinds``:
    letters of ``KINDS``, and OF_EXPRESSIONS. ``target``: how closely ANALYZE looks, DEFAULT_TARGET for what
    the columns say.
    """

    oid: int
    schema_oid: int
    name: str
    owner: int = 10
    attnums: tuple[int, ...] = ()
    expressions: tuple[str, ...] = ()
    kinds: str = ""
    target: int = DEFAULT_TARGET
