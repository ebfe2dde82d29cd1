"""What stored objects refer to, by oid: the one place that knows, field by field.

    column a of table t   type 16400      DROP TYPE takes it along; where 16400 is not there, t cannot be read
    function f            body "#16410"

``MEANINGS`` says of every field of everything that is stored what it holds. A field without an entry fails at
import, so that nothing new is overlooked by what asks here: what a catalog lacks (``missing``), and with that
which objects can be read. Who owns an object, who may use it, and which source writes to a table are no
references: an object outlives them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from engine.catalog.storage.stored import CommentDef, Stored, row_array_oid, row_type_oid
from planner.catalog import (
    AclDef,
    AggregateDef,
    BorrowedView,
    ColumnDef,
    ConfigurationDef,
    ConstraintDef,
    DatabaseDef,
    DefaultsDef,
    DictionaryDef,
    EnumLabel,
    ExtensionDef,
    ForeignKeyDef,
    FunctionDef,
    IndexDef,
    PartitionBound,
    PartitionKey,
    RelationDef,
    RoleDef,
    SchemaDef,
    SequenceDef,
    SourceDef,
    TimelineDef,
    TypeDef,
)
from planner.catalog.acl_items import AclItem, Membership
from planner.catalog.collations import CollationDef
from planner.catalog.conversions import ConversionDef
from planner.catalog.foreign import MappingDef, ServerDef, WrapperDef
from planner.catalog.named_oids import needed_oids, used_oids
from planner.catalog.opclasses import FamilyMember, OperatorClassDef, OperatorFamilyDef
from planner.catalog.policy import PolicyDef
from planner.catalog.relation_kinds import ROW_TYPED
from planner.catalog.statistics import StatisticsDef
from planner.catalog.trigger import TriggerDef
from planner.types import SqlType
from planner.types.facts import FIRST_USER_OID


class Reference(NamedTuple):
    """``where`` (words: ``column a``, ``body``; "" for the object itself) names the object with the oid ``oid``."""

    where: str
    oid: int


_Found: TypeAlias = Iterator[Reference]
_Meaning: TypeAlias = Callable[[str, Any], _Found]
"""From the words for a part, and what a field of it holds, to what that refers to."""


def _nothing(where: str, value: Any) -> _Found:
    return iter(())


def _oid(where: str, value: int) -> _Found:
    if value >= FIRST_USER_OID:
        yield Reference(where, value)


def _oids(where: str, value: Iterable[int]) -> _Found:
    for oid in value:
        yield from _oid(where, oid)


def _text(where: str, value: str | None) -> _Found:
    yield from _oids(where, needed_oids(value))


def _texts(where: str, value: Iterable[str | None]) -> _Found:
    for text in value:
        yield from _text(where, text)


def _type(where: str, value: SqlType) -> _Found:
    return _oid(where, value.oid)


def _types(where: str, value: Iterable[SqlType]) -> _Found:
    for type_ in value:
        yield from _oid(where, type_.oid)


def _maps(where: str, value: Iterable[tuple[int, Iterable[int]]]) -> _Found:
    for _token, dictionaries in value:
        yield from _oids(where, dictionaries)


def _part(where: str, value: Any) -> _Found:
    if value is not None:
        yield from _of(where, value)


def _parts(where: str, value: Iterable[Any]) -> _Found:
    for part in value:
        yield from _of(_called(part) or where, part)


def _called(part: Any) -> str:
    word = _WORDS.get(type(part))
    return f"{word} {part.name}" if word else ""


_WORDS: Final[Mapping[type, str]] = {
    ColumnDef: "column", IndexDef: "index", ConstraintDef: "constraint", TriggerDef: "trigger", PolicyDef: "policy",
    StatisticsDef: "statistics object",
}  # fmt: skip


def _all(meaning: _Meaning, *names: str) -> dict[str, _Meaning]:
    return dict.fromkeys(names, meaning)


_PLACED: Final = {**_all(_nothing, "oid", "schema", "name", "owner"), "schema_oid": _oid}

MEANINGS: Final[Mapping[type, Mapping[str, _Meaning]]] = {
    SchemaDef: _all(_nothing, "oid", "name", "owner"),
    TimelineDef: _all(_nothing, "oid", "name"),
    DatabaseDef: _all(
        _nothing, "oid", "name", "owner", "is_template", "allow_connections", "connection_limit", "collate", "ctype"
    ),
    DefaultsDef: _all(_nothing, "database", "role", "settings"),
    SourceDef: {
        **_all(_nothing, "oid", "name", "kind", "owner", "options", "tables_from", "timeline", "paused", "created_us"),
        "tables": _oids,
    },
    RoleDef: _all(
        _nothing, "oid", "name", "superuser", "inherit", "create_role", "create_db", "can_login", "replication",
        "bypass_rls", "connection_limit", "verifier", "valid_until", "member_of",
    ),
    Membership: _all(_nothing, "role", "grantor", "admin"),
    CommentDef: _all(_nothing, "class_oid", "object_oid", "sub_id", "text"),
    AclDef: _all(_nothing, "class_oid", "object_oid", "sub_id", "items"),
    AclItem: _all(_nothing, "grantee", "grantor", "letters", "grantable"),
    ExtensionDef: {**_all(_nothing, "oid", "name", "version", "owner"), "schema_oid": _oid},
    ConfigurationDef: {**_PLACED, "parser": _nothing, "maps": _maps},
    DictionaryDef: {**_PLACED, **_all(_nothing, "options", "template"), "extension": _oid},
    WrapperDef: {**_all(_nothing, "oid", "name", "owner", "options"), "validator": _oid},
    ServerDef: {**_all(_nothing, "oid", "name", "owner", "type", "version", "options"), "wrapper": _oid},
    MappingDef: {**_all(_nothing, "oid", "owner", "options"), "server": _oid},
    OperatorFamilyDef: {**_PLACED, "method": _nothing, "members": _parts},
    OperatorClassDef: {**_PLACED, **_all(_nothing, "method", "default"), **_all(_oid, "family", "input_type", "key_type")},
    ConversionDef: {**_PLACED, **_all(_nothing, "source", "target", "function", "default")},
    CollationDef: {**_PLACED, **_all(_nothing, "encoding", "collate", "ctype", "version")},
    FamilyMember: {
        # a family outlives its classes, whose members leave it
        **_all(_nothing, "oid", "function", "number", "of_class"), **_all(_oid, "left", "right", "object", "sort_family"),
    },
    TypeDef: {
        **_PLACED,
        **_all(
            _nothing, "array_oid", "array_name", "kind", "labels", "base_typmod", "dims", "not_null", "relation_oid",
            "default_shown", "default_inherited", "multirange_name", "multirange_array_name", "constructors",
        ),
        "base": _oid, "collation": _oid, "default_sql": _text, "checks": _parts, "attributes": _parts, "subtype_diff": _oid,
        "extension": _oid,
    },
    EnumLabel: _all(_nothing, "oid", "rank", "label"),
    FunctionDef: {
        **_PLACED,
        **_all(
            _nothing, "modes", "names", "returns_set", "volatility", "strict", "parallel", "leakproof", "cost", "rows",
            "source", "returns", "returned", "path", "kind", "definer", "settings", "internal", "language",
        ),
        "types": _oids, "result": _oid, "defaults": _texts, "body_sql": _text, "depends_on": _oids, "extension": _oid,
        "aggregate": _part,
    },
    AggregateDef: {
        **_all(
            _nothing, "kind", "direct", "state_space", "initial", "final_extra", "final_modify", "moving_state_space",
            "moving_initial", "moving_final_extra", "moving_final_modify", "sort_operator",
        ),
        **_all(
            _oid, "transition", "state", "final", "combine", "serial", "deserial", "moving_transition", "moving_inverse",
            "moving_state", "moving_final",
        ),
    },
    RelationDef: {
        **_PLACED,
        **_all(
            _nothing, "kind", "row_security", "force_row_security", "keys_off", "version", "virtual", "row_oids", "view_path",
            "persistence", "options", "populated", "source_oid", "replica_identity", "foreign_options",
        ),
        **_all(_parts, "columns", "indexes", "unbuilt", "constraints", "triggers", "policies", "statistics"),
        **_all(_oid, "table_oid", "partition_of", "of_type", "server"),
        "view_sql": _text, "depends_on": _oids, "sequence": _part, "partition_key": _part, "bound": _part,
    },
    ColumnDef: {
        **_all(
            _nothing, "attnum", "name", "not_null", "dropped", "missing_value", "storage", "compression",
            "statistics", "options", "identity", "generated", "hidden", "dims", "foreign_options",
        ),
        "type": _type, "collation": _oid, "default_sql": _text, "domain": _oid,
    },
    IndexDef: {
        **_all(
            _nothing, "oid", "name", "attnums", "unique", "primary", "method", "nulls_not_distinct", "descending",
            "nulls_first", "include", "constraint_oid", "deferrable", "written", "key_names", "opclasses",
            "options", "valid", "statistics", "clustered", "replica_identity", "guard",
        ),
        "expressions": _texts, "collations": _oids, "where_sql": _text, "parent": _oid,
    },
    ForeignKeyDef: {
        **_all(
            _nothing, "attnums", "match", "on_update", "on_delete", "delete_attnums", "pf_operators", "pp_operators",
            "ff_operators",
        ),
        "table": _oid,
    },
    ConstraintDef: {
        **_all(
            _nothing, "oid", "name", "kind", "attnums", "deferrable", "deferred", "no_inherit", "operators", "validated",
            "parent",
        ),
        "index_oid": _oid, "check_sql": _text, "foreign": _part,
    },
    TriggerDef: {
        **_all(
            _nothing, "oid", "name", "timing", "row", "events", "attnums", "args", "enabled", "old_table", "new_table",
        ),
        **_all(_oid, "function", "constraint", "from_table", "parent"), "when_sql": _text,
    },
    PolicyDef: {
        **_all(_nothing, "oid", "name", "command", "permissive", "roles"),
        **_all(_text, "using_sql", "check_sql"), "depends_on": _oids,
    },
    StatisticsDef: {
        **_all(_nothing, "oid", "name", "owner", "attnums", "kinds", "target"), "schema_oid": _oid, "expressions": _texts,
    },
    SequenceDef: {
        **_all(
            _nothing, "type_oid", "start", "increment", "minimum", "maximum", "cache", "cycle", "generation", "restart",
            "owner_attnum", "internal",
        ),
        "owner_table": _oid,
    },
    PartitionKey: {
        **_all(_nothing, "strategy", "attnums", "opclasses"), "expressions": _texts, "types": _types,
        **_all(_oids, "collations", "own_classes"),
    },
    PartitionBound: {
        **_all(_nothing, "strategy", "infinite", "upper_infinite", "modulus", "remainder"),
        **_all(_texts, "values", "upper"),
    },
}  # fmt: skip


_BEYOND: Final[Mapping[type, frozenset[str]]] = {BorrowedView: frozenset({"fits"})}
"""What a class that is another's with more in it has beside: fields that refer to nothing."""


def _asked() -> Mapping[type, tuple[tuple[str, _Meaning], ...]]:
    """Return the fields that may refer to anything. Raises TypeError where a field, or a class, has no entry."""
    asked: dict[type, tuple[tuple[str, _Meaning], ...]] = {}
    for made, meanings in MEANINGS.items():
        if not is_dataclass(made):
            raise AssertionError(f"{made} is no dataclass")
        names = {field.name for field in fields(made)}
        if names != meanings.keys():
            raise TypeError(f"{made.__name__}: {sorted(names ^ meanings.keys())} in no or in two places")
        asked[made] = tuple((name, meaning) for name, meaning in meanings.items() if meaning is not _nothing)
        for narrower in made.__subclasses__():
            if getattr(sys.modules[narrower.__module__], narrower.__name__) is not narrower:
                continue  # what a class with slots was made of
            beyond = {field.name for field in fields(narrower)} - names
            if beyond != _BEYOND.get(narrower, frozenset()):
                raise TypeError(f"{narrower.__name__}: nothing says what {sorted(beyond)} refer to")
            asked[narrower] = asked[made]
    left = set(Stored.__args__) - MEANINGS.keys()
    if left:
        raise TypeError(f"stored, but nothing says what they refer to: {left}")
    return asked


_ASKED: Final = _asked()


def _of(where: str, part: Any) -> _Found:
    if isinstance(part, ColumnDef) and part.dropped:
        return  # its type may have gone with it
    for name, meaning in _ASKED[type(part)]:
        value = getattr(part, name)
        if value:
            yield from meaning(where, value)


def references(item: Stored) -> Iterator[Reference]:
    """Yield what an object refers to, built-in objects left out; itself, too, where a part of it names another."""
    return _of("", item)


def named(item: Stored) -> frozenset[int]:
    """Return the oids that are in an object: what it refers to, what its texts name, constants included, what
    a comment or a list of rights is about; its schema apart, and what of a relation names itself.

    More may be in a text than hangs on it: a number within a constant of regclass, whatever it stands for.
    """
    if isinstance(item, CommentDef | AclDef):
        return frozenset((item.object_oid,))
    found = {reference.oid for reference in references(item)}
    found.discard(getattr(item, "schema_oid", 0))
    for _where, text in stored_texts(item):
        found |= used_oids(text)
        if "::regclass" in text:
            found.update(map(int, _OID.findall(text)))
    if isinstance(item, RelationDef):
        found.difference_update(identities(item))
    return frozenset(found)


_OID: Final = re.compile(r"(?<!\d)\d{1,10}(?!\d)")


def identities(item: Stored) -> Iterator[int]:
    """Yield the oids by which others refer to an object: its own, and those of what comes with it."""
    match item:
        case RelationDef():
            yield item.oid
            if item.kind in ROW_TYPED:
                yield from (row_type_oid(item.oid), row_array_oid(item.oid))
            yield from (index.oid for index in item.every_index)
            yield from (constraint.oid for constraint in item.constraints)
            yield from (trigger.oid for trigger in item.triggers)
            yield from (policy.oid for policy in item.policies)
            yield from (statistics.oid for statistics in item.statistics)
        case TypeDef():
            yield from item.family
            if item.relation_oid:
                yield item.relation_oid
            yield from (check.oid for check in item.checks)
        case CommentDef() | AclDef() | DefaultsDef():
            pass
        case _:
            yield item.oid


def missing(items: Iterable[Stored]) -> Iterator[tuple[Stored, Reference]]:
    """Yield the objects of one catalog that refer to what is not in it, each with what that is."""
    items = tuple(items)
    there = {oid for item in items for oid in identities(item)}
    for item in items:
        for reference in references(item):
            if reference.oid not in there:
                yield item, reference


def stored_texts(item: Stored) -> Iterator[tuple[str, str]]:
    """Yield the texts of SQL that an object is made of, each with the words for its part."""
    return _texts_of("", item)


def _texts_of(where: str, part: Any) -> Iterator[tuple[str, str]]:
    if isinstance(part, PartitionBound) or (isinstance(part, ColumnDef) and part.dropped):
        return  # values of a bound are texts of theirs
    for name, meaning in _ASKED[type(part)]:
        value = getattr(part, name)
        if not value:
            continue
        if meaning is _text:
            yield where, value
        elif meaning is _texts:
            yield from ((where, text) for text in value if text)
        elif meaning is _part:
            yield from _texts_of(where, value)
        elif meaning is _parts:
            for one in value:
                yield from _texts_of(_called(one) or where, one)
