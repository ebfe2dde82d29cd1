"""What a session writes to the server's log: statements, how long they took, errors, its beginning and end
(manual 20.8).

    statement begins   log_statement                                   LOG:  statement: SELECT 1
    it has ended       log_duration, log_min_duration_statement, ...   LOG:  duration: 0.412 ms  statement: SELECT 1
    it fails           log_min_messages, log_min_error_statement       ERROR:  division by zero     STATEMENT:  SELECT 1/0

Wording is PostgreSQL's. Each line begins with the session's pid, user and database. A client whose
``client_min_messages`` is ``log`` is told the same. By default only warnings and errors are written, and
nothing is looked at for statements that succeed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from pgwire.codecs.registry import text_output
from pgwire.errors import ErrorReport
from planner import ast
from planner.statements import Copy
from planner.statements.parsed import command_tag

if TYPE_CHECKING:
    from engine.session.plans.plan import Plan
    from engine.session.portal import Portal, Prepared
    from engine.session.session import Session

log = logging.getLogger("holdfast.statements")
log.setLevel(logging.DEBUG)  # the settings decide, not log_level

_LEVELS: Final = {
    name: rank
    for rank, name in enumerate(
        (
            "debug5",
            "debug4",
            "debug3",
            "debug2",
            "debug1",
            "info",
            "notice",
            "warning",
            "error",
            "log",
            "fatal",
            "panic",
        )
    )
}
"""In the order of log_min_messages, where LOG is more than ERROR."""

LOGGED: Final = 1 << 20
"""Characters of a message that are logged."""
SHOWN: Final = 64 * 1024
"""Characters of a statement that are kept when it has ended, and written to the log."""

_MOD: Final = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE TABLE"))
_DDL: Final = (
    "CREATE", "ALTER", "DROP", "COMMENT", "GRANT", "REVOKE", "REFRESH", "IMPORT", "REASSIGN", "SECURITY", "SELECT INTO", "CLUSTER",
)  # fmt: skip


def level_of(statement: ast.StatementNode | None, prepared: Prepared | None = None) -> str:
    """Return from which ``log_statement`` on a statement is logged: ddl, mod or all. ``prepared``: what
    EXECUTE names.
    """
    if isinstance(statement, ast.Prepare):
        return level_of(statement.query)
    if isinstance(statement, ast.Explain):
        runs = any(option.name.lower() == "analyze" for option in statement.options)
        return level_of(statement.statement) if runs else "all"
    if isinstance(statement, ast.Execute):
        return "all" if prepared is None else level_of_prepared(prepared)
    if isinstance(statement, ast.Copy):
        return "mod" if statement.is_from else "all"
    return "all" if statement is None else _by_tag(command_tag(statement))


def level_of_prepared(prepared: Prepared) -> str:
    """Return ``level_of`` a prepared statement."""
    return "all" if prepared.plan is None else level_of_plan(prepared.plan)


def level_of_plan(plan: Plan) -> str:
    """Return ``level_of`` a bound statement."""
    statement = plan.bound.statement
    if isinstance(statement, Copy):
        return "mod" if statement.is_from else "all"
    return _by_tag(plan.bound.tag)


def _by_tag(tag: str) -> str:
    return "mod" if tag in _MOD else "ddl" if tag.startswith(_DDL) else "all"


def shown(text: str) -> str:
    """Return a statement as far as it is kept for others to see."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def _bounded(text: str) -> str:
    """Return as much of a message as is logged: one that tells a key of megabytes is the client's."""
    return text if len(text) <= LOGGED else text[:LOGGED] + "..."


class StatementLog:
    """The log of one session."""

    __slots__ = ("_began_us", "_detail", "_failed", "_logged", "_sampled", "_session", "_text")

    def __init__(self, session: Session) -> None:
        """Nothing runs."""
        self._session = session
        self._began_us = 0
        self._text = ""  # of the statement, as durations show it
        self._detail: str | None = None
        self._logged = False  # by log_statement
        self._failed = False
        self._sampled = False  # its transaction, by log_transaction_sample_rate

    @property
    def running(self) -> bool:
        """Whether something has begun, and its end is not yet looked at."""
        return self._began_us != 0

    # -- what is written -----------------------------------------------------------------------------

    def _write(self, level: int, *fields: str) -> None:
        """Write a record for each field, so that no text of a client looks like a field of its own."""
        session = self._session
        for text in fields:
            log.log(level, "[%d] %s@%s %s", session.pid, session.identity.login_name, session.database, text)

    def _say(self, message: str, detail: str | None = None) -> None:
        session = self._session
        if _LEVELS["log"] >= _LEVELS[session.settings.get("log_min_messages")]:
            verbosity = session.settings.get("log_error_verbosity")
            code = "00000: " if verbosity == "verbose" else ""
            lines = [f"LOG:  {code}{message}"]
            if detail is not None and verbosity != "terse":
                lines.append(f"DETAIL:  {detail}")
            self._write(logging.INFO, *lines)
        session.notice(message, severity="LOG", detail=detail)

    def report(self, report: ErrorReport) -> None:
        """Write an error or a notice that the client is sent."""
        get = self._session.settings.get
        level = report.severity.lower()
        rank = _LEVELS[level if level in _LEVELS else "debug1"]
        if level == "error":
            self._failed = True
        if (_LEVELS["log"] if level == "fatal" else rank) < _LEVELS[get("log_min_messages")]:
            return
        verbosity = get("log_error_verbosity")
        code = f"{report.sqlstate}: " if verbosity == "verbose" else ""
        at = f" at character {report.position}" if report.position is not None else ""
        lines = [f"{report.severity}:  {code}{_bounded(report.message)}{at}"]
        if verbosity != "terse":
            fields = (
                ("DETAIL", report.log_detail or report.detail),
                ("HINT", report.hint),
                ("QUERY", report.internal_query),
                ("CONTEXT", report.where),
            )
            lines += [f"{name}:  {_bounded(text)}" for name, text in fields if text is not None]
        text = self._session.query_text
        if text and self._session.activity == "active" and rank >= _LEVELS[get("log_min_error_statement")]:
            lines.append(f"STATEMENT:  {shown(text)}")
        self._write(logging.WARNING if level == "warning" else logging.ERROR if rank >= _LEVELS["error"] else logging.INFO, *lines)  # fmt: skip

    def begins(self) -> None:
        """The session is open."""
        session = self._session
        if session.settings.get("log_connections") == "on":
            name = session.settings.get("application_name")
            named = f" application_name={name}" if name else ""
            self._say(
                f"connection authorized: user={session.identity.login_name} database={session.database}{named}"
            )

    def let_go(self) -> None:
        """Forget the statement's text."""
        self._text = ""
        self._detail = None

    def ends(self) -> None:
        """The session ends."""
        session = self._session
        if session.settings.get("log_disconnections") == "on":
            ms = max(session.db.clock_us() - session.backend_start_us, 0) // 1000
            hours, minutes, seconds = ms // 3_600_000, ms // 60_000 % 60, ms / 1000 % 60
            host, _, port = session.peer.rpartition(":")
            where = f" host={host.strip('[]')} port={port}" if host else ""
            self._write(
                logging.INFO,
                f"LOG:  disconnection: session time: {hours}:{minutes:02d}:{seconds:06.3f} "
                f"user={session.identity.login_name} database={session.database}{where}",
            )

    # -- statements ----------------------------------------------------------------------------------

    def begin(self, text: str) -> None:
        """A message that is a statement, or prepares or runs one, is looked at."""
        self._began_us = self._session.db.clock_us()
        self._text = shown(text)
        self._detail = None
        self._logged = self._failed = False
        if self._session.block.txn is None:
            rate = float(self._session.settings.get("log_transaction_sample_rate"))
            self._sampled = rate > 0 and self._session.db.random() <= rate

    def _wanted(self, levels: Iterable[str]) -> bool:
        wanted = self._session.settings.get("log_statement")
        if wanted == "none" or wanted == "all":
            return wanted == "all"
        return "ddl" in levels if wanted == "ddl" else not {"ddl", "mod"}.isdisjoint(levels)

    def statement(self, levels: Iterable[str], executed: Prepared | None = None) -> None:
        """What the Query message consists of is known: ``levels`` of its statements; ``executed``: what
        EXECUTE names.
        """
        if executed is not None:
            self._detail = f"prepare: {executed.shown or executed.text}"
        if self._wanted(levels):
            self._say(self._text, self._detail)
            self._logged = True

    def execute(self, portal: Portal) -> None:
        """A portal is about to be run, or to go on."""
        prepared = portal.prepared
        name = prepared.name or "<unnamed>"
        name += f"/{portal.name}" if portal.name else ""
        verb = "execute" if portal.outcome is None else "execute fetch from"
        self.begin(f"{verb} {name}: {shown(prepared.text)}")
        if self._wanted((level_of_prepared(prepared),)):
            self._say(self._text, self._parameters(portal))
            self._logged = True

    def _parameters(self, portal: Portal) -> str | None:
        """Return ``parameters: $1 = '7', ...``; None where there are none, or log_parameter_max_length is 0."""
        session = self._session
        most = session.settings.integer("log_parameter_max_length")
        if not portal.params or most == 0:
            return None
        shown: list[str] = []
        oids: Sequence[int] = portal.prepared.param_oids
        for number, (value, oid) in enumerate(zip(portal.params, oids, strict=False), 1):
            text = "NULL"
            if value is not None:
                whole = text_output(oid, value, session.output_settings)
                data = whole.encode()
                cut = 0 <= most < len(data)
                text = data[:most].decode("utf-8", "ignore") + "..." if cut else whole
                text = "'" + text.replace("'", "''") + "'"
            shown.append(f"${number} = {text}")
        return "parameters: " + ", ".join(shown)

    def end(self, portal: Portal | None = None) -> None:
        """What began has ended: write how long it took if that is wanted. One that failed is in the log already."""
        began, self._began_us = self._began_us, 0
        if not began or self._failed:
            return
        session, get = self._session, self._session.settings.get
        took_us = max(session.db.clock_us() - began, 0)
        least_ms, sample_ms = (
            session.settings.integer(n) for n in ("log_min_duration_statement", "log_min_duration_sample")
        )
        exceeds = 0 <= least_ms * 1000 <= took_us
        rate = float(get("log_statement_sample_rate"))
        chosen = 0 <= sample_ms * 1000 <= took_us and rate > 0 and session.db.random() <= rate
        if not (exceeds or chosen or self._sampled or get("log_duration") == "on"):
            return
        message = f"duration: {took_us / 1000:.3f} ms"
        if (exceeds or chosen or self._sampled) and not self._logged:
            self._say(
                f"{message}  {self._text}", self._detail if portal is None else self._parameters(portal)
            )
        else:
            self._say(message)
