"""What COMMENT ON needs of a role, by the catalog that the object is in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from engine.catalog.storage.stored import (
    PG_AUTHID_OID,
    PG_CLASS_OID,
    PG_CONSTRAINT_OID,
    PG_DATABASE_OID,
    PG_EXTENSION_OID,
    PG_FOREIGN_DATA_WRAPPER_OID,
    PG_FOREIGN_SERVER_OID,
    PG_LARGEOBJECT_OID,
    PG_NAMESPACE_OID,
    PG_OPCLASS_OID,
    PG_OPFAMILY_OID,
    PG_POLICY_OID,
    PG_PROC_OID,
    PG_STATISTIC_EXT_OID,
    PG_TRIGGER_OID,
    PG_TS_CONFIG_OID,
    PG_TS_DICT_OID,
    PG_TYPE_OID,
)
from engine.definitions.needs.collation import CollationNeeds
from engine.definitions.needs.conversion import ConversionNeeds
from engine.definitions.needs.foreign import ForeignNeeds
from engine.definitions.needs.opclass import OpclassNeeds
from engine.definitions.needs.routine import RoutineNeeds
from engine.definitions.needs.statistics import StatisticsNeeds
from engine.session.plans.plan import Replan
from planner import statements as st
from planner.base.errors import SqlError
from planner.base.total import members, total
from planner.catalog.collations import PG_COLLATION
from planner.catalog.conversions import PG_CONVERSION


class CommentNeeds(
    RoutineNeeds, StatisticsNeeds, ForeignNeeds, OpclassNeeds, ConversionNeeds, CollationNeeds
):
    """To own what is commented on, or what it is a part of."""

    def comment(self, statement: st.Comment) -> None:
        """What the kind of object asks (``COMMENTED``)."""
        COMMENTED[statement.class_oid](self, statement)

    def comment_on_relation(self, statement: st.Comment) -> None:
        """Of a relation, or a column of one."""
        relation = self._relation(statement.object_oid)
        if statement.sub_id:
            self._own_for_part(relation)
        else:
            self._own(relation)

    def comment_on_constraint(self, statement: st.Comment) -> None:
        """Of a constraint of a table or a domain."""
        of_table = self.catalog.constraint_by_oid(statement.object_oid)
        of_domain = self.catalog.domain_constraint(statement.object_oid)
        if of_table is not None:
            self._own_for_part(of_table[0])
        elif of_domain is not None:
            self._own_type(of_domain[0])
        else:
            raise Replan  # dropped since the plan was made

    def comment_on_part(self, statement: st.Comment) -> None:
        """Of a policy or trigger of a table."""
        find = (
            self.catalog.policy_by_oid
            if statement.class_oid == PG_POLICY_OID
            else self.catalog.trigger_by_oid
        )
        found = find(statement.object_oid)
        if found is None:
            raise Replan
        self._own_for_part(found[0])

    def comment_on_schema(self, statement: st.Comment) -> None:
        """Of a schema."""
        self._own_schema(self.catalog.schema_by_oid(statement.object_oid))

    def comment_on_database(self, statement: st.Comment) -> None:
        """Of a database."""
        self._own_database(statement.object_oid)

    def comment_on_function(self, statement: st.Comment) -> None:
        """Of a function, procedure or aggregate."""
        self._own_function(statement.object_oid, statement.name)

    def comment_on_type(self, statement: st.Comment) -> None:
        """Of a type or domain."""
        self._own_type(self.catalog.type_by_oid(statement.object_oid))

    def comment_on_text_search(self, statement: st.Comment) -> None:
        """Of a text search object."""
        self._own_text_search(statement.object_oid, statement.name)

    def comment_on_extension(self, statement: st.Comment) -> None:
        """Of an extension."""
        self._own_extension(self._extension_by_oid(statement.object_oid))

    def comment_on_role(self, statement: st.Comment) -> None:
        """CREATEROLE; of a superuser to be one."""
        role = self.catalog.role_by_oid(statement.object_oid)
        if role is not None and role.superuser:
            self._be_superuser("must be superuser")
        if not (self.rights.superuser or self.role.create_role):
            raise SqlError("42501", "must have CREATEROLE privilege")

    def comment_on_large_object(self, statement: st.Comment) -> None:
        """Who owns it is read with its row, when the statement runs
        (``engine.session.large_objects.statements.check_commentable``).
        """


_Comment: TypeAlias = Callable[[CommentNeeds, st.Comment], None]
COMMENTED: Final[Mapping[int, _Comment]] = total(
    "rights of COMMENT ON",
    members(st.CommentClass),
    {
        PG_CLASS_OID: CommentNeeds.comment_on_relation,
        PG_CONSTRAINT_OID: CommentNeeds.comment_on_constraint,
        PG_POLICY_OID: CommentNeeds.comment_on_part,
        PG_TRIGGER_OID: CommentNeeds.comment_on_part,
        PG_NAMESPACE_OID: CommentNeeds.comment_on_schema,
        PG_DATABASE_OID: CommentNeeds.comment_on_database,
        PG_PROC_OID: CommentNeeds.comment_on_function,
        PG_TYPE_OID: CommentNeeds.comment_on_type,
        PG_STATISTIC_EXT_OID: CommentNeeds.comment_on_statistics,
        PG_TS_CONFIG_OID: CommentNeeds.comment_on_text_search,
        PG_TS_DICT_OID: CommentNeeds.comment_on_text_search,
        PG_FOREIGN_SERVER_OID: CommentNeeds.comment_on_foreign,
        PG_FOREIGN_DATA_WRAPPER_OID: CommentNeeds.comment_on_foreign,
        PG_OPCLASS_OID: CommentNeeds.comment_on_opclass,
        PG_OPFAMILY_OID: CommentNeeds.comment_on_opclass,
        PG_CONVERSION: CommentNeeds.comment_on_conversion,
        PG_COLLATION: CommentNeeds.comment_on_collation,
        PG_EXTENSION_OID: CommentNeeds.comment_on_extension,
        PG_AUTHID_OID: CommentNeeds.comment_on_role,
        PG_LARGEOBJECT_OID: CommentNeeds.comment_on_large_object,
    },
)
