"""What of a stored text is an oid: constants of reg* types, casts and calls; literals and names that only look like them are not."""

from __future__ import annotations

import pytest

from planner.catalog.named_oids import named_oids, needed_oids, relations_in_text, used_oids


@pytest.mark.parametrize(
    ("text", "named", "needed"),
    [
        ("'16400'::regtype", {16400}, set()),
        ("(a <> ('16410'::regproc)::oid)", {16410}, set()),
        ("'16410'::regprocedure, '16430'::regnamespace", {16410, 16430}, set()),
        ("CAST(a AS pg_catalog.\"#16400\"), '16401'::regtype", {16400, 16401}, {16400}),
        ("""to_tsvector('"#16420"'::regconfig, b)""", {16420}, {16420}),
        ("'23'::regtype", set(), set()),
        ("'{16400,23}'::regtype[]", set(), set()),
        ("'16400'::text || 'x'::regtype", set(), set()),
        ("'''16400''::regtype'::text", set(), set()),
        ("a AS \"'16400'::regtype\"", set(), set()),
        ("nextval('16440'::regclass)", set(), set()),
    ],
)
def test_texts_name_what_their_constants_do(text: str, named: set[int], needed: set[int]) -> None:
    assert (named_oids(text), needed_oids(text)) == (named, needed)


def test_relations_are_told_apart() -> None:
    text = "(nextval('16440'::regclass) <> ('16400'::regtype)::oid)"
    assert relations_in_text(text) == [16440]
    assert used_oids(text) == {16400, 16440}
