"""Whether a plan has passed the check of rights already: asked at every run, answered by comparing a few numbers.

The check itself is ``engine.definitions.needs.privileges``; it notes with the plan what its answer rested on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.session.plans.plan import Passed

if TYPE_CHECKING:
    from engine.session.plans.plan import Plan
    from engine.session.session import Session


def permitted(session: Session, plan: Plan) -> bool:
    """Tell whether ``plan`` passed ``check`` for this user under this catalog, where triggers fire as they do now."""
    return plan.permitted == key_of_now(session)


def key_of_now(session: Session) -> Passed:
    """Return what it depends on whether a statement may run as it was planned.

    Who asks counts for what is read of the past: the current user where ``asking`` names nobody.
    """
    derived = session.derived
    seen, latest = session.view.catalog.version, session.space.catalog.version
    return (
        seen, latest, derived.user, derived.replica, derived.row_security, session.asking, session.acting
    )  # fmt: skip
