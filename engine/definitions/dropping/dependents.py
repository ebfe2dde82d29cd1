"""In which order DROP tells what depends on what: PostgreSQL's.

    t <── v <── m        DROP TABLE t CASCADE tells     view v, materialized view m, view w
      <── w <── m                                       (m depends on v and w: it is told behind the younger of them)

PostgreSQL looks through what depends on an object from the youngest to the oldest, columns of one table in
their order, and into each before the next, notes an object behind its own dependents, and tells the list from
its end. What goes with another object anyway (``what`` empty: a partition with its table, a constraint with
its domain) is not told, whatever else it depends on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pgwire.give_way import paced, paced_iter
from planner.base.errors import SqlError


class Dependency(NamedTuple):
    """``what``, as errors name it, depends on the object ``on``. ``key`` identifies it, ``oid`` tells how old
    it is; ``part``: the number of a column that is part of what has the oid.

    ``within``: keys of what it goes with anyway, a column with its table, a default with its column.
    """

    key: Hashable
    oid: int
    what: str
    on: Hashable
    part: int = 0
    within: tuple[Hashable, ...] = ()


MAX_TOLD: Final = 100
"""Objects that a client is told of; the log has all, as in PostgreSQL."""


def client_and_log(lines: Sequence[str]) -> tuple[str, str | None]:
    """Return DETAIL about objects as a client is told it, and as the log has it where that is longer."""
    whole = "\n".join(lines)
    more = len(lines) - MAX_TOLD
    if more <= 0:
        return whole, None
    left = f"and {more} other object{'s' if more > 1 else ''} (see server log for list)"
    return "\n".join([*lines[:MAX_TOLD], left]), whole


def still_needed(what: str | None, lines: Iterable[str]) -> SqlError:
    """Return 2BP01: ``what``, or the several things asked for (None), cannot be dropped. ``lines``: who
    depends on what.
    """
    if what is None:
        refused = "cannot drop desired object(s) because other objects depend on them"
    else:
        refused = f"cannot drop {what} because other objects depend on it"
    detail, log_detail = client_and_log(list(lines))
    error = SqlError(
        "2BP01", refused, detail=detail, hint="Use DROP ... CASCADE to drop the dependent objects too."
    )
    error.log_detail = log_detail
    return error


def kept_by_extension(words: str, extension: str) -> SqlError:
    """Return the error for DROP of one part of an extension: 2BP01. ``words``: what the part is called."""
    return SqlError(
        "2BP01",
        f"cannot drop {words} because extension {extension} requires it",
        hint=f"You can drop extension {extension} instead.",
    )


def in_report_order(roots: Sequence[Hashable], found: Iterable[Dependency]) -> list[Dependency]:
    """Return one dependency of each object that hangs on ``roots``, directly or not, in the order they are told."""
    below: dict[Hashable, list[Dependency]] = {}
    for one in paced_iter(found):
        below.setdefault(one.on, []).append(one)
    seen = set(roots)
    told: list[Dependency] = []
    for root in paced_iter(roots):
        _tell(root, below, seen, told)
    silent = {one.key for ones in below.values() for one in paced(ones) if not one.what and one.on in seen}
    gone = {*roots, *(one.key for one in paced(told))}
    return [
        one
        for one in paced_iter(reversed(told))
        if not one.what or (one.key not in silent and gone.isdisjoint(one.within))
    ]


def _tell(
    key: Hashable,
    below: Mapping[Hashable, list[Dependency]],
    seen: set[Hashable],
    told: list[Dependency],
) -> None:
    """Add to ``told`` what hangs on ``key`` and is not ``seen`` yet, each behind what hangs on it itself."""
    oldest_first = sorted(below.get(key, ()), key=lambda d: (d.oid, -d.part))
    for one in paced(oldest_first[::-1]):
        if one.key not in seen:
            seen.add(one.key)
            _tell(one.key, below, seen, told)
            told.append(one)
