"""What CREATE and DROP SOURCE do upstream: look at the publication before, drop the slot after."""

from __future__ import annotations

import asyncio
import re
from typing import Final

from engine.feeds.sources.options import Options
from engine.feeds.sources.postgres_client import Upstream
from engine.feeds.sources.postgres_tables import UpstreamTable, described
from engine.feeds.sources.reader import Temporary
from planner.base.errors import SqlError
from planner.catalog import SourceDef

SLOT: Final = "SELECT confirmed_flush_lsn::text, plugin::text FROM pg_replication_slots WHERE slot_name = $1"
DROP_SLOT: Final = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1"
_NAME: Final = re.compile(r"[a-z0-9_]{1,63}")
_WAITS_S: Final = (0.1, 0.3, 1.0, 2.0, 4.0)  # for the connection that used the slot to end


async def look(options: dict[str, str], slot: str) -> list[UpstreamTable]:
    """Return the tables of a new source's publication. ``slot`` is entered among the options if they name none.

    Raises SqlError 42602 and 42710 for a slot's name that cannot be used, 08001 for an upstream that cannot
    be reached, and what ``described`` raises.
    """
    named = "slot" in options
    slot = options.setdefault("slot", slot)
    if not _NAME.fullmatch(slot):
        raise SqlError(
            "42602",
            f'replication slot name "{slot}" contains invalid character',
            hint="Replication slot names may only contain lower case letters, numbers, and the underscore character.",
        )
    try:
        upstream = await Upstream.connect(options["connection"])
        try:
            tables = await described(upstream, options["publication"])
            if named and await upstream.rows(SLOT, slot):
                raise SqlError("42710", f'replication slot "{slot}" already exists')
            return tables
        finally:
            await upstream.close()
    except Temporary as error:
        raise SqlError("08001", f"could not connect to the upstream server: {error.args[0]}") from None


async def drop(source: SourceDef) -> str | None:
    """Drop the slot of a source that goes, if it is there. Returns what went wrong, None if nothing did."""
    options = Options("postgres", source.options)
    slot = options.need("slot")
    try:
        upstream = await Upstream.connect(options.need("connection"))
        try:
            for wait_s in _WAITS_S:
                try:
                    await upstream.rows(DROP_SLOT, slot)
                    return None
                except Temporary:
                    await asyncio.sleep(wait_s)
            await upstream.rows(DROP_SLOT, slot)
            return None
        finally:
            await upstream.close()
    except Temporary as error:
        return str(error.args[0])
    except SqlError as error:
        return f"{error.sqlstate}: {error.message}"
