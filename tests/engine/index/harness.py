"""Runs SQL text on the row executor over tables held in memory, and on PostgreSQL, for comparison."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from typing import Any

from engine.base.executor import ExecContext
from engine.base.rows import ReadyRows
from engine.executors.index.executor import IndexExecutor, IndexPlan
from pgwire.codecs.registry import text_input, text_output
from pgwire.codecs.settings import CodecSettings
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind import bind_statement
from planner.catalog import RelationDef
from planner.evaluate import Env, Shared, compile_expr
from planner.parse import parse_one
from tests.support.catalog import MemoryCatalog
from txn.base.types import KeyRange, StoredRow


class SystemTables(MemoryCatalog):
    """The test catalog with the look-ups by oid that names of types, schemas and roles need."""

    def row_type_relation(self, oid: int) -> tuple[RelationDef, bool] | None:
        return None

    def schema_by_oid(self, oid: int) -> Any:
        return next((s for s in self.schemas.values() if s.oid == oid), None)

    def role_by_oid(self, oid: int) -> Any:
        return next((r for r in self.roles.values() if r.oid == oid), None)


class Session:
    """A session with PostgreSQL's defaults."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self.catalog = catalog
        self.codec_settings = self.output_settings = CodecSettings()
        self.rng = random.Random(1)
        self.settings = {
            "enable_bitmapscan": "on",
            "server_version": "15.0",
            "search_path": '"$user", public',
            "client_encoding": "UTF8",
        }
        self.user = self.session_user = "postgres"
        self.database = "postgres"
        self.pid = 42
        self.search_path = ("pg_catalog", "public")
        self.explicit_search_path = ("public",)
        self.closed_schemas: frozenset[str] = frozenset()
        self.escapes = False
        self.quotes_all = False
        self.transaction_time_us = self.statement_time_us = 1_700_000_000_000_000

    def random(self) -> float:
        return self.rng.random()

    def set_seed(self, seed: float) -> None:
        self.rng.seed(seed)

    def random_bytes(self, count: int) -> bytes:
        return self.rng.randbytes(count)

    def setting(self, name: str) -> str:
        if name not in self.settings:
            raise SqlError("42704", f'unrecognized configuration parameter "{name}"')
        return self.settings[name]

    def set_setting(self, name: str, value: str | None, *, local: bool) -> str:
        self.settings[name] = value or ""
        return self.settings[name]

    def clock_time_us(self) -> int:
        return self.transaction_time_us


class MemoryTxn:
    """Just the reads of a transaction. With ``cold`` every read has to be awaited."""

    writing = False

    def __init__(
        self, tables: dict[int, list[StoredRow]], catalog: MemoryCatalog, *, cold: bool = False
    ) -> None:
        self.tables, self.catalog, self.cold = tables, catalog, cold
        self.scans = self.lookups = 0

    def _answer(self, rows: list[StoredRow]) -> Any:
        if not self.cold:
            return rows

        async def later() -> list[StoredRow]:
            await asyncio.sleep(0)
            return rows

        return later()

    def lookup(self, shard: int, index: int, keys: Sequence[Any], *, for_update: bool = False) -> Any:
        self.lookups += 1
        attnums = self._attnums(shard, index)
        wanted = set(keys)
        assert all(len(k) == len(attnums) and None not in k for k in wanted)
        return self._answer(
            [s for s in self.tables[shard] if tuple(s.values[a - 1] for a in attnums) in wanted]
        )

    def range(
        self, shard: int, index: int, key_range: KeyRange, *, reverse: bool = False, limit: int | None = None,
        for_update: bool = False,
    ) -> Any:  # fmt: skip
        self.lookups += 1
        attnums = self._attnums(shard, index)
        n = len(key_range.prefix)
        found = []
        for s in self.tables[shard]:
            key = tuple(s.values[a - 1] for a in attnums)
            if key[:n] != key_range.prefix:
                continue
            value = key[n] if len(key) > n else None
            if key_range.has_lower and (
                value is None
                or value < key_range.lower
                or (value == key_range.lower and not key_range.lower_inclusive)
            ):
                continue
            if key_range.has_upper and (
                value is None
                or value > key_range.upper
                or (value == key_range.upper and not key_range.upper_inclusive)
            ):
                continue
            found.append((key, s))
        found.sort(key=lambda item: tuple((v is None, v) for v in item[0]), reverse=reverse)
        return self._answer([s for _, s in found][:limit])

    def _attnums(self, shard: int, index: int) -> tuple[int, ...]:
        relation = self.catalog.by_oid[shard]
        return next(i.attnums for i in relation.indexes if i.oid == index)

    async def scan(
        self, shard: int, *, for_update: bool = False, predicate: Any = None, ids: Sequence[int] | None = None
    ) -> AsyncIterator[list[StoredRow]]:
        self.scans += 1
        rows = self.tables[shard]
        if ids is not None:
            rows = [row for row in rows if row.row_id in ids]
        for i in range(0, len(rows), 7):
            await asyncio.sleep(0)
            yield rows[i : i + 7]


class Virtual:
    """Catalog relations: rows by oid; an index on the first column only."""

    def __init__(self) -> None:
        self.tables: dict[int, list[tuple[Any, ...]]] = {}

    def rows(self, oid: int, session: Any) -> list[tuple[Any, ...]]:
        return self.tables[oid]

    def prepare(self, oid: int, session: Any, attnum: int = 0) -> Iterator[None]:
        yield

    def finder(self, oid: int, attnum: int, session: Any) -> Any:
        if attnum != 1:
            return None
        return lambda value: [r for r in self.tables[oid] if r[0] == value]

    def find_all(self, oid: int, attnum: int, session: Any) -> Any:
        find = self.finder(oid, attnum, session)
        return None if find is None else lambda values: [find(v) if v is not None else None for v in values]


class Database:
    """Tables, and a way to run SQL over them."""

    def __init__(self) -> None:
        self.catalog = SystemTables()
        self.tables: dict[int, list[StoredRow]] = {}
        self.virtual = Virtual()
        self.session = Session(self.catalog)
        self.executor = IndexExecutor()
        self.ddl: list[str] = []

    def table(
        self,
        name: str,
        *columns: str,
        rows: Sequence[Sequence[str | None]] = (),
        virtual: bool = False,
        **options: Any,
    ) -> RelationDef:
        """Create a table; cells are in text form."""
        relation = self.catalog.table(name, *columns, virtual=virtual, **options)
        values = [
            tuple(
                None if cell is None else text_input(c.type.oid, cell, c.type.typmod)
                for cell, c in zip(row, relation.columns, strict=True)
            )
            for row in rows
        ]
        if virtual:
            self.virtual.tables[relation.oid] = values
        else:
            self.tables[relation.oid] = [StoredRow(i + 1, v, 1) for i, v in enumerate(values)]
        body = ", ".join(c.replace(" pk", " primary key") for c in columns)
        if options.get("primary"):
            body += f", primary key ({', '.join(options['primary'])})"
        self.ddl.append(f"CREATE TABLE {name} ({body})")
        for row in rows:
            cells = ", ".join("NULL" if c is None else "'" + c.replace("'", "''") + "'" for c in row)
            self.ddl.append(f"INSERT INTO {name} VALUES ({cells})")
        return relation

    def bind(self, sql: str, types: Sequence[int] = ()) -> st.BoundStatement:
        """Bind one query."""
        parsed = parse_one(sql)
        assert parsed is not None
        return bind_statement(
            parsed.statement, sql, self.catalog, self.session.search_path, types, self.session.codec_settings
        )

    def prepare(self, sql: str, types: Sequence[int] = ()) -> tuple[st.BoundStatement, IndexPlan]:
        """Bind and compile one query."""
        bound = self.bind(sql, types)
        assert isinstance(bound.statement, st.QueryStatement)
        return bound, self.executor.prepare(bound.statement.query, self.catalog)

    def context(
        self, bound: st.BoundStatement, params: Sequence[Any] = (), *, cold: bool = False
    ) -> ExecContext:
        """Return a context with the stable values computed."""
        env = Env(params, self.session, shared=Shared())  # type: ignore[arg-type]
        stable = tuple(compile_expr(x)((), env) for x in bound.stable)
        txn: Any = MemoryTxn(self.tables, self.catalog, cold=cold)
        return ExecContext(txn, self.session, self.virtual, (*params, *stable))  # type: ignore[arg-type]

    def run(
        self, sql: str, params: Sequence[Any] = (), types: Sequence[int] = (), *, cold: bool = False
    ) -> list[tuple[str | None, ...]]:
        """Run a query and return its rows as texts."""
        bound, plan = self.prepare(sql, types)
        rows = self.execute(plan, self.context(bound, params, cold=cold))
        from planner.functions.values.casts import to_text

        def cell(oid: int, value: Any) -> str | None:
            if value is None:
                return None
            if oid == 16:
                return "t" if value else "f"
            return to_text(oid, value, self.session)  # type: ignore[arg-type]

        return [tuple(cell(c.type.oid, v) for c, v in zip(plan.columns, row, strict=True)) for row in rows]

    def execute(self, plan: IndexPlan, ctx: ExecContext) -> list[tuple[Any, ...]]:
        """Run a plan to its end."""

        async def collect() -> list[tuple[Any, ...]]:
            result = self.executor.run(plan, ctx)
            if isinstance(result, Awaitable):
                result = await result
            if isinstance(result, ReadyRows):
                return list(result.rows)
            out: list[tuple[Any, ...]] = []
            async for batch in result.batches:
                assert batch.rows is not None
                out.extend(batch.rows)
            return out

        return asyncio.run(collect())


__all__ = ["Database", "text_output"]
