"""What definitions of conversions need of a role."""

from __future__ import annotations

from engine.definitions.conversions import conversion_of
from engine.definitions.needs.needs import Needs
from planner import statements as st
from planner.base.errors import SqlError


class ConversionNeeds(Needs):
    """What CREATE, ALTER, DROP and COMMENT ON CONVERSION need; its function is PostgreSQL's own, which
    everybody may call.
    """

    def create_conversion(self, statement: st.CreateConversion) -> None:
        """CREATE on the schema."""
        self._create_in(statement.schema)

    def _own_conversion(self, oid: int, written: str = "") -> None:
        found = conversion_of(self.catalog, oid)
        if not self.rights.owns(found.owner):
            raise SqlError("42501", f"must be owner of conversion {written or found.name}")

    def alter_conversion(self, statement: st.AlterConversion) -> None:
        """To own it; CREATE on its schema. SET SCHEMA: CREATE on that first; where it is there already,
        nothing else.
        """
        self._alter_placed(conversion_of(self.catalog, statement.object), statement, self._own_conversion)

    def drop_conversion(self, statement: st.DropConversion) -> None:
        """To own them, or their schemas."""
        for oid, written in zip(statement.objects, statement.written, strict=True):
            schema = self.catalog.schema(conversion_of(self.catalog, oid).schema)
            if schema is None or not self.rights.owns(schema.owner):
                self._own_conversion(oid, written)

    def comment_on_conversion(self, statement: st.Comment) -> None:
        """To own it."""
        self._own_conversion(statement.object_oid, statement.name)
