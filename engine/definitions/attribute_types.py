"""ALTER TYPE ... ALTER ATTRIBUTE under stored values and expressions that have rows of the type.

    CREATE TABLE b (a t)                        cannot alter type "t" because column "b.a" uses it
    CREATE VIEW v AS SELECT (ROW(1)::t).a       cannot alter type "t" because rule _RETURN on view v uses it
    CREATE DOMAIN d AS t, CREATE TYPE u AS (x t)   and what names d, d[] or u does so, too
    SELECT a FROM f(), f() of the type t        cannot alter type of a column used by a view or rule
    CREATE FUNCTION f(t), nothing else          may be: the body of a text is read when it is called

What a stored tree says of an attribute's type would be wrong after the change; PostgreSQL refuses all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from engine.catalog.row_parts import columns_holding
from engine.definitions.dropping.drop import default_words
from engine.definitions.dropping.field_uses import selecting
from engine.definitions.dropping.uses import Use, dependency, uses_of
from engine.definitions.namings import Namings
from engine.definitions.roles import function_words
from engine.definitions.types import without_attribute
from engine.session.catalog.names import described
from engine.session.session import Session
from planner.base.errors import SqlError
from planner.catalog import ColumnDef, TypeDef
from planner.catalog.named_oids import named_oids


def refuse_used(session: Session, type_: TypeDef, attribute: ColumnDef) -> None:
    """Raise SqlError 0A000 where a stored value or expression has rows of ``type_`` in it, or selects the
    attribute; the oldest is told.
    """
    namings = Namings(session.catalog)
    found = min(_uses(session, namings, type_), default=None, key=lambda each: each[0])
    if found is not None:
        raise SqlError("0A000", f'cannot alter type "{type_.name}" because {found[1]} uses it')
    without = without_attribute(type_, attribute.attnum)
    for view in selecting(session, without, attribute.name, type_.family).views:
        raise SqlError(
            "0A000",
            "cannot alter type of a column used by a view or rule",
            detail=f'rule _RETURN on {described(session, view)} depends on column "{attribute.name}"',
        )


def _holding(namings: Namings, type_: TypeDef) -> frozenset[int]:
    """Return the types whose values have rows of ``type_`` in them: itself, and at any depth what is over it,
    or has it as an attribute.
    """
    found: dict[int, TypeDef] = {type_.oid: type_}
    todo = [type_]
    for one in todo:
        for other in (*namings.types_over(one), *(made for made, _ in namings.attributes_of(one))):
            if other.oid not in found:
                found[other.oid] = other
                todo.append(other)
    return frozenset(oid for one in todo for oid in one.family)


def _uses(session: Session, namings: Namings, type_: TypeDef) -> Iterator[tuple[int, str]]:
    """Yield the oids of what stores rows of a type, or has expressions with such values, and what messages call it."""
    family = _holding(namings, type_)
    for relation, column in columns_holding(session.catalog, type_.oid, type_.array_oid):
        yield relation.oid, f'column "{relation.name}.{column.name}"'
    # tables of the type are told, and changed with it, by who alters it
    naming = [replace(relation, of_type=0) for relation in namings.relations_naming(family)]
    for use in uses_of(session, family, naming):
        words = _words(session, use, family)
        if words:
            yield dependency(session, use, 0).oid, words
    for function in session.catalog.functions():
        of_parameters = function.inputs if function.body_sql else ()
        named = named_oids(" ".join((function.body_sql, *function.defaults)))
        if not named.union(of_parameters).isdisjoint(family):
            yield function.oid, function_words(session, function)
    for _, check in namings.domain_checks(family):
        yield check.oid, f"constraint {check.name}"


def _words(session: Session, use: Use, family: Collection[int]) -> str:
    """Return what messages call a use, "" for a column of the type, which is told by itself."""
    relation = use.relation
    if use.kind == "view":
        return f"rule _RETURN on {described(session, relation)}"
    if use.kind != "column":
        return dependency(session, use, 0).what
    column = relation.column(int(use.what))
    return "" if column.declared.oid in family else default_words(session, relation, column)
