"""ANALYZE and pg_stats as a client sees them: whose tables, whose columns, warnings as PostgreSQL's."""

from __future__ import annotations

import psycopg
import pytest

from sqllogictest.client import ServerError
from tests.support.fields import connect
from tests.support.server import ServerProcess

STATS = (
    "SELECT attname, null_frac, avg_width, n_distinct FROM pg_stats WHERE tablename = '{0}' ORDER BY attname"
)


def test_what_pg_stats_shows(server: ServerProcess) -> None:
    server.sql("CREATE TABLE counted (id int PRIMARY KEY, kind text, gone int, amount numeric(9,2))")
    server.sql("INSERT INTO counted SELECT n, 'kind ' || n % 3, n, n FROM generate_series(1, 90) AS n")
    server.sql("ALTER TABLE counted DROP COLUMN gone")
    server.sql("ALTER TABLE counted ADD COLUMN late int, ADD COLUMN constant int DEFAULT 7")
    assert server.sql(STATS.format("counted")) == []
    server.sql("ANALYZE (VERBOSE off) counted (kind)")
    shown = server.sql(STATS.format("counted"))
    rest = {row[0]: row[1:] for row in shown}
    assert rest["amount"][:2] == ("0", "5")
    assert -1 <= float(rest["amount"][2] or 0) < -0.9
    assert rest["constant"] == ("0", "4", "1")
    assert rest["id"] == ("0", "4", "-1")
    assert rest["kind"] == ("0", "7", "3")
    assert rest["late"] == ("1", "4", "0")
    assert "gone" not in rest
    nothing = "most_common_vals, most_common_freqs, histogram_bounds, correlation, most_common_elems"
    assert server.sql(f"SELECT {nothing} FROM pg_stats WHERE tablename = 'counted'") == [(None,) * 5] * 5
    assert server.sql(
        "SELECT staattnum, stanullfrac, stadistinct FROM pg_statistic WHERE starelid = 'counted'::regclass AND staattnum = 1"
    ) == [("1", "0", "-1")]
    # the counts are of another column now
    server.sql("ALTER TABLE counted ALTER COLUMN kind TYPE bytea USING kind::bytea")
    assert [row for row in server.sql(STATS.format("counted")) if row[0] == "kind"] == []
    server.sql("DROP TABLE counted")


def test_analyze_of_all_tables_and_by_vacuum(server: ServerProcess) -> None:
    server.sql("CREATE TABLE all_counted AS SELECT 1 AS a")
    server.sql("CREATE MATERIALIZED VIEW all_made AS SELECT 2 AS b, 3 AS c")
    server.sql("ANALYZE")
    assert server.sql(STATS.format("all_counted")) == [("a", "0", "4", "-1")]
    assert [row[0] for row in server.sql(STATS.format("all_made"))] == ["b", "c"]
    server.sql("INSERT INTO all_counted VALUES (NULL)")
    server.sql("VACUUM all_counted")
    assert server.sql(STATS.format("all_counted")) == [("a", "0", "4", "-1")]
    server.sql("VACUUM ANALYZE all_counted")
    assert server.sql(STATS.format("all_counted")) == [("a", "0.5", "4", "-0.5")]
    [(counted, itself)] = server.sql(
        "SELECT pg_stat_get_last_analyze_time(c.oid) = s.last_analyze, s.last_autoanalyze "
        "FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid WHERE c.relname = 'all_counted'"
    )
    assert (counted, itself) == ("t", None)
    server.sql("DROP MATERIALIZED VIEW all_made")
    server.sql("DROP TABLE all_counted")
    assert server.sql(STATS.format("all_counted")) == []


def test_only_owners_count_and_only_readers_see(server: ServerProcess) -> None:
    server.sql("CREATE TABLE private_counts (open int, secret int)")
    server.sql("INSERT INTO private_counts VALUES (1, 2)")
    server.sql("CREATE ROLE counter LOGIN")
    server.sql("GRANT SELECT (open) ON private_counts TO counter")
    client = connect(server.port, "counter")
    try:
        client.run("ANALYZE private_counts")
        assert server.sql(STATS.format("private_counts")) == []  # a WARNING, as in PostgreSQL
        server.sql("ANALYZE private_counts")
        assert [row[0] for row in client.run(STATS.format("private_counts")).rows] == ["open"]
        with pytest.raises(ServerError) as caught:
            client.run("SELECT 1 FROM pg_statistic")
        assert caught.value.sqlstate == "42501"
    finally:
        client.close()
        server.sql("DROP TABLE private_counts")
        server.sql("DROP ROLE counter")


def test_what_is_no_table_is_skipped_with_a_warning(server: ServerProcess) -> None:
    said: list[str] = []
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.add_notice_handler(lambda told: said.append(f"{told.severity} {told.message_primary}"))
        connection.execute("CREATE VIEW not_counted AS SELECT 1 AS a")
        connection.execute("CREATE SEQUENCE not_counted_either")
        for statement, verb in (("ANALYZE", "analyze"), ("VACUUM", "vacuum")):
            said.clear()
            connection.execute(f"{statement} not_counted, not_counted_either")
            assert said == [
                f'WARNING skipping "{name}" --- cannot {verb} non-tables or special system tables'
                for name in ("not_counted", "not_counted_either")
            ]
        said.clear()
        connection.execute("ANALYZE pg_class")
        assert said == []
        connection.execute("DROP VIEW not_counted")
        connection.execute("DROP SEQUENCE not_counted_either")
