"""CREATE, ALTER and DROP of operator classes and families as catalog changes (``planner.catalog.opclasses``).

    family  <──a── class        <──i── members that are its own
            <──a── members that the family can be without

All of it goes with its family, untold, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import Stored, StoredKey, key_of
from engine.definitions.dropping.dependency_walk import Address, Told, lines, told
from engine.definitions.dropping.dependents import still_needed
from engine.definitions.dropping.notices import kept_about, notice_cascade
from engine.definitions.named_places import alter_named, schema_oid
from engine.session.plans.plan import Plan, Replan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from pgwire.give_way import openly, paced, paced_iter
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.opclasses import class_goes_by_type, method_oids
from planner.catalog import RelationDef
from planner.catalog.opclasses import (
    OPCLASS_WORDS,
    PG_OPCLASS,
    PG_OPFAMILY,
    FamilyMember,
    OpclassDef,
    OperatorClassDef,
    OperatorFamilyDef,
)
from planner.facts import rows
from planner.information.describe import describe_object
from planner.types.facts import format_type

Params = tuple[Any, ...]


def method_name(oid: int) -> str:
    """Return the name of an index method."""
    return next(name for name, method in method_oids().items() if method == oid)


def opclass_of(catalog: CatalogSnapshot, oid: int) -> OpclassDef:
    """Return a class or family. Raises Replan where it has been dropped since the plan was made."""
    found = catalog.opclass_by_oid(oid)
    if found is None:
        raise Replan
    return found


def family_of(catalog: CatalogSnapshot, oid: int) -> OperatorFamilyDef:
    """Return a family. Raises Replan."""
    found = opclass_of(catalog, oid)
    if not isinstance(found, OperatorFamilyDef):
        raise Replan
    return found


def _check_new(session: Session, class_oid: int, method: str, schema: str, name: str) -> None:
    if session.catalog.opclass_named(class_oid, method_oids()[method], schema, name) is not None:
        what = OPCLASS_WORDS[class_oid]
        raise SqlError("42710", f'{what} "{name}" for access method "{method}" already exists')


def _new_family(session: Session, schema: str, name: str, method: str) -> OperatorFamilyDef:
    return OperatorFamilyDef(
        oid=session.db.allocate_oids(1),
        schema_oid=schema_oid(session, schema),
        schema=schema,
        name=name,
        owner=session.role_oid,
        method=method_oids()[method],
    )


async def create_family(
    session: Session, plan: Plan, statement: st.CreateOpfamily, params: Params
) -> Outcome:
    """CREATE OPERATOR FAMILY. Raises SqlError 42710."""
    _check_new(session, PG_OPFAMILY, statement.method, statement.schema, statement.name)
    await session.view.change([_new_family(session, statement.schema, statement.name, statement.method)])
    return Command(plan.bound.tag)


async def create_class(session: Session, plan: Plan, statement: st.CreateOpclass, params: Params) -> Outcome:
    """CREATE OPERATOR CLASS. Raises SqlError 42710 (there is one, there is a default one, a member is there)."""
    await session.db.oids_ready(len(statement.members) + 2)
    catalog, method = session.catalog, statement.method
    _check_new(session, PG_OPCLASS, method, statement.schema, statement.name)
    if statement.default:
        _check_no_default(session, statement)
    oid = method_oids()[method]
    found = (
        opclass_of(catalog, statement.family)
        if statement.family
        else catalog.opclass_named(PG_OPFAMILY, oid, statement.schema, statement.name)
    )
    family = found if isinstance(found, OperatorFamilyDef) else _new_family(session, statement.schema, statement.name, method)  # fmt: skip
    made = OperatorClassDef(
        oid=session.db.allocate_oids(1),
        schema_oid=schema_oid(session, statement.schema),
        schema=statement.schema,
        name=statement.name,
        owner=session.role_oid,
        method=oid,
        family=family.oid,
        input_type=statement.input_type,
        default=bool(statement.default),
        key_type=statement.key_type,
    )
    await session.view.change([openly(_with_members, session, family, statement.members, made), made])
    return Command(plan.bound.tag)


def _check_no_default(session: Session, statement: st.CreateOpclass) -> None:
    method = method_oids()[statement.method]
    there = [
        row["opcname"]
        for row in rows("opclass")
        if (int(row["opcmethod"]), int(row["opcintype"]), row["opcdefault"])
        == (method, statement.input_type, "t")
    ]
    there += [
        item.name
        for item in session.catalog.opclasses()
        if isinstance(item, OperatorClassDef)
        and item.default
        and (item.method, item.input_type) == (method, statement.input_type)
    ]
    if there:
        raise SqlError(
            "42710",
            f'could not make operator class "{statement.name}" be default for type {statement.default}',
            detail=f'Operator class "{there[0]}" already is the default.',
        )


def _with_members(
    session: Session,
    family: OperatorFamilyDef,
    members: Sequence[st.NewMember],
    made: OperatorClassDef | None = None,
) -> OperatorFamilyDef:
    """Return a family with more members. ``made``: the class that they come with. Raises SqlError 42710."""
    there = {member.place for member in family.members}
    classes = [
        item
        for item in (*session.catalog.opclasses(), made)
        if isinstance(item, OperatorClassDef) and item.family == family.oid
    ]
    added: list[FamilyMember] = []
    for member in paced(members):
        of_class = 0
        if member.of_class and class_goes_by_type(method_name(family.method)):
            of_class = next((item.oid for item in classes if item.input_type == member.left), 0)
        elif member.of_class and made is not None:
            of_class = made.oid
        one = FamilyMember(
            oid=session.db.allocate_oids(1),
            function=member.function,
            number=member.number,
            left=member.left,
            right=member.right,
            object=member.object,
            of_class=of_class,
            sort_family=member.sort_family,
        )
        if one.place in there and made is not None:
            raise _by_index(family, one)
        if one.place in there:
            raise SqlError("42710", f'{_shown(one.place)} already exists in operator family "{family.name}"')
        there.add(one.place)
        added.append(one)
    return replace(family, members=(*family.members, *added))


def _by_index(family: OperatorFamilyDef, one: FamilyMember) -> SqlError:
    """Return 23505 for a member that a new class brings to a family that has it, as PostgreSQL notices by an index."""
    table, index, number = (
        ("pg_amproc", "pg_amproc_fam_proc_index", "amprocnum")
        if one.function
        else ("pg_amop", "pg_amop_fam_strat_index", "amopstrategy")
    )
    word = table.removeprefix("pg_")
    return SqlError(
        "23505",
        f'duplicate key value violates unique constraint "{index}"',
        detail=f"Key ({word}family, {word}lefttype, {word}righttype, {number})="
        f"({family.oid}, {one.left}, {one.right}, {one.number}) already exists.",
        schema="pg_catalog",
        table=table,
        constraint=index,
    )


def _shown(place: tuple[bool, int, int, int]) -> str:
    function, number, left, right = place
    return f"{'function' if function else 'operator'} {number}({format_type(left)},{format_type(right)})"


async def change_family(
    session: Session, plan: Plan, statement: st.ChangeOpfamily, params: Params
) -> Outcome:
    """ALTER OPERATOR FAMILY ... ADD and DROP. Raises SqlError 42710, 42704."""
    await session.db.oids_ready(len(statement.members))
    family = family_of(session.catalog, statement.family)
    changed = openly(_with_members, session, family, statement.members)
    left = {member.place: member for member in changed.members}
    for place in paced(statement.places):
        lost = left.pop(place, None)
        if lost is None:
            raise SqlError("42704", f'{_shown(place)} does not exist in operator family "{family.name}"')
        if lost.of_class:
            raise _part_of_class(session, lost)
    if statement.places:
        changed = replace(changed, members=tuple(left.values()))
    await session.view.change([changed])
    return Command(plan.bound.tag)


def _part_of_class(session: Session, member: FamilyMember) -> SqlError:
    what = describe_object(session, 2603 if member.function else 2602, member.oid, 0)
    of = describe_object(session, PG_OPCLASS, member.of_class, 0)
    return SqlError(
        "2BP01", f"cannot drop {what} because {of} requires it", hint=f"You can drop {of} instead."
    )


async def alter_opclass(session: Session, plan: Plan, statement: st.AlterOpclass, params: Params) -> Outcome:
    """RENAME TO, SET SCHEMA, OWNER TO. Raises SqlError 42710, 42704."""
    found = opclass_of(session.catalog, statement.object)

    def check_free(schema: str, name: str) -> None:
        if session.catalog.opclass_named(found.class_oid, found.method, schema, name) is not None:
            what, method = OPCLASS_WORDS[found.class_oid], method_name(found.method)
            raise SqlError(
                "42710", f'{what} "{name}" for access method "{method}" already exists in schema "{schema}"'
            )

    await alter_named(session, found, statement, check_free)
    return Command(plan.bound.tag)


async def drop_opclass(session: Session, plan: Plan, statement: st.DropOpclass, params: Params) -> Outcome:
    """DROP OPERATOR CLASS and FAMILY: what is of them goes along. Raises SqlError 2BP01 where a table is
    divided by it.
    """
    if statement.notice:
        session.notice(statement.notice)
        return Command(plan.bound.tag)
    found = opclass_of(session.catalog, statement.object)
    gone: list[Told] = openly(told, session, [Address(found.class_oid, found.oid)])
    if gone and not statement.cascade:
        what = describe_object(session, found.class_oid, found.oid, 0)
        raise still_needed(what, lines(gone))
    notice_cascade(session, [one.what for one in gone])
    await drop_objects(session, [found])
    return Command(plan.bound.tag)


def with_dependents(catalog: CatalogSnapshot, asked: Iterable[OpclassDef]) -> dict[int, OpclassDef]:
    """Return objects with the classes of families among them, by oid."""
    every = {item.oid: item for item in asked}
    for item in catalog.opclasses():
        if isinstance(item, OperatorClassDef) and item.family in every:
            every[item.oid] = item
    return every


def _divided_by(catalog: CatalogSnapshot, classes: set[int]) -> list[RelationDef]:
    """Return the tables whose partitions operator classes tell."""
    return [
        relation
        for relation in paced_iter(catalog.user_relations())
        if relation.partition_key is not None and not classes.isdisjoint(relation.partition_key.own_classes)
    ]


async def drop_objects(session: Session, asked: Iterable[OpclassDef]) -> None:
    """Drop classes and families; members of a class leave the family that stays."""
    from engine.definitions.dropping.drop import drop_relations  # which drops functions, and what is for them

    catalog = session.catalog
    gone = with_dependents(catalog, (item for a in asked if (item := catalog.opclass_by_oid(a.oid))))
    if not gone:
        return
    if tables := openly(_divided_by, catalog, set(gone)):
        await drop_relations(session, tables, cascade=True, quiet=True)
        catalog = session.catalog
    left: list[Stored] = [
        replace(item, members=tuple(m for m in item.members if m.of_class not in gone))
        for item in catalog.opclasses()
        if isinstance(item, OperatorFamilyDef)
        and item.oid not in gone
        and any(member.of_class in gone for member in item.members)
    ]
    deletes: list[StoredKey] = [*map(key_of, gone.values()), *openly(kept_about, catalog, set(gone))]
    await session.view.change(left, deletes)


async def drop_with_functions(session: Session, functions: Collection[int]) -> None:
    """Take functions that are dropped out of families; a class that needs one goes."""
    catalog = session.catalog
    hard = {
        member.of_class
        for item in catalog.opclasses()
        if isinstance(item, OperatorFamilyDef)
        for member in item.members
        if member.function and member.object in functions and member.of_class
    }
    await drop_objects(session, [item for item in catalog.opclasses() if item.oid in hard])
    changed: list[Stored] = [
        replace(
            item,
            members=tuple(m for m in item.members if not (m.function and m.object in functions)),
        )
        for item in session.catalog.opclasses()
        if isinstance(item, OperatorFamilyDef)
        and any(member.function and member.object in functions for member in item.members)
    ]
    if changed:
        await session.view.change(changed)
