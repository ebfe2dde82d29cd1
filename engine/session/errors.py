"""One table: every expected error of txn, planner and the executors -> what the client sees.

Anything that is not in the table, nor what Python says of the machine's memory and stack, is a bug: it is
logged with its traceback by the connection and reported as XX000. Messages use PostgreSQL's wording;
serialization failures name the table, the key and the other connection (N8, Q13).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from engine.base.lock_modes import mode_name
from engine.base.troubles import TROUBLES
from engine.catalog.state import CatalogSnapshot
from engine.session.conflicts import (
    NOTHING_KNOWN,
    RETRY_HINT,
    Surroundings,
    equalities,
    find_index,
    key_text,
    query_lines,
    relation_name,
    target_text,
    wait_lines,
)
from pgwire.codecs.errors import DataError
from pgwire.errors import BackendError, ErrorReport
from planner.base.errors import SqlError
from planner.base.suspend import Suspend
from planner.catalog import Catalog
from txn.base import errors as txn_errors
from txn.base.time import moment_text
from txn.locks.advisory import MAX_NUMBERS
from txn.persist.location import StoreUnavailable
from txn.transaction.selection import FUTURE_MS

MOST_BYTES: Final = 1 << 20
"""Of a text of a report."""

Make = Callable[[Any, Catalog, Surroundings], ErrorReport]


def _duplicate(error: txn_errors.DuplicateKey, catalog: Catalog, known: Surroundings) -> ErrorReport:
    relation = catalog.relation_by_oid(error.shard)
    index = find_index(relation, error.index)
    if relation is None or index is None:
        return _report("23505", "duplicate key value violates unique constraint")
    names, values = key_text(catalog, relation, index, error.key)
    return ErrorReport(
        severity="ERROR",
        sqlstate="23505",
        where=error.context,
        message=f'duplicate key value violates unique constraint "{index.name}"',
        detail=f"Key ({names})=({values}) already exists."
        if known.readable(relation, index.attnums)
        else None,
        schema=relation.schema,
        table=relation.name,
        constraint=index.name,
    )


def _conflict(error: txn_errors.WriteConflict, catalog: Catalog, known: Surroundings) -> ErrorReport:
    relation = catalog.relation_by_oid(error.shard)
    name = relation_name(catalog, error.shard)
    what = f'Table "{name}"'
    index = find_index(relation, error.index)
    if relation is not None and index is not None and error.key is not None:
        what = f'A key of index "{index.name}" of table "{name}"'
        if known.readable(relation, index.key_columns):
            what = f'Key ({equalities(catalog, relation, index, error.key)}) of table "{name}"'
    other = error.other_session
    by = f" by the connection with pid {other}" if other else ""
    lines = [f"{what} was changed{by} after this transaction's snapshot was taken."]
    return _report(
        "40001",
        "could not serialize access due to concurrent update",
        detail="\n".join([*lines, *query_lines([other] if other else [], known)]),
        hint=RETRY_HINT,
        schema=relation.schema if relation is not None else None,
        table=relation.name if relation is not None else None,
    )


def _schema_changed(error: txn_errors.SchemaChanged, catalog: Catalog, _known: Surroundings) -> ErrorReport:
    return _report(
        "40001",
        f"could not serialize access: the definition of {relation_name(catalog, error.shard)} changed since it was used",
        detail="Another transaction has altered it, and this one would now see the new definition.",
        hint=RETRY_HINT,
    )


def _deadlock(error: txn_errors.Deadlock, catalog: Catalog, known: Surroundings) -> ErrorReport:
    return _report(
        "40P01",
        "deadlock detected",
        detail="\n".join(wait_lines(error.waits, catalog, known)) or None,
        hint=RETRY_HINT,
    )


def _lock_timeout(error: txn_errors.LockTimeout, catalog: Catalog, known: Surroundings) -> ErrorReport:
    return _report(
        "55P03",
        "canceling statement due to lock timeout",
        detail="\n".join(wait_lines(error.waits, catalog, known)) or None,
        hint="The statement might succeed once the blocking transaction has ended." if error.waits else None,
    )


def _not_available(error: txn_errors.LockNotAvailable, catalog: Catalog, known: Surroundings) -> ErrorReport:
    what = "relation" if error.target.kind == "table" else "row in relation"
    lines = [
        f"{mode_name(wait.target.kind, wait.mode)} on {target_text(wait.target, catalog, known)} "
        f"is not available; blocked by process {wait.holder}."
        for wait in error.waits
    ]
    lines += query_lines(dict.fromkeys(wait.holder for wait in error.waits), known)
    return _report(
        "55P03",
        f'could not obtain lock on {what} "{relation_name(catalog, error.target.shard)}"',
        detail="\n".join(lines) or None,
    )


def _damaged(error: txn_errors.DamagedFile, _catalog: Catalog, _known: Surroundings) -> ErrorReport:
    if error.unread:
        return _report(
            "58030",
            f'could not read file "{error.file}": {error.what}',
            detail="That was when the server started. Nothing that is stored is replaced; what does not need the file goes on.",
            hint="See to it that the file can be read and start the server again. TRUNCATE or DROP TABLE gives up the table.",
        )
    return _report(
        "XX001",
        f'file "{error.file}" is damaged',
        detail=f"{error.what[:1].upper()}{error.what[1:]}. Nothing that is stored is replaced; what does not need the file goes on.",
        hint="Stop the server, restore the file from a backup and start again. TRUNCATE or DROP TABLE gives up the table.",
    )


def _store_full(error: txn_errors.OutOfSpace) -> ErrorReport:
    return _report(
        "53100",
        f"could not write to {error.store}: the object store is full",
        detail=f"{str(error)[:1].upper()}{str(error)[1:]}. The transaction was rolled back; reads go on.",
        hint="Raise the store's quota or free space in it, and retry.",
    )


def _report(
    sqlstate: str,
    message: str,
    *,
    detail: str | None = None,
    hint: str | None = None,
    severity: str = "ERROR",
    where: str | None = None,
    schema: str | None = None,
    table: str | None = None,
) -> ErrorReport:
    return ErrorReport(
        severity=severity,
        sqlstate=sqlstate,
        message=message,
        detail=detail,
        hint=hint,
        where=where,
        schema=schema,
        table=table,
    )


_TXN: dict[type[Exception], Make] = {
    txn_errors.DuplicateKey: _duplicate,
    txn_errors.WriteConflict: _conflict,
    txn_errors.Deadlock: _deadlock,
    txn_errors.LockTimeout: _lock_timeout,
    txn_errors.LockNotAvailable: _not_available,
    txn_errors.TooManyLocks: lambda e, _c, _k: _report(
        "53200",
        "out of shared memory",
        detail=f"A session may hold {MAX_NUMBERS} different advisory locks.",
    ),
    txn_errors.WaitCancelled: lambda e, _c, _k: _report("57014", "canceling statement due to user request"),
    txn_errors.CrossesTimelines: lambda e, _c, _k: _report("0A000", str(e)),
    txn_errors.ReadBelowSince: lambda e, _c, _k: _report(
        "72000",
        f"timestamp {e.ts} ({moment_text(e.ts)}) is no longer readable",
        detail=f"It lies below the {e.reason}." if e.reason else None,
        hint=f"The oldest readable timestamp is {e.since} ({moment_text(e.since)}).",
    ),
    txn_errors.ReadInFuture: lambda e, _c, _k: _report(
        "22023",
        f"timestamp {e.ts} ({moment_text(e.ts)}) is too far in the future",
        detail=f"A read may be at most {FUTURE_MS // 1000} s ahead of the server's clock.",
        hint=f"The highest timestamp that can be read at now is {e.latest} ({moment_text(e.latest)}).",
    ),
    txn_errors.TimestampPassed: lambda e, _c, _k: _report(
        "40001",
        f"could not commit at timestamp {e.ts}, which has passed",
        detail=f"The next one is {e.nearest}.",
        hint=RETRY_HINT,
    ),
    txn_errors.SubscriptionEnded: lambda e, c, _k: _report(
        "42P01" if e.dropped else "55000",
        f"{relation_name(c, e.shard)} was dropped: the subscription ends"
        if e.dropped
        else f"the columns of {relation_name(c, e.shard)} changed: the subscription ends",
        detail=f"Everything below timestamp {e.ts} has been sent.",
    ),
    txn_errors.SubscriptionLapsed: lambda e, _c, _k: _report(
        "53400",
        "the subscription read too slowly and was given up",
        detail=f"At timestamp {e.position} it kept more than {e.versions} superseded row versions.",
        hint="Subscribe again, with a snapshot.",
    ),
    txn_errors.SchemaChanged: _schema_changed,
    txn_errors.DeadlineExceeded: lambda e, _c, _k: _report(
        "25P04", "terminating connection due to transaction timeout", severity="FATAL"
    ),
    txn_errors.ReadOnlyTransaction: lambda e, _c, _k: _report(
        "25006", "cannot execute a write in a read-only transaction"
    ),
    txn_errors.CommitWithdrawn: lambda _e, _c, _k: _report(
        "57014", "canceling statement due to user request"
    ),
    txn_errors.OutOfSpace: lambda e, _c, _k: (
        _store_full(e)
        if e.store
        else _report(
            "53100",
            f"could not write the commit: {e.lacking or 'no space left on device'}",
            detail="The transaction was rolled back; reads go on."
            + ("" if e.needed is None else f" {e.needed} bytes have to be free, {e.free} are."),
            hint="Remove files from the data directory's file system and retry. DROP, TRUNCATE and DELETE go on; "
            "CHECKPOINT removes the files of what was dropped or truncated."
            if e.files
            else "Free space on the data directory's file system and retry. DROP, TRUNCATE, DELETE, VACUUM and CHECKPOINT go on.",
        )
    ),
    StoreUnavailable: lambda e, _c, _k: _report(
        TROUBLES[e.kind],
        f"could not access the data files in {e.store}",
        detail=f"{str(e)[:1].upper()}{str(e)[1:]}.",
    ),
    txn_errors.FileTrouble: lambda e, _c, _k: _report(
        TROUBLES[e.kind],
        f'could not {e.verb} file "{e.file}": {e.reason}',
        hint="Nothing is damaged; the statement may succeed when it is run again.",
    ),
    txn_errors.StorageError: lambda e, _c, _k: _report(
        TROUBLES[e.kind],
        "could not write to the data directory",
        detail=f"{str(e)[:1].upper()}{str(e)[1:]}. The transaction was rolled back.",
    ),
    txn_errors.OnlyRead: lambda e, _c, _k: _report(
        "XX001",
        "nothing can be written: the catalog is damaged",
        detail=f"{str(e.damage)[:1].upper()}{str(e.damage)[1:]}.",
        hint="Stop the server, restore the file from a backup and start again. What can be read can be copied meanwhile.",
    ),
    txn_errors.DamagedFile: _damaged,
    txn_errors.DamagedEntry: _damaged,
    txn_errors.CommitUnknown: lambda e, _c, _k: _report(
        "08007",
        "the outcome of the commit is unknown",
        detail="The log could not be read back after a failed write; the server stops.",
        severity="FATAL",
    ),
    txn_errors.Displaced: lambda e, _c, _k: _report(
        "57P01",
        f"terminating connection: the data directory {e.what}",
        detail="What is written now would not be found again; the server stops.",
        severity="FATAL",
    ),
    txn_errors.Fenced: lambda e, _c, _k: _report(
        "57P01",
        "terminating connection: another server has taken over the data directory",
        severity="FATAL",
    ),
}


_ABSENT: Final = frozenset(("3F000", "42704", "42883", "42P01"))
"""What says that something is not there, which nobody can tell while part of the catalog is lost."""


def in_bounds(report: ErrorReport) -> ErrorReport:
    """Return a report whose texts are cut after ``MOST_BYTES``: they are copied as a whole, into the log too."""
    long = {
        name: text[:most] + "..."
        for name in ("message", "detail", "hint", "where", "internal_query")
        if (text := getattr(report, name)) is not None and len(text) > (most := _most_of(text))
    }
    return replace(report, **long) if long else report


def _most_of(text: str) -> int:
    """Return how many characters are kept of a text of a report: others than ASCII take up to four bytes."""
    return MOST_BYTES if text.isascii() else MOST_BYTES // 4


_ABOUT_FILES: Final = ("XX001", "53", "57P01", "58")
"""SQLSTATEs, and their classes, whose texts name files of the server's own; others quote what users wrote."""


def _within(relative: Callable[[str], str], report: ErrorReport) -> ErrorReport:
    if not report.sqlstate.startswith(_ABOUT_FILES):
        return report
    texts: dict[str, Any] = {
        name: relative(text)
        for name in ("message", "detail", "hint", "where")
        if (text := getattr(report, name))
    }
    return replace(report, **texts)


def report_of(
    error: BaseException, catalog: Catalog, known: Surroundings = NOTHING_KNOWN
) -> ErrorReport | None:
    """Return the report of an expected error, None when it is a bug. ``known`` names other connections'
    queries, and makes paths relative.
    """
    if isinstance(error, BackendError):
        return error.report
    if isinstance(error, SqlError):
        sqlstate, detail = error.sqlstate, error.detail
        if sqlstate in _ABSENT and isinstance(catalog, CatalogSnapshot):
            if catalog.lost:
                sqlstate, detail = "XX001", f"It may be among what cannot be read: {catalog.lost}."
            elif catalog.fenced and any(fence.nothing_known for fence in catalog.fenced.values()):
                detail = (
                    detail
                    or "It may be among the objects whose names cannot be read (holdfast_unreadable_objects)."
                )
        report = ErrorReport(
            severity="ERROR",
            sqlstate=sqlstate,
            message=error.message,
            detail=detail,
            hint=error.hint,
            where=error.where,
            position=None if error.span is None or error.query is not None else error.span.start + 1,
            internal_position=None if error.span is None or error.query is None else error.span.start + 1,
            internal_query=error.query,
            schema=error.schema,
            table=error.table,
            column=error.column,
            datatype=error.datatype,
            constraint=error.constraint,
            routine=error.routine,
            log_detail=error.log_detail,
        )
        return _within(known.relative, report)
    if isinstance(error, Suspend):
        error.abandon()
        return _report("0A000", "a function that waits is not supported here")
    if isinstance(error, DataError):
        return _report(error.sqlstate, error.message, detail=error.detail, hint=error.hint, where=error.where)
    for kind in type(error).__mro__:
        make = _TXN.get(kind)
        if make is not None:
            report = make(error, catalog, known)
            where = getattr(error, "where", None)  # within a function
            return _within(known.relative, report if where is None else replace(report, where=where))
    if isinstance(error, MemoryError):
        return _report("53200", "out of memory", detail="The system has no more for the server.")
    if isinstance(error, RecursionError):
        return _report("54001", "stack depth limit exceeded", hint="The statement nests too deeply.")
    return None
