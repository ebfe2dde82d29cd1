"""plpgsql.extra_warnings and plpgsql.extra_errors: what PL/pgSQL takes silently otherwise (manual 43.12.2).

shadowed_variables         a variable hides another one                   when the function is made
too_many_rows              a query INTO variables returns several rows    when it runs
strict_multi_assignment    it returns more or fewer columns than those    when it runs
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgwire.errors import ErrorReport
from planner.base.errors import Span, SqlError

if TYPE_CHECKING:
    from engine.session.session import Session


def extra_level(session: Session, check: str) -> str:
    """Return which setting has a check active: "extra_errors", which goes first, "extra_warnings", or ""."""
    for setting in ("extra_errors", "extra_warnings"):
        words = {word.strip(' "').lower() for word in session.setting(f"plpgsql.{setting}").split(",")}
        if check in words or "all" in words:
            return setting
    return ""


def tell_extra(
    session: Session,
    check: str,
    sqlstate: str,
    message: str,
    *,
    detail: str | None = None,
    hint: str | None = None,
    span: Span | None = None,
) -> None:
    """Say what a check has found, if it is active: a WARNING, or SqlError ``sqlstate``."""
    level = extra_level(session, check)
    if level == "extra_errors":
        raise SqlError(sqlstate, message, detail=detail, hint=hint, span=span)
    if level:
        position = None if span is None else span.start + 1
        session.tell(
            ErrorReport(
                severity="WARNING",
                sqlstate=sqlstate,
                message=message,
                detail=detail,
                hint=hint,
                position=position,
            )
        )
