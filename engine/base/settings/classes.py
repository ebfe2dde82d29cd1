"""What a change of each setting does: the one table that SET, docs/reference/settings.md and the tests go by (P4).

    effective         changes what the server does
    without effect    accepted, because there is nothing here that it could change; the table says why
    refused           all others that PostgreSQL lets sessions change: another value than the one that holds is 0A000

Nothing is accepted that an answer would show to have been ignored. What only asks for less care, or for
measurements and messages about the server itself, is accepted, and the table says what is given instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EFFECTIVE: Final = frozenset((
    "application_name", "array_nulls", "backslash_quote", "bytea_output", "check_function_bodies", "client_encoding", "client_min_messages",
    "datestyle", "default_text_search_config", "default_transaction_isolation", "default_transaction_read_only",
    "escape_string_warning", "exit_on_error", "extra_float_digits", "idle_in_transaction_session_timeout", "idle_session_timeout", "intervalstyle", "lo_compat_privileges", "lock_timeout",
    "log_connections", "log_disconnections", "log_duration", "log_error_verbosity", "log_min_duration_sample",
    "log_min_duration_statement", "log_min_error_statement", "log_min_messages", "log_parameter_max_length",
    "log_parameter_max_length_on_error", "log_statement", "log_statement_sample_rate", "log_transaction_sample_rate",
    "quote_all_identifiers", "role", "row_security", "search_path", "session_authorization", "session_replication_role", "standard_conforming_strings", "statement_timeout", "temp_file_limit", "tcp_keepalives_count", "tcp_keepalives_idle",
    "tcp_keepalives_interval", "tcp_user_timeout", "timezone", "track_activities", "transaction_isolation", "transaction_read_only", "transform_null_equals",
))  # fmt: skip
"""Those of PostgreSQL that do what they say; Holdfast's own (``setting_defs.OURS``) all do."""

_PLANNER = "how PostgreSQL's planner chooses among plans with the same answer; executors are chosen otherwise (`executor`)"
_MEMORY = "how much memory one step of a plan may take; here `memory` of the server is shared by all"
_READING = "how PostgreSQL reads and writes its files ahead; the answer is the same"
_VACUUM = "the pace and age limits of VACUUM; there are no dead rows or transaction ids to freeze"
_VALUES = "how large values are stored; parts compress all columns alike"

WITHOUT_EFFECT: Final[Mapping[str, tuple[str, ...]]] = {
    _PLANNER: (
        "constraint_exclusion", "cpu_index_tuple_cost", "cpu_operator_cost", "cpu_tuple_cost", "cursor_tuple_fraction",
        "default_statistics_target", "effective_cache_size", "enable_async_append", "enable_bitmapscan",
        "enable_gathermerge", "enable_hashagg", "enable_hashjoin", "enable_incremental_sort", "enable_indexonlyscan",
        "enable_indexscan", "enable_material", "enable_memoize", "enable_mergejoin", "enable_nestloop",
        "enable_parallel_append", "enable_parallel_hash", "enable_partition_pruning", "enable_partitionwise_aggregate",
        "enable_partitionwise_join", "enable_seqscan", "enable_sort", "enable_tidscan", "force_parallel_mode",
        "from_collapse_limit", "geqo", "geqo_effort", "geqo_generations", "geqo_pool_size", "geqo_seed",
        "geqo_selection_bias", "geqo_threshold", "jit", "jit_above_cost", "jit_expressions", "jit_inline_above_cost",
        "jit_optimize_above_cost", "jit_tuple_deforming", "join_collapse_limit", "max_parallel_maintenance_workers",
        "max_parallel_workers", "max_parallel_workers_per_gather", "min_parallel_index_scan_size",
        "min_parallel_table_scan_size", "parallel_leader_participation", "parallel_setup_cost", "parallel_tuple_cost",
        "plan_cache_mode", "random_page_cost", "recursive_worktable_factor", "seq_page_cost",
    ),
    _MEMORY: ("hash_mem_multiplier", "logical_decoding_work_mem", "maintenance_work_mem", "temp_buffers", "work_mem"),
    _READING: (
        "backend_flush_after", "commit_siblings", "effective_io_concurrency", "gin_pending_list_limit",
        "maintenance_io_concurrency", "synchronize_seqscans", "wal_skip_threshold",
    ),
    _VACUUM: (
        "vacuum_cost_delay", "vacuum_cost_limit", "vacuum_cost_page_dirty", "vacuum_cost_page_hit",
        "vacuum_cost_page_miss", "vacuum_failsafe_age", "vacuum_freeze_min_age", "vacuum_freeze_table_age",
        "vacuum_multixact_failsafe_age", "vacuum_multixact_freeze_min_age", "vacuum_multixact_freeze_table_age",
    ),
    _VALUES: ("default_toast_compression",),
    "a client that leaves while its statement runs is always noticed at once, and the statement ends": (
        "client_connection_check_interval",
    ),
    "caches of definitions are never read when they are out of date": ("debug_discard_caches",),
    "deadlocks are found at once, nobody waits for that first": ("deadlock_timeout",),
    "every commit is durable before it is told; there are no replicas to wait for": ("commit_delay", "synchronous_commit"),
    "a log of PostgreSQL's files is not written": (
        "wal_compression", "wal_consistency_checking", "wal_init_zero", "wal_recycle", "wal_sender_timeout",
    ),
    "the times of reads and writes of files are not measured: null or 0 where they are shown": (
        "track_io_timing", "track_wal_io_timing",
    ),
    "counters are kept whether or not they are asked for": ("track_counts",),
    "calls of functions are not counted: `pg_stat_user_functions` is empty": ("track_functions",),
    "queries have no identifiers: `query_id` is null": ("compute_query_id",),
    "statements have no such steps here: nothing is written about them": (
        "debug_pretty_print", "debug_print_parse", "debug_print_plan", "debug_print_rewritten", "log_executor_stats",
        "log_parser_stats", "log_planner_stats", "log_statement_stats",
    ),
    "there is nothing of the kind to log": (
        "backtrace_functions", "jit_dump_bitcode", "log_replication_commands", "log_temp_files", "trace_notify", "trace_sort",
    ),
    "waits for locks are in `pg_locks`, not in the log": ("log_lock_waits",),
    "damaged data is an error whatever they say": ("ignore_checksum_failure", "zero_damaged_pages"),
    "an index finds all there is": ("gin_fuzzy_search_limit",),
    "all tables are stored in one way and one tablespace; names of others are refused": (
        "allow_in_place_tablespaces", "default_table_access_method", "default_tablespace", "temp_tablespaces",
    ),
    "there are no libraries to load (one that a session begins with is refused)": (
        "dynamic_library_path", "extension_destdir", "local_preload_libraries", "session_preload_libraries",
    ),
    "there is no type xml": ("xmlbinary", "xmloption"),
    "every snapshot is safe, no transaction has to wait for one": ("default_transaction_deferrable", "transaction_deferrable"),
    "all sessions are one process": ("update_process_title",),
    "how deep a statement may nest has a bound of its own": ("max_stack_depth",),
}  # fmt: skip
"""Why a setting changes nothing: the settings."""

FOR_SUPERUSERS: Final = frozenset((
    "config_file", "data_directory", "dynamic_library_path", "external_pid_file", "hba_file", "ident_file", "jit_provider",
    "krb_server_keyfile", "log_directory", "log_filename", "primary_conninfo", "server_files", "session_preload_libraries", "shared_preload_libraries",
    "ssl_ciphers", "ssl_dh_params_file", "ssl_ecdh_curve", "ssl_max_protocol_version", "ssl_min_protocol_version", "ssl_passphrase_command",
    "unix_socket_directories",
))  # fmt: skip
"""What superusers and members of pg_read_all_settings alone may look at."""

UNLISTED: Final = frozenset(
    ("is_superuser", "role", "session_authorization", "default_with_oids", "ssl_renegotiation_limit")
)
"""What SHOW ALL and pg_settings leave out."""

REASONS: Final[Mapping[str, str]] = {name: why for why, names in WITHOUT_EFFECT.items() for name in names}
"""The settings without effect by name, and why."""

_ENGLISH: Final = frozenset(
    ("c", "posix", "c.utf8", "english", "en", "enus", "enus.utf8", "engb", "engb.utf8")
)


def accepted(name: str, value: str) -> bool:
    """Tell whether a session may change a setting of PostgreSQL (in lower case) to a valid value."""
    if name == "lc_messages":  # messages are in English
        return value.lower().replace("-", "").replace("_", "") in _ENGLISH
    if name in ("lc_monetary", "lc_numeric", "lc_time"):
        return value in ("", "C", "POSIX", "C.UTF-8", "C.utf8")
    if name == "stats_fetch_consistency":  # statistics are read as of now, at least as new as a cache's
        return value in ("none", "cache")
    return name in EFFECTIVE or name in REASONS
