"""POSTGRES sources against a real PostgreSQL 15: snapshot, changes, whole transactions, and what stops a source."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import NamedTuple

import psycopg
import pytest

from tests.engine.sources.support import PATIENCE_S, Connection, connect, refused, rows, value, wait_for
from tests.support.postgres import fresh_schema, postgres, url_of  # noqa: F401 - a fixture
from tests.support.server import ServerProcess


class Upstream(NamedTuple):
    """A schema of its own upstream, which is also the publication's name; ``options`` of a source that reads it."""

    c: Connection
    schema: str
    options: str


@pytest.fixture
def upstream(postgres: str) -> Iterator[Upstream]:  # noqa: F811
    name = fresh_schema()
    with psycopg.connect(postgres, autocommit=True) as c:
        c.execute(f"CREATE SCHEMA {name}")
        c.execute(f"SET search_path = {name}")
        yield Upstream(
            c, name, f"(connection = '{url_of(postgres)}', publication = '{name}', slot = '{name}')"
        )
        c.execute(
            f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{name}'"
        )
        c.execute(f"DROP PUBLICATION IF EXISTS {name}")
        c.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def here(server: ServerProcess) -> Iterator[Connection]:
    with connect(server) as c:
        yield c
        for [name] in rows(c, "SELECT DISTINCT name FROM holdfast_sources WHERE kind = 'postgres'"):
            c.execute(f"DROP SOURCE {name} CASCADE")


def same(up: Upstream, here: Connection, sql: str) -> None:
    """Wait until a query answers here what it answers upstream."""
    expected = rows(up.c, sql)
    wait_for(
        here,
        f"SELECT ARRAY(SELECT t::text FROM ({sql}) t)",
        [_text(row, up, sql, i) for i, row in enumerate(expected)],
    )


def _text(row: tuple[object, ...], up: Upstream, sql: str, index: int) -> str:
    return str(value(up.c, f"SELECT t::text FROM ({sql}) t LIMIT 1 OFFSET {index}"))


def slot_lsn(up: Upstream) -> str:
    return str(
        value(up.c, f"SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '{up.schema}'")
    )


def test_snapshot_then_changes_of_all_kinds(upstream: Upstream, here: Connection) -> None:
    up = upstream.c
    up.execute(
        "CREATE TABLE item (id int PRIMARY KEY, v text, n numeric(10,2), at timestamptz, a int[], j jsonb, b bytea,"
        " f float8, i interval, d date)"
    )
    up.execute(
        "INSERT INTO item SELECT g, 'text ' || g, g / 3.0, now(), ARRAY[g, NULL], jsonb_build_object('g', g),"
        " '\\x00ff', g / 7.0, '1 mon 2 days 03:04:05.6', '2024-02-29' FROM generate_series(1, 500) g"
    )
    up.execute(f"CREATE PUBLICATION {upstream.schema} FOR TABLE item")
    here.execute(f"CREATE SOURCE items FROM POSTGRES {upstream.options}")
    every = "SELECT * FROM item ORDER BY id"
    same(upstream, here, every)
    up.execute("INSERT INTO item (id, v) VALUES (1000, E'tab\\t new\\n line \\\\ back'), (1001, '')")
    up.execute("UPDATE item SET v = v || '!', n = NULL WHERE id % 10 = 0")
    up.execute("DELETE FROM item WHERE id % 7 = 0")
    up.execute("UPDATE item SET id = id + 5000 WHERE id BETWEEN 20 AND 30")
    same(upstream, here, every)
    up.execute("TRUNCATE item")
    up.execute("INSERT INTO item (id, v) VALUES (1, 'after')")
    same(upstream, here, every)
    wait_for(here, "SELECT acknowledged_position = position FROM holdfast_sources WHERE name = 'items'", True)
    assert value(here, "SELECT partition FROM holdfast_sources WHERE name = 'items'") == upstream.schema
    here.execute("DROP SOURCE items")
    assert rows(up, f"SELECT FROM pg_replication_slots WHERE slot_name = '{upstream.schema}'") == []


def test_values_that_an_update_does_not_send_are_kept(upstream: Upstream, here: Connection) -> None:
    up = upstream.c
    up.execute("CREATE TABLE doc (id int PRIMARY KEY, n int, body text)")
    up.execute("ALTER TABLE doc ALTER body SET STORAGE EXTERNAL")
    up.execute("INSERT INTO doc VALUES (1, 0, repeat('x', 20000)), (2, 0, repeat('y', 20000))")
    up.execute(f"CREATE PUBLICATION {upstream.schema} FOR TABLE doc")
    here.execute(f"CREATE SOURCE docs FROM POSTGRES {upstream.options}")
    shown = "SELECT id, n, length(body), left(body, 1) FROM doc ORDER BY id"
    same(upstream, here, shown)
    up.execute("UPDATE doc SET n = 1 WHERE id = 1")  # body is not sent
    up.execute("UPDATE doc SET id = 3, n = 2 WHERE id = 2")  # nor here, where the key moves
    with up.transaction():
        up.execute("INSERT INTO doc VALUES (4, 0, repeat('z', 20000))")
        up.execute("UPDATE doc SET n = 7 WHERE id = 4")
        up.execute("UPDATE doc SET id = 5 WHERE id = 4")
    same(upstream, here, shown)
    assert value(here, "SELECT count(*) FROM doc") == 3


def test_transactions_over_several_tables_are_never_half_there(upstream: Upstream, here: Connection) -> None:
    up = upstream.c
    up.execute("CREATE TABLE debit (id int PRIMARY KEY, amount int NOT NULL)")
    up.execute("CREATE TABLE credit (id int PRIMARY KEY, amount int NOT NULL)")
    up.execute("CREATE TABLE note (said text)")
    up.execute("INSERT INTO debit VALUES (0, 5)")
    up.execute("INSERT INTO credit VALUES (0, 5)")
    up.execute(f"CREATE PUBLICATION {upstream.schema} FOR TABLES IN SCHEMA {upstream.schema}")
    here.execute(f"CREATE SOURCE bank FROM POSTGRES {upstream.options}")
    wait_for(here, "SELECT count(*) FROM debit", 1)
    for i in range(1, 60):
        with up.transaction():
            up.execute("INSERT INTO debit VALUES (%s, %s)", (i, i))
            up.execute("INSERT INTO note VALUES (%s)", (f"n{i}",))
            up.execute("INSERT INTO credit VALUES (%s, %s)", (i, i))
        both = "SELECT (SELECT sum(amount) FROM debit), (SELECT sum(amount) FROM credit)"
        [(debit, credit)] = rows(here, both)
        assert debit == credit
    wait_for(here, "SELECT sum(amount) FROM credit", 5 + sum(range(60)))
    wait_for(here, "SELECT count(DISTINCT said) FROM note", 59)
    assert value(here, "SELECT tables FROM holdfast_sources WHERE name = 'bank'") == (
        "public.credit, public.debit, public.note"
    )


def test_what_upstream_may_forget_is_visible_to_every_later_read(
    upstream: Upstream, here: Connection, server: ServerProcess
) -> None:
    """Property 1 (A34), watched from outside: what the slot has been advanced past is here, however soon one looks."""
    up = upstream.c
    up.execute("CREATE TABLE seen (id int PRIMARY KEY, lsn pg_lsn)")
    up.execute("ALTER TABLE seen ALTER lsn TYPE text")
    up.execute(f"CREATE PUBLICATION {upstream.schema} FOR TABLE seen")
    here.execute(f"CREATE SOURCE watched FROM POSTGRES {upstream.options}")
    wait_for(here, "SELECT position IS NOT NULL FROM holdfast_sources WHERE name = 'watched'", True)
    committed: list[tuple[str, int]] = []
    checked = 0
    for i in range(1, 10_000):
        up.execute("INSERT INTO seen VALUES (%s, '')", (i,))
        committed.append((str(value(up, "SELECT pg_current_wal_lsn()")), i))
        confirmed = slot_lsn(upstream)
        count = value(here, "SELECT count(*) FROM seen")
        forgotten = [n for lsn, n in committed if _lsn(lsn) <= _lsn(confirmed)]
        if forgotten:
            checked += 1
            assert count >= max(forgotten)
        if checked >= 25:
            break
    assert checked >= 25


def _lsn(text: str) -> int:
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def error_of(c: Connection, name: str) -> str:
    wait_for(c, f"SELECT state FROM holdfast_sources WHERE name = '{name}'", "stopped")
    return str(value(c, f"SELECT last_error FROM holdfast_sources WHERE name = '{name}'"))


SCHEMA_CHANGES = [
    ("ADD COLUMN more int", 'Column "more" was added.'),
    ("DROP COLUMN v", 'Column "v" was removed or renamed.'),
    ("RENAME COLUMN v TO w", 'Column "w" was added; column "v" was removed or renamed.'),
    ("ALTER COLUMN v TYPE varchar(9)", 'The type of column "v" was changed from text.'),
    ("DROP CONSTRAINT shape_pkey", "Its primary key was changed."),
    ("RENAME TO figure", "It was renamed to {}.figure."),
]


@pytest.mark.parametrize(("change", "detail"), SCHEMA_CHANGES)
def test_a_schema_change_upstream_stops_the_source_and_nothing_else(
    upstream: Upstream, here: Connection, change: str, detail: str
) -> None:
    up = upstream.c
    up.execute("CREATE TABLE shape (id int PRIMARY KEY, v text)")
    up.execute("INSERT INTO shape VALUES (1, 'a')")
    up.execute(f"CREATE PUBLICATION {upstream.schema} FOR TABLE shape")
    here.execute(f"CREATE SOURCE shapes FROM POSTGRES {upstream.options}")
    wait_for(here, "SELECT count(*) FROM shape", 1)
    with up.transaction():
        up.execute("INSERT INTO shape VALUES (2, 'b')")
        up.execute(f"ALTER TABLE shape {change}")
        up.execute(f"INSERT INTO {'figure' if 'figure' in change else 'shape'} (id) VALUES (3)")
    assert error_of(here, "shapes") == (
        f"55000: table {upstream.schema}.shape has changed upstream\nDETAIL: {detail.format(upstream.schema)}\n"
        "HINT: Drop the source and create it again."
    )
    assert rows(here, "SELECT * FROM shape") == [(1, "a")]  # nothing half-applied


def test_a_table_that_joins_later_stops_the_source_until_it_leaves(
    upstream: Upstream, here: Connection
) -> None:
    up = upstream.c
    up.execute("CREATE TABLE member (id int PRIMARY KEY)")
    up.execute(f"CREATE PUBLICATION {upstream.schema} FOR TABLE member")
    here.execute(f"CREATE SOURCE club FROM POSTGRES {upstream.options}")
    wait_for(here, "SELECT state FROM holdfast_sources WHERE name = 'club'", "running")
    up.execute("CREATE TABLE guest (id int PRIMARY KEY)")
    up.execute(f"ALTER PUBLICATION {upstream.schema} ADD TABLE guest")
    with up.transaction():
        up.execute("INSERT INTO guest VALUES (1)")
        up.execute("INSERT INTO member VALUES (1)")
    assert error_of(here, "club").startswith(
        f"42P01: table {upstream.schema}.guest is in the publication, and not in the source"
    )
    assert value(here, "SELECT count(*) FROM member") == 0
    up.execute("TRUNCATE guest, member")
    up.execute("INSERT INTO member VALUES (2)")
    up.execute(f"ALTER PUBLICATION {upstream.schema} DROP TABLE guest")
    here.execute("ALTER SOURCE club RESUME")
    wait_for(here, "SELECT string_agg(id::text, ',') FROM member", "2")


def test_a_publication_that_is_gone_is_not_taken_for_the_slot(upstream: Upstream, here: Connection) -> None:
    up = upstream.c
    up.execute("CREATE TABLE paper (id int PRIMARY KEY)")
    up.execute(f"CREATE PUBLICATION {upstream.schema} FOR TABLE paper")
    here.execute(f"CREATE SOURCE papers FROM POSTGRES {upstream.options}")
    wait_for(here, "SELECT state FROM holdfast_sources WHERE name = 'papers'", "running")
    up.execute(f"DROP PUBLICATION {upstream.schema}")
    up.execute("INSERT INTO paper VALUES (1)")
    assert error_of(here, "papers").startswith(
        f'42704: publication "{upstream.schema}" did not exist upstream when changes were made'
    )


def test_a_slot_that_vanished_is_an_error_and_one_that_was_moved_too(
    upstream: Upstream, here: Connection
) -> None:
    up = upstream.c
    up.execute("CREATE TABLE t1 (id int PRIMARY KEY)")
    up.execute(f"CREATE PUBLICATION {upstream.schema} FOR TABLE t1")
    here.execute(f"CREATE SOURCE slotted FROM POSTGRES {upstream.options}")
    wait_for(here, "SELECT state FROM holdfast_sources WHERE name = 'slotted'", "running")
    up.execute("INSERT INTO t1 VALUES (1)")
    wait_for(here, "SELECT count(*) FROM t1", 1)
    here.execute("ALTER SOURCE slotted PAUSE")
    wait_for(here, "SELECT state FROM holdfast_sources WHERE name = 'slotted'", "paused")
    up.execute("INSERT INTO t1 VALUES (2)")
    slot = f"'{upstream.schema}'"
    up.execute(f"SELECT count(*) FROM pg_logical_slot_get_binary_changes({slot}, NULL, NULL, 'proto_version', '1',"
               f" 'publication_names', {slot})")  # fmt: skip
    here.execute("ALTER SOURCE slotted RESUME")
    error = "SELECT split_part(last_error, E'\\n', 1) FROM holdfast_sources WHERE name = 'slotted'"
    wait_for(
        here, error, f'55000: replication slot "{upstream.schema}" is not where it was left: changes are lost'
    )
    up.execute(f"SELECT pg_drop_replication_slot({slot})")
    here.execute("ALTER SOURCE slotted RESUME")
    wait_for(here, error, f'42704: replication slot "{upstream.schema}" has vanished upstream')
    assert value(here, "SELECT state FROM holdfast_sources WHERE name = 'slotted'") == "stopped"
    here.execute("DROP SOURCE slotted")


def _telling(c: Connection, words: str) -> set[str]:
    """Return the relations of pg_catalog that follow the server's life in whose rows is something of ``words``, a pattern, for who asks."""
    every = rows(c, "SELECT relname FROM pg_class WHERE relname ~ '^(holdfast|pg_stat|pg_replication|pg_locks|pg_settings|pg_foreign|pg_subscription)'")  # fmt: skip
    found = set()
    for [relation] in every:
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            sql = f"SELECT 1 FROM pg_catalog.{relation} r WHERE r::text ~ %s LIMIT 1"
            if c.execute(sql, (words,)).fetchall():  # type: ignore[arg-type]
                found.add(relation)
    return found


def test_what_is_upstream_is_told_to_who_owns_the_source(
    upstream: Upstream, here: Connection, server: ServerProcess
) -> None:
    """And to who may watch others; the password to nobody, also when the source has failed."""
    up = upstream.c
    up.execute("CREATE TABLE told (id int PRIMARY KEY)")
    up.execute(f"CREATE PUBLICATION {upstream.schema} FOR TABLE told")
    options = re.sub("//([^:@]*)(:[^@]*)?@", r"//\1:hush-hush@", upstream.options)
    here.execute(f"CREATE SOURCE telling FROM POSTGRES {options}")  # type: ignore[arg-type]
    wait_for(here, "SELECT position IS NOT NULL FROM holdfast_sources WHERE name = 'telling'", True)
    up.execute(
        f"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{upstream.schema}'"
    )
    here.execute("ALTER SOURCE telling PAUSE")
    wait_for(here, "SELECT state FROM holdfast_sources WHERE name = 'telling'", "paused")
    up.execute(f"SELECT pg_drop_replication_slot('{upstream.schema}')")
    here.execute("ALTER SOURCE telling RESUME")
    wait_for(here, "SELECT state FROM holdfast_sources WHERE name = 'telling'", "stopped")
    here.execute("SELECT 1")
    here.execute("CREATE ROLE stranger LOGIN; CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher")
    for role, telling in (("stranger", set()), ("watcher", {"holdfast_sources"})):
        with psycopg.connect(server.url.replace("postgres@", f"{role}@"), autocommit=True) as c:
            assert _telling(c, f"hush-hush|{upstream.schema}") == telling
            assert value(c, "SELECT state FROM holdfast_sources WHERE name = 'telling'") == "stopped"
    assert _telling(here, "hush-hush") == set()
    here.execute("DROP SOURCE telling")
    here.execute("DROP ROLE stranger, watcher")


def test_a_connection_that_breaks_is_made_again(upstream: Upstream, here: Connection) -> None:
    up = upstream.c
    up.execute("CREATE TABLE t2 (id int PRIMARY KEY)")
    up.execute(f"CREATE PUBLICATION {upstream.schema} FOR TABLE t2")
    here.execute(f"CREATE SOURCE broken FROM POSTGRES {upstream.options}")
    wait_for(here, "SELECT state FROM holdfast_sources WHERE name = 'broken'", "running")
    for i in range(3):
        up.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast source'"
        )
        up.execute("INSERT INTO t2 VALUES (%s)", (i,))
        wait_for(here, "SELECT count(*) FROM t2", i + 1)


def test_values_that_do_not_fit_name_their_place(upstream: Upstream, here: Connection) -> None:
    up = upstream.c
    up.execute("CREATE TABLE wide (id int PRIMARY KEY, n numeric, l timestamp)")
    up.execute(f"CREATE PUBLICATION {upstream.schema} FOR TABLE wide")
    here.execute(f"CREATE SOURCE wides FROM POSTGRES {upstream.options}")
    wait_for(here, "SELECT state FROM holdfast_sources WHERE name = 'wides'", "running")
    up.execute("INSERT INTO wide VALUES (1, 1e45), (2, 'NaN')")
    wait_for(here, "SELECT count(*) FROM wide WHERE n IN (1e45, 'NaN')", 2)
    up.execute("INSERT INTO wide VALUES (3, 0, '294270-01-01')")
    wait_for(here, "SELECT state FROM holdfast_sources WHERE name = 'wides'", "stopped")
    error = str(value(here, "SELECT last_error FROM holdfast_sources WHERE name = 'wides'"))
    assert error.startswith("22008: timestamp out of range")
    assert f"table {upstream.schema}.wide, column l" in error
    up.execute("DELETE FROM wide")


def test_what_create_source_finds_wrong_upstream(upstream: Upstream, here: Connection) -> None:
    up = upstream.c
    sql = f"CREATE SOURCE odd FROM POSTGRES {upstream.options}"
    assert "does not exist upstream" in str(refused(here, sql, "42704").message_primary)
    up.execute(f"CREATE PUBLICATION {upstream.schema}")
    refused(here, sql, "42P01")
    up.execute("CREATE TABLE full_table (a int)")
    up.execute("ALTER TABLE full_table REPLICA IDENTITY FULL")
    up.execute(f"ALTER PUBLICATION {upstream.schema} ADD TABLE full_table")
    refused(here, sql, "0A000")
    up.execute(f"ALTER PUBLICATION {upstream.schema} SET TABLE full_table")
    up.execute("ALTER TABLE full_table ADD PRIMARY KEY (a)")
    refused(here, f"CREATE SOURCE odd (a int) FROM POSTGRES {upstream.options}", "42601")
    refused(
        here,
        "CREATE SOURCE odd FROM POSTGRES (connection = 'postgresql://x@127.0.0.1:1/x', publication = 'p')",
        "08001",
    )
    refused(here, "CREATE SOURCE odd FROM POSTGRES (connection = 'mysql://x', publication = 'p')", "22023")
    here.execute(sql)
    here.execute("BEGIN")
    refused(here, "DROP SOURCE odd", "25001")
    here.execute("ROLLBACK")
    assert PATIENCE_S
