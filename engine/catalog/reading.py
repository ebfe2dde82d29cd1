"""What the rows of catalog relations are made for: a session, as far as they look at one.

Reading = what functions see of a session (``planner.functions.session.EvalSession``)
          + its catalogs as snapshots, the role that asks, and what figures there are
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from engine.base.statistics_records import ExtendedRecord, TableRecord
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.spaces import Space
from planner.catalog import RelationDef, RoleDef
from planner.functions.session import EvalSession


class Figures(Protocol):
    """What has been counted in tables (``engine.executors.statistics.keeper``): by oid of a table, of a
    statistics object.
    """

    records: Mapping[int, TableRecord]
    extended: Mapping[int, ExtendedRecord]


class Reading(EvalSession, Protocol):
    """A session that reads the catalog.

    ``space``: the committed catalog of its database, and what it was.
    """

    space: Space

    @property
    def catalog(self) -> CatalogSnapshot:
        """The catalog that its transaction sees."""

    @property
    def today(self) -> CatalogSnapshot:
        """The catalog whose roles and rights count."""

    @property
    def rights_catalog(self) -> CatalogSnapshot:
        """The catalog that its transaction sees, with today's rights."""

    @property
    def role(self) -> RoleDef:
        """The current user. Raises SqlError 42704 for one that has been dropped."""

    @property
    def temp_schema(self) -> str:
        """What its schema for temporary tables is called."""

    @property
    def is_writing(self) -> bool:
        """Whether its transaction has changed something, so that it sees other rows than others do."""

    @property
    def figures(self) -> Figures | None:
        """What has been counted in tables; None on a server that counts nothing."""

    def withholds(self, relation: RelationDef, attnum: int = 0) -> bool:
        """Tell whether who asks may not have what is shown of a relation, or of a column of it, since it has gone."""
