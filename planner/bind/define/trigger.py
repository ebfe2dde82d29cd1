"""CREATE, ALTER, DROP and COMMENT ON TRIGGER.

    WHEN (old.a IS DISTINCT FROM new.a)      range 0 old, range 1 new: the same columns twice

The condition is kept as canonical text and bound anew where it is used, as a CHECK is (``planner.bind.stored``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Literal

from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.of_table import bind_drop, named_part
from planner.bind.expression.expr import bind_kept
from planner.bind.scope import SYSTEM_COLUMNS, Scope
from planner.bind.stored import stored_context, with_oids, without_spans
from planner.bind.stored.runnable import check_runnable
from planner.catalog import Catalog, ColumnDef, ConstraintDef, RelationDef
from planner.catalog.relation_kinds import RELATION_KINDS, TABLES, TRIGGERED
from planner.catalog.trigger import TriggerDef
from planner.conversion.casts import coerce_to_boolean
from planner.deparse.trigger import deparse_when
from planner.facts import TRIGGER, facts
from planner.parse import parse_expression
from planner.query import Expr, Var
from planner.query.tables import table_range
from planner.query.walk import walk
from planner.types.facts import format_type

PG_TRIGGER: Final = 2620
SUPPRESS_REDUNDANT_UPDATES: Final = 1291
_OWN: Final = frozenset((SUPPRESS_REDUNDANT_UPDATES, 3752, 3753))
"""The trigger functions of PostgreSQL's own that there are, two of them keep text search vectors; the others
check constraints."""

OLD, NEW = 0, 1
"""The ranges of a condition."""

_TIMINGS: Final[Mapping[str, Literal["b", "a", "i"]]] = {"before": "b", "after": "a", "instead of": "i"}


def bind_create_trigger(context: BindContext, node: ast.CreateTrigger) -> st.CreateTrigger:
    """CREATE TRIGGER.

    Raises SqlError 42P01, 42809, 42501, 42703, 42701, 42883, 42P17, 42804; 0A000 for what PostgreSQL refuses so.
    """
    if node.constraint and node.replace:
        raise SqlError("0A000", "CREATE OR REPLACE CONSTRAINT TRIGGER is not supported")
    relation = context.relation(node.relation.schema, node.relation.name, catalog=node.relation.catalog)
    _check_relation(relation, node)
    source = node.from_table
    from_table = (
        None if source is None else context.relation(source.schema, source.name, catalog=source.catalog)
    )
    if "t" in node.events and node.row:
        raise SqlError("0A000", "TRUNCATE FOR EACH ROW triggers are not supported")
    if node.timing == "instead of":
        _check_instead(node)
    old_table, new_table = _transitions(relation, node)
    when = None if node.when is None else with_oids(context, _condition(context, node.when, relation, node))
    function = _function(context, node.function)
    trigger = TriggerDef(
        oid=0,
        name=node.name,
        function=function,
        timing=_TIMINGS[node.timing],
        row=node.row,
        events=node.events,
        attnums=_columns(relation, node.columns),
        when_sql="" if when is None else deparse_when(when, relation),
        args=node.args,
        from_table=0 if from_table is None else from_table.oid,
        old_table=old_table,
        new_table=new_table,
    )
    constraint = None
    if node.constraint:
        constraint = ConstraintDef(
            oid=0, name=node.name, kind="t", deferrable=node.deferrable, deferred=node.deferred
        )
    return st.CreateTrigger(table=relation.oid, trigger=trigger, constraint=constraint, replace=node.replace)


def _check_instead(node: ast.CreateTrigger) -> None:
    for wrong, rule in (
        (not node.row, "must be FOR EACH ROW"),
        (node.when is not None, "cannot have WHEN conditions"),
        (node.columns, "cannot have column lists"),
    ):
        if wrong:
            raise SqlError("0A000", f"INSTEAD OF triggers {rule}")


def _transitions(relation: RelationDef, node: ast.CreateTrigger) -> tuple[str, str]:
    """Return the names of the old and the new rows of REFERENCING, "" for none. Raises SqlError 0A000, 42809, 42P17."""
    names = ["", ""]
    for one in node.transitions:
        word, event = ("NEW", "INSERT") if one.new else ("OLD", "DELETE")
        if not one.table:
            raise SqlError(
                "0A000",
                "ROW variable naming in the REFERENCING clause is not supported",
                hint="Use OLD TABLE or NEW TABLE for naming transition tables.",
            )
        if relation.kind not in TABLES:
            facts_ = RELATION_KINDS[relation.kind]
            raise SqlError(
                "42809",
                f'"{relation.name}" is {facts_.one}',
                detail=f"Triggers on {facts_.plural} cannot have transition tables.",
            )
        for wrong, sqlstate, message in (
            (
                node.timing != "after",
                "42P17",
                "transition table name can only be specified for an AFTER trigger",
            ),
            ("t" in node.events, "0A000", "TRUNCATE triggers with transition tables are not supported"),
            (
                len(node.events) > 1,
                "0A000",
                "transition tables cannot be specified for triggers with more than one event",
            ),
            (node.columns, "0A000", "transition tables cannot be specified for triggers with column lists"),
            (
                node.events not in ("u", event[0].lower()),
                "42P17",
                f"{word} TABLE can only be specified for {'an INSERT' if one.new else 'a DELETE'} or UPDATE trigger",
            ),
            (names[one.new], "42P17", f"{word} TABLE cannot be specified multiple times"),
        ):
            if wrong:
                raise SqlError(sqlstate, message)
        names[one.new] = one.name
    old, new = names
    if old and old == new:
        raise SqlError("42P17", "OLD TABLE name and NEW TABLE name cannot be the same")
    return old, new


def _check_relation(relation: RelationDef, node: ast.CreateTrigger) -> None:
    if relation.virtual:
        raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
    if relation.kind in TABLES:
        if node.timing == "instead of":
            raise SqlError(
                "42809", f'"{relation.name}" is a table', detail="Tables cannot have INSTEAD OF triggers."
            )
    elif relation.kind == "f":
        for wrong, what in (
            (node.timing == "instead of", "INSTEAD OF"),
            ("t" in node.events, "TRUNCATE"),
            (node.constraint, "constraint"),
        ):
            if wrong:
                raise SqlError(
                    "42809",
                    f'"{relation.name}" is a foreign table',
                    detail=f"Foreign tables cannot have {what} triggers.",
                )
    elif relation.kind == "v":
        detail = None
        if node.timing != "instead of" and node.row:
            detail = "Views cannot have row-level BEFORE or AFTER triggers."
        elif "t" in node.events:
            detail = "Views cannot have TRUNCATE triggers."
        if detail is not None:
            raise SqlError("42809", f'"{relation.name}" is a view', detail=detail)
    else:
        raise SqlError(
            "42809",
            f'relation "{relation.name}" cannot have triggers',
            detail=f"This operation is not supported for {RELATION_KINDS[relation.kind].plural}.",
        )


def _columns(relation: RelationDef, names: tuple[str, ...]) -> tuple[int, ...]:
    found: list[int] = []
    for name in names:
        column = next((c for c in relation.live if c.name == name), None)
        attnum = column.attnum if column is not None else SYSTEM_COLUMNS.get(name, (0,))[0]
        if not attnum:
            raise SqlError("42703", f'column "{name}" of relation "{relation.name}" does not exist')
        if attnum in found:
            raise SqlError("42701", f'column "{name}" specified more than once')
        if attnum < 0:
            raise not_supported(f'UPDATE OF "{name}", a system column')
        found.append(attnum)
    return tuple(found)


def _function(context: BindContext, name: ast.Name) -> int:
    """Return the oid of the trigger function that a name means. Raises SqlError 42883, 42P17, 3F000; 0A000
    for others of PostgreSQL's own.
    """
    shown = ".".join(name)
    named = name[-2] if len(name) > 1 else ""
    context.require_schema(named)
    named = context.own_schema(named)
    # functions of the temporary schema are found only where it is named
    path = (named,) if named else [s for s in context.search_path if not s.startswith("pg_temp")]
    mine = [f for f in context.catalog.functions_named(name[-1]) if not f.inputs and f.kind == "f"]
    for schema in path:
        if schema == "pg_catalog":
            own = next((p for p in facts().procs_by_name.get(name[-1], ()) if not p.arg_types), None)
            if own is not None and own.result == TRIGGER and own.oid not in _OWN:
                raise not_supported(f"the trigger function {own.name}")
            if own is not None:
                _check_result(shown, own.result)
                return own.oid
        for function in mine:
            if function.schema == schema:
                _check_result(shown, function.result)
                return function.oid
    raise SqlError("42883", f"function {shown}() does not exist")


def _check_result(name: str, result: int) -> None:
    if result != TRIGGER:
        raise SqlError("42P17", f"function {name} must return type {format_type(TRIGGER)}")


# --- the condition --------------------------------------------------------------------------------


def _condition(
    context: BindContext, node: ast.Expression, relation: RelationDef, trigger: ast.CreateTrigger
) -> Expr:
    """Bind WHEN. Raises SqlError 42P17 and 0A000 for versions of the row, or columns, that it may not name."""
    expr = _bound(context, node, relation)
    generated = {c.attnum: c for c in relation.generated if not c.hidden}
    for item in walk(expr):
        if not isinstance(item, Var):
            continue
        if not trigger.row:
            raise SqlError(
                "42P17", "statement trigger's WHEN condition cannot reference column values", span=item.span
            )
        if item.range == OLD and "i" in trigger.events:
            raise SqlError(
                "42P17", "INSERT trigger's WHEN condition cannot reference OLD values", span=item.span
            )
        if item.range == NEW and "d" in trigger.events:
            raise SqlError(
                "42P17", "DELETE trigger's WHEN condition cannot reference NEW values", span=item.span
            )
        if item.attnum < 0:
            if item.range == NEW and trigger.timing == "before":
                raise SqlError(
                    "0A000",
                    "BEFORE trigger's WHEN condition cannot reference NEW system columns",
                    span=item.span,
                )
            if item.name != "tableoid":
                raise not_supported(f'WHEN condition on "{item.name}", a system column', span=item.span)
        if item.range == NEW and trigger.timing == "before":
            _refuse_generated(item, generated)
    check_runnable(expr, context.catalog)  # it has to be, later
    return expr


def _refuse_generated(item: Var, generated: Mapping[int, ColumnDef]) -> None:
    detail = None
    if item.attnum == 0 and generated:
        detail = "A whole-row reference is used and the table contains generated columns."
    elif item.attnum in generated:
        detail = f'Column "{generated[item.attnum].name}" is a generated column.'
    if detail is not None:
        message = "BEFORE trigger's WHEN condition cannot reference NEW generated columns"
        raise SqlError("42P17", message, detail=detail, span=item.span)


def _bound(context: BindContext, node: ast.Expression, relation: RelationDef) -> Expr:
    scope = Scope(context=context)
    origins = [(relation.oid, column.attnum) for column in relation.live]
    for name in ("old", "new"):
        index = scope.add_range(table_range(relation, name), origins)
        scope.add_namespace([scope.item(index, relation=relation)])
    return coerce_to_boolean(bind_kept(scope, node, "TRIGGER WHEN"), "WHEN", context.env)


def stored_condition(trigger: TriggerDef, relation: RelationDef, catalog: Catalog) -> Expr | None:
    """Return a trigger's condition, None where it has none; Vars of ``OLD`` and ``NEW``. It is evaluated
    after ``runnable``.
    """
    if not trigger.when_sql:
        return None
    context = stored_context(catalog, trigger.when_sql)
    expr: Expr = without_spans(_bound(context, parse_expression(trigger.when_sql), relation))
    return expr


def rebound_triggers(
    before: RelationDef, after: RelationDef, catalog: Catalog, change: Callable[[Expr], Expr]
) -> tuple[TriggerDef, ...]:
    """Return a table's triggers with their conditions, bound against ``catalog`` and ``before``, changed and
    printed for ``after``.
    """
    made: list[TriggerDef] = []
    for trigger in after.triggers:
        expr = stored_condition(trigger, before, catalog)
        made.append(trigger if expr is None else replace(trigger, when_sql=deparse_when(change(expr), after)))
    return tuple(made)


# --- others ---------------------------------------------------------------------------------------


def _of_table(relation: RelationDef, name: str) -> TriggerDef:
    return named_part("trigger", relation.triggers, relation, name)


def bind_rename_trigger(context: BindContext, node: ast.RenameTrigger) -> st.RenameTrigger:
    """ALTER TRIGGER ... RENAME TO. Raises SqlError 42P01, 42704, 42809, 42501 (a system catalog)."""
    reference = node.relation
    relation = context.relation(reference.schema, reference.name, catalog=reference.catalog)
    if relation.kind not in TRIGGERED:
        raise SqlError(
            "42809",
            f'relation "{relation.name}" cannot have triggers',
            detail=f"This operation is not supported for {RELATION_KINDS[relation.kind].plural}.",
        )
    if relation.virtual:
        raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
    _of_table(relation, node.name)
    return st.RenameTrigger(table=relation.oid, name=node.name, new=node.new)


def bind_drop_trigger(context: BindContext, node: ast.DropTrigger) -> st.DropTrigger | st.Skip:
    """DROP TRIGGER. Raises SqlError 42704, 42P01, 3F000; with IF EXISTS these are notices."""
    found = bind_drop(context, node, "trigger", lambda relation: relation.triggers)
    return found if isinstance(found, st.Skip) else st.DropTrigger(table=found.oid, name=node.name)


def bind_comment_on_trigger(context: BindContext, node: ast.CommentOnTrigger) -> st.Comment:
    """COMMENT ON TRIGGER. Raises SqlError 42P01, 42704."""
    relation = context.relation(node.table[-2] if len(node.table) > 1 else "", node.table[-1])
    oid = _of_table(relation, node.name).oid
    return st.Comment(class_oid=PG_TRIGGER, object_oid=oid, sub_id=0, text=node.text)


_ENABLED: Final[Mapping[str, Literal["O", "D", "R", "A"]]] = {
    "enable": "O", "disable": "D", "enable replica": "R", "enable always": "A",
}  # fmt: skip
TRIGGER_ACTIONS: Final = (
    "enable trig", "disable trig", "enable replica trig", "enable always trig", "enable trig all", "disable trig all",
    "enable trig user", "disable trig user",
)  # fmt: skip
"""The kinds of ``ast.AlterAction`` that are about triggers."""


def bind_enable(relation: RelationDef, kind: str, name: str) -> st.EnableTriggers:
    """Bind ALTER TABLE ENABLE and DISABLE TRIGGER. Raises SqlError 42704."""
    verb, _, which = kind.partition(" trig")
    if not which:
        _of_table(relation, name)
    return st.EnableTriggers(name=name or None, enabled=_ENABLED[verb], everything=which == " all")
