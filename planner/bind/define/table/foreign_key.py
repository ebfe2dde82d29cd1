"""FOREIGN KEY: what is written, and what it means once both tables are known.

    FOREIGN KEY (a, b) REFERENCES p (x, y)
      bind     ForeignKeySpec: names, p's oid, actions           with the statement
      resolve  ForeignKeyDef: attnums, p's unique index over     when the statement runs: the table may have just
               {x, y}, the operators x = a, y = b                been created, with the key that is referred to

``resolve`` follows ATAddForeignKeyConstraint: same checks, same order, same words (manual, 5.4.5 and CREATE TABLE).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.scope import SYSTEM_COLUMNS
from planner.catalog import ColumnDef, ForeignKeyDef, IndexDef, RelationDef
from planner.catalog.relation_kinds import TABLES
from planner.conversion.order import default_opclass, family_equality
from planner.conversion.pathways import CastContext
from planner.conversion.polymorphic import can_coerce_all
from planner.facts import DATE, TIMESTAMP, TIMESTAMPTZ
from planner.types.facts import format_type

MAX_KEY_COLUMNS: Final = 32


def foreign_key_spec(
    context: BindContext, node: ast.Constraint, columns: Sequence[str], created: tuple[str, str] | None = None
) -> st.ForeignKeySpec:
    """Return a FOREIGN KEY as written. ``created``: (schema, name) of the table that is being created.

    Raises SqlError 42P01, 42809 (no table), 42501 (a system catalog).
    """
    reference = node.references
    if reference is None:
        raise AssertionError("a foreign key refers to nothing")
    table = 0
    taken = created is not None and context.holder(*created) is not None  # found to be so when it runs
    if not taken and not _means_created(context, reference, created):
        try:
            relation = context.relation(reference.schema, reference.name, catalog=reference.catalog)
        except SqlError as error:
            error.span = None  # as PostgreSQL, which looks it up without the statement's text
            raise
        if relation.kind not in TABLES:
            raise SqlError("42809", f'referenced relation "{relation.name}" is not a table')
        if relation.virtual:
            raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
        table = relation.oid
    return st.ForeignKeySpec(
        name=node.name or None,
        columns=tuple(columns),
        table=table,
        referenced=node.referenced,
        match=node.match,
        on_update=node.on_update,
        on_delete=node.on_delete,
        delete_columns=node.delete_columns,
        deferrable=node.deferrable,
        deferred=node.initially_deferred,
        not_valid=node.not_valid,
    )


def _means_created(context: BindContext, reference: ast.TableRef, created: tuple[str, str] | None) -> bool:
    """Tell whether a reference will find the table that is being created, which others in the search path may hide."""
    if created is None or reference.name != created[1]:
        return False
    schema = context.own_schema(created[0])
    if schema == "pg_temp":  # not in the path before the session's first temporary object, and then leads it
        return reference.schema in ("", schema)
    if reference.schema:
        return reference.schema in (schema, created[0])
    for entry in context.search_path:
        if entry == schema or context.catalog.relation(entry, reference.name) is not None:
            return entry == schema
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedKey:
    """A foreign key between two known tables; ``index_oid`` is the unique index that finds referenced rows."""

    attnums: tuple[int, ...]
    index_oid: int
    foreign: ForeignKeyDef


def resolve(spec: st.ForeignKeySpec, name: str, table: RelationDef, referenced: RelationDef) -> ResolvedKey:
    """Return the meaning of ``spec`` as constraint ``name`` of ``table``.

    Raises SqlError 42P16 (persistence), 42703, 54011, 42P10, 42704, 55000, 42830 (no such key), 42804 (types
    that do not compare), 0A000 (types that compare in PostgreSQL but not here).
    """
    _check_persistence(table, referenced)
    columns = _columns(table, spec.columns)
    deleted = _columns(table, spec.delete_columns)
    for column in deleted:
        if column not in columns:
            raise SqlError(
                "42P10",
                f'column "{column.name}" referenced in ON DELETE SET action must be part of foreign key',
            )
    _check_generated(columns, spec)
    if spec.referenced:
        targets = _columns(referenced, spec.referenced)
        index = _unique_index(referenced, [c.attnum for c in targets])
    else:
        index = _primary_key(referenced)
        targets = [referenced.column(attnum) for attnum in index.attnums]
    if len(columns) != len(targets):
        raise SqlError("42830", "number of referencing and referenced columns for foreign key disagree")
    operators = [_operators(name, c, t) for c, t in zip(columns, targets, strict=True)]
    return ResolvedKey(
        attnums=tuple(c.attnum for c in columns),
        index_oid=index.oid,
        foreign=ForeignKeyDef(
            table=referenced.oid,
            attnums=tuple(c.attnum for c in targets),
            match=spec.match,
            on_update=spec.on_update,
            on_delete=spec.on_delete,
            delete_attnums=tuple(c.attnum for c in deleted),
            pf_operators=tuple(pf for pf, _pp, _ff in operators),
            pp_operators=tuple(pp for _pf, pp, _ff in operators),
            ff_operators=tuple(ff for _pf, _pp, ff in operators),
        ),
    )


def _check_generated(columns: Sequence[ColumnDef], spec: st.ForeignKeySpec) -> None:
    """Refuse actions that would assign to a generated column: 42601."""
    if any(column.generated for column in columns):
        for word, action, refused in (("UPDATE", spec.on_update, "ndc"), ("DELETE", spec.on_delete, "nd")):
            if action in refused:
                raise SqlError(
                    "42601",
                    f"invalid ON {word} action for foreign key constraint containing generated column",
                )


def _check_persistence(table: RelationDef, referenced: RelationDef) -> None:
    allowed, words = {
        "p": ("p", "constraints on permanent tables may reference only permanent tables"),
        "u": ("pu", "constraints on unlogged tables may reference only permanent or unlogged tables"),
        "t": ("t", "constraints on temporary tables may reference only temporary tables"),
    }[table.persistence]
    if referenced.persistence not in allowed:
        raise SqlError("42P16", words)
    if table.persistence == "t" and table.schema != referenced.schema:
        raise SqlError(
            "42P16", "constraints on temporary tables must involve temporary tables of this session"
        )


def _columns(relation: RelationDef, names: Sequence[str]) -> list[ColumnDef]:
    by_name = {column.name: column for column in relation.live}
    found = []
    for name in names:
        column = by_name.get(name)
        if column is None:
            if name in SYSTEM_COLUMNS:
                raise SqlError("0A000", "system columns cannot be used in foreign keys")
            raise SqlError("42703", f'column "{name}" referenced in foreign key constraint does not exist')
        found.append(column)
    if len(found) > MAX_KEY_COLUMNS:
        raise SqlError("54011", f"cannot have more than {MAX_KEY_COLUMNS} keys in a foreign key")
    return found


def _primary_key(referenced: RelationDef) -> IndexDef:
    index = next((i for i in referenced.indexes if i.primary), None)
    if index is None:
        raise SqlError("42704", f'there is no primary key for referenced table "{referenced.name}"')
    if index.deferrable:
        raise SqlError(
            "55000", f'cannot use a deferrable primary key for referenced table "{referenced.name}"'
        )
    return index


def _unique_index(referenced: RelationDef, attnums: Sequence[int]) -> IndexDef:
    if len(set(attnums)) < len(attnums):
        raise SqlError("42830", "foreign key referenced-columns list must not contain duplicates")
    deferrable = False
    for index in referenced.indexes:
        if (
            index.unique
            and index.valid
            and len(index.attnums) == len(attnums)
            and set(index.attnums) == set(attnums)
        ):
            if not index.deferrable:
                return index
            deferrable = True
    if deferrable:
        raise SqlError(
            "55000", f'cannot use a deferrable unique constraint for referenced table "{referenced.name}"'
        )
    raise SqlError(
        "42830",
        f'there is no unique constraint matching given keys for referenced table "{referenced.name}"',
    )


_MOMENTS: Final = frozenset((DATE, TIMESTAMP, TIMESTAMPTZ))


def _operators(name: str, column: ColumnDef, target: ColumnDef) -> tuple[int, int, int]:
    """Return the operators (referenced = referencing, referenced = referenced, referencing = referencing)."""
    own, other = column.type.oid, target.type.oid
    found = default_opclass(other)
    if found is None:
        raise SqlError("XX000", f"the unique index over {target.name} has no operator class")
    family, input_type = found
    same = family_equality(family, input_type, input_type)
    crossed = family_equality(family, input_type, own)
    own_equal = family_equality(family, own, own)
    if not crossed or not own_equal:
        if not can_coerce_all((other, own), (input_type, input_type), CastContext.IMPLICIT):
            raise SqlError(
                "42804",
                f'foreign key constraint "{name}" cannot be implemented',
                detail=f'Key columns "{column.name}" and "{target.name}" are of incompatible types: '
                f"{format_type(column.declared.oid)} and {format_type(target.declared.oid)}.",
            )
        crossed = own_equal = same
    if own != other and own in _MOMENTS and other in _MOMENTS:
        raise not_supported(f"a foreign key from {format_type(own)} to {format_type(other)}")
    return crossed, same, own_equal
