"""A row of the table: one hostile statement or exchange of messages, and what has to come of it.

    Row(name="a pattern that backtracks", sql="SELECT repeat('x', <n>) ~ '(x+x+)+y'", short=24, full=300, answer="f")

``<n>`` is the row's size: ``short`` for `make check`, where the work has to exceed a turn's bound many times over if nothing gives way
and to be over in a fraction of a second else; ``full`` for `make hostile`, which is as bad as a client can make it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from tests.hostile.talk import Talk

Text = str | Callable[[int], str]

DONE: Final = "done"
"""It ends without an error."""
RUNS: Final = "runs"
"""It does not end: it is cancelled, and says 57014."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row.

    Attributes:
        name: unique in the table.
        sql: the statement, with ``<n>`` for the size, or a function of the size.
        short: the size in `make check`.
        full: the size in `make hostile`.
        setup: statements before it, on the same connection, in which ``<n>`` is the size, too; they are not measured.
        expect: DONE, RUNS, or SQLSTATEs of which it ends with one, separated by blanks; DONE may be among them.
        answer: the first column of its last row, where it is DONE.
        values: parameters, in text; with them, or with ``prepared``, the extended protocol is spoken.
        prepared: the extended protocol is spoken.
        executor: which executor is pinned; empty: none.
        also: words that are put before the statement for further rows of the table (EXPLAIN, PREPARE p AS), which do at bind what
            the statement does.
        limited: statement_timeout ends it.
        unread: the client does not read what the server says until its cancel has been sent.
        talk: an exchange of messages in place of a statement; raises AssertionError where the server said something else.
    """

    name: str
    sql: Text = ""
    short: int = 0
    full: int = 0
    setup: tuple[Text, ...] = ()
    expect: str = DONE
    answer: str | None = None
    values: tuple[Text, ...] = ()
    prepared: bool = False
    executor: Literal["", "index", "local"] = ""
    also: tuple[str, ...] = ()
    limited: bool = True
    unread: bool = False
    talk: Callable[[Talk, int], None] | None = None

    def statement(self, size: int) -> str:
        """Return the statement at a size."""
        return at_size(self.sql, size)


def at_size(text: Text, size: int) -> str:
    """Return a text of the table at a size."""
    return text.replace("<n>", str(size)) if isinstance(text, str) else text(size)


def spread(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Return ``rows`` with those that ``also`` asks for behind each."""
    found: list[Row] = []
    for row in rows:
        found.append(row)
        for words in row.also:
            found.append(_with_words(row, words))
    return tuple(found)


def _with_words(row: Row, words: str) -> Row:
    def statement(size: int) -> str:
        return f"{words} {row.statement(size)}"

    planned = words.split()[0] in ("EXPLAIN", "PREPARE")
    return replace(
        row,
        name=f"{row.name} ({words.split()[0]})",
        sql=statement,
        also=(),
        answer=None if planned else row.answer,
        expect=DONE if planned and row.expect == RUNS else row.expect,
    )
