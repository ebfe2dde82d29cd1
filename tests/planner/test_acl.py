"""As which of the roles whose rights it has a role grants (PostgreSQL's select_best_grantor)."""

from __future__ import annotations

import pytest

from planner.catalog import RoleDef
from planner.catalog.acl import best_grantor, nearest
from planner.catalog.acl_items import AclItem, Membership


def _role(oid: int, *of: int, inherit: bool = True) -> RoleDef:
    return RoleDef(
        oid=oid,
        name=f"r{oid}",
        inherit=inherit,
        member_of=tuple(Membership(role=role, grantor=10) for role in of),
    )


#   1 ── 9 ── 3          2, 3, 4: reached over others; by distance, then by oid
#   └─── 5 ── 2 ── 4
ROLES = {r.oid: r for r in (_role(1, 9, 5), _role(9, 3), _role(5, 2), _role(2, 4), _role(3, 1), _role(4))}


def test_roles_are_found_by_distance_and_then_by_oid() -> None:
    assert nearest(ROLES[1], ROLES.get) == (1, 5, 9, 2, 3, 4)
    assert nearest(_role(7, 1, inherit=False), ROLES.get) == (7,)


@pytest.mark.parametrize(
    ("owner", "holder", "wanted", "grantor"),
    [
        (2, (3, "r"), "r", (2, "r")),
        (9, (2, "r"), "r", (9, "r")),
        (4, (9, "r"), "r", (9, "r")),
        (4, (9, "r"), "rw", (4, "rw")),
        (8, (9, "r"), "rw", (9, "r")),
        (8, (8, "r"), "rw", (1, "")),
    ],
)
def test_the_nearest_that_may_grant_most_grants(
    owner: int, holder: tuple[int, str], wanted: str, grantor: tuple[int, str]
) -> None:
    item = AclItem(grantee=holder[0], grantor=owner, letters=holder[1], grantable=holder[1])
    assert best_grantor((item,), nearest(ROLES[1], ROLES.get), owner, "relation", wanted) == grantor
