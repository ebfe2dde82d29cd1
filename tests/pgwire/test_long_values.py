"""Long values piece by piece: what they come to is what Python's own operations do, at every border of a piece."""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pgwire.codecs import json
from pgwire.long import values as long

LETTERS = ("ab", "abé", "aé日", "a😀", "ab日😀é")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of 16 characters, so that short values have many borders."""
    monkeypatch.setattr(long, "PIECE", 16)
    monkeypatch.setattr(long, "LONG", 20)


def some(rng: random.Random, most: int) -> str:
    letters = rng.choice(LETTERS)
    return "".join(rng.choice(letters) for _ in range(rng.randrange(most)))


def outcome(decode: Callable[[bytes], str], data: bytes) -> str | int:
    """The text, or where the first wrong byte is."""
    try:
        return decode(data)
    except UnicodeDecodeError as error:
        return error.start


def same(found: str, expected: str) -> None:
    """Equal, and in the same form: a text in a wider one is unequal to everything."""
    assert found == expected
    assert hash(found) == hash(expected)
    assert sys.getsizeof(found) == sys.getsizeof(expected)


def test_texts() -> None:
    rng = random.Random(23)
    for _ in range(600):
        a, b, part = some(rng, 90), some(rng, 40), some(rng, 4) + "a"
        texts = [some(rng, 30) for _ in range(rng.randrange(7))]
        separator = rng.choice(["", ",", "日", part])
        same(long.joined(texts, separator), separator.join(texts))
        same(long.concatenated(a, b), a + b)
        same(long.repeated(part, len(b)), part * len(b))
        start, end = rng.randrange(-100, 100), rng.choice([None, rng.randrange(-100, 100)])
        same(long.cut(a, start, end), a[start:end])
        same(long.mapped(a, str.swapcase), a.swapcase())
        same(long.reversed_text(a), a[::-1])
        same(long.replaced(a, part, b), a.replace(part, b))
        assert long.split(a, part) == a.split(part)
        assert long.split(a, part, 2) == a.split(part, 2)
        parts = a.split(part)
        for number in range(-len(parts) - 1, len(parts) + 1):
            expected = parts[number] if -len(parts) <= number < len(parts) else ""
            assert long.field(a, part, number) == expected
        for wanted in (part, b, ""):
            assert long.find(a, wanted, len(part)) == a.find(wanted, len(part))
        same(long.stripped(a, part, True, True), a.strip(part))
        same(long.stripped(a, part, True, False), a.lstrip(part))
        same(long.stripped(a, part, False, True), a.rstrip(part))


def test_ascii_parts_of_texts_with_a_wide_character_anywhere() -> None:
    for wide in "é日😀":
        for at in (0, 5, 15, 16, 17, 40, 79):
            text = "a" * at + wide + "b" * (79 - at)
            for start in (0, at + 1):
                for end in (at, None):
                    same(long.cut(text, start, end), text[start:end])
            assert long.split(text, wide) == text.split(wide)
            same(long.replaced(text, wide, "c"), text.replace(wide, "c"))
            same(long.joined([text[at + 1 :], text[:at]]), text[at + 1 :] + text[:at])


def test_many_characters_to_trim_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long, "MANY_CHARACTERS", 3)
    for text in ("", "xyxabcyx", "xyx"):
        for left, right in ((True, True), (True, False), (False, True)):
            expected = (
                text.strip("xy") if left and right else text.lstrip("xy") if left else text.rstrip("xy")
            )
            assert long.stripped(text, "xyyyxxxy", left, right) == expected
    monkeypatch.undo()
    asked: list[int] = []

    class Text(str):
        def lstrip(self, characters: str | None = None, /) -> str:
            asked.append(len(characters or ""))
            return super().lstrip(characters)

        def __getitem__(self, at: Any) -> str:
            return Text(super().__getitem__(at))

    long.stripped(Text("x" * 100), "xy" * long.MANY_CHARACTERS, True, False)
    assert asked == [2]


def test_texts_that_keep_their_encoded_form() -> None:
    """Single letters are shared by the whole process, so that anybody may have had one encoded."""
    encode = ctypes.pythonapi.PyUnicode_AsUTF8
    encode.restype, encode.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    for letter in ("é", "日", "😀", "日é"):
        assert encode(letter) == letter.encode()
        same(long.repeated(letter, 50), letter * 50)
        same(long.joined([letter] * 50), letter * 50)


def test_comparison() -> None:
    rng = random.Random(24)
    for _ in range(600):
        a = some(rng, 400)
        for b in (a[:], a[: rng.randrange(len(a) + 1)] + rng.choice(["", "z", "日"]), some(rng, 400)):
            assert long.compared(a, b) == (a > b) - (a < b)
            assert long.equal(a, b) == (a == b)


def test_bytes() -> None:
    rng = random.Random(25)
    for _ in range(600):
        text, part = some(rng, 90), some(rng, 4).encode()
        data = text.encode()
        assert long.encoded(text) == data
        assert long.utf8_length(text) == len(data)
        same(long.decoded(data), text)
        start, end = rng.randrange(-100, 100), rng.choice([None, rng.randrange(-100, 100)])
        assert long.cut_bytes(data, start, end) == data[start:end]
        at, to = rng.randrange(100), rng.randrange(100)
        assert long.spliced(data, at, to, data[:at]) == data[:at] + data[:at] + data[to:]
        assert long.find(data, part, 3) == data.find(part, 3)
        parts = [some(rng, 30).encode() for _ in range(rng.randrange(7))]
        assert long.joined_bytes(parts) == b"".join(parts)
        assert long.mapped_bytes(data, lambda piece: piece.hex().encode()) == data.hex().encode()


def test_bytes_that_are_no_text() -> None:
    rng = random.Random(26)
    for _ in range(600):
        data = bytearray(some(rng, 90).encode() + b"a")
        data[rng.randrange(len(data))] = rng.randrange(256)
        found, expected = outcome(long.decoded, bytes(data)), outcome(bytes.decode, bytes(data))
        assert found == expected


def test_long_keys_are_in_the_order_of_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long, "PIECE", 16)
    monkeypatch.setattr(json, "LONG", 64)
    texts = [
        "b" * 200,
        "a" * 200,
        "a" * 199 + "b",
        "ä" * 100,
        "ä" * 99 + "ab",
        "z",
        "a" * 63,
        "b" * 64,
        "a" * 64,
    ]
    in_bytes = sorted(texts, key=lambda text: (len(text.encode()), text.encode()))
    assert sorted(texts, key=json.key_order) == in_bytes
    looks: list[None] = []
    monkeypatch.setattr(long, "give_way", lambda: looks.append(None))
    assert json.key_order("a" * 200) == json.key_order("a" * 199 + "a")
    assert len(looks) > 10


@pytest.mark.parametrize("end", ["", "\xe9", "\u20ac", "\xe9\U0001f600"])
@pytest.mark.parametrize("form", [bytes, memoryview])
def test_bytes_are_decoded_wherever_a_wider_letter_comes(end: str, form: Any) -> None:
    text = "x" * (3 * long.PIECE) + end
    assert long.decoded(form(text.encode())) == text
    with pytest.raises(UnicodeDecodeError) as failure:
        long.decoded(form(text.encode() + b"\xff"))
    assert failure.value.start == len(text.encode())
