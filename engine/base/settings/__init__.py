"""Session settings (PostgreSQL's GUCs and ours): values, validation, transaction rollback.

What a change does is one of four things, all shown in ``docs/reference/settings.md``:

    effective         what it says (DateStyle, search_path, statement_timeout, executor ...)
    without effect    nothing, because nothing here depends on it: validated, remembered, shown (``setting_classes``)
    refused           0A000: SHOW works, SET to another value does not
    fixed             55P02, as in PostgreSQL: known at server start, or facts about the server

A value is kept as its canonical text, as SHOW prints it. SET inside a transaction is undone by ROLLBACK and
by ROLLBACK TO; SET LOCAL ends with the transaction (manual, SET).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from engine.base.settings.classes import EFFECTIVE, accepted
from engine.base.settings.defs import OURS, PLPGSQL, REPORTED, SettingDef, definitions
from engine.base.settings.numbers import show_with_unit
from engine.base.settings.values import FindConfiguration, normalise, own_configuration
from pgwire.codecs.invalid import quoting
from pgwire.errors import BackendError
from pgwire.long.values import fields, run_end
from pgwire.tcp import TCP_OPTIONS
from planner.base.errors import SqlError, not_supported

_TOLD: Final = frozenset(REPORTED) | TCP_OPTIONS
MODES: Final = ("transaction_isolation", "transaction_read_only", "transaction_deferrable")
"""What each BEGIN sets and each end undoes; nothing depends on them that is derived from settings, or reported."""

_MODES_OF_FILES: Final = frozenset(("data_directory_mode", "log_file_mode", "unix_socket_permissions"))

_LIBRARIES: Final = frozenset(("local_preload_libraries", "session_preload_libraries"))
"""What a session begins with: of no effect later."""

_WHOLE: Final = "log_statement_stats"
_FIGURES: Final = ("log_parser_stats", "log_planner_stats", "log_executor_stats", _WHOLE)

TEXT_SEARCH: Final = "default_text_search_config"

IDENTITY: Final = frozenset(("role", "session_authorization"))
"""Who the session is: settings that only those change who have asked whether it may be
(``engine.definitions.roles``)."""

SHORT_VALUE: Final = 1000
"""Characters of a value that does not matter as memory."""


def server_defaults(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the values that all sessions begin with, as ``Settings`` takes them, from a server's option.

    Raises SqlError 42704, 55P02, 22023, 0A000.
    """
    found: dict[str, str] = {}
    for name, value in pairs:
        found[name.lower()] = Settings({**found, "is_superuser": "on"}).check(name, value, beginning=True)
    return found


LONGEST_NAME: Final = 1 << 16
"""Characters of a setting's name: what is longer is not looked up, and cannot be set."""
_WORD: Final = re.compile(r"[\w$]*")


def _unknown(name: str) -> SqlError:
    return SqlError("42704", quoting("unrecognized configuration parameter ", name))


def key_of(name: str) -> str:
    """Return the name by which a setting is looked up. Raises SqlError 42704 for one that none can have."""
    if len(name) > LONGEST_NAME:
        raise _unknown(name)
    return name.lower()


def check_length(name: str) -> None:
    """Refuse to change a setting whose name is too long. Raises SqlError 42704, 42602, 0A000."""
    if len(name) <= LONGEST_NAME:
        return
    if "." not in name:
        raise _unknown(name)
    for part in fields(name, "."):
        if not part or part[0] == "$" or part[0].isdigit() or run_end(_WORD, part, 0) < len(part):
            raise _misnamed(name)
    raise not_supported(f"a setting whose name has more than {LONGEST_NAME} characters")


def _misnamed(name: str) -> SqlError:
    detail = "Custom parameter names must be two or more simple identifiers separated by dots."
    return SqlError("42602", quoting("invalid configuration parameter name ", name), detail=detail)


ENTRY_BYTES: Final = 200
"""What a setting takes beside its name and value, about."""


class Settings:
    """The settings of one session, with PostgreSQL's transaction semantics.

    ``defaults`` are what RESET returns to: built-in, then server configuration, then the start-up packet.
    ``changed`` is called with (name, value) for reported settings, and those of the socket, whenever the
    visible value changes.
    """

    __slots__ = (
        "_bytes",
        "_changed",
        "_custom",
        "_defaults",
        "_log",
        "_values",
        "by_superuser",
        "find_configuration",
        "generation",
        "hold",
        "may_set",
        "on_new_generation",
    )

    def __init__(
        self, overrides: Mapping[str, str], changed: Callable[[str, str], None] | None = None
    ) -> None:
        """Start with ``overrides`` (lower-case names, canonical values) over the built-in defaults."""
        self._defaults = dict(overrides)
        self._values: dict[str, str] = {}
        self._custom: dict[str, str] = {}
        # undo log of the transaction: (name, old override or None, is SET LOCAL)
        self._log: list[tuple[str, str | None, bool]] = []
        self._changed = changed
        self.generation = 0  # grows with every change but those of MODES: caches key on it
        self.by_superuser: Callable[[], bool] | None = None  # tells who sets them; None: "is_superuser" does
        self.may_set: Callable[[str], bool] = lambda name: (
            False
        )  # of those for superusers, what somebody was granted
        self.find_configuration: FindConfiguration = own_configuration  # text search configurations by name
        self.on_new_generation: Callable[[], None] = lambda: None  # so that caches need not ask
        self.hold: Callable[[str, int], None] = lambda what, size: (
            None
        )  # counts what values take; raises 53200
        self._bytes = 0  # of values that were set, also of those that can come back

    def get(self, name: str) -> str:
        """Return the canonical value; 42704 for an unknown name. ``name`` in any case."""
        key = key_of(name)
        value = self._values.get(key)
        if value is not None:
            return value
        value = self._defaults.get(key)
        if value is not None:
            return value
        definition = definitions().get(key)
        if definition is None:
            raise _unknown(name)
        return self.get("default_" + key) if key in MODES else definition.default

    def show(self, name: str) -> str:
        """Return the value as SHOW prints it, with units, modes of files in octal."""
        key, value = key_of(name), self.get(name)
        if key in _MODES_OF_FILES:
            return f"{int(value):04o}"
        definition = definitions().get(key)
        if (
            key not in TCP_OPTIONS
            and definition is not None
            and definition.kind in ("integer", "real")
            and definition.unit
        ):
            return show_with_unit(definition, value)
        return value

    def integer(self, name: str) -> int:
        """Return an integer setting in its base unit."""
        return int(self.get(name))

    def check(self, name: str, value: str, *, beginning: bool = False, spelled: str = "") -> str:
        """Validate a change and return the canonical value. ``beginning``: of the session, where more can be said.
        ``spelled``: what errors call it, if not ``name``.

        Raises SqlError 42704, 55P02, 42501, 22023, 0A000.
        """
        definition = self.allow(name, beginning=beginning)
        key = name.lower()
        if definition is None:
            return value
        find = self.find_configuration
        canonical = normalise(
            definition, value, self.get(key), find, default=self._default(key), spelled=spelled or name
        )
        if (key, canonical) == ("default_with_oids", "on"):
            raise SqlError("0A000", "tables declared WITH OIDS are not supported")
        self._excluded(definition.name, canonical)
        if beginning and key in _LIBRARIES and canonical.strip():
            raise SqlError("0A000", f'setting "{definition.name}" to "{value}" is not supported')
        if canonical == "0" and key in TCP_OPTIONS:
            return self._default(key)  # what the system uses
        if accepted(key, canonical) or any(key == ours.name for ours in (*OURS, *PLPGSQL)):
            return canonical
        if canonical == self.get(key):
            return canonical  # asking for what already holds changes nothing
        raise SqlError("0A000", f'setting "{definition.name}" to "{value}" is not supported')

    def _excluded(self, name: str, canonical: str) -> None:
        """Refuse figures of a whole statement beside those of its steps. Raises SqlError 22023."""
        if canonical != "on" or name not in _FIGURES:
            return
        if name == _WHOLE and any(self.get(step) == "on" for step in _FIGURES if step != name):
            steps = '"log_parser_stats", "log_planner_stats", or "log_executor_stats"'
            detail = f'Cannot enable "{name}" when {steps} is true.'
        elif name != _WHOLE and self.get(_WHOLE) == "on":
            detail = f'Cannot enable parameter when "{_WHOLE}" is true.'
        else:
            return
        raise SqlError("22023", f'invalid value for parameter "{name}": 1', detail=detail)

    def allow(self, name: str, *, beginning: bool = False) -> SettingDef | None:
        """Return the definition of a setting that may be changed by who runs; None: a placeholder, which has none.

        ``beginning``: as for ``check``. Raises SqlError 42704, 42602, 55P02, 42501.
        """
        check_length(name)
        key = name.lower()
        definition = definitions().get(key)
        if definition is None:
            if re.fullmatch(r"[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*)+", name):
                return None  # any "class.name" may be set (manual 20.16)
            if "." in name:
                raise _misnamed(name)
            raise _unknown(name)
        if key in IDENTITY:  # whoever sets them asks ``engine.definitions.roles`` first
            raise SqlError("55P02", f'parameter "{definition.name}" cannot be changed here')
        if definition.context == "internal" and key not in EFFECTIVE:
            raise SqlError("55P02", f'parameter "{definition.name}" cannot be changed')
        if definition.context == "postmaster":
            raise SqlError(
                "55P02", f'parameter "{definition.name}" cannot be changed without restarting the server'
            )
        if definition.context == "sighup":
            raise SqlError("55P02", f'parameter "{definition.name}" cannot be changed now')
        if definition.context in ("backend", "superuser-backend") and not beginning:
            raise SqlError("55P02", f'parameter "{definition.name}" cannot be set after connection start')
        if definition.context.startswith("superuser") and not (self._superuser_sets() or self.may_set(key)):
            raise SqlError("42501", f'permission denied to set parameter "{definition.name}"')
        return definition

    def _superuser_sets(self) -> bool:
        by = self.by_superuser
        return self.get("is_superuser") == "on" if by is None else by()

    def allow_kept(self, name: str, *, beginning: bool = False) -> None:
        """As ``allow``, for what is kept with a role, a database or a function: placeholders are superusers',
        who know what may come to read them.
        """
        if self.allow(name, beginning=beginning) is None and not self._superuser_sets():
            raise SqlError("42501", f'permission denied to set parameter "{name}"')

    def set(self, name: str, value: str | None, *, local: bool = False) -> str:
        """Change a setting (None: back to its default); returns the canonical value."""
        check_length(name)
        key = name.lower()
        canonical = self._default(key) if value is None else self.check(name, value)
        if value is None and key != TEXT_SEARCH:  # which may have been dropped: that is told where it is used
            self.check(name, canonical)
        before = self._values.get(key)
        size = len(key) + len(canonical) + ENTRY_BYTES
        self.hold("settings", self._bytes + size)
        self._bytes += size
        self._store(key, canonical)
        self._log.append((key, before, local))
        return canonical

    def follow(self, key: str, value: str | None, *, local: bool = False) -> None:
        """Set an internal value that goes with another change, unchecked; undone together with it."""
        self._log.append((key, self._values.get(key), local))
        self._store(key, value)

    def _default(self, key: str) -> str:
        if key in self._defaults:
            return self._defaults[key]
        definition = definitions().get(key)
        if definition is not None:
            return definition.default
        if "." in key:
            return ""
        raise SqlError("42704", f'unrecognized configuration parameter "{key}"')

    def reset_all(self) -> None:
        """RESET ALL: every changed setting that may be reset goes back to its default."""
        for key in list(self._values):
            if key not in ("role", "session_authorization", "transaction_isolation", "is_superuser",
                           "transaction_read_only", "transaction_deferrable", "holdfast.commit_ts"):  # fmt: skip
                self._log.append((key, self._values.get(key), False))
                self._store(key, None)

    def let_go(self) -> None:
        """The session is over: forget values that clients have chosen at any length."""
        self._custom.clear()
        self._log.clear()
        self._values = {key: value for key, value in self._values.items() if len(value) <= SHORT_VALUE}

    def _store(self, key: str, value: str | None) -> None:
        before = self._values.get(key)
        self._keep(key, value)
        if before != value and key not in MODES:
            self.outdate()
            definition = definitions().get(key)
            if self._changed is not None and definition is not None and definition.name in _TOLD:
                try:
                    self._changed(definition.name, self.get(key))
                except BackendError:  # the system does not take it
                    self._keep(key, before)
                    raise

    def outdate(self) -> None:
        """A value has changed, or what one means: nothing holds that was made of them."""
        self.generation += 1
        self.on_new_generation()

    def _keep(self, key: str, value: str | None) -> None:
        """Keep a value, None: the default. A placeholder that has been there stays for the session, empty (as
        PostgreSQL keeps its variable).
        """
        if (
            value is None
            and key in self._values
            and "." in key
            and key not in definitions()
            and key not in self._defaults
        ):
            value = ""
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def stored(self, key: str) -> str | None:
        """Return what ``override`` has to be given for things to be as they are now."""
        return self._values.get(key)

    def override(self, key: str, value: str | None) -> None:
        """Set an internal value (transaction_isolation, is_superuser ...) outside transaction semantics."""
        self._store(key, value)

    def end_modes(self) -> None:
        """The transaction has ended: what its BEGIN said of it counts no more."""
        values = self._values
        for key in MODES:
            values.pop(key, None)

    def note(self, key: str, value: str) -> None:
        """Keep an internal value that nothing else depends on: neither undone nor reported."""
        self._values[key] = value

    # -- transactions ------------------------------------------------------------------------------

    def mark(self) -> int:
        """Return a mark for ``undo_to`` (savepoints)."""
        return len(self._log)

    def leave(self, key: str, old: str | None, mark: int) -> None:
        """A function that had ``key`` overridden since ``mark`` is over: ``old`` counts again, unless its
        body has changed it by a plain SET.

        What was SET LOCAL ends with the function (manual, CREATE FUNCTION); nothing of it is left to be
        undone with the transaction.
        """
        value, stays = self._values.get(key), False
        for name, was, local in reversed(self._log[mark:]):
            if name == key and not stays:
                value, stays = (was, False) if local else (value, True)
        self._log[mark:] = [entry for entry in self._log[mark:] if entry[0] != key]
        if stays:
            self._log.append((key, old, False))
        self._store(key, value if stays else old)

    def undo_to(self, mark: int) -> None:
        """Undo every change made since ``mark``."""
        while len(self._log) > mark:
            key, old, _local = self._log.pop()
            self._store(key, old)
        if not mark:
            self._count()

    def commit(self) -> None:
        """End a transaction: SET LOCAL changes are undone, others stay."""
        if not self._log:
            return
        final: dict[str, str | None] = {}
        for key, old, local in self._log:
            if local:
                final.setdefault(key, old)
        # a plain SET before or after a SET LOCAL of the same name wins over the local one
        seen_local: set[str] = set()
        kept: dict[str, str | None] = {}
        values = {key: self._values.get(key) for key, _, _ in self._log}
        for position in range(len(self._log) - 1, -1, -1):
            key, old, local = self._log[position]
            if key in kept:
                continue
            if local:
                seen_local.add(key)
                values[key] = old
            else:
                kept[key] = values[key]
        for key in seen_local:
            self._store(key, kept.get(key, final.get(key)))
        self._log.clear()
        self._count()

    def _count(self) -> None:
        """The transaction has ended: only the present values take memory."""
        if self._bytes:
            self._bytes = sum(len(key) + len(value) + ENTRY_BYTES for key, value in self._values.items())
            self.hold("settings", self._bytes)

    def rollback(self) -> None:
        """Undo the transaction's changes."""
        self.undo_to(0)

    def items(self) -> Iterable[tuple[SettingDef, str]]:
        """Yield every setting with its SHOW text, by name (case-insensitive order)."""
        for key in sorted(definitions()):
            yield definitions()[key], self.show(key)
