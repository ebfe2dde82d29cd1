"""Random DDL: statements that make, change, rename, move and drop objects of every kind, over one another.

    GRAMMAR   "statement" -> "table" -> "CREATE TABLE {+table} ({column}, ...)" -> CREATE TABLE s.t4 (a s.d1 DEFAULT s.f0(1), ...)

Names come from small pools in two schemas and the session's temporary one, so that objects meet. About half of the statements fail, as
they should; ``told`` says which, so that later ones name what is there. Deterministic by seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Final

SETUP: Final = (
    "DROP SCHEMA IF EXISTS s, s2, s3 CASCADE", "DROP FOREIGN DATA WRAPPER IF EXISTS w0 CASCADE",
    "CREATE FOREIGN DATA WRAPPER w0", "CREATE SERVER w0 FOREIGN DATA WRAPPER w0",
    "CREATE SCHEMA s",
    "CREATE SCHEMA s2",
    "CREATE TYPE s.e0 AS ENUM ('a', 'b')", "CREATE DOMAIN s.d0 AS s.e0", "CREATE TYPE s.c0 AS (a int, b s.d0)",
    "CREATE TYPE s.r0 AS RANGE (SUBTYPE = int)", "CREATE SEQUENCE s.q0", "CREATE TABLE s.t0 (a int PRIMARY KEY, b s.c0)",
    "CREATE TABLE s.p0 (a int, b text) PARTITION BY LIST (a)", "CREATE VIEW s.v0 AS SELECT * FROM s.t0",
    "CREATE MATERIALIZED VIEW s.m0 AS SELECT * FROM s.v0",
    "CREATE FUNCTION s.f0(x int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$",
    "CREATE FUNCTION s.g0() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
    "CREATE PROCEDURE s.k0(INOUT x int) LANGUAGE plpgsql AS $$ BEGIN x := 1; END $$",
    "CREATE AGGREGATE s.a0(int) (SFUNC = int4pl, STYPE = int)",
    "DO $$ BEGIN CREATE ROLE ddl_owner; EXCEPTION WHEN duplicate_object THEN NULL; END $$", "GRANT ALL ON SCHEMA s TO ddl_owner",
    "CREATE TEXT SEARCH CONFIGURATION s.w0 (COPY = english)",
)  # fmt: skip
"""Two schemas, one object of each kind to begin with, and a role, which stays."""

OBJECTS: Final[Mapping[str, str]] = {
    "table": "t", "parent": "p", "enum": "e", "domain": "d", "composite": "c", "range": "r", "function": "f", "trigger function": "g",
    "procedure": "k", "aggregate": "a", "view": "v", "materialized": "m", "sequence": "q", "index": "i", "configuration": "w",
}  # fmt: skip
"""Kinds of objects, and how their names begin."""

_WORDS: Final[Mapping[str, str]] = {
    "table": "TABLE", "parent": "TABLE", "enum": "TYPE", "domain": "DOMAIN", "composite": "TYPE", "range": "TYPE", "function": "FUNCTION",
    "trigger function": "FUNCTION", "procedure": "PROCEDURE", "aggregate": "AGGREGATE", "view": "VIEW", "materialized": "MATERIALIZED VIEW",
    "sequence": "SEQUENCE", "index": "INDEX", "configuration": "TEXT SEARCH CONFIGURATION",
}  # fmt: skip

_SAME_TYPES: Final = ("enum", "domain", "composite", "range")

GRAMMAR: Final[Mapping[str, tuple[str, ...]]] = {
    "statement": (
        *["{make table}"] * 5, *["{make type}"] * 5, *["{make routine}"] * 4, *["{make view}"] * 4, *["{make index}"] * 3,
        *["{alter}"] * 7, *["{drop}"] * 4, *["{block}"] * 3, *["{rows}"] * 3, *["{partition}"] * 2, *["{rename}"] * 2,
        "{trigger}", "{policy}", "{make sequence}", "{owner}", "{comment}", "{rights}", "{session}", "{search}",
    ),
    "relation": ("{table}", "{table}", "{view}", "{materialized}", "{parent}"),
    "type": (
        "{plain type}", "{plain type}", "{enum}", "{enum}", "{domain}", "{domain}", "{composite}", "{range}", "{table}", "{view}",
        "{type}[]",
    ),
    "plain type": ("int", "text", "numeric(10,2)", "date", "int4range", "jsonb", "varchar(5)", "boolean"),
    "constant": (
        "1", "2", "NULL", "'a'", "'b'", "'{{}}'", "'(1,2)'", "true", "NULL::{type}", "'a'::{enum}", "'1'::{domain}",
    ),
    "expression": (
        "{a}", "{a}", "{constant}", "{function}({expression})", "{function}({a})", "({expression} {operator} {expression})",
        "({expression})::{type}", "coalesce({expression}, {constant})", "row({expression}, 1)::{composite}", "nextval('{sequence}')",
        "CASE WHEN {expression} IS NULL THEN {constant} END",
    ),
    "fixed": ("{constant}", "{constant}", "{function}({constant})", "nextval('{sequence}')", "({constant})::{type}"),
    "operator": ("+", "||", "=", "<", "IS DISTINCT FROM"),
    "a": ("a", "b"),
    "query": (
        "SELECT * FROM {relation}", "SELECT * FROM {relation}", "SELECT {expression} AS a, {expression} AS b FROM {relation}",
        "SELECT {aggregate}(a) AS a, 1 AS b FROM {relation}", "SELECT x.*, x AS w FROM {relation} x",
        "SELECT a, 2 AS b FROM {relation} UNION ALL SELECT {expression}, 3 FROM {relation}", "SELECT {constant} AS a, {constant} AS b",
    ),
    "make table": (
        "CREATE TABLE {+table} ({column a}, {column b})", "CREATE TABLE {+table} ({column a}, {column b}, {column c})",
        "CREATE TABLE {+table} ({column a}, b {type}, {constraint})", "CREATE TABLE {+table} AS {query}",
        "CREATE TABLE {+table} (LIKE {table} INCLUDING ALL)", "CREATE TABLE {+table} OF {composite}",
        "CREATE FOREIGN TABLE {+table} ({column a}, {column b}) SERVER w0", "CREATE FOREIGN TABLE {+table} (a int, b {type}, {constraint}) SERVER w0 OPTIONS (x 'y')",
        "ALTER FOREIGN TABLE {table} OPTIONS (ADD z 'y'), ALTER a OPTIONS (ADD z 'y')",
    ),
    "column a": ("a int", "a int", "a int PRIMARY KEY", "a {type}", "{column}"),
    "column b": ("b {type}", "b {type} DEFAULT {fixed}", "{column}"),
    "column c": ("c {type}", "c serial", "c int GENERATED ALWAYS AS IDENTITY", "c {type} DEFAULT {fixed}"),
    "column": (
        "a {type}", "b {type}", "b {type} DEFAULT {fixed}", "a {type} CHECK ({expression} IS NOT NULL)",
        "b {type} GENERATED ALWAYS AS ({expression}) STORED", "a int REFERENCES {table}", "a {type} UNIQUE", "b {type} NOT NULL",
        "c {type}[] DEFAULT '{{}}'", "e {enum} DEFAULT 'a'", "h {domain}",
    ),
    "constraint": (
        "CHECK ({expression} IS NOT NULL)", "UNIQUE (a, b)", "PRIMARY KEY (a)", "FOREIGN KEY (a) REFERENCES {table} ON DELETE CASCADE",
        "EXCLUDE USING gist (b WITH &&)", "EXCLUDE USING btree (a WITH =)", "EXCLUDE USING gist (({expression}) WITH &&) WHERE (a IS NOT NULL)",
        "FOREIGN KEY ({any column}) REFERENCES {relation} (a) ON UPDATE CASCADE ON DELETE SET NULL DEFERRABLE", "CONSTRAINT x CHECK ({expression} IS NULL) NOT VALID",
        "CONSTRAINT y FOREIGN KEY (a) REFERENCES {table} NOT VALID",
    ),
    "partition": (
        "CREATE TABLE {+parent} ({column a}, b {type}, c text) PARTITION BY {strategy} ({key})",
        "CREATE TABLE {+parent} (a int, b {type}) PARTITION BY {strategy} ({key})",
        "CREATE TABLE {+table} PARTITION OF {parent} {bound}", "CREATE TABLE {+table} PARTITION OF {parent} DEFAULT", "CREATE FOREIGN TABLE {+table} PARTITION OF {parent} {bound} SERVER w0",
        "CREATE TABLE {+parent} PARTITION OF {parent} {bound} PARTITION BY LIST ({key})",
        "ALTER TABLE {parent} ATTACH PARTITION {table} {bound}", "ALTER TABLE {parent} DETACH PARTITION {table}",
    ),
    "strategy": ("RANGE", "LIST", "HASH"),
    "key": ("a", "a", "b", "({expression})"),
    "bound": (
        "DEFAULT", "FOR VALUES FROM (1) TO (10)", "FOR VALUES FROM (10) TO (MAXVALUE)", "FOR VALUES IN ({constant})",
        "FOR VALUES IN ('a', NULL)", "FOR VALUES WITH (MODULUS 2, REMAINDER 0)", "FOR VALUES FROM ({constant}) TO (MAXVALUE)",
    ),
    "make type": (
        "CREATE TYPE {+enum} AS ENUM ('a', 'b')", "CREATE TYPE {+enum} AS ENUM ('a', '1')", "CREATE DOMAIN {+domain} AS {type}",
        "CREATE DOMAIN {+domain} AS {plain type} DEFAULT {fixed}", "CREATE DOMAIN {+domain} AS {type} CHECK ({value} IS NOT NULL)",
        "CREATE TYPE {+composite} AS (a {type}, b {type})", "CREATE TYPE {+range} AS RANGE (SUBTYPE = {range of})",
    ),
    "value": ("VALUE", "{function}(VALUE)", "VALUE::text", "({constant})"),
    "range of": ("int", "date", "numeric", "text"),
    "make routine": (
        "CREATE FUNCTION {+function}(x {argument}) RETURNS {result} LANGUAGE sql {volatility} AS $$ SELECT {body} $$",
        "CREATE OR REPLACE FUNCTION {+function}(x int) RETURNS int LANGUAGE sql {volatility} AS $$ SELECT {body} $$",
        "CREATE FUNCTION {+function}(x {argument}) RETURNS {result} LANGUAGE sql {volatility} RETURN {of x}",
        "CREATE FUNCTION {+function}(x int) RETURNS SETOF {relation} LANGUAGE sql BEGIN ATOMIC SELECT * FROM {relation}; END",
        "CREATE FUNCTION {+function}(x {argument}, y {type} DEFAULT {fixed}) RETURNS int LANGUAGE sql {volatility} AS $$ SELECT 1 $$",
        "CREATE FUNCTION {+function}(x {argument}) RETURNS {result} LANGUAGE plpgsql {volatility} AS "
        "$$ DECLARE v {type}; w {table}; BEGIN RETURN {of x}; END $$",
        "CREATE FUNCTION {+trigger function}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
        "CREATE PROCEDURE {+procedure}(INOUT x {argument}) LANGUAGE plpgsql AS $$ BEGIN x := {constant}; END $$",
        "CREATE AGGREGATE {+aggregate}({argument}) (SFUNC = {step}, STYPE = {argument})",
    ),
    "argument": ("int", "int", "int", "{type}", "anyelement"),
    "result": ("int", "int", "int", "{type}", "SETOF {type}", "TABLE (a {type}, b int)", "void"),
    "volatility": ("IMMUTABLE", "IMMUTABLE", "STABLE", "VOLATILE"),
    "body": ("$1", "1", "{constant}", "{function}($1)", "count(*)::int FROM {relation}"),
    "of x": ("x", "1", "{constant}", "{function}(x)", "x::{type}"),
    "step": ("int4pl", "{function}", "array_append"),
    "make view": (
        "CREATE VIEW {+view} AS {query}", "CREATE VIEW {+view} AS {query}", "CREATE OR REPLACE VIEW {view} AS {query}",
        "CREATE MATERIALIZED VIEW {+materialized} AS {query}", "REFRESH MATERIALIZED VIEW {materialized}",
        "CREATE VIEW {+view} AS SELECT * FROM {table} WITH CHECK OPTION",
    ),
    "make index": (
        "CREATE INDEX ON {relation} ({index key})", "CREATE UNIQUE INDEX ON {table} ({index key})",
        "CREATE INDEX ON {relation} ({index key}) WHERE {expression} IS NOT NULL", "CREATE INDEX ON {relation} USING gin (b)",
        "CREATE INDEX ON {table} USING {method} (a)", "CREATE INDEX {index name} ON {table} (a)", "CREATE UNIQUE INDEX IF NOT EXISTS {index name} ON {table} (b, a)",
    ),
    "index key": ("a", "a, b", "({expression})", "({expression}), a", "a) INCLUDE (b"),
    "index name": ("ix1", "ix2"),
    "method": ("hash", "gist", "brin"),
    "trigger": (
        "CREATE TRIGGER {trigger name} BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {trigger function}()",
        "CREATE TRIGGER {trigger name} AFTER UPDATE OF a ON {table} FOR EACH ROW WHEN ({function}(NEW.a) IS NULL) "
        "EXECUTE FUNCTION {trigger function}()",
        "CREATE TRIGGER {trigger name} INSTEAD OF INSERT ON {view} FOR EACH ROW EXECUTE FUNCTION {trigger function}()",
        "DROP TRIGGER {trigger name} ON {table}", "ALTER TABLE {table} DISABLE TRIGGER {trigger name}",
        "ALTER TRIGGER {trigger name} ON {table} RENAME TO tr9",
    ),
    "trigger name": ("tr1", "tr2"),
    "policy": (
        "CREATE POLICY {policy name} ON {table} USING ({expression} IS NOT NULL)",
        "CREATE POLICY {policy name} ON {table} USING (EXISTS (SELECT 1 FROM {relation}))",
        "ALTER POLICY {policy name} ON {table} USING ({expression} IS NULL)", "DROP POLICY {policy name} ON {table}",
        "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
    ),
    "policy name": ("po1", "po2"),
    "make sequence": (
        "CREATE SEQUENCE {+sequence}", "CREATE SEQUENCE {+sequence} AS smallint START 5 INCREMENT -1",
        "ALTER SEQUENCE {sequence} OWNED BY {table}.a", "ALTER SEQUENCE {sequence} RESTART", "SELECT nextval('{sequence}')",
    ),
    "alter": (
        "ALTER TABLE {table} ADD {column}", "ALTER TABLE {table} ADD COLUMN {new column} {type} DEFAULT {fixed}",
        "ALTER TABLE {table} ADD COLUMN {new column} {enum} DEFAULT 'a'", "ALTER TABLE {parent} ADD COLUMN {new column} {type}",
        "ALTER TABLE {table} DROP COLUMN {any column} {how}", "ALTER TABLE {table} ALTER {any column} TYPE {type}",
        "ALTER TABLE {table} ALTER {any column} TYPE {type} USING {expression}", "ALTER TABLE {table} ALTER {any column} SET DEFAULT {fixed}",
        "ALTER TABLE {table} ALTER {any column} DROP DEFAULT", "ALTER TABLE {table} ALTER {any column} SET NOT NULL",
        "ALTER TABLE {table} ADD {constraint}", "ALTER TABLE {table} DROP CONSTRAINT {constraint name} {how}",
        "ALTER TABLE {table} VALIDATE CONSTRAINT {constraint name}", "ALTER TABLE {table} SET (fillfactor = 50)",
        "ALTER TABLE {table} ALTER {any column} ADD GENERATED ALWAYS AS IDENTITY", "ALTER TABLE {table} ALTER {any column} DROP EXPRESSION",
        "ALTER TABLE {table} ADD COLUMN {new column} {type}, DROP COLUMN {any column} {how}",
        "ALTER TABLE {table} ALTER {any column} TYPE {type}, ALTER {any column} SET DEFAULT {fixed}",
        "ALTER TABLE {table} OF {composite}", "ALTER TABLE {table} NOT OF", "ALTER TABLE {table} ADD CONSTRAINT x UNIQUE USING INDEX {index name}",
        "ALTER TYPE {enum} ADD VALUE IF NOT EXISTS '{label}' BEFORE 'a'", "ALTER TYPE {composite} ADD ATTRIBUTE {new column} {type}",
        "ALTER TYPE {composite} DROP ATTRIBUTE IF EXISTS {any column}, ADD ATTRIBUTE {new column} {type}",
        "ALTER TYPE {enum} ADD VALUE '{label}'", "ALTER TYPE {enum} RENAME VALUE 'a' TO '{label}'",
        "ALTER TYPE {composite} ADD ATTRIBUTE {new column} {type} CASCADE", "ALTER TYPE {composite} DROP ATTRIBUTE {any column} CASCADE",
        "ALTER TYPE {composite} ALTER ATTRIBUTE {any column} TYPE {type} CASCADE",
        "ALTER TYPE {composite} RENAME ATTRIBUTE {any column} TO {new column} CASCADE",
        "ALTER DOMAIN {domain} SET DEFAULT {fixed}", "ALTER DOMAIN {domain} ADD CONSTRAINT x CHECK ({value} IS NOT NULL)",
        "ALTER DOMAIN {domain} DROP CONSTRAINT x", "ALTER DOMAIN {domain} SET NOT NULL", "ALTER DOMAIN {domain} DROP DEFAULT",
        "ALTER VIEW {view} ALTER a SET DEFAULT {constant}", "ALTER VIEW {view} RENAME COLUMN {any column} TO {new column}",
        "ALTER FUNCTION {function} {volatility}", "ALTER FUNCTION {function} SET search_path = s",
    ),
    "any column": ("a", "b", "c", "e"),
    "new column": ("b", "c", "e", "h", "i"),
    "constraint name": ("x", "y"),
    "label": ("a", "b", "c", "z"),
    "how": ("", "CASCADE", "CASCADE", "RESTRICT"),
    "drop": ("DROP {any object} {how}", "DROP {any object} {how}", "DROP {any object} {how}", "DROP TABLE IF EXISTS {table}, {table} {how}", "DROP FOREIGN TABLE {table} {how}", "DROP TYPE {enum}, {domain} {how}", "DROP INDEX {index schema}.{index name}"),
    "index schema": ("s", "s2", "pg_temp"),
    "rename": (
        "ALTER {any object} RENAME TO {new name}", "ALTER {any object} SET SCHEMA {index schema}",
        "ALTER TABLE {table} RENAME {any column} TO {new column}", "ALTER TABLE {table} RENAME CONSTRAINT x TO y",
        "ALTER INDEX {index schema}.{index name} RENAME TO ix9", "ALTER SCHEMA s2 RENAME TO s3", "ALTER SCHEMA s3 RENAME TO s2",
    ),
    "owner": (
        "ALTER {any object} OWNER TO {role}", "ALTER {any object} OWNER TO {role}", "ALTER SCHEMA s2 OWNER TO {role}",
        "GRANT SELECT ON {relation} TO {role}",
    ),
    "role": ("ddl_owner", "ddl_owner", "postgres", "CURRENT_USER"),
    "comment": (
        "COMMENT ON {any object} IS 'said'", "COMMENT ON COLUMN {table}.{any column} IS 'said'",
        "COMMENT ON CONSTRAINT x ON {table} IS 'said'", "COMMENT ON TRIGGER tr1 ON {table} IS 'said'", "COMMENT ON SCHEMA s2 IS 'said'",
    ),
    "rights": (
        "GRANT SELECT ON {relation} TO PUBLIC", "GRANT INSERT (a), UPDATE (b) ON {table} TO PUBLIC", "REVOKE ALL ON {relation} FROM PUBLIC",
        "GRANT USAGE ON TYPE {domain} TO PUBLIC", "REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO PUBLIC",
        "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
    ),
    "block": (
        "BEGIN", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "ROLLBACK TO b", "RELEASE a",
    ),
    "rows": (
        "INSERT INTO {relation} VALUES ({constant}, {constant})", "INSERT INTO {table} (a) VALUES (1), (2)",
        "INSERT INTO {table} DEFAULT VALUES", "UPDATE {table} SET b = {expression}", "DELETE FROM {table} WHERE {expression} IS NULL",
        "TRUNCATE {table} CASCADE", "{query}", "CALL {procedure}(1)", "INSERT INTO {table} {query} ON CONFLICT DO NOTHING",
    ),
    "session": (
        "DISCARD TEMP", "SET search_path = s", "SET search_path = pg_temp, s", "RESET search_path", "DROP SCHEMA s2 CASCADE",
        "CREATE SCHEMA s2", "CREATE EXTENSION IF NOT EXISTS citext SCHEMA s", "DROP EXTENSION citext CASCADE", "ANALYZE", "CHECKPOINT",
    ),
    "search": (
        "CREATE TEXT SEARCH CONFIGURATION {+configuration} (COPY = english)", "DROP TEXT SEARCH CONFIGURATION {configuration} CASCADE",
        "CREATE TABLE {+table} (a text, b tsvector GENERATED ALWAYS AS (to_tsvector('{configuration}', a)) STORED)",
        "CREATE INDEX ON {table} USING gin (to_tsvector('{configuration}', a::text))",
    ),
}  # fmt: skip
"""Alternatives by what they are for. ``{x}``: one of x, or an object of the kind x; ``{+x}``: the name of a new one."""

_PLACE: Final = re.compile(r"\{(\+?)([a-z ]+)\}")
_DEEPEST: Final = 6


class RandomDdl:
    """One stream of statements, for any number of sessions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._there: dict[str, list[str]] = {kind: [] for kind in OBJECTS}
        self._new: list[tuple[str, str]] = []

    def statement(self) -> str:
        """Return the next statement; ``told`` is to be called with how it ended."""
        self._new = []
        return self._expand("{statement}", 0)

    def told(self, *, succeeded: bool) -> None:
        """Hear how the last statement ended."""
        if not succeeded:
            return
        for kind, name in self._new:
            self._there[kind].append(name)

    def chance(self, of: float) -> bool:
        """Return True with the probability ``of``."""
        return self._random.random() < of

    def one_of(self, *choices: str) -> str:
        """Return one of the choices."""
        return self._random.choice(choices)

    def _expand(self, template: str, depth: int) -> str:
        return _PLACE.sub(lambda m: self._place(m[1], m[2], depth + 1), template).replace("{{}}", "{}")

    def _place(self, new: str, what: str, depth: int) -> str:
        if new:
            return self._made(what)
        if what == "any object":
            kind = self._random.choice([k for k in OBJECTS if k != "index"])
            arguments = "(int)" if kind == "aggregate" else ""
            return f"{_WORDS[kind]} {self._existing(kind)}{arguments}"
        if what == "new name":
            return self._name(self._random.choice(list(OBJECTS)))
        if what in OBJECTS:
            return self._existing(what)
        choices = GRAMMAR[what]
        if depth > _DEEPEST and what in ("expression", "type", "fixed"):
            choices = choices[:2]
        return self._expand(self._random.choice(choices), depth)

    def _name(self, kind: str) -> str:
        return '"N x"' if self.chance(0.05) else f"{OBJECTS[kind]}{self._random.randrange(5)}"

    def _schema(self) -> str:
        return self._random.choices(("s", "s2", "pg_temp"), (5, 2, 3))[0]

    def _made(self, kind: str) -> str:
        name = f"{self._schema()}.{self._name(kind)}"
        self._new.append((kind, name))
        return name

    def _existing(self, kind: str) -> str:
        there = self._there[kind][-6:]
        return self._random.choice(there) if there else f"s.{OBJECTS[kind]}0"
