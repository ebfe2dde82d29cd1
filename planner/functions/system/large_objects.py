"""Large objects (manual 35): lo_create, lo_open, loread and their kin, over the session's ``LargeObjectSystem``.

Each is an operation of the engine on stored pages, which may have to wait: the row executor then waits for it
as for a call of a user's function. ``CHANGING`` are those that write: a statement that calls one begins by
writing (``planner.bind.expression.funcs``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from planner.base.suspend import Suspend
from planner.facts import facts
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession

CHANGING_NAMES: Final = frozenset((
    "lo_create", "lo_creat", "lo_from_bytea", "lo_import", "lo_put", "lo_truncate", "lo_truncate64", "lo_unlink", "lowrite",
))  # fmt: skip
CHANGING: Final = frozenset(fact.oid for name in CHANGING_NAMES for fact in facts().procs_by_name[name])
"""The functions that write, by oid."""

_SIGNATURES: Final = (
    "lo_creat(int4)", "lo_create(oid)", "lo_from_bytea(oid,bytea)", "lo_unlink(oid)",
    "lo_open(oid,int4)", "lo_close(int4)", "loread(int4,int4)", "lowrite(int4,bytea)",
    "lo_lseek(int4,int4,int4)", "lo_lseek64(int4,int8,int4)", "lo_tell(int4)", "lo_tell64(int4)",
    "lo_truncate(int4,int4)", "lo_truncate64(int4,int8)",
    "lo_get(oid)", "lo_get(oid,int8,int4)", "lo_put(oid,int8,bytea)",
    "lo_import(text)", "lo_import(text,oid)", "lo_export(oid,text)",
)  # fmt: skip


def _operation(name: str) -> Callable[..., Any]:
    def run(session: EvalSession, *args: Any) -> Any:
        done, value = session.system.large_objects.start(name, args)
        if not done:
            raise Suspend("call", value)
        return value

    return run


def _register() -> None:
    for signature in _SIGNATURES:
        REGISTRY.python(signature, _operation(signature[: signature.index("(")]), needs_session=True)


_register()
