"""Rows that an index of another method than btree and hash gives: candidates, on which the condition is tested again.

value of the condition ──> requests: keys and ranges of the index ──> rows ──> the source's filter
└────> none: the table is scanned, which others' changes are compared with as of any scan
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Final, TypeAlias

from engine.executors.index.access.choice import Access, range_column
from engine.executors.index.access.computed_keys import computed_keys, over_range
from engine.executors.index.sources import TableScan, found_rows
from engine.executors.index.state import Pipe, evaluate, waited
from planner.catalog import Catalog, IndexDef, RelationDef
from planner.evaluate import Env, Layout, compile_expr
from planner.functions.session import EvalSession
from planner.query import Const, Expr, Param, RelationRange
from txn.api import Transaction
from txn.base.types import IndexId, Key, KeyRange

Request: TypeAlias = list[Key] | KeyRange
"""Keys to look up, or a range to read."""

FEW_ROWS: Final = 2000
"""So many candidates are always looked up; more only if they are less than a quarter of the table."""


def index_key(index: IndexDef, table: RelationDef, catalog: Catalog, range_: int) -> tuple[Expr | None, int]:
    """Return the first key of an index: its expression over a range, and its attnum; or None and a column's."""
    if not index.computed:
        return None, index.attnums[0]
    if index.written[0]:
        return None, index.written[0]
    return over_range(computed_keys(index, table, catalog).keys[0], range_), index.attnums[0]


def is_key(expr: Expr, range_: int, key: tuple[Expr | None, int]) -> bool:
    """Tell whether an expression is what ``index_key`` gave."""
    written, attnum = key
    column = range_column(expr, range_, None if written is None else (written, attnum))
    return column is not None and column.attnum == attnum


class CandidateScan(TableScan):
    """Rows of a stored table by such an index, or by a scan; see the module."""

    keyed = True

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
        super().__init__(item, relation, index, needed, narrow)
        if access.index is None:
            raise LookupError("candidates need an index")
        self.index, self.index_name = IndexId(access.index.oid), access.index.name
        self.key_type = relation.columns[access.index.attnums[0] - 1].type.oid
        self.compared, self.served = access.keys[0], access.served
        self.value = compile_expr(self.compared, outer)
        self.prepare(access, access.index)

    def prepare(self, access: Access, index: IndexDef) -> None:
        """Take what ``requests`` needs from how the condition is served. Raises LookupError where that is not said."""
        raise NotImplementedError

    def requests(self, value: Any) -> list[Request] | None:
        """Return what to ask of the index for a value that is not NULL: no row comes twice. None: that cannot
        be told.
        """
        raise NotImplementedError

    def chosen(
        self, value: Any, txn: Transaction, session: EvalSession | None = None
    ) -> list[Request] | None:
        """Return what to ask of the index, None to scan: where too many rows are to be expected.

        ``session``: whose settings the condition may depend on, None for a guess.
        """
        requests = self.requests(value)
        if requests is None:
            return None
        rows = 0
        most = max(FEW_ROWS, txn.stats(self.shard).rows // 4)
        for request in requests:
            if isinstance(request, KeyRange):
                rows += txn.count_range(self.shard, self.index, request, most)
            else:
                rows += sum(txn.count_entries(self.shard, self.index, request))
        return None if rows > most else requests

    def scans(self, params: Sequence[Any], txn: Transaction) -> bool:
        """Tell whether the table will be scanned, as far as that is known before: then another executor may
        be better.
        """
        value = self.compared
        if isinstance(value, Param) and value.number <= len(params):
            known = params[value.number - 1]
        elif isinstance(value, Const):
            known = value.value
        else:
            return False
        return known is not None and self.chosen(known, txn) is None

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Look up, or scan."""
        may_suspend = self.value.may_suspend
        value = (yield from evaluate(self.value, outer, e)) if may_suspend else self.value(outer, e)
        if value is None:
            return
        ctx = e.shared.ctx
        requests = self.chosen(value, ctx.txn, ctx.session)
        extract = self.extracting(e)
        if requests is None:
            yield from super().rows(outer, e)
            return
        how = self.reading[ctx.for_update]
        if self.scouts:  # the rows that are meant get locked once they are found (LockRows)
            how = {"peek": True} if e.shared.private.get(self) else {}
        for request in requests:
            if isinstance(request, KeyRange):
                found = ctx.txn.range(self.shard, self.index, request, **how)
            else:
                found = ctx.txn.lookup(self.shard, self.index, request, **how)
            if isinstance(found, Awaitable):
                found = yield from waited(found)
            if found:
                yield from found_rows(found, extract)
