"""What ``postgresql_fdw_validator`` takes for options: what libpq did when it was written, by what they are of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pgwire.give_way import paced
from planner.catalog.foreign import PG_FOREIGN_SERVER, PG_USER_MAPPING, Options
from planner.errors import SqlError

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
