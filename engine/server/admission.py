"""Who may connect to which database, and with what settings the session begins (manual 21 and 20.1.3).

    start-up packet ──> role, database, CONNECT ──> settings: server < ALTER DATABASE, ALTER ROLE < packet ──> session

CREATE DATABASE and DROP DATABASE need a database to themselves. ``Attendance`` knows who is connected to which, and
keeps others out while such a statement runs.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.base import access_rules
from engine.base.access_rules import Peer
from engine.base.settings import IDENTITY, TEXT_SEARCH, Settings
from engine.base.settings.defs import MAX_BYTES, definitions
from engine.base.settings.lists import split_identifiers
from engine.base.settings.values import FindConfiguration, normalise
from engine.catalog.storage.stored import SUPERUSER_OID
from engine.connection.backend import Connection
from engine.session.session import Session
from engine.session.set_role import allow_role
from pgwire.backend import Authentication, Responder
from pgwire.errors import BackendError, ErrorReport
from pgwire.tcp import TCP_OPTIONS
from planner.base.errors import SqlError
from planner.catalog import DatabaseDef, RoleDef, TextSearchDef
from planner.catalog.acl import memberships
from planner.catalog.rights import Rights
from planner.facts import REGCONFIG
from planner.textsearch.names import find_named

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.server.database import Database

LEAVE_S: Final = (
    5.0  # how long a database is given to be left by those who are about to close, as in PostgreSQL
)
RESERVED: Final = 3  # superuser_reserved_connections, as PostgreSQL's default
_POLL_S: Final = 0.02


class Attendance:
    """Which sessions are in which database."""

    def __init__(self, db: Database) -> None:
        """Nobody is."""
        self._db = db
        self._leaving: dict[int, int] = {}  # sessions whose temporary tables go: pid and database
        self._closed: set[int] = set()

    def is_closed(self, database: int) -> bool:
        """Tell whether a database is about to go."""
        return database in self._closed

    def others(self, database: int, but: int) -> list[int]:
        """Return the pids of the sessions in a database, except the one ``but``."""
        there = [pid for pid, one in self._db.sessions.items() if one.session.database_oid == database]
        leaving = [pid for pid, left in self._leaving.items() if left == database]
        return [pid for pid in (*there, *leaving) if pid != but]

    async def leaving(self, session: Session, last: Awaitable[None]) -> None:
        """A session ends with ``last``, which is work in its database."""
        self._leaving[session.pid] = session.database_oid
        try:
            await last
        finally:
            del self._leaving[session.pid]

    async def wait_empty(self, database: int, but: int) -> int:
        """Wait until nobody but ``but`` is in a database, at most ``LEAVE_S``; return how many still are."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LEAVE_S
        while (others := self.others(database, but)) and loop.time() < end:
            await asyncio.sleep(_POLL_S)
        return len(others)

    @contextmanager
    def keeping_out(self, database: int) -> Iterator[None]:
        """Let nobody connect to a database."""
        self._closed.add(database)
        try:
            yield
        finally:
            self._closed.discard(database)


def authentication(db: Database, user: str, database: str, peer: str, tls: bool) -> Authentication:
    """Return how ``user`` has to prove itself. FATAL 28000 where the access rules keep it out.

    What is said does not tell whether the role exists, or its password has expired: rules for roles that do
    not are rules all the same.
    """
    method = db.config.auth
    catalog = db.spaces.any.catalog
    role = catalog.role(user)
    if db.access_rules:
        origin = Peer.of(peer, tls)

        def is_member(name: str) -> bool:
            other = catalog.role(name)
            if role is None or other is None:
                return False
            return other.oid in memberships(role, catalog.role_by_oid)

        rule = access_rules.find(db.access_rules, user, database, origin, is_member)
        if rule is None or rule.method == "reject":
            what = "no pg_hba.conf entry" if rule is None else "pg_hba.conf rejects connection"
            whom = f'for host "{origin}", user "{user}", database "{database}"'
            raise fatal("28000", f"{what} {whom}, {'SSL' if tls else 'no'} encryption")
        method = rule.method
    if method == "trust":
        return Authentication(method="trust")
    known = role is not None and (role.valid_until is None or db.clock_us() < role.valid_until)
    return Authentication(
        method="scram-sha-256", verifier=role.verifier if role is not None and known else None
    )


def fatal(sqlstate: str, message: str, *, hint: str | None = None, detail: str | None = None) -> BackendError:
    """Return an error that ends the connection."""
    return BackendError(
        ErrorReport(severity="FATAL", sqlstate=sqlstate, message=message, hint=hint, detail=detail)
    )


def reserved(db: Database) -> int:
    """Return how many connections are kept for superusers, who have to get in to see why all others are taken."""
    return min(RESERVED, db.config.max_connections - 1)


def admit(db: Database, parameters: Mapping[str, str], pid: int, peer: str, out: Responder) -> Connection:
    """Open a session. FATAL 28000, 3D000, 55000, 53300, 42501, 42704, 22023 as PostgreSQL raises them."""
    user = parameters.get("user", "")
    shared = db.spaces.any.catalog
    role = shared.role(user)
    if role is None:
        raise fatal("28000", f'role "{user}" does not exist')
    _refuse_unreadable(shared, role.oid)
    if db.spaces.lost and not role.superuser:
        what = "the catalog is damaged: superusers alone may connect"
        raise fatal("XX001", what, detail=f"{db.spaces.lost}.", hint="Rights may be among what is lost.")
    if not role.can_login:
        raise fatal("28000", f'role "{user}" is not permitted to log in')
    if not role.superuser and db.config.max_connections - len(db.sessions) - 1 < reserved(db):
        what = "remaining connection slots are reserved for non-replication superuser connections"
        raise fatal("53300", what)
    if 0 <= role.connection_limit <= _sessions_of(db, role) and not role.superuser:
        raise fatal("53300", f'too many connections for role "{role.name}"')
    database = _database(db, parameters.get("database") or user, role)
    settings = _settings(db, database, role, parameters, out)
    session = Session(db, pid=pid, user=role, database_def=database, settings=settings, out=out, peer=peer)
    return Connection(session)


def _refuse_unreadable(catalog: CatalogSnapshot, oid: int) -> None:
    """FATAL XX001 for a role or database whose row cannot be read; the first superuser, of whom no more is
    needed, gets in.
    """
    fence = catalog.fenced.get(oid)
    if fence is not None and oid != SUPERUSER_OID:
        raise fatal("XX001", f"{fence.what} cannot be read", hint=fence.hint, detail=fence.detail)


def _sessions_of(db: Database, role: RoleDef) -> int:
    return sum(1 for open_ in db.sessions.values() if open_.session.identity.login == role.oid)


def _database(db: Database, name: str, role: RoleDef) -> DatabaseDef:
    database = db.spaces.any.catalog.databases.get(name)
    if database is None:
        raise fatal("3D000", f'database "{name}" does not exist')
    if db.attendance.is_closed(database.oid):
        detail = "It seems to have just been dropped or renamed."
        raise fatal("3D000", f'database "{name}" does not exist', detail=detail)
    catalog = db.spaces[database.oid].catalog
    _refuse_unreadable(catalog, database.oid)
    if not database.allow_connections:
        raise fatal("55000", f'database "{name}" is not currently accepting connections')
    if not Rights(catalog, role).database("c"):
        detail = "User does not have CONNECT privilege."
        raise fatal("42501", f'permission denied for database "{name}"', detail=detail)
    limit = database.connection_limit
    if 0 <= limit <= len(db.attendance.others(database.oid, 0)) and not role.superuser:
        raise fatal("53300", f'too many connections for database "{name}"')
    return database


def _settings(
    db: Database, database: DatabaseDef, role: RoleDef, parameters: Mapping[str, str], out: Responder
) -> Settings:
    """Return the settings that a session begins with. FATAL 42704, 22023 and others for those of the packet."""
    catalog, config = db.spaces[database.oid].catalog, db.config
    overrides = db.setting_defaults | {
        "is_superuser": "on" if role.superuser else "off",
        "session_authorization": role.name,
        "lc_collate": database.collate,
        "lc_ctype": database.ctype,
        "port": str(config.port),
        "max_connections": str(config.max_connections),
        "superuser_reserved_connections": str(reserved(db)),
        "deadlock_policy": config.deadlock_policy,
        "history_retention": str(config.history_retention),
        "spark_max_queries": str(config.spark_max_queries),
        "server_files": config.server_files,
        "data_directory": str(Path(config.data_dir).resolve()),
        "hba_file": config.access_rules,
        "ssl": "on" if config.tls_cert else "off",
        "ssl_cert_file": config.tls_cert,
        "ssl_key_file": config.tls_key,
    }
    system = {name: str(value) for name, value in out.tcp_options().items()}
    overrides |= system
    if db.calibration is not None:
        overrides[MAX_BYTES] = str(db.calibration.local_executor_max_bytes)
        if db.calibration.index_spark_min_rows is not None:
            overrides["index_spark_min_rows"] = str(db.calibration.index_spark_min_rows)
    for key, value in catalog.beginning(role.oid).items():
        definition = definitions().get(key)  # who said so was allowed to, whoever this is
        current = Settings(overrides).get(key) if definition is not None else ""
        if key == TEXT_SEARCH:
            _search_by_default(overrides, value, database, role, catalog, out)
            continue
        try:
            overrides[key] = value if definition is None else normalise(definition, value, current)
        except SqlError as error:  # whoever said so could; nobody is to be kept out by it
            out.notice(
                ErrorReport(
                    severity="WARNING", sqlstate=error.sqlstate, message=error.message, detail=error.detail
                )
            )
    try:
        for key, value in _startup_settings(parameters):
            if key.lower() in IDENTITY:
                _become(overrides, key.lower(), value, catalog)
            else:
                _override(overrides, key, value, _searching(overrides, database, role, catalog))
    except SqlError as error:
        raise fatal(error.sqlstate, error.message, detail=error.detail, hint=error.hint) from None
    for name, value in system.items():
        if overrides[name] == "0":  # of a role or database
            overrides[name] = value
        if overrides[name] != value:
            out.set_tcp_option(name, int(overrides[name]))
    return Settings(overrides, changed=functools.partial(_tell, out))


def _tell(out: Responder, name: str, value: str) -> None:
    """A setting that concerns the connection has changed."""
    if name in TCP_OPTIONS:
        out.set_tcp_option(name, int(value))
    else:
        if name == "client_encoding":
            out.client_encoding(value)
        out.parameter_status(name, value)


def _override(overrides: dict[str, str], key: str, value: str, find: FindConfiguration) -> None:
    settings = Settings(overrides)
    settings.find_configuration = find
    overrides[key.lower()] = settings.check(key, value, beginning=True)


def _searching(
    overrides: Mapping[str, str], database: DatabaseDef, role: RoleDef, catalog: CatalogSnapshot
) -> FindConfiguration:
    """Return what finds text search configurations for a session that begins with settings."""

    def find(name: str) -> TextSearchDef | None:
        entries = split_identifiers(Settings(overrides).get("search_path"))
        path = ["pg_catalog", *(role.name if entry == "$user" else entry for entry in entries)]
        return find_named(REGCONFIG, name, catalog, path, database.name)

    return find


def _search_by_default(
    overrides: dict[str, str],
    value: str,
    database: DatabaseDef,
    role: RoleDef,
    catalog: CatalogSnapshot,
    out: Responder,
) -> None:
    """Begin with the text search configuration that was said for the role or database, unless it has gone: a
    WARNING tells.
    """
    find = _searching(overrides, database, role, catalog)
    try:
        overrides[TEXT_SEARCH] = normalise(definitions()[TEXT_SEARCH], value, "", find)
    except SqlError as error:
        message = f'invalid value for parameter "{TEXT_SEARCH}": "{value}"'
        out.notice(ErrorReport(severity="WARNING", sqlstate=error.sqlstate, message=message))


def _become(overrides: dict[str, str], key: str, value: str, catalog: CatalogSnapshot) -> None:
    """Begin as another role. Raises SqlError 22023, 42501."""
    if not (key == "role" and value == "none"):
        what = "role" if key == "role" else "session authorization"
        by = catalog.role(overrides["session_authorization"])
        role = allow_role(catalog, value, 0 if by is None else by.oid, what)
        overrides["is_superuser"] = "on" if role.superuser else "off"
    overrides[key] = value


def _startup_settings(parameters: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the settings of a start-up packet: its own parameters, and ``options -c name=value``."""
    found: list[tuple[str, str]] = []
    words = _split_options(parameters.get("options", ""))
    position = 0
    while position < len(words):
        word = words[position]
        if word == "-c" and position + 1 < len(words):
            position += 1
            name, equals, value = words[position].partition("=")
        elif word.startswith(("--", "-c")):
            name, equals, value = word[2:].partition("=")
        else:
            raise SqlError("42601", f"invalid command-line argument for server process: {word}")
        if not equals:
            raise SqlError("42601", f"-c {name} requires a value")
        found.append((name.replace("-", "_"), value))
        position += 1
    for key, value in parameters.items():
        if key not in ("user", "database", "options", "replication") and not key.startswith("_pq_."):
            if key.lower() not in definitions() and "." not in key:
                raise SqlError("42704", f'unrecognized configuration parameter "{key}"')
            found.append((key, value))
    if parameters.get("replication", "false").lower() not in ("false", "off", "no", "0", ""):
        raise SqlError("0A000", "replication connections are not supported")
    return found


def _split_options(text: str) -> list[str]:
    """Split the ``options`` parameter at blanks; a backslash escapes the next character."""
    words: list[str] = []
    current: list[str] = []
    escaped = False
    for ch in text:
        if escaped:
            current.append(ch)
            escaped = False
        elif ch == "\\":
            escaped = True
        elif ch.isspace():
            if current:
                words.append("".join(current))
                current = []
        else:
            current.append(ch)
    if current:
        words.append("".join(current))
    return words
