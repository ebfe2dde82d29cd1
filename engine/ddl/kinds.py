"""What messages call relations by their kind (``pg_class.relkind``)."""

from __future__ import annotations

from typing import Final

KIND_WORDS: Final = {
    "r": "table",
    "p": "table",
    "v": "view",
    "m": "materialized view",
    "i": "index",
    "S": "sequence",
    "c": "relation",  # a composite type, where its rights as a relation are meant
}
