"""Changes of rows as text: what bodies of functions keep and show of INSERT, UPDATE and DELETE, as PostgreSQL prints them (get_insert_query_def and its kin)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.deparse.expr import INDENT_STEP, Printer, collation_name, quote_identifier, stored_function
from planner.deparse.from_ import level_of, relation_name, values
from planner.deparse.names import is_called_otherwise
from planner.deparse.query import print_from, print_query, print_targets, print_with
from planner.query import (
    CollateExpr,
    Insert,
    KeptChange,
    KeptConflict,
    RangeRef,
    RelationRange,
    Select,
    Values,
    Var,
)

_OVERRIDING: Final = {"": "", "system": "OVERRIDING SYSTEM VALUE ", "user": "OVERRIDING USER VALUE "}


def print_insert(p: Printer, insert: Insert, table: RelationDef, row: RelationRange) -> None:
    """Append an INSERT into ``table``, whose new rows RETURNING knows as ``row``. Raises SqlError 42703 where a column has gone."""
    change = None if insert.kept is None else insert.kept.change
    excluded = () if change is None else change.shown.ranges[1:]
    shown = Select(
        columns=insert.columns, targets=insert.returning, ranges=(row, *excluded), from_=(RangeRef(range=0),)
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
    if insert.kept is not None:
        _conflict(p, insert.kept, table)
    if insert.returning:
        p.keyword(" RETURNING", -INDENT_STEP, INDENT_STEP, 1)
        print_targets(p, shown, False, ())
    p.levels.pop()


def _conflict(p: Printer, kept: KeptConflict, table: RelationDef) -> None:
    """Append ON CONFLICT; columns of its target go without their table's name. Raises SqlError 42704 where its constraint has gone."""
    p.out += " ON CONFLICT"
    p.prefix = False
    for number, key in enumerate(kept.keys):
        p.out += ", " if number else "("
        plain = key.arg if isinstance(key, CollateExpr) else key
        before = len(p.out)
        p.expr(plain, False)
        text = p.out[before:]
        if not isinstance(plain, Var) and (text.startswith("(") or not text.endswith(")")):
            p.out = f"{p.out[:before]}({text})"  # unless it is a call
        if isinstance(key, CollateExpr):
            p.out += f" COLLATE {collation_name(key.collation, p.function_name)}"
    p.out += ")" if kept.keys else ""
    if kept.key_where is not None:
        p.keyword(" WHERE ", -INDENT_STEP, INDENT_STEP, 1)
        p.expr(kept.key_where, False)
    p.prefix = True
    if kept.constraint:
        name = next((c.name for c in table.constraints if c.oid == kept.constraint), None)
        if name is None:
            raise SqlError("42704", f'a constraint of table "{table.name}" does not exist')
        stored = p.function_name is stored_function
        p.out += " ON CONSTRAINT " + (f'"#{kept.constraint}"' if stored else quote_identifier(name))
    if kept.change is None:
        p.out += " DO NOTHING"
        return
    p.out += " DO UPDATE"
    _set_list(p, kept.change, table, 0)
    if kept.change.shown.where is not None:
        p.keyword(" WHERE ", -INDENT_STEP, INDENT_STEP, 1)
        p.expr(kept.change.shown.where, False)


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
