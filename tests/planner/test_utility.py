"""Session statements, COPY options, storage options, type names: read as PostgreSQL reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pgwire.codecs.copy import CopyOptions
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.table.options import STORAGE_OPTIONS
from planner.query import Const
from planner.types.facts import format_type
from tests.planner.tables import bind, make_catalog
from tests.support.catalog import sql_type

CATALOG = make_catalog()


# --- settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "name", "value"),
    [
        ('SET search_path TO "A b", public', "search_path", '"A b", public'),
        ("SET search_path = '$user', 'public'", "search_path", '"$user", public'),
        ("SET datestyle TO iso, dmy", "datestyle", "iso, dmy"),
        ("SET work_mem = 64", "work_mem", "64"),
        ("SET seq_page_cost = 1.5", "seq_page_cost", "1.5"),
        ("SET SESSION timezone TO 'Europe/Berlin'", "timezone", "Europe/Berlin"),
        ("SET TIME ZONE INTERVAL '1:30' HOUR TO MINUTE", "timezone", "INTERVAL '01:30:00'"),
        ("SET TIME ZONE LOCAL", "timezone", None),
        ("SET jit TO DEFAULT", "jit", None),
        ("RESET jit", "jit", None),
        ("RESET ALL", "all", None),
        ("SET a.b TO 'x'", "a.b", "x"),
        ("SET NAMES 'utf8'", "client_encoding", "utf8"),
    ],
)
def test_settings_are_text_joined_as_postgres_joins_them(sql: str, name: str, value: str | None) -> None:
    made = bind(sql, CATALOG).statement
    assert isinstance(made, st.SetVariable)
    assert (made.name, made.value) == (name, value)


def test_show_names_its_column_as_the_setting_is_spelt() -> None:
    assert [c.name for c in bind("SHOW datestyle", CATALOG).columns or ()] == ["DateStyle"]
    assert [c.name for c in bind("SHOW ALL", CATALOG).columns or ()] == ["name", "setting", "description"]


@pytest.mark.parametrize(
    ("sql", "tag", "made"),
    [
        ("BEGIN", "BEGIN", st.Transaction(action="begin")),
        (
            "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            "START TRANSACTION",
            st.Transaction(action="begin", isolation="repeatable read", read_only=True),
        ),
        ("COMMIT AND CHAIN", "COMMIT", st.Transaction(action="commit", chain=True)),
        ("ROLLBACK TO SAVEPOINT a", "ROLLBACK", st.Transaction(action="rollback_to", name="a")),
        ("RELEASE a", "RELEASE", st.Transaction(action="release", name="a")),
        (
            "SET TRANSACTION READ WRITE, DEFERRABLE",
            "SET",
            st.SetTransaction(session=False, read_only=False, deferrable=True),
        ),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET",
            st.SetTransaction(session=True, isolation="serializable"),
        ),
        ("DEALLOCATE ALL", "DEALLOCATE ALL", st.Deallocate(name=None)),
        ("CLOSE ALL", "CLOSE CURSOR ALL", st.CloseCursor(name=None)),
        ("DISCARD TEMP", "DISCARD TEMP", st.Discard(what="temp")),
        ("MOVE 3 FROM c", "MOVE", st.Fetch(cursor="c", direction="forward", count=3, move=True)),
        ("UNLISTEN *", "UNLISTEN", st.Notify(action="unlisten", channel="")),
        ("ANALYZE", "ANALYZE", st.Maintenance(what="analyze", analyze=True)),
        ("CREATE USER u", "CREATE ROLE", st.RoleStatement(action="create", names=("u",), options={}, is_user=True)),
    ],
)  # fmt: skip
def test_session_statements(sql: str, tag: str, made: st.Statement) -> None:
    bound = bind(sql, CATALOG)
    assert (bound.tag, bound.statement) == (tag, made)


def test_role_options_have_the_names_of_the_role() -> None:
    made = bind(
        "CREATE ROLE r LOGIN NOSUPERUSER CREATEDB CONNECTION LIMIT 5 PASSWORD 'p' VALID UNTIL '2030-01-01 UTC'",
        CATALOG,
    ).statement
    assert isinstance(made, st.RoleStatement)
    assert dict(made.options) == {
        "can_login": True, "superuser": False, "create_db": True, "connection_limit": 5, "password": "p",
        "valid_until": 1893456000000000,
    }  # fmt: skip


def test_execute_keeps_its_literals_open() -> None:
    made = bind("EXECUTE q (1, 'x', NULL)", CATALOG).statement
    assert isinstance(made, st.ExecutePrepared)
    assert [(a.type.oid, a.value) for a in made.args if isinstance(a, Const)] == [
        (23, 1), (705, "x"), (705, None)
    ]  # fmt: skip


def test_prepare_resolves_types_and_keeps_the_text() -> None:
    made = bind("PREPARE q (int, numeric(5,2)) AS SELECT $1", CATALOG).statement
    assert made == st.Prepare(name="q", param_types=(23, 1700), text="SELECT $1", at=33)


def test_explain_wraps_a_bound_statement() -> None:
    bound = bind("EXPLAIN (ANALYZE, FORMAT JSON, COSTS off) SELECT a FROM t WHERE a = $1", CATALOG)
    assert isinstance(bound.statement, st.Explain)
    assert dict(bound.statement.options) == {"analyze": "on", "format": "json", "costs": "off"}
    assert bound.statement.body.params == (23,)
    assert [c.type.oid for c in bound.columns or ()] == [114]


def test_comments_name_their_object() -> None:
    made = bind("COMMENT ON COLUMN t.b IS 'x'", CATALOG).statement
    t = CATALOG.by_name["public", "t"]
    assert made == st.Comment(class_oid=1259, object_oid=t.oid, sub_id=2, text="x")
    named = bind("COMMENT ON CONSTRAINT t_pkey ON t IS NULL", CATALOG).statement
    assert named == st.Comment(class_oid=2606, object_oid=t.constraints[0].oid, sub_id=0, text=None)


# --- COPY -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "COPY t (a, b) FROM STDIN (FORMAT csv, HEADER, DELIMITER ';', NULL 'n', FORCE_NOT_NULL (b))",
        "COPY t (a, b) FROM STDIN CSV HEADER DELIMITER ';' NULL 'n' FORCE NOT NULL b",
    ],
)
def test_copy_options_old_and_new_are_one(sql: str) -> None:
    made = bind(sql, CATALOG).statement
    assert isinstance(made, st.Copy)
    assert made.attnums == (1, 2)
    assert made.options["codec"] == CopyOptions(
        format="csv", header=True, delimiter=";", null="n", force_not_null=frozenset((1,))
    )


def test_copy_from_fills_columns_left_out() -> None:
    made = bind("COPY t (a) FROM STDIN WHERE a > 1", CATALOG).statement
    assert isinstance(made, st.Copy)
    assert [attnum for attnum, _ in made.defaults] == [2]
    assert made.where is not None


def test_copy_of_a_query_reads() -> None:
    bound = bind("COPY (SELECT a FROM t) TO STDOUT (FORMAT csv, FORCE_QUOTE *)", CATALOG)
    assert isinstance(bound.statement, st.Copy)
    assert bound.statement.options["force_quote"] == {0}
    assert bound.reads == {CATALOG.by_name["public", "t"].oid}


# --- storage options --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("fillfactor = 5", 'value 5 out of bounds for option "fillfactor"'),
        ("fillfactor = abc", 'invalid value for integer option "fillfactor": abc'),
        ("foo = 1", 'unrecognized parameter "foo"'),
        ("bar.foo = 1", 'unrecognized parameter namespace "bar"'),
        ("autovacuum_enabled = maybe", 'invalid value for boolean option "autovacuum_enabled": maybe'),
        ("fillfactor = 50, fillfactor = 60", 'parameter "fillfactor" specified more than once'),
        (
            "autovacuum_vacuum_scale_factor = x",
            'invalid value for floating point option "autovacuum_vacuum_scale_factor": x',
        ),
    ],
)
def test_storage_options_are_checked(options: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        bind(f"CREATE TABLE n (a int) WITH ({options})", CATALOG)
    assert (caught.value.sqlstate, caught.value.message) == ("22023", message)


def test_known_storage_options_are_kept_as_written() -> None:
    made = bind(
        "CREATE TABLE n (a int) WITH (fillfactor=70, toast.autovacuum_enabled=off)", CATALOG
    ).statement
    assert isinstance(made, st.CreateTable)
    assert dict(made.options) == {"fillfactor": "70", "toast.autovacuum_enabled": "off"}


# --- type names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("int", "integer"), ("char", "character(1)"), ("char(3)", "character(3)"), ("varchar", "character varying"),
        ("varchar(5)[]", "character varying(5)[]"), ("float(3)", "real"), ("float(30)", "double precision"),
        ("dec(5)", "numeric(5,0)"), ("numeric(3,-2)", "numeric(3,-2)"), ("int[][3]", "integer[]"),
        ("timestamp(3) with time zone", "timestamp(3) with time zone"), ("time(9)", "time(6) without time zone"),
        ("interval", "interval"), ("interval(2)", "interval(2)"), ("interval year to month", "interval year to month"),
        ("interval day to second(3)", "interval day to second(3)"), ("bit", "bit(1)"), ("bit varying", "bit varying"),
        ("bool", "boolean"), ('"char"', '"char"'), ("pg_catalog.int8", "bigint"), ("_int4", "integer[]"),
        ("regclass", "regclass"), ("name", "name"), ("bpchar", "bpchar"), ("int2vector", "int2vector"),
    ],
)  # fmt: skip
def test_type_names_in_and_out(written: str, shown: str) -> None:
    type_ = sql_type(written)
    assert format_type(type_.oid, type_.typmod) == shown


def test_the_page_of_accepted_options_lists_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "accepted-options.md").read_text(
        encoding="utf-8"
    )
    sections = page.split("\n## ")[1 : 1 + len(STORAGE_OPTIONS)]
    for section, options in zip(sections, STORAGE_OPTIONS.values(), strict=True):
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(options)
