"""What monitoring tools ask: one true row each, figures that move with what the server does."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.support.server import ServerProcess


def test_the_log_s_positions_and_figures_move_with_commits(server: ServerProcess) -> None:
    client = server.connect()
    figures = "SELECT pg_current_wal_lsn(), wal_records, wal_bytes, wal_sync FROM pg_stat_wal"
    before = client.run(figures).rows[0]
    client.run("CREATE TABLE moved (n int)")
    client.run("INSERT INTO moved VALUES (1)")
    after = client.run(figures).rows[0]
    moved = client.run(f"SELECT pg_wal_lsn_diff('{after[0]}', '{before[0]}')").rows[0][0]
    assert int(str(moved)) == int(str(after[1])) - int(str(before[1])) >= 2
    assert int(str(after[2])) > int(str(before[2]))
    assert after[3] == after[1]
    client.run("DROP TABLE moved")
    client.close()


def test_checkpoints_and_vacuums_are_counted(server: ServerProcess) -> None:
    client = server.connect()
    asked = "SELECT checkpoints_req, pg_stat_get_bgwriter_requested_checkpoints(), checkpoints_timed, buffers_alloc FROM pg_stat_bgwriter"
    before = client.run(asked).rows[0]
    client.run("CHECKPOINT")
    after = client.run(asked).rows[0]
    assert int(str(after[0])) == int(str(before[0])) + 1
    assert after == (after[0], after[0], "0", "0")
    client.run("CREATE TABLE swept (n int)")
    told = (
        "SELECT last_vacuum IS NOT NULL, vacuum_count, pg_stat_get_last_vacuum_time(relid) = last_vacuum, last_autovacuum,"
        " last_analyze IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'swept'"
    )
    assert client.run(told).rows == [("f", "0", None, None, "f")]
    client.run("VACUUM swept")
    client.run("VACUUM (ANALYZE) swept")
    assert client.run(told).rows == [("t", "2", "t", None, "t")]
    client.run("DROP TABLE swept")
    client.close()


def test_deleted_rows_do_not_count_after_analyze(server: ServerProcess) -> None:
    client = server.connect()
    client.run("CREATE TABLE thinned (n int PRIMARY KEY)")
    client.run("INSERT INTO thinned SELECT generate_series(1, 1000)")
    client.run("VACUUM thinned")
    kept = "SELECT reltuples FROM pg_class WHERE relname IN ('thinned', 'thinned_pkey')"
    assert client.run(kept).rows == [("1000",), ("1000",)]
    client.run("DELETE FROM thinned WHERE n > 300")
    client.run("UPDATE thinned SET n = n + 5000 WHERE n <= 100")
    client.run("ANALYZE thinned")
    assert client.run(kept).rows == [("300",), ("300",)]
    counts = (
        "SELECT c.reltuples, s.n_live_tup, s.n_dead_tup FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid"
        " WHERE c.relname = 'thinned'"
    )
    assert client.run(counts).rows == [("300", "300", "0")]
    client.run("VACUUM thinned")
    client.run("TRUNCATE thinned")
    client.run("INSERT INTO thinned VALUES (1), (2), (3)")
    client.run("DELETE FROM thinned WHERE n = 2")
    client.run("INSERT INTO thinned VALUES (2)")
    client.run("DELETE FROM thinned WHERE n < 3")
    live = (
        "SELECT n_live_tup, pg_stat_get_live_tuples(relid) FROM pg_stat_user_tables WHERE relname = 'thinned'"
    )
    assert client.run(live).rows == [("1", "1")]
    client.run("DROP TABLE thinned")
    client.close()


def test_ages_are_those_of_running_transactions(server: ServerProcess) -> None:
    client, other = server.connect(), server.connect()
    other.run("BEGIN")
    other.run("SELECT txid_current()")
    for _ in range(5):
        client.run("SELECT txid_current()")
    found = client.run(
        "SELECT age(datfrozenxid) BETWEEN 5 AND 1000, mxid_age(datminmxid) FROM pg_database WHERE datname = current_database()"
    )
    assert found.rows == [("t", "0")]
    oldest = client.run(
        "SELECT max(age(relfrozenxid)) BETWEEN 0 AND 100000 FROM pg_class WHERE relkind = 'r'"
    )
    assert oldest.rows == [("t",)]
    other.run("ROLLBACK")
    client.close()
    other.close()


def test_files_are_those_of_the_data_directory(server: ServerProcess) -> None:
    client = server.connect()
    assert ("log.sqlite",) in client.run("SELECT name FROM pg_ls_waldir() WHERE size > 0").rows
    assert client.run("SELECT modification <= clock_timestamp() FROM pg_ls_waldir() WHERE name = 'log.sqlite'").rows == [("t",)]  # fmt: skip
    assert ("log.sqlite",) in client.run("SELECT pg_ls_dir('.')").rows
    assert client.run("SELECT count(*) FROM pg_ls_tmpdir()").rows == [("0",)]
    for path, code in (("..", "42501"), ("/", "42501"), ("blobs/../../x", "42501"), ("FORMAT", "42809")):
        with pytest.raises(Exception, match=code):
            client.run(f"SELECT pg_ls_dir('{path}')")
    client.close()


def test_access_rules_are_read_again(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text("host all all 127.0.0.1/32 trust\n")
    server = ServerProcess(tmp_path / "data", "--access-rules", str(rules))
    try:
        client = server.connect()
        loaded = client.run("SELECT pg_conf_load_time()").rows
        rules.write_text("host all all 127.0.0.1/32 trust\nhost all nobody all reject\n")
        assert client.run("SELECT pg_reload_conf()").rows == [("t",)]
        assert client.run("SELECT count(*) FROM pg_hba_file_rules").rows == [("2",)]
        again = client.run("SELECT pg_conf_load_time()").rows
        assert again > loaded
        rules.write_text("nonsense\n")
        client.run("SELECT pg_reload_conf()")
        assert client.run("SELECT count(*), pg_conf_load_time() FROM pg_hba_file_rules").rows == [("2", *again[0])]  # fmt: skip
        client.close()
    finally:
        assert server.stop() == 0


def test_encrypted_connections_are_shown(certificate: Path, tmp_path: Path) -> None:
    tls = ("--tls-cert", str(certificate / "cert.pem"), "--tls-key", str(certificate / "key.pem"))
    server = ServerProcess(tmp_path / "data", *tls)
    where = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    shown = "SELECT ssl, version, cipher, bits FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    try:
        with psycopg.connect(f"{where} sslmode=require") as connection:
            found = connection.execute(shown).fetchone()
            assert found is not None
            assert found[0] is True
            assert found[1].startswith("TLSv1.")
            assert found[3] in (128, 256)
            assert connection.execute("SHOW ssl").fetchone() == ("on",)
        with psycopg.connect(f"{where} sslmode=disable") as connection:
            assert connection.execute(shown).fetchone() == (False, None, None, None)
    finally:
        assert server.stop() == 0
