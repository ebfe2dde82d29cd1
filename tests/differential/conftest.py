"""One server for the tests of this package."""

from __future__ import annotations

from tests.engine.conftest import server

__all__ = ["server"]
