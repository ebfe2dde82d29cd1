"""Functions over extended statistics: ``pg_get_statisticsobjdef`` and its kin, and who finds them by their name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.base.quoting import quote_identifier
from planner.bind.stored.shown import expression_in_definition
from planner.catalog import RelationDef
from planner.catalog.mcv_lists import decoded
from planner.catalog.statistics import KINDS, StatisticsDef
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.system.names import qualifier, shown_schema
from planner.information.definitions import get_expr, reader_of
from planner.information.named_constants import for_reader


def _schema_name(session: EvalSession, one: StatisticsDef) -> str:
    schema = session.catalog.schema_by_oid(one.schema_oid)
    return "" if schema is None else schema.name


def is_found(session: EvalSession, one: StatisticsDef) -> bool:
    """Tell whether the search path leads to statistics by their name alone; temporary schemas are not searched."""
    for entry in session.search_path:
        schema = None if entry.startswith("pg_temp") else session.catalog.schema(entry)
        if schema is not None:
            found = session.catalog.statistics_named(schema.oid, one.name)
            if found is not None:
                return found[1].oid == one.oid
    return False


def statistics_name(session: EvalSession, one: StatisticsDef) -> str:
    """Return the name of statistics as the reader has to write it."""
    name = quote_identifier(one.name)
    return name if is_found(session, one) else f"{quote_identifier(_schema_name(session, one))}.{name}"


def _is_visible(session: EvalSession, oid: int) -> bool | None:
    """SQL's ``pg_statistics_obj_is_visible``."""
    found = session.catalog.statistics_by_oid(oid)
    return None if found is None else is_found(session, found[1])


def _parts(session: EvalSession, table: RelationDef, one: StatisticsDef) -> Iterator[str]:
    """Yield what statistics are over: columns, then expressions, in parentheses unless they are calls."""
    yield from (quote_identifier(table.column(attnum).name) for attnum in one.attnums)
    for sql in one.expressions:
        yield for_reader(session, expression_in_definition(sql, table, reader_of(session)))


def _columns(session: EvalSession, oid: int) -> str | None:
    """SQL's ``pg_get_statisticsobjdef_columns``."""
    found = session.catalog.statistics_by_oid(oid)
    return None if found is None else ", ".join(_parts(session, *found))


def _definition(session: EvalSession, oid: int) -> str | None:
    """SQL's ``pg_get_statisticsobjdef``: the kinds are told where they are not all that there could be."""
    found = session.catalog.statistics_by_oid(oid)
    if found is None:
        return None
    table, one = found
    parts = list(_parts(session, table, one))
    words = [word for word, letter in KINDS.items() if letter in one.kinds]
    kinds = f" ({', '.join(words)})" if len(parts) > 1 and len(words) < len(KINDS) else ""
    name = f"{shown_schema(session, _schema_name(session, one))}.{quote_identifier(one.name)}"
    of = quote_identifier(table.name)
    if qualifier(session)(table.schema, table.name):
        of = f"{shown_schema(session, table.schema)}.{of}"
    return f"CREATE STATISTICS {name}{kinds} ON {', '.join(parts)} FROM {of}"


def shown_expressions(session: EvalSession, table: RelationDef, one: StatisticsDef) -> tuple[str | None, ...]:
    """Return the expressions of statistics as the reader sees them."""
    return tuple(get_expr(session, sql, table.oid) for sql in one.expressions)


def _expressions(session: EvalSession, oid: int) -> tuple[str | None, ...] | None:
    """SQL's ``pg_get_statisticsobjdef_expressions``; NULL where there are none."""
    found = session.catalog.statistics_by_oid(oid)
    return None if found is None or not found[1].expressions else shown_expressions(session, *found)


def _mcv_items(value: str) -> Iterator[tuple[Any, ...]]:
    """SQL's ``pg_mcv_list_items``."""
    for number, (values, share, base) in enumerate(decoded(value)):
        yield number, tuple(values), tuple(one is None for one in values), share, base


def _register() -> None:
    REGISTRY.python("pg_mcv_list_items(pg_mcv_list)", _mcv_items)
    for signature, form in (
        ("pg_statistics_obj_is_visible(oid)", _is_visible),
        ("pg_get_statisticsobjdef(oid)", _definition),
        ("pg_get_statisticsobjdef_columns(oid)", _columns),
        ("pg_get_statisticsobjdef_expressions(oid)", _expressions),
    ):
        REGISTRY.python(signature, form, needs_session=True)


_register()
