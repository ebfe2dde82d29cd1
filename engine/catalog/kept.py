"""The rows of catalog relations as they are kept: made once, and carried from one version of the catalog to the next.

    source of pg_attribute, of each relation                 KeptRows: one for each database
      t1 ─ what its rows were made of ─ rows                   found by key: the rows of the relations meant, nothing else is made
      t2 ─ ...                                                 read whole: a Part of the version
    Part 7    rows in order, indexes by column
    Part 8    = Part 7 with the rows of the relations that differ; its indexes copied and put right, not made anew

What the rows of a relation are made of: its definition, rights on it, relations that they name (a default's
sequence, what a view reads), and ``CatalogSnapshot.basis`` for everything else. Parts are not changed, so a
reader may take its time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from engine.catalog.state import CatalogSnapshot
from pgwire.give_way import paced_iter
from planner.catalog import RelationDef
from planner.catalog.relation_kinds import BY_QUERY

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

Rows: TypeAlias = list[tuple[Any, ...]]
# The rows with one value: nothing, one row, or a list of several. Most values have one, which takes no list then.
Found: TypeAlias = "tuple[Any, ...] | Rows | None"
MakerOfEach: TypeAlias = Callable[["Reading", RelationDef], Rows]
# The oids of other relations that the rows of one say something about.
Needs: TypeAlias = Callable[[CatalogSnapshot, RelationDef], Iterable[int]]

# If more relations differ, indexes are made anew where they are asked for.
FEW_CHANGES = 64
STEP = 64  # relations whose rows are made in one turn of the loop
_NO_ROWS: Rows = []


class Part:
    """Rows, with an index for each column asked for."""

    __slots__ = ("_rows", "indexes")

    def __init__(self, rows: Rows) -> None:
        """Begin without indexes."""
        self._rows: Rows | None = rows
        self.indexes: dict[int, dict[Any, Found]] = {}

    @property
    def rows(self) -> Rows:
        """All rows. Nobody changes the list."""
        if self._rows is None:
            raise AssertionError("the rows are asked for before they are kept")
        return self._rows

    def find(self, attnum: int, value: Any) -> Rows:
        """Return the rows whose column equals ``value``. Nobody changes the list."""
        return as_rows(self._index(attnum).get(value))

    def getter(self, attnum: int) -> Callable[[Any], Found]:
        """Return the function from a value to what is found of it; NULL has nothing. The index is made now."""
        return self._index(attnum).get

    def finder(self, attnum: int) -> Callable[[Any], Rows]:
        """Return the function from a value to the rows whose column equals it. Nobody changes the lists."""
        get: Callable[[Any], Found] | None = None

        def find(value: Any) -> Rows:
            nonlocal get
            if get is None:
                get = self._index(attnum).get
            return as_rows(get(value))

        return find

    def _index(self, attnum: int) -> dict[Any, Found]:
        """Return the index by a column, made at first look-up."""
        index = self.indexes.get(attnum)
        if index is None:
            index = self.indexes[attnum] = {}
            _add(index, attnum - 1, self.rows)
        return index


class PartOfEach(Part):
    """Rows of all relations of one catalog.

    Attributes:
        chunks: the rows of each relation that has some, by its oid.
        relations, basis, rights: of the catalog that it is of.
    """

    __slots__ = ("basis", "chunks", "relations", "rights")

    def __init__(self, catalog: CatalogSnapshot, chunks: dict[int, Rows]) -> None:
        """Begin without indexes."""
        super().__init__(_NO_ROWS)
        self._rows = None
        self.chunks = chunks
        self.relations = catalog.relations_by_oid
        self.basis = catalog.basis
        self.rights = catalog.rights

    @property
    def rows(self) -> Rows:
        """All rows, in the order of the relations. Nobody changes the list."""
        if self._rows is None:
            self._rows = list(itertools.chain.from_iterable(self.chunks.values()))
        return self._rows

    def replaced(self, catalog: CatalogSnapshot, changes: Mapping[int, Rows]) -> PartOfEach:
        """Return the part of ``catalog``, where the relations in ``changes`` have other rows, or none."""
        if not changes:
            new = PartOfEach(catalog, self.chunks)
            new._rows, new.indexes = self._rows, self.indexes
            return new
        chunks = dict(self.chunks)
        before: Rows = []
        after: Rows = []
        for oid, rows in changes.items():
            before += chunks.get(oid, _NO_ROWS)
            after += rows
            if rows:
                chunks[oid] = rows
            else:
                chunks.pop(oid, None)
        new = PartOfEach(catalog, chunks)
        if len(changes) <= FEW_CHANGES:
            new.indexes = {
                attnum: _index_with(index, attnum - 1, before, after)
                for attnum, index in self.indexes.items()
            }
        return new


def as_rows(found: Found) -> Rows:
    """Return what was found as a list. Nobody changes it."""
    if found is None:
        return _NO_ROWS
    return found if isinstance(found, list) else [found]


def both(one: Found, other: Found) -> Found:
    """Return what was found in two places."""
    if one is None or other is None:
        return one if other is None else other
    return [*as_rows(one), *as_rows(other)]


def only(found: list[Found], keep: Callable[[Rows], Rows]) -> list[Found]:
    """Return what ``keep`` leaves of what was found; it is asked once for all."""
    stays = {id(row) for row in keep([row for each in found for row in as_rows(each)])}
    left: list[Found] = []
    for each in found:
        if isinstance(each, list):
            rows = [row for row in each if id(row) in stays]
            left.append(rows if len(rows) > 1 else rows[0] if rows else None)
        else:
            left.append(each if id(each) in stays else None)
    return left


def _add(index: dict[Any, Found], position: int, rows: Rows) -> None:
    """Add rows to an index whose lists belong to it alone; those without a value equal none, and are not in it."""
    get = index.get
    for row in rows:
        value = row[position]
        found = get(value)
        if found is None:
            index[value] = row
        elif isinstance(found, list):
            found.append(row)
        else:
            index[value] = [found, row]
    index.pop(None, None)


def _index_with(index: dict[Any, Found], position: int, before: Rows, after: Rows) -> dict[Any, Found]:
    """Return an index without the rows ``before``, with the rows ``after``."""
    new = dict(index)
    gone = {id(row) for row in before}
    for value in {row[position] for row in before} - {None}:
        left = [row for row in as_rows(new[value]) if id(row) not in gone]
        if len(left) > 1:
            new[value] = left
        elif left:
            new[value] = left[0]
        else:
            del new[value]
    grown: dict[Any, Found] = {}
    _add(grown, position, after)
    for value, found in grown.items():
        new[value] = both(new.get(value), found)
    return new


class _Made(NamedTuple):
    """Rows, and what they were made of."""

    item: RelationDef
    basis: int
    rights: int
    needs: tuple[tuple[int, RelationDef | None], ...]
    rows: Rows


class KeptRows:
    """The rows of one source in one database, as they were made last."""

    __slots__ = ("_builtin", "_last", "_left", "_made", "_make", "_needs")

    def __init__(self, make: MakerOfEach, needs: Needs | None, *, builtin: bool) -> None:
        """``builtin``: catalog relations have rows, too."""
        self._make = make
        self._needs = needs
        self._builtin = builtin
        self._made: dict[int, _Made] = {}
        self._left: Mapping[int, RelationDef] | None = None  # what has been left by ``forget``
        self._last: PartOfEach | None = None  # of the latest catalog that was read whole

    def of(self, session: Reading, catalog: CatalogSnapshot, item: RelationDef) -> Rows:
        """Return the rows of one relation."""
        if item.virtual and not self._builtin:
            return _NO_ROWS
        made = self._made.get(item.oid)
        if (
            made is not None
            and made.item is item
            and made.basis == catalog.basis
            and made.rights == catalog.rights_mark(item.oid)
            and all(catalog.relation_by_oid(oid) is other for oid, other in made.needs)
        ):
            return made.rows
        needs: tuple[tuple[int, RelationDef | None], ...] = ()
        if self._needs is not None:
            needs = tuple((oid, catalog.relation_by_oid(oid)) for oid in self._needs(catalog, item))
        rows = self._make(session, item)
        if made is None or catalog is session.space.catalog:
            mark = catalog.rights_mark(item.oid)
            self._made[item.oid] = _Made(item, catalog.basis, mark, needs, rows)
        return rows

    def prepare(self, session: Reading, catalog: CatalogSnapshot) -> Iterator[None]:
        """Make what ``part`` is made of, if that is much, in steps between which others may have their turns."""
        last = self._last
        if last is not None and last.basis == catalog.basis:
            return
        for number, item in enumerate(catalog.relations_by_oid.values()):
            self.of(session, catalog, item)
            if number % STEP == STEP - 1 or item.kind in BY_QUERY:  # a view is bound, for some of its rows
                yield

    def part(self, session: Reading, catalog: CatalogSnapshot) -> PartOfEach:
        """Return the rows of all relations of a catalog."""
        last = self._last
        if last is None or last.basis != catalog.basis:
            chunks = {
                oid: rows
                for oid, item in paced_iter(catalog.relations_by_oid.items())
                if (rows := self.of(session, catalog, item))
            }
            part = PartOfEach(catalog, chunks)
        else:
            changes = {
                oid: _NO_ROWS
                if (item := catalog.relation_by_oid(oid)) is None
                else self.of(session, catalog, item)
                for oid in paced_iter(self._changed(last, catalog))
            }
            part = last.replaced(
                catalog,
                {oid: rows for oid, rows in changes.items() if rows is not last.chunks.get(oid, _NO_ROWS)},
            )
        if last is None or catalog is session.space.catalog:
            self._last = part
            self.forget(catalog)
        return part

    def _changed(self, last: PartOfEach, catalog: CatalogSnapshot) -> Iterator[int]:
        """Yield the relations whose rows may be others than in ``last``, dropped ones first."""
        before, now = last.relations, catalog.relations_by_oid
        if before is not now:
            yield from before.keys() - now.keys()
            get = before.get
            yield from [oid for oid, item in now.items() if get(oid) is not item]
        if last.rights is not catalog.rights:
            marked = {*last.rights.items()} ^ {*catalog.rights.items()}
            yield from [oid for oid in {oid for oid, _mark in marked} if oid in now]
        if self._needs is not None and before is not now:
            yield from [
                oid
                for oid, made in self._made.items()
                if made.needs and oid in now and any(now.get(other) is not was for other, was in made.needs)
            ]

    def forget(self, catalog: CatalogSnapshot) -> bool:
        """Let go of the rows of relations that are no more; tells whether what was read whole has gone with
        them, as many were in it.
        """
        relations = catalog.relations_by_oid
        if relations is not self._left:
            self._left = relations
            if (
                not self._made.keys() <= relations.keys()
            ):  # another dictionary: somebody may be going through this one
                self._made = {oid: made for oid, made in self._made.items() if oid in relations}
            last = self._last
            if last is not None and len(last.relations.keys() - relations.keys()) > FEW_CHANGES:
                self._last = None
        return self._last is None
