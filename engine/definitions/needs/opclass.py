"""What definitions of operator classes and families need of a role."""

from __future__ import annotations

from engine.definitions.needs.needs import Needs
from engine.definitions.opclasses import opclass_of
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog.opclasses import OPCLASS_WORDS, OpclassDef


class OpclassNeeds(Needs):
    """What CREATE, ALTER, DROP and COMMENT ON OPERATOR CLASS and FAMILY need."""

    def create_opclass(self, statement: st.CreateOpclass) -> None:
        """CREATE on the schema; to be a superuser."""
        self._create_in(statement.schema)
        self._be_superuser("must be superuser to create an operator class")

    def create_opfamily(self, statement: st.CreateOpfamily) -> None:
        """CREATE on the schema; to be a superuser."""
        self._create_in(statement.schema)
        self._be_superuser("must be superuser to create an operator family")

    def change_opfamily(self, statement: st.ChangeOpfamily) -> None:
        """To be a superuser."""
        self._be_superuser("must be superuser to alter an operator family")

    def _own_opclass(self, oid: int, written: str = "") -> OpclassDef:
        found = opclass_of(self.catalog, oid)
        if not self.rights.owns(found.owner):
            what = OPCLASS_WORDS[found.class_oid]
            raise SqlError("42501", f"must be owner of {what} {written or found.name}")
        return found

    def alter_opclass(self, statement: st.AlterOpclass) -> None:
        """To own it; CREATE on its schema. SET SCHEMA: CREATE on that first; where it is there already,
        nothing else.
        """
        self._alter_placed(opclass_of(self.catalog, statement.object), statement, self._own_opclass)

    def drop_opclass(self, statement: st.DropOpclass) -> None:
        """To own it, or its schema."""
        if not statement.object:
            return
        schema = self.catalog.schema(opclass_of(self.catalog, statement.object).schema)
        if schema is None or not self.rights.owns(schema.owner):
            self._own_opclass(statement.object, statement.written)

    def comment_on_opclass(self, statement: st.Comment) -> None:
        """To own it."""
        self._own_opclass(statement.object_oid, statement.name)
