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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sqllogictest.client import Client, Protocol, ServerError, Target
from sqllogictest.compare import digest, mismatch, sqlite_values
from sqllogictest.records import AnyRecord, Dialect, Query, Sleep, Statement, read

MAX_DIFF_LINES = 20


@dataclass(slots=True)
class Failure:
    """One record that did not hold."""

    record: AnyRecord
    reason: str
    expected: list[str] = field(default_factory=list)
    actual: list[str] = field(default_factory=list)

    def show(self) -> str:
        """Return what to print: place, statement, difference."""
        sql = self.record.sql if isinstance(self.record, Statement | Query) else ""
        lines = [f"{self.record.path}:{self.record.line}: {self.reason}"]
        lines += [f"    {line}" for line in sql.splitlines()[:MAX_DIFF_LINES]]
        if self.expected or self.actual:
            lines.append("  expected | actual")
            for i in range(min(max(len(self.expected), len(self.actual)), MAX_DIFF_LINES)):
                left = self.expected[i] if i < len(self.expected) else "(nothing)"
                right = self.actual[i] if i < len(self.actual) else "(nothing)"
                mark = " " if left == right else "!"
                lines.append(f"  {mark} {left} | {right}")
        return "\n".join(lines)


@dataclass(slots=True)
class FileReport:
    """What happened to one file."""

    path: Path
    passed: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)
    unreadable: str = ""  # why it could not be read, or ""
    dialect: Dialect | None = None
    seconds: float = 0.0
    total: int = 0

    @property
    def failed(self) -> bool:
        """Whether some record did not hold, or none could be run."""
        return bool(self.failures or self.unreadable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run: which server, protocol and executor; which records."""

    target: Target
    protocol: Protocol = "simple"
    executor: str = ""
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
        self._labels: dict[str, str] = {}
        self._queries = 0
        self.dialect, self.records = read(path, options.engine, options.dialect)
        self._named = options.connections == "named" or (
            options.connections == "auto" and self.dialect is not Dialect.DUCKDB
        )
        drawn = options.drawn
        self._chosen = (
            _spread(self.records, options.sample) if drawn is None else drawn.get(path, frozenset())
        )
        self.report = FileReport(path, total=len(self.records), dialect=self.dialect)

    def run(self, progress: Callable[[], None]) -> FileReport:
        """Run all records; ``progress`` is called after each."""
        started = time.perf_counter()
        current: AnyRecord | None = None
        try:
            self._client("").run(f"CREATE SCHEMA {self._schema}")
            for record in self.records:
                current = record
                if record.skip or self._left_out(record):
                    self.report.skipped += 1
                else:
                    self._judge(record)
                progress()
                limit = self._options.max_failures
                if limit and len(self.report.failures) >= limit:
                    break
        except OSError as error:
            if current is None:
                raise
            late = isinstance(error, TimeoutError)
            reason = f"no answer in {self._options.timeout_s:g} s" if late else f"connection lost: {error}"
            self.report.failures.append(Failure(current, reason))
        finally:
            self._finish()
        self.report.seconds = time.perf_counter() - started
        return self.report

    def _left_out(self, record: AnyRecord) -> bool:
        """Tell whether ``max_queries`` or ``sample`` leave this record out; a sample keeps all statements."""
        if self._options.max_queries and self._queries >= self._options.max_queries:
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
            if self._options.executor:
                client.run(f"SET executor = {self._options.executor}")
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

    def _statement(self, record: Statement) -> Failure | None:
        try:
            result = self._client(record.connection).run(record.sql, self._options.protocol)
        except ServerError as error:
            if record.expect == "error":
                return _check_error(record, record.error, error)
            return Failure(record, f"failed: {error}")
        if record.expect == "error":
            return Failure(record, "succeeded, but an error was expected")
        if record.expect == "count" and result.tag.split()[-1] != str(record.count):
            return Failure(record, f"expected {record.count} rows, got {result.tag}")
        return None

    def _query(self, record: Query) -> Failure | None:
        self._queries += 1
        try:
            result = self._client(record.connection).run(record.sql, self._options.protocol)
        except ServerError as error:
            if record.error is not None:
                return _check_error(record, record.error, error)
            return Failure(record, f"failed: {error}")
        if record.error is not None:
            return Failure(record, "succeeded, but an error was expected")
        difference = mismatch(record, result, self.dialect)
        if difference is not None:
            return Failure(record, "another result", *difference)
        if record.label and self.dialect is Dialect.SQLITE:
            found = digest(sqlite_values(record, result))
            if self._labels.setdefault(record.label, found) != found:
                return Failure(record, f"another result than the earlier query labelled {record.label}")
        return None


def _spread(records: Sequence[AnyRecord], count: int) -> frozenset[int] | None:
    """Return the lines of ``count`` queries at equal distances, the first among them; None for all queries."""
    lines = [r.line for r in records if isinstance(r, Query) and not r.skip]
    if not count or count >= len(lines):
        return None
    return frozenset(lines[i * len(lines) // count] for i in range(count))


def _check_error(record: AnyRecord, pattern: str, error: ServerError) -> Failure | None:
    if pattern and re.search(pattern, error.message, re.IGNORECASE) is None:
        return Failure(record, f"failed with {error}, which does not match {pattern!r}")
    return None
