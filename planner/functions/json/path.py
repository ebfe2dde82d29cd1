"""jsonpath evaluated over jsonb: jsonb_path_query and its kin, ``@?`` and ``@@`` (manual 9.16.2; jsonpath_exec.c).

    steps(item, value) yields what the chain beginning with ``item`` makes of a value, lazily: whoever wants
    to know only whether there is something stops at the first, and so does not meet errors further on, as
    PostgreSQL

In lax mode structural errors yield nothing and arrays are unwrapped where something else is wanted. An error
inside of a predicate makes it unknown (None).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, Final

from pgwire.codecs import numeric as numeric_codec
from pgwire.codecs.errors import DataError
from pgwire.codecs.float import parse_float8
from pgwire.codecs.invalid import quoting
from pgwire.codecs.json import dump, load
from pgwire.codecs.json.jsonpath import LAST, Item, Path, check_patterns_by, parse
from pgwire.give_way import give_way, paced_iter
from pgwire.long.values import joined
from pgwire.release import mind_long
from planner.base.errors import SqlError
from planner.functions.json.layout import offset_of
from planner.functions.json.path_moments import Moment
from planner.functions.json.path_moments import compared as compared_moments
from planner.functions.json.path_moments import read as read_moment
from planner.functions.numbers import numeric
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.time.formatting_pattern import parse_strict
from planner.patterns.options import parse_flags
from planner.patterns.pattern import compiled

python = REGISTRY.python
Json = Any

_ARITHMETIC: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "+": numeric.add, "-": numeric.sub, "*": numeric.mul, "/": numeric.div, "%": numeric.mod,
}  # fmt: skip
_COMPARE: Final[dict[str, Callable[[int], bool]]] = {
    "==": lambda c: c == 0, "!=": lambda c: c != 0, "<": lambda c: c < 0, "<=": lambda c: c <= 0,
    ">": lambda c: c > 0, ">=": lambda c: c >= 0,
}  # fmt: skip
_INT4_MAX: Final = 2**31 - 1


class PathError(SqlError):
    """An error that ``silent`` and predicates suppress."""


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, Decimal)):
        return "number"
    if isinstance(value, Moment):
        return "datetime"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


class _Run:
    """One evaluation: the root, the variables, and where the path is."""

    def __init__(
        self, path: Path, root: Json, variables: dict[str, Json], session: EvalSession | None = None
    ) -> None:
        self.session = session  # whose zone comparisons may use
        self.lax = path.lax
        self.ignoring = path.lax  # of structural errors
        self.root = root
        self.variables = variables
        self.current = root
        self.size = 0  # of the innermost array whose subscripts are evaluated
        self.base, self.base_id = root, 0  # what ids of keyvalue() count from

    # -- chains ----------------------------------------------------------------------------------

    def steps(self, item: Item, value: Json, *, unwrap: bool | None = None) -> Iterator[Json]:
        """Yield what a chain makes of a value. PathError."""
        give_way()
        unwrap = self.lax if unwrap is None else unwrap
        match item.kind:
            case "value":
                return self.then(item, item.value)
            case "variable":
                return self.variable(item)
            case "$":
                self.base, self.base_id = self.root, 0
                return self.then(item, self.root)
            case "@":
                return self.then(item, self.current)
            case "last":
                return self.then(item, self.size - 1)
            case "key":
                return self.key(item, value, unwrap)
            case ".*":
                return self.all_members(item, value, unwrap)
            case "[*]":
                return self.all_elements(item, value)
            case "[]":
                return self.subscripts(item, value)
            case "**":
                return self.any_level(item, value)
            case "?":
                return self.filter(item, value, unwrap)
            case "+" | "-" | "*" | "/" | "%":
                return self.arithmetic(item, value)
            case "u+" | "u-":
                return self.sign(item, value)
        if item.kind in _METHODS:
            return self.method(item, value, unwrap)
        return self.then(item, self.truth(item, value))

    def then(self, item: Item, value: Json) -> Iterator[Json]:
        """Go on behind ``item`` with a value."""
        if item.next is None:
            return iter((value,))
        return self.steps(item.next, value)

    def unwrapped(self, item: Item, value: Json) -> Iterator[Json]:
        """Yield what a chain makes of a value, arrays among it taken apart in lax mode."""
        for found in self.steps(item, value):
            if self.lax and isinstance(found, list):
                yield from found
            else:
                yield found

    def each(self, item: Item, values: Iterable[Json]) -> Iterator[Json]:
        """Apply a step to the elements of an array that was met where something else is wanted."""
        for value in values:
            yield from self.steps(item, value, unwrap=False)

    def structural(self, sqlstate: str, message: str) -> Iterator[Json]:
        """Yield nothing in lax mode. PathError in strict mode."""
        if not self.ignoring:
            raise PathError(sqlstate, message)
        return iter(())

    # -- accessors -------------------------------------------------------------------------------

    def variable(self, item: Item) -> Iterator[Json]:
        if item.value not in self.variables:
            raise SqlError("42704", f'could not find jsonpath variable "{item.value}"')
        value = self.variables[item.value]
        self.base, self.base_id = self.variables, 1
        return self.then(item, value)

    def key(self, item: Item, value: Json, unwrap: bool) -> Iterator[Json]:
        if isinstance(value, dict):
            if item.value in value:
                return self.then(item, value[item.value])
            return self.structural("2203A", quoting("JSON object does not contain key ", item.value))
        if unwrap and isinstance(value, list):
            return self.each(item, value)
        return self.structural("2203A", "jsonpath member accessor can only be applied to an object")

    def all_members(self, item: Item, value: Json, unwrap: bool) -> Iterator[Json]:
        if isinstance(value, dict):
            return self.within(item, value.values())
        if unwrap and isinstance(value, list):
            return self.each(item, value)
        return self.structural("2203C", "jsonpath wildcard member accessor can only be applied to an object")

    def within(self, item: Item, values: Iterable[Json]) -> Iterator[Json]:
        for value in paced_iter(values):
            yield from self.then(item, value)

    def all_elements(self, item: Item, value: Json) -> Iterator[Json]:
        if isinstance(value, list):
            return self.within(item, value)
        if self.lax:
            return self.then(item, value)
        return self.structural("22039", "jsonpath wildcard array accessor can only be applied to an array")

    def subscripts(self, item: Item, value: Json) -> Iterator[Json]:
        if not isinstance(value, list):
            if not self.lax:
                yield from self.structural("22039", "jsonpath array accessor can only be applied to an array")
                return
            value = [value]
        outer = self.size
        for first, last in item.args:
            self.size = len(value)
            begin = self.index(first, value)
            end = begin if last is None else self.index(last, value)
            if not self.ignoring and (begin < 0 or begin > end or end >= len(value)):
                raise PathError("22033", "jsonpath array subscript is out of bounds")
            for at in range(max(begin, 0), min(end, len(value) - 1) + 1):
                yield from self.then(item, value[at])
        self.size = outer

    def index(self, item: Item, value: Json) -> int:
        found = list(self.steps(item, value))
        if len(found) != 1 or _kind(found[0]) != "number":
            raise PathError("22033", "jsonpath array subscript is not a single numeric value")
        index = int(found[0])  # towards zero
        if not -_INT4_MAX - 1 <= index <= _INT4_MAX:
            raise PathError("22033", "jsonpath array subscript is out of integer range")
        return index

    def any_level(self, item: Item, value: Json) -> Iterator[Json]:
        first, last = item.value
        if first == 0:
            before, self.ignoring = self.ignoring, True
            yield from self.then(item, value)
            self.ignoring = before
        if isinstance(value, (dict, list)):
            yield from self.levels(item, value, 1, first, last)

    def levels(self, item: Item, value: Json, level: int, first: int, last: int) -> Iterator[Json]:
        if level > last:
            return
        for child in value.values() if isinstance(value, dict) else value:
            give_way()
            inner = isinstance(child, (dict, list))
            if level >= first or (first == LAST and last == LAST and not inner):
                before, self.ignoring = self.ignoring, True
                yield from self.then(item, child)
                self.ignoring = before
            if level < last and inner:
                yield from self.levels(item, child, level + 1, first, last)

    def filter(self, item: Item, value: Json, unwrap: bool) -> Iterator[Json]:
        if unwrap and isinstance(value, list):
            return self.each(item, value)
        before, self.current = self.current, value
        try:
            holds = self.truth(item.args[0], value)
        finally:
            self.current = before
        return self.then(item, value) if holds is True else iter(())

    # -- arithmetic and methods ------------------------------------------------------------------

    def arithmetic(self, item: Item, value: Json) -> Iterator[Json]:
        operands = []
        for side, arg in zip(("left", "right"), item.args, strict=True):
            found = list(self.unwrapped(arg, value))
            if len(found) != 1 or _kind(found[0]) != "number":
                raise PathError(
                    "22038", f"{side} operand of jsonpath operator {item.kind} is not a single numeric value"
                )
            operands.append(Decimal(found[0]))
        return self.then(item, _numeric(lambda: _ARITHMETIC[item.kind](*operands)))

    def sign(self, item: Item, value: Json) -> Iterator[Json]:
        for found in list(self.unwrapped(item.args[0], value)):
            if _kind(found) != "number":
                sign = item.kind[1]
                raise PathError("2203B", f"operand of unary jsonpath operator {sign} is not a numeric value")
            yield from self.then(item, found if item.kind == "u+" else numeric.neg(Decimal(found)))

    def method(self, item: Item, value: Json, unwrap: bool) -> Iterator[Json]:
        name = item.kind
        if name == "type":
            return self.then(item, value.type_name if isinstance(value, Moment) else _kind(value))
        if name == "size":
            if isinstance(value, list):
                return self.then(item, len(value))
            if self.lax:
                return self.then(item, 1)
            return self.structural("22039", "jsonpath item method .size() can only be applied to an array")
        if unwrap and isinstance(value, list):
            return self.each(item, value)
        if name == "datetime":
            if not isinstance(value, str):
                raise PathError("22031", "jsonpath item method .datetime() can only be applied to a string")
            return self.then(item, _read_moment(value, item.value))
        if name == "keyvalue":
            return self.key_values(item, value)
        return self.then(item, _METHODS[name](value))

    def key_values(self, item: Item, value: Json) -> Iterator[Json]:
        if not isinstance(value, dict):
            raise PathError("2203C", "jsonpath item method .keyvalue() can only be applied to an object")
        number = offset_of(self.base, value) + self.base_id * 10_000_000_000
        for key, member in paced_iter(value.items()):
            yield from self.then(item, {"id": number, "key": key, "value": member})

    # -- predicates ------------------------------------------------------------------------------

    def truth(self, item: Item, value: Json) -> bool | None:
        """Return whether a predicate holds; None: unknown."""
        match item.kind:
            case "&&":
                left = self.truth(item.args[0], value)
                if left is False:
                    return False
                right = self.truth(item.args[1], value)
                return left if right is True else right
            case "||":
                left = self.truth(item.args[0], value)
                if left is True:
                    return True
                right = self.truth(item.args[1], value)
                return left if right is False else right
            case "!":
                inner = self.truth(item.args[0], value)
                return None if inner is None else not inner
            case "is unknown":
                return self.truth(item.args[0], value) is None
            case "exists":
                try:
                    found = self.steps(item.args[0], value)
                    return bool(list(found)) if not self.lax else next(found, found) is not found
                except PathError:
                    return None
            case "starts with":
                return self.some(item, value, _starts, unwrap_right=False)
            case "like_regex":
                matches = _regex(*item.value)
                return self.some(item, value, lambda text, _: matches(text))
        compare = _COMPARE[item.kind]
        return self.some(item, value, lambda a, b: _compared(item.kind, compare, a, b, self.session))

    def some(
        self,
        item: Item,
        value: Json,
        test: Callable[[Json, Json], bool | None],
        *,
        unwrap_right: bool = True,
    ) -> bool | None:
        """Return whether a test holds for some pair of what the operands yield."""
        try:
            left = list(self.unwrapped(item.args[0], value))
            right: list[Json] = [None]
            if len(item.args) > 1:
                side = self.unwrapped if unwrap_right else self.steps
                right = list(side(item.args[1], value))
        except PathError:
            return None
        found = unknown = False
        for a in left:
            for b in right:
                give_way()
                holds = test(a, b)
                if holds is None:
                    if not self.lax:
                        return None
                    unknown = True
                elif holds:
                    if self.lax:
                        return True
                    found = True
        return True if found else None if unknown else False


def _numeric(compute: Callable[[], Decimal]) -> Decimal:
    try:
        return compute()
    except (SqlError, DataError) as error:
        raise PathError(error.sqlstate, error.message) from None


def _starts(whole: Json, start: Json) -> bool | None:
    if not isinstance(whole, str) or not isinstance(start, str):
        return None
    return whole.startswith(start)


def _regex(pattern: str, flags: str) -> Callable[[Json], bool | None]:
    options = ("i" if "i" in flags else "") + ("q" if "q" in flags else "")
    if "q" not in flags:  # XQuery's s: a dot matches line ends; m: anchors match at them
        options += {(True, True): "w", (True, False): "s", (False, True): "n", (False, False): "p"}[
            "s" in flags, "m" in flags
        ]
    test = compiled(pattern, parse_flags(options)[0]).test
    return lambda text: test(text) if isinstance(text, str) else None


def _check_pattern(pattern: str, flags: str) -> None:
    try:
        _regex(pattern, flags)
    except SqlError as error:  # the place of the literal is known to who reads it
        raise DataError(error.sqlstate, error.message, detail=error.detail, hint=error.hint) from None


check_patterns_by(_check_pattern)


def _read_moment(text: str, template: str | None) -> Moment:
    if template is not None:
        parse_strict(template)  # what is wrong with the template itself is no error of the path
    try:
        return read_moment(text, template)
    except SqlError as error:
        made = PathError(error.sqlstate, error.message, detail=error.detail, hint=error.hint)
        raise made from None


def _compared(
    operator: str, holds: Callable[[int], bool], a: Json, b: Json, session: EvalSession | None
) -> bool | None:
    left, right = _kind(a), _kind(b)
    if left != right:
        return operator == "!=" if "null" in (left, right) else None
    if left in ("array", "object"):
        return None
    if left == "null":
        return holds(0)
    if left == "datetime":
        order = compared_moments(a, b, session)
        return None if order is None else holds(order)
    if left == "string":
        a, b = a.encode("utf-8", "surrogatepass"), b.encode("utf-8", "surrogatepass")
    return holds((a > b) - (a < b))


def _number(name: str, function: Callable[[Decimal], Decimal]) -> Callable[[Json], Json]:
    def apply(value: Json) -> Json:
        if _kind(value) != "number":
            raise PathError("22036", f"jsonpath item method .{name}() can only be applied to a numeric value")
        return function(Decimal(value))

    return apply


def _double(value: Json) -> Json:
    kind = _kind(value)
    if kind == "number":
        try:
            parse_float8(numeric_codec.show(Decimal(value)))
        except DataError:
            raise PathError(
                "22036",
                "numeric argument of jsonpath item method .double() is out of range for type double precision",
            ) from None
        return value
    if kind != "string":
        raise PathError(
            "22036", "jsonpath item method .double() can only be applied to a string or numeric value"
        )
    try:
        found = parse_float8(value)
    except DataError:
        found = float("nan")
    if found != found or found in (float("inf"), float("-inf")):
        raise PathError(
            "22036",
            "string argument of jsonpath item method .double() is not a valid representation of a "
            "double precision number",
        )
    return numeric_codec.parse(f"{found:.15g}")


_METHODS: Final[dict[str, Callable[[Json], Json]]] = {
    "type": _kind, "size": _kind, "datetime": _kind, "keyvalue": _kind,
    "abs": _number("abs", numeric.abs_), "floor": _number("floor", numeric.floor),
    "ceiling": _number("ceiling", numeric.ceil), "double": _double,
}  # fmt: skip


# -- functions -----------------------------------------------------------------------------------


def _begin(
    target: str, path: str, variables: str | None, session: EvalSession | None = None
) -> tuple[_Run, Path]:
    parsed = parse(path)
    named = {} if variables is None else load(variables)
    if not isinstance(named, dict):
        raise SqlError(
            "22023",
            '"vars" argument is not an object',
            detail='Jsonpath parameters should be encoded as key-value pairs of "vars" object.',
        )
    return _Run(parsed, load(target), named, session), parsed


def query(
    target: str,
    path: str,
    variables: str | None = None,
    silent: bool = False,
    session: EvalSession | None = None,
) -> list[str]:
    """SQL's ``jsonb_path_query``: all items, with ``silent`` those before the first error; ``session``: that
    of the ``_tz`` forms.
    """
    run, parsed = _begin(target, path, variables, session)
    found: list[str] = []
    try:
        for value in run.steps(parsed.item, run.root):
            found.append(dump(value.text() if isinstance(value, Moment) else value))
    except PathError:
        if not silent:
            raise
    return mind_long(found)


def exists(
    target: str,
    path: str,
    variables: str | None = None,
    silent: bool = False,
    session: EvalSession | None = None,
) -> bool | None:
    """SQL's ``jsonb_path_exists``: whether there is an item; NULL for an error with ``silent``."""
    run, parsed = _begin(target, path, variables, session)
    try:
        found = run.steps(parsed.item, run.root)
        return next(found, found) is not found if run.lax else bool(list(found))
    except PathError:
        if not silent:
            raise
        return None


def match(
    target: str,
    path: str,
    variables: str | None = None,
    silent: bool = False,
    session: EvalSession | None = None,
) -> bool | None:
    """SQL's ``jsonb_path_match``: the one boolean; NULL for unknown. SqlError 22038 unless there is one."""
    found = query(target, path, variables, silent, session)
    if len(found) == 1 and found[0] in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[found[0]]
    if not silent:
        raise SqlError("22038", "single boolean result is expected")
    return None


def _first(
    target: str, path: str, variables: str | None, silent: bool, session: EvalSession | None = None
) -> str | None:
    found = query(target, path, variables, silent, session)
    return found[0] if found else None


def _array(
    target: str, path: str, variables: str | None, silent: bool, session: EvalSession | None = None
) -> str:
    return joined(("[", joined(query(target, path, variables, silent, session), ", "), "]"))


def _by_session(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda session, *args: function(*args, session)


def _register() -> None:
    forms: dict[str, Callable[..., Any]] = {
        "exists": exists, "match": match, "query": query, "query_array": _array, "query_first": _first,
    }  # fmt: skip
    for name, function in forms.items():
        python(f"jsonb_path_{name}(jsonb,jsonpath,jsonb,bool)", function)
        python(f"jsonb_path_{name}_tz(jsonb,jsonpath,jsonb,bool)", _by_session(function), needs_session=True)
    python("jsonb_path_exists_opr(jsonb,jsonpath)", lambda target, path: exists(target, path, None, True))
    python("jsonb_path_match_opr(jsonb,jsonpath)", lambda target, path: match(target, path, None, True))


_register()
