"""``make smith MINUTES=30``: sqlsmith's random statements against TPC-H and a schema of all types, each again on PostgreSQL 15.

    bench/smith.sql, TPC-H ──> Holdfast   <── sqlsmith: a statement, ROLLBACK, the next; one second each (statement_timeout)
                          │       ^ asked beside it: how long has a statement run, how much memory is held
                          └──> PostgreSQL <── afterwards: each statement again

Findings, each of which makes the exit status 1:

    internal       SQLSTATE XX or 58, where PostgreSQL has none of these; a traceback in the log
    lost           a connection that ended, a server that did
    hang           a statement that runs for ``HANG_S`` whatever its timeout says
    memory         more than ``memory`` and ``BESIDE`` together
    analysis       an error of class 42, here or there, where the other server has none or one of another class

Counted besides: refusals (0A000), timeouts, and errors of other classes that only one of both raises: which expressions are
evaluated first, and for which rows, is nobody's promise. Rows are not compared: the statements say nothing about their order.

sqlsmith is Debian's: ``apt-get install sqlsmith``. psql and PostgreSQL 15 are needed as well.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg import pq

from bench.peers import holdfast, postgres
from bench.tpch.data import generate, load
from tests.support.server import ServerProcess

SCHEMA = Path(__file__).with_suffix(".sql")
SCALE = 0.01  # at smaller ones the generator writes keys of partsupp twice
MEMORY = 512 << 20
BESIDE = 256 << 20
"""What the process itself takes: its modules and what they keep, whatever ``memory`` is."""
HANG_S = 60.0
LOOK_S = 2.0
"""Seconds between two looks at the server."""
SILENCE_S = 120.0
"""Seconds after which a sqlsmith that sends nothing is started again, with the next seed."""
TIMEOUT = "1s"
EXAMPLES = 40
SLOW_S = 1.0
"""A look that takes longer is told of."""
TAIL_BYTES = 20_000
"""So much of what was sent last is kept with a suspicion."""
# what sqlsmith writes its errors to (--log-to)
LOG = """
CREATE TABLE instance (id bigserial PRIMARY KEY, rev text, target text, hostname text, version text, seed text);
CREATE TABLE error (id bigint, number bigserial, msg text, query text, sqlstate text);
CREATE TABLE stat (id bigint, generated bigint, level float, nodes float, updated timestamptz, retries float, impedance jsonb);
"""


class Outcome(NamedTuple):
    """How a statement ended: "00000", an SQLSTATE, or "lost" where the connection did."""

    sqlstate: str
    message: str = ""

    @property
    def kind(self) -> str:
        """The class of the error, as far as it is compared."""
        return "lost" if self.sqlstate == "lost" else self.sqlstate[:2]


GOOD = Outcome("00000")


@dataclass
class Watched:
    """What was seen of the server while sqlsmith ran."""

    longest_s: float = 0.0
    """The longest time a statement was seen running."""
    answer_s: float = 0.0
    """The longest time a look took."""
    peak: int = 0
    begun: int = 0
    """How many sqlsmiths were started."""
    findings: list[str] = field(default_factory=list)
    suspects: dict[str, str] = field(default_factory=dict)
    """What had been sent last when the server held too much or was slow to answer."""


def _memory(pid: int) -> int:
    """Return the bytes a process and its children hold, what they share counted once."""
    total = 0
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        found = re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)
        total += int(found[1]) * 1024 if found else 0
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += sum(_memory(int(child)) for child in (task / "children").read_text().split())
    return total


def _last_sent(written: Path) -> str:
    """Return the last statements of a file that sqlsmith is writing."""
    with written.open("rb") as sent:
        sent.seek(max(0, written.stat().st_size - TAIL_BYTES))
        return sent.read().decode("utf-8", "replace")


def _look(server: ServerProcess, seen: Watched, written: Path) -> bool:
    """Look at the server; return whether sqlsmith may go on."""
    if server.process.poll() is not None:
        seen.findings.append("lost: the server has ended")
        return False
    before = _last_sent(written)
    held = _memory(server.process.pid)
    if held > max(seen.peak, MEMORY + BESIDE):
        seen.suspects[f"{held >> 20} MB are held"] = before
    seen.peak = max(seen.peak, held)
    asked = time.monotonic()
    running = (
        "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - query_start)), 0)::float FROM pg_stat_activity "
        "WHERE state = 'active' AND pid <> pg_backend_pid() AND application_name ILIKE 'sqlsmith%'"
    )
    try:
        with psycopg.connect(server.url, connect_timeout=int(HANG_S), autocommit=True) as c:
            row = c.execute(f"SET statement_timeout = '{HANG_S:g}s'").execute(running).fetchone()
    except psycopg.Error as error:
        seen.findings.append(f"hang: the server does not answer: {error}")
        return False
    took = time.monotonic() - asked
    if took > max(seen.answer_s, SLOW_S):
        seen.suspects[f"a look took {took:.1f} s"] = (
            f"{before}\n-- and while it lasted\n{_last_sent(written)}"
        )
    seen.answer_s = max(seen.answer_s, took)
    assert row is not None
    seen.longest_s = max(seen.longest_s, row[0])
    if row[0] > HANG_S:
        seen.findings.append(f"hang: a statement has run for {row[0]:.0f} s")
    return bool(row[0] <= HANG_S)


def forge(server: ServerProcess, log_url: str, folder: Path, seconds: float, seed: int) -> Watched:
    """Let sqlsmith send statements for ``seconds``; those of each seed are left in a file of ``folder``."""
    seen = Watched()
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and not seen.findings:
        written = folder / f"{seed + seen.begun}.sql"
        command = ["sqlsmith", f"--target={server.url}", f"--log-to={log_url}", "--dump-all-queries", "--exclude-catalog",
                   f"--seed={seed + seen.begun}"]  # fmt: skip
        seen.begun += 1
        with written.open("wb") as out, (folder / "said").open("ab") as said:
            process = subprocess.Popen(command, stdout=out, stderr=said)
            try:
                size, since = 0, time.monotonic()
                while process.poll() is None and time.monotonic() < ends and _look(server, seen, written):
                    if (now := written.stat().st_size) != size:
                        size, since = now, time.monotonic()
                    if time.monotonic() - since > SILENCE_S:
                        break
                    time.sleep(LOOK_S)
            finally:
                process.kill()
                process.wait()
    return seen


def statements(folder: Path) -> Iterator[str]:
    """Yield the statements that were sent, without the last of each file, which may not have come to its end."""
    for path in sorted(folder.glob("*.sql")):
        yield from (part.strip() for part in path.read_text(encoding="utf-8").split(";\n")[:-2])


def failures(log_url: str) -> dict[str, Outcome]:
    """Return how those statements ended that failed."""
    with psycopg.connect(log_url) as c:
        rows = c.execute("SELECT query, sqlstate, msg FROM error ORDER BY number").fetchall()
    return {
        str(query).strip().rstrip(";"): Outcome(str(sqlstate or "lost"), str(message).removeprefix("ERROR:").strip())
        for query, sqlstate, message in rows
    }  # fmt: skip


class Replay:
    """A session that runs statements again, each in a transaction that is rolled back."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = self._connect()

    def _connect(self) -> pq.PGconn:
        client = pq.PGconn.connect(self._url.encode())
        if client.status != pq.ConnStatus.OK:
            raise ConnectionError(client.get_error_message())
        for setting in (f"statement_timeout = '{TIMEOUT}'", "client_min_messages = error"):
            client.exec_(f"SET {setting}".encode())
        return client

    def run(self, sql: str) -> Outcome:
        """Run one statement."""
        for before in (b"ROLLBACK", b"BEGIN"):
            self._client.exec_(before)
        result = self._client.exec_(sql.encode())
        if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            return GOOD
        message = result.get_error_message().removeprefix("ERROR:").strip()
        if self._client.status != pq.ConnStatus.OK:
            self._client = self._connect()
            return Outcome("lost", message)
        state = result.error_field(pq.DiagnosticField.SQLSTATE) or b"lost"
        return Outcome(state.decode(), message)


def judge(here: Outcome, there: Outcome) -> str:
    """Return what a statement counts as: "same", "refused", "timeout", "internal", "lost", "analysis" or "run time"."""
    if here.sqlstate == "0A000":
        return "refused"
    if here.kind == "lost" and there.kind != "lost":
        return "lost"
    if here.kind in ("XX", "58") and there.kind not in ("XX", "58"):
        return "internal"
    if "57014" in (here.sqlstate, there.sqlstate):
        return "timeout"
    if here.kind == there.kind:
        return "same"
    return "analysis" if "42" in (here.kind, there.kind) else "run time"


FINDINGS = ("internal", "lost", "analysis")


@dataclass
class Compared:
    """What came of all statements."""

    kinds: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    messages: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    examples: dict[str, str] = field(default_factory=dict)
    """A statement for each message of a finding."""

    def note(self, sql: str, here: Outcome, there: Outcome) -> None:
        """Count one statement."""
        if there.sqlstate == "42883" and "holdfast_" in sql:
            return  # a function of ours
        kind = judge(here, there)
        self.kinds[kind] += 1
        self.states[here.sqlstate] += 1
        if kind == "same":
            return
        shown = _shown(here) if kind == "refused" else f"here {_shown(here)}, there {_shown(there)}"
        self.messages[kind][shown] += 1
        if kind in FINDINGS and len(sql) < len(self.examples.get(shown, sql + " ")):
            self.examples[shown] = sql


def _shown(outcome: Outcome) -> str:
    first = outcome.message.partition("\n")[0]
    return f"{outcome.sqlstate} {re.sub(r'[0-9]+', 'n', first)[:120]}".strip()


def compare(sent: Iterator[str], failed: dict[str, Outcome], url: str) -> Compared:
    """Run all statements again at ``url``."""
    again = Replay(url)
    compared = Compared()
    for sql in sent:
        compared.note(sql, failed.get(sql, GOOD), again.run(sql))
    return compared


def prepare(url: str, data: Path) -> None:
    """Make the tables of TPC-H and the schema of all types at ``url``."""
    load(url, data)
    done = subprocess.run(
        ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(SCHEMA), url], capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{SCHEMA.name}: {done.stderr.strip()}")


def prove(minutes: float, seed: int, folder: Path) -> tuple[dict[str, object], list[str], dict[str, str]]:
    """Run the proof; return its figures, its findings, and examples of statements."""
    data = generate(SCALE, folder / "tpch")
    with postgres() as url, holdfast("--memory", str(MEMORY)) as server:
        for each in (url, server.url):
            prepare(each, data)
        with psycopg.connect(url, autocommit=True) as c:
            c.execute("CREATE DATABASE smith_log")
        log_url = url.rpartition("/")[0] + "/smith_log"
        with psycopg.connect(log_url, autocommit=True) as c:
            c.execute(LOG.encode())
        seen = forge(server, log_url, folder, minutes * 60, seed)
        compared = compare(statements(folder), failures(log_url), url)
        log = server.log()
    findings = list(seen.findings)
    if tracebacks := log.count("Traceback (most recent call last)"):
        findings.append(f"internal: {tracebacks} tracebacks in the log")
    if seen.peak > MEMORY + BESIDE:
        findings.append(f"memory: {seen.peak >> 20} MB with {MEMORY >> 20} MB")
    findings += [
        f"{kind}: {n} × {what}" for kind in FINDINGS for what, n in compared.messages[kind].most_common()
    ]
    figures: dict[str, object] = {
        "what": "sqlsmith against TPC-H and bench/smith.sql, each statement again on PostgreSQL 15 (python -m bench.smith)",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "minutes": minutes,
        "seeds": f"{seed}-{seed + seen.begun - 1}",
        "statements": sum(compared.kinds.values()),
        "counted as": dict(compared.kinds.most_common()),
        "SQLSTATEs": dict(compared.states.most_common()),
        "tracebacks": tracebacks,
        "longest statement (s)": round(seen.longest_s, 1),
        "longest look beside it (s)": round(seen.answer_s, 1),
        "memory (MB)": MEMORY >> 20,
        "held at most (MB)": seen.peak >> 20,
        "messages": {
            kind: dict(some.most_common(EXAMPLES)) for kind, some in sorted(compared.messages.items())
        },
    }
    tracebacks_at = [
        log[max(0, m.start() - TAIL_BYTES // 4) : m.end() + TAIL_BYTES // 4]
        for m in re.finditer(r"Traceback \(most recent call last\)", log)
    ]
    told = {f"the log, {number}": text for number, text in enumerate(tracebacks_at, 1)}
    return figures, findings, compared.examples | seen.suspects | told


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the proof, print what it found, write its figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the figures here")
    parser.add_argument("--examples", type=Path, help="write a statement for each finding here")
    options = parser.parse_args(arguments)
    for tool, package in (("sqlsmith", "sqlsmith"), ("psql", "postgresql-client-15")):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed: apt-get install {package}", file=sys.stderr)
            return 2
    with tempfile.TemporaryDirectory(prefix="holdfast-smith-") as folder:
        figures, findings, examples = prove(options.minutes, options.seed, Path(folder))
    text = json.dumps(figures, indent=1, ensure_ascii=False) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    if options.examples:
        options.examples.write_text(
            "\n\n".join(f"-- {what}\n{sql};" for what, sql in examples.items()) + "\n", encoding="utf-8"
        )
    print(*findings, sep="\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
