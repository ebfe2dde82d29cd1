"""Whatever a node gathers is let go of in slices, however its pipeline ends: no step of a pipeline frees much at once.

Blocks of memory are counted before and after each step, its end and the turns of the queue of ``pgwire.release``. Every class of
nodes is in one of the statements.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from sys import getallocatedblocks
from typing import Any, Final

import pytest

from engine.executors.index import sources
from engine.executors.index.nodes import Node
from engine.executors.index.sources import Source
from engine.executors.index.state import ExecState, Wait, forget
from pgwire import release
from planner.evaluate import Env
from tests.engine.index.harness import Database
from txn.base.types import RowId, StoredRow, Timestamp

A = "generate_series(1001, 17000) a"
B = "generate_series(1001, 17000) b"

STATEMENTS = {
    "sort": f"SELECT a FROM {A} ORDER BY -a",
    "sort of runs": f"SELECT x, a FROM generate_series(1, 3) x, {A} ORDER BY -a LIMIT 40000",
    "sort of few": f"SELECT a FROM {A} ORDER BY -a LIMIT 5000",
    "late values": f"SELECT random() > a FROM {A} ORDER BY -a LIMIT 15000",
    "distinct": f"SELECT DISTINCT a FROM {A}",
    "distinct on": f"SELECT DISTINCT ON (a / 2) a FROM {A} ORDER BY a / 2, a DESC",
    "union": f"SELECT a FROM {A} UNION SELECT b FROM {B}",
    "union of long rows": f"SELECT a, a + 1, a + 2 FROM {A} UNION SELECT b, b, b FROM {B}",
    "intersect": f"SELECT a FROM {A} INTERSECT SELECT b FROM {B}",
    "except all": f"SELECT a FROM {A} EXCEPT ALL SELECT b + 7 FROM {B}",
    "hash join": f"SELECT a FROM {A} JOIN {B} ON a = b",
    "hash join of few keys": f"SELECT a FROM generate_series(1, 2) a JOIN {B} ON a = b % 2",
    "full join": f"SELECT a, b FROM {A} FULL JOIN {B} ON a = b + 5",
    "full join without keys": f"SELECT b FROM generate_series(1, 2) a FULL JOIN (SELECT nullif(b, b) AS n, b FROM {B}) c ON a = n",
    "loop join": f"SELECT 1 FROM generate_series(1, 3) x JOIN {B} ON x > b",
    "left loop join": f"SELECT b FROM generate_series(1, 3) x LEFT JOIN {B} ON x < b",
    "dependent join": f"SELECT 1 FROM generate_series(1, 3) x, LATERAL (SELECT a + x AS y FROM {A} ORDER BY -a) s",
    "groups": f"SELECT a, count(*) FROM {A} GROUP BY a",
    "one group": f"SELECT array_agg(a), count(DISTINCT a), percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM {A}",
    "ordered": f"SELECT array_agg(a ORDER BY -a), string_agg(a::text, ',' ORDER BY a), mode() WITHIN GROUP (ORDER BY a) FROM {A}",
    "hypothetical": f"SELECT rank(7) WITHIN GROUP (ORDER BY a), dense_rank(7) WITHIN GROUP (ORDER BY a) FROM {A}",
    "distinct of groups": f"SELECT a % 2, count(DISTINCT a), array_agg(DISTINCT a) FROM {A} GROUP BY 1",
    "documents": f"SELECT jsonb_agg(a), jsonb_object_agg(a, a) FROM {A}",
    "grouping sets": f"SELECT a, count(*) FROM {A} GROUP BY ROLLUP (a)",
    "many grouping sets": "SELECT count(*) FROM generate_series(1001, 2200) a GROUP BY CUBE (a, a + 1, a + 2, a + 3, a + 4)",
    "windows": f"SELECT rank() OVER (ORDER BY a % 7), sum(a) OVER (PARTITION BY a % 2) FROM {A}",
    "frames": f"SELECT lag(a) OVER w, last_value(a) OVER w, row_number() OVER w FROM {A} WINDOW w AS (ORDER BY a ROWS 3 PRECEDING EXCLUDE CURRENT ROW)",
    "with": f"WITH x AS MATERIALIZED (SELECT a FROM {A}) SELECT x.a FROM x, x AS y LIMIT 40000",
    "with alone": f"SELECT (WITH x AS MATERIALIZED (SELECT a FROM {A}) SELECT max(x.a) FROM x, x AS y WHERE x.a = y.a) FROM generate_series(1, 2)",
    "with dependent": f"SELECT (WITH x AS MATERIALIZED (SELECT a + g AS a FROM {A}) SELECT max(x.a) FROM x) FROM generate_series(1, 2) g",
    "recursion": f"WITH RECURSIVE r(n) AS (SELECT a FROM {A} UNION SELECT n + 1 FROM r WHERE n < 1004) SELECT n FROM r",
    "recursion by breadth": f"WITH RECURSIVE r(n) AS (SELECT a FROM {A} UNION ALL SELECT n + 16000 FROM r WHERE n < 17001) SELECT n FROM r",
    "a set": f"SELECT count(*) FROM {A} WHERE a NOT IN (SELECT b * 2 FROM {B})",
    "an array": f"SELECT cardinality(ARRAY(SELECT b FROM {B}))",
    "rows of a sub-select": f"SELECT count(*) FROM generate_series(1, 3) x WHERE x > ALL (SELECT b FROM {B})",
    "sub-selects": f"SELECT (SELECT count(*) FROM {B} WHERE b > a) FROM generate_series(1, 3) a",
    "kept answers": "SELECT (SELECT max(v) FROM (VALUES (1), (2)) x(v) WHERE v < a) FROM generate_series(1, 6000) a",
    "set-returning": f"SELECT generate_series(1, 2), a FROM {A} OFFSET 10",
    "elements": "SELECT unnest(array_fill(7, ARRAY[16000]))",
    "values of lists": "SELECT * FROM (VALUES (1), (2)) v(x), LATERAL (SELECT x + 1 AS y) s WHERE x < y",
    "values": f"SELECT * FROM (VALUES {', '.join(f'({n}, {n + 1})' for n in range(1001, 4001))}) v(x, y)",
    "a table": "SELECT n FROM kept WHERE n > 3",
    "rows by ctid": "SELECT n FROM kept WHERE ctid > '(0,1)'",
    "keys": "SELECT n FROM kept WHERE id IN (3, 4)",
    "many keys": "SELECT count(*) FROM generate_series(1, 9) a JOIN kept ON id = a",
    "a range of keys": "SELECT n FROM kept WHERE id > 0 ORDER BY id",
    "with ties": f"SELECT a / 17001 FROM {A} ORDER BY 1 FETCH FIRST 1 ROW WITH TIES",
    "whole rows": f"SELECT x FROM (SELECT a FROM {A} OFFSET 0) x",
    "rows from": "SELECT * FROM ROWS FROM (generate_series(1001, 17000), generate_series(1001, 3000)) WITH ORDINALITY",
    "text": f"SELECT string_agg(a::text, '') FROM {A}",
    "objects": "SELECT count(*) FROM pg_things p JOIN pg_things q ON p.n = q.n",
    "objects by hash": "SELECT p.oid, q.n FROM pg_things p LEFT JOIN pg_things q ON p.oid = q.n",
    "places of objects": "SELECT ctid, n FROM pg_things",
    "a sample": "SELECT n FROM kept TABLESAMPLE bernoulli (50) REPEATABLE (1)",
    "a sample of objects": "SELECT n FROM pg_things TABLESAMPLE system (50) REPEATABLE (1)",
    "an object": "SELECT n FROM pg_things WHERE n = 5000",
    "nothing read": "SELECT 1",
    "asked once": f"SELECT a FROM {A} WHERE (SELECT true)",
}

SMALL: Final = 14_000
"""Blocks of memory that one step may free: some batches' rows have as many."""

ELSEWHERE: Final = {
    "LockRows", "StepSource", "PartitionsSource", "EntriesScan", "IntervalScan", "LargeObjectSource", "InTurn",
}  # fmt: skip
"""What needs a store: tests/engine/test_letting_go.py."""

ABSTRACT: Final = {"ComputedSource", "CatalogSource", "CandidateScan", "StoredSource"}


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    """One small table, one that is not, and a catalog relation."""
    made = Database()
    made.table(
        "kept", "id int pk", "n int", rows=[(str(n), str(n)) for n in (*range(50), *range(1001, 9001))]
    )
    made.table("pg_things", "oid int", "n int", rows=[(str(n), str(n)) for n in range(15_000)], virtual=True)
    return made


class Freed:
    """How many blocks of memory are freed in one step, at most."""

    def __init__(self) -> None:
        self.most = 0
        self.where = ""
        self.peak = self.peak_step = 0

    def step(self, where: str, call: Callable[[], Any]) -> Any:
        before = getallocatedblocks()
        try:
            return call()
        finally:
            freed = before - getallocatedblocks()
            if freed > self.most:
                self.most, self.where = freed, where


async def _run(database: Database, sql: str, ends: str, at: int, freed: Freed) -> None:
    """Run a statement to its end, or up to a step and then into an error, or let it be given up there."""
    bound, plan = database.prepare(sql)
    ctx = database.context(bound)
    state = ExecState(ctx)
    pipe = plan.root.pipe(Env(ctx.params, ctx.session, (), None, state))
    steps = 0
    start = getallocatedblocks()
    while True:
        item = freed.step(f"step {steps}", lambda: next(pipe, "end"))
        if item == "end":
            break
        if isinstance(item, Wait):
            item.value = await item.awaitable
        item = None  # what comes is dropped as the client takes it
        used = getallocatedblocks() - start
        if used > freed.peak:
            freed.peak, freed.peak_step = used, steps
        if steps == at and ends == "closed":
            freed.step("close", pipe.close)
            break
        if steps == at and ends == "failed":
            freed.step("failure", lambda: _fail(pipe))
            break
        steps += 1
    freed.step("end of the pipeline", pipe.close)
    freed.step("end of the state", state.release)
    # the queue's own turns are bounded by time
    turn = release._queue
    while turn.stack:
        freed.step("a part of the queue", lambda: release._free_some(turn.stack))


def _fail(pipe: Any) -> None:
    try:
        pipe.throw(ZeroDivisionError())
    except ZeroDivisionError as error:
        forget(error)
        release.release_error(error)


@pytest.mark.parametrize(
    "name",  # every second one in make test, all in make proofs
    [
        pytest.param(name, marks=[pytest.mark.long] if number % 2 else [])
        for number, name in enumerate(STATEMENTS)
    ],
)
def test_nothing_large_is_freed_in_one_step(database: Database, name: str) -> None:
    """Neither while it runs nor at its end, nor when it is given up or fails with as much as it ever has."""

    async def run() -> list[tuple[str, int, str]]:
        found = []
        last = Freed()
        for ends in ("at its end", "closed", "failed"):
            freed = Freed()
            await _run(database, STATEMENTS[name], ends, last.peak_step, freed)
            if ends == "at its end":
                last = freed
            if freed.most > SMALL:
                found.append((ends, freed.most, freed.where))
        return found

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(run()) == []
    finally:
        gc.enable()


def _classes(node: type) -> set[type]:
    return {found for kind in node.__subclasses__() for found in (kind, *_classes(kind))}


def test_every_class_of_nodes_is_here(database: Database) -> None:
    """A new one needs a statement above."""
    found: set[str] = set()
    for sql in STATEMENTS.values():
        _, plan = database.prepare(sql)
        todo: list[Any] = [plan.root, *(node for _, node in plan.subplans)]
        while todo:
            node = todo.pop()
            found.add(type(node).__name__)
            todo += getattr(node, "inputs", ())
            todo += [
                x for name in ("source", "right", "plan") if (x := getattr(node, name, None)) is not None
            ]
    kinds = _classes(Node) | _classes(Source)
    there = {kind.__name__ for kind in kinds if kind.__module__.startswith("engine.")}
    assert there - found == ELSEWHERE | ABSTRACT


@pytest.mark.parametrize("columns", [5, 110, 300])
def test_wide_rows_are_taken_some_at_a_time(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of what is stored, whatever code takes their columns."""
    relation = Database().table(f"wide_{columns}", *[f"c{n} int" for n in range(columns)])
    looks = []
    monkeypatch.setattr(sources, "VALUES_AT_ONCE", 7 * columns)
    monkeypatch.setattr(sources, "paced", lambda steps, every: looks.append(list(steps)) or steps)
    extract = sources.extractor(0, relation, range(1, columns + 1), True)[2](relation.oid)
    rows = [tuple(range(n, n + columns)) for n in range(30)]
    assert extract([StoredRow(RowId(1), row, Timestamp(0)) for row in rows]) == rows
    assert looks == ([] if columns == 5 else [[0, 7, 14, 21, 28]])
