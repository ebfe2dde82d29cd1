"""CREATE, ALTER and DROP SOURCE, and what others may do with a source's table."""

from __future__ import annotations

import pytest

from tests.engine.sources.support import connect, refused, rows, value, wait_for
from tests.support.server import ServerProcess


def test_a_source_fills_its_table_and_goes_with_it(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute(
            "CREATE SOURCE ticks FROM RATE (rows_per_second = 100000, rows = 5000, max_batch_rows = 700)"
        )
        wait_for(c, "SELECT state FROM holdfast_sources WHERE name = 'ticks'", "done")
        assert rows(c, "SELECT count(*), min(value), max(value), count(DISTINCT value) FROM ticks") == [
            (5000, 0, 4999, 5000)
        ]
        about = "SELECT position, rows, acknowledged_position, ts = acknowledged_ts, tables, owner, kind, last_error"
        assert rows(c, f"{about} FROM holdfast_sources WHERE name = 'ticks'") == [
            ("value 5000", 5000, "value 5000", True, "public.ticks", "postgres", "rate", None)
        ]
        c.execute("DROP SOURCE ticks")
        refused(c, "SELECT FROM ticks", "42P01")
        assert value(c, "SELECT count(*) FROM holdfast_sources WHERE name = 'ticks'") == 0


def test_only_the_source_writes_its_table(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE SCHEMA kept")
        c.execute("CREATE SOURCE beat INTO kept.beats FROM RATE (rows_per_second = 1, rows = 1)")
        for sql in (
            "INSERT INTO kept.beats VALUES (7, now())",
            "UPDATE kept.beats SET value = 7",
            "DELETE FROM kept.beats",
            "TRUNCATE kept.beats",
            "MERGE INTO kept.beats b USING (VALUES (0)) v (x) ON b.value = v.x WHEN MATCHED THEN DELETE",
            "COPY kept.beats FROM STDIN",
            "EXPLAIN ANALYZE DELETE FROM kept.beats",
        ):
            assert refused(c, sql, "42809").message_primary == 'cannot change table "beats" of source "beat"'
        for sql in (
            "ALTER TABLE kept.beats ADD COLUMN more int",
            "ALTER TABLE kept.beats RENAME COLUMN value TO number",
            "CREATE TABLE child (v bigint REFERENCES kept.beats)",
        ):
            refused(c, sql, "0A000")
        for sql in ("DROP TABLE kept.beats", "DROP SCHEMA kept CASCADE"):
            diag = refused(c, sql, "2BP01")
            assert diag.message_primary == "cannot drop table beats because source beat requires it"
            assert diag.message_hint == "You can drop source beat instead."
        c.execute("CREATE INDEX ON kept.beats (at)")
        c.execute("CREATE VIEW seen AS SELECT value FROM kept.beats")
        c.execute("ALTER TABLE kept.beats RENAME TO heart")
        refused(c, "DROP SOURCE beat", "2BP01")
        c.execute("DROP SOURCE beat CASCADE")
        refused(c, "SELECT FROM seen", "42P01")
        c.execute("DROP SCHEMA kept")


def test_pause_is_between_two_batches_and_resume_goes_on(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE SOURCE flow FROM RATE (rows_per_second = 2000, poll_interval_ms = 10)")
        wait_for(c, "SELECT count(*) > 100 FROM flow", True)
        c.execute("ALTER SOURCE flow PAUSE")
        count = value(c, "SELECT count(*) FROM flow")
        wait_for(c, "SELECT state FROM holdfast_sources WHERE name = 'flow'", "paused")
        assert value(c, "SELECT count(*) FROM flow") == count
        c.execute("BEGIN")
        c.execute("ALTER SOURCE flow RESUME")
        c.execute("ROLLBACK")
        assert value(c, "SELECT state FROM holdfast_sources WHERE name = 'flow'") == "paused"
        c.execute("ALTER SOURCE flow RESUME")
        wait_for(c, f"SELECT count(*) > {count} FROM flow", True)
        assert value(c, "SELECT count(*) = max(value) + 1 FROM flow") is True
        c.execute("DROP SOURCE flow")


def test_pausing_and_resuming_at_once_never_leaves_it_standing(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE SOURCE brisk FROM RATE (rows_per_second = 50000, poll_interval_ms = 10)")
        for _ in range(8):
            c.execute("ALTER SOURCE brisk PAUSE")
            c.execute("ALTER SOURCE brisk RESUME")
        count = value(c, "SELECT count(*) FROM brisk")
        wait_for(c, f"SELECT count(*) > {count} FROM brisk", True)
        assert value(c, "SELECT count(*) = max(value) + 1 FROM brisk") is True
        c.execute("DROP SOURCE brisk")


def test_a_rolled_back_source_never_runs(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("BEGIN")
        c.execute("CREATE SOURCE ghost FROM RATE (rows_per_second = 1000)")
        c.execute("SELECT FROM ghost")
        c.execute("ROLLBACK")
        assert value(c, "SELECT count(*) FROM holdfast_sources WHERE name = 'ghost'") == 0
        refused(c, "SELECT FROM ghost", "42P01")


def test_a_source_in_a_timeline_of_its_own(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TIMELINE aside")
        c.execute("CREATE SOURCE apart FROM RATE (rows_per_second = 9999, rows = 50) WITH (timeline = aside)")
        wait_for(c, "SELECT count(*) FROM apart", 50)
        assert value(c, "SELECT DISTINCT timeline FROM holdfast_sources WHERE name = 'apart'") == "aside"
        refused(c, "DROP TIMELINE aside", "2BP01")
        c.execute("DROP SOURCE apart")
        c.execute("DROP TIMELINE aside")
        diag = refused(c, "CREATE SOURCE apart FROM RATE WITH (timeline = nowhere)", "42704")
        assert diag.message_primary == 'timeline "nowhere" does not exist'


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message"),
    [
        ("FROM RATE (speed = 1)", "22023", 'unrecognized option "speed" of a RATE source'),
        ("FROM RATE (rows_per_second = 0)", "22023", 'invalid value for option "rows_per_second": "0"'),
        ("FROM RATE (rows = 1, rows = 2)", "22023", 'option "rows" specified more than once'),
        ("FROM RATE (rows)", "22023", 'option "rows" requires a value'),
        ("(a int) FROM RATE", "42601", "a RATE source has columns of its own"),
        ("FROM FILES (path = '/tmp')", "22023", 'a FILES source requires the option "format" (of every file)'),
        ("(a int DEFAULT 1) FROM FILES", "0A000", "DEFAULT in CREATE SOURCE is not supported"),
        ("(a int) FROM KAFKA (topic = 't')", "22023", 'a KAFKA source requires the option "brokers" (host:port, ...)'),
        ("(a int) FROM KAFKA (brokers = 'h:1', topic = 't', envelope = upsert)", "22023", "envelope = upsert requires a primary key"),
        ("(a int) FROM KAFKA (brokers = 'h:1', topic = 't')", "0A000", "KAFKA sources need Spark's connector for Kafka, which is not configured"),
        ("(a serial) FROM FILES", "0A000", "a serial or identity column in CREATE SOURCE is not supported"),
        ("(a int CHECK (a > 0)) FROM FILES", "0A000", "CHECK in CREATE SOURCE is not supported"),
        ("(a int UNIQUE) FROM FILES", "0A000", "UNIQUE in CREATE SOURCE is not supported"),
    ],
)  # fmt: skip
def test_what_create_source_refuses(server: ServerProcess, sql: str, sqlstate: str, message: str) -> None:
    with connect(server) as c:
        assert refused(c, f"CREATE SOURCE odd {sql}", sqlstate).message_primary == message


def test_names_owners_and_what_is_not_there(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE SOURCE twice FROM RATE (rows = 1)")
        diag = refused(c, "CREATE SOURCE twice INTO other FROM RATE", "42710")
        assert diag.message_primary == 'source "twice" already exists'
        c.execute("CREATE SOURCE IF NOT EXISTS twice INTO other FROM RATE")
        refused(c, "SELECT FROM other", "42P01")
        refused(c, "CREATE SOURCE thrice INTO twice FROM RATE", "42P07")
        refused(c, "ALTER SOURCE nobody PAUSE", "42704")
        refused(c, "DROP SOURCE nobody", "42704")
        c.execute("DROP SOURCE IF EXISTS nobody")
        c.execute("CREATE ROLE guest LOGIN")
        c.execute("SET ROLE guest")
        refused(c, "CREATE SOURCE mine FROM RATE", "42501")
        refused(c, "ALTER SOURCE twice PAUSE", "42501")
        refused(c, "DROP SOURCE twice", "42501")
        refused(c, "SELECT FROM twice", "42501")
        c.execute("RESET ROLE")
        c.execute("DROP SOURCE twice")
        c.execute("DROP ROLE guest")
