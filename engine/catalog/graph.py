"""Who names whom in a catalog: one graph, made when it is first asked for, then derived from an earlier snapshot's.

    t <── v (reads it)    s <── t.a DEFAULT nextval('s')    f <── g (its body)    e <── t.b (of type e), domain d

    named   ("relation", v) ──> t …           what an object names, by oid           (``references.named``)
    naming  t ──> ("relation", v), …          who names an oid, by their keys

An edge says that an object may hang on another: that a field or a text of it has the oid. How it hangs there,
by which part, and whether it goes along, is for who asks to look at, in the object itself; the graph tells
whom to look at. So DROP looks at what names what it drops, not at all that the catalog has.

Edges lead to all oids by which others refer to an object: those of its row type, constraints, types and
constructors (``references.identities``). In which schema an object is, who owns it and may use it is no edge;
what a comment or a list of rights is about is one.

A snapshot knows the one it came of, and by which changes (``Edges``). Who asks for its graph has that of the
nearest one before that has any, and the changes since; so it costs the edges of what has changed, and copies
of two dictionaries. Nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from engine.catalog.indexes import Pace
from engine.catalog.references import named
from engine.catalog.storage.stored import Stored, StoredKey, key_of
from pgwire.give_way import openly, paced, paced_iter
from pgwire.long.values import in_order
from planner.catalog import FunctionDef, RelationDef, TypeDef

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot

PART: Final = 1024
"""Objects between two looks at the clock, where nothing is done but to find them."""
NOTHING: Final = frozenset[int]()
_Users = dict[StoredKey, None]
"""Keys of objects, in no order."""


class Graph:
    """The edges of one snapshot. Immutable."""

    __slots__ = ("named", "naming")

    def __init__(
        self, named_: Mapping[StoredKey, frozenset[int]], naming: Mapping[int, Mapping[StoredKey, None]]
    ) -> None:
        """Take both directions of the same edges."""
        self.named: Final = named_
        self.naming: Final = naming

    @classmethod
    def of(cls, items: Sequence[Stored], pace: Pace) -> Graph:
        """Return the graph of all that a catalog has."""
        return cls({}, {}).after((), items, pace)

    def after(self, gone: Iterable[StoredKey], made: Sequence[Stored], pace: Pace) -> Graph:
        """Return the graph once objects have gone, and others came or took their places."""
        changes = [(key, NOTHING) for key in gone if key in self.named]
        changes += [
            (key, names)
            for item in pace(made)
            if (names := named(item)) != self.named.get(key := key_of(item), NOTHING)
        ]
        if not changes:
            return self
        by_user, by_oid = dict(self.named), dict(self.naming)
        fresh: dict[int, _Users] = {}

        def users(oid: int) -> _Users:
            found = fresh.get(oid)
            if found is None:
                found = by_oid[oid] = fresh[oid] = dict(by_oid.get(oid, ()))
            return found

        for key, names in pace(changes):
            before = by_user.pop(key, NOTHING)
            if names:
                by_user[key] = names
            for oid in before - names:
                users(oid).pop(key, None)
            for oid in names - before:
                users(oid)[key] = None
        for oid, left in fresh.items():
            if not left:
                del by_oid[oid]
        return Graph(by_user, by_oid)


class Edges:
    """Where a snapshot's graph comes from: its own, or that of an earlier one and what has changed since."""

    __slots__ = ("_before", "_changes", "_graph", "_since")

    def __init__(
        self, before: Edges | None = None, gone: Sequence[StoredKey] = (), made: Sequence[Stored] = ()
    ) -> None:
        """Take what is known of the snapshot before, and what has gone and come since."""
        self._graph: Graph | None = None
        self._before = before
        self._changes = (gone, made)
        self._since: int = 0 if before is None else before._since + len(gone) + len(made)

    def next(self, gone: Sequence[StoredKey], made: Sequence[Stored], size: int) -> Edges:
        """Return those of a snapshot that comes of this one by some changes, and has ``size`` objects.

        Where more would have been followed than looked at, nothing is kept of what was before.
        """
        after = Edges(self, gone, made)
        return after if after._since <= max(size, PART) else Edges()

    def graph(self, items: Mapping[StoredKey, Stored]) -> Graph:
        """Return the graph of the snapshot, which has ``items``: some 30 microseconds an object or change,
        giving way.
        """
        graph = self._graph
        if graph is None:
            graph = openly(self._made, items)
            self._graph, self._before, self._changes, self._since = graph, None, ((), ()), 0
        return graph

    def _made(self, items: Mapping[StoredKey, Stored]) -> Graph:
        return self._derived() or Graph.of(list(items.values()), paced)

    def _derived(self) -> Graph | None:
        """Return the graph as the nearest snapshot before gives it; None: none has one."""
        steps: list[tuple[Sequence[StoredKey], Sequence[Stored]]] = []
        one: Edges | None = self
        while one is not None and one._graph is None:
            steps.append(one._changes)
            one = one._before
        if one is None or one._graph is None:
            return None
        last: dict[StoredKey, Stored | None] = {}
        for gone, made in paced_iter(reversed(steps)):
            last.update(dict.fromkeys(gone))
            last.update((key_of(item), item) for item in paced(made, PART))
        left = [key for key, item in last.items() if item is None]
        return one._graph.after(left, [item for item in last.values() if item is not None], paced)


def graph_of(catalog: CatalogSnapshot) -> Graph:
    """Return the graph of a catalog; others run meanwhile where it has to be made."""
    return catalog.edges.graph(catalog.items)


def naming(catalog: CatalogSnapshot, oids: Iterable[int]) -> list[Stored]:
    """Return the objects that name any of some oids, oldest first."""
    edges, found = graph_of(catalog).naming, dict[StoredKey, None]()
    for oid in paced_iter(oids, PART):
        found.update(edges.get(oid, ()))
    items = catalog.items
    return [items[key] for key in paced(in_order(list(found), _by_age), PART)]


def is_named(catalog: CatalogSnapshot, oids: Iterable[int]) -> bool:
    """Tell whether any object names one of some oids."""
    return not graph_of(catalog).naming.keys().isdisjoint(oids)


def relations_naming(catalog: CatalogSnapshot, oids: Iterable[int]) -> Iterator[RelationDef]:
    """Yield those of ``naming`` that are tables, views and sequences."""
    return (item for item in naming(catalog, oids) if isinstance(item, RelationDef))


def types_naming(catalog: CatalogSnapshot, oids: Iterable[int]) -> Iterator[TypeDef]:
    """Yield those of ``naming`` that are types."""
    return (item for item in naming(catalog, oids) if isinstance(item, TypeDef))


def functions_naming(catalog: CatalogSnapshot, oids: Iterable[int]) -> Iterator[FunctionDef]:
    """Yield those of ``naming`` that are functions."""
    return (item for item in naming(catalog, oids) if isinstance(item, FunctionDef))


def _by_age(key: StoredKey) -> tuple[int, str, int]:
    return key[1], key[0], key[2]
