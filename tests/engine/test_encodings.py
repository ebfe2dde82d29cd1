"""Client encodings where PostgreSQL has nothing to compare with: executors, files of the server, portals; see ``tests/differential``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import pq

from pgwire import messages as m
from pgwire.backend import settled
from pgwire.codecs.text import encodings, multibyte
from tests.support.engine import Recorder, open_database
from tests.support.server import ServerProcess
from tests.support.wire_client import WireClient
from txn.persist.memory import MemoryDisk

Connection = psycopg.Connection[tuple[Any, ...]]
SO = b"\x83\x5c"  # in SJIS, the kana whose second byte is a backslash


@pytest.fixture
def latin(server: ServerProcess) -> Iterator[Connection]:
    with psycopg.connect(server.url, autocommit=True, client_encoding="LATIN1") as made:
        made.execute("SET copy_progress_interval = 0")
        yield made


def values(connection: Connection, sql: str, format_: pq.Format = pq.Format.TEXT) -> list[bytes | None]:
    """Return a query's first column as it was sent."""
    result = connection.pgconn.exec_params(sql.encode("latin-1"), [], result_format=format_)
    assert result.status == pq.ExecStatus.TUPLES_OK, result.error_message
    return [result.get_value(row, 0) for row in range(result.ntuples)]


@pytest.mark.parametrize("executor", ["index", "local"])
def test_every_executor_s_rows_are_in_it(latin: Connection, executor: str) -> None:
    latin.execute("DROP TABLE IF EXISTS in_latin")
    latin.execute("CREATE TABLE in_latin (id int PRIMARY KEY, t text, j jsonb, a text[])")
    latin.execute(
        """INSERT INTO in_latin SELECT g, 'é' || g, jsonb_build_object('è', g), ARRAY['ê'] FROM generate_series(1, 1500) g"""
    )
    latin.execute(f"SET executor = {executor}")
    for format_ in pq.Format:
        assert values(latin, "SELECT t FROM in_latin ORDER BY id", format_)[:2] == [b"\xe91", b"\xe92"]
        assert values(latin, "SELECT t FROM in_latin WHERE id = 7", format_) == [b"\xe97"]
        [json] = values(latin, "SELECT j FROM in_latin WHERE id = 7", format_)
        assert json is not None
        assert json.lstrip(b"\1") == b'{"\xe8": 7}'
    assert values(latin, "SELECT a FROM in_latin WHERE id = 7") == [b"{\xea}"]
    assert values(latin, "SELECT max(t) FROM in_latin WHERE t LIKE 'é9%'") == [b"\xe9999"]
    with pytest.raises(psycopg.errors.UntranslatableCharacter, match="0xe2 0x82 0xac"):
        latin.execute("SELECT t || chr(8364) FROM in_latin")
    latin.execute("SET client_encoding = utf8")
    assert values(latin, "SELECT t FROM in_latin WHERE id = 7") == [
        "é7".encode()
    ]  # the plan's encoder was for another


def test_files_on_the_server(latin: Connection, tmp_path: Path) -> None:
    latin.execute("DROP TABLE IF EXISTS of_files")
    latin.execute("CREATE TABLE of_files (a int PRIMARY KEY, b text)")
    one, two = tmp_path / "in.1", tmp_path / "in.2"
    one.write_bytes(b"1|" + SO + b"\n2|a" + SO * 2 + b"\n")
    two.write_bytes(b"3|" + SO + b"\x83\x7c\n")
    assert latin.execute(f"COPY of_files FROM '{one}' (ENCODING 'sjis', DELIMITER '|')").rowcount == 2
    latin.execute("DELETE FROM of_files")
    both = f"COPY of_files FROM '{tmp_path}/in.*' (ENCODING 'sjis', DELIMITER '|')"
    assert latin.execute(both).rowcount == 3
    latin.execute("SET client_encoding = utf8")
    found = [row[0] for row in latin.execute("SELECT b FROM of_files ORDER BY a")]
    assert found == ["ソ", "aソソ", "ソポ"]
    target = tmp_path / "out"
    for options, wanted in (
        ("ENCODING 'euc_jp'", b"1\t\xa5\xbd\n2\ta\xa5\xbd\xa5\xbd\n3\t\xa5\xbd\xa5\xdd\n"),
        (
            "ENCODING 'sjis', FORMAT json",
            b'{"a":1,"b":"' + SO + b'"}\n{"a":2,"b":"a' + SO * 2 + b'"}\n{"a":3,"b":"' + SO + b'\x83\x7c"}\n',
        ),
    ):
        latin.execute(f"COPY (SELECT * FROM of_files ORDER BY a) TO '{target}' ({options})")
        assert target.read_bytes() == wanted
    latin.execute("DELETE FROM of_files")
    latin.execute(f"COPY of_files FROM '{target}' (ENCODING 'sjis', FORMAT json)")
    assert [row[0] for row in latin.execute("SELECT b FROM of_files ORDER BY a")] == found
    two.write_bytes(b"3|x\n4|\xa0\x40\n")
    latin.execute("DELETE FROM of_files")
    for statement in (both, f"COPY of_files FROM '{two}' (ENCODING 'sjis', DELIMITER '|')"):
        with pytest.raises(psycopg.errors.CharacterNotInRepertoire, match="0xa0 0x40") as caught:
            latin.execute(statement)
        assert (caught.value.diag.context or "").startswith("COPY of_files, line 2")
    with pytest.raises(psycopg.errors.SyntaxError, match="ENCODING"):
        latin.execute(f"COPY of_files TO '{target}' (FORMAT parquet, ENCODING 'sjis')")
    latin.execute("SET client_encoding = latin1")
    latin.execute(
        f"COPY (SELECT chr(8364) AS c) TO '{target}' (FORMAT parquet)"
    )  # a file that knows UTF8 alone


def test_a_portal_changes_its_encoding_with_the_session(server: ServerProcess) -> None:
    client = WireClient("127.0.0.1", server.port)
    client.start(client_encoding="LATIN1")
    for message in (
        m.Parse("", "SELECT chr(233) FROM generate_series(1, 2)"), m.Bind(), m.Execute("", 1),
        m.Parse("s", "SET client_encoding = utf8"), m.Bind("s", "s"), m.Execute("s"), m.Execute("", 1), m.Sync(),
    ):  # fmt: skip
        client.send(message)
    rows = [found.values for found in client.until(m.ReadyForQuery) if isinstance(found, m.DataRow)]
    assert rows == [(b"\xe9",), ("é".encode(),)]
    client.close()


def test_notifications(server: ServerProcess, latin: Connection) -> None:
    latin.execute('LISTEN "é"')
    told: list[str] = []
    latin.add_notice_handler(lambda diag: told.append(f"{diag.sqlstate} {diag.message_primary}"))
    with psycopg.connect(server.url, autocommit=True) as other:
        other.execute("NOTIFY \"é\", '€'")
        other.execute("NOTIFY \"é\", 'è'")
    [notification] = latin.notifies(timeout=60, stop_after=1)
    assert (notification.channel, notification.payload) == ("é", "è")
    assert [text.split(" ")[0] for text in told] == ["22P05"]


def test_tables_are_made_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first client of an encoding holds nobody up while its tables are made, however it asks for it."""
    made_by: list[str] = []
    makers = {
        name: lambda name=name: made_by.append(threading.current_thread().name) or encodings.Utf8(name)
        for name in ("SJIS", "BIG5")
    }
    monkeypatch.setattr(encodings, "_made", {k: v for k, v in encodings._made.items() if k not in makers})
    monkeypatch.setattr(multibyte, "MAKERS", makers)

    async def meet() -> None:
        database = await open_database(MemoryDisk())
        recorder = Recorder()
        parameters = {"user": "postgres", "database": "postgres", "client_encoding": "SJIS"}
        connection, status = await settled(database.connect(parameters, 7, "", recorder))
        assert status["client_encoding"] == "SJIS"
        connection.session.out = recorder
        await settled(connection.query("SET NAMES 'big5'", recorder))
        assert recorder.error_report is None
        assert connection.session.settings.get("client_encoding") == "BIG5"
        await database.close()

    asyncio.run(meet())
    assert len(made_by) == 2
    assert "MainThread" not in made_by


@pytest.mark.parametrize("block", [False, True], ids=["alone", "in a block"])
def test_a_row_by_key_that_lacks_characters_is_refused_by_its_statement(
    server: ServerProcess, block: bool
) -> None:
    """On its short way, too: reported as any other error is, so that it ends a session that is to exit on errors."""
    with psycopg.connect(server.url, autocommit=True) as made:
        made.execute("CREATE TABLE IF NOT EXISTS by_key (k int PRIMARY KEY, v text)")
        made.execute("INSERT INTO by_key VALUES (1, 'a'), (2, '漢') ON CONFLICT DO NOTHING")
    with psycopg.connect(server.url, autocommit=True, client_encoding="LATIN1") as made:
        made.prepare_threshold = None
        for _ in range(5):
            assert made.pgconn.exec_(b"SELECT v FROM by_key WHERE k = 1").get_value(0, 0) == b"a"
        if block:
            made.pgconn.exec_(b"BEGIN")
            made.pgconn.exec_(b"SELECT v FROM by_key WHERE k = 1")
        result = made.pgconn.exec_(b"SELECT v FROM by_key WHERE k = 2")
        assert result.status == pq.ExecStatus.FATAL_ERROR
        assert result.error_field(pq.DiagnosticField.SQLSTATE) == b"22P05"
        status = pq.TransactionStatus.INERROR if block else pq.TransactionStatus.IDLE
        assert made.pgconn.transaction_status == status
        made.pgconn.exec_(b"ROLLBACK")
        made.pgconn.exec_(b"SET exit_on_error = on")
        if block:
            made.pgconn.exec_(b"BEGIN")
            made.pgconn.exec_(b"SELECT v FROM by_key WHERE k = 1")
        made.pgconn.exec_(b"SELECT v FROM by_key WHERE k = 2")
        assert made.pgconn.status == pq.ConnStatus.BAD
