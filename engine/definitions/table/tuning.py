"""ALTER TABLE and ALTER INDEX of what is kept and shown without effect (``planner.bind.define.table.alter_tuning``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.definitions.dropping.drop import table_of
from engine.definitions.table.alter_columns import change_column
from engine.definitions.table.rewrite import store_definition
from planner import statements as st
from planner.bind.define.table.alter_tuning import Tuning
from planner.catalog import IndexDef, RelationDef, with_index_changed

if TYPE_CHECKING:
    from engine.session.session import Session


async def tune(session: Session, relation: RelationDef, action: Tuning) -> None:
    """Store what one of them changes; it does so each time."""
    match action:
        case st.TuneColumn():
            await change_column(session, relation, action.column, **action.changes)
        case st.TuneIndexKey():
            table = table_of(session, relation.table_oid)
            changed = with_index_changed(table, relation.oid, lambda index: _with_statistics(index, action))
            await store_definition(session, changed)
        case st.MarkClustered():
            indexes = tuple(replace(index, clustered=index.oid == action.index) for index in relation.indexes)
            await store_definition(session, replace(relation, indexes=indexes))
        case st.SetReplicaIdentity():
            marked = replace(
                relation,
                indexes=_marked(relation.indexes, action.index),
                unbuilt=_marked(relation.unbuilt, action.index),
                replica_identity=action.identity,
            )
            await store_definition(session, marked)


def _marked(indexes: Sequence[IndexDef], oid: int) -> tuple[IndexDef, ...]:
    return tuple([replace(index, replica_identity=index.oid == oid) for index in indexes])


def _with_statistics(index: IndexDef, action: st.TuneIndexKey) -> IndexDef:
    targets = list(index.statistics or (-1,) * len(index.attnums))
    targets[action.position] = action.statistics
    return replace(index, statistics=tuple(targets))
