"""Plan templates: simple-protocol statements that differ only in their literals share one plan.

    UPDATE t SET n = n + -5 WHERE id = 17     template  UPDATE t SET n = n + $1 WHERE id = $2
    UPDATE t SET n = n + 12 WHERE id = 4      types     (int4, int4), values per statement

A template is believed only after proof: the statement is bound as it stands and as a template, and with the
parameters replaced by the literals both trees must be equal. So ordinals (ORDER BY 1), typmods, interval fields,
patterns and whatever else binding looks into never become slots, because there the trees differ; which
type a literal has (int4, int8, numeric, text) is part of the key. Parsing by fingerprint alone would not do
(docs/decisions/0002-templates-by-proof.md). A statement with such a literal has a template in which it stays as it is
(``engine.session.plans.template_slots``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.session.plans.by_text import ByText, TextKey
from engine.session.plans.plan import Plan
from engine.session.plans.template_slots import Kept, Template, Trials, may_be_tried
from pgwire.codecs.registry import text_decoder
from planner.facts import INT4, INT8, NUMERIC, TEXT, UNKNOWN, VARCHAR
from planner.query import Const, Param
from planner.query.rewrite import replace_children
from planner.rules.fold import fold_node, is_conversion

if TYPE_CHECKING:
    from planner.functions.session import EvalSession

MAX_SHAPES = 2000
MAX_TEXT = 4096
MAX_SLOTS = 64
INT4_MAX, INT8_MAX = 2**31 - 1, 2**63 - 1
INT4_DIGITS = 10  # numbers of fewer digits fit

# One token at a time: what is no literal is kept as it is. A sign belongs to a number where an operand must
# follow; behind a name, a literal or a closing bracket it is an operator.
_TOKEN = re.compile(
    r"""(?P<other>"(?:[^"]|"")*"|[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*)
      | (?P<text>'(?:[^']|'')*')
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
      | (?P<stop>--|/\*|\$|\\)
      | (?P<sign>-)
      | (?P<close>[\)\]])""",
    re.VERBOSE,
)
_CAST = re.compile(r"\s*::")  # binds closer than a sign before it
# The same, a literal at a time: what is neither a literal nor calls for a look at its neighbours is passed
# over at once. Nothing that is passed over begins as a literal does, so the loop around need not be
# possessive, which Python 3.11.2 gets wrong.
_LITERAL = re.compile(
    r"""(?P<before>(?:[A-Za-z_][\w$]*+(?!')|[^A-Za-z_0-9"'.$\\/-]++|/(?!\*)|\.(?!\d))*)
      (?:(?P<sign>-?)(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<text>'(?:[^']|'')*')|\Z)""",
    re.VERBOSE,
)
# A plain number that stands alone: what differs between statements that are the same but for such numbers. Or
# a string, whatever it is.
_NUMBER = re.compile(r"(\d(?<![\w$.]\d)\d{0,17}(?![\w$.]))", re.ASCII)
_NUMBER_OR_TEXT = re.compile(_NUMBER.pattern[:-1] + "|'[^']*')", re.ASCII)
_AS_IS = frozenset((TEXT, VARCHAR, UNKNOWN))  # types whose values are what is between the quotes
_BEFORE_OPERAND = frozenset("=<>+*%,(")
_FIRST = re.compile(r"\s*(select|insert|update|delete|with)\b", re.IGNORECASE)
# words that may stand before an operand; after any other word a minus is an operator
_OPERAND_FOLLOWS = frozenset(
    [
        "select",
        "where",
        "and",
        "or",
        "not",
        "in",
        "between",
        "values",
        "set",
        "then",
        "else",
        "when",
        "case",
        "on",
        "having",
        "by",
        "like",
        "ilike",
        "is",
        "as",
    ]
)


class _Shape:
    """What lies between the literals of a text that are plain numbers and strings, and its template."""

    __slots__ = ("oids", "signs", "text")

    def __init__(self, text: str, oids: tuple[int, ...], signs: tuple[str, ...] | None) -> None:
        """``signs``: what belongs to a number and stands before it, None where there is no sign."""
        self.text, self.oids, self.signs = text, oids, signs


_shapes: dict[tuple[str, ...], _Shape] = {}
"""By what lies between literals and, where not all are small numbers, what these are. How a text is cut
depends on nothing else, so it is done once.

A string with a quote in it looks like two here, and is not what it is there: such a text is cut each time. So
is one with something in a quoted name that looks like a literal; other quoted names, which many ORMs write
throughout, are like any other text.
"""


def extract(sql: str) -> Template | None:
    """Return the template of a statement, None for texts that are not looked into."""
    if len(sql) > MAX_TEXT:
        return None
    if not sql.isascii():
        return _extract_literals(sql)
    cut = (_NUMBER_OR_TEXT if "'" in sql else _NUMBER).split(sql)
    values = cut[1::2]
    between = tuple(cut[::2])
    if "'" in sql or (values and len(max(values, key=len)) >= INT4_DIGITS):
        between += ("'" + "".join(map(_kind, values)),)
        values = [value[1:-1] if value[0] == "'" else value for value in values]
    shape = _shapes.get(between)
    if shape is None:
        template = _extract_literals(sql)
        if template is not None:
            _keep_shape(between, values, template)
        return template
    if shape.signs is not None:
        values = [sign + value for sign, value in zip(shape.signs, values, strict=True)]
    return Template(shape.text, shape.oids, tuple(values))


def _kind(value: str) -> str:
    """Return a letter for what a number or a string is."""
    if value[0] == "'":
        return "t"
    return "4" if len(value) < INT4_DIGITS or int(value) <= INT4_MAX else "8"


_OIDS = {"t": 0, "4": INT4, "8": INT8}


def _keep_shape(between: tuple[str, ...], found: list[str], template: Template) -> None:
    """Remember how a text was cut, if each of its literals is one of the plain ones that were ``found``, and
    the other way round.
    """
    values, oids = template.values, template.oids
    kinds = between[-1][1:] if between[-1].startswith("'") else "4" * len(found)
    if oids != tuple([_OIDS[kind] for kind in kinds]):
        return
    if any(piece.count('"') % 2 for piece in between[: len(found) + 1]):
        return  # a name that does not end: a literal with such a quote would end it
    for value, kind, plain in zip(values, kinds, found, strict=True):
        if (value if kind == "t" else value.removeprefix("-")) != plain:
            return
    signs = tuple(["-" if value != plain else "" for value, plain in zip(values, found, strict=True)])
    if len(_shapes) >= MAX_SHAPES:
        _shapes.clear()
    _shapes[between] = _Shape(template.text, oids, signs if any(signs) else None)


def _extract_literals(sql: str) -> Template | None:
    if _FIRST.match(sql) is None:
        return None
    return _extract_plain(sql) or _extract_any(sql)


def _extract_plain(sql: str) -> Template | None:
    """As ``_extract_any`` in a third of the time; None for texts that need a closer look, too."""
    if not sql.isascii():
        return None  # other scripts have digits, too
    match_literal = _LITERAL.match
    pieces: list[str] = []
    oids: list[int] = []
    values: list[str] = []
    at, end = 0, len(sql)
    while at < end:
        match = match_literal(sql, at)
        if match is None:
            return None  # quoted names, comments, casts, parameters ...
        before, sign, number, text = match.groups()
        if number is not None:
            if sign and (
                before.rstrip()[-1:] not in _BEFORE_OPERAND or _CAST.match(sql, match.end()) is not None
            ):
                return None  # whether it is an operator depends on the word before
            if number.isdigit() and len(number) < INT4_DIGITS:
                oids.append(INT4)
            else:
                oids.append(_number_type(number))
            values.append(sign + number)
        elif text is not None:
            oids.append(0)
            values.append(text[1:-1].replace("''", "'"))
        else:
            pieces.append(before)
            break
        pieces.append(f"{before}${len(oids)}")
        at = match.end()
    if not oids or len(oids) > MAX_SLOTS:
        return None
    return Template("".join(pieces), tuple(oids), tuple(values))


def _extract_any(sql: str) -> Template | None:
    """Look at every token, and at those beside it."""
    pieces: list[str] = []
    oids: list[int] = []
    values: list[str] = []
    position = 0
    operand_before = False  # does an operand end just before this token?
    sign_at = -1
    last_end = 0
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup
        start = match.start()
        between = sql[last_end:start]
        if between and not between.isspace():
            operand_before = False
        if sign_at >= 0 and (kind != "number" or between):
            sign_at = -1
        last_end = match.end()
        if kind == "other":
            word = match.group().lower()
            if sql[last_end : last_end + 1] == "'":
                return None  # E'...', B'...', U&'...'
            operand_before = word not in _OPERAND_FOLLOWS
        elif kind == "close":
            operand_before = True
        elif kind == "sign":
            sign_at = -1 if operand_before else start
            operand_before = False
        elif kind == "stop":
            return None
        else:
            text = match.group()
            if kind == "text":
                oid, value = 0, text[1:-1].replace("''", "'")
            else:
                oid, value = _number_type(text), text
                if sign_at >= 0 and _CAST.match(sql, last_end) is None:
                    value = "-" + text
                    start = sign_at
            sign_at = -1
            pieces.append(sql[position:start])
            oids.append(oid)
            values.append(value)
            pieces.append(f"${len(oids)}")
            position = last_end
            operand_before = True
    if not oids or len(oids) > MAX_SLOTS:
        return None
    pieces.append(sql[position:])
    return Template("".join(pieces), tuple(oids), tuple(values))


def _number_type(text: str) -> int:
    if not text.isdigit() or not text.isascii():
        return NUMERIC
    number = int(text)
    return INT4 if number <= INT4_MAX else INT8 if number <= INT8_MAX else NUMERIC


def same_statement(literal: Plan, template: Plan, values: tuple[Any, ...]) -> bool:
    """Tell whether ``template`` with ``values`` for its parameters is the statement ``literal`` is.

    Binding computes the conversion of a literal (an integer for a bigint column, a text for numeric(12,2)),
    that of a parameter it leaves to each execution: conversions of the values filled in are computed here.
    Nothing else is: ``1 = 1`` is known to be true, ``$1 = $2`` not.
    """
    fill = _Filling(values).fill
    return (
        literal.bound.fails is None
        and literal.bound.class_ is template.bound.class_
        and literal.bound.columns == template.bound.columns
        and len(literal.bound.stable) == len(template.bound.stable)
        and bool(fill(template.bound.statement) == literal.bound.statement)
        and all(fill(t) == s for t, s in zip(template.bound.stable, literal.bound.stable, strict=True))
    )


class _Filling:
    """Puts constants in the place of a plan's first parameters."""

    __slots__ = ("_values",)

    def __init__(self, values: tuple[Any, ...]) -> None:
        self._values = values

    def fill(self, node: object) -> Any:
        """Return a node with ``values``; the parameters behind them count from one."""
        if isinstance(node, Param):
            values = self._values
            if node.number <= len(values):
                return Const(type=node.type, value=values[node.number - 1])
            return Param(type=node.type, number=node.number - len(values))
        filled = replace_children(node, self.fill)
        return fold_node(filled) if filled is not node and is_conversion(filled) else filled


def decode_values(session: EvalSession, oids: tuple[int, ...], template: Template) -> tuple[Any, ...]:
    """Return a text's literals as values of the parameters' types ``oids``; raises DataError."""
    values, kinds = template.values, template.oids
    if oids == kinds and kinds.count(INT4) == len(kinds):
        return tuple(map(int, values))  # the usual case: plain digits, known to fit
    decoded: list[Any] = []
    for oid, kind, value in zip(oids, kinds, values, strict=True):
        if kind in (INT4, INT8) and oid in (kind, INT8):  # plain digits, known to fit
            decoded.append(int(value))
        elif oid in _AS_IS:
            decoded.append(value)
        else:
            decoded.append(text_decoder(oid, session.codec_settings)(value))
    return tuple(decoded)


class TemplateCache:
    """Templates proved (a Plan), refuted (None) or refuted in part (Trials, Kept), by (text, types, session
    key); bounded.
    """

    __slots__ = ("_entries", "_seen")

    def __init__(self, entries: ByText[Plan | Trials | Kept | None], seen: ByText[None]) -> None:
        """``entries``: where templates are kept; ``seen``: where those are that were met once."""
        self._entries = entries
        self._seen = seen

    def find(self, template: Template, plan_key: Any) -> tuple[Plan, Template] | None:
        """Return the plan of a proved template, and the template with the values for it."""
        entry = self._entries.get((template.text, template.oids, plan_key))
        if type(entry) is Kept:
            template = entry.narrow(template)
            entry = self._entries.get((template.text, template.oids, plan_key))
        return (entry, template) if type(entry) is Plan else None

    def learn(
        self, template: Template, sql: str, plan_key: Any, prove: Callable[[Template], Plan | None]
    ) -> None:
        """Learn what may be parameters of a statement that was planned without: at most one template is proved.

        A template is looked into the second time that it is met. ``prove``: returns the plan of a template
        that is the statement.
        """
        entries = self._entries
        key = (template.text, template.oids, plan_key)
        entry = entries.get(key)
        if type(entry) is Kept:
            template = entry.narrow(template)
            key = (template.text, template.oids, plan_key)
            entry = entries.get(key)
        if type(entry) is Trials:
            if entry.note(proved=prove(entry.attempt(template)) is not None):
                entries.put(key, entry.found())
            return
        if not self._wanted(key):
            return
        made: Plan | Trials | None = prove(template)
        if made is None and may_be_tried(template, sql):
            made = Trials(template)
        if type(made) is Plan:
            entries.put(key, made, made.weight)
        else:
            entries.put(key, made)

    def _wanted(self, key: TextKey) -> bool:
        """Tell whether a proof should be tried: the template was met before and not judged yet."""
        if key in self._entries:
            return False
        if self._seen.drop(key):
            return True
        self._seen.put(key, None)
        return False

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._seen.clear()

    def drop(self, template: Template, plan_key: Any) -> None:
        """Forget a template whose plan went stale."""
        self._entries.drop((template.text, template.oids, plan_key))
