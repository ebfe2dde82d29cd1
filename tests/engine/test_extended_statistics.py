"""Extended statistics outlast restarts, go into copies, are as they were in the past; those in a temporary schema go with their session."""

from __future__ import annotations

from pathlib import Path

import psycopg

from tests.support.server import ServerProcess

SHOWN = "SELECT pg_get_statisticsobjdef(oid) FROM pg_statistic_ext ORDER BY stxname"


def test_they_outlast_a_restart_and_the_sessions_whose_schemas_they_are_in(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    server.sql(
        "CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1';"
        "CREATE TABLE t (a int, b int); INSERT INTO t VALUES (1, 2);"
        "CREATE STATISTICS kept (mcv) ON a, f(b) FROM t; ALTER STATISTICS kept SET STATISTICS 9"
    )
    server.sql("CREATE DATABASE copied TEMPLATE postgres")
    with psycopg.connect(server.url, autocommit=True) as ended:
        ended.execute("CREATE STATISTICS pg_temp.first ON a, b FROM t")
    killed = psycopg.connect(server.url, autocommit=True)
    killed.execute("CREATE STATISTICS pg_temp.second ON a, b FROM t")
    [(before,)] = server.sql("SELECT now()")
    server.sql("ALTER TABLE t RENAME b TO c; DROP STATISTICS kept; CREATE STATISTICS later ON a, c FROM t")
    server.kill()
    killed.close()
    server = ServerProcess(tmp_path / "data")
    try:
        assert server.sql("SELECT a, c FROM t") == [("1", "2")]
        assert server.sql("SELECT count(*) FROM holdfast_unreadable_objects") == [("0",)]
        assert server.sql(SHOWN) == [("CREATE STATISTICS public.later ON a, c FROM t",)]
        with psycopg.connect(server.url) as past:
            past.execute(f"SET TRANSACTION AS OF SYSTEM TIME '{before}'")
            found = [text for (text,) in past.execute(SHOWN)]
            assert "CREATE STATISTICS public.kept (mcv) ON a, f(b) FROM t" in found
        with psycopg.connect(server.url.rsplit("/", 1)[0] + "/copied", autocommit=True) as copied:
            shown = copied.execute(SHOWN.replace("oid)", "oid), stxstattarget")).fetchall()
            assert shown == [("CREATE STATISTICS public.kept (mcv) ON a, f(b) FROM t", 9)]
    finally:
        server.stop()
