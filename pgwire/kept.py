"""Caches of what is made of texts and bytes, bounded in bytes: many short ones, a few longer ones, nothing of
those that are very long.

    kept(1000)(make)    make(value, …)    len(value) <= SHORT    among the last ``count``
                                          len(value) <= LONG     among the last ``FEW``
                                          else                   made anew each time

``functools.lru_cache`` bounds their number alone: four thousand values of a megabyte, which any client can
send, would be kept for as long as the server runs, on nobody's account. What is made may be ten times as
large as what it is made of; SHORT is chosen for that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Concatenate, Final, ParamSpec, TypeVar

SHORT: Final = 1 << 10
LONG: Final = 1 << 17
FEW: Final = 8

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V", str, bytes)


def kept(
    count: int, *, short: int = SHORT, long: int = LONG, few: int = FEW
) -> Callable[[Callable[Concatenate[V, P], T]], Callable[Concatenate[V, P], T]]:
    """Return the decorator of a function of a text or bytes, and of what is short. ``count``, ``few``:
    results; ``short``, ``long``: lengths of the first argument.
    """

    def decorate(make: Callable[Concatenate[V, P], T]) -> Callable[Concatenate[V, P], T]:
        of_many, of_few = lru_cache(count)(make), lru_cache(few)(make)

        def get(value: V, /, *args: P.args, **options: P.kwargs) -> T:
            size = len(value)
            if size <= short:
                return of_many(value, *args, **options)  # type: ignore[arg-type]  # lru_cache knows hashable arguments alone
            return (of_few if size <= long else make)(value, *args, **options)  # type: ignore[arg-type]

        update_wrapper(get, make)
        return get

    return decorate
