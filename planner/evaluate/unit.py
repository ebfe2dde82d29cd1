"""Generating Python source for one expression: names, temporaries, columns, calls, and the functions cut off.

    value   a source whose value is the expression's                       1 level deeper for each operand
    test    a source that is truthy exactly when the expression is TRUE
    cut     beyond MAX_DEPTH: a function of its own, and a call of it

``NODES`` has one function per class of expression; ``planner.evaluate.nodes`` fills it. ``planner.evaluate`` is what
others use.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from types import CodeType
from typing import Any, Final, cast

from pgwire.give_way import PACE, give_way, paced, paced_iter, size_of
from pgwire.kept import kept
from planner.base.errors import SqlError, not_supported
from planner.base.large import LARGE_BYTES, made
from planner.evaluate.calls import is_fixed, of_fixed_length, spread, typed, walk
from planner.evaluate.env import EMPTY_LAYOUT, Env, Layout, RowFunction
from planner.facts import ANY, BPCHAR, BYTEA, JSON, JSONB, TEXT, VARCHAR, facts
from planner.functions import load
from planner.functions.inline import HELPERS, inline_templates
from planner.functions.registry import Builtin
from planner.functions.values.compare import compare_rows
from planner.query import (
    CMAX,
    CMIN,
    WHOLE_ROW,
    XMAX,
    XMIN,
    ArrayExpr,
    BooleanTest,
    BoolExpr,
    Const,
    DistinctExpr,
    Expr,
    FuncExpr,
    NullTest,
    OpExpr,
    Param,
    RelabelType,
    RowExpr,
    SqlCall,
    SubLink,
    Var,
)
from planner.query.rewrite import shift_levels
from planner.types import SqlType

_WAITING = (
    "pg_sleep",
    "pg_advisory_lock",
    "pg_advisory_xact_lock",
    "lo_",
    "loread",
    "lowrite",
    "ts_stat",
    "pg_read_file",
    "pg_read_binary_file",
    "pg_stat_file",
    "ts_rewrite",
)  # what functions that may wait begin with
MAX_DEPTH = 20  # nesting of one generated function; Python's parser stops near 90
MAX_WIDTH = 250  # conditions or elements in one generated function
MAX_SOURCE = 1 << 15  # characters of a source that is kept for the next expression like it
AT_ONCE = 1 << 12  # characters compiled in one go: some milliseconds, which others wait
MAX_PART = 400  # characters of an operand; a longer one becomes a function of its own

ROWS_AT_A_TIME = 16
"""Rows between two looks at the clock where functions of numbers, dates and their like are called; with other
functions it is each row."""
LONG_BODY = 1000
"""Characters of operators without calls that take some microseconds for a row."""
CELL = 4
"""Characters that take as long as one cell of a slice of a row."""
OF_ANY_SIZE = frozenset(
    (TEXT, VARCHAR, BPCHAR, BYTEA, JSON, JSONB)
)  # types whose values are one str or bytes
MANY_PLACES = 24  # of one row, side by side
_PLACE = re.compile(r"(r\d*)\[(\d+)]")

# Expression class -> function(unit, expression, depth); ``planner.evaluate.nodes`` fills it.
NODES: dict[type, Callable[[Unit, Any, int], str]] = {}

_counter = iter(range(1, 1 << 62))


def _compiled(source: str, filename: str) -> CodeType:
    try:
        return compile(source, filename, "exec")
    except (RecursionError, MemoryError, SyntaxError) as error:
        raise SqlError("54001", "stack depth limit exceeded") from error


@kept(4096, short=1 << 11, few=512)
def _code(source: str) -> CodeType:
    """Compile a generated module; statements of one shape give one source, since values are names in it."""
    filename = f"<expression {next(_counter)}>"
    code = _compiled(source, filename)
    if len(source) <= AT_ONCE:  # for those who read a traceback
        if len(linecache.cache) > 4000:
            linecache.clearcache()
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return code


def _is_long(sources: list[str]) -> bool:
    """Tell whether sources side by side are too long for one function, which Python compiles in one go."""
    return len(sources) > MAX_WIDTH or (
        len(sources) > 1 and sum(map(len, sources if len(sources) <= PACE else paced(sources))) > 2 * AT_ONCE
    )


def _groups(sources: list[str]) -> Iterator[list[str]]:
    """Yield sources for one function at a time: two at least, so that there are fewer functions than sources,
    however long their calls are.
    """
    group: list[str] = []
    size = 0
    for source in sources:
        if len(group) > 1 and (size + len(source) > AT_ONCE or len(group) == MAX_WIDTH):
            yield group
            group, size = [], 0
        group.append(source)
        size += len(source)
    yield group


def _with_slices(parts: list[str]) -> list[str]:
    """Return the sources of a tuple's items, many neighbouring places of one row as a slice: that is faster
    from here on.
    """
    if len(parts) < MANY_PLACES:
        return parts
    made: list[str] = []
    begin = 0
    places = [_PLACE.fullmatch(part) for part in parts]
    while begin < len(parts):
        end = begin + 1
        if (first := places[begin]) is not None:
            row, place = first[1], int(first[2]) - begin
            while end < len(parts) and parts[end] == f"{row}[{place + end}]":
                end += 1
            if end - begin >= MANY_PLACES:
                made.append(f"*{row}[{place + begin}:{place + end}]")
                begin = end
                continue
        made += parts[begin:end]
        begin = end
    return made


def _pieces(functions: Sequence[str]) -> Iterator[str]:
    """Yield functions as modules of about ``AT_ONCE`` characters, in their order."""
    held: list[str] = []
    size = 0
    for source in functions:
        held.append(source)
        size += len(source)
        if size > AT_ONCE:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)


_HELPER: Final = re.compile(r"\bh\d+\b")


def _handed(source: str) -> str:
    """Return the source of a function that gets the helpers which it calls, and which stand before it, as
    defaults of arguments.
    """
    head, body = source.split("):\n", 1)
    called = sorted(set(_HELPER.findall(body)))
    return "".join((head, *(f", {name}={name}" for name in called), "):\n", body)) if called else source


class Unit:
    """One compilation: a namespace, the helper functions cut off from deep expressions, and a layout."""

    def __init__(
        self, layout: Layout, exprs: Sequence[Expr], many: bool = False, *, fixed: bool = False
    ) -> None:
        """Begin; ``many``: the function is one of many rows, and its body begins with ``prologue``.
        ``fixed``: of a constant (``Once``).
        """
        self.layout = layout
        self.fixed = fixed
        self.many = many
        self.bound: dict[str, str] = {}  # functions for the rows of one batch, with what makes them
        self.row = ", ".join(f"r{n}" for n in range(len(layout.pieces))) or "r"
        self.names: dict[str, Any] = {**HELPERS, "give_way": give_way, "paced": paced}
        self.ids: dict[int, str] = {}
        self.keep: list[Any] = []
        self.helpers: list[str] = []
        self.temps = 0
        self.calls = 0  # what is called: 0 nothing, 1 functions of values of fixed length, 2 others
        self.may_suspend = False
        self.grows = False  # it may make values of any size
        self.replay = False
        registry_facts = facts()
        volatile = False
        for node in paced_iter(n for expr in exprs for n in walk(expr)):
            if isinstance(node, SubLink):
                self.may_suspend = True
            elif isinstance(node, SqlCall):
                volatile = True
                self.may_suspend |= not node.now
                self.many = False  # it may change what the others look at
            elif isinstance(node, FuncExpr | OpExpr):
                fact = registry_facts.procs.get(node.proc)
                if fact is not None and fact.volatility == "v":
                    volatile = True
                    self.may_suspend |= fact.name.startswith(_WAITING)
        self.replay = volatile and self.may_suspend

    # -- namespace

    def name(self, value: Any, stem: str = "k") -> str:
        """Return the name under which the generated code sees ``value``."""
        known = self.ids.get(id(value))
        if known is None:
            known = f"{stem}_{len(self.names)}"
            if stem not in ("k", "f_"):
                self.calls = 2
            self.ids[id(value)] = known
            self.keep.append(value)
            self.names[known] = value
        return known

    def temp(self) -> str:
        """Return a fresh local name."""
        self.temps += 1
        return f"t{self.temps}"

    def function(self, body: str, argument: str = "r") -> RowFunction:
        """Compile the whole unit; ``body`` is that of the function returned."""
        way = "    give_way()\n" if self.calls and argument == "r" else ""
        functions = [*self.helpers, f"def f({argument}, e):\n{way}{body}"]
        if self.helpers:
            functions = list(map(_handed, paced(functions)))
        size = sum(map(len, functions))
        if size > AT_ONCE:
            for piece in _pieces(functions):
                kept = size <= MAX_SOURCE
                exec(_code(piece) if kept else _compiled(piece, "<long expression>"), self.names)
                give_way()
        else:
            exec(_code("".join(functions)), self.names)
        # A function that its own globals hold is a cycle, which the collector had to find.
        for number in paced(range(len(self.helpers))):
            self.names.pop(f"h{number}", None)
        function = self.names.pop("f")
        function.may_suspend = self.may_suspend
        function.grows = self.grows
        return cast("RowFunction", function)

    def rows(self, body: str, width: int = 0) -> str:
        """Return the source of what a loop goes over whose body has the source ``body``: the rows, giving way
        where they may take long.

        ``width``: cells that the body makes, a thousand of which may be one short slice of a row.
        """
        if self.calls > 1:
            return "paced(rows, 1)"
        size = max(len(body) + sum(map(len, self.helpers)), width * CELL)
        every = max(PACE * LONG_BODY // max(size, 1), 1)  # of very many columns a row is long
        if self.calls:
            return f"paced(rows, {min(ROWS_AT_A_TIME, every)})"
        return "rows" if size <= LONG_BODY else f"paced(rows, {every})"

    @property
    def prologue(self) -> str:
        """The lines of a function of many rows that stand before its loop."""
        return "".join(f"    {name} = {made}\n" for name, made in self.bound.items())

    def cut(self, expr: Expr, test: bool = False) -> str:
        """Compile ``expr`` as a function of its own and return a call of it."""
        body = self.test(expr, 0) if test else self.value(expr, 0)
        return self.cut_source(body)

    def cut_source(self, body: str) -> str:
        """Put a source into a function of its own and return a call of it."""
        name = f"h{len(self.helpers)}"
        arguments = ", ".join((self.row, "e", *self.bound))
        way = "    give_way()\n" if self.calls else ""
        self.helpers.append(f"def {name}({arguments}):\n{way}    return {body}\n")
        return f"{name}({arguments})"

    # -- rows and conditions

    def tuple_of(self, exprs: Sequence[Expr | int]) -> str:
        """Return the source of a tuple of values; numbers are places in the row."""
        parts = _with_slices(
            [f"r[{expr}]" if isinstance(expr, int) else self.value(expr, 1) for expr in exprs]
        )
        while _is_long(parts):
            parts = ["*" + self.cut_source(f"({', '.join(some)},)") for some in _groups(parts)]
        return f"({''.join(part + ', ' for part in parts)})"

    def all_true(self, conjuncts: Sequence[Expr]) -> str:
        """Return a test that all conjuncts are TRUE."""
        if not conjuncts:
            return "True"
        return self.chain("and", [f"({self.test(c, 1)})" for c in conjuncts])

    def chain(self, word: str, tests: list[str]) -> str:
        """Return tests joined by ``and`` or ``or``; of very many, or of long ones, groups in functions of their own."""
        while _is_long(tests):
            tests = [self.cut_source(f" {word} ".join(some)) for some in _groups(tests)]
        return f" {word} ".join(tests)

    # -- values

    def computed(self, expr: Expr) -> str | None:
        """Return the source of an expression that a node below has computed already."""
        layout: Layout | None = self.layout
        level = 0
        path = "r"
        while layout is not None:
            if layout.exprs:
                try:
                    position = layout.exprs.get(expr if level == 0 else shift_levels(expr, -level))
                except TypeError:  # an unhashable constant
                    position = None
                if position is not None:
                    return f"{path}[{position}]"
            level += 1
            path = "e.row" if level == 1 else f"e{'.parent' * (level - 1)}.row"
            layout = layout.outer
        return None

    def var(self, expr: Var) -> str:
        """Return the source of a column."""
        layout: Layout | None = self.layout
        if expr.level == 0 and self.layout.pieces:
            key = expr.range, expr.attnum
            return next(
                f"r{n}[{columns[key]}]" for n, columns in enumerate(self.layout.pieces) if key in columns
            )
        for _ in range(expr.level):
            layout = layout.outer if layout is not None else None
        position = layout.columns.get((expr.range, expr.attnum)) if layout is not None else None
        if (
            position is None
            and expr.attnum == WHOLE_ROW
            and layout is not None
            and expr.range in layout.records
        ):
            row = "r" if expr.level == 0 else f"e{'.parent' * (expr.level - 1)}.row"
            return f"{self.name(layout.records[expr.range](), 'record')}({row})"
        if position is None and expr.attnum in (XMAX, CMIN, CMAX):
            return "0"  # no row has another value
        if position is None and expr.attnum == XMIN:  # the version is known once the commit has its timestamp
            raise SqlError(
                "0A000", "xmin of a row that the statement itself changes is not supported", span=expr.span
            )
        if position is None:
            raise LookupError(f"no column {expr.range}.{expr.attnum} at level {expr.level}")
        if expr.level == 0:
            return f"r[{position}]"
        return f"e{'.parent' * (expr.level - 1)}.row[{position}]"

    def never_null(self, expr: Expr) -> bool:
        """Tell whether the value is known not to be NULL."""
        if isinstance(expr, Const):
            return expr.value is not None
        if isinstance(expr, RelabelType):
            return self.never_null(expr.arg)
        return isinstance(expr, NullTest | BooleanTest | DistinctExpr | ArrayExpr | RowExpr)

    def operands(self, args: Sequence[Expr], depth: int) -> tuple[str, list[str]]:
        """Return (the condition that a NULL was met, "" where none can be, names of the values) for strict use.

        All are computed, in their order, whatever a NULL before them decides: computing one may fail, or draw a number.
        """
        guards: list[str] = []
        names: list[str] = []
        quiet = True
        for arg in args:
            source = self.value(arg, depth + 1)
            if self.never_null(arg) and source.isidentifier():
                names.append(source)
                continue
            temp = self.temp()
            names.append(temp)
            quiet = quiet and (not guards or _is_at_hand(arg))
            guards.append(f"({temp} := {source}) is None")
        return " or ".join(guards) if quiet else " | ".join(f"({guard})" for guard in guards), names

    def value(self, expr: Expr, depth: int) -> str:
        """Return a source whose value is the expression's."""
        give_way()
        if self.layout.exprs or self.layout.outer is not None:
            ready = self.computed(expr)
            if ready is not None:
                return ready
        if depth > MAX_DEPTH and not isinstance(expr, Var | Const | Param):
            return self.cut(expr)
        if not self.fixed and isinstance(expr, FuncExpr | OpExpr) and is_fixed(expr):
            self.grows = self.grows or expr.type.oid in OF_ANY_SIZE  # each time anew, if it is large
            return f"{self.name(Once(expr), 'once')}(e)"
        method = NODES.get(type(expr))
        if method is None:
            raise not_supported(f"{type(expr).__name__} here", span=expr.span)
        source = method(self, expr, depth)
        return self.cut_source(source) if depth and len(source) > MAX_PART else source

    def apply(
        self, proc: int, args: Sequence[Expr], depth: int, *, variadic: bool = False, expr: Expr | None = None
    ) -> str:
        """Return the source of a call of pg_proc row ``proc``."""
        fact = facts().procs.get(proc)
        template = inline_templates().get(proc)
        if template is not None:
            null, names = self.operands(args, depth)
            source = template.format(*names, t=self.temp())
        else:
            builtin, function, needs_session = self.form(proc, args, variadic, expr)
            strict = fact is not None and fact.strict
            if self.many and strict and builtin.for_rows is not None and not self.replay:
                rest = [arg.value for arg in args[1:] if isinstance(arg, Const) and arg.value is not None]
                if len(rest) == len(args) - 1:
                    return self._for_rows(builtin.for_rows, args[0], rest, depth)
            if strict:
                null, names = self.operands(args, depth)
            else:
                null, names = "", [self.value(arg, depth + 1) for arg in args]
            if needs_session:
                names.insert(0, "e.session")
            listed = ", ".join(names)
            if self.replay and fact is not None and fact.volatility == "v":
                source = f"e.shared.call({self.name(function, 'f_')}{', ' if listed else ''}{listed})"
            else:
                source = f"{self.name(function, 'f_')}({listed})"
        if fact is None or not fact.returns_set:
            source = self.watched(source, 0 if expr is None else expr.type.oid)
        return f"(None if {null} else {source})" if null else f"({source})"

    def watched(self, source: str, oid: int) -> str:
        """Return the source of a value of a type that was just made: a large one is counted."""
        if oid not in OF_ANY_SIZE:
            return source
        self.grows = True
        value = self.temp()
        large = f"len({value}) < {LARGE_BYTES} else {self.name(made, 'large')}({value})"
        return f"{value} if ({value} := {source}) is None or {large}"

    def _for_rows(self, maker: Callable[..., Any], arg: Expr, rest: Sequence[Any], depth: int) -> str:
        """Return the source of a call of a function that is made once for many rows."""
        listed = ", ".join(("e.session", *(self.name(value) for value in rest)))
        made = f"{self.name(maker, 'm_')}({listed})"
        name = next((known for known, source in self.bound.items() if source == made), None)
        if name is None:
            name = f"b{len(self.bound)}"
            self.bound[name] = made
        null, names = self.operands([arg], depth)
        call = f"{name}({names[0]})"
        return f"(None if {null} else {call})" if null else f"({call})"

    def form(
        self, proc: int, args: Sequence[Expr], variadic: bool, expr: Expr | None
    ) -> tuple[Builtin, Callable[..., Any], bool]:
        """Return the registry row and the callable for this call, and whether that takes the session first."""
        fact = facts().procs.get(proc)
        builtin = load().functions.get(proc)
        if builtin is None or builtin.python is None:
            label = facts().signature(proc) if fact is not None else f"function {proc}"
            raise not_supported(
                f"function {label} in the row executor", span=expr.span if expr is not None else None
            )
        function, needs_session = builtin.form_for(args)
        if function is None:
            raise AssertionError("the function has no form for these arguments")
        types = tuple(arg.type.oid for arg in args)
        self.calls = max(self.calls, 1 if all(map(of_fixed_length, types)) else 2)
        of_rows = compare_rows(proc, types) if types else None
        if of_rows is not None:
            return builtin, of_rows, True
        spreads = variadic and fact is not None and fact.variadic == ANY
        if spreads:
            return builtin, spread(builtin, function, types), needs_session
        if builtin.needs_types:
            return builtin, typed(function, types), needs_session
        return builtin, function, needs_session

    def operator(self, proc: int, left: str, right: str, left_type: int, right_type: int) -> str:
        """Return the source of a call with two values that are not NULL."""
        template = inline_templates().get(proc)
        if template is not None:
            return f"({template.format(left, right, t=self.temp())})"

        args = (Param(type=SqlType(left_type), number=1), Param(type=SqlType(right_type), number=2))
        _, function, needs_session = self.form(proc, args, False, None)
        first = "e.session, " if needs_session else ""
        return f"{self.name(function, 'f_')}({first}{left}, {right})"

    # -- tests

    def test(self, expr: Expr, depth: int) -> str:
        """Return a source that is truthy exactly when the expression is TRUE."""
        if self.layout.exprs or self.layout.outer is not None:
            ready = self.computed(expr)
            if ready is not None:
                return ready
        if depth > MAX_DEPTH and not isinstance(expr, Var | Const | Param):
            return self.cut(expr, test=True)
        if isinstance(expr, BoolExpr):
            if expr.kind == "not":
                return f"({self.value(expr.args[0], depth + 1)} is False)"
            return f"({self.chain(expr.kind, [f'({self.test(arg, depth + 1)})' for arg in expr.args])})"
        if isinstance(expr, OpExpr | FuncExpr):
            fact = facts().procs.get(expr.proc)
            template = inline_templates().get(expr.proc)
            if template is not None and fact is not None and fact.strict:
                null, names = self.operands(expr.args, depth)
                source = template.format(*names, t=self.temp())
                return f"(not ({null}) and ({source}))" if null else f"({source})"
        if isinstance(expr, RelabelType):
            return self.test(expr.arg, depth)
        return self.value(expr, depth)


def _is_at_hand(expr: Expr) -> bool:
    """Tell whether a value is there without computing anything, which might fail."""
    while isinstance(expr, RelabelType):
        expr = expr.arg
    return isinstance(expr, Var | Const | Param)


class Once:
    """The value of an expression of constants that was too long to compute ahead: computed when it is first
    asked for, and kept if it is short.
    """

    __slots__ = ("_expr", "_function", "_known", "_value")

    def __init__(self, expr: Expr) -> None:
        self._expr = expr
        self._function: RowFunction | None = None
        self._known = False
        self._value: Any = None

    def __call__(self, e: Env) -> Any:
        """Return it. Raises what computing it raises, each time."""
        if self._known:
            return self._value
        if self._function is None:
            unit = Unit(EMPTY_LAYOUT, (self._expr,), fixed=True)
            self._function = unit.function(f"    return {unit.value(self._expr, 0)}\n")
        value = self._function((), e)
        if isinstance(value, _KEPT) and size_of(value) <= KEPT_BYTES:
            self._value, self._known = value, True
        return value


KEPT_BYTES = 1 << 14
_KEPT = (str, bytes, int, float, Decimal, type(None))


def value_function(expr: Expr, layout: Layout) -> RowFunction:
    """Return ``f(row, env)`` giving the value of ``expr``. Raises 0A000 where no Python form exists."""
    unit = Unit(layout, (expr,))
    return unit.function(f"    return {unit.value(expr, 0)}\n")
