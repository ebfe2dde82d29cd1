"""Domains over domains, and the check of a value where it becomes one of a domain's
(``planner.bind.stored.domain_checks``).
"""

from __future__ import annotations

from typing import Any

from planner.base.errors import SqlError
from planner.catalog import Catalog, TypeDef
from planner.conversion.ports import DEMAND, Demand
from planner.functions.session import EvalSession
from planner.types.domains import is_domain


def chain(catalog: Catalog, oid: int) -> list[TypeDef]:
    """Return a domain and the domains that it is over, outermost first. Raises SqlError 42704 for one that is gone."""
    found: list[TypeDef] = []
    while is_domain(oid):
        made = catalog.type_by_oid(oid)
        if made is None:
            raise SqlError("42704", f"type with OID {oid} does not exist")
        found.append(made)
        oid = made.base
    return found


def demands(catalog: Catalog, oid: int) -> bool:
    """Tell whether a domain, or one that it is over, asks anything of its values."""
    return any(made.not_null or made.checks for made in chain(catalog, oid))


def default_sql(catalog: Catalog, oid: int) -> str | None:
    """Return the default that a column declared as ``oid`` has where it has none of its own: its domain's.

    What that is over does not count: a domain begins with the default that was below it when it was made.
    """
    return chain(catalog, oid)[0].default_sql if is_domain(oid) else None


class DomainCheck:
    """The demand of a domain, compiled once for each catalog that it is evaluated under."""

    __slots__ = ("_catalog", "_demand", "_oid")

    def __init__(self, oid: int) -> None:
        """``oid``: the domain's."""
        self._oid = oid
        self._catalog: Catalog | None = None
        self._demand: Demand | None = None

    def __call__(self, value: Any, session: EvalSession) -> Any:
        """Return ``value`` if the domain has it. Raises SqlError 23502, 23514."""
        catalog = session.catalog
        if catalog is not self._catalog:
            self._demand = DEMAND.call(catalog, self._oid)
            self._catalog = catalog
        if self._demand is not None:
            self._demand(value, session)
        return value
