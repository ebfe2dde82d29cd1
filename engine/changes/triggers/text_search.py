"""PostgreSQL's trigger functions that keep a tsvector column (manual 12.4.3).

CREATE TRIGGER … BEFORE INSERT OR UPDATE ON page FOR EACH ROW
    EXECUTE FUNCTION tsvector_update_trigger(words, 'pg_catalog.english', title, body)
tsvector_update_trigger_column: the configuration is in a column of type regconfig
"""

from __future__ import annotations

from typing import Any, Final

from engine.session.trigger_event import TriggerEvent
from planner.base.errors import SqlError
from planner.base.identifiers import split_identifier
from planner.conversion.pathways import is_binary_coercible
from planner.facts import REGCONFIG, TEXT, TSVECTOR
from planner.functions.search.functions import found_configuration
from planner.textsearch.make import Builder
from planner.textsearch.names import read_name
from planner.types.domains import base_oid
from txn.base.types import Row

TSVECTOR_UPDATE: Final = 3752
TSVECTOR_UPDATE_COLUMN: Final = 3753


def update_vector(event: TriggerEvent, *, from_column: bool) -> Row:
    """Return the new row with its tsvector made of its texts; NULLs are passed over.

    Raises SqlError XX000 (not so fired, too few arguments), 42703, 42804, 22023, 22004, 42704.
    """
    for wrong, rule in (
        (event.level != "ROW", "must be fired for row"),
        (event.when != "BEFORE", "must be fired BEFORE event"),
        (event.op not in ("INSERT", "UPDATE"), "must be fired for INSERT or UPDATE"),
        (len(event.args) < 3, "arguments must be tsvector_field, ts_config, text_field1, ...)"),
    ):
        if wrong:
            raise SqlError("XX000", f"tsvector_update_trigger: {rule}")
    row = event.new
    if row is None:
        raise AssertionError("an INSERT or UPDATE trigger fires without the new row")
    target, config, *fields = event.args
    at = _column(event, target, "tsvector column", TSVECTOR, "tsvector type")
    known = found_configuration(event.session, _configuration(event, row, config, from_column))
    builder = Builder(known)
    for field in fields:
        text = row[_column(event, field, "column", TEXT, "a character type")]
        if text is not None:
            builder.add(text)
    changed = list(row)
    changed[at] = builder.value()
    return tuple(changed)


def _column(event: TriggerEvent, name: str, what: str, type_oid: int, of_type: str) -> int:
    """Return where a column is in the row, kept with the catalog. Raises SqlError 42703, 42804."""
    kept: dict[Any, Any] = event.session.catalog.derived
    key = ("column of a trigger", event.table.oid, event.table.version, name, type_oid)
    found: int | None = kept.get(key)
    if found is None:
        found = kept[key] = _found_column(event, name, what, type_oid, of_type)
    return found


def _found_column(event: TriggerEvent, name: str, what: str, type_oid: int, of_type: str) -> int:
    for at, column in enumerate(event.table.live):
        if column.name == name:
            if not is_binary_coercible(base_oid(column.type.oid), type_oid):
                raise SqlError("42804", f'column "{name}" is not of {of_type}')
            return at
    raise SqlError("42703", f'{what} "{name}" does not exist')


def _configuration(event: TriggerEvent, row: Row, given: str, from_column: bool) -> int:
    if from_column:
        value = row[_column(event, given, "configuration column", REGCONFIG, "regconfig type")]
        if value is None:
            raise SqlError("22004", f'configuration column "{given}" must not be null')
        return int(value)
    if len(split_identifier(given)) < 2:
        raise SqlError("22023", f'text search configuration name "{given}" must be schema-qualified')
    session = event.session
    return read_name(REGCONFIG, given, session.catalog, session.search_path, session.database)
