"""uuid: comparison and generation (Python forms). Randomness comes from the session."""

from __future__ import annotations

import operator

from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.values.compare import register_comparisons


def gen_random_uuid(session: EvalSession) -> bytes:
    """Return a version 4 uuid (RFC 4122): 122 random bits."""
    data = bytearray(session.random_bytes(16))
    data[6] = data[6] & 0x0F | 0x40
    data[8] = data[8] & 0x3F | 0x80
    return bytes(data)


register_comparisons(
    {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "uuid_%s", "uuid", "uuid", "uuid_cmp",
)  # fmt: skip
REGISTRY.python("gen_random_uuid()", gen_random_uuid, needs_session=True)
