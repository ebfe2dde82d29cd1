"""Tables, views, sequences, schemas, and what is done alike to whatever has a name."""

from __future__ import annotations

from typing import Final

from engine.definitions import sequences
from engine.definitions.dropping import drop
from engine.definitions.locks import of_actions, of_objects, of_relations
from engine.definitions.needs.rights import ACCESS, Asked, Asks, its_table
from engine.definitions.table import create as relations
from engine.definitions.table import materialized
from engine.definitions.table.rename import rename
from engine.session.spec import StatementSpec
from engine.statements.families.definition import definition
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    definition(
        st.CreateTable,
        relations.create_table,
        Asks(Asked.create_table, ACCESS),
        of_relations.create_table,
        reads_elsewhere=True,
    ),
    definition(
        st.AlterTable,
        relations.alter_table,
        Asks(Asked.alter_table, "alter", its_table),
        of_actions.alter_table,
    ),
    definition(
        st.CreateIndex,
        relations.create_index,
        Asks(Asked.create_index, "create indexes on", its_table),
        of_relations.create_index,
    ),
    definition(st.CreateView, relations.create_view, Asks(Asked.create_view), of_relations.create_view),
    definition(
        st.CreateMaterializedView,
        materialized.create,
        Asks(Asked.create_materialized_view, ACCESS),
        of_relations.create_materialized,
    ),
    definition(
        st.RefreshMaterializedView, materialized.refresh, Asks(Asked.refresh, ACCESS), of_relations.refresh
    ),
    definition(
        st.CreateSequence,
        sequences.create_sequence,
        Asks(Asked.create_sequence),
        of_relations.create_sequence,
    ),
    definition(
        st.AlterSequence,
        sequences.alter_sequence,
        Asks(Asked.alter_sequence, ACCESS, lambda statement: (statement.sequence,)),
        of_relations.alter_sequence,
    ),
    definition(
        st.CreateSchema, relations.create_schema, Asks(Asked.create_schema), of_relations.create_schema
    ),
    definition(
        st.AlterSchemaOwner,
        relations.alter_schema_owner,
        Asks(Asked.give_schema),
        of_relations.alter_schema_owner,
    ),
    definition(st.Rename, rename, Asks(Asked.rename), of_relations.rename),
    definition(st.Drop, drop.drop, Asks(Asked.drop), of_relations.drop),
    definition(st.Comment, relations.comment, Asks(Asked.comment), of_objects.comment),
)
