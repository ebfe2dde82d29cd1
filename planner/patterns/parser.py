r"""Text of a regular expression to its tree: one pass, by recursive descent.

What PostgreSQL refuses is refused at the same place with its words: 2201B ``invalid regular expression: …``.
Brackets nest at most ``MAX_DEPTH`` deep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from planner.patterns.charset import (
    CLASSES,
    EVERYTHING,
    NEWLINE,
    NOT_NEWLINE,
    CharSet,
    Ranges,
    any_case,
    both_cases,
    class_ranges,
    complement,
    union,
)
from planner.patterns.lexer import Lexer, Token, read_prefixes
from planner.patterns.options import (
    ADVANCED,
    ADVANCED_FORMS,
    EXPANDED,
    EXTENDED,
    IGNORE_CASE,
    LINE_ANCHOR,
    LINE_STOP,
    MAX_STATES,
    QUOTE,
    TOO_COMPLEX,
    invalid,
)
from planner.patterns.options import NEWLINE as NEWLINE_BITS
from planner.patterns.steps import spend
from planner.patterns.tree import (
    LONGER,
    SHORTER,
    Atom,
    Back,
    Branch,
    Chars,
    Expression,
    Group,
    Guard,
    Item,
    Look,
)

MAX_DEPTH: Final = 200

_CONSTRAINTS: Final = {
    "\\A": Guard.BEGIN, "\\Z": Guard.END, "<": Guard.WORD_BEGIN, ">": Guard.WORD_END,
    "\\y": Guard.BOUNDARY, "\\Y": Guard.NO_BOUNDARY,
}  # fmt: skip

_NAMES: Final = (
    "NUL SOH STX ETX EOT ENQ ACK BEL,alert BS,backspace HT,tab LF,newline VT,vertical-tab FF,form-feed "
    "CR,carriage-return SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC IS4,FS IS3,GS IS2,RS IS1,US space "
    "exclamation-mark quotation-mark number-sign dollar-sign percent-sign ampersand apostrophe left-parenthesis "
    "right-parenthesis asterisk plus-sign comma hyphen,hyphen-minus period,full-stop slash,solidus zero one two "
    "three four five six seven eight nine colon semicolon less-than-sign equals-sign greater-than-sign "
    "question-mark commercial-at"
)
_LATER_NAMES: Final = (
    (91, "left-square-bracket backslash,reverse-solidus right-square-bracket circumflex,circumflex-accent "
         "underscore,low-line grave-accent"),
    (123, "left-brace,left-curly-bracket vertical-line right-brace,right-curly-bracket tilde DEL"),
)  # fmt: skip
_COLLATING: Final = {
    name: chr(code)
    for first, names in ((0, _NAMES), *_LATER_NAMES)
    for code, some in enumerate(names.split(), first)
    for name in some.split(",")
}
"""Characters by the names POSIX has for them: ``[[.hyphen.]]``."""


@dataclass(slots=True)
class Parsed:
    """A regular expression: its tree, the option bits it ended with, and its capturing groups (their number)."""

    expression: Expression
    bits: int
    groups: int


def parse(pattern: str, bits: int) -> Parsed:
    """Read a pattern under option bits (``options``). Raises 2201B."""
    if (bits & QUOTE and bits & (ADVANCED | EXPANDED | NEWLINE_BITS)) or (
        not bits & EXTENDED and bits & ADVANCED_FORMS
    ):
        raise invalid("invalid argument to regex function")
    at, bits = read_prefixes(pattern, bits)
    parser = _Parser(Lexer(pattern, at, bits), bits)
    expression = parser.expression("end", False)
    return Parsed(expression, bits, parser.lexer.groups)


@dataclass(slots=True)
class _Parser:
    lexer: Lexer
    bits: int
    token: Token = field(init=False)
    depth: int = 0
    sets: int = 0  # of characters, so far
    groups: dict[int, Group] = field(default_factory=dict)  # those that have ended, by number

    def __post_init__(self) -> None:
        self.token = self.lexer.next()

    def _take(self) -> Token:
        """Return the present token and read the next."""
        token = self.token
        self.token = self.lexer.next()
        return token

    def expression(self, stopper: str, looking: bool) -> Expression:
        """Read branches up to ``stopper``; ``looking``: inside a look-around, where nothing captures."""
        branches = [self._branch(stopper, looking)]
        while self.token.kind == "|":
            self._take()
            branches.append(self._branch(stopper, looking))
        if self.token.kind != stopper:
            raise invalid("parentheses () not balanced")
        return tuple(branches)

    def _branch(self, stopper: str, looking: bool) -> Branch:
        items: list[Item] = []
        while self.token.kind not in ("|", stopper, "end"):
            self._item(items, looking)
        return tuple(items)

    def _item(self, items: list[Item], looking: bool) -> None:
        spend(50)
        atom, quantified = self._atom(looking)
        if not quantified:
            items.append(Item(atom))
            return
        kind = self.token.kind
        low: int
        high: int | None
        greedy: bool | None
        if kind in ("*", "+", "?"):
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[kind]
            greedy = bool(self._take().value)
        elif kind == "{":
            low, high, greedy = self.lexer.bound()
            self.token = self.lexer.next()
        else:
            low, high, greedy = 1, 1, None
        if high != 0:
            items.append(Item(atom, low, high, 0 if greedy is None else LONGER if greedy else SHORTER))
        else:
            items.append(Item(Group(0, ((),))))  # it matches nothing, and the branch has content all the same

    def _atom(self, looking: bool) -> tuple[Atom, bool]:
        """Read an atom or a constraint; the latter takes no quantifier."""
        kind, value = self.token
        if kind in ("^", "$"):
            self._take()
            if self.bits & LINE_ANCHOR:
                return (Guard.LINE_BEGIN if kind == "^" else Guard.LINE_END), False
            return (Guard.BEGIN if kind == "^" else Guard.END), False
        if kind in _CONSTRAINTS:
            self._take()
            return _CONSTRAINTS[kind], False
        if kind == "look":
            if not isinstance(value, tuple):
                raise AssertionError(f"a look ahead is {type(value).__name__}, not a pair")
            self._take()
            body = self._nested(True)
            self._take()
            return Look(value[0], value[1], body), False
        if kind in ("*", "+", "?", "{"):
            raise invalid("quantifier operand invalid")
        if kind == ")" and self.bits & ADVANCED != EXTENDED:
            raise invalid("parentheses () not balanced")
        if kind in ("(", "(?"):
            return self._group(kind == "(" and not looking, looking), True
        if kind == "back":
            group = None if looking else self.groups.get(int(str(value)))
            if group is None:
                raise invalid("invalid backreference number")
            self._take()
            return Back(group), True
        return Chars(self._chars(kind, value)), True

    def _chars(self, kind: str, value: object) -> CharSet:
        self.sets += 1
        if self.sets > MAX_STATES:
            raise invalid(TOO_COMPLEX)
        if kind in ("[", "[^"):
            found = self._bracket()
            if kind == "[^":
                stop = NEWLINE.ranges if self.bits & LINE_STOP else ()
                found = complement(union([found, stop]))
            self.token = self.lexer.next()
            return CharSet(found)
        self._take()
        if kind == ".":
            return NOT_NEWLINE if self.bits & LINE_STOP else EVERYTHING
        if kind == "class":
            return CharSet(class_ranges(str(value)))
        if kind == "-class":
            return CharSet(complement(class_ranges(str(value))))
        return CharSet(self._one(str(value)))

    def _group(self, captures: bool, looking: bool) -> Group:
        number = 0
        if captures:
            self.lexer.groups += 1
            number = self.lexer.groups
        self._take()
        group = Group(number, self._nested(looking))
        self._take()
        if captures:
            self.groups[number] = group
        return group

    def _nested(self, looking: bool) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise invalid(TOO_COMPLEX)
        found = self.expression(")", looking)
        self.depth -= 1
        return found

    # --- characters -----------------------------------------------------------------------------------

    def _one(self, c: str) -> Ranges:
        return any_case(c) if self.bits & IGNORE_CASE else ((ord(c), ord(c)),)

    def _bracket(self) -> Ranges:
        """Read a bracket expression whose opening is the present token, up to its ``]``."""
        parts: list[Ranges] = []
        token = self.lexer.in_brackets(True)
        while token.kind != "]":
            spend(50)
            token = self._part(token, parts)
        return union(parts)

    def _part(self, token: Token, parts: list[Ranges]) -> Token:
        """Read one element or range that begins with ``token``; return the token behind it."""
        kind, value = token
        if kind == "range":
            raise invalid("invalid character range")
        following = self.lexer.in_brackets(False)
        if kind == "char" and following.kind != "range":
            parts.append(self._one(str(value)))
            return following
        if kind == "[=":
            parts.append(self._one(_element(str(value))))
            return following
        if kind == "[:":
            parts.append(self._class(str(value)))
            return following
        if kind in ("class", "-class"):
            ranges = class_ranges(str(value))
            parts.append(ranges if kind == "class" else complement(ranges))
            return following
        low = str(value) if kind == "char" else _element(str(value))
        high = low
        if following.kind == "range":
            end = self.lexer.in_brackets(False)
            if end.kind not in ("char", "range", "[."):
                raise invalid("invalid character range")
            following = self.lexer.in_brackets(False)
            high = _element(str(end.value)) if end.kind == "[." else str(end.value)
        if low > high:
            raise invalid("invalid character range")
        ranges = ((ord(low), ord(high)),)
        parts.append(both_cases(ranges) if self.bits & IGNORE_CASE else ranges)
        return following

    def _class(self, name: str) -> Ranges:
        if name not in CLASSES:
            raise invalid("invalid character class")
        if self.bits & IGNORE_CASE and name in ("upper", "lower"):
            name = "alpha"
        return class_ranges(name)


def _element(name: str) -> str:
    """Return the character of a collating element: itself, or the one of that name. Raises 2201B."""
    if len(name) == 1:
        return name
    if name not in _COLLATING:
        raise invalid("invalid collating element")
    return _COLLATING[name]
