"""Where plans are kept: those of all sessions, and those of a transaction that sees DDL of its own.

    what the session sees                                 its plans are kept
      the latest catalog                                  with those of all
      the latest one with DDL of its own on top           for the rest of the transaction; of catalog queries, with those of all
      a past one                                          nowhere

An installation or a migration is one long transaction that asks the catalog and writes rows between its DDL,
so its plans are worth as much as others'. With those of all they would throw out the others' plans of the
same texts, and these them.

Where memory is short (``engine.base.loop.ceiling``) those of all are forgotten: each statement is planned once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.catalog.state import CatalogSnapshot
from engine.session.plans.by_text import BYTES, CHARACTERS, ENTRIES, ByText
from engine.session.plans.plan import Plan, PlanCache
from engine.session.plans.template_slots import Template
from engine.session.plans.templates import TemplateCache

OWN_ENTRIES = 500
"""Plans, and as many templates, that one transaction keeps for itself."""
OWN_CHARACTERS = 1 << 18
"""Of their texts together."""


class PlanCaches:
    """Plans by text and by template."""

    __slots__ = ("_plans", "_shared", "_templates", "size")

    def __init__(self, size: int, shared: PlanCaches | None = None) -> None:
        """``size``: bytes of memory that plans and templates may take together. ``shared``: those of all
        sessions, where this one is a transaction's own.
        """
        characters = size // (2 * BYTES)
        bounds = (
            (ENTRIES, min(characters, CHARACTERS))
            if shared is None
            else (OWN_ENTRIES, min(characters, OWN_CHARACTERS))
        )
        self.size = size
        self._plans = PlanCache(ByText(*bounds))
        self._templates = TemplateCache(ByText(*bounds), ByText(*bounds))
        self._shared = shared

    def get(self, key: Any, catalog: CatalogSnapshot) -> Plan | None:
        """Return the plan of a text that is still fresh under ``catalog``."""
        plan = self._plans.get(key, catalog)
        if plan is None and self._shared is not None:
            plan = self._shared._plans.of_catalog(key, catalog)
        return plan

    def put(self, key: Any, plan: Plan) -> None:
        """Remember the plan of a text."""
        self._home(plan)._plans.put(key, plan)

    def find(
        self, template: Template, plan_key: Any, catalog: CatalogSnapshot
    ) -> tuple[Plan, Template] | None:
        """Return the plan of a proved template that is still fresh under ``catalog``, and the template with
        the values for it.
        """
        found = self._templates.find(template, plan_key)
        if found is not None:
            if found[0].fresh(catalog):
                return found
            self._templates.drop(found[1], plan_key)
        if self._shared is not None:
            found = self._shared._templates.find(template, plan_key)
            if found is not None and found[0].fixed_names and found[0].fresh(catalog):
                return found
        return None

    def learn(
        self,
        plan: Plan,
        text: str,
        template: Template,
        plan_key: Any,
        prove: Callable[[Template], Plan | None],
    ) -> None:
        """Learn what may be parameters of a statement that was planned without (``TemplateCache.learn``)."""
        self._home(plan)._templates.learn(template, text, plan_key, prove)

    def clear(self) -> None:
        """Forget all plans and templates."""
        self._plans.clear()
        self._templates.clear()

    def _home(self, plan: Plan) -> PlanCaches:
        return self._shared if self._shared is not None and plan.fixed_names else self
