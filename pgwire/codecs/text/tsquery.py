"""tsquery: lexemes joined by ``& | ! <->`` (manual 8.11.2), and how PostgreSQL reads, prints and orders them.

    'fat & (rat:AB* | !cat)'   items, operands first   fat  rat:AB*  cat  !  |  &

Items in this order (each operator behind its operands, left then right) need no recursion: ``fold`` goes
through them with a stack. The value is bytes: what is compared is number of items, size, and the tree from
its root as ``QTNodeCompare`` walks it; weights and prefix marks are not compared and come after it (kind
``tailed`` of ``txn.base.types``: the last four bytes count them).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import quoting
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.text import int_of
from pgwire.codecs.text.encodings import encoding
from pgwire.codecs.text.tsvector import LAST_POSITION, MAX_BYTES, MAX_LEXEME_BYTES, WEIGHTS, Scanner, quoted
from pgwire.give_way import PACE, give_way, paced, paced_iter
from pgwire.kept import kept
from pgwire.long.values import joined_up, run_end
from pgwire.release import let_go, release
from pgwire.voice import notice

T = TypeVar("T")

NOT, AND, OR, PHRASE = 1, 2, 3, 4
PRIORITY: Final = {OR: 1, AND: 2, PHRASE: 3, NOT: 4}
MAX_DISTANCE: Final = LAST_POSITION + 1
_STACK_DEPTH: Final = 32
_HEAD: Final = struct.Struct(">II")


class Word(NamedTuple):
    """An operand; ``weights``: a bit for each of D, C, B, A (1, 2, 4, 8), 0 for any."""

    text: str
    weights: int = 0
    prefix: bool = False


class Operator(NamedTuple):
    """NOT, AND, OR or PHRASE; ``distance`` of PHRASE: 0 .. 16384."""

    kind: int
    distance: int = 0


class Stop(NamedTuple):
    """A place that a stop word left; never in values."""


Item: TypeAlias = Word | Operator | Stop
Query: TypeAlias = tuple[Item, ...]


def fold(
    items: Sequence[Item],
    leaf: Callable[[Any], T],
    negate: Callable[[T], T],
    join: Callable[[Operator, T, T], T],
) -> T:
    """Compute a query from its operands to its root. ``items`` are not none."""
    stack: list[T] = []
    for item in paced(items):
        if not isinstance(item, Operator):
            stack.append(leaf(item))
        elif item.kind == NOT:
            stack.append(negate(stack.pop()))
        else:
            right = stack.pop()
            stack.append(join(item, stack.pop(), right))
    (result,) = stack
    return result


# -- values ---------------------------------------------------------------------------------------------


def _crc_table() -> tuple[int, ...]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0xEDB88320 if number & 1 else 0)
        table.append(number)
    return tuple(table)


_TABLE: Final = _crc_table()


@kept(4096)
def checksum(data: bytes) -> int:
    """Return PostgreSQL's legacy CRC of an operand, a signed number of 32 bits: operands order by it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc >> 24 ^ byte) & 0xFF] ^ (crc << 8 & 0xFFFFFFFF)
    crc ^= 0xFFFFFFFF
    return crc - 2**32 if crc >= 2**31 else crc


def pack(items: Sequence[Item]) -> bytes:
    """Return the value of a query; 54000 where it is too large."""
    key, tail = bytearray(), bytearray()
    used = 0
    # root first, and right operands before left ones, as PostgreSQL keeps and compares them: the items backwards
    open_: list[tuple[bytes, int]] = []  # distances to write behind the operands of phrases, operands to go
    for item in paced_iter(reversed(items)):
        if isinstance(item, Operator):
            key += bytes((0, 255 - item.kind))
            distance = struct.pack(">H", 0xFFFF - item.distance) if item.kind == PHRASE else b""
            open_.append((distance, 1 if item.kind == NOT else 2))
            continue
        if not isinstance(item, Word):
            raise AssertionError(f"{type(item).__name__} in a tsquery is neither a word nor an operator")
        if len(item.text) > MAX_LEXEME_BYTES or len(data := item.text.encode("utf-8")) > MAX_LEXEME_BYTES:
            raise DataError("54000", quoting("word is too long in tsquery: ", item.text))
        used += len(data) + 1
        key += b"\1" + struct.pack(">I", 2**31 - 1 - checksum(data)) + data + b"\0"
        tail.append(item.weights | item.prefix << 4)
        while open_:
            distance, left = open_.pop()
            if left > 1:
                open_.append((distance, left - 1))
                break
            key += distance
            if not len(open_) % PACE:  # a word may be the last one of all operators
                give_way()
    if used > MAX_BYTES:
        raise DataError("54000", "tsquery is too large")
    head = _HEAD.pack(len(items), 8 + 12 * len(items) + used)
    return b"".join((head, key, tail, struct.pack(">I", len(tail))))


@kept(256)
def unpack(value: bytes) -> Query:
    """Return the items of a value, operands before their operator; none for the empty query."""
    count = _HEAD.unpack_from(value)[0]
    tails = int.from_bytes(value[-4:], "big")
    tail = value[-4 - tails : -4] if tails else bytes(count)  # values of index keys have none
    found: list[Item] = []
    open_: list[tuple[int, int]] = []  # places in ``found`` of operators, operands to go
    at, words = _HEAD.size, 0
    while len(found) < count:
        give_way()
        if value[at] == 0:
            kind = 255 - value[at + 1]
            at += 2
            open_.append((len(found), 1 if kind == NOT else 2))
            found.append(Operator(kind))
            continue
        end = value.index(0, at + 5)
        found.append(Word(value[at + 5 : end].decode("utf-8"), tail[words] & 15, tail[words] >= 16))
        words += 1
        at = end + 1
        while open_:
            place, left = open_.pop()
            if left > 1:
                open_.append((place, left - 1))
                break
            operator = found[place]
            if not isinstance(operator, Operator):
                raise AssertionError(f"an operand of a tsquery, {type(operator).__name__}, has operands")
            if operator.kind == PHRASE:
                found[place] = Operator(PHRASE, 0xFFFF - (value[at] << 8 | value[at + 1]))
                at += 2
            if not len(open_) % PACE:
                give_way()
    return tuple(reversed(found))


def size(value: bytes) -> int:
    """Return how many items a query has, operators among them."""
    return int(_HEAD.unpack_from(value)[0])


EMPTY: Final = pack(())


# -- stop words -----------------------------------------------------------------------------------------


class _Cleaned(NamedTuple):
    """Whether something is left of a subtree, and what phrases around it are to add to their distance on its
    left and right.
    """

    left_over: bool
    left: int
    right: int


def without_stops(items: Sequence[Item]) -> list[Item]:
    """Return a query without the places of stop words, distances of phrases grown by them: ``a <-> STOP <->
    b`` is ``a <2> b``.
    """
    out: list[Item] = []  # operands come before their operator: what is left over of both is already there

    def leaf(item: Item) -> _Cleaned:
        if isinstance(item, Stop):
            return _Cleaned(False, 0, 0)
        out.append(item)
        return _Cleaned(True, 0, 0)

    def negate(inner: _Cleaned) -> _Cleaned:
        if inner.left_over:
            out.append(Operator(NOT))
        return inner

    def join(operator: Operator, a: _Cleaned, b: _Cleaned) -> _Cleaned:
        phrase = operator.kind == PHRASE
        if not a.left_over and not b.left_over:
            width = a.left + operator.distance + b.left if phrase else max(a.left, b.left)
            return _Cleaned(False, width, width)
        if not a.left_over:
            return _Cleaned(True, a.left + operator.distance + b.left if phrase else b.left, b.right)
        if not b.left_over:
            return _Cleaned(True, a.left, a.right + operator.distance + b.right if phrase else a.right)
        if not phrase:
            out.append(operator)
            return _Cleaned(True, 0, 0)
        out.append(Operator(PHRASE, operator.distance + a.right + b.left))
        return _Cleaned(True, a.left, b.right)

    if items:
        fold(items, leaf, negate, join)
    return out


def made(items: list[Item], text: str) -> bytes:
    """Return the value of a query with places of stop words, whose items are nobody else's; a notice says
    where nothing is left of ``text``.
    """
    cleaned: list[Item] = []
    try:
        cleaned = without_stops(items)
        if not items:
            notice(quoting("text-search query doesn't contain lexemes: ", text))
        elif not cleaned:
            notice("text-search query contains only stop words or doesn't contain lexemes, ignored")
        return pack(cleaned)
    finally:
        release(items, cleaned)


# -- reading --------------------------------------------------------------------------------------------

_DIGITS: Final = re.compile("[0-9]*")
_BLANKS: Final = re.compile(r"\s*")

Expand: TypeAlias = Callable[[str, int, bool], Iterable[Item]]
"""What an operand with weights and prefix mark becomes: items of one whole query."""


def as_it_stands(text: str, weights: int, prefix: bool) -> Iterable[Item]:
    """Take an operand as a lexeme."""
    return (Word(text, weights, prefix),)


class _Reader:
    """Reads the text form: ``items`` grow operands first, operators by their priority."""

    def __init__(self, text: str, expand: Expand, *, web: bool) -> None:
        self.text = text
        self.expand = expand
        self.scanner = Scanner(text, query=True, web=web)
        self.items: list[Item] = []
        self.waiting: list[list[Operator]] = [[]]  # operators by level of parentheses

    def operand(self, text: str, weights: int, prefix: bool) -> None:
        if self.expand is as_it_stands and (
            len(text) > MAX_LEXEME_BYTES or len(text.encode("utf-8")) > MAX_LEXEME_BYTES
        ):
            raise DataError("54000", quoting("word is too long in tsquery: ", self.text))
        self.items.extend(self.expand(text, weights, prefix))

    def operator(self, operator: Operator) -> None:
        self.settle(operator.kind)
        if len(self.waiting[-1]) == _STACK_DEPTH:
            raise DataError("XX000", "tsquery stack too small")
        self.waiting[-1].append(operator)

    def settle(self, kind: int) -> None:
        """Write the operators that bind their operands before one of ``kind`` does."""
        waiting, own = self.waiting[-1], PRIORITY[kind]
        while waiting:
            top = PRIORITY[waiting[-1].kind]
            if own > top or (kind == NOT and own >= top):
                break
            self.items.append(waiting.pop())

    def end(self) -> list[Item]:
        self.settle(OR)
        return self.items


class _Standard(_Reader):
    """to_tsquery's and the type's own syntax."""

    def read(self) -> list[Item]:
        scanner = self.scanner
        text = self.text
        first = True
        while True:
            give_way()
            char = scanner.skip_spaces()
            if char == "!":
                scanner.at += 1
                self.operator(Operator(NOT))
            elif char == "(":
                scanner.at += 1
                self.waiting.append([])
            elif char == ":":
                raise scanner.error()
            else:
                word = scanner.next()
                if word is None:
                    if first:
                        return self.end()
                    raise DataError("42601", quoting("no operand in tsquery: ", text))
                weights, prefix = self.modifiers()
                self.operand(word[0], weights, prefix)
                if not self.join():
                    return self.end()
            first = False

    def modifiers(self) -> tuple[int, bool]:
        """Read ``:AB*``."""
        scanner, weights, prefix = self.scanner, 0, False
        if self.text[scanner.at : scanner.at + 1] == ":":
            scanner.at += 1
            while (char := self.text[scanner.at : scanner.at + 1].upper()) and char in "*ABCD":
                if char == "*":
                    prefix = True
                else:
                    weights |= 1 << WEIGHTS.index(char)
                scanner.at += 1
                give_way()
        return weights, prefix

    def join(self) -> bool:
        """Read what follows an operand up to an operator with two; False at the end."""
        scanner = self.scanner
        while True:
            give_way()
            char = scanner.skip_spaces()
            if char == "&" or char == "|":
                scanner.at += 1
                self.operator(Operator(AND if char == "&" else OR))
                return True
            if char == "<":
                self.operator(Operator(PHRASE, self.distance()))
                return True
            if char == ")" and len(self.waiting) > 1:
                scanner.at += 1
                self.settle(OR)
                self.waiting.pop()
            elif not char and len(self.waiting) == 1:
                return False
            else:
                raise scanner.error()

    def distance(self) -> int:
        """Read ``<->`` or ``<2>``."""
        text, start = self.text, self.scanner.at + 1
        end = run_end(_DIGITS, text, start)
        number = 1
        if end > start:
            number = int_of(text[start:end])
            if number > MAX_DISTANCE:
                raise DataError(
                    "22023",
                    f"distance in phrase operator must be an integer value between zero and {MAX_DISTANCE} inclusive",
                )
        elif text[end : end + 1] == "-":
            end += 1
        else:
            raise self.scanner.error()
        if text[end : end + 1] != ">" or end + 1 >= len(text):
            raise self.scanner.error()
        self.scanner.at = end + 1
        return number


class _Web(_Reader):
    """websearch_to_tsquery's syntax: quoted phrases, or, and - for not; nothing is an error."""

    def read(self) -> list[Item]:
        scanner, text = self.scanner, self.text
        first = True
        while True:
            give_way()
            char = scanner.skip_spaces()
            if char == "-":
                scanner.at += 1
                self.operator(Operator(NOT))
            elif char == '"':
                start = scanner.at + 1
                end = text.find('"', start)
                scanner.at = len(text) if end < 0 else end + 1
                self.operand(text[start : len(text) if end < 0 else end], 0, False)
                if not self.join():
                    return self.end()
            elif char and char in "!&|()<":
                scanner.at += 1
            else:
                word = scanner.next()
                if word is None:
                    if not first:
                        self.items.append(Stop())  # an operator has to have its operand
                    return self.end()
                self.operand(word[0], 0, False)
                if not self.join():
                    return self.end()
            first = False

    def join(self) -> bool:
        """Read or put an operator behind an operand; False at the end."""
        scanner = self.scanner
        while char := scanner.skip_spaces():
            give_way()
            if self.is_or():
                scanner.at += 2
                self.operator(Operator(OR))
                return True
            if char not in "!&|()<":
                self.operator(Operator(AND))
                return True
            scanner.at += 1
        return False

    def is_or(self) -> bool:
        """Whether the word or is next, is a word by itself, and has something behind it."""
        text, at = self.text, self.scanner.at
        if text[at : at + 2].lower() != "or":
            return False
        behind = text[at + 2 : at + 3]
        if not behind or behind in "-_" or behind.isalnum():
            return False
        return run_end(_BLANKS, text, at + 3) < len(text)


def read(text: str, expand: Expand) -> bytes:
    """Read a query in to_tsquery's syntax: 42601, 22023, 54000."""
    return made(_Standard(text, expand, web=False).read(), text)


def read_web(text: str, expand: Expand) -> bytes:
    """Read a query in websearch_to_tsquery's syntax."""
    return made(_Web(text, expand, web=True).read(), text)


def parse(text: str) -> bytes:
    """Read a tsquery: 42601, 22023, 54000."""
    return read(text, as_it_stands)


# -- printing -------------------------------------------------------------------------------------------

_SIGNS: Final = {AND: " & ", OR: " | "}


def show_word(word: Word) -> str:
    """Return an operand with its marks."""
    marks = ("*" if word.prefix else "") + "".join(c for c in "ABCD" if word.weights >> WEIGHTS.index(c) & 1)
    return quoted(word.text) + (f":{marks}" if marks else "")


def show_items(items: Sequence[Item]) -> str:
    """Print a query with the parentheses that it needs."""
    if not items:
        return ""
    begins = _begins(items)
    shown: list[str] = []
    # what is still to be printed, the next one last: texts, and places of items with their operator and
    # whether they are right of it
    open_: list[str | tuple[int, int, bool]] = [(len(items) - 1, 0, False)]
    while open_:
        give_way()
        top = open_.pop()
        if isinstance(top, str):
            shown.append(top)
            continue
        place, around, right = top
        item = items[place]
        if not isinstance(item, Operator):
            if not isinstance(item, Word):
                raise AssertionError(f"{type(item).__name__} in a tsquery is neither a word nor an operator")
            shown.append(show_word(item))
            continue
        kind = item.kind
        if around and (PRIORITY[kind] < PRIORITY[around] or (kind == around == PHRASE and right)):
            shown.append("( ")
            open_.append(" )")
        if kind == NOT:
            open_ += ((place - 1, NOT, False), "!")
            continue
        sign = _SIGNS.get(kind) or (" <-> " if item.distance == 1 else f" <{item.distance}> ")
        open_ += ((place - 1, kind, True), sign, (begins[place - 1] - 1, kind, False))
    return joined_up(shown)


def _begins(items: Sequence[Item]) -> list[int]:
    """Return where the operands of each item begin, a word's where it stands."""
    found: list[int] = []
    for place, item in enumerate(paced(items)):
        if not isinstance(item, Operator):
            found.append(place)
        elif item.kind == NOT:
            found.append(found[place - 1])
        else:
            found.append(found[found[place - 1] - 1])
    return found


def show(value: bytes) -> str:
    """Print a tsquery."""
    items = unpack(value)
    try:
        return show_items(items)
    finally:
        let_go(items)


# -- binary form ----------------------------------------------------------------------------------------


def receiver(settings: CodecSettings) -> Callable[[bytes], bytes]:
    """Return the function that reads the binary form: 22P03 for what is malformed, 08P01 where it ends early."""
    decode = encoding(settings.encoding).decode

    def recv(data: bytes) -> bytes:
        data = bytes(data)
        try:
            (count,) = struct.unpack_from(">I", data)
            if count > 2**24:
                raise DataError("22P03", "invalid size of tsquery")
            at, items = 4, []
            for _ in paced(range(count)):
                item, at = _received(data, at, decode)
                items.append(item)
        except (struct.error, ValueError, IndexError):
            raise DataError("08P01", "insufficient data left in message") from None
        if at != len(data):
            raise DataError("22P03", "incorrect binary data format")
        items.reverse()
        operands = 0
        for item in paced(items):
            if not isinstance(item, Operator):
                operands += 1
            elif item.kind != NOT:
                operands -= 1
            if operands < 1:
                raise DataError("22P03", "malformed tsquery: operand not found")
        if operands > 1:
            raise DataError("22P03", "malformed tsquery: extra nodes")
        try:
            return pack(items)
        finally:
            release(items)

    return recv


def _received(data: bytes, at: int, decode: Callable[[bytes], str]) -> tuple[Item, int]:
    if data[at] == 1:
        weights, prefix = data[at + 1], data[at + 2]
        end = data.index(0, at + 3)
        text = decode(data[at + 3 : end])
        if weights > 15:
            raise DataError("22P03", "invalid tsquery: invalid weight bitmap")
        if end - at - 3 > MAX_LEXEME_BYTES:
            raise DataError("22P03", "invalid tsquery: operand too long")
        return Word(text, weights, prefix != 0), end + 1
    if data[at] != 2:
        raise DataError("22P03", f"unrecognized tsquery node type: {data[at]}")
    kind = data[at + 1]
    if kind not in PRIORITY:
        raise DataError("22P03", f"invalid tsquery: unrecognized operator type {kind}")
    if kind != PHRASE:
        return Operator(kind), at + 2
    return Operator(PHRASE, struct.unpack_from(">H", data, at + 2)[0]), at + 4


def sender(settings: CodecSettings) -> Callable[[bytes], bytes]:
    """Return the function that writes the binary form, operands in the client's encoding."""
    encode = encoding(settings.encoding).encode

    def send_item(item: Item) -> bytes:
        if isinstance(item, Word):
            return bytes((1, item.weights, item.prefix)) + encode(item.text) + b"\0"
        if not isinstance(item, Operator):
            raise AssertionError(f"{type(item).__name__} in a tsquery is neither a word nor an operator")
        distance = struct.pack(">H", item.distance) if item.kind == PHRASE else b""
        return bytes((2, item.kind)) + distance

    def send(value: bytes) -> bytes:
        items = unpack(value)
        sent = bytearray(struct.pack(">I", len(items)))
        for item in paced_iter(reversed(items)):
            sent += send_item(item)
        let_go(items)
        return bytes(sent)

    return send
