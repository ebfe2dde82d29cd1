"""The tables of settings: which exist, their facts and defaults (what a change does: ``setting_classes``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from planner.facts import rows

SERVER_VERSION = "15.18"
SERVER_VERSION_NUM = "150018"

# What a client is told whenever it changes (manual 55.2.7), in PostgreSQL's spelling.
REPORTED = (
    "server_version", "server_encoding", "client_encoding", "application_name", "is_superuser",
    "session_authorization", "DateStyle", "IntervalStyle", "TimeZone", "integer_datetimes",
    "standard_conforming_strings", "default_transaction_read_only", "in_hot_standby",
)  # fmt: skip


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

_CUSTOM: Final = "Customized Options"

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
        name="spark_max_queries", kind="integer", default="4", context="superuser", minimum="1", maximum="256",
        category="Holdfast",
        description="How many statements of the role's sessions run jobs on Spark at once, at most the server's number; others wait.",
    ),
    SettingDef(
        name="statement_memory", kind="integer", unit="B", default="0", context="superuser", minimum="0", maximum=str(2**60),
        category="Holdfast",
        description="What a statement may gather in memory; 0 for a quarter of the server's, which is the most.",
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
        name="copy_worker", kind="bool", default="on", category="Holdfast",
        description="Whether large loads of COPY FROM STDIN are read by a process beside the server.",
    ),
    SettingDef(
        name="index_spark_min_rows", kind="integer", default="5000000", minimum="0", maximum=str(2**60),
        category="Holdfast",
        description="Indexes of tables with at least this many rows in parts are built by Spark when it is available.",
    ),
    SettingDef(
        name="server_files", kind="string", default="", context="postmaster", category="Holdfast",
        description="Directories and buckets below which COPY may read and write files and objects.",
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

OF_OLD: Final = (
    SettingDef(name="default_with_oids", kind="bool", default="off"),
    SettingDef(name="ssl_renegotiation_limit", kind="integer", default="0", minimum="0", maximum="0"),
)
"""What dumps and clients of former releases set; each has one value, and no list tells of it."""

PLPGSQL: Final = (
    SettingDef(name="plpgsql.check_asserts", kind="bool", default="on", category=_CUSTOM, description="Whether ASSERT is checked."),
    SettingDef(
        name="plpgsql.extra_errors", kind="string", default="none", category=_CUSTOM,
        description="What PL/pgSQL takes for errors: shadowed_variables, too_many_rows, strict_multi_assignment, or all.",
    ),
    SettingDef(
        name="plpgsql.extra_warnings", kind="string", default="none", category=_CUSTOM,
        description="What PL/pgSQL warns of: shadowed_variables, too_many_rows, strict_multi_assignment, or all.",
    ),
    SettingDef(
        name="plpgsql.print_strict_params", kind="bool", default="off", category=_CUSTOM,
        description="Whether errors of INTO STRICT tell the parameters of their query.",
    ),
    SettingDef(
        name="plpgsql.variable_conflict", kind="enum", default="error", context="superuser", category=_CUSTOM,
        choices=("error", "use_variable", "use_column"), description="What a name means that is a variable and a column.",
    ),
)  # fmt: skip
"""Those that PostgreSQL has once PL/pgSQL is loaded."""


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
        "default_text_search_config": "pg_catalog.english", "in_hot_standby": "off", "port": "7432",
        "listen_addresses": "127.0.0.1", "integer_datetimes": "on", "jit": "off", "max_connections": "200",
        "max_prepared_transactions": "0", "log_timezone": "Etc/UTC", "password_encryption": "scram-sha-256", "timezone_abbreviations": "Default",
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
    for setting in (*OURS, *PLPGSQL, *OF_OLD):
        result[setting.name] = setting
    return result
