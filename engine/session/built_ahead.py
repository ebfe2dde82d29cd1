"""The indexes that a session's running statement has built ahead of itself, until its DDL takes them on.

    CREATE INDEX     Ahead(table, index, builds)     adopted under the table's lock, or given up at the statement's end

How they are built is ``engine.definitions.table.index_ahead``; pg_stat_progress_create_index shows how far they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.catalog import IndexDef, RelationDef
from txn.transaction.index_build import IndexBuild


class Ahead:
    """One index built ahead: for which table, at which version, what it looks like."""

    def __init__(
        self, table: RelationDef, index: IndexDef, builds: Sequence[IndexBuild], command: str
    ) -> None:
        """``builds``: one for each of its parts. ``command``: what pg_stat_progress_create_index calls it."""
        self.table = table
        self.index = index
        self.builds = builds
        self.build = builds[0]  # the one that runs
        self.command = command
        self.taken = False

    def fits(self, table: RelationDef, index: IndexDef) -> bool:
        """Tell whether ``index`` (whatever its name and oid) on ``table`` is what was built."""
        return (table.oid, table.version) == (self.table.oid, self.table.version) and _same(self.index, index)

    async def run(self) -> None:
        """Build the parts, one after the other. Raises as ``IndexBuild.run``."""
        for build in self.builds:
            self.build = build
            await build.run()

    def close(self) -> None:
        """Give up what was not adopted."""
        for build in self.builds:
            build.close()


def _same(one: IndexDef, other: IndexDef) -> bool:
    return (one.attnums, one.unique, one.method, one.nulls_not_distinct, one.opclasses, one.collations) == (
        other.attnums, other.unique, other.method, other.nulls_not_distinct, other.opclasses, other.collations,
    )  # fmt: skip


class BuiltAhead:
    """The indexes that a session's running statement has built ahead.

    Attributes:
        builds: those that are not adopted yet. left: which indexes, of which tables, the statement leaves
        behind should it fail (``engine.definitions.table.unbuilt``).
    """

    __slots__ = ("_allocate_oids", "builds", "left")

    def __init__(self, allocate_oids: Callable[[int], int]) -> None:
        """Start with none. ``allocate_oids``: the server's (``engine.session.server.Numbering``)."""
        self._allocate_oids = allocate_oids
        self.builds: list[Ahead] = []
        self.left: Sequence[tuple[int, IndexDef]] = ()

    def oid_of(self, table: RelationDef, index: IndexDef) -> int:
        """Return the oid for a new index of ``table``: that of the one built ahead if it fits, else a fresh one."""
        for ahead in self.builds:
            if not ahead.taken and ahead.table.oid == table.oid and _same(ahead.index, index):
                ahead.taken = True
                return ahead.index.oid
        return self._allocate_oids(1)

    def close(self) -> None:
        """The statement is over: what was not adopted is given up."""
        for ahead in self.builds:
            ahead.close()
        self.builds.clear()
        self.left = ()
