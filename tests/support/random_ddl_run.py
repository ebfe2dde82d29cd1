"""Random DDL on an engine in this process, a process of its own: ``python -m tests.support.random_ddl_run --seed 1 --statements 400``.

    two sessions ──> statement ──> XX000?   does anything that is committed refer to what is not there (engine.catalog.references)?
    at the end: the sessions end, the engine is opened again over the same disk: nothing may be unreadable, definitions are the same

Prints what it finds, a line each, and exits with 1 if that is anything. A block of one session ends before the other goes on, so that
nothing waits.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections import Counter

from engine.base.eager import settle
from engine.catalog.references import missing
from engine.server.database import Database
from tests.support.definitions import DEFINITIONS
from tests.support.engine import Failed, Rows, Session, open_database
from tests.support.random_ddl import SETUP, RandomDdl
from txn.persist.memory import MemoryDisk


class Play:
    """Statements of one seed on one engine."""

    def __init__(self, seed: int) -> None:
        self.ddl = RandomDdl(seed)
        self.outcomes: Counter[str] = Counter()
        self.found: list[str] = []
        self._told: set[tuple[str, int]] = set()

    async def run(self, database: Database, statements: int) -> None:
        """Run statements, and end the sessions."""
        sessions = [Session(database, pid) for pid in (1, 2)]
        for statement in SETUP:
            await sessions[0].run(statement)
        for number in range(statements):
            open_ = [s for s in sessions if s.connection.session.block.state.name != "IDLE"]
            session = open_[0] if open_ else sessions[self.ddl.chance(0.4)]
            await self._one(session, number)
        for session in sessions:
            await settle(session.connection.close())
        self._look(sessions[0], "the end of the sessions")

    async def _one(self, session: Session, number: int) -> None:
        statement = self.ddl.statement()
        if session.connection.session.block.state.name == "FAILED" and self.ddl.chance(0.7):
            statement = self.ddl.one_of("ROLLBACK", "ROLLBACK TO a", "COMMIT")
        outcome = "ok"
        try:
            await session.run(statement)
        except Failed as error:
            outcome = error.report.sqlstate
        except Exception as error:  # what a client is told as XX000
            outcome = "XX000"
            self.found.append(f"{number}: {statement}: {error!r}")
        if outcome[:2] in ("XX", "58"):
            self.found.append(f"{number}: {statement}: {outcome}")
        self.outcomes[outcome] += 1
        self.ddl.told(succeeded=outcome == "ok")
        self._look(session, f"{number}: {statement}")

    def _look(self, session: Session, after: str) -> None:
        for item, reference in missing(session.connection.session.space.catalog.items.values()):
            if (str(item), reference.oid) not in self._told:
                self._told.add((str(item), reference.oid))
                self.found.append(f"{after}: {getattr(item, 'name', item)} {reference} is not there")


async def definitions(session: Session) -> list[Rows]:
    """Return what a catalog holds, as clients see it."""
    return [sorted(await session.run(query), key=str) for query in DEFINITIONS.values()]


async def play(seed: int, statements: int) -> Play:
    """Run a seed; see also that a restart finds all that was there."""
    disk = MemoryDisk()
    database = await open_database(disk)
    made = Play(seed)
    await made.run(database, statements)
    before = await definitions(Session(database, 3))
    again = Session(await open_database(disk), 4)
    for row in await again.run("SELECT object, reason FROM holdfast_unreadable_objects"):
        made.found.append(f"after a restart {row[0]} cannot be read: {row[1]}")
    for name, old, new in zip(DEFINITIONS, before, await definitions(again), strict=True):
        for row in set(old) ^ set(new):
            made.found.append(
                f"{'only before' if row in old else 'only after'} a restart: {row} of the {name}"
            )
    return made


def main() -> int:
    """Run seeds, each in turn; one per process is what finds the same again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statements", type=int, default=400)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    made = asyncio.run(play(arguments.seed, arguments.statements))
    for line in made.found:
        print(line)
    print(
        f"seed {arguments.seed}: {made.outcomes['ok']} of {arguments.statements} statements succeeded",
        file=sys.stderr,
    )
    return 1 if made.found else 0


if __name__ == "__main__":
    sys.exit(main())
