"""What definitions of collations need of a role; everybody may use one."""

from __future__ import annotations

from engine.definitions.collations import collation_of
from engine.definitions.needs.needs import Needs
from planner import statements as st
from planner.base.errors import SqlError


class CollationNeeds(Needs):
    """What CREATE, ALTER, DROP and COMMENT ON COLLATION need."""

    def create_collation(self, statement: st.CreateCollation) -> None:
        """CREATE on the schema."""
        self._create_in(statement.schema)

    def _own_collation(self, oid: int, written: str = "") -> None:
        found = collation_of(self.catalog, oid)
        if not self.rights.owns(found.owner):
            raise SqlError("42501", f"must be owner of collation {written or found.name}")

    def alter_collation(self, statement: st.AlterCollation) -> None:
        """To own it; CREATE on its schema. SET SCHEMA: CREATE on that first; where it is there already,
        nothing else.
        """
        self._alter_placed(collation_of(self.catalog, statement.object), statement, self._own_collation)

    def refresh_collation(self, statement: st.RefreshCollation) -> None:
        """To own it; PostgreSQL's own are the bootstrap superuser's."""
        if self.catalog.collation_by_oid(statement.object) is None:
            raise SqlError("42501", f"must be owner of collation {statement.name}")
        self._own_collation(statement.object, statement.name)

    def drop_collation(self, statement: st.DropCollation) -> None:
        """To own them, or their schemas."""
        for oid, written in zip(statement.objects, statement.written, strict=True):
            schema = self.catalog.schema(collation_of(self.catalog, oid).schema)
            if schema is None or not self.rights.owns(schema.owner):
                self._own_collation(oid, written)

    def comment_on_collation(self, statement: st.Comment) -> None:
        """To own it."""
        self._own_collation(statement.object_oid, statement.name)
