"""Dicts of many keys do what dicts do, whoever asks them, and jsonb of many keys is what it is of few."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from pgwire import release
from pgwire.codecs.json import load
from pgwire.codecs.json import long as json_long
from pgwire.long import dicts as long_dicts
from planner import functions as builtins
from planner.facts import JSONB
from planner.functions.aggregates.states import JsonObjectAgg
from tests.planner.builtins.costs import Measured, counting


def same(one: dict[Any, Any], other: dict[Any, Any]) -> None:
    assert one == other
    assert other == one
    assert len(one) == len(other)
    assert bool(one) is bool(other)
    assert sorted(one) == sorted(other)
    assert sorted(one.items()) == sorted(other.items())
    assert sorted(one.values()) == sorted(other.values())
    assert list(reversed(one)) == list(one)[::-1]
    assert dict(one) == {**other} == {**one}


def test_nothing_of_a_dict_is_left_to_the_empty_one_below() -> None:
    """A method that Wide does not have would answer, or write, as if there were no entries."""
    shared = {"__class_getitem__", *vars(object)}
    assert {name for name in vars(dict) if name not in shared} - vars(long_dicts.Wide).keys() == set()
    with pytest.raises(NotImplementedError):
        long_dicts.Wide({1: 2}).copy()


@pytest.mark.parametrize("seed", range(3))
def test_a_wide_dict_does_what_a_dict_does(seed: int) -> None:
    draw = random.Random(seed)
    plain = {n: -n for n in range(1000)}
    wide = long_dicts.Wide(plain)
    assert list(wide.items()) == list(plain.items())
    for number in range(4000):
        key = draw.randrange(1500)
        match draw.randrange(6):
            case 0 | 1:
                plain[key] = wide[key] = number
            case 2:
                assert plain.pop(key, None) == wide.pop(key, None)
            case 3:
                assert (key in plain) is (key in wide)
                assert plain.get(key, 7) == wide.get(key, 7)
            case 4 if key in plain:
                del plain[key], wide[key]
            case 4:
                with pytest.raises(KeyError):
                    wide.pop(key)
                with pytest.raises(KeyError):
                    del wide[key]
            case _:
                taken, value = wide.popitem()
                assert plain.pop(taken) == value
        if not number % 100:
            same(wide, plain)
    assert wide != {**plain, -1: 0}
    assert wide != long_dicts.Wide({**plain, 1: "other"})
    stack: list[Any] = [wide]  # as what is released is
    while stack:
        release._free_some(stack)
    assert not wide
    assert list(wide) == []


LONG = json.dumps(
    {f"k{n}": None if n % 3 else n for n in sorted(range(9000), key=lambda n: (len(str(n)), str(n)))}
)
LESS = json.dumps({f"k{n}": [n] for n in range(1000, 4000)} | {"kx": 1})


def results() -> list[Any]:
    rows = {row.signature: row.python for row in builtins.load().functions.values()}
    both = [
        rows[f"{name}(jsonb,jsonb)"]
        for name in ("jsonb_concat", "jsonb_cmp", "jsonb_contains", "jsonb_contained", "jsonb_eq")
    ]
    found = [form(a, b) for form in both for a in (LONG, LESS) for b in (LONG, LESS)]
    for signature, rest in (
        ("jsonb_strip_nulls(jsonb)", ()), ("jsonb_pretty(jsonb)", ()), ("jsonb_hash(jsonb)", ()), ("jsonb_delete(jsonb,text)", ("k5",)),
        ("jsonb_delete(jsonb,_text)", (("k5", "k7", "no"),)), ("jsonb_delete_path(jsonb,_text)", (("k2999",),)),
        ("jsonb_set(jsonb,_text,jsonb,bool)", (("new",), "1", True)), ("jsonb_exists(jsonb,text)", ("k77",)),
        ("jsonb_exists_all(jsonb,_text)", (("k77", "no"),)), ("jsonb_insert(jsonb,_text,jsonb,bool)", (("new",), "[2]", False)),
    ):  # fmt: skip
        found += [rows[signature](LONG, *rest)]
    aggregate = JsonObjectAgg(None, (25, JSONB), True)  # type: ignore[arg-type]  # texts ask no session
    aggregate.items = [(f"a{n % 700}", str(n)) for n in range(2000)]
    return [*found, aggregate.result()]


def test_jsonb_of_many_keys_is_what_it_is_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(LONG) > json_long.WINDOW
    assert type(load(LONG)) is dict
    wanted = results()
    monkeypatch.setattr(long_dicts, "MANY", 100)
    assert type(load(LONG)) is long_dicts.Wide
    assert results() == wanted


def test_many_entries_give_way() -> None:
    found = Measured()
    with counting(found):
        made = long_dicts.Wide(dict.fromkeys(range(4000)))
        assert sum(1 for _ in made.items()) == 4000
        assert len(long_dicts.gathered((n, n) for n in range(4000))) == 4000
    assert found.lines > 20_000
    assert found.longest < 8000, found
