"""Catalog rows that cannot be read, fenced off: a server starts without them, and what does not need them serves.

    row of type d            bytes of no known form ─────────┐
    row of domain e over d   refers to what is not there     ├─> a Fence each, and a stand-in in the catalog
    row of table t(c e)      depends on domain e ────────────┘

A stand-in has the oid and, as far as they can be told, the name, schema and owner of what was there, and
nothing else: it can be found and dropped. Every other statement that names it is XX001 (``guard.Guarded``),
and it is never stored (``CatalogView.change``), but for rights, comments and settings, which GRANT, COMMENT
and ALTER … SET write anew.

What depends on a fenced object is fenced with it; a table with a fenced partition, too, since it would have
rows that are missing. Of an object whose row tells nothing at all it is not known what it refers to: foreign
keys of such a table are not looked at, and where it may be a partition, all partitioned tables of its
database are fenced. A table whose source cannot be read is read, and not written to.

Closed: the rights on an object whose list cannot be read are its owner's; a role that cannot be read may nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import msgspec

from engine.catalog.references import identities, references
from engine.catalog.storage.initial import initial_roles
from engine.catalog.storage.stored import SUPERUSER_OID, CommentDef, Stored, StoredKey, key_of
from planner.base.errors import SqlError
from planner.catalog import (
    DEFAULT_TIMELINE,
    AclDef,
    AggregateDef,
    ConfigurationDef,
    DatabaseDef,
    DefaultsDef,
    DictionaryDef,
    ExtensionDef,
    FunctionDef,
    RelationDef,
    RoleDef,
    SchemaDef,
    SequenceDef,
    SourceDef,
    TimelineDef,
    TypeDef,
)
from planner.catalog.collations import CollationDef
from planner.catalog.conversions import ConversionDef
from planner.catalog.foreign import MappingDef, ServerDef, WrapperDef
from planner.catalog.opclasses import OperatorClassDef, OperatorFamilyDef
from planner.catalog.relation_kinds import STORING
from planner.facts import INT8, PUBLIC_OID, TEXT, facts
from planner.types.facts import FIRST_USER_OID

log = logging.getLogger("holdfast")

TEXTCAT: Final = 1258
SIMPLE_TEMPLATE: Final = 3727
REPLACEABLE: Final = (AclDef, CommentDef, DefaultsDef)
"""What a statement may write anew over what cannot be read: nothing but itself is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Why an object cannot be read. ``key``: as its database's catalog has it; ``what``: words for it;
    ``cause``: what it depends on.

    ``object``: the stand-in. ``nothing_known``: not even to what it belonged.
    """

    key: StoredKey
    what: str
    reason: str
    cause: str = ""
    object: Stored
    nothing_known: bool = False

    @property
    def detail(self) -> str:
        """The reason as a sentence."""
        return f"{self.reason[:1].upper()}{self.reason[1:]}."

    @property
    def hint(self) -> str:
        """What can be done about it."""
        return "It can be dropped, or restored from a backup; a later version of the server may be able to read it."


class Unread(Exception):
    """A row that cannot be read; ``item`` is what could be read of it, if that is an object at all."""

    def __init__(self, reason: str, item: Stored | None = None) -> None:
        """Say why."""
        super().__init__(reason)
        self.reason = reason
        self.item = item


def fence_of_row(key: StoredKey, body: bytes, unread: Unread) -> Fence | None:
    """Return the fence around an object whose row cannot be read, ``key`` as its database's catalog has it;
    None for a kind that is not known.
    """
    made = stand_in(key, body, unread.item)
    if made is None:
        return None
    known = unread.item is not None or bool(_salvage(body))
    reason = unread.reason if known else f"{NOTHING_KNOWN} can be told: {unread.reason}"
    return Fence(key=key, what=words(made), reason=reason, object=made, nothing_known=not known)


def fence_of_item(item: Stored, reason: str) -> Fence:
    """Return the fence around an object whose row can be read, and must not be believed."""
    return Fence(key=key_of(item), what=words(item), reason=reason, object=_stripped(item))


# --- what is left of a row --------------------------------------------------------------------------

_Facts = Mapping[str, Any]
_NAMES: Final = ("name", "schema", "kind", "persistence")
_NUMBERS: Final = ("schema_oid", "owner", "partition_of", "method")


def _salvage(body: bytes) -> _Facts:
    """Return what can be told of an object's fields from a body that cannot be read as a whole."""
    try:
        found = msgspec.msgpack.decode(body[1:])
        if isinstance(found, dict):
            return found
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass
    facts: dict[str, Any] = {}
    for name in (*_NAMES, *_NUMBERS):
        key = bytes([0xA0 + len(name)]) + name.encode()
        at = body.find(key)
        if at >= 0:
            value = _value_at(body, at + len(key))
            if isinstance(value, int if name in _NUMBERS else str):
                facts[name] = value
    return facts


def _value_at(body: bytes, at: int) -> Any:
    """Return the number or text that stands at a place, None for anything else."""
    head = body[at : at + 1]
    if not head:
        return None
    first = head[0]
    size = 1 + (first & 0x1F) if 0xA0 <= first < 0xC0 else 0
    size = size or {0xD9: 2 + (body[at + 1] if at + 1 < len(body) else 0), 0xCC: 2, 0xCD: 3, 0xCE: 5}.get(
        first, 1
    )
    try:
        return msgspec.msgpack.decode(body[at : at + size])
    except (msgspec.DecodeError, ValueError):
        return None


def _text(facts: _Facts, name: str, default: str) -> str:
    value = facts.get(name)
    return value if isinstance(value, str) and value and "\0" not in value else default


def _number(facts: _Facts, name: str, default: int) -> int:
    value = facts.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


# --- stand-ins --------------------------------------------------------------------------------------


def _place(kind: str, oid: int, facts: _Facts) -> dict[str, Any]:
    return {
        "oid": oid,
        "name": _text(facts, "name", f"unreadable_{kind.replace(' ', '_')}_{oid}"),
        "schema": _text(facts, "schema", "public"),
        "schema_oid": _number(facts, "schema_oid", PUBLIC_OID),
        "owner": _number(facts, "owner", SUPERUSER_OID),
    }


def _named(kind: str, oid: int, facts: _Facts) -> dict[str, Any]:
    place = _place(kind, oid, facts)
    return {"oid": oid, "name": place["name"], "owner": place["owner"]}


def _relation(oid: int, facts: _Facts) -> RelationDef:
    kind: Any = facts.get("kind")
    kind = kind if kind in ("v", "m", "S", "f") else "r"
    persistence: Any = facts.get("persistence")
    options = facts.get("options")
    below = _number(facts, "partition_of", 0)
    return RelationDef(
        **_place("relation", oid, facts), kind=kind,
        persistence=persistence if persistence in ("p", "t", "u") else "p",
        view_sql="SELECT" if kind in ("v", "m") else "",
        options=options if kind in ("r", "m") and isinstance(options, dict) else {}, partition_of=below,
        sequence=SequenceDef(type_oid=INT8, start=1, increment=1, minimum=1, maximum=2**63 - 1) if kind == "S" else None,
    )  # fmt: skip


def _type(oid: int, facts: _Facts) -> TypeDef:
    place = _place("type", oid, facts)
    kind: Any = "e" if facts.get("kind") == "e" else "d"
    array = _number(facts, "array_oid", oid + 1)
    return TypeDef(
        **place, kind=kind, array_oid=array, array_name=_text(facts, "array_name", f"_{place['name']}"),
        base=0 if kind == "e" else TEXT, extension=_number(facts, "extension", 0),
    )  # fmt: skip


def _function(oid: int, facts: _Facts) -> FunctionDef:
    kind: Any = facts.get("kind")
    kind = kind if kind in ("f", "p", "a") else "f"
    parts = [
        tuple(found) for part in ("modes", "names", "types") if isinstance(found := facts.get(part), Sequence)
    ]
    if len(parts) != 3 or len({len(part) for part in parts}) != 1:
        parts = [(), (), ()]
    return FunctionDef(
        **_place("function", oid, facts), kind=kind, modes=parts[0], names=parts[1], types=parts[2], result=TEXT,
        source="SELECT NULL", extension=_number(facts, "extension", 0),
        aggregate=AggregateDef(transition=TEXTCAT, state=TEXT) if kind == "a" else None,
    )  # fmt: skip


def _role(oid: int, facts: _Facts) -> RoleDef:
    if oid == SUPERUSER_OID:
        made = initial_roles()[0]
        if not isinstance(made, RoleDef):
            raise AssertionError(f"the first of the initial roles is {type(made).__name__}")
        return made  # without its password: where one is asked for, nobody becomes it
    named = _named("role", oid, facts)
    return RoleDef(oid=oid, name=named["name"])


_MAKERS: Final[Mapping[str, Callable[[int, int, _Facts], Stored]]] = {
    "relation": lambda oid, _sub, facts: _relation(oid, facts),
    "type": lambda oid, _sub, facts: _type(oid, facts),
    "function": lambda oid, _sub, facts: _function(oid, facts),
    "role": lambda oid, _sub, facts: _role(oid, facts),
    "schema": lambda oid, _sub, facts: SchemaDef(**_named("schema", oid, facts)),
    "database": lambda oid, _sub, facts: DatabaseDef(**_named("database", oid, facts)),
    "timeline": lambda oid, _sub, facts: TimelineDef(oid=oid, name=_named("timeline", oid, facts)["name"]),
    "source": lambda oid, _sub, facts: SourceDef(**_named("source", oid, facts), kind="", paused=True),
    "extension": lambda oid, _sub, facts: ExtensionDef(
        **_named("extension", oid, facts), schema_oid=_number(facts, "schema_oid", PUBLIC_OID), version=""
    ),
    "text configuration": lambda oid, _sub, facts: ConfigurationDef(**_place("text configuration", oid, facts)),
    "text dictionary": lambda oid, _sub, facts: DictionaryDef(
        **_place("text dictionary", oid, facts), template=SIMPLE_TEMPLATE, extension=_number(facts, "extension", 0)
    ),
    "foreign wrapper": lambda oid, _sub, facts: WrapperDef(**_named("foreign-data wrapper", oid, facts)),
    "foreign server": lambda oid, _sub, facts: ServerDef(
        **_named("server", oid, facts), wrapper=_number(facts, "wrapper", 0)
    ),
    "user mapping": lambda oid, _sub, facts: MappingDef(
        oid=oid, owner=_number(facts, "owner", SUPERUSER_OID), server=_number(facts, "server", 0)
    ),
    "operator family": lambda oid, _sub, facts: OperatorFamilyDef(
        **_place("operator family", oid, facts), method=_number(facts, "method", 0)
    ),
    "operator class": lambda oid, _sub, facts: OperatorClassDef(
        **_place("operator class", oid, facts), method=_number(facts, "method", 0), family=_number(facts, "family", 0),
        input_type=TEXT,
    ),
    "conversion": lambda oid, _sub, facts: ConversionDef(
        **_place("conversion", oid, facts), source=_number(facts, "source", 0), target=_number(facts, "target", 0),
        function=_number(facts, "function", 0),
    ),
    "collation": lambda oid, _sub, facts: CollationDef(**_place("collation", oid, facts), collate="C", ctype="C"),
    "defaults": lambda oid, sub, _facts: DefaultsDef(database=oid, role=sub),
    "comment": lambda oid, sub, facts: CommentDef(class_oid=facts["class"], object_oid=oid, sub_id=sub, text=""),
    "acl": lambda oid, sub, facts: AclDef(class_oid=facts["class"], object_oid=oid, sub_id=sub, items=()),
}  # fmt: skip
"""From the oid, the sub id and what is known of its fields to the stand-in, by kind."""

_WORDS: Final[Mapping[type, str]] = {
    TypeDef: "type", FunctionDef: "function", RoleDef: "role", SchemaDef: "schema", DatabaseDef: "database",
    TimelineDef: "timeline", SourceDef: "source", ExtensionDef: "extension",
    ConfigurationDef: "text search configuration", DictionaryDef: "text search dictionary",
    OperatorFamilyDef: "operator family", OperatorClassDef: "operator class",
    WrapperDef: "foreign-data wrapper", ServerDef: "server", ConversionDef: "conversion", CollationDef: "collation",
}  # fmt: skip
_RELATIONS: Final = {"v": "view", "m": "materialized view", "S": "sequence", "f": "foreign table"}


def words(item: Stored) -> str:
    """Return how messages call an object, a stand-in or another one."""
    match item:
        case RelationDef():
            return f"{_RELATIONS.get(item.kind, 'table')} {item.schema}.{item.name}"
        case (
            TypeDef()
            | FunctionDef()
            | ConfigurationDef()
            | DictionaryDef()
            | OperatorFamilyDef()
            | OperatorClassDef()
            | ConversionDef()
            | CollationDef()
        ):
            return f"{_WORDS[type(item)]} {item.schema}.{item.name}"
        case CommentDef():
            return f"comment on object {item.object_oid} of catalog {item.class_oid}, part {item.sub_id}"
        case AclDef():
            return f"rights on object {item.object_oid} of catalog {item.class_oid}, part {item.sub_id}"
        case MappingDef():
            return f"user mapping for role {item.owner} on server {item.server}"
        case DefaultsDef():
            return f"settings of role {item.role} in database {item.database}"
        case _:
            return f"{_WORDS[type(item)]} {item.name}"


def stand_in(key: StoredKey, body: bytes, item: Stored | None) -> Stored | None:
    """Return what stands in the catalog for a row that cannot be read, None for one of a kind that is not known."""
    kind, oid, sub = key
    base, _, class_oid = kind.partition("/")
    make = _MAKERS.get(base)
    if make is None or oid < 0 or (base in ("comment", "acl")) != class_oid.isdigit():
        return None
    facts: dict[str, Any] = dict(
        _salvage(body) if item is None else msgspec.structs.asdict(item) if False else _fields(item)
    )
    if class_oid:
        facts["class"] = int(class_oid)
    return make(oid, sub, facts)


def _fields(item: Stored) -> _Facts:
    return {field.name: getattr(item, field.name) for field in fields(item)}


# --- what depends on what cannot be read ------------------------------------------------------------


NOTHING_KNOWN: Final = "nothing of its row"


def fence_off(
    items: Mapping[StoredKey, Stored], unread: Iterable[Fence]
) -> tuple[dict[StoredKey, Stored], dict[StoredKey, Fence]]:
    """Return the objects of one database's catalog, shared ones included, with stand-ins for all that cannot
    be read, and why.

    ``unread``: those whose rows cannot be read, whose stand-ins are not among ``items``.
    """
    fences = {fence.key: fence for fence in unread}
    found = {**items, **{key: fence.object for key, fence in fences.items()}}
    there = {oid: key for key, item in found.items() for oid in identities(item)}
    needs: dict[StoredKey, list[StoredKey]] = {}  # from what is needed to who needs it
    for key, item in items.items():
        lacks = ""
        for reference in references(item):
            needed = there.get(reference.oid)
            if needed is not None:
                needs.setdefault(needed, []).append(key)
            else:
                place = f"its {reference.where}" if reference.where else "it"
                lacks = lacks or f"{place} refers to object {reference.oid}, which is not there"
        if isinstance(item, RelationDef):
            lacks = lacks or _lacks_timeline(item, found, needs)
            if item.source_oid and item.source_oid not in there:
                lacks = lacks or f"its source {item.source_oid} is not there"
        if isinstance(item, TypeDef) and item.kind == "b":
            lacks = lacks or _lacks_extension(item, found, needs)
        if lacks:
            fences[key] = Fence(key=key, what=words(item), reason=lacks, object=_stripped(item))
    _add_partitions(found, fences, needs)
    left = list(fences)
    for key in left:  # grows
        for other in needs.get(key, ()):
            if other not in fences:
                cause = fences[key].what
                reason = f"it depends on {cause}, which cannot be read"
                made = _stripped(items[other])
                fences[other] = Fence(key=other, what=words(made), reason=reason, cause=cause, object=made)
                left.append(other)
    for key, fence in fences.items():
        found[key] = _fitted(fence.object, there, found)
        fences[key] = replace(fence, object=found[key])
    return found, fences


def _lacks_timeline(
    item: RelationDef, found: Mapping[StoredKey, Stored], needs: dict[StoredKey, list[StoredKey]]
) -> str:
    """Note that a table needs its timeline, by name; return what it lacks where there is none of the name."""
    if item.kind not in STORING or item.timeline == DEFAULT_TIMELINE:
        return ""
    for key, other in found.items():
        if isinstance(other, TimelineDef) and other.name == item.timeline:
            needs.setdefault(key, []).append(key_of(item))
            return ""
    return f"its timeline {item.timeline} is not there"


def _lacks_extension(
    item: TypeDef, found: Mapping[StoredKey, Stored], needs: dict[StoredKey, list[StoredKey]]
) -> str:
    """Note that a type of an extension needs it; return what it lacks where that is not there."""
    names = {one.name for one in facts().extensions.values() if any(t.oid == item.oid for t in one.types)}
    for key, other in found.items():
        if isinstance(other, ExtensionDef) and other.name in names:
            needs.setdefault(key, []).append(key_of(item))
            return ""
    return "its extension is not there"


def _add_partitions(
    found: Mapping[StoredKey, Stored],
    fences: Mapping[StoredKey, Fence],
    needs: dict[StoredKey, list[StoredKey]],
) -> None:
    """A partitioned table needs its partitions: those that say so of themselves, and those that may be its own."""
    for key, item in found.items():
        if isinstance(item, RelationDef) and item.partition_of:
            needs.setdefault(key, []).append(("relation", item.partition_of, 0))
    tables = [key for key, item in found.items() if isinstance(item, RelationDef) and item.kind == "p"]
    for key, fence in fences.items():
        if fence.nothing_known and isinstance(fence.object, RelationDef):
            needs.setdefault(key, []).extend(tables)


def _fitted(made: Stored, there: Mapping[int, StoredKey], found: Mapping[StoredKey, Stored]) -> Stored:
    """Return a stand-in that names nothing that is not there; of a source it has the tables that say they are
    its own.
    """
    match made:
        case RelationDef() if made.partition_of not in there:
            return replace(made, partition_of=0)
        case SourceDef():
            own = [r.oid for r in found.values() if isinstance(r, RelationDef) and r.source_oid == made.oid]
            return replace(made, tables=tuple(own))
        case FunctionDef():
            types = tuple(oid if oid < FIRST_USER_OID or oid in there else TEXT for oid in made.types)
            extension = made.extension if made.extension in there else 0
            return replace(made, types=types, extension=extension)
        case TypeDef() | DictionaryDef() if made.extension not in there:
            return replace(made, extension=0)
        case _:
            return made


def _stripped(item: Stored) -> Stored:
    """Return the stand-in of an object whose own row can be read."""
    made = stand_in(key_of(item), b"", item)
    if made is None:
        raise AssertionError(f"{key_of(item)} has no stand-in")
    return made


NO_FENCES: Final[Mapping[StoredKey, Fence]] = {}


def standing(fences: Mapping[StoredKey, Fence], items: Mapping[StoredKey, Stored]) -> list[Fence]:
    """Return the fences around what is still as it was: neither dropped nor written anew."""
    return [fence for key, fence in fences.items() if items.get(key) is fence.object]


def fenced_oids(fences: Mapping[StoredKey, Fence], items: Mapping[StoredKey, Stored]) -> Mapping[int, Fence]:
    """Return those fences by the oids that name what is behind them."""
    if not fences:
        return {}
    return {oid: fence for fence in standing(fences, items) for oid in identities(fence.object)}


def refusal(fence: Fence) -> SqlError:
    """Return XX001, which names what cannot be read."""
    return SqlError("XX001", f"{fence.what} cannot be read", detail=fence.detail, hint=fence.hint)


def refuse_replacement(
    fences: Mapping[StoredKey, Fence], items: Mapping[StoredKey, Stored], item: Stored
) -> None:
    """Raise XX001 where ``item`` would be stored in the place of what cannot be read, and is nothing that is
    said anew as a whole.
    """
    key = key_of(item)
    fence = fences.get(key)
    if fence is not None and items.get(key) is fence.object and not isinstance(item, REPLACEABLE):
        raise refusal(fence)


def log_fences(database: str, fences: Iterable[Fence]) -> None:
    """Say what has been fenced off. ``database``: of which one, "" for what all share."""
    place = f"database {database}: " if database else ""
    for fence in fences:
        log.error("%s%s cannot be read: %s", place, fence.what, fence.reason)
