"""What clients do while a server is killed, and what each of them must find afterwards.

    work(client, rng, stop)   until the server is gone; an acknowledged change is noted, one cut off is *pending*
    check(client)             after a restart: acknowledged changes are there, a pending one wholly or not at all

A workload whose tables nobody else writes to keeps a model: the state after the last acknowledged transaction and, if
one was cut off, the state after that. What is found has to be one of the two, and becomes the model.
"""

from __future__ import annotations

import copy
import hashlib
import random
import threading
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqllogictest.client import Client, ServerError
from tests.support.ddl_model import Model, Step, expected

ACCOUNTS = 50
LOAD_ROWS = 2500  # more than goes through memory (``tests.support.odd_server``)
STAGED_ROWS = 600  # of 300 bytes: a write set in a blob, staged in slices
# The outcome is unknown, or the server ended while the commit was under way.
OPEN_OUTCOMES = ("08007", "57P01")
# What concurrent clients must expect; and where the log is another server's, which may be slow to answer: rolled back.
RETRIED = ("40001", "40P01", "55P03")
RETRIED_SHARED = (*RETRIED, "58030")


class CutOff(Exception):
    """The server ended; what was asked last has an open outcome."""


class Workload(Protocol):
    """One kind of client, or several that share a state."""

    acknowledged: int
    problems: list[str]
    """What was wrong while it worked."""

    def set_up(self, client: Client) -> None:
        """Make tables."""

    def work(self, client: Client, rng: random.Random, stop: threading.Event) -> None:
        """Change them until ``stop`` or CutOff."""

    def check(self, client: Client) -> list[str]:
        """Return what does not hold."""


@dataclass
class Base:
    """Counts, and how a statement's end is told."""

    acknowledged: int = 0
    problems: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    expected: tuple[str, ...] = RETRIED

    def attempt(self, client: Client, script: str, *, wanted: str = "") -> bool:
        """Run ``script``; False if it was refused, and rolled back. Raises CutOff.

        ``wanted``: an SQLSTATE that it must be refused with, if it is not for a conflict.
        """
        try:
            client.run(script, "simple" if "; " in script else "extended")
        except ServerError as error:
            if error.sqlstate in OPEN_OUTCOMES:
                raise CutOff from error
            self.refused[error.sqlstate] += 1
            if error.sqlstate not in self.expected and error.sqlstate != wanted:
                self.problems.append(f"{error} for {script[:200]}")
            try:
                client.run("ROLLBACK")
            except (OSError, ServerError):
                pass  # the refusal stands; the next statement finds out
            return False
        except OSError as error:
            raise CutOff from error
        if wanted:
            self.problems.append(f"not refused with {wanted}: {script[:200]}")
        return True


@dataclass
class Transfers(Base):
    """Amounts move between accounts, each move noted in the same transaction; loads and large write sets in between."""

    done: set[int] = field(default_factory=set)
    pending: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next: int = 1

    def set_up(self, client: Client) -> None:
        """See Workload."""
        client.run("CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL)")
        client.run(
            "CREATE TABLE transfer (id bigint PRIMARY KEY, source int, target int, amount bigint CHECK (amount > 0))"
        )
        client.run("CREATE TABLE bulk (batch bigint, n int, size int, pad text, PRIMARY KEY (batch, n))")
        client.run(f"INSERT INTO account SELECT i, 0 FROM generate_series(1, {ACCOUNTS}) AS g (i)")

    def work(self, client: Client, rng: random.Random, stop: threading.Event) -> None:
        """See Workload."""
        while not stop.is_set():
            with self._lock:
                number = self._next
                self._next += 1
            source, target = rng.sample(range(1, ACCOUNTS + 1), 2)
            amount = rng.randrange(1, 1000)
            kind = rng.random()
            if kind < 0.06:
                size = LOAD_ROWS if kind < 0.03 else STAGED_ROWS
                script = (
                    f"INSERT INTO bulk SELECT {number}, i, {size}, repeat('x', 300) "
                    f"FROM generate_series(1, {size}) AS g (i)"
                )
            else:
                script = (
                    f"BEGIN; UPDATE account SET balance = balance - {amount} WHERE id = {source}; "
                    f"UPDATE account SET balance = balance + {amount} WHERE id = {target}; "
                    f"INSERT INTO transfer VALUES ({number}, {source}, {target}, {amount}); COMMIT"
                )
            try:
                made = self.attempt(client, script)
            except CutOff:
                with self._lock:
                    self.pending.add(number)
                raise
            if made:
                with self._lock:
                    self.done.add(number)
                    self.acknowledged += 1

    def check(self, client: Client) -> list[str]:
        """See Workload."""
        problems = []
        present = {int(row[0] or 0) for row in client.run("SELECT id FROM transfer").rows}
        batches = {
            int(row[0] or 0): (int(row[1] or 0), int(row[2] or 0))
            for row in client.run("SELECT batch, count(*), max(size) FROM bulk GROUP BY batch").rows
        }
        there = present | set(batches)
        if lost := self.done - there:
            problems.append(f"{len(lost)} acknowledged commits are lost, e.g. {sorted(lost)[:5]}")
        if unknown := there - self.done - self.pending:
            problems.append(f"{len(unknown)} commits were refused and are there, e.g. {sorted(unknown)[:5]}")
        if torn := [batch for batch, (count, size) in batches.items() if count != size]:
            problems.append(f"{len(torn)} bulk inserts are there in part")
        wanted: dict[int, int] = dict.fromkeys(range(1, ACCOUNTS + 1), 0)
        for row in client.run("SELECT source, target, amount FROM transfer").rows:
            source, target, amount = (int(cell or 0) for cell in row)
            wanted[source] -= amount
            wanted[target] += amount
        actual = {int(r[0] or 0): int(r[1] or 0) for r in client.run("SELECT id, balance FROM account").rows}
        if actual != wanted:
            wrong = {k: (wanted[k], actual.get(k)) for k in wanted if actual.get(k) != wanted[k]}
            problems.append(
                f"{len(wrong)} balances do not match the transfers: {dict(list(wrong.items())[:3])}"
            )
        return problems


@dataclass
class Modelled(Base, ABC):
    """A workload with a model: ``states`` is the last acknowledged state and, if one was cut off, the next."""

    states: list[Any] = field(default_factory=list)

    def change(self, client: Client, script: str, after: Any) -> bool:
        """Run a transaction that leads to the state ``after``. Raises CutOff."""
        self.states = [self.states[0], after]
        if self.attempt(client, script):
            self.states = [after]
            self.acknowledged += 1
            return True
        self.states = self.states[:1]
        return False

    def check(self, client: Client) -> list[str]:
        """See Workload."""
        found = self.read(client)
        possible = [self.shown(state) for state in self.states]
        if found not in possible:
            return [f"{type(self).__name__}: found {found}, possible were {possible}"]
        self.states = [self.states[possible.index(found)]]
        return []

    @abstractmethod
    def read(self, client: Client) -> Any:
        """Return what is there."""

    def shown(self, state: Any) -> Any:
        """Return what ``read`` finds in a state."""
        return state


@dataclass
class Shapes(Modelled):
    """Tables made, altered, filled, truncated and dropped, several of that in one transaction, with savepoints."""

    prefix: str = "s_"
    _step: Step | None = None

    def set_up(self, client: Client) -> None:
        """See Workload."""
        self.states = [{}]

    def work(self, client: Client, rng: random.Random, stop: threading.Event) -> None:
        """See Workload."""
        step = self._step = self._step or Step(rng, self.prefix)
        step.rng = rng
        while not stop.is_set():
            model: Model = copy.deepcopy(self.states[0])
            if rng.random() < 0.3:
                statement = step.next(model)
                self.change(client, statement, model)
                continue
            words = ["BEGIN"]
            for number in range(rng.randrange(1, 6)):
                if rng.random() < 0.15:
                    ignored = copy.deepcopy(model)
                    words += [f"SAVEPOINT p{number}", step.next(ignored), f"ROLLBACK TO p{number}"]
                words.append(step.next(model))
            self.change(client, "; ".join([*words, "COMMIT"]), model)
            if rng.random() < 0.1:
                self.attempt(client, "CHECKPOINT")

    def shown(self, state: Any) -> Any:
        """See Modelled."""
        return expected(state)

    def read(self, client: Client) -> Any:
        """See Modelled."""
        found = {}
        for name, oid in client.run(
            "SELECT relname, oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace "
            f"AND relname LIKE '{self.prefix.replace('_', chr(92) + '_')}%'"
        ).rows:
            columns = client.run(
                f"SELECT attname FROM pg_attribute WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped "
                "ORDER BY attnum"
            ).rows
            indexes = client.run(
                "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
                f"WHERE i.indrelid = {oid} AND NOT i.indisprimary"
            ).rows
            rows = [tuple(cell or "" for cell in row) for row in client.run(f"SELECT * FROM {name}").rows]
            found[name] = ([c for (c,) in columns], sorted(rows), sorted(i or "" for (i,) in indexes))
        return found


@dataclass
class Families(Modelled):
    """Parents and children whose foreign key is checked at commit, and places that are swapped below a deferred key."""

    owner: int = 1
    _next: int = 0

    def set_up(self, client: Client) -> None:
        """See Workload; the first owner makes the tables for all."""
        self.states = [{}]
        if self.owner == 1:
            client.run(
                "CREATE TABLE parent (id bigint PRIMARY KEY, owner int, children int, place bigint, "
                "CONSTRAINT parent_place UNIQUE (place) DEFERRABLE INITIALLY DEFERRED)"
            )
            client.run(
                "CREATE TABLE child (id bigint, n int, PRIMARY KEY (id, n), "
                "FOREIGN KEY (id) REFERENCES parent ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED)"
            )
            client.run("CREATE INDEX child_n ON child (n)")

    def work(self, client: Client, rng: random.Random, stop: threading.Event) -> None:
        """See Workload."""
        while not stop.is_set():
            state: dict[int, tuple[int, int]] = dict(self.states[0])  # parent -> children, place
            kind = rng.random()
            if kind < 0.05:
                orphan = f"BEGIN; INSERT INTO child VALUES ({-self.owner}, 1); COMMIT"
                self.attempt(client, orphan, wanted="23503")
            elif kind < 0.5 or len(state) < 2:
                self._next += 1
                new, count = self.owner * 10**9 + self._next, rng.randrange(1, 30)
                state[new] = (count, new)
                self.change(
                    client,
                    f"BEGIN; INSERT INTO child SELECT {new}, i FROM generate_series(1, {count}) AS g (i); "
                    f"INSERT INTO parent VALUES ({new}, {self.owner}, {count}, {new}); COMMIT",
                    state,
                )
            elif kind < 0.75:
                one, other = rng.sample(sorted(state), 2)
                (a, at), (b, bt) = state[one], state[other]
                state[one], state[other] = (a, bt), (b, at)
                self.change(
                    client,
                    f"BEGIN; UPDATE parent SET place = {bt} WHERE id = {one}; "
                    f"UPDATE parent SET place = {at} WHERE id = {other}; COMMIT",
                    state,
                )
            else:
                gone = rng.choice(sorted(state))
                del state[gone]
                self.change(client, f"DELETE FROM parent WHERE id = {gone}", state)

    def read(self, client: Client) -> Any:
        """See Modelled."""
        rows = client.run(
            "SELECT p.id, p.children, p.place, (SELECT count(*) FROM child c WHERE c.id = p.id) "
            f"FROM parent p WHERE owner = {self.owner}"
        ).rows
        found = {}
        for row in rows:
            number, children, place, count = (int(cell or 0) for cell in row)
            found[number] = (children if children == count else -1, place)
        return found

    def check(self, client: Client) -> list[str]:
        """See Workload."""
        orphans = client.run(
            "SELECT count(*) FROM child c WHERE NOT EXISTS (SELECT FROM parent p WHERE p.id = c.id)"
        ).rows[0][0]
        return [*super().check(client), *([f"{orphans} orphans"] if orphans != "0" else [])]


@dataclass
class Indexes(Modelled):
    """Indexes built online over tables that others write to, and dropped."""

    def set_up(self, client: Client) -> None:
        """See Workload."""
        self.states = [frozenset()]

    def work(self, client: Client, rng: random.Random, stop: threading.Event) -> None:
        """See Workload."""
        places = (
            ("account", "balance"),
            ("transfer", "amount"),
            ("bulk", "n"),
            ("child", "n"),
            ("parent", "children"),
        )
        number = 0
        while not stop.is_set():
            number += 1
            table, column = rng.choice(places)
            name = f"built_{table}_{rng.randrange(3)}"
            state = set(self.states[0])
            if name in state:
                self.change(client, f"DROP INDEX {name}", frozenset(state - {name}))
            else:
                self.change(client, f"CREATE INDEX {name} ON {table} ({column})", frozenset(state | {name}))

    def read(self, client: Client) -> Any:
        """See Modelled."""
        rows = client.run("SELECT relname FROM pg_class WHERE relkind = 'i' AND relname LIKE 'built%'").rows
        return frozenset(name for (name,) in rows)


@dataclass
class Snapshots(Base):
    """Reads the same twice in one transaction while others write, which keeps history; makes checkpoints."""

    def set_up(self, client: Client) -> None:
        """See Workload."""

    def work(self, client: Client, rng: random.Random, stop: threading.Event) -> None:
        """See Workload."""
        query = "SELECT sum(balance), sum(id * balance), (SELECT count(*) FROM transfer) FROM account"
        try:
            while not stop.is_set():
                client.run("BEGIN READ ONLY")
                before = client.run(query).rows
                self.attempt(client, "SELECT count(*) FROM bulk")
                stop.wait(rng.uniform(0, 0.4))
                after = client.run(query).rows
                client.run("COMMIT")
                if before != after or before[0][0] != "0":
                    self.problems.append(f"a snapshot changed from {before} to {after}")
                self.acknowledged += 1
                self.attempt(client, "CHECKPOINT")
        except ServerError as error:
            if error.sqlstate not in OPEN_OUTCOMES:
                self.problems.append(f"a reader was refused: {error}")
        except OSError as error:
            raise CutOff from error

    def check(self, client: Client) -> list[str]:
        """See Workload."""
        return []


@dataclass
class Blobs(Modelled):
    """Large objects made, written with holes, cut, commented on and removed, several of that in one transaction."""

    def set_up(self, client: Client) -> None:
        """See Workload."""
        self.states = [{}]

    def work(self, client: Client, rng: random.Random, stop: threading.Event) -> None:
        """See Workload."""
        while not stop.is_set():
            model: dict[int, tuple[bytes, str]] = dict(self.states[0])
            words = ["BEGIN"]
            for number in range(rng.randrange(1, 5)):
                if rng.random() < 0.15:
                    undone = self._step(rng, dict(model))
                    words += [f"SAVEPOINT p{number}", undone, f"ROLLBACK TO p{number}"]
                words.append(self._step(rng, model))
            self.change(client, "; ".join([*words, "COMMIT"]), model)
            if rng.random() < 0.05:
                self.attempt(client, "CHECKPOINT")

    def _step(self, rng: random.Random, model: dict[int, tuple[bytes, str]]) -> str:
        number = rng.randrange(9001, 9005)
        if number not in model:
            model[number] = (b"new", "")
            return f"SELECT lo_from_bytea({number}, 'new')"
        data, comment = model[number]
        what = rng.random()
        if what < 0.15:
            del model[number]
            return f"SELECT lo_unlink({number})"
        if what < 0.3:
            model[number] = (data, f"comment {rng.randrange(9)}")
            return f"COMMENT ON LARGE OBJECT {number} IS '{model[number][1]}'"
        if what < 0.5:
            length = rng.randrange(2 * len(data) + 1)
            model[number] = (data[:length].ljust(length, b"\0"), comment)
            return f"SELECT lo_truncate(lo_open({number}, 131072), {length})"
        offset, letter, length = rng.randrange(60_000), rng.choice("abc"), rng.randrange(1, 20_000)
        head = data[:offset].ljust(offset, b"\0")
        model[number] = (head + letter.encode() * length + data[offset + length :], comment)
        return f"SELECT lo_put({number}, {offset}, repeat('{letter}', {length})::bytea)"

    def shown(self, state: Any) -> Any:
        """See Modelled."""
        return {
            str(number): (str(len(data)), hashlib.md5(data).hexdigest(), comment or None)
            for number, (data, comment) in state.items()
        }

    def read(self, client: Client) -> Any:
        """See Modelled."""
        rows = client.run(
            "SELECT oid, length(lo_get(oid)), md5(lo_get(oid)), obj_description(oid, 'pg_largeobject')"
            " FROM pg_largeobject_metadata"
        ).rows
        return {number: tuple(rest) for number, *rest in rows}


def everything(expected: tuple[str, ...] = RETRIED) -> list[tuple[Workload, int]]:
    """Return all workloads, the tables' makers first, with the number of clients of each. ``expected``: SQLSTATEs."""
    return [
        (Transfers(expected=expected), 3),
        (Families(owner=1, expected=expected), 1),
        (Families(owner=2, expected=expected), 1),
        (Shapes(prefix="s_", expected=expected), 1),
        (Shapes(prefix="z_", expected=expected), 1),
        (Indexes(expected=expected), 1),
        (Snapshots(expected=expected), 1),
        (Blobs(expected=expected), 1),
    ]
