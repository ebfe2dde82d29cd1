"""Constructors of users' range types: functions beside those of pg_proc, whose oids come with the type.

    CREATE TYPE floatrange AS RANGE (subtype = float8)

    floatrange(float8, float8)   floatrange(float8, float8, text)                              as int4range's
    floatmultirange()   floatmultirange(floatrange)   floatmultirange(VARIADIC floatrange[])   as int4multirange's

Which of them a name means is the catalog's affair (``planner.catalog.Catalog.constructors_named``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pgwire.codecs.users.ranges import RangeType
from planner.facts import TEXT, CastFact, facts, register_cast, register_proc
from planner.functions.registry import REGISTRY, Builtin
from planner.functions.values.multirange import multirange_constructor
from planner.functions.values.range import range_constructor

COUNT: Final = 5
"""So many constructors come with a range type, in the order of the picture."""

_INT4RANGE, _INT4MULTIRANGE, _INT4RANGE_ARRAY, _INT4 = 3904, 4451, 3905, 23


def register_constructors(
    type_: RangeType, array_oid: int, first: int, range_name: str, multirange_name: str
) -> None:
    """Make the constructors of a type known, under oids from ``first`` on, and the cast to its multirange type."""
    types = {
        _INT4: type_.declared or type_.subtype, _INT4RANGE: type_.oid, _INT4RANGE_ARRAY: array_oid, _INT4MULTIRANGE: type_.multirange,
        TEXT: TEXT,
    }  # fmt: skip
    of_range, of_multirange = range_constructor(type_), multirange_constructor(type_)
    made = [
        ("int4range(int4,int4)", range_name, of_range),
        ("int4range(int4,int4,text)", range_name, of_range),
        ("int4multirange()", multirange_name, of_multirange),
        ("int4multirange(int4range)", multirange_name, lambda value: of_multirange((value,))),
        ("int4multirange(_int4range)", multirange_name, of_multirange),
    ]
    known = facts()
    for oid, (model, name, form) in enumerate(made, first):
        like = known.procs[known.proc_by_signature[model]]
        fact = replace(
            like,
            oid=oid,
            name=name,
            arg_types=tuple(types[t] for t in like.arg_types),
            result=types[like.result],
            variadic=types[like.variadic] if like.variadic else 0,
            all_arg_types=None if like.all_arg_types is None else tuple(types[t] for t in like.all_arg_types),
        )
        register_proc(fact)
        REGISTRY.functions[oid] = Builtin(signature=known.signature(oid), python=form)
    register_cast(CastFact(type_.oid, type_.multirange, first + 3, "e", "f"))
