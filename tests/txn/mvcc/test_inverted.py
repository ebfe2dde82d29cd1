"""Inverted indexes against brute force: every entry of every value, with flushes, merges, vacuum, builds and crashes between."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from pgwire.codecs.text.tsvector import merged, unpack
from tests.support.durable import run
from tests.support.store import (
    BY_K,
    INT,
    SHARD,
    TEXT,
    StepClock,
    now,
    open_memory_store,
    tear_away,
    tiny_limits,
)
from txn.base.errors import LockNotAvailable, WriteConflict
from txn.base.types import IndexId, PhysicalType, ShardColumn, ShardIndex, ShardSpec
from txn.log import group_commit
from txn.mvcc import departing, keys, many_keys
from txn.mvcc.index import HotIndex
from txn.persist.memory import MemoryDisk
from txn.store import ShardStore
from txn.transaction import writes
from txn.transaction.index_build import IndexBuild
from txn.values.entries import document_entries, key_entry, lexeme_entry

BY_TAGS, BY_KEYS, BY_PATHS, BY_LEXEMES = IndexId(20), IndexId(21), IndexId(22), IndexId(23)
WORDS = "abcdef"
INVERTED = (
    ShardIndex(index=BY_TAGS, attnums=(2,), unique=False, kind="elements"),
    ShardIndex(index=BY_KEYS, attnums=(3,), unique=False, kind="json"),
    ShardIndex(index=BY_PATHS, attnums=(3,), unique=False, kind="json_paths"),
    ShardIndex(index=BY_LEXEMES, attnums=(4,), unique=False, kind="lexemes"),
)


def spec(version: int = 1, indexes: tuple[ShardIndex, ...] = INVERTED) -> ShardSpec:
    """k int8 primary key, tags text[], doc text with a document, words bytes with a tsvector."""
    return ShardSpec(
        shard=SHARD,
        version=version,
        columns=(
            ShardColumn(attnum=1, type=INT),
            ShardColumn(attnum=2, type=PhysicalType(kind="list", element=TEXT)),
            ShardColumn(attnum=3, type=TEXT),
            ShardColumn(attnum=4, type=PhysicalType(kind="bytes")),
        ),
        indexes=(ShardIndex(index=BY_K, attnums=(1,), unique=True, primary=True), *indexes),
    )


def document(rng: random.Random) -> Any:
    kind = rng.randrange(6)
    if kind < 2:
        return {rng.choice(WORDS): document(rng) for _ in range(rng.randrange(3))}
    if kind == 2:
        return [document(rng) for _ in range(rng.randrange(3))]
    return rng.choice([1, 2.5, None, True, "a", "b", 'q"\\'])


def random_row(rng: random.Random, k: int) -> tuple[Any, ...]:
    tags = [rng.choice([*WORDS, None]) for _ in range(rng.randrange(4))]
    doc = {rng.choice(WORDS): document(rng) for _ in range(rng.randrange(3))}
    return (
        k,
        None if rng.random() < 0.1 else tuple(tags),
        None if rng.random() < 0.1 else json.dumps(doc),
        None if rng.random() < 0.1 else merged(lexemes(rng)),
    )


def lexemes(rng: random.Random) -> list[tuple[str, list[int]]]:
    """Lexemes with positions whose bytes look like other lexemes."""
    return [
        (word, [rng.choice((1, 97, 98, 0x61, 0x3FFF - 0x61 // 4, 16383)) for _ in range(rng.randrange(4))])
        for word in rng.sample([*WORDS, "ab", "\u00e9"], rng.randrange(5))
    ]


def entries(index: IndexId, row: tuple[Any, ...]) -> set[Any]:
    """What a row is entered under, as the module says it."""
    if index == BY_TAGS:
        if row[1] is None:
            return set()
        return {v for v in row[1] if v is not None} if row[1] else {None}
    if index == BY_LEXEMES:
        return set() if row[3] is None else {lexeme_entry(lexeme) for lexeme, _ in unpack(row[3])}
    return (
        set()
        if row[2] is None
        else set(document_entries("json" if index == BY_KEYS else "json_paths", row[2]))
    )


async def check(txn: Any, expected: dict[int, tuple[Any, ...]], indexes: tuple[ShardIndex, ...]) -> None:
    for definition in indexes:
        index = definition.index
        under: dict[Any, list[int]] = {}
        for k, row in expected.items():
            for entry in entries(index, row):
                under.setdefault(entry, []).append(k)
        for entry in [*under, "nobody" if index == BY_TAGS else 5]:
            found = await now(txn.lookup(SHARD, index, [(entry,)]))
            assert sorted(r.values[0] for r in found) == sorted(under.get(entry, [])), (
                definition.kind,
                entry,
            )
            assert all(r.values == expected[r.values[0]] for r in found)
        some = list(under)[:4]
        found = await now(txn.lookup(SHARD, index, [(e,) for e in some]))
        assert sorted(r.values[0] for r in found) == sorted({k for e in some for k in under[e]}), (
            "each row once"
        )


async def rows_by_k(txn: Any) -> dict[int, Any]:
    return {r.values[0]: r for r in [r async for chunk in txn.scan(SHARD) for r in chunk]}


@pytest.mark.parametrize("seed", range(4))
def test_every_entry_finds_its_rows(seed: int) -> None:
    rng = random.Random(seed)

    async def go() -> None:
        disk, clock = MemoryDisk(), StepClock()
        store: ShardStore = await open_memory_store(disk, clock=clock)
        indexes = INVERTED if seed % 2 else ()
        txn = store.begin()
        await now(txn.begin_write([]))
        txn.create_shard(spec(indexes=indexes))
        await now(txn.commit())
        rows: dict[int, tuple[Any, ...]] = {}
        readers: list[tuple[Any, dict[int, tuple[Any, ...]]]] = []
        for step in range(24):
            if step == 8 and not indexes:  # over rows that are hot, and in parts
                txn = store.begin()
                await now(txn.begin_write([SHARD]))
                await now(txn.alter_shard(spec(2, INVERTED)))
                await now(txn.commit())
                for reader, _seen in readers:
                    reader.rollback()
                readers, indexes = [], INVERTED
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            present = await rows_by_k(txn)
            after = dict(rows)
            for _ in range(rng.randrange(1, 6)):
                k = rng.randrange(30)
                row = random_row(rng, k)
                txn.next_statement()
                if k not in after:
                    (present_id,) = await now(txn.insert(SHARD, [row]))
                    present[k] = replace_id(present_id)
                    after[k] = row
                elif rng.random() < 0.3:
                    await now(txn.delete(SHARD, [present[k].row_id]))
                    del after[k]
                else:
                    await now(txn.update(SHARD, [(present[k].row_id, row)]))
                    after[k] = row
            txn.next_statement()
            await check(txn, after, indexes)
            if rng.random() < 0.2:
                txn.rollback()
            else:
                await now(txn.commit())
                rows = after
            if rng.random() < 0.3:
                await store.flush(history=rng.random() < 0.5)
            if rng.random() < 0.3:
                store.core.vacuum()
            store.validate()
            if len(readers) < 3:
                readers.append((store.begin(read_only=True), dict(rows)))
            elif rng.random() < 0.3:
                readers.pop(0)[0].rollback()
            for reader, seen in readers:
                await check(reader, seen, indexes)
            if rng.random() < 0.1:
                for reader, _seen in readers:
                    reader.rollback()
                readers = []
                await tear_away(store, disk)
                store = await open_memory_store(disk, clock=clock)
        for reader, _seen in readers:
            reader.rollback()
        await store.close()

    with (
        tiny_limits(),
        mock.patch.object(many_keys, "LONG", seed % 3 - 1),  # some rows' keys are made and entered one by one
        mock.patch.object(many_keys, "AT_ONCE", 1),
        mock.patch.object(many_keys, "PARTS", 1),
    ):
        run(go)


class replace_id:
    def __init__(self, row_id: int) -> None:
        self.row_id = row_id


async def table(disk: MemoryDisk) -> ShardStore:
    store: ShardStore = await open_memory_store(disk)
    txn = store.begin()
    await now(txn.begin_write([]))
    txn.create_shard(spec())
    await now(txn.insert(SHARD, [(1, ("a", "b"), '{"a": 1}', None), (2, ("b",), '{"a": 2}', None)]))
    await now(txn.commit())
    return store


def test_nobody_enters_a_row_under_an_entry_that_another_has_read() -> None:
    async def go() -> None:
        store = await table(MemoryDisk())
        reader = store.begin()
        await now(reader.begin_write([SHARD]))
        assert len(await now(reader.lookup(SHARD, BY_TAGS, [("a",)]))) == 1
        writer = store.begin(lock_timeout_ms=-1)
        await now(writer.begin_write([SHARD]))
        await now(writer.insert(SHARD, [(3, ("c",), None, None)]))  # another entry: nothing to wait for
        with pytest.raises(LockNotAvailable):
            await now(writer.insert(SHARD, [(4, ("c", "a"), None, None)]))
        writer.rollback()
        first = store.begin(lock_timeout_ms=-1)
        await now(first.begin_write([SHARD]))
        with pytest.raises(LockNotAvailable):
            await now(first.insert(SHARD, [(4, ("c", "a"), None, None)]))
        first.rollback()
        updater = store.begin(lock_timeout_ms=-1)
        await now(updater.begin_write([SHARD]))
        (other,) = await now(updater.lookup(SHARD, BY_K, [(2,)]))
        await now(updater.update(SHARD, [(other.row_id, (2, ("b", "c"), None, None))]))
        with pytest.raises(LockNotAvailable):
            await now(updater.update(SHARD, [(other.row_id, (2, ("b", "a"), None, None))]))
        updater.rollback()
        reader.rollback()
        await store.close()

    run(go)


@pytest.mark.parametrize("tags", [("a", "z"), ("z", "a", "b")])
def test_what_was_read_by_entry_is_compared_at_the_first_write(tags: tuple[str, ...]) -> None:
    async def go() -> None:
        store = await table(MemoryDisk())
        first = store.begin()
        assert len(await now(first.lookup(SHARD, BY_TAGS, [("a",), ("q",)]))) == 1
        second = store.begin()
        await now(second.begin_write([SHARD]))
        await now(second.insert(SHARD, [(3, tags, None, None)]))
        await now(second.commit())
        with pytest.raises(WriteConflict):
            await now(first.begin_write([SHARD]))
        third = store.begin()
        assert len(await now(third.lookup(SHARD, BY_TAGS, [("b",), ("q",)]))) == (3 if "b" in tags else 2)
        other = store.begin()
        await now(other.begin_write([SHARD]))
        await now(other.insert(SHARD, [(9, ("x",), None, None)]))
        await now(other.commit())
        await now(third.begin_write([SHARD]))  # nothing that it has looked for
        third.rollback()
        await store.close()

    run(go)


def test_entries_are_counted_in_memory_and_in_parts() -> None:
    async def go() -> None:
        store = await table(MemoryDisk())
        await store.flush()
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        await now(txn.insert(SHARD, [(3, ("b", "b", "c"), '{"a": 1, "b": 1}', None), (4, (), None, None)]))
        await now(txn.commit())
        reader = store.begin(read_only=True)
        assert reader.count_entries(SHARD, BY_TAGS, [("a",), ("b",), ("c",), ("d",), (None,)]) == [
            1,
            3,
            1,
            0,
            1,
        ]
        assert reader.count_entries(SHARD, BY_KEYS, [(key_entry("a"),), (key_entry("b"),)]) == [3, 1]
        reader.rollback()
        await store.close()

    run(go)


def test_entries_of_documents() -> None:
    assert document_entries("json", '["a"]') == {key_entry("a")} == document_entries("json", '"a"')
    assert key_entry("a") in document_entries("json", '{"a": []}')
    assert key_entry("a") not in document_entries("json", '{"b": "a"}')
    assert (
        document_entries("json", "1.50")
        == document_entries("json", "15e-1")
        != document_entries("json", "1.51")
    )
    assert document_entries("json", "-0") == document_entries("json", "0.00")
    assert (
        document_entries("json", "100") == document_entries("json", "1e2") != document_entries("json", "10")
    )
    assert (
        len(
            {
                *document_entries("json", "true"),
                *document_entries("json", "null"),
                *document_entries("json", '"t"'),
            }
        )
        == 3
    )
    assert (
        document_entries("json_paths", '{"a": {}, "b": []}')
        == frozenset()
        == document_entries("json_paths", "{}")
    )
    assert document_entries("json_paths", '{"a": [1, {"b": 2}]}') == {
        *document_entries("json_paths", '{"a": 1}'), *document_entries("json_paths", '{"a": {"b": 2}}')
    }  # fmt: skip
    assert document_entries("json_paths", '{"a": 1, "b": 2}').isdisjoint(
        document_entries("json_paths", '{"a": 2, "b": 1}')
    )
    deep = "[" * 50_000 + '{"k": 1}' + "]" * 50_000
    assert document_entries("json_paths", deep) == document_entries("json_paths", '{"k": 1}')
    assert document_entries("json", '{"q\\u0022\\n": 1}') == document_entries("json", json.dumps({'q"\n': 1}))


def test_keys_of_a_row_are_sorted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "over", lambda: True)
    monkeypatch.setattr(writes, "SORTED_AT_ONCE", 100)
    keys = frozenset(f"key {n * 7919 % 1000}" for n in range(1000))
    found: list[Any] = []

    def steps() -> Any:
        found.extend((yield from writes._in_order(keys)))

    turns = list(steps())
    for turn in turns:
        turn.close()
    assert len(turns) == 10
    assert found == sorted(keys)


def test_very_many_keys_are_made_and_entered_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_keys, "LONG", 50)
    monkeypatch.setattr(many_keys, "AT_ONCE", 10)
    monkeypatch.setattr(many_keys, "PARTS", 1)
    monkeypatch.setattr(group_commit, "STAGE_BYTES", 50)
    entered: Counter[int] = Counter()
    true_add = HotIndex.add

    def add(index: HotIndex, key: Any, row_id: int) -> None:
        if key.__class__ is frozenset and (key is not index._entered or row_id != index.entering):
            entered[len(key)] += 1
        true_add(index, key, row_id)

    def no_document(kind: str, document: str | bytes) -> frozenset[int]:
        assert len(document) <= 50, "a long one's entries are made at once"
        return document_entries(kind, document)

    monkeypatch.setattr(HotIndex, "add", add)
    monkeypatch.setattr(keys, "document_entries", no_document)

    def long_row(k: int, of: int) -> tuple[Any, ...]:
        words = [f"{of} {n}" for n in range(100)]
        lexemes = merged([(word, [1]) for word in words])
        return (k, tuple(words), json.dumps(dict.fromkeys(words, 1)), lexemes)

    async def go() -> None:
        store = await table(MemoryDisk())
        rows: dict[int, tuple[Any, ...]] = {1: (1, ("a", "b"), '{"a": 1}', None)}
        for of in range(2):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            if of:
                (old,) = await now(txn.lookup(SHARD, BY_K, [(3,)]))
                await now(txn.update(SHARD, [(old.row_id, long_row(3, of))]))
            else:
                await now(txn.insert(SHARD, [long_row(3, of)]))
            rows[3] = long_row(3, of)
            await now(txn.commit())
        build = IndexBuild(
            store.core, spec(2, (*INVERTED, replace(INVERTED[0], index=IndexId(30)))), IndexId(30)
        )
        await build.run()
        assert set(rows[3][1]) <= build.index.entries.keys()
        build.close()
        assert max(entered) == 10
        monkeypatch.undo()
        store.validate()
        await store.close()

    run(go)


@pytest.mark.parametrize("writing", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_rows_with_several_versions_are_looked_through_some_keys_at_a_time(
    monkeypatch: pytest.MonkeyPatch, own: bool, writing: bool
) -> None:
    monkeypatch.setattr(many_keys, "LONG", 50)
    monkeypatch.setattr(many_keys, "AT_ONCE", 10)
    monkeypatch.setattr(many_keys, "PARTS", 1)
    monkeypatch.setattr(group_commit, "STAGE_BYTES", 50)
    words = [f"{n}" for n in range(200)]
    before = (3, (*words, "gone"), json.dumps(dict.fromkeys(words, 1)), merged([(w, [1]) for w in words]))
    after = (3, (*words, "come"), *before[2:])

    async def steps_of(work: Any) -> tuple[int, Any]:
        """Return how many turns others have had."""
        reading = asyncio.ensure_future(now(work))
        turns = 0
        while not reading.done():
            await asyncio.sleep(0)
            turns += 1
        return turns, await reading

    async def go() -> None:
        store = await table(MemoryDisk())
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        await now(txn.insert(SHARD, [before]))
        await now(txn.commit())
        old = store.begin(read_only=True)  # has the version before kept
        await steps_of(old.lookup(SHARD, BY_K, [(3,)]))
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        txn.next_statement()
        (row,) = await now(txn.lookup(SHARD, BY_K, [(3,)]))
        await now(txn.update(SHARD, [(row.row_id, after)]))
        txn.next_statement()
        reader = txn
        if not own:
            await now(txn.commit())
            reader = store.begin(read_only=not writing)
            if writing:
                await now(reader.begin_write([SHARD]))
        turns, _ = await steps_of(reader.lookup(SHARD, BY_TAGS, [("x",)]))  # the index over own rows is made
        assert turns >= 20 or not own
        made = mock.Mock(side_effect=AssertionError("all keys are made at once"))
        make = store.core.shards[SHARD].latest.generation.indexes[BY_TAGS].make
        monkeypatch.setattr(make, "of_row", made)
        for wanted, there in (("come", True), ("gone", False), ("199", True)):
            turns, found = await steps_of(reader.lookup(SHARD, BY_TAGS, [(wanted,)]))
            assert [r.values for r in found] == [after] * there, wanted
            assert turns >= 20 or (own and not there), wanted
        for wanted, there in (("come", False), ("gone", True)):
            _turns, found = await steps_of(old.lookup(SHARD, BY_TAGS, [(wanted,)]))
            assert [r.values for r in found] == [before] * there, wanted
        monkeypatch.undo()
        reader.rollback()
        old.rollback()
        store.validate()
        await store.close()

    run(go)


@pytest.mark.parametrize("back", ["", "other keys", "the same keys", "gone again"])
def test_a_row_of_very_many_keys_leaves_some_keys_at_a_time_and_may_come_back(
    monkeypatch: pytest.MonkeyPatch, back: str
) -> None:
    monkeypatch.setattr(many_keys, "LONG", 50)
    monkeypatch.setattr(many_keys, "AT_ONCE", 10)
    monkeypatch.setattr(many_keys, "PARTS", 1)
    monkeypatch.setattr(departing, "PARTS", 1)
    words = [f"{n}" for n in range(200)]
    lexemes = merged([(w, [1]) for w in words])
    before = (3, (*words, "gone"), json.dumps(dict.fromkeys(words, 1)), lexemes)
    after = before if back == "the same keys" else (3, (*words[:100], "come"), None, lexemes)
    at_once: Counter[int] = Counter()
    true_discard = HotIndex.discard

    def discard(index: HotIndex, key: Any, row_id: int) -> None:
        if key.__class__ is frozenset:
            at_once[len(key)] += 1
        true_discard(index, key, row_id)

    monkeypatch.setattr(HotIndex, "discard", discard)

    async def change(store: ShardStore, row: tuple[Any, ...] | None) -> None:
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        txn.next_statement()
        (old,) = await now(txn.lookup(SHARD, BY_K, [(3,)]))
        if row is None:
            await now(txn.delete(SHARD, [old.row_id]))
        else:
            await now(txn.update(SHARD, [(old.row_id, row)]))
        await now(txn.commit())

    async def check_words(store: ShardStore, there: tuple[Any, ...] | None) -> None:
        for word in ("gone", "come", "5", "150"):
            reader = store.begin(read_only=True)
            found = await now(reader.lookup(SHARD, BY_TAGS, [(word,)]))
            assert [r.values for r in found] == [there] * (there is not None and word in there[1]), word
            reader.rollback()

    async def go() -> None:
        store = await table(MemoryDisk())
        txn = store.begin()
        await now(txn.begin_write([SHARD]))
        await now(txn.insert(SHARD, [before]))
        await now(txn.commit())
        generation = store.core.shards[SHARD].latest.generation
        assert generation is not None
        await store.flush(SHARD)
        assert generation.departing, "it has left at once"
        there: tuple[Any, ...] | None = before
        await check_words(store, there)
        if back:
            there = after
            await change(store, there)
            await check_words(store, there)
        if back == "gone again":
            there = None
            await change(store, None)
        store.validate()
        for _ in range(2000):
            await asyncio.sleep(0)
            store.core.vacuum()
            if not generation.departing and not store.core.garbage:
                break
        assert not generation.departing
        store.validate()
        await check_words(store, there)
        assert max(at_once) == 10
        left = set(generation.indexes[BY_TAGS].entries)
        assert left == (set() if there is None or not back else set(there[1]))
        await store.close()

    run(go)
