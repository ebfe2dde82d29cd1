"""Functions over a state and a value, applied to many values at once: for aggregates made of them
(``engine.executors.index.own_aggregate``).

    array_append(array_append('{1}', 2), 3)   ->   the array with 2, 3 behind it, made once
    jsonb_concat(jsonb_concat('{}', a), b)    ->   objects merged, read and written once

One by one each would copy or read the whole state again. The result is the same, and so are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from pgwire.codecs.json import dump, load
from pgwire.long import dicts as long_dicts
from planner.facts import facts
from planner.functions.json.operators import jsonb_concat
from planner.functions.values.array import array_append

Fold = Callable[[Any, Sequence[Any], tuple[int, ...]], Any]
"""From a state, values (one at least) and the types of both to the state after them."""


def _appended(state: Any, values: Sequence[Any], types: tuple[int, ...]) -> Any:
    first = array_append(state, values[0], types=types)
    return (*first, *values[1:])


def _merged(state: Any, values: Sequence[Any], types: tuple[int, ...]) -> Any:
    if not all(text.startswith("{") for text in (state, *values)):
        return reduce(jsonb_concat, values, state)
    members: dict[str, Any] = {}
    for value in values:
        one = load(value)
        members = long_dicts.grown(members, len(one))
        members.update(one)
    return jsonb_concat(state, dump(members))


FOLDS: Final[Mapping[int, Fold]] = {
    facts().proc_by_signature["array_append(anycompatiblearray,anycompatible)"]: _appended,
    facts().proc_by_signature["jsonb_concat(jsonb,jsonb)"]: _merged,
}
"""By function."""
