"""Users' types: what is told about them to the planner and the codecs, and their rows of the catalog.

TypeDef (catalog) ── register ──> planner.facts: kind, category, array type     structure, by oid, as long as it lives (``type_owners``)
                                  planner.types.domains: what a domain is over
                                  pgwire.codecs.registry: codecs
── with_enums, row_shape ──> CodecSettings.types             labels and attributes, as of one catalog
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from engine.catalog.storage.stored import Stored
from engine.catalog.type_owners import own
from pgwire.codecs.users.composite import Attribute, RowShape
from pgwire.codecs.users.ranges import RangeType
from pgwire.codecs.users.register import (
    order_of,
    register_domain,
    register_enum,
    register_range,
    register_row,
)
from pgwire.codecs.users.types import EnumLabels
from pgwire.give_way import paced
from planner.catalog import RelationDef, RowType, TypeDef
from planner.catalog.relation_kinds import ROW_TYPED
from planner.conversion.row_parts import note_row
from planner.facts import TypeFact, facts, register_type
from planner.types import SqlType
from planner.types.domains import know_domain, plain_type
from planner.types.facts import FIRST_USER_OID
from planner.types.facts import register_range as know_range


def register(type_: TypeDef) -> None:
    """Make a type of a catalog known to the planner and to the codecs, as long as the definition lives."""
    if type_.kind == "b":
        return  # an extension's type is known without being there
    own(type_)
    known = facts().types.get(type_.oid)
    if known is not None and known.name == type_.name:
        return
    if type_.is_domain:
        _register_domain(type_)
    elif type_.kind == "c":
        register_rows_of(type_.oid, type_.array_oid, type_.name, type_.array_name)
        return
    elif type_.kind == "r":
        _register_range(type_)
        return
    else:
        register_type(
            TypeFact(
                oid=type_.oid, name=type_.name, length=4, by_value=True, kind=type_.kind, category="E",
                preferred=False, delimiter=",", element=0, array=type_.array_oid,
            )
        )  # fmt: skip
        register_enum(type_.oid, type_.array_oid)
    register_type(
        TypeFact(
            oid=type_.array_oid, name=type_.array_name, length=-1, by_value=False, kind="b", category="A",
            preferred=False, delimiter=",", element=type_.oid, array=0,
        )
    )  # fmt: skip


def register_rows_of(oid: int, array_oid: int, name: str = "", array_name: str = "") -> None:
    """Make a composite type known: one by itself, or that of a relation's rows; without a name: whatever it
    is called.
    """
    known = facts().types.get(oid)
    if known is not None and (known.name == name or not name or oid < FIRST_USER_OID):
        return
    register_type(
        TypeFact(
            oid=oid, name=name, length=-1, by_value=False, kind="c", category="C", preferred=False, delimiter=",",
            element=0, array=array_oid,
        )
    )  # fmt: skip
    register_type(
        TypeFact(
            oid=array_oid, name=array_name, length=-1, by_value=False, kind="b", category="A", preferred=False,
            delimiter=",", element=oid, array=0,
        )
    )  # fmt: skip
    register_row(oid, array_oid)


def note_columns(item: Stored | None, *, committed: bool) -> None:
    """Say of which types the columns of a composite type are, or those of a relation's rows; of whatever else
    nothing.
    """
    if isinstance(item, TypeDef) and item.kind == "c":
        note_row(item.oid, [c.declared.oid for c in item.attributes if not c.dropped], committed=committed)
    elif isinstance(item, RelationDef) and item.kind in ROW_TYPED:
        note_row(item.row_type, [c.declared.oid for c in item.columns if not c.dropped], committed=committed)


def register_catalog_rows(relation: RelationDef) -> None:
    """Make the type of a catalog relation's rows known, and the array type over it, each unless it is among
    the facts.
    """
    oid, array = relation.row_type, relation.row_array
    known = facts().types
    if oid not in known:
        register_type(
            TypeFact(
                oid=oid, name=relation.name, length=-1, by_value=False, kind="c", category="C", preferred=False,
                delimiter=",", element=0, array=array,
            )
        )  # fmt: skip
    if array not in known:
        register_type(
            TypeFact(
                oid=array, name=f"_{relation.name}", length=-1, by_value=False, kind="b", category="A", preferred=False,
                delimiter=",", element=oid, array=0,
            )
        )  # fmt: skip
    register_row(oid, array)


def row_shape(made: RowType) -> RowShape:
    """Return a composite type as codecs know it."""
    return RowShape(
        name=made.name,
        attributes=tuple(
            Attribute(
                slot=c.attnum - 1, name=c.name, oid=c.declared.oid, plain=c.type.oid, typmod=c.type.typmod,
            )
            for c in made.live
        ),
        width=len(made.columns),
    )  # fmt: skip


def _register_range(type_: TypeDef) -> None:
    """A range type, its multirange type, the array types over both, and their constructors."""
    from planner.functions.values.own_ranges import register_constructors  # which loads those of all types

    plain = plain_type(SqlType(type_.base))
    made = RangeType(
        type_.oid, type_.name, plain.oid, type_.multirange, type_.multirange_name, compared=order_of(plain.oid),
        declared=0 if plain.oid == type_.base else type_.base, typmod=plain.typmod,
    )  # fmt: skip
    arrays = {type_.oid: type_.array_oid, type_.multirange: type_.multirange + 1}
    for (oid, array_oid), kind in zip(arrays.items(), "rm", strict=True):
        register_type(
            TypeFact(
                oid=oid, name=type_.names[oid], length=-1, by_value=False, kind=kind, category="R", preferred=False,
                delimiter=",", element=0, array=array_oid,
            )
        )  # fmt: skip
        register_type(
            TypeFact(
                oid=array_oid, name=type_.names[array_oid], length=-1, by_value=False, kind="b", category="A",
                preferred=False, delimiter=",", element=oid, array=0,
            )
        )  # fmt: skip
    know_range(type_.oid, type_.base, type_.multirange)
    register_range(made, type_.array_oid, type_.multirange + 1)
    register_constructors(made, type_.array_oid, type_.first_constructor, *type_.constructors)


def _register_domain(type_: TypeDef) -> None:
    """What it is over is known: it was made before. Of domains over arrays there are no arrays."""
    plain = plain_type(type_.base_type).oid
    base = facts().types[plain]
    over_array = base.category == "A" and base.element != 0
    register_type(
        TypeFact(
            oid=type_.oid, name=type_.name, length=base.length, by_value=base.by_value, kind="d", category=base.category,
            preferred=False, delimiter=base.delimiter, element=0, array=0 if over_array else type_.array_oid,
        )
    )  # fmt: skip
    know_domain(type_.oid, type_.array_oid, type_.base_type, 0 if over_array else base.array)
    register_domain(type_.oid, 0 if over_array else type_.array_oid, plain)


def with_enums(
    before: Mapping[int, EnumLabels], gone: Iterable[TypeDef], made: Iterable[TypeDef]
) -> Mapping[int, EnumLabels]:
    """Return what the values of enums are called, by oid, after types have gone and come: the same object
    where nothing of that has changed.
    """
    now = {type_.oid: type_ for type_ in made if type_.kind == "e"}
    lost = [type_.oid for type_ in gone if type_.oid in before and type_.oid not in now]
    changed = {
        oid: EnumLabels(type_.name, type_.labels)
        for oid, type_ in now.items()
        if (known := before.get(oid)) is None
        or known.name != type_.name
        or known.labels is not type_.labels
        or known.unsafe
    }
    if not lost and not changed:
        return before
    after = {**before, **changed}
    for oid in lost:
        del after[oid]
    return after


def with_unsafe_labels(
    known: Mapping[int, EnumLabels],
    changed: Iterable[TypeDef],
    added: Collection[int],
    before: Mapping[int, EnumLabels],
) -> Mapping[int, EnumLabels]:
    """Return ``known`` with the labels of enums among ``changed`` unsafe whose oid is in ``added``; the same
    object where there is none.

    As in PostgreSQL the labels of CREATE TYPE are safe at once, those of ALTER TYPE are not, even of a type
    that is as new. ``before``: what was made of the same labels earlier; it is taken over.
    """
    marked: dict[int, EnumLabels] = {}
    for type_ in changed:
        found = before.get(type_.oid)
        if found is not None and found.labels is type_.labels and found.name == type_.name:
            marked[type_.oid] = found
            continue
        unsafe = frozenset(label.label for label in paced(type_.labels) if label.oid in added)
        if unsafe:
            marked[type_.oid] = EnumLabels(type_.name, type_.labels, unsafe)
    return {**known, **marked} if marked else known
