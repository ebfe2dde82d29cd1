"""Bound statements about operator classes and families. Read them as ``planner.statements``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMember:
    """What a family gets. ``of_class``: it goes with the class that is made, or with that of its type; read
    it as ``planner.catalog.opclasses.FamilyMember``.
    """

    function: bool
    number: int
    left: int
    right: int
    object: int
    of_class: bool
    sort_family: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOpfamily:
    """CREATE OPERATOR FAMILY."""

    schema: str
    name: str
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOpclass:
    """CREATE OPERATOR CLASS; ``default``: it is that of its type, which is written so, "" where it is not;
    ``family`` 0: of its own name, which is made where there is none.
    """

    schema: str
    name: str
    method: str
    family: int
    input_type: int
    default: str
    key_type: int
    members: tuple[NewMember, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOpfamily:
    """ALTER OPERATOR FAMILY ... ADD ``members``, or DROP ``places``: function or not, number, types."""

    family: int
    members: tuple[NewMember, ...]
    places: tuple[tuple[bool, int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterOpclass:
    """RENAME TO, SET SCHEMA or OWNER TO, whichever is there, of a class or family by oid."""

    object: int
    name: str | None
    schema: str | None
    owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropOpclass:
    """DROP of a class or family by oid; ``written``: its method and name, as they are; ``notice``: there is none."""

    object: int
    written: str = ""
    cascade: bool = False
    notice: str = ""


OpclassStatement: TypeAlias = CreateOpfamily | CreateOpclass | ChangeOpfamily | AlterOpclass | DropOpclass
