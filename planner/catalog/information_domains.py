"""The domains of information_schema: types that every database has, of which clients and functions may make use.

    CREATE TABLE seen (name information_schema.sql_identifier)        name, in the collation "C"
    SELECT '-1'::information_schema.cardinal_number                   23514

They are definitions like users', which no catalog stores and no statement changes: their oids are PostgreSQL's.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from planner.catalog.relations import ConstraintDef
from planner.catalog.types import TypeDef
from planner.facts import INFORMATION_SCHEMA_OID, NAME, VARCHAR, rows
from planner.types.facts import C_COLLATION

_SCHEMA: Final = "information_schema"
_CHECKS: Final = {
    "cardinal_number": ("cardinal_number_domain_check", "VALUE >= 0"),
    "yes_or_no": (
        "yes_or_no_check",
        "(VALUE)::text = ANY ((ARRAY['YES'::character varying, 'NO'::character varying])::text[])",
    ),
}
_DEFAULTS: Final = {"time_stamp": "CURRENT_TIMESTAMP(2)"}


@functools.cache
def information_domains() -> Mapping[int, TypeDef]:
    """Return the domains by their oids, and by those of the array types over them."""
    found: dict[int, TypeDef] = {}
    for row in rows("domains"):
        oid, name, base = int(row["oid"]), row["typname"], int(row["typbasetype"])
        check = _CHECKS.get(name)
        made = TypeDef(
            oid=oid,
            array_oid=int(row["typarray"]),
            array_name=f"_{name}",
            schema_oid=INFORMATION_SCHEMA_OID,
            schema=_SCHEMA,
            name=name,
            kind="d",
            base=base,
            base_typmod=int(row["typtypmod"]),
            default_sql=_DEFAULTS.get(name),
            checks=()
            if check is None
            else (ConstraintDef(oid=oid + 1, name=check[0], kind="c", check_sql=check[1]),),
            collation=C_COLLATION if base in (NAME, VARCHAR) else 0,
        )
        found[made.oid] = found[made.array_oid] = made
    return found


@functools.cache
def information_domain_oids() -> Mapping[str, int]:
    """Return the oids of the domains, and of the array types over them, by name."""
    return {name: oid for made in information_domains().values() for oid, name in made.names.items()}
