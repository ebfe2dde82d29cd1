"""One connection's state: who it is, its settings, and the parts that do the rest.

    settings   SET, SHOW; ``derived``: what they amount to
    block      the transaction: BEGIN to COMMIT, savepoints, time limits        engine/session/transaction/block.py
    view       the catalog as the transaction sees and changes it               engine/session/catalog/view.py
    timing     deferred constraint checks                                       engine/session/transaction/timing.py
    ahead      indexes being built before the DDL that adds them                engine/session/built_ahead.py
    system     the server as system functions see it                            engine/session/system.py

``Session`` is also what functions see of the session (``planner.functions.session.EvalSession``) and what
statements are bound under.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from engine.base.accounts import Account, Held
from engine.base.settings import IDENTITY, MODES, Settings, check_length
from engine.base.settings.classes import FOR_SUPERUSERS, UNLISTED
from engine.base.settings.defs import SettingDef
from engine.base.settings.lists import split_identifiers
from engine.base.temp_files import TempFiles
from engine.catalog.state import CatalogSnapshot
from engine.catalog.todays_code import same_names, with_code_of
from engine.catalog.todays_rights import last_owner, lost_columns, with_rights_of
from engine.session.built_ahead import BuiltAhead
from engine.session.catalog.view import CatalogView
from engine.session.channels import SessionChannels
from engine.session.conflicts import Surroundings
from engine.session.demands import SessionDemands
from engine.session.derived import Derived
from engine.session.errors import in_bounds
from engine.session.identity import Identity, existing, name_of
from engine.session.interrupts import CancelFlag
from engine.session.progress import CopyProgress
from engine.session.set_role import set_role
from engine.session.system import SystemView
from engine.session.transaction.block import Block
from engine.session.transaction.block_state import IDLE
from engine.session.transaction.modes import change_mode
from engine.session.transaction.timing import Timing
from pgwire.backend import Responder
from pgwire.codecs.settings import CodecSettings
from pgwire.errors import ErrorReport
from pgwire.give_way import openly
from planner.base.errors import SqlError
from planner.bind.context import RowSecurity
from planner.bind.query.row_security import applies
from planner.catalog import DatabaseDef, RelationDef, RoleDef, TextSearchDef
from planner.catalog.acl import inherited
from planner.catalog.rights import Rights
from planner.facts import REGCONFIG, facts
from planner.parse.escapes import refuse_quotes, to_standard
from planner.textsearch.names import find_named

if TYPE_CHECKING:
    from engine.catalog.reading import Figures
    from engine.session.cursors import Cursors
    from engine.session.plans.plan import Plan
    from engine.session.ports import CommitActions
    from engine.session.server import Client, Log, SessionServer
    from engine.session.statement_parts import Parts
    from txn.base.types import Row, Timestamp

_NOTICE_RANK = {
    "debug5": 0, "debug4": 1, "debug3": 2, "debug2": 3, "debug1": 4, "log": 5, "notice": 6, "warning": 7,
    "error": 8,
}  # fmt: skip


MAX_PASTS = 4
"""Catalogs of the past that a session keeps as it may read them."""
PG_READ_ALL_SETTINGS = 3374
PG_READ_ALL_STATS = 3375


class Session:
    """State of one connection; see the module's prologue for its parts.

    Attributes:
        db: the server this session belongs to. database: the database's name, as current_database() tells it;
        ``space``: its catalog. out: where notices and changed parameters go. cancelled: what long loops poll.
        temp: what its temporary files take. transaction_time_us, statement_time_us: now() and
        statement_timestamp(); ``timed``: the first is that of the messages under way. query_text, activity,
        state_change_us: what pg_stat_activity shows. commit_actions: of temporary tables, once one has any.
        has_temporaries: once true, plans depend on whose session it is. acting, restricted: code of others
        runs with their rights (``engine.session.acting``). asking: on whose behalf, then: that of the
        client's role, or of the owner of the code where that may less; 0 where neither may all that
            the other may. None: no code of others runs, and the current user asks, as plans know without
            asking for it each time.
    """

    def __init__(
        self,
        database: SessionServer,
        *,
        pid: int,
        user: RoleDef,
        database_def: DatabaseDef,
        settings: Settings,
        out: Responder,
        peer: str = "",
    ) -> None:
        """Open a session for an authenticated user."""
        self.db = database
        self.pid = pid
        self.peer = peer
        self.settings = settings
        self.out = out
        self.database = database_def.name
        self.database_oid = database_def.oid
        self.space = database.spaces[database_def.oid]
        self.held = Held(database.kept)  # between statements
        self.block = Block(self)
        self.view = CatalogView(self)
        self.timing = Timing()
        self.parts: Parts | None = None  # of a running statement whose WITH changes data
        self.running: Plan | None = None  # of the client's statement
        self.within: list[Plan] = []  # of routines' statements and loops that run within it, innermost last
        self.transitions: Mapping[int, Sequence[Row]] = {}  # of the trigger whose function runs, by number
        self.ahead = BuiltAhead(database.allocate_oids)
        self.system = SystemView(self)
        self._demands = SessionDemands(self)
        self.channels = SessionChannels(self)
        self.connection: Client  # what it is of; it says so itself
        self.cursors: Cursors | None = None  # of its connection
        self.log: Log | None = None  # of its connection
        self.cancelled = CancelFlag()
        self.account = Account(database.statements)  # of its running statement
        self.account.decided = self.cancelled.is_decided
        self.temp = TempFiles(lambda: settings.integer("temp_file_limit"))
        self.copying: CopyProgress | None = None  # how far the COPY that runs is
        self.transaction_time_us = 0
        self.statement_time_us = 0
        self.timed = False
        self.backend_start_us = database.clock_us()
        self.state_change_us = self.backend_start_us
        self.query_text = ""
        self.activity = "idle"
        self.commit_actions: CommitActions | None = None
        self.has_temporaries = False
        self.acting = False
        self.restricted = False
        self.asking: int | None = None
        self.identity: Identity = Identity(settings, user, self.view.catalog)
        settings.on_new_generation = self._forget_derived
        settings.hold = self.held.hold
        settings.by_superuser = lambda: self.is_superuser
        settings.find_configuration = self._find_configuration
        settings.may_set = lambda name: Rights(self.today, self.role).parameter(name, "s")
        self._pasts: dict[tuple[int, int, int, bool], CatalogSnapshot] = {}
        self._codec: CodecSettings | None = None
        self._path: tuple[str, ...] | None = None
        self._path_key: tuple[int, int] = (-1, -1)
        self._closed: frozenset[str] = frozenset()
        self._closed_key: tuple[int, int, int] = (-1, -1, -1)
        self._random: Callable[[], float] = database.random
        self.seeded = False

    def let_go(self) -> None:
        """The session is over: its parts go. They refer to it, so that otherwise a collection of cycles would
        have to find them all.
        """
        self.block.let_go()
        kept = ("db", "pid", "peer", "database", "database_oid")
        self.__dict__ = {name: self.__dict__[name] for name in kept}

    # -- what functions see ------------------------------------------------------------------------

    @property
    def catalog(self) -> CatalogSnapshot:
        """The catalog the current transaction sees, or the latest outside one."""
        return self.view.catalog

    def setting(self, name: str) -> str:
        """Return a setting as SHOW prints it. Raises SqlError 42704, 42501."""
        shown = self.settings.show(name)
        if name.lower() in FOR_SUPERUSERS and not self.reads_all_settings:
            raise SqlError(
                "42501", f'must be superuser or have privileges of pg_read_all_settings to examine "{name}"'
            )
        return shown

    @property
    def reads_all_settings(self) -> bool:
        """Whether the current user may look at settings that tell where the server's files are."""
        return self.is_superuser or PG_READ_ALL_SETTINGS in inherited(self.role, self.today.role_by_oid)

    def settings_to_list(self) -> Iterator[tuple[SettingDef, str]]:
        """Yield the settings that SHOW ALL and pg_settings tell the current user, each with what SHOW prints."""
        hidden = UNLISTED if self.reads_all_settings else UNLISTED | FOR_SUPERUSERS
        return (pair for pair in self.settings.items() if pair[0].name.lower() not in hidden)

    def set_setting(self, name: str, value: str | None, *, local: bool) -> str:
        """set_config(): change a setting (None: back to its default), as SET does; return what SHOW prints.

        Raises SqlError 42501, 42704, 22023, 25001 and others, as SET.
        """
        check_length(name)
        key = name.lower()
        if key in MODES:
            return change_mode(self, key, value)
        if key in IDENTITY:
            set_role(self, key, value, local=local)
        else:
            self.settings.set(name, value, local=local)
        return self.settings.show(name)

    @property
    def today(self) -> CatalogSnapshot:
        """The catalog whose roles and rights count: the latest, whatever time a transaction reads at; its own
        where it has changed it.
        """
        return self.catalog if self.view.own_changes else self.space.catalog

    @property
    def rights_catalog(self) -> CatalogSnapshot:
        """The catalog that the transaction sees, with today's rights."""
        return with_rights_of(self.today, self.catalog, self.space.history.last)

    @property
    def asker(self) -> RoleDef | None:
        """As whom it is asked what is to be had of the past: the client's role, also within functions of
        others, unless their owners may less.

        None, who owns nothing: once it has been dropped, and where client and owner each may what the other may not.
        """
        return self.today.role_by_oid(self.identity.current if self.asking is None else self.asking)

    def withholds(self, relation: RelationDef, attnum: int = 0) -> bool:
        """Tell whether who asks may not have what is shown of a relation that the transaction sees, or of a
        column of it, since it has gone.

        Where code of others acts, a relation that is called otherwise today is none that they wrote it for
        (docs/guide/time-travel.md).
        """
        now = self.today
        if self.catalog is now:
            return False
        before, after = self.catalog.relation_by_oid(relation.oid), now.relation_by_oid(relation.oid)
        if before is None or before is after:
            return False
        gone = after is None or attnum in lost_columns(before, after)
        if not gone and not (self.acting and after is not None and not same_names(before, after)):
            return False
        return not Rights(now, self.asker).owns(last_owner(before, after, self.space.history.last))

    def past(self, ts: Timestamp, *, policies: bool = True) -> CatalogSnapshot:
        """Return the catalog as of ``ts`` as it may be read: what has changed since is run as it is
        (``engine.catalog.todays_code``).

        ``policies``: those of row-level security, too. The same one for as long as nothing changes, and the
        same role asks. Raises ReadBelowSince.
        """
        return self.as_of_today(self.space.at(ts), ts, policies=policies)

    def as_of_today(self, then: CatalogSnapshot, ts: Timestamp, *, policies: bool = True) -> CatalogSnapshot:
        """Return ``past`` of a catalog that was current at ``ts``."""
        now = self.space.catalog
        if then is now:
            return then
        asker = self.asker
        key = (then.version, now.version, 0 if asker is None else asker.oid, policies)
        made = self._pasts.get(key)
        if made is None:
            changed = self.space.history.changed_since(ts)
            made = with_code_of(
                now,
                then,
                changed,
                asker,
                self.db.next_catalog_version(),
                policies=policies,
            )
            if len(self._pasts) >= MAX_PASTS:
                self._pasts.clear()
            self._pasts[key] = made
        return made

    @property
    def user(self) -> str:
        """current_user. Raises SqlError 42704 for a role that has been dropped."""
        return name_of(self.identity.current, self.today)

    @property
    def session_user(self) -> str:
        """session_user: who logged in, or whom SET SESSION AUTHORIZATION made of them. Raises SqlError 42704
        for a role that has been dropped.
        """
        return name_of(self.identity.session, self.today)

    @property
    def is_writing(self) -> bool:
        """Whether its transaction has changed something, so that it sees other rows than others do."""
        txn = self.block.txn
        return txn is not None and txn.writing

    @property
    def figures(self) -> Figures | None:
        """What has been counted in tables; None on a server that counts nothing."""
        return self.db.statistics

    @property
    def is_superuser(self) -> bool:
        """True when the current user is a superuser."""
        role = self.today.role_by_oid(self.identity.current)
        return role is not None and role.superuser

    def _find_configuration(self, name: str) -> TextSearchDef | None:
        """Return the text search configuration that a name means. Raises SqlError 42602, 42601, 3F000, 0A000."""
        return find_named(REGCONFIG, name, self.catalog, self.search_path, self.database)

    @property
    def temp_schema(self) -> str:
        """Name of this session's schema for temporary tables."""
        return f"pg_temp_{self.pid}"

    def is_others_temporary(self, relation: RelationDef) -> bool:
        """Tell whether a relation is a temporary one of another session."""
        return relation.persistence == "t" and relation.schema != self.temp_schema

    @property
    def search_path(self) -> tuple[str, ...]:
        """Existing schemas in resolution order; pg_temp and pg_catalog first unless listed."""
        catalog = self.catalog
        key = (self.settings.generation, catalog.namespace_version)
        if self._path is None or self._path_key != key:
            self._path = openly(self._resolve_path, catalog)
            self._path_key = key
        return self._path

    def _resolve_path(self, catalog: CatalogSnapshot) -> tuple[str, ...]:
        names = list(self.explicit_search_path)
        if "pg_catalog" not in names:
            names.insert(0, "pg_catalog")
        if self.temp_schema not in names and catalog.schema(self.temp_schema) is not None:
            names.insert(0, self.temp_schema)
        return tuple(names)

    @property
    def bind_path(self) -> tuple[str, ...]:
        """``search_path`` with ``pg_temp`` where the setting lists it and there is no temporary schema yet."""
        path = self.search_path
        if self.has_temporaries or "pg_temp" not in self.settings.get("search_path"):
            return path
        if self.catalog.schema(self.temp_schema) is not None:
            return path
        return openly(self._with_pg_temp, path)

    def _with_pg_temp(self, path: tuple[str, ...]) -> tuple[str, ...]:
        left = set(path)
        at, listed = -1, False
        for entry in self._listed():
            if entry == "pg_temp" and at < 0:
                at = len(path) - len(left)
            left.discard(entry)
            listed = listed or entry == "pg_catalog"
        if at < 0:
            return path
        at += 0 if listed else 1
        return (*path[:at], "pg_temp", *path[at:])

    @property
    def explicit_search_path(self) -> tuple[str, ...]:
        """Existing schemas that the setting names: what current_schemas(false) shows."""
        catalog = self.catalog
        names: dict[str, None] = {}
        for entry in self._listed():
            name = self.temp_schema if entry == "pg_temp" else entry
            if name not in names and catalog.schema(name) is not None and name not in self.closed_schemas:
                names[name] = None
        return tuple(names)

    def _listed(self) -> Iterator[str]:
        """Yield the names that search_path lists, the current user's for $user. Gives way."""
        for entry in split_identifiers(self.settings.get("search_path")):
            if entry != "$user":
                yield entry
            elif (user := self.today.role_by_oid(self.identity.current)) is not None:
                yield user.name

    @property
    def closed_schemas(self) -> frozenset[str]:
        """The schemas on which the current user has no USAGE: they are not in the search path, nor may a
        statement name them.
        """
        catalog = self.catalog
        today = self.today
        key = (self.settings.generation, catalog.namespace_version, today.namespace_version)
        if self._closed_key != key:
            self._closed_key = key
            catalog = self.rights_catalog
            rights = Rights(catalog, catalog.role_by_oid(self.identity.current))
            self._closed = (
                frozenset()
                if rights.superuser
                else frozenset(
                    schema.name
                    for schema in catalog.schemas()
                    if schema.name != self.temp_schema and not rights.schema(schema, "U")
                )
            )
        return self._closed

    def clock_time_us(self) -> int:
        """clock_timestamp()."""
        return self.db.clock_us()

    def begin_time(self, now_us: int) -> None:
        """A message has come: outside a transaction, and unless one before it in its batch did, it says what
        ``'now'`` and now() are.
        """
        if not self.timed and self.block.state is IDLE:
            self.timed = True
            self.transaction_time_us = now_us

    def random(self) -> float:
        """Return a number uniform in [0, 1): from the server's source, or the sequence setseed() began."""
        return self._random()

    def set_seed(self, seed: float) -> None:
        """setseed(): from now on random() yields a sequence that ``seed`` (-1 .. 1) determines."""
        self._random = self.db.seeded_random(seed)
        self.seeded = True

    def random_bytes(self, count: int) -> bytes:
        """Random bytes for gen_random_uuid()."""
        return self.db.random_bytes(count)

    @cached_property
    def derived(self) -> Derived:
        """What the settings amount to; made anew only when one changed. Statements ask a dozen times: an
        attribute until then.
        """
        made = Derived(self.settings, self.identity.current, self.database_oid)
        self.account.limit = min(
            made.statement_memory or self.account.statements.each, self.account.statements.each
        )
        return made

    def _forget_derived(self) -> None:
        """A setting has changed."""
        self.__dict__.pop("derived", None)
        self._codec = None

    @property
    def escapes(self) -> bool:
        """Do plain literals know escapes?"""
        return self.derived.escapes

    @property
    def quotes_all(self) -> bool:
        """Are all identifiers quoted in what it reads?"""
        return self.derived.quotes_all

    @property
    def output_settings(self) -> CodecSettings:
        """Settings that decide how values print (they know no current time)."""
        derived, types = self.derived, self.view.catalog.codec_types
        if derived.codec.types is not types:
            derived.codec = replace(derived.codec, types=types, demand=self._demands)
        return derived.codec

    @property
    def codec_settings(self) -> CodecSettings:
        """Settings that decide how values read and print; ``now_us`` is the transaction's time."""
        base = self.output_settings
        codec = self._codec
        if codec is None or codec.now_us != self.transaction_time_us or codec.types is not base.types:
            codec = self._codec = replace(base, now_us=self.transaction_time_us)
        return codec

    @property
    def plan_key(self) -> tuple[object, ...]:
        """Everything binding folds in besides the text."""
        key = self.derived.plan_key
        return (key, self.pid) if self.has_temporaries else key

    # -- others ------------------------------------------------------------------------------------

    @property
    def surroundings(self) -> Surroundings:
        """What error reports may tell of others."""
        return Surroundings(self._query_of, self.db.store.latest_hot, self.may_read, self.db.config.relative)

    def may_read(self, relation: RelationDef, attnums: Iterable[int]) -> bool:
        """Tell whether the current user may read all of some columns of all rows of a relation; 0: an
        expression, so all columns.
        """
        if self.row_security_counts(relation):
            return False
        rights = Rights(self.rights_catalog, self.role)
        attnums = set(attnums)
        lost = lost_columns(relation, self.today.relation_by_oid(relation.oid))
        if lost and (0 in attnums or lost & attnums) and not rights.owns(relation.owner):
            return False
        return rights.columns(relation, attnums, "r")

    @property
    def row_security(self) -> RowSecurity:
        """Whose row-level security counts: that of the current user as of now, whatever time a transaction reads at."""
        catalog = self.today
        user = self.identity.current
        # a role that has been dropped may do no more than become another
        role = catalog.role_by_oid(user) or RoleDef(oid=user, name="")
        return RowSecurity(role, self.derived.row_security, catalog, self.closed_schemas, catalog.version)

    def ask_calls(self, functions: Collection[int]) -> None:
        """Raise SqlError 42501 for a function that the current user may not call, by the rights of today."""
        if self.role.superuser:
            return
        catalog = self.rights_catalog
        rights = Rights(catalog, self.role)
        for oid in sorted(functions):
            function = catalog.function_by_oid(oid)
            if function is None:
                refused = not rights.system_function(oid)
            else:
                refused = not rights.function(function)
            if refused:
                name = facts().procs[oid].name if function is None else function.name
                raise SqlError("42501", f"permission denied for function {name}")

    def row_security_counts(self, relation: RelationDef) -> bool:
        """Tell whether policies of a relation count for the current user."""
        return relation.row_security and applies(self.row_security, relation, self.row_security.role)

    def _query_of(self, pid: int) -> str | None:
        connection = self.db.sessions.get(pid)
        if connection is None or not self.may_watch(connection.session.identity.session):
            return None
        return connection.session.query_text or None

    def may_watch(self, user: int) -> bool:
        """Tell whether the current user may see what sessions of the role ``user`` do."""
        if self.is_superuser:
            return True
        return not inherited(self.role, self.today.role_by_oid).isdisjoint((user, PG_READ_ALL_STATS))

    # -- notices -----------------------------------------------------------------------------------

    def notice(
        self,
        message: str,
        *,
        severity: str = "NOTICE",
        sqlstate: str = "00000",
        detail: str | None = None,
        hint: str | None = None,
        log_detail: str | None = None,
    ) -> None:
        """Send a notice unless client_min_messages hides it, and write it to the log as log_min_messages
        says; CONTEXT tells the calls that run.

        ``log_detail``: DETAIL for the log, where that has more of it.
        """
        where = "\n".join(self.system.routines.context()) or None
        self.tell(
            ErrorReport(
                severity=severity, sqlstate=sqlstate, message=message, detail=detail, hint=hint, where=where, log_detail=log_detail,
            )
        )  # fmt: skip

    def tell(self, report: ErrorReport) -> None:
        """As ``notice``, with all fields that a message may have."""
        report = in_bounds(report)
        severity = report.severity
        if self.log is not None and severity != "LOG":
            self.log.report(report)
        rank = _NOTICE_RANK.get("debug1" if severity == "DEBUG" else severity.lower(), 6)
        if severity == "INFO" or rank >= _NOTICE_RANK[self.settings.get("client_min_messages")]:
            self.out.notice(report)

    def standard_text(self, text: str) -> str:
        """Return what a client sends, or EXECUTE runs, as ``standard_conforming_strings = on`` reads it;
        tells of escapes (22P06).

        Raises as ``planner.parse.escapes.to_standard``, and 22P06 for a quote behind a backslash where
        ``backslash_quote`` allows none.
        """
        if self.derived.guards_quotes and "\\'" in text:
            openly(refuse_quotes, text, escapes=self.derived.escapes)
        if not self.derived.escapes or not ("\\" in text or "&'" in text):
            return text
        text, escapes = openly(to_standard, text)
        if escapes and self.settings.get("escape_string_warning") == "on":
            for escape in escapes:
                self.tell(
                    ErrorReport(
                        severity="WARNING",
                        sqlstate="22P06",
                        message=escape.message,
                        hint=escape.hint,
                        position=escape.at + 1,
                    )
                )
        return text

    @property
    def reads_on(self) -> bool:
        """Whether a cursor or portal is open, so that what statements have gathered may still be there between them."""
        conn = self.db.sessions.get(self.pid)
        return conn is not None and (conn.cursors.any or any(p.is_reading for p in conn.portals.values()))

    async def heard(self) -> None:
        """Wait while the client does not read what it is told: after what may tell it very much. Raises
        ConnectionError.
        """
        if self.out.paused:
            await self.out.drain()

    def debug(self, message: str) -> None:
        """Send a message of the level DEBUG1."""
        self.notice(message, severity="DEBUG")

    def warning(self, message: str, sqlstate: str = "01000") -> None:
        """Send a WARNING."""
        self.notice(message, severity="WARNING", sqlstate=sqlstate)

    @property
    def bind_settings(self) -> CodecSettings:
        """Settings literals are read under."""
        return self.codec_settings

    @property
    def role(self) -> RoleDef:
        """The current user."""
        return existing(self.identity.current, self.today)

    @property
    def role_oid(self) -> int:
        """Oid of the current user."""
        return self.role.oid
