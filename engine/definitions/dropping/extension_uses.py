"""What hangs on an extension beside its functions: what uses its types, indexes of its operator classes, what
uses its text search dictionaries and templates.

    CREATE TABLE t (a citext)             column a       depends on     type citext
    CREATE INDEX ON t USING gin (id)      the index      depends on     operator class int4_ops for access method gin     of btree_gin

``DROP EXTENSION`` tells of it, and takes it along with CASCADE.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from engine.catalog.state import CatalogSnapshot
from engine.definitions import text_search
from engine.definitions.dropping.dependents import Dependency
from engine.definitions.dropping.uses import Use, dependency, drop_use
from engine.definitions.namings import Namings
from engine.definitions.types import drop_types, functions_using, type_dependencies
from engine.session.session import Session
from pgwire.give_way import opening
from planner.catalog import DictionaryDef, ExtensionDef, TypeDef
from planner.catalog.extensions import TEMPLATES
from planner.facts import facts
from planner.indexing.opclass_extensions import PLAIN_EXTENSIONS, ExtensionClass, class_named, default_class


class Hanging(NamedTuple):
    """What DROP EXTENSION tells: ``roots`` (keys of the extension's own parts), who depends on them, what
    these are called.
    """

    roots: list[Hashable]
    links: list[Dependency]
    words: dict[Any, str]


@opening
def hanging(session: Session, extensions: Sequence[ExtensionDef]) -> Hanging:
    """Return what hangs on extensions beside their functions."""
    found = Hanging([], [], {})
    types = own_types(session.catalog, extensions)
    if types:
        links, words = type_dependencies(session, types, Namings(session.catalog))
        functions_using(session, types, links, words)
        found.roots.extend(("type", type_.oid) for type_ in types)
        found.links.extend(links)
        found.words.update(words)
    for use, brought in _index_uses(session, extensions):
        key = ("opclass", brought.oid)
        if key not in found.words:
            found.roots.insert(0, key)  # what hangs on the last one is told first
            found.words[key] = f"operator class {brought.name} for access method {brought.method}"
        found.links.append(dependency(session, use, key))
    for dictionary in dictionaries_of(session.catalog, extensions):
        found.roots.append(dictionary.oid)
        found.links.extend(text_search.hanging(session, [dictionary])[1])
    for oid, name in _templates(extensions):
        key = ("template", oid)
        found.roots.append(key)
        found.words[key] = f"text search template {name}"
        made = _made_of(session, extensions)
        found.links.extend(
            Dependency(d.oid, d.oid, text_search.text_search_words(session, d), key) for d in made
        )
        if made:
            found.links.extend(text_search.hanging(session, made)[1])
    return found


def dictionaries_of(catalog: CatalogSnapshot, extensions: Sequence[ExtensionDef]) -> list[DictionaryDef]:
    """Return the text search dictionaries that belong to extensions."""
    oids = {extension.oid for extension in extensions}
    return [i for i in catalog.text_search() if isinstance(i, DictionaryDef) and i.extension in oids]


def _templates(extensions: Sequence[ExtensionDef]) -> list[tuple[int, str]]:
    return [TEMPLATES[extension.name] for extension in extensions if extension.name in TEMPLATES]


def _made_of(session: Session, extensions: Sequence[ExtensionDef]) -> list[DictionaryDef]:
    """Return the dictionaries that users made of extensions' templates."""
    return [
        dictionary
        for oid, _ in _templates(extensions)
        for dictionary in text_search.made_of_template(session.catalog, oid)
        if not dictionary.extension
    ]


def _index_uses(session: Session, extensions: Sequence[ExtensionDef]) -> Iterator[tuple[Use, ExtensionClass]]:
    """Yield the indexes over columns by classes that keep the values as they are; others hang on a function."""
    names = {extension.name for extension in extensions} & set(PLAIN_EXTENSIONS.values())
    if not names:
        return
    for relation in sorted(session.catalog.user_relations(), key=lambda r: r.oid):
        for index in relation.every_index:
            if index.constraint_oid:
                continue  # an exclusion constraint needs no class
            for position, attnum in enumerate(index.attnums):
                name = index.opclasses[position] if index.opclasses else ""
                type_oid = relation.column(attnum).type.oid
                brought = class_named(index.method, name) if name else default_class(index.method, type_oid)
                if brought is not None and brought.extension in names:
                    yield Use("index", relation, index.oid), brought
                    break


def own_types(catalog: CatalogSnapshot, extensions: Sequence[ExtensionDef]) -> list[TypeDef]:
    """Return the types of extensions."""
    facts_of = [facts().extensions.get(extension.name) for extension in extensions]
    found = [catalog.type_by_oid(type_.oid) for fact in facts_of if fact is not None for type_ in fact.types]
    oids = {extension.oid for extension in extensions}
    return [
        *(type_ for type_ in found if type_ is not None),
        *(type_ for type_ in catalog.user_types() if type_.extension in oids),
    ]


async def drop_hanging(session: Session, extensions: Sequence[ExtensionDef]) -> None:
    """Drop the types and text search dictionaries of extensions that are about to go, and what hangs on them."""
    await drop_types(session, own_types(session.catalog, extensions), cascade=True, quiet=True)
    searching = [*dictionaries_of(session.catalog, extensions), *_made_of(session, extensions)]
    await text_search.drop_objects(session, searching, cascade=True, quiet=True)
    for use, _ in list(_index_uses(session, extensions)):
        if session.catalog.relation_by_oid(use.relation.oid) is not None:
            await drop_use(session, use)
