"""What a session's settings amount to: looked up once per generation of them instead of per statement."""

from __future__ import annotations

from typing import Literal, cast

from engine.base.settings import Settings
from pgwire.codecs.settings import CodecSettings, DateOrder, DateStyle, IntervalStyle
from pgwire.codecs.text.encodings import CLIENT_ONLY
from txn.base.types import Timestamp
from txn.transaction.selection import Level


class Derived:
    """What one generation of settings amounts to, looked up once instead of per statement."""

    __slots__ = (
        "chooses",
        "codec",
        "consistency",
        "escapes",
        "executor",
        "guards_quotes",
        "idle_in_transaction_ms",
        "idle_limits",
        "idle_session_ms",
        "isolation",
        "local_max_bytes",
        "lock_timeout_ms",
        "logs",
        "max_staleness_ms",
        "min_read_ts",
        "plan_key",
        "quotes_all",
        "read_only",
        "replica",
        "reports_commits",
        "rereads",
        "row_security",
        "short_ways",
        "spark_start_ms",
        "statement_memory",
        "statement_timeout_ms",
        "temp_limited",
        "transaction_timeout_ms",
        "user",
        "verifies",
    )

    def __init__(self, settings: Settings, user: int, database: int) -> None:
        """Read ``settings``; ``user`` is the oid of the current role, ``database`` the oid of the database."""
        get = settings.get
        self.user = user
        style, order = get("datestyle").split(", ")
        interval_style, zone = get("intervalstyle"), get("timezone")
        encoding = get("client_encoding")
        self.codec = CodecSettings(
            encoding="UTF8" if encoding == "SQL_ASCII" else encoding,
            date_style=cast(DateStyle, style),
            date_order=cast(DateOrder, order),
            interval_style=cast(IntervalStyle, interval_style),
            time_zone=zone,
            bytea_output=cast(Literal["hex", "escape"], get("bytea_output")),
            extra_float_digits=int(get("extra_float_digits")),
            array_nulls=get("array_nulls") == "on",
            null_equals=get("transform_null_equals") == "on",
        )
        self.row_security = get("row_security") == "on"
        # Do plain literals know escapes (planner/parse/escapes.py)?
        self.escapes = get("standard_conforming_strings") == "off"
        # Are all names that it reads quoted (planner/base/quoting.py)?
        self.quotes_all = get("quote_all_identifiers") == "on"
        # May a quote be written \'? In some encodings a backslash may be half of a character.
        quotes = get("backslash_quote")
        self.guards_quotes = quotes == "off" or (quotes == "safe_encoding" and encoding in CLIENT_ONLY)
        # Is what a client sends looked through before it is parsed (Session.standard_text)?
        self.rereads = self.escapes or self.guards_quotes
        self.plan_key = (
            get("search_path"), user, style, order, interval_style, zone, database, self.row_security,
            self.codec.array_nulls, self.codec.null_equals,
        )  # fmt: skip
        self.executor = get("executor")
        # Are its temporary files bounded (engine/base/temp_files.py)?
        self.temp_limited = get("temp_file_limit") != "-1"
        # Do triggers and foreign keys fire as where changes are replayed?
        self.replica = get("session_replication_role") == "replica"
        self.consistency = cast(Level, get("consistency"))
        self.max_staleness_ms = settings.integer("max_staleness")
        self.min_read_ts = Timestamp(settings.integer("min_read_ts"))
        # Does it choose a timestamp, as engine/session/transaction/time_travel.py does?
        self.chooses = self.consistency != "strict" or self.min_read_ts > 0
        self.verifies = get("verify_executors") == "on"
        self.short_ways = self.executor == "auto" and not self.chooses and not self.verifies
        self.reports_commits = get("holdfast.report_commit_ts") == "on"
        self.local_max_bytes = settings.integer("local_executor_max_bytes")
        self.spark_start_ms = settings.integer("spark_start_timeout")
        self.statement_memory = settings.integer("statement_memory")
        self.lock_timeout_ms = settings.integer("lock_timeout")
        self.statement_timeout_ms = settings.integer("statement_timeout")
        self.transaction_timeout_ms = settings.integer("transaction_timeout")
        self.idle_in_transaction_ms = settings.integer("idle_in_transaction_session_timeout")
        self.idle_session_ms = settings.integer("idle_session_timeout")
        self.idle_limits = self.idle_session_ms > 0 or self.idle_in_transaction_ms > 0
        self.read_only = get("default_transaction_read_only") == "on"
        self.isolation = get("default_transaction_isolation")
        # Is there anything to look at of statements that succeed?
        self.logs = (
            get("log_statement") != "none"
            or get("log_duration") == "on"
            or settings.integer("log_min_duration_statement") >= 0
            or settings.integer("log_min_duration_sample") >= 0
            or float(get("log_transaction_sample_rate")) > 0
        )
