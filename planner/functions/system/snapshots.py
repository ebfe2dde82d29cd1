"""Transaction ids and snapshots (manual 9.27.8): what runs now, what had ended when a statement began to read.

The functions named ``txid_`` say in bigint and txid_snapshot what the others say in xid8 and pg_snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgwire.codecs.int import xid8_value
from pgwire.codecs.snapshot import bounds, take_apart
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession

_OF_XID8 = 1 << 63
_BITS = (1 << 64) - 1


def _signed(number: int) -> int:
    """Return an unsigned number of 64 bits as the bigint of the same bits."""
    return number - (1 << 64) if number >> 63 else number


def _assigned_xid8(session: EvalSession) -> int | None:
    number = session.system.assigned_transaction_id()
    return None if number is None else xid8_value(number)


def _xip(value: str) -> Iterator[int]:
    return map(xid8_value, take_apart(value).xip)


def _txid_xip(value: str) -> Iterator[int]:
    return map(_signed, take_apart(value).xip)


def _register() -> None:
    python = REGISTRY.python
    python("txid_current()", lambda session: session.system.transaction_id(), needs_session=True)
    python(
        "pg_current_xact_id()",
        lambda session: xid8_value(session.system.transaction_id()),
        needs_session=True,
    )
    python(
        "txid_current_if_assigned()",
        lambda session: session.system.assigned_transaction_id(),
        needs_session=True,
    )
    python("pg_current_xact_id_if_assigned()", _assigned_xid8, needs_session=True)
    for name in ("pg_current_snapshot()", "txid_current_snapshot()"):
        python(name, lambda session: session.system.current_snapshot(), needs_session=True)
    python("pg_snapshot_xmin(pg_snapshot)", lambda value: xid8_value(bounds(value)[0]))
    python("pg_snapshot_xmax(pg_snapshot)", lambda value: xid8_value(bounds(value)[1]))
    python("pg_snapshot_xip(pg_snapshot)", _xip)
    python(
        "pg_visible_in_snapshot(xid8,pg_snapshot)",
        lambda xid, value: take_apart(value).sees(xid + _OF_XID8),
    )
    python("txid_snapshot_xmin(txid_snapshot)", lambda value: _signed(bounds(value)[0]))
    python("txid_snapshot_xmax(txid_snapshot)", lambda value: _signed(bounds(value)[1]))
    python("txid_snapshot_xip(txid_snapshot)", _txid_xip)
    python(
        "txid_visible_in_snapshot(int8,txid_snapshot)",
        lambda xid, value: take_apart(value).sees(xid & _BITS),
    )
    python(
        "pg_xact_status(xid8)",
        lambda session, xid: session.system.transaction_status(xid + _OF_XID8),
        needs_session=True,
    )
    python(
        "txid_status(int8)",
        lambda session, xid: session.system.transaction_status(xid & _BITS),
        needs_session=True,
    )


_register()
