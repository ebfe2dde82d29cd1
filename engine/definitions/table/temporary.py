"""Temporary tables: what ON COMMIT says happens to them when a transaction commits.

    CREATE TEMP TABLE t (...) ON COMMIT DROP           gone with the transaction that made it
    CREATE TEMP TABLE t (...) ON COMMIT DELETE ROWS    empty at every commit

A session's temporary relations live in a schema of its own (``Session.temp_schema``), which is made at first use and
dropped when the session ends; those of a crashed server are dropped when it starts again. Only the session itself
writes to them, so their ON COMMIT actions are session state, not catalog state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.base.eager import settle
from engine.catalog.storage.stored import key_of
from engine.definitions.dropping.drop import drop_relations, drop_temporary
from engine.session.ports import OnCommit
from planner.base.errors import SqlError
from txn.base.types import ShardId

if TYPE_CHECKING:
    from engine.session.session import Session


class TableActions:
    """The ON COMMIT actions of one session's temporary tables, by table oid."""

    def __init__(self) -> None:
        """Start with none."""
        self._actions: dict[int, OnCommit] = {}

    def add(self, oid: int, action: OnCommit) -> None:
        """Note what happens to table ``oid`` at commit."""
        self._actions[oid] = action

    async def run(self, session: Session) -> None:
        """Do what the tables ask for, as the last work of the committing transaction.

        A transaction that wrote nothing has left no rows behind, so there is nothing to delete then. Tables that
        are gone (dropped, or their creation was undone) are forgotten.
        """
        txn = session.block.txn
        if txn is None or not txn.writing:
            return
        self._check_references(session)
        txn.read_only = False  # SET TRANSACTION READ ONLY binds the client
        dropped = []
        for oid, action in list(self._actions.items()):
            relation = session.catalog.relation_by_oid(oid)
            if relation is None:
                del self._actions[oid]
            elif action == "drop":
                dropped.append(relation)
                del self._actions[oid]
            elif await _has_rows(session, oid):
                await settle(txn.truncate(ShardId(oid)))
        if dropped:
            txn.next_statement()  # what this statement itself created is to be found
            await drop_relations(session, dropped, cascade=True, quiet=True, ending=True)

    def _check_references(self, session: Session) -> None:
        """Raise 0A000 where a table to be emptied is referred to by one that keeps its rows."""
        emptied = {oid for oid, action in self._actions.items() if action == "delete"}
        for oid in emptied:
            for child, _constraint in session.catalog.foreign_keys_to(oid):
                table = session.catalog.relation_by_oid(oid)
                if child.oid not in emptied and table is not None:
                    raise SqlError(
                        "0A000",
                        "unsupported ON COMMIT and foreign key combination",
                        detail=f'Table "{child.name}" references "{table.name}", but they do not have the same '
                        "ON COMMIT setting.",
                    )


async def _has_rows(session: Session, oid: int) -> bool:
    if session.block.txn is None:
        raise AssertionError("rows are looked for without a transaction")
    session.block.txn.next_statement()
    async for rows in session.block.txn.scan(ShardId(oid)):
        if rows:
            return True
    return False


async def drop_temporaries(session: Session) -> None:
    """Drop what is in the session's temporary schema, and the schema, and commit."""
    session.block.begin_writing()
    try:
        await session.view.locks.take_schema(session.temp_schema)
        await drop_temporary(session)
        schema = session.catalog.schema(session.temp_schema)
        if schema is not None:
            await session.view.change([], [key_of(schema)])
    except BaseException:
        session.block.rollback()
        raise
    await session.block.commit()
