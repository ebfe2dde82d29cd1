"""CREATE, ALTER and DROP DATABASE, and what settings begin with in databases and for roles (manual 23 and 20.1.3).

Names of databases and roles are looked up when the statement runs, under the locks of DDL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pgwire.codecs.text.encodings import canonical
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.table.options import boolean_option, option_text, redundant
from planner.bind.session.utility import bind_set, owner_name

_LOCALES: Final = {
    "C": "C",
    "POSIX": "C",
    "C.UTF-8": "C.UTF-8",
    "C.utf8": "C.utf8",
}  # and what they are called
_ENCODINGS: Final = frozenset(("default", "6"))
_LOCALE_OPTIONS: Final = ("locale", "lc_collate", "lc_ctype")
_NEVER: Final = frozenset(("role", "session_authorization"))


def _checked(option: ast.Option) -> None:
    """Check an option that has one possible value here. SqlError 42704, 0A000."""
    text = (option_text(option) or "").lower()
    if option.name == "encoding":
        known = canonical(text)
        if text not in _ENCODINGS and known is None and not text.isdigit():
            raise SqlError("42704", f"{option_text(option)} is not a valid encoding name", span=option.span)
        if text not in _ENCODINGS and known != "UTF8":
            raise not_supported(f"encoding {option_text(option)} of a database", span=option.span)
    elif option.name in _LOCALE_OPTIONS:
        if option_text(option) not in (*_LOCALES, "default", None):
            raise not_supported(f"locale {option_text(option)} of a database", span=option.span)
    elif option.name == "locale_provider":
        if text != "libc":
            raise not_supported(f"locale provider {option_text(option)}", span=option.span)
    elif option.name == "tablespace":
        if text not in ("pg_default", "default"):
            raise SqlError("42704", f'tablespace "{option_text(option)}" does not exist')
    elif option.name == "strategy":
        if text not in ("wal_log", "file_copy"):
            raise SqlError(
                "22023",
                f'invalid create database strategy "{option_text(option)}"',
                hint='Valid strategies are "wal_log" and "file_copy".',
            )
    else:
        raise not_supported(f"option {option.name} of CREATE DATABASE", span=option.span)


def _limit(option: ast.Option) -> int:
    try:
        limit = int(option_text(option) or "-1")
    except ValueError:
        raise SqlError("42601", f"{option.name} requires an integer value") from None
    if limit < -1:
        raise SqlError("22023", f"invalid connection limit: {limit}")
    return limit


def _options(options: Sequence[ast.Option], allowed: Sequence[str]) -> Mapping[str, object]:
    """Return what the options make of a ``DatabaseDef``, with ``owner`` and ``template`` as names."""
    found: dict[str, object] = {}
    seen: set[str] = set()
    for option in options:
        if option.name not in allowed:
            raise SqlError("42601", f'option "{option.name}" not recognized', span=option.span)
        if option.name in seen:
            raise redundant(option.span)
        seen.add(option.name)
        if option.name in ("is_template", "allow_connections"):
            found[option.name] = boolean_option(option)
        elif option.name == "connection_limit":
            found[option.name] = _limit(option)
        elif option.name in ("owner", "template"):
            text = option_text(option)
            if text is not None:  # DEFAULT
                found[option.name] = text
        else:
            _checked(option)
            text = option_text(option) or "default"
            if text != "default" and option.name == "locale":
                found.setdefault("collate", _LOCALES[text])
                found.setdefault("ctype", _LOCALES[text])
            elif text != "default" and option.name in _LOCALE_OPTIONS:
                found[option.name.removeprefix("lc_")] = _LOCALES[text]
    return found


_ALTER: Final = ("is_template", "allow_connections", "connection_limit")
_CREATE: Final = (
    *_ALTER, "owner", "template", "encoding", "locale", "lc_collate", "lc_ctype", "locale_provider", "icu_locale",
    "tablespace", "strategy", "collation_version", "oid",
)  # fmt: skip


def bind_create(context: BindContext, node: ast.CreateDatabase) -> st.CreateDatabase:
    """CREATE DATABASE. Raises SqlError 42601, 22023, 42704; 0A000 for encodings and locales but UTF8 and C."""
    return st.CreateDatabase(name=node.name, options=_options(node.options, _CREATE))


def bind_alter(context: BindContext, node: ast.AlterDatabase) -> st.AlterDatabase:
    """ALTER DATABASE ... WITH. Raises SqlError 42601, 22023; 0A000 for SET TABLESPACE."""
    for option in node.options:
        if option.name == "tablespace":
            raise not_supported("ALTER DATABASE ... SET TABLESPACE", span=option.span)
    return st.AlterDatabase(name=node.name, options=_options(node.options, _ALTER), refresh=node.refresh)


def bind_drop(context: BindContext, node: ast.DropDatabase) -> st.DropDatabase:
    """DROP DATABASE. Raises SqlError 42601."""
    force = False
    for option in node.options:
        if option.name != "force":
            raise SqlError("42601", f'unrecognized DROP DATABASE option "{option.name}"', span=option.span)
        force = True
    return st.DropDatabase(name=node.name, if_exists=node.if_exists, force=force)


def bind_defaults(context: BindContext, node: ast.AlterDefaults) -> st.AlterDefaults:
    """ALTER DATABASE and ALTER ROLE ... SET. Raises SqlError as SET; 0A000 for SET TRANSACTION and settings
    of roles.
    """
    what = "ALTER ROLE" if node.of_role else "ALTER DATABASE"
    setting = node.setting
    change = bind_set(context, setting)
    if not isinstance(change, st.SetVariable):
        raise not_supported(f"{what} ... SET {setting.name}", span=setting.span)
    if change.name.lower() in _NEVER:
        raise not_supported(f"{what} ... SET {change.name}", span=setting.span)
    return st.AlterDefaults(
        database=node.database,
        role=None if node.role is None else owner_name(node.role),
        of_role=node.of_role,
        change=change,
    )
