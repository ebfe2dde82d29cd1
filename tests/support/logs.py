"""Loggers made quieter for a while: what a test leaves behind changes what the tests after it see."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def log_level(logger: str, level: int) -> Iterator[None]:
    """Set the level of a logger, and what it was before at the end."""
    found = logging.getLogger(logger)
    before = found.level
    found.setLevel(level)
    try:
        yield
    finally:
        found.setLevel(before)
