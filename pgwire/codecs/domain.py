"""Constants of the value domain that codecs share: type oids, infinities, units.

The value domain itself (which Python value stands for which SQL value) is fixed in the planner's type
module; ``pgwire`` may not import the planner, so the few numbers that both need are stated here as well and a
test compares the two.
"""

from __future__ import annotations

from typing import Final

DATE_INFINITY: Final = 2**31 - 1
TIMESTAMP_INFINITY: Final = 2**63 - 1

US_PER_SECOND: Final = 1_000_000
US_PER_MINUTE: Final = 60 * US_PER_SECOND
US_PER_HOUR: Final = 3600 * US_PER_SECOND
US_PER_DAY: Final = 86400 * US_PER_SECOND
SECONDS_PER_DAY: Final = 86400

# PostgreSQL's binary dates count from 2000-01-01, the value domain from 1970-01-01.
EPOCH_2000_DAYS: Final = 10957
EPOCH_2000_US: Final = EPOCH_2000_DAYS * US_PER_DAY

# Julian day number of 1970-01-01.
EPOCH_1970_JDATE: Final = 2440588

FIRST_USER_OID: Final = 16384
"""Oids of what users make begin here."""
BOOL: Final = 16
BYTEA: Final = 17
CHAR: Final = 18
NAME: Final = 19
INT8: Final = 20
INT2: Final = 21
INT2VECTOR: Final = 22
INT4: Final = 23
REGPROC: Final = 24
TEXT: Final = 25
OID: Final = 26
TID: Final = 27
XID: Final = 28
CID: Final = 29
OIDVECTOR: Final = 30
JSON: Final = 114
PG_NODE_TREE: Final = 194
POINT: Final = 600
LSEG: Final = 601
PATH: Final = 602
BOX: Final = 603
POLYGON: Final = 604
LINE: Final = 628
FLOAT4: Final = 700
FLOAT8: Final = 701
UNKNOWN: Final = 705
CIRCLE: Final = 718
ACLITEM: Final = 1033
BPCHAR: Final = 1042
VARCHAR: Final = 1043
DATE: Final = 1082
TIME: Final = 1083
TIMESTAMP: Final = 1114
TIMESTAMPTZ: Final = 1184
INTERVAL: Final = 1186
TIMETZ: Final = 1266
BIT: Final = 1560
VARBIT: Final = 1562
NUMERIC: Final = 1700
REFCURSOR: Final = 1790
RECORD: Final = 2249
CSTRING: Final = 2275
VOID: Final = 2278
UUID: Final = 2950
TSVECTOR: Final = 3614
TSQUERY: Final = 3615
JSONB: Final = 3802
JSONPATH: Final = 4072
XID8: Final = 5069
TXID_SNAPSHOT: Final = 2970
PG_SNAPSHOT: Final = 5038

FIRST_FIXED_OID: Final = 2_000_000_000
"""From where on types of extensions have theirs, the same in all databases: beyond all that are given out."""
CITEXT: Final = 2_000_000_010
CITEXT_ARRAY: Final = 2_000_000_011
HSTORE: Final = 2_000_000_020
HSTORE_ARRAY: Final = 2_000_000_021

# Oid-like types that print as plain numbers here; names of catalog objects are the catalog's business.
REG_TYPES: Final = {
    24: "regproc",
    2202: "regprocedure",
    2203: "regoper",
    2204: "regoperator",
    2205: "regclass",
    2206: "regtype",
    3734: "regconfig",
    3769: "regdictionary",
    4089: "regnamespace",
    4096: "regrole",
    4191: "regcollation",
}

# Array type -> element type, for every type with a codec.
ARRAY_ELEMENT: Final = {
    1000: 16, 1001: 17, 1002: 18, 1003: 19, 1005: 21, 1006: 22, 1007: 23, 1008: 24, 1009: 25, 1010: 27,
    1011: 28, 1012: 29, 1013: 30, 1014: 1042, 1015: 1043, 1016: 20, 1021: 700, 1022: 701, 1028: 26,
    1034: 1033, 1115: 1114, 1182: 1082, 1183: 1083, 1185: 1184, 1187: 1186, 1231: 1700, 1263: 2275,
    1270: 1266, 1561: 1560, 1563: 1562, 199: 114, 2201: 1790, 2207: 2202, 2208: 2203, 2209: 2204, 2210: 2205,
    2211: 2206, 2287: 2249, 2949: 2970, 2951: 2950, 271: 5069, 5039: 5038, 3643: 3614, 3645: 3615, 3735: 3734, 3770: 3769, 3807: 3802, 4073: 4072, 4090: 4089,
    4097: 4096, 4192: 4191, 651: 650, 1041: 869, 1040: 829, 775: 774, 791: 790, 3221: 3220,
    1017: POINT, 1018: LSEG, 1019: PATH, 1020: BOX, 1027: POLYGON, 629: LINE, 719: CIRCLE, 3905: 3904, 3907: 3906, 3909: 3908, 3911: 3910, 3913: 3912, 3927: 3926,
    CITEXT_ARRAY: CITEXT, HSTORE_ARRAY: HSTORE, 6150: 4451, 6151: 4532, 6152: 4533, 6153: 4534, 6155: 4535, 6157: 4536,
}  # fmt: skip
ELEMENT_ARRAY: Final = {element: array for array, element in ARRAY_ELEMENT.items()}

VECTORS: Final = frozenset({INT2VECTOR, OIDVECTOR})
# Types whose single values are tuples, so that nesting alone does not tell an array's dimensions.
TUPLE_TYPES: Final = frozenset({TIMETZ, INTERVAL, RECORD, INT2VECTOR, OIDVECTOR})
