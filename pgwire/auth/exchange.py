"""The shape every authentication method has: messages in, messages out, a verdict, no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from pgwire.messages import BackendMessage

# Returns that many unguessable bytes; ``secrets.token_bytes`` outside tests.
RandomBytes: TypeAlias = Callable[[int], bytes]


class AuthenticationFailed(Exception):
    """The client did not prove who it is: 28P01, without a reason that would help it guess."""


class Exchange(Protocol):
    """One authentication attempt.

    ``start`` is called once, then ``step`` with each answer until ``done``. Messages are to be sent in order;
    AuthenticationOk is not among them.
    """

    done: bool

    def start(self) -> list[BackendMessage]:
        """Return the opening request (nothing for trust)."""

    def step(self, answer: bytes) -> list[BackendMessage]:
        """Judge one PasswordMessage payload.

        Raises:
            AuthenticationFailed: wrong proof, or nobody to compare with.
            RemoteProtocolError: the answer is malformed (08P01, fatal) or asks for what is not there (0A000).
        """
