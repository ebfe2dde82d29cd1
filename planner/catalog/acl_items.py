"""The values that rights are kept as: items of access control lists, and memberships of roles.

    bob=ar*/alice      AclItem(grantee=bob, grantor=alice, letters="ar", grantable="r")

What follows from them for a role is in ``planner.catalog.acl``, which knows of roles; what roles and the
catalog are made of needs these alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AclItem:
    """What ``grantor`` lets ``grantee`` (0: everybody) do; ``grantable``: those letters that it may grant on."""

    grantee: int
    grantor: int
    letters: str
    grantable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A role is a member of ``role``; ``admin``: and may make others so."""

    role: int
    grantor: int
    admin: bool = False
