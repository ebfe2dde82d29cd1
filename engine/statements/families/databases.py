"""Databases, what their sessions begin with, extensions, timelines."""

from __future__ import annotations

from typing import Final

from engine.definitions import databases, extensions
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
    ),
    definition(st.AlterDatabase, databases.alter, Asks(Asked.alter_database)),
    StatementSpec(
        statement=st.DropDatabase, handler=databases.drop, rights=Asks(Asked.drop_database), begin=by_handler
    ),
    definition(st.AlterDefaults, databases.alter_defaults, Asks(Asked.alter_defaults)),
    definition(st.CreateExtension, extensions.create_extension, Asks(Asked.create_extension)),
    definition(st.AlterExtension, extensions.alter_extension, Asks(Asked.alter_extension)),
    definition(st.DropExtension, extensions.drop_extension, Asks(Asked.drop_extension)),
    definition(st.CreateTimeline, timelines.create_timeline, Asks(Asked.create_timeline)),
    definition(st.DropTimeline, timelines.drop_timeline, Asks(Asked.drop_timeline)),
)
