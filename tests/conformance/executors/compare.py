"""Two answers to one query: what has to be equal, and what promise P3 exempts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqllogictest.client import Client, ServerError

REFUSED = "0A000"
BPCHAR_OID = 1042
NUMERIC_OID = 1700
FLOAT_OIDS = frozenset((700, 701))
FLOAT_AGGREGATE = re.compile(r"\b(sum|avg|stddev\w*|var\w*|corr|covar\w*|regr_\w+)\s*\(", re.IGNORECASE)
LAST_DIGITS = 1e-12
ENGINE_DIGITS = 38  # an engine's decimals; wider values, NaN and infinities may be 22003 there
TOO_WIDE = "22003"
INTEGER_OVERFLOW = re.compile("(smallint|integer|bigint) out of range")


@dataclass(frozen=True, slots=True)
class Answer:
    """Types and rows, or an error's SQLSTATE and message (compared where it names the type that overflowed)."""

    oids: tuple[int, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    sqlstate: str = ""
    message: str = ""

    def __str__(self) -> str:
        return f"{self.sqlstate} {self.message}" if self.sqlstate else f"{list(self.rows)} {list(self.oids)}"


def ask(client: Client, sql: str) -> Answer:
    """Run one query. After an error in a block the caller restores it."""
    try:
        result = client.run(sql)
    except ServerError as error:
        return Answer(sqlstate=error.sqlstate, message=error.message)
    return Answer(result.oids, tuple(result.rows))


def ordered(sql: str) -> bool:
    """Tell whether the query's own rows have an order: its last ORDER BY stands outside parentheses."""
    _, found, tail = sql.lower().rpartition(" order by ")
    return bool(found) and tail.count("(") == tail.count(")")


def agree(sql: str, left: Answer, right: Answer) -> bool:
    """Tell whether two executors gave one answer."""
    if left.sqlstate or right.sqlstate:
        if left.sqlstate == right.sqlstate:
            return left.message == right.message or not INTEGER_OVERFLOW.fullmatch(left.message)
        return right.sqlstate == TOO_WIDE and _wide(left)
    if left.oids != right.oids or len(left.rows) != len(right.rows):
        return False
    one, other = _significant(left), _significant(right)
    if not ordered(sql):
        one.sort(key=repr)
        other.sort(key=repr)
    if one == other:
        return True
    loose = FLOAT_AGGREGATE.search(sql) is not None
    return loose and all(_near(a, b, left.oids) for a, b in zip(one, other, strict=True))


def _significant(answer: Answer) -> list[tuple[str | None, ...]]:
    """Return the rows without what cannot be told apart: blanks at the end of a bpchar."""
    if BPCHAR_OID not in answer.oids:
        return list(answer.rows)
    return [
        tuple(
            c.rstrip(" ") if oid == BPCHAR_OID and c is not None else c
            for c, oid in zip(row, answer.oids, strict=True)
        )
        for row in answer.rows
    ]


def _wide(answer: Answer) -> bool:
    return any(
        (sum(map(str.isdigit, cell)) > ENGINE_DIGITS or cell in ("NaN", "Infinity", "-Infinity"))
        for row in answer.rows
        for cell, oid in zip(row, answer.oids, strict=True)
        if cell is not None and oid == NUMERIC_OID
    )


def _near(left: Sequence[str | None], right: Sequence[str | None], oids: Sequence[int]) -> bool:
    for a, b, oid in zip(left, right, oids, strict=True):
        if a == b:
            continue
        if a is None or b is None or oid not in FLOAT_OIDS:
            return False
        if not math.isclose(float(a), float(b), rel_tol=LAST_DIGITS, abs_tol=LAST_DIGITS):
            return False
    return True
