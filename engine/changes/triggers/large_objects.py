"""The trigger function of the extension lo (manual F.21): a large object goes when the row that refers to it
does, or refers to another.

CREATE TRIGGER … BEFORE UPDATE OR DELETE ON image FOR EACH ROW EXECUTE FUNCTION lo_manage(raster)
"""

from __future__ import annotations

import re
from typing import Any, Final

from engine.session.trigger_event import TriggerEvent
from pgwire.codecs.registry import text_output
from planner.base.errors import SqlError
from txn.base.types import Row

LO_MANAGE: Final = "lo.lo_manage()"
"""What the function of the catalog stands for (``planner.catalog.FunctionDef.internal``)."""

_DIGITS: Final = re.compile(r"\s*\+?(\d+)")


async def manage(event: TriggerEvent) -> Row | None:
    """Unlink the large object that the old row referred to, and no longer does; return the row to go on with.

    Raises SqlError XX000 (not so fired, no such column), 42704 (no such large object), 42501.
    """
    if event.level != "ROW":
        raise SqlError("XX000", f"{event.name}: must be fired for row")
    if not event.args:
        raise SqlError("XX000", f"{event.name}: no column name provided in the trigger definition")
    at = next((i for i, c in enumerate(event.table.live) if c.name == event.args[0]), None)
    if at is None:
        raise SqlError("XX000", f'{event.name}: column "{event.args[0]}" does not exist')
    column = event.table.live[at]
    going = event.old if event.op == "DELETE" else event.new
    if event.op == "INSERT" or event.old is None:
        return going
    old = event.old[at]
    if event.op == "UPDATE":
        if event.new is None:
            raise AssertionError("an UPDATE trigger fires without the new row")
        if column.attnum not in event.updated or old == event.new[at]:
            return going
    if old is not None:
        await _unlink(event, _number(column.type.oid, old))
    return going


def _number(type_oid: int, value: Any) -> int:
    """Return the oid that a column has; of one of another type what its text begins with."""
    found = _DIGITS.match(str(text_output(type_oid, value)))
    return int(found[1]) & 0xFFFF_FFFF if found else 0


async def _unlink(event: TriggerEvent, number: int) -> None:
    finished, result = event.session.system.large_objects.start("lo_unlink", (number,))
    if not finished:
        await result
