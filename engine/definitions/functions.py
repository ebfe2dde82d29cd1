"""CREATE, ALTER and DROP FUNCTION as catalog changes, and what hangs on functions.

    table t <── function f (BEGIN ATOMIC, or RETURNS SETOF t) <── view v <── function g (RETURN ... v ...)

Views and bodies that are kept as canonical text name functions by oid
(``planner.deparse.expr.stored_function``). A body that is a text depends on nothing, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from engine.catalog.graph import is_named, naming
from engine.catalog.references import identities
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import (
    PG_PROC_OID,
    CommentDef,
    Stored,
    StoredKey,
    key_of,
    row_array_oid,
    row_type_oid,
)
from engine.definitions.dropping.dependency_walk import Address, told_with
from engine.definitions.dropping.dependents import (
    Dependency,
    in_report_order,
    kept_by_extension,
    still_needed,
)
from engine.definitions.dropping.notices import notice_cascade
from engine.definitions.named_places import refuse_temporary_move, target_schema
from engine.definitions.namings import Namings
from engine.definitions.needs.needs import denied
from engine.definitions.opclasses import drop_with_functions
from engine.definitions.roles import function_words
from engine.definitions.table.row_readers import Readers, readers_of
from engine.programs.plpgsql.extra_checks import tell_extra
from engine.programs.routines.of_session import routines_of
from engine.session.catalog.names import described, shown_name
from engine.session.named_roles import named_role
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from pgwire.give_way import give_way, opening, openly, paced_iter, spaced
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.functions import check_source, rebase_body, with_settings
from planner.catalog import AclDef, FunctionDef, RelationDef
from planner.catalog.acl import reowned
from planner.catalog.named_oids import named_oids, relations_in_text
from planner.catalog.opclasses import OperatorFamilyDef
from planner.catalog.relation_kinds import BY_QUERY
from planner.catalog.rights import Rights
from planner.evaluate import evaluate_constant
from planner.functions.system.function_names import function_name
from planner.functions.system.names import type_name
from planner.information.describe import describe_object

Params = tuple[Any, ...]


async def create_function(
    session: Session, plan: Plan, statement: st.CreateFunction, params: Params
) -> Outcome:
    """CREATE [OR REPLACE] FUNCTION. Raises SqlError 42723, 42P13 (what cannot be replaced), 42501."""
    before = session.catalog
    settings = tuple(
        (name, session.setting(name) if name.lower() in statement.from_current else value)
        for name, value in statement.function.settings
    )
    for setting, _value in settings:
        session.settings.allow_kept(setting)
    function = replace(statement.function, settings=settings)
    old, made = await _placed(session, function, replacing=statement.replace)
    await session.view.change([made])
    if old is not None and not Rights(session.catalog, session.role).function(made):
        # as the languages' validators ask: an owner who has no EXECUTE defines nothing, before others call it
        raise denied("function", made.name)
    await _refit(session, before, old, made)
    if session.setting("check_function_bodies") == "on":
        # the function is there by now, so it may call itself; what fails undoes the statement
        with routines_of(session).settings_of(made):
            shadows = openly(
                check_source,
                made,
                session.catalog,
                session.bind_path,
                session.bind_settings,
                statement.source_at,
            )
        for name, span in shadows:
            tell_extra(
                session,
                "shadowed_variables",
                "42712",
                f'variable "{name}" shadows a previously defined variable',
                span=span,
            )
    return Command(plan.bound.tag)


async def create_aggregate(
    session: Session, plan: Plan, statement: st.CreateAggregate, params: Params
) -> Outcome:
    """CREATE [OR REPLACE] AGGREGATE. Raises what is wrong with it; SqlError 42723, 42P13 and 42809 (what
    cannot be replaced).
    """
    for warning in statement.warnings:
        session.notice(warning, severity="WARNING", sqlstate="42601")
    if statement.function is None:
        if statement.error is None:
            raise AssertionError("an aggregate has neither a function nor why not")
        raise statement.error
    for expr in statement.initials:
        evaluate_constant(expr, session)  # a domain may not have it
    _, made = await _placed(session, statement.function, replacing=statement.replace)
    await session.view.change([made])
    return Command(plan.bound.tag)


_KINDS = {"f": "a function", "p": "a procedure", "a": "an aggregate function"}
_AGGREGATES = {
    "n": "an ordinary aggregate function",
    "o": "an ordered-set aggregate",
    "h": "a hypothetical-set aggregate",
}


async def _placed(
    session: Session, made: FunctionDef, *, replacing: bool
) -> tuple[FunctionDef | None, FunctionDef]:
    """Return what a new function replaces, if anything, and the function with its place, owner and oid.
    Raises SqlError 42723, 42P13, 42809.
    """
    schema, schema_oid = await target_schema(session, made.schema, "t" if made.schema == "pg_temp" else "p")
    made = replace(made, schema=schema, schema_oid=schema_oid, owner=session.role_oid)
    old = _same(session.catalog, schema, made.name, made.inputs)
    if old is None:
        made = replace(made, oid=session.db.allocate_oids(1))
    else:
        if not replacing:
            raise SqlError("42723", f'function "{made.name}" already exists with same argument types')
        if old.kind != made.kind:
            raise SqlError(
                "42809", "cannot change routine kind", detail=f'"{made.name}" is {_KINDS[old.kind]}.'
            )
        _check_replaceable(session, old, made)
        made = replace(made, oid=old.oid, owner=old.owner, extension=old.extension)
    return old, made


async def _refit(
    session: Session, before: CatalogSnapshot, old: FunctionDef | None, new: FunctionDef
) -> None:
    """Have tables and domains go on with what a function is now; in ``before`` it was ``old``. Raises as
    ``function_uses.refit``.
    """
    from engine.definitions.dropping.function_uses import callers, refit  # it drops columns

    def acts(function: FunctionDef) -> tuple[Any, ...]:
        means = (
            function.language,
            function.source,
            function.body_sql,
            function.path,
            function.internal,
            function.strict,
        )
        return *means, function.definer, function.settings, function.schema, function.name

    if old is None:
        await refit(session, callers(session.catalog, [new.oid]) - {new.oid})
    elif acts(old) != acts(new):
        await refit(session, callers(before, [new.oid]) | callers(session.catalog, [new.oid]))


def _same(catalog: CatalogSnapshot, schema: str, name: str, inputs: Sequence[int]) -> FunctionDef | None:
    for function in catalog.functions_named(name):
        if function.schema == schema and function.inputs == tuple(inputs):
            return function
    return None


def _check_replaceable(session: Session, old: FunctionDef, new: FunctionDef) -> None:
    """Raise SqlError 42P13 where callers of the old function could not call the new one."""
    types = ",".join(type_name(session, oid, None) or "" for oid in old.inputs)
    word = {"f": "FUNCTION", "p": "PROCEDURE", "a": "AGGREGATE"}[old.kind]
    hint = f"Use DROP {word} {function_name(session, old)}({types}) first."
    if old.kind == "p" and old.result != new.result:
        raise SqlError("42P13", "cannot change whether a procedure has output parameters", hint=hint)
    if (old.result, old.returns_set) != (new.result, new.returns_set):
        raise SqlError("42P13", "cannot change return type of existing function", hint=hint)
    if old.result == 2249 and [t for _, t in old.outputs] != [t for _, t in new.outputs]:
        raise SqlError(
            "42P13",
            "cannot change return type of existing function",
            detail="Row type defined by OUT parameters is different.",
            hint=hint,
        )
    for before, after in zip(old.input_names, new.input_names, strict=True):
        if before and before != after:
            raise SqlError("42P13", f'cannot change name of input parameter "{before}"', hint=hint)
    if old.aggregate is not None and new.aggregate is not None and old.aggregate.kind != new.aggregate.kind:
        raise SqlError(
            "42809",
            "cannot change routine kind",
            detail=f'"{old.name}" is {_AGGREGATES[old.aggregate.kind]}.',
        )
    if len(new.defaults) < len(old.defaults):
        raise SqlError("42P13", "cannot remove parameter defaults from existing function", hint=hint)


def _existing(session: Session, oid: int) -> FunctionDef:
    found = session.catalog.function_by_oid(oid)
    if found is None:
        raise SqlError("42883", f"function with OID {oid} does not exist")
    return found


async def alter_function(
    session: Session, plan: Plan, statement: st.AlterFunction, params: Params
) -> Outcome:
    """RENAME TO, SET SCHEMA, OWNER TO, and options. Raises SqlError 42723."""
    function = _existing(session, statement.function)
    changed: list[Stored] = []
    if statement.owner is not None:
        owner = named_role(session, statement.owner).oid
        items = session.catalog.acl(PG_PROC_OID, function.oid)
        if items is not None:
            acl = reowned(items, function.owner, owner)
            changed.append(AclDef(class_oid=PG_PROC_OID, object_oid=function.oid, sub_id=0, items=acl))
        function = replace(function, owner=owner)
    name, schema, schema_oid = function.name, function.schema, function.schema_oid
    if statement.name is not None:
        name = statement.name
    elif statement.schema is not None and statement.schema != function.schema:
        refuse_temporary_move(statement.schema, function.schema)
        schema, schema_oid = await target_schema(session, statement.schema, "p")
    if statement.name is not None or schema != function.schema:
        if _same(session.catalog, schema, name, function.inputs) is not None:
            types = ", ".join(type_name(session, oid, None) or "" for oid in function.inputs)
            raise SqlError("42723", f'function {name}({types}) already exists in schema "{schema}"')
        function = replace(function, name=name, schema=schema, schema_oid=schema_oid)
    changes: dict[str, Any] = dict(statement.changes)
    if statement.settings:
        settings = [
            (name, session.setting(name) if name.lower() in statement.from_current else value)
            for name, value in statement.settings
        ]
        for setting, value in settings:
            if value is not None:
                session.settings.allow_kept(setting)
                session.settings.check(setting, value)
        changes["settings"] = with_settings(function.settings, settings)
    made = replace(function, **changes)
    before = session.catalog
    await session.view.change([made, *changed])
    await _refit(session, before, function, made)
    return Command(plan.bound.tag)


# --- what hangs on what ---------------------------------------------------------------------------


def row_type_key(relation: int) -> tuple[str, int]:
    """Return what stands for a relation's row type among dependencies."""
    return ("rowtype", relation)


def _called(catalog: CatalogSnapshot, key: Any) -> Collection[int]:
    """Return the oids by which others name what a key of ``dependents`` stands for."""
    if isinstance(key, tuple):
        return row_type_oid(key[1]), row_array_oid(key[1])
    type_ = catalog.type_by_oid(key)
    return (key,) if type_ is None or type_.oid != key else type_.family


def _uses(catalog: CatalogSnapshot, item: RelationDef | FunctionDef) -> set[Any]:
    """Return what a view or a function needs: oids of relations, types and functions, and row types."""
    if isinstance(item, RelationDef):
        text = item.view_sql
        return {*item.depends_on, *named_oids(text), *relations_in_text(text)}
    function = item
    found: set[Any] = set(function.depends_on)
    for text in (function.body_sql, *function.defaults):
        found |= set(relations_in_text(text))
        for oid in named_oids(text):
            found.add(oid)
            relation = catalog.row_type_relation(oid)
            if relation is not None:
                found.add(row_type_key(relation[0].oid))
            elif (made := catalog.type_by_oid(oid)) is not None:
                found.add(made.oid)
    if function.aggregate is not None:
        found.update(function.aggregate.functions)  # through which it hangs on the types of its states
    for oid in (*function.types, function.result):
        relation = catalog.row_type_relation(oid)
        if relation is not None:
            found.add(row_type_key(relation[0].oid))
        elif (made := catalog.type_by_oid(oid)) is not None:
            found.add(made.oid)
    return found


@opening
def dependents(
    session: Session, roots: Collection[Any]
) -> tuple[list[RelationDef], list[FunctionDef], list[Dependency]]:
    """Return the views and functions that need any of ``roots``, directly or not, oldest first, and how they
    hang together.

    What of tables and domains calls these functions is among the dependencies; ``forget_functions`` drops it.
    ``roots``: oids of relations, types, functions and schemas. A dependency on what is none of ``roots`` and
    hangs on none is left out.
    """
    catalog = session.catalog
    roots = frozenset(roots)
    needs: dict[int, set[Any]] = {}
    made: dict[int, RelationDef | FunctionDef] = {}
    gone: set[Any] = set(roots)
    for made_by in [t for t in map(catalog.type_by_oid, gone) if t is not None and t.kind == "r"]:
        gone |= made_by.family  # its constructors are called by their own oids
    gone |= {row_type_key(oid) for oid in roots if isinstance(oid, int)}
    found: set[int] = set()
    todo = list(gone)
    for on in todo:
        for item in naming(catalog, _called(catalog, on)):
            give_way()
            if not isinstance(item, FunctionDef) and not (
                isinstance(item, RelationDef) and item.kind in BY_QUERY
            ):
                continue
            key = item.oid
            if key in found or key in roots:
                continue
            if key not in needs:
                made[key], needs[key] = item, _uses(catalog, item)
            if on in needs[key]:
                found.add(key)
                more = {key, row_type_key(key)} - gone
                gone |= more
                todo += more
        give_way()
    links: list[Dependency] = []
    for key in sorted(found):
        item = made[key]
        words = described_any(session, item)
        for on in needs[key] & gone:
            links.append(Dependency(key, key, words, on))
            if isinstance(on, tuple):
                links.append(Dependency(on, on[1] + 1, "", on[1]))
        give_way()
    from engine.definitions.dropping.function_uses import links_to  # it drops columns

    called = {
        oid
        for oid in paced_iter(gone)
        if isinstance(oid, int)
        and any(
            find(oid) is not None
            for find in (catalog.function_by_oid, catalog.text_search_by_oid, catalog.schema_by_oid)
        )
    }
    links += links_to(session, called, roots)
    ordered = [made[key] for key in sorted(found)]
    views = [item for item in ordered if isinstance(item, RelationDef)]
    if views:
        from engine.definitions.types import row_dependencies  # it drops functions

        links += row_dependencies(session, views, Namings(catalog), set())[0]
    functions = [item for item in ordered if isinstance(item, FunctionDef)]
    return views, functions, links


def described_any(session: Session, item: RelationDef | FunctionDef) -> str:
    """Return what messages call a relation or function."""
    return described(session, item) if isinstance(item, RelationDef) else function_words(session, item)


def words_of(session: Session, key: Any) -> str:
    """Return what messages call the thing that something depends on."""
    catalog = session.catalog
    if isinstance(key, tuple):
        if key[0] == "type":
            return f"type {type_name(session, key[1], None)}"
        relation = catalog.relation_by_oid(key[1])
        if relation is None:
            raise AssertionError("a function is told of a relation that is gone")
        if key[0] == "column":
            return f"column {relation.column(key[2]).name} of {described_any(session, relation)}"

        return f"type {shown_name(session, relation)}"
    function = catalog.function_by_oid(key)
    if function is not None:
        return function_words(session, function)
    search = catalog.text_search_by_oid(key)
    if search is not None:
        from engine.definitions.text_search import text_search_words  # which drops functions

        return text_search_words(session, search)
    relation = catalog.relation_by_oid(key)
    if relation is None:
        raise AssertionError("a function is told of a relation that is gone")
    return described_any(session, relation)


async def drop_function(session: Session, plan: Plan, statement: st.DropFunction, params: Params) -> Outcome:
    """DROP FUNCTION. Raises SqlError 2BP01."""
    for notice in spaced(statement.missing):
        session.notice(notice)
    targets = [_existing(session, oid) for oid in spaced(statement.functions)]
    for target in targets:
        if target.extension:
            name = next(e.name for e in session.catalog.extensions.values() if e.oid == target.extension)
            raise kept_by_extension(function_words(session, target), name)
    if targets:
        await drop_functions(session, targets, cascade=statement.cascade)
    return Command(plan.bound.tag)


async def drop_functions(
    session: Session,
    targets: Sequence[FunctionDef],
    *,
    cascade: bool,
    quiet: bool = False,
    what: str | None = None,
    roots: Sequence[Any] = (),
    hanging: Sequence[Dependency] = (),
    words: Mapping[Any, str] = MappingProxyType({}),
) -> None:
    """Drop functions; with ``cascade`` also the views and functions that call them. Raises SqlError 2BP01.

    ``what``: how messages call several that are dropped as one. ``roots``, ``hanging``, ``words``: what else
    goes with them, which the caller drops, what hangs on that, and what it is called.
    """
    from engine.definitions.dropping.drop import drop_relations  # which drops functions

    targets = [target for target in targets if session.catalog.function_by_oid(target.oid) is not None]
    if not targets and not roots:
        return
    oids = [target.oid for target in targets]
    views, functions, links = openly(dependents, session, oids)
    links += classes_of(session, {*oids, *(function.oid for function in functions)})
    told: Sequence[Any] = [
        one for one in openly(in_report_order, [*oids, *roots], [*links, *hanging]) if one.what
    ]
    if told and not roots and not (cascade and quiet):
        asked = [Address(PG_PROC_OID, oid) for oid in oids]
        told = openly(
            told_with, session, asked, told, lambda one: words.get(one.on) or words_of(session, one.on)
        )
        words = {one.on: one.on for one in told}
    if told and not cascade:
        raise still_needed(
            function_words(session, targets[0]) if what is None and len(targets) == 1 else what,
            (f"{one.what} depends on {words.get(one.on) or words_of(session, one.on)}" for one in told),
        )
    if not quiet:
        notice_cascade(session, [one.what for one in told])
    await forget_functions(session, [*targets, *functions])
    left = [v for v in views if session.catalog.relation_by_oid(v.oid) is not None]
    if left:
        await drop_relations(session, left, cascade=True, quiet=True)


def classes_of(session: Session, functions: set[int]) -> list[Dependency]:
    """Return how operator classes hang on functions that they cannot be without."""
    return [
        Dependency(
            member.of_class,
            member.of_class,
            describe_object(session, 2616, member.of_class, 0) or "",
            member.object,
        )
        for family in session.catalog.opclasses()
        if isinstance(family, OperatorFamilyDef)
        for member in family.members
        if member.function and member.of_class and member.object in functions
    ]


async def forget_functions(session: Session, functions: Iterable[FunctionDef]) -> None:
    """Take functions out of the catalog, with what of tables and domains calls them, and what is kept about them."""
    from engine.definitions.dropping.function_uses import callers, drop_parts, refit  # it drops columns

    catalog = session.catalog
    oids = {f.oid for f in functions if catalog.function_by_oid(f.oid) is not None}
    if oids:
        await drop_parts(session, oids)
        await drop_with_functions(session, oids)
    deletes: list[StoredKey] = [("function", oid, 0) for oid in sorted(oids)]
    deletes += openly(_kept_about, catalog, oids)
    if deletes:
        await session.view.change([], deletes)
        await refit(session, openly(callers, catalog, oids) - oids)


def _kept_about(catalog: CatalogSnapshot, oids: set[int]) -> list[StoredKey]:
    """Return the keys of comments on functions, and of rights to them."""
    about = (item for item in naming(catalog, oids) if isinstance(item, CommentDef | AclDef))
    return [key_of(item) for item in about if item.class_oid == PG_PROC_OID]


@opening
def functions_that_break(session: Session, before: RelationDef, after: RelationDef) -> list[FunctionDef]:
    """Return the functions whose bodies can no longer be bound once ``after`` replaces ``before``."""
    if not is_named(session.catalog, identities(before)):
        return []
    trial = session.catalog.with_changes([after], [], session.db.next_catalog_version())
    broken = []
    readers = readers_of(session.catalog, {before.oid})
    for function in paced_iter(readers.functions(session.catalog)):
        if function.body_sql and readers.reads((function.oid, *function.depends_on), function.body_sql):
            try:
                text = rebase_body(function, session.catalog, trial)
                rebase_body(replace(function, body_sql=text), trial, trial)
            except SqlError as error:
                if error.ends_statement:
                    raise
                broken.append(function)
    return broken


@opening
def _rebased(session: Session, before: CatalogSnapshot, readers: Readers) -> list[FunctionDef]:
    return [
        replace(function, body_sql=rebase_body(function, before, session.catalog))
        for function in paced_iter(readers.functions(session.catalog))
        if function.body_sql and readers.reads((function.oid, *function.depends_on), function.body_sql)
    ]


async def rebase_functions(session: Session, before: CatalogSnapshot, readers: Readers) -> None:
    """Name relations anew in the bodies that read them (``row_readers``): they were called otherwise in ``before``."""
    changed = _rebased(session, before, readers)
    if changed:
        await session.view.change(changed)
