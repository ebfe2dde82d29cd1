"""LIKE … INCLUDING COMMENTS: what is said of columns, CHECK constraints, indexes and extended statistics is
said of their copies, too; not what is said of keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_CLASS_OID, PG_CONSTRAINT_OID, PG_STATISTIC_EXT_OID, CommentDef
from planner.catalog import IndexDef, RelationDef
from planner.catalog.statistics import StatisticsDef


def copied_comments(catalog: CatalogSnapshot, made: RelationDef, sources: Sequence[int]) -> list[CommentDef]:
    """Return the comments on what a new table has copied from ``sources``: what has the same name, or for
    indexes the same keys.
    """
    found: list[CommentDef] = []

    def copy(class_oid: int, old: tuple[int, int], new: tuple[int, int]) -> None:
        text = catalog.comment(class_oid, *old)
        if text is not None:
            found.append(CommentDef(class_oid=class_oid, object_oid=new[0], sub_id=new[1], text=text))

    columns = {column.name: column.attnum for column in made.live}
    checks = {constraint.name: constraint.oid for constraint in made.constraints if constraint.kind == "c"}
    left = list(made.indexes)
    copies = list(made.statistics)
    for source in filter(None, map(catalog.relation_by_oid, sources)):
        for column in source.live:
            if column.name in columns:
                copy(PG_CLASS_OID, (source.oid, column.attnum), (made.oid, columns[column.name]))
        for constraint in source.constraints:
            if constraint.kind == "c" and constraint.name in checks:
                copy(PG_CONSTRAINT_OID, (constraint.oid, 0), (checks[constraint.name], 0))
        for index in source.every_index:
            same = next((one for one in left if _keys(one, made) == _keys(index, source)), None)
            if same is not None:
                left.remove(same)
                copy(PG_CLASS_OID, (index.oid, 0), (same.oid, 0))
        for one in source.statistics:
            over = _parts(one, source)
            found_copy = next((each for each in copies if _parts(each, made) == over), None)
            if found_copy is not None:
                copies.remove(found_copy)
                copy(PG_STATISTIC_EXT_OID, (one.oid, 0), (found_copy.oid, 0))
    return found


def _parts(statistics: StatisticsDef, table: RelationDef) -> tuple[object, ...]:
    names = [table.column(attnum).name for attnum in statistics.attnums]
    return sorted(names), statistics.expressions, statistics.kinds


def _keys(index: IndexDef, table: RelationDef) -> tuple[object, ...]:
    def names(attnums: Sequence[int]) -> list[str]:
        return [table.column(attnum).name if attnum else "" for attnum in attnums]

    return (
        names(index.key_columns), names(index.include), index.expressions, index.where_sql, index.unique,
        index.primary, index.method, index.options,
    )  # fmt: skip
