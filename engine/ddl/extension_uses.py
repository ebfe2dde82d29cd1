"""What hangs on an extension beside its functions: indexes of its operator classes.

    CREATE INDEX ON t USING gin (id)      depends on     operator class int4_ops for access method gin     of btree_gin

``DROP EXTENSION`` tells of it, and takes it along with CASCADE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from engine.connection.session import Session
from engine.ddl.dependents import Dependency
from engine.ddl.uses import Use, dependency, drop_use
from planner.catalog import ExtensionDef
from planner.opclass_extensions import PLAIN_EXTENSION, ExtensionClass, class_named, default_class


class Hanging(NamedTuple):
    """What DROP EXTENSION tells: ``roots`` (keys of the extension's own parts), who depends on them, what these are called."""

    roots: list[tuple[str, int]]
    links: list[Dependency]
    words: dict[object, str]


def hanging(session: Session, extensions: Sequence[ExtensionDef]) -> Hanging:
    """Return what hangs on extensions beside their functions."""
    found = Hanging([], [], {})
    for use, brought in _index_uses(session, extensions):
        key = ("opclass", brought.oid)
        if key not in found.words:
            found.roots.insert(0, key)  # what hangs on the last one is told first
            found.words[key] = f"operator class {brought.name} for access method {brought.method}"
        found.links.append(dependency(session, use, key))
    return found


def _index_uses(session: Session, extensions: Sequence[ExtensionDef]) -> Iterator[tuple[Use, ExtensionClass]]:
    """Yield the indexes over columns by classes that keep the values as they are; others hang on a function."""
    if all(extension.name != PLAIN_EXTENSION for extension in extensions):
        return
    for relation in sorted(session.catalog.user_relations(), key=lambda r: r.oid):
        for index in relation.indexes:
            if index.method != "gin":
                continue
            for position, attnum in enumerate(index.attnums):
                name = index.opclasses[position] if index.opclasses else ""
                type_oid = relation.column(attnum).type.oid
                brought = class_named("gin", name) if name else default_class("gin", type_oid)
                if brought is not None and brought.extension == PLAIN_EXTENSION:
                    yield Use("index", relation, index.oid), brought
                    break


async def drop_hanging(session: Session, extensions: Sequence[ExtensionDef]) -> None:
    """Drop what hangs on extensions that are about to go."""
    for use, _ in list(_index_uses(session, extensions)):
        if session.catalog.relation_by_oid(use.relation.oid) is not None:
            await drop_use(session, use)
