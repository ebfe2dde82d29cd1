"""Overload resolution: operators, functions and casts chosen as PostgreSQL chooses them."""

from __future__ import annotations

from random import Random

import psycopg
import pytest

from pgwire.codecs.settings import DEFAULT
from planner.base.errors import Span, SqlError
from planner.conversion.casts import coerce
from planner.conversion.common_types import select_common_type
from planner.conversion.env import CoerceEnv, ParamTypes
from planner.conversion.order import default_equality, default_less, find_equality, in_range_proc
from planner.conversion.pathways import CastContext, find_pathway
from planner.conversion.polymorphic import can_coerce, common_type
from planner.conversion.resolve import (
    function_arguments,
    make_operator,
    make_scalar_array_op,
    resolve_function,
    resolve_operator,
)
from planner.facts import (
    BOOL,
    BPCHAR,
    DATE,
    FLOAT8,
    INT2,
    INT2VECTOR,
    INT4,
    INT8,
    INTERVAL,
    JSON,
    JSONB,
    NAME,
    NUMERIC,
    OID,
    RECORD,
    REGCLASS,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    VARCHAR,
    facts,
)  # fmt: skip
from planner.query import ArrayCoerce, CoerceTypmod, CoerceViaIO, Const, FuncExpr, Param, RelabelType, Var
from planner.types import SqlType
from tests.support.postgres import postgres  # noqa: F401 - a fixture

INT4_ARRAY, TEXT_ARRAY, VARCHAR_ARRAY, NUMERIC_ARRAY = 1007, 1009, 1015, 1231


def env(params: ParamTypes | None = None) -> CoerceEnv:
    return CoerceEnv(settings=DEFAULT, params=params or ParamTypes())


def column(oid: int, typmod: int = -1) -> Var:
    return Var(type=SqlType(oid, typmod), range=0, attnum=1)


def literal(text: str | None, start: int = 7) -> Const:
    return Const(type=SqlType(UNKNOWN), value=text, span=Span(start, start + 3))


# --- operators --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "left", "right", "arguments", "result"),
    [
        ("+", INT4, INT8, (INT4, INT8), INT8),
        ("+", INT4, NUMERIC, (NUMERIC, NUMERIC), NUMERIC),
        ("=", VARCHAR, TEXT, (TEXT, TEXT), BOOL),
        ("=", BPCHAR, UNKNOWN, (BPCHAR, BPCHAR), BOOL),
        ("||", UNKNOWN, UNKNOWN, (TEXT, TEXT), TEXT),
        ("||", TEXT, INT4, (TEXT, INT4), TEXT),
        ("||", INT4_ARRAY, INT4, (INT4_ARRAY, INT4), INT4_ARRAY),
        ("||", NUMERIC_ARRAY, INT4, (NUMERIC_ARRAY, NUMERIC), NUMERIC_ARRAY),
        ("-", TIMESTAMPTZ, UNKNOWN, (TIMESTAMPTZ, TIMESTAMPTZ), INTERVAL),
        ("@>", JSONB, UNKNOWN, (JSONB, JSONB), BOOL),
        ("-", 0, INT4, (INT4,), INT4),
    ],
)
def test_operator_is_the_one_postgres_takes(
    name: str, left: int, right: int, arguments: tuple[int, ...], result: int
) -> None:
    found = resolve_operator(name, left, right)
    assert (found.arg_types, found.result) == (arguments, result)


def test_missing_and_ambiguous_operators_are_told_apart() -> None:
    with pytest.raises(SqlError, match=r"operator does not exist: boolean \+ integer") as missing:
        resolve_operator("+", BOOL, INT4, Span(3, 4))
    assert (missing.value.sqlstate, missing.value.span) == ("42883", Span(3, 4))
    with pytest.raises(SqlError, match=r"operator is not unique: unknown \+ unknown") as several:
        resolve_operator("+", UNKNOWN, UNKNOWN)
    assert several.value.sqlstate == "42725"


def test_any_needs_an_array_on_the_right() -> None:
    with pytest.raises(SqlError, match="requires array on right side") as caught:
        make_scalar_array_op("=", column(INT4), column(INT4), True, env())
    assert caught.value.sqlstate == "42809"
    made = make_scalar_array_op("=", column(INT2), column(INT2VECTOR), True, env())
    assert made.type.oid == BOOL


# --- functions --------------------------------------------------------------------------------------


def test_named_arguments_find_their_places_and_defaults_fill_the_rest() -> None:
    found = resolve_function("make_interval", (INT4, INT4), names=("days", "hours"))
    assert found.sources == (-1, -1, -1, 0, 1, -1, -1)
    one, two = Const(type=SqlType(INT4), value=1), Const(type=SqlType(INT4), value=2)
    values = [arg.value for arg in function_arguments(found, (one, two), env()) if isinstance(arg, Const)]
    assert values == [0, 0, 0, 1, 2, 0, 0.0]


def test_variadic_arguments_are_gathered_unless_their_type_is_any() -> None:
    found = resolve_function("jsonb_extract_path", (JSONB, UNKNOWN, UNKNOWN))
    assert (found.expanded, found.variadic) == (2, True)
    args = function_arguments(found, (column(JSONB), literal("a"), literal("b")), env())
    assert [arg.type.oid for arg in args] == [JSONB, TEXT_ARRAY]
    assert resolve_function("concat", (INT4, TEXT)).expanded == -1


def test_a_type_name_called_as_a_function_is_a_cast() -> None:
    assert resolve_function("text", (INT4,)).kind == "cast"
    assert resolve_function("date", (TIMESTAMPTZ,)).kind == "call"
    assert resolve_function("float8", (UNKNOWN,)).result == FLOAT8


def test_unknown_functions_say_what_was_looked_for() -> None:
    with pytest.raises(SqlError) as caught:
        resolve_function("foo", (INT4, UNKNOWN), names=("x",))
    assert caught.value.message == "function foo(integer, x => unknown) does not exist"
    assert caught.value.sqlstate == "42883"
    with pytest.raises(SqlError) as other:
        resolve_function("lower", (TEXT,), schema="nope")
    assert other.value.message == "function nope.lower(text) does not exist"


def test_polymorphic_arguments_must_agree() -> None:
    assert resolve_function("array_append", (INT4_ARRAY, NUMERIC)).result == NUMERIC_ARRAY
    with pytest.raises(SqlError) as caught:
        resolve_function("array_append", (INT4_ARRAY, TEXT))
    assert caught.value.sqlstate == "42883"


# --- casts ------------------------------------------------------------------------------------------


def test_each_pathway_is_the_one_pg_cast_names() -> None:
    explicit = CastContext.EXPLICIT
    assert isinstance(coerce(column(INT4), SqlType(NUMERIC), explicit, env()), FuncExpr)
    assert isinstance(coerce(column(VARCHAR), SqlType(TEXT), explicit, env()), RelabelType)
    assert isinstance(coerce(column(TEXT), SqlType(JSON), explicit, env()), CoerceViaIO)
    array = coerce(column(INT4_ARRAY), SqlType(TEXT_ARRAY), explicit, env())
    assert isinstance(array, ArrayCoerce)
    assert isinstance(array.element, CoerceViaIO)
    cut = coerce(column(TEXT), SqlType(VARCHAR, 7), explicit, env())
    assert isinstance(cut, CoerceTypmod)
    assert isinstance(cut.arg, RelabelType)
    assert not cut.arg.explicit  # part of one written cast


def test_contexts_allow_more_and_more() -> None:
    implicit, assignment, explicit = CastContext.IMPLICIT, CastContext.ASSIGNMENT, CastContext.EXPLICIT
    assert [can_coerce(INT8, INT4, c) for c in (implicit, assignment, explicit)] == [False, True, True]
    assert [can_coerce(INT4, TEXT, c) for c in (implicit, assignment, explicit)] == [False, True, True]
    assert [can_coerce(TEXT, INT4, c) for c in (implicit, assignment, explicit)] == [False, False, True]
    assert find_pathway(TEXT, REGCLASS, implicit) is not None
    assert find_pathway(BOOL, DATE, explicit) is None


def test_a_refused_literal_is_blamed_where_it_stands() -> None:
    with pytest.raises(SqlError) as caught:
        coerce(literal("x", 30), SqlType(INT4), CastContext.IMPLICIT, env())
    assert (caught.value.sqlstate, caught.value.span) == ("22P02", Span(30, 33))


def test_literals_note_the_settings_they_were_read_under() -> None:
    here = env()
    coerce(literal("2020-01-01"), SqlType(DATE), CastContext.IMPLICIT, here)
    assert here.folded == {"datestyle"}
    coerce(literal("now"), SqlType(TIMESTAMPTZ), CastContext.IMPLICIT, here)
    assert here.folded == {"datestyle", "timezone", "now"}


def test_an_open_parameter_takes_the_first_type_asked_for() -> None:
    params = ParamTypes()
    first = params.reference(1)
    settled = coerce(first, SqlType(INT4), CastContext.IMPLICIT, env(params))
    assert isinstance(settled, Param)
    assert settled.type.oid == INT4
    assert params.reference(1).type.oid == INT4
    with pytest.raises(SqlError) as conflict:
        coerce(first, SqlType(TEXT), CastContext.IMPLICIT, env(params))
    assert (conflict.value.sqlstate, conflict.value.detail) == ("42P08", "integer versus text")
    params.reference(3)
    with pytest.raises(SqlError) as open_:
        params.finish()
    assert (open_.value.sqlstate, open_.value.message) == (
        "42P18", "could not determine data type of parameter $2"
    )  # fmt: skip


def test_fixed_parameters_are_all_there_are() -> None:
    with pytest.raises(SqlError, match=r"there is no parameter \$1") as caught:
        ParamTypes((), variable=False).reference(1)
    assert caught.value.sqlstate == "42P02"


def test_common_types_follow_category_and_preference() -> None:
    assert common_type((INT4, NUMERIC, UNKNOWN)) == NUMERIC
    assert common_type((UNKNOWN, UNKNOWN)) == TEXT
    assert common_type((VARCHAR, TEXT)) == VARCHAR  # each becomes the other: the first stays
    assert common_type((INT4, TEXT)) == 0
    with pytest.raises(SqlError) as caught:
        select_common_type((column(INT4), column(TEXT)), "CASE")
    assert (caught.value.sqlstate, caught.value.message) == (
        "42804", "CASE types integer and text cannot be matched"
    )  # fmt: skip


# --- ordering and equality --------------------------------------------------------------------------


def test_default_operators_of_a_type() -> None:
    assert default_less(VARCHAR).oid == 664  # text's
    assert default_equality(INT4_ARRAY).oid == 1070
    assert default_equality(UUID).oid == 2972
    assert find_equality(600) is None  # point
    with pytest.raises(SqlError) as caught:
        default_less(JSON)
    assert (caught.value.sqlstate, caught.value.message) == (
        "42883", "could not identify an ordering operator for type json"
    )  # fmt: skip
    assert (in_range_proc(TIMESTAMP, INTERVAL), in_range_proc(TEXT, INT4)) == (4134, 0)


# --- against PostgreSQL -----------------------------------------------------------------------------

TYPES = (
    INT2, INT4, INT8, FLOAT8, NUMERIC, TEXT, VARCHAR, BPCHAR, NAME, BOOL, DATE, TIME, TIMESTAMP, TIMESTAMPTZ,
    INTERVAL, UUID, JSON, JSONB, OID, INT4_ARRAY, TEXT_ARRAY, NUMERIC_ARRAY, INT2VECTOR, UNKNOWN, UNKNOWN,
)  # fmt: skip
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "=",
    "<",
    ">=",
    "<>",
    "||",
    "~",
    "~~",
    "@>",
    "<@",
    "&&",
    "->",
    "->>",
    "#>",
    "?",
    "^",
    "&",
    "|",
    "<<",
    "#",
]


def operand(oid: int) -> str:
    return "NULL" if oid == UNKNOWN else f"NULL::{facts().types[oid].name}"


def theirs(connection: psycopg.Connection, sql: str) -> object:
    raw = connection.pgconn
    result = raw.prepare(b"", sql.encode())
    if result.status == 1:
        return raw.describe_prepared(b"").ftype(0)
    return (result.error_field(67) or b"").decode()


@pytest.mark.parametrize("seed", range(3))
def test_random_operators_agree_with_postgres(seed: int, postgres: str) -> None:  # noqa: F811
    rng = Random(seed)
    wrong = []
    with psycopg.connect(postgres, autocommit=True) as connection:
        for _ in range(500):
            name, left, right = rng.choice(OPERATORS), rng.choice(TYPES), rng.choice(TYPES)
            try:
                ours: object = resolve_operator(name, left, right).result
            except SqlError as error:
                ours = error.sqlstate
            given = theirs(connection, f"SELECT {operand(left)} {name} {operand(right)}")
            if ours != given:
                wrong.append((left, name, right, ours, given))
    assert not wrong


@pytest.mark.parametrize("seed", range(3))
def test_random_calls_agree_with_postgres(seed: int, postgres: str) -> None:  # noqa: F811
    rng = Random(seed)
    names = sorted(
        name
        for name, group in facts().procs_by_name.items()
        if all(p.kind == "f" and 2276 not in p.arg_types and set(p.arg_types) <= set(TYPES) for p in group)
    )
    wrong = []
    with psycopg.connect(postgres, autocommit=True) as connection:
        for _ in range(400):
            proc = rng.choice(facts().procs_by_name[rng.choice(names)])
            args = [t if rng.random() < 0.5 else rng.choice(TYPES) for t in proc.arg_types]
            try:
                ours: object = resolve_function(proc.name, args).result
            except SqlError as error:
                ours = error.sqlstate
            given = theirs(connection, f'SELECT "{proc.name}"({", ".join(map(operand, args))})')
            if ours != given and (ours, given) != (UNKNOWN, TEXT):
                wrong.append((proc.name, args, ours, given))
    assert not wrong


def test_record_operators_exist() -> None:
    assert make_operator("=", column(RECORD), column(RECORD), env()).type.oid == BOOL
