"""A changed catalog is what one made of all its objects is, and what it costs depends on the change alone."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalog import indexes, type_owners
from engine.catalog.graph import Graph, graph_of, naming
from engine.catalog.references import identities
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import PG_CLASS_OID, CommentDef, Stored, key_of
from engine.definitions.table.row_readers import readers_of
from planner.catalog import (
    AclDef,
    ColumnDef,
    ConfigurationDef,
    ConstraintDef,
    DatabaseDef,
    DictionaryDef,
    EnumLabel,
    ExtensionDef,
    FunctionDef,
    IndexDef,
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
from planner.facts import INT4, INT8, PUBLIC_OID
from planner.types import SqlType
from txn.base.slices import at_once

FIRST: Final = 5_000_000  # oids of this module's own: types are known by oid in the whole process
ID: Final = ColumnDef(attnum=1, name="id", type=SqlType(INT4))


def _place(oid: int, name: str) -> Any:
    return {"oid": oid, "schema_oid": PUBLIC_OID, "schema": "public", "name": name}


def _type(oid: int, name: str, **more: Any) -> TypeDef:
    return TypeDef(**_place(oid, name), array_oid=oid + 1, array_name=f"_{name}", **more)


def _table(oid: int, name: str, version: int) -> RelationDef:
    """A table with an index, which takes another name from version to version."""
    return RelationDef(
        **_place(oid, name), kind="r", columns=(ID,), version=version,
        indexes=(IndexDef(oid=oid + 5, name=f"{name}_i{version % 2}", attnums=(1,), unique=True),),
        constraints=(ConstraintDef(oid=oid + 6, name="c", kind="c", attnums=(1,)),) if version % 2 else (),
    )  # fmt: skip


def _sequence(oid: int, name: str, version: int) -> RelationDef:
    sequence = SequenceDef(
        type_oid=INT8, start=1, increment=1, minimum=1, maximum=9, owner_table=oid - 20 + version % 3
    )
    return RelationDef(**_place(oid, name), kind="S", columns=(), version=version, sequence=sequence)


MAKERS: Final[dict[str, Callable[[int, str, int], Stored]]] = {
    "table": _table,
    "sequence": _sequence,
    "view": lambda oid, name, v: RelationDef(**_place(oid, name), kind="v", columns=(ID,), depends_on=(oid - 40, oid + v) if v else ()),
    "composite": lambda oid, name, _v: _type(oid, name, kind="c", attributes=(ID,), relation_oid=oid + 2),
    "enum": lambda oid, name, v: _type(oid, name, kind="e", labels=(EnumLabel(oid=oid + 3, rank=1, label=f"l{v}"),)),
    "domain": lambda oid, name, _v: _type(oid, name, kind="d", base=INT4),
    "range": lambda oid, name, v: _type(
        oid, name, kind="r", base=INT4, multirange_name=f"m{name}", multirange_array_name=f"_m{name}",
        constructors=("old" if v % 2 else name, f"m{name}"),
    ),
    "function": lambda oid, name, v: FunctionDef(**_place(oid, name if name[10:] else "f"), modes=(), names=(), types=(), result=INT4,
        body_sql=f"SELECT '{FIRST + v}'::regclass, \"#{FIRST + 100 + v}\"()" if v else ""),
    "configuration": lambda oid, name, _v: ConfigurationDef(**_place(oid, name)),
    "dictionary": lambda oid, name, _v: DictionaryDef(**_place(oid, name), template=1),
    "conversion": lambda oid, name, v: ConversionDef(**_place(oid, name), source=8, target=6, function=4374, default=bool(v % 2)),
    "collation": lambda oid, name, v: CollationDef(**_place(oid, name), encoding=-1 if v % 2 else 6, collate="C", ctype="POSIX", version=str(v) if v % 3 else None),
    "schema": lambda oid, name, _v: SchemaDef(oid=oid, name=name),
    "role": lambda oid, name, v: RoleDef(oid=oid, name=name, can_login=bool(v % 2)),
    "timeline": lambda oid, name, _v: TimelineDef(oid=oid, name=name),
    "source": lambda oid, name, _v: SourceDef(oid=oid, name=name, kind="k", owner=10),
    "database": lambda oid, name, _v: DatabaseDef(oid=oid, name=name, owner=10),
    "extension": lambda oid, name, _v: ExtensionDef(oid=oid, name=name, schema_oid=PUBLIC_OID, version="1"),
    "comment": lambda oid, name, _v: CommentDef(class_oid=PG_CLASS_OID, object_oid=oid, sub_id=0, text=name),
    "rights": lambda oid, _name, _v: AclDef(class_oid=PG_CLASS_OID, object_oid=oid, sub_id=0, items=()),
}  # fmt: skip
"""An object of each kind from its oid, its name and a number that decides the rest. Functions with short names have all the same."""

KINDS: Final = tuple(MAKERS)


def _made(kind: str, number: int, name: str, version: int) -> Stored:
    return MAKERS[kind](FIRST + (number * len(KINDS) + KINDS.index(kind)) * 20, f"{kind}_{name}", version)


def _asked(catalog: CatalogSnapshot) -> CatalogSnapshot:
    """Have the catalog make all that it makes when first asked."""
    catalog.constraint_by_oid(0)
    catalog.foreign_keys_to(0)
    catalog.sequences_of(0)
    catalog.with_made_types()
    catalog.partitions_of(0)
    return catalog


def _indexes(catalog: CatalogSnapshot) -> dict[str, Any]:
    """Return all dictionaries that a catalog finds objects by, whatever they are."""
    found = {
        name: value
        for name in CatalogSnapshot.__slots__
        if name not in ("__weakref__", "_shapes", "added", "derived", "rights", "items")
        and isinstance(value := getattr(catalog, name), dict)
    }
    found["enums"] = catalog.codec_types.enums
    return {name: {key: item for key, item in index.items() if item != ()} for name, index in found.items()}


def _edges(graph: Graph) -> tuple[Any, Any]:
    return graph.named, graph.naming


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    at_once(type_owners.forgetting())


STEPS = st.lists(
    st.dictionaries(
        st.tuples(st.sampled_from(KINDS), st.integers(1, 3)),
        st.one_of(st.none(), st.tuples(st.sampled_from("abc"), st.integers(0, 3))),
        max_size=8,
    ),
    max_size=6,
)


@given(STEPS, st.booleans(), st.sets(st.integers(0, 5)))
def test_a_changed_snapshot_is_as_one_made_of_all_objects(
    steps: list[dict[tuple[str, int], tuple[str, int] | None]], asked: bool, graphs: set[int]
) -> None:
    """Objects of all kinds come, change, go, and take each other's names."""
    versions = itertools.count(1)
    current = CatalogSnapshot({}, next(versions))
    if asked:
        _asked(current)
    for number_of_step, step in enumerate(steps):
        gone = [key_of(_made(kind, number, "a", 0)) for kind, number in step]
        taken = {
            (kind, name): (number, version)  # each name once
            for (kind, number), found in step.items()
            if found is not None
            for name, version in (found,)
        }
        puts = [_made(kind, number, name, version) for (kind, name), (number, version) in taken.items()]
        names = {(type(item), getattr(item, "name", item)) for item in puts}
        gone += [
            key for key, item in current.items.items() if (type(item), getattr(item, "name", item)) in names
        ]
        kept = {key_of(item) for item in puts}
        before = _indexes(current)
        after = current.with_changes(puts, [key for key in gone if key not in kept], next(versions))
        assert _indexes(current) == before, "a snapshot that somebody has stays as it is"
        assert _indexes(_asked(after)) == _indexes(_asked(CatalogSnapshot(after.items, after.version)))
        if number_of_step in graphs:  # those of the steps between are never asked for
            before_it = _edges(graph_of(current))
            assert _edges(graph_of(after)) == _edges(Graph.of(list(after.items.values()), indexes.at_once))
            assert before_it == _edges(Graph.of(list(current.items.values()), indexes.at_once))
        if all(not isinstance(item, TypeDef) for item in (*puts, *map(current.items.get, gone))):
            assert after.codec_types.enums is current.codec_types.enums
        current = after


def _steps(work: Callable[[], object]) -> int:
    """Return how many lines of Python ``work`` runs, each turn of a loop or comprehension among them.

    The collector is off meanwhile: what it lets go of has methods that are called then, of whatever ran before.
    """
    count = 0

    def look(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return look

    was, collecting = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(look)
    try:
        work()
    finally:
        sys.settrace(was)
        if collecting:
            gc.enable()
    return count


def test_who_names_an_object_is_known_of_fields_and_texts_as_they_are_now() -> None:
    table, view, function = _made("table", 0, "a", 1), _made("view", 1, "a", 0), _made("function", 1, "a", 0)
    assert isinstance(table, RelationDef)
    assert isinstance(view, RelationDef)
    assert isinstance(function, FunctionDef)
    catalog = _asked(CatalogSnapshot({key_of(item): item for item in (table, view, function)}, 1))

    def users(catalog: CatalogSnapshot, oid: int) -> list[Stored]:
        return naming(catalog, [oid])

    assert users(catalog, table.oid) == []
    reading = replace(view, depends_on=(table.oid,))
    calling = replace(function, types=(table.oid + 1,), modes=("i",), names=("x",))
    later = catalog.with_changes([reading, calling], [], 2)
    assert users(later, table.oid) == [reading]
    assert users(later, table.oid + 1) == [calling]  # its row type
    naming_it = replace(calling, types=(), modes=(), names=(), defaults=(f"'{table.oid}'::regclass",))
    last = later.with_changes([naming_it], [key_of(reading)], 3)
    assert users(last, table.oid) == [naming_it]
    assert users(later, table.oid) == [reading], "a snapshot that somebody has stays as it is"


def test_a_change_costs_the_same_whatever_else_there_is() -> None:
    def cost(objects: int) -> dict[str, int]:
        items = [_made(kind, number, f"n{number}", 0) for kind in KINDS for number in range(objects)]
        catalog = _asked(CatalogSnapshot({key_of(item): item for item in items}, 1))
        graph_of(catalog)
        parent, first, *others = (
            replace(_table(FIRST - 20 * n, f"p{n}", 0), partition_of=(FIRST - 20) * (n > 1))
            for n in range(1, objects)
        )
        divided = _asked(CatalogSnapshot({key_of(item): item for item in (parent, first, *others)}, 1))
        found: dict[str, int] = {}
        found["alter a partition"] = _steps(partial(divided.with_changes, [replace(first, version=7)], [], 2))
        for kind in KINDS:
            new, other = _made(kind, objects, "new", 0), _made(kind, 1, "n1", 1)
            found[f"create {kind}"] = _steps(partial(catalog.with_changes, [new], [], 2))
            found[f"alter {kind}"] = _steps(partial(catalog.with_changes, [other], [], 3))
            found[f"drop {kind}"] = _steps(partial(catalog.with_changes, [], [key_of(other)], 4))
        undo: dict[Any, Any] = {key_of(items[0]): items[0], key_of(items[-1]): None}
        found["another time"] = _steps(lambda: catalog.apart(undo, 5))
        found["who names it"] = _steps(lambda: naming(catalog, identities(items[0])))
        changed = [_made("view", 1, "n1", version) for version in (1, 2, 3)]
        later = itertools.accumulate(
            changed, lambda one, view: one.with_changes([view], [], 6), initial=catalog
        )
        *_, last = later
        found["what reads it"] = _steps(lambda: readers_of(catalog, {items[0].oid}).relations(catalog))
        found["who names it after some changes"] = _steps(lambda: naming(last, identities(items[0])))
        return found

    few, many = cost(10), cost(100)
    assert many == few
