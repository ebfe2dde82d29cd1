"""Permanent objects of every kind over temporary ones of every kind, for tests of what the end of a session leaves.

    CREATE TEMP TABLE rt (a int)   ×   CREATE DOMAIN p AS {type}[]   ->   one script, in a schema of its own

``lives()`` is the product; ``LEFT`` lists what a schema still has, in words that PostgreSQL and Holdfast share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple


class Temporary(NamedTuple):
    """A temporary object: how it is made, the types that it brings, and expressions that use it."""

    make: tuple[str, ...]
    types: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()
    relation: str = ""
    routine: str = ""


TEMPORARIES: Final[dict[str, Temporary]] = {
    "table": Temporary(("CREATE TEMP TABLE rt (a int PRIMARY KEY, b text)",), ("rt", "rt[]"), (), "rt"),
    "partitioned table": Temporary(
        ("CREATE TEMP TABLE rp (a int) PARTITION BY LIST (a)", "CREATE TEMP TABLE rp1 PARTITION OF rp DEFAULT"),
        ("rp", "rp1[]"), (), "rp",
    ),
    "view": Temporary(("CREATE TEMP VIEW rv AS SELECT 1 AS a",), ("rv", "rv[]"), (), "rv"),
    "sequence": Temporary(("CREATE TEMP SEQUENCE rs",), (), ("nextval('rs')::int",), "rs"),
    "domain": Temporary(("CREATE DOMAIN pg_temp.rd AS int CHECK (VALUE > 0)",), ("pg_temp.rd", "pg_temp.rd[]")),
    "domain of a table": Temporary(
        ("CREATE TEMP TABLE rt (a int)", "CREATE DOMAIN pg_temp.rd AS rt[]"), ("pg_temp.rd",)
    ),
    "enum": Temporary(("CREATE TYPE pg_temp.re AS ENUM ('x', 'y')",), ("pg_temp.re", "pg_temp.re[]")),
    "composite": Temporary(("CREATE TYPE pg_temp.rc AS (a int, b text)",), ("pg_temp.rc", "pg_temp.rc[]")),
    "range": Temporary(
        ("CREATE TYPE pg_temp.rr AS RANGE (subtype = int, multirange_type_name = rrm)",),
        ("pg_temp.rr", "pg_temp.rr[]", "rrm", "rrm[]"), ("lower(pg_temp.rr(1, 2))",),
    ),
    "function": Temporary(
        ("CREATE FUNCTION pg_temp.rf(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1'",), (), ("pg_temp.rf(1)",),
        routine="pg_temp.rf",
    ),
    "trigger function": Temporary(
        ("CREATE FUNCTION pg_temp.tf() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",), (), (),
    ),
    "aggregate": Temporary(
        ("CREATE AGGREGATE pg_temp.ra(int) (sfunc = int4pl, stype = int)",), (), ("(SELECT pg_temp.ra(1))",),
    ),
}  # fmt: skip

OVER_TYPES: Final = (
    "CREATE TABLE p (k int, c {0}, d int)",
    "CREATE TABLE p (k int PRIMARY KEY, c {0} UNIQUE, d int); CREATE INDEX px ON p (k, c); CREATE INDEX py ON p (k)",
    "CREATE TABLE p (k int, c {0}, d int, CHECK (c IS NOT NULL OR k > 1)); COMMENT ON COLUMN p.c IS 'c'",
    "CREATE TABLE p (k int); ALTER TABLE p ADD COLUMN c {0}; GRANT SELECT (c) ON p TO PUBLIC",
    "CREATE TABLE p (k int DEFAULT (CASE WHEN NULL::{0} IS NULL THEN 1 END))",
    "CREATE TABLE p (k int GENERATED ALWAYS AS (CASE WHEN NULL::{0} IS NULL THEN 1 END) STORED, d int)",
    "CREATE TABLE p (k int, CHECK (k > 0 OR NULL::{0} IS NULL))",
    "CREATE TABLE p (k int); CREATE POLICY pp ON p USING (NULL::{0} IS NULL)",
    "CREATE TABLE p (k int, c {0}); CREATE POLICY pp ON p USING (c IS NULL); CREATE VIEW pv AS SELECT k, c FROM p",
    "CREATE TABLE p (k int, c {0}); CREATE VIEW pv AS SELECT k FROM p; CREATE VIEW pw AS SELECT c FROM p",
    "CREATE TABLE p (k int); CREATE INDEX px ON p ((NULL::{0} IS NULL AND k > 0))",
    "CREATE TABLE p (k int); CREATE INDEX px ON p (k) WHERE NULL::{0} IS NULL",
    "CREATE TABLE p (k int, c {0}) PARTITION BY LIST (k); CREATE TABLE p1 PARTITION OF p DEFAULT",
    "CREATE TABLE p (k int, c {0}) PARTITION BY LIST (c); CREATE TABLE p1 PARTITION OF p DEFAULT",
    "CREATE TABLE p (k int) PARTITION BY LIST ((k + (NULL::{0} IS NULL)::int)); CREATE TABLE p1 PARTITION OF p DEFAULT",
    "CREATE FUNCTION tf() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TABLE p (k int, c {0}); "
    "CREATE TRIGGER pt BEFORE UPDATE OF c ON p FOR EACH ROW EXECUTE FUNCTION tf(); "
    "CREATE TRIGGER pu BEFORE INSERT ON p FOR EACH ROW WHEN (NULL::{0} IS NULL) EXECUTE FUNCTION tf()",
    "CREATE DOMAIN d AS {0}; CREATE TABLE p (k int, c d)",
    "CREATE DOMAIN d AS {0} CHECK (VALUE IS NOT NULL); CREATE DOMAIN e AS d; CREATE TABLE p (k int, c e[])",
    "CREATE DOMAIN d AS int CHECK (NULL::{0} IS NULL); CREATE TABLE p (k int, c d)",
    "CREATE DOMAIN d AS int DEFAULT (CASE WHEN NULL::{0} IS NULL THEN 1 END); CREATE TABLE p (k int, c d)",
    "CREATE TYPE c AS (a int, b {0}); COMMENT ON COLUMN c.b IS 'b'",
    "CREATE TYPE c AS (a int, b {0}); CREATE TABLE p (k int, c c); CREATE FUNCTION f(c) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TYPE c AS (a int, b {0}); CREATE TYPE e AS (b c[]); CREATE DOMAIN d AS e",
    "CREATE TYPE r AS RANGE (subtype = {0}); CREATE TABLE p (k int, c r)",
    "CREATE FUNCTION f({0}) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE VIEW pv AS SELECT f(NULL) AS n",
    "CREATE FUNCTION f() RETURNS {0} LANGUAGE sql AS 'SELECT NULL'; CREATE TABLE p (k int DEFAULT (f() IS NULL)::int)",
    "CREATE FUNCTION f() RETURNS SETOF {0} LANGUAGE sql AS 'SELECT NULL'",
    "CREATE FUNCTION f(OUT a int, OUT b {0}) LANGUAGE sql AS 'SELECT 1, NULL'",
    "CREATE FUNCTION f() RETURNS TABLE (a {0}) LANGUAGE sql AS 'SELECT NULL'",
    "CREATE FUNCTION f(a int DEFAULT (CASE WHEN NULL::{0} IS NULL THEN 1 END)) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f() RETURNS boolean LANGUAGE sql RETURN NULL::{0} IS NULL",
    "CREATE FUNCTION f() RETURNS boolean LANGUAGE plpgsql AS 'DECLARE v {0}; BEGIN RETURN v IS NULL; END'",
    "CREATE PROCEDURE f({0}) LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION s({0}, int) RETURNS {0} LANGUAGE sql AS 'SELECT NULL'; CREATE AGGREGATE a(int) (sfunc = s, stype = {0})",
    "CREATE VIEW pv AS SELECT NULL::{0} AS c; CREATE VIEW pw AS SELECT 1 FROM pv",
    "CREATE VIEW pv AS SELECT 1 AS a WHERE NULL::{0} IS NULL; CREATE FUNCTION f(pv) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE MATERIALIZED VIEW pm AS SELECT 1 AS a, NULL::{0} AS c; CREATE INDEX ON pm (a)",
    "CREATE TABLE p AS SELECT 1 AS k, NULL::{0} AS c",
)  # fmt: skip
"""``{0}``: a type that a temporary object brings."""

OVER_EXPRESSIONS: Final = (
    "CREATE TABLE p (k int DEFAULT {0}, d int)",
    "CREATE TABLE p (k int GENERATED ALWAYS AS ({0}) STORED, d int)",
    "CREATE TABLE p (k int, CHECK (k > {0}))",
    "CREATE TABLE p (k int); CREATE POLICY pp ON p USING (k > {0})",
    "CREATE TABLE p (k int); CREATE INDEX px ON p ((k + {0}))",
    "CREATE TABLE p (k int); CREATE INDEX px ON p (k) WHERE k > {0}",
    "CREATE TABLE p (k int) PARTITION BY LIST ((k + {0})); CREATE TABLE p1 PARTITION OF p DEFAULT",
    "CREATE TABLE p (k int, EXCLUDE USING btree ((k + {0}) WITH =))",
    "CREATE DOMAIN d AS int DEFAULT {0}; CREATE TABLE p (c d)",
    "CREATE DOMAIN d AS int CHECK (VALUE > {0}); CREATE TABLE p (c d)",
    "CREATE FUNCTION f(a int DEFAULT {0}) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql RETURN {0}; CREATE VIEW pv AS SELECT f() AS c",
    "CREATE VIEW pv AS SELECT {0} AS c; CREATE MATERIALIZED VIEW pm AS SELECT c FROM pv",
    "CREATE MATERIALIZED VIEW pm AS SELECT {0} AS c",
)
"""``{0}``: an expression of type integer that uses a temporary object."""

OVER_RELATIONS: Final = (
    "CREATE VIEW pv AS SELECT count(*) AS n FROM {0}",
    "CREATE VIEW pv AS SELECT 1 AS n WHERE EXISTS (SELECT FROM {0})",
    "CREATE MATERIALIZED VIEW pm AS SELECT count(*) AS n FROM {0}",
    "CREATE TABLE p (k int); CREATE POLICY pp ON p USING (EXISTS (SELECT FROM {0}))",
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM {0}; END",
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM {0}'",
    "CREATE TABLE p (k int REFERENCES {0})",
    "CREATE TABLE p (LIKE {0} INCLUDING ALL)",
    "CREATE TABLE p PARTITION OF {0} FOR VALUES IN (7)",
    "CREATE TABLE p () INHERITS ({0})",
    "CREATE TABLE p OF {0}",
    "CREATE TABLE p (k int DEFAULT (SELECT 1 FROM {0}))",
    "CREATE TABLE p (k text DEFAULT '{0}'::regclass::text)",
    "CREATE SEQUENCE q OWNED BY {0}.a",
)
"""``{0}``: the name of a temporary relation."""

ALONE: Final = (
    ("trigger function", "CREATE TABLE p (k int); CREATE TRIGGER pt BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION pg_temp.tf()"),
    ("function", "CREATE AGGREGATE a(int) (sfunc = s, stype = int); CREATE AGGREGATE b(int) (sfunc = int4pl, stype = int, finalfunc = pg_temp.rf)"),
)  # fmt: skip


class Script(NamedTuple):
    """Statements in a schema of their own, after those that make the temporary object; any may be refused."""

    schema: str
    statements: tuple[str, ...]


class Life(NamedTuple):
    """What one session does: it makes a temporary object, and runs scripts over it."""

    name: str
    make: tuple[str, ...]
    scripts: tuple[Script, ...]


def lives(prefix: str, part: int = 0, parts: int = 1) -> Iterator[Life]:
    """Yield the product of temporary objects and of what may hang on them, or one of several parts of it. Schemas begin with ``prefix``."""
    number = 0
    for name, made in TEMPORARIES.items():
        forms = [(text, type_) for type_ in made.types for text in OVER_TYPES]
        forms += [(text, expression) for expression in made.expressions for text in OVER_EXPRESSIONS]
        forms += [(text, made.relation) for text in OVER_RELATIONS if made.relation]
        forms += [(text, "") for other, text in ALONE if other == name]
        found: list[Script] = []
        for text, argument in forms:
            number += 1
            if number % parts == part:
                statements = [
                    f"CREATE SCHEMA {prefix}{number}",
                    f"SET search_path = {prefix}{number}, public",
                ]
                own = _VIEW.sub(rf"\g<1>{number}", text)  # views over temporary objects share one schema
                statements += _STATEMENTS.split(own.replace("{0}", argument))
                found.append(Script(f"{prefix}{number}", tuple(statements)))
        yield Life(name, made.make, tuple(found))


_VIEW: Final = re.compile(r"\b(pv|pw|pm)\b")
_STATEMENTS: Final = re.compile(r"; (?=[A-Z])(?!END)")

LEFT: Final = """
WITH s AS (SELECT oid, nspname FROM pg_namespace WHERE nspname LIKE '{0}%'),
  c AS (SELECT c.*, nspname FROM pg_class c JOIN s ON s.oid = relnamespace)
SELECT nspname, 'relation', relkind::text || ' ' || relname FROM c
UNION ALL SELECT nspname, 'column', relname || '.' || attname || ' ' || CASE WHEN t.typnamespace = 11 THEN t.oid::regtype::text ELSE typname END
  FROM pg_attribute JOIN c ON c.oid = attrelid JOIN pg_type t ON t.oid = atttypid WHERE attnum > 0 AND NOT attisdropped AND relkind <> 'S'
UNION ALL SELECT nspname, 'default', relname || '.' || adnum FROM pg_attrdef JOIN c ON c.oid = adrelid
UNION ALL SELECT nspname, 'constraint', contype::text || ' ' || conname FROM pg_constraint JOIN s ON s.oid = connamespace
UNION ALL SELECT nspname, 'trigger', tgname FROM pg_trigger JOIN c ON c.oid = tgrelid WHERE NOT tgisinternal
UNION ALL SELECT nspname, 'policy', polname FROM pg_policy JOIN c ON c.oid = polrelid
UNION ALL SELECT nspname, 'type', typtype::text || ' ' || typname FROM pg_type JOIN s ON s.oid = typnamespace
UNION ALL SELECT nspname, 'function', proname || ' ' || pronargs FROM pg_proc JOIN s ON s.oid = pronamespace
UNION ALL SELECT nspname, 'comment', description FROM pg_description JOIN c ON c.oid = objoid
ORDER BY 1, 2, 3
"""
"""``{0}``: what the names of schemas begin with. The rows: a schema, kinds and names of what is in it."""
