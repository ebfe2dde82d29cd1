"""Random definitions beside PostgreSQL 15: how each statement ends, and now and then all that the catalogs and relations hold.

    RandomDdl(seed) ──> statement ──> ours, theirs      SQLSTATE, message, DETAIL, HINT, notices of CASCADE
                        every so many statements        DEFINITIONS, and the rows of all relations

A statement runs within a block or a savepoint: what ended otherwise on one side is undone on both, so that they stay alike. What is refused
here (0A000) is counted by its message.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.differential.test_generated import seeds_of
from tests.differential.test_plpgsql import Ended, Side
from tests.support.definitions import DEFINITIONS
from tests.support.random_ddl import SETUP, RandomDdl

STATEMENTS: Final = 100
EVERY: Final = 50
"""After how many statements the catalogs are compared, which takes ours as long as some eighty statements; at the end of a seed, too."""
REFUSED: Final = "0A000"
ANOTHER_ERROR: Final = "another error"
"""Both fail, by another of several things that are wrong, or in other words."""
BEFORE_ERROR: Final = "notices before an error"
_BLOCK: Final = re.compile(r"(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)\b")
_OID: Final = re.compile(r"(?<==\(\w\d, )\d+(?=\) already exists)")
_OWN_VIEW: Final = re.compile(r"CREATE OR REPLACE VIEW (\S+) AS")
_TEMPORARY: Final = re.compile(r"pg_temp_\d+")
_IDLE: Final = psycopg.pq.TransactionStatus.IDLE
_FAILED: Final = psycopg.pq.TransactionStatus.INERROR
RELATIONS: Final = "SELECT oid::regclass FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm') AND oid >= 16384 AND relnamespace::regnamespace::text ~ '^(s|pg_temp)' ORDER BY 1::text"
ENDING: Final = (
    "RESET ALL", "DROP SCHEMA IF EXISTS s, s2, s3 CASCADE", "DISCARD TEMP", "DROP FOREIGN DATA WRAPPER IF EXISTS w0 CASCADE", "DROP EXTENSION IF EXISTS citext CASCADE",
    "ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC",
)  # fmt: skip
"""How a seed ends: compared, too."""


@dataclass(slots=True)
class Found:
    """What was run, how it ended, and what differed."""

    statements: int = 0
    succeeded: int = 0
    compared: int = 0
    states: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)

    def add(self, kind: str, where: str, what: str) -> None:
        """Note a difference."""
        self.kinds[kind] += 1
        self.different.append(f"{where}, {kind}: {what}")


def _plain(end: Ended) -> Ended:
    """Return an outcome without what is the session's alone."""
    return Ended(
        error=tuple(_OID.sub("1", _TEMPORARY.sub("pg_temp", value)) for value in end.error),
        notices=tuple(tuple(_TEMPORARY.sub("pg_temp", value) for value in notice) for notice in end.notices),
        names=end.names,
        rows=tuple(sorted((tuple(None if v is None else _TEMPORARY.sub("pg_temp", v) for v in row) for row in end.rows), key=repr)),
    )  # fmt: skip


class Pair:
    """Two sessions, ours and PostgreSQL's, that are asked the same."""

    def __init__(self, ours: str, theirs: str, found: Found) -> None:
        self.connections = [psycopg.connect(dsn, autocommit=True) for dsn in (ours, theirs)]
        self.sides = [Side(connection) for connection in self.connections]
        self.found = found
        for side in self.sides:
            side.ask("SET statement_timeout = '60s'")

    def close(self) -> None:
        """End both sessions."""
        for connection in self.connections:
            connection.close()

    def ask(self, sql: str) -> list[Ended]:
        """Return how a statement ends on both."""
        return [_plain(side.ask(sql)) for side in self.sides]

    @property
    def status(self) -> psycopg.pq.TransactionStatus:
        """PostgreSQL's, which is ours."""
        return self.connections[1].info.transaction_status

    def statement(self, sql: str) -> tuple[Ended, Ended]:
        """Run a statement; undo it on both where its end differs."""
        if _BLOCK.match(sql) or self.status == _FAILED:
            ours, theirs = self.ask(sql)
            if self.connections[0].info.transaction_status != self.status:
                self.ask("ROLLBACK")
            return ours, theirs
        alone = self.status == _IDLE
        self.ask("BEGIN" if alone else "SAVEPOINT z_")
        ours, theirs = self.ask(sql)
        if ours.state == theirs.state and not theirs.error:
            self.ask("COMMIT" if alone else "RELEASE z_")
        elif alone or ours.state != theirs.state:
            self.ask("ROLLBACK" if alone else "ROLLBACK TO z_")
        return ours, theirs

    def catalogs(self) -> Iterator[str]:
        """Yield what only one side has, in the catalogs and in the rows of relations."""
        for name, query in DEFINITIONS.items():
            yield from _unlike(name, *self.ask(query))
        for (relation,) in self.ask(RELATIONS)[1].rows:
            ours, theirs = self.ask(f"SELECT * FROM {relation}")
            if ours.state == REFUSED != theirs.state:
                self.found.refused[ours.error[2]] += 1
            else:
                yield from _unlike(f"rows of {relation}", ours, theirs)


def _unlike(name: str, ours: Ended, theirs: Ended) -> Iterator[str]:
    if ours.error[:5] != theirs.error[:5]:
        yield f"{name}: ours   {ours.error[1:5]}"
        yield f"{name}: theirs {theirs.error[1:5]}"
    elif ours.names != theirs.names:
        yield f"{name}: ours   {ours.names}"
        yield f"{name}: theirs {theirs.names}"
    else:
        mine, other = Counter(ours.rows), Counter(theirs.rows)
        yield from (f"{name}: ours   {row}" for row in (mine - other).elements())
        yield from (f"{name}: theirs {row}" for row in (other - mine).elements())


def _expected(sql: str, ours: Ended) -> bool:
    """Tell whether a difference is known and meant: a view that is to read itself is refused when it is made, not whenever it is read."""
    own = _OWN_VIEW.match(sql)
    return own is not None and ours.state == "42P17" and f"FROM {own[1]}" in sql


def differing(ours: Ended, theirs: Ended) -> str:
    """Return what of two outcomes differs, "" for nothing."""
    if ours.error != theirs.error:
        return "taken" if not ours.error else ANOTHER_ERROR if theirs.error else "not taken"
    if ours.notices != theirs.notices:
        alike = [sorted(line for notice in end.notices for line in "\n".join(notice).split("\n")) for end in (ours, theirs)]  # fmt: skip
        if theirs.error:
            return BEFORE_ERROR
        return "order of notices" if alike[0] == alike[1] else "notices"
    return "rows" if (ours.names, ours.rows) != (theirs.names, theirs.rows) else ""


def _told(end: Ended) -> str:
    words = (
        [" | ".join(filter(None, end.error[1:]))] if end.error else [f"{len(end.rows)} rows {end.rows[:3]}"]
    )
    words += [f"{notice[0]} {' | '.join(filter(None, notice[2:5]))}" for notice in end.notices]
    return "; ".join(words).replace("\n", "\\n")


def play(pair: Pair, seed: int, statements: int, every: int, found: Found) -> None:
    """Run a seed; ``every``: after how many statements the catalogs are compared."""
    ddl = RandomDdl(seed)
    run: list[str] = []  # since the catalogs were last compared
    told: set[str] = set()  # what the catalogs differ in is told once

    def one(sql: str) -> bool:
        ours, theirs = pair.statement(sql)
        found.statements += 1
        found.states[theirs.state or "00000"] += 1
        if not theirs.error and not ours.error:
            run.append(sql)
            found.succeeded += 1
        if ours.state == REFUSED != theirs.state:
            found.refused[ours.error[2]] += 1
            return False
        if (kind := differing(ours, theirs)) and not _expected(sql, ours):
            found.add(kind, f"seed {seed}", f"{sql}\n    ours   {_told(ours)}\n    theirs {_told(theirs)}")
        return not theirs.error and not ours.error

    def compare() -> None:
        if pair.status != _IDLE:
            return
        found.compared += 1
        unlike = [each for each in pair.catalogs() if each not in told]
        if unlike:
            told.update(unlike)
            since = "".join(f"\n    {sql};" for sql in run)
            found.add("catalogs", f"seed {seed}", since + "\n" + "\n".join(f"  {each}" for each in unlike))
        run.clear()

    for sql in SETUP:
        one(sql)
    for number in range(statements):
        sql = ddl.statement()
        if pair.status == _FAILED and ddl.chance(0.7):
            sql = "ROLLBACK"
        ddl.told(succeeded=one(sql))
        if (number + 1) % every == 0:
            compare()
    pair.ask("ROLLBACK")
    for sql in ENDING:
        one(sql)
    compare()


def walk(ours: str, theirs: str, seeds: list[int], statements: int = STATEMENTS, every: int = EVERY) -> Found:
    """Run seeds, each in sessions of its own. ``ours``, ``theirs``: DSNs."""
    found = Found()
    told = 0
    for seed in seeds:
        pair = Pair(ours, theirs, found)
        try:
            play(pair, seed, statements, every, found)
        finally:
            pair.close()
        if len(seeds) > 5:
            print("\n".join(found.different[told:]), f"seed {seed}: {found.statements} statements, {found.succeeded} succeeded", sep="\n", file=sys.stderr, flush=True)  # fmt: skip
            told = len(found.different)
    return found


def _of(seeds: list[int]) -> str:
    return f"{seeds[0]}-{seeds[-1]}"


def keep_figures(path: Path, found: Found, seeds: list[int]) -> None:
    """Add what a run found to the figures of others, in the place of those of the same seeds; ``unexplained``: each difference, short."""
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    known: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []  # fmt: skip
    run = {
        "seeds": _of(seeds), "commit": head.stdout.strip(), "statements": found.statements, "succeeded": found.succeeded,
        "catalogs compared": found.compared, "different": dict(found.kinds.most_common()), "refused": dict(found.refused.most_common()),
        "SQLSTATEs": dict(found.states.most_common()), "unexplained": [_short(each) for each in found.different],
    }  # fmt: skip
    runs = [*(each for each in known if each["seeds"] != run["seeds"]), run]
    made = {
        "what": "random definitions beside PostgreSQL 15 (tests/differential/random_definitions.py)",
        "all": {name: sum(each[name] for each in runs) for name in ("statements", "succeeded", "catalogs compared")}
        | {"different": sum(len(each["unexplained"]) for each in runs)},
        "runs": runs,
    }  # fmt: skip
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def _short(difference: str) -> str:
    """Return the statement and both ends of a difference, of the catalogs what is in one alone; 400 characters at most."""
    lines = difference.split("\n")
    alone = [line.strip() for line in lines[1:] if re.match(r"  \S|    (ours|theirs) ", line)]
    return " / ".join([lines[0].strip(), *alone])[:400]


def main() -> int:
    """Run seeds beside servers that are there, and print what differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ours")
    parser.add_argument("theirs")
    parser.add_argument("--seeds", type=seeds_of, default=[1])
    parser.add_argument("--statements", type=int, default=STATEMENTS)
    parser.add_argument("--every", type=int, default=EVERY)
    parser.add_argument("--evidence", type=Path, help="a file of figures to add to")
    arguments = parser.parse_args()
    found = walk(arguments.ours, arguments.theirs, arguments.seeds, arguments.statements, arguments.every)
    print("\n".join(found.different))
    print(
        f"seeds {_of(arguments.seeds)}: {found.statements} statements, {dict(found.kinds)}, refused {dict(found.refused)}"
    )
    if arguments.evidence:
        keep_figures(arguments.evidence, found, arguments.seeds)
    return 1 if found.different else 0


if __name__ == "__main__":
    sys.exit(main())
