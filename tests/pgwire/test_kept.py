"""Caches are bounded in bytes: what takes a text or bytes of any length is kept by ``pgwire.kept``, or named here with its bound."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from pgwire.kept import kept

ROOT = Path(__file__).resolve().parents[2]
BOUNDED: Final = frozenset({
    "planner/patterns/pattern.py:compiled",  # by the weight of its automata
    "planner/functions/text/trigrams.py:_kept",  # called for short texts
    "planner/textsearch/parser.py:_wide_class",  # a character
    "pgwire/codecs/time/zone.py:_abbreviation_in_zone",  # a zone's name and a word of a date, both short
    # names, which have 63 bytes, of functions, operators and types
    "pgwire/messages/encode.py:_name", "planner/conversion/resolve.py:_operators", "planner/conversion/resolve.py:_find_operator", "planner/conversion/resolve.py:_find_function",
    "planner/patterns/charset.py:class_ranges", "engine/catalog/relations/pg_ranges.py:_model",
    # what the server has itself: tags, signatures, files, sources
    "pgwire/messages/encode.py:command_complete", "planner/functions/extensions/citext.py:_of_text", "planner/functions/system/names.py:_fact_oids",
    "planner/functions/inline.py:_spelt", "planner/lower/kit/build.py:_printing",
})  # fmt: skip
CACHE = re.compile(
    r"^@(?:functools\.)?(?:lru_cache\([^)]*\)|cache)(?:[^\n]*)\n(?:@[^\n]*\n)*(?:async )?def (\w+)\(([^)]*)\)",
    re.MULTILINE,
)


def test_short_values_are_kept_and_long_ones_are_few() -> None:
    made: list[int] = []

    @kept(100, short=10, long=100, few=2)
    def length(value: str) -> int:
        made.append(len(value))
        return len(value)

    for _ in range(3):
        for size in (1, 10, 11, 100, 101):
            assert length("x" * size) == size
    assert made == [1, 10, 11, 100, 101, 101, 101]
    made.clear()
    for _ in range(2):
        for size in (20, 30, 40):
            assert length("y" * size) == size
    assert made == [20, 30, 40] * 2


@pytest.mark.parametrize("package", ["pgwire", "planner", "engine", "txn"])
def test_no_other_cache_is_of_a_text_of_any_length(package: str) -> None:
    found = set()
    for path in sorted((ROOT / package).rglob("*.py")):
        for match in CACHE.finditer(path.read_text()):
            name, arguments = match.groups()
            if re.search(r":\s*(str|bytes)\b(?!\w)", arguments):
                found.add(f"{path.relative_to(ROOT)}:{name}")
    assert found <= BOUNDED
