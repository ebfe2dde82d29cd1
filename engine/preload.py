"""What statements import when they first need it, imported ahead: on the loop the first aggregate would cost 0.3 s.

The server listens before it has these modules, so that a restart is short; a thread brings them in at once after.
A statement that is faster imports what it needs itself, as ever.
"""

from __future__ import annotations

from planner import bind, builtins


def preload() -> None:
    """Import the binders of all statements and the engine forms of all functions. For a thread; idempotent."""
    bind.load()
    builtins.load()
