"""What an expression raises that has to wait: for pg_sleep, a lock, a function that is called, a sub-select
that reads cold rows.
"""

from __future__ import annotations

import inspect
from typing import Any


class Suspend(Exception):
    """Raised inside an expression that must wait: the executor waits, then evaluates the batch again.

    ``kind`` is ``"sleep"`` (``argument`` seconds), ``"wait"`` (an awaitable), ``"call"`` (an awaitable whose
    answer is the value) or ``"load"`` (the executor's own request). Values of volatile functions are replayed
    from ``Shared.log`` so that evaluating again changes nothing.
    """

    def __init__(self, kind: str, argument: Any) -> None:
        super().__init__(kind)
        self.kind = kind
        self.argument = argument

    def abandon(self) -> None:
        """Nobody can wait where it was raised: give up what there is to wait for."""
        if self.kind == "call" or (self.kind == "wait" and inspect.iscoroutine(self.argument)):
            self.argument.close()
