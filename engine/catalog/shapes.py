"""What codecs are told of composite types: shapes, as of one catalog."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from pgwire.codecs.users.composite import RowShape
from pgwire.codecs.users.types import Shapes
from planner.facts import facts
from planner.types.facts import FIRST_USER_OID

if TYPE_CHECKING:
    from engine.catalog.state import CatalogSnapshot


class FindShape:
    """``CatalogSnapshot.row_shape`` for those who may live longer than the snapshot, and do not keep it.

    Another process gets what is in use when it is pickled.
    """

    __slots__ = ("_reference",)

    def __init__(self, snapshot: CatalogSnapshot) -> None:
        """Ask this one, while it is there."""
        self._reference = weakref.ref(snapshot)

    def __call__(self, oid: int) -> RowShape | None:
        """Return the composite type with this oid; None for other types, and when the snapshot has gone."""
        snapshot = self._reference()
        return None if snapshot is None else snapshot.row_shape(oid)

    def __reduce__(self) -> tuple[type[Shapes], tuple[dict[int, RowShape]]]:
        """Become plain shapes."""
        snapshot = self._reference()
        return Shapes, (dict(shapes_in_use(snapshot)) if snapshot is not None else {},)


def shapes_in_use(catalog: CatalogSnapshot) -> Shapes:
    """Return the composite types that columns and types by themselves are of, at any depth."""
    found = Shapes()
    left = [type_.oid for type_ in catalog.user_types()]
    left += [column.declared.oid for relation in catalog.user_relations() for column in relation.columns]
    while left:
        oid = left.pop()
        row = None if oid in found else catalog.row_type(oid)
        shape = None if row is None else catalog.row_shape(oid)
        if row is not None and shape is not None:
            found[oid] = shape
            left += [column.declared.oid for column in row.live]
        else:
            fact = facts().types.get(oid)
            if fact is not None and fact.element >= FIRST_USER_OID and fact.category == "A":
                left.append(fact.element)
    return found
