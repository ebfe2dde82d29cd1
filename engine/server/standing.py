"""Whether this server still leads, as connections ask it before an answer leaves (``pgwire.session.responder``)."""

from __future__ import annotations

from engine.session.errors import report_of
from pgwire.errors import BackendError
from planner.catalog import Catalog
from txn.base.errors import TxnError
from txn.log.lease import Lease


class LeaseStanding:
    """Implements ``pgwire.backend.Standing`` over the leader's lease."""

    __slots__ = ("_catalog", "_lease", "valid")

    def __init__(self, lease: Lease, catalog: Catalog) -> None:
        """``catalog``: for errors' names."""
        self._lease = lease
        self._catalog = catalog
        self.valid = lease.valid

    async def wait_valid(self) -> None:
        """See ``pgwire.backend.Standing``."""
        try:
            await self._lease.wait_valid()
        except TxnError as error:
            report = report_of(error, self._catalog)
            if report is None:
                raise
            raise BackendError(report) from error
