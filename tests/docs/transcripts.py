"""Transcripts in the documentation, run: fenced blocks of the language ``psql`` in Markdown pages.

    ```psql
    postgres=# SELECT owner             one prompt begins a statement …
    postgres-#     FROM account;        … another continues it
     owner
    -------                             what psql prints, blanks at the ends of lines apart
     ann
    (1 row)

    second=# SELECT 1;                  another name before ``=#`` is another session
    ```

The prompt tells the session's state as psql does (``=*#`` in a block, ``=!#`` in one that has failed). A page's blocks run in order,
in sessions that last for the page. Commit timestamps are other ones each time: what is compared is that each stands where the page
has one, and that equal ones are equal; a statement that names a timestamp of the page is sent the server's. What else varies (``VARYING``)
has to be there. A block below the line ``<!-- spark -->`` needs the Spark executor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from psycopg import pq
from psycopg.pq import abc

PROMPT: Final = re.compile(r"^(\w+)([=-])([*!]?)# ?(.*)$")
TIMESTAMP: Final = re.compile(r"(?<!Read Timestamp: )\b1\d{17}\b")
VARYING: Final = re.compile(
    r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\+00\b|(?<=\bpid )\d+|(?<=\bProcess )\d+(?=:)|(?<=\babout )\d+(?= bytes)|(?<=Read Timestamp: )\d+"
)
"""Times of day, numbers of connections, sizes of files, and what EXPLAIN reads at: the server may commit something of its own meanwhile."""
BLOCK: Final = re.compile(r"^(<!-- spark -->\n+)?```psql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RIGHT_ALIGNED: Final = frozenset({20, 21, 23, 26, 700, 701, 1700, 790})
STATES: Final = {
    pq.TransactionStatus.IDLE: "",
    pq.TransactionStatus.INTRANS: "*",
    pq.TransactionStatus.INERROR: "!",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A statement of a transcript and what the page says is printed."""

    session: str
    state: str
    lines: tuple[str, ...]
    """The statement as written, without prompts."""
    printed: tuple[str, ...]


def steps(block: str) -> Iterator[Step]:
    """Yield the statements of a fenced block."""
    session, state = "", ""
    lines: list[str] = []
    printed: list[str] = []
    for line in block.splitlines():
        prompt = PROMPT.match(line)
        if prompt is None:
            printed.append(line.rstrip())
        elif prompt[2] == "-":
            lines.append(prompt[4])
        else:
            if lines:
                yield Step(session=session, state=state, lines=tuple(lines), printed=tuple(printed))
            session, state, lines, printed = prompt[1], prompt[3], [prompt[4]], []
    if lines:
        yield Step(session=session, state=state, lines=tuple(lines), printed=tuple(printed))


def table(result: abc.PGresult) -> list[str]:
    """Return a result's rows as psql's aligned format has them."""
    columns = range(result.nfields)
    names = [(result.fname(column) or b"").decode() for column in columns]
    rows = [
        [(result.get_value(row, column) or b"").decode() for column in columns]
        for row in range(result.ntuples)
    ]
    right = [result.ftype(column) in RIGHT_ALIGNED for column in columns]
    split = [[cell.split("\n") for cell in row] for row in rows]
    widths = [
        max([len(names[column]), *(len(line) for row in split for line in row[column])]) for column in columns
    ]

    def centred(name: str, width: int) -> str:
        left = (width - len(name)) // 2
        return " " * left + name + " " * (width - len(name) - left)

    out = [
        "|".join(f" {centred(name, width)} " for name, width in zip(names, widths, strict=True)),
        "+".join("-" * (width + 2) for width in widths),
    ]
    for row in split:
        for number in range(max(map(len, row), default=1)):
            cells = []
            for column, cell in enumerate(row):
                text = cell[number] if number < len(cell) else ""
                more = "+" if number + 1 < len(cell) else " "
                shown = text.rjust(widths[column]) if right[column] else text.ljust(widths[column])
                cells.append(f" {shown}{more}")
            out.append("|".join(cells))
    count = result.ntuples
    return [*out, f"({count} row{'' if count == 1 else 's'})", ""]


def error(result: abc.PGresult, statement: str) -> list[str]:
    """Return an error as psql prints it: the message, the place in the statement, DETAIL, HINT and CONTEXT."""

    def told(field: pq.DiagnosticField) -> str:
        return (result.error_field(field) or b"").decode()

    out = [f"{told(pq.DiagnosticField.SEVERITY)}:  {told(pq.DiagnosticField.MESSAGE_PRIMARY)}"]
    position = told(pq.DiagnosticField.STATEMENT_POSITION)
    if position:
        before = statement[: int(position) - 1]
        number = before.count("\n") + 1
        head = f"LINE {number}: "
        column = len(before) - (before.rfind("\n") + 1)
        out += [head + statement.split("\n")[number - 1], " " * (len(head) + column) + "^"]
    for label, field in (
        ("DETAIL", pq.DiagnosticField.MESSAGE_DETAIL),
        ("HINT", pq.DiagnosticField.MESSAGE_HINT),
        ("CONTEXT", pq.DiagnosticField.CONTEXT),
    ):
        if told(field):
            out.append(f"{label}:  {told(field)}")
    return out


class Transcript:
    """Runs a page's blocks; ``connect`` makes a connection of libpq's for a session of the page."""

    def __init__(self, connect: Callable[[], abc.PGconn]) -> None:
        self._connect = connect
        self._sessions: dict[str, abc.PGconn] = {}
        self._here: dict[str, str] = {}
        """The server's timestamp for each of the page's."""
        self._page: dict[str, str] = {}

    def close(self) -> None:
        for session in self._sessions.values():
            session.finish()

    def run(self, block: str) -> str:
        """Return the block as it ran: where it agrees with the page, the page's own text."""
        out: list[str] = []
        for step in steps(block):
            session = self._sessions.get(step.session)
            if session is None:
                session = self._sessions[step.session] = self._connect()
            state = STATES[pq.TransactionStatus(session.transaction_status)]
            out.append(f"{step.session}={state}# {step.lines[0]}")
            out += [f"{step.session}-{state}# {line}" for line in step.lines[1:]]
            out += self._agreed(step.printed, self._printed(session, "\n".join(step.lines)))
        return "\n".join(line.rstrip() for line in out).rstrip() + "\n"

    def _printed(self, session: abc.PGconn, statement: str) -> list[str]:
        unknown = set(TIMESTAMP.findall(statement)) - set(self._here)
        if unknown:
            raise ValueError(f"nothing has shown {', '.join(unknown)}, which a statement names: {statement}")
        sent = TIMESTAMP.sub(lambda found: self._here[found[0]], statement)
        result = session.exec_(sent.encode())
        if result.status == pq.ExecStatus.FATAL_ERROR:
            return error(result, statement)
        tag = (result.command_status or b"").decode()
        if result.status != pq.ExecStatus.TUPLES_OK:
            return [tag]
        shown = table(result)
        return shown if tag.startswith(("SELECT", "FETCH", "SHOW", "EXPLAIN")) else [*shown, tag]

    def _agreed(self, page: tuple[str, ...], here: list[str]) -> list[str]:
        """Return what was printed, what varies replaced by what the page has in its place."""
        ours = TIMESTAMP.findall("\n".join(here))
        theirs = TIMESTAMP.findall("\n".join(page))
        if len(ours) == len(theirs):
            for mine, its in zip(ours, theirs, strict=True):
                if mine not in self._page and its not in self._here:
                    self._page[mine] = its
                    self._here[its] = mine
        text = TIMESTAMP.sub(lambda found: self._page.get(found[0], found[0]), "\n".join(here))
        varying = VARYING.findall("\n".join(page))
        if len(varying) == len(VARYING.findall(text)):
            text = VARYING.sub(lambda found: varying.pop(0), text)
        return text.split("\n")
