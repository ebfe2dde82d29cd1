"""Who may do what: a statement against the rights of its user (``planner.rights``).

    rows           SELECT, INSERT, UPDATE, DELETE, TRUNCATE on tables, or on the columns that a statement names
    definitions    an owner's alone; CREATE and USAGE on schemas, CREATE and TEMPORARY on the database

Here is which statement needs what; ``engine.ddl.row_needs`` and ``engine.ddl.definition_needs`` say what that is.
``check`` is asked once per statement and state of the catalog: plans remember that they passed.

Not looked at: names in error messages still tell that an object exists, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.catalog.stored import key_of
from engine.catalog.todays_rights import with_rights_of
from engine.connection.session import Session
from engine.ddl.definition_needs import DefinitionNeeds
from engine.ddl.needs import denied
from engine.ddl.row_needs import RowNeeds
from engine.reads.plans import Replan
from engine.sources import guard
from engine.transaction.time_travel import catalog_at
from planner import query as q
from planner import statements as st
from planner.catalog.policy import security_of
from planner.errors import SqlError
from planner.rights import Rights, database_owner
from planner.typefacts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.reads.plans import Plan


_EVERYBODYS: Final = (st.SetVariable, st.Transaction, st.Discard)
"""What even the sessions of a role may run that has been dropped: RESET ROLE is the way out for those that can become another."""


def permitted(session: Session, plan: Plan) -> bool:
    """Tell whether ``plan`` passed ``check`` for this user under this catalog, where triggers fire as they do now."""
    return plan.permitted == _key(session)


def _key(session: Session) -> tuple[int, int, int, bool, bool]:
    """Return what it depends on whether a statement may run as it was planned."""
    derived = session.derived
    seen, latest = session.view.catalog.version, session.space.catalog.version
    return seen, latest, derived.user, derived.replica, derived.row_security


def check(session: Session, plan: Plan) -> None:
    """Raise SqlError 42501, in PostgreSQL's words, unless the current user may run the statement."""
    key = _key(session)
    if plan.permitted == key:
        return
    if isinstance(plan.bound.statement, _EVERYBODYS):
        return
    _check_row_security(session, plan)
    plan.dml = (
        None  # what was compiled for DML knows which columns the user may see in errors, and what it fires
    )
    role = session.role
    if not role.superuser or _reads_as_others(session, plan):
        statement = plan.bound.statement
        if plan.as_of is not None and isinstance(statement, st.CreateTable) and statement.query is not None:
            # what it is made of may be gone by now
            then = with_rights_of(session.today, catalog_at(session, plan.as_of))
            _Check(session, role, then).query(statement.query, role)
            statement = replace(statement, query=None)
        checker = _Check(session, role, session.rights_catalog)
        checker.call(plan.bound.functions, statement)
        checker.statement(statement)
    guard.refuse(session.catalog, plan.bound.statement)
    plan.permitted = key


def _reads_as_others(session: Session, plan: Plan) -> bool:
    """Tell whether views or aggregates of owners who may not do everything stand in a statement, whoever runs it."""
    catalog = session.rights_catalog
    for oid in plan.bound.functions:
        function = catalog.function_by_oid(oid)
        if function is not None and function.kind == "a":
            owner = catalog.role_by_oid(function.owner)
            if owner is not None and not owner.superuser:
                return True
    for oid, _version in plan.bound.versions:
        relation = catalog.relation_by_oid(oid)
        if relation is not None and relation.kind in "vm":
            owner = catalog.role_by_oid(relation.owner)
            if owner is not None and not owner.superuser:
                return True
    return False


def _check_row_security(session: Session, plan: Plan) -> None:
    """Raise Replan for a plan that was made for other policies, 42501 where those of the past are not those of now."""
    if plan.bound.row_security not in (None, session.row_security.key):
        raise Replan
    seen, latest = session.catalog, session.space.catalog
    if plan.as_of is not None and isinstance(plan.bound.statement, st.CreateTable):
        seen = catalog_at(session, plan.as_of)  # its query is of then, the rest of now
    if seen.version == latest.version:
        return
    own = session.view.own_changes
    for oid, _version in plan.bound.versions:
        now, then = latest.relation_by_oid(oid), seen.relation_by_oid(oid)
        if now is None or then is None or security_of(now) == security_of(then) or key_of(now) in own:
            continue
        if session.row_security_counts(now):
            raise SqlError(
                "42501",
                f'row-level security of table "{now.name}" has changed since the time that is read',
                hint="Begin another transaction, or read a later time.",
            )


class _Check(RowNeeds, DefinitionNeeds):
    """The checks for one role that is no superuser."""

    def statement(self, statement: Any) -> None:
        """Check a statement of any kind; what is not listed is allowed to everybody."""
        match statement:
            case st.QueryStatement() | st.DeclareCursor() | st.Subscribe() | st.CreateSubscription():
                self.query(statement.query, self.role)
            case q.Insert() | q.Update() | q.Delete() | q.Merge():
                self._write(statement)
            case st.WithChanges():
                for part in statement.parts:
                    self.statement(part)
            case st.DeclareSubscribe():
                self.statement(statement.subscribe)
            case st.Copy() if statement.subscribe is not None:
                self.statement(statement.subscribe)
            case st.Copy() if statement.change is not None:
                self.statement(statement.change)
            case st.Explain():
                self.statement(statement.body.statement)
            case st.Copy():
                self._copy(statement)
            case st.CreateView():
                self._create_view(statement)
            case st.CreateSequence():
                self._create_in(statement.schema)
                if statement.owned_by is not None and statement.owned_by[0]:
                    self._own(self._relation(statement.owned_by[0]))
            case st.AlterSequence():
                self._own(self._relation(statement.sequence))
            case st.CreateTable():
                self._create_in(statement.schema)
                if statement.parent:
                    self._own(self._relation(statement.parent))
                self._like(statement.likes)
                self._use_types(statement.columns)
                self._refer(statement.foreign_keys)
                if statement.query is not None:
                    self.query(statement.query, self.role)
            case st.CreateMaterializedView():
                self._create_in(statement.schema)
                self.query(statement.query, self.role)
            case st.RefreshMaterializedView():
                view = self._relation(statement.table)
                self._own(view)
                owner = self.catalog.role_by_oid(view.owner) or self.role
                _Check(self.session, owner, self.catalog).query(statement.query, owner)
            case st.MarkConstraints():
                raise denied("table", "pg_constraint")
            case st.CreateSchema():
                self._create_schema(statement)
            case st.CreateIndex() | st.AlterTable():
                relation = self._relation(statement.table)
                self._own(relation)
                if isinstance(statement, st.AlterTable):
                    self._alter(relation, statement)
                else:
                    self._create_in(relation.schema)
            case st.CreateTrigger():
                self._have(self._relation(statement.table), "t")
                if statement.trigger.from_table:
                    self._have(self._relation(statement.trigger.from_table), "t")
                self.call(
                    [statement.trigger.function] if statement.trigger.function >= FIRST_USER_OID else ()
                )
            case st.RenameTrigger() | st.CreatePolicy() | st.AlterPolicy() | st.RenamePolicy():
                self._own(self._relation(statement.table))
            case st.DropTrigger() | st.DropPolicy():
                self._own_for_part(self._relation(statement.table))
            case st.AlterSchemaOwner():
                self._give_schema(statement)
            case st.Rename():
                self._rename(statement)
            case st.Drop():
                self._drop(statement)
            case st.CreateEnum() | st.CreateRange():
                self._create_in(statement.schema)
            case st.CreateComposite():
                self._create_in(statement.schema)
                for spec in statement.attributes:
                    self._use_type(spec.type.oid)
            case st.AlterComposite():
                self._own_type(self.catalog.type_by_oid(statement.type))
                for action in statement.actions:
                    if isinstance(action, st.AddAttribute | st.AlterAttribute):
                        self._use_type(action.attribute.type.oid)
            case st.CreateDomain():
                self._create_in(statement.schema)
                self._use_type(statement.base.oid)
            case (
                st.AddEnumValue() | st.RenameEnumValue() | st.SetDomainDefault() | st.SetDomainNotNull()
                | st.AddDomainCheck() | st.DropDomainConstraint() | st.ValidateDomainConstraint()
                | st.RenameDomainConstraint()
            ):  # fmt: skip
                self._own_type(self.catalog.type_by_oid(statement.type))
            case st.AlterType():
                self._alter_type(statement)
            case st.CreateFunction():
                self._create_in(statement.function.schema)
                self._replace_function(statement.replace, statement.function)
            case st.CreateAggregate():
                self._create_aggregate(statement)
            case st.AlterFunction():
                self._alter_function(statement)
            case st.DropFunction():
                for oid, name in zip(statement.functions, statement.names, strict=True):
                    self._drop_function(oid, name)
            case st.CreateConfiguration() | st.CreateDictionary():
                self._create_in(statement.schema)
            case st.AlterMapping():
                self._own_text_search(statement.configuration, statement.written)
            case st.AlterDictionary():
                self._own_text_search(statement.dictionary, statement.written)
            case st.AlterTextSearch():
                self._alter_text_search(statement)
            case st.DropTextSearch():
                for oid, written in statement.objects:
                    self._drop_text_search(oid, written)
            case st.DropType():
                for schema, name in statement.names:
                    self._drop_type(schema, name)
            case st.Truncate():
                self._truncate(statement)
            case st.LockTable():  # the rest is its own to say: outside of a block it is another error
                for oid in statement.tables:
                    self._use(self._relation(oid).schema)
            case st.Comment():
                self._comment(statement)
            case st.Maintenance():
                self._maintain(statement)


def maintainable(session: Session, oids: Sequence[int], what: str) -> list[int]:
    """Return those of ``oids`` that VACUUM and ANALYZE may work on; a WARNING names each of the others."""
    rights = Rights(session.catalog, session.role)
    every = rights.owns(database_owner(session.catalog, session.catalog.database))
    kept = []
    for oid in oids:
        relation = session.catalog.relation_by_oid(oid)
        if relation is None:
            continue
        if every or rights.owns(relation.owner):
            kept.append(oid)
        else:
            session.warning(
                f'skipping "{relation.name}" --- only table or database owner can {what} it', "01000"
            )
    return kept
