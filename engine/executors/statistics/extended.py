"""Figures of extended statistics (CREATE STATISTICS), from a sample of rows, as PostgreSQL's ANALYZE computes
them (manual 76.2).

    rows (a, b, c)   ndistinct       {"1, 2": 11, "1, 2, 3": 40}            different combinations, NULLs alike
                     dependencies    {"1 => 2": 1.000000}                    the share of rows whose b follows from their a
                     mcv             the combinations met most, how often, and how often if columns did not depend on each other
                     expressions     NULLs, width and different values of each single expression

A sample that is the whole table gives what PostgreSQL finds of it; of a larger table both have a sample.
Values are compared by keys (``Column.key``). Loops give way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Final, TypeAlias

from engine.base.statistics_records import ExpressionRecord, ExtendedRecord, McvItem
from pgwire.give_way import paced, paced_iter

SAMPLE_ROWS: Final = 300
"""Rows of a sample for each unit of the statistics target."""
WIDEST: Final = 1024
"""Characters of a value beyond which a row is left out of the most common ones."""
MOST_COLUMNS: Final = 8


@dataclass(frozen=True, slots=True)
class Column:
    """What is over: its number in the texts, its type, how values compare and print, and their width in bytes."""

    number: int
    oid: int
    key: Callable[[Any], Any]
    text: Callable[[Any], str]
    width: Callable[[Any], int]


def extended(
    kinds: str,
    columns: Sequence[Column],
    rows: Sequence[tuple[Any, ...]],
    total: int,
    target: int,
    *,
    inherited: bool,
) -> ExtendedRecord:
    """Return the figures of a sample of ``rows`` of ``total`` rows; there is one at least.

    ``kinds``: letters of pg_statistic_ext.stxkind. ``target``: how many combinations there may be among the
    most common.
    """
    keyed = [
        tuple(None if v is None else c.key(v) for v, c in zip(row, columns, strict=True))
        for row in paced(rows, 64)
    ]
    expressions = [place for place, column in enumerate(columns) if column.number < 0]
    return ExtendedRecord(
        types=tuple(column.oid for column in columns),
        inherited=inherited,
        ndistinct=_ndistinct(columns, keyed, total) if "d" in kinds else None,
        dependencies=_dependencies(columns, rows, keyed) if "f" in kinds else None,
        mcv=_most_common(columns, rows, keyed, total, target) if "m" in kinds else None,
        expressions=tuple(_expression(columns[place], place, rows, keyed, total) for place in expressions)
        if "e" in kinds
        else None,
    )


Codes: TypeAlias = list[int]
"""Of each row a number that stands for its values in some columns: the same for the same ones."""


def _codes(values: Iterable[Hashable]) -> Codes:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in paced_iter(values)]


def _of_columns(keyed: Sequence[tuple[Any, ...]], width: int) -> list[Codes]:
    return [_codes(row[place] for row in keyed) for place in range(width)]


def _combined(columns: Sequence[Codes], most: int) -> Iterator[tuple[tuple[int, ...], Codes]]:
    """Yield the combinations of at most so many columns with their codes, each made of one that is shorter by
    a column.
    """
    for place, codes in enumerate(columns):
        yield from _longer(columns, most, (place,), codes)


def _longer(
    columns: Sequence[Codes], most: int, places: tuple[int, ...], codes: Codes
) -> Iterator[tuple[tuple[int, ...], Codes]]:
    yield places, codes
    for place in range(places[-1] + 1, len(columns)) if len(places) < most else ():
        yield from _longer(columns, most, (*places, place), _codes(zip(codes, columns[place], strict=True)))


def _estimated(total: int, sampled: int, distinct: int, single: int) -> float:
    """Return how many different values all rows have, from a sample with ``distinct`` ones, ``single`` of
    them met once (Haas and Stokes).
    """
    numerator = float(sampled) * distinct
    denominator = (sampled - single) + float(single) * sampled / total
    return float(int(min(max(numerator / denominator, distinct), total) + 0.5))


def _ndistinct(columns: Sequence[Column], keyed: Sequence[tuple[Any, ...]], total: int) -> str:
    found: dict[tuple[int, ...], int] = {}
    for places, codes in _combined(_of_columns(keyed, len(columns)), len(columns)):
        if len(places) > 1:
            counts = Counter(paced_iter(codes))
            single = sum(count == 1 for count in counts.values())
            found[places] = int(_estimated(total, len(keyed), len(counts), single))
    shown = (f'"{_names(columns, places)}": {found[places]}' for places in sorted(found, key=_in_size))
    return "{" + ", ".join(shown) + "}"


def _in_size(places: Sequence[int]) -> tuple[int, Sequence[int]]:
    return len(places), places


def _names(columns: Sequence[Column], places: Sequence[int]) -> str:
    return ", ".join(str(columns[place].number) for place in places)


def _wide(columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> list[frozenset[int]]:
    """Return of each row the places of values that are too wide to be looked at."""
    return [
        frozenset(n for n, value in enumerate(row) if value is not None and columns[n].width(value) > WIDEST)
        for row in paced(rows, 64)
    ]


def _dependencies(
    columns: Sequence[Column], rows: Sequence[tuple[Any, ...]], keyed: Sequence[tuple[Any, ...]]
) -> str | None:
    wide = _wide(columns, rows)
    has_wide = frozenset(place for one in wide for place in one)
    own = _of_columns(keyed, len(columns))
    found: dict[tuple[int, ...], float] = {}
    for known, codes in _combined(own, len(columns) - 1):
        groups = Counter(paced_iter(codes)) if has_wide.isdisjoint(known) else None
        for place in range(len(columns)):
            if place in known:
                continue
            left, right, counts = codes, own[place], groups
            if counts is None or place in has_wide:
                kept = [out.isdisjoint((*known, place)) for out in paced(wide, 64)]
                left, right = list(compress(left, kept)), list(compress(right, kept))
                counts = Counter(paced_iter(left))
            pairs = set(paced_iter(zip(left, right, strict=True)))
            ways = Counter(group for group, _ in paced_iter(pairs))
            follows = sum(count for group, count in counts.items() if ways[group] == 1)
            if follows:
                found[*known, place] = follows / len(keyed)
    shown = (
        f'"{_names(columns, places[:-1])} => {columns[places[-1]].number}": {found[places]:.6f}'
        for places in sorted(found, key=_in_size)
    )
    return "{" + ", ".join(shown) + "}" if found else None


def _most_common(
    columns: Sequence[Column],
    rows: Sequence[tuple[Any, ...]],
    keyed: Sequence[tuple[Any, ...]],
    total: int,
    target: int,
) -> tuple[McvItem, ...] | None:
    sampled = len(keyed)
    shown: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    counts: Counter[tuple[Any, ...]] = Counter()
    for key, row in zip(keyed, paced(rows, 64), strict=True):
        if all(
            value is None or column.width(value) <= WIDEST for value, column in zip(row, columns, strict=True)
        ):
            counts[key] += 1
            shown.setdefault(key, row)
    groups = sorted(sorted(counts, key=_in_order), key=lambda key: -counts[key])
    kept = groups[:target]
    if len(groups) > len(kept):
        least = _least_count(sampled, total)
        kept = kept[: next((n for n, key in enumerate(kept) if counts[key] < least), len(kept))]
    if not kept:
        return None
    own = [Counter[Any]() for _ in columns]
    for key, count in counts.items():
        for place, value in enumerate(key):
            own[place][value] += count
    items: list[McvItem] = []
    for key in kept:
        base = 1.0
        for place, value in enumerate(key):
            base *= own[place][value] / sampled
        texts = (None if v is None else c.text(v) for v, c in zip(shown[key], columns, strict=True))
        items.append(McvItem(tuple(texts), counts[key] / sampled, base))
    return tuple(items)


def _in_order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((value is None, value if value is not None else 0) for value in key)


def _least_count(sampled: int, total: int) -> float:
    """Return how often a combination has to be met for its share to be known well enough."""
    numerator = float(sampled) * (total - sampled)
    denominator = total - sampled + 0.04 * sampled * (total - 1)
    return numerator / denominator if denominator else 0.0


def _expression(
    column: Column, place: int, rows: Sequence[tuple[Any, ...]], keyed: Sequence[tuple[Any, ...]], total: int
) -> ExpressionRecord:
    sampled = len(rows)
    counts = Counter(row[place] for row in paced(keyed, 256) if row[place] is not None)
    present = sum(counts.values())
    width = sum(column.width(row[place]) for row in paced(rows, 256) if row[place] is not None)
    if not present:
        return ExpressionRecord(1.0, 0, 0.0)
    single = sum(count == 1 for count in counts.values())
    null_share = (sampled - present) / sampled
    if single == len(counts):
        distinct = -1.0 * (1.0 - null_share)
    elif not single:
        distinct = float(len(counts))
    else:
        share = total * (1.0 - null_share)
        numerator = float(present) * len(counts)
        denominator = (present - single) + single * (present / share)
        distinct = float(int(min(max(numerator / denominator, len(counts)), share) + 0.5))
    if distinct > 0.1 * total:
        distinct = -distinct / total
    return ExpressionRecord(null_share, round(width / present), distinct)
