"""Statements about thousands of objects at once: what they hang on, take along, lock, and leave behind."""

from __future__ import annotations

from typing import Final

from tests.hostile.row import Row

_SOMEBODY: Final = "DO $$ BEGIN CREATE ROLE somebody; EXCEPTION WHEN duplicate_object THEN END $$"


def _each(statement: str) -> str:
    """Return a DO that runs ``statement`` for # from 1 to <n>."""
    made = statement.replace("#", "' || i || '")
    return f"DO $$ BEGIN FOR i IN 1..<n> LOOP EXECUTE '{made}'; END LOOP; END $$"


_SCHEMA: Final = ("DROP SCHEMA IF EXISTS many CASCADE", "CREATE SCHEMA many")
_TABLES: Final = (*_SCHEMA, _each("CREATE TABLE many.t# (id int PRIMARY KEY, s text)"))
_OWNED: Final = (
    _SOMEBODY, "DROP SCHEMA IF EXISTS many CASCADE", "CREATE SCHEMA many AUTHORIZATION somebody", "SET ROLE somebody",
    _each("CREATE TABLE many.t# (id int PRIMARY KEY, s text)"), "RESET ROLE",
)  # fmt: skip
_PARTITIONS: Final = (
    *_SCHEMA, "CREATE TABLE many.p (id int, s text) PARTITION BY LIST (id)",
    _each("CREATE TABLE many.p# PARTITION OF many.p FOR VALUES IN (#)"),
)  # fmt: skip

ROWS = (
    Row(name="what a role owns, reassigned", sql="REASSIGN OWNED BY somebody TO CURRENT_USER", setup=_OWNED, short=300, full=5000),
    Row(name="what a role owns, dropped", sql="DROP OWNED BY somebody CASCADE", setup=_OWNED, short=300, full=5000),
    Row(name="a schema of tables dropped", sql="DROP SCHEMA many CASCADE", setup=_TABLES, short=300, full=5000),
    Row(name="a schema of tables renamed", sql="ALTER SCHEMA many RENAME TO many_others; DROP SCHEMA many_others CASCADE", setup=_TABLES, short=300, full=5000),
    Row(name="rights on all tables", sql="GRANT SELECT ON ALL TABLES IN SCHEMA many TO PUBLIC; REVOKE SELECT ON ALL TABLES IN SCHEMA many FROM PUBLIC",
        setup=_TABLES, short=300, full=5000),
    Row(name="views of one table", sql="DROP TABLE many.b CASCADE", short=300, full=3000,
        setup=(*_SCHEMA, "CREATE TABLE many.b (id int, s text)", _each("CREATE VIEW many.v# AS SELECT id, s FROM many.b"))),
    Row(name="keys to one table", sql="DROP TABLE many.b CASCADE", short=300, full=3000,
        setup=(*_SCHEMA, "CREATE TABLE many.b (id int PRIMARY KEY)", _each("CREATE TABLE many.t# (id int REFERENCES many.b)"))),
    Row(name="domains over one domain", sql="DROP DOMAIN many.d CASCADE", short=300, full=3000,
        setup=(*_SCHEMA, "CREATE DOMAIN many.d AS int", _each("CREATE DOMAIN many.d# AS many.d CHECK (VALUE > 0)"))),
    Row(name="functions of a schema", sql="DROP SCHEMA many CASCADE", short=300, full=3000,
        setup=(*_SCHEMA, _each("CREATE FUNCTION many.f#(int) RETURNS int LANGUAGE sql RETURN $1"))),
    Row(name="a column of all partitions", sql="ALTER TABLE many.p ADD COLUMN q int; ALTER TABLE many.p DROP COLUMN q", setup=_PARTITIONS, short=100, full=1000),
    Row(name="an index of all partitions", sql="CREATE INDEX ON many.p (s); ALTER TABLE many.p ADD CHECK (id > 0)", setup=_PARTITIONS, short=100, full=1000),
    Row(name="a long list looked up in the catalog", sql=lambda n: f"SELECT count(*) FROM pg_class WHERE oid IN ({', '.join(map(str, range(n)))})",
        short=20_000, full=100_000),
    Row(name="INSERT of many rows of literals", sql=lambda n: f"INSERT INTO many_rows VALUES {', '.join(f'({i}, {i})' for i in range(n))}",
        setup=("CREATE TEMP TABLE many_rows (a int, b int)",), short=10_000, full=100_000),
    # Each for itself: of several statements in one message each has statement_timeout.
    Row(name="all partitions emptied", sql="TRUNCATE many.p", setup=_PARTITIONS, short=300, full=3000),
    Row(name="all partitions dropped", sql="DROP TABLE many.p", setup=_PARTITIONS, short=300, full=3000),
)  # fmt: skip
