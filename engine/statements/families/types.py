"""Types and domains."""

from __future__ import annotations

from typing import Final

from engine.definitions import composites, domains, own_ranges, types
from engine.definitions.locks import forms, of_objects
from engine.definitions.needs.rights import Asked, Asks
from engine.session.spec import StatementSpec
from engine.statements.families.definition import definition
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    definition(st.CreateEnum, types.create_enum, Asks(Asked.create_enum), of_objects.create_type),
    definition(st.CreateRange, own_ranges.create_range, Asks(Asked.create_range), of_objects.create_type),
    definition(
        st.CreateComposite, composites.create_composite, Asks(Asked.create_composite), of_objects.create_type
    ),
    definition(
        st.AlterComposite, composites.alter_composite, Asks(Asked.alter_composite), of_objects.alter_composite
    ),
    definition(st.AddEnumValue, types.add_enum_value, Asks(Asked.change_type), of_objects.change_enum),
    definition(st.RenameEnumValue, types.rename_enum_value, Asks(Asked.change_type), of_objects.change_enum),
    definition(st.CreateDomain, domains.create_domain, Asks(Asked.create_domain), forms.whole_database),
    definition(st.SetDomainDefault, domains.set_default, Asks(Asked.change_type), forms.whole_database),
    definition(st.SetDomainNotNull, domains.set_not_null, Asks(Asked.change_type), forms.whole_database),
    definition(st.AddDomainCheck, domains.add_check, Asks(Asked.change_type), forms.whole_database),
    definition(
        st.DropDomainConstraint, domains.drop_constraint, Asks(Asked.change_type), forms.whole_database
    ),
    definition(
        st.ValidateDomainConstraint,
        domains.validate_constraint,
        Asks(Asked.change_type),
        forms.whole_database,
    ),
    definition(
        st.RenameDomainConstraint, domains.rename_constraint, Asks(Asked.change_type), forms.whole_database
    ),
    definition(st.AlterType, types.alter_type, Asks(Asked.alter_type), of_objects.alter_type),
    definition(st.DropType, types.drop_type, Asks(Asked.drop_type), forms.whole_database),
)
