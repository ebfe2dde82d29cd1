"""What a newer server wrote is refused at the start, by the name and the format of what is not known; data files stay as they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest
from msgspec.msgpack import Ext

from pgwire.bounded import bounded, row_keeps_bounds
from pgwire.codecs import domain
from pgwire.codecs.errors import DataError
from pgwire.codecs.users.composite import pack_row, unpack_row
from tests.support.durable import run, two_column_spec
from tests.support.physical import same
from tests.txn.durable.shadow import Shadow
from tests.txn.durable.test_encode import batch_of, row_write
from tests.txn.durable.test_recovery import in_folder
from txn.base.errors import UnknownFormat
from txn.base.types import PhysicalType, ShardColumn, ShardId, ShardSpec
from txn.values.encoding import decode_batch, decode_entry, decode_spec, encode_batch, encode_spec

NEW = Ext(6, b"new")
"""A value of a kind that nobody knows yet."""


def crc_of_format(number: int) -> int:
    return crc32(bytes([number]))


NEWER: dict[str, tuple[Mapping[str, Any], str]] = {
    "directory": ({"txn.log.leadership.DIRECTORY_FORMAT": 2}, "holdfast data directory, format 2"),
    "part": (
        {
            "txn.persist.parts.write._format_of": lambda _table, _spec: b"5",
            "txn.persist.parts.part._KNOWN": (b"5",),
        },
        r"\.parquet has format b'5'",
    ),
    "sidecar": ({"txn.persist.parts.sidecar._FORMAT": 4}, r"\.sys is a sidecar of format 4"),
    "register": (
        {"txn.persist.checksum.FORMAT_BYTE": b"\x04", "txn.persist.checksum.SEED": crc_of_format(4)},
        "register .* has format 04",
    ),
    "log entry": (
        {"txn.values.encoding.ENTRY_FORMAT_BYTE": b"\x05", "txn.values.encoding.SEED": crc_of_format(5)},
        "log.* has format 05",
    ),
    "log file": ({}, r"log\.sqlite has format 3"),
    "value": ({}, "log.* extension type 6"),
}


@pytest.mark.parametrize("what", NEWER)
def test_each_format_one_higher_is_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patches, said = NEWER[what]

    async def body() -> None:
        path = tmp_path / "db"
        with monkeypatch.context() as newer:
            for name, value in patches.items():
                newer.setattr(name, value)
            shadow = await Shadow.start(await in_folder(path))
            await shadow.create(two_column_spec())
            await shadow.log.committer.submit(shadow.writes(10, (1, (1, "a"))))
            if what in ("part", "sidecar"):
                await shadow.flush()
            if what == "value":
                await shadow.log.committer.submit(shadow.writes(11, (2, (2, NEW))))
            await shadow.log.close()
        if what == "log file":
            with closing(sqlite3.connect(path / "log.sqlite")) as db:
                db.execute("PRAGMA user_version = 3")
        before = files(path)
        with pytest.raises(UnknownFormat, match=said):
            await started(path)
        assert files(path) == before

    run(body)


async def started(path: Path) -> None:
    """Start on a directory, and stop."""
    log = await in_folder(path)
    try:
        await Shadow.start(log)
    finally:
        await log.close()


def files(path: Path) -> dict[str, bytes]:
    """Return what is in the data files and in FORMAT."""
    found = [p for p in path.rglob("*") if p.is_file() and ("blobs" in p.parts or p.name == "FORMAT")]
    return {str(p.relative_to(path)): p.read_bytes() for p in found}


def test_an_unknown_value_is_refused_by_the_name_of_what_holds_it() -> None:
    for value in (NEW, (1, NEW)):
        with pytest.raises(UnknownFormat, match=r"entry 7 cannot be read: .* extension type 6"):
            decode_entry(encode_batch(batch_of(row_write(1, value))), "entry 7")
    column = ShardColumn(attnum=1, type=PhysicalType(kind="int32"), missing_value=NEW)
    spec = ShardSpec(shard=ShardId(7), version=1, columns=(column,), indexes=())
    with pytest.raises(UnknownFormat, match=r"schema of 7 cannot be read: .* extension type 6"):
        decode_spec(encode_spec(spec), "schema of 7")
    with pytest.raises(UnknownFormat, match="schema of 7 has format 02"):
        decode_spec(b"\x02" + encode_spec(spec)[1:], "schema of 7")


def test_an_unknown_value_inside_a_row_is_refused() -> None:
    tail = msgspec.msgpack.encode([1, Ext(3, b"12")])
    with pytest.raises(DataError, match="unknown extension type 3"):
        unpack_row(b"key" + tail + len(tail).to_bytes(4, "big"))


INTS = domain.ELEMENT_ARRAY[domain.INT4]


@pytest.mark.parametrize("width", [2, 15, 16, 300])
def test_rows_with_lower_bounds_say_so(width: int) -> None:
    """In the log and in schemas they are of a kind of their own; as what they are, they would be taken for what they are not."""
    plain = pack_row([1, (1, 2)], [0, 1], [domain.INT4, INTS], width)
    marked = pack_row([1, bounded((1, 2), (0,))], [0, 1], [domain.INT4, INTS], width)
    assert not row_keeps_bounds(plain)
    assert row_keeps_bounds(marked)
    assert unpack_row(plain) == [1, (1, 2), *[None] * (width - 2)]
    assert unpack_row(marked) == [1, bounded((1, 2), (0,)), *[None] * (width - 2)]
    for values in ((7, marked), (marked, plain), ((marked, plain), None)):
        batch = batch_of(row_write(*values))
        data = encode_batch(batch)
        assert b"\x04" + marked in data
        assert b"\x04" + plain not in data
        assert same(decode_batch(data), batch)
    column = ShardColumn(attnum=1, type=PhysicalType(kind="tailed"), missing_value=marked)
    spec = ShardSpec(shard=ShardId(7), version=1, columns=(column,), indexes=())
    assert b"\x04" + marked in encode_spec(spec)
    assert decode_spec(encode_spec(spec)) == spec


def test_other_bytes_are_not_marked() -> None:
    for value in (b"", b"\0\0\0\1", b"\xdd\0\0", bytes(3), b"\xff" * 9, b"\xdd\0\0\0\0\0\0\0\x09"):
        assert not row_keeps_bounds(value), value
        assert same(decode_batch(encode_batch(batch_of(row_write(value)))), batch_of(row_write(value)))
