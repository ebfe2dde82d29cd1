"""Which partition a row belongs to: bounds, how they compare, and the way from a row to its partition.

    PARTITION BY RANGE (a, b)         key of a row (3, 'x')
      FROM (1, MINVALUE) TO (5, 'm')    ((0, 1), (-1,))  <=  ((0, 3), (0, 'x'))  <  ((0, 5), (0, 'm'))
    PARTITION BY LIST (b)             a dictionary of values
    PARTITION BY HASH (a)             hash of the key modulo the modulus, as PostgreSQL computes it
    DEFAULT                           what no other has; rows with NULL in a range key, too

A place in a range's bound is ``(-1,)`` for MINVALUE, ``(1,)`` for MAXVALUE, else ``(0, value)``, so tuples
compare as bounds do. Values compare as the type's default btree class does
(``planner.functions.values.compare``).
"""

from __future__ import annotations

import functools
import itertools
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pgwire.codecs.registry import text_input, text_output
from pgwire.codecs.settings import STORED_TEXT, CodecSettings
from pgwire.give_way import opening, paced, paced_sorted
from planner.base.errors import SqlError
from planner.catalog import Catalog, PartitionBound, PartitionKey, RelationDef
from planner.conversion.ports import KEY_EXPR
from planner.deparse.expr import quote_literal
from planner.evaluate import Env, Layout, compile_expr
from planner.facts import BOOL, INT4, NUMERIC
from planner.functions.values.compare import hash_key, sort_key
from planner.functions.values.hash_values import hash_of
from planner.indexing.own_hash import Hasher, own_hasher
from planner.query import Expr, Var
from planner.types import SqlType
from planner.types.domains import base_oid
from planner.types.facts import FIRST_USER_OID

Place: TypeAlias = tuple[Any, ...]
Row: TypeAlias = tuple[Any, ...]

KEPT_BOUNDS: Final = 20_000
"""Bounds of which the values are kept: they are asked for again with every change of a table's partitions."""

_DIVISION: Final = "partitions"
_HASH_SEED: Final = 0x7A5B22367996DCFD
_MASK: Final = (1 << 64) - 1
_INFINITE: Final = {-1: "MINVALUE", 1: "MAXVALUE"}


def key_text(value: Any, type_: SqlType) -> str:
    """Return a value as bounds keep it."""
    return text_output(base_oid(type_.oid), value, STORED_TEXT)


def key_value(text: str, type_: SqlType) -> Any:
    """Return the value that ``key_text`` was given."""
    return text_input(base_oid(type_.oid), text, -1, STORED_TEXT)


def _sortable(type_: SqlType) -> Callable[[Any], Any]:
    return sort_key(base_oid(type_.oid)) or (lambda value: value)


def _places(texts: Sequence[str | None], infinite: Sequence[int], types: Sequence[SqlType]) -> Place:
    if any(type_.oid >= FIRST_USER_OID for type_ in types):  # labels may come between others
        return _read_places(texts, infinite, types)
    return _kept_places(tuple(texts), tuple(infinite), tuple(types))


def _read_places(texts: Sequence[str | None], infinite: Sequence[int], types: Sequence[SqlType]) -> Place:
    return tuple(
        (way,) if way else (0, _sortable(type_)(key_value(text or "", type_)))
        for text, way, type_ in zip(texts, infinite, types, strict=True)
    )


_kept_places = functools.lru_cache(maxsize=KEPT_BOUNDS)(_read_places)


def range_of(bound: PartitionBound, key: PartitionKey) -> tuple[Place, Place]:
    """Return the lower bound of a range partition, which belongs to it, and the upper one, which does not."""
    return (
        _places(bound.values, bound.infinite, key.types),
        _places(bound.upper, bound.upper_infinite, key.types),
    )


def list_of(bound: PartitionBound, key: PartitionKey) -> Sequence[Hashable]:
    """Return what the values of a list partition are looked up by; None stands for NULL."""
    return (_read_values if key.types[0].oid >= FIRST_USER_OID else _kept_values)(bound.values, key.types[0])


def _read_values(texts: tuple[str | None, ...], type_: SqlType) -> Sequence[Hashable]:
    made = hash_key(base_oid(type_.oid))
    values = [None if text is None else key_value(text, type_) for text in texts]
    return tuple([value if value is None or made is None else made(value) for value in values])


_kept_values = functools.lru_cache(maxsize=KEPT_BOUNDS)(_read_values)


def _least(bound: PartitionBound, type_: SqlType) -> Place:
    """Return what the partition for some values is sorted by: the least of them that is not NULL."""
    return (_read_least if type_.oid >= FIRST_USER_OID else _kept_least)(bound.values, type_)


def _read_least(texts: tuple[str | None, ...], type_: SqlType) -> Place:
    sort = _sortable(type_)
    values = [sort(key_value(text, type_)) for text in texts if text is not None]
    return (0, 0, min(values)) if values else (0, 1)


_kept_least = functools.lru_cache(maxsize=KEPT_BOUNDS)(_read_least)


def sorted_partitions(parent: RelationDef, partitions: Sequence[RelationDef]) -> tuple[RelationDef, ...]:
    """Return partitions in the order of their bounds, the default one last."""
    if not partitions:
        return ()
    key = parent.divided_by

    def order(item: RelationDef) -> tuple[Any, ...]:
        bound = item.bound
        if bound is None or bound.strategy == "d":
            return (1,)
        if bound.strategy == "h":
            return 0, bound.modulus, bound.remainder
        if bound.strategy == "r":
            return 0, range_of(bound, key)[0]
        return _least(bound, key.types[0])

    return tuple(paced_sorted(partitions, order))


# --- hashing ----------------------------------------------------------------------------------------


def hashes(type_: SqlType) -> bool:
    """Tell whether values of a type can be hashed as PostgreSQL hashes them."""
    return hash_of(type_.oid) is not None


def row_hash(values: Sequence[Any], types: Sequence[SqlType], own: Sequence[Hasher | None] = ()) -> int:
    """Return the hash of a key, 0 .. 2^64 - 1 (compute_partition_hash_value); NULLs do not count. ``own``:
    what hashes some of the values in place of their types.
    """
    found = 0
    for place, (value, type_) in enumerate(zip(values, types, strict=True)):
        if value is None:
            continue
        by = own[place] if own else None
        if by is not None:
            number = by(value)
        else:
            compute = hash_of(type_.oid)
            if compute is None:
                continue
            high, low = compute(value, _HASH_SEED)
            number = high << 32 | low
        found ^= (number + 0x49A0F4DD15E5A8E3 + (found << 54) + (found >> 7)) & _MASK
    return found


# --- from rows to partitions ------------------------------------------------------------------------


@dataclass(slots=True)
class Divided:
    """The partitions of one table, ready to be searched. ``order``: by their bounds; ``default`` as well,
    ``places``: where each stands, by oid.
    """

    parent: RelationDef
    order: tuple[RelationDef, ...]
    default: RelationDef | None
    key: PartitionKey
    places: dict[int, int]
    _uppers: list[Place]
    _ranges: list[tuple[Place, RelationDef]]
    _lists: dict[Any, RelationDef]
    _hashed: list[tuple[int, int, RelationDef]]
    _parts: list[Callable[[Row, Env], Any]] | None = None
    _own: Sequence[Hasher | None] | SqlError = ()

    @classmethod
    def of(
        cls, parent: RelationDef, partitions: Sequence[RelationDef], catalog: Catalog | None = None
    ) -> Divided:
        """Return the partitions of ``parent``, each with its bound."""
        key = parent.divided_by
        order = sorted_partitions(parent, partitions)
        made = cls(parent, order, None, key, {p.oid: at for at, p in enumerate(order)}, [], [], {}, [])
        for item in paced(order):
            bound = item.bound
            if bound is None:
                raise AssertionError("a partition has no bound")
            if bound.strategy == "d":
                made.default = item
            elif bound.strategy == "r":
                lower, upper = range_of(bound, key)
                made._uppers.append(upper)
                made._ranges.append((lower, item))
            elif bound.strategy == "l":
                made._lists.update((value, item) for value in list_of(bound, key))
            else:
                made._hashed.append((bound.modulus, bound.remainder, item))
        if key.own_classes and catalog is not None:
            made._own = _hashers(key, catalog)
        return made

    def hash(self, values: Row) -> int:
        """Return the hash of a key. Raises SqlError where a function of one's own does, or is not there any more."""
        if isinstance(self._own, SqlError):
            raise self._own.copy()
        return row_hash(values, self.key.types, self._own)

    def sorted(self, oids: Iterable[int]) -> list[RelationDef]:
        """Return some of the partitions in their order."""
        return [self.order[at] for at in sorted([self.places[oid] for oid in oids])]

    def key_of(self, row: Row, env: Env, catalog: Catalog) -> Row:
        """Return the partition key of a row of the parent, which is as long as its columns."""
        if self._parts is None:
            self._parts = _key_functions(self.parent, catalog)
        return tuple([part(row, env) for part in self._parts])

    def find(self, values: Row) -> RelationDef | None:
        """Return the partition for a key, None where there is none."""
        strategy = self.key.strategy
        if strategy == "l":
            value = values[0]
            made = hash_key(base_oid(self.key.types[0].oid))
            found = self._lists.get(value if made is None or value is None else made(value))
            return found or self.default
        if strategy == "h":
            number = self.hash(values)
            return next((item for modulus, rest, item in self._hashed if number % modulus == rest), None)
        if None in values:
            return self.default
        place = tuple(
            (0, _sortable(type_)(value)) for value, type_ in zip(values, self.key.types, strict=True)
        )
        at = bisect_right(self._uppers, place)
        if at < len(self._ranges) and self._ranges[at][0] <= place:
            return self._ranges[at][1]
        return self.default

    def overlapping(
        self, lower: Place | None, upper: Place | None, *, above: bool = False, below: bool = False
    ) -> list[RelationDef]:
        """Return the partitions that may have keys whose first places are from ``lower`` to ``upper``, in the
        order of bounds.

        None: without a bound on that side. Both are prefixes: as many places as are known. ``above``,
        ``below``: without ``lower``, ``upper`` itself. The default partition is among them unless the others
        have all such keys.
        """
        chosen: list[tuple[Place, Place, RelationDef]] = []
        for (low, item), high in zip(self._ranges, self._uppers, strict=True):
            if lower is not None:
                end = high[: len(lower)]
                if end < lower or (end == lower and (above or len(lower) == len(high))):
                    continue
            if upper is not None:
                start = low[: len(upper)]
                if start > upper or (start == upper and below):
                    continue
            chosen.append((low, high, item))
        found = [item for _, _, item in chosen]
        if self.default is not None and not _covers(chosen, lower, upper, below=below):
            found.append(self.default)
        return found


def _covers(
    chosen: Sequence[tuple[Place, Place, RelationDef]],
    lower: Place | None,
    upper: Place | None,
    *,
    below: bool,
) -> bool:
    """Tell whether ranges of one column, in order, have all keys from ``lower`` to ``upper``."""
    if not chosen or len(chosen[0][0]) > 1:
        return False
    if chosen[0][0] > ((-1,),) and (lower is None or chosen[0][0] > lower):
        return False
    last = chosen[-1][1]
    if last < ((1,),) and (upper is None or last < upper or (last == upper and not below)):
        return False
    return all(one[1] == after[0] for one, after in itertools.pairwise(chosen))


def key_exprs(parent: RelationDef, catalog: Catalog) -> list[Expr]:
    """Return the partition key of a table as expressions over its columns."""
    key = parent.divided_by
    return [
        Var(type=parent.column(attnum).type, range=0, attnum=attnum, name=parent.column(attnum).name)
        if attnum
        else KEY_EXPR.call(text, parent, catalog)
        for attnum, text in zip(key.attnums, key.expressions, strict=True)
    ]


def _key_functions(parent: RelationDef, catalog: Catalog) -> list[Callable[[Row, Env], Any]]:
    layout = Layout(columns={(0, c.attnum): c.attnum - 1 for c in parent.live})
    return [compile_expr(expr, layout) for expr in key_exprs(parent, catalog)]


def divided(parent: RelationDef, catalog: Any) -> Divided:
    """Return the partitions of a table under a catalog (``CatalogSnapshot``), kept with it."""
    kept: dict[Any, Any] = catalog.derived
    key = (_DIVISION, parent.oid, parent.version)
    found: Divided | None = kept.get(key)
    if found is None:
        found = kept[key] = Divided.of(parent, catalog.partitions_of(parent.oid), catalog)
    return found


def _hashers(key: PartitionKey, catalog: Catalog) -> Sequence[Hasher | None] | SqlError:
    """Return what hashes the values of a key; what is wrong with it, which is told when a row is looked for,
    not to who drops the table.
    """
    try:
        return [
            own_hasher(catalog, oid, type_, _HASH_SEED) if oid else None
            for oid, type_ in zip(key.own_classes, key.types, strict=True)
        ]
    except SqlError as error:
        return error


def hasher_of(catalog: Catalog, class_oid: int, type_: SqlType) -> Hasher:
    """Return what hashes values of a key by an operator class of one's own. Raises as ``own_hasher``."""
    return own_hasher(catalog, class_oid, type_, _HASH_SEED)


def is_division(key: object) -> bool:
    """Tell whether a catalog keeps under ``key`` how a table is divided, which stays so until it, or a
    partition, is changed.
    """
    return isinstance(key, tuple) and key[:1] == (_DIVISION,)


def leaves(parent: RelationDef, catalog: Catalog) -> list[RelationDef]:
    """Return the tables that have the rows of a partitioned table, in the order of bounds."""
    found: list[RelationDef] = []
    for item in divided(parent, catalog).order:
        found += leaves(item, catalog) if item.kind == "p" else [item]
    return found


@opening
def descendants(parent: RelationDef, catalog: Catalog) -> list[RelationDef]:
    """Return the partitions of a table at all levels, each before its own."""
    found: list[RelationDef] = []
    for item in paced(divided(parent, catalog).order) if parent.kind == "p" else ():
        found.append(item)
        if item.kind == "p":
            found += descendants(item, catalog)
    return found


def ancestors(relation: RelationDef, catalog: Catalog) -> list[RelationDef]:
    """Return the tables that a partition is a part of, the nearest first."""
    found: list[RelationDef] = []
    above = relation.partition_of
    while above:
        parent = catalog.relation_by_oid(above)
        if parent is None:
            break
        found.append(parent)
        above = parent.partition_of
    return found


def column_map(parent: RelationDef, child: RelationDef) -> dict[int, int]:
    """Return the attnums of a partition's columns by those of the same columns of its parent."""
    named = {c.name: c.attnum for c in child.live}
    return {c.attnum: named[c.name] for c in parent.live}


# --- new bounds -------------------------------------------------------------------------------------


def check_bound(
    name: str, bound: PartitionBound, parent: RelationDef, partitions: Sequence[RelationDef], spans: Any
) -> None:
    """Raise SqlError 42P17 where a new partition's bound is empty or has rows of another one.

    ``spans``: where the bound's values stand (``planner.bind.define.table.partition.BoundSpans``).
    """
    key = parent.divided_by
    with_bounds = [(item, item.bound) for item in partitions if item.bound is not None]
    if bound.strategy == "d":
        for item, other in with_bounds:
            if other.strategy == "d":
                raise SqlError(
                    "42P17",
                    f'partition "{name}" conflicts with existing default partition "{item.name}"',
                    span=spans.whole,
                )
        return
    if bound.strategy == "h":
        _check_hash(name, bound, with_bounds, spans)
        return
    if bound.strategy == "l":
        values = list_of(bound, key)
        wanted = frozenset(values)
        taken = {v: item for item, other in with_bounds for v in list_of(other, key) if v in wanted}
        for place, value in enumerate(values):
            if value in taken:
                raise _overlap(name, taken[value], spans.lower[place] if spans.lower else None)
        return
    lower, upper = range_of(bound, key)
    if lower >= upper:
        raise SqlError(
            "42P17",
            f'empty range bound specified for partition "{name}"',
            detail=f"Specified lower bound {_shown(bound.values, bound.infinite, parent)} is greater than or equal to "
            f"upper bound {_shown(bound.upper, bound.upper_infinite, parent)}.",
            span=spans.lower[0] if spans.lower else None,
        )
    for item, other in with_bounds:
        if other.strategy != "r":
            continue
        low, high = range_of(other, key)
        if lower < high and low < upper:
            at = spans.lower if low <= lower else spans.upper
            raise _overlap(name, item, at[0] if at else None)


def _overlap(name: str, other: RelationDef, span: Any) -> SqlError:
    return SqlError("42P17", f'partition "{name}" would overlap partition "{other.name}"', span=span)


def _check_hash(
    name: str, bound: PartitionBound, others: Sequence[tuple[RelationDef, PartitionBound]], spans: Any
) -> None:
    ordered = sorted(others, key=lambda pair: (pair[1].modulus, pair[1].remainder))
    message = "every hash partition modulus must be a factor of the next larger modulus"
    below = [pair for pair in ordered if pair[1].modulus <= bound.modulus]
    above = [pair for pair in ordered if pair[1].modulus > bound.modulus]
    if below and bound.modulus % below[-1][1].modulus:
        item, other = below[-1]
        raise SqlError(
            "42P17",
            message,
            detail=f"The new modulus {bound.modulus} is not divisible by {other.modulus}, the modulus of existing "
            f'partition "{item.name}".',
        )
    if above and above[0][1].modulus % bound.modulus:
        item, other = above[0]
        raise SqlError(
            "42P17",
            message,
            detail=f"The new modulus {bound.modulus} is not a factor of {other.modulus}, the modulus of existing "
            f'partition "{item.name}".',
        )
    for item, other in ordered:
        smaller = min(bound.modulus, other.modulus)
        if bound.remainder % smaller == other.remainder % smaller:
            raise _overlap(name, item, spans.whole)


# --- texts ------------------------------------------------------------------------------------------


def _literal(text: str, type_: SqlType, settings: CodecSettings) -> str:
    """Return a value as bounds print it: a constant without its type (get_const_expr), bare where that reads as one
    of the type.
    """
    oid = base_oid(type_.oid)
    if settings.styles != STORED_TEXT.styles:
        text = text_output(oid, key_value(text, type_), settings)
    if type_.oid == BOOL:
        return {"t": "true", "f": "false"}[text]
    bare = (type_.oid == INT4 and not text.startswith("-")) or (
        type_.oid == NUMERIC and text[:1].isdigit() and any(c in "eE." for c in text)
    )
    return text if bare else quote_literal(text)


def _declared(parent: RelationDef) -> tuple[SqlType, ...]:
    """Return the types of a partitioned table's key, domains too."""
    key = parent.divided_by
    return tuple(
        [parent.column(a).declared if a else type_ for a, type_ in zip(key.attnums, key.types, strict=True)]
    )


def _shown(
    texts: Sequence[str | None],
    infinite: Sequence[int],
    parent: RelationDef,
    settings: CodecSettings = STORED_TEXT,
) -> str:
    shown = [
        _INFINITE[way] if way else _literal(text or "", type_, settings)
        for text, way, type_ in zip(texts, infinite, _declared(parent), strict=True)
    ]
    return f"({', '.join(shown)})"


def bound_text(bound: PartitionBound, parent: RelationDef, settings: CodecSettings = STORED_TEXT) -> str:
    """Return the bound of a partition of ``parent`` as ``pg_get_expr(relpartbound)`` shows it to a reader with these
    settings.
    """
    if bound.strategy == "d":
        return "DEFAULT"
    if bound.strategy == "h":
        return f"FOR VALUES WITH (modulus {bound.modulus}, remainder {bound.remainder})"
    if bound.strategy == "l":
        (type_,) = _declared(parent)
        shown = ("NULL" if text is None else _literal(text, type_, settings) for text in bound.values)
        return f"FOR VALUES IN ({', '.join(shown)})"
    lower = _shown(bound.values, bound.infinite, parent, settings)
    return f"FOR VALUES FROM {lower} TO {_shown(bound.upper, bound.upper_infinite, parent, settings)}"
