"""Which integer type overflowed: Spark says where in the SQL it stopped, the query says what stands there.

    [ARITHMETIC_OVERFLOW] overflow. ...                  Spark 4.3 names no type
    == SQL (line 1, position 42) ==
                        └─> operation at this place ─> int32 ─> integer out of range

The query is lowered once more for that, noting its operations, so plans do not hold them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

Operations: TypeAlias = Callable[[], Iterable[tuple[str, str]]]
"""The integer operations of a query: SQL text, as it is sent to Spark, and the kind of the result."""

NAMES: Final = {"int16": "smallint", "int32": "integer", "int64": "bigint"}
# Spark leaves a cast out that changes nothing, and what was in it has the cast's place from then on.
_AROUND = re.compile(r"CAST\(|\(")
_PLACE = re.compile(r"\] overflow\b.*?\n== SQL \(line (\d+), position (\d+)\) ==\n", re.DOTALL)


def type_of(error: str, sql: str, operations: Operations) -> str | None:
    """Return PostgreSQL's name of the type that an operation overflowed.

    Args:
        error: the text of Spark's exception.
        sql: the text that Spark was given.
        operations: asked only where the error names a place.

    Returns:
        None where the error names no place, or no integer operation stands there.
    """
    found = _PLACE.search(error)
    if found is None:
        return None
    noted = list(operations())
    at: int | None = _offset(sql, int(found.group(1)), int(found.group(2)))
    while at is not None:
        # Operands in front of an operator are atoms or in parentheses: operations of one type begin at a place.
        kind = next((kind for text, kind in noted if sql.startswith(text, at)), None)
        if kind is not None:
            return NAMES[kind]
        around = _AROUND.match(sql, at)
        at = None if around is None else around.end()
    return None


def _offset(sql: str, line: int, position: int) -> int:
    """Return the offset of a place; both count from 1."""
    start = 0
    for _ in range(line - 1):
        start = sql.index("\n", start) + 1
    return start + position - 1
