"""Rows with figures that change without DDL: how many rows a table has, as pg_class shows it for the table
and its indexes.

    KeptRows ─ rows without figures ─> CountedRows ─ the same rows, those with other figures than before made again

A figure may be ``RECENT_US`` old if there have been commits since, and as old as it likes if there have been
none. What a writing transaction counts is its own, and nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.catalog.kept import STEP, KeptRows, PartOfEach, Rows
from engine.catalog.state import CatalogSnapshot
from planner.catalog import RelationDef

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

RECENT_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """What is counted in the rows of one relation each.

    Attributes:
        table: whose rows are counted for a relation; 0: nothing is.
        columns: the values that say so, by column, given the number of rows and that of the row ids given out.
    """

    table: Callable[[RelationDef], int]
    columns: Callable[[int, int], Mapping[str, Any]]


class _Counted(NamedTuple):
    """The rows of a relation without the figures, whose they are, the figures, and the rows with them."""

    rows: Rows
    table: int
    figures: tuple[int, int]
    done: Rows


_NO_ROWS: Rows = []


class CountedRows:
    """As ``KeptRows``, with figures of lately."""

    __slots__ = (
        "_at", "_clock_us", "_counts", "_figures", "_kept", "_last", "_left", "_places", "_read_points", "_rows",
        "_us",
    )  # fmt: skip

    def __init__(
        self,
        kept: KeptRows,
        figures: Figures,
        places: Mapping[str, int],
        clock_us: Callable[[], int],
        read_points: Callable[[], object],
    ) -> None:
        """``places``: where each column stands in a row. ``read_points``: the commits that are there, as what
        tells them apart.
        """
        self._kept = kept
        self._figures = figures
        self._places = places
        self._clock_us = clock_us
        self._read_points = read_points
        self._us = 0
        self._at: object = None  # after which commits has been counted
        self._counts: dict[int, tuple[int, int]] = {}  # by table, since then
        self._rows: dict[int, _Counted] = {}
        self._left: Mapping[int, RelationDef] | None = None  # what has been left by ``forget``
        self._last: tuple[PartOfEach, Mapping[int, tuple[int, int]], PartOfEach] | None = None

    def recount(self) -> None:
        """Count again for the next reader, if there have been commits: somebody has asked for figures of now."""
        self._us = 0

    def _current(self, session: Reading) -> dict[int, tuple[int, int]]:
        """Return what may be taken as counted, to be added to."""
        if session.is_writing:
            return {}
        now = self._clock_us()
        if not self._us or now - self._us > RECENT_US:
            at = self._read_points()
            if at != self._at:
                self._counts = {}
            self._us, self._at = now, at
        return self._counts

    def _count(self, session: Reading, counts: dict[int, tuple[int, int]], table: int) -> tuple[int, int]:
        count = counts.get(table)
        if count is None:
            count = counts[table] = session.system.rows_and_ids(table)
        return count

    def _shown(
        self, session: Reading, counts: dict[int, tuple[int, int]], item: RelationDef, rows: Rows
    ) -> Rows:
        """Return the rows of a relation with its figure, the same ones for the same figure."""
        table = self._figures.table(item) if rows else 0
        if not table:
            return rows
        count = self._count(session, counts, table)
        known = self._rows.get(item.oid)
        if known is None or known.rows is not rows or known.figures != count:
            figures = [(self._places[name], value) for name, value in self._figures.columns(*count).items()]
            done: Rows = []
            for row in rows:
                values = list(row)
                for place, value in figures:
                    values[place] = value
                done.append(tuple(values))
            known = _Counted(rows, table, count, done)
            if counts is self._counts:
                self._rows[item.oid] = known
        return known.done

    def of(self, session: Reading, catalog: CatalogSnapshot, item: RelationDef) -> Rows:
        """Return the rows of one relation."""
        rows = self._kept.of(session, catalog, item)
        return self._shown(session, self._current(session), item, rows)

    def prepare(self, session: Reading, catalog: CatalogSnapshot) -> Iterator[None]:
        """As ``KeptRows.prepare``."""
        yield from self._kept.prepare(session, catalog)
        if self._last is not None:
            return
        for number, item in enumerate(catalog.relations_by_oid.values()):
            self.of(session, catalog, item)
            if number % STEP == STEP - 1:
                yield

    def part(self, session: Reading, catalog: CatalogSnapshot) -> PartOfEach:
        """Return the rows of all relations of a catalog."""
        plain = self._kept.part(session, catalog)
        counts = self._current(session)
        last = self._last
        if last is not None and last[0] is plain and last[1] is counts:
            return last[2]
        relations = catalog.relations_by_oid
        if last is None or last[0].basis != plain.basis:
            chunks = {
                oid: self._shown(session, counts, relations[oid], rows) for oid, rows in plain.chunks.items()
            }
            part = PartOfEach(catalog, chunks)
        else:
            before, shown = last[0].chunks, last[2].chunks
            changed: set[int] = set()
            if plain.chunks is not before:
                changed = before.keys() - plain.chunks.keys()
                changed |= {oid for oid, rows in plain.chunks.items() if before.get(oid) is not rows}
            if last[1] is not counts:
                changed |= {
                    oid
                    for oid, known in self._rows.items()
                    if oid in relations
                    and (
                        known.done is not shown.get(oid)
                        or known.figures != self._count(session, counts, known.table)
                    )
                }
            part = last[2].replaced(
                catalog,
                {
                    oid: rows
                    for oid in changed
                    if (
                        rows := self._shown(session, counts, relations[oid], plain.chunks[oid])
                        if oid in plain.chunks
                        else _NO_ROWS
                    )
                    is not shown.get(oid, _NO_ROWS)
                },
            )
        if counts is self._counts:
            self._last = (plain, counts, part)
        return part

    def forget(self, catalog: CatalogSnapshot) -> None:
        """As ``KeptRows.forget``."""
        relations = catalog.relations_by_oid
        if self._kept.forget(catalog):
            self._last = None
        if relations is not self._left:
            self._left = relations
            if not self._rows.keys() <= relations.keys():
                self._rows = {oid: known for oid, known in self._rows.items() if oid in relations}
