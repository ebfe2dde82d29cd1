"""CREATE COLLATION and ALTER COLLATION ... REFRESH VERSION.

None can be made: what PostgreSQL would refuse is told as it tells it, all else is 0A000. Those that there are compare bytes, and have no version.
"""

from __future__ import annotations

from typing import Final, NoReturn

from planner import ast
from planner import statements as st
from planner.bind.context import BindContext
from planner.bind.expr import find_collation
from planner.bind.options import boolean_option, option_text, redundant
from planner.errors import SqlError, not_supported
from planner.typefacts import DEFAULT_COLLATION

_ATTRIBUTES: Final = frozenset(
    ("from", "locale", "lc_collate", "lc_ctype", "provider", "deterministic", "version")
)


def _found(context: BindContext, name: ast.Name) -> int:
    """Return a collation's oid. Raises SqlError 3F000, 42704; 0A000 for one that does not compare bytes."""
    if len(name) > 1 and not context.has_schema(name[-2]):
        raise SqlError("3F000", f'schema "{name[-2]}" does not exist')
    return find_collation(name, None)


def bind_create(context: BindContext, node: ast.CreateCollation) -> NoReturn:
    """CREATE COLLATION. Raises SqlError 3F000, 42601, 42704, 42P17, and 0A000 for what could be made."""
    if len(node.name) > 1 and not context.has_schema(node.name[-2]):
        raise SqlError("3F000", f'schema "{node.name[-2]}" does not exist')
    given: dict[str, ast.Option] = {}
    for option in node.options:
        if option.name not in _ATTRIBUTES:
            raise SqlError("42601", f'collation attribute "{option.name}" not recognized', span=option.span)
        if option.name in given:
            raise redundant(option.span)
        given[option.name] = option
    if "locale" in given and not given.keys().isdisjoint(("lc_collate", "lc_ctype")):
        raise _together("LOCALE cannot be specified together with LC_COLLATE or LC_CTYPE.")
    if "from" in given and len(given) > 1:
        raise _together("FROM cannot be specified together with any other options.")
    if "from" in given:
        copied = given["from"].value
        name = (copied,) if isinstance(copied, str) else copied if isinstance(copied, tuple) else ()
        if _found(context, name) == DEFAULT_COLLATION:
            raise SqlError("42P17", 'collation "default" cannot be copied')
    else:
        _check(given)
    raise not_supported("CREATE COLLATION")


def _check(given: dict[str, ast.Option]) -> None:
    """Raise SqlError 42601, 42P17, 0A000 for attributes that do not go together."""
    deterministic = "deterministic" not in given or boolean_option(given["deterministic"])
    provider = (option_text(given["provider"]) or "") if "provider" in given else "libc"
    if provider.lower() not in ("libc", "icu"):
        raise SqlError("42P17", f"unrecognized collation provider: {provider}")
    if provider.lower() == "icu":
        needed: tuple[str, ...] = ("locale",)
    else:
        needed = () if "locale" in given else ("lc_collate", "lc_ctype")
    for name in needed:
        if name not in given:
            raise SqlError("42P17", f'parameter "{name}" must be specified')
    if not deterministic and provider.lower() == "libc":
        raise SqlError("0A000", "nondeterministic collations not supported with this provider")


def _together(detail: str) -> SqlError:
    return SqlError("42601", "conflicting or redundant options", detail=detail)


def bind_refresh(context: BindContext, node: ast.RefreshCollation) -> st.RefreshCollation:
    """ALTER COLLATION ... REFRESH VERSION. Raises SqlError 3F000, 42704; 0A000 for a collation that does not compare bytes."""
    _found(context, node.name)
    return st.RefreshCollation(name=node.name[-1])
