"""Kinds of relations: one row says all of each, and the sets that others ask are made of the rows (planner.catalog.relation_kinds)."""

from __future__ import annotations

from dataclasses import fields

import pytest

from planner.base.total import members, total
from planner.catalog import relation_kinds as kinds


def test_each_kind_has_its_row():
    assert set(kinds.RELATION_KINDS) == set(members(kinds.RelationKind))
    with pytest.raises(TypeError, match="no row for 'f'"):
        total(
            "kinds of relations",
            members(kinds.RelationKind),
            {kind: facts for kind, facts in kinds.RELATION_KINDS.items() if kind != "f"},
        )


def test_each_property_is_asked_by_a_set_of_kinds():
    asked = [made for made in vars(kinds).values() if isinstance(made, frozenset)]
    for field in fields(kinds.KindFacts):
        if field.name in ("word", "plural", "article"):
            continue
        having = frozenset(k for k, facts in kinds.RELATION_KINDS.items() if getattr(facts, field.name))
        assert having in asked, field.name


def test_what_stores_rows_is_not_read_by_a_wrapper():
    assert "f" not in kinds.STORING | kinds.FILED
    assert kinds.STORING <= kinds.ROW_TYPED <= kinds.COLUMNED
    assert kinds.PARTITIONS - {"f"} == kinds.TABLES


def test_words_are_those_of_statements():
    assert kinds.CALLED["table"] == {"r", "p"}
    assert kinds.CALLED["foreign table"] == {"f"}
    assert kinds.called("index") == "an index"
    assert kinds.called("foreign table") == "a foreign table"
