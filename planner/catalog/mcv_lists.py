r"""Values of pg_mcv_list: the combinations of values that extended statistics found most often.

\x5b5b5b2261 ...        the bytes of a JSON text, as PostgreSQL shows those of its own form: no other server reads either
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from pgwire.give_way import paced

Item: TypeAlias = tuple[Sequence[str | None], float, float]
"""Values as texts (NULL: None), their share of the rows, and the product of each one's own share."""


def encoded(items: Iterable[Item]) -> str:
    """Return a value that holds the items."""
    return "\\x" + json.dumps([[list(values), share, base] for values, share, base in items]).encode().hex()


def decoded(value: str) -> Iterator[Item]:
    """Yield the items of a value."""
    for values, share, base in paced(json.loads(bytes.fromhex(value[2:]))):
        yield tuple(values), share, base
