"""What has to hold of a generation at any time between two turns of the loop; simulation and tests look."""

from __future__ import annotations

from txn.mvcc.generation import Generation, StoreCorrupted
from txn.mvcc.hotlog import GONE
from txn.mvcc.index import BuildingIndex
from txn.mvcc.keys import each, under
from txn.mvcc.version import INFINITY, Version


def validate(generation: Generation) -> None:
    """Raise StoreCorrupted unless chains, indexes and log agree."""
    for row_id, head in generation.rows.items():
        version: Version | None = head
        end = None
        while version is not None:
            if version.older is not None and version.older.begin >= version.begin:
                raise StoreCorrupted(f"row {row_id}: begins do not fall")
            if version.values is not None:
                if len(version.values) > generation.padding.width:
                    raise StoreCorrupted(f"row {row_id} has a value for a column that is not there")
                for index in generation.indexes.values():
                    if isinstance(index, BuildingIndex):
                        continue
                    key = index.make.of_row(generation.padded(version.values))
                    if any(row_id not in index.ids(one) for one in each(key)):
                        raise StoreCorrupted(f"row {row_id} is missing in index {index.definition.index}")
                if version.segment >= 0:
                    segment = generation.log.segments.get(version.segment)
                    offset = version.offset
                    if segment is None or segment.versions[offset] is not version:
                        raise StoreCorrupted(f"row {row_id}: its log entry is another's")
                    if end is not None and segment.ends[offset] != end:
                        raise StoreCorrupted(f"row {row_id}: the log does not know its end")
                elif version.segment == GONE:
                    raise StoreCorrupted(f"row {row_id}: a readable version left the log")
            end = version.begin
            version = version.older
    for index in generation.indexes.values():
        for key, ids in index.entries.items():
            for row_id in (ids,) if isinstance(ids, int) else ids:
                if row_id not in index.leaving and not any(
                    v.values is not None and under(index.make.of_row(generation.padded(v.values)), key)
                    for v in generation.chain(row_id)
                ):
                    raise StoreCorrupted(f"index {index.definition.index} keeps {key!r} of row {row_id}")

    current = entries = 0
    for segment in generation.log.segments.values():
        for offset in segment.live():
            entries += 1
            current += segment.ends[offset] == INFINITY
    if (entries, current) != (generation.log.entries, generation.log.current):
        raise StoreCorrupted(
            f"the log counts {generation.log.entries} entries, {generation.log.current} current"
        )
