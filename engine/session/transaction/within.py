"""COMMIT and ROLLBACK of a procedure: the transaction ends, the statement that called the procedure goes on
in the next one.

    CALL load()          transaction 1      INSERT ... INSERT ... COMMIT
      the same CALL      transaction 2        INSERT ... ROLLBACK
                         none yet               x := x + 1
                         transaction 3            UPDATE ...      committed, or not, with the CALL

The next transaction begins with the first statement that needs one, so that it sees what is committed until
then; now() is the time at which the one before has ended. Once something has been committed the whole
statement cannot run again after a lost race: its scans lock their tables from then on, and of each
transaction the first statement alone can run again (``engine.programs.routines.inner``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.base.settings import MODES
from planner.statements import SetTransaction

if TYPE_CHECKING:
    from engine.session.session import Session


async def end_within(session: Session, *, committing: bool, chain: bool) -> None:
    """End the transaction of the statement that runs. ``chain``: the next one has its modes. Raises what a
    commit raises.
    """
    block, settings = session.block, session.settings
    modes = {name: settings.get(name) for name in MODES} if chain else {}
    endings = block.endings + 1
    if committing:
        if session.cursors is not None:
            await session.cursors.materialise_held()
        await block.commit()
        session.cancelled.decided = False  # the statement goes on, and meets there what came meanwhile
    else:
        block.rollback()
    block.endings = endings
    block.optimistic = False
    session.transaction_time_us = session.db.clock_us()
    if any(settings.get(name) != value for name, value in modes.items()):
        chained = SetTransaction(
            session=False,
            isolation=modes["transaction_isolation"],
            read_only=modes["transaction_read_only"] == "on",
            deferrable=modes["transaction_deferrable"] == "on",
        )
        block.set_modes_of_several(chained)
