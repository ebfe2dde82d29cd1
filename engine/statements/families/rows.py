"""Queries, changes of rows, COPY, EXPLAIN and what is done to stored tables."""

from __future__ import annotations

from typing import Final

from engine.changes.writes.dml import run_insert
from engine.changes.writes.merge import run_merge
from engine.changes.writes.update_delete import run_delete, run_update
from engine.changes.writes.with_changes import run_with_changes
from engine.definitions.dropping import drop
from engine.definitions.locks import forms, of_relations
from engine.definitions.needs.rights import ACCESS, Asked, Asks, maintained
from engine.definitions.table import constraint_marks
from engine.session.spec import StatementSpec
from engine.statements import copy, explain, query
from engine.statements.begin import begin_copy, begin_query, begin_reading, by_handler
from engine.statements.families.definition import definition
from engine.statements.lock_table import lock_table
from engine.statements.maintenance import maintain
from planner import query as q
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    StatementSpec(
        statement=st.QueryStatement,
        handler=query.query,
        rights=Asks(Asked.query_statement, ACCESS),
        begin=begin_query,
    ),
    StatementSpec(
        statement=q.Insert, handler=run_insert, rights=Asks(Asked.change_rows, ACCESS), begin=by_handler
    ),
    StatementSpec(
        statement=q.Update, handler=run_update, rights=Asks(Asked.change_rows, ACCESS), begin=by_handler
    ),
    StatementSpec(
        statement=q.Delete, handler=run_delete, rights=Asks(Asked.change_rows, ACCESS), begin=by_handler
    ),
    StatementSpec(
        statement=q.Merge, handler=run_merge, rights=Asks(Asked.change_rows, ACCESS), begin=by_handler
    ),
    StatementSpec(
        statement=st.WithChanges,
        handler=run_with_changes,
        rights=Asks(Asked.with_changes, ACCESS),
        begin=by_handler,
    ),
    StatementSpec(
        statement=st.Copy, handler=copy.run_copy, rights=Asks(Asked.copy, ACCESS), begin=begin_copy
    ),
    StatementSpec(
        statement=st.Explain,
        handler=explain.run_explain,
        rights=Asks(Asked.explain, ACCESS),
        begin=begin_reading,
    ),
    definition(
        st.Truncate,
        drop.truncate,
        Asks(Asked.truncate, "truncate", lambda statement: statement.tables),
        of_relations.truncate,
    ),
    StatementSpec(
        statement=st.LockTable, handler=lock_table, rights=Asks(Asked.lock_table), begin=by_handler
    ),
    definition(st.MarkConstraints, constraint_marks.mark, Asks(Asked.mark_constraints), forms.found_later),
    StatementSpec(
        statement=st.Maintenance,
        handler=maintain,
        rights=Asks(Asked.maintain, "{what}", maintained),
        begin=by_handler,
    ),
)
