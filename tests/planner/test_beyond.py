"""Statements beyond PostgreSQL's grammar: what is recognised, where errors point, what stays PostgreSQL's."""

from __future__ import annotations

import pytest

from planner import ast
from planner.base.errors import SqlError
from planner.parse import parse


def one(text: str) -> ast.Node:
    (parsed,) = parse(text)
    return parsed.statement


def test_all_clauses_in_any_order() -> None:
    node = one(
        "subscribe TO public.\"T\" UP TO 5 + (1) WITH (progress, snapshot = off) AS OF now() - interval '1 min'"
    )
    assert isinstance(node, ast.Subscribe)
    assert isinstance(node.query, ast.Select)
    assert node.as_of is not None
    assert (node.snapshot, node.progress) == (False, True)
    assert node.up_to is not None


@pytest.mark.parametrize(
    "text",
    [
        "SUBSCRIBE t",
        "SUBSCRIBE TO t",
        "SUBSCRIBE (SELECT ')' FROM t WHERE a = 'UP TO' -- subscribe )\n)",
        "SUBSCRIBE (TABLE t UNION ALL (VALUES (1)))",
        "SUBSCRIBE t AS OF SYSTEM TIME '-5s'",
        "SUBSCRIBE t WITH (snapshot false)",
    ],
)
def test_forms(text: str) -> None:
    assert isinstance(one(text), ast.Subscribe)


def test_inside_declare_and_copy() -> None:
    declared = one("DECLARE c BINARY CURSOR FOR SUBSCRIBE t WITH (progress)")
    assert isinstance(declared, ast.DeclareCursor)
    assert isinstance(declared.query, ast.Subscribe)
    assert declared.binary
    copied = one("COPY (SUBSCRIBE (SELECT 1) UP TO 7) TO STDOUT WITH (FORMAT csv)")
    assert isinstance(copied, ast.Copy)
    assert isinstance(copied.query, ast.Subscribe)
    assert copied.options[0].name == "format"


def test_fetch_with_a_timeout() -> None:
    fetched = one("FETCH FORWARD ALL FROM c WITH (timeout = '1 s')")
    assert isinstance(fetched, ast.Fetch)
    assert (fetched.count, fetched.timeout) == (None, "1 s")


def test_spans_and_texts_count_from_the_beginning_of_the_whole() -> None:
    text = "SELECT 'é'; /* subscribe */ SUBSCRIBE (SELECT a FROM u) ; SELECT 2"
    first, second, third = parse(text)
    assert [text[p.span.start : p.span.end] for p in (first, second, third)] == [
        "SELECT 'é'", "SUBSCRIBE (SELECT a FROM u)", "SELECT 2",
    ]  # fmt: skip
    assert isinstance(second.statement, ast.Subscribe)
    query = second.statement.query
    assert isinstance(query, ast.Select)
    span = query.targets[0].expr.span
    assert span is not None
    assert text[span.start : span.end] == "a"


@pytest.mark.parametrize(
    ("text", "at", "near"),
    [
        ("SUBSCRIBE", 9, ""),
        ("SELECT 1; SUBSCRIBE (selct 1)", 21, "selct"),
        ("SUBSCRIBE t foo", 12, "foo"),
        ("SUBSCRIBE (SELECT 1", 19, ""),
        ("SUBSCRIBE t AS OF", 17, ""),
        ("SUBSCRIBE t AS OF 1 AS OF 2", 20, "as"),
        ("SUBSCRIBE t AS OF 1, 2", 18, "1"),
        ("SUBSCRIBE t WITH ()", 18, ")"),
        ("COPY (SUBSCRIBE t", 17, ""),
        ("FETCH c WITH (timeout = '1 s') x", 31, "x"),
    ],
)
def test_syntax_errors_point_at_their_place(text: str, at: int, near: str) -> None:
    with pytest.raises(SqlError) as error:
        parse(text)
    assert error.value.sqlstate == "42601"
    assert error.value.span is not None
    assert error.value.span.start == at
    assert f'"{near}"' in error.value.message if near else "end of input" in error.value.message


@pytest.mark.parametrize(
    "text", ["SELECT 'subscribe' AS timeout", "SELECT subscribe FROM timeout", "FETCH 1 FROM timeout"]
)
def test_the_words_mean_nothing_elsewhere(text: str) -> None:
    assert not isinstance(one(text), ast.Subscribe)


def test_timelines() -> None:
    made = one('create TIMELINE IF NOT EXISTS "Odd name" -- timeline')
    assert isinstance(made, ast.CreateTimeline)
    assert (made.name, made.if_not_exists) == ("Odd name", True)
    dropped = one("DROP /* a */ TIMELINE IF EXISTS One, two CASCADE")
    assert isinstance(dropped, ast.DropTimeline)
    assert (dropped.names, dropped.if_exists, dropped.cascade) == (("one", "two"), True, True)
    both = parse("SELECT 1 AS timeline; CREATE TIMELINE a; DROP TIMELINE a RESTRICT")
    assert [type(p.statement) for p in both] == [ast.Select, ast.CreateTimeline, ast.DropTimeline]
    assert isinstance(one("CREATE TABLE timeline (timeline int)"), ast.CreateTable)
    assert isinstance(one("DROP TABLE timeline"), ast.Drop)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("CREATE TIMELINE", None),
        ("CREATE TIMELINE a b", "b"),
        ("CREATE TIMELINE AUTHORIZATION joe", "authorization"),
        ("CREATE TIMELINE a AUTHORIZATION joe", "authorization"),
        ("CREATE TIMELINE IF NOT EXISTS a CREATE TABLE t ()", "create"),
        ("CREATE TIMELINE select", "select"),
        ("DROP TIMELINE a.b", "."),
        ("DROP TIMELINE", None),
    ],
)
def test_where_a_timeline_is_misspelt(text: str, near: str | None) -> None:
    with pytest.raises(SqlError) as error:
        one(text)
    assert error.value.sqlstate == "42601"
    span = error.value.span
    assert span is not None
    if near is None:
        assert span.start == len(text)
    else:
        assert text[span.start :].lower().startswith(near)


def test_create_source_reads_table_options_and_timeline() -> None:
    node = one(
        'create SOURCE if not exists "My feed" (id int, v text, PRIMARY KEY (id)) INTO sales.feed FROM files '
        "(path = '/in''box', format = csv, header, max_batch_rows = 10) WITH (timeline = sensors)"
    )
    assert isinstance(node, ast.CreateSource)
    assert (node.name, node.kind, node.timeline, node.if_not_exists) == ("My feed", "files", "sensors", True)
    assert [(name, value) for name, value, _span in node.options] == [
        ("path", "/in'box"), ("format", "csv"), ("header", None), ("max_batch_rows", "10"),
    ]  # fmt: skip
    assert (node.table.relation.schema, node.table.relation.name) == ("sales", "feed")
    assert len(node.table.elements) == 3
    plain = one("CREATE SOURCE ticks FROM RATE (rows_per_second = 5)")
    assert isinstance(plain, ast.CreateSource)
    assert not plain.has_columns
    assert plain.table.relation.name == "ticks"


def test_alter_and_drop_source() -> None:
    paused = one("ALTER SOURCE IF EXISTS feed PAUSE")
    assert isinstance(paused, ast.AlterSource)
    assert (paused.name, paused.pause, paused.if_exists) == ("feed", True, True)
    dropped = one('DROP SOURCE a, "B" CASCADE')
    assert isinstance(dropped, ast.DropSource)
    assert (dropped.names, dropped.cascade, dropped.if_exists) == (("a", "B"), True, False)
    assert isinstance(one("CREATE TABLE source (source int)"), ast.CreateTable)
    assert isinstance(one("SELECT source FROM source"), ast.Select)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("CREATE SOURCE", None),
        ("CREATE SOURCE a", None),
        ("CREATE SOURCE a FROM", None),
        ("CREATE SOURCE a (b int) FROM files path", "path"),
        ("CREATE SOURCE a INTO (b) FROM rate", "("),
        ("CREATE SOURCE a FROM rate ()", ")"),
        ("CREATE SOURCE a FROM rate WITH timeline", "timeline"),
        ("ALTER SOURCE a", None),
        ("ALTER SOURCE a STOP", "STOP"),
        ("ALTER SOURCE a PAUSE now", "now"),
        ("DROP SOURCE a.b", "."),
        ("DROP SOURCE a CASCADE b", "b"),
    ],
)
def test_where_a_source_is_misspelt(text: str, near: str | None) -> None:
    with pytest.raises(SqlError) as error:
        parse(text)
    assert error.value.sqlstate == "42601"
    where = "at end of input" if near is None else f'at or near "{near}"'
    assert error.value.message == f"syntax error {where}"


def test_kinds_of_sources_are_named_where_one_is_unknown() -> None:
    with pytest.raises(SqlError, match="unrecognized kind of source") as error:
        parse("CREATE SOURCE a FROM pigeons")
    assert error.value.hint == "Sources read from FILES, POSTGRES, KAFKA or RATE."
