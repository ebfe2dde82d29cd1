"""Whichever executor runs a query, the answer is the same (promise P3), wherever its rows lie.

Every query of every corpus runs on one server with ``executor = index`` and with each other route, over rows that are

    hot      just written
    parts    flushed by CHECKPOINT
    patched  flushed, then updated, deleted and inserted
    own      flushed, then changed by this transaction, which has not committed

A route may refuse a query (0A000); what each refuses is kept in ``refused_<route>.txt``. It never answers otherwise.

``make test`` runs every second query over rows of one state, each state having its share of them; ``make proofs`` runs all over all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import pytest

from sqllogictest.client import Client
from tests.conformance.executors.compare import REFUSED, Answer, agree, ask
from tests.conformance.executors.corpus import HERE, Corpus, corpora
from tests.support.server import ServerProcess

STATES = ("patched", "hot", "parts", "own")
NAMES = ("own", "correlated", "altered", "rows", "lower")
# Spark takes a fraction of a second for each query: one state of every corpus, and all kinds of rows once.
SPARK_STATES = (
    ("own", "patched"), ("own", "hot"), ("own", "own"), ("correlated", "patched"), ("altered", "patched"), ("rows", "parts"), ("lower", "parts"),
)  # fmt: skip
ANSWER_S = 900.0
LONG_S = 3600.0  # on a machine with two cores that does other things besides


TOLD_EVERY = 50  # queries

Tell: TypeAlias = Callable[[int, int], None]
"""Given how many queries of how many have been answered."""


def _quiet(done: int, of: int) -> None:
    return None


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Tell:
    """Print how far a comparison is, as it runs: it takes minutes."""
    started = time.monotonic()

    def say(done: int, of: int) -> None:
        with capsys.disabled():
            print(
                f"\n    {done} of {of} queries after {time.monotonic() - started:.0f} s", end=" ", flush=True
            )

    return say


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("executors") / "data", "--spark-start", "lazy")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Corpus]:
    return {corpus.name: corpus for corpus in corpora(tmp_path_factory.mktemp("scratch"))}


def _open(server: ServerProcess, corpus: Corpus, state: str) -> Client:
    """Return a connection that sees the corpus's tables in ``state``; in a block where the state is ``own``."""
    client = server.connect(ANSWER_S)
    schema = f"{corpus.name}_{state}"
    if not client.run(f"SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'").rows:
        client.run(f"CREATE SCHEMA {schema}")
        client.run(f"SET search_path = {schema}")
        for statement in corpus.setup:
            client.run(statement)
        if state != "hot":
            client.run("CHECKPOINT")
        if state == "patched" or corpus.name == "altered":
            for statement in corpus.changes:
                client.run(statement)
    client.run(f"SET search_path = {schema}")
    client.run("SET TimeZone = 'America/New_York'")
    if state == "own":
        client.run("BEGIN")
        if corpus.name != "altered":
            for statement in corpus.changes:
                client.run(statement)
    return client


def _answers(
    client: Client, executor: str, queries: tuple[str, ...], *, block: bool, tell: Tell = _quiet
) -> list[Answer]:
    found = []
    client.run(f"SET executor = {executor}")
    tell(0, len(queries))
    for number, sql in enumerate(queries, 1):
        if block:
            client.run("SAVEPOINT one")
        found.append(ask(client, sql))
        if block:
            client.run("ROLLBACK TO one; RELEASE one")
        if number % TOLD_EVERY == 0:
            tell(number, len(queries))
    return found


def _compare(
    server: ServerProcess, corpus: Corpus, state: str, route: str, tell: Tell = _quiet
) -> dict[str, set[str]]:
    """Return what each route refuses; fail where the two answers differ. ``tell``: how far the second route is."""
    client = _open(server, corpus, state)
    try:
        left = _answers(client, "index", corpus.queries, block=state == "own")
        right = _answers(client, route, corpus.queries, block=state == "own", tell=tell)
    finally:
        client.close()
    refused: dict[str, set[str]] = {"index": set(), route: set()}
    differ = []
    for sql, one, other in zip(corpus.queries, left, right, strict=True):
        if one.sqlstate == REFUSED:
            refused["index"].add(f"{one.message}: {sql}")
        if other.sqlstate == REFUSED:
            refused[route].add(f"{other.message}: {sql}")
        if REFUSED not in (one.sqlstate, other.sqlstate) and not agree(sql, one, other):
            differ.append(f"{sql}\n    index: {one}\n    {route}: {other}")
    assert not differ, f"{len(differ)} of {len(corpus.queries)} queries:\n" + "\n".join(differ)
    return refused


def _golden(route: str, corpus: Corpus, refused: set[str], rewrite: bool, *, some: bool = False) -> None:
    """Compare with what is kept; with ``some``, of the corpus's queries alone."""
    path = HERE / f"refused_{route}_{corpus.name}.txt"
    if rewrite:
        path.write_text("".join(f"{line}\n" for line in sorted(refused)), encoding="utf-8")
    kept = path.read_text(encoding="utf-8").splitlines()
    expected = {line for line in kept if not some or any(line.endswith(f": {sql}") for sql in corpus.queries)}
    assert expected == refused, f"{route} refuses other queries now (make proofs with --rewrite)"


@pytest.mark.parametrize("some", [True, pytest.param(False, marks=pytest.mark.long)], ids=["some", "all"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", NAMES)
def test_local_answers_as_index_does(
    server: ServerProcess, everything: dict[str, Corpus], name: str, state: str, some: bool, rewrite: bool
) -> None:
    corpus = everything[name]
    states = STATES if corpus.changes else ("hot", "parts")
    if name == "correlated":  # it is about queries, not about where their rows lie
        states = STATES[:1]
    if state not in states:
        pytest.skip("this corpus has no rows in this state")
    first = states[0]
    if some:
        corpus = replace(corpus, queries=corpus.queries[states.index(state) :: 2 * len(states)])
    refused = _compare(server, corpus, state, "local")
    # What is refused follows from the query alone, so one state writes it and all compare.
    _golden("index", corpus, refused["index"], rewrite and state == first and not some, some=some)
    _golden("local", corpus, refused["local"], rewrite and state == first and not some, some=some)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(LONG_S)
@pytest.mark.parametrize(("name", "state"), SPARK_STATES)
def test_spark_answers_as_index_does(
    server: ServerProcess, everything: dict[str, Corpus], name: str, state: str, rewrite: bool, tell: Tell
) -> None:
    refused = _compare(server, everything[name], state, "spark", tell)
    first = next(s for n, s in SPARK_STATES if n == name)
    _golden("spark", everything[name], refused["spark"], rewrite and state == first)
