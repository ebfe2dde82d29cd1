"""What row-level security, and the views on the way, ask of rows that a statement stores or changes
(``planner.query.RowCheck``).

    computed columns ──> row-level security (42501) ──> constraints ──> stored, keys (23505) ──> WITH CHECK
    OPTION (44000)

It is compiled once per plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.base.slices import pause
from engine.changes.writes.returning import own_number
from engine.changes.writes.shape import TableShape, table_layout
from engine.executors.index.plan import Planning
from engine.executors.index.state import value_of
from pgwire.give_way import openly
from planner.base.errors import SqlError
from planner.catalog import RelationDef
from planner.evaluate import Env, Layout, RowFunction, compile_expr
from planner.query import XMIN, RowCheck, RowCheckKind, Var
from planner.query.walk import walk
from txn.base.types import Row

if TYPE_CHECKING:
    from engine.session.session import Session

_WORDS: Final[dict[RowCheckKind, tuple[str, str]]] = {
    "insert": ("new", ""),
    "update": ("new", ""),
    "conflict": ("new", " (USING expression)"),
    "merge update": ("target", " (USING expression)"),
    "merge delete": ("target", " (USING expression)"),
}


_THERE: Final[frozenset[RowCheckKind]] = frozenset(("merge update", "merge delete"))
"""Kinds that look at rows of which nobody knows the version."""


@dataclass(frozen=True, slots=True)
class _Compiled:
    check: RowCheck
    condition: RowFunction
    tells_xmin: bool

    @classmethod
    def of(cls, check: RowCheck, layout: Layout, versions: Layout) -> _Compiled:
        """Compile a check over a row; ``versions``: over a row with its xmin behind it."""
        reads = any(isinstance(node, Var) and node.attnum == XMIN for node in walk(check.condition))
        tells = reads and check.kind not in _THERE
        return cls(check, compile_expr(check.condition, versions if tells else layout), tells)


class RowChecks:
    """The row checks of one statement on a table; none of a statement that has none."""

    __slots__ = ("_checks", "_named", "_relation", "_stored")

    def __init__(
        self,
        session: Session,
        relation: RelationDef,
        checks: Sequence[RowCheck],
        parent: RelationDef | None = None,
    ) -> None:
        """Compile over rows of ``relation``; their sub-selects are the row executor's.

        ``parent``: the partitioned table whose policies they are, as messages say; a whole row in them is one of it.
        """
        self._named = parent or relation
        layout = table_layout(relation, parent)
        versions = table_layout(relation, parent)
        versions.columns[0, XMIN] = len(relation.columns) + 2
        planning = Planning(session.catalog)
        layout.subplan = versions.subplan = planning.sublink
        self._relation = relation
        compiled = [_Compiled.of(check, layout, versions) for check in checks]
        planning.end()
        self._checks = [made for made in compiled if made.check.kind != "stored"]
        self._stored = [made for made in compiled if made.check.kind == "stored"]

    def __bool__(self) -> bool:
        """Whether there are any to be asked before rows are stored."""
        return bool(self._checks)

    @property
    def views(self) -> bool:
        """Whether views with WITH CHECK OPTION are on the way, which ask of what is stored."""
        return bool(self._stored)

    async def stored(self, shape: TableShape, rows: Sequence[Row], env: Env) -> None:
        """Raise SqlError 44000 for the first row that a view with WITH CHECK OPTION, which it came through,
        would not show.
        """
        for made in self._stored:
            more = self._beside(made, env, None)
            for row in rows:
                pause()
                if await value_of(made.condition, (*row, *more), env) is not True:
                    raise SqlError(
                        "44000",
                        f'new row violates check option for view "{made.check.view}"',
                        detail=shape.failing_row(row, env.session),
                    )

    async def check(
        self, kind: RowCheckKind, rows: Sequence[Row], env: Env, version: Callable[[], int] | None = None
    ) -> None:
        """Raise SqlError 42501 or 55000 for the first row for which a check of a kind is not TRUE; and what
        evaluating it raises.

        ``version`` tells the xmin of rows that are there already.
        """
        for made in self._checks:
            if made.check.kind != kind:
                continue
            more = self._beside(made, env, version)
            for row in rows:
                if await value_of(made.condition, (*row, *more), env) is not True:
                    raise self._violated(made.check)

    def _beside(self, made: _Compiled, env: Env, version: Callable[[], int] | None) -> Row:
        """Return what a check sees beside a row; xmin of one that the statement makes is its transaction's id."""
        more: Row = (self._relation.oid, None)
        if made.tells_xmin:
            more += (own_number(env) if version is None else version(),)
        return more

    async def made(
        self, kind: RowCheckKind, shape: TableShape, rows: Sequence[Row], env: Env
    ) -> Sequence[Row]:
        """As ``TableShape.made``, in PostgreSQL's order: computed columns, row-level security, constraints."""
        if not self._checks:
            return openly(shape.made, rows, env)
        rows = openly(shape.complete, rows, env)
        await self.check(kind, rows, env)
        openly(shape.check, rows, env)
        return rows

    def _violated(self, check: RowCheck) -> SqlError:
        if check.view:
            return SqlError("55000", f'conflicting row is not visible through view "{check.view}"')
        which, how = _WORDS[check.kind]
        policy = f' "{check.policy}"' if check.policy else ""
        return SqlError(
            "42501",
            f'{which} row violates row-level security policy{policy}{how} for table "{self._named.name}"',
        )
