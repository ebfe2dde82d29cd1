"""CREATE, ALTER and DROP TYPE: names to oids. What a written type name means: ``BindContext.type_of``."""

from __future__ import annotations

from typing import Final, Literal

from pgwire.give_way import paced
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.table.placing import creation_schema
from planner.bind.session.utility import owner_name
from planner.catalog import TypeDef
from planner.catalog.relation_kinds import ROW_TYPED
from planner.types.facts import FIRST_USER_OID, element_of, format_type

PG_TYPE: Final = 1247
PG_CONSTRAINT: Final = 2606
MAX_NAME_BYTES = 63


def bind_create_enum(context: BindContext, node: ast.CreateEnum) -> st.CreateEnum:
    """CREATE TYPE ... AS ENUM. Raises SqlError 3F000, 42602 (a label that is too long)."""
    for label in paced(node.labels):
        check_label(label)
    return st.CreateEnum(
        schema=creation_schema_of(context, node.name), name=node.name[-1], labels=node.labels
    )


def creation_schema_of(context: BindContext, name: ast.Name) -> str:
    """Return the schema in which a type of this name is made. Raises SqlError 3F000."""
    reference = ast.TableRef(catalog="", schema=name[-2] if len(name) > 1 else "", name=name[-1])
    return creation_schema(context, reference)


def is_taken(context: BindContext, schema: str, name: str) -> bool:
    """Tell whether a type has a name that is to be given: that is told (42710) before anything is looked up
    for the new one.
    """
    oid = context.catalog.type_oid(context.own_schema(schema), name)
    made = None if oid is None else context.catalog.type_by_oid(oid)
    if made is not None and not made.chose(name):  # an array type makes room
        return True
    relation = context.holder(schema, name)
    return relation is not None and relation.kind in ROW_TYPED


def check_label(label: str) -> None:
    """Raise SqlError 42602 for what no label of an enum can be."""
    if len(label.encode()) > MAX_NAME_BYTES:
        raise SqlError(
            "42602",
            f'invalid enum label "{label}"',
            detail=f"Labels must be {MAX_NAME_BYTES} bytes or less.",
        )


def find_type(context: BindContext, name: ast.Name) -> int:
    """Return the oid of the type a name means. Raises SqlError 42704, 3F000."""
    found = context.find_type(name[-2] if len(name) > 1 else "", name[-1])
    if found is None:
        raise SqlError("42704", f'type "{".".join(name)}" does not exist')
    return found


def users_type(context: BindContext, name: ast.Name, *, change: bool = True, what: str = "type") -> TypeDef:
    """Return the user's type that a name means.

    Raises SqlError 42704; 42501 for a built-in type; 42809 for an array or row type, where it is to be
    changed, and for what is no domain where ``what`` says so.
    """
    if what == "domain":
        row_type = _is_row_type(context, name)
        oid = 0 if row_type else find_type(context, name)
        made = context.catalog.type_by_oid(oid)
        if made is None or not made.is_domain or made.oid != oid:
            shown = name[-1] if row_type else format_type(oid)
            raise SqlError("42809", f"{shown if change else _quoted(shown)} is not a domain")
        return made
    if _is_row_type(context, name):
        if not change:
            raise not_supported("a row type of a relation here")
        raise SqlError("42809", f"{name[-1]} is a table's row type", hint="Use ALTER TABLE instead.")
    oid = find_type(context, name)
    if oid < FIRST_USER_OID:
        raise SqlError("42501", f"must be owner of type {format_type(oid)}")
    if change and element_of(oid):
        element = format_type(element_of(oid))
        raise SqlError(
            "42809",
            f"cannot alter array type {format_type(oid)}",
            hint=f"You can alter type {element}, which will alter the array type as well.",
        )
    found = context.catalog.type_by_oid(oid)
    if found is None:
        raise SqlError("42704", f'type "{".".join(name)}" does not exist')
    return found


def _quoted(name: str) -> str:
    return f'"{name}"'


def _is_row_type(context: BindContext, name: ast.Name) -> bool:
    """Tell whether a name means no type but a relation that has a row type."""
    oid = context.find_type(name[-2] if len(name) > 1 else "", name[-1])
    row = None if oid is None else context.catalog.row_type(oid)
    return row is not None and row.relation != 0


def _enum(context: BindContext, name: ast.Name) -> int:
    if _is_row_type(context, name):
        raise SqlError("42809", f"{name[-1]} is not an enum")
    oid = find_type(context, name)
    made = context.catalog.type_by_oid(oid) if oid >= FIRST_USER_OID else None
    if made is None or made.kind != "e" or made.oid != oid:
        raise SqlError("42809", f"{format_type(oid)} is not an enum")
    return oid


def bind_add_enum_value(context: BindContext, node: ast.AddEnumValue) -> st.AddEnumValue:
    """ALTER TYPE ... ADD VALUE. Raises SqlError 42704, 42809, 42602."""
    oid = _enum(context, node.name)
    check_label(node.label)
    return st.AddEnumValue(
        type=oid,
        label=node.label,
        neighbour=node.neighbour,
        after=node.after,
        if_not_exists=node.if_not_exists,
    )


def bind_rename_enum_value(context: BindContext, node: ast.RenameEnumValue) -> st.RenameEnumValue:
    """ALTER TYPE ... RENAME VALUE. Raises SqlError 42704, 42809, 42602."""
    oid = _enum(context, node.name)
    check_label(node.new)
    return st.RenameEnumValue(type=oid, old=node.old, new=node.new)


def bind_rename_type(context: BindContext, node: ast.Rename) -> st.AlterType:
    """ALTER TYPE or DOMAIN ... RENAME TO."""
    return st.AlterType(type=users_type(context, node.name, what=node.what).oid, name=node.new)


def bind_set_type_schema(context: BindContext, node: ast.SetSchema) -> st.AlterType:
    """ALTER TYPE or DOMAIN ... SET SCHEMA. Raises SqlError 3F000."""
    found = users_type(context, node.name, what=node.what).oid
    if node.new != "pg_temp":  # nothing moves there
        context.require_schema(node.new)
    return st.AlterType(type=found, schema=node.new)


def bind_type_owner(context: BindContext, node: ast.AlterOwner) -> st.AlterType:
    """ALTER TYPE or DOMAIN ... OWNER TO."""
    return st.AlterType(type=users_type(context, node.name, what=node.what).oid, owner=owner_name(node.role))


def bind_drop_type(context: BindContext, node: ast.Drop) -> st.DropType:
    """DROP TYPE, DROP DOMAIN: names are resolved when it runs, one by one."""
    names = tuple((name[-2] if len(name) > 1 else "", name[-1]) for name in paced(node.names))
    what: Literal["type", "domain"] = "domain" if node.what == "domain" else "type"
    return st.DropType(what=what, names=names, if_exists=node.if_exists, cascade=node.cascade)


def bind_comment_on_type(context: BindContext, node: ast.Comment) -> st.Comment:
    """COMMENT ON TYPE, COMMENT ON DOMAIN."""
    found = users_type(context, node.name, change=False, what=node.what)
    return st.Comment(class_oid=PG_TYPE, object_oid=found.oid, sub_id=0, text=node.text)


def bind_comment_on_domain_constraint(context: BindContext, node: ast.Comment) -> st.Comment:
    """COMMENT ON CONSTRAINT ... ON DOMAIN. Raises SqlError 42704, 42809."""
    *name, wanted = node.name
    made = users_type(context, tuple(name), what="domain")
    for check in made.checks:
        if check.name == wanted:
            return st.Comment(class_oid=PG_CONSTRAINT, object_oid=check.oid, sub_id=0, text=node.text)
    raise SqlError("42704", f'constraint "{wanted}" for domain {format_type(made.oid)} does not exist')
