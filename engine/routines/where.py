"""CONTEXT: in which function, and in which statement of it, an error was met."""

from __future__ import annotations

from pgwire.codecs.errors import DataError
from planner.errors import SqlError


def tell_where(error: Exception, where: str) -> None:
    """Add a line to an error's CONTEXT: the innermost function is told first."""
    if getattr(error, "settled", False):
        return
    if isinstance(error, DataError):
        error.where = where if error.where is None else f"{error.where}\n{where}"
        if isinstance(error, SqlError) and error.query is None:
            error.span = None  # it stands in another text
        return
    told = getattr(error, "where", None)
    error.where = where if told is None else f"{told}\n{where}"  # type: ignore[attr-defined]  # on any exception: what shows errors looks for it


def settled(error: SqlError) -> SqlError:
    """Return an error that has its whole CONTEXT already, to which ``tell_where`` adds nothing."""
    error.settled = True
    return error
