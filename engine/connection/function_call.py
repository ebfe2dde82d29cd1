"""The fast path: a FunctionCall message runs one function, named by its oid (manual 55.2.4; libpq's PQfn and lo_*).

    oid 955, (3, b"...")  ──>  SELECT pg_catalog.lowrite($1, $2)  ──>  one value, FunctionCallResponse

It is the statement that calls the function with parameters of its types, and so follows all rules of
statements: rights, snapshots, locks, running again. Plans are kept by that text. Outside a block the call is
a transaction by itself, which has committed when it is answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.base.rows import RowBatch
from engine.plans.planning import IN_FAILED_BLOCK
from engine.plans.query import collect
from engine.session.portal import Prepared, Rows
from engine.session.transaction.block_state import FAILED, IDLE, IMPLICIT
from engine.statements.output import encoder_of
from engine.statements.retry import run_with_retries
from pgwire.backend import Responder
from pgwire.codecs.errors import DataError
from pgwire.codecs.rows import LongRows
from planner.base.errors import SqlError
from planner.base.quoting import quote_identifier
from planner.bind.expression.calls import is_users_function, proc_fact
from planner.facts import ProcFact, facts

if TYPE_CHECKING:
    from engine.connection.backend import Connection
    from engine.session.session import Session

_ROW_HEADER = 7
"""Bytes of a DataRow before its first value: type, length, number of values."""


async def run_function(
    conn: Connection,
    oid: int,
    formats: Sequence[int],
    args: Sequence[bytes | None],
    result_format: int,
    out: Responder,
) -> None:
    """Run a function and send what it returns.

    Raises SqlError 25P02, 42883 (no such function), 0A000 (an aggregate, a procedure, one that returns a
    set), 08P01 (other numbers of arguments), and what the call raises.
    """
    session = conn.session
    block = session.block
    if block.state is FAILED:
        raise SqlError("25P02", IN_FAILED_BLOCK)
    text, types = _call_of(session, oid)
    if len(args) != len(types):
        raise SqlError(
            "08P01",
            f"function call message contains {len(args)} arguments but function requires {len(types)}",
        )
    session.query_text = text
    plan = conn.planning.plan_text(text, types)
    if plan is None:
        raise AssertionError("the call of a function is an empty statement")
    prepared = Prepared("", text, plan, plan.bound.params, session.search_path)
    try:
        values = conn.prepared.wire_values(prepared, formats, args, "")
    except DataError as error:
        error.where = None  # there is no portal
        error.message = error.message.replace("bind parameter", "function argument")
        raise
    alone = block.state is IDLE
    block.reads_alone = alone and plan.only_reads
    outcome, plan = await run_with_retries(
        conn.planning, plan, values, out, prepared, whole=alone, formats=(result_format,)
    )
    if not isinstance(outcome, Rows):
        raise AssertionError(f"a statement that returns rows ended as {type(outcome).__name__}")
    if plan.columns is None:
        raise AssertionError("a plan that returns rows has no columns")
    rows = await collect(session, outcome.result)
    encode = encoder_of(plan, plan.columns, (result_format,), session)
    data: bytes | bytearray
    try:
        data, _ = encode.rows(rows)
    except LongRows:
        data = b"".join(encode.long(RowBatch(rows=rows)))
    value = None if rows[0][0] is None else memoryview(data)[_ROW_HEADER + 4 :]
    if block.state is IMPLICIT:
        await block.commit()
    out.function_result(value)


def _call_of(session: Session, oid: int) -> tuple[str, tuple[int, ...]]:
    """Return the statement that calls a function, and the types of its parameters. SqlError 42883, 0A000."""
    fact: ProcFact | None
    if is_users_function(oid):
        function = session.catalog.function_by_oid(oid)
        fact = None if function is None else proc_fact(function)
        schema = "" if function is None else function.schema
    else:
        fact, schema = facts().procs.get(oid), "pg_catalog"
    if fact is None:
        raise SqlError("42883", f"function with OID {oid} does not exist")
    if fact.kind != "f" or fact.returns_set:
        raise SqlError("0A000", f'cannot call function "{fact.name}" via fastpath interface')
    types = tuple(fact.arg_types)
    listed = [f"${number}" for number in range(1, len(types) + 1)]
    if fact.variadic:
        listed[-1] = f"VARIADIC {listed[-1]}"
    name = f"{quote_identifier(schema)}.{quote_identifier(fact.name)}"
    return f"SELECT {name}({', '.join(listed)})", types
