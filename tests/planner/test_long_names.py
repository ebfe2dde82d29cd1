"""Which names of a text are too long, in bytes, and what is kept of them."""

from __future__ import annotations

import pytest

from planner.parse.long_names import truncated
from planner.query import Const, FuncExpr, Var
from planner.query.walk import children
from planner.types import SqlType

A63, A64 = "a" * 63, "a" * 64


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"SELECT 1 AS {A63}", []),
        (f"SELECT 1 AS {A64.upper()}", [(A64, A63)]),
        (f'SELECT 1 AS "{A63}"', []),
        (f'SELECT 1 AS "{A64}", 2 AS x{A63}', [(A64, A63), ("x" + A63, "x" + A63[1:])]),
        (f"SELECT '{A64}' AS a", []),
        (f'SELECT "a" AS b{" " * 70}, "c"', []),
        ('SELECT 1 AS "' + 'abcdefghi""' * 7 + '"', [('abcdefghi"' * 7, ('abcdefghi"' * 7)[:63])]),
        ('SELECT 1 AS "' + "é" * 32 + '"', [("é" * 32, "é" * 31)]),
        ("SELECT 1 AS " + "é" * 31, []),
        ("SELECT 1 AS " + "\N{GRINNING FACE}" * 16, [("\N{GRINNING FACE}" * 16, "\N{GRINNING FACE}" * 15)]),
    ],
)
def test_names_of_more_than_63_bytes(text: str, found: list[tuple[str, str]]) -> None:
    assert truncated(text) == found


def test_children_are_the_nodes_through_tuples_and_no_plain_values() -> None:
    integer = SqlType(23)
    inner = Const(type=integer, value=(1, 2))
    column = Var(type=integer, range=0, attnum=1)
    call = FuncExpr(type=integer, proc=1, args=(column, inner))
    assert children(call) == [column, inner]
    assert children(inner) == []
    with pytest.raises(TypeError):
        children(3)
