"""Databases, what their sessions begin with, extensions, timelines."""

from __future__ import annotations

from typing import Final

from engine.definitions import databases, extensions
from engine.definitions.locks import forms, of_objects
from engine.definitions.needs.rights import Asked, Asks
from engine.session.spec import StatementSpec
from engine.session.transaction import timelines
from engine.statements.begin import by_handler
from engine.statements.families.definition import definition
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    StatementSpec(
        statement=st.CreateDatabase,
        handler=databases.create,
        rights=Asks(Asked.create_database),
        begin=by_handler,
        locks=forms.all_databases,
    ),
    definition(st.AlterDatabase, databases.alter, Asks(Asked.alter_database), forms.all_databases),
    StatementSpec(
        statement=st.DropDatabase,
        handler=databases.drop,
        rights=Asks(Asked.drop_database),
        begin=by_handler,
        locks=forms.all_databases,
    ),
    definition(st.AlterDefaults, databases.alter_defaults, Asks(Asked.alter_defaults), forms.all_databases),
    definition(
        st.CreateExtension,
        extensions.create_extension,
        Asks(Asked.create_extension),
        forms.whole_if(of_objects.is_new_extension),
    ),
    definition(
        st.AlterExtension, extensions.alter_extension, Asks(Asked.alter_extension), forms.whole_database
    ),
    definition(
        st.DropExtension,
        extensions.drop_extension,
        Asks(Asked.drop_extension),
        forms.whole_if(of_objects.has_extensions),
    ),
    definition(
        st.CreateTimeline, timelines.create_timeline, Asks(Asked.create_timeline), forms.all_databases
    ),
    definition(st.DropTimeline, timelines.drop_timeline, Asks(Asked.drop_timeline), forms.all_databases),
)
