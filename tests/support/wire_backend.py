"""A database of a dozen statements, for the tests of ``pgwire``.

Its statements are valid PostgreSQL (given ``CREATE TABLE t (v int)``) and answered as PostgreSQL answers
them, so that the golden wire scripts can be run against a real server too. With ``late`` every method
answers through an awaitable instead of at once.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgwire.backend import (
    Authentication,
    FieldDescription,
    Responder,
    Standing,
    StatementDescription,
    TransactionStatus,
)
from pgwire.errors import BackendError, ErrorReport
from pgwire.messages.encode import data_row

INT4, INT8, TEXT, VOID, UNKNOWN = 23, 20, 25, 2278, 705
SIZES = {INT4: 4, INT8: 8, TEXT: -1, VOID: 4}

SETTINGS = {"server_version": "15.18", "client_encoding": "UTF8", "DateStyle": "ISO, MDY"}


def failure(sqlstate: str, message: str, **fields: Any) -> BackendError:
    return BackendError(ErrorReport(severity="ERROR", sqlstate=sqlstate, message=message, **fields))


def encode_value(oid: int, value: Any, code: int) -> bytes | None:
    if value is None:
        return None
    if code == 0 or oid in (TEXT, VOID):
        return str(value).encode()
    return struct.pack(">i" if oid == INT4 else ">q", value)


def decode_value(oid: int, data: bytes | None, code: int) -> Any:
    if data is None:
        return None
    if oid == TEXT:
        return data.decode()
    if code == 1:
        if len(data) != 4:
            raise failure("22P03", "incorrect binary data format in bind parameter 1")
        return struct.unpack(">i", data)[0]
    try:
        return int(data)
    except ValueError:
        raise failure(
            "22P02",
            f'invalid input syntax for type integer: "{data.decode()}"',
            where="unnamed portal parameter $1 = '...'",
        ) from None


@dataclass
class Statement:
    """One statement: parameter types, columns (name, type), tag, and what it does with the parameters."""

    sql: str
    params: tuple[int, ...] = ()
    columns: tuple[tuple[str, int], ...] | None = None
    tag: str = "SELECT"
    run: Callable[[list[Any]], list[tuple[Any, ...]]] = lambda values: []
    special: str = ""


@dataclass
class Portal:
    statement: Statement
    fields: tuple[FieldDescription, ...] | None
    values: list[Any]
    rows: list[tuple[Any, ...]] | None = None
    sent: int = 0


def plan(sql: str) -> Statement:
    """Recognise a statement."""
    text = sql.strip().removesuffix(";")
    if match := re.fullmatch(r"SELECT (\d+)", text):
        value = int(match[1])
        return Statement(sql, (), (("?column?", INT4),), run=lambda values: [(value,)])
    if match := re.fullmatch(r"SELECT generate_series\(1, (\d+)\) AS n", text):
        count = int(match[1])
        return Statement(sql, (), (("n", INT4),), run=lambda values: [(i + 1,) for i in range(count)])
    if match := re.fullmatch(r"SELECT repeat\('x', (\d+)\) AS r FROM generate_series\(1, (\d+)\)", text):
        row = ("x" * int(match[1]),)
        return Statement(sql, (), (("r", TEXT),), run=lambda values: [row] * int(match[2]))
    known = {
        "SELECT $1::int4 AS a, $2::text AS b": Statement(
            sql, (INT4, TEXT), (("a", INT4), ("b", TEXT)), run=lambda values: [tuple(values)]
        ),
        "SELECT 1 / (n - 1) AS q FROM generate_series(1, 3) n": Statement(
            sql, (), (("q", INT4),), run=lambda values: [(1 // 0,)]
        ),
        "SELECT count(*) AS c FROM t": Statement(sql, (), (("c", INT8),), special="count"),
        "SELECT pg_sleep(10)": Statement(sql, (), (("pg_sleep", VOID),), special="sleep"),
        "BEGIN": Statement(sql, tag="BEGIN"),
        "COMMIT": Statement(sql, tag="COMMIT"),
        "ROLLBACK": Statement(sql, tag="ROLLBACK"),
        "COPY t FROM STDIN": Statement(sql, special="copy in"),
        "COPY (SELECT generate_series(1, 3)) TO STDOUT": Statement(sql, special="copy out"),
        "DO $$ BEGIN RAISE NOTICE 'hello'; END $$": Statement(sql, tag="DO", special="notice"),
        "SET datestyle = 'SQL, MDY'": Statement(sql, tag="SET", special="set"),
        "SELECT boom()": Statement(sql, (), (("boom", INT4),), special="boom"),
        "": Statement(sql, tag=""),
    }
    if text not in known:
        word = text.split()[0]
        raise failure("42601", f'syntax error at or near "{word}"', position=1)
    return known[text]


@dataclass
class TinyBackend:
    """One session. ``calls`` records the methods called, in order."""

    late: bool = False
    calls: list[str] = field(default_factory=list)
    statements: dict[str, Statement] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    block: TransactionStatus = "I"
    table: list[int] = field(default_factory=list)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    closed: int = 0
    wrote: bool = False

    # -- plumbing

    def _answer(self, work: Callable[[], Any]) -> Any:
        if not self.late:
            return work()

        async def later() -> Any:
            await asyncio.sleep(0)
            result = work()
            return await result if hasattr(result, "__await__") else result

        return later()

    # -- extended protocol

    def parse(self, name: str, sql: str, param_oids: Sequence[int]) -> Any:
        self.calls.append("parse")
        return self._answer(lambda: self._parse(name, sql))

    def _parse(self, name: str, sql: str) -> None:
        self._check_block(sql)
        if name and name in self.statements:
            raise failure("42P05", f'prepared statement "{name}" already exists')
        self.statements.pop(name, None)
        self.statements[name] = plan(sql)

    def _statement(self, name: str) -> Statement:
        try:
            return self.statements[name]
        except KeyError:
            shown = f'prepared statement "{name}"' if name else "unnamed prepared statement"
            raise failure("26000", f"{shown} does not exist") from None

    def _portal(self, name: str) -> Portal:
        try:
            return self.portals[name]
        except KeyError:
            raise failure("34000", f'portal "{name}" does not exist') from None

    def bind(
        self,
        portal: str,
        statement: str,
        param_formats: Sequence[int],
        params: Sequence[bytes | None],
        result_formats: Sequence[int],
        small: bool = False,
    ) -> Any:
        self.calls.append("bind")
        return self._answer(lambda: self._bind(portal, statement, param_formats, params, result_formats))

    def _bind(
        self,
        portal: str,
        name: str,
        param_formats: Sequence[int],
        params: Sequence[bytes | None],
        result_formats: Sequence[int],
    ) -> None:
        statement = self._statement(name)
        if len(params) != len(statement.params):
            raise failure(
                "08P01",
                f"bind message supplies {len(params)} parameters, but prepared statement "
                f'"{name}" requires {len(statement.params)}',
            )
        self._check_block(statement.sql)
        codes = list(param_formats) or [0]
        codes = codes * len(params) if len(codes) == 1 else codes
        values = [decode_value(oid, data, code) for oid, data, code in zip(statement.params, params, codes)]
        if portal and portal in self.portals:
            raise failure("42P03", f'cursor "{portal}" already exists')
        self.portals[portal] = Portal(statement, self._fields(statement, result_formats), values)

    @staticmethod
    def _fields(statement: Statement, formats: Sequence[int]) -> tuple[FieldDescription, ...] | None:
        if statement.columns is None:
            return None
        codes = list(formats) or [0]
        codes = codes * len(statement.columns) if len(codes) == 1 else codes
        return tuple(
            FieldDescription(name=name, type_oid=oid, type_size=SIZES[oid], format=code)
            for (name, oid), code in zip(statement.columns, codes)
        )

    def describe_statement(self, name: str) -> Any:
        self.calls.append("describe_statement")

        def work() -> StatementDescription:
            statement = self._statement(name)
            return StatementDescription(param_oids=statement.params, fields=self._fields(statement, ()))

        return self._answer(work)

    def describe_portal(self, name: str) -> Any:
        self.calls.append("describe_portal")
        return self._answer(lambda: self._portal(name).fields)

    def execute(self, portal: str, max_rows: int, out: Responder) -> Any:
        self.calls.append("execute")
        return self._answer(lambda: self._run(self._portal(portal), max_rows, out))

    def close_statement(self, name: str) -> Any:
        self.calls.append("close_statement")
        return self._answer(lambda: self.statements.pop(name, None) and None)

    def close_portal(self, name: str) -> Any:
        self.calls.append("close_portal")
        return self._answer(lambda: self.portals.pop(name, None) and None)

    def sync(self) -> Any:
        self.calls.append("sync")
        if not self.late:
            return self._sync()
        # Late, Sync answers as a commit does: a future, and ``synced`` once it is done.
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[None] = loop.create_future()
        loop.call_soon(lambda: None if outcome.done() else outcome.set_result(None))
        return outcome

    def synced(self, outcome: asyncio.Future[Any]) -> None:
        assert outcome.done()
        self._sync()

    def _sync(self) -> None:
        if self.block == "I":
            self.portals.clear()

    def failed(self) -> Any:
        self.calls.append("failed")
        return self._answer(self._failed)

    def _failed(self) -> None:
        if self.block == "T":
            self.block = "E"

    # -- the fast path

    def call_function(self, oid: int, formats: Any, args: Any, result_format: int, out: Responder) -> Any:
        """Oid 1 returns its arguments joined, 2 NULL; there are no others."""
        self.calls.append("call_function")
        if oid not in (1, 2):
            raise BackendError(
                ErrorReport(
                    severity="ERROR", sqlstate="42883", message=f"function with OID {oid} does not exist"
                )
            )
        out.function_result(b"".join(args) if oid == 1 else None)

    # -- simple protocol

    def query(self, sql: str, out: Responder) -> Any:
        self.calls.append("query")
        return self._answer(lambda: self._query(sql, out))

    def _query(self, sql: str, out: Responder) -> Any:
        self.statements.pop("", None)
        pieces = sql.split("; ") if "; END" not in sql else [sql]
        try:
            statements = [plan(piece) for piece in pieces]
        except BackendError as error:
            self._failed()
            out.error(error.report)
            return None
        waiting: list[Awaitable[None]] = []
        try:
            for statement in statements:
                self._check_block(statement.sql)
                portal = Portal(statement, self._fields(statement, ()), [])
                if portal.fields is not None:
                    out.row_description(portal.fields)
                result = self._run(portal, 0, out)
                if result is not None:
                    waiting.append(result)
                    break
        except BackendError as error:
            self._failed()
            out.error(error.report)
        return self._finish(waiting[0], out) if waiting else None

    async def _finish(self, work: Awaitable[None], out: Responder) -> None:
        try:
            await work
        except BackendError as error:
            self._failed()
            out.error(error.report)

    # -- running

    def _check_block(self, sql: str) -> None:
        if self.block == "E" and sql.strip().rstrip(";") not in ("ROLLBACK", "COMMIT"):
            raise failure(
                "25P02", "current transaction is aborted, commands ignored until end of transaction block"
            )

    def _run(self, portal: Portal, max_rows: int, out: Responder) -> Any:
        statement = portal.statement
        match statement.special:
            case "sleep":
                return self._sleep(out)
            case "copy in":
                return self._copy_in(out)
            case "copy out":
                out.copy_out(0, (0,))
                for i in range(3):
                    out.copy_data(b"%d\n" % (i + 1))
                out.copy_done()
                out.command_complete("COPY 3")
                return None
            case "notice":
                out.notice(
                    ErrorReport(
                        severity="NOTICE",
                        sqlstate="00000",
                        message="hello",
                        where="PL/pgSQL function inline_code_block line 1 at RAISE",
                    )
                )
            case "set":
                out.parameter_status("DateStyle", "SQL, MDY")
            case "boom":
                raise RuntimeError("the secret is 42")
        if statement.columns is None:
            tag = statement.tag
            if tag == "":
                out.empty_query()
                return None
            if tag == "BEGIN":
                self.block = "T"
            elif tag in ("COMMIT", "ROLLBACK"):
                tag = "ROLLBACK" if self.block == "E" else tag
                self.block = "I"
                self.portals.clear()
            out.command_complete(tag)
            return None
        if portal.rows is None:
            try:
                portal.rows = (
                    [(len(self.table),)] if statement.special == "count" else statement.run(portal.values)
                )
            except ZeroDivisionError:
                raise failure("22012", "division by zero") from None
        assert portal.fields is not None
        end = len(portal.rows) if max_rows == 0 else min(len(portal.rows), portal.sent + max_rows)
        chosen = portal.rows[portal.sent : end]
        encoded = b"".join(
            data_row([encode_value(f.type_oid, v, f.format) for f, v in zip(portal.fields, row)])
            for row in chosen
        )
        if chosen:
            out.data_rows(encoded, len(chosen))
        portal.sent = end
        if max_rows and len(chosen) == max_rows:
            out.portal_suspended()
        else:
            out.command_complete(f"SELECT {len(chosen)}")
        return None

    async def _sleep(self, out: Responder) -> None:
        self.cancelled.clear()
        await asyncio.wait_for(self.cancelled.wait(), 10)
        raise failure("57014", "canceling statement due to user request")

    async def _copy_in(self, out: Responder) -> None:
        data = b""
        try:
            async for chunk in out.copy_in(0, (0,)):
                data += chunk
                for number, line in enumerate(data.split(b"\n")[:-1], 1):
                    if not line.lstrip(b"-").isdigit():
                        raise failure(
                            "22P02",
                            f'invalid input syntax for type integer: "{line.decode()}"',
                            where=f'COPY t, line {number}, column v: "{line.decode()}"',
                        )
        except BackendError as error:
            if error.report.sqlstate == "57014":
                done = data.count(b"\n")
                raise failure("57014", error.report.message, where=f"COPY t, line {done + 1}") from None
            raise
        lines = data.splitlines()
        self.table += map(int, lines)
        out.command_complete(f"COPY {len(lines)}")

    # -- the rest

    def status(self) -> TransactionStatus:
        return self.block

    def cancel(self, *, ends: bool = False) -> None:
        self.calls.append("cancel")
        self.cancelled.set()

    def unmet(self) -> ErrorReport | None:
        if not self.cancelled.is_set():
            return None
        self.cancelled.clear()
        return failure("57014", "canceling statement due to user request").report

    def close(self) -> Any:
        self.calls.append("close")
        self.closed += 1
        return self._answer(lambda: None)


@dataclass
class TinyDatabase:
    """Sessions of ``TinyBackend``; ``verifiers`` maps users to SCRAM verifiers (others: trust)."""

    late: bool = False
    wrote: bool = False
    verifiers: Mapping[str, str | None] = field(default_factory=dict)
    backends: list[TinyBackend] = field(default_factory=list)
    standing: Standing | None = None

    def authentication(self, user: str, database: str, peer: str, tls: bool) -> Any:
        if user in self.verifiers:
            return Authentication(method="scram-sha-256", verifier=self.verifiers[user])
        return Authentication(method="trust")

    def connect(self, parameters: Mapping[str, str], pid: int, peer: str, out: Responder) -> Any:
        if parameters["database"] == "nowhere":
            raise BackendError(
                ErrorReport(severity="FATAL", sqlstate="3D000", message='database "nowhere" does not exist')
            )
        backend = TinyBackend(late=self.late, wrote=self.wrote)
        backend.parameters = dict(parameters)  # type: ignore[attr-defined]
        self.backends.append(backend)
        settings = {**SETTINGS, "application_name": parameters.get("application_name", "")}
        if not self.late:
            return backend, settings

        async def later() -> Any:
            await asyncio.sleep(0)
            return backend, settings

        return later()
