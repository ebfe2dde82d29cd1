"""Comparisons that an index can serve: those for which Python's order and equality are the type's count."""

from __future__ import annotations

import functools
from typing import Literal

from planner.facts import facts
from planner.functions.inline import inline_templates
from planner.query import BoolExpr, Const, Expr

Operator = Literal["=", "<", "<=", ">", ">="]
_TEMPLATES: dict[str, Operator] = {
    "{0} == {1}": "=", "{0} < {1}": "<", "{0} <= {1}": "<=", "{0} > {1}": ">", "{0} >= {1}": ">=",
}  # fmt: skip
FLIP: dict[Operator, Operator] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@functools.cache
def key_operators() -> dict[int, Operator]:
    """Return the functions (pg_proc oids) that an index can serve, with the operator each is."""
    out = {
        oid: _TEMPLATES[template] for oid, template in inline_templates().items() if template in _TEMPLATES
    }
    signatures = facts().proc_by_signature
    names: tuple[tuple[str, Operator], ...] = (
        ("eq", "="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="),
    )  # fmt: skip
    for name, operator in names:
        out[signatures[f"numeric_{name}(numeric,numeric)"]] = operator
        out[signatures[f"tid{name}(tid,tid)"]] = operator
        out[signatures[f"tsvector_{name}(tsvector,tsvector)"]] = operator
        out[signatures[f"tsquery_{name}(tsquery,tsquery)"]] = operator
        out[signatures[f"hstore.hstore_{name}(hstore,hstore)"]] = operator
        out[signatures[f"citext.citext_{name}(citext,citext)"]] = operator
        out[signatures[f"range_{name}(anyrange,anyrange)"]] = operator
        out[signatures[f"multirange_{name}(anymultirange,anymultirange)"]] = operator
    out[signatures["bpchareq(bpchar,bpchar)"]] = "="
    return out


def conjuncts_of(expr: Expr | None) -> list[Expr]:
    """Return the conjuncts of a condition, without what is always true."""
    if expr is None or (isinstance(expr, Const) and expr.value is True):
        return []
    if isinstance(expr, BoolExpr) and expr.kind == "and":
        return [c for arg in expr.args for c in conjuncts_of(arg)]
    return [expr]
