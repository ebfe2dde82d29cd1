"""Roles and what they hold."""

from __future__ import annotations

from typing import Final

from engine.definitions import grant, roles
from engine.definitions.dropping import owned
from engine.definitions.locks import forms, of_objects
from engine.definitions.needs import members
from engine.definitions.needs.rights import Asked, Asks, Elsewhere
from engine.session.large_objects import statements as large_objects
from engine.session.spec import StatementSpec
from engine.statements.families.definition import definition
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    definition(st.RoleStatement, roles.run_role, Asks(Asked.role_statement), of_objects.role_statement),
    definition(st.GrantRole, members.run_grant_role, Asks(Asked.grant_role), of_objects.grant_role),
    definition(st.Grant, grant.run_grant, Asks(Asked.grant), of_objects.grant),
    definition(
        st.AlterDefaultPrivileges,
        owned.default_privileges,
        Asks(Asked.alter_default_privileges),
        forms.all_databases,
    ),
    definition(st.ReassignOwned, owned.reassign, Asks(Asked.reassign_owned), forms.all_databases),
    definition(st.DropOwned, owned.drop_owned, Asks(Asked.drop_owned), forms.all_databases),
    definition(
        st.AlterLargeObject,
        large_objects.alter_owner,
        Elsewhere("engine.session.large_objects.statements:alter_owner", "who owns it is read with its row"),
        of_objects.alter_large_object,
    ),
)
