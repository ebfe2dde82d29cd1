"""Foreign data."""

from __future__ import annotations

from typing import Final

from engine.definitions import foreign
from engine.definitions.locks import forms
from engine.definitions.needs.rights import Asked, Asks
from engine.session.spec import StatementSpec
from engine.statements.families.definition import definition
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    definition(st.CreateWrapper, foreign.create_wrapper, Asks(Asked.create_wrapper), forms.whole_database),
    definition(st.AlterWrapper, foreign.alter_wrapper, Asks(Asked.alter_wrapper), forms.whole_database),
    definition(st.CreateServer, foreign.create_server, Asks(Asked.create_server), forms.whole_database),
    definition(st.AlterServer, foreign.alter_server, Asks(Asked.alter_server), forms.whole_database),
    definition(
        st.CreateUserMapping, foreign.create_mapping, Asks(Asked.change_mapping), forms.whole_database
    ),
    definition(st.AlterUserMapping, foreign.alter_mapping, Asks(Asked.change_mapping), forms.whole_database),
    definition(st.DropUserMapping, foreign.drop_mapping, Asks(Asked.drop_mapping), forms.whole_database),
    definition(st.AlterForeign, foreign.alter_foreign, Asks(Asked.alter_foreign), forms.whole_database),
    definition(
        st.DropForeign,
        foreign.drop_foreign,
        Asks(Asked.drop_foreign),
        forms.whole_if(lambda _catalog, statement: statement.objects),
    ),
    definition(
        st.ImportForeignSchema, foreign.import_schema, Asks(Asked.import_schema), forms.whole_database
    ),
)
