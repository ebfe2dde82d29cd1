"""Conversions between encodings that users make (manual 24.3.4): rows of pg_conversion.

    conversion c    LATIN1 ──iso8859_1_to_utf8──> UTF8

They name PostgreSQL's own functions, each for the encodings that it is for, so what a text is converted to is
the same with them as without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

PG_CONVERSION: Final = 2607


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionDef:
    """A conversion. ``source``, ``target``: numbers of encodings; ``function``: by oid; ``default``: the one
    that is taken in its schema.
    """

    oid: int
    schema_oid: int
    schema: str
    name: str
    owner: int = 10
    source: int
    target: int
    function: int
    default: bool = False

    class_oid: ClassVar[int] = PG_CONVERSION
