"""Engine forms of the comparisons of types whose values have an order of their own as engines keep them:
enums, ranges, addresses, texts to search.
"""

from __future__ import annotations

from typing import Final

from planner.facts import facts
from planner.functions.registry import REGISTRY
from planner.functions.values.range import SYMBOLS
from planner.lower.forms.compare import comparison

_FUNCTIONS: Final = (
    ("enum_%s", "anyenum"), ("range_%s", "anyrange"), ("multirange_%s", "anymultirange"), ("tsvector_%s", "tsvector"),
    ("tsquery_%s", "tsquery"), ("network_%s", "inet"), ("macaddr_%s", "macaddr"), ("macaddr8_%s", "macaddr8"),
    ("pg_lsn_%s", "pg_lsn"), ("cash_%s", "money"), ("xid8%s", "xid8"), ("hstore.hstore_%s", "hstore"), ("citext.citext_%s", "citext"),
)  # fmt: skip
"""What the functions of their operators are called, by the end of the name, and the type of both inputs: each
has all six."""


def _register() -> None:
    for name, type_ in _FUNCTIONS:
        for end, symbol in SYMBOLS.items():
            form = comparison(symbol)
            REGISTRY.sql(f"{name % end}({type_},{type_})", duckdb=form, spark=form)
    for end, symbol in SYMBOLS.items():
        signature = f"citext.citext_pattern_{end}(citext,citext)"
        if signature in facts().proc_by_signature:  # = and <> are those of citext itself
            REGISTRY.sql(signature, duckdb=comparison(symbol), spark=comparison(symbol))


_register()
