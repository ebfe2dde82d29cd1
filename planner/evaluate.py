"""Bound expressions as Python callables.

The row executor, column defaults, CHECK constraints and constant folding evaluate expressions here. An
expression becomes Python source, compiled once: a column is an index into the row tuple, a constant or a
function is a name in the namespace (the text never holds a value), three-valued logic is spelt out.

    WHERE a = $1 AND b + 1 > 10                     layout: a -> 0, b -> 2

    def f(r, e):
        return ((t1 := r[0]) is not None and (t2 := e.params[0]) is not None and t1 == t2
                and (t3 := int4pl(...)) is not None and t3 > k1)

Words
    layout   where a node's rows keep each (range, attnum) and each expression that is already computed
    env      what is fixed while a row is looked at: parameters, session, the row of the query outside
    test     a source that is truthy exactly when the expression is TRUE (NULL counts as false)

Promises: AND, OR, CASE, COALESCE evaluate left to right and only what they need; strict functions are not
called with NULL; deep expressions are cut into several functions, so depth is bounded by the binder's limit and
not by Python's parser.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any, TypeVar, cast

from pgwire.codecs.domain import TUPLE_TYPES
from planner.builtins import load
from planner.builtins.reg import REG_TYPES
from planner.builtins.registry import Builtin
from planner.builtins.session import EvalSession
from planner.errors import SqlError, not_supported
from planner.evaluate_assign import assign_item, assign_slice
from planner.evaluate_env import EMPTY_LAYOUT, Env, Layout, Row, RowFunction, Shared, Suspend
from planner.evaluate_inline import HELPERS, inline_templates, simple_equality
from planner.evaluate_runtime import (
    ABSENT,
    all_array,
    any_array,
    any_equal,
    array_item,
    array_slice,
    flat,
    greatest,
    leaf_item,
    least,
    map_array,
    nested_array,
    record_maker,
    row_not_null,
    row_null,
)
from planner.facts import ANY, INT4, OID, RECORD, facts
from planner.query import (
    CMAX,
    CMIN,
    XMAX,
    XMIN,
    ArrayAssign,
    ArrayCoerce,
    ArrayExpr,
    BooleanTest,
    BoolExpr,
    CaseExpr,
    CoalesceExpr,
    CoerceTypmod,
    CoerceViaIO,
    Const,
    CurrentSetting,
    DistinctExpr,
    Expr,
    FieldSelect,
    FuncExpr,
    MinMaxExpr,
    NullIf,
    NullTest,
    OpExpr,
    Param,
    QueryBase,
    RelabelType,
    RowCompare,
    RowExpr,
    ScalarArrayOp,
    SubLink,
    Subscript,
    Var,
)
from planner.rewrite import shift_levels
from planner.walk import children

__all__ = [
    "EMPTY_LAYOUT", "Env", "Layout", "Row", "RowFunction", "Shared", "Suspend", "compile_expr", "compile_filter",
    "compile_map", "compile_operator", "compile_predicate", "compile_row", "evaluate_constant", "flat", "record_maker",
    "walk",
]  # fmt: skip

_WAITING = (
    "pg_sleep",
    "pg_advisory_lock",
    "pg_advisory_xact_lock",
)  # what functions that may wait begin with
_TUPLES = TUPLE_TYPES - {RECORD}  # records are told from arrays by their class
MAX_DEPTH = 20  # nesting of one generated function; Python's parser stops near 90
MAX_ARMS = 24  # arms of CASE / AND / OR in one generated chain


_Compile = TypeVar("_Compile", bound=Callable[..., RowFunction])


def _bounded(compile_: _Compile) -> _Compile:
    """Turn Python's own limit on nesting into 54001."""

    @functools.wraps(compile_)
    def limited(*args: Any) -> RowFunction:
        try:
            return compile_(*args)
        except RecursionError:
            raise SqlError("54001", "stack depth limit exceeded") from None

    return cast("_Compile", limited)


@_bounded
def compile_expr(expr: Expr, layout: Layout = EMPTY_LAYOUT) -> RowFunction:
    """Return ``f(row, env)`` giving the value of ``expr``. Raises 0A000 where no Python form exists."""
    unit = _Unit(layout, (expr,))
    return unit.function(f"    return {unit.value(expr, 0)}\n")


@_bounded
def compile_row(exprs: Sequence[Expr], layout: Layout = EMPTY_LAYOUT) -> RowFunction:
    """Return ``f(row, env)`` giving the tuple of the values of ``exprs``."""
    unit = _Unit(layout, exprs)
    return unit.function(f"    return {unit.tuple_of(exprs)}\n")


@_bounded
def compile_predicate(conjuncts: Sequence[Expr], layout: Layout = EMPTY_LAYOUT) -> RowFunction:
    """Return ``f(row, env)``, truthy exactly when every conjunct is TRUE."""
    unit = _Unit(layout, conjuncts)
    return unit.function(f"    return {unit.all_true(conjuncts)}\n")


@_bounded
def compile_filter(conjuncts: Sequence[Expr], layout: Layout = EMPTY_LAYOUT) -> RowFunction:
    """Return ``f(rows, env)`` giving the list of the rows for which every conjunct is TRUE."""
    unit = _Unit(layout, conjuncts)
    test = unit.all_true(conjuncts)
    return unit.function(
        f"    out = []\n    add = out.append\n    for r in rows:\n        if {test}:\n            add(r)\n"
        "    return out\n",
        "rows",
    )


@_bounded
def compile_map(exprs: Sequence[Expr], layout: Layout = EMPTY_LAYOUT) -> RowFunction:
    """Return ``f(rows, env)`` giving the list of the tuples of ``exprs`` for each row."""
    unit = _Unit(layout, exprs)
    row = unit.tuple_of(exprs)
    return unit.function(
        f"    out = []\n    add = out.append\n    for r in rows:\n        add({row})\n    return out\n",
        "rows",
    )


def evaluate_constant(expr: Expr, session: EvalSession | None = None, params: Sequence[Any] = ()) -> Any:
    """Return the value of an expression without columns."""
    return compile_expr(expr)((), Env(params, session, shared=Shared()))


def compile_operator(proc: int, left: int, right: int) -> Callable[[Any, Any, Env], Any]:
    """Return ``f(x, y, env)`` for an operator's function on types ``left``, ``right``; NULL when either is."""
    unit = _Unit(EMPTY_LAYOUT, ())
    call = unit.operator(proc, "x", "y", left, right)
    fact = facts().procs.get(proc)
    guard = "None if x is None or y is None else " if fact is None or fact.strict else ""
    unit.helpers.append(f"def op(x, y, e):\n    return {guard}{call}\n")
    unit.function("    return None\n")
    return cast("Callable[[Any, Any, Env], Any]", unit.names["op"])


def walk(node: Any) -> Iterator[Expr]:
    """Yield every expression from ``node`` down; does not enter the bodies of sub-selects."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Expr):
            yield current
        stack.extend(child for child in children(current) if not isinstance(child, QueryBase))


# --- source generation --------------------------------------------------------------------------

_OIDS = frozenset((OID, *REG_TYPES))
_counter = iter(range(1, 1 << 62))


def _row_like(oid: int) -> bool:
    fact = facts().types.get(oid)
    return oid == RECORD or (fact.kind == "c" if fact is not None else oid >= 16384)


@functools.lru_cache(maxsize=4096)
def _code(source: str) -> CodeType:
    """Compile a generated module; statements of one shape give one source, since values are names in it."""
    filename = f"<expression {next(_counter)}>"
    try:
        code = compile(source, filename, "exec")
    except (RecursionError, MemoryError, SyntaxError) as error:
        raise SqlError("54001", "stack depth limit exceeded") from error
    if len(linecache.cache) > 8000:
        linecache.clearcache()
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return code


class _Unit:
    """One compilation: a namespace, the helper functions cut off from deep expressions, and a layout."""

    def __init__(self, layout: Layout, exprs: Sequence[Expr]) -> None:
        self.layout = layout
        self.names: dict[str, Any] = dict(HELPERS)
        self.ids: dict[int, str] = {}
        self.keep: list[Any] = []
        self.helpers: list[str] = []
        self.temps = 0
        self.may_suspend = False
        self.replay = False
        registry_facts = facts()
        volatile = False
        for node in (n for expr in exprs for n in walk(expr)):
            if isinstance(node, SubLink):
                self.may_suspend = True
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
        source = "".join(self.helpers) + f"def f({argument}, e):\n{body}"
        exec(_code(source), self.names)
        function = self.names["f"]
        function.may_suspend = self.may_suspend
        return cast("RowFunction", function)

    def cut(self, expr: Expr, test: bool = False) -> str:
        """Compile ``expr`` as a function of its own and return a call of it."""
        body = self.test(expr, 0) if test else self.value(expr, 0)
        return self.cut_source(body)

    def cut_source(self, body: str) -> str:
        """Put a source into a function of its own and return a call of it."""
        name = f"h{len(self.helpers)}"
        self.helpers.append(f"def {name}(r, e):\n    return {body}\n")
        return f"{name}(r, e)"

    # -- rows and conditions

    def tuple_of(self, exprs: Sequence[Expr]) -> str:
        """Return the source of a tuple of values."""
        inner = "".join(self.value(expr, 1) + ", " for expr in exprs)
        return f"({inner})"

    def all_true(self, conjuncts: Sequence[Expr]) -> str:
        """Return a test that all conjuncts are TRUE."""
        if not conjuncts:
            return "True"
        return " and ".join(f"({self.test(c, 1)})" for c in conjuncts)

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
        for _ in range(expr.level):
            layout = layout.outer if layout is not None else None
        position = layout.columns.get((expr.range, expr.attnum)) if layout is not None else None
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

    def operands(self, args: Sequence[Expr], depth: int) -> tuple[list[str], list[str]]:
        """Return (conditions that a NULL was met, names of the values) for strict use."""
        guards: list[str] = []
        names: list[str] = []
        for arg in args:
            source = self.value(arg, depth + 1)
            if self.never_null(arg) and source.isidentifier():
                names.append(source)
                continue
            temp = self.temp()
            names.append(temp)
            guards.append(f"({temp} := {source}) is None")
        return guards, names

    def value(self, expr: Expr, depth: int) -> str:
        """Return a source whose value is the expression's."""
        if self.layout.exprs or self.layout.outer is not None:
            ready = self.computed(expr)
            if ready is not None:
                return ready
        if depth > MAX_DEPTH and not isinstance(expr, Var | Const | Param):
            return self.cut(expr)
        method = _VALUES.get(type(expr))
        if method is None:
            raise not_supported(f"{type(expr).__name__} here", span=expr.span)
        return method(self, expr, depth)

    def const(self, expr: Const, depth: int) -> str:
        """A constant."""
        value = expr.value
        if value is None or value is True or value is False:
            return repr(value)
        return self.name(value)

    def param(self, expr: Param, depth: int) -> str:
        """A parameter."""
        return f"e.params[{expr.number - 1}]"

    def call(self, expr: FuncExpr | OpExpr, depth: int) -> str:
        """A function or operator call."""
        return self.apply(expr.proc, expr.args, depth, variadic=getattr(expr, "variadic", False), expr=expr)

    def apply(
        self, proc: int, args: Sequence[Expr], depth: int, *, variadic: bool = False, expr: Expr | None = None
    ) -> str:
        """Return the source of a call of pg_proc row ``proc``."""
        fact = facts().procs.get(proc)
        template = inline_templates().get(proc)
        if template is not None:
            guards, names = self.operands(args, depth)
            source = template.format(*names, t=self.temp())
        else:
            builtin, function = self.form(proc, args, variadic, expr)
            if fact is not None and fact.strict:
                guards, names = self.operands(args, depth)
            else:
                guards, names = [], [self.value(arg, depth + 1) for arg in args]
            if builtin.needs_session:
                names.insert(0, "e.session")
            listed = ", ".join(names)
            if self.replay and fact is not None and fact.volatility == "v":
                source = f"e.shared.call({self.name(function, 'f_')}{', ' if listed else ''}{listed})"
            else:
                source = f"{self.name(function, 'f_')}({listed})"
        if not guards:
            return f"({source})"
        return f"(None if {' or '.join(guards)} else {source})"

    def form(
        self, proc: int, args: Sequence[Expr], variadic: bool, expr: Expr | None
    ) -> tuple[Builtin, Callable[..., Any]]:
        """Return the registry row and the callable for this call."""
        fact = facts().procs.get(proc)
        builtin = load().functions.get(proc)
        if builtin is None or builtin.python is None:
            label = facts().signature(proc) if fact is not None else f"function {proc}"
            raise not_supported(
                f"function {label} in the row executor", span=expr.span if expr is not None else None
            )
        function = builtin.python
        types = tuple(arg.type.oid for arg in args)
        spread = variadic and fact is not None and fact.variadic == ANY
        if spread:
            return builtin, _spread(builtin, function, types)
        if builtin.needs_types:
            return builtin, _typed(function, types)
        return builtin, function

    def relabel(self, expr: RelabelType, depth: int) -> str:
        """A binary-coercible cast."""
        source, target = expr.arg.type.oid, expr.type.oid
        if INT4 in (source, target) and source != target and (source in _OIDS or target in _OIDS):
            # the same four bytes, read as signed or unsigned
            guards, names = self.operands((expr.arg,), depth)
            same = f"{names[0]} & 4294967295"
            if target == INT4:
                same = f"({names[0]} + 2147483648 & 4294967295) - 2147483648"
            return f"(None if {guards[0]} else {same})" if guards else f"({same})"
        return self.value(expr.arg, depth)

    def via_io(self, expr: CoerceViaIO, depth: int) -> str:
        """A cast through text."""
        from planner.builtins.casts import io_cast

        guards, names = self.operands((expr.arg,), depth)
        function = self.name(io_cast(expr.arg.type.oid, expr.type.oid), "io")
        source = f"{function}({names[0]}, e.session)"
        return f"(None if {guards[0]} else {source})" if guards else f"({source})"

    def typmod(self, expr: CoerceTypmod, depth: int) -> str:
        """A length or precision coercion."""
        from planner.builtins.casts import typmod_cast

        guards, names = self.operands((expr.arg,), depth)
        function = self.name(typmod_cast(expr.type.oid, expr.type.typmod, expr.explicit), "tm")
        return f"(None if {guards[0]} else {function}({names[0]}))" if guards else f"{function}({names[0]})"

    def array_coerce(self, expr: ArrayCoerce, depth: int) -> str:
        """An element-wise cast."""
        inner = Layout(columns={(-1, 1): 0}, subplan=self.layout.subplan)
        element = self.name(compile_expr(expr.element, inner), "el")
        guards, names = self.operands((expr.arg,), depth)
        leaf = ", True" if _tuple_elements(expr.arg.type.oid) else ""
        source = f"{self.name(map_array, 'map')}({element}, {names[0]}, e{leaf})"
        return f"(None if {guards[0]} else {source})" if guards else f"({source})"

    def boolean(self, expr: BoolExpr, depth: int) -> str:
        """AND, OR, NOT as a value."""
        if expr.kind == "not":
            guards, names = self.operands(expr.args, depth)
            return f"(None if {guards[0]} else not {names[0]})" if guards else f"(not {names[0]})"
        if len(expr.args) > MAX_ARMS:
            chunks = [expr.args[i : i + MAX_ARMS] for i in range(0, len(expr.args), MAX_ARMS)]
            parts = [self.cut(replace(expr, args=c) if len(c) > 1 else c[0]) for c in chunks]
        else:
            parts = [self.value(arg, depth + 1 + i // 2) for i, arg in enumerate(expr.args)]
        stop = "False" if expr.kind == "and" else "True"
        end = "True" if expr.kind == "and" else "False"
        names = [self.temp() for _ in parts]
        chain = "".join(f"{stop} if ({n} := {p}) is {stop} else " for n, p in zip(names, parts, strict=True))
        nulls = " or ".join(f"{n} is None" for n in names)
        return f"({chain}None if {nulls} else {end})"

    def null_test(self, expr: NullTest, depth: int) -> str:
        """IS [NOT] NULL."""
        source = self.value(expr.arg, depth + 1)
        if _row_like(expr.arg.type.oid) or isinstance(expr.arg, RowExpr):
            function = row_not_null if expr.negated else row_null
            return f"{self.name(function, 'nul')}({source})"
        return f"({source} is {'not ' if expr.negated else ''}None)"

    def boolean_test(self, expr: BooleanTest, depth: int) -> str:
        """IS [NOT] TRUE, FALSE, UNKNOWN."""
        wanted = {"true": "True", "false": "False", "unknown": "None"}[expr.test]
        return f"({self.value(expr.arg, depth + 1)} is {'not ' if expr.negated else ''}{wanted})"

    def distinct(self, expr: DistinctExpr, depth: int) -> str:
        """IS [NOT] DISTINCT FROM."""
        left, right = self.temp(), self.temp()
        equal = self.operator(expr.proc, left, right, expr.left.type.oid, expr.right.type.oid)
        source = (
            f"(({right} is not None) if {left} is None else True if {right} is None else not {equal})"
            f" if [({left} := {self.value(expr.left, depth + 2)}), ({right} := {self.value(expr.right, depth + 2)})]"
            " else None"
        )
        return f"(not ({source}))" if expr.negated else f"({source})"

    def operator(self, proc: int, left: str, right: str, left_type: int, right_type: int) -> str:
        """Return the source of a call with two values that are not NULL."""
        template = inline_templates().get(proc)
        if template is not None:
            return f"({template.format(left, right, t=self.temp())})"
        from planner.types import SqlType

        args = (Param(type=SqlType(left_type), number=1), Param(type=SqlType(right_type), number=2))
        builtin, function = self.form(proc, args, False, None)
        first = "e.session, " if builtin.needs_session else ""
        return f"{self.name(function, 'f_')}({first}{left}, {right})"

    def null_if(self, expr: NullIf, depth: int) -> str:
        """NULLIF."""
        left, right = self.temp(), self.temp()
        equal = self.operator(expr.proc, left, right, expr.left.type.oid, expr.right.type.oid)
        return (
            f"(None if ({left} := {self.value(expr.left, depth + 1)}) is None else {left}"
            f" if ({right} := {self.value(expr.right, depth + 1)}) is None else None if {equal} else {left})"
        )

    def scalar_array(self, expr: ScalarArrayOp, depth: int) -> str:
        """``x op ANY/ALL (array)``."""
        elements = constant_elements(expr.array)
        simple = simple_equality(expr.proc)
        scalar = self.temp()
        source = self.value(expr.scalar, depth + 1)
        if simple and expr.use_any and elements is not None:
            members = self.name(frozenset(v for v in elements if v is not None), "in")
            missing = "None" if None in elements else "False"
            if not elements:
                return f"(False if [{source}] else None)"
            return (
                f"(None if ({scalar} := {source}) is None else True if {scalar} in {members} else {missing})"
            )
        array = self.temp()
        leaf = ", True" if _tuple_elements(expr.array.type.oid) else ""
        if isinstance(expr.array, ArrayExpr) and not expr.array.nested:
            listed = self.tuple_of(expr.array.elements)
        else:
            listed = self.value(expr.array, depth + 1)
        if simple and expr.use_any:
            helper = self.name(any_equal, "any")
            return f"(None if ({array} := {listed}) is None else {helper}({self.value(expr.scalar, depth + 1)}, {array}{leaf}))"
        element_type = facts().types.get(expr.array.type.oid)
        right_type = element_type.element if element_type is not None else 0
        call = self.operator(expr.proc, "x", "y", expr.scalar.type.oid, right_type)
        strict = getattr(facts().procs.get(expr.proc), "strict", True)
        function = f"h{len(self.helpers)}"
        guard = "None if x is None or y is None else " if strict else ""
        self.helpers.append(f"def {function}(x, y, e):\n    return {guard}{call}\n")
        helper = self.name(any_array if expr.use_any else all_array, "saop")
        return f"{helper}({function}, {source}, {listed}, e{leaf})"

    def case(self, expr: CaseExpr, depth: int) -> str:
        """CASE: conditional expressions, so that only the chosen arm is evaluated."""
        if len(expr.whens) > MAX_ARMS:
            rest = replace(expr, whens=expr.whens[MAX_ARMS:])
            default = self.cut(rest)
        else:
            default = self.value(expr.default, depth + 2)
        arms = "".join(
            f"{self.value(w.result, depth + 2)} if {self.test(w.condition, depth + 2)} else "
            for w in expr.whens[:MAX_ARMS]
        )
        return f"({arms}{default})"

    def coalesce(self, expr: CoalesceExpr, depth: int) -> str:
        """COALESCE."""
        source = ""
        for arg in expr.args[:-1]:
            temp = self.temp()
            source += f"{temp} if ({temp} := {self.value(arg, depth + 1)}) is not None else "
        return f"({source}{self.value(expr.args[-1], depth + 1)})"

    def min_max(self, expr: MinMaxExpr, depth: int) -> str:
        """GREATEST and LEAST."""
        call = self.operator(expr.lt, "x", "y", expr.type.oid, expr.type.oid)
        function = f"h{len(self.helpers)}"
        self.helpers.append(f"def {function}(x, y, e):\n    return {call}\n")
        helper = self.name(greatest if expr.greatest else least, "mm")
        return f"{helper}({function}, {self.tuple_of(expr.args)}, e)"

    def array(self, expr: ArrayExpr, depth: int) -> str:
        """ARRAY[...]."""
        source = self.tuple_of(expr.elements)
        return f"{self.name(nested_array, 'arr')}({source})" if expr.nested else source

    def row(self, expr: RowExpr, depth: int) -> str:
        """ROW(...): a record that knows its columns' types."""
        make = record_maker(tuple(f.type.oid for f in expr.fields), expr.names)
        return f"{self.name(make, 'row')}({self.tuple_of(expr.fields)})"

    def row_compare(self, expr: RowCompare, depth: int) -> str:
        """Lexicographic row comparison: NULL decides as soon as it is met."""
        strictly = expr.kind in ("<", ">")
        swap = expr.kind in (">", ">=")
        pairs = list(zip(expr.lefts, expr.rights, expr.lt_procs, expr.eq_procs, strict=True))
        source = "False" if strictly else "True"
        for left, right, lt_proc, eq_proc in reversed(pairs):
            a, b = self.temp(), self.temp()
            first, second = (b, a) if swap else (a, b)
            types = (right.type.oid, left.type.oid) if swap else (left.type.oid, right.type.oid)
            equal = self.operator(eq_proc, a, b, left.type.oid, right.type.oid)
            less = self.operator(lt_proc, first, second, *types)
            source = (
                f"(None if ({a} := {self.value(left, depth + 2)}) is None or"
                f" ({b} := {self.value(right, depth + 2)}) is None else {source} if {equal} else {less})"
            )
        return source

    def field_select(self, expr: FieldSelect, depth: int) -> str:
        """A field of a row value."""
        temp = self.temp()
        return f"(None if ({temp} := {self.value(expr.arg, depth + 1)}) is None else {temp}[{expr.index}])"

    def subscript(self, expr: Subscript, depth: int) -> str:
        """Array subscripts and slices."""
        bounds = self.bounds(expr.indexes, depth)
        array = self.value(expr.arg, depth + 1)
        fact = facts().types.get(expr.arg.type.oid)
        base = 0 if fact is not None and fact.name in ("int2vector", "oidvector", "name") else 1
        if fact is not None and fact.name == "jsonb":
            raise not_supported("subscripting of jsonb", span=expr.span)
        leaf = _tuple_elements(expr.arg.type.oid)
        if expr.is_slice:
            return f"{self.name(array_slice, 'sub')}({array}, ({bounds}), {base}, {leaf})"
        helper = self.name(leaf_item if leaf else array_item, "sub")
        return f"{helper}({array}, ({bounds}), {base})"

    def bounds(self, indexes: Sequence[tuple[Expr | None, Expr | None]], depth: int) -> str:
        """Return the source of (lower, upper) pairs; what was not written is ABSENT."""
        return "".join(
            f"({self.value(lo, depth + 1) if lo is not None else self.name(ABSENT, 'absent')}, "
            f"{self.value(hi, depth + 1) if hi is not None else self.name(ABSENT, 'absent')}), "
            for lo, hi in indexes
        )

    def array_assign(self, expr: ArrayAssign, depth: int) -> str:
        """An array with a part replaced."""
        array, value = self.value(expr.arg, depth + 1), self.value(expr.value, depth + 1)
        leaf = _tuple_elements(expr.type.oid)
        if expr.is_slice:
            bounds = self.bounds(expr.indexes, depth)
            return f"{self.name(assign_slice, 'set')}({array}, ({bounds}), {value}, {leaf})"
        subscripts = "".join(f"{self.value(hi, depth + 1)}, " for _, hi in expr.indexes if hi is not None)
        return f"{self.name(assign_item, 'set')}({array}, ({subscripts}), {value}, {leaf})"

    def setting(self, expr: CurrentSetting, depth: int) -> str:
        """CURRENT_USER and its kin."""
        from planner.builtins.casts import current_value

        return f"{self.name(current_value(expr.what, expr.type.typmod), 'cur')}(e.session)"

    def sublink(self, expr: SubLink, depth: int) -> str:
        """A sub-select: the executor's callable."""
        if self.layout.subplan is None:
            raise not_supported("a sub-select here", span=expr.span)
        return f"{self.name(self.layout.subplan(expr, self.layout), 'sp')}(r, e)"

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
                inner = expr.args[0]
                if isinstance(inner, SubLink | NullTest | BooleanTest | DistinctExpr):
                    return f"({self.value(inner, depth + 1)} is False)"
                return f"({self.value(inner, depth + 1)} is False)"
            joined = f" {expr.kind} ".join(f"({self.test(arg, depth + 1)})" for arg in expr.args)
            return f"({joined})"
        if isinstance(expr, OpExpr | FuncExpr):
            fact = facts().procs.get(expr.proc)
            template = inline_templates().get(expr.proc)
            if template is not None and fact is not None and fact.strict:
                guards, names = self.operands(expr.args, depth)
                parts = [g[: -len(" is None")] + " is not None" for g in guards]
                parts.append(f"({template.format(*names, t=self.temp())})")
                return f"({' and '.join(parts)})"
        if isinstance(expr, RelabelType):
            return self.test(expr.arg, depth)
        return self.value(expr, depth)


_VALUES: dict[type, Callable[[_Unit, Any, int], str]] = {
    Const: _Unit.const,
    Param: _Unit.param,
    Var: lambda unit, expr, depth: unit.var(expr),
    FuncExpr: _Unit.call,
    OpExpr: _Unit.call,
    RelabelType: _Unit.relabel,
    CoerceViaIO: _Unit.via_io,
    CoerceTypmod: _Unit.typmod,
    ArrayCoerce: _Unit.array_coerce,
    BoolExpr: _Unit.boolean,
    NullTest: _Unit.null_test,
    BooleanTest: _Unit.boolean_test,
    DistinctExpr: _Unit.distinct,
    NullIf: _Unit.null_if,
    ScalarArrayOp: _Unit.scalar_array,
    CaseExpr: _Unit.case,
    CoalesceExpr: _Unit.coalesce,
    MinMaxExpr: _Unit.min_max,
    ArrayExpr: _Unit.array,
    RowExpr: _Unit.row,
    RowCompare: _Unit.row_compare,
    FieldSelect: _Unit.field_select,
    Subscript: _Unit.subscript,
    ArrayAssign: _Unit.array_assign,
    CurrentSetting: _Unit.setting,
    SubLink: _Unit.sublink,
}


def _tuple_elements(array: int) -> bool:
    """Tell whether the values in arrays of this type are tuples themselves."""
    fact = facts().types.get(array)
    return fact is not None and fact.category == "A" and fact.element in _TUPLES


def _typed(function: Callable[..., Any], types: tuple[int, ...]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return function(*args, types=types)

    return call


def _spread(builtin: Builtin, function: Callable[..., Any], types: tuple[int, ...]) -> Callable[..., Any]:
    """Return the call for ``VARIADIC array`` of a function that takes VARIADIC "any"."""
    fact = facts().types.get(types[-1])
    element = fact.element if fact is not None else 0

    def call(*args: Any) -> Any:
        array = args[-1]
        if array is None:
            return None
        items = flat(array)
        if builtin.needs_types:
            return function(*args[:-1], *items, types=types[:-1] + (element,) * len(items))
        return function(*args[:-1], *items)

    return call


def constant_elements(expr: Expr) -> tuple[Any, ...] | None:
    """Return the elements of a constant one-dimensional array, or None when it is not constant."""
    if isinstance(expr, RelabelType):
        return constant_elements(expr.arg)
    if isinstance(expr, Const) and isinstance(expr.value, tuple):
        return flat(expr.value, _tuple_elements(expr.type.oid))
    if isinstance(expr, ArrayExpr) and not expr.nested and all(isinstance(x, Const) for x in expr.elements):
        return tuple(cast("Const", x).value for x in expr.elements)
    return None
