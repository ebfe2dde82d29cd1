"""pg_read_file, pg_read_binary_file and pg_stat_file over files below ``server_files``: PostgreSQL's values and errors."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from tests.support.server import ServerProcess


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("read")
    (made / "a.txt").write_bytes(b"hello\nworld\n")
    (made / "bad").write_bytes(b"\xff\xfe")
    (made / "nul").write_bytes(b"a\0b")
    (made / "big").write_bytes(b"x" * 3_000_000)
    (made / "away").symlink_to("/etc/hostname")
    return made


ANSWERS = [
    ("pg_read_file('{f}/a.txt')", "hello\nworld\n"),
    ("pg_read_file('{f}/a.txt', 2, 5)", "llo\nw"),
    ("pg_read_file('{f}/a.txt', -4, 3)", "rld"),
    ("pg_read_file('{f}/a.txt', 100, 5)", ""),
    ("pg_read_file('{f}/a.txt', 0, 1000000)", "hello\nworld\n"),
    ("pg_read_file('{f}/a.txt', 0, 0)", ""),
    ("pg_read_binary_file('{f}/bad')", b"\xff\xfe"),
    ("pg_read_binary_file('{f}/nul', 1, 2)", b"\0b"),
    ("pg_read_file('{f}/none', 0, 1, true)", None),
    ("length(pg_read_file('{f}/big'))", 3_000_000),
    ("length(pg_read_binary_file('{f}/big', -5, 100))", 5),
    ("(pg_stat_file('{f}/big')).size", 3_000_000),
    ("(pg_stat_file('{f}/a.txt')).creation", None),
    ("(pg_stat_file('{f}')).isdir", True),
    ("(pg_stat_file('.')).isdir", True),
    ("(pg_stat_file('{f}/a.txt')).modification < now()", True),
    ("pg_stat_file('{f}/none', true) IS NULL", True),
]
ERRORS = [
    ("pg_read_file('{f}/a.txt', 0, -1)", "22023", "requested length cannot be negative"),
    ("pg_read_file('{f}/a.txt', -400, 3)", "22023", 'could not seek in file "{f}/a.txt": Invalid argument'),
    ("pg_read_file('{f}/bad')", "22021", 'invalid byte sequence for encoding "UTF8": 0xff'),
    ("pg_read_file('{f}/nul')", "22021", 'invalid byte sequence for encoding "UTF8": 0x00'),
    (
        "pg_read_file('{f}/none')",
        "58P01",
        'could not open file "{f}/none" for reading: No such file or directory',
    ),
    ("pg_read_file('{f}')", "42809", 'could not read file "{f}": Is a directory'),
    ("pg_stat_file('{f}/none')", "58P01", 'could not stat file "{f}/none": No such file or directory'),
    # what is not below server_files is nobody's, be it reached by a link
    ("pg_read_file('/etc/hostname')", "42501", 'permission denied to read server file "/etc/hostname"'),
    ("pg_read_file('{f}/away')", "42501", 'permission denied to read server file "{f}/away"'),
    (
        "pg_read_file('{f}/../../../../x')",
        "42501",
        'permission denied to read server file "{f}/../../../../x"',
    ),
    ("pg_stat_file('/etc')", "42501", 'permission denied to read server file "/etc"'),
]


def test_files_are_read_as_postgresql_reads_them(server: ServerProcess, folder: Path) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(server.url)
        for asked, answer in ANSWERS:
            assert await connection.fetchval(f"SELECT {asked.format(f=folder)}") == answer, asked
        for asked, sqlstate, message in ERRORS:
            with pytest.raises(asyncpg.PostgresError) as caught:
                await connection.fetchval(f"SELECT {asked.format(f=folder)}")
            assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message.format(f=folder)), (
                asked
            )
        await connection.close()

    asyncio.run(main())


def test_who_may_read(server: ServerProcess, folder: Path) -> None:
    """Superusers and members of pg_read_server_files: nobody else, whatever the path."""

    async def main() -> None:
        connection = await asyncpg.connect(server.url)
        await connection.execute(
            "CREATE ROLE rf_reads; GRANT pg_read_server_files TO rf_reads; CREATE ROLE rf_other; SET ROLE rf_reads"
        )
        assert await connection.fetchval(f"SELECT pg_read_file('{folder}/a.txt')") == "hello\nworld\n"
        await connection.execute("SET ROLE rf_other")
        for asked in ("pg_read_file", "pg_read_binary_file", "pg_stat_file"):
            with pytest.raises(
                asyncpg.InsufficientPrivilegeError, match=f"permission denied for function {asked}"
            ):
                await connection.fetchval(f"SELECT {asked}('{folder}/a.txt')")
        await connection.close()

    asyncio.run(main())
