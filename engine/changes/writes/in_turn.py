"""Rows that are changed one after another, as functions that the statement calls see what it has changed so far.

    UPDATE t SET v = total()        row 1: total() ──> change     row 2: total() sees row 1 changed ──> change   ...

That is so of users' VOLATILE functions; STABLE ones, and the statement's own sub-selects, see what was there
before it began. The source's rows are found first, all of them (``Select.in_turn``); what is computed for a
row is computed when the one before it has been changed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from engine.base.executor import Result
from engine.base.rows import ReadyRows
from pgwire.give_way import paced
from planner.query import Const, Delete, Insert, Param, QueryBase, Select, SqlCall, SubLink, Update, Values
from planner.query.walk import walk
from txn.base.types import Row

Q = TypeVar("Q", bound=QueryBase)

if TYPE_CHECKING:
    from engine.session.session import Session


def computed_in_turn(statement: Insert | Update | Delete) -> bool:
    """Tell whether what a statement computes for a row has to be computed when earlier rows are changed."""
    source = statement.source
    if source is None or (isinstance(source, Values) and len(source.rows) == 1):
        return False
    values: list[Any] = [target.expr for target in statement.returning]
    if isinstance(source, Select):
        values += [target.expr for target in source.targets]
    elif isinstance(source, Values):
        for row in paced(source.rows):
            values += [cell for cell in row if cell is not None and not isinstance(cell, Const | Param)]
    else:
        return False
    if isinstance(statement, Insert):
        values += [expr for _, expr in statement.defaults]
    volatile = False
    for value in paced(values):
        for node in walk(value):
            if isinstance(node, SubLink):
                return False  # beside it, it would see changes that it must not
            volatile = volatile or _is_volatile(node)
    return volatile


def _is_volatile(node: object) -> bool:
    return isinstance(node, SqlCall) and node.stays and node.volatility == "v"


def in_turn(source: Q) -> Q:
    """Return a source whose rows are computed one by one, as they are asked for."""
    return replace(source, in_turn="found")


async def each_row(session: Session, result: Result) -> AsyncGenerator[Row]:
    """Yield the rows of such a source."""
    if isinstance(result, ReadyRows):
        for row in result.rows:
            yield row
        return
    try:
        async for batch in result.batches:
            rows = batch.rows
            for row in session.db.arrow_rows(batch.arrow, result.columns) if rows is None else rows:
                yield row
    finally:
        result.close()
