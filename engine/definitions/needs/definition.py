"""What definitions need: to own what they change or drop, and privileges on what they refer to or make something in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, get_type_hints

from engine.catalog.relations.pg_row_types import row_types
from engine.definitions.needs.needs import denied
from engine.definitions.needs.row import RowNeeds
from engine.definitions.table.truncated import truncated
from engine.session.catalog.foreign import foreign_of
from engine.session.named_roles import named_role
from pgwire.give_way import paced
from planner import statements as st
from planner.base.errors import SqlError
from planner.base.total import members, total
from planner.catalog import RelationDef
from planner.catalog.acl import CHECKPOINT
from planner.catalog.foreign import ServerDef
from planner.catalog.rights import foreign_kind
from planner.partitions.bounds import descendants


class DefinitionNeeds(RowNeeds):
    """What CREATE, ALTER, DROP of relations and schemas need of a role, and their upkeep."""

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

    # -- tables ------------------------------------------------------------------------------------

    def create_table(self, statement: st.CreateTable) -> None:
        """CREATE on the schema, USAGE of types, REFERENCES; to own the table that a partition belongs to;
        what its query reads, if it is to be read.

        A foreign table asks for USAGE of its server. A sequence that comes with it belongs to a column of it,
        which is looked up: USAGE of the schema.
        """
        self._create_in(statement.schema)
        if statement.schema != "pg_temp" and any(column.sequence for column in statement.columns):
            self._have_schema(statement.schema, "U")
        if statement.parent:
            self._own(self._relation(statement.parent))
        self._like(statement.likes)
        if statement.of_type:
            self._use_type(statement.of_type)
        self._use_types(statement.columns)
        self._refer(statement.foreign_keys)
        if statement.server:
            server = foreign_of(self.catalog, ServerDef, statement.server)
            if not self.rights.foreign(server):
                raise denied(foreign_kind(server), server.name)
        if statement.query is not None and (statement.with_data or statement.executed):
            self.query(statement.query, self.role)

    def alter_table(self, statement: st.AlterTable) -> None:
        """To own it, and what each action asks beside that (``ACTIONS``)."""
        relation = self._relation(statement.table)
        self._own(relation)
        for action in statement.actions:
            row = ACTIONS[type(action)]
            if row.below and not statement.only:
                self._own_below(relation)
            if row.ask is not None:
                row.ask(self, relation, action)

    def _own_below(self, relation: RelationDef) -> None:
        """Check that the role owns the partitions of a table, at all levels."""
        for partition in descendants(relation, self.catalog):
            self._own(partition)

    def create_index(self, statement: st.CreateIndex) -> None:
        """To own the table, CREATE on its schema."""
        relation = self._relation(statement.table)
        self._own(relation)
        self._create_in(relation.schema)

    def add_column(self, relation: RelationDef, action: st.AddColumn) -> None:
        """REFERENCES, USAGE of its type."""
        self._refer(action.foreign_keys)
        self._use_types([action.column])

    def attach_partition(self, relation: RelationDef, action: st.AttachPartition) -> None:
        """To own the partition, too: its rows, policies and triggers come under the parent's owner."""
        self._own(self._relation(action.partition))

    def add_foreign_key(self, relation: RelationDef, action: st.AddForeignKey) -> None:
        """REFERENCES."""
        self._refer([action.key])

    def alter_column_types(self, relation: RelationDef, action: st.AlterColumnTypes) -> None:
        """USAGE of the types."""
        for column in action.columns:
            self._use_type(column.type.oid)

    def set_of_type(self, relation: RelationDef, action: st.SetOfType) -> None:
        """USAGE of the type, for OF."""
        if action.type:
            self._use_type(action.type)

    def alter_owner(self, relation: RelationDef, action: st.AlterOwner) -> None:
        """Membership in the new owner, which may CREATE in the schema."""
        self._give(relation.schema, relation.owner, action.role)

    def set_schema(self, relation: RelationDef, action: st.SetSchema) -> None:
        """CREATE on the schema that it goes to."""
        self._create_in(action.schema)

    # -- what belongs to a table -------------------------------------------------------------------

    def create_trigger(self, statement: st.CreateTrigger) -> None:
        """TRIGGER on the table, for rows on its partitions, and on what a constraint trigger is from; EXECUTE
        of the function.
        """
        table = self._relation(statement.table)
        for named in (table, *(descendants(table, self.catalog) if statement.trigger.row else ())):
            self._have(named, "t")
        if statement.trigger.from_table:
            self._have(self._relation(statement.trigger.from_table), "t")
        self._call_each([statement.trigger.function])

    def change_part(
        self, statement: st.RenameTrigger | st.CreatePolicy | st.AlterPolicy | st.RenamePolicy
    ) -> None:
        """To own the table of a trigger or policy."""
        self._own(self._relation(statement.table))

    def drop_part(self, statement: st.DropTrigger | st.DropPolicy) -> None:
        """To own the table of a trigger or policy."""
        self._own_for_part(self._relation(statement.table))

    def mark_constraints(self, statement: st.MarkConstraints) -> None:
        """To be a superuser."""
        if not self.rights.superuser:
            raise denied("table", "pg_constraint")

    # -- sequences ---------------------------------------------------------------------------------

    def create_sequence(self, statement: st.CreateSequence) -> None:
        """CREATE on the schema; OWNED BY as of ``alter_sequence``."""
        self._create_in(statement.schema)

    def alter_sequence(self, statement: st.AlterSequence) -> None:
        """To own it; that OWNED BY names a table of the same owner is looked at when it runs (55000)."""
        self._own(self._relation(statement.sequence))

    # -- RENAME and DROP ---------------------------------------------------------------------------

    def rename_relation(self, statement: st.Rename) -> None:
        """To own it, CREATE on its schema."""
        self.rename_in_relation(statement)
        self._create_in(self._relation(statement.relation).schema)

    def rename_in_relation(self, statement: st.Rename) -> None:
        """Of a column or a constraint: to own the relation, and its partitions, if they have it from there."""
        relation = self._relation(statement.relation)
        self._own(relation)
        checks = {c.name for c in relation.constraints if c.kind == "c"}
        if statement.what == "column" or (statement.what == "constraint" and statement.old in checks):
            self._own_below(relation)

    def rename_schema(self, statement: st.Rename) -> None:
        """To own it, CREATE on the database."""
        self._own_schema(self.catalog.schema(statement.old))
        if not self.rights.database("C"):
            raise denied("database", self.session.database)

    def drop(self, statement: st.Drop) -> None:
        """What the kind of object asks (``DROPPED``), up to one that is not there: that is told when it runs."""
        for schema, name in paced(statement.names):
            if not statement.if_exists and not self._is_there(statement.what, schema, name):
                return
            DROPPED[statement.what](self, schema, name)

    def _is_there(self, what: str, schema: str, name: str) -> bool:
        """Tell whether DROP may find a name, as the transaction sees the catalog or as it is now."""
        catalogs = (self.session.catalog, self.catalog)
        if what == "schema":
            return any(catalog.schema(name) is not None for catalog in catalogs)
        schema = self.session.temp_schema if schema == "pg_temp" else schema
        places = [schema] if schema else self.session.search_path
        if schema and any(catalog.schema(schema) is not None for catalog in catalogs):
            self._use(schema)
        return any(catalog.relation(place, name) is not None for catalog in catalogs for place in places)

    def drop_schema(self, schema: str, name: str) -> None:
        """To own it, whatever is in it."""
        self._own_schema(self.catalog.schema(name))

    def drop_relation(self, schema: str, name: str) -> None:
        """To own it, or its schema."""
        if schema == "pg_temp":
            schema = self.session.temp_schema
        elif schema:
            self._use(schema)
        for entry in [schema] if schema else self.session.search_path:
            relation = self.catalog.relation(entry, name)
            if relation is not None:
                holder = self.catalog.schema(relation.schema)
                if holder is None or not self.rights.owns(holder.owner):
                    self._own(relation)
                break

    # -- schemas and views ------------------------------------------------------------------------

    def create_schema(self, statement: st.CreateSchema) -> None:
        """CREATE on the database, membership in whom it is for; its elements are checked one by one when they
        are made.
        """
        if not self.rights.database("C"):
            raise denied("database", self.session.database)
        if statement.owner is not None:
            self._member(statement.owner)

    def create_view(self, statement: st.CreateView) -> None:
        """CREATE on the schema, USAGE of its columns' types; to own what OR REPLACE finds there. What its
        query reads is for who reads the view.
        """
        self._create_in(statement.schema)
        schema = self.session.temp_schema if statement.schema == "pg_temp" else statement.schema
        old = self.catalog.relation(schema, statement.name) if statement.replace else None
        if old is not None:  # whose rights the new query would have
            self._own(old)
        for column in statement.columns[0 if old is None else len(old.live) :]:
            self._use_type(column.type.oid)

    def give_schema(self, statement: st.AlterSchemaOwner) -> None:
        """To own it, membership in the new owner, CREATE on the database; to the present owner nothing."""
        schema = self.catalog.schema(statement.schema)
        if schema is None or named_role(self.session, statement.role).oid == schema.owner:
            return
        self._own_schema(schema)
        self._member(statement.role)
        if not self.rights.database("C"):
            raise denied("database", self.session.database)

    def create_materialized_view(self, statement: st.CreateMaterializedView) -> None:
        """CREATE on the schema, USAGE of its columns' types; what its query reads, if it is to be read."""
        self._create_in(statement.schema)
        for column in statement.columns:
            self._use_type(column.type.oid)
        if statement.with_data:
            self.query(statement.query, self.role)

    def refresh(self, statement: st.RefreshMaterializedView) -> None:
        """To own it; what its query reads, as its owner."""
        view = self._relation(statement.table)
        self._own(view)
        if statement.query is not None:
            owner = self.catalog.role_by_oid(view.owner) or self.role
            type(self)(self.session, owner, self.catalog).query(statement.query, owner)

    # -- rows of whole tables, upkeep -------------------------------------------------------------

    def truncate(self, statement: st.Truncate) -> None:
        """TRUNCATE on those that are named and those that CASCADE adds; to own the sequences that begin anew."""
        for oid in statement.tables:
            self._have(self._used(oid), "D")
        tables, cascaded = truncated(self.catalog, statement)
        for child in cascaded:
            self._have(child, "D")
        if statement.restart_identity:
            for table in tables:
                for sequence in self.catalog.sequences_of(table.oid):
                    self._own(sequence)

    def maintain(self, statement: st.Maintenance) -> None:
        """To own what REINDEX and CLUSTER name, pg_checkpoint for CHECKPOINT; VACUUM and ANALYZE pass over
        what is somebody else's (``maintainable``).
        """
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


class Action(NamedTuple):
    """What an action of ALTER TABLE asks beside to own the table: ``ask`` or nothing; ``below``: to own its
    partitions, too, which it changes.
    """

    ask: Callable[[DefinitionNeeds, RelationDef, Any], None] | None = None
    below: bool = False


ACTIONS: Final[Mapping[type, Action]] = total(
    "rights of ALTER TABLE",
    members(st.AlterAction),
    {
        st.AddColumn: Action(DefinitionNeeds.add_column, below=True),
        st.AttachPartition: Action(DefinitionNeeds.attach_partition),
        st.DetachPartition: Action(),
        st.AttachIndex: Action(),  # of a partition, which whoever owns the parent was given
        st.EnableTriggers: Action(),
        st.SetRowSecurity: Action(),
        st.DropColumn: Action(below=True),
        st.AddKey: Action(),
        st.AddCheck: Action(below=True),
        st.AddForeignKey: Action(DefinitionNeeds.add_foreign_key),
        st.ValidateConstraint: Action(),
        st.AlterConstraint: Action(),
        st.DropConstraint: Action(below=True),
        st.SetDefault: Action(below=True),
        st.DropExpression: Action(below=True),
        st.AddIdentity: Action(),
        st.SetIdentity: Action(),
        st.DropIdentity: Action(),
        st.SetNotNull: Action(below=True),
        st.AlterColumnTypes: Action(DefinitionNeeds.alter_column_types, below=True),
        st.AlterOwner: Action(DefinitionNeeds.alter_owner),
        st.SetOptions: Action(),
        st.TuneColumn: Action(below=True),
        st.TuneIndexKey: Action(),
        st.MarkClustered: Action(),
        st.SetReplicaIdentity: Action(),
        st.SetPersistence: Action(),
        st.SetSchema: Action(DefinitionNeeds.set_schema),
        st.SetOfType: Action(DefinitionNeeds.set_of_type),
        st.SetForeignOptions: Action(),
    },
)

_Dropped: TypeAlias = Callable[[DefinitionNeeds, str, str], None]
DROPPED: Final[Mapping[str, _Dropped]] = total(
    "rights of DROP",
    members(get_type_hints(st.Drop)["what"]),
    {
        "table": DefinitionNeeds.drop_relation,
        "foreign table": DefinitionNeeds.drop_relation,
        "view": DefinitionNeeds.drop_relation,
        "materialized view": DefinitionNeeds.drop_relation,
        "index": DefinitionNeeds.drop_relation,
        "sequence": DefinitionNeeds.drop_relation,
        "schema": DefinitionNeeds.drop_schema,
    },
)
"""What DROP asks by the kind of object."""
