"""CONTEXT: in which function, and in which statement of it, an error was met."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgwire.codecs.errors import DataError
from planner.base.errors import SqlError
from planner.plpgsql.tree import Piece


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


@contextmanager
def telling(where: str) -> Iterator[None]:
    """Add a line to the CONTEXT of errors."""
    try:
        yield
    except Exception as error:
        tell_where(error, where)
        raise


@contextmanager
def told(piece: Piece) -> Iterator[None]:
    """Have errors name a piece in CONTEXT, those that do not already, by a line or by a place in its text."""
    try:
        yield
    except Exception as error:
        where = getattr(error, "where", None)
        placed = getattr(error, "query", None) == piece.target + piece.text and where is None
        if not placed and (where is None or not where.endswith(piece.words)):
            tell_where(error, piece.words)
        raise
