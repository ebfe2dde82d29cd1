"""to_char of numbers and to_number (Python forms).

A number is printed by walking the template's positions beside the digits, as PostgreSQL does: a position before
the first digit gives a blank (or 0 from the first ``0`` on), the sign goes where the first digit appears unless
S, MI, PL, SG or PR place it, and FM drops blanks and trailing zeros.

    to_char(-12.5, '9990.99')     |    -12.50|        to_char(-12.5, 'FM9990.99')  |-12.5|
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

from pgwire.codecs import numeric as codec
from pgwire.codecs.typmod import apply_numeric
from pgwire.give_way import give_way, paced
from planner.base.errors import SqlError
from planner.functions.numbers.numeric import div
from planner.functions.registry import REGISTRY
from planner.functions.time.formatting_pattern import KEPT_CHARACTERS, ordinal_suffix

_WORDS = (
    "FM",
    "MI",
    "PL",
    "PR",
    "RN",
    "SG",
    "SP",
    "TH",
    ",",
    ".",
    "0",
    "9",
    "B",
    "C",
    "D",
    "E",
    "G",
    "L",
    "S",
    "V",
)
_TENS = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
         (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip
_TOGETHER = 'cannot use "S" and "PL"/"MI"/"SG"/"PR" together'


def _syntax(message: str, detail: str | None = None) -> SqlError:
    return SqlError("42601", message, detail=detail)


@dataclass(slots=True)
class _Template:
    """A number template: its nodes ``(action, text)`` and what they ask for together."""

    nodes: list[tuple[str, str]] = field(default_factory=list)
    pre: int = 0
    post: int = 0
    zero_start: int = 0
    zero_end: int = 0
    multi: int = 0
    lsign: str = ""
    pre_lsign: int = 0
    flags: set[str] = field(default_factory=set)

    def add(self, word: str) -> None:
        """Take account of a pattern; 42601 for combinations that make no sense."""
        flags = self.flags
        if "EEEE" in flags and word != "EEEE":
            raise _syntax('"EEEE" must be the last pattern used')
        match word:
            case "9" | "0":
                if "PR" in flags:
                    raise _syntax(f'"{word}" must be ahead of "PR"')
                if word == "9" and "V" in flags:
                    self.multi += 1
                    return
                if word == "0" and "." not in flags and "0" not in flags:
                    flags.add("0")
                    self.zero_start = self.pre + 1
                if "." in flags:
                    self.post += 1
                else:
                    self.pre += 1
                if word == "0":
                    self.zero_end = self.pre + self.post
            case "B":
                if not self.pre and not self.post and "0" not in flags:
                    flags.add("B")
            case "D" | ".":
                if "." in flags:
                    raise _syntax("multiple decimal points")
                if "V" in flags:
                    raise _syntax('cannot use "V" and decimal point together')
                flags.add(".")
            case "S":
                if "S" in flags:
                    raise _syntax('cannot use "S" twice')
                if flags & {"PL", "MI", "PR"}:
                    raise _syntax(_TOGETHER)
                if "." not in flags:
                    self.lsign, self.pre_lsign = "pre", self.pre
                elif not self.lsign:
                    self.lsign = "post"
                flags.add("S")
            case "MI" | "PL" | "SG":
                if "S" in flags:
                    raise _syntax(f'cannot use "S" and "{word}" together')
                flags.update({"MI", "PL"} if word == "SG" else {word})
            case "PR":
                if flags & {"S", "PL", "MI"}:
                    raise _syntax('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
                flags.add("PR")
            case "V":
                if "." in flags:
                    raise _syntax('cannot use "V" and decimal point together')
                flags.add("V")
            case "EEEE":
                if "EEEE" in flags:
                    raise _syntax('cannot use "EEEE" twice')
                if flags & {"B", "FM", "S", "PR", "MI", "PL", "RN", "V"}:
                    raise _syntax(
                        '"EEEE" is incompatible with other formats',
                        '"EEEE" may only be used together with digit and decimal point patterns.',
                    )
                flags.add("EEEE")
            case "FM" | "RN":
                flags.add(word)


def parse_template(text: str) -> _Template:
    """Cut a number template; 42601."""
    return (_kept if len(text) <= KEPT_CHARACTERS else _parse)(text)


def _parse(text: str) -> _Template:
    template = _Template()
    at, end = 0, len(text)
    while at < end:
        give_way()
        upper = text[at : at + 4].upper()
        same_case = text[at : at + 4].isupper() or text[at : at + 4].islower()
        word = "EEEE" if upper == "EEEE" and same_case else ""
        if not word:
            for candidate in _WORDS:
                piece = text[at : at + len(candidate)]
                if piece in (candidate, candidate.lower()) and candidate != "E":
                    word = candidate
                    break
        if word:
            piece = text[at : at + len(word)]
            at += len(word)
            template.add(word)
            template.nodes.append((word, piece))
            continue
        char = text[at]
        if char == '"':
            at += 1
            while at < end and text[at] != '"':
                if text[at] == "\\" and at + 1 < end:
                    at += 1
                template.nodes.append(("", text[at]))
                at += 1
            at += 1
            continue
        if char == "\\" and text[at + 1 : at + 2] == '"':
            at += 1
            char = text[at]
        template.nodes.append(("", char))
        at += 1
    return template


_kept = functools.lru_cache(maxsize=512)(_parse)


def roman(number: int) -> str:
    """Return a number from 1 to 3999 in Roman digits; fifteen ``#`` for another."""
    if not 1 <= number <= 3999:
        return "#" * 15
    out = ""
    for value, digits in _TENS:
        while number >= value:
            out += digits
            number -= value
    return out


class _Printer:
    """One number on its way through a template."""

    def __init__(self, template: _Template, digits: str, sign: str, blanks: int) -> None:
        self.t = template
        self.flags = template.flags
        self.digits = digits  # with the decimal point; no sign
        self.at = 0
        self.sign = sign
        self.lsign = template.lsign
        self.bracket = "PR" in template.flags
        self.fill = "FM" in template.flags
        self.blanks = blanks  # positions before the first digit
        self.position = 0
        self.count = template.post + template.pre - 1
        self.started = False
        self.out: list[str] = []
        self.last: int | None = None  # index of the last digit that FM keeps
        flags = self.flags
        if flags & {"PL", "MI"}:
            self.sign_done = not ("PL" in flags and "MI" not in flags)
        else:
            if sign != "-" and self.bracket and self.fill:
                self.bracket = False
            self.sign_done = sign == "+" and self.fill and "S" not in flags
            if self.lsign == "pre" and template.pre == template.pre_lsign:
                self.lsign = "post"
        if flags & {"PL", "MI"} and "PL" in flags and "MI" not in flags:
            self.sign_done = False
        if self.fill and "." in flags:
            self.last = self._last_relevant()
        if not self.sign_done and not blanks:
            self.count += 1

    def _last_relevant(self) -> int | None:
        """Return the index of the last digit after the point that is not 0 (or of the point)."""
        point = self.digits.find(".")
        if point < 0:
            return None
        last = point
        for index in paced(range(point + 1, len(self.digits)), 1024):
            if self.digits[index] != "0":
                last = index
        if self.t.zero_end > self.blanks:
            last = max(last, min(len(self.digits) - 1, self.t.zero_end - self.blanks))
        return last

    def run(self) -> str:
        for word, text in paced(self.t.nodes):
            match word:
                case "":
                    self.out.append(text)
                case "9" | "0" | "." | "D":
                    self.digit(word)
                case "," | "G":
                    if self.started:
                        self.out.append(",")
                    elif not self.fill:
                        self.out.append(" ")
                case "L":
                    self.out.append(" ")
                case "TH":
                    skip = self.digits[:1] == "#" or self.sign == "-" or "." in self.flags
                    if not skip:
                        self.out.append(ordinal_suffix(self.digits, upper=text.isupper()))
                case "MI":
                    self.out.append("-" if self.sign == "-" else "" if self.fill else " ")
                case "PL":
                    self.out.append("+" if self.sign == "+" else "" if self.fill else " ")
                case "SG":
                    self.out.append(self.sign)
        return "".join(self.out)

    def blank_before_point(self) -> bool:
        """Whether the 0 before the point of a number below 1 prints as a blank."""
        return "0" not in self.flags and self.at == 0 and self.digits[:1] == "0" and self.t.post != 0

    def digit(self, word: str) -> None:
        """One position of digits or the decimal point."""
        t = self.t
        zero = "0" in self.flags
        self.started = False
        ends_at_point = self.last is not None and self.digits[self.last] == "."
        reached = self.position >= self.blanks or (zero and t.zero_start == self.position + 1)
        if not self.sign_done and reached and (not self.blank_before_point() or ends_at_point):
            self.write_sign()
        if self.position < self.blanks and (not zero or t.zero_start > self.position + 1):
            if not self.fill:
                self.out.append(" ")
        elif zero and self.position < self.blanks and t.zero_start <= self.position + 1:
            self.out.append("0")
            self.started = True
        else:
            self.write_digit(word, ends_at_point)
        end = self.count + (1 if self.blanks else 0) + (1 if "." in self.flags else 0)
        if self.last is not None and self.last == self.at:
            end = self.position
        if self.position + 1 == end:
            if self.sign_done and self.bracket:
                self.out.append(" " if self.sign == "+" else ">")
            elif "S" in self.flags and self.lsign == "post":
                self.out.append(self.sign)
        self.position += 1

    def write_digit(self, word: str, ends_at_point: bool) -> None:
        char = self.digits[self.at : self.at + 1]
        if char == ".":
            if not ends_at_point or self.fill:
                self.out.append(".")
        elif self.last is not None and self.at > self.last and word != "0":
            pass
        elif self.blank_before_point():
            if not self.fill:
                self.out.append(" ")
            elif ends_at_point:
                self.out.append("0")
        elif char:
            self.out.append(char)
            self.started = True
        if char:
            self.at += 1

    def write_sign(self) -> None:
        if "S" in self.flags:
            if self.lsign == "pre":
                self.out.append(self.sign)
                self.sign_done = True
        elif self.bracket:
            self.out.append(" " if self.sign == "+" else "<")
            self.sign_done = True
        elif self.sign == "+":
            if not self.fill:
                self.out.append(" ")
            self.sign_done = True
        else:
            self.out.append("-")
            self.sign_done = True


def _print(template: _Template, text: str, *, post: int | None = None) -> str:
    """Print a number given as digits with sign; ``#`` where it has more digits than positions."""
    sign = "-" if text[:1] == "-" else "+"
    digits = text.lstrip("-")
    whole = len(digits.partition(".")[0])
    pre = template.pre + template.multi
    blanks = 0
    if whole < pre:
        blanks = pre - whole
    elif whole > pre:
        digits = "#" * pre + "." + "#" * (template.post if post is None else post)
    if template.multi or (post is not None and post != template.post):
        changed = _Template(
            nodes=template.nodes, pre=pre, post=template.post if post is None else post, zero_start=template.zero_start,
            zero_end=template.zero_end, lsign=template.lsign, pre_lsign=template.pre_lsign, flags=template.flags,
        )  # fmt: skip
        return _Printer(changed, digits, sign, blanks).run()
    return _Printer(template, digits, sign, blanks).run()


def _print_roman(template: _Template, number: int) -> str:
    shown = roman(number)
    lower = any(text == "rn" for _, text in template.nodes)
    shown = shown.lower() if lower else shown
    body = shown if "FM" in template.flags else shown.rjust(15)
    out = []
    for word, text in template.nodes:
        out.append(body if word == "RN" else text if word == "" else "")
    return "".join(out)


def _exponential(text: str) -> str:
    """Add a blank for the plus sign, so that signs line up."""
    return text if text[0] == "-" else " " + text


def _hashes(template: _Template) -> str:
    """Return what EEEE prints for NaN and infinities."""
    width = template.pre + template.post + 6
    return " " + "#" * template.pre + "." + "#" * (width - template.pre - 2)


def int_to_char(value: int, text: str) -> str:
    """Print an integer."""
    template = parse_template(text)
    if "RN" in template.flags:
        return _print_roman(template, value)
    if "EEEE" in template.flags:
        return _exponential(f"{float(value):.{template.post}e}")
    digits = str(value * 10**template.multi)
    return _print(template, digits + ("." + "0" * template.post if template.post else ""))


def numeric_to_char(value: Decimal, text: str) -> str:
    """Print a numeric, rounded to the template's digits."""
    template = parse_template(text)
    if "RN" in template.flags:
        rounded = codec.round_to(value, 0)
        if not rounded.is_finite():
            raise SqlError("0A000", f"cannot convert {'NaN' if value.is_nan() else 'infinity'} to integer")
        if not -(2**31) <= rounded < 2**31:
            raise SqlError("22003", "integer out of range")
        return _print_roman(template, int(rounded))
    if "EEEE" in template.flags:
        if not value.is_finite():
            return _hashes(template)
        return _exponential(_scientific(value, template.post))
    if not value.is_finite():
        return _print(template, codec.show(value))
    scaled = value.scaleb(template.multi, codec.CONTEXT)
    return _print(template, codec.show(codec.round_to(scaled, template.post)))


def _scientific(value: Decimal, digits: int) -> str:
    if not value:
        return f"{'0.' + '0' * digits if digits else '0'}e+00"
    exponent = value.adjusted()
    mantissa = value.scaleb(-exponent, codec.CONTEXT).quantize(
        Decimal((0, (1,), -digits)), ROUND_HALF_UP, codec.CONTEXT
    )
    # A mantissa that rounds up to 10 stays so: 99.995 is 10.00e+01 in PostgreSQL too.
    return f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _float_to_char(value: float, text: str, precision: int) -> str:
    template = parse_template(text)
    if "RN" in template.flags:
        return _print_roman(template, round(value) if math.isfinite(value) else 0)
    if "EEEE" in template.flags:
        return _hashes(template) if not math.isfinite(value) else _exponential(f"{value:.{template.post}e}")
    if not math.isfinite(value):
        shown = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        whole = len(shown.lstrip("-"))
    else:
        value *= 10.0**template.multi
        shown = ""
        whole = len(f"{abs(value):.0f}")
    post = template.post
    if whole >= precision:
        post = 0
    elif whole + post > precision:
        post = precision - whole
    return _print(template, shown or f"{value:.{post}f}", post=post)


def float8_to_char(value: float, text: str) -> str:
    """Print a float8, at most 15 digits."""
    return _float_to_char(value, text, 15)


def float4_to_char(value: float, text: str) -> str:
    """Print a float4, at most 6 digits."""
    return _float_to_char(value, text, 6)


# -- to_number -----------------------------------------------------------------------------------


class _NumberReader:
    """One text on its way through a template."""

    def __init__(self, template: _Template, text: str) -> None:
        self.t = template
        self.text = text
        self.at = 0
        self.sign = ""
        self.digits = ""
        self.point = False
        self.fraction = 0
        self.lsign = template.lsign
        if self.lsign == "pre" and template.pre == template.pre_lsign:
            self.lsign = "post"

    def here(self) -> str:
        return self.text[self.at : self.at + 1]

    def run(self) -> str:
        flags = self.t.flags
        for word, _ in paced(self.t.nodes):
            if self.at >= len(self.text):
                break
            match word:
                case "9" | "0" | "." | "D":
                    self.position(word)
                    self.at += 1
                case "," | "G":
                    if self.here() == ",":
                        self.at += 1
                case "L" | "TH":
                    self.skip_other(1 if word == "L" else 2)
                case "MI" | "PL" | "SG":
                    char = self.here()
                    if (char == "-" and word != "PL") or (char == "+" and word != "MI"):
                        self.sign = char
                        self.at += 1
                    else:
                        self.skip_other(1)
                case "RN":
                    raise SqlError("0A000", '"RN" not supported for input')
                case "":
                    self.at += 1
        if self.point and self.digits.endswith("."):
            self.digits = self.digits[:-1]
        return (
            ("-" if self.sign == "-" else "") + self.digits
            if "PR" not in flags or self.digits
            else self.digits
        )

    def skip_other(self, count: int) -> None:
        """Skip up to ``count`` characters that cannot belong to a number."""
        while count and self.at < len(self.text) and self.here() not in "0123456789.,+-":
            self.at += 1
            count -= 1

    def position(self, word: str) -> None:
        flags, text = self.t.flags, self.text
        if self.here() == " ":
            self.at += 1
        if self.at >= len(text):
            return
        if not self.sign and word in "09" and not self.digits.strip("."):
            if "S" in flags and self.lsign == "pre":
                if self.here() in ("-", "+"):
                    self.sign = self.here()
                    self.at += 1
            elif self.here() == "-" or ("PR" in flags and self.here() == "<"):
                self.sign = "-"
                self.at += 1
            elif self.here() == "+":
                self.sign = "+"
                self.at += 1
        if self.at >= len(text):
            return
        read = False
        char = self.here()
        if char.isdigit():
            if self.point and self.fraction == self.t.post:
                return
            self.digits += char
            self.fraction += self.point
            read = True
        elif "." in flags and not self.point and char == ".":
            self.digits += "."
            self.point = read = True
        if self.at >= len(text) or self.sign or not self.digits.strip("."):
            if not read:
                self.at -= 0
            return
        following = text[self.at + 1 : self.at + 2]
        if "S" in flags and read and following and not following.isdigit():
            if following in "+-":
                self.sign = following
                self.at += 1
        elif not read and "S" not in flags and flags & {"PL", "MI"} and char in ("-", "+"):
            self.sign = char


def to_number(text: str, template_text: str) -> Decimal | None:
    """Read a number by a template; 22P02 if there is none, 22003; NULL for an empty template."""
    if not template_text:
        return None
    template = parse_template(template_text)
    if "EEEE" in template.flags:
        raise SqlError("0A000", '"EEEE" not supported for input')
    reader = _NumberReader(template, text)
    digits = reader.run()
    value = codec.parse(digits if digits.strip("-") else " ")
    precision = max(template.pre + template.multi, 0) + reader.fraction
    if precision:
        value = apply_numeric(value, (precision << 16 | reader.fraction) + 4)
    if template.multi:
        value = div(value, Decimal(10) ** template.multi)
    return value


def _register() -> None:
    python = REGISTRY.python
    python("to_char(int4,text)", int_to_char)
    python("to_char(int8,text)", int_to_char)
    python("to_char(numeric,text)", numeric_to_char)
    python("to_char(float4,text)", float4_to_char)
    python("to_char(float8,text)", float8_to_char)
    python("to_number(text,text)", to_number)


_register()
