"""Which PL/pgSQL functions can run where nothing can wait: those that read no table and run no statement of their own.

    RETURN lower(trim(x));  IF ... RAISE ...  SELECT nextval('ids') % 1024 INTO n;      yes
    SELECT max(id) INTO n FROM t;  EXECUTE ...;  PERFORM pg_sleep(1);                   no

Defaults, CHECK, generated columns, USING and their kin are evaluated row by row, often by what cannot give
way to others (``planner.bind.stored.runnable``). Such a function does not need to: all it does are
expressions over its variables.
"""

from __future__ import annotations

from typing import Any, Final

from planner import ast
from planner.base.errors import SqlError
from planner.bind.context import BindContext
from planner.catalog import FunctionDef
from planner.parse import parse, parse_expression
from planner.plpgsql import tree
from planner.plpgsql.check import nodes_of
from planner.plpgsql.header import header_for_check
from planner.plpgsql.parser import parse_routine
from planner.plpgsql.stream import parse_piece
from planner.plpgsql.types import CatalogTypes
from planner.query.walk import walk

_STATEMENTS: Final = (
    tree.Execute
    | tree.CallRoutine
    | tree.EndTransaction
    | tree.Open
    | tree.Fetch
    | tree.Close
    | tree.ForCursor
)
_READS: Final = ast.TableRef | ast.Locking | ast.Insert | ast.Update | ast.Delete | ast.Merge
_QUERIES: Final = ast.Select | ast.SetOp | ast.Values
_WAITS: Final = ("pg_sleep", "pg_advisory_", "dblink")


def needs_no_wait(context: BindContext, function: FunctionDef, seen: frozenset[int] = frozenset()) -> bool:
    """Tell whether a function's body only evaluates expressions, those of the users' functions that it names
    included.
    """
    if function.oid in seen:
        return True
    seen |= {function.oid}
    try:
        if function.language == "plpgsql":
            routine = parse_routine(function.source, header_for_check(function), CatalogTypes(context))
            return all(_waits_not(context, node, seen) for node in nodes_of(routine))
        return function.language == "sql" and all(
            _reads_nothing(context, statement, seen) for statement in _statements(function)
        )
    except SqlError:
        return False  # running it says what is wrong


def _statements(function: FunctionDef) -> list[Any]:
    if function.returns:
        return [parse_expression(function.body_sql)]
    return [parsed.statement for parsed in parse(function.body_sql or function.source)]


def _waits_not(context: BindContext, node: object, seen: frozenset[int]) -> bool:
    if isinstance(node, _STATEMENTS):
        return False
    if isinstance(node, tree.ForRows | tree.ReturnQuery) and node.dynamic:
        return False
    return not isinstance(node, tree.Piece) or _reads_nothing(context, parse_piece(node), seen)


def _reads_nothing(context: BindContext, statement: Any, seen: frozenset[int]) -> bool:
    if not isinstance(statement, _QUERIES | ast.Expression):
        return False
    for node in walk(statement):
        if isinstance(node, _READS):
            return False
        if isinstance(node, ast.FuncCall):
            if node.name[-1].startswith(_WAITS):
                return False
            if not all(
                needs_no_wait(context, called, seen)
                for called in context.catalog.functions_named(node.name[-1])
            ):
                return False
    return True
