"""pg_parameter_acl, and which setting an oid of it means (``planner.catalog.parameters``)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.base.settings.defs import definitions
from engine.catalog.acl_texts import acl_texts
from engine.catalog.relations.sources import RowDict, relation
from planner.catalog.acl import default_acl
from planner.catalog.parameters import PG_PARAMETER_ACL, parameter_oid
from planner.catalog.rights import SUPERUSER

if TYPE_CHECKING:
    from engine.catalog.reading import Reading


@functools.cache
def parameter_names() -> Mapping[int, str]:
    """Return the names of settings, in lower case, by oid. LookupError for two of one oid."""
    found = {parameter_oid(name): name for name in definitions()}
    if len(found) != len(definitions()):
        raise LookupError("two settings have one oid")
    return found


@relation("pg_parameter_acl", "catalog")
def pg_parameter_acl(session: Reading) -> Iterator[RowDict]:
    """Yield pg_parameter_acl: the settings that others than superusers have a right to."""
    for acl in session.catalog.acls():
        if acl.class_oid == PG_PARAMETER_ACL and acl.items != default_acl("parameter", SUPERUSER):
            yield {
                "oid": acl.object_oid, "parname": parameter_names()[acl.object_oid],
                "paracl": acl_texts(session, acl.items),
            }  # fmt: skip
