"""How each class of bound expression becomes Python source: one function per node of the Query tree.

``planner.evaluate.unit`` has the unit they write to; importing this module completes it. A function returns a source
that evaluates to the expression's value, None for NULL. What comes from the unit by ``name`` is a helper or a constant.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pgwire.bounded import bounded
from pgwire.codecs.domain import TUPLE_TYPES, VECTORS
from pgwire.codecs.system import RecordValue
from pgwire.codecs.users.composite import pack_row, record_of
from planner.base.arrays import flat
from planner.base.errors import not_supported
from planner.base.suspend import Suspend
from planner.conversion.domain_checks import DomainCheck
from planner.evaluate.assign import assign_item, assign_slice, bounds_given, subscripts_given
from planner.evaluate.assign_keys import assign_member, assign_pair, keys_given
from planner.evaluate.coordinates import assign_coordinate, coordinate
from planner.evaluate.env import Env, Layout
from planner.evaluate.runtime import (
    ABSENT,
    all_array,
    any_array,
    any_equal,
    array_item,
    array_slice,
    greatest,
    leaf_item,
    least,
    map_array,
    nested_array,
    record_maker,
    row_not_null,
    row_null,
)
from planner.evaluate.unit import NODES, Unit, value_function
from planner.facts import HSTORE, INT4, JSONB, OID, RECORD, facts
from planner.functions.inline import simple_equality, simple_inequality
from planner.functions.values.casts import current_value, io_cast, typmod_cast
from planner.functions.values.reg import REG_TYPES
from planner.query import (
    ArrayAssign,
    ArrayCoerce,
    ArrayExpr,
    BooleanTest,
    BoolExpr,
    CaseExpr,
    CoalesceExpr,
    CoerceToDomain,
    CoerceTypmod,
    CoerceViaIO,
    CollateExpr,
    ComposeRow,
    Const,
    CurrentSetting,
    CursorValue,
    DecomposeRow,
    DistinctExpr,
    Expr,
    FieldSelect,
    FuncExpr,
    MinMaxExpr,
    NullIf,
    NullTest,
    OpExpr,
    Param,
    RelabelType,
    RowCompare,
    RowExpr,
    SampleKey,
    ScalarArrayOp,
    SqlCall,
    SubLink,
    Subscript,
    Var,
)
from planner.query.sampling import random_start, sample_key, start_of
from planner.types.facts import coordinates_of

_TUPLES = TUPLE_TYPES - {RECORD}  # records are told from arrays by their class
MAX_ARMS = 24  # arms of CASE / AND / OR in one generated chain
_OIDS = frozenset((OID, *REG_TYPES))


def _row_like(oid: int) -> bool:
    return oid == RECORD


def _tuple_elements(array: int) -> bool:
    """Tell whether the values in arrays of this type are tuples themselves."""
    fact = facts().types.get(array)
    return fact is not None and fact.category == "A" and fact.element in _TUPLES


def _constant_elements(expr: Expr) -> tuple[Any, ...] | None:
    """Return the elements of a constant one-dimensional array, or None when it is not constant."""
    if isinstance(expr, RelabelType):
        return _constant_elements(expr.arg)
    if isinstance(expr, Const) and isinstance(expr.value, tuple):
        return flat(expr.value, _tuple_elements(expr.type.oid))
    if isinstance(expr, ArrayExpr) and not expr.nested and all(isinstance(x, Const) for x in expr.elements):
        return tuple(cast("Const", x).value for x in expr.elements)
    return None


def _const(unit: Unit, expr: Const, depth: int) -> str:
    """A constant."""
    value = expr.value
    if value is None or value is True or value is False:
        return repr(value)
    return unit.name(value)


def _param(unit: Unit, expr: Param, depth: int) -> str:
    """A parameter."""
    return f"e.params[{expr.number - 1}]"


def _call(unit: Unit, expr: FuncExpr | OpExpr, depth: int) -> str:
    """A function or operator call."""
    return unit.apply(expr.proc, expr.args, depth, variadic=getattr(expr, "variadic", False), expr=expr)


def _collate(unit: Unit, expr: CollateExpr, depth: int) -> str:
    """COLLATE: all collations compare alike."""
    return unit.value(expr.arg, depth)


def _relabel(unit: Unit, expr: RelabelType, depth: int) -> str:
    """A binary-coercible cast."""
    source, target = expr.arg.type.oid, expr.type.oid
    if INT4 in (source, target) and source != target and (source in _OIDS or target in _OIDS):
        # the same four bytes, read as signed or unsigned
        null, names = unit.operands((expr.arg,), depth)
        same = f"{names[0]} & 4294967295"
        if target == INT4:
            same = f"({names[0]} + 2147483648 & 4294967295) - 2147483648"
        return f"(None if {null} else {same})" if null else f"({same})"
    if source in VECTORS and target not in VECTORS:
        null, names = unit.operands((expr.arg,), depth)
        same = f"{unit.name(bounded, 'bounded')}({names[0]}, (0,))"  # an array as others, which begins at 0
        return f"(None if {null} else {same})" if null else f"({same})"
    return unit.value(expr.arg, depth)


def _via_io(unit: Unit, expr: CoerceViaIO, depth: int) -> str:
    """A cast through text."""
    null, names = unit.operands((expr.arg,), depth)
    function = unit.name(io_cast(expr.arg.type.oid, expr.type.oid), "io")
    source = unit.watched(f"{function}({names[0]}, e.session)", expr.type.oid)
    return f"(None if {null} else {source})" if null else f"({source})"


def _typmod(unit: Unit, expr: CoerceTypmod, depth: int) -> str:
    """A length or precision coercion."""
    null, names = unit.operands((expr.arg,), depth)
    function = unit.name(typmod_cast(expr.type.oid, expr.type.typmod, expr.explicit), "tm")
    source = unit.watched(f"{function}({names[0]})", expr.type.oid)
    return f"(None if {null} else {source})" if null else f"({source})"


def _to_domain(unit: Unit, expr: CoerceToDomain, depth: int) -> str:
    """A cast to a domain, whose constraints are those of the session's catalog."""
    check = unit.name(DomainCheck(expr.domain), "dom")
    return f"{check}({unit.value(expr.arg, depth + 1)}, e.session)"


def _array_coerce(unit: Unit, expr: ArrayCoerce, depth: int) -> str:
    """An element-wise cast."""
    inner = Layout(columns={(-1, 1): 0}, subplan=unit.layout.subplan)
    element = unit.name(value_function(expr.element, inner), "el")
    null, names = unit.operands((expr.arg,), depth)
    leaf = ", True" if _tuple_elements(expr.arg.type.oid) else ""
    array = names[0]
    if expr.arg.type.oid in VECTORS:
        array = f"{unit.name(bounded, 'bounded')}({array}, (0,))"
    source = f"{unit.name(map_array, 'map')}({element}, {array}, e{leaf})"
    return f"(None if {null} else {source})" if null else f"({source})"


def _chunks(args: Sequence[Expr]) -> list[tuple[Expr, ...]]:
    """Return arguments in chunks, no more than arms."""
    size = max(MAX_ARMS, -(-len(args) // MAX_ARMS))
    return [tuple(args[i : i + size]) for i in range(0, len(args), size)]


def _boolean(unit: Unit, expr: BoolExpr, depth: int) -> str:
    """AND, OR, NOT as a value."""
    if expr.kind == "not":
        null, names = unit.operands(expr.args, depth)
        return f"(None if {null} else not {names[0]})" if null else f"(not {names[0]})"
    if len(expr.args) > MAX_ARMS:
        parts = [unit.cut(replace(expr, args=c) if len(c) > 1 else c[0]) for c in _chunks(expr.args)]
    else:
        parts = [unit.value(arg, depth + 1 + i // 2) for i, arg in enumerate(expr.args)]
    stop = "False" if expr.kind == "and" else "True"
    end = "True" if expr.kind == "and" else "False"
    names = [unit.temp() for _ in parts]
    chain = "".join(f"{stop} if ({n} := {p}) is {stop} else " for n, p in zip(names, parts, strict=True))
    nulls = " or ".join(f"{n} is None" for n in names)
    return f"({chain}None if {nulls} else {end})"


def _null_test(unit: Unit, expr: NullTest, depth: int) -> str:
    """IS [NOT] NULL."""
    source = unit.value(expr.arg, depth + 1)
    if not expr.whole and (_row_like(expr.arg.type.oid) or isinstance(expr.arg, RowExpr)):
        function = row_not_null if expr.negated else row_null
        return f"{unit.name(function, 'nul')}({source})"
    return f"({source} is {'not ' if expr.negated else ''}None)"


def _boolean_test(unit: Unit, expr: BooleanTest, depth: int) -> str:
    """IS [NOT] TRUE, FALSE, UNKNOWN."""
    wanted = {"true": "True", "false": "False", "unknown": "None"}[expr.test]
    return f"({unit.value(expr.arg, depth + 1)} is {'not ' if expr.negated else ''}{wanted})"


def _distinct(unit: Unit, expr: DistinctExpr, depth: int) -> str:
    """IS [NOT] DISTINCT FROM."""
    left, right = unit.temp(), unit.temp()
    equal = unit.operator(expr.proc, left, right, expr.left.type.oid, expr.right.type.oid)
    source = (
        f"(({right} is not None) if {left} is None else True if {right} is None else not {equal})"
        f" if [({left} := {unit.value(expr.left, depth + 2)}), ({right} := {unit.value(expr.right, depth + 2)})]"
        " else None"
    )
    return f"(not ({source}))" if expr.negated else f"({source})"


def _null_if(unit: Unit, expr: NullIf, depth: int) -> str:
    """NULLIF."""
    left, right = unit.temp(), unit.temp()
    equal = unit.operator(expr.proc, left, right, expr.left.type.oid, expr.right.type.oid)
    return (
        f"({left} if (({left} := {unit.value(expr.left, depth + 1)}) is None)"
        f" | (({right} := {unit.value(expr.right, depth + 1)}) is None) else None if {equal} else {left})"
    )


def _scalar_array(unit: Unit, expr: ScalarArrayOp, depth: int) -> str:
    """``x op ANY/ALL (array)``."""
    elements = _constant_elements(expr.array)
    simple = simple_equality(expr.proc)
    scalar = unit.temp()
    source = unit.value(expr.scalar, depth + 1)
    if elements is not None and (simple if expr.use_any else simple_inequality(expr.proc)):
        found, missing = (True, False) if expr.use_any else (False, True)
        if not elements:
            return f"({missing} if [{source}] else None)"
        members = unit.name(frozenset(v for v in elements if v is not None), "in")
        unknown = "None" if None in elements else missing
        return (
            f"(None if ({scalar} := {source}) is None else {found} if {scalar} in {members} else {unknown})"
        )
    leaf = ", True" if _tuple_elements(expr.array.type.oid) else ""
    if isinstance(expr.array, ArrayExpr) and not expr.array.nested:
        listed = unit.tuple_of(expr.array.elements)
    else:
        listed = unit.value(expr.array, depth + 1)
    if simple and expr.use_any:
        helper = unit.name(any_equal, "any")
        return f"{helper}({source}, {listed}{leaf})"
    element_type = facts().types.get(expr.array.type.oid)
    right_type = element_type.element if element_type is not None else 0
    call = unit.operator(expr.proc, "x", "y", expr.scalar.type.oid, right_type)
    strict = getattr(facts().procs.get(expr.proc), "strict", True)
    function = f"h{len(unit.helpers)}"
    guard = "None if x is None or y is None else " if strict else ""
    unit.helpers.append(f"def {function}(x, y, e):\n    return {guard}{call}\n")
    helper = unit.name(any_array if expr.use_any else all_array, "saop")
    return f"{helper}({function}, {source}, {listed}, e{leaf})"


def _case(unit: Unit, expr: CaseExpr, depth: int) -> str:
    """CASE: conditional expressions, so that only the chosen arm is evaluated; a dictionary where all arms
    are constants.
    """
    subject, constants = _constant_arms(expr)
    if subject is not None:
        found, temp = unit.name(constants, "case"), unit.temp()
        default = unit.value(expr.default, depth + 2)
        return f"({found}[{temp}] if ({temp} := {unit.value(subject, depth + 2)}) in {found} else {default})"
    if len(expr.whens) > MAX_ARMS:
        rest = replace(expr, whens=expr.whens[MAX_ARMS:])
        default = unit.cut(rest)
    else:
        default = unit.value(expr.default, depth + 2)
    arms = "".join(
        f"{unit.value(w.result, depth + 2)} if {unit.test(w.condition, depth + 2)} else "
        for w in expr.whens[:MAX_ARMS]
    )
    return f"({arms}{default})"


def _constant_arms(expr: CaseExpr) -> tuple[Expr | None, dict[Any, Any]]:
    """Return what ``CASE x WHEN 'a' THEN 'b' ...`` compares, and its results by the values; (None, ...) for
    other CASEs.
    """
    subject: Expr | None = None
    results: dict[Any, Any] = {}
    for when in expr.whens:
        condition, result = when.condition, when.result
        if not isinstance(condition, OpExpr) or not isinstance(result, Const) or len(condition.args) != 2:
            return None, results
        left, right = condition.args
        if not isinstance(right, Const) or right.value is None or not simple_equality(condition.proc):
            return None, results
        if not isinstance(left, Var) or (subject is not None and subject != left):
            return None, results
        subject = left
        results.setdefault(right.value, result.value)
    return (subject if len(results) > 1 else None), results


def _coalesce(unit: Unit, expr: CoalesceExpr, depth: int) -> str:
    """COALESCE; of very many, groups in functions of their own."""
    args: Sequence[Expr] = expr.args
    if len(args) > MAX_ARMS:
        args = [replace(expr, args=some) if len(some) > 1 else some[0] for some in _chunks(args)]
    source = ""
    for arg in args[:-1]:
        temp = unit.temp()
        source += f"{temp} if ({temp} := {unit.value(arg, depth + 1)}) is not None else "
    return f"({source}{unit.value(args[-1], depth + 1)})"


def _min_max(unit: Unit, expr: MinMaxExpr, depth: int) -> str:
    """GREATEST and LEAST."""
    call = unit.operator(expr.lt, "x", "y", expr.type.oid, expr.type.oid)
    function = f"h{len(unit.helpers)}"
    unit.helpers.append(f"def {function}(x, y, e):\n    return {call}\n")
    helper = unit.name(greatest if expr.greatest else least, "mm")
    return f"{helper}({function}, {unit.tuple_of(expr.args)}, e)"


def _array(unit: Unit, expr: ArrayExpr, depth: int) -> str:
    """ARRAY[...]; one of constants is a constant."""
    if not expr.nested and expr.elements and all(isinstance(x, Const) for x in expr.elements):
        return unit.name(tuple(cast("Const", x).value for x in expr.elements))
    source = unit.tuple_of(expr.elements)
    leaf = ", True" if _tuple_elements(expr.type.oid) else ""
    return f"{unit.name(nested_array, 'arr')}({source}{leaf})" if expr.nested else source


def _row(unit: Unit, expr: RowExpr, depth: int) -> str:
    """ROW(...): a record that knows its columns' types."""
    fields = expr.fields
    typmods = tuple(f.type.typmod for f in fields) if any(f.type.typmod >= 0 for f in fields) else ()
    make = record_maker(tuple(f.type.oid for f in fields), expr.names, typmods)
    return f"{unit.name(make, 'row')}({unit.tuple_of(expr.fields)})"


@functools.cache
def _three_way() -> dict[int, int]:
    """Return for the equality of records and arrays what tells their order."""
    by_signature = facts().proc_by_signature
    return {
        by_signature["record_eq(record,record)"]: by_signature["btrecordcmp(record,record)"],
        by_signature["array_eq(anyarray,anyarray)"]: by_signature["btarraycmp(anyarray,anyarray)"],
    }


def _row_compare(unit: Unit, expr: RowCompare, depth: int) -> str:
    """Lexicographic row comparison: NULL decides as soon as it is met."""
    strictly = expr.kind in ("<", ">")
    swap = expr.kind in (">", ">=")
    pairs = list(zip(expr.lefts, expr.rights, expr.lt_procs, expr.eq_procs, strict=True))
    source = "False" if strictly else "True"
    for left, right, lt_proc, eq_proc in reversed(pairs):
        a, b = unit.temp(), unit.temp()
        first, second = (b, a) if swap else (a, b)
        types = (right.type.oid, left.type.oid) if swap else (left.type.oid, right.type.oid)
        compare = _three_way().get(eq_proc)  # of what may lack an order, whose error is told
        equal = unit.operator(compare or eq_proc, a, b, left.type.oid, right.type.oid)
        equal = equal if compare is None else f"{equal} == 0"
        less = unit.operator(lt_proc, first, second, *types)
        source = (
            f"(None if (({a} := {unit.value(left, depth + 2)}) is None) |"
            f" (({b} := {unit.value(right, depth + 2)}) is None) else {source} if {equal} else {less})"
        )
    return source


def _field_select(unit: Unit, expr: FieldSelect, depth: int) -> str:
    """A field of a row value."""
    temp = unit.temp()
    return f"(None if ({temp} := {unit.value(expr.arg, depth + 1)}) is None else {temp}[{expr.index}])"


def _compose(unit: Unit, expr: ComposeRow, depth: int) -> str:
    """A row as a value of a composite type."""

    def pack(values: Sequence[Any]) -> bytes:
        return pack_row(values, expr.slots, expr.types, expr.width)

    temp = unit.temp()
    return f"(None if ({temp} := {unit.value(expr.arg, depth + 1)}) is None else {unit.name(pack, 'pack')}({temp}))"


def _decompose(unit: Unit, expr: DecomposeRow, depth: int) -> str:
    """A value of a composite type as an anonymous row."""

    def unpack(value: bytes) -> RecordValue:
        return record_of(value, expr.slots, expr.types, expr.names)

    temp = unit.temp()
    return f"(None if ({temp} := {unit.value(expr.arg, depth + 1)}) is None else {unit.name(unpack, 'unpack')}({temp}))"


def _subscript(unit: Unit, expr: Subscript, depth: int) -> str:
    """Array subscripts and slices; those of a NULL are not computed."""
    bounds = _bounds(unit, expr.indexes, depth)
    null, (array,) = unit.operands((expr.arg,), depth)
    return (
        f"(None if {null} else {_part(unit, expr, array, bounds)})"
        if null
        else _part(unit, expr, array, bounds)
    )


def _part(unit: Unit, expr: Subscript, array: str, bounds: str) -> str:
    part, count = coordinates_of(expr.arg.type.oid)
    if part:
        return f"{unit.name(coordinate, 'sub')}({array}, ({bounds}), {count})"
    fact = facts().types.get(expr.arg.type.oid)
    base = 0 if fact is not None and fact.name in ("int2vector", "oidvector", "name") else 1
    if fact is not None and fact.name == "jsonb":
        raise not_supported("subscripting of jsonb", span=expr.span)
    leaf = _tuple_elements(expr.arg.type.oid)
    if expr.is_slice:
        return f"{unit.name(array_slice, 'sub')}({array}, ({bounds}), {base}, {leaf})"
    helper = unit.name(leaf_item if leaf else array_item, "sub")
    return f"{helper}({array}, ({bounds}), {base})"


def _bounds(unit: Unit, indexes: Sequence[tuple[Expr | None, Expr | None]], depth: int) -> str:
    """Return the source of (lower, upper) pairs; what was not written is ABSENT."""
    return "".join(
        f"({unit.value(lo, depth + 1) if lo is not None else unit.name(ABSENT, 'absent')}, "
        f"{unit.value(hi, depth + 1) if hi is not None else unit.name(ABSENT, 'absent')}), "
        for lo, hi in indexes
    )


def _array_assign(unit: Unit, expr: ArrayAssign, depth: int) -> str:
    """An array, or a value of keys, with a part replaced; subscripts are looked at before the value is computed."""
    array, value = unit.value(expr.arg, depth + 1), unit.value(expr.value, depth + 1)
    leaf = _tuple_elements(expr.type.oid)
    part, count = coordinates_of(expr.type.oid)
    if part:
        bounds = f"{unit.name(bounds_given, 'given')}(({_bounds(unit, expr.indexes, depth)}))"
        return f"{unit.name(assign_coordinate, 'set')}({array}, {bounds}, {value}, {count})"
    if expr.is_slice:
        bounds = f"{unit.name(bounds_given, 'given')}(({_bounds(unit, expr.indexes, depth)}))"
        return f"{unit.name(assign_slice, 'set')}({array}, {bounds}, {value}, {leaf})"
    subscripts = "".join(f"{unit.value(hi, depth + 1)}, " for _, hi in expr.indexes if hi is not None)
    if expr.type.oid == HSTORE:
        return f"{unit.name(assign_pair, 'set')}({array}, {subscripts}{value})"
    if expr.type.oid == JSONB:
        first = expr.indexes[0][1]
        numbered = first is not None and first.type.oid == INT4
        given = f"{unit.name(keys_given, 'given')}(({subscripts}))"
        return f"{unit.name(assign_member, 'set')}({array}, {given}, {value}, {numbered})"
    given = f"{unit.name(subscripts_given, 'given')}(({subscripts}))"
    return f"{unit.name(assign_item, 'set')}({array}, {given}, {value}, {leaf})"


def _setting(unit: Unit, expr: CurrentSetting, depth: int) -> str:
    """CURRENT_USER and its kin."""
    return f"{unit.name(current_value(expr.what, expr.type.typmod), 'cur')}(e.session)"


def _cursor_value(unit: Unit, expr: CursorValue, depth: int) -> str:
    """A column of the row that a cursor stands on."""
    asked = (expr.table, expr.table_name, expr.attnum)
    named = repr(expr.cursor)
    if expr.variable is not None:
        null, [value] = unit.operands((expr.variable,), depth)
        named = f"({value})" if not null else f"(None if {null} else {value})"
    return f"e.session.system.cursor_value({named}, *{unit.name(asked, 'cur')})"


def _sample_key(unit: Unit, expr: SampleKey, depth: int) -> str:
    """What a sample is chosen by."""

    def made(env: Env, percent: float | None, seed: float | None) -> int:
        return sample_key(percent, None if seed is None else start_of(seed))

    def drawn(env: Env, percent: float | None) -> int:
        if env.session is None:
            raise not_supported("a random sample without a session")
        return sample_key(percent, random_start(env.session.random_bytes(8)))

    percent = unit.value(expr.percent, depth + 1)
    if expr.seed is None:
        return f"{unit.name(drawn, 'sample')}(e, {percent})"
    return f"{unit.name(made, 'sample')}(e, {percent}, {unit.value(expr.seed, depth + 1)})"


def _sublink(unit: Unit, expr: SubLink, depth: int) -> str:
    """A sub-select: the executor's callable."""
    if unit.layout.subplan is None:
        raise not_supported("a sub-select here", span=expr.span)
    return f"{unit.name(unit.layout.subplan(expr, unit.layout), 'sp')}(r, e)"


def _sql_call(unit: Unit, expr: SqlCall, depth: int) -> str:
    """A call of a user's function whose body could not take its place: the executor waits for what it returns."""
    if not expr.stays:
        raise not_supported(f"a call of SQL function {expr.name} here", span=expr.span)

    def call(env: Env, *args: Any) -> Any:
        if env.session is None:
            raise AssertionError("a function that needs a session is called without one")
        done, value = env.session.system.routines.start(expr, args)
        if not done:
            raise Suspend("call", value)
        return value

    def call_now(env: Env, *args: Any) -> Any:
        if env.session is None:
            raise not_supported(f"a call of function {expr.name} without a session")
        return env.session.system.routines.call_now(expr, args)

    listed = "".join(f", {unit.value(arg, depth + 1)}" for arg in expr.args)
    if expr.now and not unit.replay:
        return f"{unit.name(call_now, 'call')}(e{listed})"
    return f"e.shared.call({unit.name(call_now if expr.now else call, 'call')}, e{listed})"


NODES.update(
    {
        Const: _const,
        Param: _param,
        Var: lambda unit, expr, depth: unit.var(expr),
        FuncExpr: _call,
        OpExpr: _call,
        RelabelType: _relabel,
        CollateExpr: _collate,
        CoerceViaIO: _via_io,
        CoerceTypmod: _typmod,
        CoerceToDomain: _to_domain,
        ArrayCoerce: _array_coerce,
        BoolExpr: _boolean,
        NullTest: _null_test,
        BooleanTest: _boolean_test,
        DistinctExpr: _distinct,
        NullIf: _null_if,
        ScalarArrayOp: _scalar_array,
        CaseExpr: _case,
        CoalesceExpr: _coalesce,
        MinMaxExpr: _min_max,
        ArrayExpr: _array,
        RowExpr: _row,
        ComposeRow: _compose,
        DecomposeRow: _decompose,
        RowCompare: _row_compare,
        FieldSelect: _field_select,
        Subscript: _subscript,
        ArrayAssign: _array_assign,
        CurrentSetting: _setting,
        CursorValue: _cursor_value,
        SampleKey: _sample_key,
        SubLink: _sublink,
        SqlCall: _sql_call,
    }
)
