"""Bound statements about functions. Read them as ``planner.statements``; functions that exist are named by oid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.base.errors import SqlError
from planner.catalog import FunctionDef
from planner.query import Expr, SqlCall


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction:
    """CREATE [OR REPLACE] FUNCTION. ``function`` has no oids yet: neither its own nor its schema's.

    ``source_at``: where in the statement's text the body stands, if it does so as it is. ``from_current``:
    names, in lower case, of those of its settings whose value is what the session has when the statement
    runs.
    """

    function: FunctionDef
    replace: bool
    source_at: int | None = None
    from_current: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAggregate:
    """CREATE [OR REPLACE] AGGREGATE; ``function`` as in CreateFunction, None where ``error`` says what is
    wrong with it.

    ``warnings`` are told first, in any case. ``internal``: a state of it is of type internal. ``initials``:
    its first states, which have to be values of their types.
    """

    function: FunctionDef | None
    replace: bool
    warnings: tuple[str, ...] = ()
    internal: bool = False
    initials: tuple[Expr, ...] = ()
    error: SqlError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterFunction:
    """ALTER FUNCTION: what is not None changes. ``changes``: fields of FunctionDef.

    ``settings``: (name, value) of SET and, with None, RESET; the name "all" resets all. ``from_current``: as
    in CreateFunction.
    """

    function: int
    name: str | None = None
    schema: str | None = None
    owner: str | None = None
    changes: tuple[tuple[str, object], ...] = ()
    settings: tuple[tuple[str, str | None], ...] = ()
    from_current: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFunction:
    """DROP FUNCTION, PROCEDURE, AGGREGATE or ROUTINE. ``missing``: notices for what is not there (IF EXISTS).

    ``functions``: oids; ``names``: as the statement writes them.
    """

    what: Literal["function", "procedure", "aggregate", "routine"]
    functions: tuple[int, ...]
    names: tuple[str, ...]
    missing: tuple[str, ...]
    cascade: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """CALL: ``call`` is of a procedure; its outputs, if there are any, are the one row of the result."""

    call: SqlCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Do:
    """DO of a block in PL/pgSQL; ``source_at`` as in CreateFunction."""

    source: str
    source_at: int | None = None


FunctionStatement: TypeAlias = AlterFunction | Call | CreateAggregate | CreateFunction | Do | DropFunction
