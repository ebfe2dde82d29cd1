"""What CREATE DATABASE takes from its template: every object under an oid of its own, the rows, where sequences stand.

    template (database 16500)                        copy (database 16900)
    relation 16501  t, row type 16502, array 16503   relation 16901  t, 16902, 16903
      a mood            type 16510                     a mood            type 16910
      n nextval('16504'::regclass)                     n nextval('16904'::regclass)
    shard 16501     rows, own parts                  shard 16901     the same rows, parts of its own
    counter 16504   last 7                           counter 16904   last 7

Oids are unique over all databases (docs/decisions/0010-databases.md), so whatever names an object by its oid
is rewritten: references between definitions, what their texts name so (types, functions, text search objects,
``'16504'::regclass``), and values in columns of types such as regclass. Texts name everything else by name.
All of it belongs to one transaction: it is there whole or not at all, also after a crash.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from engine.base.eager import settle
from engine.catalog import type_owners
from engine.catalog.default_acls import PG_DEFAULT_ACL_OID
from engine.catalog.physical import shard_spec
from engine.catalog.storage.spaces import Space
from engine.catalog.storage.store import is_shared
from engine.catalog.storage.stored import PG_LARGEOBJECT_OID, CommentDef, Stored, row_array_oid, row_type_oid
from engine.catalog.user_types import register, register_rows_of
from engine.definitions.table.rewrite import FewOrMore
from pgwire.give_way import spaced
from planner.base.errors import SqlError
from planner.catalog import (
    AclDef,
    AggregateDef,
    ColumnDef,
    ConfigurationDef,
    ConstraintDef,
    DictionaryDef,
    ExtensionDef,
    FunctionDef,
    IndexDef,
    PartitionKey,
    RelationDef,
    SchemaDef,
    SourceDef,
    TypeDef,
)
from planner.catalog.collations import CollationDef
from planner.catalog.conversions import ConversionDef
from planner.catalog.foreign import MappingDef, ServerDef, WrapperDef
from planner.catalog.opclasses import OperatorClassDef, OperatorFamilyDef
from planner.catalog.policy import PolicyDef
from planner.catalog.relation_kinds import ROW_TYPED
from planner.catalog.statistics import StatisticsDef
from planner.catalog.trigger import TriggerDef
from planner.facts import (
    REGCLASS,
    REGCOLLATION,
    REGCONFIG,
    REGDICTIONARY,
    REGNAMESPACE,
    REGPROC,
    REGPROCEDURE,
    REGTYPE,
)
from planner.types import SqlType
from planner.types.facts import FIRST_USER_OID
from txn.api import Transaction
from txn.base.types import Row, ShardId

if TYPE_CHECKING:
    from engine.session.session import Session

_NAMED_BY_OID: Final = frozenset(
    (REGCLASS, REGCOLLATION, REGCONFIG, REGDICTIONARY, REGNAMESPACE, REGPROC, REGPROCEDURE, REGTYPE)
)
_TOKEN: Final = re.compile(
    r"""'"#(?P<search>\d+)"'(?=::reg(?:config|dictionary)\b)"""  # '"#16530"'::regconfig
    r"""|'(?P<objects>\d+|\{[\dNUL{},-]*\})'(?=::reg(?:class|namespace|procedure|proc|type|collation)\b)"""  # '16504'::regclass
    r"""|pg_catalog\."#(?P<type>\d+)\""""  # pg_catalog."#16510", a type
    r"""|"#(?P<function>\d+)"(?=\()"""  # "#16520"(1), a function
    r"""|(?<=ON\ CONSTRAINT\ )"#(?P<constraint>\d+)\""""  # ON CONFLICT ON CONSTRAINT "#16530"
    r"""|'(?:[^']|'')*'|"(?:[^"]|"")*\""""  # other literals and names, whatever is in them
)
"""Where a stored text names objects by their oids (``planner.types.facts``, ``planner.bind.expression.calls``)."""
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Copy:
    """A template's objects as a new database has them. ``tables``, ``sequences``: each with the one that it
    is a copy of.
    """

    items: Sequence[Stored]
    tables: Sequence[tuple[RelationDef, RelationDef]]
    sequences: Sequence[tuple[RelationDef, RelationDef]]
    oids: Oids


async def copied(session: Session, space: Space) -> Copy:
    """Return what a new database takes from its template, under new oids. SqlError 53000: oids cannot be reserved.

    Left out are sources (they go on feeding the template's tables; in the copy those are ordinary ones) and
    temporary tables.
    """
    own = [item for key, item in spaced(space.catalog.items.items()) if not is_shared(key[0])]
    own = [item for item in spaced(own) if not isinstance(item, SourceDef) and not _is_temporary(item)]
    oids = Oids()
    for first, count in spaced(sorted(chain.from_iterable(map(_oids_of, spaced(own))))):
        await session.db.oids_ready(count)
        oids.add(first, session.db.allocate_oids(count), count)
    made: list[Stored] = []
    pairs: list[tuple[RelationDef, RelationDef]] = []
    for item in spaced(sorted(own, key=_made_in_order), 1):  # a domain after what it is over
        new = _renumbered(item, oids, session.db.next_catalog_version)
        made.append(new)
        if isinstance(item, RelationDef) and isinstance(new, RelationDef):
            pairs.append((item, new))
            if new.kind in ROW_TYPED:
                type_owners.own(new)
                register_rows_of(row_type_oid(new.oid), row_array_oid(new.oid))
    for new in spaced(made, 1):
        if isinstance(new, TypeDef):
            register(new)  # tables are stored by its codec
    _refuse_names_within(own)
    return Copy(
        made,
        [pair for pair in pairs if pair[0].stored],
        [pair for pair in pairs if pair[0].kind == "S"],
        oids,
    )


async def copy_rows(session: Session, copy: Copy) -> None:
    """Stage the rows of all tables, and where sequences stand, in the session's transaction. Raises its errors."""
    txn = session.block.ensure_txn()
    for old, new in copy.tables:
        source = ShardId(old.oid)
        await settle(txn.lock_table(source, "S"))
        txn.create_shard(shard_spec(new))
    txn.next_statement()
    for old, new in copy.tables:
        await _fill(txn, copy.oids, old, new)
    await session.db.sequences.copy(txn, copy.sequences)


async def _fill(txn: Transaction, oids: Oids, old: RelationDef, new: RelationDef) -> None:
    """Put the rows of ``old`` into ``new``; many become parts, written as they are read."""
    named = [c.attnum - 1 for c in old.stored_columns if c.type.oid in _NAMED_BY_OID]
    target = ShardId(new.oid)
    source = FewOrMore(new, _rows(txn, ShardId(old.oid), named, oids))
    rows = await source.few()
    if rows is None:
        await txn.bulk_insert(target, source.batches())
    elif rows:
        await settle(txn.insert(target, rows))


async def _rows(
    txn: Transaction, shard: ShardId, named: Sequence[int], oids: Oids
) -> AsyncIterator[list[Row]]:
    """Yield the values of a template's rows; those at ``named`` are oids."""
    async for chunk in txn.scan(shard):
        rows = [row.values for row in chunk]
        if named:
            rows = [_with_oids(row, named, oids) for row in rows]
        yield rows
        await asyncio.sleep(0)


def _with_oids(row: Row, named: Sequence[int], oids: Oids) -> Row:
    values = list(row)
    for position in named:
        if values[position] is not None:
            values[position] = oids[values[position]]
    return tuple(values)


def _refuse_names_within(own: Sequence[Stored]) -> None:
    """Raise 0A000 where columns hold composite values that name objects by their oids, which would have to be
    rewritten, too.
    """
    attributes: dict[int, Sequence[ColumnDef]] = {}
    over: dict[int, int] = {}
    for item in spaced(own):
        if isinstance(item, TypeDef):
            if item.kind == "c":
                attributes[item.oid], over[item.array_oid] = item.attributes, item.oid
            elif item.kind == "d":
                over[item.oid], over[item.array_oid] = item.base, item.base
        elif isinstance(item, RelationDef) and item.kind in ROW_TYPED:
            attributes[row_type_oid(item.oid)] = item.columns
            over[row_array_oid(item.oid)] = row_type_oid(item.oid)

    for item in spaced(own):
        if isinstance(item, RelationDef) and item.stored:
            for column in item.stored_columns:
                if _names_objects(column.declared.oid, attributes, over):
                    raise SqlError(
                        "0A000",
                        f'CREATE DATABASE of a template whose column "{item.name}.{column.name}" holds rows with names of objects is not supported',
                    )


def _names_objects(
    type_: int, attributes: Mapping[int, Sequence[ColumnDef]], over: Mapping[int, int]
) -> bool:
    while type_ in over:
        type_ = over[type_]
    return any(
        column.type.oid in _NAMED_BY_OID or _names_objects(column.declared.oid, attributes, over)
        for column in attributes.get(type_, ())
        if not column.dropped
    )


# --- oids -------------------------------------------------------------------------------------------


class Oids:
    """The oids of a template's objects, each with that of its copy; built-in ones stay."""

    def __init__(self) -> None:
        """Begin with none."""
        self._new: dict[int, int] = {}

    def add(self, old: int, new: int, count: int) -> None:
        """Note that ``count`` oids from ``old`` on become those from ``new`` on."""
        self._new.update(zip(range(old, old + count), range(new, new + count), strict=True))

    def __getitem__(self, oid: int) -> int:
        """Return the new one; ``oid`` itself where it is no object of the template's."""
        return self._new.get(oid, oid)

    def all(self, oids: Sequence[int]) -> tuple[int, ...]:
        """Return each one's new one."""
        return tuple(self[oid] for oid in oids)

    def in_text(self, text: str) -> str:
        """Return a stored text that names objects by their new oids."""
        return _TOKEN.sub(self._token, text) if "::reg" in text or '"#' in text else text

    def _token(self, found: re.Match[str]) -> str:
        kind = found.lastgroup
        if kind is None:
            return found[0]
        return _NUMBER.sub(lambda number: str(self[int(number[0])]), found[0])

    def type(self, type_: SqlType) -> SqlType:
        """Return a type of a column."""
        return SqlType(self[type_.oid], type_.typmod)


def _is_temporary(item: Stored) -> bool:
    return isinstance(item, RelationDef) and item.persistence == "t"


def _made_in_order(item: Stored) -> int:
    match item:
        case CommentDef() | AclDef():
            return item.object_oid
        case (
            SchemaDef() | RelationDef() | TypeDef() | FunctionDef() | ExtensionDef()
            | ConfigurationDef() | DictionaryDef() | WrapperDef() | ServerDef() | MappingDef() | OperatorFamilyDef() | OperatorClassDef()
            | ConversionDef() | CollationDef()
        ):  # fmt: skip
            return item.oid
    raise AssertionError(f"no object of one database: {item}")


def _oids_of(item: Stored) -> Iterator[tuple[int, int]]:
    """Yield (first, count) of the oids that an object has for itself."""
    match item:
        case RelationDef():
            yield item.oid, row_array_oid(item.oid) - item.oid + 1
            yield from ((index.oid, 1) for index in item.every_index)
            yield from ((constraint.oid, 1) for constraint in item.constraints)
            yield from ((trigger.oid, 1) for trigger in item.triggers)
            yield from ((policy.oid, 1) for policy in item.policies)
            yield from ((one.oid, 1) for one in item.statistics)
        case TypeDef(kind="b"):
            pass  # the same in every database
        case TypeDef(kind="r"):
            yield item.oid, len(item.family)
        case TypeDef():
            parts = [item.oid, item.array_oid]
            parts += [item.relation_oid] if item.kind == "c" else []
            parts += [label.oid for label in spaced(item.labels)]
            parts += [check.oid for check in item.checks]
            yield from ((oid, 1) for oid in parts)
        case (
            SchemaDef() | FunctionDef() | ExtensionDef() | ConfigurationDef() | DictionaryDef() | WrapperDef()
            | ServerDef() | MappingDef() | OperatorFamilyDef() | OperatorClassDef() | ConversionDef()
            | CollationDef()
        ):  # fmt: skip
            if item.oid >= FIRST_USER_OID:  # not public
                yield item.oid, 1


# --- definitions ------------------------------------------------------------------------------------


def _renumbered(item: Stored, oids: Oids, version: Callable[[], int]) -> Stored:
    match item:
        case RelationDef():
            return _relation(item, oids, version())
        case TypeDef():
            return replace(
                item,
                oid=oids[item.oid],
                array_oid=oids[item.array_oid],
                schema_oid=oids[item.schema_oid],
                labels=tuple(replace(label, oid=oids[label.oid]) for label in spaced(item.labels)),
                base=oids[item.base],
                attributes=tuple(_column(attribute, oids) for attribute in item.attributes),
                relation_oid=oids[item.relation_oid],
                subtype_diff=oids[item.subtype_diff],
                collation=oids[item.collation],
                extension=oids[item.extension],
                default_sql=None if item.default_sql is None else oids.in_text(item.default_sql),
                checks=tuple(_constraint(check, oids) for check in item.checks),
            )
        case FunctionDef():
            return replace(
                item,
                oid=oids[item.oid],
                schema_oid=oids[item.schema_oid],
                types=oids.all(item.types),
                result=oids[item.result],
                defaults=tuple(oids.in_text(text) for text in item.defaults),
                body_sql=oids.in_text(item.body_sql),
                depends_on=oids.all(item.depends_on),
                extension=oids[item.extension],
                aggregate=None if item.aggregate is None else _aggregate(item.aggregate, oids),
            )
        case ExtensionDef():
            return replace(item, oid=oids[item.oid], schema_oid=oids[item.schema_oid])
        case ConfigurationDef():
            return replace(
                item,
                oid=oids[item.oid],
                schema_oid=oids[item.schema_oid],
                maps=tuple((type_, oids.all(asked)) for type_, asked in item.maps),
            )
        case DictionaryDef():
            return replace(
                item,
                oid=oids[item.oid],
                schema_oid=oids[item.schema_oid],
                extension=oids[item.extension],
            )
        case WrapperDef():
            return replace(item, oid=oids[item.oid])
        case ServerDef():
            return replace(item, oid=oids[item.oid], wrapper=oids[item.wrapper])
        case MappingDef():
            return replace(item, oid=oids[item.oid], server=oids[item.server])
        case OperatorFamilyDef():
            return replace(
                item,
                oid=oids[item.oid],
                schema_oid=oids[item.schema_oid],
                members=tuple(
                    replace(
                        one,
                        oid=oids[one.oid],
                        object=oids[one.object],
                        of_class=oids[one.of_class],
                        sort_family=oids[one.sort_family],
                    )
                    for one in item.members
                ),
            )
        case OperatorClassDef():
            return replace(
                item, oid=oids[item.oid], schema_oid=oids[item.schema_oid], family=oids[item.family]
            )
        case ConversionDef() | CollationDef():
            return replace(item, oid=oids[item.oid], schema_oid=oids[item.schema_oid])
        case SchemaDef():
            return replace(item, oid=oids[item.oid])
        case CommentDef(class_oid=class_oid) | AclDef(class_oid=class_oid) if class_oid == PG_LARGEOBJECT_OID:
            return item  # large objects keep their numbers
        case CommentDef():
            return replace(item, object_oid=oids[item.object_oid])
        case AclDef(class_oid=class_oid) if class_oid == PG_DEFAULT_ACL_OID:  # of a role, in a schema
            return replace(item, sub_id=oids[item.sub_id >> 8] << 8 | item.sub_id & 0xFF)
        case AclDef():
            return replace(item, object_oid=oids[item.object_oid])
    raise AssertionError(f"no object of one database: {item}")


def _aggregate(made: AggregateDef, oids: Oids) -> AggregateDef:
    functions = (
        "transition", "final", "combine", "serial", "deserial", "moving_transition", "moving_inverse", "moving_final",
    )  # fmt: skip
    changes: dict[str, Any] = {name: oids[getattr(made, name)] for name in functions}
    return replace(made, state=oids[made.state], moving_state=oids[made.moving_state], **changes)


def _relation(relation: RelationDef, oids: Oids, version: int) -> RelationDef:
    sequence = relation.sequence
    if sequence is not None:
        sequence = replace(sequence, owner_table=oids[sequence.owner_table])
    return replace(
        relation,
        oid=oids[relation.oid],
        schema_oid=oids[relation.schema_oid],
        columns=tuple(_column(column, oids) for column in relation.columns),
        indexes=tuple(_index(index, oids) for index in relation.indexes),
        unbuilt=tuple(_index(index, oids) for index in relation.unbuilt),
        constraints=tuple(_constraint(constraint, oids) for constraint in relation.constraints),
        triggers=tuple(_trigger(trigger, oids) for trigger in relation.triggers),
        policies=tuple(_policy(policy, oids) for policy in relation.policies),
        statistics=tuple(_statistics(one, oids) for one in relation.statistics),
        version=version,
        view_sql=oids.in_text(relation.view_sql),
        depends_on=tuple(sorted(oids.all(relation.depends_on))),
        source_oid=0,
        server=oids[relation.server],
        sequence=sequence,
        partition_key=None
        if relation.partition_key is None
        else _partition_key(relation.partition_key, oids),
        partition_of=oids[relation.partition_of],
    )


def _partition_key(key: PartitionKey, oids: Oids) -> PartitionKey:
    return replace(
        key,
        types=tuple(oids.type(type_) for type_ in key.types),
        expressions=tuple(oids.in_text(text) for text in key.expressions),
        own_classes=oids.all(key.own_classes),
        collations=oids.all(key.collations),
    )


def _column(column: ColumnDef, oids: Oids) -> ColumnDef:
    missing = column.missing_value
    if isinstance(missing, int) and column.type.oid in _NAMED_BY_OID:
        missing = oids[missing]
    return replace(
        column,
        type=oids.type(column.type),
        domain=oids[column.domain],
        collation=oids[column.collation],
        default_sql=None if column.default_sql is None else oids.in_text(column.default_sql),
        missing_value=missing,
    )


def _index(index: IndexDef, oids: Oids) -> IndexDef:
    return replace(
        index,
        oid=oids[index.oid],
        constraint_oid=oids[index.constraint_oid],
        parent=oids[index.parent],
        collations=oids.all(index.collations),
        expressions=tuple(oids.in_text(text) for text in index.expressions),
        where_sql=oids.in_text(index.where_sql),
    )


def _constraint(constraint: ConstraintDef, oids: Oids) -> ConstraintDef:
    foreign = constraint.foreign
    return replace(
        constraint,
        oid=oids[constraint.oid],
        index_oid=oids[constraint.index_oid],
        parent=oids[constraint.parent],
        check_sql=oids.in_text(constraint.check_sql),
        foreign=None if foreign is None else replace(foreign, table=oids[foreign.table]),
    )


def _trigger(trigger: TriggerDef, oids: Oids) -> TriggerDef:
    return replace(
        trigger,
        oid=oids[trigger.oid],
        function=oids[trigger.function],
        constraint=oids[trigger.constraint],
        from_table=oids[trigger.from_table],
        parent=oids[trigger.parent],
        when_sql=oids.in_text(trigger.when_sql),
    )


def _statistics(statistics: StatisticsDef, oids: Oids) -> StatisticsDef:
    return replace(
        statistics,
        oid=oids[statistics.oid],
        schema_oid=oids[statistics.schema_oid],
        expressions=tuple(oids.in_text(text) for text in statistics.expressions),
    )


def _policy(policy: PolicyDef, oids: Oids) -> PolicyDef:
    return replace(
        policy,
        oid=oids[policy.oid],
        using_sql=oids.in_text(policy.using_sql),
        check_sql=oids.in_text(policy.check_sql),
        depends_on=tuple(sorted(oids.all(policy.depends_on))),
    )
