"""CREATE EXTENSION: what differs from PostgreSQL, which functions/extensions.sql of the differential scripts is beside."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from planner.catalog.extensions import COMMENTS
from planner.facts import INTERNAL, facts
from planner.functions import load
from sqllogictest.client import ServerError
from tests.support.server import ServerProcess


def test_every_extension_has_a_comment_and_functions_of_its_own_oids() -> None:
    known = facts()
    assert set(COMMENTS) == set(known.extensions)
    parts = [proc.oid for extension in known.extensions.values() for proc in extension.functions]
    assert len(parts) == len(set(parts))
    assert not any(proc.oid in parts for group in known.procs_by_name.values() for proc in group)


def test_a_function_that_is_not_there_says_so_by_name(server: ServerProcess) -> None:
    server.sql("CREATE SCHEMA ext_refused; CREATE EXTENSION pgcrypto SCHEMA ext_refused")
    try:
        for call, named in (
            ("pgp_sym_encrypt('a', 'b')", "pgp_sym_encrypt(text,text)"),
            ("crypt('a', ext_refused.gen_salt('bf'))", "gen_salt('bf')"),
            ("crypt('a', '$2a$06$abcdefghijklmnopqrstuu')", "Blowfish"),
            ("crypt('a', 'ab')", "DES"),
        ):
            with pytest.raises(ServerError) as refused:
                server.sql(f"SELECT ext_refused.{call}")
            assert refused.value.sqlstate == "0A000"
            assert named in refused.value.message
    finally:
        server.sql("DROP SCHEMA ext_refused CASCADE")
    callable_ = (p for e in facts().extensions.values() for p in e.functions if INTERNAL not in p.arg_types)
    missing = [proc for proc in callable_ if proc.oid not in load().functions]
    assert {proc.name.split("_")[0] for proc in missing} == {
        "armor", "dearmor", "decrypt", "dmetaphone", "encrypt", "hstore", "metaphone", "pgp",
    }  # fmt: skip


def test_plpgsql_is_there_from_the_beginning(server: ServerProcess) -> None:
    told: list[str] = []
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.add_notice_handler(
            lambda notice: told.append(f"{notice.severity} {notice.message_primary}")
        )
        connection.execute("CREATE EXTENSION IF NOT EXISTS plpgsql")
        found = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'plpgsql'").fetchall()
        assert found == [("1.0",)]
        with pytest.raises(psycopg.errors.DuplicateObject):
            connection.execute("CREATE EXTENSION plpgsql")
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            connection.execute("DROP EXTENSION plpgsql")
    assert told == ['NOTICE extension "plpgsql" already exists, skipping']


def test_executors_that_have_no_such_function_call_python(server: ServerProcess) -> None:
    server.sql("CREATE SCHEMA ext_rows; CREATE EXTENSION fuzzystrmatch SCHEMA ext_rows")
    server.sql("CREATE TABLE ext_rows.t AS SELECT g, 'name ' || g AS n FROM generate_series(1, 3000) g")
    asked = "SELECT sum(ext_rows.levenshtein(n, 'name 1')), count(*) FROM ext_rows.t WHERE ext_rows.soundex(n) = 'N500'"
    try:
        distances = [len(str(g)) - ("1" in str(g)) for g in range(1, 3001)]
        assert server.sql(asked) == [(str(sum(distances)), "3000")]
        client = server.connect()
        for route in ("index", "local"):
            client.run(f"SET executor = {route}")
            assert client.run(asked).rows == [(str(sum(distances)), "3000")], route
        client.close()
    finally:
        server.sql("DROP SCHEMA ext_rows CASCADE")


def test_extensions_outlast_a_restart_and_go_into_copies(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    server.sql(
        "CREATE EXTENSION \"uuid-ossp\"; CREATE VIEW v AS SELECT uuid_generate_v5(uuid_nil(), 'x') AS id"
    )
    before = server.sql("SELECT id FROM v")
    server.sql("CREATE DATABASE copied TEMPLATE postgres")
    server.kill()
    server = ServerProcess(tmp_path / "data")
    try:
        assert server.sql("SELECT id FROM v") == before
        with psycopg.connect(server.url.rsplit("/", 1)[0] + "/copied", autocommit=True) as copied:
            assert copied.execute("SELECT id::text FROM v").fetchall() == before
            with pytest.raises(psycopg.errors.DependentObjectsStillExist):
                copied.execute('DROP EXTENSION "uuid-ossp"')
            copied.execute('DROP EXTENSION "uuid-ossp" CASCADE')
            left = copied.execute("SELECT count(*) FROM pg_proc WHERE proname LIKE 'uuid_gen%'")
            assert left.fetchone() == (0,)
        assert server.sql("SELECT id FROM v") == before
    finally:
        server.stop()


def test_extensions_belong_to_roles(server: ServerProcess) -> None:
    server.sql("CREATE ROLE ext_owner; CREATE SCHEMA ext_owned AUTHORIZATION ext_owner")
    client = server.connect()
    client.run("SET ROLE ext_owner")
    with pytest.raises(ServerError, match="permission denied to create extension"):
        client.run("CREATE EXTENSION unaccent SCHEMA ext_owned")
    server.sql("GRANT CREATE ON DATABASE postgres TO ext_owner")
    client.run("CREATE EXTENSION unaccent SCHEMA ext_owned")
    client.close()
    with (
        psycopg.connect(server.url, autocommit=True) as connection,
        pytest.raises(psycopg.errors.DependentObjectsStillExist) as refused,
    ):
        connection.execute("DROP ROLE ext_owner")
    assert "owner of extension unaccent" in str(refused.value.diag.message_detail)
    server.sql("DROP OWNED BY ext_owner; DROP ROLE ext_owner")
    assert server.sql("SELECT count(*) FROM pg_extension WHERE extname = 'unaccent'") == [("0",)]
    assert server.sql("SELECT count(*) FROM pg_proc WHERE proname = 'unaccent'") == [("0",)]


def test_functions_of_extensions_stand_in_defaults_checks_and_indexes(server: ServerProcess) -> None:
    server.sql(
        'CREATE SCHEMA ext_kept; CREATE EXTENSION "uuid-ossp" SCHEMA ext_kept; CREATE EXTENSION pgcrypto SCHEMA ext_kept;'
        "CREATE TABLE ext_kept.t (id uuid PRIMARY KEY DEFAULT ext_kept.uuid_generate_v4(), n text,"
        " d bytea GENERATED ALWAYS AS (ext_kept.digest(n, 'md5')) STORED, CHECK (ext_kept.digest(n, 'md5') <> ''));"
        "CREATE INDEX ON ext_kept.t (ext_kept.digest(n, 'sha1'))"
    )
    try:
        server.sql("INSERT INTO ext_kept.t (n) SELECT 'n' || g FROM generate_series(1, 3) g")
        assert server.sql("SELECT count(DISTINCT id), min(substr(id::text, 15, 1)) FROM ext_kept.t") == [
            ("3", "4")
        ]
        found = (
            "SELECT n, d = ext_kept.digest(n, 'md5') FROM ext_kept.t"
            " WHERE ext_kept.digest(n, 'sha1') = '\\x40243476fcaaf8dca4d9eda7fde4232c5c18f75d'"
        )
        assert server.sql(found) == [("n2", "t")]
        by_index = server.sql("EXPLAIN " + found)
        assert any("Index" in str(line) for line in by_index), by_index
        with psycopg.connect(server.url, autocommit=True) as connection:
            with pytest.raises(psycopg.errors.DependentObjectsStillExist) as refused:
                connection.execute('DROP EXTENSION "uuid-ossp"')
            assert refused.value.diag.message_detail == (
                "default value for column id of table ext_kept.t depends on function ext_kept.uuid_generate_v4()"
            )
    finally:
        server.sql("DROP SCHEMA ext_kept CASCADE")


def test_an_index_of_trigrams_serves_patterns_and_goes_with_its_extension(server: ServerProcess) -> None:
    client = server.connect()
    client.run("CREATE SCHEMA trg; CREATE EXTENSION pg_trgm SCHEMA trg")
    try:
        client.run(
            "SET search_path = trg, public; CREATE TABLE trg.names (id int PRIMARY KEY, name varchar(40));"
            "INSERT INTO trg.names SELECT i, 'name ' || i || ' of many' FROM generate_series(1, 400) i;"
            "CREATE INDEX names_trgm ON trg.names USING gin (name gin_trgm_ops)"
        )
        for condition, ids in (
            ("name LIKE '%me 39_ of%'", range(390, 400)),
            ("name ILIKE '%NAME 12 %'", [12]),
            ("name = 'name 7 of many'", [7]),
            ("name OPERATOR(trg.%) 'name 333 of money' AND id > 332 AND id < 334", [333]),
        ):
            query = f"SELECT id FROM trg.names WHERE {condition} ORDER BY id"
            assert "using names_trgm" in str(client.run(f"EXPLAIN {query}").rows)
            assert [int(row[0]) for row in client.run(query).rows] == list(ids)
            client.run("SET executor = local")
            if "OPERATOR" not in query:
                assert [int(row[0]) for row in client.run(query).rows] == list(ids)
            client.run("RESET executor")
        with pytest.raises(ServerError) as needed:
            client.run("DROP EXTENSION pg_trgm")
        assert needed.value.sqlstate == "2BP01"
        with pytest.raises(ServerError) as refused:
            client.run("CREATE INDEX ON trg.names USING gist (name gist_trgm_ops)")
        assert (refused.value.sqlstate, "gist_trgm_ops" in refused.value.message) == ("0A000", True)
        client.run("DROP EXTENSION pg_trgm CASCADE; INSERT INTO trg.names VALUES (500, 'name 12 again')")
        query = "SELECT id FROM trg.names WHERE name LIKE '%name 12 %' ORDER BY id"
        assert "names_trgm" not in str(client.run(f"EXPLAIN {query}").rows)
        assert [int(row[0]) for row in client.run(query).rows] == [12, 500]
    finally:
        client.run("RESET search_path; RESET executor; DROP SCHEMA trg CASCADE")
        client.close()
