"""CREATE TYPE ... AS (attributes) and ALTER TYPE's actions on attributes."""

from __future__ import annotations

from planner import ast
from planner import statements as st
from planner.base.errors import Span, SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.table.table_parts import column_type, declared_collation
from planner.bind.define.table.typed import refuse_of_typed
from planner.bind.define.types import creation_schema_of, is_taken, users_type
from planner.catalog import TypeDef
from planner.facts import TEXT
from planner.types import SqlType

MAX_ATTRIBUTES = 1600


def bind_create_composite(context: BindContext, node: ast.CreateComposite) -> st.CreateComposite:
    """CREATE TYPE ... AS (...). Raises SqlError 3F000, 54011, and what types of columns raise."""
    if len(node.columns) > MAX_ATTRIBUTES:
        raise SqlError("54011", f"tables can have at most {MAX_ATTRIBUTES} columns")
    schema = creation_schema_of(context, node.name)
    taken = is_taken(context, schema, node.name[-1])
    names = [column.name for column in node.columns]
    if not taken and len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise SqlError("42701", f'column "{twice}" specified more than once')
    attributes = () if taken else tuple(_attribute(context, column) for column in node.columns)
    return st.CreateComposite(schema=schema, name=node.name[-1], attributes=attributes)


def _attribute(context: BindContext, node: ast.ColumnDef, collated: Span | None = None) -> st.AttributeSpec:
    type_ = column_type(context, node)
    return st.AttributeSpec(
        name=node.name,
        type=type_,
        collation=declared_collation(context, node.collation, type_, collated),
        dims=node.dims,
    )


def bind_alter_composite(context: BindContext, node: ast.AlterTable) -> st.AlterComposite:
    """ALTER TYPE ... ADD, DROP, ALTER ATTRIBUTE. Raises SqlError 42704, 42809, 42701, 42703."""
    made = _composite(context, node.relation)
    actions: list[st.AttributeAction] = []
    names = {column.name for column in made.attributes if not column.dropped}
    typed = context.catalog.typed_tables(made.oid)
    for action in node.actions:
        refuse_of_typed(made, typed, cascade=action.cascade)
        column = action.definition
        if action.kind == "add column" and isinstance(column, ast.ColumnDef):
            if (
                column.name in names
            ):  # told before its type is looked at, and after what is missing of what is dropped
                spec = st.AttributeSpec(name=column.name, type=SqlType(TEXT), collation=0)
            else:
                spec = _attribute(context, column, column.collation_span)
            names.add(spec.name)
            actions.append(st.AddAttribute(attribute=spec))
        elif action.kind == "drop column":
            if action.name not in names and not action.missing_ok:
                raise _missing(made, action.name)
            dropped = st.DropAttribute(name=action.name, if_exists=action.missing_ok, cascade=action.cascade)
            actions.append(dropped)
            names.discard(action.name)
        elif action.kind == "alter column type" and isinstance(column, ast.ColumnDef):
            if action.name not in names:
                raise _missing(made, action.name)
            column = ast.ColumnDef(
                name=action.name, type=column.type, collation=column.collation, span=column.span
            )
            spec = _attribute(context, column)
            actions.append(st.AlterAttribute(attribute=spec))
        else:
            raise not_supported(f"ALTER TYPE ... {action.kind.upper()}")
    return st.AlterComposite(type=made.oid, actions=tuple(actions))


def bind_rename_attribute(context: BindContext, node: ast.Rename) -> st.AlterComposite:
    """ALTER TYPE ... RENAME ATTRIBUTE. Raises SqlError 42704, 42809, 42703, 42701."""
    if node.relation is None:
        raise AssertionError("RENAME ATTRIBUTE names no type")
    made = _composite(context, node.relation)
    typed = context.catalog.typed_tables(made.oid)
    refuse_of_typed(made, typed, cascade=node.cascade)
    names = {column.name for column in made.attributes if not column.dropped}
    if node.old not in names:
        raise SqlError("42703", f'column "{node.old}" does not exist')
    if node.new in names:  # the tables of the type are renamed first
        of = typed[0].name if typed else made.name
        raise SqlError("42701", f'column "{node.new}" of relation "{of}" already exists')
    for relation in typed:
        context.versions[relation.oid] = relation.version
    return st.AlterComposite(
        type=made.oid,
        actions=(st.RenameAttribute(old=node.old, new=node.new),),
        renamed=tuple(relation.oid for relation in typed),
    )


def _composite(context: BindContext, reference: ast.TableRef) -> TypeDef:
    relation = context.find_relation(reference.schema, reference.name)
    if relation is not None and relation.kind not in "ic":
        raise SqlError("42809", f'"{relation.name}" is not a composite type', span=reference.span)
    name = (reference.schema, reference.name) if reference.schema else (reference.name,)
    oid = context.find_type(reference.schema, reference.name)
    if oid is None:
        raise SqlError("42P01", f'relation "{".".join(name)}" does not exist')
    made = users_type(context, name)
    if made.kind != "c":
        raise SqlError("42P01", f'relation "{".".join(name)}" does not exist')
    return made


def _missing(made: TypeDef, name: str) -> SqlError:
    return SqlError("42703", f'column "{name}" of relation "{made.name}" does not exist')
