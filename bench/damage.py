"""The damage proof: ``python -m bench.damage [--flips 500] [--seed 1]``.

A server fills a small data directory with everything there is (parts, sidecars, ends, write sets in blobs, an index built
online, a log and its write-ahead file) and is killed. Then, over and over, one file of a copy is damaged (a byte flips, one in
eight times the file is cut short or goes) and the copy is opened and asked::

    every table, by scan, by key and by index, in both executors     the right answer, or XX001 that names a file
    a row into every table, CHECKPOINT                               the same
    a start that is refused                                          names a file, and changes nothing

A wrong answer, another error, an exception and the end of the process are problems. What SQLite's write-ahead file holds of
the very last transactions is the exception (docs/internals/storage.md): rows of table ``newest`` may be missing, and are counted.

Each copy is opened in a process of its own (fork), so that a crash of a library is seen as well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from tests.support.server import ServerProcess

TABLES = ("plain", "changed", "wide")
NEWEST = 4
_FILE = re.compile(r"\b(?:blobs/\d+/[\w.-]+|log\.sqlite)")  # as called within the data directory
Answers = dict[str, list[tuple[str | None, ...]]]


def fill(data: Path) -> None:
    """Make a data directory and kill its server."""
    server = ServerProcess(data, "--flush-rows", "400", odd={"HFTEST_SMALL": "1"})
    client = server.connect()
    for table in TABLES:
        client.run(f"CREATE TABLE {table} (id int PRIMARY KEY, n int, t text, d numeric(10,2), a int[])")
        client.run(
            f"INSERT INTO {table} SELECT i, i % 17, 'text ' || i, i * 1.5, ARRAY[i, 2] FROM generate_series(1, 900) AS g (i)"
        )
    client.run("CREATE INDEX changed_n ON changed (n)")
    client.run("CHECKPOINT")
    client.run("UPDATE changed SET t = 'new' WHERE id % 2 = 0")
    client.run("DELETE FROM changed WHERE id % 9 = 0")
    client.run("CHECKPOINT")
    client.run(
        "INSERT INTO wide SELECT i, i, repeat('w', 400), 1, NULL FROM generate_series(2001, 2300) AS g (i)"
    )
    client.run("ALTER TABLE plain ADD COLUMN added int DEFAULT 3")
    for number in range(5):
        client.run(f"UPDATE plain SET n = {number} WHERE id = {number + 1}")
        client.run(f"DELETE FROM wide WHERE id = {number + 1}")
    client.run("CREATE TABLE newest (id int PRIMARY KEY)")
    client.run("CHECKPOINT")
    client.run("UPDATE wide SET n = 5 WHERE id = 77")
    for number in range(NEWEST):
        client.run(f"INSERT INTO newest VALUES ({number})")
    server.kill()


def questions() -> dict[str, tuple[str, str]]:
    """Return queries with the executor of each, by name."""
    found = {}
    for table in TABLES:
        for executor in ("index", "local"):
            found[f"{table} {executor}"] = (
                executor, f"SELECT count(*), sum(n), min(t), max(t), sum(d), count(a) FROM {table}"
            )  # fmt: skip
        found[f"{table} keys"] = ("index", f"SELECT * FROM {table} WHERE id IN (1, 77, 450, 899, 2222)")
    found["changed n"] = ("index", "SELECT id, t FROM changed WHERE n = 7 ORDER BY id")
    found["shape"] = (
        "index",
        "SELECT relname, relnatts FROM pg_class WHERE relname IN ('plain', 'changed', 'wide') ORDER BY 1",
    )
    return found


async def ask(data: Path, expected: Answers | None) -> tuple[str, list[str], Answers]:
    """Open the directory and ask everything; return what became of it, the problems, and the answers."""
    from engine.base.config import add_arguments, load
    from engine.server.database import Database
    from tests.support.engine import Failed, Session
    from txn.base.errors import TxnError

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    config = load(
        parser.parse_args(["--data-dir", str(data), "--spark-start", "off", "--flush-rows", "400"]), {}
    )
    try:
        database = await Database.open(config)
    except TxnError as error:
        named = str(data) in str(error)
        return "start refused", [] if named else [f"a refusal names no file: {error!r}"], {}
    session = Session(database, 1)
    answers: Answers = {}
    problems: list[str] = []
    named = lost = False

    async def attempt(name: str, work: Callable[[], Awaitable[list[tuple[str | None, ...]]]]) -> None:
        nonlocal named
        try:
            answers[name] = await work()
        except Failed as failed:
            report = failed.report
            if report.sqlstate == "XX001" and _FILE.search(f"{report.message} {report.detail}"):
                named = True
            elif "whose names cannot be read" in (report.detail or ""):
                named = True  # of its row nothing is left
            else:
                problems.append(f"{name}: {failed}")

    for name, (executor, query) in questions().items():
        await session.run(f"SET executor = '{executor}'")
        await attempt(name, partial(session.run, query))
        fenced = name == "shape" and await session.run("SELECT object FROM holdfast_unreadable_objects")
        if expected is not None and name in answers and answers[name] != expected[name] and not fenced:
            problems.append(f"{name}: {answers[name]} instead of {expected[name]}")
    await session.run("SET executor = 'auto'")
    await attempt("newest", partial(session.run, "SELECT id FROM newest ORDER BY id"))
    if answers.get("newest", expected and expected["newest"]) != [(str(n),) for n in range(NEWEST)]:
        lost = True
        if answers["newest"] != [(str(n),) for n in range(len(answers["newest"]))]:
            problems.append(f"newest: {answers['newest']}")
    for number, table in enumerate((*TABLES, "newest")):
        insert = f"INSERT INTO {table} (id) VALUES ({100_000 + number})"
        await attempt(f"insert {table}", partial(session.run, insert))
    await attempt("checkpoint", partial(session.run, "CHECKPOINT"))
    await database.close()
    return "named" if named else "newest commits lost" if lost else "right", problems, answers


def opened(data: Path, expected: Answers | None) -> tuple[str, list[str], Answers]:
    """As ``ask``, in a process of its own; its death is a problem."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            result = asyncio.run(asyncio.wait_for(ask(data, expected), 120))
        except BaseException as error:
            result = "failed", [f"an exception: {error!r}"], {}
        with os.fdopen(writing, "w") as pipe:
            json.dump(result, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if status or not text:
        return "died", [f"the process ended with status {status}"], {}
    kind, problems, answers = json.loads(text)
    return kind, problems, {name: [tuple(row) for row in rows] for name, rows in answers.items()}


def damage(data: Path, rng: random.Random, within: str) -> tuple[Path, bytes | None, str]:
    """Damage a file of the folder ``within``; return it, what it holds now (None: nothing, it is gone) and what was done."""
    files = sorted(
        p
        for p in (data / within).rglob("*")
        if p.is_file() and p.stat().st_size and p.name not in ("lock", "log.sqlite-shm")
    )
    file = rng.choice(files)
    if not within and rng.random() < 0.3:
        file = rng.choice([p for p in files if p.name.startswith("log.sqlite")])
    good = file.read_bytes()
    if rng.random() < 0.125 and not file.name.endswith("-wal"):
        at = rng.randrange(-1, len(good))
        if at < 0:
            file.unlink()
            return file, None, "removed"
        file.write_bytes(good[:at])
        return file, good[:at], f"cut to {at} of {len(good)} bytes"
    at, bit = rng.randrange(len(good)), rng.randrange(8)
    bad = good[:at] + bytes((good[at] ^ (1 << bit),)) + good[at + 1 :]
    file.write_bytes(bad)
    return file, bad, f"bit {bit} of byte {at} of {len(good)}"


def run(flips: int, seed: int, folder: Path, within: str = "") -> list[str]:
    """Fill a directory, damage so many copies and return the problems; prints figures."""
    import engine.server.database  # noqa: F401 - before the first fork

    rng = random.Random(seed)
    started = time.perf_counter()
    original, copy = folder / "original", folder / "copy"
    fill(original)

    def fresh() -> None:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(original, copy)
        (copy / "log.sqlite-shm").unlink(missing_ok=True)

    fresh()
    kind, problems, expected = opened(copy, None)
    if kind != "right" or problems:
        problems = [f"the undamaged directory: {kind} {problems}"]
        print(problems[0])
        return problems
    kinds: Counter[str] = Counter()
    by_file: Counter[str] = Counter()
    for number in range(1, flips + 1):
        fresh()
        file, now, what = damage(copy, rng, within)
        kind, found, _ = opened(copy, expected)
        kinds[kind] += 1
        by_file[("log" if file.name.startswith("log.") else file.suffix) + ": " + kind] += 1
        name = file.relative_to(copy)
        there = file.read_bytes() if file.exists() else None
        if kind == "start refused" and there != now:
            found.append("a refused start has changed the file")
        if kind == "named" and not file.name.startswith("log.") and there != now:
            found.append("the damaged file was changed")
        problems += [f"flip {number}, {name}, {what}: {problem}" for problem in found]
        if found:
            print(problems[-1][:1000], flush=True)
    print(
        f"{flips} damaged copies, seed {seed}, {time.perf_counter() - started:.0f} s: {len(problems)} problems; "
        + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    )
    for name, count in sorted(by_file.items()):
        print(f"  {name} {count}")
    return problems


def main() -> int:
    """Run the proof; 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(prog="bench.damage", description=__doc__)
    parser.add_argument("--flips", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--within", default="", help="a folder of the data directory, as blobs/1, the catalog"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-damage-") as folder:
        return 1 if run(arguments.flips, arguments.seed, Path(folder), arguments.within) else 0


if __name__ == "__main__":
    sys.exit(main())
