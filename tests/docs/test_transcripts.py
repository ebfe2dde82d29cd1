"""What the pages for users show of sessions is what the server prints (tests/docs/transcripts.py)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from psycopg import pq
from psycopg.pq import abc

from tests.docs.transcripts import BLOCK, Transcript
from tests.support.server import ServerProcess

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = [
    str(page.relative_to(ROOT))
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(page.read_text("utf-8"))
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("transcripts"))
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("transcripts"), "--spark-start", "lazy")
    yield running
    assert running.stop() == 0


def _runs(page: str, server: ServerProcess, rewrite: bool, *, with_spark: bool) -> None:
    """Run a page's blocks in a database of its own, and compare."""
    name = re.sub(r"\W", "_", page).lower()
    server.sql(f"CREATE DATABASE {name}")

    def connect() -> abc.PGconn:
        made = pq.PGconn.connect(f"host=127.0.0.1 port={server.port} user=postgres dbname={name}".encode())
        assert made.status == pq.ConnStatus.OK, made.get_error_message()
        return made

    path = ROOT / page
    text = path.read_text("utf-8")
    transcript = Transcript(connect)

    def run(found: re.Match[str]) -> str:
        mark, block = found.groups()
        if mark and not with_spark:
            return found[0]
        return f"{mark or ''}```psql\n{transcript.run(block)}```"

    try:
        ran = BLOCK.sub(run, text)
    finally:
        transcript.close()
    if rewrite:
        path.write_text(ran, "utf-8")
    diff = difflib.unified_diff(
        text.splitlines(), ran.splitlines(), page, "what the server prints", lineterm="", n=8
    )
    assert ran == text, "\n".join(diff)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_the_server_prints(page: str, server: ServerProcess, rewrite: bool) -> None:
    _runs(page, server, rewrite, with_spark=False)


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page", [page for page in PAGES if "<!-- spark -->" in (ROOT / page).read_text("utf-8")]
)
def test_a_page_shows_what_spark_answers(page: str, spark: ServerProcess, rewrite: bool) -> None:
    _runs(page, spark, rewrite, with_spark=True)


def test_the_tour_and_the_readme_are_run() -> None:
    assert {"README.md", "docs/index.md"} <= set(PAGES)


def test_another_answer_is_found(server: ServerProcess) -> None:
    def connect() -> abc.PGconn:
        return pq.PGconn.connect(f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres".encode())

    transcript = Transcript(connect)
    try:
        shown = "a=# SELECT 1 AS n;\n n\n---\n 2\n(1 row)\n\na=# BEGIN;\nBEGIN\na=# SELECT 1/0;\n"
        assert transcript.run(shown) == (
            "a=# SELECT 1 AS n;\n n\n---\n 1\n(1 row)\n\na=# BEGIN;\nBEGIN\na=*# SELECT 1/0;\nERROR:  division by zero\n"
        )
        with pytest.raises(ValueError, match="nothing has shown 117690658135572480"):
            transcript.run("b=# SELECT 117690658135572480;\n")
        # two timestamps that are equal on the page, and are not
        one = "117690658135572480"
        shown = f"b=# SELECT 117::text || '690658135572480' AS a, 117::text || '690658135572481' AS b;\n a | b\n---+---\n {one} | {one}\n(1 row)\n"
        assert transcript.run(shown).splitlines()[3].split(" | ")[1].strip() != one
    finally:
        transcript.close()
