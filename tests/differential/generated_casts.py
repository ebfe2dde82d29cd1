"""Random casts between all types, explicit, assigned and implied: a function of a seed (``compare_generated.Source``).

Each pair of types meets in ``CAST``, in ``type(value)``, in INSERT, in operators, in what UNION, COALESCE and CASE make common, and as
elements of arrays; the value is a column or a constant, so that rows and plans both compute it.
"""

from __future__ import annotations

import random

__all__ = ["Casts"]

VALUES = {
    "smallint": ("0", "-32768", "7"),
    "integer": ("1", "-2147483648", "70000"),
    "bigint": ("0", "9223372036854775807", "-5"),
    "real": ("1.5", "NaN", "1e30"),
    "double precision": ("0.1", "-Infinity", "2.5"),
    "numeric": ("3.50", "NaN", "-123456789012345678901.25"),
    "numeric(6,2)": ("1.50", "-9999.99", "0"),
    "money": ("1.25", "-1000", "0"),
    "boolean": ("t", "f", "t"),
    "text": ("12", "", "2024-02-29 x"),
    "varchar(5)": ("7", "true", "ab c "),
    "char(4)": ("1", "ab", ""),
    "name": ("n1", "", "true"),
    '"char"': ("a", "", "1"),
    "bytea": ("\\x00ff", "", "abc"),
    "bit(4)": ("1010", "0000", "1111"),
    "varbit": ("101", "", "1"),
    "date": ("2024-02-29", "infinity", "0044-03-15 BC"),
    "time": ("12:30:45.25", "00:00", "24:00"),
    "timetz": ("12:30+02", "00:00-11:30", "23:59:59.999999+00"),
    "timestamp": ("2024-02-29 12:00:00.5", "-infinity", "1999-12-31 23:59:59"),
    "timestamptz": ("2024-02-29 12:00+05", "infinity", "1970-01-01 00:00+00"),
    "interval": ("1 mon -2 days 03:00", "-1 year", "00:00:00.5"),
    "uuid": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000", "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}"),
    "json": ('{"a": 1, "a": 2}', "null", "[1, 2.50]"),
    "jsonb": ("12.50", "true", '{"b": [null]}'),
    "jsonpath": ("$.a", "strict $[*]", "$.x ? (@ > 1)"),
    "inet": ("10.1.2.3/24", "::1", "10.0.0.1"),
    "cidr": ("10.1.0.0/16", "2001:db8::/32", "10.0.0.1"),
    "macaddr": ("08:00:2b:01:02:03", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"),
    "macaddr8": ("08:00:2b:ff:fe:01:02:03", "ff:ff:ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00:00:00"),
    "oid": ("0", "4294967295", "25"),
    "regtype": ("integer", "text", "25"),
    "regclass": ("pg_class", "1259", "pg_type"),
    "point": ("(1,2)", "(0,0)", "(-1.5,Infinity)"),
    "box": ("(1,2),(0,0)", "(1,1),(1,1)", "(3,4),(-1,-2)"),
    "lseg": ("[(0,0),(1,1)]", "[(1,2),(1,2)]", "[(0,0),(3,4)]"),
    "path": ("[(0,0),(1,1)]", "((0,0),(1,0),(1,1))", "((1,2))"),
    "polygon": ("((0,0),(1,0),(1,1))", "((1,2))", "((0,0),(4,0),(4,4),(0,4))"),
    "circle": ("<(1,2),3>", "<(0,0),0>", "<(1,1),0.5>"),
    "int4range": ("[1,5)", "empty", "(,3]"),
    "numrange": ("[1.5,2]", "(,)", "empty"),
    "daterange": ("[2024-01-01,2024-02-01)", "empty", "[2024-01-01,]"),
    "int4multirange": ("{[1,3),[5,8)}", "{}", "{(,1)}"),
    "tsvector": ("a:1 b:2", "", "'x y':3A"),
    "tsquery": ("a & b", "!c", "d <-> e"),
    "integer[]": ("{1,NULL}", "{}", "{{1,2},{3,4}}"),
    "text[]": ('{a,"b c"}', "{NULL}", "{1,2}"),
    "cast_mood": ("sad", "glad", "sad"),
    "cast_small": ("1", "9", "5"),
    "cast_pair": ("(1,x)", "(,)", '(2,"a b")'),
    "int2vector": ("1 2", "", "3"),
    "pg_lsn": ("0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"),
    "xid": ("0", "4294967295", "7"),
}  # fmt: skip
"""Types with constants that they take; the first is the plainest."""

COLUMNS = {kind: f"c{number}" for number, kind in enumerate(VALUES)}
FAMILIES = (
    ("smallint", "integer", "bigint", "real", "double precision", "numeric", "numeric(6,2)", "money", "boolean", "oid", "cast_small", "jsonb"),
    ("text", "varchar(5)", "char(4)", "name", '"char"'),
    ("date", "time", "timetz", "timestamp", "timestamptz", "interval"),
    ("inet", "cidr", "macaddr", "macaddr8", "text"),
    ("point", "box", "lseg", "path", "polygon", "circle"),
    ("json", "jsonb", "jsonpath", "text"),
    ("int4range", "numrange", "daterange", "int4multirange"),
    ("integer[]", "text[]", "int2vector"),
    ("bit(4)", "varbit", "integer", "bigint"),
    ("oid", "regtype", "regclass", "xid", "bigint", "text"),
    ("tsvector", "tsquery", "text"),
)  # fmt: skip
"""Types of which many have casts to each other."""

WITH_LENGTH = (
    "varchar(2)", "char(2)", "bit(2)", "varbit(2)", "numeric(3,1)", "time(1)", "timestamp(0)", "timestamptz(2)", "interval hour",
    "interval(0)", "timetz(0)", "varchar(2)[]", "numeric(20,4)", "interval year to month", "bit(6)",
)  # fmt: skip
OPERATORS = ("=", "<", "||", "+", "-", "*", "/", "<>", ">=", "&&", "@>", "->", "&", "%", "<<", "~")
CALLED = (
    "smallint", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar", "name", "date", "timestamptz",
    "timetz", "bool", "money", "jsonb", "inet", "cidr", "oid", "point", "box", "circle", "polygon", "path", "lseg", "macaddr8", "regclass",
    "int4range", "int4multirange", "varbit", "bytea", "uuid",
)  # fmt: skip


def quoted(text: str) -> str:
    """Return a constant."""
    return "'" + text.replace("'", "''") + "'"


def _schema() -> str:
    columns = ", ".join(f"{name} {kind}" for kind, name in COLUMNS.items())
    rows = [f"({n}, {', '.join(quoted(constants[n]) for constants in VALUES.values())})" for n in range(3)]
    return f"""
DROP TABLE IF EXISTS cast_from, cast_into; DROP TYPE IF EXISTS cast_mood, cast_pair; DROP DOMAIN IF EXISTS cast_small;
CREATE TYPE cast_mood AS ENUM ('sad', 'glad'); CREATE DOMAIN cast_small AS integer CHECK (VALUE BETWEEN 1 AND 9);
CREATE TYPE cast_pair AS (n integer, t text);
CREATE TABLE cast_from (id integer PRIMARY KEY, {columns}); CREATE TABLE cast_into ({columns});
INSERT INTO cast_from VALUES {", ".join(rows)}; INSERT INTO cast_from (id) VALUES (3);
"""


class Casts:
    """Makes statements, each with one pair of types."""

    schema = _schema()
    remove = "DROP TABLE cast_from, cast_into; DROP TYPE cast_mood, cast_pair; DROP DOMAIN cast_small"
    stateful = False

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def begin(self) -> None:
        """Statements leave nothing that others read."""

    def pair(self) -> tuple[str, str]:
        """Return two types: of one family, any and text, or any two."""
        kind = self.random.random()
        if kind < 0.55:
            source, target = (self.random.choice(pick) for pick in (self.random.choice(FAMILIES),) * 2)
        else:
            source, target = self.random.choice(list(VALUES)), self.random.choice(list(VALUES))
        return source, "text" if kind > 0.85 else target

    def query(self) -> str:
        """Return a statement."""
        pick = self.random.choice
        source, target = self.pair()
        row = self.random.randrange(4)
        column, other = COLUMNS[source], COLUMNS[target]
        # a column of the table, or a constant of its type, which planning may fold
        constant = f"CAST({quoted(pick(VALUES[source]))} AS {source})"
        if self.random.random() < 0.15:
            constant = f"CAST({quoted(pick(VALUES[target]))} AS {pick(['text', 'varchar'])})"
        value = column if self.random.random() < 0.7 else constant
        of_row = f"FROM cast_from WHERE id = {row}"
        shape = self.random.randrange(20)
        if shape < 7:
            return f"SELECT CAST({value} AS {target}) {of_row}"
        if shape < 9:
            return f"SELECT CAST({value} AS {pick(WITH_LENGTH)}) {of_row}"
        if shape == 9:
            return f"SELECT {pick(CALLED)}({value}) {of_row}"
        if shape < 12:
            return f"INSERT INTO cast_into ({other}) SELECT {value} {of_row} RETURNING {other}"
        if shape < 14:
            return f"SELECT {value} {pick(OPERATORS)} {other} {of_row}"
        if shape == 14:
            return f"SELECT {value} {of_row} UNION ALL SELECT {other} {of_row}"
        if shape == 15:
            return f"SELECT {pick(['coalesce', 'nullif', 'greatest', 'concat'])}({value}, {other}) {of_row}"
        if shape == 16:
            return (
                f"SELECT CAST(ARRAY[{value}, NULL] AS {pick([target, source]).removesuffix('[]')}[]) {of_row}"
            )
        if shape == 17:
            return f"SELECT CAST(CAST({value} AS text) AS {target}), pg_typeof({value}) {of_row}"
        if shape == 18:
            return f"SELECT {pick(['to_json', 'to_jsonb', 'quote_nullable', 'pg_typeof', 'pg_column_size'][:4])}({value}) {of_row}"
        return f"UPDATE cast_into SET {other} = {quoted(pick(VALUES[source]))} WHERE false RETURNING {other}"
