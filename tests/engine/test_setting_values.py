"""What SET makes of texts, as a PostgreSQL 15 answers: numbers with units, words, lists."""

from __future__ import annotations

import psycopg
import pytest

from engine.base.settings import Settings
from planner.base.errors import SqlError
from tests.support.server import ServerProcess

# setting, text, what SHOW prints then
TAKEN = [
    ("work_mem", " 100 ", "100kB"),
    ("work_mem", "1.5MB", "1536kB"),
    ("work_mem", "0x10MB", "16MB"),
    ("work_mem", "100B", None),
    ("work_mem", "65536B", "64kB"),
    ("backend_flush_after", "010", "64kB"),
    ("backend_flush_after", "0x10", "128kB"),
    ("deadlock_timeout", "1500us", "2ms"),
    ("deadlock_timeout", "1.5 s", "1500ms"),
    ("deadlock_timeout", "1e3", "1s"),
    ("deadlock_timeout", "0.5", None),
    ("vacuum_cost_delay", "500us", "500us"),
    ("cpu_tuple_cost", "0x10", "16"),
    ("cpu_tuple_cost", "1e308", "1e+308"),
    ("enable_seqscan", "TRU", "on"),
    ("enable_seqscan", "of", "off"),
    ("wal_compression", "yes", "pglz"),
    ("synchronous_commit", "off", "off"),
    ("synchronous_commit", "remote_write", "remote_write"),
    ("synchronous_commit", "0", "off"),
    ("compute_query_id", "regress", "regress"),
    ("track_io_timing", "on", "on"),
    ("track_functions", "pl", "pl"),
    ("log_parser_stats", "on", "on"),
    ("default_tablespace", "pg_default", "pg_default"),
    ("temp_tablespaces", 'pg_default, ""', 'pg_default, ""'),
    ("wal_consistency_checking", "heap, All", "heap, All"),
    ("client_min_messages", "info", "info"),
    ("client_min_messages", "debug", "debug2"),
    ("search_path", '"a b", C', '"a b", C'),
    ("search_path", "  ", "  "),
    ("session_preload_libraries", "a b", "a b"),
    ("DateStyle", '"SQL", nonEuropean', "SQL, MDY"),
    ("DateStyle", "dmy, default", "ISO, DMY"),
    ("DateStyle", "mdy, german", "German, MDY"),
    ("DateStyle", "german", "German, DMY"),
    ("DateStyle", "postgresxx", "Postgres, MDY"),
    ("max_stack_depth", "100kB", "100kB"),
    ("max_stack_depth", "7680", "7680kB"),
    ("exit_on_error", "1", "on"),
    ("extension_destdir", "x", "x"),
    ("timezone_abbreviations", "Default", "Default"),
    ("lc_time", "POSIX", "POSIX"),
]  # fmt: skip

# setting, text, SQLSTATE, message (after "invalid value …: "), DETAIL, HINT
_MEMORY = 'Valid units for this parameter are "B", "kB", "MB", "GB", and "TB".'
_TIME = 'Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".'
REFUSED = [
    ("work_mem", "1mb", "22023", None, None, _MEMORY),
    ("work_mem", "1 2", "22023", None, None, _MEMORY),
    ("work_mem", "1e400", "22023", None, None, None),
    ("work_mem", "2147483648", "22023", None, None, "Value exceeds integer range."),
    ("work_mem", "nan", "22023", None, None, None),
    ("deadlock_timeout", "1y", "22023", None, None, _TIME),
    ("geqo_effort", "1kB", "22023", None, None, None),
    ("geqo_seed", "99999999999999999999", "22023", '1e+20 is outside the valid range for parameter "geqo_seed" (0 .. 1)', None, None),
    ("cpu_tuple_cost", "inf", "22023", 'Infinity is outside the valid range for parameter "cpu_tuple_cost" (0 .. 1.79769e+308)', None, None),
    ("enable_seqscan", " on", "22023", 'parameter "enable_seqscan" requires a Boolean value', None, None),
    ("enable_seqscan", "o", "22023", 'parameter "enable_seqscan" requires a Boolean value', None, None),
    ("synchronous_commit", "maybe", "22023", None, None, "Available values: local, remote_write, remote_apply, on, off."),
    ("bytea_output", " hex", "22023", None, None, "Available values: escape, hex."),
    ("search_path", "a b", "22023", None, "List syntax is invalid.", None),
    ("search_path", "a,,b", "22023", None, "List syntax is invalid.", None),
    ("search_path", '"a" b', "22023", None, "List syntax is invalid.", None),
    ("search_path", '"', "22023", None, "List syntax is invalid.", None),
    ("DateStyle", "iso, a b", "22023", None, "List syntax is invalid.", None),
    ("DateStyle", "iso, sql", "22023", None, 'Conflicting "datestyle" specifications.', None),
    ("DateStyle", '"A b"', "22023", None, 'Unrecognized key word: "A b".', None),
    ("temp_tablespaces", "nowhere", "42704", 'tablespace "nowhere" does not exist', None, None),
    ("default_tablespace", "nowhere", "22023", None, 'Tablespace "nowhere" does not exist.', None),
    ("default_table_access_method", "btree", "55000", 'access method "btree" is not of type TABLE', None, None),
    ("wal_consistency_checking", "xlog", "22023", None, 'Unrecognized key word: "xlog".', None),
    ("backtrace_functions", "a-1", "22023", None, "invalid character", None),
    ("max_stack_depth", "7681", "22023", 'invalid value for parameter "max_stack_depth": 7681', '"max_stack_depth" must not exceed 7680kB.',
     'Increase the platform\'s stack depth limit via "ulimit -s" or local equivalent.'),
    ("lc_messages", "x", "22023", None, None, None),
    ("lc_numeric", "a,b", "22023", None, None, None),
    ("timezone_abbreviations", "india", "22023", None, None, None),
    ("timezone_abbreviations", "", "22023", 'could not read time zone file "": Is a directory', None, None),
    ("timezone_abbreviations", "India", "0A000", 'setting "timezone_abbreviations" to "India" is not supported', None, None),
    ("lc_time", "de_DE.UTF-8", "0A000", 'setting "lc_time" to "de_DE.UTF-8" is not supported', None, None),
    ("plpgsql.extra_errors", "a b", "22023", None, "List syntax is invalid.", None),
    ("plpgsql.extra_errors", "all, too_many_rows", "22023", None, 'Key word "all" cannot be combined with other key words.', None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "shown"), TAKEN)
def test_a_text_means_what_it_means_to_postgresql(name: str, text: str, shown: str | None) -> None:
    settings = Settings({"is_superuser": "on"})
    if shown is None:  # rounds to a number below the least
        with pytest.raises(SqlError, match="outside the valid range"):
            settings.set(name, text)
        return
    settings.set(name, text)
    assert settings.show(name) == shown


@pytest.mark.parametrize(("name", "text", "sqlstate", "message", "detail", "hint"), REFUSED)
def test_a_text_is_refused_in_the_words_of_postgresql(
    name: str, text: str, sqlstate: str, message: str | None, detail: str | None, hint: str | None
) -> None:
    with pytest.raises(SqlError) as caught:
        Settings({"is_superuser": "on"}).set(name, text)
    error = caught.value
    assert (error.sqlstate, error.message, error.detail, error.hint) == (
        sqlstate, message or f'invalid value for parameter "{name}": "{text}"', detail, hint,
    )  # fmt: skip


def test_figures_of_a_statement_exclude_those_of_its_steps() -> None:
    settings = Settings({"is_superuser": "on"})
    settings.set("log_planner_stats", "on")
    with pytest.raises(SqlError, match='"log_statement_stats": 1'):
        settings.set("log_statement_stats", "on")
    settings.set("log_planner_stats", "off")
    settings.set("log_statement_stats", "on")
    with pytest.raises(SqlError, match='"log_parser_stats": 1'):
        settings.set("log_parser_stats", "on")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("-c search_path=a\\ b", "List syntax is invalid."),
        ("-c datestyle=iso,sql", 'Conflicting "datestyle" specifications.'),
        ("-c session_preload_libraries=auto_explain", '"session_preload_libraries" to "auto_explain"'),
    ],
)
def test_a_session_does_not_begin_with_what_cannot_be_set(
    server: ServerProcess, options: str, said: str
) -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres", options=options)
    assert said in str(caught.value)


def test_commits_are_durable_whatever_synchronous_commit_says(server: ServerProcess) -> None:
    with psycopg.connect(
        f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres",
        options="-c synchronous_commit=off -c search_path=a,public",
    ) as connection:
        found = connection.execute(
            "SELECT current_setting('synchronous_commit'), current_setting('search_path')"
        )
        assert found.fetchone() == ("off", "a,public")


def test_a_session_that_exits_on_errors_ends_with_the_first_one(server: ServerProcess) -> None:
    """In each protocol; what the handler of a function has taken is none."""
    where = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    taken = "DO $$ BEGIN PERFORM 1/0; EXCEPTION WHEN division_by_zero THEN END $$"
    for params in (None, (0,)):
        with psycopg.connect(where, autocommit=True, options="-c exit_on_error=on") as connection:
            connection.execute(taken)
            with pytest.raises(psycopg.errors.DivisionByZero) as caught:
                connection.execute("SELECT 1/0" if params is None else "SELECT 1/%s", params)
            assert caught.value.diag.severity == "FATAL"
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")


def test_modes_of_a_transaction_are_refused_by_their_own_names(server: ServerProcess) -> None:
    where = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    late = "SET TRANSACTION [NOT] DEFERRABLE must be called before any query"
    within = "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction"
    with psycopg.connect(where, autocommit=True) as connection:
        for texts, said in (
            (["SET transaction_isolation = nonsense"], 'invalid value for parameter "transaction_isolation": "nonsense"'),
            (["SET transaction_deferrable = maybe"], 'parameter "transaction_deferrable" requires a Boolean value'),
            (["SELECT set_config('IntervalStyle', 'x', false)"], 'invalid value for parameter "IntervalStyle": "x"'),
            (["BEGIN", "SELECT 1", "SET TRANSACTION DEFERRABLE"], late),
            (["BEGIN", "SELECT set_config('transaction_deferrable', 'on', false)"], late),
            (["BEGIN", "SAVEPOINT a", "SET TRANSACTION NOT DEFERRABLE"], within),
        ):  # fmt: skip
            for text in texts[:-1]:
                connection.execute(text)
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(texts[-1])
            assert caught.value.diag.message_primary == said
            connection.execute("ROLLBACK")
