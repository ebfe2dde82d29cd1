"""A short run of the fuzzer, what it has found so far, and that it would notice: ``make fuzz`` runs it for long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from engine.connection.backend import Connection
from engine.session.cursors import Cursors
from pgwire.codecs.copy.lines import LineDecoder
from pgwire.messages import decode
from tests.fuzz import mutate, targets
from tests.fuzz.__main__ import fuzz
from tests.fuzz.corpus import conversation, frame, statements
from tests.fuzz.mutate import messages
from tests.fuzz.server import World, open_descriptors, sessions_in_memory


@pytest.mark.parametrize(
    ("target", "runs", "thin"), [("mixed", 150, 40), pytest.param("server", 3000, 1, marks=pytest.mark.long)]
)
def test_no_input_breaks_a_promise(target: str, runs: int, thin: int, tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris has no wheel for this platform")
    status, said = fuzz(target, seconds=0, runs=runs, seed=20261122, folder=tmp_path, thin=thin)
    assert status == 0, said
    assert " 0 inputs" not in said, said


def test_changes_of_a_long_token_stay_small() -> None:
    word = "SELECT" * 1400
    assert max(len(mutate.sql(word, Random(seed))) for seed in range(2000)) < 50_000_000


def test_no_conversation_breaks_a_promise(world: World) -> None:
    rng = Random(20261122)
    for number in range(120):
        stream = conversation(rng.choice(statements()), number)
        world.play(bytes([rng.choice((1, 1, 17, 33, 3))]) + messages(stream, rng))
    assert len(world.answers) > 20, world.answers


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World(patience_s=120.0)
    yield made
    made.close()


ENDED_IN_COPY = bytes([0, 0, 9]) + b"1\t2\tx\n\\.\n\rwhat follows the end of the data\xff\n"
FOUND = [
    ("server", b"\1" + conversation("FETCH j", 1)),
    ("server", b"\1" + conversation(f"SELECT {'9' * 5000}", 0)),
    ("sql", b"CREATE DATABASE d CONNECTION LIMIT many"),
    ("sql", b"SUBSCRIBE ()"),
    ("sql", b"SELECT 1; SUBSCRIBE ( /* */ ) WITH (PROGRESS)"),
    ("copy", ENDED_IN_COPY),
    ("copy", bytes([1, 0, 4]) + b"1,2\n\"\xff\",3,4\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "data"), FOUND, ids=[f"{target} {n}" for n, (target, _) in enumerate(FOUND)]
)
def test_what_was_found_stays_mended(world: World, target: str, data: bytes) -> None:
    (world.play if target == "server" else getattr(targets, target))(data)


def test_nothing_of_a_conversation_stays_in_memory_or_open() -> None:
    world = World(patience_s=120.0)
    world.play(b"\1" + conversation("SELECT 1", 1))
    kept, descriptors = sessions_in_memory(), open_descriptors()
    begun = (
        "SELECT * FROM t",
        "SELECT 1/0",
        "BEGIN; DECLARE c CURSOR FOR SELECT * FROM t",
        "COPY t FROM STDIN",
    )
    for number, sql in enumerate(begun):
        for choice in (1, 17, 33):
            world.play(bytes([choice]) + conversation(sql, number + choice))
    assert sessions_in_memory() <= kept
    assert open_descriptors() <= descriptors
    world.close()


def test_an_exception_within_the_server_is_a_finding(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cursors, "find", lambda self, name: 1 / 0)
    with pytest.raises(targets.Broken, match="logged as a bug"):
        world.play(b"\1" + conversation("FETCH j", 1))


def test_what_a_client_leaves_behind_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(patience_s=0.1)
    close = Connection.close
    monkeypatch.setattr(Connection, "close", lambda self: None)
    with pytest.raises(targets.Broken, match="left behind"):
        world.play(b"\1" + conversation("BEGIN; INSERT INTO t VALUES (99)", 0))
    monkeypatch.setattr(Connection, "close", close)
    for connection in list(world._database.sessions.values()):
        connection.close()
    world.close()


def test_reading_that_depends_on_where_packets_end_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LineDecoder, "_block", LineDecoder._lines)
    with pytest.raises(targets.Broken, match="in pieces"):
        targets.copy(ENDED_IN_COPY)
    monkeypatch.setattr(
        decode, "nothing", lambda data, start, stop: None if stop < 60 else decode.finish(0, 1)
    )
    stream = b"\3" + b"\0\0\0\x10\0\3\0\0user\0a\0\0" + frame(b"p", b"x") + 9 * (frame(b"H") + frame(b"S"))
    with pytest.raises(targets.Broken, match="in pieces"):
        targets.wire(stream)
