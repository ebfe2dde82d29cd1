"""Statements and expressions with their errors and printed forms: ours, and PostgreSQL 15's where one is at hand.

Each script is one file in ``scripts``; ``pytest --rewrite`` writes what the binder gives now, to be reviewed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random

import psycopg
import pytest
from psycopg import pq

from pgwire.codecs.settings import STORED_TEXT
from planner.base.errors import SqlError
from planner.bind import bind_check, bind_statement, make_context
from planner.bind.stored.evaluated import bind_check_expr
from planner.deparse import check_definition, deparse_expr, deparse_query
from planner.parse import parse, parse_expression
from planner.statements import CreateView
from tests.planner.scripts import FOLDER, Case, read_script, write_script
from tests.planner.tables import POSTGRES_DDL, bind, make_catalog, report
from tests.support.postgres import postgres  # noqa: F401 - a fixture

CATALOG = make_catalog()


def never(schema: str, name: str) -> bool:
    return False


# --- what we give ---------------------------------------------------------------------------------


def bound_error(text: str) -> str:
    try:
        bind(text, CATALOG)
    except SqlError as error:
        return report(error)
    return "ok"


def printed_check(text: str) -> str:
    relation = CATALOG.relation("public", "t")
    assert relation is not None
    context = make_context(CATALOG, ("public",), variable_params=False)
    expr = bind_check_expr(context, parse_expression(f"({text}) IS NOT NULL"), relation)
    return "\n".join(check_definition(deparse_expr(expr, relation, pretty=p)) for p in (False, True))


def printed_view(text: str) -> str:
    statement = bind(f"CREATE VIEW printed AS {text}", CATALOG).statement
    assert isinstance(statement, CreateView)
    return "\n".join(
        deparse_query(
            statement.query, pretty=p, qualify=never, function_name=lambda _oid, _schema, name: name
        )
        for p in (False, True)
    )


# --- what PostgreSQL gives ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[psycopg.Connection]:  # noqa: F811
    with psycopg.connect(postgres, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("CREATE DATABASE scripts")
    base = " ".join(part for part in postgres.split() if not part.startswith("dbname="))
    with psycopg.connect(f"{base} dbname=scripts", autocommit=True, prepare_threshold=None) as connection:
        connection.execute(POSTGRES_DDL)
        connection.execute("SET client_min_messages = error")
        yield connection
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP DATABASE scripts")


def server_error(connection: psycopg.Connection, text: str) -> str:
    raw = connection.pgconn
    raw.exec_(b"BEGIN")
    try:
        if "$1" in text:
            result = raw.prepare(b"", text.encode())
        else:
            result = raw.exec_(text.encode())
        if result.status != pq.ExecStatus.FATAL_ERROR:
            return "ok"
        field = pq.DiagnosticField
        parts = [result.error_field(f) for f in (field.SQLSTATE, field.MESSAGE_PRIMARY)]
        shown = " ".join((p or b"").decode() for p in parts)
        if position := result.error_field(field.STATEMENT_POSITION):
            shown += f" @{position.decode()}"
        if detail := result.error_field(field.MESSAGE_DETAIL):
            shown += f"\nDETAIL: {detail.decode()}"
        if hint := result.error_field(field.MESSAGE_HINT):
            shown += f"\nHINT: {hint.decode()}"
        return shown
    finally:
        raw.exec_(b"ROLLBACK")


def server_check(connection: psycopg.Connection, text: str) -> str:
    with connection.transaction(force_rollback=True):
        connection.execute(f"ALTER TABLE t ADD CONSTRAINT printed CHECK (({text}) IS NOT NULL)".encode())
        query = "SELECT pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint WHERE conname = 'printed'"
        row = connection.execute(query).fetchone()
        assert row is not None
        return "\n".join(row)


def server_view(connection: psycopg.Connection, text: str) -> str:
    with connection.transaction(force_rollback=True):
        connection.execute(f"CREATE VIEW printed AS {text}".encode())
        query = "SELECT pg_get_viewdef('printed'::regclass), pg_get_viewdef('printed'::regclass, true)"
        row = connection.execute(query).fetchone()
        assert row is not None
        return "\n".join(part.removesuffix(";") for part in row)


# --- tests ------------------------------------------------------------------------------------------

SCRIPTS: dict[str, tuple[Callable[[str], str], Callable[[psycopg.Connection, str], str]]] = {
    "errors": (bound_error, server_error),
    "checks": (printed_check, server_check),
    "views": (printed_view, server_view),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_gives_what_it_says(name: str, request: pytest.FixtureRequest) -> None:
    ours, _ = SCRIPTS[name]
    cases = read_script(name)
    actual = [Case(case.text, ours(case.text), case.ours) for case in cases]
    if request.config.getoption("--rewrite"):
        text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
        heading = [line for line in text.splitlines() if line.startswith("#")]
        write_script(name, actual, "\n".join(line.removeprefix("# ") for line in heading))
        return
    wrong = [(a.text, a.expected, c.expected) for a, c in zip(actual, cases, strict=True) if a != c]
    assert not wrong


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_agrees_with_postgres(name: str, server: psycopg.Connection) -> None:
    _, theirs = SCRIPTS[name]
    wrong = []
    for case in read_script(name):
        if not case.ours:
            given = theirs(server, case.text)
            if given != case.expected:
                wrong.append((case.text, given, case.expected))
    assert not wrong


def test_printed_checks_bind_to_expressions_that_print_alike() -> None:
    relation = CATALOG.relation("public", "t")
    assert relation is not None
    context = make_context(CATALOG, ("public",), variable_params=False)
    for case in read_script("checks"):
        first = bind_check_expr(context, parse_expression(f"({case.text}) IS NOT NULL"), relation)
        once = deparse_expr(first, relation)
        again = bind_check(once, relation, CATALOG)
        assert deparse_expr(bind_check(deparse_expr(again, relation), relation, CATALOG), relation) == (
            deparse_expr(again, relation)
        )


def test_stored_views_bind_to_queries_of_the_same_columns_and_text() -> None:
    for case in read_script("views"):
        first = bind(f"CREATE VIEW printed AS {case.text}", CATALOG).statement
        assert isinstance(first, CreateView)
        [again] = parse(f"CREATE VIEW printed AS {first.sql}")
        second = bind_statement(
            again.statement, again.text, CATALOG, ("public",), settings=STORED_TEXT
        ).statement
        assert isinstance(second, CreateView)
        assert [(c.name, c.type) for c in second.columns] == [(c.name, c.type) for c in first.columns]
        assert second.sql == first.sql


def test_mangled_statements_fail_with_sql_errors_only() -> None:
    rng = Random(7)
    texts = [case.text for name in ("errors", "views") for case in read_script(name)]
    texts += [f"SELECT {case.text} FROM t" for case in read_script("checks")]
    tokens = [re.findall(r"\w+|'[^']*'|\s+|[^\w\s]", text) for text in texts]
    words = [token for part in tokens for token in part if token.strip()]
    bound = 0
    for _ in range(6000):
        parts = list(rng.choice(tokens))
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(parts))
            parts[place : place + rng.randrange(2)] = [f" {rng.choice(words)} "]
        try:
            for statement in parse("".join(parts)):
                bind_statement(statement.statement, statement.text, CATALOG, ("public",))
                bound += 1
        except SqlError:
            pass
    assert bound > 50
