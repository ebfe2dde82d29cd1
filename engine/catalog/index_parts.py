"""The parts of a gin, gist or bloom index: one for each of its columns, kept by the shard as an index of its own.

    gin (tags, doc jsonb_path_ops, author)      x    elements of tags        (IndexId: the index's oid)
                                                x.1  paths of doc
                                                x.2  values of author        a sorted index (btree_gin)
    gist (room, during)                         x    values of room          a sorted index (btree_gist)
                                                x.1  ranges of during
    gist (words)                                x    lexemes of words        as gin
    bloom (age, town)                           x    values of age           sorted indexes, which know values where
                                                x.1  values of town          PostgreSQL's know signatures

So each column is looked up by the kind of index that suits it, and a query uses the part that says most; its other
conditions are tested on the rows found. All other indexes are one part: themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planner.catalog import IndexDef, IndexMethod, RelationDef
from planner.facts import TSVECTOR
from planner.indexing.opclass_extensions import keeps_values
from planner.types.domains import base_oid

_PART_SHIFT: Final = 32
"""Oids have 32 bits; the number of a part stands above them."""
OID_MASK: Final = (1 << _PART_SHIFT) - 1
"""What of a shard's IndexId is the oid of the index."""


_PARTED: Final = ("gin", "gist", "spgist", "bloom")


def index_parts(index: IndexDef, table: RelationDef) -> tuple[IndexDef, ...]:
    """Return the parts of an index as indexes over one column each; their ``oid`` is the shard's IndexId."""
    if index.method not in _PARTED or index.constraint_oid:
        return (index,)
    return tuple(_part(index, table, position) for position in range(len(index.attnums)))


def _method(index: IndexDef, type_oid: int) -> IndexMethod:
    """Return what keeps the part of an index over a type."""
    if keeps_values(index.method, type_oid):
        return "btree"
    return "gin" if index.method == "gist" and base_oid(type_oid) == TSVECTOR else index.method


def _part(index: IndexDef, table: RelationDef, position: int) -> IndexDef:
    attnum = index.attnums[position]
    opclass = index.opclasses[position] if index.opclasses else ""
    return replace(
        index,
        oid=index.oid + (position << _PART_SHIFT),
        attnums=(attnum,),
        method=_method(index, table.columns[attnum - 1].type.oid),
        descending=(),
        nulls_first=(),
        written=index.written[position : position + 1],
        expressions=index.expressions[position : position + 1],
        key_names=index.key_names[position : position + 1],
        opclasses=(opclass,) if opclass else (),
    )


def part_of(table: RelationDef, index_id: int) -> IndexDef | None:
    """Return the part that the shard of a table calls ``index_id``, or None."""
    for index in table.indexes:
        if index.oid == index_id & OID_MASK:
            return next((part for part in index_parts(index, table) if part.oid == index_id), None)
    return None
