"""Who answers what lower floors ask of higher ones (``engine.session.ports``): the one place that knows both."""

from __future__ import annotations

from typing import Final

from engine.changes.constraints.checks import make_waiting_checks
from engine.definitions.needs.first import refuse_strangers
from engine.definitions.needs.privileges import check
from engine.programs.plpgsql.trigger import run_trigger
from engine.programs.routines.calls import Routines
from engine.server.leftovers import session_beside
from engine.session.ports import Ports
from engine.statements.registry import SPECS
from engine.statements.run import run

PORTS: Final = Ports(
    routines=Routines,
    waiting_checks=make_waiting_checks,
    call_trigger=run_trigger,
    check_rights=check,
    refuse_strangers=refuse_strangers,
    run_statement=run,
    specs=SPECS,
    beside=session_beside,
)
