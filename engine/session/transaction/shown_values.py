"""Values as messages quote them: of megabytes no more than the beginning is ever printed.

'xyz'                  xyz
'xxx…60 MB…'           xxx…64 KB…...
{1,2,…500,000}         {1,2,…4096}...
NULL                   null
"""

from __future__ import annotations

from typing import Any, Final

from pgwire.codecs import domain
from pgwire.codecs.registry import CodecSettings, text_output
from planner.types.facts import element_of
from txn.base.types import bounded

MOST: Final = 1 << 16
"""Characters of a text, or bytes of a bytea, that are shown."""
MOST_ITEMS: Final = 4096
"""Elements of an array, of each of its dimensions."""
_CUT: Final = frozenset((
    domain.TEXT, domain.VARCHAR, domain.BPCHAR, domain.JSON, domain.JSONB, domain.BYTEA,
))  # fmt: skip


def shown_value(oid: int, value: Any, settings: CodecSettings) -> str:
    """Return a value of a type as text, cut and with three dots behind it where it is long."""
    if value is None:
        return "null"
    some = _beginning(element_of(oid) or oid, value)
    text = text_output(oid, some, settings)
    if some is value and len(text) <= 2 * MOST:
        return text
    return text[: 2 * MOST] + "..."


def _beginning(oid: int, value: Any) -> Any:
    """Return a value, or so much of it as is shown; ``oid`` is that of its elements."""
    kind = type(value)
    if kind is str or kind is bytes:
        return value[:MOST] if oid in _CUT and len(value) > MOST else value
    if not isinstance(value, tuple):
        return value
    some = tuple([_beginning(oid, item) for item in value[:MOST_ITEMS]])
    if len(value) <= MOST_ITEMS and all(a is b for a, b in zip(some, value, strict=True)):
        return value
    return bounded(some, getattr(value, "lows", ()))
