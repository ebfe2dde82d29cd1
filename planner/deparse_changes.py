"""Changes of rows as text: what bodies of functions keep and show of INSERT, as PostgreSQL's get_insert_query_def prints it."""

from __future__ import annotations

from typing import Final

from planner.catalog import RelationDef
from planner.deparse_expr import INDENT_STEP, Printer, quote_identifier
from planner.deparse_from import level_of, relation_name, values
from planner.deparse_query import print_query, print_targets
from planner.errors import SqlError
from planner.query import Insert, RangeRef, RelationRange, Select, Values

_OVERRIDING: Final = {"": "", "system": "OVERRIDING SYSTEM VALUE ", "user": "OVERRIDING USER VALUE "}


def print_insert(p: Printer, insert: Insert, table: RelationDef, row: RelationRange) -> None:
    """Append an INSERT into ``table``, whose new rows RETURNING knows as ``row``. Raises SqlError 42703 where a column has gone."""
    shown = Select(
        columns=insert.columns, targets=insert.returning, ranges=(row,), from_=(RangeRef(range=0),)
    )
    p.levels.append(level_of(p, shown))
    p.out += " "
    p.indent += INDENT_STEP
    p.out += f"INSERT INTO {relation_name(p, table.schema, table.name)} "
    names = {column.attnum: column.name for column in table.live}
    for attnum in insert.given:
        if attnum not in names:
            raise SqlError("42703", f'a column of relation "{table.name}" does not exist')
    if insert.given:
        p.out += f"({', '.join(quote_identifier(names[attnum]) for attnum in insert.given)}) "
    p.out += _OVERRIDING[insert.overriding]
    source = insert.source
    if source is None:
        p.out += "DEFAULT VALUES"
    elif isinstance(source, Values) and not (source.order or source.limit or source.offset or source.ctes):
        p.levels.append(level_of(p, source))
        if len(source.rows) > 1:
            values(p, source)
        else:
            p.keyword("VALUES (", -INDENT_STEP, INDENT_STEP, 2)
            p.list(source.rows[0], False)
            p.out += ")"
        p.levels.pop()
    else:
        print_query(p, source, False)
    if insert.returning:
        p.keyword(" RETURNING", -INDENT_STEP, INDENT_STEP, 1)
        print_targets(p, shown, False, ())
    p.levels.pop()
