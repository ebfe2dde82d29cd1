"""Definitions: tables, views, indexes, ALTER, stored texts and the names the server chooses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgwire.oids import REGTYPE, REGTYPE_ARRAY
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind import bind_check, deparse_check, rebase_view, stored
from planner.bind.define.table.naming import choose_name
from planner.bind.stored.evaluated import stored_default
from planner.bind.stored.shown import index_definition
from planner.catalog import ColumnDef, ConstraintDef, IndexDef
from planner.deparse import deparse_expr, key_definition
from planner.query import CoerceViaIO, Const
from planner.types import SqlType
from planner.types.facts import format_type
from tests.planner.tables import bind, make_catalog
from tests.support.catalog import MemoryCatalog, sql_type

CATALOG = make_catalog()


def table(sql: str) -> st.CreateTable:
    statement = bind(sql, CATALOG).statement
    assert isinstance(statement, st.CreateTable)
    return statement


def alter(sql: str) -> tuple[st.AlterAction, ...]:
    statement = bind(sql, CATALOG).statement
    assert isinstance(statement, st.AlterTable)
    return statement.actions


# --- CREATE TABLE -----------------------------------------------------------------------------------


def test_columns_keys_and_checks_are_separated() -> None:
    made = table(
        "CREATE TABLE n (a int PRIMARY KEY, b varchar(3) NOT NULL DEFAULT 'abc' UNIQUE, "
        "c text CHECK (c <> '' AND a > 0), CONSTRAINT k UNIQUE NULLS NOT DISTINCT (a, c))"
    )
    assert [(c.name, c.type, c.not_null, c.default_sql) for c in made.columns] == [
        ("a", SqlType(23), True, None),
        ("b", SqlType(1043, 7), True, "'abc'::character varying"),
        ("c", SqlType(25), False, None),
    ]
    assert [(k.name, k.primary, k.columns, k.nulls_not_distinct) for k in made.keys] == [
        (None, True, ("a",), False),
        (None, False, ("b",), False),
        ("k", False, ("a", "c"), True),
    ]
    [check] = made.checks
    assert (check.sql, check.columns) == ("((c <> ''::text) AND (a > 0))", ("a", "c"))
    assert made.schema == "public"


def test_default_null_is_no_default() -> None:
    [column] = table("CREATE TABLE n (a int DEFAULT NULL)").columns
    assert (column.default, column.default_sql) == (None, None)


@pytest.mark.parametrize(
    ("clause", "text"),
    [
        ("int DEFAULT -1", "'-1'::integer"),
        ("bigint DEFAULT 5", "5"),
        ("numeric(5,1) DEFAULT 1.5", "1.5"),
        ("timestamptz DEFAULT now()", "now()"),
        ("date DEFAULT current_date", "CURRENT_DATE"),
        ("text DEFAULT 5", "5"),
        ("int[] DEFAULT '{1,2}'", "'{1,2}'::integer[]"),
        ("bool DEFAULT true", "true"),
        ("regtype DEFAULT 'int4'", "'23'::regtype"),
        ("text DEFAULT lower('X') || 'y'", "(lower('X'::text) || 'y'::text)"),
    ],
)
def test_stored_defaults_read_back_as_values_of_the_column(clause: str, text: str) -> None:
    [column] = table(f"CREATE TABLE n (a {clause})").columns
    assert column.default_sql == text
    assert stored_default(text, column.type).type == column.type


def test_texts_that_were_stored_with_names_are_read_as_they_were() -> None:
    for text in ("'later'::regtype", "'{later,integer}'::regtype[]"):
        made = stored_default(text, SqlType(REGTYPE_ARRAY if text.endswith("[]") else REGTYPE))
        assert isinstance(made, CoerceViaIO)
        assert deparse_expr(made) == text


def test_temporary_tables_go_to_their_schema() -> None:
    made = table("CREATE TEMP TABLE n (a int) ON COMMIT DELETE ROWS")
    assert (made.schema, made.persistence, made.on_commit) == ("pg_temp", "t", "delete")


def test_like_copies_what_it_says() -> None:
    catalog = make_catalog()
    source = catalog.table("src", "a int4 pk", "b text default 'q'::text", "c text not null")
    checked = ConstraintDef(oid=1, name="src_check", kind="c", check_sql="(b <> c)")
    catalog.add(replace(source, constraints=(*source.constraints, checked)))
    bare = bind("CREATE TABLE n (LIKE src)", catalog).statement
    full = bind("CREATE TABLE n (z int, LIKE src INCLUDING ALL)", catalog).statement
    assert isinstance(bare, st.CreateTable)
    assert isinstance(full, st.CreateTable)
    assert [(c.name, c.not_null, c.default_sql) for c in bare.columns] == [
        ("a", True, None), ("b", False, None), ("c", True, None)
    ]  # fmt: skip
    assert (bare.keys, bare.checks) == ((), ())
    assert full.columns[2].default_sql == "'q'::text"
    assert [key.columns for key in full.keys] == [("a",)]
    [check] = full.checks
    assert (check.name, check.sql, check.columns) == ("src_check", "(b <> c)", ("b", "c"))
    assert {v.attnum for v in check.expr.args if hasattr(v, "attnum")} == {3, 4}  # type: ignore[attr-defined]


def test_create_table_as_takes_its_columns_from_the_query() -> None:
    made = table("CREATE TABLE n (x) AS SELECT a, b || 'y' AS q, NULL AS z FROM t WITH NO DATA")
    assert [(c.name, format_type(c.type.oid)) for c in made.columns] == [
        ("x", "integer"), ("q", "text"), ("z", "text")
    ]  # fmt: skip
    assert not made.with_data
    into = bind("SELECT a INTO n FROM t", CATALOG)
    assert isinstance(into.statement, st.CreateTable)
    assert into.tag == "SELECT INTO"


@pytest.mark.parametrize(
    ("sql", "construct"),
    [
        ("CREATE TABLE n (a text, EXCLUDE USING btree (a text_pattern_ops WITH =))", "EXCLU"),
        ("CREATE TABLE n (a int) INHERITS (t)", "INHERITS"),
        ("CREATE TABLE n (a xml)", "xml"),
        ("CREATE TABLE n (a xml[])", "xml"),
        ("CREATE TABLE n (a text COLLATE \"en-x-icu\")", "en-x-icu"),
        ("CREATE VIEW n AS SELECT 1 AS a WITH CHECK OPTION", "CHECK OPTION"),
        ("COPY t FROM PROGRAM 'x'", "PROGRAM"),
        ("PREPARE TRANSACTION 'x'", "PREPARE TRANSACTION"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named(sql: str, construct: str) -> None:
    with pytest.raises(SqlError) as caught:
        bind(sql, CATALOG)
    assert caught.value.sqlstate == "0A000"
    assert construct in caught.value.message


# --- views and indexes ------------------------------------------------------------------------------


def test_trees_of_a_stored_query_are_freed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[int] = []
    monkeypatch.setattr(stored, "release_all", lambda trees: released.append(len(trees)))
    for sql in (
        "CREATE VIEW w AS SELECT a + 1 AS b FROM t",
        "CREATE MATERIALIZED VIEW w AS SELECT a + 1 AS b FROM t",
    ):
        bind(sql, CATALOG)
    assert released == [2, 2], "the one that is printed, and the one that is read again"


@pytest.mark.parametrize(
    ("sqlstate", "told"), [("53200", "53200"), ("57014", "57014"), ("42P17", "42P17"), ("42703", "0A000")]
)
def test_what_ends_a_statement_is_told_while_its_query_is_read_again(
    monkeypatch: pytest.MonkeyPatch, sqlstate: str, told: str
) -> None:
    def refuse(*_: object) -> None:
        raise SqlError(sqlstate, "refused")

    monkeypatch.setattr("planner.bind.recursion.VIEW.call", refuse)
    with pytest.raises(SqlError) as failure:
        bind("CREATE VIEW w AS SELECT 1 AS a", CATALOG)
    assert failure.value.sqlstate == told


def test_a_view_keeps_qualified_text_and_what_it_depends_on() -> None:
    bound = bind("CREATE VIEW w (x) AS SELECT v.a, t.b FROM v JOIN t ON t.a = v.a", CATALOG).statement
    assert isinstance(bound, st.CreateView)
    assert [column.name for column in bound.columns] == ["x", "b"]
    assert "public.v" in bound.sql
    assert "public.t" in bound.sql
    # the view itself, not the table it reads once more
    assert bound.depends_on == {CATALOG.by_name["public", n].oid for n in ("v", "t")}


def test_parameters_mean_nothing_in_stored_texts() -> None:
    for sql in ("CREATE VIEW w AS SELECT $1 AS a", "CREATE TABLE n (a int DEFAULT $1)"):
        with pytest.raises(SqlError, match=r"there is no parameter \$1"):
            bind(sql, CATALOG)


def test_index_columns_have_their_order() -> None:
    bound = bind("CREATE UNIQUE INDEX ON t (a DESC, b NULLS FIRST, f DESC NULLS LAST) INCLUDE (c)", CATALOG)
    made = bound.statement
    assert isinstance(made, st.CreateIndex)
    assert made.attnums == (1, 2, 6)
    assert made.descending == (True, False, True)
    assert made.nulls_first == (True, True, False)
    assert made.include == (3,)
    relation = CATALOG.by_name["public", "t"]
    index = IndexDef(
        oid=9, name="Q", attnums=made.attnums, unique=True, descending=made.descending,
        nulls_first=made.nulls_first, include=made.include, nulls_not_distinct=True,
    )  # fmt: skip
    assert index_definition(index, relation) == (
        'CREATE UNIQUE INDEX "Q" ON public.t USING btree (a DESC, b NULLS FIRST, f DESC NULLS LAST) '
        "INCLUDE (c) NULLS NOT DISTINCT"
    )
    assert " ON t USING" in index_definition(index, relation, pretty=True, qualify=lambda s, n: False)
    assert key_definition(True, ("a", "B")) == 'PRIMARY KEY (a, "B")'


# --- ALTER ------------------------------------------------------------------------------------------


def test_later_actions_see_what_earlier_ones_added() -> None:
    dropped, added, check = alter(
        "ALTER TABLE t ADD COLUMN q int DEFAULT 5 CHECK (q > 1), ADD CHECK (q < a), DROP COLUMN b"
    )
    assert isinstance(added, st.AddColumn)
    assert (added.column.default_sql, added.checks[0].sql) == ("5", "(q > 1)")
    assert isinstance(check, st.AddCheck)
    assert (check.check.sql, check.check.columns) == ("(q < a)", ("a", "q"))
    assert isinstance(dropped, st.DropColumn)
    statement = bind("ALTER TABLE t DROP COLUMN b, ALTER b SET DEFAULT 'x'", CATALOG).statement
    assert isinstance(statement, st.AlterTable)
    assert statement.fails is not None
    assert (len(statement.actions), statement.fails.message[:10]) == (1, 'column "b"')


def test_a_new_type_says_how_values_change_and_whether_they_do() -> None:
    actions = alter(
        "ALTER TABLE t ALTER c TYPE numeric(12,2), ALTER f TYPE text, ALTER a TYPE int8, "
        "ALTER b DROP DEFAULT, ALTER b TYPE int USING length(b), ADD CHECK (b > a)"
    )
    [retyped] = [action.columns for action in actions if isinstance(action, st.AlterColumnTypes)]
    assert [(r.column, r.rewrites, format_type(r.type.oid)) for r in retyped] == [
        ("c", False, "numeric"), ("f", False, "text"), ("a", True, "bigint"), ("b", True, "integer")
    ]  # fmt: skip
    assert isinstance(actions[-1], st.AddCheck)  # bound over the new types


def test_a_default_follows_its_column_to_the_new_type() -> None:
    [action] = alter("ALTER TABLE t ALTER b TYPE varchar(5)")
    assert isinstance(action, st.AlterColumnTypes)
    [made] = action.columns
    assert made.default_sql == "'x'::text"
    assert stored_default(made.default_sql, made.type) == Const(type=made.type, value="x")


def test_storage_actions_are_kept() -> None:
    assert alter("ALTER TABLE t ALTER a SET STATISTICS 10, ALTER b SET STORAGE MAIN") == (
        st.TuneColumn(column="a", changes={"statistics": 10}, below=True),
        st.TuneColumn(column="b", changes={"storage": "m"}, below=True),
    )
    assert alter("ALTER TABLE t SET TABLESPACE pg_default") == ()
    assert alter("ALTER TABLE t SET (fillfactor = 70)") == (st.SetOptions(options={"fillfactor": "70"}),)


def test_if_exists_of_a_missing_relation_is_a_notice() -> None:
    bound = bind("ALTER TABLE IF EXISTS nope ADD COLUMN a int", CATALOG)
    assert bound.statement == st.Skip(notice='relation "nope" does not exist, skipping')
    assert bound.tag == "ALTER TABLE"


@pytest.mark.parametrize(
    ("sql", "what", "old"),
    [
        ("ALTER TABLE t RENAME TO q", "relation", "t"),
        ("ALTER TABLE t RENAME a TO q", "column", "a"),
        ("ALTER TABLE t RENAME CONSTRAINT t_pkey TO q", "constraint", "t_pkey"),
        ("ALTER INDEX t_pkey RENAME TO q", "relation", "t_pkey"),
        ("ALTER SCHEMA public RENAME TO q", "schema", "public"),
        ("ALTER ROLE postgres RENAME TO q", "role", "postgres"),
        ("ALTER VIEW v RENAME COLUMN b TO q", "column", "b"),
    ],
)
def test_renames_say_what_and_where(sql: str, what: str, old: str) -> None:
    made = bind(sql, CATALOG).statement
    assert isinstance(made, st.Rename)
    assert (made.what, made.old, made.new) == (what, old, "q")


# --- stored texts and renames -----------------------------------------------------------------------


def renamed(catalog: MemoryCatalog, name: str, new: str, columns: dict[str, str]) -> MemoryCatalog:
    """Return a copy of ``catalog`` where a relation and some of its columns have new names."""
    after = MemoryCatalog()
    after.schemas = catalog.schemas
    for relation in catalog.by_oid.values():
        if relation.name == name:
            relation = replace(
                relation,
                name=new,
                columns=tuple(replace(c, name=columns.get(c.name, c.name)) for c in relation.columns),
            )
        after.by_oid[relation.oid] = relation
        after.by_name[relation.schema, relation.name] = relation
    return after


def test_views_follow_renamed_tables_and_columns() -> None:
    catalog = make_catalog()
    sql = "SELECT t.a AS k, upper(x.b) AS u FROM public.t JOIN public.t x ON x.a = t.a WHERE t.b > 'q'::text"
    view = catalog.view("w", sql, "k int4", "u text")
    text = rebase_view(view, catalog, renamed(catalog, "t", "New", {"a": "id", "b": "B"}))
    assert text == (
        ' SELECT "New".id AS k,\n    upper(x."B") AS u\n   FROM (public."New"\n'
        '     JOIN public."New" x ON ((x.id = "New".id)))\n  WHERE ("New"."B" > \'q\'::text)'
    )


def test_views_over_views_follow_renamed_views() -> None:
    catalog = make_catalog()
    over = catalog.view("w", "SELECT v.a, v.b FROM public.v", "a int4", "b text")
    text = rebase_view(over, catalog, renamed(catalog, "v", "v2", {"a": "z"}))
    assert text == " SELECT v2.z AS a,\n    v2.b\n   FROM public.v2"


def test_a_view_that_lost_a_column_does_not_bind() -> None:
    catalog = make_catalog()
    view = catalog.by_name["public", "v"]
    table_ = catalog.by_name["public", "t"]
    after = renamed(catalog, "t", "t", {})
    after.add(replace(table_, columns=tuple(replace(c, dropped=c.name == "b") for c in table_.columns)))
    with pytest.raises(SqlError):
        rebase_view(view, after, after)


def test_checks_follow_renamed_columns() -> None:
    relation = CATALOG.by_name["public", "t"]
    expr = bind_check("((a > 0) AND (b <> ''::text))", relation, CATALOG)
    after = renamed(CATALOG, "t", "t", {"b": "Q"}).by_name["public", "t"]
    assert deparse_check(expr, after) == "((a > 0) AND (\"Q\" <> ''::text))"


def test_stored_default_is_a_value_of_its_column() -> None:
    assert stored_default("5", SqlType(1700, 655366)) == Const(
        type=SqlType(1700, 655366), value=stored_default("5.00", SqlType(1700, 655366)).value  # type: ignore[attr-defined]
    )  # fmt: skip
    column = ColumnDef(attnum=1, name="d", type=sql_type("date"), default_sql="'2020-01-02'::date")
    expr = stored_default(column.default_sql or "", column.type)
    assert expr == Const(type=column.type, value=18263)


# --- names ------------------------------------------------------------------------------------------


def test_chosen_names_avoid_taken_ones_and_fit_63_bytes() -> None:
    assert choose_name("t", [], "pkey", lambda name: False) == "t_pkey"
    assert choose_name("t", ["a", "b"], "key", {"t_a_b_key", "t_a_b_key1"}.__contains__) == "t_a_b_key2"
    long = choose_name("t" * 60, ["c" * 60], "idx", lambda name: False)
    assert len(long) == 63
    assert long == "t" * 29 + "_" + "c" * 29 + "_idx"
    wide = choose_name("ä" * 40, [], "check", lambda name: False)
    assert len(wide.encode()) <= 63
