"""What definitions of extended statistics need of a role."""

from __future__ import annotations

from engine.definitions.needs.needs import Needs
from engine.session.named_roles import named_role
from engine.session.plans.plan import Replan
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog.statistics import StatisticsDef


class StatisticsNeeds(Needs):
    """What CREATE, ALTER, DROP and COMMENT ON STATISTICS need."""

    def create_statistics(self, statement: st.CreateStatistics) -> None:
        """To own the table; CREATE on the schema of the statistics."""
        self._own(self._relation(statement.table))
        self._create_in(statement.schema)

    def _statistics(self, oid: int) -> StatisticsDef:
        found = self.catalog.statistics_by_oid(oid)
        if found is None:
            raise Replan  # dropped since the plan was made
        return found[1]

    def _own_statistics(self, oid: int, written: str = "") -> StatisticsDef:
        found = self._statistics(oid)
        if not self.rights.owns(found.owner):
            raise SqlError("42501", f"must be owner of statistics object {written or found.name}")
        return found

    def _schema_of(self, found: StatisticsDef) -> str:
        schema = self.catalog.schema_by_oid(found.schema_oid)
        if schema is None:
            raise Replan
        return schema.name

    def alter_statistics(self, statement: st.AlterStatistics) -> None:
        """To own them; CREATE on their schema, or the one that they go to, but for SET STATISTICS."""
        if statement.target is not None:
            self._own_statistics(statement.object, statement.written)
        elif statement.owner is not None:
            found = self._statistics(statement.object)
            if named_role(self.session, statement.owner).oid != found.owner:
                self._own_statistics(statement.object)
                self._give(self._schema_of(found), found.owner, statement.owner)
        elif statement.schema is not None:
            self._create_in(statement.schema)
            if statement.schema != self._schema_of(self._statistics(statement.object)):
                self._own_statistics(statement.object)
        else:
            self._create_in(self._schema_of(self._own_statistics(statement.object)))

    def drop_statistics(self, statement: st.DropStatistics) -> None:
        """To own them, or their schemas."""
        for oid, written in statement.objects:
            self._drop_statistics(oid, written)

    def _drop_statistics(self, oid: int, written: str) -> None:
        holder = self.catalog.schema_by_oid(self._statistics(oid).schema_oid)
        if holder is None or not self.rights.owns(holder.owner):
            self._own_statistics(oid, written)

    def comment_on_statistics(self, statement: st.Comment) -> None:
        """To own them."""
        self._own_statistics(statement.object_oid, statement.name)
