"""The one exception a value conversion raises.

What a type reads and prints is written once, in ``pgwire.codecs``; the planner's literals, casts and
functions call the same pure functions, so the error they raise lives here and carries what a client
must see. ``planner.base.errors.SqlError`` extends it with the fields that only a statement has.
"""

from __future__ import annotations


class DataError(Exception):
    """A value that cannot be read, printed or computed.

    Attributes:
        sqlstate: five characters, PostgreSQL manual appendix A.
        message: primary message in PostgreSQL's wording, without a trailing period.
        detail: second sentence(s) for the DETAIL field, or None.
        hint: what the user can do, or None.
        where: the CONTEXT field (W), e.g. ``COPY t, line 3, column b: "x"``, or None.
    """

    def __init__(
        self,
        sqlstate: str,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        where: str | None = None,
    ) -> None:
        """Make an error with PostgreSQL's fields C, M, D, H and W."""
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint
        self.where = where
