"""Sources and subscriptions, which PostgreSQL does not have."""

from __future__ import annotations

from typing import Final

from engine.definitions.locks import forms, of_objects
from engine.definitions.needs.rights import ACCESS, Asked, Asks
from engine.feeds.sources import statements as sources
from engine.feeds.subscriptions import named_statements, subscribe
from engine.session.spec import StatementSpec
from engine.statements.begin import by_handler
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    StatementSpec(
        statement=st.Subscribe,
        handler=subscribe.run_subscribe,
        rights=Asks(Asked.subscribe, ACCESS),
        begin=by_handler,
    ),
    StatementSpec(
        statement=st.DeclareSubscribe,
        handler=subscribe.declare,
        rights=Asks(Asked.declare_subscribe, ACCESS),
        begin=by_handler,
    ),
    StatementSpec(
        statement=st.CreateSubscription,
        handler=named_statements.create,
        rights=Asks(Asked.create_subscription, ACCESS),
        begin=by_handler,
    ),
    StatementSpec(
        statement=st.AcknowledgeSubscription,
        handler=named_statements.acknowledge,
        rights=Asks(Asked.acknowledge_subscription),
        begin=by_handler,
    ),
    StatementSpec(
        statement=st.DropSubscription,
        handler=named_statements.drop,
        rights=Asks(Asked.drop_subscription),
        begin=by_handler,
    ),
    StatementSpec(
        statement=st.CreateSource,
        handler=sources.create,
        rights=Asks(Asked.create_source),
        begin=by_handler,
        locks=forms.all_databases,
    ),
    StatementSpec(
        statement=st.AlterSource,
        handler=sources.alter,
        rights=Asks(Asked.alter_source),
        begin=by_handler,
        locks=of_objects.alter_source,
    ),
    StatementSpec(
        statement=st.DropSource,
        handler=sources.drop,
        rights=Asks(Asked.drop_source),
        begin=by_handler,
        locks=forms.all_databases,
    ),
)
