"""Functions, procedures and aggregates, and the calls that are statements."""

from __future__ import annotations

from typing import Final

from engine.definitions import functions
from engine.definitions.locks import forms, of_objects
from engine.definitions.needs.rights import Asked, Asks, Nothing
from engine.session.spec import StatementSpec
from engine.statements import inner
from engine.statements.begin import begin_routine
from engine.statements.families.definition import definition
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    definition(
        st.CreateFunction, functions.create_function, Asks(Asked.create_function), of_objects.create_function
    ),
    definition(
        st.CreateAggregate, functions.create_aggregate, Asks(Asked.create_aggregate), forms.whole_database
    ),
    definition(st.AlterFunction, functions.alter_function, Asks(Asked.alter_function), forms.whole_database),
    definition(
        st.DropFunction,
        functions.drop_function,
        Asks(Asked.drop_function),
        forms.whole_if(lambda _catalog, statement: statement.functions),
    ),
    StatementSpec(
        statement=st.Call,
        handler=inner.call,
        rights=Nothing("EXECUTE of the procedure is asked for as of any call; arguments read no tables"),
        begin=begin_routine,
    ),
    StatementSpec(statement=st.Do, handler=inner.do, rights=Asks(Asked.do), begin=begin_routine),
)
