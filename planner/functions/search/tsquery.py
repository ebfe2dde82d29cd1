"""tsquery (manual 9.13): ``&& || !! <->``, parts, containment, comparison, ts_rewrite."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from pgwire.codecs.text.tsquery import (
    AND,
    EMPTY,
    MAX_DISTANCE,
    NOT,
    OR,
    PHRASE,
    Operator,
    Word,
    pack,
    show_items,
    size,
    unpack,
)
from pgwire.codecs.users.ranges import comparable
from pgwire.give_way import paced, paced_iter
from pgwire.release import let_go, release
from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY
from planner.functions.values.compare import register_comparisons
from planner.functions.values.range import comparisons
from planner.textsearch.match import without_nots
from planner.textsearch.rewrite import rewrite


def _joined(a: bytes, b: bytes, operator: Operator) -> bytes:
    left, right = unpack(a), unpack(b)
    if not left or not right:
        return b if not left else a
    items = list(paced_iter(chain(left, right, (operator,))))
    del left, right
    try:
        return pack(items)
    finally:
        release(items)


def phrase(a: bytes, b: bytes, distance: int = 1) -> bytes:
    """SQL's ``<->`` and ``tsquery_phrase``: 22023."""
    if not 0 <= distance <= MAX_DISTANCE:
        raise SqlError(
            "22023",
            f"distance in phrase operator must be an integer value between zero and {MAX_DISTANCE} inclusive",
        )
    return _joined(a, b, Operator(PHRASE, distance))


def negation(value: bytes) -> bytes:
    """SQL's ``!!``."""
    items = unpack(value)
    try:
        return pack((*items, Operator(NOT))) if items else EMPTY
    finally:
        let_go(items)


def _texts(value: bytes) -> set[str]:
    items = unpack(value)
    try:
        return {item.text for item in paced(items) if isinstance(item, Word)}
    finally:
        let_go(items)


def contains(a: bytes, b: bytes) -> bool:
    """SQL's ``@>``: whether all lexemes of ``b`` are in ``a``; operators do not count."""
    all_, wanted = _texts(a), _texts(b)
    try:
        return len(wanted) <= len(all_) and all(text in all_ for text in paced_iter(wanted))
    finally:
        release(all_, wanted)


def query_tree(value: bytes) -> str:
    """SQL's ``querytree``: what of a query an index can be asked for, T for all."""
    items = unpack(value)
    try:
        return (show_items(without_nots(items)) or "T") if items else ""
    finally:
        let_go(items)


_FUNCTIONS: Final[dict[str, Any]] = {
    "tsquery_and(tsquery,tsquery)": lambda a, b: _joined(a, b, Operator(AND)),
    "tsquery_or(tsquery,tsquery)": lambda a, b: _joined(a, b, Operator(OR)),
    "tsquery_phrase(tsquery,tsquery)": phrase,
    "tsquery_phrase(tsquery,tsquery,int4)": phrase,
    "tsquery_not(tsquery)": negation,
    "numnode(tsquery)": size,
    "querytree(tsquery)": query_tree,
    "tsq_mcontains(tsquery,tsquery)": contains,
    "tsq_mcontained(tsquery,tsquery)": lambda a, b: contains(b, a),
    "ts_rewrite(tsquery,tsquery,tsquery)": rewrite,
}


def _register() -> None:
    for signature, function in _FUNCTIONS.items():
        REGISTRY.python(signature, function)
    # what is compared are neither weights nor prefix marks, as in PostgreSQL
    register_comparisons(comparisons(comparable), "tsquery_%s", "tsquery", "tsquery", "tsquery_cmp")


_register()
