"""Operator families and classes that users make (manual 38.16): rows of pg_opfamily with their members, and
of pg_opclass.

    family f USING hash     operator 1 = (integer, integer)      function 2 f(integer, bigint)
    class c                 for integer, of family f: a part of the members is its own

They name operators and functions that are there. An index is ordered by PostgreSQL's own classes alone
(``planner.indexing.opclass``); a class of one's own divides a table by hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

PG_OPCLASS: Final = 2616
PG_OPFAMILY: Final = 2753
PG_AMOP: Final = 2602
PG_AMPROC: Final = 2603

OPCLASS_WORDS: Final = {PG_OPCLASS: "operator class", PG_OPFAMILY: "operator family"}
"""What messages call objects of these catalogs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyMember:
    """An operator or a support function of a family: a row of pg_amop or pg_amproc.

    ``number``: its strategy, or which function it is; ``left``, ``right``: the types that it is for.
    ``of_class``: the class that it goes with, 0: the family alone, which can be without it. ``sort_family``:
    of an operator that orders, by which its result is.
    """

    oid: int
    function: bool
    number: int
    left: int
    right: int
    object: int
    of_class: int = 0
    sort_family: int = 0

    @property
    def place(self) -> tuple[bool, int, int, int]:
        """What no two members of a family have in common."""
        return self.function, self.number, self.left, self.right


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFamilyDef:
    """An operator family of the index method ``method``, by oid."""

    oid: int
    method: int
    schema_oid: int
    schema: str
    name: str
    owner: int = 10
    members: tuple[FamilyMember, ...] = ()

    class_oid: ClassVar[int] = PG_OPFAMILY


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorClassDef:
    """An operator class for ``input_type``; ``key_type``: what an index keeps, 0 where it is the same."""

    oid: int
    method: int
    schema_oid: int
    schema: str
    name: str
    owner: int = 10
    family: int
    input_type: int
    default: bool = False
    key_type: int = 0

    class_oid: ClassVar[int] = PG_OPCLASS


OpclassDef: TypeAlias = OperatorFamilyDef | OperatorClassDef
