"""CREATE, ALTER and DROP TYPE as catalog changes; DROP DOMAIN, too. What else domains have:
``engine.definitions.domains``.

An enum's values are ranks (``planner.catalog.EnumLabel``), so that a label can be added or renamed without
touching a row:

    CREATE TYPE mood AS ENUM ('sad', 'happy')        sad 2**40         happy 2**41
    ADD VALUE 'ok' BEFORE 'happy'                    sad 2**40   ok 3 * 2**39   happy 2**41

What uses a type: columns of it, and stored texts that name it (``planner.types.facts.stored_type``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final, Literal

from engine.catalog.row_parts import columns_holding
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_TYPE_OID, Stored, StoredKey, key_of, row_array_oid, row_type_oid
from engine.catalog.type_names import array_name
from engine.definitions import functions
from engine.definitions.dropping.dependency_walk import Address
from engine.definitions.dropping.dependents import Dependency, in_report_order, kept_by_extension
from engine.definitions.dropping.drop import drop_relations, table_of, tell, view_dependents
from engine.definitions.dropping.notices import kept_about
from engine.definitions.dropping.uses import dependency, drop_use, uses_of
from engine.definitions.named_places import refuse_temporary_move, target_schema
from engine.definitions.namings import Namings, check_dependencies
from engine.definitions.stored_queries import rebase_queries
from engine.definitions.table.alter_columns import views_that_break, without_columns
from engine.definitions.table.held_rows import repack_rows
from engine.definitions.type_names import check_free, make_room
from engine.executors.index.keyed import KeySet
from engine.session.catalog.names import described, resolve, schema_called
from engine.session.named_roles import named_role
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from pgwire.give_way import between, give_way, opening, openly, paced, paced_iter, spaced
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.base.quoting import quote_ident
from planner.catalog import (
    FIRST_RANK,
    AclDef,
    ConstraintDef,
    EnumLabel,
    FunctionDef,
    RelationDef,
    TypeDef,
)
from planner.catalog.acl import reowned
from planner.catalog.relation_kinds import BY_QUERY, ROW_TYPED
from planner.facts import facts
from planner.functions.system.names import type_name
from planner.partitions.bounds import descendants
from planner.types.facts import FIRST_USER_OID

Params = tuple[Any, ...]
MAX_RANK: Final = 2**63 - 1


async def create_enum(session: Session, plan: Plan, statement: st.CreateEnum, params: Params) -> Outcome:
    """CREATE TYPE ... AS ENUM. Raises SqlError 42710; 23505 for the same label twice."""
    schema, schema_oid = await target_schema(
        session, statement.schema, "t" if statement.schema == "pg_temp" else "p"
    )
    await make_room(session, schema, statement.name)
    check_free(session.catalog, schema, statement.name)
    await session.db.oids_ready(2 + len(statement.labels))
    first = session.db.allocate_oids(2 + len(statement.labels))
    repeated = _repeated(statement.labels)
    if repeated is not None:
        # as PostgreSQL, which notices by the unique index of pg_enum
        raise SqlError(
            "23505",
            'duplicate key value violates unique constraint "pg_enum_typid_label_index"',
            detail=f"Key (enumtypid, enumlabel)=({first}, {repeated}) already exists.",
            schema="pg_catalog",
            table="pg_enum",
            constraint="pg_enum_typid_label_index",
        )
    labels = [
        EnumLabel(oid=first + 2 + i, rank=(i + 1) * FIRST_RANK, label=label)
        for i, label in enumerate(spaced(statement.labels))
    ]
    made = new_type(
        session,
        (schema, schema_oid),
        statement.name,
        "e",
        first,
        labels=tuple(labels),
    )
    await session.view.change([made])
    return Command("CREATE TYPE")


@opening
def _repeated(labels: Sequence[str]) -> str | None:
    """Return the first label that is there before, None if there is none."""
    known = KeySet()
    try:
        return next((label for label in paced(labels) if not known.add_one(label)), None)
    finally:
        known.release()


def check_no_relation(catalog: CatalogSnapshot, schema: str, name: str) -> None:
    """Raise SqlError 42P07 where a relation, or a composite type, which is one to PostgreSQL, has the name already."""
    taken = next(
        (t for t in catalog.user_types() if t.kind == "c" and (t.schema, t.name) == (schema, name)), None
    )
    if taken is not None or catalog.relation(schema, name) is not None:
        raise SqlError("42P07", f'relation "{name}" already exists')


def new_type(
    session: Session,
    place: tuple[str, int],
    name: str,
    kind: Literal["e", "d", "c", "r"],
    first: int,
    **parts: Any,
) -> TypeDef:
    """Return a type of the current role's in the schema ``place`` (name, oid). ``first``: its oid, before
    that of its array type.
    """
    schema, schema_oid = place
    return TypeDef(
        oid=first,
        array_oid=first + 1,
        array_name=array_name(session.catalog, schema, name),
        schema_oid=schema_oid,
        schema=schema,
        name=name,
        kind=kind,
        owner=session.role_oid,
        **parts,
    )


def changed_type(session: Session, oid: int) -> TypeDef:
    """Return the type that a statement changes. Raises SqlError 42704 where it has gone meanwhile."""
    found = session.catalog.type_by_oid(oid)
    if found is None:
        raise SqlError("42704", f"type with OID {oid} does not exist")
    if oid < FIRST_USER_OID:
        raise not_supported(f"changing {type_name(session, oid, None)}")
    return found


async def add_enum_value(session: Session, plan: Plan, statement: st.AddEnumValue, params: Params) -> Outcome:
    """ALTER TYPE ... ADD VALUE. Raises SqlError 42710, 22023; 54000 where no rank is left between two labels."""
    type_ = changed_type(session, statement.type)
    if any(label.label == statement.label for label in spaced(type_.labels)):
        if not statement.if_not_exists:
            raise SqlError("42710", f'enum label "{statement.label}" already exists')
        session.notice(f'enum label "{statement.label}" already exists, skipping', sqlstate="42710")
        return Command("ALTER TYPE")
    at = len(type_.labels)
    if statement.neighbour is not None:
        at = _label_at(type_, statement.neighbour) + statement.after
    rank = rank_between(
        type_.labels[at - 1].rank if at else 0, type_.labels[at].rank if at < len(type_.labels) else None
    )
    if rank is None:
        raise SqlError(
            "54000",
            f'no more labels fit at this place of enum "{type_.name}"',
            hint="Labels that come last always fit.",
        )
    made = EnumLabel(oid=session.db.allocate_oids(1), rank=rank, label=statement.label)
    session.view.added_labels.add(made.oid)
    labels = list(type_.labels)
    between()  # each copy of 300,000 labels takes two milliseconds
    labels.insert(at, made)
    await session.view.change([replace(type_, labels=tuple(labels))])
    return Command("ALTER TYPE")


def rank_between(low: int, high: int | None) -> int | None:
    """Return a rank above ``low`` and below ``high`` (None: nothing is above), or None if there is none."""
    if high is None:
        rank = (low // FIRST_RANK + 1) * FIRST_RANK
        return rank if rank <= MAX_RANK else None
    rank = (low + high) // 2
    return rank if rank > low else None


def _label_at(type_: TypeDef, label: str) -> int:
    for index, found in enumerate(spaced(type_.labels)):
        if found.label == label:
            return index
    raise SqlError("22023", f'"{label}" is not an existing enum label')


async def rename_enum_value(
    session: Session, plan: Plan, statement: st.RenameEnumValue, params: Params
) -> Outcome:
    """ALTER TYPE ... RENAME VALUE. Raises SqlError 22023, 42710."""
    type_ = changed_type(session, statement.type)
    at = _label_at(type_, statement.old)
    if any(label.label == statement.new for label in spaced(type_.labels)):
        raise SqlError("42710", f'enum label "{statement.new}" already exists')
    labels = list(type_.labels)
    between()
    labels[at] = replace(labels[at], label=statement.new)
    await session.view.change([replace(type_, labels=tuple(labels))])
    return Command("ALTER TYPE")


async def alter_type(session: Session, plan: Plan, statement: st.AlterType, params: Params) -> Outcome:
    """RENAME TO, SET SCHEMA, OWNER TO. Raises SqlError 42710."""
    type_ = changed_type(session, statement.type)
    changed: list[Stored] = []
    if statement.owner is not None:
        owner = named_role(session, statement.owner).oid
        items = session.catalog.acl(PG_TYPE_OID, type_.oid)
        if items is not None:
            acl = reowned(items, type_.owner, owner)
            changed.append(AclDef(class_oid=PG_TYPE_OID, object_oid=type_.oid, sub_id=0, items=acl))
        type_ = replace(type_, owner=owner)
    elif statement.name is not None:
        if type_.kind == "c":
            check_no_relation(session.catalog, type_.schema, statement.name)
        await make_room(session, type_.schema, statement.name)
        type_ = changed_type(session, statement.type)  # whose array may have been called so
        check_free(session.catalog, type_.schema, statement.name)
        renamed = array_name(session.catalog, type_.schema, statement.name)
        type_ = replace(type_, name=statement.name, array_name=renamed)
    elif statement.schema is not None and statement.schema != type_.schema:
        if type_.kind == "r":
            raise not_supported("ALTER TYPE ... SET SCHEMA of a range type")
        refuse_temporary_move(statement.schema, type_.schema)
        name, oid = await target_schema(session, statement.schema, "p")
        if session.catalog.type_oid(name, type_.name) is not None:
            raise SqlError("42710", f'type "{type_.name}" already exists in schema "{name}"')
        moved = array_name(session.catalog, name, type_.name)
        type_ = replace(type_, schema=name, schema_oid=oid, array_name=moved)
    await session.view.change([type_, *changed])
    return Command(plan.bound.tag)


# --- DROP -----------------------------------------------------------------------------------------


def type_words(session: Session, type_: TypeDef) -> str:
    """Return how messages call a type."""
    return f"type {type_name(session, type_.oid, None)}"


def member_words(session: Session, type_: TypeDef, member: int) -> str:
    """Return how messages call what is made with a type: an array or multirange type, a constructor of ranges."""
    if member in type_.names:
        return f"type {type_name(session, member, None)}"
    proc = facts().procs[member]
    types = ",".join(type_name(session, oid, None) or "" for oid in proc.arg_types)
    return f"function {quote_ident(proc.name)}({types})"


async def drop_domain_checks(session: Session, checks: Iterable[tuple[TypeDef, ConstraintDef]]) -> None:
    """Drop constraints of domains, as far as the domains are still there."""
    for made, check in checks:
        now = session.catalog.type_by_oid(made.oid)
        if now is not None:
            left = tuple(c for c in now.checks if c.oid != check.oid)
            await session.view.change([replace(now, checks=left)])


@opening
def type_dependencies(
    session: Session, types: Sequence[TypeDef], namings: Namings, seen: set[int] | None = None
) -> tuple[list[Dependency], dict[Any, str]]:
    """Return what hangs on ``types``, directly or not, and what each thing that something hangs on is called.

    The array type over a type hangs on it, too, but is nothing that is told. ``namings``: of the session's
    catalog. ``seen``: relations whose rows have been looked at.
    """
    found: list[Dependency] = []
    words: dict[Any, str] = {}
    views: set[int] = set()
    for type_ in namings.with_types_over(types):
        give_way()
        on = ("type", type_.oid)
        words[on] = type_words(session, type_)
        for member in sorted(type_.family - {type_.oid}):
            words["type", member] = member_words(session, type_, member)
            found.append(Dependency(("type", member), member, "", on))
        for other in paced_iter(namings.types_over(type_)):
            text = words.setdefault(("type", other.oid), type_words(session, other))
            found.append(
                Dependency(
                    ("type", other.oid),
                    other.oid,
                    text,
                    ("type", other.base) if other.base in type_.family else on,
                )
            )
        found += [
            one if isinstance(one.on, tuple) else one._replace(on=("type", one.on))
            for one in check_dependencies(namings.domain_checks(type_.family), type_.family)
        ]
        for other, column in namings.attributes_of(type_):
            text = f"column {column.name} of composite {type_words(session, other)}"
            attribute = ("attribute", other.oid, column.attnum)
            on = ("type", column.declared.oid)
            whole = ("type", other.oid)
            found.append(Dependency(attribute, other.oid, text, on, column.attnum, within=(whole,)))
        uses = uses_of(session, type_.family, namings.relations_naming(type_.family))
        read = {u.relation.oid for u in uses if u.kind == "column"}
        for use in uses:
            relation = use.relation
            below = ("type", use.of)
            of_view = relation.kind in BY_QUERY and use.kind == "column"
            if of_view and not read & set(relation.depends_on):
                views.add(relation.oid)
                found.append(Dependency(relation.oid, relation.oid, described(session, relation), below))
            one = dependency(session, use, below)
            found.append(
                one._replace(what="") if of_view else one
            )  # the view is told, for one reason or another
            if use.kind in ("view", "table"):
                views.add(relation.oid)
                for below_it in descendants(relation, session.catalog):
                    views.add(below_it.oid)
                    found.append(Dependency(below_it.oid, below_it.oid, "", below))
            elif use.kind == "column":
                words[one.key] = one.what
                for view in views_that_break(session, relation, without_columns(relation, {int(use.what)})):
                    views.add(view.oid)
                    found.append(Dependency(view.oid, view.oid, described(session, view), one.key))
    for view in view_dependents(session, views):
        words |= {oid: described(session, table_of(session, oid)) for oid in view.depends_on}
        found += [Dependency(view.oid, view.oid, described(session, view), oid) for oid in view.depends_on]
        views.add(view.oid)
    seen = set() if seen is None else seen
    going = [table_of(session, oid) for oid in sorted(views - seen)]
    links, called = row_dependencies(session, going, namings, seen)
    return found + links, words | called


def row_dependencies(
    session: Session, relations: Iterable[RelationDef], namings: Namings, seen: set[int]
) -> tuple[list[Dependency], dict[Any, str]]:
    """Return what hangs on the types of the rows of relations that go, as ``type_dependencies``; those that
    were ``seen`` left out.
    """
    found: list[Dependency] = []
    words: dict[Any, str] = {}
    for relation in paced_iter(relations):
        if relation.oid in seen or relation.kind not in ROW_TYPED:
            continue
        seen.add(relation.oid)
        type_ = row_type_of(relation)
        if any(map(namings.uses_type, type_.family)):
            found.append(Dependency(("type", type_.oid), type_.oid, "", relation.oid))
            links, called = type_dependencies(session, [type_], namings, seen)
            found += links
            words |= called
    return found, words


async def drop_type(session: Session, plan: Plan, statement: st.DropType, params: Params) -> Outcome:
    """DROP TYPE. Raises SqlError 42704, 3F000, 2BP01."""
    targets: dict[int, TypeDef] = {}
    for schema, name in spaced(statement.names):
        await session.cancelled.turn()  # there may be thousands
        found = _resolve(session, statement, schema, name)
        if found is not None:
            targets[found.oid] = found
    await drop_types(session, list(targets.values()), cascade=statement.cascade)
    return Command(plan.bound.tag)


def resolve_type_name(session: Session, schema: str, name: str) -> int | None:
    """Return the oid of the type that a name in DROP means, built-in ones and row types included, or None."""
    catalog = session.catalog
    for entry in [schema_called(session, schema)] if schema else session.search_path:
        fact = facts().types_by_name.get(name) if entry == "pg_catalog" else None
        if fact is not None:
            return fact.oid
        found = catalog.type_oid(entry, name)
        if found is not None:
            return found
    return None


def _resolve(session: Session, statement: st.DropType, schema: str, name: str) -> TypeDef | None:
    shown = f"{schema}.{name}" if schema else name
    oid = resolve_type_name(session, schema, name)
    relation = resolve(session, schema, name) if oid is None else None
    if relation is not None and relation.virtual and statement.what == "type":
        raise SqlError(
            "2BP01", f"cannot drop type {relation.name} because it is required by the database system"
        )
    if relation is not None and relation.kind in ROW_TYPED:
        words = described(session, relation)
        if statement.what == "domain":
            raise SqlError("42809", f'"{shown}" is not a domain')
        raise SqlError(
            "2BP01",
            f"cannot drop type {relation.name} because {words} requires it",
            hint=f"You can drop {words} instead.",
        )
    if oid is None:
        missing = schema and session.catalog.schema(schema_called(session, schema)) is None
        message = f'schema "{schema}" does not exist' if missing else f'type "{shown}" does not exist'
        if not statement.if_exists:
            raise SqlError("3F000" if missing else "42704", message)
        session.notice(f"{message}, skipping")
        return None
    made = session.catalog.type_by_oid(oid)
    called = type_name(session, oid, None)
    if statement.what == "domain" and (made is None or not made.is_domain or oid != made.oid):
        raise SqlError("42809", f'"{shown}" is not a domain')
    if made is None:
        raise SqlError("2BP01", f"cannot drop type {called} because it is required by the database system")
    if made.oid < FIRST_USER_OID and oid == made.oid:
        if statement.cascade:
            raise not_supported(f"dropping {called}")
        raise SqlError("2BP01", f"cannot drop type {called} because other objects depend on it")
    if (made.kind == "b" or made.extension) and oid == made.oid:
        extension = (
            next(e.name for e in session.catalog.extensions.values() if e.oid == made.extension)
            if made.extension
            else next(e.name for e in facts().extensions.values() if any(t.oid == oid for t in e.types))
        )
        raise kept_by_extension(f"type {called}", extension)
    if oid != made.oid:
        of_multirange = made.multirange and oid == made.multirange + 1
        element = member_words(session, made, made.multirange) if of_multirange else type_words(session, made)
        raise SqlError(
            "2BP01",
            f"cannot drop type {called} because {element} requires it",
            hint=f"You can drop {element} instead.",
        )
    return made


async def drop_types(
    session: Session, targets: Sequence[TypeDef], *, cascade: bool, quiet: bool = False
) -> None:
    """Drop types; with ``cascade`` also the columns, defaults, checks and views that use them. Raises
    SqlError 2BP01.
    """
    if not targets:
        return
    namings = openly(Namings, session.catalog)
    found, words = openly(type_dependencies, session, targets, namings)
    over = openly(namings.with_types_over, targets)
    by_functions = openly(functions_using, session, over, found, words)
    roots = [("type", type_.oid) for type_ in targets]
    hangs = [one for one in openly(in_report_order, roots, found) if one.what]
    if hangs and not (cascade and quiet):
        asked = [Address(PG_TYPE_OID, type_.oid) for type_ in targets]
        what = type_words(session, targets[0]) if len(targets) == 1 else None
        tell(session, asked, hangs, words, what, cascade=cascade)
    await functions.drop_functions(session, by_functions, cascade=True, quiet=True)
    await _drop_with_uses(session, targets)


async def _drop_with_uses(
    session: Session, types: Sequence[TypeDef], above: AbstractSet[int] = frozenset()
) -> None:
    """Drop what uses types but functions, what is over them, and themselves as far as they are of the catalog's own.

    What is found to use them at first may be gone or changed when its turn comes: with what was dropped before.
    ``above``: relations that whoever asks for it is about to drop.
    """
    namings = openly(Namings, session.catalog)
    gone = openly(namings.with_types_over, types)
    going = {type_.oid for type_ in gone}
    for type_ in gone:
        for other, column in namings.attributes_of(type_):
            made = session.catalog.type_by_oid(other.oid)
            if made is not None and made.oid not in going and not made.attributes[column.attnum - 1].dropped:
                await drop_attribute(session, made, column.attnum)
        await _drop_uses(session, type_, namings, above)
        await drop_domain_checks(session, namings.domain_checks(type_.family))
        await session.cancelled.turn()
    left_over = [type_ for type_ in gone if session.catalog.type_by_oid(type_.oid) is not None]
    await session.view.change([], openly(_keys, session.catalog, left_over))


def functions_using(
    session: Session, targets: Sequence[TypeDef], found: list[Dependency], words: dict[Any, str]
) -> list[FunctionDef]:
    """Return the functions that hang on types; they and what hangs on them are added to ``found`` and ``words``."""
    going = {
        one.key for one in found if isinstance(one.key, int)
    }  # tables and views: functions may be of their rows
    _, using, links = functions.dependents(session, {type_.oid for type_ in targets} | going)
    ours = {function.oid for function in using}
    members = {oid for type_ in targets for oid in type_.family}
    for one in links:
        if (
            one.key in ours or one.on in ours or (isinstance(one.key, tuple) and not one.what)
        ):  # rows, of tables
            on = ("type", one.on) if one.on in members else one.on
            if on not in words:
                words[on] = functions.words_of(session, one.on)
            found.append(one._replace(on=on))
    return using


def row_type_of(relation: RelationDef) -> TypeDef:
    """Return the type of a relation's rows as one by itself, to ask what hangs on it."""
    return TypeDef(
        oid=row_type_oid(relation.oid), array_oid=row_array_oid(relation.oid), array_name="_" + relation.name,
        schema_oid=relation.schema_oid, schema=relation.schema, name=relation.name, kind="c", owner=relation.owner,
    )  # fmt: skip


async def drop_uses_of_rows(
    session: Session, relations: Sequence[RelationDef], above: AbstractSet[int]
) -> None:
    """Drop what uses the types of relations' rows, functions apart, and the types over them, as far as it is
    still there, and not among the relations that are ``above`` anyway: views may use one another's rows.
    """
    await _drop_with_uses(session, [row_type_of(relation) for relation in relations], above)


async def drop_attribute(session: Session, type_: TypeDef, attnum: int) -> None:
    """Drop an attribute of a composite type, what selects it, and its values from all rows that are stored
    somewhere.
    """
    from engine.definitions.dropping.field_uses import selecting  # it drops columns

    without = without_attribute(type_, attnum)
    uses = selecting(session, without, type_.attributes[attnum - 1].name, type_.family)
    await uses.drop(session)
    holding = list(columns_holding(session.catalog, type_.oid, type_.array_oid))
    before = session.catalog
    await session.view.change([without])
    await rebase_queries(session, frozenset(), before, type_.family)
    await repack_rows(session, type_.oid, holding)


def without_attribute(type_: TypeDef, attnum: int) -> TypeDef:
    """Return a composite type with an attribute dropped."""
    columns = list(type_.attributes)
    columns[attnum - 1] = replace(
        columns[attnum - 1], name=f"........pg.dropped.{attnum}........", dropped=True
    )
    return replace(type_, attributes=tuple(columns))


async def _drop_uses(session: Session, type_: TypeDef, namings: Namings, above: AbstractSet[int]) -> None:
    using = namings.relations_naming(type_.family)
    # a view whose column has a default of the type loses that alone
    views = {
        use.relation.oid
        for use in openly(uses_of, session, type_.family, using)
        if use.relation.kind in BY_QUERY and use.kind in ("view", "column")
    }
    left = [view for view in map(session.catalog.relation_by_oid, sorted(views - above)) if view is not None]
    await drop_relations(session, left, cascade=True, quiet=True, above=above)
    there = [relation.oid for relation in using if relation.oid not in above]
    now = [relation for relation in map(session.catalog.relation_by_oid, there) if relation]
    for use in openly(uses_of, session, type_.family, now):
        await drop_use(session, use)


def _keys(catalog: CatalogSnapshot, types: Iterable[TypeDef]) -> list[StoredKey]:
    """Return the keys of types and of what is kept about them."""
    oids = {oid for type_ in types for oid in (type_.oid, type_.relation_oid)} - {0}
    return [*(key_of(type_) for type_ in types), *kept_about(catalog, oids)]
