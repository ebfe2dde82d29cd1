"""The tables of states are complete, consistent and what the documentation shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgwire.messages.framing import AUTH, LARGE, SMALL
from pgwire.state import ACTED_ON, COPY_IN, DROPPED, RECEIVE, SEND, State, describe

DOC = Path(__file__).parents[2] / "docs" / "internals" / "pgwire.md"


def test_every_state_has_both_rows() -> None:
    assert set(RECEIVE) == set(SEND) == set(State)


def test_every_state_can_be_reached() -> None:
    reached = {State.STARTUP}
    for _ in State:
        for state in list(reached):
            reached |= set(RECEIVE[state].values()) | set(SEND[state].values())
    assert reached == set(State)


def test_dropped_messages_change_nothing() -> None:
    for state, kinds in DROPPED.items():
        for kind in kinds:
            assert RECEIVE[state][kind] is state
            assert kind not in ACTED_ON[state]


def test_an_error_in_the_extended_protocol_skips_to_sync() -> None:
    error = ord("E")
    for state in (State.EXTENDED, State.COPY_IN_EXTENDED, State.COPY_OUT_EXTENDED):
        assert SEND[state][error] is State.SKIP_UNTIL_SYNC
    acted_on = {chr(kind) for kind in ACTED_ON[State.SKIP_UNTIL_SYNC]}
    assert acted_on == {"S", "X"}


def test_ready_for_query_is_sent_only_where_a_batch_ends() -> None:
    sending = {state for state, row in SEND.items() if ord("Z") in row}
    assert sending == {State.AUTH, State.SIMPLE, State.SYNCING}


def test_nothing_is_read_while_the_server_is_at_work() -> None:
    for state in (State.SIMPLE, State.SYNCING, State.COPY_OUT_SIMPLE, State.COPY_OUT_EXTENDED, State.CLOSED):
        assert RECEIVE[state] == {}


def test_every_message_type_has_a_limit_and_a_place() -> None:
    placed = {kind for row in RECEIVE.values() for kind in row if kind < 256}
    assert placed == set(LARGE | SMALL | AUTH)
    assert not LARGE & SMALL


@pytest.mark.parametrize("state", sorted(COPY_IN, key=lambda state: state.value))
def test_copy_in_ends_where_it_began(state: State) -> None:
    home = State.SIMPLE if state is State.COPY_IN_SIMPLE else State.EXTENDED
    assert RECEIVE[state][ord("c")] is home
    assert RECEIVE[state][ord("f")] is home
    assert SEND[home][ord("G")] is state


def test_documentation_shows_these_tables() -> None:
    assert describe() in DOC.read_text(encoding="utf-8")
