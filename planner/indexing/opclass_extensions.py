"""Operator classes that extensions bring: facts, by method and type.

    pg_trgm      gin  gin_trgm_ops   text                      an index of trigrams
    hstore       gin  gin_hstore_ops hstore, the default       an index of keys
    btree_gin    gin  int4_ops ...   plain types, the default  an index of the values themselves
    btree_gist   gist gist_int4_ops  plain types, the default  likewise
    bloom        bloom int4_ops, text_ops      the default     an index of the values of each column

Oids are of this project; nobody sees a class before its extension is there
(``planner.bind.define.extension_operators``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from pgwire.codecs.domain import REG_TYPES
from planner.facts import ANYENUM, OID, TEXT, VARCHAR, facts, rows
from planner.types.domains import base_oid

TRIGRAM_CLASS: Final = "gin_trgm_ops"
TRIGRAM_EXTENSION: Final = "pg_trgm"
PLAIN_EXTENSIONS: Final = {"gin": "btree_gin", "gist": "btree_gist", "bloom": "bloom"}
"""By index method the extension by whose classes an index keeps the values as they are."""
HSTORE_CLASS: Final = "gin_hstore_ops"
BLOOM: Final = "bloom"
"""The extension, and the index access method that it brings."""
BLOOM_METHOD_OID: Final = 9700

INET, CIDR = 869, 650
AS_OTHERS: Final = {VARCHAR: TEXT, CIDR: INET, **dict.fromkeys(REG_TYPES, OID)}
"""Types that are another one as they stand, and have its classes."""

KEPT_BY: Final = {TRIGRAM_CLASS: (TRIGRAM_EXTENSION, "show_trgm"), HSTORE_CLASS: ("hstore", "akeys")}
"""Classes whose indexes are of arrays that a function of the extension makes of the values: extension and function."""


@dataclass(frozen=True, slots=True)
class ExtensionClass:
    """An operator class of an extension; ``input_type`` is what it is declared for, ``key_type`` 0 where that
    is kept.
    """

    extension: str
    oid: int
    method: str
    name: str
    family: int
    family_name: str
    input_type: int
    default: bool
    key_type: int


@cache
def extension_classes() -> tuple[ExtensionClass, ...]:
    """Return all of them, those of one extension together."""
    return tuple(
        ExtensionClass(
            extension=row["extension"],
            oid=int(row["oid"]),
            method=row["opcmethod"],
            name=row["opcname"],
            family=int(row["opcfamily"]),
            family_name=row["opfname"],
            input_type=int(row["opcintype"]),
            default=row["opcdefault"] == "t",
            key_type=int(row["opckeytype"]),
        )
        for row in rows("extension_opclasses")
    )


@cache
def _by_name() -> dict[tuple[str, str], ExtensionClass]:
    return {(c.method, c.name): c for c in extension_classes()}


@cache
def _defaults() -> dict[tuple[str, int], ExtensionClass]:
    return {(c.method, c.input_type): c for c in extension_classes() if c.default}


def class_named(method: str, name: str) -> ExtensionClass | None:
    """Return the class of this name, or None."""
    return _by_name().get((method, name))


def default_class(method: str, type_oid: int) -> ExtensionClass | None:
    """Return the default class of a type that an extension brings, or None."""
    type_oid = base_oid(type_oid)
    fact = facts().types.get(type_oid)
    wanted = ANYENUM if fact is not None and fact.kind == "e" else type_oid
    return _defaults().get((method, wanted)) or _defaults().get((method, AS_OTHERS.get(wanted, 0)))


def keeps_values(method: str, type_oid: int) -> bool:
    """Tell whether an index of another method than btree keeps the values of a type as they are."""
    if method == "spgist":
        return base_oid(type_oid) in (TEXT, VARCHAR)
    found = default_class(method, type_oid)
    return found is not None and found.extension == PLAIN_EXTENSIONS.get(method)
