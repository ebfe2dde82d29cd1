"""The table of rights is total: what has no row fails where the table is made, and rows say what is there."""

from __future__ import annotations

import importlib
from typing import Literal, TypeAlias

import pytest

from engine.definitions.needs.rights import RIGHTS, Elsewhere, Nothing
from planner import statements as st
from planner.base.total import members, total
from planner.catalog.rights import restricted_functions

_Some: TypeAlias = Literal["a", "b"]


def test_every_class_of_statements_has_a_row() -> None:
    assert set(RIGHTS) == set(members(st.Statement))
    assert len(RIGHTS) > 90


def test_what_is_forgotten_fails_where_the_table_is_made() -> None:
    rows = dict(RIGHTS)
    del rows[st.Truncate]
    with pytest.raises(TypeError, match="rights: no row for Truncate"):
        total("rights", members(st.Statement), rows)
    with pytest.raises(TypeError, match="rights: a row for int, of which nobody knows"):
        total("rights", members(st.Statement), {**RIGHTS, int: RIGHTS[st.Truncate]})
    with pytest.raises(TypeError, match="no row for 'b'"):
        total("letters", members(_Some), {"a": 1})


def test_what_is_asked_elsewhere_is_there_and_nothing_is_allowed_without_a_reason() -> None:
    for row in RIGHTS.values():
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
