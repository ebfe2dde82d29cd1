"""Constants in assignments of PL/pgSQL: what their conversion says where it fails.

n := 'x'          the literal is read while the assignment is analysed: the error has a place in its text
n := 'x'::text    computed while it is planned: CONTEXT names the assignment
d := 'x'::text    how a date is read is not fixed: it runs, and CONTEXT names the statement alone
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.base.where import tell_where
from pgwire.codecs.errors import DataError
from planner import ast
from planner.base.errors import Span, SqlError
from planner.facts import INTERVAL
from planner.parse import ALONE
from planner.plpgsql import tree
from planner.plpgsql.stream import PREFIX
from planner.types import SqlType
from planner.types.domains import base_type

if TYPE_CHECKING:
    from engine.programs.plpgsql.body import Ready
    from engine.programs.plpgsql.frame import Frame


async def converted(
    frame: Frame, piece: tree.Piece, ready: Ready, value: Any, given: SqlType, target: SqlType
) -> Any:
    """Return the value of a constant piece as one of ``target``. Raises what the conversion raises, told as
    PostgreSQL does.
    """
    plain = base_type(target)
    literal = _literal(ready.node)
    if literal is not None:
        read = SqlType(plain.oid, plain.typmod if plain.oid == INTERVAL else -1)
        try:
            value = await frame.cast(value, given, read)
        except (SqlError, DataError) as error:
            moved = len(piece.target) - len(PREFIX)
            raise placed(error, Span(literal.start + moved, literal.end + moved), piece) from None
        given = read
    try:
        value = await frame.cast(value, given, plain)
    except Exception as error:
        if frame.body.folds(given, plain):
            tell_where(error, piece.words)
        raise
    return value if plain == target else await frame.cast(value, plain, target)


def placed(error: DataError, span: Span, piece: tree.Piece) -> SqlError:
    """Return an error that was met at a place in the text of an assignment."""
    made = SqlError(error.sqlstate, error.message, detail=error.detail, hint=error.hint, span=span)
    made.where, made.query = error.where, piece.target + piece.text
    if isinstance(error, SqlError):
        made.schema, made.datatype, made.constraint = error.schema, error.datatype, error.constraint
    return made


def placed_in_target(error: SqlError, piece: tree.Piece) -> SqlError:
    """Return an error with a place in what is written left of ``:=`` as one in the text of the assignment."""
    if error.span is None:
        raise AssertionError("an error in the target of an assignment has no place")
    span = Span(error.span.start - len(ALONE), error.span.end - len(ALONE))
    return placed(error, span, piece)


def _literal(node: ast.Node) -> Span | None:
    """Return the place of the literal that an expression is, None for any other."""
    target = node.targets[0].expr if isinstance(node, ast.Select) and node.targets else None
    return target.span if isinstance(target, ast.Constant) and target.kind == "string" else None
