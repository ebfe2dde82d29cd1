"""Large objects: what pages become, and transactions side by side (what statements answer is compared in tests/differential)."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import asyncpg
import pytest

from engine.session.large_objects.pages import PAGE_BYTES, cut, read, written
from engine.session.large_objects.shards import CHUNK_ROWS
from tests.support.server import ServerProcess

PIECE_BYTES = CHUNK_ROWS * PAGE_BYTES  # handled in one turn of the event loop


def test_pages_hold_what_a_string_of_bytes_would() -> None:
    rng = random.Random(7)
    pages: dict[int, bytes] = {}
    model = b""
    for _ in range(400):
        offset = rng.randrange(6 * PAGE_BYTES)
        if rng.random() < 0.3:
            last, within = divmod(offset, PAGE_BYTES)
            pages = {n: page for n, page in pages.items() if n < last} | {last: cut(pages.get(last), within)}
            model = model[:offset].ljust(offset, b"\0")
        else:
            data = rng.randbytes(rng.randrange(1, 3 * PAGE_BYTES))
            pages |= written(pages, offset, data)
            model = model[:offset].ljust(offset, b"\0") + data + model[offset + len(data) :]
        assert all(len(page) <= PAGE_BYTES for page in pages.values())
        start, count = rng.randrange(len(model) + 1), rng.randrange(4 * PAGE_BYTES)
        first = start // PAGE_BYTES
        assert (
            read(sorted((n, p) for n, p in pages.items() if n >= first), start, count)
            == model[start : start + count]
        )


def test_two_writers_of_an_object_follow_each_other(server: ServerProcess) -> None:
    async def main() -> None:
        one, two = [await asyncpg.connect(server.url) for _ in range(2)]
        await one.execute("SELECT lo_from_bytea(801, '\\x0000')")
        async with one.transaction():
            await one.execute("SELECT lo_put(801, 0, '\\x01')")
            other = asyncio.ensure_future(two.execute("SELECT lo_put(801, 1, '\\x02')"))
            await asyncio.sleep(0.2)
            assert not other.done()
            assert await one.fetchval("SELECT lo_get(801)") == b"\1\0"
        await other
        assert await one.fetchval("SELECT lo_get(801)") == b"\1\2"
        gone = two.transaction()
        await gone.start()
        await two.execute("SELECT lo_unlink(801)")
        waiting = asyncio.ensure_future(one.execute("SELECT lo_put(801, 0, 'late')"))
        await asyncio.sleep(0.1)
        await gone.commit()
        with pytest.raises(asyncpg.UndefinedObjectError, match="large object 801 does not exist"):
            await waiting
        for connection in (one, two):
            await connection.close()

    asyncio.run(main())


def test_a_large_one_is_the_string_of_bytes_that_was_written(server: ServerProcess) -> None:
    """Work over many pages is done in pieces: writes and reads begin and end anywhere in them."""

    async def main() -> None:
        connection = await asyncpg.connect(server.url)
        rng = random.Random(3)
        model = rng.randbytes(5 * PIECE_BYTES + 1234)
        await connection.execute("SELECT lo_from_bytea(804, $1)", model)
        for offset, count in (
            (1, 2 * PIECE_BYTES),
            (PIECE_BYTES - 1, 2),
            (3 * PIECE_BYTES + 700, 3 * PIECE_BYTES),
        ):
            data = rng.randbytes(count)
            await connection.execute("SELECT lo_put(804, $1, $2)", offset, data)
            model = model[:offset] + data + model[offset + count :]
        assert await connection.fetchval("SELECT lo_get(804)") == model
        for offset, count in ((0, PIECE_BYTES + 1), (PIECE_BYTES - 3, 2 * PIECE_BYTES), (len(model) - 5, 99)):
            wanted = model[offset : offset + count]
            assert await connection.fetchval("SELECT lo_get(804, $1, $2)", offset, count) == wanted
        async with connection.transaction():
            await connection.execute("SELECT lo_truncate(lo_open(804, 131072), $1)", PIECE_BYTES + 7)
        assert await connection.fetchval("SELECT lo_get(804)") == model[: PIECE_BYTES + 7]
        await connection.execute("SELECT lo_unlink(804)")
        await connection.close()

    asyncio.run(main())


def test_a_block_reads_one_moment_and_writes_the_present(server: ServerProcess) -> None:
    async def main() -> None:
        reader, writer = [await asyncpg.connect(server.url) for _ in range(2)]
        await writer.execute("SELECT lo_from_bytea(802, 'old')")
        block = reader.transaction(isolation="serializable")
        await block.start()
        assert await reader.fetchval("SELECT lo_get(802)") == b"old"
        await writer.execute("SELECT lo_put(802, 0, 'new')")
        fd = await reader.fetchval("SELECT lo_open(802, 262144)")
        assert await reader.fetchval("SELECT loread($1, 10)", fd) == b"old"
        with pytest.raises(asyncpg.SerializationError) as raised:
            await reader.execute("SELECT lo_put(802, 3, '!')")
        assert 'Table "pg_largeobject" was changed' in raised.value.detail
        await block.rollback()
        async with reader.transaction(readonly=True):
            with pytest.raises(
                asyncpg.ReadOnlySQLTransactionError, match=r"cannot execute lo_create\(\) in a"
            ):
                await reader.execute("SELECT lo_create(803)")
        await writer.execute("SELECT lo_unlink(802)")
        for connection in (reader, writer):
            await connection.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DECLARE c CURSOR WITH HOLD FOR SELECT lo_create(0)", "a function that changes data in a cursor is not supported"),
        ("COPY (SELECT lo_create(0)) TO STDOUT", "a function that changes data in COPY is not supported"),
        ("CREATE TABLE made AS SELECT lo_create(0) AS o", "a function that changes data in this statement is not supported"),
        ("SELECT lo_import('/etc/hostname')", 'permission denied to read server file "/etc/hostname"'),
    ],
)  # fmt: skip
def test_what_is_refused(server: ServerProcess, statement: str, message: str) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(server.url)
        with pytest.raises(asyncpg.PostgresError) as raised:
            await connection.execute(statement)
        assert str(raised.value.args[0]) == message
        await connection.close()

    asyncio.run(main())


def test_files_are_for_who_may_use_them_and_the_object(server: ServerProcess, tmp_path: Path) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(server.url)
        await connection.execute("SELECT lo_from_bytea(805, 'bytes')")
        for role, group in (("lo_reads", "pg_read_server_files"), ("lo_writes", "pg_write_server_files")):
            await connection.execute(f"CREATE ROLE {role}; GRANT {group} TO {role}")
        for role, statement, message in (
            (
                "lo_reads",
                f"SELECT lo_export(805, '{tmp_path}/out')",
                "permission denied for function lo_export",
            ),
            ("lo_reads", f"SELECT lo_import('{tmp_path}/in')", f'could not open server file "{tmp_path}/in"'),
            ("lo_writes", f"SELECT lo_import('{tmp_path}/in')", "permission denied for function lo_import"),
            (
                "lo_writes",
                f"SELECT lo_export(805, '{tmp_path}/out')",
                "permission denied for large object 805",
            ),
        ):
            await connection.execute(f"SET ROLE {role}")
            with pytest.raises(asyncpg.PostgresError) as raised:
                await connection.execute(statement)
            assert str(raised.value.args[0]).startswith(message)
        await connection.execute(
            "RESET ROLE; GRANT SELECT ON LARGE OBJECT 805 TO lo_writes; SET ROLE lo_writes"
        )
        await connection.execute(f"SELECT lo_export(805, '{tmp_path}/out')")
        assert (tmp_path / "out").read_bytes() == b"bytes"
        await connection.execute("RESET ROLE; SELECT lo_unlink(805); DROP ROLE lo_reads, lo_writes")
        await connection.close()

    asyncio.run(main())
