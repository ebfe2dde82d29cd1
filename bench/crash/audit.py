"""Does a restarted database agree with itself: indexes with tables, catalog with itself and with what is stored, files?"""

from __future__ import annotations

import asyncio

from sqllogictest.client import Client
from txn.log.durable import StorageConfig
from txn.store import open_store

_DANGLING = {
    "pg_attribute": "attrelid", "pg_index": "indexrelid", "pg_constraint": "conrelid", "pg_attrdef": "adrelid",
    "pg_type": "typrelid",
}  # fmt: skip
_OTHERS = (
    ("pg_index", "indrelid", ""),
    ("pg_constraint", "confrelid", ""),
    ("pg_constraint", "conindid", ""),
    ("pg_description", "objoid", "classoid = 'pg_class'::regclass AND "),
)


def indexes(client: Client) -> list[str]:
    """Compare every index of the public tables with its table."""
    problems = []
    listed = client.run(
        "SELECT c.relname, t.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "JOIN pg_class t ON t.oid = i.indrelid JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0] "
        "WHERE t.relnamespace = 'public'::regnamespace"
    ).rows
    for index, table, column in listed:
        scanned = f"SELECT {column}::text FROM {table}"
        through = f"SELECT {column}::text FROM {table} WHERE {column} > -1000000000"
        client.run("SET executor = 'index'")
        plan = " ".join(str(line) for (line,) in client.run(f"EXPLAIN {through}").rows).lower()
        if "index" not in plan:
            problems.append(f"{index} is not used by {through}: {plan}")
        by_index = sorted(row[0] or "" for row in client.run(through).rows)
        client.run("SET executor = 'local'")
        by_scan = sorted(row[0] for row in client.run(scanned).rows if row[0] is not None)
        client.run("RESET executor")
        if by_index != by_scan:
            problems.append(f"{index}: {len(by_index)} entries, {table} has {len(by_scan)} rows")
    return problems


def catalog(client: Client) -> list[str]:
    """Look for rows of the catalog that refer to nothing, and for tables without storage or storage without a table."""
    problems = []
    for relation, column, where in (*((r, c, "") for r, c in _DANGLING.items()), *_OTHERS):
        (count,) = client.run(
            f"SELECT count(*) FROM {relation} x WHERE {where}{column} <> 0 "
            f"AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = x.{column})"
        ).rows[0]
        if count != "0":
            problems.append(f"{count} rows of {relation} whose {column} is no relation")
    for row in client.run(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace "
        "AND oid NOT IN (SELECT shard FROM holdfast_shards)"
    ).rows:
        problems.append(f"table {row[0]} has no storage")
    for row in client.run(
        "SELECT shard FROM holdfast_shards s WHERE schemaname <> 'pg_catalog' "
        "AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = s.shard) "
        "UNION ALL SELECT shard FROM holdfast_shards WHERE relname IS NULL AND shard >= 16384"
    ).rows:
        problems.append(f"storage {row[0]} has no table")
    (damaged,) = client.run("SELECT coalesce(damaged, '') FROM holdfast_storage").rows[0]
    if damaged:
        problems.append(f"damaged: {damaged}")
    return problems


def files(config: StorageConfig) -> list[str]:
    """Compare the files that the servers left with what is named; nobody else has them open.

    They are opened in this process and flushed, and again, so that all that is of use to readers of the past is gone.
    """
    asyncio.run(_flush(config))
    return asyncio.run(_files(config))


async def _flush(config: StorageConfig) -> None:
    store = await open_store(config)
    await store.flush()
    await store.close()


async def _files(config: StorageConfig) -> list[str]:
    store = await open_store(config)
    try:
        log = store.core.log
        if log._sweeper is not None:
            await log._sweeper
        await store.idle()
        store.validate()
        named = {p.ref.name for m in log.manifests.values() for p in m.parts} | set(log._loaded)
        sidecars = {f"{shard}.x{i.index}" for shard, spec in store.shards() for i in spec.indexes}
        used = log._store.blob_names()
        stray = []
        found = set()
        for name in await log.blob.list(""):
            if name == "CLUSTER":
                continue
            part, _, suffix = name.rpartition(".")
            if suffix.startswith("ends") or name.startswith("txn/"):
                known = name in used or name in log._spilled
            else:
                found.add(part)
                known = part in named and (
                    not suffix.startswith("x") or f"{part.partition('/')[0]}.{suffix}" in sidecars
                )
            if not known:
                stray.append(name)
        problems = [f"{len(stray)} files that nothing names, e.g. {stray[:5]}"] if stray else []
        if missing := named - found:
            problems.append(f"files are missing: {sorted(missing)[:5]}")
        return problems
    finally:
        await store.close()
