"""Queries through parse, bind and lowering on an engine, with PostgreSQL as the judge.

``World`` holds tables in the shape executors get them: a part on disk with some hidden rows, and hot rows. ``answer``
runs a query on an executor and returns PostgreSQL's text of every value, so that digits and scales count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from engine.base.executor import ExecContext
from engine.base.rows import ReadyRows
from engine.catalog.physical import shard_spec
from engine.executors.arrow import rows_of
from pgwire.codecs.registry import text_input, text_output
from planner.bind.context import make_context
from planner.bind.query.select import bind_query
from planner.facts import facts
from planner.parse import parse_one
from planner.query import QueryExpr
from planner.types import SqlType
from tests.support.catalog import MemoryCatalog
from tests.support.postgres import fresh_schema
from txn.api import Predicate
from txn.base.types import PartRef, ShardId, Snapshot, SnapshotPart, Timestamp
from txn.values.columns import rows_to_table
from txn.values.exact import exact_columns


class _Transaction:
    """The part of ``txn.api.Transaction`` executors use."""

    def __init__(self, snapshots: dict[int, Snapshot]) -> None:
        self.snapshots = snapshots

    read_only = True
    keeps_reads = False

    def snapshot(self, shard: ShardId, *, predicate: Predicate | None = None) -> Snapshot:
        assert predicate is None, "nobody asks a reader for it"
        return self.snapshots[shard]


def _somebody() -> Any:
    """Return what Spark's admission asks of a session: who it is, and how many jobs its role may run."""
    return SimpleNamespace(
        identity=SimpleNamespace(login=10), settings=SimpleNamespace(integer=lambda _name: 0)
    )


class World:
    """Tables for one test module, below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.catalog = MemoryCatalog()
        self.snapshots: dict[int, Snapshot] = {}
        self.statements: list[str] = []

    def table(self, name: str, *columns: str, rows: Sequence[Sequence[str | None]] = ()) -> None:
        """Create a table; ``rows`` are PostgreSQL texts (None is NULL).

        Every third row is hot; the part also has a copy of every fourth row that the snapshot does not see.
        """
        relation = self.catalog.table(name, *columns)
        spec = shard_spec(relation)
        types = [c.type for c in relation.columns]
        values = [
            tuple(
                None if v is None else text_input(t.oid, v, t.typmod) for v, t in zip(row, types, strict=True)
            )
            for row in rows
        ]
        cold = [v for i, v in enumerate(values) if i % 3]
        hot = [v for i, v in enumerate(values) if not i % 3]
        stale = values[::4]
        stored = stale + cold
        parts = []
        if stored:
            path = self.folder / f"{name}.parquet"
            table = rows_to_table(spec, stored, list(range(len(stored))), [1] * len(stored))
            pq.write_table(table, path)
            ref = PartRef(
                name=name, path=str(path), rows=len(stored), bytes=path.stat().st_size, schema_version=0,
                columns=tuple(c.attnum for c in relation.columns), min_begin=Timestamp(1), max_begin=Timestamp(1),
            )  # fmt: skip
            hidden = pa.array(range(len(stale)), pa.int64()) if stale else None
            parts.append(SnapshotPart(ref, hidden, exact=exact_columns(table.schema)))
        hot_table = rows_to_table(spec, hot, list(range(len(hot))), [2] * len(hot))
        self.snapshots[relation.oid] = Snapshot(spec, Timestamp(9), tuple(parts), hot_table)
        body = ", ".join(columns).replace(" pk", " primary key")
        self.statements.append(f"CREATE TABLE {name} ({body})")
        for row in rows:
            cells = ", ".join("NULL" if v is None else "'" + v.replace("'", "''") + "'" for v in row)
            self.statements.append(f"INSERT INTO {name} VALUES ({cells})")

    def bind(self, sql: str, param_types: Sequence[int] = ()) -> QueryExpr:
        """Return the Query tree of a query."""
        context = make_context(self.catalog, ("public",), text=sql, param_types=param_types)
        parsed = parse_one(sql)
        assert parsed is not None
        return bind_query(context, parsed.statement, None)  # type: ignore[arg-type]

    def context(self, params: tuple[Any, ...] = ()) -> ExecContext:
        """Return what an executor runs with."""
        txn: Any = _Transaction(self.snapshots)
        nothing: Any = None
        return ExecContext(txn=txn, session=_somebody(), virtual=nothing, params=params)

    async def answer(
        self, executor: Any, sql: str, params: tuple[Any, ...] = (), param_types: Sequence[int] = ()
    ) -> list[tuple[str | None, ...]]:
        """Run a query and return its rows as PostgreSQL's texts."""
        query = self.bind(sql, param_types)
        plan = executor.prepare(query, self.catalog)
        result = await executor.run(plan, self.context(params))
        types = [c.type for c in result.columns]
        if isinstance(result, ReadyRows):
            return [texts(row, types) for row in result.rows]
        rows: list[tuple[str | None, ...]] = []
        async for batch in result.batches:
            found = batch.rows if batch.rows is not None else rows_of(batch.arrow, types)
            rows.extend(texts(row, types) for row in found)
        return rows


def texts(row: Sequence[Any], types: Sequence[SqlType]) -> tuple[str | None, ...]:
    """Return a row as PostgreSQL prints it."""
    return tuple(None if v is None else text_output(t.oid, v) for v, t in zip(row, types, strict=True))


class PostgreSQL:
    """A private server for comparison."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def run(self, sql: str) -> list[tuple[str | None, ...]]:
        """Return the rows of a query as text; raises psycopg's error otherwise."""
        from psycopg import errors
        from psycopg import pq as libpq

        result = self.connection.pgconn.exec_(sql.encode())
        if result.status not in (libpq.ExecStatus.TUPLES_OK, libpq.ExecStatus.COMMAND_OK):
            state = (result.error_field(libpq.DiagnosticField.SQLSTATE) or b"").decode()
            raise errors.lookup(state)(result.error_message.decode())
        return [
            tuple(
                None if result.get_value(r, c) is None else result.get_value(r, c).decode()
                for c in range(result.nfields)
            )
            for r in range(result.ntuples)
        ]


@contextmanager
def database_of(dsn: str) -> Iterator[PostgreSQL]:
    """Connect to a new database of the PostgreSQL at ``dsn``, and drop it after."""
    import psycopg

    name = fresh_schema()
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        try:
            with psycopg.connect(f"{dsn} dbname={name}", autocommit=True) as connection:
                connection.execute("SET timezone = 'UTC'")
                yield PostgreSQL(connection)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def type_oid(name: str) -> int:
    """Return the oid of a type by its pg_type name."""
    return facts().types_by_name[name].oid


def sample_world(folder: Path) -> World:
    """Return the tables of the scripts in ``tests/golden/lower``."""
    world = World(folder)
    world.table(
        "t", "a int4 pk", "b int8", "c numeric(10,2)", "d numeric", "e text", "f date", "g float8", "h char(5)",
        "i timestamp", "j bool",
        rows=[
            ("1", "10", "1.50", "1.5", "abc", "2020-01-31", "1.5", "ab", "2020-01-31 10:11:12.5", "t"),
            ("2", "-20", "2.25", "2.50", "abd", "1999-12-31", "-2.5", "ab  ", "1999-12-31 23:59:59", "f"),
            ("3", None, "-3.75", "100.000", "x%y", "2000-02-29", "0", None, None, None),
            ("4", "7", "0.00", "0.001", "", "2024-02-29", "1e300", "zz", "2024-02-29 00:00:00", "t"),
            ("5", "7", None, None, None, None, None, "zz", "2024-02-29 00:00:00", "t"),
            ("6", "9223372036854775807", "99999999.99", "12345678901234567890.5", "é%", "1970-01-01", "-0.1", "q",
             "2001-01-01 01:02:03", "f"),
        ],
    )  # fmt: skip
    world.table(
        "s", "a int4", "k int4", "v numeric(12,4)", "n text",
        rows=[
            ("1", "1", "1.0000", "p"), ("1", "2", "2.5000", "q"), ("2", "1", None, "r"), ("7", "5", "3.3333", None),
            (None, "1", "4.0000", "p"),
        ],
    )  # fmt: skip
    return world


def printed(rows: Sequence[tuple[str | None, ...]], query: str) -> list[str]:
    """Return rows as the golden scripts show them; sorted where the query does not order them."""
    lines = ["|".join("NULL" if v is None else v for v in row) for row in rows]
    return lines if " order by " in f" {query.lower()} " and _ordered_last(query) else sorted(lines)


def _ordered_last(query: str) -> bool:
    """Return whether the query's own rows are ordered: its last ORDER BY is outside parentheses."""
    tail = query.lower().rsplit(" order by ", 1)[1]
    return tail.count("(") == tail.count(")")
