"""The walk itself, against any server that speaks PostgreSQL's protocol: SQLSTATEs by case, role and way of running.

block       BEGIN, the statement, ROLLBACK                          by a session of the role
alone       the statement by itself                                 by a session of the role
prepared    Parse by a superuser, then SET LOCAL ROLE, Execute      in a block of the superuser's session
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Final, Literal, TypeAlias

import psycopg
from psycopg import pq

from planner import statements as st
from tests.rights.cases import Case
from tests.rights.world import ACTORS, SETUP

Mode: TypeAlias = Literal["block", "alone", "prepared"]
MODES: Final[tuple[Mode, ...]] = ("block", "alone", "prepared")
Outcomes: TypeAlias = dict[str, str]  # role -> SQLSTATE, "00000" for a success

OK: Final = "00000"
_OPENING: Final = ("PREPARE w_read AS SELECT a FROM w.t", "PREPARE w_write AS UPDATE w.t SET a = 5")
_OF_SESSION: Final = (
    st.SetVariable, st.Prepare, st.DeclareCursor, st.ExecutePrepared, st.Fetch, st.CloseCursor, st.Deallocate, st.Discard,
    st.Transaction, st.SetTransaction, st.Copy,
)  # fmt: skip
"""Classes that the way ``prepared`` says nothing of: they are about the session, or take their rows from the client."""


class Walk:
    """Sessions of all roles on one server."""

    def __init__(self, dsn: str) -> None:
        """``dsn``: of a superuser, in a database where the world is not yet."""
        self._dsn = dsn
        self.root = self._connect("postgres")
        self._sessions: dict[str, pq.PGconn] = {"postgres": self._connect("postgres")}
        self._prepared: str | None = None

    def __enter__(self) -> Walk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in (self.root, *self._sessions.values()):
            session.finish()

    def _connect(self, user: str) -> pq.PGconn:
        session = pq.PGconn.connect(psycopg.conninfo.make_conninfo(self._dsn, user=user).encode())
        if session.status != pq.ConnStatus.OK:
            raise RuntimeError(session.error_message.decode())
        return session

    def set_up(self) -> None:
        """Make the world. Raises RuntimeError where a statement of it fails."""
        for sql in SETUP:
            state = run(self.root, sql)
            if state != OK:
                raise RuntimeError(f"{state} {sql}: {self.root.error_message.decode()}")

    def _session(self, actor: str, of: type) -> pq.PGconn:
        session = self._sessions.get(actor)
        if session is None:
            session = self._sessions[actor] = self._connect(actor)
        if of is st.ExecutePrepared:
            for sql in _OPENING:  # fails where it is there already
                run(session, sql)
        return session

    def outcomes(self, case: Case, mode: Mode, actors: Iterable[str]) -> Outcomes:
        """Return what each role is answered."""
        way: Callable[[Case, str], str] = {
            "block": self._in_block, "alone": self._alone, "prepared": self._prepared_for,
        }[mode]  # fmt: skip
        return {actor: way(case, actor) for actor in actors}

    def _in_block(self, case: Case, actor: str) -> str:
        session = self._session(actor, case.of)
        run(session, "BEGIN")
        state = run(session, case.sql)
        run(session, "ROLLBACK")
        if case.of is st.Prepare:  # which no ROLLBACK undoes, and the case may be run for the same role again
            run(session, "DEALLOCATE ALL")
        return state

    def _alone(self, case: Case, actor: str) -> str:
        state = run(self._session(actor, case.of), case.sql)
        if state == OK and case.undo and (wrong := run(self.root, case.undo)) != OK:
            raise RuntimeError(f"{wrong} {case.undo}")
        return state

    def _prepared_for(self, case: Case, actor: str) -> str:
        if self._prepared != case.sql:
            if self._prepared is not None:
                run(self.root, "DEALLOCATE w_case")
            self._prepared = None
            made = self.root.prepare(b"w_case", case.sql.encode())
            if made.status == pq.ExecStatus.FATAL_ERROR:
                return _state(made)
            self._prepared = case.sql
        run(self.root, "BEGIN")
        run(self.root, f'SET LOCAL SESSION AUTHORIZATION "{actor}"')
        state = _state(self.root.exec_prepared(b"w_case", []))
        run(self.root, "ROLLBACK")
        return state


def applies(case: Case, mode: Mode) -> bool:
    """Tell whether a case is run in a way at all."""
    return mode != "prepared" or not issubclass(case.of, _OF_SESSION)


def may_run_alone(case: Case, in_block: str) -> bool:
    """Tell whether what runs alone leaves nothing behind: it fails, as in a block, or a case says how it is undone."""
    return case.undo is not None or in_block not in (OK, "25001")


def run(session: pq.PGconn, sql: str) -> str:
    """Run one Query; COPY moves no rows."""
    result = session.exec_(sql.encode())
    if result.status == pq.ExecStatus.COPY_IN:
        session.put_copy_end()
        result = session.get_result() or result
    elif result.status == pq.ExecStatus.COPY_OUT:
        while session.get_copy_data(0)[0] > 0:
            pass
        result = session.get_result() or result
    while session.get_result() is not None:
        pass
    return _state(result)


def _state(result: pq.abc.PGresult) -> str:
    if result.status not in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE):
        return OK
    return (result.error_field(pq.DiagnosticField.SQLSTATE) or b"?").decode()


def folded(outcomes: Outcomes, stranger: str) -> Outcomes:
    """Return outcomes without those that are the stranger's, which is under ""."""
    usual = outcomes[stranger]
    return {"": usual} | {actor: state for actor, state in outcomes.items() if state != usual}


def unfolded(outcomes: Mapping[str, str], actors: Collection[str] = ACTORS) -> Outcomes:
    """Return what ``folded`` has folded, for some roles."""
    return {actor: outcomes.get(actor, outcomes[""]) for actor in actors}
