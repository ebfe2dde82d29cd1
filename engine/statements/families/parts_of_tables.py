"""What belongs to a table: triggers, policies, extended statistics."""

from __future__ import annotations

from typing import Final

from engine.definitions import triggers
from engine.definitions.locks import of_relations
from engine.definitions.needs.rights import Asked, Asks
from engine.definitions.table import policies, statistics
from engine.session.spec import StatementSpec
from engine.statements.families.definition import definition
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    definition(
        st.CreateTrigger, triggers.create_trigger, Asks(Asked.create_trigger), of_relations.create_trigger
    ),
    definition(
        st.RenameTrigger, triggers.rename_trigger, Asks(Asked.change_part), of_relations.change_trigger
    ),
    definition(st.DropTrigger, triggers.drop_trigger, Asks(Asked.drop_part), of_relations.change_trigger),
    definition(st.CreatePolicy, policies.create_policy, Asks(Asked.change_part), of_relations.define_policy),
    definition(st.AlterPolicy, policies.alter_policy, Asks(Asked.change_part), of_relations.define_policy),
    definition(st.RenamePolicy, policies.rename_policy, Asks(Asked.change_part), of_relations.change_policy),
    definition(st.DropPolicy, policies.drop_policy, Asks(Asked.drop_part), of_relations.change_policy),
    definition(
        st.CreateStatistics,
        statistics.create_statistics,
        Asks(Asked.create_statistics),
        of_relations.create_statistics,
    ),
    definition(
        st.AlterStatistics,
        statistics.alter_statistics,
        Asks(Asked.alter_statistics),
        of_relations.alter_statistics,
    ),
    definition(
        st.DropStatistics,
        statistics.drop_statistics,
        Asks(Asked.drop_statistics),
        of_relations.drop_statistics,
    ),
)
