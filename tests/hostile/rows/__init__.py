"""The table: a file per kind."""

from __future__ import annotations

from tests.hostile.row import Row, spread
from tests.hostile.rows import (
    binary,
    callbacks,
    joins,
    literals,
    messages,
    nesting,
    numbers,
    objects,
    regex,
    routines,
    sessions,
    strings,
    textsearch,
    unread,
    wide,
)

KINDS: dict[str, tuple[Row, ...]] = {
    kind.__name__.rsplit(".", 1)[1]: spread(kind.ROWS)
    for kind in (
        regex, textsearch, joins, numbers, literals, strings, routines, nesting, unread, sessions, messages, callbacks, binary, wide, objects,
    )
}  # fmt: skip
"""All rows by kind."""
