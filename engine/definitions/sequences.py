"""CREATE and ALTER SEQUENCE, and the sequences that serial and identity columns bring along.

    CREATE TABLE t (id serial)      sequence t_id_seq, owned by t.id; default nextval('<its oid>'::regclass)
    DROP TABLE t, DROP COLUMN id    the sequence goes, too
    TRUNCATE t RESTART IDENTITY     the sequence gets a new generation (``engine.session.sequences.values``)

A default names its sequence by oid, so that renaming either changes nothing; who reads it sees the name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.catalog.graph import relations_naming
from engine.catalog.storage.stored import Stored, key_of
from engine.definitions.named_places import exists_already, target_schema
from engine.definitions.table.keys import unused_name
from engine.session.plans.plan import Plan
from engine.session.portal import Command, Outcome
from pgwire.give_way import give_way, opening, paced
from planner import statements as st
from planner.base.errors import SqlError
from planner.bind.define.table.sequence import check_position, relations_of_default, retyped_definition
from planner.catalog import ColumnDef, RelationDef, SequenceDef
from planner.facts import BOOL, INT8
from planner.types import SqlType

if TYPE_CHECKING:
    from engine.session.session import Session

_COLUMNS = tuple(
    ColumnDef(attnum=number, name=name, type=SqlType(oid), not_null=True)
    for number, (name, oid) in enumerate((("last_value", INT8), ("log_cnt", INT8), ("is_called", BOOL)), 1)
)


async def create_sequence(
    session: Session, plan: Plan, statement: st.CreateSequence, params: tuple[Any, ...]
) -> Outcome:
    """CREATE SEQUENCE. Raises SqlError 42P07, 55000 (schema or owner of the owning table differ)."""
    schema, schema_oid = await target_schema(session, statement.schema, statement.persistence)
    if exists_already(session, schema, statement.name, statement.if_not_exists):
        return Command("CREATE SEQUENCE")
    made = _sequence(
        session, (schema, schema_oid), statement.name, statement.definition, statement.persistence
    )
    await session.view.change([_owned(session, made, statement.owned_by)])
    return Command("CREATE SEQUENCE")


def _sequence(
    session: Session,
    schema: tuple[str, int],
    name: str,
    definition: SequenceDef,
    persistence: Any,
    oid: int | None = None,
) -> RelationDef:
    """Return a new sequence; ``schema``: name and oid; ``oid``: its own where it is known."""
    return RelationDef(
        oid=session.db.allocate_oids(1) if oid is None else oid,
        schema_oid=schema[1],
        schema=schema[0],
        name=name,
        kind="S",
        columns=_COLUMNS,
        version=session.db.next_catalog_version(),
        owner=session.role_oid,
        persistence=persistence,
        sequence=definition,
    )


def _owned(session: Session, sequence: RelationDef, column: tuple[int, int] | None) -> RelationDef:
    """Return a sequence owned by a column. Raises SqlError 55000."""
    if column is None or sequence.sequence is None:
        return sequence
    oid, attnum = column
    table = session.catalog.relation_by_oid(oid)
    if table is not None and table.owner != sequence.owner:
        raise SqlError("55000", "sequence must have same owner as table it is linked to")
    if table is not None and table.schema != sequence.schema:
        raise SqlError("55000", "sequence must be in same schema as table it is linked to")
    return replace(sequence, sequence=replace(sequence.sequence, owner_table=oid, owner_attnum=attnum))


async def alter_sequence(
    session: Session, plan: Plan, statement: st.AlterSequence, params: tuple[Any, ...]
) -> Outcome:
    """ALTER SEQUENCE. Raises SqlError 22023 where it stands outside of its new bounds, 55000."""
    relation = session.catalog.relation_by_oid(statement.sequence)
    if relation is None:
        raise SqlError("42P01", f"relation with oid {statement.sequence} does not exist")
    changed = _altered(session, relation, statement.definition, restarts=statement.restarts)
    await session.view.change([_owned(session, changed, statement.owned_by)])
    return Command("ALTER SEQUENCE")


def _altered(
    session: Session, relation: RelationDef, definition: SequenceDef, *, restarts: bool
) -> RelationDef:
    if relation.sequence is None:
        raise AssertionError(f"relation {relation.name} is no sequence")
    version = session.db.next_catalog_version()
    if restarts:
        definition = replace(definition, generation=version)
    else:
        check_position(definition, session.db.sequences.of(relation).value)
    return replace(relation, sequence=definition, version=version)


# --- columns --------------------------------------------------------------------------------------


@opening
def with_sequences(
    session: Session, relation: RelationDef, specs: Sequence[st.ColumnSpec], *, new: bool = False
) -> tuple[RelationDef, list[Stored]]:
    """Return a table whose last columns, as ``specs`` say, draw from sequences, and these. Raises SqlError 42P07.

    ``new``: the table is, and has left the oids below its own to them (``engine.definitions.table.create.new_table``).
    """
    made: list[Stored] = []
    oid = relation.oid - sum(spec.sequence is not None for spec in specs)
    columns = list(relation.columns)
    first = len(columns) - len(specs)
    names = {relation.name}
    for position, spec in paced(list(enumerate(specs, first)), 1):
        if spec.sequence is None:
            continue
        own = oid + len(made) if new else None
        sequence = _for_column(session, relation, columns[position], spec, names, own)
        names.add(sequence.name)
        made.append(sequence)
        columns[position] = replace(
            columns[position], default_sql=default_sql(sequence.oid), identity=spec.identity
        )
    return replace(relation, columns=tuple(columns)), made


def _for_column(
    session: Session,
    relation: RelationDef,
    column: ColumnDef,
    spec: st.ColumnSpec,
    taken: Iterable[str],
    oid: int | None = None,
) -> RelationDef:
    made = spec.sequence
    if made is None:
        raise AssertionError("the sequence of a column is not specified")
    name = made.name
    if name is None:
        name = unused_name(session, relation.schema, relation.name, [column.name], "seq", taken)
    elif session.catalog.relation(relation.schema, name) is not None:
        raise SqlError("42P07", f'relation "{name}" already exists')
    definition = replace(
        made.definition, owner_table=relation.oid, owner_attnum=column.attnum, internal=bool(spec.identity)
    )
    command = "CREATE" if session.catalog.relation_by_oid(relation.oid) is None else "ALTER"
    session.debug(
        f'{command} TABLE will create implicit sequence "{name}" for serial column "{relation.name}.{column.name}"'
    )
    place = relation.schema, relation.schema_oid
    persistence = made.persistence or relation.persistence
    sequence = _sequence(session, place, name, definition, persistence, oid)
    return replace(sequence, owner=relation.owner)


def default_sql(oid: int) -> str:
    """Return the default that draws from a sequence."""
    return f"nextval('{oid}'::regclass)"


async def set_identity(session: Session, relation: RelationDef, action: st.SetIdentity) -> RelationDef:
    """ALTER COLUMN SET GENERATED, SET option, RESTART: change the sequence, return the table."""
    column = next(c for c in relation.live if c.name == action.column)
    if action.definition is not None:
        for sequence in owned_by(session, relation.oid, column.attnum):
            changed = _altered(session, sequence, action.definition, restarts=action.restarts)
            await session.view.change([changed])
    return _with_column(relation, replace(column, identity=action.identity or column.identity))


async def retype_identity(session: Session, relation: RelationDef, column: ColumnDef, type_oid: int) -> None:
    """ALTER COLUMN TYPE of an identity column: its sequence gets that type. Raises SqlError 22023, 55000."""
    for sequence in owned_by(session, relation.oid, column.attnum):
        if sequence.sequence is None:
            raise AssertionError(f"relation {sequence.name} is no sequence")
        definition = retyped_definition(sequence.sequence, type_oid)
        await session.view.change([_altered(session, sequence, definition, restarts=False)])


async def add_identity(session: Session, relation: RelationDef, action: st.AddIdentity) -> RelationDef:
    """ALTER COLUMN ADD GENERATED ... AS IDENTITY: make the sequence, return the table."""
    column = next(c for c in relation.live if c.name == action.column)
    spec = st.ColumnSpec(
        name=column.name, type=column.type, identity=action.identity, sequence=action.sequence
    )
    sequence = _for_column(session, relation, column, spec, [relation.name])
    await session.view.change([sequence])
    drawing = replace(column, identity=action.identity, default_sql=default_sql(sequence.oid))
    return _with_column(relation, drawing)


async def drop_identity(session: Session, relation: RelationDef, action: st.DropIdentity) -> RelationDef:
    """ALTER COLUMN DROP IDENTITY: drop the sequence, return the table."""
    column = next(c for c in relation.live if c.name == action.column)
    if not column.identity:
        session.notice(
            f'column "{column.name}" of relation "{relation.name}" is not an identity column, skipping'
        )
        return relation
    gone = owned_by(session, relation.oid, column.attnum)
    await session.view.change([], [key_of(sequence) for sequence in gone])
    return _with_column(relation, replace(column, identity="", default_sql=None))


def _with_column(relation: RelationDef, column: ColumnDef) -> RelationDef:
    columns = tuple(column if c.attnum == column.attnum else c for c in relation.columns)
    return replace(relation, columns=columns)


# --- what hangs together --------------------------------------------------------------------------


def owned_by(session: Session, table: int, attnum: int | None = None) -> list[RelationDef]:
    """Return the sequences that a table's columns own, or one of them."""
    return [
        sequence
        for sequence in session.catalog.sequences_of(table)
        if sequence.sequence is not None and attnum in (None, sequence.sequence.owner_attnum)
    ]


_NUMBER: Final = re.compile(r"\d+")


def drawing_columns(
    session: Session, oids: Collection[int]
) -> list[tuple[RelationDef, RelationDef, ColumnDef]]:
    """Return the columns whose defaults name any of some relations, by constants of regclass: relation,
    table, column.
    """
    found: list[tuple[RelationDef, RelationDef, ColumnDef]] = []
    for table in relations_naming(session.catalog, oids):
        give_way()
        for column in table.live:
            text = column.default_sql
            if text is None or "::regclass" not in text or column.generated:
                continue  # a generated column goes whole (``engine.definitions.dropping.uses``)
            if not any(int(number) in oids for number in _NUMBER.findall(text)):
                continue  # so that few texts are bound
            for oid in relations_of_default(column):
                relation = session.catalog.relation_by_oid(oid) if oid in oids else None
                if relation is not None:
                    found.append((relation, table, column))
    return found


def check_droppable(session: Session, sequence: RelationDef) -> None:
    """Raise SqlError 2BP01 for the sequence of an identity column, which goes with that."""
    definition = sequence.sequence
    if definition is None or not definition.internal:
        return
    table = session.catalog.relation_by_oid(definition.owner_table)
    if table is not None:
        place = f"column {table.column(definition.owner_attnum).name} of table {table.name}"
        raise SqlError(
            "2BP01",
            f"cannot drop sequence {sequence.name} because {place} requires it",
            hint=f"You can drop {place} instead.",
        )


async def restart_owned(session: Session, table: int) -> None:
    """TRUNCATE ... RESTART IDENTITY: what a table's columns draw begins anew."""
    changed: list[Stored] = []
    for sequence in owned_by(session, table):
        if sequence.sequence is None:
            raise AssertionError(f"relation {sequence.name} is no sequence")
        definition = replace(sequence.sequence, restart=None)
        changed.append(_altered(session, sequence, definition, restarts=True))
    if changed:
        await session.view.change(changed)
