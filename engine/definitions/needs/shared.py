"""What is asked about objects that all databases share, and that are not PostgreSQL's: roles, databases,
extensions, sources, timelines, subscriptions; files of the server, locks.

That something named is not there at all is for the statement to say when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, get_type_hints

from engine.catalog.storage.stored import predefined_roles
from engine.definitions.needs.definition import DefinitionNeeds
from engine.definitions.needs.members import refuse_new_name
from engine.definitions.needs.needs import denied
from engine.session.named_roles import named_role
from pgwire.give_way import paced
from planner import statements as st
from planner.base.errors import SqlError
from planner.base.total import members, total
from planner.catalog import RoleDef
from planner.catalog.acl import READ_SERVER_FILES, WRITE_SERVER_FILES, may_admit
from planner.catalog.relation_kinds import RELATION_KINDS
from planner.catalog.rights import Rights
from planner.facts import facts

# any of these privileges gives a lock, by level; the stronger ones need one to change what is there
_LOCKING: Final = {1: "r", 3: "awdD"}
_TEMPLATE: Final = "template1"


class SharedNeeds(DefinitionNeeds):
    """What statements about shared objects need of a role."""

    # -- databases ---------------------------------------------------------------------------------

    def create_database(self, statement: st.CreateDatabase) -> None:
        """CREATEDB, membership in the owner; to own a template that is not everybody's."""
        self.session.block.must_be_alone("CREATE DATABASE")
        self._may_create_databases("permission denied to create database")
        if "owner" in statement.options:
            self._member(str(statement.options["owner"]))
        name = str(statement.options.get("template", _TEMPLATE))
        template = self.catalog.database_named(name)
        if template is not None and not template.is_template and not self.rights.owns(template.owner):
            raise SqlError("42501", f'permission denied to copy database "{name}"')

    def alter_database(self, statement: st.AlterDatabase) -> None:
        """To own it; OWNER TO: membership and CREATEDB besides, nothing to the present owner."""
        database = self.catalog.database_named(statement.name)
        if database is None:
            return
        if "owner" not in statement.options:
            self._own_database(database.oid)
            return
        to = str(statement.options["owner"])
        if named_role(self.session, to).oid != database.owner:
            self._own_database(database.oid)
            self._member(to)
            self._may_create_databases("permission denied to change owner of database")

    def rename_database(self, statement: st.Rename) -> None:
        """To own it, CREATEDB."""
        database = self.catalog.database_named(statement.old)
        if database is not None:
            self._own_database(database.oid)
            self._may_create_databases("permission denied to rename database")

    def drop_database(self, statement: st.DropDatabase) -> None:
        """To own it; FORCE asks for each session besides, when it ends them."""
        self.session.block.must_be_alone("DROP DATABASE")
        database = self.catalog.database_named(statement.name)
        if database is not None:
            self._own_database(database.oid)

    def alter_defaults(self, statement: st.AlterDefaults) -> None:
        """Of a role: to be it, or CREATEROLE; of all: to be a superuser; of a database: to own it. What
        settings may be set is ``Settings.check``'s.
        """
        database = self.catalog.database_named(statement.database) if statement.database else None
        if statement.database and database is None:
            return
        role = None if statement.role is None else named_role(self.session, statement.role)
        if statement.of_role and not (role is None and database is not None):
            self._set_for(role)
        elif database is not None:
            self._own_database(database.oid)

    def _set_for(self, role: RoleDef | None) -> None:
        if role is not None and (role.oid == self.role.oid or role.name in predefined_roles()):
            return  # whoever asks, these are refused
        if self.rights.superuser:
            return
        if role is None:
            raise SqlError("42501", "must be superuser to alter settings globally")
        if role.superuser:
            raise SqlError("42501", "must be superuser to alter superusers")
        if not self.role.create_role:
            raise SqlError("42501", "permission denied")

    def _may_create_databases(self, message: str) -> None:
        if not (self.rights.superuser or self.role.create_db):
            raise SqlError("42501", message)

    # -- roles -------------------------------------------------------------------------------------

    def role_statement(self, statement: st.RoleStatement) -> None:
        """CREATEROLE, and what the action asks (``ROLE_ACTIONS``)."""
        if not self.rights.superuser:
            ROLE_ACTIONS[statement.action](self, statement)

    def create_role(self, statement: st.RoleStatement) -> None:
        """Superusers and their kin are made by superusers alone."""
        for option, kind in (
            ("superuser", "superusers"),
            ("replication", "replication users"),
            ("bypass_rls", "bypassrls users"),
        ):
            if statement.options.get(option):
                raise SqlError("42501", f"must be superuser to create {kind}")
        self._may_create_roles("permission denied to create role")
        if any(self.catalog.role(name) is not None for name in paced(statement.names)):
            return
        for grant in statement.memberships:
            for name in paced(grant.roles):
                if name not in statement.names:
                    self._admit(named_role(self.session, name))

    def alter_role(self, statement: st.RoleStatement) -> None:
        """So are their attributes; one's own password is one's own."""
        options = statement.options
        for name in paced(statement.names):
            role = self.catalog.role(name)
            if role is None or name in predefined_roles():
                continue
            if role.superuser or "superuser" in options:
                raise SqlError(
                    "42501", "must be superuser to alter superuser roles or change superuser attribute"
                )
            if role.replication or "replication" in options:
                raise SqlError(
                    "42501", "must be superuser to alter replication roles or change replication attribute"
                )
            if "bypass_rls" in options:
                raise SqlError("42501", "must be superuser to change bypassrls attribute")
            if role.oid != self.role.oid or options.keys() != {"password"}:
                self._may_create_roles("permission denied")

    def drop_role(self, statement: st.RoleStatement) -> None:
        """Superusers are dropped by superusers."""
        self._may_create_roles("permission denied to drop role")
        for name in paced(statement.names):
            role = self.catalog.role(name)
            if role is not None and role.superuser:
                raise SqlError("42501", "must be superuser to drop superusers")

    def rename_role(self, statement: st.Rename) -> None:
        """CREATEROLE; of a superuser to be one. What no right makes up for is told first."""
        role = self.catalog.role(statement.old)
        if role is not None:
            refuse_new_name(self.session, role, statement.new)
        if role is not None and role.superuser:
            self._be_superuser("must be superuser to rename superusers")
        self._may_create_roles("permission denied to rename role")

    def grant_role(self, statement: st.GrantRole) -> None:
        """The admin option, or CREATEROLE, which ALTER GROUP asks for in any case; to a superuser's role to be one.

        A superuser alone names another role as the one that grants.
        """
        grantor = self.role if statement.grantor is None else named_role(self.session, statement.grantor)
        if statement.alters_group:
            self._may_alter_groups(statement.roles)
        for name in paced(statement.members):
            named_role(self.session, name)  # that it is there is asked before any right
        for name in paced(statement.roles):
            self._admit(named_role(self.session, name), grantor)
            if grantor.oid != self.role.oid and not self.rights.superuser:
                raise SqlError("42501", "must be superuser to set grantor")

    def _may_alter_groups(self, names: Sequence[str]) -> None:
        """As ALTER ROLE asks, which is said otherwise than what GRANT asks."""
        for name in paced(names):
            if named_role(self.session, name).superuser:
                self._be_superuser("must be superuser to alter superuser roles or change superuser attribute")
        self._may_create_roles("permission denied")

    def _may_create_roles(self, message: str) -> None:
        if not (self.rights.superuser or self.role.create_role):
            raise SqlError("42501", message)

    def _admit(self, role: RoleDef, grantor: RoleDef | None = None) -> None:
        """Check that the role may say who the members of another are; the admin option has to be
        ``grantor``'s, if there is one.
        """
        if self.rights.superuser:
            return
        if role.superuser:
            raise SqlError("42501", "must be superuser to alter superusers")
        if not self.role.create_role and not may_admit(
            grantor or self.role, role.oid, self.catalog.role_by_oid
        ):
            raise SqlError("42501", f'must have admin option on role "{role.name}"')

    # -- RENAME ------------------------------------------------------------------------------------

    def rename(self, statement: st.Rename) -> None:
        """What the kind of object asks (``RENAMED``)."""
        RENAMED[statement.what](self, statement)

    # -- what roles own ----------------------------------------------------------------------------

    def reassign_owned(self, statement: st.ReassignOwned) -> None:
        """The rights of those whose objects go, and of whom they go to."""
        for name in paced((*statement.roles, statement.to)):
            self._have_rights_of(name, "permission denied to reassign objects")

    def drop_owned(self, statement: st.DropOwned) -> None:
        """The rights of those whose objects go."""
        for name in paced(statement.roles):
            self._have_rights_of(name, "permission denied to drop objects")

    def _have_rights_of(self, name: str, message: str) -> None:
        if not self.rights.owns(named_role(self.session, name).oid):
            raise SqlError("42501", message)

    def alter_default_privileges(self, statement: st.AlterDefaultPrivileges) -> None:
        """Membership in those whose objects they are about."""
        for name in paced(statement.roles):
            self._member(name)

    # -- extensions --------------------------------------------------------------------------------

    def create_extension(self, statement: st.CreateExtension) -> None:
        """CREATE on the database; to be a superuser for one that is not trusted."""
        name = statement.name
        fact = facts().extensions.get(name)
        if self.catalog.extension(name) is not None or fact is None:
            return
        if statement.version not in ("", fact.version):
            return
        message = f'permission denied to create extension "{name}"'
        if not fact.trusted and not self.rights.superuser:
            raise SqlError("42501", message, hint="Must be superuser to create this extension.")
        if not self.rights.database("C"):
            hint = "Must have CREATE privilege on current database to create this extension."
            raise SqlError("42501", message, hint=hint)

    def alter_extension(self, statement: st.AlterExtension) -> None:
        """To own it, CREATE on the schema that it goes to."""
        found = self.catalog.extension(statement.name)
        if found is not None:
            if statement.schema:
                self._have_schema(statement.schema, "C")
            self._own_extension(found)

    def drop_extension(self, statement: st.DropExtension) -> None:
        """To own them."""
        for name in paced(statement.names):
            found = self.catalog.extension(name)
            if found is not None:
                self._own_extension(found)

    # -- ours --------------------------------------------------------------------------------------

    def create_source(self, statement: st.CreateSource) -> None:
        """To be a superuser: it reads files and connects elsewhere as the server."""
        self._be_superuser("must be superuser to create sources")

    def alter_source(self, statement: st.AlterSource) -> None:
        """To own it."""
        self._own_source(statement.name)

    def drop_source(self, statement: st.DropSource) -> None:
        """To own them."""
        for name in paced(statement.names):
            self._own_source(name)

    def _own_source(self, name: str) -> None:
        source = self.catalog.sources.get(name)
        if source is not None and not self.rights.owns(source.owner):
            raise SqlError("42501", f"must be owner of source {name}")

    def create_timeline(self, statement: st.CreateTimeline) -> None:
        """To be a superuser."""
        self._be_superuser(
            "permission denied to create a timeline", hint="Must be superuser to create a timeline."
        )

    def drop_timeline(self, statement: st.DropTimeline) -> None:
        """To be a superuser."""
        self._be_superuser(
            "permission denied to drop a timeline", hint="Must be superuser to drop a timeline."
        )

    def create_subscription(self, statement: st.CreateSubscription) -> None:
        """What its query reads; later, too, for each SUBSCRIBE to it."""
        self.session.block.must_be_alone("CREATE SUBSCRIPTION")
        self.query(statement.query, self.role)

    def acknowledge_subscription(self, statement: st.AcknowledgeSubscription) -> None:
        """To own it."""
        self._own_subscription(statement.name)

    def drop_subscription(self, statement: st.DropSubscription) -> None:
        """To own it."""
        self.session.block.must_be_alone("DROP SUBSCRIPTION")
        self._own_subscription(statement.name)

    def subscribe(self, statement: st.Subscribe) -> None:
        """What its query reads; to own the named subscription whose place it takes."""
        if statement.subscription is not None:
            self._own_subscription(statement.subscription)
        self.query(statement.query, self.role)

    def _own_subscription(self, name: str) -> None:
        named = self.session.db.named.find(name)
        if named is not None and not self.rights.owns(named.record.owner):
            raise SqlError("42501", f"must be owner of subscription {name}")

    # -- files, locks ------------------------------------------------------------------------------

    def _touch_files(self, *, reading: bool) -> None:
        if self.rights.owns(READ_SERVER_FILES if reading else WRITE_SERVER_FILES):
            return
        role, verb = (
            ("pg_read_server_files", "COPY from") if reading else ("pg_write_server_files", "COPY to")
        )
        raise SqlError(
            "42501",
            f"must be superuser or have privileges of the {role} role to {verb} a file",
            hint="Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.",
        )

    def load(self, statement: st.Load) -> None:
        """To be a superuser, but for a library among the plugins."""
        if not self.rights.superuser and not statement.library.startswith("$libdir/plugins/"):
            raise SqlError("42501", f'access to library "{statement.library}" is not allowed')

    def lock_table(self, statement: st.LockTable) -> None:
        """SELECT for ACCESS SHARE, a right to change rows for the others; what views read is asked of their owners."""
        if self.session.block.is_alone:
            raise SqlError("25P01", "LOCK TABLE can only be used in transaction blocks")
        letters = _LOCKING.get(statement.mode, "wdD")
        for oid in statement.tables:
            relation = self._used(oid)
            if not self.rights.relation(relation, letters):
                raise denied(RELATION_KINDS[relation.kind].word, relation.name)
        for oid, owner in statement.beneath:
            relation = self._relation(oid)
            role = self.session.rights_catalog.role_by_oid(owner) if owner else self.role
            if role is None or not Rights(self.session.rights_catalog, role).relation(relation, letters):
                raise denied(RELATION_KINDS[relation.kind].word, relation.name)


_RoleAction: TypeAlias = Callable[[SharedNeeds, st.RoleStatement], None]
ROLE_ACTIONS: Final[Mapping[str, _RoleAction]] = total(
    "rights of roles",
    members(get_type_hints(st.RoleStatement)["action"]),
    {"create": SharedNeeds.create_role, "alter": SharedNeeds.alter_role, "drop": SharedNeeds.drop_role},
)

_Renamed: TypeAlias = Callable[[SharedNeeds, st.Rename], None]
RENAMED: Final[Mapping[str, _Renamed]] = total(
    "rights of RENAME",
    members(get_type_hints(st.Rename)["what"]),
    {
        "relation": SharedNeeds.rename_relation,
        "column": SharedNeeds.rename_in_relation,
        "constraint": SharedNeeds.rename_in_relation,
        "schema": SharedNeeds.rename_schema,
        "role": SharedNeeds.rename_role,
        "database": SharedNeeds.rename_database,
    },
)
"""What RENAME asks by the kind of object."""
