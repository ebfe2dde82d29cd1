"""ON_ERROR ignore: what a load says about the rows it has left out.

    REJECT_LIMIT n            more than n rows left out end the load
    LOG_VERBOSITY verbose     a notice for each row; silent: none at all; else one that counts them

Options and words are those of PostgreSQL 17 and 18; where a load reads several files, notices name the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.changes.writes.copy_rows import Rejects
from pgwire.codecs.copy import CopyOptions

if TYPE_CHECKING:
    from engine.session.session import Session

MOST_KEPT: Final = 10_000
"""Rows that LOG_VERBOSITY verbose tells of, one by one: they are kept until the load has ended."""


def told(options: CopyOptions) -> int:
    """Return how many rows left out have to be remembered."""
    return MOST_KEPT if options.log_verbosity == "verbose" else 0


def tell_rejects(session: Session, options: CopyOptions, rejects: Rejects) -> None:
    """Send the notices at the end of a load."""
    if options.log_verbosity == "verbose":
        for reject in rejects.first:
            session.notice(reject.message(), detail=f'file "{reject.file}"' if reject.file else None)
    if rejects.count and options.log_verbosity != "silent":
        rows = "1 row was" if rejects.count == 1 else f"{rejects.count} rows were"
        session.notice(f"{rows} skipped due to data type incompatibility")
