"""VERBOSE of VACUUM, ANALYZE, CLUSTER and REINDEX: what they tell of each table."""

from __future__ import annotations

import re

import psycopg

from tests.support.server import ServerProcess


def told(server: ServerProcess, sql: str) -> list[str]:
    """Run a statement; return what it tells: severity, message, detail."""
    found: list[str] = []
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.add_notice_handler(
            lambda n: found.append(f"{n.severity} {n.message_primary} {n.message_detail or ''}".rstrip())
        )
        connection.execute("SET client_min_messages = error")  # which INFO passes
        connection.execute(sql.encode())
    return [re.sub(r"bytes: [1-9]\d*", "bytes: n", line) for line in found]


def test_verbose_tells_what_was_done_to_each_table(server: ServerProcess) -> None:
    server.sql("CREATE TABLE told_t (id int PRIMARY KEY, v text)")
    server.sql("INSERT INTO told_t SELECT i, i FROM generate_series(1, 30) i")
    assert told(server, "VACUUM told_t") == []
    server.sql("DELETE FROM told_t WHERE id > 20; INSERT INTO told_t VALUES (21, 'x')")
    assert told(server, "VACUUM (VERBOSE, ANALYZE) told_t") == [
        'INFO vacuuming "public.told_t"',
        'INFO finished vacuuming "public.told_t" Parts: 2, rows changed of late in memory: 10, bytes: n.',
        'INFO analyzing "public.told_t"',
        'INFO "told_t": counted 21 rows in 2 columns',
    ]
    assert told(server, "CLUSTER VERBOSE told_t USING told_t_pkey")[0] == 'INFO clustering "public.told_t"'
    assert told(server, "REINDEX (VERBOSE) TABLE told_t") == [
        'INFO index "told_t_pkey" is current It changes with its table: there is nothing to do.'
    ]
    assert told(server, "ANALYZE (VERBOSE off) told_t") == []


def test_verbose_without_a_name_tells_of_all_tables(server: ServerProcess) -> None:
    server.sql("CREATE TABLE told_a (id int); CREATE TABLE told_b (id int)")
    lines = told(server, "VACUUM VERBOSE")
    assert {'INFO vacuuming "public.told_a"', 'INFO vacuuming "public.told_b"'} <= set(lines)
    assert 'INFO analyzing "public.told_b"' in told(server, "ANALYZE VERBOSE")
