"""Errors a statement can raise: SQLSTATE, message, and where in the text.

Every error the planner, the builtins or an executor raises towards a client is a ``SqlError`` (or the
``DataError`` of the value codecs, which has the same leading fields). Positions are spans over the
*characters* of the statement text, ``[start, end)``, counted from 0; the wire's field P is ``start + 1``.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from pgwire.codecs.errors import DataError


class Span(NamedTuple):
    """A piece of the statement text: characters ``[start, end)``, counted from 0."""

    start: int
    end: int


class JoinSpan(Span):
    """Where a column of a join is named in the text: ``column`` counted from 0 of join ``join`` of its query,
    -1 for its whole row.
    """

    join: int
    column: int

    @classmethod
    def of(cls, span: Span, join: int, column: int) -> JoinSpan:
        """Return a span with a reference to a join's column."""
        made = cls(*span)
        made.join, made.column = join, column
        return made


class SqlError(DataError):
    """An error with the fields of PostgreSQL's ErrorResponse.

    Attributes:
        span: the piece of text to blame, or None.
        schema, table, column, datatype, constraint: the constraint fields (s, t, c, d, n), or None.
        settled: ``where`` is complete: it was met before, handled, and raised again.
        query: the text that ``span`` counts in where that is not the client's (field q), or None.
        routine: PostgreSQL's name of the function that found it (field R) where clients decide by that, else None.
        log_detail: DETAIL as the server's log has it, where that is longer, else None.
    """

    def __init__(
        self,
        sqlstate: str,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        where: str | None = None,
        span: Span | None = None,
        schema: str | None = None,
        table: str | None = None,
        column: str | None = None,
        datatype: str | None = None,
        constraint: str | None = None,
    ) -> None:
        """Make an error; only ``sqlstate`` and ``message`` are required."""
        super().__init__(sqlstate, message, detail=detail, hint=hint, where=where)
        self.span = span
        self.query: str | None = None
        self.settled = False
        self.schema = schema
        self.table = table
        self.column = column
        self.datatype = datatype
        self.constraint = constraint
        self.routine: str | None = None
        self.log_detail: str | None = None

    @property
    def ends_statement(self) -> bool:
        """Whether it is of the running statement (a cancel, a time-out, no room), and says nothing of a text
        that is looked at.

        Who asks whether a text can be bound has to raise it.
        """
        return self.sqlstate[:2] in ("53", "57")

    def copy(self) -> Self:
        """Return the error anew, without the frames it came through: to keep it, or to raise one that is kept
        or a variable has.

        An error whose frame has a variable for it is in a cycle with all that the frames know
        (``engine.base.loop.collector``).
        """
        made = self.__class__.__new__(self.__class__, *self.args)
        made.__dict__.update(self.__dict__)
        return made


def not_supported(construct: str, *, span: Span | None = None, hint: str | None = None) -> SqlError:
    """Return the 0A000 error that names ``construct`` (promise P4)."""
    return SqlError("0A000", f"{construct} is not supported", span=span, hint=hint)


def result_type_changed() -> SqlError:
    """Return the error of a prepared statement whose result has other columns by now.

    Drivers (asyncpg, pgjdbc) prepare it again where they know the error by its routine.
    """
    error = SqlError("0A000", "cached plan must not change result type")
    error.routine = "RevalidateCachedQuery"
    return error
