"""Every short way beside every DDL on its table, waiting for it and right after it: what PostgreSQL answers, and never XX000.

``short_ways.json`` has what PostgreSQL 15 answers; ``--rewrite`` asks it anew. Reads beside DDL differ: here they answer at once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.differential.short_ways import DDL, FORMS, READS, WAYS, connect, play
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

RECORDED = Path(__file__).with_name("short_ways.json")
PARTS = 37  # prime to the numbers of forms and ways, so that each meets each in a few runs of one part

Case = tuple[str, str, str, bool]


def cases(part: int = 0, parts: int = 1) -> list[Case]:
    every = [
        (way, ddl, form, waiting)
        for way in WAYS
        for ddl in DDL
        for form in FORMS
        for waiting in (True, False)
    ]
    return every[part::parts]


def answers(dsn: str, chosen: list[Case]) -> dict[str, Any]:
    """Return what a server answers, by case."""
    boss, client = connect(dsn)
    try:
        return {
            _name(case): play(boss, client, case[0], case[2], case[1], waiting=case[3]) for case in chosen
        }
    finally:
        client.close()
        boss.close()


def _name(case: Case) -> str:
    way, ddl, form, waiting = case
    return f"{way}, {form}, {'beside' if waiting else 'after'} {ddl}"


def _expected(recorded: dict[str, Any], case: Case) -> Any:
    way, _ddl, form, waiting = case
    return recorded[_name((way, "nothing", form, False) if waiting and way in READS else case)]


def _compare(folder: Path, chosen: list[Case]) -> None:
    recorded = json.loads(RECORDED.read_text())
    server = ServerProcess(folder)
    found = answers(server.url, chosen)
    expected = {_name(case): _expected(recorded, case) for case in chosen}
    assert {n: a for n, a in found.items() if a != expected[n]} == {}
    server.stop()


def test_short_ways_beside_ddl_answer_as_on_postgresql(tmp_path: Path) -> None:
    worst = ("insert on conflict", "drop column", "prepared", True)  # was XX000
    _compare(tmp_path, [worst, ("insert", "drop", "prepared", True), *cases(0, PARTS)])


@pytest.mark.long
def test_all_short_ways_beside_ddl_answer_as_on_postgresql(tmp_path: Path) -> None:
    _compare(tmp_path, cases())


def test_what_postgresql_answers_is_what_is_recorded(postgres: str, rewrite: bool) -> None:
    found = answers(postgres, cases() if rewrite else cases(1, 400))
    if rewrite:
        lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in found.items()]
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    recorded = json.loads(RECORDED.read_text())
    assert {name: recorded[name] for name in found} == found
