"""Thinning the candidates for a call by the types of its arguments: PostgreSQL's rules for operators and
functions alike (manual 10.2, 10.3).

    inputs (int4, unknown)   candidates (int4, int4) (float8, float8) (text, text) ...   ->   the index of one of them, or None

Types are oids, ``unknown`` stands for a literal without a type. What two candidates fit equally well is nobody's: the
caller says 42725.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.conversion.pathways import CastContext
from planner.conversion.polymorphic import can_coerce_all
from planner.facts import UNKNOWN
from planner.types.domains import base_oid
from planner.types.facts import STRING, category, is_preferred

Types = tuple[int, ...]


def coercible(inputs: Types, candidates: Sequence[Types]) -> list[int]:
    """Return the indexes of candidates that the inputs can be coerced to implicitly."""
    return [i for i, c in enumerate(candidates) if can_coerce_all(inputs, c, CastContext.IMPLICIT)]


def _best(scores: Sequence[int], pool: Sequence[int]) -> list[int]:
    top = max(scores)
    return [index for score, index in zip(scores, pool, strict=True) if score == top]


def select(inputs: Types, candidates: Sequence[Types], pool: list[int]) -> int | None:
    """Choose one of ``pool`` (indexes into candidates, two or more) by the rules, or None."""
    inputs = tuple(map(base_oid, inputs))
    known = [(slot, oid) for slot, oid in enumerate(inputs) if oid != UNKNOWN]
    pool = _best([sum(candidates[i][s] == t for s, t in known) for i in pool], pool)
    if len(pool) == 1:
        return pool[0]
    categories = [category(oid) for oid in inputs]
    scores = [
        sum(
            candidates[i][s] == t
            or (is_preferred(candidates[i][s]) and category(candidates[i][s]) == categories[s])
            for s, t in known
        )
        for i in pool
    ]
    pool = _best(scores, pool)
    if len(pool) == 1:
        return pool[0]
    unknown = [slot for slot, oid in enumerate(inputs) if oid == UNKNOWN]
    if not unknown:
        return None
    kept = _by_unknown_category(unknown, candidates, pool)
    if kept:
        pool = kept
        if len(pool) == 1:
            return pool[0]
    return _by_single_known_type(inputs, known, candidates, pool)


def _by_unknown_category(
    unknown: Sequence[int], candidates: Sequence[Types], pool: Sequence[int]
) -> list[int]:
    """Keep candidates of the category that each unknown slot points to; [] when it points nowhere."""
    wanted: dict[int, tuple[str, bool]] = {}
    for slot in unknown:
        chosen, preferred, conflict = "", False, False
        for index in pool:
            oid = candidates[index][slot]
            this = category(oid)
            if not chosen:
                chosen, preferred = this, is_preferred(oid)
            elif this == chosen:
                preferred = preferred or is_preferred(oid)
            elif this == STRING:
                chosen, preferred = this, is_preferred(oid)
            else:
                conflict = True
        if conflict and chosen != STRING:
            return []
        wanted[slot] = (chosen, preferred)
    return [
        index
        for index in pool
        if all(
            category(candidates[index][slot]) == chosen
            and (not preferred or is_preferred(candidates[index][slot]))
            for slot, (chosen, preferred) in wanted.items()
        )
    ]


def _by_single_known_type(
    inputs: Types, known: Sequence[tuple[int, int]], candidates: Sequence[Types], pool: Sequence[int]
) -> int | None:
    types = {oid for _, oid in known}
    if len(types) != 1:
        return None
    assumed = tuple(types) * len(inputs)
    fits = [i for i in pool if can_coerce_all(assumed, candidates[i], CastContext.IMPLICIT)]
    return fits[0] if len(fits) == 1 else None
