"""Settings: each is in exactly one class, does what its class says, and what it writes to the log is PostgreSQL's.

``PROBES`` show an effect: a statement answers otherwise once the setting has another value. ``PROVEN`` names the test that does
so where it takes more. What is logged is compared with PostgreSQL in ``tests/differential/wire/log.wire``.
"""

from __future__ import annotations

import io
import logging
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from engine.base.loop.log_queue import MOST, QueuedLog
from engine.base.settings import Settings, server_defaults
from engine.base.settings.classes import EFFECTIVE, REASONS, accepted
from engine.base.settings.defs import OURS, PLPGSQL, SettingDef, definitions
from pgwire.auth.scram import check_password, make_verifier, parse_verifier
from planner.base.errors import SqlError
from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess

TESTS = Path(__file__).resolve().parents[1]

# setting: another value, a statement, what it answers before, and after
PROBES = {
    "application_name": ("'me'", "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()", "", "me"),
    "bytea_output": ("escape", r"SELECT '\x61'::bytea", r"\x61", "a"),
    "check_function_bodies": ("off", "CREATE FUNCTION pg_temp.probe() RETURNS int LANGUAGE sql AS 'SELECT x FROM nowhere_at_all'", "42P01", None),
    "client_encoding": ("'SQL_ASCII'", "SHOW client_encoding", "UTF8", "SQL_ASCII"),
    "datestyle": ("'German'", "SELECT '2024-01-31'::date", "2024-01-31", "31.01.2024"),
    "default_text_search_config": ("simple", "SELECT to_tsvector('The cats')", "'cat':2", "'cats':2 'the':1"),
    "default_transaction_isolation": ("'read committed'", "SHOW transaction_isolation", "serializable", "read committed"),
    "default_transaction_read_only": ("on", "CREATE TEMP SEQUENCE probe", None, "25006"),
    "extra_float_digits": ("0", "SELECT 0.1::float8 + 0.2", "0.30000000000000004", "0.3"),
    "intervalstyle": ("iso_8601", "SELECT '1 day'::interval", "1 day", "P1D"),
    "role": ("pg_monitor", "SELECT current_user", "postgres", "pg_monitor"),
    "search_path": ("information_schema", "SELECT current_schema()", "public", "information_schema"),
    "session_authorization": ("pg_monitor", "SELECT session_user", "postgres", "pg_monitor"),
    "statement_timeout": ("'1s'", "SELECT pg_sleep(60) FROM pg_settings WHERE name = 'statement_timeout' AND setting <> '0'", None, "57014"),
    "timezone": ("'Asia/Tokyo'", "SELECT '2024-01-01 00:00+00'::timestamptz", "2024-01-01 00:00:00+00", "2024-01-01 09:00:00+09"),
    "track_activities": ("off", "SELECT state FROM pg_stat_activity WHERE pid = pg_backend_pid()", "active", "disabled"),
    "transaction_isolation": ("'read committed'", "SHOW transaction_isolation", "serializable", "read committed"),
    "transaction_read_only": ("on", "CREATE TEMP SEQUENCE probe", None, "25006"),
    "executor": ("spark", "SELECT sum(g) FROM generate_series(1, 3) g", "6", "0A000"),
}  # fmt: skip

PROVEN = {
    "exit_on_error": "engine/test_setting_values.py::test_a_session_that_exits_on_errors_ends_with_the_first_one",
    "client_min_messages": "engine/test_settings.py::test_statements_are_told_to_who_wants_to_know",
    "idle_in_transaction_session_timeout": "engine/test_server_life.py::test_an_idle_transaction_ends_with_25P03",
    "idle_session_timeout": "engine/test_server_life.py::test_an_idle_session_ends_with_57P05_but_not_inside_a_transaction",
    "lo_compat_privileges": "differential/scripts/privileges/large_objects.sql::",
    "lock_timeout": "engine/test_conflict_reports.py::test_a_lock_timeout_tells_who_has_the_row",
    "log_connections": "engine/test_settings.py::test_the_log_has_sessions_statements_and_errors",
    "log_disconnections": "engine/test_settings.py::test_the_log_has_sessions_statements_and_errors",
    "log_duration": "engine/test_settings.py::test_durations_are_logged_as_asked",
    "log_error_verbosity": "engine/test_settings.py::test_the_log_has_sessions_statements_and_errors",
    "log_min_duration_sample": "engine/test_settings.py::test_durations_are_logged_as_asked",
    "log_min_duration_statement": "engine/test_settings.py::test_durations_are_logged_as_asked",
    "log_min_error_statement": "engine/test_settings.py::test_the_log_has_sessions_statements_and_errors",
    "log_min_messages": "engine/test_settings.py::test_the_log_has_sessions_statements_and_errors",
    "log_parameter_max_length": "differential/wire/log.wire",
    "log_parameter_max_length_on_error": "engine/test_settings.py::test_errors_show_parameters_as_far_as_asked",
    "log_statement": "differential/wire/log.wire",
    "log_statement_sample_rate": "engine/test_settings.py::test_durations_are_logged_as_asked",
    "log_transaction_sample_rate": "engine/test_settings.py::test_durations_are_logged_as_asked",
    "backslash_quote": "differential/scripts/statements/quotes_behind_backslashes.sql",
    "quote_all_identifiers": "differential/scripts/statements/quote_all_identifiers.sql",
    "array_nulls": "differential/scripts/statements/settings_of_meaning.sql",
    "transform_null_equals": "differential/scripts/statements/settings_of_meaning.sql",
    "row_security": "engine/test_row_security.py::test_who_turns_row_security_off_sees_all_rows_or_an_error",
    "escape_string_warning": "engine/test_escapes.py::test_warnings_and_errors",
    "session_replication_role": "differential/scripts/triggers/replica.sql",
    "standard_conforming_strings": "engine/test_escapes.py::test_every_way_in",
    "temp_file_limit": "engine/test_temp_files.py::test_rows_in_files_are_bounded",
    "tcp_keepalives_count": "engine/test_tcp_settings.py::test_they_are_set_at_the_start_and_bounded_by_the_system",
    "tcp_keepalives_idle": "engine/test_tcp_settings.py::test_keepalives_are_those_of_the_socket",
    "tcp_keepalives_interval": "engine/test_tcp_settings.py::test_they_are_set_at_the_start_and_bounded_by_the_system",
    "tcp_user_timeout": "engine/test_tcp_settings.py::test_they_are_set_at_the_start_and_bounded_by_the_system",
}


@pytest.fixture
def client(server: ServerProcess) -> Iterator[FieldsClient]:
    made = connect(server.port)
    yield made
    made.close()


def test_each_setting_is_in_one_class() -> None:
    known = definitions()
    ours = {setting.name for setting in (*OURS, *PLPGSQL)}
    assert not EFFECTIVE & set(REASONS)
    assert set(known) >= EFFECTIVE | set(REASONS)
    assert not ours & (EFFECTIVE | set(REASONS))
    assert set(PROBES) | set(PROVEN) == EFFECTIVE | {"executor"}, "an effective setting without a test"
    assert not set(PROBES) & set(PROVEN)


@pytest.mark.parametrize("name", PROVEN)
def test_the_tests_of_effective_settings_are_there(name: str) -> None:
    file, _, function = PROVEN[name].partition("::")
    text = (TESTS / file).read_text(encoding="utf-8")
    assert name in text
    assert f"def {function}(" in text or not function


def _answer(client: FieldsClient, sql: str) -> str | None:
    try:
        rows = client.run(sql).rows
    except Exception as error:
        return str(getattr(error, "sqlstate", error))
    return rows[0][0] if rows else None


@pytest.mark.parametrize("name", PROBES)
def test_an_effective_setting_changes_an_answer(client: FieldsClient, name: str) -> None:
    value, sql, before, after = PROBES[name]
    if name.startswith("transaction_"):  # of one transaction
        for change, expected in ((f"SET {name} = DEFAULT", before), (f"SET {name} = {value}", after)):
            client.run(f"BEGIN; {change}")
            assert _answer(client, sql) == expected
            client.run("ROLLBACK")
        return
    client.run("BEGIN")
    assert _answer(client, sql) == before
    client.run("ROLLBACK")
    client.run(f"SET {name} = {value}")
    assert _answer(client, sql) == after


NAMES: dict[str, list[str]] = {
    "default_table_access_method": [],
    "default_tablespace": ["pg_default"],
    "max_stack_depth": ["100", "7680"],
    "stats_fetch_consistency": ["snapshot"],
    "temp_tablespaces": ["pg_default"],
    "wal_consistency_checking": ["all"],
}
"""Settings whose values are not all treated alike: one of each kind that differs from the default."""


def other_values(setting: SettingDef) -> list[str]:
    """Return valid values of a setting besides its default."""
    if setting.name in NAMES:
        found = NAMES[setting.name]
    elif setting.kind == "bool":
        found = ["on", "off"]
    elif setting.kind == "enum":
        found = list(setting.choices)
    elif setting.kind in ("integer", "real"):
        found = [setting.minimum, setting.maximum]
    else:
        found = ["something_else"]
    return [value for value in found if value != setting.default]


def test_every_other_setting_refuses_a_change_by_name() -> None:
    own = {setting.name for setting in (*OURS, *PLPGSQL)}
    checked = 0
    for key, setting in definitions().items():
        if key in own or key in EFFECTIVE:
            continue
        for value in other_values(setting):
            settings = Settings({"is_superuser": "on"})
            if key in REASONS:
                assert settings.set(setting.name, value) == settings.get(key)
                continue
            with pytest.raises(SqlError) as caught:
                settings.set(setting.name, value)
            assert caught.value.sqlstate in ("0A000", "55P02", "22023"), key
            said = "tables declared WITH OIDS" if key == "default_with_oids" else setting.name
            assert said in caught.value.message
            assert (caught.value.sqlstate == "0A000") == (
                setting.context in ("user", "superuser")
            ) or caught.value.sqlstate == "22023"
            checked += 1
        assert not (
            setting.context in ("user", "superuser") and key not in REASONS and accepted(key, "something")
        )
    assert checked > 150


def test_messages_are_in_english(client: FieldsClient) -> None:
    client.run("SET lc_messages = 'en_US.UTF-8'")
    assert client.run("SHOW lc_messages").rows == [("en_US.UTF-8",)]
    error = client.fails("SET lc_messages = 'de_DE.UTF-8'")
    assert (error["sqlstate"], error["message"]) == (
        "0A000", 'setting "lc_messages" to "de_DE.UTF-8" is not supported',
    )  # fmt: skip


# --- the log ------------------------------------------------------------------------------------


class Told:
    """A psycopg connection that collects what it is told; ``said`` since it was last asked."""

    def __init__(self, port: int, *settings: str) -> None:
        self.connection = psycopg.connect(
            f"host=127.0.0.1 port={port} user=postgres dbname=postgres",
            autocommit=True,
            prepare_threshold=None,
        )
        self._said: list[str] = []
        self.connection.add_notice_handler(
            lambda d: self._said.append(
                f"{d.severity}: {d.message_primary}" + (f" ({d.message_detail})" if d.message_detail else "")
            )
        )
        for setting in settings:
            self.connection.execute(f"SET {setting}")  # type: ignore[call-overload]
        self.said()

    def run(self, sql: str, *params: object) -> list[str]:
        self.connection.execute(sql, params or None)  # type: ignore[call-overload]
        return self.said()

    def said(self) -> list[str]:
        found = [re.sub(r"\d+\.\d{3} ms", "T ms", text) for text in self._said]
        self._said.clear()
        return found


def test_statements_are_told_to_who_wants_to_know(server: ServerProcess) -> None:
    told = Told(server.port, "log_statement = 'all'")
    assert told.run("SELECT 1") == []
    assert told.run("SET client_min_messages = log") == []
    assert told.run("SELECT 2") == ["LOG: statement: SELECT 2"]
    told.connection.close()


def test_durations_are_logged_as_asked(server: ServerProcess) -> None:
    told = Told(server.port, "client_min_messages = log", "log_duration = on")
    assert told.run("SELECT 1") == ["LOG: duration: T ms"]
    told.run("SET log_min_duration_statement = 0")
    assert told.run("SELECT 1") == ["LOG: duration: T ms  statement: SELECT 1"]
    detail = "(parameters: $1 = '7')"
    assert told.run("SELECT %s::int", 7) == [
        "LOG: duration: T ms  parse <unnamed>: SELECT $1::int",
        f"LOG: duration: T ms  bind <unnamed>: SELECT $1::int {detail}",
        f"LOG: duration: T ms  execute <unnamed>: SELECT $1::int {detail}",
    ]
    told.run("SET log_statement = 'all'")
    assert told.run("SELECT 1") == ["LOG: statement: SELECT 1", "LOG: duration: T ms"]
    told.run("SET log_statement = 'none'; SET log_duration = off; SET log_min_duration_statement = 3600000")
    assert told.run("SELECT pg_sleep(0.001)") == []
    told.run("SET log_min_duration_sample = 0")
    assert told.run("SELECT 1") == ["LOG: duration: T ms  statement: SELECT 1"]
    told.run("SET log_statement_sample_rate = 0")
    assert told.run("SELECT 1") == []
    told.run("SET log_transaction_sample_rate = 1")
    assert told.run("SELECT 1") == ["LOG: duration: T ms  statement: SELECT 1"]
    with pytest.raises(psycopg.errors.DivisionByZero):
        told.run("SELECT 1/0")
    assert told.said() == []  # it is in the log as an error
    told.connection.close()


def test_errors_show_parameters_as_far_as_asked(client: FieldsClient) -> None:
    client.run("SET log_parameter_max_length_on_error = 3")
    client.send(b"P", b"\0SELECT $1::int\0\0\0")
    client.send(b"B", b"\0\0\0\0\0\1\0\0\0\5abcde\0\0")
    client.send(b"S")
    kinds = client.until_ready()
    assert b"unnamed portal parameter $1 = 'abc...'" in kinds[1][1]


def test_the_log_has_sessions_statements_and_errors(server: ServerProcess) -> None:
    connection = psycopg.connect(
        f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres",
        autocommit=True,
        options="-c log_connections=on -c log_disconnections=on -c log_statement=ddl",
    )
    pid = connection.info.backend_pid
    for sql in (
        "CREATE TEMP TABLE logged (a int)", "SELECT 'quiet'", "SELECT 1/0 AS first", "SELECT nope",
        "SET log_error_verbosity = verbose", "SELECT 1/0 AS second",
        "SET log_error_verbosity = terse; SET log_min_error_statement = fatal", "SELECT nofunc(3)",
        "SET log_min_messages = fatal", "SELECT 1/0 AS unheard", "RESET ALL",
    ):  # fmt: skip
        connection.pgconn.exec_(sql.encode())
    connection.close()
    head = f"[{pid}] postgres@postgres "
    deadline = time.monotonic() + 60
    while f"{head}LOG:  disconnection" not in server.log():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    entries = re.split(r"^\S+ \S+ [A-Z]+ (?=\[)", server.log(), flags=re.M)
    said = [entry.removeprefix(head).rstrip() for entry in entries if entry.startswith(head)]
    assert re.fullmatch(
        r"LOG:  disconnection: session time: 0:\d\d:\d\d\.\d{3} user=postgres database=postgres host=127.0.0.1 port=\d+",
        said.pop(),
    )
    assert said == [
        "LOG:  connection authorized: user=postgres database=postgres",
        "LOG:  statement: CREATE TEMP TABLE logged (a int)",
        "ERROR:  division by zero",
        "STATEMENT:  SELECT 1/0 AS first",
        'ERROR:  column "nope" does not exist at character 8',
        "STATEMENT:  SELECT nope",
        "ERROR:  22012: division by zero",
        "STATEMENT:  SELECT 1/0 AS second",
        "ERROR:  function nofunc(integer) does not exist at character 8",
    ]


def test_only_superusers_turn_the_log_of_a_session_on(server: ServerProcess, client: FieldsClient) -> None:
    client.run("DROP ROLE IF EXISTS unlogged")
    client.run("CREATE ROLE unlogged LOGIN")
    with pytest.raises(
        psycopg.OperationalError, match='permission denied to set parameter "log_connections"'
    ):
        psycopg.connect(
            f"host=127.0.0.1 port={server.port} user=unlogged dbname=postgres",
            options="-c log_connections=on",
        )
    assert client.fails("SET log_connections = on")["sqlstate"] == "55P02"
    client.run("ALTER ROLE unlogged SET log_connections = on")
    client.run("DROP ROLE unlogged")


def test_what_sessions_begin_with_is_an_option_of_the_server() -> None:
    assert server_defaults([("log_statement", "DDL"), ("Work_Mem", "8MB"), ("log_connections", "yes")]) == {
        "log_statement": "ddl", "work_mem": "8192", "log_connections": "on",
    }  # fmt: skip
    for name, value, sqlstate in (("allow_system_table_mods", "on", "0A000"), ("port", "1", "55P02"), ("nosuch", "1", "42704"), ("work_mem", "x", "22023")):  # fmt: skip
        with pytest.raises(SqlError) as caught:
            server_defaults([(name, value)])
        assert caught.value.sqlstate == sqlstate


class Blocked(io.StringIO):
    """A stream that nobody reads until ``read`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.read = threading.Event()

    def write(self, text: str) -> int:
        self.read.wait(60)
        return super().write(text)


def test_a_log_that_nobody_reads_holds_up_nobody() -> None:
    stream = Blocked()
    handler = QueuedLog(stream, "%(message)s")
    record = logging.LogRecord("x", logging.INFO, "", 0, "line", None, None)
    for _ in range(MOST + 50):
        handler.handle(record)
    stream.read.set()
    deadline = time.monotonic() + 60
    while not handler.queue.empty():  # type: ignore[attr-defined]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    handler.handle(record)
    handler.close()
    lines = stream.getvalue().splitlines()
    dropped = [line for line in lines if "were dropped" in line]
    assert dropped
    assert lines.count("line") + sum(int(line.split()[0]) for line in dropped) == MOST + 51


def test_no_text_of_a_client_looks_like_another_record() -> None:
    stream = io.StringIO()
    handler = QueuedLog(stream, "%(levelname)s %(message)s")
    nasty = "a" + "".join(map(chr, range(0x100))) + "\u2028\u2029z"
    try:
        raise ValueError("a\nERROR forged")
    except ValueError:
        traced = sys.exc_info()
    handler.handle(logging.LogRecord("x", logging.INFO, "", 0, "%s", (nasty,), None))
    handler.handle(logging.LogRecord("x", logging.INFO, "", 0, "%s", ("b\r\nERROR forged",), traced))
    handler.close()
    lines = stream.getvalue().split("\n")
    assert [line[:7] for line in lines if line and not line.startswith("\t")] == ["INFO a\\", "INFO b\\"]
    assert "\tERROR forged" in lines
    assert not [ch for ch in stream.getvalue() if not ch.isprintable() and ch not in "\t\n\u00a0\u00ad"]


def test_statements_names_and_errors_forge_no_line_of_the_log(tmp_path: Path) -> None:
    forged = "\n2026-01-01 00:00:00,000 ERROR [1] postgres@postgres FATAL:  forged"
    server = ServerProcess(
        tmp_path / "data", "--setting", "log_statement=all", "--setting", "log_connections=on"
    )
    name = f'"e{forged[:30]}"'
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"SELECT 1 /*{forged}*/")
        connection.execute(f"SELECT 1 /*\r{forged}\x1b[2J*/".encode())
        connection.execute("SELECT %s::text", (forged,))
        connection.execute(f"CREATE ROLE {name} SUPERUSER LOGIN")
        connection.execute(f"CREATE DATABASE {name}")
        with pytest.raises(psycopg.Error):
            connection.execute(f"SELECT '{forged}'::int")
        with pytest.raises(psycopg.Error):
            connection.execute(f'SELECT * FROM "{forged}"')
        connection.execute(f"DO $$ BEGIN RAISE WARNING '%', '{forged}'; END $$")
    place = {"host": "127.0.0.1", "port": server.port}
    with psycopg.connect(**place, user=name[1:-1], dbname=name[1:-1], application_name=forged) as connection:  # type: ignore[arg-type]
        connection.execute("SELECT 1")
    for who in ({"user": forged}, {"user": "postgres", "dbname": forged}):
        with pytest.raises(psycopg.Error):
            psycopg.connect(**place, **who)  # type: ignore[arg-type]
    server.stop()
    assert "forged" in server.said
    assert not [line for line in server.said.splitlines() if line.startswith("2026-01-01")]
    assert "\x1b" not in server.said


@pytest.mark.parametrize(
    ("password", "message"),
    [
        ("md53175bce1d3201d16594cebf9d7eb3f9d", "MD5 password hashes are not supported"),
        (
            f"SCRAM-SHA-256$0:YWI=${'A' * 43}=:{'A' * 43}=",
            "SCRAM-SHA-256 verifiers of 0 iterations are not supported",
        ),
        (
            f"SCRAM-SHA-256$99999999:YWI=${'A' * 43}=:{'A' * 43}=",
            "SCRAM-SHA-256 verifiers of 99999999 iterations are not supported",
        ),
        (
            f"SCRAM-SHA-256$4096:${'A' * 43}=:{'A' * 43}=",
            "SCRAM-SHA-256 verifiers without a salt are not supported",
        ),
    ],
)
def test_a_hash_does_not_become_the_password(client: FieldsClient, password: str, message: str) -> None:
    for statement in ("CREATE ROLE hashed PASSWORD", "ALTER ROLE postgres PASSWORD"):
        found = client.fails(f"{statement} '{password}'")
        assert (found["sqlstate"], found["message"]) == ("0A000", message)


def test_what_only_looks_like_a_hash_is_a_password_and_the_empty_one_is_none(client: FieldsClient) -> None:
    for password in (
        "md5",
        "md5" + "A" * 32,
        "MD5" + "a" * 32,
        "md5" + "a" * 31,
        f"SCRAM-SHA-256$x:YWI=${'A' * 43}=:AA==",
    ):
        client.run(f"CREATE ROLE plain PASSWORD '{password}'")
        [(kept,)] = client.run("SELECT rolpassword FROM pg_authid WHERE rolname = 'plain'").rows
        verifier = parse_verifier(kept or "")
        assert verifier is not None
        assert check_password(password, verifier)
        client.run("DROP ROLE plain")
    for password in ("", str(make_verifier("", b"0" * 16))):
        client.run(f"CREATE ROLE plain PASSWORD '{password}'")
        assert client.run("SELECT rolpassword FROM pg_authid WHERE rolname = 'plain'").rows == [(None,)]
        client.run("DROP ROLE plain")


def test_where_the_files_are_is_told_to_superusers_and_members_of_pg_read_all_settings(
    server: ServerProcess, client: FieldsClient
) -> None:
    client.run("CREATE ROLE curious LOGIN")
    place = f"host=127.0.0.1 port={server.port} user=curious dbname=postgres"
    listed = "SELECT name FROM pg_settings WHERE name IN ('data_directory', 'role', 'data_directory_mode') ORDER BY 1"
    with psycopg.connect(place, autocommit=True) as curious:
        for ask in ("SHOW data_directory", "SELECT current_setting('data_directory')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match='to examine "data_directory"'):
                curious.execute(ask)
        assert curious.execute(listed).fetchall() == [("data_directory_mode",)]
        assert curious.execute("SHOW data_directory_mode").fetchall() == [("0700",)]
        client.run("GRANT pg_read_all_settings TO curious")
        assert curious.execute(listed).fetchall() == [("data_directory",), ("data_directory_mode",)]
        [(path,)] = curious.execute("SHOW data_directory").fetchall()
        assert (Path(path) / "FORMAT").exists()
        assert Path(path).stat().st_mode & 0o777 == 0o700
    client.run("DROP ROLE curious")


LONG = 100_000


@pytest.mark.parametrize(
    ("name", "sqlstate"),
    [("a" * LONG, "42704"), ("a." * LONG, "42602"), ("a.1" * LONG, "42602"), ("a." + "b" * LONG, "0A000")],
    ids=["one word", "no word at the end", "a digit", "a name"],
)
def test_settings_of_very_long_names_are_none(name: str, sqlstate: str) -> None:
    settings = Settings({"is_superuser": "on"})
    for change in (settings.set, settings.check):
        with pytest.raises(SqlError) as caught:
            change(name, "x")
        assert caught.value.sqlstate == sqlstate
    for ask in (settings.get, settings.show):
        with pytest.raises(SqlError) as caught:
            ask(name)
        assert (caught.value.sqlstate, len(caught.value.message)) == ("42704", len(name) + 39)


def _told(settings: Settings, name: str, value: str) -> str:
    try:
        settings.check(name, value)
    except SqlError as error:
        return error.sqlstate
    return ""


def test_very_long_values_are_read_for_no_setting() -> None:
    settings = Settings({"is_superuser": "on"})
    for setting in definitions().values():
        with suppress(SqlError):
            settings.allow(setting.name)
            assert _told(settings, setting.name, "a " * LONG) in ("22023", "0A000", ""), setting.name
    assert _told(settings, "search_path", "a, " * LONG + "b") == "0A000"
    assert _told(settings, "timezone", "é" * LONG) == "22023"
    assert settings.set("my.own", "a " * LONG) == settings.show("my.own") == "a " * LONG
