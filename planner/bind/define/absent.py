"""DROP of what nobody can create here: rules, operators, casts, ...

    DROP RULE IF EXISTS r ON tab      a notice, so that scripts written for PostgreSQL (pg_dump --clean --if-exists) go on
    DROP RULE r ON tab                42704: there is none
    DROP OPERATOR + (int, int)        2BP01: the system needs it

Which object classes of PostgreSQL's own exist is known for types, functions, operators, casts, languages,
access methods and collations; a name that may be one of its text search parsers or templates is refused
(0A000).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from pgwire.give_way import paced
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.facts import facts
from planner.types.facts import format_type

_OWN: Final = {
    "language": frozenset({"internal", "c", "sql"}),
    "access method": frozenset({"heap", "btree", "hash", "gist", "gin", "spgist", "brin"}),
    "collation": frozenset({"default", "C", "POSIX", "ucs_basic"}),
}  # fmt: skip
_MAY_BE_OWN: Final = {
    "text search": re.compile("default|simple|ispell|synonym|thesaurus|snowball|unaccent"),
}  # fmt: skip
_MISSING: Final = frozenset({"42704", "42P01", "42883", "3F000"})


def bind_drop_absent(context: BindContext, node: ast.DropAbsent) -> st.Skip:
    """DROP of such objects, one after the other.

    Raises SqlError 42704, 42883, 42P01, 3F000 (without IF EXISTS), 2BP01 (PostgreSQL's own), 42809 (of
    another kind), 42601, 0A000.
    """
    check = _CHECKS.get(node.what, _named)
    notices: list[str] = []
    for item in paced(node.objects):
        error, notice = check(context, node.what, item)
        if not node.if_exists or error.sqlstate not in _MISSING:
            raise error
        notices.append(f"{notice or error.message}, skipping")
    return st.Skip(notice=notices[0], more=tuple(notices[1:]))


# what is wrong, and what IF EXISTS says instead ("": the same)
_Finding = tuple[SqlError, str]
_Check = Callable[[BindContext, str, ast.AbsentObject], _Finding]


def _no_schema(context: BindContext, name: ast.Name) -> SqlError | None:
    if len(name) > 1 and not context.has_schema(name[-2]):
        return SqlError("3F000", f'schema "{name[-2]}" does not exist')
    return None


def _required(what: str) -> SqlError:
    return SqlError("2BP01", f"cannot drop {what} because it is required by the database system")


def _of_rule(context: BindContext, what: str, item: ast.AbsentObject) -> _Finding:
    table, name = item.name[:-1], item.name[-1]
    missing = _no_schema(context, table)
    if missing is not None:
        return missing, ""
    relation = context.find_relation(table[-2] if len(table) > 1 else "", table[-1])
    if relation is None:
        return SqlError("42P01", f'relation "{".".join(table)}" does not exist'), ""
    if name == "_RETURN" and relation.kind == "v":
        view = f"view {relation.name}"
        message = f"cannot drop rule _RETURN on {view} because {view} requires it"
        return SqlError("2BP01", message, hint=f"You can drop {view} instead."), ""
    return SqlError("42704", f'rule "{name}" for relation "{relation.name}" does not exist'), ""


def _named(context: BindContext, what: str, item: ast.AbsentObject) -> _Finding:
    missing = _no_schema(context, item.name)
    if missing is not None:
        return missing, ""
    name = ".".join(item.name)
    if item.name[-1] in _OWN.get(what, ()):
        shown = f'"{name}"' if name != name.lower() else name
        return _required(f"{what} {shown}"), ""
    _refuse_own(what, item.name)
    shown = f'{what} "{name}"'
    if what == "collation":
        return SqlError("42704", f'{shown} for encoding "UTF8" does not exist'), f"{shown} does not exist"
    return SqlError("42704", f"{shown} does not exist"), ""


def _refuse_own(what: str, name: ast.Name) -> None:
    own = _MAY_BE_OWN.get("text search" if what.startswith("text search") else what)
    if own is not None and own.fullmatch(name[-1]) and name[0] in (name[-1], "pg_catalog"):
        raise not_supported(f"DROP {what.upper()} of what may be PostgreSQL's own")


def _types(context: BindContext, item: ast.AbsentObject) -> list[int] | SqlError:
    """Return the types by oid, 0 for none; or what is wrong with one."""
    found: list[int] = []
    for name in item.types:
        if name is not None:
            missing = _no_schema(context, name.names)
            if missing is not None:
                return missing
        try:
            found.append(0 if name is None else context.type_of(name).oid)
        except SqlError as error:
            error.span = None
            return error.copy()
    return found


def _written(name: ast.TypeName | None) -> str:
    return "" if name is None else ".".join(name.names) + "[]" * len(name.dims)


def _cast(context: BindContext, what: str, item: ast.AbsentObject) -> _Finding:
    types = _types(context, item)
    if isinstance(types, SqlError):
        return types, ""
    source, target = types
    if (source, target) in facts().casts:
        return _required(f"cast from {format_type(source)} to {format_type(target)}"), ""
    first, second = item.types
    return (
        SqlError(
            "42704", f"cast from type {format_type(source)} to type {format_type(target)} does not exist"
        ),
        f"cast from type {_written(first)} to type {_written(second)} does not exist",
    )


def _operator(context: BindContext, what: str, item: ast.AbsentObject) -> _Finding:
    missing = _no_schema(context, item.name)
    types = _types(context, item)
    if isinstance(types, SqlError):
        return types, "" if missing is None else missing.message
    left, right = types
    if not right:
        raise SqlError("42601", "postfix operators are not supported")
    named = facts().operators_by_name.get(item.name[-1], ())
    if item.name[0] in (item.name[-1], "pg_catalog") and any(
        (o.left, o.right) == (left, right) for o in named
    ):
        shown = format_type(left) if left else "NONE"
        return _required(f"operator {item.name[-1]}({shown},{format_type(right)})"), ""
    name = ".".join(item.name)
    operands = f"{format_type(left)} {name}" if left else name
    return (
        SqlError("42883", f"operator does not exist: {operands} {format_type(right)}"),
        f"operator {name} does not exist" if missing is None else missing.message,
    )


_CHECKS: Final[dict[str, _Check]] = {
    "rule": _of_rule,
    "cast": _cast,
    "operator": _operator,
}
