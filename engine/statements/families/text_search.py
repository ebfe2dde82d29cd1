"""Text search."""

from __future__ import annotations

from typing import Final

from engine.definitions import text_search
from engine.definitions.locks import forms
from engine.definitions.needs.rights import Asked, Asks
from engine.session.spec import StatementSpec
from engine.statements.families.definition import definition
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    definition(
        st.CreateConfiguration,
        text_search.create_configuration,
        Asks(Asked.create_text_search),
        forms.whole_database,
    ),
    definition(
        st.CreateDictionary,
        text_search.create_dictionary,
        Asks(Asked.create_text_search),
        forms.whole_database,
    ),
    definition(st.AlterMapping, text_search.alter_mapping, Asks(Asked.alter_mapping), forms.whole_database),
    definition(
        st.AlterDictionary, text_search.alter_dictionary, Asks(Asked.alter_dictionary), forms.whole_database
    ),
    definition(
        st.AlterTextSearch, text_search.alter_text_search, Asks(Asked.alter_text_search), forms.whole_database
    ),
    definition(
        st.DropTextSearch,
        text_search.drop_text_search,
        Asks(Asked.drop_text_search),
        forms.whole_if(lambda _catalog, statement: statement.objects),
    ),
)
