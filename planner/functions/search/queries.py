"""ts_stat and ts_rewrite by a query: functions of full-text search that run a text as a query (manual
12.4.2.1 and 12.4.4).

    ts_stat('SELECT v FROM docs')                  each lexeme: in how many vectors it is, and how often
    ts_rewrite('a & b', 'SELECT t, s FROM synonyms')   each row replaces t by s

The text runs as a statement within the one that calls them, as whoever does; the row executor waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any, Final

from pgwire.codecs.text.tsvector import WEIGHTS, walk, weight
from pgwire.give_way import give_way, paced, paced_iter
from planner.base.errors import SqlError
from planner.base.suspend import Suspend
from planner.facts import TSQUERY, TSVECTOR
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.textsearch.rewrite import rewrite
from planner.types.domains import base_oid

_SORTED_AT_ONCE: Final = 4096
_Entries = Iterator[tuple[str, int, int]]


def waiting(work: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Return the function that begins ``work``, and has the executor wait for what is not done at once."""

    def run(session: EvalSession, *args: Any) -> Any:
        done, value = session.system.routines.begin(work(session, *args))
        if not done:
            raise Suspend("call", value)
        return value

    return run


async def _rows(session: EvalSession, text: str, types: tuple[int, ...], refusal: str) -> Any:
    """Return the rows of a query. Raises SqlError 22023 where its columns have other types, and what it raises."""
    columns, rows = await session.system.routines.query(text)
    if tuple(base_oid(column.type.oid) for column in columns) != types:
        raise SqlError("22023", refusal)
    return rows


async def _statistics(session: EvalSession, text: str, weights: str = "") -> _Entries:
    refusal = "ts_stat query must return one tsvector column"
    wanted = {at for at, letter in enumerate(WEIGHTS) if letter in weights or letter.lower() in weights}
    vectors: dict[str, int] = {}
    entries: dict[str, int] = {}
    for (value,) in paced(await _rows(session, text, (TSVECTOR,), refusal)):
        for lexeme, places in walk(value) if value is not None else ():
            give_way()
            count = len(places) or 1
            if wanted:
                count = sum(weight(place) in wanted for place in places)
            if count:
                vectors[lexeme] = vectors.get(lexeme, 0) + 1
                entries[lexeme] = entries.get(lexeme, 0) + count
    return ((lexeme, vectors[lexeme], entries[lexeme]) for lexeme in _in_order(vectors))


def _in_order(lexemes: Iterable[str]) -> Iterator[str]:
    """Yield lexemes in the order of their bytes; many are sorted some at a time, and merged as they are asked for."""
    left, runs = iter(lexemes), []
    while run := sorted(islice(left, _SORTED_AT_ONCE), key=str.encode):
        runs.append(run)
        give_way()
    return paced_iter(merge(*runs, key=str.encode))


async def _rewritten(session: EvalSession, query: bytes, text: str) -> bytes:
    refusal = "ts_rewrite query must return two tsquery columns"
    for target, substitute in paced(await _rows(session, text, (TSQUERY, TSQUERY), refusal)):
        if target is not None and substitute is not None:
            query = rewrite(query, target, substitute)
    return query


_FUNCTIONS: Final[dict[str, Callable[..., Coroutine[Any, Any, Any]]]] = {
    "ts_stat(text)": _statistics,
    "ts_stat(text,text)": _statistics,
    "ts_rewrite(tsquery,text)": _rewritten,
}


def _register() -> None:
    for signature, work in _FUNCTIONS.items():
        REGISTRY.python(signature, waiting(work), needs_session=True)


_register()
