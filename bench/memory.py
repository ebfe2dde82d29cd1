"""Peaks of memory under attack: ``python -m bench.memory [--only WORD] [--json FILE]``.

    server, fresh for each attack, on the data directory of its group     PSS of it and its helpers, the JVM apart, every 30 ms
    client: sends, and reads nothing (``UNREAD_S``), or reads all and keeps nothing

    hostile   512 MB   results and notices that nobody reads, strings that double, values of 200 MB, settings
    stream    512 MB   2,000 rows of 1 MB, unread and read at full speed
    wide        1 GB   a table of 1,500 rows of 1 MB: read, copied, updated, cursors both ways, indexes, rewrites
    largest   512 MB   a table of values of an eighth of ``memory``: read, copied, updated, dumped, restored; larger ones are 53200
    bytea     512 MB   one bytea of an eighth, in text and binary
    looked at 512 MB   a million rows with RETURNING, triggers, referenced keys, actions; half an hour by itself
    rewritten 512 MB   what computes something of every row, over eight rows of an eighth and over two million

Every peak has to stay below 1.2 times ``memory``, and what an attack ends with has to be what its line here says. Some ten minutes, on a machine
with 4 GB free.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench.peaks import (
    EITHER,
    REFUSED,
    Attack,
    Group,
    Peak,
    at_once,
    dump_and_restore,
    fetches,
    reads,
    unread,
)
from bench.values import bytea, largest, looked_at, rewritten
from engine.base.config import parse_bytes
from sqllogictest.client import ServerError
from tests.hostile.long import tree_bytes
from tests.support.server import ServerProcess

FACTOR: Final = 1.2

LOOP: Final = "DO $$ DECLARE s text := 'x'; BEGIN LOOP {}; END LOOP; END $$"
WIDE: Final = "convert_to(repeat(md5(g::text), 32768), 'UTF8')"
BIG: Final = "SELECT repeat('x', 20000000 + g) AS a FROM generate_series(1, 4) g"


def hostile() -> Group:
    return Group("hostile", "512MB", reads("SELECT 1"), [
        Attack("unread repeat", unread("SELECT repeat('x', 1000000) FROM generate_series(1, 100000)")),
        Attack("unread repeat, eight clients", at_once(8, unread("SELECT repeat('x', 1000000 + g) FROM generate_series(1, 100000) g"))),
        Attack("unread notices", unread(LOOP.format("RAISE NOTICE '%', repeat('x', 1000000)"))),
        Attack("s := s || s", reads(LOOP.format("s := s || s")), REFUSED),
        Attack("s := s || s, eight clients", at_once(8, reads(LOOP.format("s := s || s"))), REFUSED),
        Attack("eight rows of 200 MB", reads("SELECT repeat('x', 200000000 + g) FROM generate_series(1, 8) g"), REFUSED),
        Attack("eight rows of 60 MB", reads("SELECT repeat('x', 60000000 + g) FROM generate_series(1, 8) g")),
        Attack("replace", reads("SELECT replace(repeat('x', 1000000 + g), 'x', repeat('y', 1000)) FROM generate_series(1, 3) g"), REFUSED),
        Attack("||", reads(f"SELECT a || a || a || a || a || a || a || a FROM ({BIG}) t"), REFUSED),
        Attack("concat", reads(f"SELECT concat(a, a, a, a, a, a, a, a) FROM ({BIG}) t"), REFUSED),
        Attack("string_agg", reads("SELECT string_agg(repeat('x', 1000000 + g), '') FROM generate_series(1, 1000) g"), REFUSED),
        Attack("array_to_string", reads("SELECT array_to_string(array_fill(repeat('x', 1000000), ARRAY[1000]), ',')"), REFUSED),
        Attack("convert_to", reads("SELECT length(convert_to(a, 'UTF8') || convert_to(a, 'LATIN1')) FROM (SELECT repeat('x', 60000000) AS a) t"), EITHER),
        Attack("set_config of 200 MB", reads(*(f"SELECT set_config('my.s{n}', repeat('x', 200000000), false)" for n in range(4))), REFUSED),
        Attack("set_config, many", reads(*(f"SELECT set_config('my.s{n}', repeat('x', 20000000), false)" for n in range(8))), REFUSED),
        Attack("a sort", reads("SELECT repeat('x', 1000000 + g) FROM generate_series(1, 2000) g ORDER BY 1"), REFUSED),
        Attack("rows of a transaction", reads("CREATE TABLE own (d text)", "BEGIN", *(f"INSERT INTO own VALUES (repeat('x', {20000000 + n}))" for n in range(8))), REFUSED),
    ])  # fmt: skip


def stream() -> Group:
    rows = "SELECT repeat('y', 1000000) FROM generate_series(1, 2000)"
    return Group("stream", "512MB", reads("SELECT 1"), [
        Attack("2,000 rows of 1 MB, unread", unread(rows)),
        Attack("2,000 rows of 1 MB, read", reads(rows)),
        Attack("2,000 different rows of 1 MB, read", reads("SELECT repeat('y', 1000000 + g) FROM generate_series(1, 2000) g")),
        Attack("COPY of them", reads("COPY (SELECT repeat('y', 1000000 + g) FROM generate_series(1, 2000) g) TO STDOUT")),
    ])  # fmt: skip


def wide(rows: int) -> Group:
    fill = f"INSERT INTO wide SELECT g, {WIDE}, 0 FROM generate_series(1, {rows}) g"
    return Group("wide", "1GB", reads("CREATE TABLE wide (id int PRIMARY KEY, d bytea, n int)", fill), [
        Attack("SELECT *", reads("SELECT * FROM wide")),
        Attack("SELECT *, unread", unread("SELECT * FROM wide")),
        Attack("COPY", reads("COPY wide TO STDOUT")),
        Attack("COPY binary", reads("COPY wide TO STDOUT (FORMAT binary)")),
        Attack("md5 of 300", reads("SELECT md5(d) FROM wide LIMIT 300")),
        Attack("md5 of all", reads("SELECT md5(d) FROM wide")),
        Attack("300 by id", reads("SELECT * FROM wide WHERE id <= 300")),
        Attack("each by id", reads(*(f"SELECT * FROM wide WHERE id = {n}" for n in range(1, 301)))),
        Attack("FETCH 50", fetches("SELECT * FROM wide", *("FETCH 50 FROM c" for _ in range(30)))),
        Attack("FETCH ALL, then backward", fetches("SELECT * FROM wide", "FETCH ALL FROM c", *("FETCH BACKWARD 50 FROM c" for _ in range(10)))),
        Attack("MOVE, then backward all", fetches("SELECT * FROM wide", "MOVE ALL FROM c", "FETCH BACKWARD ALL FROM c")),
        Attack("WITH HOLD", reads("BEGIN", "DECLARE h CURSOR WITH HOLD FOR SELECT * FROM wide", "COMMIT", "FETCH ALL FROM h", "CLOSE h")),
        Attack("a sort", reads("SELECT * FROM wide ORDER BY d"), EITHER),
        Attack("a sort by key", reads("SELECT * FROM wide ORDER BY n, id DESC"), EITHER),
        Attack("a group", reads("SELECT d, count(*) FROM wide GROUP BY d"), EITHER),
        Attack("a join", reads("SELECT a.d FROM wide a JOIN wide b USING (d)"), EITHER),
        Attack("a window", reads("SELECT lag(d) OVER (ORDER BY id) FROM wide"), EITHER),
        Attack("UPDATE of another column", reads("UPDATE wide SET n = n + 1")),
        Attack("UPDATE of the values", reads("UPDATE wide SET d = d || '\\x00'")),
        Attack("UPDATE … RETURNING *", reads("UPDATE wide SET n = n + 1 RETURNING *"), EITHER),
        Attack("UPDATE in a block", reads("BEGIN", "UPDATE wide SET n = n + 1", "UPDATE wide SET n = n + 1", "ROLLBACK"), EITHER),
        Attack("CREATE TABLE AS", reads("CREATE TABLE as_ AS SELECT * FROM wide", "DROP TABLE as_")),
        Attack("INSERT … SELECT", reads("CREATE TABLE sel (LIKE wide)", "INSERT INTO sel SELECT * FROM wide", "DROP TABLE sel")),
        Attack("INSERT … SELECT, partitions", reads(
            "CREATE TABLE pt (id int, d bytea, n int) PARTITION BY RANGE (id)",
            *(f"CREATE TABLE pt{n} PARTITION OF pt FOR VALUES FROM ({n * 500}) TO ({n * 500 + 500})" for n in range(4)),
            "INSERT INTO pt SELECT * FROM wide", "DROP TABLE pt")),
        Attack("materialized view", reads("CREATE MATERIALIZED VIEW mv AS SELECT * FROM wide", "REFRESH MATERIALIZED VIEW mv", "DROP MATERIALIZED VIEW mv")),
        Attack("MERGE", reads("MERGE INTO wide USING generate_series(1, 5000) g ON id = g WHEN MATCHED THEN UPDATE SET n = n + 1"), EITHER),
        Attack("ON CONFLICT", reads("INSERT INTO wide SELECT g, '\\x00', 0 FROM generate_series(1, 300) g ON CONFLICT (id) DO UPDATE SET n = wide.n + 1"), EITHER),
        Attack("data-modifying WITH", reads("WITH w AS (UPDATE wide SET n = n + 1 RETURNING *) SELECT count(*) FROM w"), EITHER),
        Attack("ALTER TABLE, rewritten", reads("ALTER TABLE wide ALTER n TYPE bigint", "ALTER TABLE wide ADD e int DEFAULT random() * 10")),
        Attack("CREATE INDEX", reads("CREATE INDEX wn ON wide (n)", "CREATE INDEX wm ON wide (md5(d))")),
        Attack("VACUUM, CHECKPOINT", reads("VACUUM wide", "CHECKPOINT")),
        Attack("four clients read", at_once(4, reads("SELECT * FROM wide"))),
        Attack("dump and restore", dump_and_restore("wide")),
        Attack("DELETE … RETURNING *", reads("BEGIN", "DELETE FROM wide RETURNING *", "ROLLBACK"), EITHER),
        Attack("DELETE", reads("DELETE FROM wide")),
    ])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figures:
    """What an attack came to. Memory in MB."""

    group: str
    attack: str
    memory_mb: int
    idle_mb: int
    peak_mb: int
    said: str
    seconds: float
    problem: str


def measure(group: Group, attack: Attack, folder: Path) -> Figures:
    """Start a server, do it, and look."""
    server = ServerProcess(folder, "--memory", group.memory)
    idle = tree_bytes(server.process.pid)
    peak = Peak(server.process.pid)
    peak.start()
    began = time.monotonic()
    try:
        said = attack.does(server)
    except (OSError, ServerError, TimeoutError) as error:
        said = f"lost: {error!r}"
    seconds = time.monotonic() - began
    most = peak.stop()
    ended = server.process.poll()
    server.kill()
    memory = parse_bytes(group.memory)
    problems = []
    if most > memory * FACTOR:
        problems.append(f"{most >> 20} MB, over {int(memory * FACTOR) >> 20}")
    if said not in attack.expect.split():
        problems.append(f"it said {said}")
    if ended is not None:
        problems.append(f"the server has ended with {ended}")
    return Figures(
        group.name, attack.name, memory >> 20, idle >> 20, most >> 20, said, round(seconds, 1), "; ".join(problems)
    )  # fmt: skip


def keep(path: Path, found: Sequence[Figures]) -> None:
    """Write what has been measured to a file."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    )
    kept = {
        "commit": commit.stdout.strip(),
        "machine": f"{os.cpu_count()} processors, {platform.machine()}",
        "unit": "MB of proportional set, server and helpers without the JVM",
        "figures": [asdict(figures) for figures in found],
    }
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.memory", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        help="groups or attacks whose 'group: attack' has this in it; may be repeated",
    )
    parser.add_argument("--rows", type=int, default=1500, help="of the wide table")
    parser.add_argument("--json", help="where to keep the figures")
    arguments = parser.parse_args()
    found: list[Figures] = []
    words = arguments.only or [""]
    with tempfile.TemporaryDirectory(prefix="holdfast-memory-") as folder:
        for group in (
            hostile(),
            stream(),
            wide(arguments.rows),
            largest(),
            bytea(),
            rewritten(),
            looked_at(),
        ):
            chosen = [a for a in group.attacks if any(word in f"{group.name}: {a.name}" for word in words)]
            if not chosen:
                continue
            for attack in (Attack("setup", group.setup), *chosen):
                figures = measure(group, attack, Path(folder) / group.name)
                found.append(figures)
                if arguments.json:
                    keep(Path(arguments.json), found)  # after each: the rest may fail
                print(
                    f"{figures.memory_mb:5} MB {group.name}: {attack.name}: {figures.idle_mb} -> {figures.peak_mb} MB, "
                    f"{figures.said}, {figures.seconds} s {'PROBLEM: ' + figures.problem if figures.problem else ''}",
                    flush=True,
                )
    return 1 if any(figures.problem for figures in found) else 0


if __name__ == "__main__":
    sys.exit(main())
