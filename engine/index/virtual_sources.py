"""Where rows of catalog relations come from: all of them, or those with a value in one column.

The rows are the cache's own (``engine.catalog.virtual``): columns are picked out of them where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.index.nodes import chunks, projection
from engine.index.sources import Columns, Source, whole_row
from engine.index.state import BATCH, Pipe, Rows
from planner.evaluate import Env, Layout, RowFunction, compile_expr, flat
from planner.query import CTID, TABLEOID, WHOLE_ROW, Expr, RelationRange

Finder = Callable[[Any], Rows]


def _picker(
    range_: int, item: RelationRange, needed: Sequence[int]
) -> tuple[Columns, int, Callable[[Any], Rows] | None]:
    """Return (columns, width, function from relation rows to rows or None when they serve as they are)."""
    relation_width = max((c.attnum for c in item.columns), default=0)
    oid = item.oid
    whole = whole_row(item)
    if all(n > 0 for n in needed):
        return {(range_, n): n - 1 for n in needed}, relation_width, None
    columns: Columns = {}
    extras: list[int] = []
    for n in needed:
        if n > 0:
            columns[(range_, n)] = n - 1
        else:
            columns[(range_, n)] = relation_width + len(extras)
            extras.append(n)

    def extend(rows: Any) -> Rows:
        return [
            (
                *r,
                *[
                    whole(r) if n == WHOLE_ROW else oid if n == TABLEOID else (0, i + 1) if n == CTID else 0
                    for n in extras
                ],
            )
            for i, r in enumerate(rows)
        ]

    return columns, relation_width + len(extras), extend


class VirtualScan(Source):
    """All rows of a catalog relation."""

    def __init__(self, item: RelationRange, index: int, needed: Sequence[int]) -> None:
        columns, width, self.extend = _picker(index, item, needed)
        super().__init__(columns, width)
        self.item = item

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Give the rows in batches."""
        ctx = e.shared.ctx
        for _ in ctx.virtual.prepare(self.item.oid, ctx.session):
            yield None
        rows = ctx.virtual.rows(self.item.oid, ctx.session)
        if self.extend is not None:
            rows = self.extend(rows)
        for i in range(0, len(rows), BATCH):
            yield rows[i : i + BATCH]

    def label(self) -> str:
        """Return the line."""
        return f"Virtual scan {self.item.schema}.{self.item.name} {self.item.alias}"


class VirtualLookup(Source):
    """Rows of a catalog relation by the values of one column; without an index there, by a hash made once."""

    def __init__(
        self, item: RelationRange, index: int, needed: Sequence[int], attnum: int, value: Expr, is_list: bool,
        outer: Layout,
    ) -> None:  # fmt: skip
        columns, width, self.extend = _picker(index, item, needed)
        super().__init__(columns, width)
        self.item = item
        self.attnum = attnum
        self.is_list = is_list
        self.value = compile_expr(value, outer)
        self.values: RowFunction = projection((value,), outer)  # of a batch of left rows, each in a tuple
        self.dependent = bool(outer.columns)

    @property
    def by_batches(self) -> bool:
        """Whether a join may look up the values of many left rows at once: none of them has to be waited for."""
        if self.is_list or self.value.may_suspend or self.values.may_suspend:
            return False
        return self.filter is None or not self.filter.may_suspend

    def prepare(self, e: Env) -> Pipe:
        """Make what ``finder`` needs, with turns for others."""
        ctx = e.shared.ctx
        if (self.item.oid, self.attnum) not in e.shared.private:
            yield from ctx.virtual.prepare(self.item.oid, ctx.session, self.attnum)

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
                table: dict[Any, Rows] = {}
                for row in ctx.virtual.rows(self.item.oid, ctx.session):
                    table.setdefault(row[position], []).append(row)
                find = lambda value: table.get(value, [])  # noqa: E731
            private[key] = find
        return find

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Look up."""
        value = self.value(outer, e)
        if value is None:
            return
        yield from self.prepare(e)
        find = self.finder(e)
        if self.is_list:
            found = [row for v in dict.fromkeys(flat(value)) if v is not None for row in find(v)]
        else:
            found = list(find(value))
        if found:
            yield from chunks(self.extend(found) if self.extend is not None else found)

    def passing(self, value: Any, find: Finder, e: Env) -> Rows:
        """Return the rows with a value that pass the filter (``by_batches``). Nobody changes the list."""
        if value is None:
            return []
        found = find(value)
        if found and self.extend is not None:
            found = self.extend(found)
        return self.filter(found, e) if found and self.filter is not None else found

    def label(self) -> str:
        """Return the line."""
        column = next((c.name for c in self.item.columns if c.attnum == self.attnum), "?")
        return f"Virtual lookup {self.item.schema}.{self.item.name} {self.item.alias} by {column}"
