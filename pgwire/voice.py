"""What functions, and the input of types, have to say beside their result: notices of whoever runs.

    to_tsquery('the'), ''::tsquery    NOTICE   nothing is left of the query
    timestamp(9)                      WARNING  precision reduced

    function ──notice(message)──► VOICE.tell ──► the statement that runs (``engine.base.accounts``) ──► its client

Codecs and functions know no statement. Where none runs, as in threads and workers, nobody hears it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

Severity = Literal["NOTICE", "WARNING"]
Tell = Callable[[Severity, str, str], None]
"""Of a severity, a SQLSTATE and a message."""


class Voice:
    """Where notices go. ``tell``: None while nobody listens."""

    __slots__ = ("tell",)

    def __init__(self) -> None:
        """Nobody listens."""
        self.tell: Tell | None = None


VOICE: Final = Voice()


def notice(message: str, *, severity: Severity = "NOTICE", sqlstate: str = "00000") -> None:
    """Tell whoever runs."""
    if VOICE.tell is not None:
        VOICE.tell(severity, sqlstate, message)
