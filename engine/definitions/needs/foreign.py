"""What definitions of foreign data need of a role."""

from __future__ import annotations

from engine.definitions.needs.needs import Needs, denied
from engine.session.catalog.foreign import foreign_of
from engine.session.named_roles import OWN_NAMES, named_role
from engine.session.plans.plan import Replan
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import RoleDef
from planner.catalog.foreign import PG_USER_MAPPING, PUBLIC_MAPPING, ServerDef, WrapperDef
from planner.catalog.rights import Rights, foreign_kind


class ForeignNeeds(Needs):
    """What statements about wrappers, servers and user mappings need."""

    def _administer(self, verb: str, name: str) -> None:
        self._be_superuser(
            f'permission denied to {verb} foreign-data wrapper "{name}"',
            hint=f"Must be superuser to {verb} a foreign-data wrapper.",
        )

    def create_wrapper(self, statement: st.CreateWrapper) -> None:
        """To be a superuser."""
        self._administer("create", statement.name)

    def alter_wrapper(self, statement: st.AlterWrapper) -> None:
        """To be a superuser."""
        self._administer("alter", foreign_of(self.catalog, WrapperDef, statement.wrapper).name)

    def _may_use(self, item: WrapperDef | ServerDef, role: RoleDef | None = None) -> None:
        """Check USAGE on a wrapper or server; ``role``: another one's."""
        rights = self.rights if role is None else Rights(self.catalog, role)
        if not rights.foreign(item):
            raise denied(foreign_kind(item), item.name)

    def _own_foreign(self, oid: int) -> WrapperDef | ServerDef:
        found = self.catalog.foreign_by_oid(oid)
        if not isinstance(found, WrapperDef | ServerDef):
            raise Replan  # dropped since the plan was made
        if not self.rights.owns(found.owner):
            raise SqlError("42501", f"must be owner of {foreign_kind(found)} {found.name}")
        return found

    def create_server(self, statement: st.CreateServer) -> None:
        """USAGE on the wrapper; that there is such a server is told first."""
        if statement.wrapper:
            self._may_use(foreign_of(self.catalog, WrapperDef, statement.wrapper))

    def alter_server(self, statement: st.AlterServer) -> None:
        """To own it."""
        self._own_foreign(statement.server)

    def alter_foreign(self, statement: st.AlterForeign) -> None:
        """To own it; OWNER TO of a wrapper to be a superuser, of a server membership, and the new owner's
        USAGE on the wrapper.
        """
        if statement.owner is None:
            self._own_foreign(statement.object)
            return
        found = self.catalog.foreign_by_oid(statement.object)
        if isinstance(found, WrapperDef):
            self._be_superuser(
                f'permission denied to change owner of foreign-data wrapper "{found.name}"',
                hint="Must be superuser to change owner of a foreign-data wrapper.",
            )
            return
        server = foreign_of(self.catalog, ServerDef, statement.object)
        owner = named_role(self.session, statement.owner)
        if owner.oid == server.owner or self.rights.superuser:
            return
        self._own_foreign(server.oid)
        self._member(statement.owner)
        self._may_use(foreign_of(self.catalog, WrapperDef, server.wrapper), owner)

    def drop_foreign(self, statement: st.DropForeign) -> None:
        """To own them."""
        for oid in statement.objects:
            self._own_foreign(oid)

    def comment_on_foreign(self, statement: st.Comment) -> None:
        """To own it."""
        self._own_foreign(statement.object_oid)

    def change_mapping(self, statement: st.CreateUserMapping | st.AlterUserMapping) -> None:
        """To own the server, or USAGE on it where the mapping is one's own."""
        self._map(statement.role, foreign_of(self.catalog, ServerDef, statement.server))

    def drop_mapping(self, statement: st.DropUserMapping) -> None:
        """As ``change_mapping``; what is not there is told first."""
        found = self.catalog.foreign_by_oid(statement.server)
        role = PUBLIC_MAPPING
        if statement.role is not None:
            if not self._is_role(statement.role):
                return
            role = named_role(self.session, statement.role).oid
        if (
            isinstance(found, ServerDef)
            and self.catalog.foreign_named(PG_USER_MAPPING, (role, found.oid)) is not None
        ):
            self._map(statement.role, found)

    def _is_role(self, name: str) -> bool:
        return name in OWN_NAMES or self.catalog.role(name) is not None

    def _map(self, role: str | None, server: ServerDef) -> None:
        if self.rights.owns(server.owner):
            return
        if role is None or named_role(self.session, role).oid != self.role.oid:
            raise SqlError("42501", f"must be owner of foreign server {server.name}")
        self._may_use(server)

    def import_schema(self, statement: st.ImportForeignSchema) -> None:
        """USAGE on the server, CREATE on the schema."""
        self._may_use(foreign_of(self.catalog, ServerDef, statement.server))
        self._create_in(statement.schema)
