"""The row of a definition: what all of them share."""

from __future__ import annotations

from engine.session.spec import Handler, Locks, Rights, StatementSpec
from engine.statements.begin import begin_definition


def definition(
    statement: type, handler: Handler, rights: Rights, locks: Locks, *, reads_elsewhere: bool = False
) -> StatementSpec:
    """Return the row of a class of definitions, which lock what they are about before they look at it."""
    return StatementSpec(
        statement=statement,
        handler=handler,
        rights=rights,
        locks=locks,
        begin=begin_definition,
        reads_elsewhere=reads_elsewhere,
        defines=True,
    )
