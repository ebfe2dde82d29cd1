"""Whether the rows of a load can be made by a process that has no session: what expressions and types ask of one.

Values that are fixed for the statement (now(), current_user) have become parameters before. What is left has
to be immutable: no random(), no clock, no sub-select. Types whose text needs the catalog (regclass and its
kin) are read by the server.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.changes.writes.copy_rows import LoadSpec
from planner.functions import looks_up
from planner.functions.values.reg import NAMED
from planner.query import CoerceToDomain, CurrentSetting, Expr, SubLink
from planner.query.walk import walk
from planner.rules.stable import extract_stable
from planner.statements.classify import is_volatile
from planner.types.facts import FIRST_USER_OID, element_of, type_kind


def obstacle(spec: LoadSpec) -> str | None:
    """Return what keeps the rows of a load from being made elsewhere, None if nothing does."""
    for attnum in spec.attnums:
        column = spec.relation.column(attnum)
        if column.type.oid in NAMED or _is_own_range(column.type.oid):
            return f'column "{column.name}", whose type is read with the catalog'
    if spec.encoding != "UTF8":
        return f"data in {spec.encoding}"
    if spec.demands or spec.reads_domains:
        return "what the domains of columns demand, which is in the catalog"
    for what, expr in _expressions(spec):
        if is_volatile(expr) or extract_stable(expr, 0)[1]:
            return f"{what}, which calls a function that is not immutable"
        if any(looks_up(node) for node in walk(expr)):
            return f"{what}, which names a text search object of one's own"
        if any(isinstance(node, SubLink | CurrentSetting | CoerceToDomain) for node in walk(expr)):
            return f"{what}, which depends on more than the row"
    return None


def _is_own_range(oid: int) -> bool:
    """Tell whether a type is a range or multirange of a user's type, or an array of such: other processes do
    not know it.
    """
    oid = element_of(oid) or oid
    return oid >= FIRST_USER_OID and type_kind(oid) in ("r", "m")


def _expressions(spec: LoadSpec) -> Iterator[tuple[str, Expr]]:
    for attnum, expr in spec.defaults:
        yield f'the default of column "{spec.relation.column(attnum).name}"', expr
    for name, expr in spec.checks:
        yield f'check constraint "{name}"', expr
    for attnum, expr in spec.generated:
        yield f'generated column "{spec.relation.column(attnum).name}"', expr
    if spec.where is not None:
        yield "WHERE", spec.where
