"""A catalog some of whose objects cannot be read: who looks one of them up, by name or oid, is told so (XX001).

    SELECT * FROM t      XX001: table public.t cannot be read         DROP TABLE t       looks at the catalog itself

A server without such objects, which is every one but a few, has no guard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from planner.base.errors import SqlError
from planner.catalog import (
    DatabaseDef,
    FunctionDef,
    RelationDef,
    RoleDef,
    RowType,
    TextSearchDef,
    TypeDef,
)
from planner.catalog.foreign import ForeignDef, Name
from planner.catalog.opclasses import OpclassDef
from planner.catalog.statistics import StatisticsDef


def guarded(catalog: Any) -> Any:
    """Return the catalog that statements are bound against, those in bodies of functions, too: ``catalog``,
    or with a guard where it needs one.
    """
    return Guarded(catalog) if catalog.fenced and not isinstance(catalog, Guarded) else catalog


class Guarded:
    """A catalog (``planner.catalog.SystemCatalog``) whose look-ups raise XX001 where what is found cannot be read.

    Schemas and extensions are found all the same, as every statement asks for those of its path: what is in
    one is fenced, too.
    """

    def __init__(self, catalog: Any) -> None:
        """Guard ``catalog``, which has ``fenced`` objects: their oids, with what ``refusal`` makes an error of."""
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def _open(self, oid: int) -> None:
        fence = self._catalog.fenced.get(oid)
        if fence is not None:
            raise SqlError("XX001", f"{fence.what} cannot be read", detail=fence.detail, hint=fence.hint)

    def relation(self, schema: str, name: str) -> RelationDef | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        found: RelationDef | None = self._catalog.relation(schema, name)
        if found is not None:
            self._open(found.table_oid or found.oid)
        return found

    def relation_by_oid(self, oid: int) -> RelationDef | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        self._open(oid)
        found: RelationDef | None = self._catalog.relation_by_oid(oid)
        return found

    def type_oid(self, schema: str, name: str) -> int | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        oid: int | None = self._catalog.type_oid(schema, name)
        if oid is not None:
            self._open(oid)
        return oid

    def type_by_oid(self, oid: int) -> TypeDef | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        self._open(oid)
        found: TypeDef | None = self._catalog.type_by_oid(oid)
        return found

    def row_type(self, oid: int) -> RowType | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        self._open(oid)
        found: RowType | None = self._catalog.row_type(oid)
        return found

    def functions_named(self, name: str) -> Sequence[FunctionDef]:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001 where one of them is meant, or may be."""
        found: Sequence[FunctionDef] = self._catalog.functions_named(name)
        for function in found:
            self._open(function.oid)
        return found

    def functions_in(self, schema: str) -> Iterable[FunctionDef]:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        found: list[FunctionDef] = list(self._catalog.functions_in(schema))
        for function in found:
            self._open(function.oid)
        return found

    def function_by_oid(self, oid: int) -> FunctionDef | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        self._open(oid)
        found: FunctionDef | None = self._catalog.function_by_oid(oid)
        return found

    def role(self, name: str) -> RoleDef | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        found: RoleDef | None = self._catalog.role(name)
        if found is not None:
            self._open(found.oid)
        return found

    def database_named(self, name: str) -> DatabaseDef | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        found: DatabaseDef | None = self._catalog.database_named(name)
        if found is not None:
            self._open(found.oid)
        return found

    def text_search_named(self, named_by: int, schema: str, name: str) -> TextSearchDef | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        found: TextSearchDef | None = self._catalog.text_search_named(named_by, schema, name)
        if found is not None:
            self._open(found.oid)
        return found

    def text_search_by_oid(self, oid: int) -> TextSearchDef | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        self._open(oid)
        found: TextSearchDef | None = self._catalog.text_search_by_oid(oid)
        return found

    def statistics_named(self, schema_oid: int, name: str) -> tuple[RelationDef, StatisticsDef] | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        found: tuple[RelationDef, StatisticsDef] | None = self._catalog.statistics_named(schema_oid, name)
        if found is not None:
            self._open(found[0].oid)
        return found

    def foreign_named(self, class_oid: int, name: Name) -> ForeignDef | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        found: ForeignDef | None = self._catalog.foreign_named(class_oid, name)
        if found is not None:
            self._open(found.oid)
        return found

    def opclass_named(self, class_oid: int, method: int, schema: str, name: str) -> OpclassDef | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        found: OpclassDef | None = self._catalog.opclass_named(class_oid, method, schema, name)
        if found is not None:
            self._open(found.oid)
        return found

    def opclass_by_oid(self, oid: int) -> OpclassDef | None:
        """See ``planner.catalog.Catalog``. Raises SqlError XX001."""
        self._open(oid)
        found: OpclassDef | None = self._catalog.opclass_by_oid(oid)
        return found
