"""Advisory locks (manual 9.27.10): pg_advisory_lock and its kin, over the session's ``AdvisorySystem``.

    pg_[try_]advisory_[xact_]lock[_shared](bigint)          what = (high half, low half, False)
    pg_[try_]advisory_[xact_]lock[_shared](int, int)        what = (first, second, True)

All halves are taken as unsigned 32-bit numbers, as pg_locks shows them. The functions that wait raise
``Suspend``; the executor waits, and goes on behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.base.suspend import Suspend
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession

_MASK = 0xFFFFFFFF


def advisory_number(*keys: int) -> tuple[int, int, bool]:
    """Return what a call's one or two numbers lock."""
    if len(keys) == 1:
        return (keys[0] >> 32) & _MASK, keys[0] & _MASK, False
    return keys[0] & _MASK, keys[1] & _MASK, True


def _waiting(exclusive: bool, transaction: bool) -> Callable[..., str]:
    def lock(session: EvalSession, *keys: int) -> str:
        wait = session.system.advisory.lock(
            advisory_number(*keys), exclusive=exclusive, transaction=transaction
        )
        if wait is not None:
            raise Suspend("wait", wait)
        return ""

    return lock


def _trying(exclusive: bool, transaction: bool) -> Callable[..., bool]:
    def lock(session: EvalSession, *keys: int) -> bool:
        return session.system.advisory.try_lock(
            advisory_number(*keys), exclusive=exclusive, transaction=transaction
        )

    return lock


def _unlocking(exclusive: bool) -> Callable[..., bool]:
    def unlock(session: EvalSession, *keys: int) -> bool:
        if session.system.advisory.unlock(advisory_number(*keys), exclusive=exclusive):
            return True
        mode = "ExclusiveLock" if exclusive else "ShareLock"
        session.system.warn(f"you don't own a lock of type {mode}")
        return False

    return unlock


def _unlock_all(session: EvalSession) -> str:
    session.system.advisory.unlock_all()
    return ""


def _register() -> None:
    def form(signature: str, function: Callable[..., Any]) -> None:
        REGISTRY.python(signature, function, needs_session=True)

    for keys in ("int8", "int4,int4"):
        for suffix, exclusive in (("", True), ("_shared", False)):
            for level, transaction in (("", False), ("xact_", True)):
                form(f"pg_advisory_{level}lock{suffix}({keys})", _waiting(exclusive, transaction))
                form(f"pg_try_advisory_{level}lock{suffix}({keys})", _trying(exclusive, transaction))
            form(f"pg_advisory_unlock{suffix}({keys})", _unlocking(exclusive))
    form("pg_advisory_unlock_all()", _unlock_all)


_register()
