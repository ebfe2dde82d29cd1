"""A function that a module asks for and a higher one supplies: floors import those below them alone
(``tools/floors.py``).

    KEY_EXPR: Port[Callable[[str, RelationDef, Catalog], Expr]] = Port("the expression of a partition key")     where it is asked for
    KEY_EXPR.supply(bind_key_expr)                                                                              where both are known
    KEY_EXPR.call(text, table, catalog)                                                                         one call, no detour

Nobody is asked by default: a call of one that nobody has supplied is an error, and one is supplied once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


class Port(Generic[F]):
    """What was supplied. ``call``: the function itself; RuntimeError is raised by what stands there before."""

    __slots__ = ("_what", "call", "supplied")

    def __init__(self, what: str) -> None:
        """``what``: it is asked for, for the error where nobody has supplied it."""
        self._what = what
        self.supplied = False
        self.call: F = cast("F", self._nobody)

    def _nobody(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError(f"nobody supplies {self._what}")

    def supply(self, function: F) -> None:
        """Have ``function`` answer. Raises RuntimeError where another does already."""
        if self.supplied and self.call is not function:
            raise RuntimeError(f"{self._what} is supplied twice")
        self.call = function
        self.supplied = True
