"""Where rows of catalog relations come from: all of them, or those with a value in one column.

    the cache's own rows (engine.session.catalog.virtual)    33 columns of pg_class
      filter                                         looks at these
      narrow                                         the columns that the query reads: joins copy rows

Where nothing is joined, columns are picked out of the cache's rows where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter
from typing import Any

from engine.catalog.kept import Found, only
from engine.executors.index.access.choice import in_order_of_cost
from engine.executors.index.keyed import KeyTable
from engine.executors.index.nodes import chunks
from engine.executors.index.sources import Columns, Source, whole_row
from engine.executors.index.state import BATCH, Pipe, Rows
from pgwire.give_way import paced, paced_iter
from planner.evaluate import Env, Layout, compile_expr, compile_filter, flat
from planner.query import CTID, TABLEOID, WHOLE_ROW, Expr, QueryBase, RelationRange, Var
from planner.query.walk import children

Finder = Callable[[Any], Rows]
FindAll = Callable[[Sequence[Any]], list[Found]]
Pick = Callable[..., Rows]
"""Makes rows of rows; what makes a CTID also takes the number of the first one."""


class CatalogSource(Source):
    """Rows of a catalog relation: filtered as they are kept, then narrowed.

    ``narrow``: rows have the ``needed`` columns only. Nobody changes lists that ``rows`` gives.
    """

    def __init__(self, item: RelationRange, index: int, needed: Sequence[int], narrow: bool) -> None:
        self.item = item
        self.index = index
        self.relation_width = max((c.attnum for c in item.columns), default=0)
        self.extras = [n for n in needed if n <= 0]  # system columns, and the row as a whole
        self.full: Columns = {(index, n): n - 1 for n in range(1, self.relation_width + 1)}
        self.full |= {(index, n): self.relation_width + i for i, n in enumerate(self.extras)}
        self.extend: Pick | None = None  # before the filter
        self.narrowed: Pick | None = None
        self.cells: Sequence[int] | None = None  # where ``narrowed`` finds its columns, None for all
        width = self.relation_width + len(self.extras)
        self.narrow = narrow and len(needed) < width
        if self.narrow:
            super().__init__({(index, n): i for i, n in enumerate(needed)}, len(needed))
        else:
            super().__init__({(index, n): self.full[index, n] for n in needed}, width)
        self.needed = needed
        self._arrange(early=CTID in self.extras or not self.narrow)

    def _arrange(self, early: bool) -> None:
        """Have system columns made ``early``, for the filter, or for the rows that pass it."""
        if early and self.extras:
            self.extend = self._making([*range(1, self.relation_width + 1), *self.extras])
        if self.narrow and (early or not self.extras):
            self.cells = [self.full[self.index, n] for n in self.needed]
            self.narrowed = narrowing(self.cells)
        elif self.narrow:
            self.narrowed = self._making(self.needed)

    def _making(self, attnums: Sequence[int]) -> Pick:
        """Return the function from the relation's rows to rows of ``attnums``, system columns among them."""
        special = {WHOLE_ROW: "whole(r)", TABLEOID: str(self.item.oid), CTID: "i"}
        cells = "".join(f"r[{n - 1}], " if n > 0 else f"{special.get(n, '0')}, " for n in attnums)
        each = "i, r in enumerate(rows, first)" if CTID in attnums else "r in rows"
        source = f"lambda rows, first=1: [({cells}) for {each}]"
        made: Pick = eval(source, {"whole": whole_row(self.item)})
        return made

    def restrict(self, conjuncts: Sequence[Expr], layout: Layout) -> None:
        """Keep only rows for which ``conjuncts`` over this relation's own columns are TRUE."""
        if conjuncts:
            full = Layout(columns=self.full, outer=layout.outer, subplan=layout.subplan)
            self.filter = compile_filter(in_order_of_cost(conjuncts), full)
            if self.extend is None and any(_looks_beyond(c) for c in conjuncts):
                self._arrange(early=True)

    def fetch(self, outer: Any, e: Env) -> Pipe:
        """Start giving rows that pass the source's own filter, narrowed."""
        source = super().fetch(outer, e)
        return source if self.narrowed is None else _narrow(source, self.narrowed)

    @property
    def entire(self) -> bool:
        """Whether rows have all that is read of them before they are narrowed: nothing is made of those alone
        that pass.
        """
        return self.narrowed is None or self.cells is not None

    @property
    def columns_found(self) -> Columns:
        """Where columns stand in rows as ``fetch_entire`` gives them, or where these are not ``entire``, as
        ``fetch`` does.
        """
        return self.full if self.entire else self.columns

    @property
    def width_found(self) -> int:
        """How many values such rows have."""
        return self.relation_width + len(self.extras) if self.entire else self.width

    def fetch_entire(self, outer: Any, e: Env) -> Pipe:
        """Start giving rows that pass the source's own filter, with all columns."""
        return super().fetch(outer, e)


def _looks_beyond(node: object) -> bool:
    """Tell whether a condition may look at more than columns of its relation."""
    if isinstance(node, Var):
        return node.attnum <= 0
    return isinstance(node, QueryBase) or any(_looks_beyond(child) for child in children(node))


def narrowing(positions: Sequence[int]) -> Pick:
    """Return the function from rows to rows of the values at ``positions``."""
    if len(positions) > 1:
        getter = itemgetter(*positions)
        return lambda rows: list(map(getter, rows))
    if positions:
        position = positions[0]
        return lambda rows: [(row[position],) for row in rows]
    return lambda rows: [()] * len(rows)


def _narrow(source: Pipe, narrowed: Pick) -> Pipe:
    try:
        for item in source:
            yield narrowed(item) if item.__class__ is list else item
    finally:
        source.close()


class VirtualScan(CatalogSource):
    """All rows of a catalog relation."""

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Give the rows in batches."""
        ctx = e.shared.ctx
        for _ in ctx.virtual.prepare(self.item.oid, ctx.session):
            yield None
        rows = ctx.virtual.rows(self.item.oid, ctx.session)
        for i in range(0, len(rows), BATCH):
            batch = rows[i : i + BATCH]
            yield batch if self.extend is None else self.extend(batch, i + 1)


class VirtualLookup(CatalogSource):
    """Rows of a catalog relation by the values of one column; without an index there, by a hash made once."""

    def __init__(
        self, item: RelationRange, index: int, needed: Sequence[int], narrow: bool, attnum: int, value: Expr,
        is_list: bool, outer: Layout,
    ) -> None:  # fmt: skip
        super().__init__(item, index, needed, narrow)
        self.attnum = attnum
        self.is_list = is_list
        self.key = value
        self.value = compile_expr(value, outer)
        self.outer = outer
        self.dependent = bool(outer.columns)

    @property
    def by_batches(self) -> bool:
        """Whether a join may look up the values of many left rows at once: none of them has to be waited for."""
        if self.is_list or self.value.may_suspend:
            return False
        return self.filter is None or not self.filter.may_suspend

    def prepare(self, e: Env, *, many: bool = False) -> Pipe:
        """Make what ``finder`` needs, with turns for others."""
        ctx = e.shared.ctx
        if many or (self.item.oid, self.attnum) not in e.shared.private:
            yield from ctx.virtual.prepare(self.item.oid, ctx.session, 0 if many else self.attnum)

    def finder(self, e: Env) -> Finder:
        """Return the function from a value to the rows that have it, unfiltered. Nobody changes the lists."""
        private = e.shared.private
        key = (self.item.oid, self.attnum)
        find: Finder | None = private.get(key)
        if find is None:
            ctx = e.shared.ctx
            find = ctx.virtual.finder(self.item.oid, self.attnum, ctx.session)
            if find is None:
                position = self.attnum - 1
                table = private[key, "rows"] = KeyTable()
                for row in paced(ctx.virtual.rows(self.item.oid, ctx.session)):
                    value = row[position]
                    part = table.part(value)
                    if value in part:
                        part[value].append(row)
                    else:
                        part[value] = [row]
                table.grown()
                get = table.finder()
                find = lambda value: get(value) or []  # noqa: E731
            private[key] = find
        return find

    def find_all(self, e: Env) -> FindAll | None:
        """Return the function from many values to the rows that have them and pass the filter, by an index
        over all rows.

        None where that cannot be.
        """
        if self.extras:
            return None
        ctx = e.shared.ctx
        find: FindAll | None = ctx.virtual.find_all(self.item.oid, self.attnum, ctx.session)
        test = self.filter
        if find is None or test is None:
            return find
        raw = find
        return lambda values: only(raw(values), lambda rows: test(rows, e))

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Look up."""
        value = self.value(outer, e)
        if value is None:
            return
        yield from self.prepare(e)
        find = self.finder(e)
        if self.is_list:
            wanted = paced(list(dict.fromkeys(paced_iter(flat(value)))))
            found = [row for v in wanted if v is not None for row in find(v)]
        else:
            found = list(find(value))
        if found:
            yield from chunks(self.extend(found) if self.extend is not None else found)

    def finds_nothing(self, e: Env) -> bool:
        """Tell whether no row has the value, where that is known at once (``by_batches``)."""
        find: Finder | None = e.shared.private.get((self.item.oid, self.attnum))
        if find is None:
            return False
        value = self.value((), e)
        return value is None or not find(value)

    def found_each(self, values: Collection[Any], find: Finder, e: Env) -> Iterator[tuple[Any, Found]]:
        """Yield each value with the rows that have it and pass the filter (``by_batches``, ``columns_found``)."""
        extend, test, made = self.extend, self.filter, None if self.entire else self.narrowed
        for value in values:
            found = find(value) if value is not None else []
            if found:
                if extend is not None:
                    found = extend(found)
                if test is not None:
                    found = test(found, e)
                if made is not None:
                    found = made(found)
            yield value, found if len(found) > 1 else found[0] if found else None
