"""Which literals of a template may be parameters, where not all of them may.

    SELECT name, age FROM t WHERE id > 17 ORDER BY 2      ORDER BY $2 is another statement than ORDER BY 2: no proof
        $1 alone, ORDER BY 2 as it is                     proved                                        slot 1 is free
        $2 alone, id > 17 as it is                        refuted                                       slot 2 is kept
    SELECT name, age FROM t WHERE id > $1 ORDER BY 2      a template of its own, to be proved as any other

One slot is tried each time the statement is met, so nobody waits for more than one proof. What is found out
is only which template to ask for: whether that one may be believed is for its own proof, so a wrong guess
costs time and nothing else.
"""

from __future__ import annotations

import re
from typing import Final

_SLOT: Final = re.compile(r"(?<![\w$])\$\d+", re.ASCII)


class Template:
    """A text with slots: ``text``, the literals' type oids (0: a string) and their texts."""

    __slots__ = ("oids", "text", "values")

    def __init__(self, text: str, oids: tuple[int, ...], values: tuple[str, ...]) -> None:
        """Keep the three."""
        self.text, self.oids, self.values = text, oids, values


class Kept:
    """Says which of a template's slots keep their literals, and makes the template that is left."""

    __slots__ = ("_free", "_kept", "_pieces")

    def __init__(self, text: str, free: frozenset[int]) -> None:
        """``text``: the template's; ``free``: the slots (from 0) that stay slots."""
        cut = _SLOT.split(text)
        pieces, kept = [cut[0]], []
        number = 0
        for slot, after in enumerate(cut[1:]):
            if slot in free:
                number += 1
                pieces[-1] += f"${number}{after}"
            else:
                kept.append(slot)
                pieces.append(after)
        self._pieces, self._kept, self._free = tuple(pieces), tuple(kept), tuple(sorted(free))

    def narrow(self, template: Template) -> Template:
        """Return ``template``, which has the same text, with its kept literals written out."""
        oids, values, pieces = template.oids, template.values, self._pieces
        text = [pieces[0]]
        for slot, after in zip(self._kept, pieces[1:], strict=True):
            text.append(_written(oids[slot], values[slot]))
            text.append(after)
        return Template(
            "".join(text), tuple([oids[i] for i in self._free]), tuple([values[i] for i in self._free])
        )


def _written(oid: int, value: str) -> str:
    return value if oid else "'" + value.replace("'", "''") + "'"


class Trials:
    """A refuted template whose slots are tried one by one."""

    __slots__ = ("_free", "_next", "_text", "_width")

    def __init__(self, template: Template) -> None:
        """Begin with the first slot."""
        self._text, self._width = template.text, len(template.oids)
        self._free: set[int] = set()
        self._next = 0

    def attempt(self, template: Template) -> Template:
        """Return a template of the slot that is to be tried next alone."""
        return Kept(self._text, frozenset((self._next,))).narrow(template)

    def note(self, *, proved: bool) -> bool:
        """Note what came of the attempt; True: that was the last one."""
        if proved:
            self._free.add(self._next)
        self._next += 1
        return self._next == self._width

    def found(self) -> Kept | None:
        """Return what the trials have shown, None where no slot is free."""
        return Kept(self._text, frozenset(self._free)) if self._free else None


def may_be_tried(template: Template, sql: str) -> bool:
    """Tell whether the literals of ``template`` can be put back where they were found in ``sql``: nothing
    else looks like a slot.
    """
    if len(template.oids) < 2 or len(_SLOT.findall(template.text)) != len(template.oids):
        return False
    return Kept(template.text, frozenset()).narrow(template).text == sql
