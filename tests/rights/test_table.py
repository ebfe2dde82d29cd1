"""Each class of statements says who may run it: what has no row fails where the table is made, and rows say what is there."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Literal, TypeAlias

import pytest

from engine.definitions.needs.rights import Asks, Elsewhere, Nothing
from engine.statements.registry import SPECS, registered
from planner import statements as st
from planner.base.total import members, total
from planner.catalog.rights import restricted_functions

_Some: TypeAlias = Literal["a", "b"]


def test_every_class_of_statements_says_who_may_run_it() -> None:
    assert set(SPECS) == set(members(st.Statement))
    assert len(SPECS) > 90
    for spec in SPECS.values():
        assert isinstance(spec.rights, Asks | Elsewhere | Nothing)


def test_what_is_forgotten_fails_where_the_table_is_made() -> None:
    rows = [spec for kind, spec in SPECS.items() if kind is not st.Truncate]
    with pytest.raises(TypeError, match="statements: no row for Truncate"):
        registered(rows)
    with pytest.raises(TypeError, match="statements: two rows for Truncate"):
        registered(SPECS.values(), [SPECS[st.Truncate]])
    with pytest.raises(TypeError, match="statements: a row for int, of which nobody knows"):
        registered(SPECS.values(), [replace(SPECS[st.Truncate], statement=int)])
    with pytest.raises(TypeError, match="no row for 'b'"):
        total("letters", members(_Some), {"a": 1})


def test_what_is_asked_elsewhere_is_there_and_nothing_is_allowed_without_a_reason() -> None:
    for spec in SPECS.values():
        row = spec.rights
        if isinstance(row, Elsewhere):
            module, _, name = row.at.partition(":")
            found: object = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
            assert callable(found)
        if isinstance(row, Elsewhere | Nothing):
            assert len(row.why) > 10


def test_restricted_functions_are_those_of_a_fresh_postgresql() -> None:
    assert len(restricted_functions()) == 59
