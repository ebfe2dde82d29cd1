"""Runs files against a server: each in a schema of its own, several at once, every record judged.

A file runs in its own schema so that files that use the same table names do not meet; the schema is dropped at the
end. Records run in order on the file's connections. A failure does not stop the file; a lost connection or a
statement that does not answer within the time limit does.

Which connections: files of sqllogictest-rs name them on every record (``connection``), so each name gets one. The
external DuckDB files were checked against PostgreSQL on one connection, and their queries have lost the name that
their statements still carry; so one connection serves all names there. ``connections`` overrides either.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqllogictest.client import Client, Protocol, Result, ServerError, Target
from sqllogictest.compare import digest, mismatch, sqlite_values
from sqllogictest.records import AnyRecord, Dialect, Query, Sleep, Statement, read
from sqllogictest.report import Failure, FileReport

REFUSED = "0A000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run: which server, protocol and executor; which records."""

    target: Target
    protocol: Protocol = "simple"
    executor: str = ""
    otherwise: str = ""  # the executor of statements, and of what ``executor`` refuses; "": it runs all
    engine: str = "postgresql"
    connections: Literal["auto", "one", "named"] = "auto"
    timeout_s: float = 300.0
    max_queries: int = 0  # 0: all
    sample: int = 0  # that many queries, evenly spread over the file; 0: all
    drawn: Mapping[Path, frozenset[int]] | None = (
        None  # the lines of the queries of each file; instead of ``sample``
    )
    max_failures: int = 0  # 0: no limit
    dialect: Dialect | None = None  # of files that do not name theirs; None: guessed


class FileRun:
    """One file being run."""

    def __init__(self, path: Path, options: Options, schema: str) -> None:
        """Prepare; ``schema`` must be unused. Raises ParseError."""
        self._options = options
        self._schema = schema
        self._clients: dict[str, Client] = {}
        self._pinned: dict[Client, str] = {}
        self._labels: dict[str, str] = {}
        self.dialect, self.records = read(path, options.engine, options.dialect)
        self._named = options.connections == "named" or (
            options.connections == "auto" and self.dialect is not Dialect.DUCKDB
        )
        drawn = options.drawn
        self._chosen = (
            _spread(self.records, options.sample) if drawn is None else drawn.get(path, frozenset())
        )
        self.report = FileReport(path, total=len(self.records), dialect=self.dialect)

    def run(self, progress: Callable[[bool], None]) -> FileReport:
        """Run all records; ``progress`` is called after each, with whether it was a query that was asked."""
        started = time.perf_counter()
        current: AnyRecord | None = None
        try:
            self._client("").run(f"CREATE SCHEMA {self._schema}")
            for record in self.records:
                current = record
                left_out = bool(record.skip) or self._left_out(record)
                if left_out:
                    self.report.skipped += 1
                else:
                    self._judge(record)
                progress(not left_out and isinstance(record, Query))
                limit = self._options.max_failures
                if limit and len(self.report.failures) >= limit:
                    break
        except OSError as error:
            if current is None:
                raise
            late = isinstance(error, TimeoutError)
            self.report.lost = not late
            reason = f"no answer in {self._options.timeout_s:g} s" if late else f"connection lost: {error}"
            self.report.failures.append(Failure.of(current, reason))
        finally:
            self._finish()
        self.report.seconds = time.perf_counter() - started
        return self.report

    def _left_out(self, record: AnyRecord) -> bool:
        """Tell whether ``max_queries`` or ``sample`` leave this record out; a sample keeps all statements."""
        if self._options.max_queries and self.report.queries >= self._options.max_queries:
            return True
        return self._chosen is not None and isinstance(record, Query) and record.line not in self._chosen

    def _finish(self) -> None:
        for name, client in self._clients.items():
            if name:
                client.close()
        main = self._clients.get("")
        if main is not None:
            try:
                main.run("ROLLBACK")
                main.run(f"DROP SCHEMA {self._schema} CASCADE")
            except (OSError, ServerError):
                pass  # the file's verdict stands; a left-over schema has a name of its own
            main.close()

    def _client(self, name: str) -> Client:
        name = name if self._named else ""
        client = self._clients.get(name)
        if client is None:
            client = Client(self._options.target, timeout_s=self._options.timeout_s)
            self._clients[name] = client
            client.run(f"SET search_path = {self._schema}, public")
            client.run("SET client_min_messages = error")
            if self.dialect is not Dialect.SQLITE:
                client.run("SET TimeZone = 'UTC'")
        return client

    def _judge(self, record: AnyRecord) -> None:
        if isinstance(record, Sleep):
            time.sleep(record.seconds)
            self.report.passed += 1
            return
        failure = self._statement(record) if isinstance(record, Statement) else self._query(record)
        if failure is None:
            self.report.passed += 1
        else:
            self.report.failures.append(failure)

    def _ask(self, record: Statement | Query, *, judged: bool) -> Result:
        """Return the answer; a query that the executor refuses is counted and put to another one, if there is one.

        ``judged``: errors are what is asked for, so a refusal is an answer as well. Raises ServerError.
        """
        client, options = self._client(record.connection), self._options
        if isinstance(record, Statement):
            self._pin(client, options.otherwise or options.executor)
            return client.run(record.sql, options.protocol)
        self._pin(client, options.executor)
        try:
            return client.run(record.sql, options.protocol)
        except ServerError as error:
            if judged or error.sqlstate != REFUSED or not options.otherwise:
                raise
            reason = error.message
        self._pin(client, options.otherwise)
        result = client.run(record.sql, options.protocol)
        self.report.refused[reason] = self.report.refused.get(reason, 0) + 1
        return result

    def _pin(self, client: Client, executor: str) -> None:
        if executor and self._pinned.get(client) != executor:
            client.run(f"SET executor = {executor}")
            self._pinned[client] = executor

    def _statement(self, record: Statement) -> Failure | None:
        try:
            result = self._ask(record, judged=record.expect == "error")
        except ServerError as error:
            if record.expect == "error":
                return _check_error(record, record.error, error)
            return Failure.of(record, f"failed: {error}")
        if record.expect == "error":
            return Failure.of(record, "succeeded, but an error was expected")
        if record.expect == "count" and result.tag.split()[-1] != str(record.count):
            return Failure.of(record, f"expected {record.count} rows, got {result.tag}")
        return None

    def _query(self, record: Query) -> Failure | None:
        self.report.queries += 1
        try:
            result = self._ask(record, judged=record.error is not None)
        except ServerError as error:
            if record.error is not None:
                return _check_error(record, record.error, error)
            return Failure.of(record, f"failed: {error}")
        if record.error is not None:
            return Failure.of(record, "succeeded, but an error was expected")
        difference = mismatch(record, result, self.dialect)
        if difference is not None:
            return Failure.of(record, "another result", *difference)
        if record.label and self.dialect is Dialect.SQLITE:
            found = digest(sqlite_values(record, result))
            if self._labels.setdefault(record.label, found) != found:
                return Failure.of(record, f"another result than the earlier query labelled {record.label}")
        return None


def _spread(records: Sequence[AnyRecord], count: int) -> frozenset[int] | None:
    """Return the lines of ``count`` queries at equal distances, the first among them; None for all queries."""
    lines = [r.line for r in records if isinstance(r, Query) and not r.skip]
    if not count or count >= len(lines):
        return None
    return frozenset(lines[i * len(lines) // count] for i in range(count))


def _check_error(record: AnyRecord, pattern: str, error: ServerError) -> Failure | None:
    if pattern and re.search(pattern, error.message, re.IGNORECASE) is None:
        return Failure.of(record, f"failed with {error}, which does not match {pattern!r}")
    return None
