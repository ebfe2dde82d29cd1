"""What the binder needs to know about relations, and the protocol that tells it.

    relations   tables, views, indexes, sequences      objects    schemas, roles, databases, sources ...
    types       users' types and functions             protocol   how they are looked up
    text_search configurations and dictionaries
    policy, trigger, statistics   what belongs to a table, foreign wrappers, servers, user mappings, operator classes: imported from where they are

The engine implements ``Catalog`` over its versioned catalog; a catalog value is an immutable snapshot at
one timestamp (plus the transaction's own DDL), so binding is a pure function of text and catalog.
Built-in types, functions, operators and casts come from ``planner.facts``, not from here.
"""

from __future__ import annotations

from planner.catalog.objects import (
    AclDef,
    DatabaseDef,
    DefaultsDef,
    ExtensionDef,
    RoleDef,
    SchemaDef,
    SourceDef,
    TimelineDef,
)
from planner.catalog.protocol import Catalog, SystemCatalog, row_type_named
from planner.catalog.relations import (
    DEFAULT_TIMELINE,
    BorrowedView,
    ColumnDef,
    ConstraintDef,
    ForeignKeyDef,
    IndexDef,
    IndexMethod,
    PartitionBound,
    PartitionKey,
    RelationDef,
    SequenceDef,
    with_index_changed,
)
from planner.catalog.text_search import ConfigurationDef, DictionaryDef, TextSearchDef
from planner.catalog.types import (
    FIRST_RANK,
    RANGE_CONSTRUCTORS,
    AggregateDef,
    EnumLabel,
    FunctionDef,
    RowType,
    TypeDef,
)

__all__ = [
    "DEFAULT_TIMELINE",
    "FIRST_RANK",
    "RANGE_CONSTRUCTORS",
    "AclDef",
    "AggregateDef",
    "BorrowedView",
    "Catalog",
    "ColumnDef",
    "ConfigurationDef",
    "ConstraintDef",
    "DatabaseDef",
    "DefaultsDef",
    "DictionaryDef",
    "EnumLabel",
    "ExtensionDef",
    "ForeignKeyDef",
    "FunctionDef",
    "IndexDef",
    "IndexMethod",
    "PartitionBound",
    "PartitionKey",
    "RelationDef",
    "RoleDef",
    "RowType",
    "SchemaDef",
    "SequenceDef",
    "SourceDef",
    "SystemCatalog",
    "TextSearchDef",
    "TimelineDef",
    "TypeDef",
    "row_type_named",
    "with_index_changed",
]
