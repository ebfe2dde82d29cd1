"""What users' functions are called by who reads them: alone, or with their schema where the search path does
not find them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from planner.base.quoting import quote_ident
from planner.facts import facts, rows
from planner.functions.session import EvalSession
from planner.functions.system.names import type_name

if TYPE_CHECKING:
    pass

from planner.catalog import FunctionDef
from planner.functions.system.names import function_is_visible, shown_schema


def function_name(session: EvalSession, function: FunctionDef) -> str:
    """Return a user's function by name, with its schema where the search path does not find it, as regproc
    prints it.
    """
    name = quote_ident(function.name)
    return name if function_is_visible(session, function) else f"{quote_ident(function.schema)}.{name}"


def constructor_name(session: EvalSession, oid: int, *, with_types: bool = False) -> str | None:
    """Return a constructor of a user's ranges by name, as ``function_name``; ``with_types``: of its
    arguments. None for what is none.
    """
    proc = facts().procs.get(oid)
    made = None if proc is None else session.catalog.type_by_oid(proc.result)
    if proc is None or made is None:
        return None
    name = quote_ident(proc.name)
    if made.schema not in session.search_path or made.schema.startswith("pg_temp_"):
        name = f"{shown_schema(session, made.schema)}.{name}"
    return f"{name}({','.join(_type(session, of) for of in proc.arg_types)})" if with_types else name


def shown_function(session: EvalSession, function: FunctionDef) -> str:
    """Return ``name(type,type)`` as regprocedure prints a user's function."""
    return f"{function_name(session, function)}({','.join(_type(session, oid) for oid in function.inputs)})"


def _type(session: EvalSession, oid: int) -> str:
    return type_name(session, oid, None) or "-"


@functools.cache
def entry_points() -> dict[int, str]:
    """Return pg_proc.prosrc of the functions where it is not the name."""
    return {int(row["oid"]): row["prosrc"] for row in rows("prosrc")}
