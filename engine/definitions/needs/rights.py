"""Who may do what: a row for each class of bound statements.

    Asks(Asked.truncate, ...)       a function from (a role, a statement) that raises SqlError 42501
    Elsewhere("engine.definitions.grant:run_grant", why)    is asked where the statement runs, for a reason
    Nothing(why)                    everybody may, for a reason

A class without a row fails when this module is imported, and so do kinds of objects and actions of ALTER TABLE in the tables beside it,
and ranges and queries in that of ``row_needs``; nothing is allowed because nobody thought of it.
``tests/rights/test_walk.py`` walks all rows beside what PostgreSQL answers.

What functions a statement calls is asked for whatever class it is of (``Needs.call``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from engine.definitions.grant import refuse_strangers
from engine.definitions.needs.comment import CommentNeeds
from engine.definitions.needs.shared import SharedNeeds
from planner import query as q
from planner import statements as st
from planner.base.errors import SqlError
from planner.base.total import members, total
from planner.query.exprs import columns_named

if TYPE_CHECKING:
    from engine.session.session import Session


class Asked(CommentNeeds, SharedNeeds):
    """All that may be asked of a role."""

    def statement(self, statement: st.Statement) -> None:
        """Ask what the row of a statement's class says. Raises SqlError 42501, and 25001 where a statement may not stand in a block."""
        row = RIGHTS[type(statement)]
        if isinstance(row, Asks):
            row.ask(self, statement)

    def with_changes(self, statement: st.WithChanges) -> None:
        """What each of its parts asks."""
        for part in statement.parts:
            self.statement(part)

    def copy(self, statement: st.Copy) -> None:
        """pg_read_server_files or pg_write_server_files for files; INSERT on the columns of a table, SELECT on those that WHERE names; SELECT; or what is written in its place asks."""
        if statement.filename is not None:
            self._touch_files(reading=statement.is_from)
        if statement.query is not None:
            self.query(statement.query, self.role)
        elif statement.subscribe is not None:
            self.subscribe(statement.subscribe)
        elif statement.change is not None:
            self.statement(statement.change)
        else:
            letter = "a" if statement.is_from else "r"
            relation = self._used(statement.table)
            self._have_columns(relation, statement.attnums, letter)
            if statement.where is not None and (read := columns_named(statement.where)):
                self._have_columns(relation, read, "r")

    def declare_subscribe(self, statement: st.DeclareSubscribe) -> None:
        """What its SUBSCRIBE asks."""
        self.subscribe(statement.subscribe)

    def grant(self, statement: st.Grant) -> None:
        """To hold something to grant, or some other privilege: which part of it is granted, and as whom, is decided as it runs."""
        refuse_strangers(self.session, statement)

    def explain(self, statement: st.Explain) -> None:
        """What the statement asks, which may run; also what a query reads that is planned alone: WITH NO DATA."""
        inner = statement.body.asked or statement.body.statement
        self.statement(inner)
        if isinstance(inner, st.CreateTable | st.CreateMaterializedView) and inner.query is not None:
            self.query(inner.query, self.role)


_Ask: TypeAlias = Callable[[Asked, Any], None]
_Named: TypeAlias = Callable[[Any], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Asks:
    """A class of which ``ask`` raises SqlError 42501 for who may not.

    ``others``: what is done to temporary tables of other sessions, by PostgreSQL's word, where that is refused to everybody; ``named``: which
    tables these are, None: those whose rows are read or written.
    """

    ask: _Ask
    others: str = ""
    named: _Named | None = None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A class that is asked about where it runs: ``at`` a function, ``module:name``; why not here."""

    at: str
    why: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """A class that everybody may run; why."""

    why: str


Row: TypeAlias = Asks | Elsewhere | Nothing


def _table(statement: Any) -> Sequence[int]:
    return (statement.table,)


def _maintained(statement: st.Maintenance) -> Sequence[int]:
    return statement.relations if statement.what in ("reindex", "cluster") else ()


_ACCESS: Final = "access"
_READS: Final = Asks(Asked.query_statement, _ACCESS)
_CHANGES: Final = Asks(Asked.change_rows, _ACCESS)

RIGHTS: Final[Mapping[type, Row]] = total(
    "rights of statements",
    members(st.Statement),
    {
        # rows
        st.QueryStatement: _READS,
        st.DeclareCursor: Asks(Asked.declare_cursor, _ACCESS),
        q.Insert: _CHANGES,
        q.Update: _CHANGES,
        q.Delete: _CHANGES,
        q.Merge: _CHANGES,
        st.WithChanges: Asks(Asked.with_changes, _ACCESS),
        st.Copy: Asks(Asked.copy, _ACCESS),
        st.Explain: Asks(Asked.explain, _ACCESS),
        st.Truncate: Asks(Asked.truncate, "truncate", lambda statement: statement.tables),
        st.LockTable: Asks(Asked.lock_table),
        st.MarkConstraints: Asks(Asked.mark_constraints),
        # tables, views, sequences, and what belongs to them
        st.CreateTable: Asks(Asked.create_table, _ACCESS),
        st.AlterTable: Asks(Asked.alter_table, "alter", _table),
        st.CreateIndex: Asks(Asked.create_index, "create indexes on", _table),
        st.CreateView: Asks(Asked.create_view),
        st.CreateMaterializedView: Asks(Asked.create_materialized_view, _ACCESS),
        st.RefreshMaterializedView: Asks(Asked.refresh, _ACCESS),
        st.CreateSequence: Asks(Asked.create_sequence),
        st.AlterSequence: Asks(Asked.alter_sequence, _ACCESS, lambda statement: (statement.sequence,)),
        st.CreateTrigger: Asks(Asked.create_trigger),
        st.RenameTrigger: Asks(Asked.change_part),
        st.DropTrigger: Asks(Asked.drop_part),
        st.CreatePolicy: Asks(Asked.change_part),
        st.AlterPolicy: Asks(Asked.change_part),
        st.RenamePolicy: Asks(Asked.change_part),
        st.DropPolicy: Asks(Asked.drop_part),
        st.Rename: Asks(Asked.rename),
        st.Drop: Asks(Asked.drop),
        st.Comment: Asks(Asked.comment),
        st.Maintenance: Asks(Asked.maintain, "{what}", _maintained),
        # schemas, types, functions, text search
        st.CreateSchema: Asks(Asked.create_schema),
        st.AlterSchemaOwner: Asks(Asked.give_schema),
        st.CreateEnum: Asks(Asked.create_enum),
        st.CreateRange: Asks(Asked.create_range),
        st.CreateComposite: Asks(Asked.create_composite),
        st.AlterComposite: Asks(Asked.alter_composite),
        st.AddEnumValue: Asks(Asked.change_type),
        st.RenameEnumValue: Asks(Asked.change_type),
        st.CreateDomain: Asks(Asked.create_domain),
        st.SetDomainDefault: Asks(Asked.change_type),
        st.SetDomainNotNull: Asks(Asked.change_type),
        st.AddDomainCheck: Asks(Asked.change_type),
        st.DropDomainConstraint: Asks(Asked.change_type),
        st.ValidateDomainConstraint: Asks(Asked.change_type),
        st.RenameDomainConstraint: Asks(Asked.change_type),
        st.AlterType: Asks(Asked.alter_type),
        st.DropType: Asks(Asked.drop_type),
        st.CreateFunction: Asks(Asked.create_function),
        st.CreateAggregate: Asks(Asked.create_aggregate),
        st.AlterFunction: Asks(Asked.alter_function),
        st.DropFunction: Asks(Asked.drop_function),
        st.Call: Nothing("EXECUTE of the procedure is asked for as of any call; arguments read no tables"),
        st.Do: Asks(Asked.do),
        st.CreateConfiguration: Asks(Asked.create_text_search),
        st.CreateDictionary: Asks(Asked.create_text_search),
        st.AlterMapping: Asks(Asked.alter_mapping),
        st.AlterDictionary: Asks(Asked.alter_dictionary),
        st.AlterTextSearch: Asks(Asked.alter_text_search),
        st.DropTextSearch: Asks(Asked.drop_text_search),
        st.CreateStatistics: Asks(Asked.create_statistics),
        st.AlterStatistics: Asks(Asked.alter_statistics),
        st.DropStatistics: Asks(Asked.drop_statistics),
        st.CreateWrapper: Asks(Asked.create_wrapper),
        st.AlterWrapper: Asks(Asked.alter_wrapper),
        st.CreateServer: Asks(Asked.create_server),
        st.AlterServer: Asks(Asked.alter_server),
        st.CreateUserMapping: Asks(Asked.change_mapping),
        st.AlterUserMapping: Asks(Asked.change_mapping),
        st.DropUserMapping: Asks(Asked.drop_mapping),
        st.AlterForeign: Asks(Asked.alter_foreign),
        st.DropForeign: Asks(Asked.drop_foreign),
        st.ImportForeignSchema: Asks(Asked.import_schema),
        st.CreateConversion: Asks(Asked.create_conversion),
        st.AlterConversion: Asks(Asked.alter_conversion),
        st.DropConversion: Asks(Asked.drop_conversion),
        st.CreateCollation: Asks(Asked.create_collation),
        st.AlterCollation: Asks(Asked.alter_collation),
        st.DropCollation: Asks(Asked.drop_collation),
        st.CreateOpfamily: Asks(Asked.create_opfamily),
        st.CreateOpclass: Asks(Asked.create_opclass),
        st.ChangeOpfamily: Asks(Asked.change_opfamily),
        st.AlterOpclass: Asks(Asked.alter_opclass),
        st.DropOpclass: Asks(Asked.drop_opclass),
        # roles, databases, and what they hold
        st.RoleStatement: Asks(Asked.role_statement),
        st.GrantRole: Asks(Asked.grant_role),
        st.Grant: Asks(Asked.grant),
        st.AlterDefaultPrivileges: Asks(Asked.alter_default_privileges),
        st.ReassignOwned: Asks(Asked.reassign_owned),
        st.DropOwned: Asks(Asked.drop_owned),
        st.AlterDefaults: Asks(Asked.alter_defaults),
        st.CreateDatabase: Asks(Asked.create_database),
        st.AlterDatabase: Asks(Asked.alter_database),
        st.DropDatabase: Asks(Asked.drop_database),
        st.CreateExtension: Asks(Asked.create_extension),
        st.AlterExtension: Asks(Asked.alter_extension),
        st.DropExtension: Asks(Asked.drop_extension),
        st.AlterLargeObject: Elsewhere(
            "engine.session.large_objects.statements:alter_owner", "who owns it is read with its row"
        ),
        # PostgreSQL has none of these
        st.Subscribe: Asks(Asked.subscribe, _ACCESS),
        st.DeclareSubscribe: Asks(Asked.declare_subscribe, _ACCESS),
        st.CreateSubscription: Asks(Asked.create_subscription, _ACCESS),
        st.AcknowledgeSubscription: Asks(Asked.acknowledge_subscription),
        st.DropSubscription: Asks(Asked.drop_subscription),
        st.CreateSource: Asks(Asked.create_source),
        st.AlterSource: Asks(Asked.alter_source),
        st.DropSource: Asks(Asked.drop_source),
        st.CreateTimeline: Asks(Asked.create_timeline),
        st.DropTimeline: Asks(Asked.drop_timeline),
        # the session itself
        st.SetVariable: Elsewhere(
            "engine.base.settings:Settings.check", "it is asked of set_config() and of options, too"
        ),
        st.ShowVariable: Elsewhere(
            "engine.session.session:Session.setting", "it is asked of current_setting(), too"
        ),
        st.Prepare: Nothing("the statement is asked about when it is executed"),
        st.ExecutePrepared: Nothing(
            "the statement that it names is asked about, as who executes it; functions in its arguments as of any call"
        ),
        st.Fetch: Nothing("the session's own cursors, whose queries were asked about"),
        st.CloseCursor: Nothing("the session's own cursors"),
        st.Deallocate: Nothing("the session's own prepared statements"),
        st.Load: Asks(Asked.load),
        st.RefreshCollation: Asks(Asked.refresh_collation),
        st.Discard: Nothing("the session's own objects"),
        st.SetConstraints: Nothing("when the transaction's own checks are made"),
        st.Transaction: Nothing("the session's own transaction"),
        st.SetTransaction: Nothing(
            "the session's own transaction; a snapshot has a name that nobody guesses"
        ),
        st.Notify: Nothing("channels are everybody's in their database"),
        st.Skip: Nothing("it does nothing but say so"),
    },
)


def refuse_others_temporaries(session: Session, bound: st.BoundStatement) -> None:
    """Raise SqlError 0A000 for temporary tables of other sessions, be the user a superuser: what is in them is no business of this one."""
    row = RIGHTS[type(bound.statement)]
    if not isinstance(row, Asks) or not row.others:
        return
    oids = bound.reads | bound.writes if row.named is None else row.named(bound.statement)
    for oid in oids:
        relation = session.catalog.relation_by_oid(oid)
        if relation is not None and session.is_others_temporary(relation):
            what = row.others.format(what=getattr(bound.statement, "what", ""))
            raise SqlError("0A000", f"cannot {what} temporary tables of other sessions")
