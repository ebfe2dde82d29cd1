"""The server as those know it who need what is stored, the clock, and whether it leads: no session, and
nothing that sessions share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.base.config import Config
    from engine.catalog.storage.spaces import Spaces
    from txn.store import ShardStore


class Server(Protocol):
    """What sequences, catalog relations, named subscriptions and sources need of the server that they are of."""

    config: Config
    store: ShardStore
    spaces: Spaces

    def clock_us(self) -> int:
        """Return the wall clock in microseconds since 1970."""

    def random(self) -> float:
        """Return a uniform random number in [0, 1)."""

    async def wait_leading(self) -> None:
        """Wait until it is known that this server leads. Raises Fenced where it does not."""
