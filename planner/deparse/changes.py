"""Changes of rows as text: what bodies of functions keep and show of INSERT, UPDATE, DELETE and MERGE, as
PostgreSQL prints them (get_insert_query_def and its kin).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from planner.base.errors import SqlError
from planner.base.quoting import quote_identifier
from planner.catalog import RelationDef
from planner.deparse.expr import INDENT_STEP, Printer, collation_name, stored_function
from planner.deparse.from_ import level_of, relation_name, values
from planner.deparse.names import is_called_otherwise
from planner.deparse.query import print_from, print_query, print_targets, print_with
from planner.query import (
    CollateExpr,
    Cte,
    CteRange,
    Expr,
    Insert,
    KeptAction,
    KeptChange,
    KeptConflict,
    KeptMerge,
    QueryBase,
    QueryExpr,
    RangeRef,
    RelationRange,
    Select,
    Values,
    Var,
    Written,
)
from planner.query.rewrite import replace_children
from planner.query.tables import table_range

_OVERRIDING: Final = {"": "", "system": "OVERRIDING SYSTEM VALUE ", "user": "OVERRIDING USER VALUE "}


def print_changes(p: Printer, change: Insert | KeptChange | KeptMerge) -> None:
    """Append a statement that changes rows. Raises SqlError 42P01 where its table has gone, 42703 a column."""
    table = None if p.table is None else p.table(change.table)
    if table is None:
        raise SqlError("42P01", "the relation that a function changes does not exist")
    if isinstance(change, Insert):
        print_insert(p, change, table)
    elif isinstance(change, KeptMerge):
        print_merge(p, change, table)
    else:
        print_change(p, change, table)


def _with_apart(insert: Insert) -> tuple[tuple[Cte, ...], QueryExpr | None]:
    """Return the WITH items of an INSERT, which its source has before its own, and the source without them.

    They are one level further out then, and what is further out than they are is one level nearer to them.
    """
    source, count = insert.source, insert.with_items
    if source is None or not count:
        return (), source
    names = {cte.name for cte in source.ctes[:count]}
    ctes = tuple([_at_level(cte, 1, lambda node, level: -(level > 0)) for cte in source.ctes[:count]])
    rest = replace(source, ctes=source.ctes[count:])
    return ctes, _at_level(rest, -1, lambda node, level: level == 0 and node.name in names)


def _at_level(node: object, depth: int, moved: Callable[[CteRange, int], int]) -> Any:
    """Return a tree whose references to WITH items are as many levels further out as ``moved`` says of each,
    given how far out it is.
    """
    if isinstance(node, CteRange):
        by = moved(node, node.level - depth)
        return replace(node, level=node.level + by) if by else node
    inner = depth + 1 if isinstance(node, QueryBase) else depth
    return replace_children(node, lambda child: _at_level(child, inner, moved))


def print_merge(p: Printer, merge: KeptMerge, table: RelationDef) -> None:
    """Append a MERGE into ``table``. Raises SqlError 42703 where a column that it gives values has gone."""
    shown = merge.shown
    _head(p, shown, "MERGE INTO ", table)
    print_from(p, shown.from_, shown, " USING ")
    p.keyword(" ON ", -INDENT_STEP, INDENT_STEP, 2)
    if shown.where is None:
        raise AssertionError("MERGE has no condition")
    p.expr(shown.where, False)
    for action in merge.actions:
        p.keyword(" WHEN ", -INDENT_STEP, INDENT_STEP, 2)
        p.out += "MATCHED" if action.matched else "NOT MATCHED"
        if action.condition is not None:
            p.keyword(" AND ", -INDENT_STEP, INDENT_STEP, 3)
            p.expr(action.condition, False)
        p.keyword(" THEN ", -INDENT_STEP, INDENT_STEP, 3)
        _action(p, action, table)
    p.levels.pop()


def _action(p: Printer, action: KeptAction, table: RelationDef) -> None:
    if action.action in ("delete", "nothing"):
        p.out += "DELETE" if action.action == "delete" else "DO NOTHING"
        return
    if action.action == "update":
        p.out += "UPDATE"
        _assign(p, list(zip(action.assigned, action.values, strict=True)), action.defaults, table)
        return
    names = _column_names(table, [attnum for attnums in action.assigned for attnum in attnums])
    p.out += "INSERT" + (f" ({', '.join(names)})" if names else "")
    p.out += " " + _OVERRIDING[action.overriding].rstrip() if action.overriding else ""
    if not names:
        p.out += " DEFAULT VALUES"
        return
    p.keyword(" VALUES (", -INDENT_STEP, INDENT_STEP, 4)
    for number, value in enumerate(action.values):
        p.out += ", " if number else ""
        if number in action.defaults:
            p.out += "DEFAULT"
        else:
            p.expr(value, False)
    p.out += ")"


def _head(p: Printer, shown: Select, word: str, table: RelationDef) -> None:
    """Append WITH and what is changed, range 0 of ``shown``, whose level it leaves open."""
    level = level_of(p, shown)
    p.levels.append(level)
    p.prefix = True
    print_with(p, shown)
    p.out += " "
    p.indent += INDENT_STEP
    target, made = shown.ranges[0], level.made
    if not isinstance(target, RelationRange):
        raise AssertionError(f"the rows of {type(target).__name__} are to be changed")
    if made is None:
        raise AssertionError("there is no new query level")
    names = made.ranges[0]
    p.out += word + ("ONLY " if target.written.only else "")
    p.out += relation_name(p, table.schema, table.name, changed=True)
    if names.name and is_called_otherwise(target, names):
        p.out += f" AS {quote_identifier(names.name)}"


def print_insert(p: Printer, insert: Insert, table: RelationDef) -> None:
    """Append an INSERT into ``table``, which RETURNING knows by its name or alias. Raises SqlError 42703
    where a column has gone.
    """
    change = None if insert.kept is None else insert.kept.change
    excluded = () if change is None else change.shown.ranges[1:]
    ctes, source = _with_apart(insert)
    row = replace(table_range(table, insert.alias), written=Written(aliased=bool(insert.alias)))
    shown = Select(
        columns=insert.columns, targets=insert.returning, ranges=(row, *excluded), from_=(RangeRef(range=0),), ctes=ctes
    )  # fmt: skip
    _head(p, shown, "INSERT INTO ", table)
    p.out += " "
    if insert.given:
        p.out += f"({', '.join(_column_names(table, insert.given))}) "
    p.out += _OVERRIDING[insert.overriding]
    if source is None:
        p.out += "DEFAULT VALUES"
    elif isinstance(source, Values) and not (source.order or source.limit or source.offset):
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
    """Append ON CONFLICT; columns of its target go without their table's name. Raises SqlError 42704 where
    its constraint has gone.
    """
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
    _head(p, shown, "UPDATE " if change.kind == "update" else "DELETE FROM ", table)
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
    values = [target.expr for target in change.shown.targets[count:]]
    _assign(p, list(zip(change.assigned, values, strict=True)), change.defaults, table)


def _assign(
    p: Printer, pairs: list[tuple[tuple[int, ...], Expr]], defaults: frozenset[int], table: RelationDef
) -> None:
    """Append SET: the columns of each value, and the value."""
    p.out += " SET "
    for number, (attnums, value) in enumerate(pairs):
        p.out += ", " if number else ""
        several = ", ".join(_column_names(table, attnums))
        p.out += (f"({several})" if len(attnums) > 1 else several) + " = "
        if number in defaults:
            p.out += "DEFAULT"
        else:
            p.expr(value, False)


def _column_names(table: RelationDef, attnums: Sequence[int]) -> list[str]:
    """Return what columns are called. Raises SqlError 42703 where one has gone."""
    names = {column.attnum: quote_identifier(column.name) for column in table.live}
    if any(attnum not in names for attnum in attnums):
        raise SqlError("42703", f'a column of relation "{table.name}" does not exist')
    return [names[attnum] for attnum in attnums]
