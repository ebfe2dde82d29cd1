"""Names the server chooses for constraints and indexes, as PostgreSQL does.

    t_pkey    t_a_b_key    t_a_check    t_a_idx    t_a_idx1

Pure functions; the caller says which names are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

# Bytes of an identifier (NAMEDATALEN - 1).
MAX_NAME_BYTES = 63


def clip(name: str, max_bytes: int = MAX_NAME_BYTES) -> str:
    """Return the longest prefix of ``name`` of at most ``max_bytes`` bytes of UTF-8, whole characters only."""
    return name.encode("utf-8")[:max_bytes].decode("utf-8", "ignore")


def object_name(table: str, columns: str, label: str) -> str:
    """Return ``table_columns_label`` cut to 63 bytes: the longer of the first two parts gives way."""
    room = MAX_NAME_BYTES - (len(label.encode()) + 1 if label else 0) - (1 if columns else 0)
    first, second = len(table.encode()), len(columns.encode())
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    parts = [clip(table, first)]
    if columns:
        parts.append(clip(columns, second))
    if label:
        parts.append(label)
    return "_".join(parts)


def choose_name(table: str, columns: Sequence[str], label: str, taken: Callable[[str], bool]) -> str:
    """Return the first of ``table_a_b_label``, ``...label1``, ``...label2`` ... that is not ``taken``."""
    joined = ""
    for column in columns:
        joined += ("_" if joined else "") + column
        if len(joined.encode()) > MAX_NAME_BYTES:
            joined = clip(joined)
            break
    number = 0
    while True:
        name = object_name(table, joined, f"{label}{number or ''}")
        if not taken(name):
            return name
        number += 1
