"""Whose code runs where a transaction reads at another time: then's for who owns it now, today's for everybody else.

    CREATE OR REPLACE VIEW v ...; SELECT * FROM v AS OF SYSTEM TIME '-1min'
        the owner, a superuser     v as it was
        others                     v as it is, over the rows of then; 42501 where it no longer fits

A view that has been narrowed, or a function in whose SECURITY DEFINER body a hole was mended, would otherwise
go on to run with its owner's rights for as long as history is kept. So would rows that a policy hides since:
policies are today's for everybody. And whose a view, function or table is, is today's too, whoever asks: as
whom a SECURITY DEFINER body runs, and who is exempt from policies as the owner. What has been dropped is its
last owner's.

The catalog that is read is then's with today's definitions in the places of those that have changed, under
the names of then. Bodies are texts: today's is taken only where each relation that it reads is there under
the same name, and its columns are the same ones (``same_names``); where it is bound it may read no other
relation (``planner.bind.query.select.bind_view``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

from engine.catalog.todays_rights import last_owner
from planner.catalog import BorrowedView, FunctionDef, RelationDef
from planner.catalog.policy import security_of
from planner.catalog.rights import Rights

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot
    from engine.catalog.storage.stored import Stored, StoredKey
    from planner.catalog import RoleDef


_CALLED: Final = re.compile(r"#(\d+)")
"""How stored texts name functions (``planner.bind.expression.calls``)."""


def with_code_of(
    now: CatalogSnapshot,
    then: CatalogSnapshot,
    changed: Mapping[StoredKey, Stored | None],
    asker: RoleDef | None,
    version: int,
    *,
    policies: bool = True,
) -> CatalogSnapshot:
    """Return the catalog ``then`` as ``asker`` may run it; ``then`` itself where nothing of that has changed.

    ``changed``: all keys in which ``now`` may differ, and what was there before the last change. ``asker``
    None: somebody who owns nothing. ``version`` names a new snapshot. ``policies`` False: those of then stay,
    for who refuses to read where there are some now.
    """
    rights = Rights(now, asker)
    puts: list[Stored] = []
    made: RelationDef | FunctionDef
    for key in changed:
        before, after = then.items.get(key), now.items.get(key)
        if before is after:
            continue
        if isinstance(before, RelationDef):
            made = before
            if isinstance(after, RelationDef) and (policies or before.kind == "v"):
                made = _relation(now, then, before, after, rights) or before
            owner = last_owner(before, after if isinstance(after, RelationDef) else None, changed.get)
        elif isinstance(before, FunctionDef):
            made = before
            if isinstance(after, FunctionDef):
                made = _function(before, after, rights) or before
            owner = last_owner(before, after if isinstance(after, FunctionDef) else None, changed.get)
        else:
            continue
        if made.owner != owner:
            made = replace(made, owner=owner)
        if made is not before:
            puts.append(made)
    return then.with_changes(puts, (), version) if puts else then


def _relation(
    now: CatalogSnapshot, then: CatalogSnapshot, before: RelationDef, after: RelationDef, rights: Rights
) -> RelationDef | None:
    if before.kind == "v" and after.kind == "v":
        if _body(before) == _body(after) or rights.owns(after.owner):
            return None
        named = replace(after, schema=before.schema, schema_oid=before.schema_oid, name=before.name)
        values = {field.name: getattr(named, field.name) for field in fields(RelationDef)}
        fits = all(
            same_names(then.relation_by_oid(oid), now.relation_by_oid(oid)) for oid in after.depends_on
        )
        return BorrowedView(**values, fits=fits)
    if security_of(before) == security_of(after) or not _policies_fit(now, then, before, after):
        return None  # where they differ, reading is refused (``engine.definitions.needs.privileges``)
    return replace(
        before,
        policies=after.policies,
        row_security=after.row_security,
        force_row_security=after.force_row_security,
        version=after.version,
    )


def _policies_fit(
    now: CatalogSnapshot, then: CatalogSnapshot, before: RelationDef, after: RelationDef
) -> bool:
    """Tell whether today's policies of a table mean the same over what was there."""
    if not same_names(before, after):
        return False
    text = " ".join(part for policy in after.policies for part in (policy.using_sql, policy.check_sql))
    new = {column.name for column in after.live} - {column.name for column in before.live}
    if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in new):
        return False
    called = (int(oid) for oid in _CALLED.findall(text))
    if any(then.function_by_oid(oid) is None for oid in called if now.function_by_oid(oid) is not None):
        return False
    read = {oid for policy in after.policies for oid in policy.depends_on}
    return all(same_names(then.relation_by_oid(oid), now.relation_by_oid(oid)) for oid in read)


def _body(view: RelationDef) -> object:
    """Return what a view is, but for its name and whose it is."""
    columns = [(column.attnum, column.name, column.type) for column in view.columns]
    return view.view_sql, view.view_path, view.options, columns


def _function(before: FunctionDef, after: FunctionDef, rights: Rights) -> FunctionDef | None:
    named = replace(after, schema=before.schema, schema_oid=before.schema_oid, name=before.name)
    if replace(named, owner=before.owner) == before or rights.owns(after.owner):
        return None
    return named


def same_names(before: RelationDef | None, after: RelationDef | None) -> bool:
    """Tell whether a relation is there at both times, and a text that names it and its columns means the same."""
    if before is None or after is None or (before.schema, before.name) != (after.schema, after.name):
        return False
    places = {column.name: column.attnum for column in before.live}
    return all(places.get(column.name, column.attnum) == column.attnum for column in after.live)
