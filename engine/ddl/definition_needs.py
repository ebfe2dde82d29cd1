"""What definitions need: to own what they change or drop, and privileges on what they refer to or make something in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.catalog.pg_row_types import row_types
from engine.catalog.stored import (
    PG_DATABASE_OID,
    PG_EXTENSION_OID,
    PG_LARGEOBJECT_OID,
    PG_POLICY_OID,
    PG_PROC_OID,
    PG_TRIGGER_OID,
    PG_TS_CONFIG_OID,
    PG_TS_DICT_OID,
)
from engine.ddl.members import named_role
from engine.ddl.needs import Needs, denied
from engine.ddl.truncated import truncated
from engine.reads.plans import Replan
from planner import statements as st
from planner.acl import CHECKPOINT
from planner.errors import SqlError
from planner.extensions import PLPGSQL
from planner.textsearch.names import SEARCH_NAMES, by_oid

if TYPE_CHECKING:
    from planner.catalog import FunctionDef, RelationDef, TextSearchDef

_LEAKPROOF = "only superuser can define a leakproof function"


class DefinitionNeeds(Needs):
    """What CREATE, ALTER, DROP and COMMENT need of a role."""

    def _like(self, oids: Iterable[int]) -> None:
        """Check what LIKE copies: it tells of defaults and checks (manual, CREATE TABLE)."""
        for oid in oids:
            relation = self._used(oid)
            if relation.kind == "c":
                self._use_type(row_types(relation)[0])
            else:
                self._have(relation, "r")

    def _refer(self, keys: Iterable[st.ForeignKeySpec]) -> None:
        """Check REFERENCES on the tables that foreign keys refer to (manual, CREATE TABLE)."""
        for key in keys:
            if key.table:
                relation = self._used(key.table)
                named = [c.attnum for c in relation.live if c.name in key.referenced]
                primary = [a for i in relation.indexes if i.primary for a in i.attnums]
                self._have_columns(relation, named or primary, "x")

    def _alter(self, relation: RelationDef, statement: st.AlterTable) -> None:
        for action in statement.actions:
            if isinstance(action, st.AlterOwner):
                self._give(relation.schema, relation.owner, action.role)
            elif isinstance(action, st.AttachPartition):
                self._own(self._relation(action.partition))
            elif isinstance(action, st.SetSchema):
                self._create_in(action.schema)
            elif isinstance(action, st.AddForeignKey):
                self._refer([action.key])
            elif isinstance(action, st.AddColumn):
                self._refer(action.foreign_keys)
                self._use_types([action.column])
            elif isinstance(action, st.AlterColumnType):
                self._use_type(action.type.oid)

    def _rename(self, statement: st.Rename) -> None:
        if statement.what == "role":
            role = self.catalog.role(statement.old)
            if role is not None and role.superuser:
                raise SqlError("42501", "must be superuser to rename superusers")
            if not self.role.create_role:
                raise SqlError("42501", "permission denied to rename role")
        elif statement.what == "schema":
            self._own_schema(self.catalog.schema(statement.old))
            if not self.rights.database("C"):
                raise denied("database", self.session.database)
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

    # -- schemas and views ------------------------------------------------------------------------

    def _create_schema(self, statement: st.CreateSchema) -> None:
        if not self.rights.database("C"):
            raise denied("database", self.session.database)
        if statement.owner is not None:
            self._member(statement.owner)

    def _create_view(self, statement: st.CreateView) -> None:
        self._create_in(statement.schema)
        schema = self.session.temp_schema if statement.schema == "pg_temp" else statement.schema
        old = self.catalog.relation(schema, statement.name) if statement.replace else None
        if old is not None:  # whose rights the new query would have
            self._own(old)

    def _give_schema(self, statement: st.AlterSchemaOwner) -> None:
        schema = self.catalog.schema(statement.schema)
        if schema is None or named_role(self.session, statement.role).oid == schema.owner:
            return
        self._own_schema(schema)
        self._member(statement.role)
        if not self.rights.database("C"):
            raise denied("database", self.session.database)

    # -- rows of whole tables, upkeep -------------------------------------------------------------

    def _truncate(self, statement: st.Truncate) -> None:
        for oid in statement.tables:
            self._have(self._used(oid), "D")
        tables, cascaded = truncated(self.catalog, statement)
        for child in cascaded:
            self._have(child, "D")
        if statement.restart_identity:
            for table in tables:
                for sequence in self.catalog.sequences_of(table.oid):
                    self._own(sequence)

    def _maintain(self, statement: st.Maintenance) -> None:
        if statement.alone:
            self.session.block.must_be_alone(statement.alone)
        if statement.what == "checkpoint" and not self.rights.owns(CHECKPOINT):
            raise SqlError("42501", "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT")
        if statement.object == "schema":
            self._own_schema(self.catalog.schema(statement.name))
        elif statement.object:
            self._own_database(self.catalog.database)
        elif statement.what in ("reindex", "cluster"):  # the others pass over what is not one's own
            for oid in statement.relations:
                self._own(self._relation(oid))

    # -- functions ---------------------------------------------------------------------------------

    def _replace_function(self, replacing: bool, made: FunctionDef) -> None:
        if made.leakproof:
            raise SqlError("42501", _LEAKPROOF)
        for function in self.catalog.functions_named(made.name):
            if replacing and (function.schema, function.inputs) == (made.schema, made.inputs):
                self._own_function(function.oid, "")
        for oid in (*made.types, made.result):
            self._use_type(oid)

    def _create_aggregate(self, statement: st.CreateAggregate) -> None:
        made = statement.function
        if made is not None:
            self._create_in(made.schema)
        if statement.internal:
            raise SqlError("42P13", "aggregate transition data type cannot be internal")
        if made is None or made.aggregate is None:
            return  # it fails anyway
        self.call(oid for oid in made.aggregate.functions if self.catalog.function_by_oid(oid) is not None)
        self._replace_function(statement.replace, made)
        for oid in (made.aggregate.state, made.aggregate.moving_state):
            self._use_type(oid)

    def _alter_function(self, statement: st.AlterFunction) -> None:
        if statement.owner is not None:
            function = self._function(statement.function)
            if named_role(self.session, statement.owner).oid == function.owner:
                return
        function = self._own_function(statement.function, "")
        if dict(statement.changes).get("leakproof"):
            raise SqlError("42501", _LEAKPROOF)
        if statement.owner is not None:
            self._give(function.schema, function.owner, statement.owner)
        elif statement.schema is not None:
            self._create_in(statement.schema)
        elif statement.name is not None:
            self._create_in(function.schema)

    def _drop_function(self, oid: int, name: str) -> None:
        function = self.catalog.function_by_oid(oid)
        holder = None if function is None else self.catalog.schema(function.schema)
        if holder is None or not self.rights.owns(holder.owner):
            self._own_function(oid, name)

    # -- text search -------------------------------------------------------------------------------

    def _own_text_search(self, oid: int, written: str = "") -> TextSearchDef:
        found = self._text_search(oid)
        if not self.rights.owns(found.owner):
            raise SqlError(
                "42501", f"must be owner of {SEARCH_NAMES[found.named_by]} {written or found.name}"
            )
        return found

    def _text_search(self, oid: int) -> TextSearchDef:
        for named_by in SEARCH_NAMES:
            found = by_oid(self.catalog, named_by, oid)
            if found is not None:
                return found
        raise Replan  # dropped since the plan was made

    def _alter_text_search(self, statement: st.AlterTextSearch) -> None:
        if statement.owner is not None:
            found = self._text_search(statement.object)
            if named_role(self.session, statement.owner).oid != found.owner:
                self._own_text_search(statement.object)
                self._give(found.schema, found.owner, statement.owner)
            return
        found = self._own_text_search(statement.object)
        self._create_in(statement.schema or found.schema)

    def _drop_text_search(self, oid: int, written: str) -> None:
        found = self._text_search(oid)
        holder = self.catalog.schema(found.schema)
        if holder is None or not self.rights.owns(holder.owner):
            self._own_text_search(oid, written)

    # -- types -------------------------------------------------------------------------------------

    def _alter_type(self, statement: st.AlterType) -> None:
        made = self.catalog.type_by_oid(statement.type)
        if made is None:
            raise Replan
        if statement.owner is not None and named_role(self.session, statement.owner).oid == made.owner:
            return
        self._own_type(made)
        if statement.owner is not None:
            self._give(made.schema, made.owner, statement.owner)
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

    # -- comments ----------------------------------------------------------------------------------

    def _comment(self, statement: st.Comment) -> None:
        if statement.class_oid == PG_LARGEOBJECT_OID:
            return  # whose owner is looked up when it runs
        if statement.class_oid == PG_DATABASE_OID:
            self._own_database(statement.object_oid)
            return
        if statement.class_oid == PG_PROC_OID:
            self._own_function(statement.object_oid, statement.name)
            return
        if statement.class_oid in (PG_TS_CONFIG_OID, PG_TS_DICT_OID):
            self._own_text_search(statement.object_oid, statement.name)
            return
        if statement.class_oid == PG_EXTENSION_OID:
            extensions = (PLPGSQL, *self.catalog.extensions.values())
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
        else:
            role = self.catalog.role_by_oid(statement.object_oid)
            if role is not None and role.superuser:
                raise SqlError("42501", "must be superuser")
            if not self.role.create_role:
                raise SqlError("42501", "must have CREATEROLE privilege")
