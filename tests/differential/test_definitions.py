"""Definitions beside PostgreSQL 15, which errors come first, what is told before them, what CASCADE takes along: kinds that random ones have found."""

from __future__ import annotations

from typing import Final

from tests.differential.random_definitions import Found, Pair, differing
from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres"]

CASES: Final = {
    "the rows of what goes are types, too": (
        "CREATE TYPE s.c AS (a int, b int)", "CREATE TABLE s.t (a int, b s.c)", "CREATE VIEW s.v AS SELECT * FROM s.t",
        "CREATE VIEW s.w AS SELECT x AS w FROM s.v x", "CREATE TABLE s2.t (a int, b s.v)", "CREATE VIEW s2.m AS SELECT b FROM s.v", "DROP TYPE s.c", "DROP TYPE s.c CASCADE",
        "CREATE AGGREGATE s.g(int) (SFUNC = int4pl, STYPE = int)", "CREATE VIEW s.v AS SELECT s.g(1) AS w", "CREATE TABLE s.u (a s.v, b int)",
        "DROP AGGREGATE s.g(int)", "DROP AGGREGATE s.g(int) CASCADE",
        "CREATE TYPE s.c AS (a int)", "CREATE TABLE s.o OF s.c", "CREATE FUNCTION s2.f() RETURNS s.o LANGUAGE sql AS 'SELECT 1'", "DROP TYPE s.c", "DROP TYPE s.c CASCADE",
    ),
    "what hangs on views that go with a schema": (
        "CREATE TABLE s.t (a int, b text)", "CREATE VIEW s2.v AS SELECT * FROM s.t", "CREATE TABLE s2.t (a int)", "CREATE TABLE s2.u (a int, b s2.v)",
        "CREATE POLICY p ON s2.t USING (EXISTS (SELECT FROM s2.v))", "DROP SCHEMA s CASCADE", "CREATE SCHEMA s",
        "CREATE FUNCTION s.f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'", "CREATE TABLE s2.x (a int, b int GENERATED ALWAYS AS (s.f(a)) STORED)",
        "CREATE VIEW s2.y AS SELECT * FROM s2.x", "CREATE VIEW s2.z AS SELECT * FROM s2.y", "DROP FUNCTION s.f(int)", "DROP SCHEMA s CASCADE", "CREATE SCHEMA s",
    ),
    "members go with their extension": (
        "CREATE EXTENSION citext SCHEMA s", "CREATE DOMAIN s2.d AS s.citext", "DROP SCHEMA s CASCADE", "CREATE SCHEMA s",
    ),
    "told before an error": (
        "CREATE TEMP TABLE t (a int)", "CREATE VIEW s.v AS SELECT * FROM pg_temp.t", "CREATE VIEW v AS SELECT * FROM t", "DROP TABLE t CASCADE",
        "CREATE TYPE s.c AS (a int, b int)", "ALTER TYPE s.c DROP ATTRIBUTE IF EXISTS e, ADD ATTRIBUTE b text", "ALTER TYPE s.c ADD ATTRIBUTE b nosuch",
    ),
    "passes of ALTER TABLE": (
        "CREATE TYPE s.c AS (a int, b int)", "ALTER TYPE s.c ADD ATTRIBUTE b text, DROP ATTRIBUTE b", "CREATE TABLE s.t (a int, b int)",
        "ALTER TABLE s.t ADD COLUMN b text, DROP COLUMN b", "ALTER TABLE s.t ADD COLUMN c nosuch, DROP COLUMN x", "ALTER TABLE s.t ALTER a SET DEFAULT 'x', ALTER a TYPE text",
        "ALTER TABLE s.t ADD CHECK (c > 0), ADD COLUMN c int", "ALTER TABLE s.t ADD COLUMN d int, ALTER d TYPE text", "ALTER TABLE s.t ALTER c SET NOT NULL, ALTER c DROP NOT NULL",
    ),
    "typed tables": (
        "CREATE TYPE s.c AS (a int, b int)", "CREATE TABLE s.t OF s.c (CONSTRAINT k CHECK (a > 0))", "ALTER TABLE s.t ADD COLUMN b int, DROP COLUMN b", "ALTER TABLE s.t RENAME CONSTRAINT k TO l", "ALTER TABLE s.t ALTER z TYPE text",
        "ALTER TABLE s.t ALTER a TYPE text USING nosuch(a)", "ALTER TABLE s.t ALTER a TYPE nosuch", "ALTER TYPE s.c RENAME ATTRIBUTE a TO b CASCADE",
    ),
    "partitions": (
        "CREATE TABLE s.t (a int, b int GENERATED ALWAYS AS (1) STORED) PARTITION BY LIST (a)", "CREATE TABLE s.p PARTITION OF s.t DEFAULT",
        "ALTER TABLE s.p ALTER z DROP EXPRESSION", "ALTER TABLE s.p ALTER b DROP EXPRESSION", "ALTER TABLE s.p ALTER b TYPE text USING nosuch(b)", "ALTER TABLE s.p ALTER b TYPE nosuch",
    ),
    "operator classes": (
        "CREATE DOMAIN s.d AS json", "CREATE TABLE s.t (a s.d, b int[], c text)", "CREATE INDEX ON s.t (a)", "CREATE INDEX ON s.t USING gin (a)", "CREATE INDEX ON s.t USING gist (b)",
        "ALTER TABLE s.t ADD EXCLUDE USING gist (a WITH =)", "ALTER TABLE s.t ADD EXCLUDE USING gist (b WITH &&)", "ALTER TABLE s.t ADD EXCLUDE USING gist (c WITH &&)",
        "ALTER TABLE s.t ADD EXCLUDE USING gist (nosuch(c) WITH &&)", "ALTER TABLE s.t ADD PRIMARY KEY (a)", "CREATE UNIQUE INDEX ON s.t (c) INCLUDE (b, a)",
        "CREATE VIEW s.v AS SELECT * FROM s.t", "CREATE INDEX ON s.v ((nosuch(a)))", "CREATE INDEX ON s.v (a)",
    ),
    "a target that cannot be changed is told last": (
        "CREATE MATERIALIZED VIEW s.m AS SELECT 1 AS a", "INSERT INTO s.m VALUES ('x')", "INSERT INTO s.m VALUES (1)", "INSERT INTO s.m (z) VALUES (1)", "UPDATE s.m SET a = nosuch()",
        "UPDATE s.m SET a = 2", "DELETE FROM s.m WHERE nosuch()", "DELETE FROM s.m", "INSERT INTO s.m VALUES (1) RETURNING z", "MERGE INTO s.m USING (SELECT 1 AS b) x ON a = b WHEN MATCHED THEN DELETE",
        "CREATE VIEW s.v AS SELECT 1 AS a", "INSERT INTO s.v VALUES (nosuch())", "INSERT INTO s.v VALUES (1)", "UPDATE s.v SET a = 'x'", "UPDATE s.v SET a = 1", "DELETE FROM s.v WHERE a = 'x'",
        "DELETE FROM s.v", "CREATE TABLE nosuch.t AS SELECT nosuch()", "CREATE TABLE nosuch.t AS SELECT 1 AS a", "CREATE MATERIALIZED VIEW nosuch.m AS SELECT nosuch()",
    ),
    "triggers": (
        "CREATE TABLE s.t (a int, b int, c int)", "CREATE FUNCTION s.g() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE FUNCTION s.f(int) RETURNS int LANGUAGE sql AS 'SELECT $1'",
        "CREATE TRIGGER x BEFORE UPDATE OF a, b ON s.t FOR EACH ROW WHEN (s.f(NEW.a) IS NULL OR NEW.c = 1) EXECUTE FUNCTION s.g()",
    ),
    "views over domains": (
        "CREATE DOMAIN s.d AS text", "CREATE TABLE s.t (a s.d)", "CREATE VIEW s.v AS SELECT * FROM s.t", "CREATE OR REPLACE VIEW s.v AS SELECT *, 1 AS n FROM s.t",
        "CREATE OR REPLACE VIEW s.v AS SELECT a::text, 1 AS n FROM s.t", "CREATE VIEW s.w AS SELECT a::text AS a FROM s.t", "CREATE OR REPLACE VIEW s.w AS SELECT a FROM s.t",
    ),
    "sides of set operations in hints": (
        "CREATE TABLE s.t (a int, b int)", "CREATE VIEW s.v AS SELECT a AS x, 2 AS c FROM s.t UNION ALL SELECT c, 3 FROM s.t", "SELECT a AS x FROM s.t UNION SELECT b FROM s.t EXCEPT SELECT x FROM s.t",
        "SELECT a AS x FROM s.t UNION (SELECT b AS xx FROM s.t EXCEPT SELECT xx FROM s.t)", "SELECT a FROM s.t t UNION SELECT t.a FROM s.t u", "SELECT * FROM s.t, LATERAL (SELECT 1 AS z UNION SELECT zz FROM s.t) q",
        "SELECT 1 AS c UNION (SELECT 2 AS d UNION SELECT c ORDER BY 1)", "SELECT 1 AS c UNION SELECT 2 LIMIT c",
    ),
    "foreign keys are looked up last": (
        "CREATE TABLE s.t (a int REFERENCES nosuch, b int DEFAULT 'x')", "CREATE TABLE s.t (a int REFERENCES nosuch, b int GENERATED ALWAYS AS (b) STORED)", "CREATE TABLE s.t (a int REFERENCES nosuch, b nosuch)",
        "CREATE TABLE s.t (FOREIGN KEY (a) REFERENCES nosuch, a int, CHECK (c > 0))", "CREATE TABLE s.t (a int REFERENCES nosuch) PARTITION BY LIST (z)", "CREATE TABLE s.t (a int REFERENCES nosuch)",
        "CREATE TABLE s.t (a int PRIMARY KEY, b int REFERENCES s.t)", "ALTER TABLE s.t ADD COLUMN c int REFERENCES nosuch CHECK (z > 0)", "ALTER TABLE s.t ADD COLUMN c int REFERENCES s.t",
    ),
    "names in hints": (
        'CREATE FUNCTION s."N x"(int) RETURNS int LANGUAGE sql AS $$SELECT 1$$', 'CREATE OR REPLACE FUNCTION s."N x"(int) RETURNS text LANGUAGE sql AS $$SELECT 1$$',
        "SET search_path = s", 'CREATE OR REPLACE FUNCTION "N x"(int) RETURNS text LANGUAGE sql AS $$SELECT 1$$', "RESET search_path",
    ),
}  # fmt: skip
AROUND: Final = (
    (
        "DROP SCHEMA IF EXISTS s CASCADE",
        "DROP SCHEMA IF EXISTS s2 CASCADE",
        "CREATE SCHEMA s",
        "CREATE SCHEMA s2",
    ),
    ("DROP SCHEMA s CASCADE", "DROP SCHEMA s2 CASCADE", "DISCARD TEMP"),
)


def test_kinds_of_definitions_end_as_in_postgresql(postgres: str, server: ServerProcess) -> None:
    pair = Pair(f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres", postgres, Found())
    wrong: list[str] = []
    for kind, statements in CASES.items():
        for sql in AROUND[0]:
            pair.ask(sql)
        for sql in statements:
            ours, theirs = pair.statement(sql)
            if differing(ours, theirs):
                wrong.append(f"{kind}: {sql}\n    {ours}\n    {theirs}")
        wrong += [f"{kind}: {line}" for line in pair.catalogs()]
        for sql in AROUND[1]:
            ours, theirs = pair.ask(sql)
            if differing(ours, theirs):
                wrong.append(f"{kind}: {sql}\n    {ours}\n    {theirs}")
    pair.close()
    assert not wrong, "\n".join(wrong)
