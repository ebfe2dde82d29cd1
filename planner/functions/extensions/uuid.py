"""Functions of the extension uuid-ossp (manual F.49): uuids by time and node, by name, and at random (RFC 4122)."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from typing import Final

from pgwire.long.values import pieces
from planner.functions.registry import REGISTRY, PythonForm
from planner.functions.session import EvalSession
from planner.functions.values.uuid import gen_random_uuid

_MULTICAST = 1 << 40
_PIECE: Final = 1 << 18
"""Characters that are hashed at once: half a millisecond."""


def generate_v1(session: EvalSession) -> bytes:
    """Return a uuid of the present time and the machine's address."""
    return uuid.uuid1().bytes


def generate_v1mc(session: EvalSession) -> bytes:
    """Return a uuid of the present time and a random multicast address."""
    return uuid.uuid1(node=int.from_bytes(session.random_bytes(6), "big") | _MULTICAST).bytes


def generate_v3(namespace: bytes, name: str) -> bytes:
    """Return the uuid that MD5 makes of a name."""
    return _of_name(hashlib.md5, 3, namespace, name)


def generate_v5(namespace: bytes, name: str) -> bytes:
    """Return the uuid that SHA-1 makes of a name."""
    return _of_name(hashlib.sha1, 5, namespace, name)


def _of_name(algorithm: Callable[..., hashlib._Hash], version: int, namespace: bytes, name: str) -> bytes:
    digest = algorithm(namespace, usedforsecurity=False)
    for piece in pieces(name, _PIECE):
        digest.update(piece.encode())
    return uuid.UUID(bytes=digest.digest()[:16], version=version).bytes


def _register() -> None:
    def python(signature: str, form: PythonForm, *, needs_session: bool = False) -> None:
        REGISTRY.python(f"uuid-ossp.{signature}", form, needs_session=needs_session)

    for name, value in (
        ("nil", uuid.UUID(int=0)), ("ns_dns", uuid.NAMESPACE_DNS), ("ns_url", uuid.NAMESPACE_URL),
        ("ns_oid", uuid.NAMESPACE_OID), ("ns_x500", uuid.NAMESPACE_X500),
    ):  # fmt: skip
        python(f"uuid_{name}()", value.bytes.__bytes__)
    python("uuid_generate_v1()", generate_v1, needs_session=True)
    python("uuid_generate_v1mc()", generate_v1mc, needs_session=True)
    python("uuid_generate_v3(uuid,text)", generate_v3)
    python("uuid_generate_v4()", gen_random_uuid, needs_session=True)
    python("uuid_generate_v5(uuid,text)", generate_v5)


_register()
