"""What a catalog has of named definitions other than relations, types and functions: text search objects,
foreign data, operator classes, conversions, collations.

Each kind is found by its oid, and by what no two have in common (``_name_of``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from engine.catalog.indexes import by_name, by_oid
from planner.catalog import ConfigurationDef, DictionaryDef, TextSearchDef
from planner.catalog.collations import PG_COLLATION, CollationDef
from planner.catalog.conversions import PG_CONVERSION, ConversionDef
from planner.catalog.foreign import ForeignDef, MappingDef, Name, ServerDef, WrapperDef
from planner.catalog.opclasses import OpclassDef, OperatorClassDef, OperatorFamilyDef

NamedDef: TypeAlias = TextSearchDef | ForeignDef | OpclassDef | ConversionDef | CollationDef
_Key: TypeAlias = tuple[object, ...]

NAMED: Final = frozenset(
    (
        ConfigurationDef,
        DictionaryDef,
        WrapperDef,
        ServerDef,
        MappingDef,
        OperatorFamilyDef,
        OperatorClassDef,
        ConversionDef,
        CollationDef,
    )
)
"""The kinds of stored objects that are found so."""


def _name_of(item: NamedDef) -> _Key:
    match item:
        case ConfigurationDef() | DictionaryDef():
            return item.named_by, item.schema, item.name
        case OperatorFamilyDef() | OperatorClassDef():
            return item.class_oid, item.method, item.schema, item.name
        case ConversionDef() | CollationDef():
            return item.class_oid, item.schema, item.name
        case _:
            return item.class_oid, item.known_as


class FindsNamed:
    """What finds them in a catalog: ``_named_oids`` by oid, ``_named_names`` by name. Nothing is changed in place."""

    __slots__ = ("_named_names", "_named_oids")
    _named_oids: Mapping[int, NamedDef]
    _named_names: Mapping[_Key, NamedDef]

    def _turn_named(self, gone: Iterable[NamedDef], made: Iterable[NamedDef]) -> None:
        """Have the ways to them know ``made``, and ``gone`` no more."""
        self._named_oids = by_oid(self._named_oids, gone, made)
        self._named_names = by_name(self._named_names, gone, made, _name_of)

    def text_search_named(self, named_by: int, schema: str, name: str) -> TextSearchDef | None:
        """Return the users' text search object ``schema.name`` that values of the type ``named_by`` name."""
        return cast("TextSearchDef | None", self._named_names.get((named_by, schema, name)))

    def text_search_by_oid(self, oid: int) -> TextSearchDef | None:
        """Return the users' text search configuration or dictionary with this oid."""
        found = self._named_oids.get(oid)
        return found if isinstance(found, TextSearchDef) else None

    def text_search(self) -> Sequence[TextSearchDef]:
        """Return users' text search configurations and dictionaries, oldest first."""
        return sorted(
            (i for i in self._named_oids.values() if isinstance(i, TextSearchDef)), key=lambda i: i.oid
        )

    def foreign_named(self, class_oid: int, name: Name) -> ForeignDef | None:
        """Return the wrapper or server of that name, or the user mapping for a role at a server, of the
        catalog ``class_oid``.
        """
        return cast("ForeignDef | None", self._named_names.get((class_oid, name)))

    def foreign_by_oid(self, oid: int) -> ForeignDef | None:
        """Return the foreign-data wrapper, server or user mapping with this oid."""
        found = self._named_oids.get(oid)
        return found if isinstance(found, ForeignDef) else None

    def foreign(self) -> Sequence[ForeignDef]:
        """Return foreign-data wrappers, servers and user mappings, oldest first."""
        return sorted(
            (i for i in self._named_oids.values() if isinstance(i, ForeignDef)), key=lambda i: i.oid
        )

    def opclass_named(self, class_oid: int, method: int, schema: str, name: str) -> OpclassDef | None:
        """Return the users' operator class or family of an index method, of the catalog ``class_oid``."""
        return cast("OpclassDef | None", self._named_names.get((class_oid, method, schema, name)))

    def opclass_by_oid(self, oid: int) -> OpclassDef | None:
        """Return the users' operator class or family with this oid."""
        found = self._named_oids.get(oid)
        return found if isinstance(found, OpclassDef) else None

    def opclasses(self) -> Sequence[OpclassDef]:
        """Return users' operator classes and families, oldest first."""
        return sorted(
            (i for i in self._named_oids.values() if isinstance(i, OpclassDef)), key=lambda i: i.oid
        )

    def conversion_named(self, schema: str, name: str) -> ConversionDef | None:
        """Return the users' conversion ``schema.name``."""
        return cast("ConversionDef | None", self._named_names.get((PG_CONVERSION, schema, name)))

    def conversion_by_oid(self, oid: int) -> ConversionDef | None:
        """Return the users' conversion with this oid."""
        found = self._named_oids.get(oid)
        return found if isinstance(found, ConversionDef) else None

    def conversions(self) -> Sequence[ConversionDef]:
        """Return users' conversions, oldest first."""
        return sorted(
            (i for i in self._named_oids.values() if isinstance(i, ConversionDef)), key=lambda i: i.oid
        )

    def collation_named(self, schema: str, name: str) -> CollationDef | None:
        """Return the users' collation ``schema.name``."""
        return cast("CollationDef | None", self._named_names.get((PG_COLLATION, schema, name)))

    def collation_by_oid(self, oid: int) -> CollationDef | None:
        """Return the users' collation with this oid."""
        found = self._named_oids.get(oid)
        return found if isinstance(found, CollationDef) else None

    def collations(self) -> Sequence[CollationDef]:
        """Return users' collations, oldest first."""
        return sorted(
            (i for i in self._named_oids.values() if isinstance(i, CollationDef)), key=lambda i: i.oid
        )
