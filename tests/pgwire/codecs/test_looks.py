"""Codecs of containers look at the clock as they go, both ways and in both forms: counted in lines of Python between two looks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from pgwire.codecs import registry
from pgwire.codecs.errors import DataError
from pgwire.codecs.json import hstore
from pgwire.codecs.text import citext
from pgwire.codecs.users import composite
from planner.types.facts import FIRST_USER_OID
from tests.planner.builtins.costs import Measured, Stopped, counting

MOST = 12_000
"""Lines between two looks: a millisecond or two."""
N = 500


def _joined(piece: str, separator: str = ",", n: int = N) -> str:
    return separator.join(piece.replace("#", str(i)) for i in range(n))


TEXTS: dict[int, str] = {
    1007: "{" + _joined("#") + "}", 1009: "{" + _joined('"a b"') + "}", 1231: "{" + _joined("#.5") + "}",
    3614: _joined("w#:1", " "), 3615: _joined("w#", " | ", N // 3), 604: "(" + _joined("(#,1)") + ")", 602: "[" + _joined("(#, 1)") + "]",
    4451: "{" + ",".join(f"[{3 * i},{3 * i + 1})" for i in range(N)) + "}",
    4532: "{" + ",".join(f"[{3 * i},{3 * i + 1})" for i in range(N)) + "}",
    1562: "10" * N, 17: "\\x" + "ab" * N, 30: _joined("#", " "), 1020: "{" + _joined("(1,2),(3,4)", ";") + "}",
    3905: "{" + _joined('"[1,2)"') + "}", 1041: "{" + _joined("1.2.3.4") + "}", 1187: "{" + _joined("1 day") + "}",
}  # fmt: skip


def longest(
    function: Callable[[str], object] | Callable[[bytes], object], value: object
) -> tuple[int, object]:
    found = Measured()
    with counting(found):
        result = function(value)  # type: ignore[arg-type]
    return found.longest, result


def walk(
    text: str,
    parse: Callable[[str], object],
    show: Callable[[object], str],
    recv: Callable[[bytes], object],
    send: Callable[[object], bytes],
) -> None:
    lines, value = longest(parse, text)
    assert lines < MOST, f"reads {lines} lines at once"
    lines, _ = longest(show, value)  # type: ignore[arg-type]
    assert lines < MOST, f"prints {lines} lines at once"
    lines, data = longest(send, value)  # type: ignore[arg-type]
    assert lines < MOST, f"sends {lines} lines at once"
    assert isinstance(data, bytes)
    lines, again = longest(recv, data)
    assert lines < MOST, f"receives {lines} lines at once"
    assert again == value


@pytest.mark.parametrize("oid", TEXTS)
def test_codecs_look_at_the_clock(oid: int) -> None:
    walk(
        TEXTS[oid],
        registry.text_decoder(oid),
        registry.text_printer(oid),
        registry.binary_decoder(oid),
        registry.binary_encoder(oid),
    )


def test_hstore_and_citext_look_at_the_clock() -> None:
    walk(_joined("k#=>v"), hstore.parse, hstore.show, hstore.receive, hstore.send)  # type: ignore[arg-type]
    walk("xY" * N, citext.parse, citext.unpack, citext.receive, citext.send)  # type: ignore[arg-type]


NO_VALUES: dict[str, str] = {
    "blanks": " " * 6000, "blanks before": " " * 6000 + "1", "blanks behind": "1" + " " * 6000, "blanks in braces": "{" + " " * 6000 + "}",
    "blanks in a bound": "[" + " " * 6000 + "1,2)", "a quoted text": '"' + "a" * 6000 + '"', "quotes": '"' * 6000, "escapes": r"\a" * 3000,
    "letters": "a" * 6000, "digits": "7" * 6000, "signs": "-" * 6000, "commas": "," * 6000, "colons": "1:" * 3000, "parentheses": "(" * 6000,
    "words": "a " * 3000, "a field": "(" + "a" * 6000 + ")",
}  # fmt: skip
AT_ONCE = 6500
"""Lines between two looks, of a text of 6,000 characters."""


@pytest.mark.parametrize("kind", NO_VALUES)
def test_reading_what_may_be_no_value_looks_at_the_clock(kind: str) -> None:
    text = NO_VALUES[kind]
    readers: list[Callable[[str], object]] = []
    for oid in registry.CODECS:
        # others are of databases of other tests, and may have gone; rows of information_schema have domains, which a catalog knows
        if oid < FIRST_USER_OID:
            with suppress(DataError):
                readers.append(registry.text_decoder(oid))
    assert len(readers) > 150
    for read in (*readers, hstore.parse, lambda given: list(composite.parse_fields(given, 2))):

        def tried(given: str, read: Callable[[str], object] = read) -> None:
            with suppress(DataError, Stopped):
                read(given)

        lines, _ = longest(tried, text)
        assert lines < AT_ONCE, f"{read} reads {lines} lines of {kind} at once"
