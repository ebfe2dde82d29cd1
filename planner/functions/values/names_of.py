"""Names in constants of types of names, read by what a catalog and a search path have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.base.errors import SqlError
from planner.base.identifiers import split_identifier
from planner.catalog import Catalog
from planner.functions.values.acl_items import input_by_catalog
from planner.textsearch.names import (
    read_name,
)


@dataclass(frozen=True, slots=True)
class NamesOf:
    """What names of objects are looked up in, as much of a session as reading them takes.

    ``closed_schemas``: those in which the user may look nothing up.
    """

    catalog: Catalog
    search_path: tuple[str, ...]
    database: str
    closed_schemas: frozenset[str] = frozenset()
    quotes_all: bool = False

    def read(self, oid: int, text: str) -> Any:
        """Read a value of a type in NAMED, or an aclitem. Raises SqlError 42501 for a closed schema, and what
        reading raises.
        """
        for schema in self.closed_schemas:
            if schema in text and schema in split_identifier(text.partition("(")[0])[:-1]:
                raise SqlError("42501", f"permission denied for schema {schema}")

        return input_by_catalog(self, oid, text)

    def search_name(self, oid: int, text: str) -> int:
        """Read a regconfig or regdictionary. Raises SqlError 42501 for a closed schema, and as
        ``planner.textsearch.names.read_name``.
        """
        if self.closed_schemas:
            for schema in split_identifier(text)[:-1]:
                if schema in self.closed_schemas:
                    raise SqlError("42501", f"permission denied for schema {schema}")
        return read_name(oid, text, self.catalog, self.search_path, self.database)
