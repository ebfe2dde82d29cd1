"""Types and the value domain: how every SQL value looks inside the server.

One representation is used by codecs, literals, casts, builtins, the row executor, MVCC and parts. It is
Arrow's physical representation where Arrow has one. NULL is ``None`` everywhere.

=====================  ==========================================================================
SQL type               Python value
=====================  ==========================================================================
bool                   ``bool``
int2 int4 int8         ``int`` (range checked by whoever computes it: 22003)
oid reg* xid cid       ``int``
float4 float8          ``float`` (float4 already rounded to single precision)
numeric                ``decimal.Decimal``: its exponent is PostgreSQL's display scale (never
                       positive); NaN, Infinity, -Infinity are Decimal's
text varchar bpchar    ``str`` (bpchar(n) padded with blanks to n, as PostgreSQL stores it)
name "char" json       ``str`` (json: the text as given; name: at most 63 bytes)
jsonb                  ``str``: PostgreSQL's canonical output text (keys deduplicated, ordered by
                       length then bytes; ``": "`` and ``", "`` separators)
bytea                  ``bytes``
uuid                   ``bytes`` of length 16
date                   ``int`` days since 1970-01-01; infinities are +-(2**31 - 1)
time                   ``int`` microseconds, 0 .. 86_400_000_000
timetz                 ``(int microseconds, int seconds WEST of UTC)``
timestamp timestamptz  ``int`` microseconds since 1970-01-01 00:00 (UTC for timestamptz);
                       infinities are +-(2**63 - 1)
interval               ``(int months, int days, int microseconds)``
arrays                 ``tuple`` of elements, nested once per further dimension; ``()`` is empty;
                       others than 1 as lower bounds: a ``BoundedArray``
int2vector oidvector   ``tuple`` of int (subscripts start at 0)
record                 ``tuple`` (``RecordValue``, which knows its columns)
composite              ``bytes`` that order as the type does (``pgwire.codecs.users.composite``)
tid                    ``int``: the block times 65536, and the offset in it
bit varbit             ``str`` of 0 and 1
inet cidr pg_lsn       ``bytes`` that order as the type does (``pgwire.codecs.network``)
macaddr macaddr8       ``bytes`` of length 6 and 8
money                  ``int`` cents
xid8                   ``int``: the number less 2**63
pg_snapshot            ``str``: the canonical text, also of txid_snapshot (``pgwire.codecs.snapshot``)
enums                  ``int``: the label's rank
ranges, multiranges    ``bytes`` that order as the type does (``pgwire.codecs.users.ranges``)
tsvector tsquery       ``bytes`` that order as the type does (``pgwire.codecs.text.tsvector``, ``tsquery``)
geometric types        ``bytes``, the binary form of the wire (``pgwire.codecs.geometric``)
void                   ``""``
unknown                ``str`` (a literal whose type is still open)
=====================  ==========================================================================
"""

from __future__ import annotations

from typing import NamedTuple

DATE_INFINITY = 2**31 - 1
TIMESTAMP_INFINITY = 2**63 - 1


class SqlType(NamedTuple):
    """A type as an expression carries it: oid, and typmod (-1 where there is none)."""

    oid: int
    typmod: int = -1
