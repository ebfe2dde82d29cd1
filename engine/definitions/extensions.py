"""CREATE, ALTER and DROP EXTENSION: functions that come and go together.

    CREATE EXTENSION pgcrypto SCHEMA s  ->  extension pgcrypto <── function s.digest(text,text)  = built-in pgcrypto.digest(text,text)
                                                               <── function s.hmac(...)  ...

The functions belong to the extension: they are dropped with it, and not alone. They are owned by the
bootstrap superuser, as PostgreSQL's are of extensions it trusts, so that CREATE on the database is all that a
role needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_EXTENSION_OID, SUPERUSER_OID, CommentDef, StoredKey, key_of
from engine.catalog.type_names import array_name
from engine.definitions import functions
from engine.definitions.dropping.extension_uses import dictionaries_of, drop_hanging, hanging, own_types
from engine.definitions.named_places import target_schema
from engine.definitions.text_search import check_free, check_new
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from engine.session.session import Session
from planner import statements as st
from planner.base.errors import SqlError
from planner.catalog import DictionaryDef, ExtensionDef, FunctionDef, TypeDef
from planner.catalog.extensions import COMMENTS, DICTIONARIES, DOMAINS, PLPGSQL, TEMPLATES
from planner.catalog.relation_kinds import ROW_TYPED
from planner.facts import ExtensionFact, ProcFact, facts
from planner.functions.system.names import type_name

Params = tuple[Any, ...]


def members(catalog: CatalogSnapshot, extension: int) -> list[FunctionDef]:
    """Return the functions of an extension."""
    return [function for function in catalog.functions() if function.extension == extension]


def in_schema(catalog: CatalogSnapshot, schema: int) -> list[ExtensionDef]:
    """Return the extensions of a schema, oldest first."""
    found = [e for e in catalog.extensions.values() if e.schema_oid == schema]
    return sorted(found, key=lambda e: e.oid)


async def create_extension(
    session: Session, plan: Plan, statement: st.CreateExtension, params: Params
) -> Outcome:
    """CREATE EXTENSION.

    Raises SqlError 42710, 0A000 (one that is not available), 22023 (nor in this version), 42501, 42723.
    """
    session, name = session, statement.name
    fact = facts().extensions.get(name)
    if session.catalog.extension(name) is not None:
        if not statement.if_not_exists:
            raise SqlError("42710", f'extension "{name}" already exists')
        session.notice(f'extension "{name}" already exists, skipping', sqlstate="42710")
        return Command(plan.bound.tag)
    if fact is None:
        others = ", ".join(sorted(COMMENTS))
        raise SqlError(
            "0A000",
            f'extension "{name}" is not available',
            detail=f"There are {others}.",
            hint="The statements that need it will fail by the name of what they use.",
        )
    if statement.version not in ("", fact.version):
        raise SqlError(
            "22023",
            f'extension "{name}" has no installation script nor update path for version "{statement.version}"',
        )
    schema, schema_oid = await target_schema(session, statement.schema, "p")
    dictionaries = [DICTIONARIES[name]] if name in DICTIONARIES else []
    domains = [DOMAINS[name]] if name in DOMAINS else []
    first = session.db.allocate_oids(1 + len(fact.functions) + len(dictionaries) + 3 * len(domains))
    made = ExtensionDef(
        oid=first, name=name, schema_oid=schema_oid, version=fact.version, owner=session.role_oid
    )
    types = _types(session, fact, made, schema)
    after = first + 1 + 3 * len(domains)  # what functions are of comes before them
    parts = _functions(session, fact, made, schema, after)
    searching = [
        DictionaryDef(
            oid=after + len(fact.functions) + number,
            schema_oid=schema_oid,
            schema=schema,
            name=called,
            owner=SUPERUSER_OID,
            template=TEMPLATES[name][0],
            options=options,
            extension=first,
        )
        for number, (called, options) in enumerate(dictionaries)
    ]
    for one in searching:
        check_new(session, one.named_by, schema, one.name)
    for number, domain in enumerate(domains):
        type_, cast_ = _domain(session, made, schema, first + 1 + 3 * number, domain)
        types.append(type_)
        parts.append(cast_)
    comment = CommentDef(class_oid=PG_EXTENSION_OID, object_oid=first, sub_id=0, text=COMMENTS[name])
    await session.view.change([made, *types, *parts, *searching, comment])
    return Command(plan.bound.tag)


def _types(session: Session, fact: ExtensionFact, extension: ExtensionDef, schema: str) -> list[TypeDef]:
    """Return the types of an extension that is being made. Raises SqlError 42710."""
    made = []
    for type_ in fact.types:
        array = facts().types[type_.array]
        for name in (type_.name, array.name):
            _check_type_free(session, schema, name)
        made.append(
            TypeDef(
                oid=type_.oid,
                array_oid=array.oid,
                array_name=array.name,
                schema_oid=extension.schema_oid,
                schema=schema,
                name=type_.name,
                kind="b",
                owner=SUPERUSER_OID,
            )
        )
    return made


def _domain(
    session: Session, extension: ExtensionDef, schema: str, oid: int, brought: tuple[str, int, str]
) -> tuple[TypeDef, FunctionDef]:
    """Return a domain of an extension that is being made, and the function from it to what it is over. Raises
    SqlError 42710, 42723.
    """
    name, base, function = brought
    _check_type_free(session, schema, name)
    made = TypeDef(
        oid=oid,
        array_oid=oid + 1,
        array_name=array_name(session.catalog, schema, name),
        schema_oid=extension.schema_oid,
        schema=schema,
        name=name,
        kind="d",
        owner=SUPERUSER_OID,
        base=base,
        extension=extension.oid,
    )
    _check_free(session, schema, function, (oid,))
    return made, FunctionDef(
        oid=oid + 2,
        schema_oid=extension.schema_oid,
        schema=schema,
        name=function,
        modes=("i",),
        names=("",),
        types=(oid,),
        result=base,
        owner=SUPERUSER_OID,
        volatility="i",
        strict=True,
        parallel="s",
        source=f"SELECT $1::pg_catalog.{facts().types[base].name}",
        extension=extension.oid,
    )


def _check_type_free(session: Session, schema: str, name: str) -> None:
    """Raise SqlError 42710 where there is such a type."""
    catalog = session.catalog
    relation = catalog.relation(schema, name)
    if catalog.type_oid(schema, name) is not None or (relation is not None and relation.kind in ROW_TYPED):
        raise SqlError("42710", f'type "{name}" already exists')


def _functions(
    session: Session, fact: ExtensionFact, extension: ExtensionDef, schema: str, first: int
) -> list[FunctionDef]:
    """Return the functions of an extension that is being made, with the oids from ``first`` on. Raises
    SqlError 42723.
    """
    signatures = {oid: signature for signature, oid in facts().proc_by_signature.items()}
    made = []
    for number, proc in enumerate(fact.functions, first):
        _check_free(session, schema, proc.name, proc.arg_types)
        made.append(_function(proc, signatures[proc.oid], extension, number, schema))
    return made


def _function(proc: ProcFact, signature: str, extension: ExtensionDef, oid: int, schema: str) -> FunctionDef:
    types = proc.all_arg_types or proc.arg_types
    return FunctionDef(
        oid=oid,
        schema_oid=extension.schema_oid,
        schema=schema,
        name=proc.name,
        modes=proc.arg_modes or ("i",) * len(types),
        names=proc.arg_names or ("",) * len(types),
        types=types,
        result=proc.result,
        owner=SUPERUSER_OID,
        returns_set=proc.returns_set,
        volatility=cast(Any, proc.volatility),
        strict=proc.strict,
        parallel="s",
        cost=1,
        rows=1000 if proc.returns_set else 0,
        extension=extension.oid,
        internal=signature,
    )


def _check_free(session: Session, schema: str, name: str, inputs: Sequence[int]) -> None:
    """Raise SqlError 42723 where there is such a function."""
    for function in session.catalog.functions_named(name):
        if function.schema == schema and function.inputs == tuple(inputs):
            types = ", ".join(type_name(session, oid, None) or "" for oid in inputs)
            raise SqlError("42723", f'function {name}({types}) already exists in schema "{schema}"')


def _named(session: Session, name: str) -> ExtensionDef:
    """Return an extension. Raises SqlError 42704."""
    found = session.catalog.extension(name)
    if found is None:
        raise SqlError("42704", f'extension "{name}" does not exist')
    return found


async def alter_extension(
    session: Session, plan: Plan, statement: st.AlterExtension, params: Params
) -> Outcome:
    """ALTER EXTENSION UPDATE and SET SCHEMA. Raises SqlError 42704, 42501, 22023, 42723."""
    extension = _named(session, statement.name)
    if not statement.schema:
        fact = facts().extensions.get(extension.name)
        wanted = statement.version or (fact.version if fact is not None else extension.version)
        if wanted != extension.version:
            raise SqlError(
                "22023",
                f'extension "{extension.name}" has no update path from version "{extension.version}" to version "{wanted}"',
            )
        session.notice(f'version "{wanted}" of extension "{extension.name}" is already installed')
        return Command(plan.bound.tag)
    if extension is PLPGSQL:
        raise SqlError("0A000", 'extension "plpgsql" does not support SET SCHEMA')
    schema, schema_oid = await target_schema(session, statement.schema, "p")
    if schema_oid == extension.schema_oid:
        return Command(plan.bound.tag)
    parts = members(session.catalog, extension.oid)
    types = own_types(session.catalog, [extension])
    for type_ in types:
        _check_type_free(session, schema, type_.name)
    for part in parts:
        _check_free(session, schema, part.name, part.inputs)
    searching = dictionaries_of(session.catalog, [extension])
    for one in searching:
        check_free(session.catalog, one, schema, one.name)
    await session.view.change(
        [
            replace(extension, schema_oid=schema_oid),
            *(replace(type_, schema=schema, schema_oid=schema_oid) for type_ in types),
            *(replace(part, schema=schema, schema_oid=schema_oid) for part in parts),
            *(replace(one, schema=schema, schema_oid=schema_oid) for one in searching),
        ]
    )
    return Command(plan.bound.tag)


async def drop_extension(
    session: Session, plan: Plan, statement: st.DropExtension, params: Params
) -> Outcome:
    """DROP EXTENSION. Raises SqlError 42704, 42501, 2BP01."""
    targets: list[ExtensionDef] = []
    for name in dict.fromkeys(statement.names):
        if session.catalog.extension(name) is None and statement.if_exists:
            session.notice(f'extension "{name}" does not exist, skipping')
            continue
        target = _named(session, name)
        if target is PLPGSQL:
            raise SqlError(
                "2BP01", "cannot drop extension plpgsql because it is required by the database system"
            )
        targets.append(target)
    what = f"extension {targets[0].name}" if len(targets) == 1 else None
    parts = [part for target in targets for part in members(session.catalog, target.oid)]
    found = hanging(session, targets)
    await functions.drop_functions(
        session,
        parts,
        cascade=statement.cascade,
        what=what,
        roots=found.roots,
        hanging=found.links,
        words=found.words,
    )
    await forget_extensions(session, targets)
    return Command(plan.bound.tag)


async def forget_extensions(session: Session, extensions: Iterable[ExtensionDef]) -> None:
    """Take extensions out of the catalog, what hangs on them, and the comments on them; their functions are gone."""
    extensions = list(extensions)
    await drop_hanging(session, extensions)
    oids = {extension.oid for extension in extensions}
    deletes: list[StoredKey] = [("extension", oid, 0) for oid in sorted(oids)]
    deletes += [
        key_of(c)
        for c in session.catalog.comments()
        if c.class_oid == PG_EXTENSION_OID and c.object_oid in oids
    ]
    if deletes:
        await session.view.change([], deletes)
