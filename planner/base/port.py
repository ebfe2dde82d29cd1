"""A function that a floor asks for and a higher one supplies: floors import those below them alone (``tools/floors.py``).

    KEY_EXPR: Port[[str, RelationDef, Catalog], Expr] = Port("the expression of a partition key")     where it is asked for
    KEY_EXPR.supply(bind_key_expr)                                                                    ``planner.bind.supplied``

Nobody is asked by default: a call of one that nobody has supplied is an error, and one is supplied once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Port(Generic[P, R]):
    """Calls what was supplied."""

    __slots__ = ("_function", "_what")

    def __init__(self, what: str) -> None:
        """``what``: it is asked for, for the error where nobody has supplied it."""
        self._what = what
        self._function: Callable[P, R] | None = None

    @property
    def supplied(self) -> bool:
        """Tell whether somebody answers."""
        return self._function is not None

    def supply(self, function: Callable[P, R]) -> None:
        """Have ``function`` answer. Raises RuntimeError where another does already."""
        if self._function is not None and self._function is not function:
            raise RuntimeError(f"{self._what} is supplied twice")
        self._function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the supplier returns, or raise what it raises. Raises RuntimeError where there is none."""
        if self._function is None:
            raise RuntimeError(f"nobody supplies {self._what}")
        return self._function(*args, **kwargs)
