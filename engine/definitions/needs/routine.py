"""What definitions of functions, text search objects and types need of a role."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from engine.definitions.needs.needs import Needs, denied
from engine.session.named_roles import named_role
from engine.session.plans.plan import Replan
from pgwire.give_way import paced, paced_iter
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog.rights import languages
from planner.textsearch.names import SEARCH_NAMES, by_oid

if TYPE_CHECKING:
    from planner.catalog import FunctionDef, TextSearchDef

_LEAKPROOF = "only superuser can define a leakproof function"


class RoutineNeeds(Needs):
    """What CREATE, ALTER and DROP of functions, text search objects and types need."""

    # -- functions ---------------------------------------------------------------------------------

    def create_function(self, statement: st.CreateFunction) -> None:
        """CREATE [OR REPLACE] FUNCTION and PROCEDURE: CREATE on the schema, USAGE of the language and of
        types; to own the one that is replaced.
        """
        self._create_in(statement.function.schema)
        made = statement.function
        self.use_language("internal" if made.internal else made.language)
        self._replace_function(statement.replace, statement.function)

    def use_language(self, name: str) -> None:
        """USAGE of a language; one that is not trusted is for superusers."""
        if not self.rights.superuser and (not languages()[name][1] or not self.rights.language(name)):
            raise denied("language", name)

    def do(self, _: st.Do) -> None:
        """USAGE of PL/pgSQL: each statement of the block is asked about as it runs."""
        self.use_language("plpgsql")

    def _replace_function(self, replacing: bool, made: FunctionDef) -> None:
        if made.leakproof:
            raise SqlError("42501", _LEAKPROOF)
        for function in self.catalog.functions_named(made.name):
            if replacing and (function.schema, function.inputs) == (made.schema, made.inputs):
                self._own_function(function.oid, "")
        for oid in (*made.types, made.result):
            self._use_type(oid)

    def create_aggregate(self, statement: st.CreateAggregate) -> None:
        """As of a function, and EXECUTE of those that it is made of."""
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

    def alter_function(self, statement: st.AlterFunction) -> None:
        """To own it; CREATE on the schema where it is called otherwise. SET SCHEMA: CREATE on that first;
        where it is there already, nothing else.
        """
        if statement.schema is not None:
            self._create_in(statement.schema)
            if statement.schema != self._function(statement.function).schema:
                self._own_function(statement.function, "")
            return
        if statement.owner is not None:
            function = self._function(statement.function)
            if named_role(self.session, statement.owner).oid == function.owner:
                return
        function = self._own_function(statement.function, "")
        if dict(statement.changes).get("leakproof"):
            raise SqlError("42501", _LEAKPROOF)
        if statement.owner is not None:
            self._give(function.schema, function.owner, statement.owner)
        elif statement.name is not None:
            self._create_in(function.schema)

    def drop_function(self, statement: st.DropFunction) -> None:
        """To own them, or their schemas."""
        for oid, name in paced_iter(zip(statement.functions, statement.names, strict=True)):
            self._drop_function(oid, name)

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

    def alter_text_search(self, statement: st.AlterTextSearch) -> None:
        """To own it; CREATE on its schema. SET SCHEMA: CREATE on that first; where it is there already,
        nothing else.
        """
        self._alter_placed(self._text_search(statement.object), statement, self._own_text_search)

    def create_text_search(self, statement: st.CreateConfiguration | st.CreateDictionary) -> None:
        """CREATE on the schema."""
        self._create_in(statement.schema)

    def alter_mapping(self, statement: st.AlterMapping) -> None:
        """To own the configuration."""
        self._own_text_search(statement.configuration, statement.written)

    def alter_dictionary(self, statement: st.AlterDictionary) -> None:
        """To own the dictionary."""
        self._own_text_search(statement.dictionary, statement.written)

    def drop_text_search(self, statement: st.DropTextSearch) -> None:
        """To own them, or their schemas."""
        for oid, written in statement.objects:
            self._drop_text_search(oid, written)

    def _drop_text_search(self, oid: int, written: str) -> None:
        found = self._text_search(oid)
        holder = self.catalog.schema(found.schema)
        if holder is None or not self.rights.owns(holder.owner):
            self._own_text_search(oid, written)

    # -- types -------------------------------------------------------------------------------------

    def create_enum(self, statement: st.CreateEnum) -> None:
        """CREATE on the schema."""
        self._create_in(statement.schema)

    def create_range(self, statement: st.CreateRange) -> None:
        """CREATE on the schema, USAGE of the subtype, EXECUTE of what takes differences of it."""
        self._create_in(statement.schema)
        self._use_type(statement.subtype)
        if statement.subtype_diff:
            self._call_each([statement.subtype_diff])

    def create_composite(self, statement: st.CreateComposite) -> None:
        """CREATE on the schema, USAGE of the attributes' types."""
        self._create_in(statement.schema)
        for spec in statement.attributes:
            self._use_type(spec.type.oid)

    def alter_composite(self, statement: st.AlterComposite) -> None:
        """To own it and, with CASCADE, the tables of the type; USAGE of the new attributes' types."""
        made = self.catalog.type_by_oid(statement.type)
        if made is not None and not self.rights.owns(made.owner):
            raise SqlError("42501", f"must be owner of table {made.name}")  # as PostgreSQL calls it there
        for table in (*(below.table for below in statement.typed), *statement.renamed):
            self._own(self._relation(table))
        for action in statement.actions:
            match action:
                case st.AddAttribute() | st.AlterAttribute():
                    self._use_type(action.attribute.type.oid)
                case st.DropAttribute() | st.RenameAttribute():
                    pass
                case _:
                    assert_never(action)

    def create_domain(self, statement: st.CreateDomain) -> None:
        """CREATE on the schema, USAGE of the type that it is over."""
        self._create_in(statement.schema)
        self._use_type(statement.base.oid)

    def change_type(self, statement: st.AddEnumValue | st.RenameEnumValue | st.AlterDomain) -> None:
        """To own the type or domain."""
        self._own_type(self.catalog.type_by_oid(statement.type))

    def drop_type(self, statement: st.DropType) -> None:
        """To own them, or their schemas."""
        for schema, name in paced(statement.names):
            self._drop_type(schema, name)

    def alter_type(self, statement: st.AlterType) -> None:
        """To own it; CREATE on the schema that it goes to, which is asked first."""
        made = self.catalog.type_by_oid(statement.type)
        if made is None:
            raise Replan
        if statement.schema is not None:
            self._create_in(statement.schema)
        if statement.owner is not None and named_role(self.session, statement.owner).oid == made.owner:
            return
        self._own_type(made)
        if statement.owner is not None:
            self._give(made.schema, made.owner, statement.owner)

    def _drop_type(self, schema: str, name: str) -> None:
        if schema == "pg_temp":
            schema = self.session.temp_schema
        elif schema:
            self._use(schema)
        for entry in [schema] if schema else self.session.search_path:
            oid = self.catalog.type_oid(entry, name)
            made = None if oid is None else self.catalog.type_by_oid(oid)
            if made is not None:
                holder = self.catalog.schema(made.schema)
                if holder is None or not self.rights.owns(holder.owner):
                    self._own_type(made)
                return
