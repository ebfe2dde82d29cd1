"""Which columns hold values of composite types: what such a type is made of must not change under them.

CREATE TABLE t (a int)      CREATE TABLE u (x t)      ALTER TABLE t ALTER a TYPE bigint      0A000: u.x has rows of t
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.catalog.state import CatalogSnapshot, row_array_oid, row_type_oid
from planner.catalog import ColumnDef, RelationDef
from planner.deparse_expr import quote_identifier
from planner.errors import SqlError, not_supported


def parts_of(catalog: CatalogSnapshot, oid: int) -> Iterator[int]:
    """Yield the composite types in values of a type, at any depth; the type itself first if it is one."""
    seen: set[int] = set()
    left = [oid]
    while left:
        current = left.pop()
        made = catalog.type_by_oid(current)
        relation = catalog.row_type_relation(current)
        if made is not None and made.kind == "d":
            left.append(made.base)
            continue
        own = made.oid if made is not None else relation[0].oid + 1 if relation is not None else 0
        row = catalog.row_type(own) if own else None
        if row is None or own in seen:
            continue
        seen.add(own)
        yield own
        left += [column.declared.oid for column in row.live]


def columns_holding(
    catalog: CatalogSnapshot, oid: int, array_oid: int
) -> Iterator[tuple[RelationDef, ColumnDef]]:
    """Yield the stored columns whose values have values of a composite type in them, newest column of a table first."""
    for relation in sorted(catalog.user_relations(), key=lambda r: r.oid):
        if relation.kind not in "rm":
            continue
        for column in reversed(relation.stored_columns):
            declared = column.declared.oid
            if declared in (oid, array_oid) or oid in set(parts_of(catalog, declared)):
                yield relation, column


def refuse_held_rows(catalog: CatalogSnapshot, relation: RelationDef, what: str = "") -> None:
    """Raise SqlError 0A000 for a change of a table whose rows are values of columns elsewhere.

    ``what``: a change that PostgreSQL makes, and that is not supported here: values would compare otherwise.
    """
    for other, column in columns_holding(catalog, row_type_oid(relation.oid), row_array_oid(relation.oid)):
        if what:
            raise not_supported(
                f'{what} of table "{relation.name}", whose row type column "{other.name}.{column.name}" uses,'
            )
        raise SqlError(
            "0A000",
            f'cannot alter table "{relation.name}" because column "{other.name}.{column.name}" uses its row type',
        )


def refuse_selected(catalog: CatalogSnapshot, name: str, what: str, of: str) -> None:
    """Raise SqlError 0A000 where a stored text selects the field ``name`` of a composite value: it would name it no more.

    PostgreSQL's stored expressions have attributes by number. Texts are searched, not bound, so that a field of that name of another
    type counts, too.
    """
    field = re.compile(
        r'[)\]](?:\.(?:"[^"]*"|[\w$]+)|\[[^\]]*\])*\.' + re.escape(quote_identifier(name)) + r"(?![\w$])"
    )
    for kind, owner, text in _stored_texts(catalog):
        if field.search(text):
            raise not_supported(f'{what} "{name}" of "{of}", which {kind} {owner} selects,')


def rows_in_use(catalog: CatalogSnapshot, relation: RelationDef) -> bool:
    """Tell whether rows of a relation may be values somewhere: in columns, in functions, in what views make of whole rows."""
    own = (row_type_oid(relation.oid), row_array_oid(relation.oid))
    if next(columns_holding(catalog, *own), None) is not None:
        return True
    if any(oid in own for function in catalog.functions() for oid in (*function.types, function.result)):
        return True
    return any(".*::" in text for _, _, text in _stored_texts(catalog))


def _stored_texts(catalog: CatalogSnapshot) -> Iterator[tuple[str, str, str]]:
    """Yield all texts of a database's catalog that are bound again, each with what it belongs to."""
    for relation in catalog.user_relations():
        if relation.view_sql:
            yield "view", relation.name, relation.view_sql
        for column in relation.columns:
            yield "table", relation.name, column.default_sql or ""
        for constraint in relation.constraints:
            yield "table", relation.name, constraint.check_sql
        for index in relation.indexes:
            for text in (*index.expressions, index.where_sql):
                yield "index", index.name, text
    for type_ in catalog.user_types():
        for text in (type_.default_sql or "", *(check.check_sql for check in type_.checks)):
            yield "domain", type_.name, text
    for function in catalog.functions():
        for text in (*function.defaults, function.body_sql):
            yield "function", function.name, text
