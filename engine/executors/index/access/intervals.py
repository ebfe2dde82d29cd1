"""Indexes of ranges (gist, spgist): conditions on ranges, turned into nodes of the tree of intervals
(``txn.values.intervals``).

    during && r          overlaps        nodes on the ways to both ends of r, and those between them
    during @> r          holds           nodes on the way to the lower end of r
    during @> x          holds element   nodes on the way to x
    during <@ r          inside          nodes between the ends of r, and empty ranges
    during = r           same            the node of r
    at <@ box            overlaps        of their extents on the x axis (``planner.bind.define.table.extents``)

What is found are candidates: the condition is tested again on each. Every range holds the empty one, so for
that the table is scanned.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any

from engine.catalog.index_parts import index_parts
from engine.executors.index.access.candidates import CandidateScan, Request, index_key, is_key
from engine.executors.index.access.choice import Access, IntervalMode, is_ready
from engine.executors.index.access.computed_keys import holds_rows_of
from pgwire.codecs.users.ranges import place, range_type, unpack_range
from planner.bind.define.table.extents import extent
from planner.catalog import Catalog, IndexDef, RelationDef
from planner.facts import facts
from planner.query import Expr, FuncExpr, OpExpr, SubLink
from planner.query.walk import walk
from planner.rules.fold import fold
from txn.base.types import Key, KeyRange
from txn.values.intervals import EMPTY, node, nodes_of


@cache
def _modes() -> dict[int, tuple[IntervalMode | None, IntervalMode | None]]:
    """Return for each function (pg_proc oid) what ``column op value`` and ``value op column`` ask for; None:
    nothing.
    """
    procs = facts().proc_by_signature
    return {
        procs["range_overlaps(anyrange,anyrange)"]: ("overlaps", "overlaps"),
        procs["range_contains(anyrange,anyrange)"]: ("holds", "inside"),
        procs["range_contained_by(anyrange,anyrange)"]: ("inside", "holds"),
        procs["range_contains_elem(anyrange,anyelement)"]: ("holds element", None),
        procs["elem_contained_by_range(anyelement,anyrange)"]: (None, "holds element"),
        procs["range_eq(anyrange,anyrange)"]: ("same", "same"),
    }


@cache
def _shapes() -> frozenset[int]:
    """Return the functions (pg_proc oids) of two shapes that hold only where the extents of both overlap."""
    procs = facts().proc_by_signature
    return frozenset(
        procs[signature]
        for signature in (
            "point_eq(point,point)", "on_pb(point,box)", "pt_contained_circle(point,circle)",
            "pt_contained_poly(point,polygon)", "box_contain_pt(box,point)", "box_same(box,box)",
            "box_overlap(box,box)", "box_contain(box,box)", "box_contained(box,box)",
            "circle_same(circle,circle)", "circle_overlap(circle,circle)", "circle_contain(circle,circle)",
            "circle_contained(circle,circle)", "circle_contain_pt(circle,point)", "poly_same(polygon,polygon)",
            "poly_overlap(polygon,polygon)", "poly_contain(polygon,polygon)", "poly_contained(polygon,polygon)",
            "poly_contain_pt(polygon,point)",
        )
    )  # fmt: skip


def _is_simple(value: Expr) -> bool:
    """Tell whether a value may be computed several times, as its extent does: it has no sub-select."""
    return not any(isinstance(node, SubLink) for node in walk(value))


def find_intervals(
    range_: int,
    table: RelationDef,
    catalog: Catalog,
    conjuncts: Sequence[Expr],
    available: AbstractSet[int],
) -> Access | None:
    """Return an access of a base table by an index of ranges, or None."""
    for index in (part for whole in table.indexes for part in index_parts(whole, table)):
        if index.by_value or index.method not in ("gist", "spgist"):
            continue
        if not holds_rows_of(index, table, catalog, range_, conjuncts):
            continue
        key = index_key(index, table, catalog, range_)
        for conjunct in conjuncts:
            if not isinstance(conjunct, OpExpr | FuncExpr) or len(conjunct.args) != 2:
                continue
            left, right = conjunct.args
            if conjunct.proc in _shapes():
                for column, value in ((left, right), (right, left)):
                    if is_key(column, range_, key) and is_ready(value, available) and _is_simple(value):
                        reach = fold(extent(value, catalog))
                        return Access(
                            "intervals", index, index.attnums, (reach,), (False,), served=(conjunct,), interval="overlaps", score=3
                        )  # fmt: skip
                continue
            forth, back = _modes().get(conjunct.proc, (None, None))
            for mode, column, value in ((forth, left, right), (back, right, left)):
                if mode is not None and is_key(column, range_, key) and is_ready(value, available):
                    return Access(
                        "intervals", index, index.attnums, (value,), (False,), served=(conjunct,), interval=mode, score=3
                    )  # fmt: skip
    return None


def interval_requests(mode: IntervalMode, range_oid: int, value: Any) -> list[Request] | None:
    """Return what to ask of an index for the rows that may fulfil a condition; None: any may."""
    if mode == "holds element":
        return [_keys(nodes_of(place(range_type(range_oid), value).key))]
    span = unpack_range(value)
    if mode == "same":
        return [[(node(value),)]]
    if span is None:
        if mode == "holds":
            return None
        return [[(EMPTY,)]] if mode == "inside" else []
    low, high = span[0].key, span[1].key
    if mode == "holds":
        return [_keys(nodes_of(low))]
    between = KeyRange(lower=low, upper=high, has_lower=True, has_upper=True)
    if mode == "inside":
        return [[(EMPTY,)], between]
    around = [n for n in nodes_of(low) if n < low] + [n for n in nodes_of(high) if n > high]
    return [_keys(around), between]


def _keys(nodes: Sequence[bytes]) -> list[Key]:
    return [(one,) for one in nodes]


class IntervalScan(CandidateScan):
    """Rows of a stored table by an index of ranges."""

    def prepare(self, access: Access, index: IndexDef) -> None:
        """See CandidateScan."""
        if access.interval is None:
            raise LookupError("it does not say what is compared")
        self.mode: IntervalMode = access.interval

    def requests(self, value: Any) -> list[Request] | None:
        """See CandidateScan."""
        return interval_requests(self.mode, self.key_type, value)
