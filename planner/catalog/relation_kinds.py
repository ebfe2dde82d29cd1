"""What kinds of relations there are (``pg_class.relkind``), what messages call them, and what can be done with each.

    RELATION_KINDS["f"].word          "foreign table"        what errors, notices and DROP say
    relation.kind in ROW_TYPED        whether its rows are of a type that is called as it is

One row says all of a kind, so that a new kind is asked about everything, where it is made: the table is total
at import. Who wants to know what a kind can do asks the set of that property, never for letters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from planner.base.total import members, total

RelationKind: TypeAlias = Literal["r", "p", "f", "v", "m", "c", "i", "S"]
"""Tables, partitioned and foreign ones, views, materialized views, composite types, indexes, sequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFacts:
    """What one kind of relations is.

    ``word``, ``plural``: what messages call it, with its ``article``. All others are what PostgreSQL lets it
    have or be:

    ``storage``          rows in a shard (a partitioned table has a shard without rows, to be locked)
    ``row_type``         a type of its rows, which is called as it is
    ``columns``          columns that have names of their own: they are renamed, commented on, copied by LIKE
    ``system_columns``   ctid, tableoid and so on in pg_attribute
    ``query``            it is what a stored query says
    ``table``            it is one of the kinds that DDL calls a table: constraints, defaults and policies are defined there
    ``partition``        it may be a partition
    ``checks``           CHECK and NOT NULL, of its own or from its parent
    ``expressions``      expressions over its rows among its parts: defaults, checks, generated columns, keys of indexes
    ``triggers``         triggers at all
    ``standard``         information_schema knows it as a table
    ``sequences``        columns that sequences go with (OWNED BY)
    ``statistics``       CREATE STATISTICS
    ``sampled``          TABLESAMPLE
    ``locked``           LOCK TABLE
    ``truncated``        TRUNCATE
    ``granted``          GRANT ON TABLE, ON ALL TABLES
    ``file``             an oid of what it is stored in (relfilenode)
    """

    word: str
    plural: str
    article: str = "a"
    storage: bool = False
    row_type: bool = False
    columns: bool = False
    system_columns: bool = False
    query: bool = False
    table: bool = False
    partition: bool = False
    checks: bool = False
    expressions: bool = False
    triggers: bool = False
    standard: bool = False
    sequences: bool = False
    statistics: bool = False
    sampled: bool = False
    locked: bool = False
    truncated: bool = False
    granted: bool = False
    file: bool = False

    @property
    def one(self) -> str:
        """The word with its article, as in: "x" is not a table."""
        return f"{self.article} {self.word}"


_TABLE: Final = KindFacts(
    word="table", plural="tables", storage=True, row_type=True, columns=True, system_columns=True, table=True,
    partition=True, checks=True, expressions=True, triggers=True, standard=True, sequences=True, statistics=True,
    sampled=True, locked=True, truncated=True, granted=True, file=True,
)  # fmt: skip

RELATION_KINDS: Final[Mapping[RelationKind, KindFacts]] = total(
    "kinds of relations",
    members(RelationKind),
    {
        "r": _TABLE,
        "p": KindFacts(
            word="table", plural="partitioned tables", storage=True, row_type=True, columns=True, system_columns=True,
            table=True, partition=True, checks=True, expressions=True, triggers=True, standard=True, sequences=True,
            statistics=True, sampled=True, locked=True, truncated=True, granted=True,
        ),
        "f": KindFacts(
            word="foreign table", plural="foreign tables", row_type=True, columns=True, system_columns=True,
            partition=True, checks=True, expressions=True, triggers=True, standard=True, sequences=True,
            statistics=True, truncated=True, granted=True,
        ),
        "v": KindFacts(
            word="view", plural="views", row_type=True, columns=True, query=True, triggers=True, standard=True,
            sequences=True, locked=True, granted=True,
        ),
        "m": KindFacts(
            word="materialized view", plural="materialized views", storage=True, row_type=True, columns=True,
            system_columns=True, query=True, expressions=True, statistics=True, sampled=True, granted=True, file=True,
        ),
        "c": KindFacts(word="relation", plural="composite types", columns=True),  # where its rights as a relation are meant
        "i": KindFacts(word="index", plural="indexes", article="an", file=True),
        "S": KindFacts(word="sequence", plural="sequences", system_columns=True, file=True),
    },
)  # fmt: skip


def _those(property_: str) -> frozenset[RelationKind]:
    return frozenset(kind for kind, facts in RELATION_KINDS.items() if getattr(facts, property_))


STORING: Final = _those("storage")
ROW_TYPED: Final = _those("row_type")
COLUMNED: Final = _those("columns")
SYSTEM_COLUMNED: Final = _those("system_columns")
BY_QUERY: Final = _those("query")
TABLES: Final = _those("table")
PARTITIONS: Final = _those("partition")
CHECKED: Final = _those("checks")
WITH_EXPRESSIONS: Final = _those("expressions")
TRIGGERED: Final = _those("triggers")
STANDARD_TABLES: Final = _those("standard")
SEQUENCE_OWNERS: Final = _those("sequences")
STATISTICS_KINDS: Final = _those("statistics")
SAMPLED: Final = _those("sampled")
LOCKED: Final = _those("locked")
TRUNCATED: Final = _those("truncated")
GRANTED: Final = _those("granted")
FILED: Final = _those("file")
"""The kinds of relations that have each property of ``KindFacts``."""

DESCRIBED: Final[Mapping[RelationKind, str]] = {
    kind: "composite type" if kind == "c" else facts.word for kind, facts in RELATION_KINDS.items()
}
"""What ``pg_describe_object`` and ``pg_identify_object`` call them."""

CALLED: Final[Mapping[str, frozenset[RelationKind]]] = {
    facts.word: frozenset(kind for kind, other in RELATION_KINDS.items() if other.word == facts.word)
    for kind, facts in RELATION_KINDS.items()
    if kind != "c"
}
"""The kinds of relations by what COMMENT ON, DROP and ``pg_get_object_address`` call them."""


def called(word: str) -> str:
    """Return what such a statement calls a relation with its article, as in: "x" is not a foreign table."""
    return next(facts.one for facts in RELATION_KINDS.values() if facts.word == word)
