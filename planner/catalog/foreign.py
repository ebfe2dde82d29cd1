"""What the catalog knows of foreign data (manual 5.12): wrappers, servers, and as whom roles log in there.

    wrapper wf  <── server s  <── user mapping for ann on s         each with options: name = value
                             <── foreign table t (planner.catalog.relations)

They are definitions: no wrapper has a handler, so nothing is read through them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

PG_FOREIGN_DATA_WRAPPER: Final = 2328
PG_FOREIGN_SERVER: Final = 1417
PG_USER_MAPPING: Final = 1418
PG_FOREIGN_TABLE: Final = 3118
PUBLIC_MAPPING: Final = 0
"""The role of a mapping for everybody who has none."""

Options: TypeAlias = tuple[tuple[str, str], ...]
Name: TypeAlias = str | tuple[int, int]
ForeignClass: TypeAlias = Literal[2328, 1417, 1418]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapperDef:
    """A foreign-data wrapper. ``validator``: the function that looks at options, by oid, 0 for none."""

    oid: int
    name: str
    owner: int = 10
    validator: int = 0
    options: Options = ()

    class_oid: ClassVar[ForeignClass] = PG_FOREIGN_DATA_WRAPPER

    @property
    def known_as(self) -> Name:
        """What no two of its kind have in common."""
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDef:
    """A foreign server of the wrapper ``wrapper``."""

    oid: int
    name: str
    owner: int = 10
    wrapper: int
    type: str | None = None
    version: str | None = None
    options: Options = ()

    class_oid: ClassVar[ForeignClass] = PG_FOREIGN_SERVER

    @property
    def known_as(self) -> Name:
        """What no two of its kind have in common."""
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingDef:
    """As whom ``owner``, the role that a mapping is for and that owns it, logs in at ``server``;
    PUBLIC_MAPPING: who has none of its own.
    """

    oid: int
    owner: int
    server: int
    options: Options = ()

    class_oid: ClassVar[ForeignClass] = PG_USER_MAPPING

    @property
    def known_as(self) -> Name:
        """What no two of its kind have in common."""
        return self.owner, self.server


ForeignDef: TypeAlias = WrapperDef | ServerDef | MappingDef

FOREIGN_WORDS: Final = {PG_FOREIGN_DATA_WRAPPER: "foreign-data wrapper", PG_FOREIGN_SERVER: "server"}
"""What messages call objects of these catalogs."""
