"""Where rows come from: base tables by key or by scan (others:
``engine.executors.index.access.virtual_sources``, ``engine.executors.index.computed``).

A source gives the rows of one FROM entry. ``fetch(outer, env)`` starts it; ``outer`` is the row of what is joined
already, for sources that depend on it (an index lookup by a column of another table, a LATERAL sub-select).

    columns   (range, attnum) -> position in the source's rows
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from engine.base.explain.tree import Measured
from engine.base.pieces import PART_BYTES
from engine.catalog.tids import tid_of
from engine.executors.index.access.choice import Access, in_order_of_cost
from engine.executors.index.nodes import Node, chunks
from engine.executors.index.sorting import OrderItem, order_items, sort_rows
from engine.executors.index.state import Pipe, Rows, evaluate, evaluate_rows, stepwise, waited
from engine.executors.watched import watching
from pgwire.codecs.numeric import NAN
from pgwire.codecs.sizes import row_bytes
from pgwire.give_way import paced
from pgwire.release import release
from planner.catalog import RelationDef
from planner.evaluate import (
    Env,
    Layout,
    RowFunction,
    compile_expr,
    compile_filter,
    compile_row,
    flat,
    record_maker,
)
from planner.facts import INT2, INT4, INT8, TEXT, UUID
from planner.query import (
    CMAX,
    CMIN,
    CTID,
    ROW_ID,
    ROW_VERSION,
    TABLEOID,
    WHOLE_ROW,
    XMAX,
    XMIN,
    Expr,
    Leaf,
    Range,
    RelationRange,
    RowMark,
    Select,
    Var,
)
from planner.query.walk import walk
from txn.base.types import IndexId, KeyRange, Row, RowId, ShardId, StoredRow, Timestamp
from txn.base.writers import NUMBER_MASK
from txn.transaction.scan_watch import Predicate

Columns = dict[tuple[int, int], int]
_T = TypeVar("_T")


def twin(part: _T) -> _T:
    """Return a shallow copy of a part of a plan: a thousand are made at once, so it does no more than that takes."""
    made = object.__new__(part.__class__)
    made.__dict__.update(part.__dict__)
    return made


def whole_row(item: Range) -> Callable[[Any], Any]:
    """Return the function from a range's values to its whole-row value."""
    return record_maker(tuple(c.type.oid for c in item.columns), tuple(c.name for c in item.columns))


class Source:
    """A FROM entry. ``dependent`` tells that its rows depend on the row joined so far."""

    dependent = False
    keyed = True  # reached by key, or not a stored table at all
    number = -1  # of its range in the query
    conjuncts: tuple[Expr, ...] = ()  # what the filter tests
    measured: Measured | None = None  # what it does, where somebody wants to know
    unfiltered: Measured | None = None  # likewise, before the filter
    in_turn = ""  # as of the query: its rows are tested when they are asked for

    def __init__(self, columns: Columns, width: int) -> None:
        self.columns = columns
        self.width = width
        self.filter: RowFunction | None = None
        self.guards: tuple[Expr, ...] = ()  # tested before anything else looks at a row

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Start giving rows, unfiltered."""
        raise NotImplementedError

    def fetch(self, outer: Any, e: Env) -> Pipe:
        """Start giving rows that pass the source's own filter."""
        if self.in_turn:
            return self._in_turn(outer, e)
        if self.filter is None:
            return self.rows(outer, e)
        return self._filtered(self.rows(outer, e), e, self.filter)

    def _in_turn(self, outer: Any, e: Env) -> Pipe:
        rows = stepwise(self.rows(outer, e), self.in_turn, e)
        return rows if self.filter is None else self._filtered(rows, e, self.filter)

    def _filtered(self, source: Pipe, e: Env, test: RowFunction) -> Pipe:
        try:
            for item in source:
                if item.__class__ is list:
                    kept = yield from evaluate_rows(test, item, e)
                    yield kept or None
                else:
                    yield item
        finally:
            source.close()

    def restrict(self, conjuncts: Sequence[Expr], layout: Layout) -> None:
        """Keep only rows for which the guards, and then ``conjuncts``, over this source's own columns are TRUE."""
        if self.guards or conjuncts:
            tests = (*in_order_of_cost(self.guards), *in_order_of_cost(conjuncts))
            self.filter = compile_filter(tests, layout)


class SourceNode(Node):
    """A source that depends on nothing, as a node."""

    def __init__(self, source: Source, layout: Layout) -> None:
        super().__init__(layout, source.width)
        self.source = source

    def pipe(self, e: Env) -> Pipe:
        """Give rows."""
        return self.source.fetch((), e)


# --- stored tables ------------------------------------------------------------------------------

Extract = Callable[..., Rows]
"""Makes rows of stored rows; of those whose xmin is read it is also given what tells that (``xmin_in``)."""
ExtractOf = Callable[[int], Extract]
"""Gives the function of a table by its oid, for tables whose rows have the same columns."""

Picker = Callable[[Sequence[Any]], Sequence[Any]]
"""From stored rows to some of them."""

Reading = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
"""How a source asks the transaction for rows: by ``ExecContext.for_update``."""

NOTHING_KNOWN: Mapping[RowFunction, Any] = MappingProxyType({})

PLAIN: Reading = ({}, {}, {})
UPDATED: Reading = (
    {},
    {"for_update": True},
    {"for_update": "no key update"},
)  # the rows are those to be changed
_PEEKED: Reading = ({"peek": True}, {"peek": True}, {"peek": True})


def reading_for(mark: RowMark) -> Reading:
    """Return how rows are read that a locking clause names.

    Rows to be updated are locked at once: to read them under a shared lock first would make two such statements
    deadlock. SKIP LOCKED reads past all locks.
    """
    if mark.wait == "skip":
        return _PEEKED
    if mark.strength in ("update", "no key update"):
        locked = {"for_update": mark.strength}
        return (locked, locked, locked)
    return PLAIN


_SYSTEM = {
    ROW_ID: "s.row_id", TABLEOID: "oid", CTID: "tid_of(s.row_id)",
    ROW_VERSION: "s.begin", XMIN: "xmin(s.begin)", XMAX: "0", CMIN: "0", CMAX: "0",
}  # fmt: skip


MANY: Final = 128
"""Columns of which no code is compiled: that is one call of C."""
MANY_LISTED: Final = 1000
"""Characters of code for one row from which on rows are wide."""
XMIN_VALUES: Final = 40
"""So many values of a row are taken in the time in which its xmin is told."""
VALUES_AT_ONCE: Final = 20_000
"""Values of wide rows that are taken between two looks at the clock."""


def extractor(
    range_: int, relation: RelationDef, needed: Sequence[int], narrow: bool
) -> tuple[Columns, int, ExtractOf]:
    """Return (columns, width, function from stored rows to rows, for the table and others with its columns).

    The stored tuple itself serves when only plain columns are needed and ``narrow`` does not ask for less.
    """
    if not narrow and all(n > 0 for n in needed):
        width = len(relation.columns)
        return {(range_, n): n - 1 for n in needed}, width, lambda _oid: _values
    if len(needed) > MANY and all(n > 0 for n in needed):
        of_values = itemgetter(*(n - 1 for n in needed))

        def taken(found: Sequence[Any]) -> Rows:
            return [of_values(s.values) for s in found]

        in_pieces = _in_pieces(taken, len(needed))
        return {(range_, n): i for i, n in enumerate(needed)}, len(needed), lambda _oid: in_pieces
    parts = []
    for n in needed:
        if n == WHOLE_ROW:
            fields = "".join(f"s.values[{c.attnum - 1}], " for c in relation.live)
            parts.append(f"record(({fields}))")
        elif n > 0:
            parts.append(f"s.values[{n - 1}]")
        else:
            parts.append(_SYSTEM[n])
    listed = "".join(part + ", " for part in parts)
    live = relation.live
    record = record_maker(tuple(c.type.oid for c in live), tuple(c.name for c in live))
    given = "found, xmin" if XMIN in needed else "found"
    function: ExtractOf = eval(
        f"lambda oid: lambda {given}: [({listed}) for s in found]", {"record": record, "tid_of": tid_of}
    )
    columns = {(range_, n): i for i, n in enumerate(needed)}
    width = max(len(needed), len(live))
    if XMIN in needed:  # to tell it takes as long as many values
        return columns, len(needed), lambda oid: _in_pieces(function(oid), width + XMIN_VALUES)
    if len(listed) > MANY_LISTED:
        return columns, len(needed), lambda oid: _in_pieces(function(oid), width)
    return columns, len(needed), function


def xmin_in(e: Env, shard: ShardId) -> Callable[[Timestamp], int]:
    """Return what tells the xmin of rows of a table by where they begin (``Transaction.writer_of``).

    That of rows which the transaction has made itself is its id, as ``pg_current_xact_id`` tells it.
    """
    ctx = e.shared.ctx
    writer_of = ctx.txn.writer_of
    known: dict[Timestamp, int] = {}

    def xmin(begin: Timestamp) -> int:
        found = known.get(begin)
        if found is None:
            if not begin and ctx.session is not None:
                ctx.session.system.transaction_id()
            found = known[begin] = writer_of(shard, begin) & NUMBER_MASK
        return found

    return xmin


def _in_pieces(extract: Extract, width: int) -> Extract:
    """Return a function that does what ``extract`` does, of wide rows some at a time."""
    step = max(VALUES_AT_ONCE // width, 1)

    def taken(found: Sequence[Any], *more: Any) -> Rows:
        rows: Rows = []
        for at in paced(range(0, len(found), step), 1):
            rows += extract(found[at : at + step], *more)
        return rows

    return taken


def _values(found: Sequence[Any]) -> Rows:
    return [s.values for s in found]


class LastRow:
    """Of one run of a query with ORDER BY and LIMIT: the sort key of the last row that it gave; None: all
    rows may matter yet.
    """

    __slots__ = ("key",)

    def __init__(self) -> None:
        self.key: Row | None = None


class StoredSource(Source):
    """Rows of a stored table. ``tells_xmin``: so that ``extract`` is given what tells it."""

    shard: ShardId
    extract: Extract
    tells_xmin: bool

    def extracting(self, e: Env) -> Extract:
        """Return ``extract`` for one run: it takes stored rows, and nothing else."""
        if not self.tells_xmin:
            return self.extract
        extract, xmin = self.extract, xmin_in(e, self.shard)
        return lambda found: extract(found, xmin)


class TableScan(StoredSource):
    """All visible rows of a stored table, in chunks."""

    keyed = False

    def __init__(
        self, item: RelationRange, relation: RelationDef, index: int, needed: Sequence[int], narrow: bool
    ) -> None:
        columns, width, self.extract_of = extractor(index, relation, needed, narrow)
        super().__init__(columns, width)
        self.item = item
        self.shard = ShardId(relation.oid)
        self.extract = self.extract_of(relation.oid)
        self.tells_xmin = XMIN in needed
        self.reading = UPDATED if ROW_ID in needed else PLAIN
        self.scouts = False  # LockRows looks at the rows first, and locks them, before they are read
        self.tests: tuple[Expr, ...] = ()  # of the filter
        self.tests_columns = True  # the filter looks at nothing but columns
        self.top: Sequence[Var] = ()
        self.top_items: Sequence[OrderItem] = ()

    def restrict(self, conjuncts: Sequence[Expr], layout: Layout) -> None:
        """See Source."""
        super().restrict(conjuncts, layout)
        self.tests = (*self.guards, *conjuncts)
        self.tests_columns = not any(
            isinstance(node, Var) and node.attnum < 0 for c in (*self.guards, *conjuncts) for node in walk(c)
        )

    def for_table(self, leaf: Leaf) -> TableScan:
        """Return the same scan of a table with the same columns."""
        made = twin(self)
        made.item = replace(self.item, schema=leaf.schema, name=leaf.name, alias=leaf.name)
        made.shard = ShardId(leaf.oid)
        made.extract = self.extract_of(leaf.oid)
        return made

    def _predicate(self, e: Env) -> Predicate | None:
        """Return the filter as a test of stored rows, for the transaction to watch what others change; None: all."""
        test, extract = self.filter, self.extract
        if not self.tests_columns or (test is not None and test.may_suspend):
            return None
        last: LastRow | None = e.shared.private.get((self, LastRow))
        if test is None and last is None:
            return None

        def matters(values: Row) -> bool:
            if last is not None and last.key is not None:
                key = tuple([values[var.attnum - 1] for var in self.top])
                if sort_rows([key, last.key], self.top_items)[0] is not key:
                    return False
            return test is None or bool(test(extract((StoredRow(RowId(0), values, Timestamp(0)),)), e))

        return watching(matters, (*self.tests, *self.top))

    def watches_first(self, query: Select) -> bool:
        """Have the rows behind the last one of ``query``, which reads this table alone and has a LIMIT, not
        matter; False where that cannot be told.
        """
        keys = [query.targets[key.target].expr for key in query.order]
        own = [key for key in keys if isinstance(key, Var) and key.attnum > 0 and not key.level]
        if not keys or len(own) < len(keys):
            return False
        types = [key.type for key in own]
        self.top = own
        self.top_items = order_items([replace(k, target=i) for i, k in enumerate(query.order)], types)
        return True

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Scan; for LockRows first past all locks."""
        return self.scanned(e, None)

    def scanned(self, e: Env, ids: Sequence[int] | None, picked: Picker | None = None) -> Pipe:
        """Scan all rows, or those with certain ids (``Transaction.scan``), and leave those that ``picked`` does."""
        ctx = e.shared.ctx
        extract = self.extracting(e)
        if self.scouts and e.shared.private.get(self):
            chunks_ = ctx.txn.scan(self.shard, peek=True, ids=ids)
        else:
            predicate = self._predicate(e) if ids is None else None
            chunks_ = ctx.txn.scan(self.shard, predicate=predicate, ids=ids, **self.reading[ctx.for_update])
        iterator = chunks_.__aiter__()
        while True:
            rows = yield from waited(_next(iterator))
            if rows is None:
                return
            if picked is not None:
                rows = picked(rows)
            rows = extract(rows) if rows else None
            yield rows
            del rows  # before the next ones are read: one may be large


async def _next(iterator: Any) -> Any:
    try:
        return await iterator.__anext__()
    except StopAsyncIteration:
        return None


FIRST_ROWS = 16
MOST_ROWS = 4096
_IN_ORDER = frozenset((INT2, INT4, INT8, TEXT, UUID))
_ROW_ID_OF: Final = attrgetter("row_id")


def found_rows(found: list[StoredRow], extract: Extract) -> Pipe:
    """Give what ``extract`` makes of stored rows, which are nobody else's."""
    rows = extract(found)
    release(found)
    try:
        yield from chunks(rows)
    finally:
        release(rows)


class Part(NamedTuple):
    """Some rows of a range: ``most`` of them, behind the key that ends in ``behind`` (None: the first ones)."""

    behind: Any
    most: int


def _following(access: Access, relation: RelationDef) -> int | None:
    """Return the column by whose values a range of a primary key can be read in parts; None: it is read at once."""
    index = access.index
    if access.kind != "prefix" or index is None or not index.primary or any(access.pads):
        return None
    if len(index.attnums) != len(access.keys) + 1:
        return None
    attnum = index.attnums[-1]
    return attnum if relation.columns[attnum - 1].type.oid in _IN_ORDER else None


class IndexSource(StoredSource):
    """Rows of a stored table by index keys. Key expressions are evaluated for the row joined so far."""

    def __init__(
        self,
        item: RelationRange,
        relation: RelationDef,
        index: int,
        needed: Sequence[int],
        narrow: bool,
        access: Access,
        outer: Layout,
    ) -> None:
        columns, width, self.extract_of = extractor(index, relation, needed, narrow)
        super().__init__(columns, width)
        if access.index is None:
            raise LookupError("an index source needs an index")
        self.item = item
        self.access = access
        self.shard = ShardId(relation.oid)
        self.extract = self.extract_of(relation.oid)
        self.tells_xmin = XMIN in needed
        self.index, self.index_name = IndexId(access.index.oid), access.index.name
        self.reading = UPDATED if ROW_ID in needed else PLAIN
        self.slack = False  # LockRows may ask for rows beyond the limit
        self.dependent = bool(outer.columns)
        self.keyed = access.bounded
        self.key = compile_row(access.keys, outer)
        self.lower = compile_expr(access.lower[0], outer) if access.lower else None
        self.upper = compile_expr(access.upper[0], outer) if access.upper else None
        self.reverse = False
        self.counts: RowFunction | None = None  # LIMIT and OFFSET, where the index gives the query's order
        self.enough: RowFunction | None = None  # the same where any rows of the range will do
        self.following = _following(access, relation)
        bounds = bool(access.lower or access.upper)
        self.ranged = access.kind == "prefix" and bounds and not access.keys and self.following is None
        self.simple = access.kind == "point" and not any(access.pads) and not any(access.guards)

    def for_table(self, leaf: Leaf, index: int, index_name: str) -> IndexSource:
        """Return the same source of a table with the same columns by the same index, which there is ``index``.

        ``access`` says how in both; the index that it names is the first table's.
        """
        made = twin(self)
        made.item = replace(self.item, schema=leaf.schema, name=leaf.name, alias=leaf.name)
        made.shard = ShardId(leaf.oid)
        made.extract = self.extract_of(leaf.oid)
        made.index, made.index_name = IndexId(index), index_name
        return made

    @property
    def waiting(self) -> tuple[RowFunction, ...]:
        """Those of its expressions whose evaluation may suspend: sub-selects, calls of users' functions."""
        parts = (self.key, self.lower, self.upper, self.counts, self.enough)
        return tuple(part for part in parts if part is not None and part.may_suspend)

    def in_parts(self, ctx: Any) -> bool:
        """Whether rows may be asked for in parts (``Part``): in the order of a key, by who takes no locks."""
        return (
            self.following is not None and self.counts is None and not ctx.for_update and not ctx.txn.writing
        )

    def request(
        self,
        outer: Any,
        e: Env,
        ctx: Any,
        known: Mapping[RowFunction, Any] = NOTHING_KNOWN,
        part: Part | None = None,
    ) -> Any:
        """Return the stored rows, or an awaitable of them; an empty tuple when a key is NULL.

        ``known``: the values of those of its expressions that may suspend, which the caller had to find.
        ``part``: where ``in_parts``, which of the rows.
        """
        reading = self.reading[ctx.for_update]
        key = known[self.key] if self.key in known else self.key(outer, e)
        if self.simple:
            if None in key:
                return ()
            return ctx.txn.lookup(self.shard, self.index, (key,), **reading)
        if self.access.kind != "prefix":
            keys = self._keys(key)
            return ctx.txn.lookup(self.shard, self.index, keys, **reading) if keys else ()
        if None in key:
            return ()
        bounds: dict[str, Any] = {}
        for name, function, spec in (
            ("lower", self.lower, self.access.lower),
            ("upper", self.upper, self.access.upper),
        ):
            if function is not None and spec is not None:
                value = known[function] if function in known else function(outer, e)
                if value is None:
                    return ()
                bounds[name], bounds[f"{name}_inclusive"], bounds[f"has_{name}"] = value, spec[1], True
        limit = None
        if self.counts is not None:
            counts = known[self.counts] if self.counts in known else self.counts(outer, e)
            if counts[0] is not None:
                limit = max(sum(c or 0 for c in counts), 0)
                if self.slack:
                    limit += e.shared.private[self]
        if self.enough is not None:
            counts = known[self.enough] if self.enough in known else self.enough(outer, e)
            if counts[0] is not None:
                limit = max(
                    sum(c or 0 for c in counts), MOST_ROWS + 1
                )  # few rows all come, in the order of the table
        if part is not None:
            limit = part.most
            if part.behind is not None:
                side = "upper" if self.reverse else "lower"
                bounds[side], bounds[f"{side}_inclusive"], bounds[f"has_{side}"] = part.behind, False, True
        return ctx.txn.range(
            self.shard,
            self.index,
            KeyRange(prefix=key, **bounds),
            reverse=self.reverse,
            limit=limit,
            **reading,
        )

    def _keys(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the product of the key columns' values without repeats."""
        columns: list[list[Any]] = []
        for value, is_list, pad, guard in zip(
            key, self.access.lists, self.access.pads, self.access.guards, strict=True
        ):
            values = [value] if not is_list else list(flat(value)) if value is not None else []
            if not pad and not guard:
                columns.append([v for v in values if v is not None])
                continue
            kept = []
            for v in values:
                if v is None:
                    continue
                if guard and isinstance(v, Decimal) and v.is_nan():
                    v = NAN  # that one alone is equal to itself, so that it is looked up once
                kept.append(v.rstrip(" ").ljust(pad) if pad else v)
            columns.append(kept)
        if len(columns) == 1:
            return list(zip(dict.fromkeys(columns[0]), strict=True))
        return list(dict.fromkeys(itertools.product(*columns)))

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Look up."""
        known: dict[RowFunction, Any] = {}
        for function in self.waiting:
            known[function] = yield from evaluate(function, outer, e)
        ctx = e.shared.ctx
        if self.in_parts(ctx):
            yield from self._parts(outer, e, ctx, known)
            return
        found = self.request(outer, e, ctx, known)
        if isinstance(found, Awaitable):
            found = yield from waited(found)
        if found:
            yield from found_rows(self.arranged(found, ctx), self.extracting(e))

    def arranged(self, found: list[StoredRow], ctx: Any) -> list[StoredRow]:
        """Return rows as they are to come: few of a range in the order of the table, which a bitmap scan of
        PostgreSQL's gives, too.

        It is that of the index where the query has an order, or the session wants no bitmap scans.
        """
        if self.ranged and self.counts is None and 1 < len(found) <= MOST_ROWS:
            session = ctx.session
            if session is None or session.setting("enable_bitmapscan") == "on":
                found.sort(key=_ROW_ID_OF)
        return found

    def _parts(self, outer: Any, e: Env, ctx: Any, known: Mapping[RowFunction, Any]) -> Pipe:
        """Look up a range, so many rows at a time as are a few megabytes."""
        attnum = self.following
        if attnum is None:
            raise AssertionError("the source follows no column")
        part = Part(None, FIRST_ROWS)
        extract = self.extracting(e)
        while True:
            found = self.request(outer, e, ctx, known, part)
            if isinstance(found, Awaitable):
                found = yield from waited(found)
            if found:
                yield from chunks(extract(found))
            if len(found) < part.most:
                return
            size = sum(row_bytes(row.values) for row in found)
            fitting = max(part.most * PART_BYTES // size, 1)
            part = Part(found[-1].values[attnum - 1], min(fitting, 4 * part.most, MOST_ROWS))
            del found
