"""The session itself: its settings, prepared statements, cursors and channels, its transaction."""

from __future__ import annotations

from typing import Final

from engine.definitions.needs.rights import ACCESS, Asked, Asks, Elsewhere, Nothing
from engine.session.spec import StatementSpec
from engine.statements import block, cursors, inner, session
from engine.statements.begin import begin_reading, by_handler
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    StatementSpec(
        statement=st.SetVariable,
        handler=session.set_variable,
        rights=Elsewhere(
            "engine.base.settings:Settings.check", "it is asked of set_config() and of options, too"
        ),
        begin=by_handler,
        rests=False,
        of_dropped_roles=True,
    ),
    StatementSpec(
        statement=st.ShowVariable,
        handler=session.show,
        rights=Elsewhere("engine.session.session:Session.setting", "it is asked of current_setting(), too"),
        begin=by_handler,
        rests=False,
    ),
    StatementSpec(
        statement=st.Discard,
        handler=session.discard,
        rights=Nothing("the session's own objects"),
        begin=by_handler,
        rests=False,
        of_dropped_roles=True,
    ),
    StatementSpec(
        statement=st.Load, handler=session.load, rights=Asks(Asked.load), begin=by_handler, rests=False
    ),
    StatementSpec(
        statement=st.Skip,
        handler=session.skip,
        rights=Nothing("it does nothing but say so"),
        begin=by_handler,
    ),
    StatementSpec(
        statement=st.Notify,
        handler=session.notify,
        rights=Nothing("channels are everybody's in their database"),
        begin=by_handler,
    ),
    StatementSpec(
        statement=st.Prepare,
        handler=session.prepare,
        rights=Nothing("the statement is asked about when it is executed"),
        begin=by_handler,
        rests=False,
    ),
    StatementSpec(
        statement=st.ExecutePrepared,
        handler=inner.execute,
        rights=Nothing(
            "the statement that it names is asked about, as who executes it; functions in its arguments as of any call"
        ),
        begin=by_handler,
        stands_for_another=True,
    ),
    StatementSpec(
        statement=st.Deallocate,
        handler=session.deallocate,
        rights=Nothing("the session's own prepared statements"),
        begin=by_handler,
        rests=False,
    ),
    StatementSpec(
        statement=st.DeclareCursor,
        handler=cursors.declare,
        rights=Asks(Asked.declare_cursor, ACCESS),
        begin=begin_reading,
    ),
    StatementSpec(
        statement=st.Fetch,
        handler=cursors.fetch,
        rights=Nothing("the session's own cursors, whose queries were asked about"),
        begin=by_handler,
    ),
    StatementSpec(
        statement=st.CloseCursor,
        handler=cursors.close,
        rights=Nothing("the session's own cursors"),
        begin=by_handler,
        rests=False,
    ),
    StatementSpec(
        statement=st.SetConstraints,
        handler=block.set_constraints,
        rights=Nothing("when the transaction's own checks are made"),
        begin=by_handler,
        rests=False,
    ),
    StatementSpec(
        statement=st.Transaction,
        handler=block.transaction,
        rights=Nothing("the session's own transaction"),
        begin=by_handler,
        rests=False,
        when_failed=True,
        of_dropped_roles=True,
    ),
    StatementSpec(
        statement=st.SetTransaction,
        handler=block.set_transaction,
        rights=Nothing("the session's own transaction; a snapshot has a name that nobody guesses"),
        begin=by_handler,
        rests=False,
    ),
)
