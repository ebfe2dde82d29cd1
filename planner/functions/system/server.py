"""Files of the server, positions in its log, what pg_control tells, and having settings read again (manual 9.27).

A position in the log (pg_lsn) is the number of an entry, of which each is one write and one sync; the
difference of two is how many entries lie between them, not bytes. What PostgreSQL keeps and Holdfast has no
counterpart of is NULL or 0; ``docs/reference/catalog.md`` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pgwire.codecs.invalid import quoting
from pgwire.codecs.system import RecordValue
from planner.base.errors import SqlError
from planner.facts import facts
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession

CATALOG_VERSION: Final = 202209061
"""Of PostgreSQL 15, whose catalogs are served."""
_INT4_MAX: Final = 2**31 - 1
_FIRST_MULTIXACT: Final = 1
_TABLESPACES: Final = (1663, 1664)
_TIMELINE: Final = 1
"""Of the log: it never forks."""
_SEGMENT_BYTES: Final = 16 << 20


def record_of(signature: str, *values: Any) -> RecordValue:
    """Return the record of a function's OUT columns, in their order."""
    proc = facts().procs[facts().proc_by_signature[signature]]
    columns = zip(proc.all_arg_types or (), proc.arg_modes or (), proc.arg_names or (), strict=True)
    outs = [(oid, name) for oid, mode, name in columns if mode != "i"]
    if len(values) != len(outs):
        raise AssertionError(f"{signature} has {len(outs)} OUT columns, not {len(values)}")
    return RecordValue(values, tuple(oid for oid, _ in outs), tuple(name for _, name in outs))


# --- positions in the log -------------------------------------------------------------------------


def lsn(position: int) -> bytes:
    """Return a position as a value of pg_lsn."""
    return position.to_bytes(8, "big")


def current_position(session: EvalSession) -> bytes:
    """SQL's ``pg_current_wal_lsn`` and its kin: the last entry of the log, which is durable and applied."""
    return lsn(session.system.log_position[1])


def _segment(position: bytes) -> int:
    """Return the number of the segment that ends at or holds a position, as PostgreSQL counts."""
    return ((int.from_bytes(position, "big") - 1) % 2**64) // _SEGMENT_BYTES


def segment_name(position: bytes) -> str:
    """SQL's ``pg_walfile_name``: PostgreSQL's arithmetic; the log is no file of this name (``pg_ls_waldir``
    lists its files).
    """
    high, low = divmod(_segment(position), (1 << 32) // _SEGMENT_BYTES)
    return f"{_TIMELINE:08X}{high & 0xFFFFFFFF:08X}{low:08X}"


def segment_and_offset(position: bytes) -> RecordValue:
    """SQL's ``pg_walfile_name_offset``."""
    offset = int.from_bytes(position, "big") % _SEGMENT_BYTES
    return record_of("pg_walfile_name_offset(pg_lsn)", segment_name(position), offset)


def multixact_age(xid: int) -> int:
    """SQL's ``mxid_age``: there are no multixacts, so the next one is the first for ever."""
    return _FIRST_MULTIXACT - xid if xid else _INT4_MAX


# --- files ----------------------------------------------------------------------------------------


def temporary_files(session: EvalSession, tablespace: int = _TABLESPACES[0]) -> Iterable[tuple[Any, ...]]:
    """SQL's ``pg_ls_tmpdir``; 42704."""
    if tablespace not in _TABLESPACES:
        raise SqlError("42704", f"tablespace with OID {tablespace} does not exist")
    return session.system.server_files("temporary")


def log_directory() -> Iterable[tuple[Any, ...]]:
    """SQL's ``pg_ls_logdir``: messages go to stderr, so there is none. Raises SqlError 58P01."""
    raise SqlError("58P01", 'could not open directory "log": No such file or directory')


def slot_files(slot: str) -> Iterable[tuple[Any, ...]]:
    """SQL's ``pg_ls_replslotdir``: there are no slots. Raises SqlError 42704."""
    raise SqlError("42704", quoting("replication slot ", slot, " does not exist"))


def directory(
    session: EvalSession, path: str, missing_ok: bool = False, include_dots: bool = False
) -> Sequence[str]:
    """SQL's ``pg_ls_dir``, below the data directory; 42501, 58P01, 42809."""
    return session.system.directory(path, missing_ok=missing_ok, dots=include_dots)


# --- settings and the log of messages ---------------------------------------------------------------


def reload(session: EvalSession) -> bool:
    """SQL's ``pg_reload_conf``: what SIGHUP does."""
    session.system.reload()
    return True


def rotate(session: EvalSession) -> bool:
    """SQL's ``pg_rotate_logfile``: messages go to stderr, so there is nothing to rotate."""
    session.system.warn("rotation not possible because log collection not active")
    return False


# --- replication origins, of which there are none ----------------------------------------------------


def no_origin(*arguments: object) -> object:
    """What a session has no replication origin for; 55000."""
    raise SqlError("55000", "no replication origin is configured")


# --- what pg_control tells ------------------------------------------------------------------------


def control_system() -> RecordValue:
    """SQL's ``pg_control_system``: there is no such file, so it has neither version nor time; nor has the
    server PostgreSQL's identifier.
    """
    return record_of("pg_control_system()", None, CATALOG_VERSION, None, None)


def control_checkpoint(session: EvalSession) -> RecordValue:
    """SQL's ``pg_control_checkpoint``: from where the log is read at a start, and which ids come next."""
    system = session.system
    needed, last = system.log_position
    epoch, xid = divmod(system.next_transaction_id, 1 << 32)
    redo = lsn(min(needed, last))
    return record_of(
        "pg_control_checkpoint()",
        redo, redo, segment_name(redo), _TIMELINE, _TIMELINE, session.setting("full_page_writes") == "on",
        f"{epoch}:{xid}", None, _FIRST_MULTIXACT, 0, system.oldest_transaction_id, system.database_oid, system.oldest_transaction_id,
        _FIRST_MULTIXACT, system.database_oid, 0, 0, None,
    )  # fmt: skip


def control_init(session: EvalSession) -> RecordValue:
    """SQL's ``pg_control_init``: sizes of PostgreSQL's that SHOW tells, too (a setting that is told in its
    unit is not asked for).
    """
    page, wal_page = int(session.setting("block_size")), int(session.setting("wal_block_size"))
    name_bytes, keys = (
        int(session.setting("max_identifier_length")) + 1,
        int(session.setting("max_index_keys")),
    )
    checksums = int(session.setting("data_checksums") == "on")
    return record_of(
        "pg_control_init()",
        8, page, (1 << 30) // page, wal_page, _SEGMENT_BYTES, name_bytes, keys, 1996, 2048, True, checksums,
    )  # fmt: skip


def control_recovery() -> RecordValue:
    """SQL's ``pg_control_recovery``, where nothing is being recovered."""
    return record_of("pg_control_recovery()", lsn(0), 0, lsn(0), lsn(0), False)


def _only_row(function: str, view: str) -> Callable[[EvalSession], RecordValue]:
    """Return the function under a view of one row that has the same columns."""
    return lambda session: record_of(function, *session.system.catalog_rows(view)[0])


def _register() -> None:
    python = REGISTRY.python
    for which in ("", "_insert", "_flush"):
        python(f"pg_current_wal{which}_lsn()", current_position, needs_session=True)
    python("pg_walfile_name(pg_lsn)", segment_name)
    python("pg_walfile_name_offset(pg_lsn)", segment_and_offset)
    python("mxid_age(xid)", multixact_age)
    python("pg_ls_waldir()", lambda session: session.system.server_files("log"), needs_session=True)
    python("pg_ls_tmpdir()", temporary_files, needs_session=True)
    python("pg_ls_tmpdir(oid)", temporary_files, needs_session=True)
    python("pg_ls_logdir()", log_directory)
    python("pg_ls_replslotdir(text)", slot_files)
    for nothing in ("archive_status", "logicalsnap", "logicalmap"):  # no archive, no logical decoding
        python(f"pg_ls_{nothing}dir()", lambda: iter(()))
    python("pg_ls_dir(text)", directory, needs_session=True)
    python("pg_ls_dir(text,bool,bool)", directory, needs_session=True)
    python("pg_reload_conf()", reload, needs_session=True)
    python("pg_rotate_logfile()", rotate, needs_session=True)
    for function, view in (
        ("pg_stat_get_wal()", "pg_stat_wal"),
        ("pg_stat_get_archiver()", "pg_stat_archiver"),
    ):
        python(function, _only_row(function, view), needs_session=True)
    python("pg_replication_origin_session_is_setup()", lambda: False)
    python("pg_replication_origin_xact_reset()", lambda: "")
    python("pg_replication_origin_session_reset()", no_origin)
    python("pg_replication_origin_session_progress(bool)", no_origin)
    python("pg_control_system()", control_system)
    python("pg_control_checkpoint()", control_checkpoint, needs_session=True)
    python("pg_control_init()", control_init, needs_session=True)
    python("pg_control_recovery()", control_recovery)


_register()
