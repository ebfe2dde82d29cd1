"""Indexes and composite types as the relations that they also are: with a row in pg_class, columns, and a
name among those of relations.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.catalog import ColumnDef, IndexDef, RelationDef, TypeDef


def index_relation(table: RelationDef, index: IndexDef) -> RelationDef:
    """Return an index as the relation it also is (kind i), columns included."""
    by_attnum = {c.attnum: c for c in table.columns}
    keys = index.attnums + index.include
    return RelationDef(
        oid=index.oid,
        schema_oid=table.schema_oid,
        schema=table.schema,
        name=index.name,
        kind="i",
        columns=tuple(
            ColumnDef(
                attnum=i + 1,
                name=index.key_names[i] if i < len(index.key_names) else by_attnum[a].name,
                type=by_attnum[a].type,
                domain=by_attnum[a].domain,
                dims=0 if computed else by_attnum[a].dims,
                generated="s" if computed else "",
            )
            for i, a in enumerate(keys)
            for computed in [i < len(index.expressions) and bool(index.expressions[i])]
        ),
        version=table.version,
        owner=table.owner,
        persistence=table.persistence,
        table_oid=table.oid,
        options=index.options,
    )


def composite_relation(made: TypeDef) -> RelationDef:
    """Return a composite type as the relation that names and catalogs have it as."""
    return RelationDef(
        oid=made.relation_oid,
        schema_oid=made.schema_oid,
        schema=made.schema,
        name=made.name,
        kind="c",
        columns=made.attributes,
        owner=made.owner,
        persistence="t" if made.schema.startswith("pg_temp_") else "p",
    )


def relations_of(item: RelationDef | TypeDef) -> Iterator[RelationDef]:
    """Yield all that a stored object is as a relation: itself, its indexes; nothing for a type that is not
    composite.
    """
    if isinstance(item, RelationDef):
        yield item
        for index in item.every_index:
            yield index_relation(item, index)
    elif item.kind == "c":
        yield composite_relation(item)


def relation_names(item: RelationDef | TypeDef) -> Iterator[tuple[str, str, int]]:
    """Yield schema, name and oid of each of these."""
    if isinstance(item, RelationDef):
        yield item.schema, item.name, item.oid
        for index in item.every_index:
            yield item.schema, index.name, index.oid
    elif item.kind == "c":
        yield item.schema, item.name, item.relation_oid
