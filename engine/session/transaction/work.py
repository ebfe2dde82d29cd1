"""The transaction of a session, as parts of the session use it that are no parts of the transaction.

``Work`` is what they use of ``engine.session.transaction.block.Block``, and ``Working`` is a session that has
one; what of a session a module uses beyond that it says itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.session.sequences.values import Counter
    from engine.session.transaction.block_state import BlockState
    from txn.api import Transaction


class Work(Protocol):
    """A session's transaction. ``on_end``: called when it has ended, with whether it has committed."""

    on_end: list[Callable[[bool], None]]

    @property
    def txn(self) -> Transaction | None:
        """The running transaction, None outside one."""

    @property
    def state(self) -> BlockState:
        """Where between BEGIN and COMMIT it is."""

    @property
    def is_read_only(self) -> bool:
        """Whether the user has said that the transaction shall change nothing."""

    def ensure_txn(self) -> Transaction:
        """Return the running transaction; without one, start an implicit one, or the block's."""

    def renew_snapshot(self) -> None:
        """Let a transaction that has waited before it read anything see what it has waited for."""

    def owe(self, counter: Counter) -> None:
        """Note that a value was drawn that is to be stored before the transaction commits."""

    def set_modes(
        self, *, isolation: str | None, read_only: bool | None, deferrable: bool | None, check: bool = True
    ) -> None:
        """SET TRANSACTION: None leaves a mode as it is."""


class Working(Protocol):
    """A session that works in a transaction."""

    pid: int
    database_oid: int

    @property
    def block(self) -> Work:
        """Its transaction."""
