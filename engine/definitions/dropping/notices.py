"""What is told of what CASCADE takes along, and what is kept about objects that go: comments and rights."""

from __future__ import annotations

from collections.abc import Sequence

from engine.catalog.graph import naming
from engine.catalog.state import CatalogSnapshot
from engine.catalog.storage.stored import (
    CommentDef,
    StoredKey,
    key_of,
)
from engine.definitions.dropping.dependents import client_and_log
from engine.session.session import Session
from pgwire.give_way import spaced
from planner.catalog import AclDef


def notice_cascade(session: Session, gone: Sequence[str]) -> None:
    """Tell what CASCADE drops besides what was named."""
    if len(gone) == 1:
        session.notice(f"drop cascades to {gone[0]}")
    elif gone:
        detail, log_detail = client_and_log([f"drop cascades to {what}" for what in spaced(gone)])
        session.notice(f"drop cascades to {len(gone)} other objects", detail=detail, log_detail=log_detail)


def kept_about(catalog: CatalogSnapshot, oids: set[int]) -> list[StoredKey]:
    """Return the keys of comments on objects, and of rights to them."""
    return [key_of(item) for item in naming(catalog, oids) if isinstance(item, CommentDef | AclDef)]
