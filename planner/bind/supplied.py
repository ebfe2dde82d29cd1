"""Who answers what is asked of the binder from below (``planner.base.port``): the one place where it is said."""

from __future__ import annotations

from planner.bind import recursion
from planner.bind.change.kept_changes import kept_item
from planner.bind.expression import columns, compare, funcs, sublinks  # noqa: F401 - each enters its binders
from planner.bind.expression.expr import check_total
from planner.bind.expression.funcs import call_on
from planner.bind.query.select import bind_query, bind_view
from planner.bind.stored.domain_checks import demand
from planner.bind.stored.evaluated import bind_key_expr
from planner.conversion import ports

recursion.QUERY.supply(bind_query)
recursion.VIEW.supply(bind_view)
recursion.CALL_ON.supply(call_on)
recursion.ITEM_CHANGE.supply(kept_item)
ports.DEMAND.supply(demand)
ports.KEY_EXPR.supply(bind_key_expr)
check_total()
