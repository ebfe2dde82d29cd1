"""Names that ranges are given where an outer query has theirs already, as stored texts write them: the number
apart from the name.

    SELECT (SELECT count(*) FROM t WHERE t.a = 1) FROM t     is shown with    FROM t t_1 WHERE t_1.a = 1
                                                             is kept with     FROM t "#1.t" WHERE "#1.t".a = 1

When the text is read again ``#1.t`` is no alias: once t is called u it is shown as u_1, and once nothing
takes its name, as u. The same of an alias that somebody wrote, ``#1:x`` for x_1, which goes back to x. Read
so in stored texts alone.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FORM: Final = re.compile(r"#(\d+)([.:])(.*)", re.DOTALL)


class Numbered(NamedTuple):
    """What a range was called, by its relation or (``aliased``) by whoever wrote the query, and its number, 0
    for none.
    """

    name: str
    number: int
    aliased: bool

    @property
    def shown(self) -> str:
        """As readers see it."""
        return f"{self.name}_{self.number}" if self.number else self.name

    @property
    def stored(self) -> str:
        """As stored texts have it."""
        plain = not self.number and not (self.aliased and self.name.startswith("#"))
        return self.name if plain else f"#{self.number}{':' if self.aliased else '.'}{self.name}"


def numbered(name: str) -> Numbered | None:
    """Return what a stored text means by a name; None where it is just a name."""
    found = _FORM.fullmatch(name) if name.startswith("#") else None
    return None if found is None else Numbered(found[3], int(found[1]), found[2] == ":")


def shown(name: str) -> str:
    """Return how readers see a name of a stored text."""
    found = numbered(name)
    return name if found is None else found.shown
