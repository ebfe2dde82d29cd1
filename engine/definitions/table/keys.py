"""Adding keys and checks to a table definition, with PostgreSQL's choice of names and oids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from engine.session.conflicts import key_text
from pgwire.give_way import paced
from planner.base.errors import SqlError
from planner.bind.define.table.index import computed_index, index_keys, key_names, with_hidden
from planner.bind.define.table.naming import choose_name
from planner.catalog import ConstraintDef, IndexDef, RelationDef
from planner.statements import CheckSpec, KeySpec
from txn.base.errors import DuplicateKey

if TYPE_CHECKING:
    from engine.session.session import Session

MAX_INDEX_COLUMNS = 32
_WORDS = {"p": "PRIMARY KEY", "u": "UNIQUE", "x": "EXCLUDE"}  # by kinds of constraints


def unused_name(
    session: Session,
    schema: str,
    table: str,
    columns: Sequence[str],
    label: str,
    taken: Iterable[str] = (),
) -> str:
    """Return ``table_col_label``, numbered when a relation of the schema has that name already; ``taken``:
    others, a set where they are many.
    """
    names = taken if isinstance(taken, set) else set(taken)

    def used(name: str) -> bool:
        return name in names or session.catalog.relation(schema, name) is not None

    return choose_name(table, columns, label, used)


def unused_key_name(session: Session, relation: RelationDef, key: KeySpec) -> str:
    """Return the name that a constraint without one gets: ``table_pkey``, ``table_col_key``."""
    label = "excl" if key.operators else "pkey" if key.primary else "key"
    columns = [] if key.primary else [*(key.index_names or (*key.columns, *key.include))]
    taken = [relation.name, *(i.name for i in relation.every_index), *(c.name for c in relation.constraints)]
    return unused_name(session, relation.schema, relation.name, columns, label, taken)


def add_keys(session: Session, relation: RelationDef, keys: Sequence[KeySpec]) -> RelationDef:
    """Return ``relation`` with PRIMARY KEY, UNIQUE and EXCLUDE constraints and their indexes added, and
    hidden columns for expressions.

    Raises 42P16 for a second primary key, 42703 for an unknown column, 42701 for one named twice, 42P07 for
    a taken name.
    """
    for key in sorted(keys, key=lambda k: not k.primary):
        relation = _add_key(session, relation, key)
    return relation


_NO_KEY_OF: Final = "Cannot create a primary key or unique constraint using such an index."


def _add_key(session: Session, relation: RelationDef, key: KeySpec) -> RelationDef:
    if key.primary and any(c.kind == "p" for c in relation.constraints):
        raise SqlError("42P16", f'multiple primary keys for table "{relation.name}" are not allowed')
    if key.using_index is not None:
        return _key_from_index(session, relation, key)
    texts = key.expressions or ("",) * len(key.columns)
    attnums = tuple(
        0 if text else _column(relation, name, key) for name, text in zip(key.columns, texts, strict=True)
    )
    if len(attnums) > MAX_INDEX_COLUMNS:
        raise SqlError("54011", f"cannot use more than {MAX_INDEX_COLUMNS} columns in an index")
    include = tuple(_column(relation, name, key) for name in key.include)
    name = key.name
    if name is None:
        name = unused_key_name(session, relation, key)
    elif any(i.name == name for i in relation.every_index) or session.catalog.relation(relation.schema, name):
        raise SqlError("42P07", f'relation "{name}" already exists')
    elif any(c.name == name for c in relation.constraints):
        raise SqlError("42710", f'constraint "{name}" for relation "{relation.name}" already exists')
    oid = session.db.allocate_oids(1)
    index = IndexDef(
        oid=0,
        name=name,
        attnums=attnums,
        unique=not key.operators,
        primary=key.primary,
        method=key.method,
        nulls_not_distinct=key.nulls_not_distinct,
        include=include,
        constraint_oid=oid,
        deferrable=key.deferrable,
        options=key.options,
        key_names=key.index_names,
    )
    if key.expressions:
        names = key.index_names or key_names([*key.columns, *key.include])
        index = replace(index, written=attnums, expressions=texts, key_names=names)
        exprs, _where = index_keys(index, relation, session.catalog)
        index, hidden = computed_index(index, relation, exprs, None, session.catalog)
        relation = with_hidden(relation, hidden)
    index = replace(index, oid=session.ahead.oid_of(relation, index))
    constraint = ConstraintDef(
        oid=oid,
        name=name,
        kind="x" if key.operators else "p" if key.primary else "u",
        attnums=index.attnums,
        index_oid=index.oid,
        check_sql=key.where_sql,
        operators=key.operators,
        deferrable=key.deferrable,
        deferred=key.deferred,
    )
    made = session.catalog.relation_by_oid(relation.oid) is None
    session.debug(
        f"{'CREATE TABLE /' if made else 'ALTER TABLE / ADD'} {_WORDS[constraint.kind]} will create implicit index "
        f'"{name}" for table "{relation.name}"'
    )
    return _with_key(relation, index, constraint)


def _with_key(relation: RelationDef, index: IndexDef, constraint: ConstraintDef) -> RelationDef:
    columns = relation.columns
    if index.primary:
        columns = tuple(replace(c, not_null=True) if c.attnum in index.attnums else c for c in columns)
    return replace(
        relation,
        columns=columns,
        indexes=(*relation.indexes, index),
        constraints=(*relation.constraints, constraint),
    )


def _key_from_index(session: Session, relation: RelationDef, key: KeySpec) -> RelationDef:
    """ADD CONSTRAINT ... USING INDEX: an existing unique index becomes the constraint's.

    Raises SqlError 42704, 42809, 55000, 42710, 42P07; 0A000 of a partitioned table.
    """
    index = _index_for_key(session, relation, key)
    if relation.kind == "p":
        raise SqlError(
            "0A000", "ALTER TABLE / ADD CONSTRAINT USING INDEX is not supported on partitioned tables"
        )
    name = key.name or index.name
    if name != index.name:
        session.notice(
            f'ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index "{index.name}" to "{name}"'
        )
        if session.catalog.relation(relation.schema, name) is not None:
            raise SqlError("42P07", f'relation "{name}" already exists')
    if any(c.name == name for c in relation.constraints):
        raise SqlError("42710", f'constraint "{name}" for relation "{relation.name}" already exists')
    oid = session.db.allocate_oids(1)
    changed = replace(index, name=name, primary=key.primary, constraint_oid=oid, deferrable=key.deferrable)
    constraint = ConstraintDef(
        oid=oid,
        name=name,
        kind="p" if key.primary else "u",
        attnums=index.attnums,
        index_oid=index.oid,
        deferrable=key.deferrable,
        deferred=key.deferred,
    )
    without = replace(relation, indexes=tuple(i for i in relation.indexes if i.oid != index.oid))
    return _with_key(without, changed, constraint)


def _index_for_key(session: Session, relation: RelationDef, key: KeySpec) -> IndexDef:
    """Return the index that USING INDEX names. Raises SqlError 42704; 55000 and 42809 for one that cannot be
    a key's.
    """
    index = next((i for i in relation.every_index if i.name == key.using_index), None)
    if index is None:
        other = session.catalog.relation(relation.schema, key.using_index or "")
        if other is None:
            raise SqlError("42704", f'index "{key.using_index}" does not exist', span=key.span)
        if other.kind != "i":
            raise SqlError("42809", f'"{other.name}" is not an index')
        message = f'index "{other.name}" does not belong to table "{relation.name}"'
        raise SqlError("55000", message, span=key.span)
    if index.constraint_oid:
        message = f'index "{index.name}" is already associated with a constraint'
        raise SqlError("55000", message, span=key.span)
    if not index.valid:
        raise SqlError("55000", f'index "{index.name}" is not valid', span=key.span)
    said = _no_key(index)
    if said:
        raise SqlError("42809", said, detail=_NO_KEY_OF, span=key.span)
    return index


def _no_key(index: IndexDef) -> str:
    """Return why an index cannot be that of a key; "" if it can."""
    if not index.unique:
        return f'"{index.name}" is not a unique index'
    if any(index.expressions):
        return f'index "{index.name}" contains expressions'
    if index.where_sql:
        return f'"{index.name}" is a partial index'
    own = (index.descending, index.nulls_first, index.opclasses, index.collations)
    for position in range(len(index.attnums)):
        if any(len(per_key) > position and per_key[position] for per_key in own):
            return f'index "{index.name}" column number {position + 1} does not have default sorting behavior'
    return ""


def _column(relation: RelationDef, name: str, key: KeySpec) -> int:
    for column in relation.live:
        if column.name == name:
            if key.columns.count(name) > 1:
                raise SqlError(
                    "42701", f'column "{name}" appears twice in {key.words} constraint', span=key.span
                )
            return column.attnum
    raise SqlError("42703", f'column "{name}" named in key does not exist')


def add_checks(
    session: Session, relation: RelationDef, checks: Sequence[CheckSpec], *, validated: bool = True
) -> RelationDef:
    """Return ``relation`` with CHECK constraints added; 42710 when a name is taken."""
    taken = {c.name for c in relation.constraints}
    numbers = {c.name: c.attnum for c in relation.live}
    made: list[ConstraintDef] = []
    for check in paced(checks):
        name = check.name
        if name is None:
            columns = list(check.columns) if len(check.columns) == 1 else []
            name = choose_name(relation.name, columns, "check", taken.__contains__)
        elif name in taken:
            raise SqlError("42710", f'constraint "{name}" for relation "{relation.name}" already exists')
        constraint = ConstraintDef(
            oid=session.db.allocate_oids(1),
            name=name,
            kind="c",
            attnums=tuple(sorted({numbers[column] for column in check.columns if column in numbers})),
            check_sql=check.sql,
            validated=validated and not (check.not_valid and relation.server),
            no_inherit=check.no_inherit,
        )
        taken.add(name)
        made.append(constraint)
    return replace(relation, constraints=(*relation.constraints, *made)) if made else relation


@contextmanager
def building_indexes(relation: RelationDef, session: Session) -> Iterator[None]:
    """Report a duplicate that a table's rows already hold as PostgreSQL does while it builds an index
    (23505); its key to who may read it.
    """
    try:
        yield
    except DuplicateKey as error:
        index = next((i for i in relation.indexes if i.oid == error.index), None)
        if index is None:
            raise
        detail = "Duplicate keys exist."
        if session.may_read(relation, index.key_columns):
            names, values = key_text(session.catalog, relation, index, error.key)
            detail = f"Key ({names})=({values}) is duplicated."
        raise SqlError(
            "23505",
            f'could not create unique index "{index.name}"',
            detail=detail,
            schema=relation.schema,
            table=relation.name,
            constraint=index.name,
        ) from None
