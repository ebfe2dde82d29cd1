"""JSON read a window at a time is what it is as a whole; the same of sets and hstores that are too long for one set, or one dict."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

import pgwire.give_way
from pgwire.codecs.json import hstore, parse_jsonb
from pgwire.codecs.json import long as json_long
from pgwire.long import sets as long_sets
from planner.facts import JSONB
from planner.functions.json import values as json_values
from planner.functions.values.compare import hash_key, sort_key
from planner.textsearch import documents

CHARACTERS = 'ab "\\\n{}[],:é\U0001f600\x07'


def document(random: Random, depth: int) -> Any:
    kind = random.randrange(7 if depth else 4)
    if kind == 0:
        return random.choice([None, True, False])
    if kind == 1:
        return random.choice([0, -7, 123456789012345678901234567890, 1.5, 2.5e-7])
    if kind < 4:
        return "".join(random.choices(CHARACTERS, k=random.randrange(30)))
    if kind < 6:
        return [document(random, depth - 1) for _ in range(random.randrange(6))]
    return {
        f"k{n}" + random.choice(CHARACTERS) * n: document(random, depth - 1)
        for n in range(random.randrange(6))
    }


DOCUMENTS = [document(Random(seed), 4) for seed in range(60)]
LAYOUTS: list[dict[str, Any]] = [{}, {"indent": 2}, {"separators": (",", ":"), "ensure_ascii": False}]


def strings(value: Any) -> list[str]:
    """Return the strings of a document that are values."""
    if isinstance(value, dict):
        return [found for item in value.values() for found in strings(item)]
    if isinstance(value, list):
        return [found for item in value for found in strings(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("window", [6, 16, 61])
@pytest.mark.parametrize("layout", LAYOUTS, ids=["as it comes", "with blanks", "narrow"])
def test_windows_change_nothing(monkeypatch: pytest.MonkeyPatch, window: int, layout: dict[str, Any]) -> None:
    for module in (json_long, json_values):
        monkeypatch.setattr(module, "WINDOW", window)
    decoder = json.JSONDecoder()
    for value in DOCUMENTS:
        text = json.dumps(value, **layout)
        assert json_long.decoded(decoder, text, json.loads) == value
        assert json_long.value_end(f"{text},", 0) == len(text)
        assert list(documents.texts(f" {text} ", documents.STRINGS)) == strings(value)
        if isinstance(value, list):
            assert [json.loads(item) for item in json_values.elements(text)] == value
            if value:
                assert json.loads(str(json_values.element(text, -1))) == value[-1]
        if isinstance(value, dict):
            assert {key: json.loads(item) for key, item in json_values.members(text)} == value


@pytest.mark.parametrize("window", [6, 1 << 16])
def test_equal_documents_have_one_key(monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    monkeypatch.setattr(json_long, "WINDOW", window)
    key = hash_key(JSONB)
    assert key is not None
    texts = [parse_jsonb(json.dumps(value)) for value in DOCUMENTS]
    texts += [
        parse_jsonb(text)
        for text in (
            "1", "1.0", "1.00", "-0", "0", "-0.0", "0.50", "0.5", "10", "1e1", "100", "10.0", '"1.0"', '"1"', "1.000000000000000000001",
            '["x 1.0", 1.0, {"a.0": [2.50]}]', '["x 1.0", 1, {"a.0": [2.5]}]', '["x 1", 1, {"a.0": [2.5]}]', r'"\\"', r'["\\", 1.0]',
        )
    ]  # fmt: skip
    order = sort_key(JSONB)
    assert order is not None
    found = [(text, key(text), order(text)) for text in texts]
    for one, one_key, one_order in found:
        for other, other_key, other_order in found:
            assert (one_key == other_key) is (one_order == other_order), (one, other)


def test_headlines_change_strings_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_long, "WINDOW", 6)
    for value in DOCUMENTS:
        shown = documents.with_strings(json.dumps(value), lambda text: text + "!", spaces=True)
        assert strings(json.loads(shown)) == [text + "!" for text in strings(value)]


@pytest.mark.parametrize("window", [16, 1 << 16])
def test_a_key_is_found_whatever_is_before_it(monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    monkeypatch.setattr(json_values, "WINDOW", window)
    text = (
        '{"a": {"k": 1, "x": "{\\"k\\": [2"}, "b": [{"k": 3}, "]}"], "k": "here", "long": "'
        + "z" * 100
        + '"}'
    )
    assert json_values.jsonb_field(text, "k") == '"here"'
    assert json_values.jsonb_field(text, "x") is None
    assert json_values.jsonb_field(text, "long") == '"' + "z" * 100 + '"'


def test_long_hstores_are_read_where_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(7)
    pairs = {
        "".join(random.choices("abé\U0001f600", k=random.randrange(9))): random.choice(
            [None, "", "x", "é" * 9]
        )
        for _ in range(300)
    }
    value = hstore.pack(pairs.items())
    short = hstore.unpack.__wrapped__(value)  # type: ignore[attr-defined]  # not what was kept
    monkeypatch.setattr(hstore, "MANY", 2)
    stored = hstore.unpack.__wrapped__(value)  # type: ignore[attr-defined]
    assert type(stored) is not dict
    assert list(stored.items()) == list(short.items())
    assert (len(stored), list(stored), stored) == (len(pairs), list(short), pairs)
    assert all(stored[key] == text for key, text in pairs.items())
    assert not any(key in stored for key in ("nothing", "abab" * 9, "\U0001f600é"[::-1] * 5))
    assert hstore.pack(stored.items()) == value
    assert hstore.unpack(hstore.pack([("a", "1"), ("b", "2"), ("a", "3")])) == {"a": "1", "b": "2"}


def test_many_items_are_spread_over_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_sets, "MANY", 4)
    items = [*range(-2000, 2000), *map(str, range(2000)), None, (1, 2), *range(50)]
    found = long_sets.distinct(iter(items))
    assert isinstance(found, long_sets.Spread)
    assert len(found) == len(set(items))
    assert set(found) == set(items)
    assert (1, 2) in found
    assert 2000 not in found


def test_a_long_document_lets_others_in(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return 0.0

    monkeypatch.setattr(pgwire.give_way, "perf_counter", clock)
    for text in (
        "[" + ", ".join(['"word"'] * 25_000) + "]",
        '"' + "word " * 50_000 + '"',
        '{"a": [' + "1, " * 60_000 + "1]}",
    ):
        for work in (json_values.load, lambda given: list(documents.texts(given, documents.STRINGS))):
            looks = 0
            work(text)
            assert looks >= len(text) // 100_000
