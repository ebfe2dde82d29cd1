"""What analysts write, expression by expression, on Holdfast and on PostgreSQL 15 in turn: times, ratio, executor, equal answers.

    python -m bench.expressions --rows 500000 [--only date] [--markdown]

Each case is one statement over one table (``bench/expression_cases.py``), so made that the expression is computed for
every row inside the query: under an aggregate, in GROUP BY or in WHERE, not only in the rows of a result. Times are
processor time of Holdfast's process and of PostgreSQL's backend (without parallel workers, whose time would be another
process's), which other programs on the machine disturb least: the least of a few runs. Answers are compared: numerics to the
digit and scale, floats to twelve digits, rows as a multiset. The executor is the one that EXPLAIN names.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.expression_cases import CASES, Case
from bench.peers import holdfast, postgres
from bench.tpch import compare
from sqllogictest.client import Client, ServerError

CREATE = """CREATE TABLE facts (id int PRIMARY KEY, k int, n numeric(12,2), m numeric(10,4), v numeric, big numeric(30,6), f float8,
    g float8, t text, mail text, d date, ts timestamp, tz timestamptz, iv interval, js jsonb, a int[], tags text[], b bool, maybe int);
    CREATE TABLE days (d date PRIMARY KEY, name text)"""
WORDS = (
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "haven",
    "inlet",
    "jetty",
    "knoll",
    "larch",
    "maple",
    "north",
)
SLOW_S = 0.5
"""A statement that takes longer runs once."""
TICKS = os.sysconf("SC_CLK_TCK")
TIMEOUT_S = 600.0


def lines(rows: int) -> Iterator[str]:
    """Yield the table as lines of COPY; the same ones at every run."""
    rng = Random(7)
    for i in range(1, rows + 1):
        word, other = rng.choice(WORDS), rng.choice(WORDS)
        cents, parts = rng.randrange(1, 10_000_000), rng.randrange(1, 9_999_999)
        day, second = rng.randrange(1460), rng.randrange(86_400)
        date = time.strftime("%Y-%m-%d", time.gmtime(1_577_836_800 + day * 86_400))
        clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{rng.randrange(1000):03d}"
        maybe = "\\N" if rng.random() < 0.2 else str(rng.randrange(1000))
        large = f"{rng.randrange(10**15, 10**17)}.{rng.randrange(10**6):06d}"
        document = (
            f'{{"kind": "{word}", "size": {rng.randrange(100)}, "ok": {"true" if i % 3 else "false"}, '
            f'"at": {{"city": "{other}", "xy": [{i % 7}, {i % 11}]}}}}'
        )
        yield "\t".join(
            (
                str(i), str(rng.randrange(100)), f"{cents / 100:.2f}", f"{parts / 10_000:.4f}",
                f"{rng.randrange(10**9)}.{rng.randrange(1000)}", large, repr(rng.uniform(-1000, 1000)),
                repr(rng.gauss(50, 15)), f"{word} {other}-{i % 1000:03d}", f"{word}.{other}{i % 500}@{rng.choice(WORDS)}.example.com",
                date, f"{date} {clock}", f"{date} {clock}+00", f"{rng.randrange(40)} days {second % 3600} seconds",
                document, f"{{{i % 5},{i % 13},{rng.randrange(50)}}}", f"{{{word},{other}}}", "t" if rng.random() < 0.6 else "f",
                maybe,
            )
        ) + "\n"  # fmt: skip


def load(url: str, file: Path) -> None:
    """Create the tables and fill them."""
    script = f"{CREATE};\n\\copy facts FROM '{file}'\n"
    script += "INSERT INTO days SELECT date '2020-01-01' + i, 'day ' || i % 7 FROM generate_series(0, 1459) AS s (i);\n"
    script += "ANALYZE facts; ANALYZE days;\n"
    subprocess.run(
        ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", url], input=script, text=True, check=True, timeout=900
    )


@dataclass(frozen=True, slots=True)
class Found:
    """One case measured; times in seconds, ``wrong`` is what differs or what failed, "" if nothing."""

    case: Case
    ours: float
    theirs: float
    executor: str
    wrong: str

    @property
    def ratio(self) -> float:
        """How many times as long Holdfast takes."""
        return self.ours / self.theirs

    def show(self, markdown: bool) -> str:
        """Return a line of the table."""
        cells = (f"{self.ours * 1000:.0f}", f"{self.theirs * 1000:.0f}", f"{self.ratio:.1f}", self.executor)
        if markdown:
            return f"| {self.case.name} | {' | '.join(cells)} |{' ' + self.wrong if self.wrong else ''}"
        return f"{self.case.name:<44} {cells[0]:>8} {cells[1]:>8} {cells[2]:>7}x {cells[3]:<6} {self.wrong}"


class Peer:
    """A connection, and the process that computes its answers."""

    def __init__(self, url: str) -> None:
        """Connect; times depend on a zone, so there is one."""
        self.client = compare.connect(url, timeout_s=TIMEOUT_S)
        for setting in ("timezone = 'Europe/Berlin'", "max_parallel_workers_per_gather = 0"):
            self.client.run(f"SET {setting}")
        self._process = int(self.client.run("SELECT pg_backend_pid()").rows[0][0] or 0)
        if (
            not Path(f"/proc/{self._process}").exists()
            or "postgres" not in Path(f"/proc/{self._process}/cmdline").read_text()
        ):
            self._process = _listener(url)

    def spent(self) -> float:
        """Return the processor time of the process, seconds."""
        fields = Path(f"/proc/{self._process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def answer(self, sql: str) -> tuple[float, list[tuple[str | None, ...]], tuple[int, ...]]:
        """Run a query; return its processor time, rows and types."""
        before = self.spent()
        rows, types = compare.answer(self.client, sql)
        return self.spent() - before, rows, types


def _listener(url: str) -> int:
    """Return the process that listens where ``url`` points to."""
    port = f":{int(url.rsplit(':', 1)[1].split('/')[0]):04X}"
    lines_ = Path("/proc/net/tcp").read_text().splitlines()[1:]
    inode = next(
        line.split()[9] for line in lines_ if line.split()[1].endswith(port) and line.split()[3] == "0A"
    )
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if any(os.readlink(f) == f"socket:[{inode}]" for f in (process / "fd").iterdir()):
                    return int(process.name)
            except OSError:
                continue  # it has ended, or is another user's
    raise RuntimeError(f"nobody listens at {url}")


def _executor(client: Client, sql: str) -> str:
    text = "\n".join(row[0] or "" for row in client.run(f"EXPLAIN {sql}").rows)
    found = re.search(r"Route: (\w+)", text)
    return found.group(1) if found else "?"


def _sorted(rows: list[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
    return sorted(rows, key=lambda row: tuple((cell is None, cell or "") for cell in row))


def measure(case: Case, ours: Peer, theirs: Peer, rounds: int) -> Found:
    """Run one case on both in turn, and compare the answers."""
    wrong, executor = "", "?"
    times: tuple[list[float], list[float]] = ([], [])
    try:
        executor = _executor(ours.client, case.sql)
        for number in range(rounds):
            answers = []
            for peer, found in zip((ours, theirs), times, strict=True):
                if not number or min(found) < SLOW_S:
                    spent, rows, types = peer.answer(case.sql)
                    found.append(max(spent, 1 / TICKS))
                    answers.append((rows, types))
            if not number and not case.random:
                (mine, my_types), (others, their_types) = answers
                differ = compare.differences(_sorted(others), _sorted(mine))
                if my_types != their_types:
                    differ.append(f"types {my_types}, expected {their_types}")
                wrong = "DIFFERS: " + "; ".join(differ) if differ else ""
    except ServerError as error:
        return Found(case, float("nan"), float("nan"), executor, f"FAILED: {error}")
    return Found(case, min(times[0]), min(times[1]), executor, wrong)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.expressions", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name matches this regular expression")
    parser.add_argument("--markdown", action="store_true", help="print the rows of a Markdown table")
    parser.add_argument(
        "--ours", default="", help="URL of a Holdfast that has the tables, instead of a new one"
    )
    parser.add_argument("--theirs", default="", help="the same of a PostgreSQL")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-bench-expressions-")))
        file = folder / "facts"
        if not (arguments.ours and arguments.theirs):
            with file.open("w", encoding="ascii") as out:
                out.writelines(lines(arguments.rows))
        urls = [arguments.ours, arguments.theirs]
        if not urls[0]:
            urls[0] = stack.enter_context(holdfast()).url
            load(urls[0], file)
        if not urls[1]:
            urls[1] = stack.enter_context(postgres())
            load(urls[1], file)
        ours, theirs = (Peer(url) for url in urls)
        results = []
        for case in CASES:
            if re.search(arguments.only, case.name):
                results.append(measure(case, ours, theirs, arguments.rounds))
                print(results[-1].show(arguments.markdown), flush=True)
        whole = [found.ratio for found in results if found.ratio == found.ratio]
        if whole:
            print(f"{len(whole)} cases; geometric mean of the ratios {statistics.geometric_mean(whole):.2f}, "
                  f"on the row executor {sum(found.executor == 'index' for found in results)}, "
                  f"wrong or failed {sum(bool(found.wrong) for found in results)}")  # fmt: skip
        for peer in (ours, theirs):
            peer.client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
