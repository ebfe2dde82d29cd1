"""Foreign data."""

from __future__ import annotations

from typing import Final

from engine.definitions import foreign
from engine.definitions.needs.rights import Asked, Asks
from engine.session.spec import StatementSpec
from engine.statements.families.definition import definition
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    definition(st.CreateWrapper, foreign.create_wrapper, Asks(Asked.create_wrapper)),
    definition(st.AlterWrapper, foreign.alter_wrapper, Asks(Asked.alter_wrapper)),
    definition(st.CreateServer, foreign.create_server, Asks(Asked.create_server)),
    definition(st.AlterServer, foreign.alter_server, Asks(Asked.alter_server)),
    definition(st.CreateUserMapping, foreign.create_mapping, Asks(Asked.change_mapping)),
    definition(st.AlterUserMapping, foreign.alter_mapping, Asks(Asked.change_mapping)),
    definition(st.DropUserMapping, foreign.drop_mapping, Asks(Asked.drop_mapping)),
    definition(st.AlterForeign, foreign.alter_foreign, Asks(Asked.alter_foreign)),
    definition(st.DropForeign, foreign.drop_foreign, Asks(Asked.drop_foreign)),
    definition(st.ImportForeignSchema, foreign.import_schema, Asks(Asked.import_schema)),
)
