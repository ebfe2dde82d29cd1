"""Generated callables: three-valued logic, guards, depth, and agreement of inlined operators with their forms."""

from __future__ import annotations

import itertools
from types import CodeType
from typing import Any

import pytest

from pgwire.codecs.errors import DataError
from planner.base.errors import SqlError
from planner.evaluate import (
    Env,
    Layout,
    Shared,
    Suspend,
    compile_expr,
    compile_filter,
    compile_map,
    compile_predicate,
    compile_row,
    evaluate_constant,
)
from planner.evaluate import unit as evaluate_unit
from planner.facts import BOOL, INT4, TEXT, facts
from planner.functions import load
from planner.functions.inline import inline_templates
from planner.query import (
    BoolExpr,
    CaseExpr,
    CaseWhen,
    CoalesceExpr,
    Const,
    Expr,
    FuncExpr,
    NullTest,
    OpExpr,
    Param,
    ScalarArrayOp,
    SubLink,
    SubLinkKind,
    Values,
    Var,
)
from planner.types import SqlType

INT, BOOLEAN, STRING = SqlType(INT4), SqlType(BOOL), SqlType(TEXT)
LAYOUT = Layout(columns={(0, 1): 0, (0, 2): 1})


def col(n: int, type_: SqlType = INT) -> Var:
    return Var(type=type_, range=0, attnum=n)


def const(value: object, type_: SqlType = INT) -> Const:
    return Const(type=type_, value=value)


def op(signature: str, *args: Expr, result: SqlType = INT) -> OpExpr:
    proc = facts().proc_by_signature[signature]
    return OpExpr(type=result, op=0, proc=proc, args=args)


def equal(a: Expr, b: Expr) -> OpExpr:
    return op("int4eq(int4,int4)", a, b, result=BOOLEAN)


def divide(a: Expr, b: Expr) -> OpExpr:
    return op("int4div(int4,int4)", a, b)


def value(expr: Expr, *row: object, params: tuple[object, ...] = ()) -> Any:
    return compile_expr(expr, LAYOUT)(row, Env(params, shared=Shared()))


@pytest.mark.parametrize("kind", ["and", "or"])
def test_and_or_follow_the_three_valued_tables(kind: str) -> None:
    for a, b in itertools.product((True, False, None), repeat=2):
        expr = BoolExpr(type=BOOLEAN, kind=kind, args=(col(1, BOOLEAN), col(2, BOOLEAN)))  # type: ignore[arg-type]
        if kind == "and":
            want = False if a is False or b is False else None if a is None or b is None else True
        else:
            want = True if a is True or b is True else None if a is None or b is None else False
        assert value(expr, a, b) is want
        assert bool(compile_predicate((expr,), LAYOUT)((a, b), Env())) is (want is True)


def test_not_of_null_is_null_and_no_match() -> None:
    expr = BoolExpr(type=BOOLEAN, kind="not", args=(col(1, BOOLEAN),))
    assert value(expr, None) is None
    assert not compile_predicate((expr,), LAYOUT)((None,), Env())
    assert compile_predicate((expr,), LAYOUT)((False,), Env())


def test_case_coalesce_and_or_evaluate_only_what_they_need() -> None:
    bomb = divide(const(1), const(0))
    blast = equal(bomb, const(1))
    case = CaseExpr(
        type=INT,
        whens=(CaseWhen(condition=equal(col(1), const(0)), result=const(7)),),
        default=divide(const(10), col(1)),
    )
    assert value(case, 0) == 7
    assert value(case, 5) == 2
    assert value(CoalesceExpr(type=INT, args=(col(1), bomb)), 3) == 3
    assert value(BoolExpr(type=BOOLEAN, kind="and", args=(const(False, BOOLEAN), blast))) is False
    assert value(BoolExpr(type=BOOLEAN, kind="or", args=(const(True, BOOLEAN), blast))) is True
    with pytest.raises(SqlError) as caught:
        value(bomb)
    assert caught.value.sqlstate == "22012"


def test_a_case_of_constants_takes_the_first_equal_one_and_null_takes_none() -> None:
    def case(*arms: tuple[Expr, Expr], default: Expr) -> CaseExpr:
        whens = tuple(CaseWhen(condition=condition, result=result) for condition, result in arms)
        return CaseExpr(type=INT, whens=whens, default=default)

    arms = [(equal(col(1), const(n)), const(n * 10)) for n in (1, 2)] + [(equal(col(1), const(2)), const(99))]
    guarded = case(*arms, default=divide(const(7), col(2)))
    assert [value(guarded, n, 1) for n in (1, 2, 3, None)] == [10, 20, 7, 7]
    assert value(guarded, 2, 0) == 20  # what ELSE divides by is not looked at
    other = case(*arms, (equal(col(2), const(3)), const(30)), default=const(None))
    assert [value(other, *row) for row in ((2, 3), (5, 3), (5, 5), (None, 3))] == [20, 30, None, 30]
    unknown = case(*arms, (equal(col(1), const(None)), const(1)), default=const(0))
    assert [value(unknown, n, 0) for n in (1, None, 5)] == [10, 0, 0]


def test_strict_functions_are_not_called_with_null() -> None:
    assert value(divide(col(1), const(0)), None) is None
    assert value(op("int4pl(int4,int4)", col(1), col(2)), 1, None) is None


def test_values_never_become_source_text() -> None:
    hostile = "'); raise SystemExit('"
    assert value(const(hostile, STRING)) == hostile
    assert (
        value(op("textcat(text,text)", const(hostile, STRING), col(1, STRING), result=STRING), "x")
        == hostile + "x"
    )


def test_deep_expressions_compile() -> None:
    expr: Expr = col(1)
    for _ in range(150):
        expr = op("int4pl(int4,int4)", expr, const(1))
    assert value(expr, 5) == 155
    test: Expr = equal(col(1), const(0))
    for n in range(150):
        kind = "or" if n % 2 else "and"
        test = BoolExpr(type=BOOLEAN, kind=kind, args=(test, equal(col(1), const(n))))  # type: ignore[arg-type]
    assert value(test, 149) is True


def test_too_deep_expressions_are_refused() -> None:
    expr: Expr = col(1)
    for _ in range(5000):
        expr = op("int4pl(int4,int4)", expr, const(1))
    with pytest.raises(SqlError) as caught:
        compile_expr(expr, Layout(columns={(0, 1): 0}))
    assert caught.value.sqlstate == "54001"


def test_wide_expressions_compile() -> None:
    terms = tuple(equal(col(1), const(n)) for n in range(3000))
    expr = BoolExpr(type=BOOLEAN, kind="or", args=terms)
    assert value(expr, 2999) is True
    assert value(expr, None) is None
    assert len(compile_filter((expr,), LAYOUT)([(1,), (-1,), (None,)], Env())) == 1
    whens = tuple(CaseWhen(condition=equal(col(1), const(n)), result=const(-n)) for n in range(200))
    assert value(CaseExpr(type=INT, whens=whens, default=const(None)), 199) == -199


def test_many_columns_side_by_side_are_taken_as_a_slice() -> None:
    layout = Layout(columns={(0, n): n - 1 for n in range(1, 41)})
    row = tuple(range(1, 41))
    for wanted in (
        [*range(3, 38)],
        [1, *range(1, 41), 40],
        [*range(40, 0, -1)],
        [*range(1, 20), *range(18, 41), 2],
    ):
        assert list(compile_row([col(n) for n in wanted], layout)(row, Env())) == wanted


def test_membership_knows_null() -> None:
    array = Const(type=SqlType(1007), value=(1, 2, None))
    expr = ScalarArrayOp(
        type=BOOLEAN,
        op=96,
        proc=facts().proc_by_signature["int4eq(int4,int4)"],
        use_any=True,
        scalar=col(1),
        array=array,
    )
    assert [value(expr, n) for n in (1, 3, None)] == [True, None, None]
    empty = ScalarArrayOp(
        type=BOOLEAN,
        op=96,
        proc=expr.proc,
        use_any=True,
        scalar=col(1),
        array=Const(type=SqlType(1007), value=()),
    )
    assert value(empty, None) is False


def test_parameters_and_outer_rows_come_from_the_env() -> None:
    layout = Layout(outer=Layout(columns={(3, 2): 1}, outer=Layout(columns={(0, 9): 0})))
    grandparent = Env(("p",), row=())
    parent = Env(("p",), row=("far",), parent=grandparent)
    env = Env(("p",), row=(0, "near"), parent=parent)
    near = Var(type=STRING, range=3, attnum=2, level=1)
    far = Var(type=STRING, range=0, attnum=9, level=2)
    assert compile_expr(near, layout)((), env) == "near"
    assert compile_expr(far, layout)((), env) == "far"
    assert compile_expr(Param(type=STRING, number=1), layout)((), env) == "p"


def test_an_expression_computed_below_is_not_computed_again() -> None:
    bomb = divide(const(1), const(0))
    layout = Layout(exprs={bomb: 0})
    assert compile_expr(NullTest(type=BOOLEAN, arg=bomb), layout)((4,), Env()) is False


def test_replayed_volatile_calls_give_the_same_value_again() -> None:
    shared = Shared()
    numbers = iter(range(10))
    first = [shared.call(lambda: next(numbers)), shared.call(lambda: next(numbers))]
    shared.restart()
    assert [shared.call(lambda: next(numbers)), shared.call(lambda: next(numbers))] == first
    shared.finish()
    assert shared.call(lambda: next(numbers)) == 2


def test_sleeping_asks_the_executor() -> None:
    proc = facts().proc_by_signature["pg_sleep(float8)"]
    expr = FuncExpr(type=SqlType(2278), proc=proc, args=(Const(type=SqlType(701), value=1.5),))
    function = compile_expr(expr)
    assert function.may_suspend
    with pytest.raises(Suspend) as caught:
        function((), Env(shared=Shared()))
    assert (caught.value.kind, caught.value.argument) == ("sleep", 1.5)


def test_sub_selects_without_an_executor_are_refused() -> None:
    link = SubLink(type=INT, kind=SubLinkKind.SCALAR, query=Values(columns=(), rows=()))
    with pytest.raises(SqlError) as caught:
        compile_expr(link)
    assert caught.value.sqlstate == "0A000"


SAMPLES: dict[str, tuple[Any, ...]] = {
    "bool": (True, False), "int2": (0, -1, 32767, -32768), "int4": (0, 7, 2**31 - 1, -(2**31)),
    "int8": (0, -3, 2**63 - 1, -(2**63)), "oid": (0, 4294967295), "text": ("", "a", "Z", "ä", "ab"),
    "name": ("", "a", "b"), "char": ("", "a", "z"), "bytea": (b"", b"\x00", b"\xff"), "date": (0, -5, 2**31 - 1),
    "time": (0, 86_400_000_000), "timestamp": (0, -1, 2**63 - 1), "timestamptz": (0, 5), "uuid": (b"\0" * 16, b"\1" * 16),
}  # fmt: skip


@pytest.mark.parametrize("proc", sorted(inline_templates()))
def test_inlined_operators_do_what_their_python_forms_do(proc: int) -> None:
    fact = facts().procs[proc]
    row = load().functions.get(proc)
    assert fact.strict
    if row is None or row.python is None:
        pytest.skip(f"{facts().signature(proc)} has no Python form to compare with")
    left, right = (facts().types[t].name for t in fact.arg_types)
    args = (col(1, SqlType(fact.arg_types[0])), col(2, SqlType(fact.arg_types[1])))
    compiled = compile_expr(OpExpr(type=SqlType(fact.result), op=0, proc=proc, args=args), LAYOUT)

    def outcome(function: Any, *call: Any) -> Any:
        try:
            return function(*call)
        except DataError as error:
            return error.sqlstate, error.message

    for a, b in itertools.product(SAMPLES[left], SAMPLES[right]):
        assert outcome(compiled, (a, b), Env()) == outcome(row.python, a, b)
    assert compiled((None, SAMPLES[right][0]), Env()) is None


def test_constants_evaluate_without_a_row() -> None:
    assert evaluate_constant(op("int4mul(int4,int4)", const(6), const(7))) == 42


@pytest.mark.parametrize("count", [24, 25, 577, 1200])
def test_long_expressions_are_compiled_in_parts(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def noted(source: str, filename: str) -> CodeType:
        sizes.append(len(source))
        return compile(source, filename, "exec")

    monkeypatch.setattr(evaluate_unit, "_compiled", noted)
    layout = Layout(columns={(0, n): n - 1 for n in range(1, count + 1)})
    add = "int4pl(int4,int4)"
    sums = [op(add, col(n), op(add, col(n), col(n))) for n in range(1, count + 1)]
    row = tuple(range(count))
    assert compile_row(sums, layout)(row, Env(())) == tuple(3 * value for value in row)
    first = CoalesceExpr(type=INT, args=tuple(sums))
    for known in {0, 1, count // 2, count - 1}:
        values: list[Any] = [None] * count
        values[known] = known
        assert compile_expr(first, layout)(tuple(values), Env(())) == 3 * known
    assert compile_expr(first, layout)((None,) * count, Env(())) is None
    assert max(sizes) < 4 * evaluate_unit.AT_ONCE


@pytest.mark.timeout(60)
def test_calls_that_are_long_themselves_are_put_together() -> None:
    # a row of a thousand pieces is that many arguments of each function that is cut off
    pieces = tuple({(n, 1): 0} for n in range(1000))
    row = compile_map([Var(type=INT, range=n, attnum=1) for n in range(1000)] * 3, Layout(pieces=pieces))
    assert row([tuple((n,) for n in range(1000))], Env(())) == [tuple(range(1000)) * 3]
