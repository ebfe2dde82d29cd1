-- A schema gets another name: what reads its tables, calls its functions and draws from its sequences follows.
-- also: local
CREATE SCHEMA rs_old;
CREATE TYPE rs_old.mood AS ENUM ('a', 'b');
CREATE SEQUENCE rs_old.seq;
CREATE FUNCTION rs_old.f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'select $1 + 1';
CREATE TABLE rs_old.t (
    a int PRIMARY KEY DEFAULT nextval('rs_old.seq'), b int DEFAULT rs_old.f(1) CHECK (rs_old.f(b) > 1), m rs_old.mood DEFAULT 'a'
);
CREATE INDEX rs_ti ON rs_old.t (rs_old.f(b)) WHERE rs_old.f(a) > 0;
CREATE TABLE rs_o (a int REFERENCES rs_old.t, b int CHECK (b <> rs_old.f(100)));
CREATE VIEW rs_v AS SELECT t.a, rs_old.f(t.b) AS fb, 'a'::rs_old.mood AS k, t.m FROM rs_old.t WHERE rs_old.f(a) > 0;
CREATE VIEW rs_old.w AS SELECT v.a, x.m FROM rs_v v JOIN rs_old.t x ON v.a = x.a;
CREATE MATERIALIZED VIEW rs_mv AS SELECT count(*) AS n FROM rs_old.t;
CREATE FUNCTION rs_count() RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM rs_old.t WHERE rs_old.f(a) > 0; END;
ALTER TABLE rs_o ENABLE ROW LEVEL SECURITY;
CREATE POLICY rs_p ON rs_o USING (a IN (SELECT a FROM rs_old.t));
INSERT INTO rs_old.t VALUES (DEFAULT);
ALTER SCHEMA rs_old RENAME TO "rs New";
INSERT INTO "rs New".t VALUES (DEFAULT) RETURNING *;
INSERT INTO rs_o VALUES (2, 3);
SELECT * FROM rs_v ORDER BY a;
SELECT * FROM "rs New".w ORDER BY a;
REFRESH MATERIALIZED VIEW rs_mv;
SELECT n, rs_count() FROM rs_mv;
SELECT pg_get_viewdef('rs_v'::regclass, true), pg_get_viewdef('"rs New".w'::regclass, true);
SELECT polname, pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polname = 'rs_p';
SELECT pg_get_functiondef('rs_count'::regproc);
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid IN ('rs_o'::regclass, '"rs New".t'::regclass) ORDER BY 1;
SELECT * FROM rs_old.t;
DROP TABLE rs_o;
DROP FUNCTION rs_count;
DROP MATERIALIZED VIEW rs_mv;
DROP VIEW "rs New".w, rs_v;
DROP SCHEMA "rs New" CASCADE;
