"""Protocol traces beside PostgreSQL 15: the same messages in the same order, with all their fields.

Each script below ``wire/`` consists of blocks, separated by blank lines, of the commands of ``tests.support.wire_script``. A
block that says nothing of reading ends by reading as many ReadyForQuery as it has Query, FunctionCall and Sync. What differs by nature
(oids of tables and types made by users, process ids, names of the server) is shown without its value.

A script begins in an empty schema ``public``; the client ``c`` is there already.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import psycopg
import pytest

from pgwire import messages as m
from tests.support.postgres import postgres
from tests.support.server import ServerProcess
from tests.support.wire_client import show
from tests.support.wire_script import Clients

__all__ = ["postgres"]

SCRIPTS = sorted((Path(__file__).parent / "wire").glob("*.wire"))
FIRST_USER_OID = 16384
ANSWERED = re.compile(r"^(?:\w+> )?(?:Query|FunctionCall|Sync)\(", re.M)


def show_all(message: m.BackendMessage) -> str:
    """Return one line with what ``show`` leaves out."""
    match message:
        case m.ErrorResponse(report) | m.NoticeResponse(report):
            held = {name: value for name, value in dataclasses.asdict(report).items() if value is not None}
            return f"{type(message).__name__} {held}"
        case m.RowDescription(fields):
            shown = (
                (
                    f.name,
                    f.table_oid > 0,
                    f.attnum,
                    f.type_oid if f.type_oid < FIRST_USER_OID else "user",
                    f.type_size,
                    f.typmod,
                    f.format,
                )
                for f in fields
            )
            return " ".join(["RowDescription", *map(str, shown)])
        case m.ParameterDescription(oids):
            return f"ParameterDescription {[o if o < FIRST_USER_OID else 'user' for o in oids]}"
        case m.NotificationResponse():
            return f"NotificationResponse {message.channel} {message.payload}"
        case _:
            return show(message)


def blocks(path: Path) -> list[list[str]]:
    """Return a script's blocks with what ends them."""
    found = []
    for piece in path.read_text(encoding="utf-8").strip("\n").split("\n\n"):
        lines = [line for line in piece.splitlines() if line and not line.startswith("#")]
        if lines and not any(re.search(r"^(\w+> )?(until|eof|connect)\b", line) for line in lines):
            clients: dict[str, int] = {}
            for line in lines:
                name = re.match(r"(\w+)> ", line)
                key = name[0] if name else ""
                clients[key] = clients.get(key, 0) + len(ANSWERED.findall(line))
            lines += [f"{key}until ReadyForQuery {count}" for key, count in clients.items() if count]
        if lines:
            found.append(lines)
    return found


def transcript(clients: Clients, lines: list[str]) -> list[str]:
    """Run a block; return what was said, without what differs by nature."""
    return [line for line in clients.run(lines) if "holdfast.commit_ts" not in line]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_script(path: Path, postgres: str, server: ServerProcess) -> None:
    theirs = psycopg.conninfo.conninfo_to_dict(postgres)
    both = [
        Clients("127.0.0.1", server.port, show_all),
        Clients(str(theirs["host"]), int(theirs["port"] or 5432), show_all),
    ]
    try:
        for clients in both:
            clients.run(["connect database=postgres TimeZone=UTC", 'Query("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")',
                         "until ReadyForQuery"])  # fmt: skip
        for lines in blocks(path):
            mine, other = (transcript(clients, lines) for clients in both)
            assert mine == other, "\n".join(lines)
    finally:
        for clients in both:
            clients.close()
