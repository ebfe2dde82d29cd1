"""Which kinds of call may stand in which clause, and PostgreSQL's words for refusing them.

``Scope.clause`` holds a clause name while that clause is bound. An aggregate belongs to the innermost query
whose columns it reads, so it is judged by *that* query's clause, not by the one it is written in.
"""

from __future__ import annotations

from planner.base.errors import Span, SqlError
from planner.bind.scope import Scope

# Clause name -> how messages call it; missing ones are called by their own name.
_WORDS = {
    "JOIN/ON": "JOIN conditions",
    "FROM FUNCTION": "functions in FROM",
    "TABLESAMPLE": "functions in FROM",
    "WINDOW PARTITION": "window definitions",
    "WINDOW ORDER": "window definitions",
    "WINDOW FRAME RANGE": "window RANGE",
    "WINDOW FRAME ROWS": "window ROWS",
    "WINDOW FRAME GROUPS": "window GROUPS",
    "CHECK": "check constraints",
    "POLICY": "policy expressions",
    "TRIGGER WHEN": "trigger WHEN conditions",
    "DEFAULT": "DEFAULT expressions",
    "PARAMETER DEFAULT": "DEFAULT expressions",
    "GENERATED": "column generation expressions",
    "PARTITION BY": "partition key expressions",
    "PARTITION BOUND": "partition bound",
    "INDEX": "index expressions",
    "INDEX WHERE": "index predicates",
    "STATISTICS": "statistics expressions",
    "EXECUTE": "EXECUTE parameters",
    "TRANSFORM": "transform expressions",
    "INSERT": "VALUES",
    "CALL": "CALL arguments",
    "MERGE WHEN": "MERGE WHEN conditions",
    "COPY WHERE": "COPY FROM WHERE conditions",
}

_AGGREGATES_OK = frozenset(
    ("", "SELECT", "HAVING", "ORDER BY", "DISTINCT ON", "WINDOW PARTITION", "WINDOW ORDER", "AGGREGATE")
)
_WINDOWS_OK = frozenset(("", "SELECT", "ORDER BY", "DISTINCT ON"))
_SETS_OK = frozenset(
    ("", "SELECT", "GROUP BY", "ORDER BY", "DISTINCT ON", "INSERT", "WINDOW PARTITION", "WINDOW ORDER")
)

_LATERAL_HINT = "You might be able to move the set-returning function into a LATERAL FROM item."


def check_aggregate(scope: Scope, span: Span | None) -> None:
    """Raise 42803 when ``scope``'s current clause admits no aggregate of that query."""
    clause = scope.clause
    if clause in _AGGREGATES_OK:
        return
    if clause == "FROM":
        message = "aggregate functions are not allowed in FROM clause of their own query level"
    else:
        message = f"aggregate functions are not allowed in {_WORDS.get(clause, clause)}"
    raise SqlError("42803", message, span=span)


def check_grouping(scope: Scope, span: Span | None) -> None:
    """Raise 42803 when the current clause admits no GROUPING()."""
    clause = scope.clause
    if clause not in _AGGREGATES_OK:
        raise SqlError(
            "42803",
            f"grouping operations are not allowed in {_WORDS.get(clause, clause)}",
            span=span,
        )


def check_window(scope: Scope, span: Span | None) -> None:
    """Raise 42P20 when the current clause admits no window function."""
    clause = scope.clause
    if clause in _WINDOWS_OK:
        return
    if clause.startswith("WINDOW"):
        raise SqlError("42P20", "window functions are not allowed in window definitions", span=span)
    raise SqlError("42P20", f"window functions are not allowed in {_WORDS.get(clause, clause)}", span=span)


def check_set(scope: Scope, span: Span | None) -> None:
    """Raise 0A000 when the current clause admits no set-returning function; note it otherwise."""
    clause = scope.clause
    if clause == "TABLESAMPLE":
        return  # whose arguments are looked at as a whole
    if clause == "FROM FUNCTION":
        raise SqlError("0A000", "set-returning functions must appear at top level of FROM", span=span)
    if clause not in _SETS_OK:
        word = "window definitions" if clause.startswith("WINDOW") else _WORDS.get(clause, clause)
        raise SqlError("0A000", f"set-returning functions are not allowed in {word}", span=span)
    scope.set_returning = True
    scope.set_span = span


def sets_in_call(kind: str, span: Span | None) -> SqlError:
    """Return the error for a set-returning argument of an aggregate or window function."""
    return SqlError(
        "0A000",
        f"{kind} function calls cannot contain set-returning function calls",
        hint=_LATERAL_HINT,
        span=span,
    )
