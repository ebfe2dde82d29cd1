"""How the system watches over a client's TCP connection: four options of its socket, under PostgreSQL's names.

    tcp_keepalives_idle, _interval    seconds
    tcp_keepalives_count              probes unanswered before the connection counts as lost
    tcp_user_timeout                  milliseconds that sent data may stay unacknowledged

0 is what the system uses by itself. Where there is no TCP (a Unix-domain socket, or none at all) there are no options.
"""

from __future__ import annotations

import fcntl
import socket
import sys
import termios
from collections.abc import Mapping
from typing import Any, Final

from pgwire.errors import BackendError, ErrorReport

_NAMES: Final[Mapping[str, str]] = {
    "tcp_keepalives_idle": "TCP_KEEPIDLE",
    "tcp_keepalives_interval": "TCP_KEEPINTVL",
    "tcp_keepalives_count": "TCP_KEEPCNT",
    "tcp_user_timeout": "TCP_USER_TIMEOUT",
}
_NUMBERS: Final = {
    name: getattr(socket, option) for name, option in _NAMES.items() if hasattr(socket, option)
}
TCP_OPTIONS: Final = frozenset(_NAMES)


UNSENT_BYTES: Final = 256 << 10
"""What the system takes for a client beyond what is on its way to it, so that a client that does not read
costs that much, not megabytes."""


def bound_unsent(sock: Any) -> None:
    """Have the system take no more than ``UNSENT_BYTES`` that cannot be sent yet, where it can be told. What
    is on its way is not bounded: far clients need much.
    """
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)


def unsent(sock: Any) -> int:
    """Return how many bytes the system holds for a socket that its peer has not acknowledged; 0 where it does
    not tell.
    """
    try:
        told = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):
        return 0
    return int.from_bytes(told, sys.byteorder)


def read(sock: Any) -> dict[str, int]:
    """Return what holds for a socket, as asyncio knows it; nothing where it is none of TCP."""
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return {}
    return {name: sock.getsockopt(socket.IPPROTO_TCP, number) for name, number in _NUMBERS.items()}


def write(sock: Any, name: str, value: int) -> None:
    """Set an option; without TCP, nothing. Raises BackendError 22023 for a value that the system does not take."""
    if name not in read(sock):
        return
    try:
        sock.setsockopt(socket.IPPROTO_TCP, _NUMBERS[name], value)
    except (OSError, OverflowError) as error:
        raise BackendError(
            ErrorReport(
                severity="ERROR",
                sqlstate="22023",
                message=f'invalid value for parameter "{name}": {value}',
                detail=f"setsockopt({_NAMES[name]}) failed: {error}",
            )
        ) from None
