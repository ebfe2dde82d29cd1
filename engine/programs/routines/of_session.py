"""The calls of a session, as the floor that runs them knows them: all that ``Routines`` can, not its port's
few members alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from engine.programs.routines.calls import Routines
    from engine.session.session import Session


def routines_of(session: Session) -> Routines:
    """Return what runs a session's calls: ``engine.server.ports`` puts no other there."""
    return cast("Routines", session.system.routines)
