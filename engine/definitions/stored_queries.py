"""Texts of views, of functions' bodies and of policies, written anew when what they read is called otherwise
or has other columns.

RENAME, SET SCHEMA      the new names
ADD COLUMN, ATTRIBUTE   a list of columns that an alias has, or a join, goes on naming the same ones: t x(p, q) becomes x(p, q, c)
DROP COLUMN, ATTRIBUTE  and so where one is gone
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import Stored
from engine.definitions.functions import rebase_functions
from engine.definitions.table.policies import rebase_policies
from engine.definitions.table.row_readers import readers_of
from engine.session.session import Session
from pgwire.give_way import between
from planner.bind.stored import rebase_readable_view
from planner.catalog.relation_kinds import BY_QUERY


async def rebase_queries(
    session: Session, oids: Set[int], before: CatalogSnapshot, types: Set[int] = frozenset()
) -> None:
    """Rewrite the texts of views, functions and policies that read one of some relations which have other
    names or columns than in ``before``.

    ``types``: the family of a composite type that has other attributes than then, rows of which they may read.
    A view's text names what it reads, so it is bound against the catalog of before the change and
    printed against the one after it.
    """
    version = session.db.next_catalog_version()
    changed: list[Stored] = []
    readers = readers_of(before, oids, types)
    for view in readers.relations(session.catalog):
        between()
        if view.kind in BY_QUERY and readers.reads(view.depends_on, view.view_sql):
            text = rebase_readable_view(view, before, session.catalog)
            if text != view.view_sql:
                changed.append(replace(view, view_sql=text, version=version))
    if changed:
        await session.view.change(changed)
    await rebase_functions(session, before, readers)
    await rebase_policies(session, before, readers)
