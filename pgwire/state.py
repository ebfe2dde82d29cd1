"""The states of a server connection and every legal transition, as two tables.

House rules: a message is legal if and only if its table has a row for it in the current state; the row says
the state afterwards; nobody assigns a state except through a row, and except CLOSED, which a FATAL error, a
lost frame or a lost socket reach from anywhere.

    RECEIVE   state x frontend message -> state        SEND   state x backend message -> state

A state without frontend rows is one in which the server is at work and reads nothing (what arrives stays in
the buffer). Rows of ``DROPPED`` are legal but mean nothing there: stray COPY messages after a failed COPY,
Flush and Sync during COPY (manual 55.2.6), everything between an error and Sync.

Message types are written as their byte: ``Q`` Query, ``P`` Parse, ``B`` Bind, ``D`` Describe, ``E`` Execute,
``C`` Close, ``H`` Flush, ``S`` Sync, ``F`` FunctionCall, ``d c f`` CopyData, CopyDone, CopyFail,
``p`` password or SASL answer, ``X`` Terminate (manual 55.7 has the backend's).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from pgwire.messages import CANCEL_REQUEST, GSSENC_REQUEST, SSL_REQUEST, STARTUP_MESSAGE


class State(Enum):
    """Where a connection is."""

    STARTUP = "startup"
    AUTH = "auth"
    READY = "ready"
    SIMPLE = "simple"
    EXTENDED = "extended"
    SYNCING = "syncing"
    COPY_IN_SIMPLE = "copy-in (simple)"
    COPY_IN_EXTENDED = "copy-in (extended)"
    COPY_OUT_SIMPLE = "copy-out (simple)"
    COPY_OUT_EXTENDED = "copy-out (extended)"
    SKIP_UNTIL_SYNC = "skip-until-sync"
    CLOSED = "closed"

    # Members are singletons; hashing by identity keeps the tables out of Enum.__hash__, which is Python code.
    __hash__ = object.__hash__


# What every message asks for: a global is looked up in a tenth of the time that a member of an Enum takes.
STARTUP: Final = State.STARTUP
AUTH: Final = State.AUTH
READY: Final = State.READY
SIMPLE: Final = State.SIMPLE
EXTENDED: Final = State.EXTENDED
SYNCING: Final = State.SYNCING
SKIP_UNTIL_SYNC: Final = State.SKIP_UNTIL_SYNC
CLOSED: Final = State.CLOSED

_STARTUP = {
    "SSLRequest": SSL_REQUEST,
    "GSSENCRequest": GSSENC_REQUEST,
    "CancelRequest": CANCEL_REQUEST,
    "StartupMessage": STARTUP_MESSAGE,
}

S = State

RECEIVE_ROWS: Final[dict[State, dict[str, State]]] = {
    S.STARTUP: {
        "SSLRequest": S.STARTUP,
        "GSSENCRequest": S.STARTUP,
        "CancelRequest": S.CLOSED,
        "StartupMessage": S.AUTH,
    },
    S.AUTH: {"p": S.AUTH},
    S.READY: {"QF": S.SIMPLE, "PBDECH": S.EXTENDED, "S": S.SYNCING, "dcf": S.READY, "X": S.CLOSED},
    S.SIMPLE: {},
    S.EXTENDED: {"QF": S.SIMPLE, "PBDECH": S.EXTENDED, "S": S.SYNCING, "dcf": S.EXTENDED, "X": S.CLOSED},
    S.SYNCING: {},
    S.COPY_IN_SIMPLE: {"d": S.COPY_IN_SIMPLE, "HS": S.COPY_IN_SIMPLE, "cf": S.SIMPLE},
    S.COPY_IN_EXTENDED: {"d": S.COPY_IN_EXTENDED, "HS": S.COPY_IN_EXTENDED, "cf": S.EXTENDED},
    S.COPY_OUT_SIMPLE: {},
    S.COPY_OUT_EXTENDED: {},
    S.SKIP_UNTIL_SYNC: {"QFPBDECHdcf": S.SKIP_UNTIL_SYNC, "S": S.SYNCING, "X": S.CLOSED},
    S.CLOSED: {},
}

DROPPED_ROWS: Final[dict[State, str]] = {
    S.READY: "dcf",
    S.EXTENDED: "dcf",
    S.COPY_IN_SIMPLE: "HS",
    S.COPY_IN_EXTENDED: "HS",
    S.SKIP_UNTIL_SYNC: "QFPBDECHdcf",
}

# N NoticeResponse, S ParameterStatus and A NotificationResponse may come at any time; E in READY is always FATAL.
SEND_ROWS: Final[dict[State, dict[str, State]]] = {
    S.STARTUP: {"vE": S.STARTUP},
    S.AUTH: {"RvKSN": S.AUTH, "E": S.CLOSED, "Z": S.READY},
    S.READY: {"NSA": S.READY, "E": S.CLOSED},
    S.SIMPLE: {
        "TDCIEVNSA": S.SIMPLE,
        "G": S.COPY_IN_SIMPLE,
        "H": S.COPY_OUT_SIMPLE,
        "Z": S.READY,
    },
    S.EXTENDED: {
        "123tTnDCIsNSA": S.EXTENDED,
        "G": S.COPY_IN_EXTENDED,
        "H": S.COPY_OUT_EXTENDED,
        "E": S.SKIP_UNTIL_SYNC,
    },
    S.SYNCING: {"ENSA": S.SYNCING, "Z": S.READY},
    S.COPY_IN_SIMPLE: {"NSA": S.COPY_IN_SIMPLE, "E": S.SIMPLE},
    S.COPY_IN_EXTENDED: {"NSA": S.COPY_IN_EXTENDED, "E": S.SKIP_UNTIL_SYNC},
    S.COPY_OUT_SIMPLE: {"dNSA": S.COPY_OUT_SIMPLE, "c": S.SIMPLE, "E": S.SIMPLE},
    S.COPY_OUT_EXTENDED: {"dNSA": S.COPY_OUT_EXTENDED, "c": S.EXTENDED, "E": S.SKIP_UNTIL_SYNC},
    S.SKIP_UNTIL_SYNC: {"NSA": S.SKIP_UNTIL_SYNC},
    S.CLOSED: {},
}


def _expand(rows: dict[State, dict[str, State]]) -> dict[State, dict[int, State]]:
    """Return the table with one integer key per message type."""
    table: dict[State, dict[int, State]] = {}
    for state, row in rows.items():
        table[state] = {}
        for kinds, after in row.items():
            if kinds in _STARTUP:
                table[state][_STARTUP[kinds]] = after
            else:
                table[state].update({ord(kind): after for kind in kinds})
    return table


RECEIVE: Final = _expand(RECEIVE_ROWS)
SEND: Final = _expand(SEND_ROWS)
DROPPED: Final = {state: frozenset(map(ord, DROPPED_ROWS.get(state, ""))) for state in State}

# RECEIVE without the dropped rows: what the connection hands on (bench/wire_loop.py pays for this one).
ACTED_ON: Final = {
    state: {
        kind: after for kind, after in RECEIVE[state].items() if kind not in DROPPED[state] and kind < 256
    }
    for state in State
}

COPY_IN: Final = frozenset((State.COPY_IN_SIMPLE, State.COPY_IN_EXTENDED))
COPY_OUT: Final = frozenset((State.COPY_OUT_SIMPLE, State.COPY_OUT_EXTENDED))


def describe() -> str:
    """Return both tables as Markdown, the form in which ``docs/internals/pgwire.md`` shows them."""
    lines = ["| state | frontend message → state | backend message → state |", "|---|---|---|"]
    for state in State:
        cells = []
        for rows, dropped in ((RECEIVE_ROWS, DROPPED_ROWS.get(state, "")), (SEND_ROWS, "")):
            cell = []
            for kinds, after in rows[state].items():
                mark = " (dropped)" if dropped and set(kinds) <= set(dropped) else ""
                shown = kinds if kinds in _STARTUP else " ".join(kinds)
                cell.append(f"`{shown}` → {after.value}{mark}")
            cells.append("<br>".join(cell) or "—")
        lines.append(f"| {state.value} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"
