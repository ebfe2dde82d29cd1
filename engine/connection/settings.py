"""Session settings (PostgreSQL's GUCs and ours): values, validation, transaction rollback.

Three closed groups, all shown in ``docs/settings.md``:

    honoured    change what the server does (DateStyle, search_path, statement_timeout, executor ...)
    harmless    tune only PostgreSQL's storage or speed: validated, remembered, shown, no effect (P4)
    refused     everything else: SHOW works, SET to another value is 0A000 (or 55P02 when PostgreSQL itself
                only takes it at server start)

A value is kept as its canonical text, as SHOW prints it. SET inside a transaction is undone by ROLLBACK and
by ROLLBACK TO; SET LOCAL ends with the transaction (manual, SET).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo

from pgwire.codecs.zone import find_zone
from planner.errors import SqlError, not_supported
from planner.facts import rows

Validator = Callable[[str], str]

_END_OF_OFFSETS_S = 168 * 3600  # time zones may be a week from UTC, less an hour

SERVER_VERSION = "15.18"
SERVER_VERSION_NUM = "150018"

# What a client is told whenever it changes (manual 55.2.7), in PostgreSQL's spelling.
REPORTED = (
    "server_version", "server_encoding", "client_encoding", "application_name", "is_superuser",
    "session_authorization", "DateStyle", "IntervalStyle", "TimeZone", "integer_datetimes",
    "standard_conforming_strings", "default_transaction_read_only", "in_hot_standby",
)  # fmt: skip

HONOURED = frozenset(
    [
        "datestyle",
        "intervalstyle",
        "timezone",
        "application_name",
        "bytea_output",
        "client_encoding",
        "client_min_messages",
        "default_transaction_deferrable",
        "default_transaction_isolation",
        "default_transaction_read_only",
        "extra_float_digits",
        "idle_in_transaction_session_timeout",
        "idle_session_timeout",
        "lock_timeout",
        "search_path",
        "statement_timeout",
        "transaction_deferrable",
        "transaction_isolation",
        "transaction_read_only",
        "array_nulls",
        "role",
        "session_authorization",
    ]
)

# P4's closed table of settings without effect: they tune PostgreSQL's planner, storage or logging.
HARMLESS = frozenset(
    [
        "backend_flush_after",
        "check_function_bodies",
        "client_connection_check_interval",
        "commit_siblings",
        "constraint_exclusion",
        "cpu_index_tuple_cost",
        "cpu_operator_cost",
        "cpu_tuple_cost",
        "cursor_tuple_fraction",
        "default_statistics_target",
        "default_toast_compression",
        "effective_cache_size",
        "effective_io_concurrency",
        "enable_async_append",
        "enable_bitmapscan",
        "enable_gathermerge",
        "enable_hashagg",
        "enable_hashjoin",
        "enable_incremental_sort",
        "enable_indexonlyscan",
        "enable_indexscan",
        "enable_material",
        "enable_memoize",
        "enable_mergejoin",
        "enable_nestloop",
        "enable_parallel_append",
        "enable_parallel_hash",
        "enable_partition_pruning",
        "enable_partitionwise_aggregate",
        "enable_partitionwise_join",
        "enable_seqscan",
        "enable_sort",
        "enable_tidscan",
        "escape_string_warning",
        "force_parallel_mode",
        "from_collapse_limit",
        "geqo",
        "geqo_effort",
        "geqo_generations",
        "geqo_pool_size",
        "geqo_seed",
        "geqo_selection_bias",
        "geqo_threshold",
        "gin_fuzzy_search_limit",
        "gin_pending_list_limit",
        "hash_mem_multiplier",
        "jit",
        "jit_above_cost",
        "jit_expressions",
        "jit_inline_above_cost",
        "jit_optimize_above_cost",
        "jit_tuple_deforming",
        "join_collapse_limit",
        "logical_decoding_work_mem",
        "maintenance_io_concurrency",
        "maintenance_work_mem",
        "max_parallel_maintenance_workers",
        "max_parallel_workers",
        "max_parallel_workers_per_gather",
        "min_parallel_index_scan_size",
        "min_parallel_table_scan_size",
        "parallel_leader_participation",
        "parallel_setup_cost",
        "parallel_tuple_cost",
        "plan_cache_mode",
        "random_page_cost",
        "recursive_worktable_factor",
        "seq_page_cost",
        "stats_fetch_consistency",
        "synchronize_seqscans",
        "tcp_keepalives_count",
        "tcp_keepalives_idle",
        "tcp_keepalives_interval",
        "tcp_user_timeout",
        "temp_buffers",
        "trace_sort",
        "vacuum_cost_delay",
        "vacuum_cost_limit",
        "vacuum_cost_page_dirty",
        "vacuum_cost_page_hit",
        "vacuum_cost_page_miss",
        "vacuum_failsafe_age",
        "vacuum_freeze_min_age",
        "vacuum_freeze_table_age",
        "vacuum_multixact_failsafe_age",
        "vacuum_multixact_freeze_min_age",
        "vacuum_multixact_freeze_table_age",
        "wal_skip_threshold",
        "work_mem",
        "row_security",
        "lc_messages",
        "log_duration",
        "log_error_verbosity",
        "log_executor_stats",
        "log_lock_waits",
        "log_min_duration_sample",
        "log_min_duration_statement",
        "log_min_error_statement",
        "log_min_messages",
        "log_parameter_max_length",
        "log_parameter_max_length_on_error",
        "log_parser_stats",
        "log_planner_stats",
        "log_statement",
        "log_statement_sample_rate",
        "log_statement_stats",
        "log_transaction_sample_rate",
        "track_activities",
        "track_counts",
        "track_functions",
        "track_io_timing",
        "update_process_title",
        "debug_pretty_print",
        "debug_print_parse",
        "debug_print_plan",
        "debug_print_rewritten",
        "compute_query_id",
        "max_stack_depth",
        "quote_all_identifiers",
        "debug_discard_caches",
        "deadlock_timeout",
    ]
)

_BOOLS = {"on": "on", "true": "on", "yes": "on", "1": "on", "off": "off", "false": "off", "no": "off",
          "0": "off", "t": "on", "f": "off", "y": "on", "n": "off", "tr": "on", "tru": "on", "ye": "on",
          "fa": "off", "fal": "off", "fals": "off", "of": "off"}  # fmt: skip

_MEMORY = {"B": 1, "kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
_TIME = {"us": 1, "ms": 1000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingDef:
    """One setting: its facts, default and group."""

    name: str  # PostgreSQL's spelling
    kind: str  # bool enum integer real string
    default: str
    unit: str = ""
    context: str = "user"
    category: str = ""
    description: str = ""
    choices: tuple[str, ...] = ()
    minimum: str = ""
    maximum: str = ""


MAX_BYTES = "local_executor_max_bytes"

OURS = (
    SettingDef(
        name="executor", kind="enum", default="auto", choices=("auto", "index", "local", "spark"),
        category="Holdfast", description="Pins the executor of queries; auto lets the router choose.",
    ),
    SettingDef(
        name=MAX_BYTES, kind="integer", unit="B", default=str(8 * 1024**3), minimum="0",
        maximum=str(2**60), category="Holdfast",
        description="Queries estimated to read more than this go to Spark when it is available.",
    ),
    SettingDef(
        name="verify_executors", kind="bool", default="off", category="Holdfast",
        description="Runs each read on two executors and fails it where their answers differ.",
    ),
    SettingDef(
        name="consistency", kind="enum", default="strict", choices=("strict", "session", "bounded", "serializable"),
        category="Holdfast", description="How old what a transaction reads may be; who writes reads the newest.",
    ),
    SettingDef(
        name="max_staleness", kind="integer", unit="ms", default="10000", minimum="0", maximum="2147483647",
        category="Holdfast", description="How far behind the newest commit a read with consistency = bounded may be.",
    ),
    SettingDef(
        name="min_read_ts", kind="string", default="0", category="Holdfast",
        description="Hybrid timestamp that reads are not older than, such as holdfast.commit_ts of another session.",
    ),
    SettingDef(
        name="holdfast.commit_ts", kind="string", default="0", context="internal", category="Holdfast",
        description="Hybrid timestamp of the session's latest commit that wrote something.",
    ),
    SettingDef(
        name="holdfast.report_commit_ts", kind="bool", default="on", category="Holdfast",
        description="Sends holdfast.commit_ts to the client with each commit that wrote something.",
    ),
    SettingDef(
        name="spark_max_queries", kind="integer", default="4", context="postmaster", minimum="1", maximum="256",
        category="Holdfast", description="How many statements run jobs on Spark at once; others wait.",
    ),
    SettingDef(
        name="spark_start_timeout", kind="integer", unit="ms", default="300000", minimum="0", maximum="2147483647",
        category="Holdfast",
        description="How long a statement that needs Spark waits for it to start; 0 for as long as it takes.",
    ),
    SettingDef(
        name="history_retention", kind="integer", unit="s", default="600", context="postmaster", minimum="0",
        maximum="10000000", category="Holdfast",
        description="For how long the past stays readable besides what transactions hold.",
    ),
    SettingDef(
        name="copy_progress_interval", kind="integer", unit="ms", default="5000", minimum="0", maximum="2147483647",
        category="Holdfast", description="How often COPY with a file of the server says how far it is; 0 is never.",
    ),
    SettingDef(
        name="copy_spark_min_bytes", kind="integer", unit="B", default=str(256 * 1024**2), minimum="0",
        maximum=str(2**60), category="Holdfast",
        description="COPY FROM server files of at least this many bytes is done by Spark when it is available.",
    ),
    SettingDef(
        name="server_files", kind="string", default="", context="postmaster", category="Holdfast",
        description="Directories below which COPY may read and write files of the server.",
    ),
    SettingDef(
        name="transaction_timeout", kind="integer", unit="ms", default="0", minimum="0",
        maximum="2147483647", category="Holdfast",
        description="Ends connections whose transaction lasts longer.",
    ),
    SettingDef(
        name="deadlock_policy", kind="enum", default="detect", context="postmaster",
        choices=("detect", "wound_wait", "wait_die", "no_wait", "timeout"), category="Holdfast",
        description="What is done when a lock has to be waited for: find deadlocks (detect), or prevent them.",
    ),
)  # fmt: skip


def _enum_values(text: str) -> tuple[str, ...]:
    return tuple(part.strip('"') for part in text.strip("{}").split(",") if part)


# Settings of PostgreSQL's last minor releases that clients set only where they exist; what they forbid cannot be
# asked here.
ABSENT = frozenset(("restrict_nonsystem_relation_kind",))


@cache
def definitions() -> Mapping[str, SettingDef]:
    """Return all settings by lower-case name."""
    result: dict[str, SettingDef] = {}
    for row in rows("settings"):
        if row["name"] in ABSENT:
            continue
        result[row["name"].lower()] = SettingDef(
            name=row["name"], kind=row["vartype"], default=row["boot_val"], unit=row["unit"],
            context=row["context"], category=row["category"], choices=_enum_values(row["enumvals"]),
            minimum=row["min_val"], maximum=row["max_val"],
        )  # fmt: skip
    overrides = {
        "server_version": SERVER_VERSION, "server_version_num": SERVER_VERSION_NUM,
        "client_encoding": "UTF8", "server_encoding": "UTF8", "timezone": "Etc/UTC",
        "datestyle": "ISO, MDY", "lc_collate": "C.UTF-8", "lc_ctype": "C.UTF-8", "lc_messages": "C",
        "lc_monetary": "C", "lc_numeric": "C", "lc_time": "C", "search_path": '"$user", public',
        "default_transaction_isolation": "serializable", "transaction_isolation": "serializable",
        "default_text_search_config": "pg_catalog.simple", "in_hot_standby": "off", "port": "7432",
        "listen_addresses": "127.0.0.1", "integer_datetimes": "on", "jit": "off", "max_connections": "200",
        "max_prepared_transactions": "0", "log_timezone": "Etc/UTC", "password_encryption": "scram-sha-256",
    }  # fmt: skip
    for name, value in overrides.items():
        old = result[name]
        result[name] = SettingDef(
            name=old.name, kind=old.kind, default=value, unit=old.unit, context=old.context,
            category=old.category, choices=old.choices, minimum=old.minimum, maximum=old.maximum,
        )  # fmt: skip
    for name in ("is_superuser", "session_authorization", "role"):
        result[name] = SettingDef(
            name=name, kind="string", default="none" if name == "role" else "", context="internal"
        )
    for setting in OURS:
        result[setting.name] = setting
    return result


def _invalid(name: str, value: str, hint: str | None = None, detail: str | None = None) -> SqlError:
    return SqlError("22023", f'invalid value for parameter "{name}": "{value}"', hint=hint, detail=detail)


def _number_with_unit(setting: SettingDef, text: str) -> Decimal:
    """Parse a number with an optional unit into the setting's base unit."""
    match = re.fullmatch(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([a-zA-Z]*)\s*", text)
    if match is None:
        raise _invalid(setting.name, text)
    try:
        number = Decimal(match.group(1))
    except InvalidOperation:
        raise _invalid(setting.name, text) from None
    unit = match.group(2)
    if not unit:
        return number
    base = re.fullmatch(r"(\d*)(\w+)", setting.unit) if setting.unit else None
    table = _MEMORY if base and base.group(2) in _MEMORY else _TIME if base else {}
    if base is None or unit not in table:
        units = '"B", "kB", "MB", "GB", and "TB"' if table is _MEMORY else (
            '"us", "ms", "s", "min", "h", and "d"')  # fmt: skip
        hint = f"Valid units for this parameter are {units}." if base else None
        raise _invalid(setting.name, text, hint)
    factor = Decimal(int(base.group(1) or 1) * table[base.group(2)])
    return number * table[unit] / factor


def _show_with_unit(setting: SettingDef, value: int) -> str:
    """Print an integer in the largest unit that divides it, as SHOW does."""
    base = re.fullmatch(r"(\d*)(\w+)", setting.unit)
    if base is None or value <= 0:
        return str(value)
    table = _MEMORY if base.group(2) in _MEMORY else _TIME
    total = value * int(base.group(1) or 1) * table[base.group(2)]
    for unit, size in sorted(table.items(), key=lambda item: -item[1]):
        if total % size == 0:
            return f"{total // size}{unit}"
    return str(value)


def _range_error(setting: SettingDef, shown: str) -> SqlError:
    unit = f" {setting.unit}" if setting.unit else ""
    return SqlError(
        "22023",
        f'{shown}{unit} is outside the valid range for parameter "{setting.name}" '
        f"({setting.minimum}{unit} .. {setting.maximum}{unit})",
    )


def _date_style(value: str, current: str) -> str:
    style, order = current.split(", ")
    for word in value.replace(",", " ").split():
        upper = word.upper()
        if upper in ("ISO", "SQL", "POSTGRES", "GERMAN"):
            style = {"POSTGRES": "Postgres", "GERMAN": "German"}.get(upper, upper)
            if upper == "GERMAN":
                order = "DMY"
        elif upper in ("MDY", "US", "NONEURO", "NONEUROPEAN"):
            order = "MDY"
        elif upper in ("DMY", "EURO", "EUROPEAN"):
            order = "DMY"
        elif upper == "YMD":
            order = "YMD"
        elif upper == "DEFAULT":
            style, order = "ISO", "MDY"
        else:
            raise SqlError(
                "22023", f'invalid value for parameter "DateStyle": "{value}"',
                detail=f'Unrecognized key word: "{word.lower()}".',
            )  # fmt: skip
    return f"{style}, {order}"


@cache
def _zone_names() -> Mapping[str, str]:
    from zoneinfo import available_timezones

    return {name.lower(): name for name in available_timezones()}


def _offset_east(text: str) -> int | None:
    """Return the seconds east of UTC that ``-3.5`` or ``INTERVAL '-03:30'`` means; None for another text.

    A text like ``+05:30`` is no number but a POSIX zone, which counts west.
    """
    interval = re.fullmatch(
        r"interval\s*'?([-+]?)(\d{1,3})(?::(\d{2}))?(?::(\d{2}))?(?:\.\d+)?'?", text, re.I
    )
    if interval is not None:
        sign, hours, minutes, seconds = interval.groups()
        size = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
        return -size if sign == "-" else size
    if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d{1,3})?", text, re.I) is None:
        return None
    return int(min(max(Decimal(text) * 3600, Decimal(-_END_OF_OFFSETS_S)), Decimal(_END_OF_OFFSETS_S)))


def _posix(east_s: int) -> str:
    """Return the POSIX specification that PostgreSQL shows for a constant offset: ``<+05:30>-05:30``."""
    minutes, seconds = divmod(abs(east_s), 60)
    hours, minutes = divmod(minutes, 60)
    body = f"{hours:02d}"
    if minutes or seconds:
        body += f":{minutes:02d}"
    if seconds:
        body += f":{seconds:02d}"
    return f"<-{body}>+{body}" if east_s < 0 else f"<+{body}>-{body}"


def _time_zone(value: str) -> str:
    text = value.strip()
    known = _zone_names().get(text.lower())
    if known is not None:
        ZoneInfo(known)
        return known
    if text.lower() in ("local", "default"):
        return "Etc/UTC"
    offset = _offset_east(text)
    if offset is not None:
        if abs(offset) >= _END_OF_OFFSETS_S:
            raise _invalid("TimeZone", value, detail="UTC timezone offset is out of range.")
        return _posix(offset)
    if find_zone(text) is not None:
        return text.upper()
    if re.fullmatch(r"(<[-+A-Za-z0-9:]+>|[A-Za-z]{3,})[-+]?\d{1,3}(:\d{2}){0,2}[A-Za-z]{3,}.*", text):
        raise not_supported(f'TimeZone "{value}" (POSIX rules of daylight saving time)')
    raise _invalid("TimeZone", value)


def _encoding(value: str) -> str:
    folded = value.strip("'\"").lower().replace("-", "").replace("_", "")
    if folded in ("utf8", "unicode"):
        return "UTF8"
    if folded in ("sqlascii",):
        return "SQL_ASCII"
    raise SqlError(
        "0A000", f'client_encoding "{value}" is not supported', hint="Use UTF8; the server stores UTF8 only."
    )


def normalise(setting: SettingDef, value: str, current: str) -> str:
    """Return the canonical text of ``value``; 22023 with PostgreSQL's wording when it is not valid."""
    name = setting.name.lower()
    if name == "datestyle":
        return _date_style(value, current)
    if name == "timezone":
        return _time_zone(value)
    if name == "client_encoding":
        return _encoding(value)
    if setting.kind == "bool":
        folded = value.strip().lower()
        if folded not in _BOOLS:
            raise SqlError("22023", f'parameter "{setting.name}" requires a Boolean value')
        return _BOOLS[folded]
    if setting.kind == "enum":
        folded = value.strip().lower()
        if folded in setting.choices:
            return folded
        extra = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}
        if extra.get(folded) in setting.choices:
            return extra[folded]
        hidden = "debug" if name.endswith("min_messages") and folded == "debug" else ""
        if hidden:
            return "debug2"
        raise _invalid(setting.name, value, f"Available values: {', '.join(setting.choices)}.")
    if setting.kind == "integer":
        if re.fullmatch(r"\s*0[xX][0-9a-fA-F]+\s*", value):
            value = str(int(value, 16))
        number = _number_with_unit(setting, value)
        whole = int(number.to_integral_value())
        if setting.minimum and not int(setting.minimum) <= whole <= int(setting.maximum):
            raise _range_error(setting, str(whole))
        return str(whole)
    if setting.kind == "real":
        real = _number_with_unit(setting, value)
        if setting.minimum and not Decimal(setting.minimum) <= real <= Decimal(setting.maximum):
            raise _range_error(setting, format(real.normalize(), "f"))
        return f"{float(real):g}"
    if name == "min_read_ts":
        if not re.fullmatch(r"\d{1,19}", value.strip()) or int(value) >= 2**63:
            raise _invalid(
                setting.name, value, "It is a hybrid timestamp, as SHOW holdfast.commit_ts prints it."
            )
        return value.strip()
    if name == "application_name":
        return "".join(ch if " " <= ch <= "~" else "?" for ch in value)
    return value


MODES: Final = ("transaction_isolation", "transaction_read_only", "transaction_deferrable")
"""What each BEGIN sets and each end undoes; nothing that is derived from settings depends on them."""


class Settings:
    """The settings of one session, with PostgreSQL's transaction semantics.

    ``defaults`` are what RESET returns to: built-in, then server configuration, then the start-up packet.
    ``changed`` is called with (name, value) for reported settings whenever the visible value changes.
    """

    __slots__ = ("_changed", "_custom", "_defaults", "_log", "_values", "generation")

    def __init__(
        self, overrides: Mapping[str, str], changed: Callable[[str, str], None] | None = None
    ) -> None:
        """Start with ``overrides`` (lower-case names, canonical values) over the built-in defaults."""
        self._defaults = dict(overrides)
        self._values: dict[str, str] = {}
        self._custom: dict[str, str] = {}
        # undo log of the transaction: (name, old override or None, is SET LOCAL)
        self._log: list[tuple[str, str | None, bool]] = []
        self._changed = changed
        self.generation = 0  # grows with every change but those of MODES: caches key on it

    def get(self, name: str) -> str:
        """Return the canonical value; 42704 for an unknown name. ``name`` in any case."""
        key = name.lower()
        value = self._values.get(key)
        if value is not None:
            return value
        value = self._defaults.get(key)
        if value is not None:
            return value
        definition = definitions().get(key)
        if definition is None:
            raise SqlError("42704", f'unrecognized configuration parameter "{name}"')
        return definition.default

    def show(self, name: str) -> str:
        """Return the value as SHOW prints it, with units."""
        value = self.get(name)
        definition = definitions().get(name.lower())
        if definition is not None and definition.kind == "integer" and definition.unit:
            return _show_with_unit(definition, int(value))
        return value

    def integer(self, name: str) -> int:
        """Return an integer setting in its base unit."""
        return int(self.get(name))

    def check(self, name: str, value: str) -> str:
        """Validate a change and return the canonical value (see the module's groups for errors)."""
        key = name.lower()
        definition = definitions().get(key)
        if definition is None:
            if re.fullmatch(r"[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*)+", name):
                return value  # a placeholder: any "class.name" may be set (manual 20.16)
            raise SqlError("42704", f'unrecognized configuration parameter "{name}"')
        if definition.context == "internal" and key not in HONOURED:
            raise SqlError("55P02", f'parameter "{definition.name}" cannot be changed')
        if definition.context == "postmaster":
            raise SqlError(
                "55P02", f'parameter "{definition.name}" cannot be changed without restarting the server'
            )
        if definition.context == "sighup":
            raise SqlError("55P02", f'parameter "{definition.name}" cannot be changed now')
        if definition.context in ("backend", "superuser-backend"):
            raise SqlError("55P02", f'parameter "{definition.name}" cannot be set after connection start')
        if definition.context == "superuser" and self.get("is_superuser") != "on":
            raise SqlError("42501", f'permission denied to set parameter "{definition.name}"')
        canonical = normalise(definition, value, self.get(key))
        if key in HONOURED or key in HARMLESS or any(key == ours.name for ours in OURS):
            return canonical
        if canonical == self.get(key):
            return canonical  # asking for what already holds changes nothing
        raise SqlError("0A000", f'setting "{definition.name}" to "{value}" is not supported')

    def set(self, name: str, value: str | None, *, local: bool = False) -> str:
        """Change a setting (None: back to its default); returns the canonical value."""
        key = name.lower()
        canonical = self._default(key) if value is None else self.check(name, value)
        if value is None:
            self.check(name, canonical)
        self._log.append((key, self._values.get(key), local))
        self._store(key, canonical)
        return canonical

    def follow(self, key: str, value: str | None, *, local: bool = False) -> None:
        """Set an internal value that goes with another change, unchecked; undone together with it."""
        self._log.append((key, self._values.get(key), local))
        self._store(key, value)

    def _default(self, key: str) -> str:
        if key in self._defaults:
            return self._defaults[key]
        definition = definitions().get(key)
        if definition is not None:
            return definition.default
        if "." in key:
            return ""
        raise SqlError("42704", f'unrecognized configuration parameter "{key}"')

    def reset_all(self) -> None:
        """RESET ALL: every changed setting that may be reset goes back to its default."""
        for key in list(self._values):
            if key not in ("role", "session_authorization", "transaction_isolation", "is_superuser",
                           "transaction_read_only", "transaction_deferrable", "holdfast.commit_ts"):  # fmt: skip
                self._log.append((key, self._values.get(key), False))
                self._store(key, None)

    def _store(self, key: str, value: str | None) -> None:
        before = self._values.get(key)
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        if before != value:
            if key not in MODES:
                self.generation += 1
            definition = definitions().get(key)
            if self._changed is not None and definition is not None and definition.name in REPORTED:
                self._changed(definition.name, self.get(key))

    def override(self, key: str, value: str | None) -> None:
        """Set an internal value (transaction_isolation, is_superuser ...) outside transaction semantics."""
        self._store(key, value)

    def note(self, key: str, value: str) -> None:
        """Keep an internal value that nothing else depends on: neither undone nor reported."""
        self._values[key] = value

    # -- transactions ------------------------------------------------------------------------------

    def mark(self) -> int:
        """Return a mark for ``undo_to`` (savepoints)."""
        return len(self._log)

    def undo_to(self, mark: int) -> None:
        """Undo every change made since ``mark``."""
        while len(self._log) > mark:
            key, old, _local = self._log.pop()
            self._store(key, old)

    def commit(self) -> None:
        """End a transaction: SET LOCAL changes are undone, others stay."""
        if not self._log:
            return
        final: dict[str, str | None] = {}
        for key, old, local in self._log:
            if local:
                final.setdefault(key, old)
        # a plain SET before or after a SET LOCAL of the same name wins over the local one
        seen_local: set[str] = set()
        kept: dict[str, str | None] = {}
        values = {key: self._values.get(key) for key, _, _ in self._log}
        for position in range(len(self._log) - 1, -1, -1):
            key, old, local = self._log[position]
            if key in kept:
                continue
            if local:
                seen_local.add(key)
                values[key] = old
            else:
                kept[key] = values[key]
        for key in seen_local:
            self._store(key, kept.get(key, final.get(key)))
        self._log.clear()

    def rollback(self) -> None:
        """Undo the transaction's changes."""
        self.undo_to(0)

    def items(self) -> Iterable[tuple[SettingDef, str]]:
        """Yield every setting with its SHOW text, by name (case-insensitive order)."""
        for key in sorted(definitions()):
            yield definitions()[key], self.show(key)
