"""Whatever a statement gathers is given back at its end: no large container is left, whoever had it while it ran.

Containers are counted, not bytes: what the process has tells of allocators and of what ran before.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from typing import Any, cast

from bench.wire_loop import CountingTransport
from pgwire import messages as m
from pgwire import release
from pgwire.messages.encode import encode_frontend
from pgwire.server import Server, ServerConfig
from pgwire.session import Session
from tests.support.engine import open_database
from txn.persist.memory import MemoryDisk

N = 3 * release.LARGE
SERIES = f"generate_series(1, {N}) g"
STATEMENTS = {
    "sort": f"SELECT g FROM {SERIES} ORDER BY -g",
    "groups": f"SELECT count(*) FROM (SELECT g, count(*) FROM {SERIES} GROUP BY g) x",
    "distinct": f"SELECT count(*) FROM (SELECT DISTINCT g::text FROM {SERIES}) x",
    "sets": f"SELECT count(*) FROM (SELECT g FROM {SERIES} EXCEPT ALL SELECT 1) x",
    "join": f"SELECT count(*) FROM {SERIES} JOIN generate_series(1, {N}) h ON g = h",
    "window": f"SELECT max(r) FROM (SELECT rank() OVER (ORDER BY g % 7) r FROM {SERIES}) x",
    "recursion": f"WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r WHERE n < {N}) SELECT count(*) FROM r",
    "items": f"WITH w AS MATERIALIZED (SELECT g FROM {SERIES}) SELECT count(*) FROM w a, (SELECT 1 FROM w LIMIT 1) b",
    "shared rows": f"SELECT {', '.join(f'count(DISTINCT g + {i}), string_agg(g::text, NULL ORDER BY g % {i + 2})' for i in range(5))} FROM {SERIES}",
    "array": f"SELECT array_length(array_agg(g) || array_agg(g), 1) FROM {SERIES}",
    "fractions": f"SELECT cardinality(percentile_cont((SELECT array_agg(g::float8 / {N}) FROM {SERIES})) WITHIN GROUP (ORDER BY x)) "
        "FROM (VALUES (1.5::float8), (2.5)) v(x)",
    "jsonb": f"SELECT jsonb_array_length(jsonb_agg(g) || to_jsonb(array_agg(g))) FROM {SERIES}",
    "jsonpath": f"SELECT count(*) FROM jsonb_path_query((SELECT jsonb_agg(g) FROM {SERIES}), '$[*] ? (@ > 5)')",
    "elements": f"SELECT count(*) FROM jsonb_array_elements((SELECT jsonb_agg(g) FROM {SERIES}))",
    "object": f"SELECT length(jsonb_object_agg(g, g)::text) FROM {SERIES}",
    "multirange": f"SELECT length(range_agg(int4range(g * 2, g * 2 + 1))::text) FROM {SERIES}",
    "pieces": f"SELECT cardinality(string_to_array(repeat('x,', {N}), ',')), cardinality(regexp_split_to_array(repeat('x,', {N}), ','))",
    "polygon": f"SELECT npoints(polygon(path('(' || string_agg('(' || g || ',1)', ',') || ')'))) FROM {SERIES}",
    "variables": f"DO 'DECLARE a int[]; BEGIN a := array_agg(g) FROM {SERIES}; PERFORM cardinality(a || a); END'",
    "error": f"SELECT count(DISTINCT 1 / (g - {N})) FROM {SERIES}",
    "error in an array": f"SELECT array_agg(g) || 1 / (max(g) - {N}) FROM {SERIES}",
    "caught": f"DO 'DECLARE a int[]; BEGIN a := array_agg(g) FROM {SERIES}; PERFORM a[1] / 0; EXCEPTION WHEN others THEN NULL; END'",
    "written": f"CREATE TEMP TABLE IF NOT EXISTS e (i int); INSERT INTO e SELECT g FROM {SERIES}; UPDATE e SET i = i + 1; DELETE FROM e; TRUNCATE e",
    "endless": "SELECT count(DISTINCT g) FROM generate_series(1, 1000000000) g",
}  # fmt: skip


def test_no_large_container_is_left() -> None:
    assert asyncio.run(_left()) == {}


def _large() -> list[str]:
    """Tell what there is of large containers that are not frozen. They themselves are not returned: this test would have them."""
    kinds = (list, tuple, dict, set, frozenset, deque)
    return [
        f"{type(one).__name__} of {len(one)} {type(next(iter(one))).__name__}"
        for one in gc.get_objects()
        if isinstance(one, kinds) and len(one) > release.LARGE
    ]


async def _left() -> dict[str, list[str]]:
    """Return what is left of large containers by statements."""
    database = await open_database(MemoryDisk())
    session = Session(Server(database, ServerConfig()), cast("Any", CountingTransport()), "127.0.0.1")

    async def send(message: Any, turns: int = 1_000_000) -> None:
        session.data_received(encode_frontend(message))
        for turn in range(1_000_000):
            if not session.busy:
                return
            if turn == turns:
                session.cancel()
            await asyncio.sleep(0)

    async def run(name: str) -> None:
        await send(m.Query(STATEMENTS[name]), 50 if name == "endless" else 1_000_000)

    async def freed() -> list[str]:
        """Wait until what was gathered has been freed, turn by turn; return what is left."""
        for _ in range(20):
            if not release.freeing():
                release._minded._look()
            if not (found := _large()) and not release.freeing():
                break
            for _ in range(100):
                await asyncio.sleep(0)
        return found

    left: dict[str, list[str]] = {}
    gc.disable()
    try:
        await send(m.StartupMessage({"user": "postgres", "database": "postgres"}))
        await send(m.Query("SET executor = index"))
        for name in STATEMENTS:  # what is made once for all, or kept of texts, stays
            await run(name)
        for name in STATEMENTS:
            gc.freeze()  # what was there before
            await run(name)
            if found := await freed():
                left[name] = found
        return left
    finally:
        gc.unfreeze()
        gc.enable()
        await database.close()
