"""Bytes of an object store that came damaged, and local copies that were damaged later: fetched anew, compared, and only then damage.

on the way    once: the right bytes are read;  each time otherwise: 58030, not remembered;  each time alike: damage
in the cache  flipped, cut short, removed: fetched anew
in the store  damage, which the part remembers
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.durable import run, two_column_spec
from tests.support.stand_in_store import StandInStore, stand_in_blob
from txn.base.errors import CopyDamaged, DamagedFile, MissingFile
from txn.base.types import IndexId, PartRef
from txn.persist import trouble
from txn.persist.blobs import objects
from txn.persist.blobs.objects import ObjectBlob
from txn.persist.location import StoreUnavailable, inline
from txn.persist.parts.part import Part, RowGroupCache, open_part, parquet_name, sidecar_name, system_name
from txn.persist.parts.salvage import examine
from txn.persist.parts.write import write_part
from txn.values.columns import rows_to_table

SPEC: Final = two_column_spec()
ROWS: Final = [(i, f"text {i}") for i in range(1, 301)]
NAME: Final = "7/1-part"
FILES: Final = {
    "parquet": parquet_name(NAME), "sys": system_name(NAME), "x1": sidecar_name(NAME, IndexId(1)),
    "x2": sidecar_name(NAME, IndexId(2)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PAUSE_S", 0.0)
    monkeypatch.setattr(trouble, "PAUSE_S", 0.0)


async def written(folder: Path) -> tuple[StandInStore, PartRef]:
    store = StandInStore()
    blob = stand_in_blob(str(folder / "writer"), store)
    table = rows_to_table(SPEC, ROWS, range(1, len(ROWS) + 1), [5] * len(ROWS))
    return store, await write_part(blob, inline, NAME, SPEC, table)


async def opened(folder: Path, store: StandInStore, ref: PartRef) -> tuple[ObjectBlob, Part]:
    blob = stand_in_blob(str(folder), store)
    return blob, await open_part(ref, blob, inline, RowGroupCache(0))


async def everything(part: Part) -> None:
    """Read all of a part, each way; nothing that was decoded is kept."""
    found = [row async for _, rows in part.scan(SPEC) for row in rows]
    assert found == ROWS
    row = part.row(7, SPEC)
    assert (await row if inspect.isawaitable(row) else row) == ROWS[7]
    assert (await part.read_arrow()).num_rows == len(ROWS)
    await part.verify()
    for index, key in ((IndexId(1), (9,)), (IndexId(2), ("text 9",))):
        assert list(part.lookup(index, key)) == [8]


async def patiently(part: Part) -> None:
    """The same; what is being fetched anew is waited for, once for each sidecar."""
    for _ in range(3):
        try:
            return await everything(part)
        except CopyDamaged:
            await asyncio.gather(*part._renewing.values())
    raise AssertionError("fetched anew again and again")


def flipped(data: bytes, at: int | None = None) -> bytes:
    at = len(data) // 2 if at is None else at
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :] if data else data


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _garbled(data: bytes) -> bytes:
    """What pyarrow makes of an answer that is too short: the rest is whatever was in memory."""
    return data[: len(data) // 2] + os.urandom(len(data) - len(data) // 2)


SPOILT: Final[dict[str, Callable[[bytes], bytes]]] = {"flipped": flipped, "cut": _cut, "garbled": _garbled}


@pytest.mark.parametrize("how", SPOILT)
def test_each_transfer_may_be_spoilt_once(how: str, tmp_path: Path) -> None:
    async def body() -> None:
        store, ref = await written(tmp_path)
        store.asked.clear()
        _, part = await opened(tmp_path / "right", store, ref)
        await everything(part)
        transfers = store.asked.count("GET")
        assert transfers > 4
        for wrong in range(transfers):
            left = wrong

            def spoil(data: bytes) -> bytes:
                nonlocal left
                left -= 1
                return SPOILT[how](data) if left == -1 else data

            store.spoil = spoil
            _, part = await opened(tmp_path / f"{wrong}", store, ref)
            await everything(part)
            assert left < 0
            assert part.damage is None

    run(body)


def test_what_comes_otherwise_each_time_is_trouble_on_the_way(tmp_path: Path) -> None:
    async def body() -> None:
        store, ref = await written(tmp_path)
        blob, part = await opened(tmp_path / "cache", store, ref)
        store.spoil = _garbled
        for work in (lambda: everything(part), lambda: blob.get(FILES["x1"]), lambda: blob.hold(FILES["parquet"]),
                     lambda: opened(tmp_path / "other", store, ref)):  # fmt: skip
            with pytest.raises(StoreUnavailable, match="in another way"):
                await work()
        store.spoil = _cut
        with pytest.raises(StoreUnavailable):  # shorter than the store says it is: no damage either
            await blob.hold(FILES["parquet"])
        store.spoil = lambda data: data
        await everything(part)
        assert part.damage is None

    run(body)


def _flip_file(path: str) -> None:
    data = Path(path).read_bytes()
    os.unlink(path)  # what is mapped stays as it was
    Path(path).write_bytes(flipped(data))


def _cut_file(path: str) -> None:
    data = Path(path).read_bytes()
    os.unlink(path)
    Path(path).write_bytes(_cut(data))


def _flip_in_place(path: str) -> None:
    data = Path(path).read_bytes()
    with open(path, "r+b") as file:
        file.write(flipped(data))


DAMAGES: Final = {"flipped": _flip_file, "cut": _cut_file, "removed": os.unlink, "in place": _flip_in_place}


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("file", FILES)
def test_a_copy_that_is_damaged_is_fetched_anew(file: str, how: str, tmp_path: Path) -> None:
    def damage(blob: ObjectBlob) -> None:
        path = blob.local_path(FILES[file])
        if os.path.exists(path):  # the system sidecar is read, and fetched anew, when its part is opened
            DAMAGES[how](path)

    async def body() -> None:
        store, ref = await written(tmp_path)
        blob, part = await opened(tmp_path / "cache", store, ref)
        held = await blob.hold(FILES["parquet"])
        for _ in range(2):  # not once for all
            damage(blob)
            for index in (IndexId(1), IndexId(2)):
                part.forget_sidecar(index)
            part.verified = False
            await patiently(part)
            assert part.damage is None
        damage(blob)
        again = await open_part(ref, blob, inline, RowGroupCache(0))
        await patiently(again)
        assert again.damage is None
        damage(blob)
        assert examine(ref, SPEC, blob) is None
        del held

    run(body)


def test_keys_as_arrays_wait_for_their_copy(tmp_path: Path) -> None:
    async def body() -> None:
        store, ref = await written(tmp_path)
        blob, part = await opened(tmp_path / "cache", store, ref)
        _flip_file(blob.local_path(FILES["x2"]))
        found = await asyncio.to_thread(part.sorted_keys, IndexId(2))
        assert len(found.keys) == len(ROWS)
        assert part.damage is None

    run(body)


def test_a_store_that_is_away_leaves_a_damaged_copy_for_later(tmp_path: Path) -> None:
    async def body() -> None:
        store, ref = await written(tmp_path)
        blob, part = await opened(tmp_path / "cache", store, ref)
        _flip_file(blob.local_path(FILES["x2"]))

        def away(request: str) -> None:
            raise OSError(
                "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 28, Timeout was reached"
            )

        store.faults = away
        for _ in range(3):
            with pytest.raises(CopyDamaged):
                part.lookup(IndexId(2), ("text 9",))
            await asyncio.gather(*part._renewing.values())
        store.faults = lambda request: None
        await patiently(part)
        assert part.damage is None

    run(body)


@pytest.mark.parametrize("file", FILES)
def test_what_is_damaged_in_the_store_is_damage(file: str, tmp_path: Path) -> None:
    async def body() -> None:
        store, ref = await written(tmp_path)
        key = f"bucket/db/{FILES[file]}"
        data, kind = store.objects[key]
        for at, stored in enumerate((flipped(data), flipped(data, 8 + len(data) // 3))):
            store.objects[key] = (stored, kind)
            store.asked.clear()

            async def use(at: int = at) -> None:
                _, part = await opened(tmp_path / f"{at}", store, ref)
                await patiently(part)

            with pytest.raises(DamagedFile) as met:
                await use()
            assert not isinstance(met.value, MissingFile)
            assert store.asked.count("GET") < 40

    run(body)


def test_damage_under_a_right_checksum_is_remembered(tmp_path: Path) -> None:
    """The object is as it was uploaded, and was wrong then: fetching it again and again would not help."""

    async def body() -> None:
        store, ref = await written(tmp_path)
        key = f"bucket/db/{FILES['x2']}"
        store.objects[key] = (flipped(store.objects[key][0]), "application/octet-stream")
        _, part = await opened(tmp_path / "cache", store, ref)
        with pytest.raises(DamagedFile):
            await patiently(part)
        assert part.damage is not None
        store.asked.clear()
        with pytest.raises(DamagedFile):
            part.lookup(IndexId(2), ("text 9",))
        await asyncio.sleep(0)
        assert store.asked == []

    run(body)


def test_a_sidecar_that_no_store_has_is_missing(tmp_path: Path) -> None:
    async def body() -> None:
        store, ref = await written(tmp_path)
        del store.objects[f"bucket/db/{FILES['x2']}"]
        _, part = await opened(tmp_path / "cache", store, ref)
        with pytest.raises(CopyDamaged):
            part.lookup(IndexId(2), ("text 9",))
        await asyncio.gather(*part._renewing.values())
        with pytest.raises(MissingFile):
            part.lookup(IndexId(2), ("text 9",))
        assert part.damage is None

    run(body)
