"""Regular expression functions, LIKE, ILIKE and SIMILAR TO."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

from pgwire.give_way import PACE, give_way
from pgwire.kept import kept
from pgwire.long.values import pieces, replaced
from planner.base.errors import SqlError
from planner.base.large import LARGE_BYTES, foresee, joined
from planner.functions.registry import REGISTRY
from planner.patterns.like import like_matcher
from planner.patterns.options import ADVANCED, IGNORE_CASE, parse_flags
from planner.patterns.pattern import Match, Regex, compiled

# --- LIKE ---------------------------------------------------------------------------------------


def like(s: str, pattern: str) -> bool:
    """S LIKE pattern."""
    return like_matcher(pattern)(s)


def ilike(s: str, pattern: str) -> bool:
    """S ILIKE pattern."""
    return like_matcher(pattern, True)(s)


_WINDOW: Final = 1 << 13
"""Characters of a pattern that are rewritten between two looks at the clock."""


def like_escape(pattern: str, escape: str) -> str:
    r"""Rewrite a pattern with another escape character to one with ``\``; 22025 for a longer escape."""
    if len(escape) > 1:
        raise SqlError("22025", "invalid escape string", hint="Escape string must be empty or one character.")
    if escape == "\\":
        return pattern
    if not escape:
        return replaced(pattern, "\\", "\\\\")
    made: list[str] = []
    after = False
    for piece in pieces(pattern, _WINDOW):
        out: list[str] = []
        for c in piece:
            if c == escape and not after:
                out.append("\\")
                after = True
            elif c == "\\":
                out.append("\\" if after else "\\\\")
                after = False
            else:
                out.append(c)
                after = False
        made.append("".join(out))
    return joined(made)


def similar_escape(pattern: str | None, escape: str | None = "\\") -> str | None:
    """Turn a SIMILAR TO pattern into an ARE that must match the whole string (similar_to_escape)."""
    if pattern is None:
        return None
    if escape is None:
        escape = "\\"
    if len(escape) > 1:
        raise SqlError("22025", "invalid escape string", hint="Escape string must be empty or one character.")
    out = ["^(?:"]
    in_bracket = False
    quotes = 0
    i = 0
    while i < len(pattern):
        c = pattern[i]
        i += 1
        if not len(out) % 256:  # not by ``i``, which two letters at once pass over
            give_way()
        if escape and c == escape:
            if i >= len(pattern):
                # PostgreSQL drops a trailing escape
                break
            nxt = pattern[i]
            i += 1
            if nxt == '"' and not in_bracket:
                if quotes == 0:
                    out.append("){1,1}?(")
                elif quotes == 1:
                    out.append("){1,1}(?:")
                else:
                    raise SqlError(
                        "2200C",
                        "SQL regular expression may not contain more than two escape-double-quote separators",
                    )
                quotes += 1
            else:
                out.append("\\" + nxt)
        elif in_bracket:
            if c == "\\":
                out.append("\\\\")
            else:
                out.append(c)
            if c == "]":
                in_bracket = False
        elif c == "[":
            out.append(c)
            in_bracket = True
        elif c == "%":
            out.append(".*")
        elif c == "_":
            out.append(".")
        elif c == "(":
            out.append("(?:")
        elif c in "\\.^$":
            out.append("\\" + c)
        else:
            out.append(c)
    out.append(")$")
    return "".join(out)


# --- POSIX --------------------------------------------------------------------------------------


def matches(s: str, pattern: str) -> bool:
    """S ~ pattern."""
    return compiled(pattern).test(s)


def imatches(s: str, pattern: str) -> bool:
    """S ~* pattern."""
    return compiled(pattern, ADVANCED | IGNORE_CASE).test(s)


def substring(s: str, pattern: str) -> str | None:
    """SQL's ``substring``: the first group if there is one, else the whole match."""
    regex = compiled(pattern)
    m = regex.search(s)
    if m is None:
        return None
    return m.group(1) if regex.groups else m.group(0)


def substring_similar(s: str, pattern: str, escape: str) -> str | None:
    """SQL's ``substring``."""
    converted = similar_escape(pattern, escape)
    if converted is None:
        return None
    return substring(s, converted)


def _positive(name: str, value: int) -> None:
    if value <= 0:
        raise SqlError("22023", f'invalid value for parameter "{name}": {value}')


@kept(500)
def replacement(text: str, groups: int) -> Callable[[Match], str]:
    r"""Return the function for a replacement with ``\1`` .. ``\9`` and ``\&``; the pattern has so many groups."""
    if "\\" not in text:
        return lambda m: text
    parts: list[str | int] = []
    i = 0
    while i < len(text):
        c = text[i]
        if not len(parts) % PACE:
            give_way()
        if c == "\\" and i + 1 < len(text):
            following = text[i + 1]
            i += 2
            if following in "123456789":
                parts.append(int(following))
            elif following == "&":
                parts.append(0)
            elif following == "\\":
                parts.append("\\")
            else:
                parts.append("\\" + following)
        else:
            parts.append(c)
            i += 1

    def expand(m: Match) -> str:
        out = []
        for part in parts:
            if isinstance(part, str):
                out.append(part)
            elif part <= groups:
                out.append(m.group(part) or "")
        return "".join(out)

    return expand


LOOKS = 256
"""Matches replaced between two looks at how long the result will be."""


def _replace(s: str, regex: Regex, new: str, start: int, n: int) -> str:
    """Replace match ``n`` (all when 0) from character ``start`` on."""
    expand = replacement(new, regex.groups)
    out: list[str] = []
    last = size = 0
    for count, m in enumerate(regex.finditer(s, start - 1), 1):
        if n and count < n:
            continue
        out.append(s[last : m.start()])
        out.append(expand(m))
        size += len(out[-1]) + len(out[-2])
        if size >= LARGE_BYTES and not count % LOOKS:
            foresee(size)
        last = m.end()
        if n:
            break
    out.append(s[last:])
    return joined(out)


def regexp_replace(s: str, pattern: str, new: str, flags: str = "") -> str:
    """SQL's ``regexp_replace``."""
    if flags and flags[0].isdigit():
        raise SqlError(
            "22023",
            f'invalid regular expression option: "{flags[0]}"',
            hint="If you meant to use regexp_replace() with a start parameter, cast the fourth argument to "
            "integer explicitly.",
        )
    bits, everywhere = parse_flags(flags, allow_global=True)
    return _replace(s, compiled(pattern, bits), new, 1, 0 if everywhere else 1)


def regexp_replace_at(s: str, pattern: str, new: str, start: int, n: int = 1, flags: str = "") -> str:
    """SQL's ``regexp_replace``."""
    _positive("start", start)
    if n < 0:
        raise SqlError("22023", f'invalid value for parameter "n": {n}')
    bits, _ = parse_flags(flags, allow_global=True)
    return _replace(s, compiled(pattern, bits), new, start, n)


def _groups(regex: Regex, m: Match) -> tuple[str | None, ...]:
    return m.groups() if regex.groups else (m.group(0),)


def regexp_match(s: str, pattern: str, flags: str = "") -> tuple[str | None, ...] | None:
    """SQL's ``regexp_match``: the groups of the first match."""
    bits, everywhere = parse_flags(flags, allow_global=True)
    if everywhere:
        raise SqlError(
            "22023",
            'regexp_match() does not support the "global" option',
            hint="Use the regexp_matches function instead.",
        )
    regex = compiled(pattern, bits)
    m = regex.search(s)
    return _groups(regex, m) if m else None


def regexp_matches(s: str, pattern: str, flags: str = "") -> list[tuple[str | None, ...]]:
    """SQL's ``regexp_matches``: one row per match with the flag g, else at most one."""
    bits, everywhere = parse_flags(flags, allow_global=True)
    regex = compiled(pattern, bits)
    if everywhere:
        return [_groups(regex, m) for m in regex.finditer(s)]
    first = regex.search(s)
    return [_groups(regex, first)] if first else []


def regexp_split(s: str, pattern: str, flags: str = "", function: str = "") -> tuple[str, ...]:
    """Split at matches; an empty match at the start, at the end or right after a match does not split."""
    bits, everywhere = parse_flags(flags, allow_global=True)
    if everywhere:
        raise SqlError("22023", f'{function} does not support the "global" option')
    out: list[str] = []
    last = 0
    for m in compiled(pattern, bits).finditer(s):
        if m.start() == m.end() and (m.start() >= len(s) or m.start() == last):
            continue
        out.append(s[last : m.start()])
        last = m.end()
    out.append(s[last:])
    return tuple(out)


def regexp_count(s: str, pattern: str, start: int = 1, flags: str = "") -> int:
    """SQL's ``regexp_count``."""
    _positive("start", start)
    bits, _ = parse_flags(flags, function="regexp_count()")
    return sum(1 for _ in compiled(pattern, bits).finditer(s, start - 1))


def regexp_like(s: str, pattern: str, flags: str = "") -> bool:
    """SQL's ``regexp_like``."""
    return compiled(pattern, parse_flags(flags, function="regexp_like()")[0]).test(s)


def _nth(regex: Regex, s: str, start: int, n: int) -> Match | None:
    for count, m in enumerate(regex.finditer(s, start - 1), 1):
        if count == n:
            return m
    return None


def regexp_instr(
    s: str, pattern: str, start: int = 1, n: int = 1, end_option: int = 0, flags: str = "", group: int = 0
) -> int:
    """SQL's ``regexp_instr``: position of match n, or of the character after it."""
    _positive("start", start)
    _positive("n", n)
    if end_option not in (0, 1):
        raise SqlError("22023", f'invalid value for parameter "endoption": {end_option}')
    if group < 0:
        raise SqlError("22023", f'invalid value for parameter "subexpr": {group}')
    regex = compiled(pattern, parse_flags(flags, function="regexp_instr()")[0])
    m = _nth(regex, s, start, n)
    if m is None or group > regex.groups:
        return 0
    position = m.end(group) if end_option else m.start(group)
    return position + 1


def regexp_substr(
    s: str, pattern: str, start: int = 1, n: int = 1, flags: str = "", group: int = 0
) -> str | None:
    """SQL's ``regexp_substr``."""
    _positive("start", start)
    _positive("n", n)
    if group < 0:
        raise SqlError("22023", f'invalid value for parameter "subexpr": {group}')
    regex = compiled(pattern, parse_flags(flags, function="regexp_substr()")[0])
    m = _nth(regex, s, start, n)
    if m is None or group > regex.groups:
        return None
    return m.group(group)


def _register() -> None:
    python = REGISTRY.python

    def negated(function: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
        return lambda s, pattern: not function(s, pattern)

    for t in ("text", "name", "bpchar"):
        python(f"{t}like({t},text)", like)
        python(f"{t}nlike({t},text)", negated(like))
        python(f"{t}iclike({t},text)", ilike)
        python(f"{t}icnlike({t},text)", negated(ilike))
        python(f"{t}regexeq({t},text)", matches)
        python(f"{t}regexne({t},text)", negated(matches))
        python(f"{t}icregexeq({t},text)", imatches)
        python(f"{t}icregexne({t},text)", negated(imatches))
    for t in ("text", "name"):
        python(f"like({t},text)", like)
        python(f"notlike({t},text)", negated(like))
    python("like_escape(text,text)", like_escape)
    python("similar_to_escape(text)", similar_escape)
    python("similar_to_escape(text,text)", similar_escape)
    python("similar_escape(text,text)", similar_escape)
    python("substring(text,text)", substring)
    python("substring(text,text,text)", substring_similar)
    python("regexp_replace(text,text,text)", regexp_replace)
    python("regexp_replace(text,text,text,text)", regexp_replace)
    python("regexp_replace(text,text,text,int4)", regexp_replace_at)
    python("regexp_replace(text,text,text,int4,int4)", regexp_replace_at)
    python("regexp_replace(text,text,text,int4,int4,text)", regexp_replace_at)
    for arguments in ("text,text", "text,text,text"):
        python(f"regexp_match({arguments})", regexp_match)
        python(f"regexp_matches({arguments})", regexp_matches)
        python(f"regexp_like({arguments})", regexp_like)
        python(
            f"regexp_split_to_array({arguments})",
            functools.partial(regexp_split, function="regexp_split_to_array()"),
        )
        python(
            f"regexp_split_to_table({arguments})",
            functools.partial(regexp_split, function="regexp_split_to_table()"),
        )
    for arguments in ("text,text", "text,text,int4", "text,text,int4,text"):
        python(f"regexp_count({arguments})", regexp_count)
    extra = ["int4", "int4", "int4", "text", "int4"]
    for count in range(len(extra) + 1):
        python(f"regexp_instr({','.join(['text', 'text', *extra[:count]])})", regexp_instr)
    extra = ["int4", "int4", "text", "int4"]
    for count in range(len(extra) + 1):
        python(f"regexp_substr({','.join(['text', 'text', *extra[:count]])})", regexp_substr)


_register()
