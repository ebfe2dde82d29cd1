"""Operator classes and families, collations, conversions."""

from __future__ import annotations

from typing import Final

from engine.definitions import collations, conversions, opclasses
from engine.definitions.locks import forms
from engine.definitions.needs.rights import Asked, Asks
from engine.session.spec import StatementSpec
from engine.statements import session
from engine.statements.begin import by_handler
from engine.statements.families.definition import definition
from planner import statements as st

SPECS: Final[tuple[StatementSpec, ...]] = (
    definition(st.CreateOpfamily, opclasses.create_family, Asks(Asked.create_opfamily), forms.whole_database),
    definition(st.CreateOpclass, opclasses.create_class, Asks(Asked.create_opclass), forms.whole_database),
    definition(st.ChangeOpfamily, opclasses.change_family, Asks(Asked.change_opfamily), forms.whole_database),
    definition(st.AlterOpclass, opclasses.alter_opclass, Asks(Asked.alter_opclass), forms.whole_database),
    definition(
        st.DropOpclass,
        opclasses.drop_opclass,
        Asks(Asked.drop_opclass),
        forms.whole_if(lambda _catalog, statement: statement.object),
    ),
    definition(
        st.CreateCollation, collations.create_collation, Asks(Asked.create_collation), forms.whole_database
    ),
    definition(
        st.AlterCollation, collations.alter_collation, Asks(Asked.alter_collation), forms.whole_database
    ),
    definition(
        st.DropCollation,
        collations.drop_collation,
        Asks(Asked.drop_collation),
        forms.whole_if(lambda _catalog, statement: statement.objects),
    ),
    StatementSpec(
        statement=st.RefreshCollation,
        handler=session.refresh_collation,
        rights=Asks(Asked.refresh_collation),
        begin=by_handler,
    ),
    definition(
        st.CreateConversion,
        conversions.create_conversion,
        Asks(Asked.create_conversion),
        forms.whole_database,
    ),
    definition(
        st.AlterConversion, conversions.alter_conversion, Asks(Asked.alter_conversion), forms.whole_database
    ),
    definition(
        st.DropConversion,
        conversions.drop_conversion,
        Asks(Asked.drop_conversion),
        forms.whole_if(lambda _catalog, statement: statement.objects),
    ),
)
