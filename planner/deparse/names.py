"""Names for printing a query: what its ranges, its joins and the columns of each are called, as PostgreSQL
chooses them.

    FROM t JOIN u USING (k)        u.k is called r since:   FROM t JOIN u u(k, c) USING (k)
    FROM (a JOIN b ON …) j(x, y)   j.x, j.y; a column that a got since takes its place in the list

``names_of`` goes over the tree of FROM twice. Downwards, outer joins first, columns that USING merges get one
name, which is theirs in every range they come from; where a merged column is computed (FULL JOIN, two types)
it goes by that name alone, which is therefore unlike all others of its level. Upwards the rest are named, by
what their alias or their table calls them, each unlike the others of its range. An alias is printed with a
list of columns where these are not what they would be called without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from planner.query import (
    CteRange,
    FromItem,
    FunctionRange,
    Join,
    JoinWritten,
    Range,
    RangeRef,
    RelationRange,
    SubqueryRange,
)
from planner.query.numbered import Numbered, shown

VALUES_NAME = "*VALUES*"
CONVERTED_NAME = "*SELECT*"
"""What is over VALUES with ORDER BY, and over an operand of a set operation whose columns are converted; no
alias of a user's."""


def unlike(wanted: str, taken: Collection[str | None]) -> str:
    """Return a name, or else with a number, that is not among ``taken``."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


@dataclass(slots=True)
class Names:
    """What a range or a join is called, and its columns.

    ``columns`` has "" for those that are gone and None for those without a name yet; ``fresh`` counts the
    last of them, which the query did not have when it was bound. ``visible``: the columns as the text has
    them, each with whether it is one of these. ``listed``: the names that its alias is printed with, the
    first ``needed`` of them because they differ from what they would be; ``brief``: no others are printed, of
    a function whose row type has got columns since. ``merged``: names after USING.
    """

    name: str = ""
    columns: list[str | None] = field(default_factory=list)
    fresh: int = 0
    visible: list[tuple[str, bool]] = field(default_factory=list)
    listed: bool = False
    brief: bool = False
    needed: int = 0
    merged: list[str] = field(default_factory=list)
    above: tuple[str, ...] = ()


@dataclass(slots=True)
class LevelNames:
    """The names of one query level: by range, and by number of join."""

    ranges: list[Names]
    joins: dict[int, Names]
    unlike: list[str] = field(default_factory=list)
    unique: bool = False


def names_of(
    ranges: Sequence[Range], from_: Sequence[FromItem], outer: Collection[str], *, stored: bool = False
) -> LevelNames:
    """Return the names of a level inside queries whose ranges are called ``outer``; ``stored``: as stored
    texts have them.
    """
    made = LevelNames(ranges=[Names() for _ in ranges], joins={})
    joins = [item for tree in from_ for item in _joins(tree)]
    for join in joins:
        made.joins[join.written.number] = Names()
    _name_items(made, ranges, joins, outer, stored=stored)
    made.unique = any(not w.alias and any(w.computed) for w in (join.written for join in joins))
    for tree in from_:
        _merge(made, ranges, tree, ())
    for item, names in zip(ranges, made.ranges, strict=True):
        _name_columns(made, item, names)
    for join in joins:
        _name_joined(made, join)
    return made


def _joins(item: FromItem) -> Iterator[Join]:
    """Yield joins, inner ones first."""
    if isinstance(item, Join):
        yield from _joins(item.left)
        yield from _joins(item.right)
        yield item


def _last_range(item: FromItem) -> int:
    while isinstance(item, Join):
        item = item.right
    return item.range


def _name_items(
    made: LevelNames, ranges: Sequence[Range], joins: Sequence[Join], outer: Collection[str], *, stored: bool
) -> None:
    taken = {shown(name) for name in outer} if stored else {*outer}

    def one_of(wanted: str) -> str:
        name = unlike(wanted, taken)
        taken.add(name)
        return name

    def of_range(item: Range) -> str:
        name = one_of(item.alias)
        if not stored or not _is_named(item):
            return name
        number = 0 if name == item.alias else int(name.rpartition("_")[2])
        return Numbered(item.alias, number, item.written.aliased).stored

    after: dict[int, list[Join]] = {}
    for join in joins:
        after.setdefault(_last_range(join), []).append(join)
    for index, item in enumerate(ranges):
        made.ranges[index].name = of_range(item)
        for join in after.get(index, ()):
            if join.written.alias:
                made.joins[join.written.number].name = one_of(join.written.alias)


def _is_named(item: Range) -> bool:
    """Tell whether an entry of FROM has a name without an alias: a table's, a view's, that of an item of WITH."""
    return isinstance(item, RelationRange | CteRange) or (
        isinstance(item, SubqueryRange) and item.view is not None
    )


def _names(made: LevelNames, item: FromItem) -> Names:
    return made.joins[item.written.number] if isinstance(item, Join) else made.ranges[item.range]


def _width(made: LevelNames, ranges: Sequence[Range], item: FromItem) -> int:
    """Return how many columns an item had when it was bound."""
    if isinstance(item, RangeRef):
        return len(ranges[item.range].columns) - ranges[item.range].written.fresh
    sides = _width(made, ranges, item.left) + _width(made, ranges, item.right)
    return sides - len(item.written.merged)


def _places(written: JoinWritten, left: int, right: int) -> list[tuple[int | None, int | None]]:
    """Return where each column of a join comes from, by position on its left and right side: merged ones, the
    left's, the right's.
    """
    lefts = {one for one, _ in written.merged}
    rights = {other for _, other in written.merged}
    return [
        *written.merged,
        *((place, None) for place in range(left) if place not in lefts),
        *((None, place) for place in range(right) if place not in rights),
    ]


def _push(names: Names, place: int | None, name: str) -> None:
    if place is not None:
        names.columns += [None] * (place + 1 - len(names.columns))
        names.columns[place] = name


def _merge(made: LevelNames, ranges: Sequence[Range], item: FromItem, above: tuple[str, ...]) -> None:
    """Name the columns that joins merge, outer joins first."""
    if isinstance(item, RangeRef):
        return
    written = item.written
    own, left, right = _names(made, item), _names(made, item.left), _names(made, item.right)
    places = _places(written, _width(made, ranges, item.left), _width(made, ranges, item.right))
    if not written.alias:
        for name, (one, other) in zip(own.columns, places, strict=False):
            if name is not None:
                _push(left, one, name)
                _push(right, other, name)
    for place, (name, (one, other)) in enumerate(zip(written.using, written.merged, strict=True)):
        chosen = own.columns[place] if place < len(own.columns) else None
        if chosen is None:
            aliased = written.alias and place < len(written.columns)
            chosen = _unlike(made, own, written.columns[place] if aliased else name)
            if made.unique:
                made.unlike.append(chosen)
            _push(own, place, chosen)
        own.merged.append(chosen)
        above = (*above, chosen)
        _push(left, one, chosen)
        _push(right, other, chosen)
    left.above = right.above = above
    _merge(made, ranges, item.left, above)
    _merge(made, ranges, item.right, above)


def _unlike(made: LevelNames, names: Names, wanted: str) -> str:
    """Return ``wanted``, or else with a number, so that no column of the range has that name, nor one that
    USING merges above it.
    """
    return unlike(wanted, {*names.columns, *(name for name, _ in names.visible), *made.unlike, *names.above})


def _name_columns(made: LevelNames, item: Range, names: Names) -> None:
    names.columns += [None] * (len(item.columns) - len(names.columns))
    names.fresh = item.written.fresh
    own = item.written.own or tuple([column.name for column in item.columns])
    changed = False
    for place in item.written.order or range(len(own)):
        column, called = item.columns[place], own[place]
        if not called:
            names.columns[place] = ""
            continue
        name = names.columns[place]
        if name is None:
            name = names.columns[place] = _unlike(made, names, column.name)
        names.visible.append((name, place >= len(item.columns) - names.fresh))
        if name != called:
            changed = True
            names.needed = len(names.visible)
        if place < item.written.named:
            names.needed = len(names.visible)
    if isinstance(item, FunctionRange):
        names.listed = names.brief = True
        names.needed = _last_named(item, names)
    elif isinstance(item, RelationRange) or (isinstance(item, SubqueryRange) and item.view is not None):
        names.listed = changed
    else:
        names.listed = changed or item.written.named > 0


def _last_named(item: FunctionRange, names: Names) -> int:
    """Return how many columns the text has up to the last one that it had when it was written."""
    old = len(item.columns) - item.written.fresh - item.written.unnamed
    shown = [place for place in item.written.order or range(len(item.columns)) if names.columns[place]]
    return max((count for count, place in enumerate(shown, 1) if place < old), default=0)


def _name_joined(made: LevelNames, join: Join) -> None:
    """Name a join's columns, which are those of its sides unless it has an alias."""
    written = join.written
    names, left, right = _names(made, join), _names(made, join.left), _names(made, join.right)
    places = _places(written, len(left.columns) - left.fresh, len(right.columns) - right.fresh)
    names.columns += [None] * (len(places) - len(names.columns))
    changed = False
    differing: set[int] = set()
    for place in range(len(written.merged), len(places)):
        one, other = places[place]
        below = left.columns[one] if one is not None else right.columns[other or 0]
        if below is None:
            raise AssertionError("a column of a join is of neither side")
        name = names.columns[place]
        if not below or not written.alias:
            names.columns[place] = below
            continue
        if name is None:
            aliased = place < len(written.columns)
            name = names.columns[place] = _unlike(made, names, written.columns[place] if aliased else below)
        if name != below:
            changed = True
            differing.add(place)
    _see(names, [(place, False) for place in range(len(written.merged))], differing, written)
    place = len(written.merged)
    for side, merged in ((left, {m[0] for m in written.merged}), (right, {m[1] for m in written.merged})):
        at = 0
        for below, fresh in side.visible:
            if not fresh:
                while side.columns[at] == "":
                    at += 1
                at += 1
                if at - 1 in merged:
                    continue
                while names.columns[place] == "":
                    place += 1
                _see(names, [(place, False)], differing, written)
                place += 1
                continue
            name = _unlike(made, names, below) if written.alias else below
            names.visible.append((name, True))
            if name != below:
                changed = True
                names.needed = len(names.visible)
    names.listed = changed and bool(written.alias)


def _see(
    names: Names, columns: Sequence[tuple[int, bool]], differing: set[int], written: JoinWritten
) -> None:
    for place, fresh in columns:
        names.visible.append((names.columns[place] or "", fresh))
        if place in differing or place < len(written.columns):
            names.needed = len(names.visible)


def is_called_otherwise(item: Range, names: Names) -> bool:
    """Tell whether an entry of FROM has to be printed with an alias."""
    if item.written.aliased or names.listed:
        return True
    if isinstance(item, RelationRange | CteRange):
        return names.name != item.name
    if isinstance(item, SubqueryRange) and item.view is not None:
        return names.name != item.view[2]
    return True
