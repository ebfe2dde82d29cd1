"""Rights to settings: GRANT SET, ALTER SYSTEM ON PARAMETER, in the lists of pg_parameter_acl.

    work_mem ── parameter_oid ──> 0x8....... , the same for ever and in every server: a name is never stored

Oids from 2,147,483,648 on are no other object's of pg_parameter_acl. Which settings there are is the engine's to know.
"""

from __future__ import annotations

import zlib
from typing import Final

PG_PARAMETER_ACL: Final = 6243
_FIRST: Final = 1 << 31


def parameter_oid(name: str) -> int:
    """Return the oid by which lists of rights know a setting, whatever the case of its name."""
    return _FIRST | zlib.crc32(name.lower().encode())
