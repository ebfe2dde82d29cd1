"""What goes with objects that are dropped, and in which order DROP tells it: PostgreSQL's walk
(``findDependentObjects``) over pg_depend.

    schema s  <──n── table s.t  <──i── type s.t  <──n── column u.c  <──n── rule of u.v  ──i──> view u.v

An object is looked at before what it depends on is done with: the youngest of what hangs on something first,
and into each before the next. What is part of another object (deptype i, e) takes that one along. What goes
with something by itself (a, i, P, S, e) is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.catalog.relations.dependency_rows import PG_ATTRDEF_OID, PG_REWRITE_OID
from pgwire.give_way import give_way, paced, paced_iter, paced_sorted
from pgwire.release import let_go
from planner.catalog.statistics import PG_STATISTIC_EXT
from planner.information.definitions import RULE_OID_BASE
from planner.information.describe import describe_object

if TYPE_CHECKING:
    from engine.definitions.dropping.dependents import Dependency
    from engine.session.session import Session


class Address(NamedTuple):
    """An object by its catalog and oid, ``sub``: a column of it, 0 for the whole."""

    of: int
    oid: int
    sub: int = 0


class Told(NamedTuple):
    """``what``, as messages name it, goes because it depends on ``on``."""

    what: str
    on: str


_ASKED: Final = "asked"  # what DROP names
_WITHIN: Final = "within"  # a column of a table that goes
_OWNER: Final = "owner"  # reached from what is part of it
_TOLD: Final = frozenset(("n", _OWNER))
_SILENT: Final = frozenset("aiPSe") | {_ASKED, _WITHIN}


class _Visit:
    """An object that is being looked at, and how it was reached so far."""

    __slots__ = ("above", "address", "how")

    def __init__(self, address: Address, how: set[str], above: _Visit | None) -> None:
        self.address, self.how, self.above = address, how, above


class _Walk:
    def __init__(self, session: Session) -> None:
        self._below: dict[tuple[int, int], list[tuple[int, Address, str]]] = {}
        self._owners: dict[tuple[int, int], list[tuple[int, Address, str]]] = {}
        self._ages: dict[tuple[int, int], float] = {}
        self.found: dict[Address, tuple[set[str], Address | None]] = {}
        self._subs: dict[tuple[int, int], list[Address]] = {}
        for number, (of, oid, sub, ref_of, ref, ref_sub, how) in enumerate(
            session.system.catalog_rows("pg_depend")
        ):
            self._below.setdefault((ref_of, ref), []).append((ref_sub, Address(of, oid, sub), how))
            if how in "iePS":
                self._owners.setdefault((of, oid), []).append((sub, Address(ref_of, ref, ref_sub), how))
            if of == PG_ATTRDEF_OID and how in "ai":
                self._ages[of, oid] = ref + (ref_sub + 1) / 4096  # made behind their table
            elif how == "e":
                # made with their extension, whatever oids they have: types, then functions, then what is made of these
                self._ages[of, oid] = ref + 0.5 + of / (1 << 15)
            elif of == PG_REWRITE_OID:
                self._ages[of, oid] = oid - RULE_OID_BASE + 0.5  # made behind their view
            if not number % 256:
                give_way()

    def let_go(self) -> None:
        """Free what has been walked over in the turns that follow: there is a row of pg_depend for everything in it."""
        let_go(self._below, self._owners, self._ages, self.found, self._subs)

    def visit(self, at: Address, how: str, above: _Visit | None) -> None:
        """Note what hangs on an object, and it behind that."""
        if _on_the_way(at, how, above) or self._known(at, how):
            return
        give_way()
        part_of: Address | None = None
        own = {how}
        for sub, owner, kind in self._owners.get(at[:2], ()):
            if (at.sub and sub != at.sub) or (not at.sub and owner[:2] == at[:2]):
                continue
            if kind in "PS":
                part_of = owner if kind == "P" or part_of is None else part_of
                own.add(kind)
            elif above is not None and not _on_the_way(owner, "", above):
                self.visit(owner, _OWNER, above)
                self._known(at, how)
                return
        visit = _Visit(at, own, above)
        for one, kind in self._hanging(at):
            self.visit(one, kind, visit)
        on = part_of if part_of is not None else None if above is None else above.address
        self.found[at] = (visit.how, on)
        self._subs.setdefault(at[:2], []).append(at)

    def _hanging(self, at: Address) -> Iterator[tuple[Address, str]]:
        found = [
            (one, kind)
            for ref_sub, one, kind in paced(self._below.get(at[:2], ()))
            if (not at.sub or ref_sub == at.sub) and (at.sub or one[:2] != at[:2])
        ]
        return iter(
            paced_sorted(
                found, lambda each: (-self._ages.get(each[0][:2], each[0].oid), each[0].of, each[0].sub)
            )
        )

    def _known(self, at: Address, how: str) -> bool:
        """Tell whether an object is done with, and note that it was reached so, too."""
        result = False
        for known in self._subs.get(at[:2], ()):
            reached = self.found[known][0]
            if known.sub == at.sub:
                reached.add(how)
                result = True
            elif not known.sub:
                result = True
            elif not at.sub:
                reached |= {how, _WITHIN}
        return result


def _on_the_way(at: Address, how: str, above: _Visit | None) -> bool:
    """As ``_known`` of what is being looked at; how "" is nothing to note."""
    result = False
    while above is not None:
        known = above.address
        if known[:2] == at[:2]:
            if known.sub == at.sub:
                above.how |= {how} - {""}
                result = True
            elif not known.sub:
                result = True
            elif not at.sub and how:
                above.how |= {how, _WITHIN}
        above = above.above
    return result


def told(session: Session, asked: Sequence[Address]) -> list[Told]:
    """Return what goes with objects that are dropped together, as CASCADE tells it; what it does not tell apart."""
    walk = _walked(session, asked)
    made = _told(session, walk)
    walk.let_go()
    return made


def _walked(session: Session, asked: Sequence[Address]) -> _Walk:
    walk = _Walk(session)
    for one in asked:
        walk.visit(one, _ASKED, None)
    return walk


def _told(session: Session, walk: _Walk) -> list[Told]:
    made: list[Told] = []
    for address, (how, on) in reversed(walk.found.items()):
        give_way()
        if how & _SILENT or not how & _TOLD:
            continue
        what = describe_object(session, *address)
        if what is None:
            raise AssertionError(f"there is no object {address}")
        made.append(Told(what, "" if on is None else describe_object(session, *on) or ""))
    return made


def told_with(
    session: Session,
    asked: Sequence[Address],
    known: Iterable[Dependency],
    words: Callable[[Dependency], str],
) -> list[Told]:
    """As ``told``, and behind it what is ``known`` to go though pg_depend has no row of it: nothing goes
    untold. ``words``: of what it depends on.
    """
    walk = _walked(session, asked)
    made = _told(session, walk)
    names = {one.what for one in paced(made)}
    # statistics go with a column by themselves, be they over a function that is dropped, too
    quiet = {
        at.oid
        for at, (how, _) in paced_iter(walk.found.items())
        if at.of == PG_STATISTIC_EXT and how & _SILENT
    }
    quiet.update(
        one.oid for one in paced(asked) if not one.sub
    )  # nor is what was asked for told where another of them takes it along
    left = [one for one in paced_iter(known) if one.what and one.what not in names and one.oid not in quiet]
    walk.let_go()
    return made + [Told(one.what, words(one)) for one in left]


def lines(told_: Sequence[Told]) -> list[str]:
    """Return what DETAIL says where CASCADE was not said."""
    return [f"{one.what} depends on {one.on}" for one in told_]
