"""Bound trees under the names that things have now: what stored texts are printed from when what they read has changed.

A stored text is bound against the catalog of before a change. ``renamed`` gives its tree the names, and the
columns, of the one after:

    ALTER TABLE t RENAME a TO b     Var t.a, a FieldSelect of it, x.a of an alias      the columns of the range are called anew
    ALTER TABLE t ADD c             t x(p, q), (t JOIN u ...) j(...), f() of t's rows  lists of columns go on naming the same ones
    ALTER TABLE t DROP c            the same; a column that is gone has no name
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from planner.base.errors import SqlError
from planner.catalog import Catalog, ColumnDef, RelationDef, RowType
from planner.conversion.composite import compose
from planner.query import (
    ComposeRow,
    Const,
    DecomposeRow,
    Expr,
    FunctionRange,
    Range,
    RangeColumn,
    RelationRange,
    RowExpr,
    SqlCall,
    SubqueryRange,
)
from planner.query.rewrite import replace_children
from planner.types.domains import base_oid


def renamed(node: object, catalog: Catalog) -> Any:
    """Give relations, their columns and the fields of composite values the names that ``catalog`` has for
    oids and numbers.

    FROM items that call functions keep the names of their columns, with which they are printed; which there
    are may have changed.
    """
    node = replace_children(node, lambda child: renamed(child, catalog))
    if isinstance(node, DecomposeRow | ComposeRow):
        row = catalog.row_type(base_oid((node.arg if isinstance(node, DecomposeRow) else node).type.oid))
        if row is not None and row.slots == node.slots:
            node = replace(node, names=tuple(column.name for column in row.live))
        elif row is not None and isinstance(node, ComposeRow) and isinstance(node.arg, RowExpr):
            node = _row_now(node, node.arg, row)
    elif isinstance(node, SqlCall):
        row = _row_of_call(node, catalog)
        if row is not None and len(row.live) == len(node.outputs):
            outputs = zip(node.outputs, row.live, strict=True)
            node = replace(node, outputs=tuple(replace(o, name=c.name) for o, c in outputs))
    elif isinstance(node, FunctionRange):
        node = _function_columns_now(node, catalog)
    elif isinstance(node, RelationRange):
        relation = _still_there(catalog, node.oid, node.name)
        node = replace(
            node,
            alias=relation.name if _follows(node, node.name) else node.alias,
            schema=relation.schema,
            name=relation.name,
            **_columns_now(relation, node),
        )
    elif isinstance(node, SubqueryRange) and node.view is not None:
        oid, _, name = node.view
        relation = _still_there(catalog, oid, name)
        node = replace(
            node,
            alias=relation.name if _follows(node, name) else node.alias,
            view=(oid, relation.schema, relation.name),
            **_columns_now(relation, node),
        )
    return node


def _row_now(node: ComposeRow, made: RowExpr, row: RowType) -> ComposeRow:
    """Return a row constructor of a type that has other attributes now: without those that are gone, and NULL
    for new ones.
    """
    fields = dict(zip(node.slots, made.fields, strict=True))
    now = tuple(
        fields.get(slot) or Const(type=column.declared, value=None)
        for slot, column in zip(row.slots, row.live, strict=True)
    )
    names = tuple(f"f{place}" for place in range(1, len(now) + 1))
    return compose(replace(made, fields=now, names=names), row, explicit=node.explicit, span=node.span)


def _row_of_call(call: SqlCall, catalog: Catalog) -> RowType | None:
    """Return the composite type of what a function returns, None for other types and for OUT parameters."""
    function = catalog.function_by_oid(call.proc)
    return None if function is None or function.outputs else catalog.row_type(function.result)


def _still_there(catalog: Catalog, oid: int, name: str) -> RelationDef:
    relation = catalog.relation_by_oid(oid)
    if relation is None:
        raise SqlError("42P01", f'relation "{name}" does not exist')
    return relation


def _follows(item: Range, name: str) -> bool:
    """Tell whether a range is called as its relation: an alias that only brings a list of columns is not of
    the user's.
    """
    return not item.written.aliased or (item.written.named > 0 and item.alias == name)


def _columns_now(relation: RelationDef, item: Range) -> dict[str, Any]:
    """Return the columns of a relation's range, and how they are written: those that are gone have no name,
    new ones are the last.
    """
    names = {column.attnum: column.name for column in relation.live}
    old = item.columns
    own = [names.pop(column.attnum, "") for column in old]
    columns = [
        column if place < item.written.named and called else replace(column, name=called)
        for place, (column, called) in enumerate(zip(old, own, strict=True))
    ]
    added = [column for column in relation.live if column.attnum in names]
    columns += [RangeColumn(name=c.name, type=c.declared, attnum=c.attnum) for c in added]
    own += [column.name for column in added]
    return {
        "columns": tuple(columns),
        "written": replace(item.written, own=tuple(own), fresh=item.written.fresh + len(added)),
    }


def _function_columns_now(item: FunctionRange, catalog: Catalog) -> FunctionRange:
    """Return a range of functions with the attributes that the composite types of their rows have got since,
    and without those they lost.
    """
    columns = list(item.columns)
    own = list(item.written.own or [column.name for column in columns])
    order: list[int] = []
    fresh: list[RangeColumn] = []
    at = 0
    for number, (function, width) in enumerate(zip(item.functions, item.widths, strict=True)):
        places = range(at, at + width)
        at += width
        order += places
        have, now = _attributes(item, number, function, catalog)
        by_name = not (item.slots and item.slots[number])
        if by_name and len(have) == len(now) == width and list(have) != list(now):
            continue  # one has another name
        for place, key in zip(places, have, strict=False):
            if key not in now:
                own[place] = ""
        for key, column in now.items():
            if key not in have:
                order.append(len(columns) + len(fresh))
                fresh.append(RangeColumn(name=column.name, type=column.declared, attnum=-1))
    order += range(at, len(columns))
    written = replace(
        item.written,
        own=(*own, *[column.name for column in fresh]),
        fresh=item.written.fresh + len(fresh),
        order=tuple(order),
    )
    return replace(item, columns=(*columns, *fresh), written=written)


def _attributes(
    item: FunctionRange, number: int, function: Expr, catalog: Catalog
) -> tuple[Sequence[object], dict[object, ColumnDef]]:
    """Return what tells a function's columns apart that are attributes of a composite type, as it was and as
    it is; of others nothing.

    It is their place among the type's attributes, or their name where the range does not know that.
    """
    slots = item.slots[number] if item.slots else None
    if slots is not None:
        row = catalog.row_type(base_oid(function.type.oid))
        return slots, {} if row is None else {c.attnum - 1: c for c in row.live}
    row = _row_of_call(function, catalog) if isinstance(function, SqlCall) else None
    if row is None or not isinstance(function, SqlCall):
        return (), {}
    return [output.name for output in function.outputs], {column.name: column for column in row.live}
