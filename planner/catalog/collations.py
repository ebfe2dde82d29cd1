"""Collations that users make (manual 24.2.2.3): rows of pg_collation.

    CREATE COLLATION german FROM "C"            C, C, whatever the encoding is
    CREATE COLLATION plain (locale = 'C.UTF-8') C.UTF-8, C.UTF-8, of UTF8

Each compares by bytes, as those that there are do: a locale that would compare otherwise is refused where it is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

PG_COLLATION: Final = 3456


@dataclass(frozen=True, slots=True, kw_only=True)
class CollationDef:
    """A collation. ``encoding``: the number of the one that it is for, -1 for any; ``collate``, ``ctype``:
    its locales, as they were given; ``version``: likewise, None for none.
    """

    oid: int
    schema_oid: int
    schema: str
    name: str
    owner: int = 10
    encoding: int = -1
    collate: str
    ctype: str
    version: str | None = None

    class_oid: ClassVar[int] = PG_COLLATION
