"""One table: every expected error of txn, planner and the executors -> what the client sees.

Anything that is not in the table is a bug: it is logged with its traceback by the connection and reported as
XX000. Messages use PostgreSQL's wording; serialization failures name the table, the key and the other
connection (N8, Q13).
"""

from __future__ import annotations

from collections.abc import Callable

from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import CodecSettings, text_output
from pgwire.errors import BackendError, ErrorReport
from planner.catalog import Catalog, IndexDef, RelationDef
from planner.errors import SqlError
from txn import errors as txn_errors
from txn.types import Key

_CANONICAL = CodecSettings()
_RETRY = "The transaction might succeed if retried."


def _relation_name(catalog: Catalog, shard: int) -> str:
    relation = catalog.relation_by_oid(shard)
    return relation.name if relation is not None else f"relation {shard}"


def _find_index(relation: RelationDef | None, oid: int | None) -> IndexDef | None:
    if relation is None or oid is None:
        return None
    return next((index for index in relation.indexes if index.oid == oid), None)


def key_text(relation: RelationDef, index: IndexDef, key: Key) -> tuple[str, str]:
    """Return ("a, b", "1, x"): column names and values of an index key, as DETAIL shows them."""
    by_attnum = {column.attnum: column for column in relation.columns}
    columns = [by_attnum[attnum] for attnum in index.attnums]
    values = [
        "null" if value is None else text_output(column.type.oid, value, _CANONICAL)
        for column, value in zip(columns, key, strict=True)
    ]
    return ", ".join(column.name for column in columns), ", ".join(values)


def _duplicate(error: txn_errors.DuplicateKey, catalog: Catalog) -> ErrorReport:
    relation = catalog.relation_by_oid(error.shard)
    index = _find_index(relation, error.index)
    if relation is None or index is None:
        return _report("23505", "duplicate key value violates unique constraint")
    names, values = key_text(relation, index, error.key)
    return ErrorReport(
        severity="ERROR",
        sqlstate="23505",
        message=f'duplicate key value violates unique constraint "{index.name}"',
        detail=f"Key ({names})=({values}) already exists.",
        schema=relation.schema,
        table=relation.name,
        constraint=index.name,
    )


def _conflict(error: txn_errors.WriteConflict, catalog: Catalog) -> ErrorReport:
    relation = catalog.relation_by_oid(error.shard)
    what = _relation_name(catalog, error.shard)
    index = _find_index(relation, error.index)
    if relation is not None and index is not None and error.key is not None:
        names, values = key_text(relation, index, error.key)
        pairs = zip(names.split(", "), values.split(", "), strict=False)
        what += f" ({', '.join(f'{name} = {value}' for name, value in pairs)})"
    by = f" by the connection with pid {error.other_session}" if error.other_session else ""
    return _report(
        "40001",
        f"could not serialize access: {what} changed since it was read",
        detail=f"It was changed{by} after this transaction's snapshot was taken.",
        hint=_RETRY,
    )


def _deadlock(error: txn_errors.Deadlock, _catalog: Catalog) -> ErrorReport:
    lines = [
        f"Process {waiter} waits for {what}; blocked by process {holder}."
        for waiter, holder, what in error.cycle
    ]
    return _report("40P01", "deadlock detected", detail="\n".join(lines) or None, hint=_RETRY)


def _not_available(error: txn_errors.LockNotAvailable, catalog: Catalog) -> ErrorReport:
    what = "relation" if error.target.kind == "table" else "row in relation"
    name = _relation_name(catalog, error.target.shard)
    return _report("55P03", f'could not obtain lock on {what} "{name}"')


def _report(
    sqlstate: str,
    message: str,
    *,
    detail: str | None = None,
    hint: str | None = None,
    severity: str = "ERROR",
    where: str | None = None,
) -> ErrorReport:
    return ErrorReport(
        severity=severity, sqlstate=sqlstate, message=message, detail=detail, hint=hint, where=where
    )


_TXN: dict[type[Exception], Callable[..., ErrorReport]] = {
    txn_errors.DuplicateKey: _duplicate,
    txn_errors.WriteConflict: _conflict,
    txn_errors.Deadlock: _deadlock,
    txn_errors.LockTimeout: lambda e, c: _report("55P03", "canceling statement due to lock timeout"),
    txn_errors.LockNotAvailable: _not_available,
    txn_errors.WaitCancelled: lambda e, c: _report("57014", "canceling statement due to user request"),
    txn_errors.ReadBelowSince: lambda e, c: _report(
        "72000",
        f"timestamp {e.ts} is no longer readable",
        hint=f"The oldest readable timestamp is {e.since}.",
    ),
    txn_errors.SchemaChanged: lambda e, c: _report(
        "40001", "could not serialize access: a table changed its definition", hint=_RETRY
    ),
    txn_errors.DeadlineExceeded: lambda e, c: _report(
        "25P04", "terminating connection due to transaction timeout", severity="FATAL"
    ),
    txn_errors.ReadOnlyTransaction: lambda e, c: _report(
        "25006", "cannot execute a write in a read-only transaction"
    ),
    txn_errors.OutOfSpace: lambda e, c: _report(
        "53100",
        "could not write the commit: no space left on device",
        detail="The transaction was rolled back; reads go on.",
        hint="Free space on the data directory's file system and retry.",
    ),
    txn_errors.StorageError: lambda e, c: _report(
        "58030",
        "could not write to the data directory",
        detail="The transaction was rolled back.",
    ),
    txn_errors.CommitUnknown: lambda e, c: _report(
        "08007",
        "the outcome of the commit is unknown",
        detail="The log could not be read back after a failed write; the server stops.",
        severity="FATAL",
    ),
    txn_errors.Fenced: lambda e, c: _report(
        "57P01",
        "terminating connection: another server has taken over the data directory",
        severity="FATAL",
    ),
}


def report_of(error: BaseException, catalog: Catalog) -> ErrorReport | None:
    """Return the report of an expected error, None when it is a bug."""
    if isinstance(error, BackendError):
        return error.report
    if isinstance(error, SqlError):
        return ErrorReport(
            severity="ERROR",
            sqlstate=error.sqlstate,
            message=error.message,
            detail=error.detail,
            hint=error.hint,
            where=error.where,
            position=None if error.span is None else error.span.start + 1,
            schema=error.schema,
            table=error.table,
            column=error.column,
            datatype=error.datatype,
            constraint=error.constraint,
        )
    if isinstance(error, DataError):
        return _report(error.sqlstate, error.message, detail=error.detail, hint=error.hint, where=error.where)
    for kind in type(error).__mro__:
        make = _TXN.get(kind)
        if make is not None:
            return make(error, catalog)
    if isinstance(error, RecursionError):
        return _report("54001", "stack depth limit exceeded", hint="The statement nests too deeply.")
    return None
