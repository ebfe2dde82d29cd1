"""What DROP COLUMN tells of what hangs on a column, in PostgreSQL's order.

t.a  <── generated column t.b  <── view vb          each thing is told once, on the column that it names
<── view va  <── view vva                      what hangs on that comes behind it
<── foreign keys, policies, triggers, functions, defaults that draw from its sequence
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.definitions import constraints as define
from engine.definitions.dropping.dependents import Dependency
from engine.definitions.dropping.drop import drawing_dependency, view_dependencies, view_dependents
from engine.definitions.roles import function_words
from engine.definitions.table.policies import policies_on, policy_words
from engine.definitions.table.trigger_dependencies import columns_of, trigger_words
from engine.session.catalog.names import described
from planner.catalog import ColumnDef, ConstraintDef, FunctionDef, RelationDef
from planner.catalog.trigger import TriggerDef

if TYPE_CHECKING:
    from engine.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What goes with a column of ``relation``, and with those that are generated from it.

    ``views``: by column, those that name it. ``broken``: all that cannot be bound any more. ``links``: what
    hangs on ``functions``. ``drawing``: columns whose defaults draw from ``sequences``, which the column
    owns.
    """

    relation: RelationDef
    column: ColumnDef
    generated: Sequence[ColumnDef]
    views: dict[int, list[RelationDef]]
    broken: Sequence[RelationDef]
    triggers: Sequence[TriggerDef]
    keys: Sequence[tuple[RelationDef, ConstraintDef]]
    functions: Sequence[FunctionDef]
    links: Iterable[Dependency]
    sequences: Sequence[RelationDef]
    drawing: Sequence[tuple[RelationDef, ColumnDef]]

    @property
    def root(self) -> tuple[str, int, int]:
        """The key of the column."""
        return self.key(self.column.attnum)

    def key(self, attnum: int) -> tuple[str, int, int]:
        """Return the key of a column of the relation."""
        return ("column", self.relation.oid, attnum)

    def on(self, attnums: Collection[int]) -> tuple[str, int, int]:
        """Return the key of the first of the columns that go which is among ``attnums``."""
        for column in (self.column, *self.generated):
            if column.attnum in attnums:
                return self.key(column.attnum)
        return self.root


def dependencies(session: Session, losses: Losses) -> list[Dependency]:
    """Return what hangs on the column, directly or not."""
    relation, table = losses.relation, described(session, losses.relation)
    found = [
        Dependency(losses.key(c.attnum), relation.oid, f"column {c.name} of {table}", losses.root)
        for c in losses.generated
    ]
    known: set[int] = set()
    for attnum, views in losses.views.items():
        known |= {view.oid for view in views}
        found += [Dependency(v.oid, v.oid, described(session, v), losses.key(attnum)) for v in views]
    left = [view for view in losses.broken if view.oid not in known]
    found += [Dependency(v.oid, v.oid, described(session, v), losses.root) for v in left]
    found += view_dependencies(session, view_dependents(session, {*known, *(v.oid for v in left)}))
    for trigger in losses.triggers:
        on = losses.on(columns_of(trigger, relation, session.catalog))
        found.append(Dependency(trigger.oid, trigger.oid, trigger_words(session, trigger, relation), on))
    for column in (losses.column, *losses.generated):
        for owner, policy in policies_on(session.catalog, relation, {column.attnum}):
            words = policy_words(session, policy, owner)
            found.append(Dependency(policy.oid, policy.oid, words, losses.key(column.attnum)))
    for child, key in losses.keys:
        if key.foreign is None or key.parent:
            continue  # those of partitions go with their table's
        words = define.depends_text(session, (child, key))
        found.append(Dependency(key.oid, key.oid, words, losses.on(key.foreign.attnums)))
    found += [Dependency(f.oid, f.oid, function_words(session, f), losses.root) for f in losses.functions]
    found += losses.links
    found += [Dependency(sequence.oid, sequence.oid, "", losses.root) for sequence in losses.sequences]
    found += [
        drawing_dependency(session, t, c, sequence)
        for sequence in losses.sequences
        for t, c in losses.drawing
    ]
    return found
