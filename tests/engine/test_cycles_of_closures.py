"""No nested function refers to itself: it and the cell that holds it were a cycle, which waits for the collector (``engine.base.loop.collector``).

    def outer(tree):
        def visit(node): ... visit(child)      outer's call leaves visit -> its cell -> visit

A function of the module with arguments, or a method, does the same. Functions that call each other, also through lambdas, are
alike; a class in a function is always such a cycle, of it and what it inherits from.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "planner", "pgwire", "txn", "sqllogictest")
_IS_FUNCTION = 0x2  # CO_NEWLOCALS: neither a module nor the body of a class


def _nested(code: CodeType) -> list[CodeType]:
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def _cycles(code: CodeType) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each nested function that refers to itself through its cell, and of each class in a function."""
    nested = _nested(code)
    if code.co_flags & _IS_FUNCTION:
        cells = set(code.co_cellvars)
        reads: dict[str, set[str]] = {}
        for inner in nested:
            if not inner.co_flags & _IS_FUNCTION:
                yield inner.co_firstlineno, inner.co_name
            elif inner.co_name in cells:
                reads.setdefault(inner.co_name, set()).update(cells.intersection(inner.co_freevars))
        for inner in nested:
            seen: set[str] = set()
            todo = [inner.co_name]
            while todo:
                new = reads.get(todo.pop(), set()) - seen
                seen |= new
                todo += new
            if inner.co_name in seen:
                yield inner.co_firstlineno, inner.co_name
    for inner in nested:
        yield from _cycles(inner)


def test_no_nested_function_refers_to_itself() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, name in _cycles(compile(path.read_text(), str(path), "exec", dont_inherit=True))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f():\n def g(n):\n  return g(n - 1)\n return g(3)", [(2, "g")]),
        ("async def f():\n async def g(n):\n  return await g(n - 1)\n await g(3)", [(2, "g")]),
        ("def f():\n def g(): h()\n def h(): g()\n g()", [(2, "g"), (3, "h")]),
        ("def f():\n def g(n): return map(lambda c: g(c), n)\n return g", [(2, "g")]),
        ("def f():\n if 1:\n  for x in y:\n   def g(): return [g() for _ in z]", [(4, "g")]),
        ("def f():\n def g():\n  def h(): return g\n  return h", [(2, "g")]),
        ("class C:\n def f(self):\n  def g(): return g\n  return g", [(3, "g")]),
        ("def f():\n class C: pass\n return C", [(2, "C")]),
        ("def f():\n def g(g): return g\n def h(): return g(1)\n return h", []),
        ("def f():\n def g(n): return f(n)\n return g", []),
        ("def f(n): return f(n - 1)", []),
        ("def f():\n def g():\n  g = 1\n  return g\n return g", []),
    ],
)
def test_what_is_found(source: str, found: list[tuple[int, str]]) -> None:
    assert list(_cycles(compile(source, "<text>", "exec", dont_inherit=True))) == found
