"""What an application developer types in the first hour, beside PostgreSQL 15: rows, tags and whole errors are equal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import psycopg
import pytest

from tests.engine.test_like_postgres import Peer
from tests.support.fields import connect
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

ITEMS = "CREATE TEMP TABLE item (id int PRIMARY KEY, a text, b numeric)"


@pytest.fixture
def peer(server: ServerProcess, postgres: str) -> Iterator[Peer]:
    made = Peer(server.port, postgres)
    yield made
    made.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT e FROM jsonb_array_elements_text('[\"a\", null]') e",
        "SELECT e->>'k' FROM json_array_elements('[{\"k\": 3}, {\"k\": 4}]') e WHERE (e->>'k')::int > 3",
        "SELECT i->>'sku' FROM (VALUES ('[{\"sku\": 1}]'::jsonb)) o(items), jsonb_array_elements(o.items) AS i",
        "SELECT e.value, e, e.* FROM jsonb_array_elements('[1]') e",
        "SELECT r[1] FROM regexp_matches('abab', '(a)b', 'g') r",
        "SELECT x FROM generate_series(1, 2) x(y) ORDER BY x DESC",
        "SELECT e, n FROM jsonb_array_elements('[1]') WITH ORDINALITY e(v, n)",
        "SELECT e FROM jsonb_array_elements('[1]') WITH ORDINALITY e",
        "SELECT * FROM coalesce(row(1)) AS (a int)",
        "SELECT * FROM coalesce(row(1, NULL::text)) AS (a int, b text)",
        "SELECT e FROM jsonb_each('{\"a\": 1}') e",
        "SELECT m FROM unnest(ARRAY[1, 2], ARRAY['a']) m",
    ],
)
def test_a_scalar_functions_alias_means_its_value(peer: Peer, sql: str) -> None:
    ours, theirs = peer.both(sql)
    assert ours == theirs


def test_returning_gives_whole_rows_and_system_columns(peer: Peer) -> None:
    for sql in (
        ITEMS,
        "INSERT INTO item VALUES (1, 'x', 1), (2, NULL, 2.50) RETURNING item",
        "INSERT INTO item VALUES (3, 'z', 3) RETURNING row_to_json(item), (item).a, item IS NULL, tableoid::regclass",
        "UPDATE item SET a = 'y' WHERE id < 3 RETURNING item, xmax, cmin IS NULL, cmax IS NULL",
        "INSERT INTO item VALUES (1, 'n', 9) ON CONFLICT (id) DO UPDATE SET a = row_to_json(item)::text RETURNING *",
        "DELETE FROM item WHERE id = 2 RETURNING to_jsonb(item)",
        "INSERT INTO item VALUES (7, 'x', 1) RETURNING xmin = pg_current_xact_id()::xid",
    ):
        ours, theirs = peer.both(sql)
        assert ours == theirs, sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM coalesce(row(1)) AS (a int, b int)",
        "SELECT * FROM coalesce(row(1, 2)) AS (a int, b float)",
        "SELECT * FROM coalesce(row(1)) AS (a text)",
        "PREPARE p6 AS SELECT nosuch",
        "SELECT 1; PREPARE /* é */ p6(int) AS SELECT $1, nosuch(1)",
        "CREATE UNIQUE INDEX ON pg_temp.twice (a, b)",
        "ALTER TABLE pg_temp.twice ADD UNIQUE (a)",
        "ALTER TABLE pg_temp.twice ADD PRIMARY KEY (a)",
    ],
)
def test_errors_have_postgresqls_words_and_places(peer: Peer, sql: str) -> None:
    peer.both("CREATE TEMP TABLE twice (a int, b int)")
    peer.both("INSERT INTO twice VALUES (1, 1), (1, 1)")
    ours = peer.ours.fails(sql)
    with pytest.raises(psycopg.Error) as theirs:
        peer.theirs.execute(sql)
    diag = theirs.value.diag
    assert (ours["sqlstate"], ours["message"], ours.get("detail"), ours.get("position")) == (
        diag.sqlstate, diag.message_primary, diag.message_detail, diag.statement_position,
    )  # fmt: skip
    assert ours.get("constraint") == diag.constraint_name


def test_a_binary_cursor_sends_binary_values(server: ServerProcess) -> None:
    client = connect(server.port)
    client.run("BEGIN")
    client.run("DECLARE c BINARY CURSOR FOR SELECT 258, 'ab'")
    client.send(b"Q", b"FETCH c\0")
    answer = client.until_ready()
    [described] = [body for kind, body in answer if kind == b"T"]
    [row] = [body for kind, body in answer if kind == b"D"]
    assert described.endswith(b"\x00\x01")
    assert row == b"\x00\x02" + b"\x00\x00\x00\x04" + b"\x00\x00\x01\x02" + b"\x00\x00\x00\x02" + b"ab"
    client.close()


def test_prepared_statements_show_their_text(peer: Peer) -> None:
    peer.both("PREPARE shown (int, text) AS SELECT $1, $2")
    ours, theirs = peer.both("SELECT name, statement, from_sql FROM pg_prepared_statements")
    assert ours == theirs


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; VACUUM", "VACUUM; SELECT 1", "DISCARD ALL; SELECT 1", "CREATE INDEX CONCURRENTLY ON item (a); SELECT 1",
        "SELECT 1; DECLARE c CURSOR FOR VALUES (1), (2); FETCH ALL FROM c",
        "DECLARE c CURSOR FOR VALUES (1), (2); MOVE 1 FROM c; FETCH ALL FROM c", "LOCK TABLE item; SELECT 1",
        "DECLARE c CURSOR FOR SELECT 1", "LOCK TABLE item", "SAVEPOINT a; SELECT 1", "VACUUM",
    ],
)  # fmt: skip
def test_several_statements_of_one_query_are_a_block(peer: Peer, sql: str) -> None:
    """What PostgreSQL refuses in a block, and what it wants one for."""
    peer.both("DROP TABLE IF EXISTS item")
    peer.both("CREATE TABLE item (id int PRIMARY KEY, a text)")
    ours, theirs = peer.both(sql)
    assert ours == theirs
    assert peer.both("FETCH c") == ("34000", "34000")  # the block is over
    peer.both("DROP TABLE item")


def test_a_temporary_table_leaves_the_current_schema(peer: Peer) -> None:
    """Drivers look tables up in current_schema; that of temporary tables is searched first but never current."""
    shown = (
        "SELECT current_schema, current_schema(), current_schemas(false),"
        " current_schema IN (SELECT nspname FROM pg_namespace), cardinality(current_schemas(true))"
    )
    for path in ("public", "pg_catalog, public", "nosuch", '"$user", public'):
        ours, theirs = peer.both(f"SET search_path = {path}; {shown}")
        assert ours == theirs, path
        peer.both("CREATE TEMP TABLE IF NOT EXISTS fleeting (i int)")
        ours, theirs = peer.both(shown)
        assert ours == theirs, path
    peer.both("SET search_path = pg_temp")
    for client in (peer.ours.run(shown).rows, peer.theirs.execute(shown).fetchall()):
        assert str(client[0][0]).startswith("pg_temp_")


@pytest.mark.parametrize(
    "zone",
    [
        "-3.5", "'-3.5'", "5.75", "'+05:30'", "'-3:30'", "'05:30'", "+5", "'-0'", "'167'", "'168'", "1e1", "'5:61'", "'foo5'",
        "'<+05:30>-05:30'", "'UTC+3'", "INTERVAL '-03:30' HOUR TO MINUTE", "INTERVAL '2' HOUR", "'abc'", "'Z'", "'cet'",
    ],
)  # fmt: skip
def test_every_way_to_name_a_time_zone(peer: Peer, zone: str) -> None:
    """Numbers count hours east, POSIX specifications west; what SET takes can be used."""
    ours, theirs = peer.both(f"SET TIME ZONE {zone}")
    assert ours == theirs
    shown = "SELECT timestamptz '2024-07-01 00:00+00', to_char(timestamptz '2024-07-01 00:00+00', 'TZ OF'), current_setting('timezone')"
    ours, theirs = peer.both(shown)
    assert ours == theirs


@pytest.mark.parametrize(
    "columns",
    [
        "i int PRIMARY KEY, j int UNIQUE, UNIQUE (j), UNIQUE (i)",
        "i int UNIQUE, CONSTRAINT named UNIQUE (i), CONSTRAINT other UNIQUE (i), PRIMARY KEY (i)",
        "i int UNIQUE, j int, UNIQUE (i, j), UNIQUE (j, i), UNIQUE (i) DEFERRABLE, UNIQUE NULLS NOT DISTINCT (i)",
    ],
)
def test_keys_that_say_the_same_are_one(peer: Peer, columns: str) -> None:
    peer.both(f"CREATE TEMP TABLE twofold ({columns})")
    ours, theirs = peer.both(
        "SELECT conname, contype, conkey, condeferrable FROM pg_constraint"
        " WHERE conrelid = 'twofold'::regclass AND contype IN ('p', 'u') ORDER BY 1"
    )
    assert ours == theirs


@pytest.mark.parametrize(
    "actions",
    [
        "DROP CONSTRAINT moved_pkey, ADD PRIMARY KEY (b)",
        "DROP COLUMN id, ADD PRIMARY KEY (b)",
        "DROP COLUMN id, ADD COLUMN id bigint PRIMARY KEY DEFAULT 7",
        "DROP CONSTRAINT moved_pkey, ALTER COLUMN id DROP NOT NULL",
        "DROP CONSTRAINT moved_b_key, ADD CONSTRAINT moved_b_key UNIQUE (b, id)",
        "ADD PRIMARY KEY (b)",
    ],
)
def test_one_alter_table_replaces_a_key(peer: Peer, actions: str) -> None:
    peer.both("CREATE TEMP TABLE moved (id int PRIMARY KEY, b int NOT NULL UNIQUE)")
    peer.both("INSERT INTO moved VALUES (1, 10)")
    for sql in (
        f"ALTER TABLE moved {actions}",
        "SELECT pg_get_constraintdef(oid), conname FROM pg_constraint WHERE conrelid = 'moved'::regclass ORDER BY 1",
        "SELECT attname, attnotnull FROM pg_attribute WHERE attrelid = 'moved'::regclass AND attnum > 0"
        " AND NOT attisdropped ORDER BY 1",
        "INSERT INTO moved (id, b) VALUES (2, 10)",
        "SELECT * FROM moved",
    ):
        ours, theirs = peer.both(sql)
        assert ours == theirs, sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ARRAY['int4'::regtype, 'text'::regtype], '{pg_class,-}'::regclass[], '{{int4},{text}}'::regtype[]",
        "SELECT ARRAY['int4'::regtype]::text, ('{' || 'bpchar,timetz}')::regtype[]::text, ARRAY[1259]::regclass[]",
        "SELECT array_agg(oid::regclass ORDER BY oid) FROM pg_class WHERE relname IN ('pg_class', 'pg_type')",
        "SELECT '{nosuch}'::regclass[]",
        "SELECT '{int8,\"char\"}'::regtype[]",
    ],
)
def test_arrays_of_catalog_objects_show_names(peer: Peer, sql: str) -> None:
    ours, theirs = peer.both(sql)
    assert ours == theirs


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT set_config('my.var', 'a', false), current_setting('my.var')",
        "SELECT current_setting('my.var', true), set_config('my.var', 'b', false), current_setting('my.var')",
        "SELECT set_config('timezone', 'Asia/Tokyo', false), '2020-01-01 00:00Z'::timestamptz::text",
        "SELECT CASE WHEN set_config('my.var', 'c', true) = 'c' THEN current_setting('my.var') END",
    ],
)
def test_a_setting_is_seen_as_soon_as_it_is_made(peer: Peer, sql: str) -> None:
    ours, theirs = peer.both(sql)
    assert ours == theirs


def test_explain_gives_times_as_numbers(server: ServerProcess) -> None:
    client = connect(server.port)
    [(document,)] = client.run("EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1").rows
    assert document is not None
    [plan] = json.loads(document)
    assert isinstance(plan["Execution Time"], float)
    [line] = [row[0] for row in client.run("EXPLAIN ANALYZE SELECT 1").rows if row[0].startswith("Execution")]
    assert re.fullmatch(r"Execution Time: \d+\.\d{3} ms", line)
    client.close()


def test_sub_selects_in_returning_and_on_conflict_see_the_statements_snapshot(peer: Peer) -> None:
    """What the statement itself changes is not seen by them, what it has stored is: as columns of the row."""
    for sql in (
        ITEMS,
        "INSERT INTO item VALUES (1, 'one', 0)",
        "CREATE TEMP TABLE word (id int PRIMARY KEY, t text)",
        "INSERT INTO word VALUES (1, 'one'), (2, 'two'), (4, 'four')",
        "INSERT INTO item VALUES (4, 'x', 1) RETURNING (SELECT count(*) FROM item),"
        " (SELECT t FROM word w WHERE w.id = item.id), EXISTS (SELECT 1 FROM item i WHERE i.id = 4),"
        " ARRAY(SELECT id FROM word ORDER BY 1)",
        "INSERT INTO item VALUES (2, 'y', 1), (5, NULL, 2) RETURNING id, id IN (SELECT id FROM word), (SELECT max(id) FROM item)",
        "INSERT INTO item VALUES (4, 'z', 7) ON CONFLICT (id) DO UPDATE SET b = (SELECT max(b) + 1 FROM item) + excluded.b"
        " WHERE EXISTS (SELECT 1 FROM word WHERE id = excluded.id AND item.a = 'x') RETURNING id, b",
        "INSERT INTO item VALUES (2, 'u', 3), (6, 'v', 2) ON CONFLICT (id) DO UPDATE"
        " SET (b, a) = (SELECT item.b + excluded.b, count(*)::text FROM item) RETURNING *, (SELECT count(*) FROM item)",
        "UPDATE item SET b = b + 1 WHERE id = 4 RETURNING b, (SELECT max(b) FROM item), (SELECT row_to_json(item)),"
        " (SELECT t FROM word WHERE id = item.id)",
        "UPDATE item SET b = b + 0 * random()::int WHERE id = 4 RETURNING (SELECT sum(i.b) FROM item i WHERE i.b <= item.b)",
        "DELETE FROM item WHERE id = 4 RETURNING b, (SELECT count(*) FROM item), (SELECT (item).a)",
        "INSERT INTO item VALUES (11, NULL, 1) RETURNING (SELECT id FROM word)",
        "INSERT INTO item VALUES (12, NULL, 1) RETURNING (SELECT relname FROM pg_class WHERE oid = tableoid)",
        "INSERT INTO item VALUES (13, NULL, 1) RETURNING pg_sleep(0.001), id",
        "SELECT * FROM item ORDER BY id",
    ):
        ours, theirs = peer.both(sql)
        assert ours == theirs, sql


def test_waiting_where_nobody_can_wait_is_refused(server: ServerProcess) -> None:
    client = connect(server.port)
    client.run(
        "CREATE TEMP TABLE dozes (i int, t text DEFAULT pg_sleep(0.001)::text, CHECK (pg_sleep(0.001) IS NULL OR i > 0))"
    )
    assert client.fails("INSERT INTO dozes (i) VALUES (1)")["sqlstate"] == "0A000"
    assert client.fails("INSERT INTO dozes VALUES (1, '')")["sqlstate"] == "0A000"
    client.run("PREPARE nothing AS SELECT $1::text")
    assert client.fails("EXECUTE nothing(pg_sleep(0.001)::text)")["sqlstate"] == "0A000"
    client.close()


@pytest.mark.parametrize(
    "path",
    ["pg_temp", "pg_temp, public", "nosuch, pg_temp", "public, pg_temp"],
)
def test_relations_go_to_the_temporary_schema_where_the_path_lists_it(peer: Peer, path: str) -> None:
    """Also as the session's first temporary relation."""
    for sql in (
        f"SET search_path = {path}",
        "CREATE TABLE placed (a int PRIMARY KEY)",
        "CREATE TABLE placed_as AS SELECT 1 AS a",
        "CREATE VIEW placed_view AS SELECT 1 AS a",
        "SELECT relname, relpersistence, nspname LIKE 'pg_temp%' FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
        " WHERE relname LIKE 'placed%' ORDER BY 1",
        "INSERT INTO placed VALUES (1) RETURNING a",
        "DROP VIEW placed_view",
        "DROP TABLE placed, placed_as",
    ):
        ours, theirs = peer.both(sql)
        assert ours == theirs, sql


def test_a_block_that_has_read_keeps_its_isolation_level(peer: Peer) -> None:
    for sql in (
        "BEGIN", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT 1", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SHOW transaction_isolation", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "ROLLBACK",
        "BEGIN", "SELECT 1", "SET transaction_isolation = 'repeatable read'", "ROLLBACK", "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "SHOW transaction_isolation", "COMMIT",
    ):  # fmt: skip
        ours, theirs = peer.both(sql)
        assert ours == theirs, sql


EXTREMES = [
    "SELECT max(id), min(id), max(a), min(a), min(b), max(b), min(d), max(d), max(n), max(v) FROM edge",
    "SELECT max(a) + 1, coalesce(min(b), 'z') || '!' FROM edge",
    "SELECT max(a), min(a) FROM edge WHERE b = 'x3'",
    "SELECT max(id) FROM edge WHERE id < 50",
    "SELECT max(id) FROM edge WHERE id < 0",
    "SELECT max(a) FROM edge WHERE b IS NULL",
    "SELECT max(b) FROM edge WHERE a = 3",
    "SELECT max(DISTINCT a), max(a) FILTER (WHERE a < 3), count(*) FROM edge",
    "SELECT x, (SELECT max(a) FROM edge WHERE b = x) FROM (VALUES ('x1'), ('nosuch')) o(x)",
    "SELECT max(id) FROM edge HAVING max(id) > 5",
    "SELECT max(id) FROM edge LIMIT 0",
]


def test_extremes_from_the_ends_of_indexes_are_what_aggregates_give(peer: Peer) -> None:
    """Over an empty table, with NULLs, with changes of the transaction's own, after deletes."""
    peer.both("CREATE TEMP TABLE edge (id int PRIMARY KEY, a int, b text, d date, n numeric, v varchar(9))")
    for columns in ("a", "b, a", "d", "n", "v"):
        peer.both(f"CREATE INDEX ON edge ({columns})")
    for change in (
        "BEGIN",
        "INSERT INTO edge SELECT g, nullif(g % 7, 0), 'x' || g % 5, date '2020-01-01' + g % 9, g, g FROM generate_series(1, 100) g",
        "INSERT INTO edge (id) VALUES (-5), (999)",
        "COMMIT",
        "BEGIN",
        "INSERT INTO edge (id, a) VALUES (1000, 50)",
        "DELETE FROM edge WHERE id = 1000",
        "INSERT INTO edge (id) SELECT max(id) + 1 FROM edge",
        "COMMIT",
        "DELETE FROM edge WHERE a IS NOT NULL",
    ):
        for sql in EXTREMES:
            ours, theirs = peer.both(sql)
            assert ours == theirs, (change, sql)
        peer.both(change)
    for sql in EXTREMES:
        ours, theirs = peer.both(sql)
        assert ours == theirs, sql
