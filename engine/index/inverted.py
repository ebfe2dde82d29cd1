"""Inverted indexes (gin): conditions on arrays and documents, turned into entries to look up.

    tags @> '{red,blue}'        all       rows under the rarer of red and blue
    tags && '{red,blue}'        any       rows under either
    tags <@ '{red,blue}'        within    rows under either, and empty arrays
    'red' = ANY (tags)          all       rows under red
    doc @> '{"a": 1}'           all       as of an array; doc ? 'a', ?& and ?| by keys alone

What is found are candidates: the condition is tested again on each. Where a value says nothing about the entries of the rows
wanted (``@> '{}'``), or has too many, the table is scanned, which others' changes are compared with as of any scan.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from functools import cache
from typing import Any, Final, NamedTuple

from engine.index.access import Access, EntryMode, is_ready, range_column
from engine.index.computed_keys import computed_keys, holds_rows_of, over_range
from engine.index.nodes import chunks
from engine.index.sources import TableScan
from engine.index.state import Pipe, Wait, evaluate
from planner.catalog import Catalog, IndexDef, RelationDef
from planner.comparisons import key_operators
from planner.evaluate import Env, Layout, compile_expr, flat
from planner.facts import JSONB, facts
from planner.query import Expr, FuncExpr, OpExpr, RelationRange, ScalarArrayOp
from txn.entries import document_entries, key_entry
from txn.types import IndexId, Key

MAX_ENTRIES: Final = 500
"""A value with more entries than this is looked for by a scan."""

FEW_ROWS: Final = 2000
"""So many candidates are always looked up; more only if they are less than a quarter of the table."""


class Use(NamedTuple):
    """A condition that an index serves: how, with which value, and the condition itself."""

    mode: EntryMode
    value: Expr
    conjunct: Expr


@cache
def _modes() -> dict[int, tuple[EntryMode | None, EntryMode | None]]:
    """Return for each function (pg_proc oid) what ``column op value`` and ``value op column`` ask for; None: nothing."""
    procs = facts().proc_by_signature
    return {
        procs["arraycontains(anyarray,anyarray)"]: ("all", "within"),
        procs["arraycontained(anyarray,anyarray)"]: ("within", "all"),
        procs["arrayoverlap(anyarray,anyarray)"]: ("any", "any"),
        procs["array_eq(anyarray,anyarray)"]: ("equal", "equal"),
        procs["jsonb_contains(jsonb,jsonb)"]: ("all", None),
        procs["jsonb_contained(jsonb,jsonb)"]: (None, "all"),
        procs["jsonb_exists(jsonb,text)"]: ("key", None),
        procs["jsonb_exists_all(jsonb,_text)"]: ("all keys", None),
        procs["jsonb_exists_any(jsonb,_text)"]: ("any keys", None),
    }


def find_inverted(
    range_: int,
    table: RelationDef,
    catalog: Catalog,
    conjuncts: Sequence[Expr],
    available: AbstractSet[int],
) -> Access | None:
    """Return an access of a base table by a gin index, or None."""
    for index in table.indexes:
        if index.method != "gin" or not holds_rows_of(index, table, catalog, range_, conjuncts):
            continue
        use = _use(range_, index, table, catalog, conjuncts, available)
        if use is not None:
            return Access(
                "entries", index, index.attnums, (use.value,), (False,), served=(use.conjunct,),
                entries=use.mode, score=3,
            )  # fmt: skip
    return None


def _use(
    range_: int,
    index: IndexDef,
    table: RelationDef,
    catalog: Catalog,
    conjuncts: Sequence[Expr],
    available: AbstractSet[int],
) -> Use | None:
    attnum = index.attnums[0]
    key: tuple[Expr, int] | None = None
    if index.computed:
        if index.written[0]:
            attnum = index.written[0]
        else:
            key = over_range(computed_keys(index, table, catalog).keys[0], range_), attnum
    paths = index.opclasses == ("jsonb_path_ops",)

    def is_key(expr: Expr) -> bool:
        column = range_column(expr, range_, key)
        return column is not None and column.attnum == attnum

    for conjunct in conjuncts:
        if isinstance(conjunct, ScalarArrayOp):
            if (
                conjunct.use_any
                and key_operators().get(conjunct.proc) == "="
                and is_key(conjunct.array)
                and is_ready(conjunct.scalar, available)
            ):
                return Use("one", conjunct.scalar, conjunct)
        elif isinstance(conjunct, OpExpr | FuncExpr) and len(conjunct.args) == 2:
            left, right = conjunct.args
            forth, back = _modes().get(conjunct.proc, (None, None))
            for mode, column, value in ((forth, left, right), (back, right, left)):
                if mode is None or (paths and mode != "all"):
                    continue
                if is_key(column) and is_ready(value, available):
                    return Use(mode, value, conjunct)
    return None


def wanted_entries(mode: EntryMode, kind: str, value: Any) -> list[Key] | None:
    """Return the keys to look up: one that each row wanted has (all), or all that they may have; None: that cannot be told.

    ``kind`` as of txn's indexes; ``value`` is not NULL. An empty list: no row can be meant.
    """
    if mode == "key":
        return [(key_entry(value),)]
    if mode in ("all keys", "any keys"):
        found = [(key_entry(v),) for v in dict.fromkeys(flat(value)) if v is not None]
        return found or None
    if mode == "one":
        return None if isinstance(value, Decimal) and value.is_nan() else [(value,)]
    if kind != "elements":
        return [(entry,) for entry in document_entries(kind, value)] or None
    elements = list(flat(value))
    kept = [v for v in elements if v is not None]
    if any(isinstance(v, Decimal) and v.is_nan() for v in kept):
        return None
    keys: list[Key] = [(v,) for v in dict.fromkeys(kept)]
    if mode == "within" or (mode == "equal" and not elements):
        keys.append((None,))
    if mode == "any":
        return keys  # none: nothing overlaps with it
    return keys or None


class EntriesScan(TableScan):
    """Rows of a stored table by the entries of an inverted index, or by a scan; see the module."""

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
        if access.index is None or access.entries is None:
            raise LookupError("a scan of entries needs an index")
        self.index = IndexId(access.index.oid)
        self.name = access.index.name
        self.mode: EntryMode = access.entries
        is_document = relation.columns[access.index.attnums[0] - 1].type.oid == JSONB
        paths = access.index.opclasses == ("jsonb_path_ops",)
        self.kind = "elements" if not is_document else "json_paths" if paths else "json"
        self.value = compile_expr(access.keys[0], outer)

    def rows(self, outer: Any, e: Env) -> Pipe:
        """Look up, or scan."""
        value = (
            (yield from evaluate(self.value, outer, e)) if self.value.may_suspend else self.value(outer, e)
        )
        if value is None:
            return
        keys = self._chosen(value, e.shared.ctx)
        if keys is None:
            yield from super().rows(outer, e)
            return
        if not keys:
            return
        ctx = e.shared.ctx
        how = self.reading[ctx.for_update]
        if self.scouts:  # the rows that are meant get locked once they are found (LockRows)
            how = {"peek": True} if e.shared.private.get(self) else {}
        found = ctx.txn.lookup(self.shard, self.index, keys, **how)
        if isinstance(found, Awaitable):
            wait = Wait(found)
            yield wait
            found = wait.value
        if found:
            yield from chunks(self.extract(found))

    def _chosen(self, value: Any, ctx: Any) -> list[Key] | None:
        """Return the keys to look up, None to scan."""
        keys = wanted_entries(self.mode, self.kind, value)
        if not keys:
            return keys
        one = self.mode in ("all", "equal", "all keys")
        if len(keys) > MAX_ENTRIES and not one:
            return None
        counts = ctx.txn.count_entries(self.shard, self.index, keys[:MAX_ENTRIES])
        rows = min(counts) if one else sum(counts)
        if rows > FEW_ROWS and rows * 4 > ctx.txn.stats(self.shard).rows:
            return None
        return [keys[counts.index(rows)]] if one else keys

    def label(self) -> str:
        """Return the line."""
        return f"Index entries {self.item.schema}.{self.item.name} {self.item.alias} using {self.name}"
