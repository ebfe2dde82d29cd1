"""What a statement may need of its user's role: privileges, ownership, membership. Each need raises SqlError
42501, in PostgreSQL's words.

    Needs ──> RowNeeds          what queries and changes read and write        engine/definitions/needs/row.py
         └──> DefinitionNeeds   what definitions change, and refer to          engine/definitions/needs/definition.py

What has been dropped since the statement was planned raises ``Replan``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from engine.session.named_roles import named_role
from engine.session.plans.plan import Replan
from planner.base.errors import SqlError
from planner.bind.expression.calls import is_users_function
from planner.catalog.acl import memberships
from planner.catalog.extensions import PLPGSQL
from planner.catalog.relation_kinds import RELATION_KINDS
from planner.catalog.rights import Rights
from planner.facts import facts
from planner.functions.system.names import type_name
from planner.query import Aggregate
from planner.query.walk import walk
from planner.types.facts import element_of, format_type, is_fact

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.definitions.named_places import Altered, Placed
    from engine.session.session import Session
    from planner import statements as st
    from planner.catalog import ExtensionDef, FunctionDef, RelationDef, RoleDef, SchemaDef, TypeDef

_ROUTINES = {"f": "function", "p": "procedure", "a": "aggregate"}


def denied(kind: str, name: str) -> SqlError:
    """Return 42501 for an object that a privilege is missing on."""
    return SqlError("42501", f"permission denied for {kind} {name}")


def _aggregates(statement: Any, oid: int) -> bool:
    """Tell whether a statement calls an aggregate as such, and not only over windows."""
    return any(isinstance(node, Aggregate) and node.proc == oid for node in walk(statement))


class Needs:
    """What is asked of one role that is no superuser, under one state of the catalog."""

    def __init__(self, session: Session, role: RoleDef, catalog: CatalogSnapshot) -> None:
        """Ask it of ``role``, in ``session``'s database as ``catalog`` has it."""
        self.session = session
        self.catalog = catalog
        self.role = role
        self.rights = Rights(catalog, role)

    def _relation(self, oid: int) -> RelationDef:
        relation = self.catalog.relation_by_oid(oid)
        if relation is None:
            raise Replan  # dropped since the plan was made
        return relation

    # -- privileges --------------------------------------------------------------------------------

    def _used(self, oid: int) -> RelationDef:
        """Return a relation whose schema the role may use."""
        relation = self._relation(oid)
        self._reach(relation)
        return relation

    def _reach(self, relation: RelationDef) -> None:
        """Check that the role may use a relation's schema: where it is named, and where it is today."""
        self._use(relation.schema)
        now = self.session.today.relation_by_oid(relation.oid)
        if now is None or now.schema_oid == relation.schema_oid:
            return
        schema = self.session.today.schema_by_oid(now.schema_oid)
        if schema is not None and not self.rights.schema(schema, "U"):
            raise denied("schema", schema.name)

    def _have(self, relation: RelationDef, letters: str) -> None:
        if not self.rights.relation(relation, letters):
            raise denied(RELATION_KINDS[relation.kind].word, relation.name)

    def _have_columns(self, relation: RelationDef, attnums: Collection[int], letter: str) -> None:
        if not self.rights.columns(relation, attnums, letter):
            raise denied(RELATION_KINDS[relation.kind].word, relation.name)

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
            raise denied("schema", name)

    def _use_types(self, columns: Iterable[st.ColumnSpec]) -> None:
        for column in columns:
            self._use_type(column.type.oid)

    def _use_type(self, oid: int) -> None:
        made = self.catalog.type_by_oid(oid)
        if made is not None and not self.rights.type(made):
            raise denied("type", made.name)
        if made is None and is_fact(oid) and not self.rights.builtin_type(oid):
            raise denied("type", format_type(element_of(oid) or oid))

    def call(self, functions: Iterable[int], statement: Any = None) -> None:
        """Check that the role may call users' functions; ``statement``: what calls them."""
        for oid in functions:
            if oid in self.catalog.guarded_functions:
                if not self.rights.system_function(oid):
                    proc = facts().procs[oid]
                    windowed = proc.kind == "w" or (proc.kind == "a" and not _aggregates(statement, oid))
                    raise denied("function" if windowed else _ROUTINES[proc.kind], proc.name)
                continue
            function = self.catalog.function_by_oid(oid)
            if function is None:
                raise Replan  # dropped since the plan was made
            if not self.rights.function(function):
                windowed = function.kind == "a" and not _aggregates(statement, oid)
                raise denied("function" if windowed else _ROUTINES[function.kind], function.name)
            if function.aggregate is not None:
                self._parts(function.aggregate.functions, function.owner)

    def _call_each(self, functions: Iterable[int]) -> None:
        """As ``call``, of functions that may be built in."""
        guarded = self.catalog.guarded_functions
        self.call(oid for oid in functions if oid in guarded or is_users_function(oid))

    def _parts(self, functions: Iterable[int], owner: int) -> None:
        """Check that the owner of an aggregate may call the functions that it is made of."""
        role = self.catalog.role_by_oid(owner)
        if role is None:
            raise Replan
        rights = Rights(self.catalog, role)
        for oid in functions:
            function = self.catalog.function_by_oid(oid)
            if not rights.system_function(oid):
                raise denied("function", facts().procs[oid].name)
            if function is not None and not rights.function(function):
                raise denied("function", function.name)

    def _function(self, oid: int) -> FunctionDef:
        function = self.catalog.function_by_oid(oid)
        if function is None:
            raise Replan  # dropped since the plan was made
        return function

    # -- ownership ---------------------------------------------------------------------------------

    def _own(self, relation: RelationDef) -> None:
        if not self.rights.owns(relation.owner):
            raise SqlError("42501", f"must be owner of {RELATION_KINDS[relation.kind].word} {relation.name}")

    def _own_for_part(self, relation: RelationDef) -> None:
        """As ``_own``, for a column or a constraint of it."""
        if not self.rights.owns(relation.owner):
            raise SqlError("42501", f"must be owner of relation {relation.name}")

    def _own_schema(self, schema: SchemaDef | None) -> None:
        if schema is not None and not self.rights.owns(schema.owner):
            raise SqlError("42501", f"must be owner of schema {schema.name}")

    def _own_database(self, oid: int) -> None:
        database = self.catalog.database_by_oid(oid)
        if database is not None and not self.rights.owns(database.owner):
            raise SqlError("42501", f"must be owner of database {database.name}")

    def _extension_by_oid(self, oid: int) -> ExtensionDef:
        extensions = (PLPGSQL, *self.catalog.extensions.values())
        found = next((extension for extension in extensions if extension.oid == oid), None)
        if found is None:
            raise Replan  # dropped since the plan was made
        return found

    def _own_extension(self, extension: ExtensionDef) -> None:
        if not self.rights.owns(extension.owner):
            raise SqlError("42501", f"must be owner of extension {extension.name}")

    def _be_superuser(self, message: str, *, hint: str | None = None) -> None:
        if not self.rights.superuser:
            raise SqlError("42501", message, hint=hint)

    def _own_function(self, oid: int, name: str) -> FunctionDef:
        """Check that the role owns a function, and return it; ``name``: as the statement writes it, "" for
        ALTER and CREATE OR REPLACE.
        """
        function = self._function(oid)
        if not self.rights.owns(function.owner):
            word = _ROUTINES[function.kind] if name else "function"
            raise SqlError("42501", f"must be owner of {word} {name or function.name}")
        return function

    def _own_type(self, made: TypeDef | None) -> None:
        if made is None:
            raise Replan  # dropped since the plan was made
        if not self.rights.owns(made.owner):
            name = type_name(self.session, made.oid, None)
            raise SqlError("42501", f"must be owner of type {name}")

    def _member(self, name: str) -> None:
        """Check that the role is a member of what OWNER TO or AUTHORIZATION names. Raises SqlError 42704 besides."""
        other = named_role(self.session, name)
        if self.rights.superuser or other.oid in memberships(self.role, self.catalog.role_by_oid):
            return
        raise SqlError("42501", f'must be member of role "{other.name}"')

    def _alter_placed(self, found: Placed, altered: Altered, own: Callable[[int], object]) -> None:
        """Check ALTER of what has a name in a schema: to own it (``own``), CREATE on its schema. SET SCHEMA:
        CREATE on that first; where it is there already, nothing else.
        """
        if altered.owner is not None:
            if named_role(self.session, altered.owner).oid != found.owner:
                own(found.oid)
                self._give(found.schema, found.owner, altered.owner)
        elif altered.schema is not None:
            self._create_in(altered.schema)
            if altered.schema != found.schema:
                own(found.oid)
        else:
            own(found.oid)
            self._create_in(found.schema)

    def _give(self, schema: str, owner: int, to: str) -> None:
        """Check OWNER TO of what is in a schema: one who is to own something may make such things there. To
        its ``owner`` it is nobody's affair.
        """
        new = named_role(self.session, to)
        if new.oid == owner or self.rights.superuser:
            return
        self._member(to)
        holder = self.catalog.schema(schema)
        if holder is not None and not Rights(self.catalog, new).schema(holder, "C"):
            raise denied("schema", schema)
