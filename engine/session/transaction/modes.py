"""The modes of a transaction as settings: transaction_isolation, transaction_read_only, transaction_deferrable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from engine.session.transaction.block_state import IDLE, IMPLICIT

if TYPE_CHECKING:
    from engine.base.settings import Settings
    from engine.session.transaction.work import Work


class HasModes(Protocol):
    """A session whose transaction has modes."""

    settings: Settings

    @property
    def block(self) -> Work:
        """Its transaction."""


def change_mode(session: HasModes, name: str, value: str | None) -> str:
    """As ``set_mode``; return the canonical value. Outside of a transaction block it lasts for the statement:
    nothing changes.
    """
    if value is None:
        value = session.settings.get("default_" + name)
    canonical = session.settings.check("default_" + name, value, spelled=name)
    if session.block.state not in (IDLE, IMPLICIT):
        flag = canonical == "on"
        session.block.set_modes(
            isolation=canonical if name == "transaction_isolation" else None,
            read_only=flag if name == "transaction_read_only" else None,
            deferrable=flag if name == "transaction_deferrable" else None,
        )
    return canonical
