"""pg_settings_get_flags: which settings EXPLAIN (SETTINGS) shows, and which SHOW ALL, RESET ALL and the
sample file leave out.
"""

from __future__ import annotations

from typing import Final

from planner.base.errors import SqlError
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession

_EXPLAIN: Final = frozenset(
    [
        "constraint_exclusion",
        "cpu_index_tuple_cost",
        "cpu_operator_cost",
        "cpu_tuple_cost",
        "cursor_tuple_fraction",
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
        "force_parallel_mode",
        "from_collapse_limit",
        "geqo",
        "geqo_effort",
        "geqo_generations",
        "geqo_pool_size",
        "geqo_seed",
        "geqo_selection_bias",
        "geqo_threshold",
        "hash_mem_multiplier",
        "jit",
        "jit_above_cost",
        "jit_inline_above_cost",
        "jit_optimize_above_cost",
        "join_collapse_limit",
        "maintenance_io_concurrency",
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
        "search_path",
        "seq_page_cost",
        "temp_buffers",
        "work_mem",
    ]
)
_NO_SHOW_ALL: Final = frozenset(("is_superuser", "role", "seed", "session_authorization"))
_NO_RESET_ALL: Final = _NO_SHOW_ALL | {
    "transaction_deferrable", "transaction_isolation", "transaction_read_only",
}  # fmt: skip
_RUNTIME_COMPUTED: Final = frozenset(
    ("data_checksums", "data_directory_mode", "shared_memory_size", "shared_memory_size_in_huge_pages", "wal_segment_size")
)  # fmt: skip
_NOT_IN_SAMPLE: Final = (
    _NO_RESET_ALL
    | _RUNTIME_COMPUTED
    | frozenset(
        [
            "allow_in_place_tablespaces",
            "allow_system_table_mods",
            "application_name",
            "backtrace_functions",
            "block_size",
            "debug_assertions",
            "debug_discard_caches",
            "force_parallel_mode",
            "ignore_checksum_failure",
            "ignore_invalid_pages",
            "ignore_system_indexes",
            "in_hot_standby",
            "integer_datetimes",
            "jit_debugging_support",
            "jit_dump_bitcode",
            "jit_expressions",
            "jit_profiling_support",
            "jit_tuple_deforming",
            "lc_collate",
            "lc_ctype",
            "max_function_args",
            "max_identifier_length",
            "max_index_keys",
            "post_auth_delay",
            "pre_auth_delay",
            "remove_temp_files_after_crash",
            "restrict_nonsystem_relation_kind",
            "segment_size",
            "server_encoding",
            "server_version",
            "server_version_num",
            "ssl_library",
            "trace_notify",
            "trace_recovery_messages",
            "trace_sort",
            "wal_block_size",
            "wal_consistency_checking",
            "zero_damaged_pages",
        ]
    )
)
_FLAGS: Final = (
    ("EXPLAIN", _EXPLAIN),
    ("NO_RESET_ALL", _NO_RESET_ALL),
    ("NO_SHOW_ALL", _NO_SHOW_ALL),
    ("NOT_IN_SAMPLE", _NOT_IN_SAMPLE),
    ("RUNTIME_COMPUTED", _RUNTIME_COMPUTED),
)


def settings_flags(session: EvalSession, name: str) -> tuple[str, ...] | None:
    """SQL's ``pg_settings_get_flags``: NULL for a setting that there is not."""
    wanted = name.lower()
    flags = tuple(flag for flag, named in _FLAGS if wanted in named)
    if flags:
        return flags
    try:
        session.setting(wanted)
    except SqlError as error:
        if error.sqlstate == "42704":
            return None
        if error.sqlstate != "42501":  # not everybody may see every value
            raise
    return ()


def _register() -> None:
    REGISTRY.python("pg_settings_get_flags(text)", settings_flags, needs_session=True)


_register()
