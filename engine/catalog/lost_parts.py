"""Comments on what belongs to a table or type, when it has gone: ALTER and DROP leave none behind, whichever
way they took.

The parts of an object's old version are compared with those of its new one, or with none; comments on the
others go with the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import (
    PG_CLASS_OID,
    PG_CONSTRAINT_OID,
    PG_POLICY_OID,
    PG_STATISTIC_EXT_OID,
    PG_TRIGGER_OID,
    Stored,
    StoredKey,
    key_of,
)
from pgwire.give_way import paced, paced_iter
from planner.catalog import RelationDef, TypeDef


def lost_comments(
    catalog: CatalogSnapshot, puts: Iterable[Stored], deletes: Iterable[StoredKey]
) -> list[StoredKey]:
    """Return the keys of the comments in ``catalog`` on parts that the objects of a change have no longer.

    Parts are columns, attributes, indexes, constraints, triggers, policies and statistics; of objects that
    are deleted they are all lost.
    """
    changes: list[tuple[StoredKey, Stored | None]] = [(key_of(item), item) for item in paced_iter(puts)]
    changes += [(key, None) for key in paced_iter(deletes)]
    lost: list[StoredKey] = []
    for key, item in paced(changes, 16):
        before = catalog.items.get(key)
        if isinstance(before, RelationDef | TypeDef):
            kept = frozenset(_parts(item))
            lost += [part for part in _parts(before) if part not in kept and part in catalog.items]
    return lost


def _parts(item: Stored | None) -> Iterator[StoredKey]:
    """Yield the keys that comments on the parts of an object have."""
    of_class, of_constraint = f"comment/{PG_CLASS_OID}", f"comment/{PG_CONSTRAINT_OID}"
    if isinstance(item, RelationDef):
        yield from ((of_class, item.oid, c.attnum) for c in item.columns if not c.dropped)
        yield from ((of_class, index.oid, 0) for index in item.every_index)
        yield from ((of_constraint, constraint.oid, 0) for constraint in item.constraints)
        yield from ((f"comment/{PG_TRIGGER_OID}", trigger.oid, 0) for trigger in item.triggers)
        yield from ((f"comment/{PG_POLICY_OID}", policy.oid, 0) for policy in item.policies)
        yield from ((f"comment/{PG_STATISTIC_EXT_OID}", one.oid, 0) for one in item.statistics)
    elif isinstance(item, TypeDef):
        yield from ((of_class, item.relation_oid, c.attnum) for c in item.attributes if not c.dropped)
        yield from ((of_constraint, check.oid, 0) for check in item.checks)
