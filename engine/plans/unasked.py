"""Queries of the server's own, for which nobody is asked: rights and policies are not looked at, all rows count.

    SELECT f.a FROM child f WHERE NOT EXISTS (…)     whether a foreign key holds
    SELECT a, b FROM ONLY t                          the rows that ANALYZE counts

Such a query calls no function of users: it would run with the rights of whoever happens to be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.plans.query import collect, context, run_query
from engine.session.plans.plan import Plan
from planner.bind import bind_statement
from planner.bind.context import RowSecurity
from planner.catalog.rights import SUPERUSER
from planner.parse import parse_one
from planner.statements import QueryStatement

if TYPE_CHECKING:
    from engine.session.session import Session
    from txn.api import Transaction
    from txn.base.types import Row


async def unasked_rows(session: Session, sql: str, reader: Transaction | None = None) -> list[Row]:
    """Return all rows of a query over tables of the running transaction's timeline. ``reader``: as this
    transaction sees them, instead of the session's.

    Raises SqlError as a query does.
    """
    parsed = parse_one(sql)
    if parsed is None:
        raise AssertionError("a query of the server's own is empty")
    session.block.ensure_txn().next_statement()
    role = session.catalog.role_by_oid(SUPERUSER)
    if role is None:
        raise AssertionError("there is no superuser")
    everything = RowSecurity(role, True, session.catalog)
    bound = bind_statement(
        parsed.statement, sql, session.catalog, session.search_path, settings=session.bind_settings,
        security=everything,
    )  # fmt: skip
    if not isinstance(bound.statement, QueryStatement):
        raise AssertionError(f"what the server asks for itself is {type(bound.statement).__name__}")
    plan = Plan(bound, session.catalog)
    ctx = context(session, plan, ())
    if reader is not None:
        ctx.txn = reader
    return await collect(session, await run_query(session, plan, "query", bound.statement.query, ctx))
