"""The statements by which PostgreSQL looks after a foreign key, as CONTEXT shows them; here none of them is
parsed or run as a text.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.changes.constraints.foreign_key import ForeignKey
from planner.catalog import RelationDef


def quoted(name: str) -> str:
    """Return an identifier in double quotes, needed or not."""
    return '"' + name.replace('"', '""') + '"'


def _table(table: RelationDef) -> str:
    only = "" if table.kind == "p" else "ONLY "
    return f"{only}{quoted(table.schema)}.{quoted(table.name)}"


def _child_is(key: ForeignKey, first: int) -> str:
    columns = [quoted(key.child.columns[i].name) for i in key.child_at]
    return " AND ".join(f"${n} OPERATOR(pg_catalog.=) {c}" for n, c in enumerate(columns, first))


def parent_text(key: ForeignKey) -> str:
    """Return the SELECT that finds a referenced row."""
    columns = [quoted(key.parent.columns[i].name) for i in key.parent_at]
    where = " AND ".join(f"{c} OPERATOR(pg_catalog.=) ${n}" for n, c in enumerate(columns, 1))
    return f'SQL statement "SELECT 1 FROM {_table(key.parent)} x WHERE {where} FOR KEY SHARE OF x"'


def child_text(key: ForeignKey) -> str:
    """Return the SELECT that finds rows that refer to one."""
    return f'SQL statement "SELECT 1 FROM {_table(key.child)} x WHERE {_child_is(key, 1)} FOR KEY SHARE OF x"'


def update_text(key: ForeignKey, action: str, *, of_delete: bool) -> str:
    """Return the UPDATE of an action: CASCADE (``c``), SET NULL (``n``), SET DEFAULT."""
    columns = [quoted(key.child.columns[i].name) for i in key.child_at]
    if action == "c":
        sets = [f"{c} = ${n}" for n, c in enumerate(columns, 1)]
        first = len(columns) + 1
    else:
        word = "NULL" if action == "n" else "DEFAULT"
        changed = reset_columns(key, of_delete=of_delete)
        sets = [f"{quoted(key.child.columns[i].name)} = {word}" for i in changed]
        first = 1
    return f'SQL statement "UPDATE {_table(key.child)} SET {", ".join(sets)} WHERE {_child_is(key, first)}"'


def delete_text(key: ForeignKey) -> str:
    """Return the DELETE of CASCADE."""
    return f'SQL statement "DELETE FROM {_table(key.child)} WHERE {_child_is(key, 1)}"'


def reset_columns(key: ForeignKey, *, of_delete: bool) -> Sequence[int]:
    """Return the positions of the columns that SET NULL or SET DEFAULT sets."""
    chosen = key.definition.delete_attnums if of_delete else ()
    return [a - 1 for a in chosen] or key.child_at
