"""Who may do what: a statement against the rights of its user (``planner.rights``).

    rows           SELECT, INSERT, UPDATE, DELETE, TRUNCATE on tables, or on the columns that a statement names
    definitions    an owner's alone; CREATE and USAGE on schemas, CREATE and TEMPORARY on the database

A view's owner needs the right to read what the view reads; who reads the view needs only the view (manual 41.5).
``check`` is asked once per statement and state of the catalog: plans remember that they passed.

Not looked at: names in error messages still tell that an object exists, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.catalog.state import (
    PG_DATABASE_OID,
    PG_EXTENSION_OID,
    PG_LARGEOBJECT_OID,
    PG_POLICY_OID,
    PG_PROC_OID,
    PG_TRIGGER_OID,
    CatalogSnapshot,
    key_of,
)
from engine.connection.session import Session
from engine.ddl.kinds import KIND_WORDS
from engine.reads.plans import Replan
from engine.sources import guard
from engine.transaction.time_travel import catalog_at
from planner import query as q
from planner import statements as st
from planner.acl import memberships
from planner.catalog import FunctionDef, RelationDef, RoleDef, SchemaDef, TypeDef
from planner.catalog.policy import security_of
from planner.errors import SqlError
from planner.partition import column_map
from planner.rights import Rights
from planner.typefacts import FIRST_USER_OID
from planner.walk import children

if TYPE_CHECKING:
    from engine.reads.plans import Plan

_LEAKPROOF = "only superuser can define a leakproof function"


def permitted(session: Session, plan: Plan) -> bool:
    """Tell whether ``plan`` passed ``check`` for this user under this catalog, where triggers fire as they do now."""
    return plan.permitted == _key(session)


def _key(session: Session) -> tuple[int, int, str, bool, bool]:
    """Return what it depends on whether a statement may run as it was planned."""
    derived = session.derived
    seen, latest = session.view.catalog.version, session.space.catalog.version
    return seen, latest, derived.user, derived.replica, derived.row_security


def check(session: Session, plan: Plan) -> None:
    """Raise SqlError 42501, in PostgreSQL's words, unless the current user may run the statement."""
    key = _key(session)
    if plan.permitted == key:
        return
    _check_row_security(session, plan)
    plan.dml = (
        None  # what was compiled for DML knows which columns the user may see in errors, and what it fires
    )
    role = session.catalog.role(session.derived.user)
    if role is None:
        raise SqlError("42704", f'role "{session.derived.user}" does not exist')
    if not role.superuser:
        statement = plan.bound.statement
        if plan.as_of is not None and isinstance(statement, st.CreateTable) and statement.query is not None:
            # what it is made of may be gone by now
            _Check(session, role, catalog_at(session, plan.as_of)).query(statement.query, role)
            statement = replace(statement, query=None)
        checker = _Check(session, role, session.catalog)
        checker.call(plan.bound.functions)
        checker.calls = bool(plan.bound.functions)
        checker.statement(statement)
    guard.refuse(session.catalog, plan.bound.statement)
    plan.permitted = key


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


class _Check:
    """The checks for one role that is no superuser."""

    def __init__(self, session: Session, role: RoleDef, catalog: CatalogSnapshot) -> None:
        self.session = session
        self.catalog = catalog
        self.role = role
        self.rights = Rights(catalog, role)
        self.calls = False  # whether the statement holds bodies of users' functions

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
                self._create_in(statement.schema)
            case st.CreateSequence():
                self._create_in(statement.schema)
                if statement.owned_by is not None and statement.owned_by[0]:
                    self._own(self._relation(statement.owned_by[0]))
            case st.AlterSequence():
                self._own(self._relation(statement.sequence))
            case st.CreateTable():
                self._create_in(statement.schema)
                self._use_types(statement.columns)
                self._refer(statement.foreign_keys)
                if statement.query is not None:
                    self.query(statement.query, self.role)
            case st.CreateMaterializedView():
                self._create_in(statement.schema)
                self.query(statement.query, self.role)
            case st.RefreshMaterializedView():
                self._own(self._relation(statement.table))
                self.query(statement.query, self.role)
            case st.MarkConstraints():
                raise _denied("table", "pg_constraint")
            case st.CreateSchema():
                if not self.rights.database("C"):
                    raise _denied("database", self.session.database)
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
                self._own_schema(self.catalog.schema(statement.schema))
                self._member(statement.role)
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
                self._replace_function(statement)
            case st.AlterFunction():
                self._alter_function(statement)
            case st.DropFunction():
                for oid in statement.functions:
                    self._drop_function(oid)
            case st.DropType():
                for schema, name in statement.names:
                    self._drop_type(schema, name)
            case st.Truncate():
                for oid in statement.tables:
                    self._have(self._used(oid), "D")
            case st.LockTable():  # the rest is its own to say: outside of a block it is another error
                for oid in statement.tables:
                    self._use(self._relation(oid).schema)
            case st.Comment():
                self._comment(statement)
            case st.Maintenance() if statement.what == "checkpoint":
                raise SqlError(
                    "42501", "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT"
                )

    # -- rows --------------------------------------------------------------------------------------

    def query(self, node: Any, role: RoleDef, skip: q.Range | None = None) -> None:
        """Check everything that a tree reads; inside a view its owner's rights count. ``skip``: is checked elsewhere, but for what a view reads."""
        rights = self.rights if role is self.role else Rights(self.catalog, role)
        stack = [node]
        used: dict[
            int, frozenset[int]
        ] = {}  # which columns of a view are named, by the identity of its range
        while stack:
            current = stack.pop()
            if isinstance(current, q.RelationRange):
                if current is not skip:
                    asked = self._caller() if current.invoker else rights
                    of_parent = current.parent != 0
                    oid = current.parent if of_parent else current.oid
                    self._read(self._relation(oid), asked, current.asked if of_parent else current.used)
                if current.guard is not None:  # the columns that policies name need no right
                    stack.append(current.guard.where)
                continue
            if isinstance(current, q.SubqueryRange) and current.parent:
                if current is not skip:
                    asked = self._caller() if current.invoker else rights
                    self._read(self._relation(current.parent), asked, current.asked)
                continue
            if isinstance(current, q.SubqueryRange) and current.view is not None:
                view = self._relation(current.view[0])
                asked = self._caller() if current.invoker else rights
                if current is not skip:
                    self._read(view, asked, used.get(id(current), frozenset()))
                reader = self._caller_role() if current.invoker else role
                owner = reader if invokes(view) else self.catalog.role_by_oid(view.owner)
                if owner is not None and (self.calls or not owner.superuser):
                    self.query(current.query, owner)
                continue
            if isinstance(current, q.Select):
                for number, item in enumerate(current.ranges):
                    if isinstance(item, q.SubqueryRange) and item.view is not None:
                        named = _columns_of(current, number)
                        used[id(item)] = (
                            named if 0 not in named else frozenset(c.attnum for c in item.columns)
                        )
                for mark in current.row_marks:
                    marked = current.ranges[mark.range]
                    oid = marked.parent if isinstance(marked, q.RelationRange | q.SubqueryRange) else 0
                    if isinstance(marked, q.RelationRange) and not oid:
                        oid = marked.oid
                    if oid:
                        relation = self._relation(oid)
                        if not rights.columns(relation, (), "w"):
                            raise _denied(KIND_WORDS[relation.kind], relation.name)
            stack.extend(children(current))

    def _caller_role(self) -> RoleDef:
        """Return the role of the session, with whose rights the bodies of functions run, those in views too."""
        return self.catalog.role(self.session.derived.user) or self.role

    def _caller(self) -> Rights:
        caller = self._caller_role()
        return self.rights if caller is self.role else Rights(self.catalog, caller)

    def _read(self, relation: RelationDef, rights: Rights, attnums: Collection[int]) -> None:
        if rights is self.rights and not relation.virtual:
            self._use(relation.schema)
        if not rights.columns(relation, attnums, "r"):
            raise _denied(KIND_WORDS[relation.kind], relation.name)

    def _used(self, oid: int) -> RelationDef:
        """Return a relation whose schema the role may use."""
        relation = self._relation(oid)
        self._use(relation.schema)
        return relation

    def _have(self, relation: RelationDef, letters: str) -> None:
        if not self.rights.relation(relation, letters):
            raise _denied(KIND_WORDS[relation.kind], relation.name)

    def _have_columns(self, relation: RelationDef, attnums: Collection[int], letter: str) -> None:
        if not self.rights.columns(relation, attnums, letter):
            raise _denied(KIND_WORDS[relation.kind], relation.name)

    def _write(self, statement: q.Insert | q.Update | q.Delete | q.Merge) -> None:
        """Check what DML changes, and what it reads: of the target only the columns that its expressions name."""
        if not isinstance(statement, q.Merge) and statement.through is not None:
            self._through(statement, statement.through)
            return
        relation = self._used(statement.table)
        target: q.Range | None = None
        read: frozenset[int] | set[int] = frozenset()
        match statement:
            case q.Insert():
                self._have_columns(relation, statement.attnums, "a")
                if statement.on_conflict is not None and statement.on_conflict.action == "update":
                    assigned = [attnum for attnum, _ in statement.on_conflict.assignments]
                    self._have_columns(relation, assigned, "w")
                    read |= _columns_of(statement.on_conflict) | _columns_of(statement.on_conflict, 1)
                for arbiter in statement.on_conflict.arbiters if statement.on_conflict else ():
                    read |= {a for i in relation.indexes if i.oid == arbiter for a in i.attnums}
            case q.Update():
                self._have_columns(relation, statement.assigned, "w")
                target, read = _target(statement.source, relation)
            case q.Delete():
                self._have(relation, "d")
                target, read = _target(statement.source, relation)
            case q.Merge():
                target, read = _target(statement.source, relation)
                for action in statement.actions:
                    read |= _columns_of((action.condition, action.values)) & {c.attnum for c in relation.live}
                    if action.action == "delete":
                        self._have(relation, "d")
                    elif action.action != "nothing":
                        self._have_columns(
                            relation, action.assigned, "w" if action.action == "update" else "a"
                        )
                read = read or {c.attnum for c in relation.live}
        if target is not None and relation.kind == "p":
            read = _of_parent(target, read, relation, self.catalog)
        if not isinstance(statement, q.Merge):
            read |= _columns_of(statement.returning)
        if read:
            self._have_columns(relation, read, "r")
        self.query(statement, self.role, target)

    def _through(self, statement: q.Insert | q.Update | q.Delete, through: q.ThroughViews) -> None:
        """Check DML through views: the role needs rights to the first one, the owner of each to what that one is over."""
        letter = {q.Insert: "a", q.Update: "w", q.Delete: "d"}[type(statement)]
        checker = self
        for number, use in enumerate(through.views):
            view = checker._used(use.oid) if number == 0 else checker._relation(use.oid)
            if letter == "d":
                checker._have(view, letter)
            else:
                checker._have_columns(view, use.assigned, letter)
            if use.read:
                checker._have_columns(view, use.read, "r")
            if not invokes(view):
                owner = self.catalog.role_by_oid(view.owner)
                if owner is None or owner.superuser:
                    if owner is not None and self.calls:  # what functions read is the caller's affair
                        self.query(statement, owner)
                    break
                calls = checker.calls
                checker = _Check(self.session, owner, self.catalog)
                checker.calls = calls
        else:
            checker._write(replace(statement, through=None))
            return
        target = None if isinstance(statement, q.Insert) else statement.source.ranges[0]
        self.query(statement, self.role, target if isinstance(target, q.RelationRange) else None)

    def _copy(self, statement: st.Copy) -> None:
        if statement.query is not None:
            self.query(statement.query, self.role)
        else:
            letter = "a" if statement.is_from else "r"
            self._have_columns(self._used(statement.table), statement.attnums, letter)

    def _refer(self, keys: Iterable[st.ForeignKeySpec]) -> None:
        """Check REFERENCES on the tables that foreign keys refer to (manual, CREATE TABLE)."""
        for key in keys:
            if key.table:
                relation = self._used(key.table)
                named = [c.attnum for c in relation.live if c.name in key.referenced]
                primary = [a for i in relation.indexes if i.primary for a in i.attnums]
                self._have_columns(relation, named or primary, "x")

    # -- definitions -------------------------------------------------------------------------------

    def _alter(self, relation: RelationDef, statement: st.AlterTable) -> None:
        for action in statement.actions:
            if isinstance(action, st.AlterOwner):
                self._member(action.role)
                self._create_in(relation.schema)
            elif isinstance(action, st.SetSchema):
                self._create_in(action.schema)
            elif isinstance(action, st.AddForeignKey):
                self._refer([action.key])
            elif isinstance(action, st.AddColumn):
                self._refer(action.foreign_keys)
                self._use_types([action.column])
            elif isinstance(action, st.AlterColumnType):
                self._use_type(action.type.oid)

    def _member(self, name: str) -> None:
        other = self.catalog.role(name)
        if other is not None and other.oid not in memberships(self.role, self.catalog.role_by_oid):
            raise SqlError("42501", f'must be member of role "{name}"')

    def _rename(self, statement: st.Rename) -> None:
        if statement.what == "role":
            if not self.role.create_role:
                raise SqlError("42501", "permission denied to rename role")
        elif statement.what == "schema":
            self._own_schema(self.catalog.schema(statement.old))
            if not self.rights.database("C"):
                raise _denied("database", self.session.database)
        elif statement.what != "database":  # engine.ddl.databases
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
                    if holder is None or not self.rights.owns(holder.owner):
                        self._own(relation)
                    break

    # -- functions ---------------------------------------------------------------------------------

    def call(self, functions: Iterable[int]) -> None:
        """Check that the role may call users' functions."""
        for oid in functions:
            function = self.catalog.function_by_oid(oid)
            if function is None:
                raise Replan  # dropped since the plan was made
            if not self.rights.function(function):
                raise _denied("function", function.name)

    def _own_function(self, oid: int) -> FunctionDef:
        function = self.catalog.function_by_oid(oid)
        if function is None:
            raise Replan
        if not self.rights.owns(function.owner):
            what = "procedure" if function.kind == "p" else "function"
            raise SqlError("42501", f"must be owner of {what} {function.name}")
        return function

    def _replace_function(self, statement: st.CreateFunction) -> None:
        made = statement.function
        if made.leakproof:
            raise SqlError("42501", _LEAKPROOF)
        for function in self.catalog.functions_named(made.name):
            if statement.replace and (function.schema, function.inputs) == (made.schema, made.inputs):
                self._own_function(function.oid)
        for oid in (*made.types, made.result):
            self._use_type(oid)

    def _alter_function(self, statement: st.AlterFunction) -> None:
        function = self._own_function(statement.function)
        if dict(statement.changes).get("leakproof"):
            raise SqlError("42501", _LEAKPROOF)
        if statement.owner is not None:
            self._member(statement.owner)
            self._create_in(function.schema)
        elif statement.schema is not None:
            self._create_in(statement.schema)
        elif statement.name is not None:
            self._create_in(function.schema)

    def _drop_function(self, oid: int) -> None:
        function = self.catalog.function_by_oid(oid)
        holder = None if function is None else self.catalog.schema(function.schema)
        if holder is None or not self.rights.owns(holder.owner):
            self._own_function(oid)

    # -- types -------------------------------------------------------------------------------------

    def _use_types(self, columns: Iterable[st.ColumnSpec]) -> None:
        for column in columns:
            self._use_type(column.type.oid)

    def _use_type(self, oid: int) -> None:
        made = self.catalog.type_by_oid(oid)
        if made is not None and not self.rights.type(made):
            raise _denied("type", made.name)

    def _own_type(self, made: TypeDef | None) -> None:
        if made is None:
            raise Replan  # dropped since the plan was made
        if not self.rights.owns(made.owner):
            raise SqlError("42501", f"must be owner of type {made.name}")

    def _alter_type(self, statement: st.AlterType) -> None:
        made = self.catalog.type_by_oid(statement.type)
        self._own_type(made)
        assert made is not None
        if statement.owner is not None:
            self._member(statement.owner)
            self._create_in(made.schema)
        elif statement.schema is not None:
            self._create_in(statement.schema)

    def _drop_type(self, schema: str, name: str) -> None:
        if schema == "pg_temp":
            schema = self.session.temp_schema
        for entry in [schema] if schema else self.session.search_path:
            oid = self.catalog.type_oid(entry, name)
            made = None if oid is None else self.catalog.type_by_oid(oid)
            if made is not None:
                holder = self.catalog.schema(made.schema)
                if holder is None or not self.rights.owns(holder.owner):
                    self._own_type(made)
                return

    def _comment(self, statement: st.Comment) -> None:
        if statement.class_oid == PG_LARGEOBJECT_OID:
            return  # whose owner is looked up when it runs
        if statement.class_oid == PG_DATABASE_OID:
            database = self.catalog.database_by_oid(statement.object_oid)
            if database is not None and not self.rights.owns(database.owner):
                raise SqlError("42501", f"must be owner of database {database.name}")
            return
        if statement.class_oid == PG_PROC_OID:
            self._own_function(statement.object_oid)
            return
        if statement.class_oid == PG_EXTENSION_OID:
            extensions = self.catalog.extensions.values()
            extension = next((e for e in extensions if e.oid == statement.object_oid), None)
            if extension is None:
                raise Replan
            if not self.rights.owns(extension.owner):
                raise SqlError("42501", f"must be owner of extension {extension.name}")
            return
        if statement.class_oid == PG_POLICY_OID:
            of_policy = self.catalog.policy_by_oid(statement.object_oid)
            if of_policy is None:
                raise Replan
            self._own_for_part(of_policy[0])
            return
        if statement.class_oid == PG_TRIGGER_OID:
            found = self.catalog.trigger_by_oid(statement.object_oid)
            if found is None:
                raise Replan
            self._own_for_part(found[0])
            return
        made = self.catalog.type_by_oid(statement.object_oid)
        if made is not None:
            self._own_type(made)
            return
        relation = self.catalog.relation_by_oid(statement.object_oid)
        if relation is not None and statement.sub_id:
            self._own_for_part(relation)
            return
        if relation is not None:
            self._own(relation)
            return
        schema = self.catalog.schema_by_oid(statement.object_oid)
        if schema is not None:
            self._own_schema(schema)
            return
        constraint = self.catalog.constraint_by_oid(statement.object_oid)
        domain = self.catalog.domain_constraint(statement.object_oid)
        if constraint is not None:
            self._own_for_part(constraint[0])
        elif domain is not None:
            self._own_type(domain[0])
        elif not self.role.create_role:
            raise SqlError("42501", "must have CREATEROLE privilege")

    def _own_for_part(self, relation: RelationDef) -> None:
        """As ``_own``, for a column or a constraint of it."""
        if not self.rights.owns(relation.owner):
            raise SqlError("42501", f"must be owner of relation {relation.name}")

    def _own(self, relation: RelationDef) -> None:
        if not self.rights.owns(relation.owner):
            raise SqlError("42501", f"must be owner of {KIND_WORDS[relation.kind]} {relation.name}")

    def _own_schema(self, schema: SchemaDef | None) -> None:
        if schema is not None and not self.rights.owns(schema.owner):
            raise SqlError("42501", f"must be owner of schema {schema.name}")

    # -- schemas -----------------------------------------------------------------------------------

    def _use(self, name: str) -> None:
        self._have_schema(name, "U")

    def _create_in(self, name: str) -> None:
        if name != "pg_temp":
            self._have_schema(name, "C")
        elif not self.rights.database("T"):
            raise SqlError(
                "42501", f'permission denied to create temporary tables in database "{self.session.database}"'
            )

    def _have_schema(self, name: str, letter: str) -> None:
        """Own temporary schemas are one's own; that one is not there is another error."""
        schema = self.catalog.schema(name)
        if schema is None or schema.name == self.session.temp_schema:
            return
        if not self.rights.schema(schema, letter):
            raise _denied("schema", name)

    def _relation(self, oid: int) -> RelationDef:
        relation = self.catalog.relation_by_oid(oid)
        if relation is None:
            raise Replan  # dropped since the plan was made
        return relation


def invokes(view: RelationDef) -> bool:
    """Tell whether rights to what a view reads are asked of whoever uses it (security_invoker)."""
    return view.options.get("security_invoker") in ("true", "on", "yes", "1")


def maintainable(session: Session, oids: Sequence[int], what: str) -> list[int]:
    """Return those of ``oids`` that VACUUM, ANALYZE ... may work on; a WARNING names each of the others."""
    role = session.catalog.role(session.derived.user)
    kept = []
    for oid in oids:
        relation = session.catalog.relation_by_oid(oid)
        if relation is None or role is None:
            continue
        if Rights(session.catalog, role).owns(relation.owner):
            kept.append(oid)
        else:
            session.warning(
                f'skipping "{relation.name}" --- only table or database owner can {what} it', "01000"
            )
    return kept


def _target(source: q.Select, relation: RelationDef) -> tuple[q.Range, frozenset[int]]:
    """Return the range of an UPDATE's target, a table or a view, and which of its columns the statement itself reads.

    The source outputs the row id and the old row whoever asks, so those targets are not counted.
    """
    target = source.ranges[0]
    named = source.targets[1 + len(relation.live) :]
    inner = tuple(item for item in source.ranges[1:] if not isinstance(item, q.RelationRange))
    return target, _columns_of((named, source.where, source.from_, inner, source.ctes))


def _of_parent(
    target: q.Range, attnums: Iterable[int], parent: RelationDef, catalog: CatalogSnapshot
) -> frozenset[int]:
    """Return columns of what a partitioned table is read as (``planner.rules.partitions``) as that table's own."""
    if isinstance(target, q.SubqueryRange):
        live = parent.live
        return frozenset(live[a - 1].attnum if 0 < a <= len(live) else 0 for a in attnums if a <= len(live))
    if isinstance(target, q.RelationRange) and target.parent:
        leaf = catalog.relation_by_oid(target.oid)
        back = {} if leaf is None else {own: above for above, own in column_map(parent, leaf).items()}
        return frozenset(back.get(a, a) for a in attnums)
    return frozenset(attnums)


def _columns_of(node: Any, range_: int = 0) -> frozenset[int]:
    """Return the columns of a range that a query or its parts name, be it from within its sub-queries; 0: the whole row."""
    found: set[int] = set()
    stack: list[tuple[Any, int]] = [
        (part, 0) for part in (children(node) if isinstance(node, q.QueryBase) else (node,))
    ]
    while stack:
        current, level = stack.pop()
        if isinstance(current, tuple):
            stack.extend((item, level) for item in current if item is not None)
            continue
        if isinstance(current, q.Var):
            if current.range == range_ and current.level == level and current.attnum >= 0:
                found.add(current.attnum)
            continue
        inside = level + isinstance(current, q.Select | q.SetOp | q.Values)
        stack.extend((child, inside) for child in children(current))
    return frozenset(found)


def _denied(kind: str, name: str) -> SqlError:
    return SqlError("42501", f"permission denied for {kind} {name}")
