"""The modes of a transaction as settings: transaction_isolation, transaction_read_only, transaction_deferrable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.session.transaction.block_state import IDLE, IMPLICIT

if TYPE_CHECKING:
    from engine.session.session import Session


def change_mode(session: Session, name: str, value: str | None) -> str:
    """As ``set_mode``; return the canonical value. Outside of a transaction block it lasts for the statement: nothing changes."""
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
