"""``jsonb_field`` beside ``field``, which reads all members: the same for every canonical document."""

from __future__ import annotations

import random

from pgwire.codecs.registry import text_input
from planner.facts import JSONB
from planner.functions.json.values import as_text, field, jsonb_field, load

KEYS = ["a", "b", "kind", "k", ": ", '"', "\\", "a b", "é", "x_1", "", "{", "}"]


def document(rng: random.Random) -> str:
    """Return the text of a random value, made of what might mislead."""
    import json

    def value(level: int) -> object:
        pick = rng.randrange(9 if level < 3 else 6)
        if pick >= 7:
            return {rng.choice(KEYS): value(level + 1) for _ in range(rng.randrange(5))}
        if pick == 6:
            return [value(level + 1) for _ in range(rng.randrange(3))]
        return rng.choice(
            [
                '"kind": 1',
                ': x", "a": ',
                "}{][",
                'say "a": ',
                "\\",
                "é\n",
                "a",
                1,
                -2.50,
                True,
                None,
                1e30,
                "",
            ]
        )

    return json.dumps(
        {rng.choice(KEYS): value(1) for _ in range(rng.randrange(6))}, ensure_ascii=rng.random() < 0.5
    )


def test_a_key_is_found_where_all_members_read_would_find_it() -> None:
    rng = random.Random(3)
    found = 0
    for _ in range(4000):
        text = text_input(JSONB, document(rng), -1)
        for key in (*KEYS, "none"):
            expected = field(text, key)
            assert jsonb_field(text, key) == expected, (text, key)
            found += expected is not None
            if expected is not None and expected[0] == '"':
                assert as_text(expected) == load(expected)
    assert found > 5000
