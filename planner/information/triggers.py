"""pg_get_triggerdef: the SQL text of triggers for the reader (see ``planner.information.definitions``)."""

from __future__ import annotations

from dataclasses import replace

from planner.base.quoting import quote_ident
from planner.bind.define.trigger import stored_condition
from planner.catalog import RelationDef
from planner.catalog.trigger import TriggerDef
from planner.deparse.trigger import deparse_when
from planner.deparse.trigger import trigger_definition as definition
from planner.facts import facts
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.system.names import relation_visible, shown_schema
from planner.information import definitions as built_in
from planner.information.functions import called_function
from planner.information.named_constants import for_reader


def trigger_definition(session: EvalSession, oid: int, pretty: bool | None = None) -> str | None:
    """SQL's ``pg_get_triggerdef``; NULL for an unknown oid. With ``pretty`` given, names that the reader's
    path finds go unqualified.
    """
    found = session.catalog.trigger_by_oid(oid)
    return None if found is None else trigger_text(session, *found, pretty=pretty)


def trigger_text(
    session: EvalSession, table: RelationDef, trigger: TriggerDef, *, pretty: bool | None = None
) -> str:
    """Return CREATE TRIGGER as the reader has to write it."""
    when = condition_text(session, table, trigger, pretty=bool(pretty))
    referred = session.catalog.relation_by_oid(trigger.from_table)
    from_table = ""
    if referred is not None:
        # unlike the trigger's own table it is qualified only where the path does not find it
        from_table = _named(session, referred, short=True)
    name = _named(session, table, short=bool(pretty))
    if session.escapes:
        trigger = replace(trigger, args=tuple([arg.replace("\\", "\\\\") for arg in trigger.args]))
    return definition(trigger, table, name, function_text(session, trigger), when, from_table)


def _named(session: EvalSession, table: RelationDef, *, short: bool) -> str:
    name = quote_ident(table.name)
    return (
        name
        if short and relation_visible(session, table)
        else f"{shown_schema(session, table.schema)}.{name}"
    )


def condition_text(session: EvalSession, table: RelationDef, trigger: TriggerDef, *, pretty: bool) -> str:
    """Return a trigger's condition as it prints, "" for none."""
    expr = stored_condition(trigger, table, session.catalog)
    if expr is None:
        return ""
    shown = deparse_when(expr, table, pretty=pretty, reader=built_in.reader_of(session))
    return for_reader(session, shown)


def function_text(session: EvalSession, trigger: TriggerDef) -> str:
    """Return the name by which the reader finds a trigger's function."""
    function = session.catalog.function_by_oid(trigger.function)
    return (
        quote_ident(facts().procs[trigger.function].name)
        if function is None
        else called_function(session, function)
    )


def _register() -> None:
    for signature in ("pg_get_triggerdef(oid)", "pg_get_triggerdef(oid,bool)"):
        REGISTRY.python(signature, trigger_definition, needs_session=True)


_register()
