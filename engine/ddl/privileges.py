"""Who may do what, as long as there is no GRANT (the rules of ``planner.builtins.system_privileges``).

    superusers    everything
    owners        everything on what they own, and creating in their own schemas and their temporary one
    everybody     reading catalog relations, except those that show secrets; using public (not creating in it)

A view's owner needs the right to read what the view reads; who reads the view needs only the view (manual 41.5).
``check`` is asked once per statement and state of the catalog: plans remember that they passed.

Not looked at: names in error messages still tell that an object exists, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.catalog.state import CatalogSnapshot
from engine.connection.session import Session
from engine.reads.plans import Replan
from engine.sources import guard
from engine.transaction.time_travel import catalog_at
from planner import query as q
from planner import statements as st
from planner.builtins.system_privileges import PUBLIC_SCHEMAS, readable_by_all
from planner.catalog import RelationDef, RoleDef, SchemaDef
from planner.errors import SqlError
from planner.walk import children

if TYPE_CHECKING:
    from engine.reads.plans import Plan

_KINDS = {"r": "table", "v": "view", "m": "materialized view", "i": "index", "S": "sequence"}


def permitted(session: Session, plan: Plan) -> bool:
    """Tell whether ``plan`` passed ``check`` for this user under this catalog."""
    return plan.permitted == (session.catalog.version, session.derived.user)


def check(session: Session, plan: Plan) -> None:
    """Raise SqlError 42501, in PostgreSQL's words, unless the current user may run the statement."""
    key = (session.catalog.version, session.derived.user)
    if plan.permitted == key:
        return
    role = session.catalog.role(session.derived.user)
    if role is None:
        raise SqlError("42704", f'role "{session.derived.user}" does not exist')
    if not role.superuser:
        statement = plan.bound.statement
        if plan.as_of is not None and isinstance(statement, st.CreateTable) and statement.query is not None:
            # what it is made of may be gone by now
            _Check(session, role, catalog_at(session, plan.as_of)).query(statement.query, role)
            statement = replace(statement, query=None)
        _Check(session, role, session.catalog).statement(statement)
    guard.refuse(session.catalog, plan.bound.statement)
    plan.permitted = key


class _Check:
    """The checks for one role that is no superuser."""

    def __init__(self, session: Session, role: RoleDef, catalog: CatalogSnapshot) -> None:
        self.session = session
        self.catalog = catalog
        self.role = role

    def statement(self, statement: Any) -> None:
        """Check a statement of any kind; what is not listed is allowed to everybody."""
        match statement:
            case st.QueryStatement() | st.DeclareCursor() | st.Subscribe() | st.CreateSubscription():
                self.query(statement.query, self.role)
            case q.Insert() | q.Update() | q.Delete() | q.Merge():
                self._change(statement.table)
                self.query(statement, self.role)
            case st.WithChanges():
                for part in statement.parts:
                    self.statement(part)
            case st.DeclareSubscribe():
                self.statement(statement.subscribe)
            case st.Copy() if statement.subscribe is not None:
                self.statement(statement.subscribe)
            case st.Explain():
                self.statement(statement.body.statement)
            case st.Copy():
                self._copy(statement)
            case st.CreateView():
                self._create_in(statement.schema)
            case st.CreateSequence():
                self._create_in(statement.schema)
                if statement.owned_by is not None and statement.owned_by[0]:
                    self._own(self._relation(statement.owned_by[0]))
            case st.AlterSequence():
                self._own(self._relation(statement.sequence))
            case st.CreateTable():
                self._create_in(statement.schema)
                if statement.query is not None:
                    self.query(statement.query, self.role)
            case st.CreateMaterializedView():
                self._create_in(statement.schema)
                self.query(statement.query, self.role)
            case st.RefreshMaterializedView():
                self._own(self._relation(statement.table))
                self.query(statement.query, self.role)
            case st.CreateSchema():
                raise _denied("database", self.session.database)
            case st.CreateIndex() | st.AlterTable():
                relation = self._relation(statement.table)
                self._own(relation)
                if isinstance(statement, st.AlterTable):
                    self._alter(relation, statement)
                else:
                    self._create_in(relation.schema)
            case st.AlterSchemaOwner():
                self._own_schema(self.catalog.schema(statement.schema))
                self._member(statement.role)
            case st.Rename():
                self._rename(statement)
            case st.Drop():
                self._drop(statement)
            case st.Truncate() | st.LockTable():
                for oid in statement.tables:
                    self._change(oid)
            case st.Comment():
                self._comment(statement)
            case st.Maintenance() if statement.what == "checkpoint":
                raise SqlError(
                    "42501", "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT"
                )

    # -- rows --------------------------------------------------------------------------------------

    def query(self, node: Any, role: RoleDef) -> None:
        """Check everything that a tree reads; inside a view its owner's rights count."""
        stack = [node]
        while stack:
            current = stack.pop()
            if isinstance(current, q.RelationRange):
                self._read(self._relation(current.oid), role)
            elif isinstance(current, q.SubqueryRange) and current.view is not None:
                view = self._relation(current.view[0])
                self._read(view, role)
                owner = self.catalog.role_by_oid(view.owner)
                if owner is not None and not owner.superuser:
                    self.query(current.query, owner)
                continue
            stack.extend(children(current))

    def _read(self, relation: RelationDef, role: RoleDef) -> None:
        if relation.virtual:
            if not readable_by_all(relation):
                raise _denied(_KINDS[relation.kind], relation.name)
            return
        if role is self.role:
            self._use(relation.schema)
        if relation.owner != role.oid:
            raise _denied(_KINDS[relation.kind], relation.name)

    def _change(self, oid: int) -> None:
        relation = self._relation(oid)
        self._use(relation.schema)
        if relation.owner != self.role.oid:
            raise _denied(_KINDS[relation.kind], relation.name)

    def _copy(self, statement: st.Copy) -> None:
        if statement.query is not None:
            self.query(statement.query, self.role)
        elif statement.is_from:
            self._change(statement.table)
        else:
            self._read(self._relation(statement.table), self.role)

    # -- definitions -------------------------------------------------------------------------------

    def _alter(self, relation: RelationDef, statement: st.AlterTable) -> None:
        for action in statement.actions:
            if isinstance(action, st.AlterOwner):
                self._member(action.role)
                self._create_in(relation.schema)
            elif isinstance(action, st.SetSchema):
                self._create_in(action.schema)

    def _member(self, name: str) -> None:
        if name != self.role.name and self.catalog.role(name) is not None:
            raise SqlError("42501", f'must be member of role "{name}"')

    def _rename(self, statement: st.Rename) -> None:
        if statement.what == "role":
            if not self.role.create_role:
                raise SqlError("42501", "permission denied to rename role")
        elif statement.what == "schema":
            self._own_schema(self.catalog.schema(statement.old))
            raise _denied("database", self.session.database)
        else:
            relation = self._relation(statement.relation)
            self._own(relation)
            if statement.what == "relation":
                self._create_in(relation.schema)

    def _drop(self, statement: st.Drop) -> None:
        for schema, name in statement.names:
            if statement.what == "schema":
                self._own_schema(self.catalog.schema(name))
                continue
            if schema == "pg_temp":
                schema = self.session.temp_schema
            for entry in [schema] if schema else self.session.search_path:
                relation = self.catalog.relation(entry, name)
                if relation is not None:
                    holder = self.catalog.schema(relation.schema)
                    if holder is None or holder.owner != self.role.oid:
                        self._own(relation)
                    break

    def _comment(self, statement: st.Comment) -> None:
        relation = self.catalog.relation_by_oid(statement.object_oid)
        if relation is not None:
            self._own(relation)
            return
        schema = self.catalog.schema_by_oid(statement.object_oid)
        if schema is not None:
            self._own_schema(schema)
            return
        constraint = self.catalog.constraint_by_oid(statement.object_oid)
        if constraint is not None:
            self._own(constraint[0])
        elif not self.role.create_role:
            raise SqlError("42501", "must have CREATEROLE privilege")

    def _own(self, relation: RelationDef) -> None:
        if relation.owner != self.role.oid:
            raise SqlError("42501", f"must be owner of {_KINDS[relation.kind]} {relation.name}")

    def _own_schema(self, schema: SchemaDef | None) -> None:
        if schema is not None and schema.owner != self.role.oid:
            raise SqlError("42501", f"must be owner of schema {schema.name}")

    # -- schemas -----------------------------------------------------------------------------------

    def _use(self, name: str) -> None:
        schema = self.catalog.schema(name)
        if name not in PUBLIC_SCHEMAS and not self._has_all(schema):
            raise _denied("schema", name)

    def _create_in(self, name: str) -> None:
        if name != "pg_temp" and not self._has_all(self.catalog.schema(name)):
            raise _denied("schema", name)

    def _has_all(self, schema: SchemaDef | None) -> bool:
        """Own schemas, the own temporary one, and one that is not there (its absence is another error)."""
        return schema is None or schema.owner == self.role.oid or schema.name == self.session.temp_schema

    def _relation(self, oid: int) -> RelationDef:
        relation = self.catalog.relation_by_oid(oid)
        if relation is None:
            raise Replan  # dropped since the plan was made
        return relation


def maintainable(session: Session, oids: Sequence[int], what: str) -> list[int]:
    """Return those of ``oids`` that VACUUM, ANALYZE ... may work on; a WARNING names each of the others."""
    role = session.catalog.role(session.derived.user)
    kept = []
    for oid in oids:
        relation = session.catalog.relation_by_oid(oid)
        if relation is None or role is None:
            continue
        if role.superuser or relation.owner == role.oid:
            kept.append(oid)
        else:
            session.warning(
                f'skipping "{relation.name}" --- only table or database owner can {what} it', "01000"
            )
    return kept


def _denied(kind: str, name: str) -> SqlError:
    return SqlError("42501", f"permission denied for {kind} {name}")
