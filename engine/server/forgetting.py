"""What a server lets go of once a second, behind its store: what the catalogs were, and what was kept of what
is no more.

    since (retention, holds, memory: ``txn``) ──> history of the catalogs ──> definitions ──> their types
    (``engine.catalog.type_owners``)
                                                                              counters of sequences that were
                                                                              dropped or restarted, and their
                                                                              rows
    relations that are no more                ──> rows of catalog relations
    sessions between transactions             ──> the catalog that they saw last

Other changes of the catalog do that, too, where they come by; but nobody may make one for hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.catalog import type_owners
from engine.catalog.history import generation_of
from txn.base.slices import over

if TYPE_CHECKING:
    from engine.server.database import Database


def forgetting(database: Database) -> Iterator[None]:
    """Let go of all of that, in slices."""
    for connection in tuple(database.sessions.values()):
        connection.session.view.rest()
        if over():
            yield
    yield from database.virtual.forgetting()
    for space in database.spaces:
        history = space.history
        yield from history.weighing()
        while not history.forget(database.store.since):
            yield
        while history.sequences:
            was = history.sequences.pop()
            now = space.catalog.relation_by_oid(was.oid)
            if now is None or now.sequence is None or generation_of(now) != generation_of(was):
                database.sequences.forget(was)
            if over():
                yield
    database.sequences.remove_rows()
    yield from type_owners.forgetting()
