"""Sidecars written by processes elsewhere, for parts that are there: an index build whose server reads no rows.

    server                                worker: one part                          server
    SidecarJob ──pickled──►  columns of the key ─► sorted ─► <part>.x<index>  ──►  takes it, or writes its own

The workers use the very code of the server (``part_write.build_sidecar``), under a grant that ends with the
job. A sidecar has the same name whoever writes it, so a worker never replaces and never deletes one: what
lies there already, from an attempt that Spark believes dead, counts as not written, and the server writes it
again once the grant has ended.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from txn.base.types import IndexId, PartRef
from txn.persist.location import BlobGrant, in_thread
from txn.persist.parts.part import RowGroupCache, open_part
from txn.persist.parts.write import build_sidecar
from txn.values.encoding import decode_spec


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarJob:
    """What workers need to know. Can be pickled if the grant can.

    ``name``: of the grant. ``spec``: the shard's with the new index, encoded.
    """

    name: str
    grant: BlobGrant
    spec: bytes
    index: IndexId

    def write(self, ref: PartRef, worker: str) -> None:
        """Write the sidecar of a part; it is durable on return. Blocks; for a process of its own.

        ``worker``: nobody else's name within the job (``[0-9a-z-]+``).

        Raises:
            FileExistsError: there is one.
            TxnError: the part is damaged, the store failed, or the grant has ended.
        """
        spec = decode_spec(self.spec)
        definition = next(i for i in spec.indexes if i.index == self.index)
        blob = self.grant.open(worker)

        async def write() -> None:
            part = await open_part(ref, blob, in_thread, RowGroupCache(0))
            await build_sidecar(blob, in_thread, part, spec, definition)

        asyncio.run(write())
