"""Text search configurations and dictionaries of one's own: they outlast restarts, go into copies, are as they were in the past, and run
the same on every route."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess

FRENCH = (
    "CREATE EXTENSION unaccent; CREATE TEXT SEARCH CONFIGURATION fr (COPY = french);"
    "ALTER TEXT SEARCH CONFIGURATION fr ALTER MAPPING FOR hword, hword_part, word WITH unaccent, french_stem;"
)


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    made.run("CREATE SCHEMA searched; SET search_path = searched")
    made.run(FRENCH)
    yield made
    made.run("RESET ALL; DROP SCHEMA searched CASCADE")
    made.close()


def test_they_outlast_a_restart_and_go_into_copies(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    server.sql(
        FRENCH + "CREATE TEXT SEARCH DICTIONARY few (TEMPLATE = simple, STOPWORDS = french, ACCEPT = false);"
        "ALTER TEXT SEARCH CONFIGURATION fr ALTER MAPPING FOR asciiword WITH few, french_stem;"
        "CREATE TABLE page (body text, c regconfig DEFAULT 'fr', w tsvector GENERATED ALWAYS AS (to_tsvector('fr', body)) STORED);"
        "CREATE INDEX page_w ON page USING gin (to_tsvector('fr', body));"
        "INSERT INTO page VALUES ('Hôtels de la Mer')"
    )
    asked = "SELECT w, c FROM page WHERE to_tsvector('fr', body) @@ to_tsquery('fr', 'hôtel')"
    expected = [("'hotel':1 'mer':4", "fr")]
    assert server.sql(asked) == expected
    server.sql("CREATE DATABASE copied TEMPLATE postgres")
    server.sql("ALTER TEXT SEARCH CONFIGURATION fr ALTER MAPPING FOR word WITH simple")
    server.kill()
    server = ServerProcess(tmp_path / "data")
    try:
        assert server.sql("SELECT to_tsvector('fr', 'Hôtels la')") == [("'hôtels':1",)]
        with psycopg.connect(server.url.rsplit("/", 1)[0] + "/copied", autocommit=True) as copied:
            rows = copied.execute(asked.replace("SELECT w, c", "SELECT w::text, c::text")).fetchall()
            assert rows == expected
            copied.execute("INSERT INTO page VALUES ('Été')")
            assert copied.execute("SELECT w::text FROM page WHERE body = 'Été'").fetchone() == ("'ete':1",)
            with pytest.raises(psycopg.errors.DependentObjectsStillExist) as refused:
                copied.execute("DROP TEXT SEARCH DICTIONARY few")
            told = str(refused.value.diag.message_detail).splitlines()
            assert told[0] == "text search configuration fr depends on text search dictionary few"
            copied.execute("DROP TEXT SEARCH CONFIGURATION fr CASCADE")
            assert copied.execute("SELECT body FROM page ORDER BY 1").fetchone() == ("Hôtels de la Mer",)
        assert server.sql("SELECT count(*) FROM pg_ts_config WHERE cfgname = 'fr'") == [("1",)]
    finally:
        server.stop()


def test_the_past_has_the_configuration_of_then(client: FieldsClient) -> None:
    client.run("CREATE TABLE past (body text)")
    client.run("INSERT INTO past VALUES ('Été')")
    [[before]] = client.run("SELECT now()").rows
    client.run("ALTER TEXT SEARCH CONFIGURATION fr ALTER MAPPING FOR word WITH simple")
    client.run("CREATE TEXT SEARCH CONFIGURATION later (COPY = simple)")
    asked = "SELECT to_tsvector('fr', body), to_tsvector('fr', 'Été') FROM past"
    assert client.run(asked).rows == [("'été':1", "'été':1")]
    assert client.run(f"{asked} AS OF SYSTEM TIME '{before}'").rows == [("'ete':1", "'ete':1")]
    missing = client.fails(
        f"SELECT to_tsvector('searched.later', body) FROM past AS OF SYSTEM TIME '{before}'"
    )
    assert (missing["sqlstate"], missing["message"]) == (
        "42704",
        'text search configuration "searched.later" does not exist',
    )


def test_every_route_answers_the_same(client: FieldsClient) -> None:
    client.run("CREATE TABLE page AS SELECT i AS id, 'Hôtels ' || i AS body FROM generate_series(1, 3000) i")
    asked = "SELECT count(*), sum(length(to_tsvector('fr', body))) FROM page WHERE to_tsvector('fr', body) @@ to_tsquery('fr', 'hôtel')"
    assert client.run(asked).rows == [("3000", "6000")]
    client.run("SET default_text_search_config = fr")
    by_default = "SELECT count(*) FROM page WHERE to_tsvector(body) @@ to_tsquery('hotel')"
    assert client.run(by_default).rows == [("3000",)]
    client.run("SET executor = local")
    assert client.run(by_default).rows == [("3000",)]
    assert client.fails(asked)["sqlstate"] == "0A000"


def test_reindex_computes_anew(client: FieldsClient) -> None:
    client.run("CREATE TABLE page (id int PRIMARY KEY, body text)")
    client.run("CREATE INDEX page_f ON page USING gin (to_tsvector('fr', body))")
    client.run("INSERT INTO page SELECT i, 'Hôtel ' || i FROM generate_series(1, 50) i")
    asked = "SELECT count(*) FROM page WHERE to_tsvector('fr', body) @@ 'hôtel'::tsquery"
    client.run("ALTER TEXT SEARCH CONFIGURATION fr ALTER MAPPING FOR word WITH simple")
    assert client.run(asked).rows == [("0",)]  # as in PostgreSQL, where the index serves it
    client.run("REINDEX INDEX page_f")
    assert client.run(asked).rows == [("50",)]
    client.run("BEGIN; ALTER TEXT SEARCH CONFIGURATION fr ALTER MAPPING FOR word WITH unaccent, simple")
    client.run("REINDEX TABLE page")
    client.run("INSERT INTO page VALUES (51, 'Hôtel')")
    assert client.run(asked).rows == [("0",)]
    client.run("ROLLBACK")
    assert client.run(asked).rows == [("50",)]
    client.run("REINDEX DATABASE postgres")
    assert client.run(asked).rows == [("50",)]


def test_loads_make_generated_vectors(client: FieldsClient) -> None:
    client.run(
        "CREATE TABLE loaded (id int, body text, w tsvector GENERATED ALWAYS AS (to_tsvector('fr', body)) STORED)"
    )
    client.run("INSERT INTO loaded SELECT i, 'Été ' || i FROM generate_series(1, 30000) i")
    assert client.run("SELECT count(*) FROM loaded WHERE w @@ 'ete'").rows == [("30000",)]


def test_copy_makes_generated_vectors(server: ServerProcess, client: FieldsClient) -> None:
    client.run(
        "CREATE TABLE loaded (id int, body text, w tsvector GENERATED ALWAYS AS (to_tsvector('fr', body)) STORED)"
    )
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SET search_path = searched")
        with connection.cursor().copy(
            "COPY loaded (id, body) FROM STDIN WHERE to_tsvector('fr', body) @@ 'ete'::tsquery"
        ) as copy:
            for start in range(0, 60_000, 1000):
                copy.write(
                    "".join(f"{i}\t{'Été' if i % 2 else 'Hiver'} {i}\n" for i in range(start, start + 1000))
                )
    assert client.run("SELECT count(*) FROM loaded WHERE w @@ 'ete'").rows == [("30000",)]


def test_definitions_that_are_there_already(client: FieldsClient) -> None:
    for text, constraint in (
        ("CREATE TEXT SEARCH CONFIGURATION fr (COPY = simple)", "pg_ts_config_cfgname_index"),
        ("CREATE TEXT SEARCH DICTIONARY unaccent (TEMPLATE = simple)", "pg_ts_dict_dictname_index"),
        ("ALTER TEXT SEARCH CONFIGURATION fr ADD MAPPING FOR word WITH simple", "pg_ts_config_map_index"),
    ):
        refused = client.fails(text)
        assert (refused["sqlstate"], refused["constraint"]) == ("23505", constraint)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("CREATE TEXT SEARCH DICTIONARY d (TEMPLATE = ispell, DICTFILE = ispell_sample)", "the template ispell"),
        ("CREATE TEXT SEARCH DICTIONARY d (TEMPLATE = synonym, SYNONYMS = x)", "the template synonym"),
        ("CREATE TEXT SEARCH DICTIONARY d (TEMPLATE = thesaurus, DICTFILE = x)", "the template thesaurus"),
        ("ALTER TEXT SEARCH CONFIGURATION english RENAME TO x", "ALTER TEXT SEARCH CONFIGURATION of PostgreSQL's own"),
        ("DROP TEXT SEARCH DICTIONARY english_stem CASCADE", "DROP TEXT SEARCH DICTIONARY of PostgreSQL's own"),
        ("COMMENT ON TEXT SEARCH CONFIGURATION english IS 'x'", "COMMENT ON TEXT SEARCH CONFIGURATION of PostgreSQL's own"),
        ("CREATE TEXT SEARCH CONFIGURATION pg_temp.x (COPY = simple)", "a temporary text search configuration"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named(client: FieldsClient, text: str, named: str) -> None:
    refused = client.fails(text)
    assert refused["sqlstate"] == "0A000"
    assert named in refused["message"]


def test_files_that_are_not_there(client: FieldsClient) -> None:
    for options, file in (
        ("TEMPLATE = simple, STOPWORDS = nosuch", 'stop-word file "nosuch.stop"'),
        ("TEMPLATE = unaccent, RULES = nosuch", 'unaccent file "nosuch.rules"'),
    ):
        refused = client.fails(f"CREATE TEXT SEARCH DICTIONARY d ({options})")
        assert (refused["sqlstate"], refused["message"]) == (
            "F0000",
            f"could not open {file}: No such file or directory",
        )


def test_a_session_may_begin_with_one(server: ServerProcess) -> None:
    server.sql("CREATE TEXT SEARCH CONFIGURATION begun (COPY = simple); CREATE ROLE ts_begins LOGIN")
    server.sql("ALTER ROLE ts_begins SET default_text_search_config = 'begun'")
    url = server.url.replace("postgres@", "ts_begins@")
    try:
        with psycopg.connect(url) as connection:
            assert connection.execute("SHOW default_text_search_config").fetchone() == ("public.begun",)
        server.sql("DROP TEXT SEARCH CONFIGURATION begun")
        with psycopg.connect(url) as connection:
            assert connection.execute("SHOW default_text_search_config").fetchone() == ("pg_catalog.english",)
        with pytest.raises(psycopg.OperationalError, match="invalid value for parameter"):
            psycopg.connect(url, options="-c default_text_search_config=begun")
    finally:
        server.sql("DROP TEXT SEARCH CONFIGURATION IF EXISTS begun; DROP ROLE ts_begins")


def test_copy_writes_names_of_objects(server: ServerProcess, client: FieldsClient) -> None:
    client.run("CREATE TABLE named (c regconfig, d regdictionary, r regclass, a regconfig[])")
    client.run(
        "INSERT INTO named VALUES ('fr', 'unaccent', 'named', '{simple,fr}'), (NULL, 'simple', 0, NULL)"
    )
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SET search_path = searched")
        for options, expected in (
            ("", "fr\tunaccent\tnamed\t{simple,fr}\n\\N\tsimple\t-\t\\N\n"),
            ("(FORMAT csv)", 'fr,unaccent,named,"{simple,fr}"\n,simple,-,\n'),
        ):
            with connection.cursor().copy(f"COPY named TO STDOUT {options}") as copy:
                assert b"".join(copy).decode() == expected
        connection.execute("CREATE TABLE again (LIKE named)")
        with connection.cursor().copy("COPY again FROM STDIN") as copy:
            copy.write("fr\tsearched.unaccent\tnamed\t{fr}\n")
        assert connection.execute("SELECT c::text, d::text FROM again").fetchall() == [("fr", "unaccent")]
        with connection.cursor().copy("COPY again (c) FROM STDIN") as copy:
            copy.write("fr\nsearched.fr\nsimple\n" * 40_000)
        counted = "SELECT c::text, count(*) FROM again GROUP BY c ORDER BY 2 DESC"
        assert connection.execute(counted).fetchall() == [("fr", 80_001), ("simple", 40_000)]
        with (
            pytest.raises(psycopg.errors.UndefinedObject) as refused,
            connection.cursor().copy("COPY again (c) FROM STDIN") as copy,
        ):
            copy.write("fr\nnosuch\n")
        assert refused.value.diag.context == 'COPY again, line 2, column c: "nosuch"'


def test_two_that_make_the_same_name_come_one_after_the_other(
    server: ServerProcess, client: FieldsClient
) -> None:
    client.run("BEGIN; CREATE TEXT SEARCH CONFIGURATION twice (COPY = simple)")
    with psycopg.connect(server.url, autocommit=True) as other:
        other.execute("SET search_path = searched; SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("CREATE TEXT SEARCH CONFIGURATION twice (COPY = english)")
        with pytest.raises(psycopg.errors.UndefinedObject):
            other.execute("SELECT to_tsvector('twice', 'running')")
        client.run("COMMIT")
        with pytest.raises(psycopg.errors.UniqueViolation):
            other.execute("CREATE TEXT SEARCH CONFIGURATION twice (COPY = english)")
        asked = "SELECT to_tsvector('twice', 'The running')::text"
        assert other.execute(asked).fetchone() == ("'running':2 'the':1",)
        client.run("ALTER TEXT SEARCH CONFIGURATION twice ALTER MAPPING FOR asciiword WITH english_stem")
        assert other.execute(asked).fetchone() == ("'run':2",)


def test_a_table_that_names_one_waits_for_its_drop(server: ServerProcess, client: FieldsClient) -> None:
    client.run("CREATE TEXT SEARCH CONFIGURATION going (COPY = simple)")
    client.run("BEGIN; DROP TEXT SEARCH CONFIGURATION going")
    with psycopg.connect(server.url, autocommit=True) as other:
        other.execute("SET search_path = searched; SET lock_timeout = '100ms'")
        made = "CREATE TABLE late (b text, w tsvector GENERATED ALWAYS AS (to_tsvector('going', b)) STORED)"
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute(made)
        client.run("COMMIT")
        with pytest.raises(psycopg.errors.UndefinedObject):
            other.execute(made)


def test_a_subscription_ends_where_its_configuration_changes(
    server: ServerProcess, client: FieldsClient
) -> None:
    client.run("CREATE TABLE followed (id int PRIMARY KEY, body text)")
    client.run("INSERT INTO followed VALUES (1, 'Été')")
    with psycopg.connect(server.url, autocommit=True) as other:
        other.execute("SET search_path = searched")
        by_row = "SELECT id, to_tsvector('fr', body)::text AS v FROM followed"
        asked_again = "SELECT to_tsvector('fr', body)::text AS v, count(*) FROM followed GROUP BY 1"
        other.execute("BEGIN")
        other.execute(f"DECLARE a CURSOR FOR SUBSCRIBE TO ({by_row})")
        other.execute(f"DECLARE b CURSOR FOR SUBSCRIBE TO ({asked_again})")
        assert [row[1:] for row in other.execute("FETCH ALL FROM a WITH (timeout = '5s')")] == [
            (1, 1, "'ete':1")
        ]
        assert [row[1:] for row in other.execute("FETCH ALL FROM b WITH (timeout = '5s')")] == [
            (1, "'ete':1", 1)
        ]
        client.run("ALTER TEXT SEARCH CONFIGURATION fr ALTER MAPPING FOR word WITH simple")
        client.run("INSERT INTO followed VALUES (2, 'Été')")
        found = [row[1:] for row in other.execute("FETCH ALL FROM b WITH (timeout = '5s')")]
        assert found == [(-1, "'ete':1", 1), (1, "'été':1", 2)]
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="have changed"):
            other.execute("FETCH ALL FROM a WITH (timeout = '5s')")
        other.execute("ROLLBACK")
