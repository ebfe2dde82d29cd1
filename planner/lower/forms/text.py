"""Engine forms of text functions: LIKE, pieces of strings, trimming, padding."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from planner import facts as f
from planner.base.errors import SqlError, not_supported
from planner.base.letters import upper_char
from planner.functions.registry import REGISTRY, SqlForm
from planner.lower.kit import build as b
from planner.lower.kit import coercion
from planner.lower.kit.build import Node
from planner.lower.kit.dialect import Dialect
from planner.lower.kit.value import Val, kind_of
from planner.patterns.pattern import compiled
from planner.types import SqlType


def _like(negated: bool, *, fold: bool = False) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        left, pattern = args
        if fold and isinstance(pattern.constant, str) and pattern.constant.isascii():
            folded = pattern.constant.lower()
            test = d.like(
                b.fn("lower", left.node), Val(d.literal(folded, "text"), pattern.type, None, folded)
            )
        elif fold:
            test = d.like(b.fn("lower", left.node), Val(b.fn("lower", pattern.node), pattern.type))
        else:
            test = d.like(left.node, pattern)
        return b.not_(test) if negated else test

    return form


def _at_least(value: Node, least: int) -> Node:
    """Return ``value``, or ``least`` where it is below that; NULL of NULL, which the engines' greatest passes over."""
    return b.case([(b.op("<", value, b.integer(least)), b.integer(least))], b.copied(value))


def _substring(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """Positions before 1 count, but hold nothing; a negative length is 22011."""
    start = args[1]
    if len(args) == 2:
        if isinstance(start.constant, int):
            return b.fn("substr", args[0].node, b.integer(max(start.constant, 1)))
        return b.fn("substr", args[0].node, d.repeat([start.node], lambda s: _at_least(s, 1)))
    length = args[2]
    if isinstance(start.constant, int) and isinstance(length.constant, int) and length.constant >= 0:
        stop = start.constant + length.constant
        begin = max(start.constant, 1)
        return b.fn(
            "substr",
            args[0].node,
            b.integer(min(begin, 2**31 - 1)),
            b.integer(max(min(stop - begin, 2**31 - 1), 0)),
        )

    def body(s: Node, n: Node) -> Node:
        wide = [b.cast(x, d.types["int64"]) for x in (s, n)]
        begin = b.fn("greatest", wide[0], b.integer(1))
        count = b.fn("greatest", b.op("-", b.op("+", wide[0], wide[1]), begin), b.integer(0))
        integers = [begin, count] if d.name == "duckdb" else [b.cast(x, "INT") for x in (begin, count)]
        return b.case(
            [
                (b.or_(b.is_null(s), b.is_null(n)), b.null()),
                (b.op("<", n, b.integer(0)), d.error("22011", "negative substring length not allowed", n)),
            ],
            b.fn("substr", args[0].node, *integers),
        )

    return d.let([start.node, length.node], body)


def _function(name: str, spark: str | None = None) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        made = b.fn(name if d.name == "duckdb" else spark or name, *(a.node for a in args))
        kind = kind_of(result.oid)
        return d.as_kind(made, kind) if kind != "text" else made

    return form


_STAND_IN = "\U0010ffff"  # no character; keeps the place of a capital that is in the text already


# What upper() makes longer or turns into two: there Java's full case mapping is not C.UTF-8's, which goes by character.
_SPECIAL = "".join(c for c in map(chr, range(0x110000)) if len(c.upper()) > 1)
_SPECIAL_UPPER = "".join(map(upper_char, _SPECIAL))


def _spark_upper(d: Dialect, x: Node) -> Node:
    some = b.string(f"[{_SPECIAL}]")
    item = d.fresh("e")
    c = b.bare(item)
    moved = b.fn("translate", c, b.string(_SPECIAL), b.string(_SPECIAL_UPPER))
    raised = b.case([(b.fn("regexp_like", c, some), moved)], b.fn("upper", c))
    letters = d.mapped(b.fn("split", x, b.string("")), item, raised)
    return b.case(
        [(b.fn("regexp_like", x, some), b.fn("array_join", letters, b.string("")))], b.fn("upper", x)
    )


def _lower(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """Java looks at what stands beside a capital sigma, and keeps the dot of a capital i; C.UTF-8 does neither."""
    node = args[0].node
    if d.name != "duckdb":
        node = b.fn("translate", node, b.string("Σİ"), b.string("σi"))
    return b.fn("lower", node)


def _upper(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """DuckDB gives the sharp s a capital that C.UTF-8 does not: what stands between sharp s is raised."""
    if d.name != "duckdb":
        return d.let([args[0].node], lambda x: _spark_upper(d, x))

    def body(x: Node) -> Node:
        sharp = b.string("ß")
        raised = b.fn("upper", b.fn("replace", x, b.string("ẞ"), b.string(_STAND_IN)))
        back = b.fn(
            "replace", b.fn("replace", raised, b.string("ẞ"), sharp), b.string(_STAND_IN), b.string("ẞ")
        )
        return b.case([(b.fn("contains", x, sharp), back)], b.fn("upper", x))

    return d.let([args[0].node], body)


def _concat(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    nodes = [a.node if kind_of(a.type.oid) == "text" else coercion.to_text(d, a) for a in args]
    return b.op("||", nodes[0], nodes[1])


def _concat_integer(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """Text || integer, and the other way; other types' texts may depend on the session."""
    if any(kind_of(a.type.oid) != "text" and a.type.oid not in (f.INT2, f.INT4, f.INT8) for a in args):
        raise not_supported("|| with this type in this executor")
    return _concat(d, args, result)


def _text_piece(d: Dialect, value: Val) -> Node:
    if kind_of(value.type.oid) == "bool":
        raise not_supported("concat of a boolean in this executor")
    return value.node if kind_of(value.type.oid) == "text" else coercion.to_text(d, value)


def _concat_all(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """concat(): NULLs count as empty."""
    return b.fn("concat", *(b.fn("coalesce", _text_piece(d, a), b.string("")) for a in args))


def _concat_ws(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return b.fn("concat_ws", args[0].node, *(_text_piece(d, a) for a in args[1:]))


def _trim(name: str) -> SqlForm:
    """One-argument trims drop blanks only; Spark takes the characters first, in its own syntax."""

    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        if d.name == "duckdb":
            characters = args[1].node if len(args) == 2 else b.string(" ")
            return b.fn(name, args[0].node, characters)
        if len(args) == 2:
            if name == "trim":
                return b.fn("btrim", args[0].node, args[1].node)
            return b.fn(name, args[1].node, args[0].node)
        return b.fn(name, args[0].node)

    return form


def _pad(name: str) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        fill = args[2].node if len(args) == 3 else b.string(" ")
        count = d.repeat([args[1].node], lambda n: _at_least(n, 0))
        if len(args) == 3 and not isinstance(args[2].constant, str):
            raise not_supported(f"{name} with a varying fill in this executor")
        if len(args) == 3 and args[2].constant == "":
            return b.fn("left", args[0].node, count)  # nothing to fill with
        made = b.fn(name, args[0].node, count, fill)
        length = args[1].constant
        if isinstance(length, int) and length <= LONGEST:
            return made
        return _no_longer(d, name, made, lambda: b.copied(args[1].node), args[1].node)

    return form


def _side(name: str) -> SqlForm:
    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        count = args[1].constant
        if d.name == "spark" and not (isinstance(count, int) and count >= 0):
            raise not_supported(f"{name} with a varying count in this executor")
        return b.fn(name, args[0].node, args[1].node)

    return form


LONGEST = 64 << 10
"""What a function may make of a short text in DuckDB, in characters: it makes two thousand of them at once,
and counts none of that."""


MOST_TIMES = 8
"""What takes the place of a character in a text may be so long without a look at how long the text becomes."""


def _no_longer(d: Dialect, name: str, made: Node, length: Callable[[], Node], witness: Node) -> Node:
    """Return ``made``; in DuckDB it is for the row executor where it is long. ``length``: of it, in characters."""
    if d.name != "duckdb":
        return made
    error = d.error(
        "0A000",
        f"a text of more than {LONGEST} characters by {name}() in this executor is not supported",
        b.copied(witness),
    )
    return b.case([(b.op(">", length(), b.integer(LONGEST)), error)], made)


def _repeat(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    def made(text: Node, count: Node) -> Node:
        repeated = b.fn("repeat", text, d.repeat([count], lambda n: _at_least(n, 0)))

        def length() -> Node:
            return b.op("*", b.cast(b.fn("length", b.copied(text)), "HUGEINT"), b.copied(count))

        return _no_longer(d, "repeat", repeated, length, text)

    return (
        d.repeat([args[0].node, args[1].node], made)
        if d.name == "duckdb"
        else made(args[0].node, args[1].node)
    )


def _position(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return d.as_kind(b.fn("instr", args[0].node, args[1].node), "int32")


def _replace(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """An empty search text changes nothing, but NULL for the new one is NULL all the same."""
    made = b.fn("replace", *(a.node for a in args))
    new = args[2].constant
    if d.name == "duckdb" and not (isinstance(new, str) and len(new) <= MOST_TIMES):
        raise_above = b.op(
            "*",
            b.cast(b.fn("length", b.copied(args[0].node)), "HUGEINT"),
            b.fn("length", b.copied(args[2].node)),
        )
        made = _no_longer(d, "replace", made, lambda: raise_above, args[0].node)
    if args[1].constant:
        return made

    def guarded(searched: Node) -> Node:
        empty, new = b.op("=", searched, b.string("")), args[2]
        if not isinstance(new.constant, str):
            empty = b.and_(empty, b.is_null(b.copied(new.node), negated=True))
        return b.case([(empty, args[0].node)], made)

    return d.repeat([args[1].node], guarded)


def _split_part(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    number, delimiter = args[2].constant, args[1].constant
    if not (isinstance(number, int) and number != 0 and isinstance(delimiter, str) and delimiter):
        raise not_supported("split_part with a varying delimiter or position in this executor")
    return b.fn("split_part", args[0].node, args[1].node, args[2].node)


def _bpchar_length(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return d.length(b.fn("rtrim", args[0].node))


def _from_bpchar(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    """char(n) loses its trailing blanks on the way to text."""
    return b.fn("rtrim", args[0].node, b.string(" ")) if d.name == "duckdb" else b.fn("rtrim", args[0].node)


def _length(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return d.length(args[0].node)


def _bool_text(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
    return coercion.to_text(d, args[0])


def _both(signature: str, form: SqlForm) -> None:
    REGISTRY.sql(signature, duckdb=form, spark=form)


_PLAIN_PATTERN = re.compile(r"(?:[A-Za-z0-9_ ,:;@#%&=<>/'\"~!-]|\\[.\\*+?()\[\]{}|^$]|\(\?:|[.()|^]|\$(?=$|\)|\|)|[*+?](?![*+?{])"
                            r"|\{[0-9]+(?:,[0-9]*)?\}(?![*+?{])|\[\^?[A-Za-z0-9_ .,:;@#%-]+\])*")  # fmt: skip


def _regex(negated: bool) -> SqlForm:
    """A regular expression of the part that means the same in POSIX AREs, RE2 and Java: whether it matches at all."""

    def form(d: Dialect, args: Sequence[Val], result: SqlType) -> Node:
        pattern = args[1].constant
        if (
            not isinstance(pattern, str)
            or _PLAIN_PATTERN.fullmatch(pattern) is None
            or "$" in pattern[:-1].replace("\\$", "")
        ):
            raise not_supported("this regular expression in this executor")
        try:
            compiled(pattern)
        except SqlError:  # the row executor raises it, if a row comes by
            raise not_supported("this regular expression in this executor") from None
        test = d.contains_match(args[0].node, pattern)
        return b.not_(test) if negated else test

    return form


def _register_like() -> None:
    forms: tuple[tuple[str, SqlForm], ...] = (
        ("textlike(text,text)", _like(False)), ("textnlike(text,text)", _like(True)),
        ("bpcharlike(bpchar,text)", _like(False)), ("bpcharnlike(bpchar,text)", _like(True)),
        ("namelike(name,text)", _like(False)), ("namenlike(name,text)", _like(True)),
        ("like(text,text)", _like(False)), ("notlike(text,text)", _like(True)),
        ("texticlike(text,text)", _like(False, fold=True)), ("texticnlike(text,text)", _like(True, fold=True)),
    )  # fmt: skip
    for signature, form in forms:
        _both(signature, form)


_register_like()
_both("textregexeq(text,text)", _regex(False))
_both("textregexne(text,text)", _regex(True))
for _name in ("substring", "substr"):
    _both(f"{_name}(text,int4,int4)", _substring)
    _both(f"{_name}(text,int4)", _substring)
_both("lower(text)", _lower)
for _name in ("reverse", "md5"):
    _both(f"{_name}(text)", _function(_name))
_both("upper(text)", _upper)
for _name in ("length", "char_length", "character_length", "textlen"):
    _both(f"{_name}(text)", _length)
for _name in ("length", "char_length", "character_length"):
    _both(f"{_name}(bpchar)", _bpchar_length)
_both("octet_length(text)", _function("strlen", "octet_length"))
_both("textcat(text,text)", _concat)
_both("textanycat(text,anynonarray)", _concat_integer)
_both("anytextcat(anynonarray,text)", _concat_integer)
_both("concat(any)", _concat_all)
_both("concat_ws(text,any)", _concat_ws)
for _name, _function_name in (("btrim", "trim"), ("ltrim", "ltrim"), ("rtrim", "rtrim")):
    _both(f"{_name}(text)", _trim(_function_name))
    _both(f"{_name}(text,text)", _trim(_function_name))
for _name in ("lpad", "rpad"):
    _both(f"{_name}(text,int4)", _pad(_name))
    _both(f"{_name}(text,int4,text)", _pad(_name))
for _name in ("left", "right"):
    _both(f"{_name}(text,int4)", _side(_name))
_both("repeat(text,int4)", _repeat)
_both("strpos(text,text)", _position)
_both("position(text,text)", _position)
_both("replace(text,text,text)", _replace)
_both("split_part(text,text,int4)", _split_part)
_both("starts_with(text,text)", _function("starts_with", "startswith"))
_both("translate(text,text,text)", _function("translate"))
_both("text(bpchar)", _from_bpchar)
_both("text(name)", lambda d, args, result: args[0].node)
_both("text(bool)", _bool_text)
