"""How deep views may be nested in each other.

    CREATE OR REPLACE VIEW v1 AS SELECT * FROM v2, where v2 reads v1          42P17: nobody could read either
    v65 over v64 over ... over v1                                              42P17: deeper than a view is bound

It is asked when a view is made or replaced: what hangs on it is bound by others, too (pg_views, ALTER ...
RENAME, pg_dump), which would fail for all of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.catalog.state import CatalogSnapshot
from engine.session.catalog.wants import views_over
from planner.base.errors import SqlError
from planner.bind.context import MAX_VIEW_DEPTH
from planner.catalog import RelationDef


def check_nesting(catalog: CatalogSnapshot, name: str, reads: Iterable[int], old: RelationDef | None) -> None:
    """See that a view ``name`` may read ``reads``, in the place of ``old`` if there is one. Raises SqlError 42P17."""
    below = _levels(reads, lambda oid: _read_by_view(catalog, oid))
    above = [] if old is None else _levels([old.oid], lambda oid: _views_over(catalog, oid))
    if old is not None and any(old.oid in level for level in below):
        raise _endless(name)
    views_below = sum(1 for level in below if any(_is_view(catalog, oid) for oid in level))
    if views_below + max(len(above), 1) > MAX_VIEW_DEPTH:
        raise _endless(name)


def _levels(start: Iterable[int], beside: Callable[[int], Iterable[int]]) -> list[set[int]]:
    """Return what is reached from ``start`` in no step, in one, in two ... up to one more level than views may have."""
    levels: list[set[int]] = []
    level = set(start)
    while level and len(levels) <= MAX_VIEW_DEPTH:
        levels.append(level)
        level = {oid for one in level for oid in beside(one)}
    return levels


def _endless(name: str) -> SqlError:
    return SqlError("42P17", f'infinite recursion detected in rules for relation "{name}"')


def _is_view(catalog: CatalogSnapshot, oid: int) -> bool:
    relation = catalog.relation_by_oid(oid)
    return relation is not None and relation.kind == "v"


def _read_by_view(catalog: CatalogSnapshot, oid: int) -> Iterable[int]:
    relation = catalog.relation_by_oid(oid)
    return relation.depends_on if relation is not None and relation.kind == "v" else ()


def _views_over(catalog: CatalogSnapshot, oid: int) -> Iterable[int]:
    return (view.oid for view in views_over(catalog, oid) if view.kind == "v")
