"""Who may do what, walked: every class of statements by many roles, in a block, alone, and prepared by somebody else.

What PostgreSQL 15 answered is in ``expected.json``. Here each statement is run by a superuser, the owner, a stranger and some of the others,
so that every role comes up often; ``make rights`` runs it for all of them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner import statements as st
from planner.base.total import members
from tests.engine.conftest import server
from tests.rights.cases import CASES, OWN, OWN_SETUP, Case, OwnCase
from tests.rights.play import MODES, OK, Mode, Outcomes, Walk, applies, run, unfolded
from tests.rights.world import STRANGER
from tests.support.server import ServerProcess

__all__ = ["server"]

EXPECTED: dict[str, dict[str, Outcomes]] = json.loads((Path(__file__).parent / "expected.json").read_text())
ALWAYS = ("postgres", "w_owner", STRANGER)

DIFFERENT: dict[str, tuple[str, str, str]] = {
    "SELECT * FROM pg_authid": (OK, "42501", "verifiers are shown to superusers alone, not to pg_read_all_data"),
    "SELECT * FROM pg_shadow": (OK, "42501", "as pg_authid"),
    "COPY w.t TO '/nowhere/x'": ("58P01", "42501", "files are below server_files"),
    "COPY w.t FROM '/nowhere/x'": ("58P01", "42501", "files are below server_files"),
    "EXPLAIN CREATE TABLE w.n AS SELECT a FROM w.t": (OK, "42501", "EXPLAIN asks what the statement asks"),
    "REINDEX DATABASE w_db": ("25001", "0A000", "that it is another database comes first"),
    "GRANT SELECT ON w.t TO PUBLIC WITH GRANT OPTION": ("42501", "0LP01", "that nobody may grant this comes first"),
}  # fmt: skip
"""PostgreSQL's SQLSTATE, the one here, and why; whoever of the roles is answered so."""
INLINED = "w.f()"
"""PostgreSQL asks for EXECUTE of a function that it inlines when it plans, so a plan that somebody else's call left behind runs without."""


@pytest.fixture(scope="module")
def walk(server: ServerProcess) -> Iterator[Walk]:
    with Walk(f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres") as made:
        made.set_up()
        for sql in OWN_SETUP:
            assert run(made.root, sql) == OK, sql
        yield made


def _expected(case: Case, mode: Mode) -> Outcomes:
    return {
        actor: state
        for actor, state in unfolded(EXPECTED[case.sql][mode]).items()
        if state and (mode != "alone" or case.undo is not None or state != OK)
    }


def _some(case: Case, mode: Mode, expected: Outcomes) -> list[str]:
    """Return whom a case is run for: of those who are answered as strangers are, and of the others, a few at a time."""
    turn = zlib.crc32(f"{mode} {case.sql}".encode())
    usual = expected.get(STRANGER, "")
    chosen = [actor for actor in (ALWAYS if mode != "alone" else (STRANGER,)) if actor in expected]
    for others, count in (
        ([a for a in expected if expected[a] != usual], 1),
        ([a for a in expected if expected[a] == usual], 1),
    ):
        chosen += [others[(turn + 7 * number) % len(others)] for number in range(count if others else 0)]
    return list(dict.fromkeys(chosen))


def _differs(case: Case, mode: Mode, actor: str, theirs: str, ours: str) -> bool:
    if theirs == ours:
        return False
    if mode == "prepared" and INLINED in case.sql and (theirs, ours) == (OK, "42501"):
        return False
    return DIFFERENT.get(case.sql, ("", "", ""))[:2] != (theirs, ours)


def _walk(walk: Walk, mode: Mode, *, everybody: bool) -> list[tuple[str, str, str, str]]:
    wrong = []
    for case in CASES:
        if mode not in EXPECTED[case.sql]:
            continue
        expected = _expected(case, mode)
        actors = list(expected) if everybody else _some(case, mode, expected)
        for actor, ours in walk.outcomes(case, mode, actors).items():
            if _differs(case, mode, actor, expected[actor], ours):
                wrong.append((case.sql, actor, expected[actor], ours))
    return wrong


@pytest.mark.parametrize("mode", MODES)
def test_roles_may_what_they_may_in_postgresql(walk: Walk, mode: Mode) -> None:
    assert _walk(walk, mode, everybody=False) == []


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_all_roles_may_what_they_may_in_postgresql(walk: Walk, mode: Mode) -> None:
    assert _walk(walk, mode, everybody=True) == []


@pytest.mark.parametrize("own", OWN, ids=[own.sql for own in OWN])
def test_who_may_what_postgresql_lacks(walk: Walk, own: OwnCase) -> None:
    case = Case(own.of, own.sql)
    for actor in ("postgres", "w_owner", "w_distant", "h_select_a", "h_update", "h_read_write", STRANGER):
        usual = OK if actor in own.may else "42501"
        assert walk.outcomes(case, "block", [actor]) == {actor: own.block or usual}
        if usual != OK:
            assert walk.outcomes(case, "alone", [actor]) == {actor: usual}


def test_every_class_is_walked() -> None:
    assert {case.of for case in CASES} | {own.of for own in OWN} == set(members(st.Statement))
    assert [case.sql for case in CASES if case.sql not in EXPECTED] == []
    assert all(applies(case, mode) or mode == "prepared" for case in CASES for mode in MODES)
    assert set(EXPECTED) == {case.sql for case in CASES}
