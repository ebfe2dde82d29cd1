"""What Python forms may ask of the session (rows registered with ``needs_session``).

The engine's session implements it; tests use a small fake. Everything that is not a pure function of its
arguments - settings, clock, randomness, catalog - comes through here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from planner.catalog import Catalog

if TYPE_CHECKING:
    from pgwire.codecs.settings import CodecSettings


class EvalSession(Protocol):
    """The session as functions see it; ``engine.executor.Session`` documents each member."""

    @property
    def catalog(self) -> Catalog:
        """Return the catalog the statement sees."""

    @property
    def codec_settings(self) -> CodecSettings:
        """What value input and output depend on."""

    def random(self) -> float:
        """Return a random number, uniform in [0, 1)."""

    def set_seed(self, seed: float) -> None:
        """Seed ``random``."""

    def random_bytes(self, count: int) -> bytes:
        """Return random bytes."""

    def setting(self, name: str) -> str:
        """Return a setting's text; 42704 if unknown."""

    def set_setting(self, name: str, value: str, *, local: bool) -> str:
        """Change a setting and return its new text."""

    @property
    def user(self) -> str:
        """Return current_user."""

    @property
    def session_user(self) -> str:
        """Return session_user."""

    @property
    def database(self) -> str:
        """Return current_database()."""

    @property
    def pid(self) -> int:
        """Return pg_backend_pid()."""

    @property
    def search_path(self) -> tuple[str, ...]:
        """Return the existing schemas of the search path, pg_catalog first unless listed."""

    @property
    def transaction_time_us(self) -> int:
        """Return now(): microseconds since 1970."""

    @property
    def statement_time_us(self) -> int:
        """Return statement_timestamp()."""

    def clock_time_us(self) -> int:
        """Return clock_timestamp()."""
