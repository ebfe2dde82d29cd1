"""What a client has learnt as a row's xmin stays its xmin: over COMMIT, flushes, merges, restarts, and in the past."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.server import ServerProcess

Client = psycopg.Connection[Any]


def connect(server: ServerProcess) -> Client:
    return psycopg.connect(
        host="127.0.0.1", port=server.port, user="postgres", dbname="postgres", autocommit=True
    )


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with closing(connect(server)) as made:
        made.execute("DROP TABLE IF EXISTS told")
        made.execute("CREATE TABLE told (id int PRIMARY KEY, v int)")
        yield made


def versions(client: Client, clause: str = "") -> dict[int, int]:
    """Return the xmin of each row by its id."""
    rows = client.execute(f"SELECT id, xmin::text::int8 FROM told {clause}").fetchall()
    return {id_: int(xmin) for id_, xmin in rows}


class Model:
    """Rows whose version somebody knows by its xmin, and what it said then."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.known: dict[int, int] = {}
        self.next = 1
        self.moments: list[tuple[int, dict[int, int]]] = []

    def step(self, client: Client) -> None:
        """Change rows in one of many ways, and learn what becomes of them."""
        rng = self.rng
        some = rng.sample(sorted(self.known), min(len(self.known), rng.randrange(1, 4)))
        match rng.randrange(8):
            case 0 | 1:
                ids = list(range(self.next, self.next + rng.randrange(1, 6)))
                self.next = ids[-1] + 1
                values = ", ".join(f"({i}, 0)" for i in ids)
                for id_, xmin in client.execute(
                    f"INSERT INTO told VALUES {values} RETURNING id, xmin::text::int8"
                ).fetchall():
                    self.known[id_] = xmin
            case 2:  # as a client does that notices others' changes
                for id_ in some:
                    changed = client.execute(
                        "UPDATE told SET v = v + 1 WHERE id = %s AND xmin = %s::text::xid RETURNING xmin::text::int8",
                        (id_, str(self.known[id_])),
                    ).fetchall()
                    assert len(changed) == 1, "nobody else has changed it"
                    assert changed[0][0] != self.known[id_]
                    self.known[id_] = changed[0][0]
            case 3:  # nobody asks before the commit
                client.execute("UPDATE told SET v = v + 1 WHERE id = ANY (%s)", (some,))
                now = versions(client)
                for id_ in some:
                    assert now[id_] != self.known[id_]
                    self.known[id_] = now[id_]
            case 4:  # asked within the block, by another way than RETURNING
                client.execute("BEGIN")
                client.execute("UPDATE told SET v = v + 1 WHERE id = ANY (%s)", (some,))
                asked = rng.random() < 0.5
                inside = versions(client) if asked else {}
                own = client.execute("SELECT txid_current() & 4294967295").fetchone()
                assert own is not None
                assert not asked or {inside[id_] for id_ in some} <= {own[0]}
                client.execute("COMMIT")
                self.known.update(dict.fromkeys(some, own[0]))
            case 5 if some:
                gone = client.execute(
                    "DELETE FROM told WHERE id = %s RETURNING xmin::text::int8", (some[0],)
                ).fetchone()
                assert gone == (self.known.pop(some[0]),)
            case 6:
                client.execute("CHECKPOINT")
            case _:  # a commit of many rows, which become a part of their own
                first, self.next = self.next, self.next + 30
                client.execute("BEGIN")
                with client.cursor().copy("COPY told FROM STDIN") as copy:
                    for id_ in range(first, self.next):
                        copy.write_row((id_, 0))
                xmin = versions(client, f"WHERE id >= {first}") if rng.random() < 0.6 else {}
                client.execute("COMMIT")
                self.known.update(xmin or versions(client, f"WHERE id >= {first}"))

    def check(self, client: Client) -> None:
        """Every version shows what it did, by scan, by key and in the past."""
        assert versions(client) == self.known
        for id_ in self.rng.sample(sorted(self.known), min(len(self.known), 3)):
            assert versions(client, f"WHERE id = {id_}") == {id_: self.known[id_]}
            found = client.execute(
                "SELECT id FROM told WHERE xmin = %s::text::xid AND id = %s", (str(self.known[id_]), id_)
            )
            assert found.fetchall() == [(id_,)]

    def remember(self, client: Client) -> None:
        now = client.execute("SELECT read_ts FROM holdfast_timelines").fetchone()
        assert now is not None
        self.moments.append((now[0], dict(self.known)))

    def check_past(self, client: Client) -> None:
        for moment, known in self.moments:
            assert versions(client, f"AS OF SYSTEM TIME {moment}") == known


@pytest.mark.parametrize("seed", range(4))
def test_a_version_keeps_its_number(client: Client, seed: int) -> None:
    model = Model(random.Random(seed))
    for _ in range(60):
        model.step(client)
        model.check(client)
    assert len(set(model.known.values())) > 5


def test_a_version_keeps_its_number_over_restarts_and_in_the_past(tmp_path: Path) -> None:
    model = Model(random.Random(7))
    data = tmp_path / "data"
    options = ("--history-retention", "3600")
    for crash in (True, False, True, True):
        server = ServerProcess(data, *options)
        try:
            with closing(connect(server)) as client:
                client.execute("CREATE TABLE IF NOT EXISTS told (id int PRIMARY KEY, v int)")
                model.moments.clear()  # nothing before a manifest is readable after a restart
                model.check(client)
                for _ in range(40):
                    model.step(client)
                    if model.rng.random() < 0.2:
                        model.remember(client)
                model.check(client)
                model.check_past(client)
        finally:
            if crash:
                server.kill()
            else:
                server.stop()


def test_numbers_do_not_repeat_soon(client: Client) -> None:
    """Neither those of commits nor ids: none is the other's, and time does not bring them back."""
    asked = [
        client.execute("INSERT INTO told VALUES (%s, 0) RETURNING xmin::text::int8", (i,)).fetchone()
        for i in range(1, 100)
    ]
    for i in range(100, 200):
        client.execute("INSERT INTO told VALUES (%s, 0)", (i,))
    found = versions(client)
    assert [found[i] for i in range(1, 100)] == [row[0] for row in asked if row is not None]
    assert len(set(found.values())) == 199
    assert min(found.values()) > 2
    assert max(found.values()) < 2**32
