"""How a name is written as an identifier of SQL: quoted where it must be, or everywhere (``quote_all_identifiers``).

    lower case, digits, _, no keyword      orders         "orders" for a reader who has all quoted
    anything else                          "Order No"     the same

What a session reads is printed by functions and by the output of reg* types, which say so here for as long as they run
(``for_reader``). What is stored is printed without, whoever defines it: texts of two definitions can be compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pgwire.give_way import paced
from pgwire.long.values import joined, replaced
from planner.facts import (
    rows,
)  # fmt: skip

if TYPE_CHECKING:
    pass

from contextvars import ContextVar
from typing import Protocol

_EVERYTHING: Final[ContextVar[bool]] = ContextVar("quote_all_identifiers", default=False)
"""A strand that is laid aside has a context of its own, so that others print as they want to meanwhile."""


class QuotingReader(Protocol):
    """Who reads what is printed."""

    @property
    def quotes_all(self) -> bool:
        """Is every identifier quoted (``quote_all_identifiers``)?"""


def everything() -> bool:
    """Tell whether names are quoted now that need not be."""
    return _EVERYTHING.get()


@functools.cache
def keywords() -> frozenset[str]:
    """Return the words that are quoted where they are names: all but unreserved ones."""
    return frozenset(row["word"] for row in rows("keywords") if row["catcode"] != "U")


def printed(session: QuotingReader | None, form: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Return ``form(*args, **more)``, with names as the session reads them. Raises what that raises."""
    if session is None or not session.quotes_all or _EVERYTHING.get():
        return form(*args, **more)
    token = _EVERYTHING.set(True)
    try:
        return form(*args, **more)
    finally:
        _EVERYTHING.reset(token)


def for_reader(form: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that takes the session first print names as that reads them."""

    @functools.wraps(form)
    def printing(session: QuotingReader, *args: Any, **more: Any) -> Any:
        if not session.quotes_all:
            return form(session, *args, **more)
        return printed(session, form, session, *args, **more)

    return printing


def for_reader_of_rows(form: Callable[..., Callable[..., Any]]) -> Callable[..., Callable[..., Any]]:
    """As ``for_reader``, for what makes a function of many rows of one statement."""

    @functools.wraps(form)
    def making(session: QuotingReader, *args: Any) -> Callable[..., Any]:
        made = form(session, *args)
        return functools.partial(printed, session, made) if session.quotes_all else made

    return making


def quote_identifier(name: str) -> str:
    """Return ``name`` as it must be written in SQL: quoted unless lower-case, plain and no keyword."""
    plain = bool(name) and (name[0].islower() or name[0] == "_") and name.isascii() and not everything()
    if plain and name == name.lower() and name.replace("_", "a").isalnum() and name not in keywords():
        return name
    return '"' + name.replace('"', '""') + '"'


def quote_ident(name: str) -> str:
    """Quote an identifier where PostgreSQL would: not lower-case letters, digits, _, or a reserved word."""
    if (
        name
        and not everything()
        and (name[0].islower() or name[0] == "_")
        and name.isascii()
        and all(c.islower() or c.isdigit() or c in "_" for c in paced(name, 1024))
        and name not in keywords()
    ):
        return name
    return joined(('"', replaced(name, '"', '""'), '"'))
