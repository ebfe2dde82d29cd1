"""Bound statements about extended statistics. Read them as ``planner.statements``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsPart:
    """What statistics are over.

    A column has its number (0: there is none called ``name``; below: a system column or a whole row). An
    expression has its canonical text ``sql``; ``system``: it names what has no statistics. ``type``: the oid
    of its type; ``ordered``: its values have an order.
    """

    name: str = ""
    attnum: int = 0
    sql: str = ""
    system: bool = False
    type: int = 0
    ordered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStatistics:
    """CREATE STATISTICS on a table by oid; what is wrong with ``parts`` and ``kinds`` is told when it runs."""

    table: int
    schema: str
    name: str
    kinds: tuple[str, ...]
    parts: tuple[StatisticsPart, ...]
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterStatistics:
    """RENAME TO, SET SCHEMA, OWNER TO or SET STATISTICS, whichever is there, of statistics by oid;
    ``written``: their name, as it is.
    """

    object: int
    written: str
    name: str | None = None
    schema: str | None = None
    owner: str | None = None
    target: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropStatistics:
    """DROP STATISTICS: oid and name as written; ``missing``: notices about those that are not there."""

    objects: tuple[tuple[int, str], ...]
    missing: tuple[str, ...]


StatisticsStatement: TypeAlias = CreateStatistics | AlterStatistics | DropStatistics
