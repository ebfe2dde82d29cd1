"""Statements about the session: SET, RESET, SHOW, PREPARE, DEALLOCATE, DISCARD, and what is accepted without effect."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from engine.base.rows import ReadyRows
from engine.base.settings.defs import SettingDef
from engine.definitions.dropping import drop
from engine.plans.planning import LONG_TEXT
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome, Rows
from engine.session.set_role import set_role
from engine.statements.block import set_mode
from pgwire.codecs.text.encodings import at_hand, canonical, convertible, encoding
from planner import statements as st
from planner.base.errors import SqlError
from planner.parse.long_names import cut

if TYPE_CHECKING:
    from engine.session.session import Session


async def set_variable(
    session: Session, plan: Plan, statement: st.SetVariable, params: tuple[Any, ...]
) -> Outcome:
    """SET and RESET. Raises SqlError 42704, 22023, 55P02, 42501, 0A000."""
    name = statement.name.lower()
    reset = plan.bound.tag == "RESET"
    if name == "all" and statement.value is None:
        session.settings.reset_all()
        return Command("RESET")
    if statement.local and session.block.is_alone:
        session.warning("SET LOCAL can only be used in transaction blocks", "25P01")
    if name in ("transaction_isolation", "transaction_read_only", "transaction_deferrable"):
        return await set_mode(session, name, statement.value)
    if name in ("role", "session_authorization"):
        set_role(session, name, statement.value, local=statement.local)
        return Command("RESET" if reset else "SET")
    if (
        name == "application_name"
        and statement.value is not None
        and (kept := cut(statement.value)) != statement.value
    ):
        session.notice(f'identifier "{statement.value}" will be truncated to "{kept}"', sqlstate="42622")
    if name == "client_encoding" and statement.value is not None:
        await _make_tables(statement.value)
    value = session.setting(name) if statement.current else statement.value
    session.settings.set(name, value, local=statement.local)
    return Command("RESET" if reset else "SET")


async def _make_tables(spelled: str) -> None:
    """Make what an encoding needs beside the loop, if nobody has; an unknown one is left to who sets it."""
    found = canonical(spelled)
    if found is not None and convertible(found) and not at_hand(found):
        await asyncio.to_thread(encoding, found)


async def show(session: Session, plan: Plan, statement: st.ShowVariable, params: tuple[Any, ...]) -> Outcome:
    """SHOW, one setting or all. Raises SqlError 42704."""
    columns = plan.columns
    if columns is None:
        raise AssertionError("SHOW has no columns")
    if statement.name.lower() == "all":
        rows = [_show_row(definition, value) for definition, value in session.settings_to_list()]
    else:
        rows = [(session.setting(statement.name),)]
    return Rows(columns, ReadyRows(columns, rows), tag="SHOW", final_tag=True)


def _show_row(definition: SettingDef, value: str) -> tuple[str, ...]:
    return (definition.name, value, definition.description)


async def prepare(session: Session, plan: Plan, statement: st.Prepare, params: tuple[Any, ...]) -> Outcome:
    """PREPARE: errors point into the statement as the client sent it. Raises SqlError 42P05, and what
    planning raises.
    """
    # blanks in front, so that an error points into what the client sent
    padded = " " * statement.at + statement.text
    if len(padded) > LONG_TEXT:
        prepared = await session.connection.prepared.prepare_long(
            statement.name, padded, statement.param_types, from_sql=True
        )
    else:
        prepared = session.connection.prepared.prepare(
            statement.name, padded, statement.param_types, from_sql=True
        )
    prepared.text, prepared.shown = statement.text, session.query_text
    return Command("PREPARE")


async def deallocate(
    session: Session, plan: Plan, statement: st.Deallocate, params: tuple[Any, ...]
) -> Outcome:
    """DEALLOCATE, one statement or all. Raises SqlError 26000."""
    if statement.name is None:
        session.connection.prepared.clear()
        return Command("DEALLOCATE ALL")
    if not session.connection.prepared.close(statement.name):
        raise SqlError("26000", f'prepared statement "{statement.name}" does not exist')
    return Command("DEALLOCATE")


async def discard(session: Session, plan: Plan, statement: st.Discard, params: tuple[Any, ...]) -> Outcome:
    """DISCARD. Raises SqlError 25001 within a block."""
    if statement.what == "all":
        session.block.must_be_alone("DISCARD ALL")
        session.connection.cursors.close_all()
        session.settings.reset_all()
        set_role(session, "session_authorization", None, local=False)
        session.connection.prepared.clear()
        session.system.advisory.unlock_all()
        session.channels.listen("", on=False)
    if statement.what in ("all", "sequences"):
        session.system.sequences.forget()
    if statement.what in ("all", "temp") and session.catalog.schema(session.temp_schema) is not None:
        session.block.begin_writing().read_only = False  # READ ONLY binds what others see
        session.block.wrote = True
        await session.view.locks.take_schema(session.temp_schema)
        await drop.drop_temporary(session)
    return Command(f"DISCARD {statement.what.upper()}")


async def notify(session: Session, plan: Plan, statement: st.Notify, params: tuple[Any, ...]) -> Outcome:
    """LISTEN, UNLISTEN, NOTIFY. Raises SqlError 22023, 54000."""
    channels = session.channels
    if statement.action == "notify":
        channels.notify(statement.channel, statement.payload)
    else:
        channels.listen(statement.channel, on=statement.action == "listen")
    return Command(plan.bound.tag)


_LOADED: Final = frozenset(("plpgsql", "plpgsql.so", "$libdir/plpgsql", "$libdir/plpgsql.so"))
"""What PL/pgSQL's library is called, which is there from the start."""


async def load(session: Session, plan: Plan, statement: st.Load, params: tuple[Any, ...]) -> Outcome:
    """LOAD. Raises SqlError 58P01: there are no other libraries than PL/pgSQL's."""
    if statement.library not in _LOADED:
        raise SqlError("58P01", f'could not access file "{statement.library}": No such file or directory')
    return Command(plan.bound.tag)


async def refresh_collation(
    session: Session, plan: Plan, statement: st.RefreshCollation, params: tuple[Any, ...]
) -> Outcome:
    """ALTER COLLATION ... REFRESH VERSION: collations compare bytes, and have none. Raises SqlError XX000, as
    PostgreSQL, where one was given.
    """
    made = session.catalog.collation_by_oid(statement.object)
    if made is not None and made.version is not None:
        raise SqlError("XX000", "invalid collation version change")
    session.notice("version has not changed")
    return Command(plan.bound.tag)


async def skip(session: Session, plan: Plan, statement: st.Skip, params: tuple[Any, ...]) -> Outcome:
    """Answer what is accepted without effect, with the notice that says so."""
    if statement.notice:
        for notice in (statement.notice, *statement.more):
            session.notice(notice, severity=statement.severity, sqlstate=statement.sqlstate)
    return Command(plan.bound.tag)
