"""Options of foreign data: OPTIONS (...) to changes of options, and what ``postgresql_fdw_validator`` takes for one.

    OPTIONS (SET host 'b', DROP port)    set host b; drop port

The validator knows what libpq did when it was written, by what the options are of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pgwire.give_way import paced
from planner import ast
from planner.base.errors import SqlError
from planner.catalog.foreign import PG_FOREIGN_SERVER, PG_USER_MAPPING, Options, ServerDef
from planner.catalog.protocol import Catalog
from planner.statements.foreign import OptionChanges

PG_ATTRIBUTE: Final = 1249
VALIDATOR: Final = 2316
"""The oid of the function, the one validator that there is."""

_KNOWN: Final[Mapping[int, Sequence[str]]] = {
    PG_FOREIGN_SERVER: (
        "authtype", "service", "connect_timeout", "dbname", "host", "hostaddr", "port", "tty", "options", "requiressl",
        "sslmode", "gsslib",
    ),
    PG_USER_MAPPING: ("user", "password"),
}  # fmt: skip


def check_names(names: Iterable[str], class_oid: int) -> None:
    """Raise SqlError 42601 for an option that objects of a catalog have not."""
    known = _KNOWN.get(class_oid, ())
    for name in paced(tuple(names)):
        if name not in known:
            hint = (
                f"Valid options in this context are: {', '.join(known)}"
                if known
                else "There are no valid options in this context."
            )
            raise SqlError("42601", f'invalid option "{name}"', hint=hint)


def check_options(validator: int, options: Options, class_oid: int) -> None:
    """Have a wrapper's validator look at options. Raises SqlError 42601."""
    if validator == VALIDATOR:
        check_names((name for name, _ in options), class_oid)


def new_options(written: Sequence[ast.ForeignOption]) -> Options:
    """Return the options of a new object. Raises SqlError 42710, 22023."""
    return changed_options((), option_changes(written))


def option_changes(written: Sequence[ast.ForeignOption]) -> OptionChanges:
    """Return what OPTIONS (...) does, in its order."""
    return tuple((option.action, option.name, option.value) for option in paced(written))


def changed_options(options: Options, changes: OptionChanges) -> Options:
    """Return options after changes, one by one. Raises SqlError 42710 (there already), 42704 (not there),
    22023 (no name of one).
    """
    found = dict(options)
    for action, name, value in paced(changes):
        if action == "add":
            if name in found:
                raise SqlError("42710", f'option "{name}" provided more than once')
            found[name] = value
        elif name not in found:
            raise SqlError("42704", f'option "{name}" not found')
        elif action == "set":
            found[name] = value
        else:
            del found[name]
    for name in paced(tuple(found)):
        if "=" in name:
            raise SqlError("22023", f'invalid option name "{name}": must not contain "="')
    return tuple(found.items())


def server_named(catalog: Catalog, name: str) -> int:
    """Return the oid of a server. Raises SqlError 42704."""
    found = catalog.foreign_named(PG_FOREIGN_SERVER, name)
    if not isinstance(found, ServerDef):
        raise SqlError("42704", f'server "{name}" does not exist')
    return found.oid
