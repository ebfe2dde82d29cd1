"""What domains demand of attributes of composite values that are read: PostgreSQL's record_in calls their
input functions.

    CREATE TYPE pair AS (a positive, b text)        '(-1,x)'::pair      23514, as the text is read

Codecs know no catalog, so their settings bring this along (``CodecSettings.demand``). Settings outlive
sessions in caches, and go to other processes with loads: it keeps no session alive, and stays behind.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from planner.base.errors import not_supported
from planner.bind.stored.domain_checks import demand
from planner.conversion.ports import Demand

if TYPE_CHECKING:
    from engine.catalog.reading import Reading
    from engine.catalog.state import CatalogSnapshot


class SessionDemands:
    """The demands of the domains of a session's catalog, as its user meets them."""

    __slots__ = ("_session",)

    def __init__(self, session: Reading) -> None:
        """Ask this session, while it is there."""
        self._session = weakref.ref(session)

    def __call__(self, oid: int, value: Any) -> None:
        """Raise what a domain, or an array of domains, has against a value.

        Raises SqlError 23502, 23514, and what its checks raise; 0A000 once the session has ended.
        """
        session = self._session()
        if session is None:
            raise not_supported("input of a composite value of a session that has ended")
        check = _demand_of(session.catalog, oid)
        if check is not None:
            check(value, session)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Become None: another process has no catalog."""
        return type(None), ()


def _demand_of(catalog: CatalogSnapshot, oid: int) -> Demand | None:
    """Return what a domain demands, made once for each catalog."""
    key = (_demand_of, oid)
    if key not in catalog.derived:
        catalog.derived[key] = demand(catalog, oid)
    found: Any = catalog.derived[key]
    made: Demand | None = found
    return made
