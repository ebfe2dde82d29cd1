"""Which rows of information_schema a role sees: what it owns or has some right on, as PostgreSQL's views decide.

    superuser        all, nothing is asked
    anybody else     rows as they are kept for all ──> ``visible``: those about what the role may see, some cells NULL

Views that are not here show everything, or ask for rights where their rows are made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from planner.catalog import RelationDef
from planner.catalog.rights import Rights

if TYPE_CHECKING:
    from engine.catalog.reading import Reading

Row: TypeAlias = tuple[Any, ...]
Places: TypeAlias = Mapping[str, int]  # of the columns, by name
Filter: TypeAlias = Callable[[Sequence[Row]], list[Row]]
Look: TypeAlias = Callable[["_Viewer", Row], bool]

# letters of privileges: SELECT r, INSERT a, UPDATE w, DELETE d, TRUNCATE D, REFERENCES x, TRIGGER t, USAGE U, CREATE C
_ANY_OF_TABLE, _ANY_OF_COLUMN = "arwdDxt", "arwx"
_CHANGE_OF_TABLE, _CHANGE_OF_COLUMN = "awdDxt", "awx"
_NOT_NULL: Final = re.compile(r"\d+_(\d+)_(\d+)_not_null")


class _Viewer:
    """One role that reads one view."""

    def __init__(self, session: Reading, places: Places) -> None:
        self.catalog = session.catalog
        self.rights = Rights(session.rights_catalog, session.role)
        self.places = places
        self._whole: dict[tuple[int, str], bool] = {}
        self._enabled: frozenset[str] | None = None
        self._foreign_keys: frozenset[tuple[str, str]] | None = None

    def cell(self, row: Row, column: str) -> Any:
        return row[self.places[column]]

    def table(self, row: Row, prefix: str = "table") -> RelationDef | None:
        return self.catalog.relation(self.cell(row, f"{prefix}_schema"), self.cell(row, f"{prefix}_name"))

    def owns(self, relation: RelationDef | None) -> bool:
        return relation is not None and self.rights.owns(relation.owner)

    def whole(self, relation: RelationDef, letters: str) -> bool:
        """Whether the role owns a table or has any of some rights on all of it; kept, as many rows are about
        one table.
        """
        known = self._whole.get((relation.oid, letters))
        if known is None:
            known = self.rights.owns(relation.owner) or self.rights.relation(relation, letters)
            self._whole[relation.oid, letters] = known
        return known

    def any_right(self, relation: RelationDef | None, letters: str, of_columns: str) -> bool:
        """Whether the role owns a table, or has any of some rights on it or on a column."""
        if relation is None:
            return False
        return self.whole(relation, letters) or any(
            self.rights.column(relation, column.attnum, of_columns) for column in relation.live
        )

    def column(self, relation: RelationDef | None, name: str) -> bool:
        """Whether the role owns a table, or has a right on one of its columns."""
        if relation is None:
            return False
        if self.whole(relation, _ANY_OF_COLUMN):
            return True
        attnum = next((c.attnum for c in relation.live if c.name == name), 0)
        return self.rights.column(relation, attnum, _ANY_OF_COLUMN)

    def is_enabled(self, name: str) -> bool:
        """Whether the role has the rights of the one that a name means."""
        if self._enabled is None:
            roles = self.catalog.roles.values()
            self._enabled = frozenset(role.name for role in roles if self.rights.owns(role.oid))
        return name in self._enabled

    def foreign_key(self, schema: str, name: str) -> bool:
        """Whether the role may see a foreign key of that name in a schema, which the table it is of decides."""
        if self._foreign_keys is None:
            self._foreign_keys = frozenset(
                (relation.schema, key.name)
                for relation in self.catalog.user_relations()
                for key in relation.foreign_keys
                if self.any_right(relation, _CHANGE_OF_TABLE, _CHANGE_OF_COLUMN)
            )
        return (schema, name) in self._foreign_keys


def _table(viewer: _Viewer, row: Row) -> bool:
    return viewer.any_right(viewer.table(row), _ANY_OF_TABLE, _ANY_OF_COLUMN)


def _column(viewer: _Viewer, row: Row) -> bool:
    return viewer.column(viewer.table(row), viewer.cell(row, "column_name"))


def _changed_table(viewer: _Viewer, row: Row) -> bool:
    return viewer.any_right(viewer.table(row), _CHANGE_OF_TABLE, _CHANGE_OF_COLUMN)


def _owned_table(viewer: _Viewer, row: Row) -> bool:
    return viewer.owns(viewer.table(row))


def _foreign_key(viewer: _Viewer, row: Row) -> bool:
    return viewer.foreign_key(viewer.cell(row, "constraint_schema"), viewer.cell(row, "constraint_name"))


def _check(viewer: _Viewer, row: Row) -> bool:
    """Those of NOT NULL columns, whose names say which; others were asked about when they were made."""
    named = _NOT_NULL.fullmatch(viewer.cell(row, "constraint_name"))
    relation = viewer.catalog.relation_by_oid(int(named[1])) if named is not None else None
    if named is None or relation is None or not viewer.cell(row, "check_clause").endswith(" IS NOT NULL"):
        return True
    return viewer.owns(relation)


def _sequence(viewer: _Viewer, row: Row) -> bool:
    relation = viewer.table(row, "sequence")
    return relation is not None and (viewer.owns(relation) or viewer.rights.relation(relation, "rwU"))


def _schema(viewer: _Viewer, row: Row) -> bool:
    schema = viewer.catalog.schema(viewer.cell(row, "schema_name"))
    return schema is not None and (viewer.rights.owns(schema.owner) or viewer.rights.schema(schema, "CU"))


def _grant_to_role(viewer: _Viewer, row: Row) -> bool:
    return viewer.is_enabled(viewer.cell(row, "grantor")) or viewer.is_enabled(viewer.cell(row, "grantee"))


def _grant(viewer: _Viewer, row: Row) -> bool:
    return viewer.cell(row, "grantee") == "PUBLIC" or _grant_to_role(viewer, row)


def _routine(viewer: _Viewer, row: Row) -> bool:
    function = viewer.catalog.function_by_oid(_oid_of(viewer, row))
    if function is None:  # PostgreSQL's own, which everybody may call
        return True
    return viewer.rights.owns(function.owner) or viewer.rights.function(function)


def _oid_of(viewer: _Viewer, row: Row) -> int:
    return int(viewer.cell(row, "specific_name").rpartition("_")[2])


def _own_routine(viewer: _Viewer, row: Row) -> bool:
    function = viewer.catalog.function_by_oid(_oid_of(viewer, row))
    return function is not None and viewer.rights.owns(function.owner)


def _type(viewer: _Viewer, schema: str, name: str) -> bool:
    made = viewer.catalog.type_by_oid(viewer.catalog.type_oid(schema, name) or 0)
    return made is None or viewer.rights.owns(made.owner) or viewer.rights.type(made)


def _user_type(viewer: _Viewer, row: Row) -> bool:
    cell = viewer.cell
    return _type(viewer, cell(row, "user_defined_type_schema"), cell(row, "user_defined_type_name"))


def _attribute(viewer: _Viewer, row: Row) -> bool:
    return _type(viewer, viewer.cell(row, "udt_schema"), viewer.cell(row, "udt_name"))


def _typed(number: str) -> Look:
    """Return the look at what has a type: a column of a table (``number``: where its number is), a routine, a type."""

    def look(viewer: _Viewer, row: Row) -> bool:
        schema, name = viewer.cell(row, "object_schema"), viewer.cell(row, "object_name")
        match viewer.cell(row, "object_type"):
            case "TABLE":
                relation = viewer.catalog.relation(schema, name)
                return relation is not None and (
                    viewer.rights.owns(relation.owner)
                    or viewer.rights.column(relation, int(viewer.cell(row, number)), _ANY_OF_COLUMN)
                )
            case "ROUTINE":
                function = viewer.catalog.function_by_oid(int(name.rpartition("_")[2]))
                return (
                    function is None or viewer.rights.owns(function.owner) or viewer.rights.function(function)
                )
        return _type(viewer, schema, name)

    return look


# view: which rows are seen
_LOOKS: Final[Mapping[str, Look]] = {
    "tables": _table, "views": _table, "columns": _column, "sequences": _sequence, "schemata": _schema,
    "table_constraints": _changed_table, "key_column_usage": _column, "referential_constraints": _foreign_key,
    "constraint_column_usage": _owned_table, "constraint_table_usage": _owned_table, "check_constraints": _check,
    "table_privileges": _grant, "column_privileges": _grant, "role_table_grants": _grant_to_role,
    "role_column_grants": _grant_to_role, "routines": _routine, "parameters": _routine,
    "user_defined_types": _user_type, "attributes": _attribute, "data_type_privileges": _typed("dtd_identifier"),
    "element_types": _typed("collection_type_identifier"),
}  # fmt: skip

# view: a column that is NULL for whoever does not own what it is about
_OWNERS: Final[Mapping[str, tuple[str, Look]]] = {
    "views": ("view_definition", _owned_table), "routines": ("routine_definition", _own_routine),
    "parameters": ("parameter_default", _own_routine),
}  # fmt: skip


def visible(session: Reading, view: RelationDef, places: Places) -> Filter | None:
    """Return what keeps the rows of a catalog relation that the session's role may see; None: all as they are."""
    look = _LOOKS.get(view.name) if view.schema == "information_schema" else None
    if look is None or (session.role is not None and session.role.superuser):
        return None
    viewer = _Viewer(session, places)
    hidden = _OWNERS.get(view.name)

    def keep(rows: Sequence[Row]) -> list[Row]:
        seen = [row for row in rows if look(viewer, row)]
        if hidden is None:
            return seen
        place = places[hidden[0]]
        return [r if hidden[1](viewer, r) else (*r[:place], None, *r[place + 1 :]) for r in seen]

    return keep
