"""Keys of megabytes and of very many elements order, equal and hash as those made at once do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.durable import run
from tests.support.physical import P, name_of, values
from tests.support.store import SHARD, now, open_memory_store
from txn.base.errors import DuplicateKey
from txn.base.types import IndexId, PhysicalType, ShardColumn, ShardIndex, ShardSpec
from txn.mvcc import keys, long_keys, many_keys
from txn.mvcc.index import TOP
from txn.mvcc.keys import NULL_LAST, KeyMaker
from txn.mvcc.long_keys import LongList, LongText
from txn.persist.parts import sidecar
from txn.persist.parts.part import Part
from txn.values.columns import NO_TAIL

TYPES = [
    P(kind="text"),
    P(kind="bytes"),
    P(kind="tailed"),
    *(P(kind="list", element=P(kind=kind)) for kind in ("int32", "numeric", "float64", "interval", "text")),
]


def maker(*types: PhysicalType) -> KeyMaker:
    columns = tuple(ShardColumn(attnum=i + 1, type=t) for i, t in enumerate(types))
    index = ShardIndex(index=IndexId(1), attnums=tuple(c.attnum for c in columns), unique=False)
    return KeyMaker(columns, index)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("type_", TYPES, ids=name_of)
def test_long_keys_are_as_short_ones(
    type_: PhysicalType, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = maker(*[type_] * columns)
    limit = many_keys.LONG

    def key(row: tuple[Any, ...], *, long: bool) -> Any:
        monkeypatch.setattr(long_keys, "LONG_BYTES", 0 if long and type_.kind != "list" else 1 << 30)
        monkeypatch.setattr(many_keys, "LONG", -1 if long else limit)
        made = make.of_row(row)
        assert made == make.of_key(row)
        parts = made if columns > 1 else (made,)
        assert long == any(type(part) in (LongText, LongList) for part in parts) or set(row) <= {None}
        return made

    monkeypatch.setattr(long_keys, "_CHUNK", 2)

    @settings(max_examples=80, deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        one = st.binary().map(lambda b: b + NO_TAIL) if type_.kind == "tailed" else values(type_)
        a, b = (tuple(data.draw(one) for _ in range(columns)) for _ in range(2))
        if data.draw(st.booleans()):
            b = (a[0], *b[1:])
        if type_.kind == "list" and data.draw(st.booleans()):
            b = ((*a[0],), *b[1:]) if type(a[0]) is tuple else b  # another object that is equal
        short_a, short_b = key(a, long=False), key(b, long=False)
        long_a, long_b = key(a, long=True), key(b, long=True)
        assert (long_a == long_b) == (short_a == short_b)
        if long_a == long_b:
            assert hash(long_a) == hash(long_b)
        assert (long_a < long_b) == (short_a < short_b)
        assert (long_a > long_b) == (short_a > short_b)
        assert (long_a <= long_b) == (short_a <= short_b)
        assert (long_a >= long_b) == (short_a >= short_b)
        assert make.of_key(make.values(long_a)) == long_a
        for beyond in (NULL_LAST, TOP) if columns == 1 else (TOP,):
            assert long_a < beyond
            assert not long_a > beyond
            assert long_a != beyond
        if columns == 1 and short_a != short_b:  # one that is long is never equal to one that is not
            assert (long_a < short_b) == (short_a < short_b)
            assert (short_a < long_b) == (short_a < short_b)
            assert {long_a: 1}.get(short_b) is None

    check()


def test_what_is_hashed_of_a_long_key_is_little_of_it() -> None:
    text = "x" * keys.text_key.__globals__["LONG_BYTES"]
    one, other = keys.text_key(text + "a"), keys.text_key(text + "b")
    assert type(one) is LongText
    assert one != other
    assert one < other
    assert one == keys.text_key("".join((text, "a")))
    assert keys.text_key("short") == "short"
    assert {one: 1, other: 2}[keys.text_key("".join((text, "b")))] == 2


@pytest.mark.parametrize("flushed", [False, True], ids=["hot", "in parts"])
def test_long_keys_are_looked_up_in_parts_before_the_turn_that_needs_them(
    flushed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inserts, changes and reads by a key of megabytes, and duplicates of it, hot and in a part; what is found ahead is forgotten."""
    monkeypatch.setattr(long_keys, "LONG_BYTES", 100)
    monkeypatch.setattr(sidecar, "LONG_VALUE", 50)
    looked = 0
    true_look_up = Part.look_up

    async def look_up(part: Part, index: IndexId, key: Any) -> None:
        nonlocal looked
        looked += 1
        await true_look_up(part, index, key)

    monkeypatch.setattr(Part, "look_up", look_up)
    by_text = IndexId(31)
    columns = (ShardColumn(attnum=1, type=P(kind="int64")), ShardColumn(attnum=2, type=P(kind="text")))
    spec = ShardSpec(
        shard=SHARD, version=1, columns=columns,
        indexes=(ShardIndex(index=by_text, attnums=(2,), unique=True, primary=True),),
    )  # fmt: skip

    def text(n: int) -> str:
        return "".join(("x" * 300, str(n), "y" * 300))  # each time another object

    async def go() -> None:
        store = await open_memory_store()
        txn = store.begin()
        await now(txn.begin_write([]))
        txn.create_shard(spec)
        await now(txn.insert(SHARD, [(n, text(n)) for n in range(9)]))
        await now(txn.commit())
        if flushed:
            await store.flush(SHARD)
        for n in (3, 11):
            reader = store.begin(read_only=True)
            found = await now(reader.lookup(SHARD, by_text, [(text(n),)]))
            assert [row.values for row in found] == [(n, text(n))] * (n < 9)
            reader.rollback()
        for n in (3, 11):
            txn = store.begin()
            await now(txn.begin_write([SHARD]))
            if n == 3:
                with pytest.raises(DuplicateKey) as refused:
                    await now(txn.insert(SHARD, [(n, text(n))]))
                assert refused.value.key == (text(3),)
            else:
                await now(txn.insert(SHARD, [(n, text(n))]))
            txn.next_statement()
            (row,) = await now(txn.lookup(SHARD, by_text, [(text(5),)]))
            await now(txn.update(SHARD, [(row.row_id, (5, text(50)))]))
            txn.next_statement()
            assert await now(txn.lookup(SHARD, by_text, [(text(5),)])) == []
            found_or_id = await now(txn.insert_unless(SHARD, (7, text(7)), [by_text]))
            assert found_or_id.values == (7, text(7))
            with pytest.raises(DuplicateKey):
                await now(txn.insert(SHARD, [(1, text(50))]))
            txn.rollback()
        assert bool(looked) is flushed
        for part in store.core.shards[SHARD].latest.generation.parts:
            assert not part.file._known
        store.validate()
        await store.close()

    run(go)
