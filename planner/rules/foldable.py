"""Which calls of constants are computed while a statement is bound, and which are left to its execution.

PREPARE, EXPLAIN and Describe bind, too, and nobody expects these to compute for long. So what is computed
then has short arguments and a budget of time; functions whose cost their arguments' length does not bound, in
one call of C that no budget stops, are never computed. A constant that is left is computed once for all rows
(``planner.evaluate.unit``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from pgwire.give_way import OverBudget, bounded, size_of
from planner.facts import BOOL, BPCHAR, FLOAT8, INT2, INT4, INT8, NUMERIC, TEXT, UNKNOWN, UUID, VARCHAR, facts
from planner.query import CoerceViaIO

BUDGET_S: Final = 0.002
MOST_BYTES: Final = 1000
"""Of all arguments together."""
MOST_PADDED: Final = 10_000
"""Characters or bits of a typmod that values are filled up to."""

LEFT: Final = object()
"""Instead of a value: it is to be computed when the statement runs."""


class Met:
    """How often a call of constants has raised. Others may count beside: who sees a change looks closer."""

    errors = 0


_NEVER: Final = frozenset(
    [
        "repeat",
        "lpad",
        "rpad",
        "array_fill",
        "format",
        "power",
        "pow",
        "numeric_power",
        "exp",
        "numeric_exp",
        "ln",
        "numeric_ln",
        "log",
        "numeric_log",
        "sqrt",
        "numeric_sqrt",
        "factorial",
        "numeric_fac",
        "gcd",
        "lcm",
        "crypt",
        "digest",
        "hmac",
        "ts_headline",
        "regexp_replace",
        "regexp_match",
        "regexp_matches",
        "regexp_count",
        "regexp_instr",
        "regexp_like",
        "regexp_substr",
        "regexp_split_to_array",
        "regexp_split_to_table",
        "substring",
        "textregexeq",
        "textregexne",
        "texticregexeq",
        "texticregexne",
        "nameregexeq",
        "nameregexne",
        "nameicregexeq",
        "nameicregexne",
        "bpcharregexeq",
        "bpcharregexne",
        "bpcharicregexeq",
        "bpcharicregexne",
    ]
)
_FIXED: Final = frozenset(
    [
        "int2",
        "int4",
        "int8",
        "float4",
        "float8",
        "bool",
        "oid",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timetz",
    ]
)
"""Types of arguments with which every function ends at once, those among ``_NEVER`` too."""


_FIXED_TEXTS: Final = frozenset(
    (BOOL, INT2, INT4, INT8, NUMERIC, TEXT, VARCHAR, BPCHAR, UNKNOWN, FLOAT8, UUID)
)
"""Types whose texts depend on no setting."""


def immutable_text(expr: CoerceViaIO) -> bool:
    """Tell whether neither side's text depends on a setting."""
    return expr.type.oid in _FIXED_TEXTS and expr.arg.type.oid in _FIXED_TEXTS


@functools.cache
def never(proc: int) -> bool:
    """Tell whether a function is not to be computed ahead, whatever its arguments."""
    fact = facts().procs[proc]
    if fact.name not in _NEVER:
        return False
    return not all((t := facts().types.get(oid)) is not None and t.name in _FIXED for oid in fact.arg_types)


def computed(proc: int, values: Sequence[Any], compute: Callable[[], Any]) -> Any:
    """Return what ``compute`` gives for a call of ``proc`` (0: of none by itself) with constants, or
    ``LEFT``. Raises what it raises.
    """
    if (proc and never(proc)) or size_of(values if type(values) is list else list(values)) > MOST_BYTES:
        return LEFT
    return in_budget(compute)


def in_budget(compute: Callable[[], Any]) -> Any:
    """Return what ``compute`` gives, or ``LEFT`` where that takes too long. Raises what it raises."""
    try:
        with bounded(BUDGET_S):
            return compute()
    except OverBudget:
        return LEFT
