"""What can be known of a PL/pgSQL body before it runs: that it can be read, and whether it may change anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from pgwire.codecs.settings import CodecSettings
from planner import ast
from planner.base.errors import Span, SqlError
from planner.bind.context import BindContext, make_context
from planner.catalog import Catalog, FunctionDef
from planner.functions.system.large_objects import CHANGING_NAMES
from planner.plpgsql import tree
from planner.plpgsql.header import header_for_check
from planner.plpgsql.parser import parse_routine
from planner.plpgsql.stream import parse_piece
from planner.plpgsql.tree import Routine
from planner.plpgsql.types import CatalogTypes
from planner.query.walk import walk

_DYNAMIC: Final = tree.Execute | tree.CallRoutine


def check_routine(
    function: FunctionDef,
    catalog: Catalog,
    search_path: Sequence[str],
    settings: CodecSettings,
    source_at: int | None = None,
) -> list[tuple[str, Span | None]]:
    """Read a body as CREATE FUNCTION does. Errors tell places counted from ``source_at``.

    Returns the variables that hide others, with their places where ``source_at`` is known. Raises SqlError
    42601, 42704, 42804 and what ``planner.plpgsql.parser`` raises.
    """
    context = make_context(catalog, search_path, settings=settings)
    try:
        routine = parse_routine(function.source, header_for_check(function), CatalogTypes(context))
    except SqlError as error:
        place(error, function.source, source_at)
        raise
    return [
        (name, None if source_at is None else Span(at.start + source_at, at.end + source_at))
        for name, at in routine.shadows
    ]


def place(error: SqlError, source: str, source_at: int | None) -> None:
    """Let an error's place, which counts in a body, count in the statement that has it; else name the body's text."""
    if error.span is None or error.query is not None:
        return
    if source_at is None:
        error.query = source
    else:
        error.span = Span(error.span.start + source_at, error.span.end + source_at)


# --- effects --------------------------------------------------------------------------------------


def may_change(context: BindContext, function: FunctionDef, seen: frozenset[int] = frozenset()) -> bool:
    """Tell whether a body may write, lock or run what is not known: then it is run by transactions that write.

    Functions that are not VOLATILE never do; of others that do not only read, the answer is yes.
    """
    if function.aggregate is not None:
        made_of = map(context.catalog.function_by_oid, function.aggregate.functions)
        return any(may_change(context, one, seen) for one in made_of if one is not None)
    if function.volatility != "v" or function.oid in seen:
        return False
    if function.language != "plpgsql":
        return True
    try:
        routine = parse_routine(function.source, header_for_check(function), CatalogTypes(context))
        return routine_changes(context, routine, seen | {function.oid})
    except SqlError:
        return True  # running it says what is wrong


def routine_changes(context: BindContext, routine: Routine, seen: frozenset[int]) -> bool:
    """As ``may_change`` for a body that was read. Raises SqlError as reading its statements does."""
    for node in nodes_of(routine):
        if isinstance(node, _DYNAMIC):
            return True
        if isinstance(node, tree.ForRows | tree.ReturnQuery | tree.Open) and node.dynamic:
            return True
        if isinstance(node, tree.Piece) and _piece_changes(context, node, seen):
            return True
    return False


def _piece_changes(context: BindContext, piece: tree.Piece, seen: frozenset[int]) -> bool:
    statement = parse_piece(piece)
    if not isinstance(statement, ast.Select | ast.SetOp | ast.Values):
        return True
    for node in walk(statement):
        if isinstance(node, ast.Insert | ast.Update | ast.Delete | ast.Merge | ast.Locking):
            return True
        if isinstance(node, ast.FuncCall):
            if node.name[-1] in CHANGING_NAMES:
                return True
            for called in context.catalog.functions_named(node.name[-1]):
                if may_change(context, called, seen):
                    return True
    return False


def nodes_of(routine: Routine) -> Iterator[Any]:
    """Yield all statements and pieces of a body."""
    stack: list[Any] = [routine.body]
    for variable in routine.variables:
        stack += [variable.default, variable.cursor]
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack += node
        elif is_dataclass(node) and not isinstance(node, tree.Names | tree.Target):
            yield node
            if not isinstance(node, tree.Piece):
                stack += [getattr(node, f.name) for f in fields(node)]
