"""Changes of rows as text: what bodies of functions keep and show of INSERT, UPDATE and DELETE, as PostgreSQL prints them (get_insert_query_def and its kin)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planner.catalog import RelationDef
from planner.deparse_expr import INDENT_STEP, Printer, quote_identifier
from planner.deparse_from import level_of, relation_name, values
from planner.deparse_names import is_called_otherwise
from planner.deparse_query import print_from, print_query, print_targets, print_with
from planner.errors import SqlError
from planner.query import Insert, KeptChange, RangeRef, RelationRange, Select, Values

_OVERRIDING: Final = {"": "", "system": "OVERRIDING SYSTEM VALUE ", "user": "OVERRIDING USER VALUE "}


def print_insert(p: Printer, insert: Insert, table: RelationDef, row: RelationRange) -> None:
    """Append an INSERT into ``table``, whose new rows RETURNING knows as ``row``. Raises SqlError 42703 where a column has gone."""
    shown = Select(
        columns=insert.columns, targets=insert.returning, ranges=(row,), from_=(RangeRef(range=0),)
    )
    p.levels.append(level_of(p, shown))
    p.prefix = True
    p.out += " "
    p.indent += INDENT_STEP
    p.out += f"INSERT INTO {relation_name(p, table.schema, table.name)} "
    p.out += f"AS {quote_identifier(insert.alias)} " if insert.alias else ""
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


def print_change(p: Printer, change: KeptChange, table: RelationDef) -> None:
    """Append an UPDATE or DELETE of ``table``. Raises SqlError 42703 where a column that it sets has gone."""
    count = len(change.shown.targets) - len(change.assigned)
    shown = replace(change.shown, targets=change.shown.targets[:count])
    level = level_of(p, shown)
    p.levels.append(level)
    p.prefix = True
    print_with(p, shown)
    p.out += " "
    p.indent += INDENT_STEP
    target, made = shown.ranges[0], level.made
    assert isinstance(target, RelationRange)
    assert made is not None
    names = made.ranges[0]
    p.out += ("UPDATE " if change.kind == "update" else "DELETE FROM ") + (
        "ONLY " if target.written.only else ""
    )
    p.out += relation_name(p, table.schema, table.name)
    if names.name and is_called_otherwise(target, names):
        p.out += f" AS {quote_identifier(names.name)}"
    if change.kind == "update":
        _set_list(p, change, table, count)
    print_from(p, shown.from_[1:], shown, " FROM " if change.kind == "update" else " USING ")
    if shown.where is not None:
        p.keyword(" WHERE ", -INDENT_STEP, INDENT_STEP, 1)
        p.expr(shown.where, False)
    if shown.targets:
        p.keyword(" RETURNING", -INDENT_STEP, INDENT_STEP, 1)
        print_targets(p, shown, False, ())
    p.levels.pop()


def _set_list(p: Printer, change: KeptChange, table: RelationDef, count: int) -> None:
    names = {column.attnum: quote_identifier(column.name) for column in table.live}
    p.out += " SET "
    for number, (attnums, value) in enumerate(
        zip(change.assigned, change.shown.targets[count:], strict=True)
    ):
        if any(attnum not in names for attnum in attnums):
            raise SqlError("42703", f'a column of relation "{table.name}" does not exist')
        p.out += ", " if number else ""
        several = ", ".join(names[attnum] for attnum in attnums)
        p.out += (f"({several})" if len(attnums) > 1 else several) + " = "
        if number in change.defaults:
            p.out += "DEFAULT"
        else:
            p.expr(value.expr, False)
