"""Do two servers answer TPC-H alike? Numerics to the digit and scale, floats to 12 digits, rows in order."""

from __future__ import annotations

from collections.abc import Sequence

from sqllogictest.client import Client, ServerError, Target

FLOATS = frozenset((700, 701))


def _cell(text: str | None, oid: int) -> str | None:
    if text is None or oid not in FLOATS:
        return text
    return f"{float(text):.12g}"


def answer(client: Client, sql: str) -> tuple[list[tuple[str | None, ...]], tuple[int, ...]]:
    """Return a query's rows as comparable texts, and its column types."""
    result = client.run(sql)
    rows = [
        tuple(_cell(cell, oid) for cell, oid in zip(row, result.oids, strict=True)) for row in result.rows
    ]
    return rows, result.oids


def differences(
    expected: Sequence[tuple[str | None, ...]], actual: Sequence[tuple[str | None, ...]], limit: int = 3
) -> list[str]:
    """Return lines that show the first differing rows; empty when the answers are equal."""
    found = [
        f"row {i + 1}: expected {e}, got {a}"
        for i, (e, a) in enumerate(zip(expected, actual, strict=False))
        if e != a
    ]
    if len(expected) != len(actual):
        found.append(f"expected {len(expected)} rows, got {len(actual)}")
    return found[:limit]


def connect(url: str, executor: str = "", timeout_s: float = 3600) -> Client:
    """Connect; with ``executor`` pin it."""
    client = Client(Target.from_url(url), timeout_s=timeout_s)
    if executor:
        client.run(f"SET executor = {executor}")
    return client


__all__ = ["ServerError", "answer", "connect", "differences"]
