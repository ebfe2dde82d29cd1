-- Plans outlive DDL that means nothing to them: what a name means may not have changed behind them, in a transaction with DDL neither.
CREATE SCHEMA plans_first;
CREATE SCHEMA plans_second;
SET search_path = plans_first, plans_second;
CREATE TABLE plans_second.t (a int, b text DEFAULT 'second');
INSERT INTO plans_second.t VALUES (1);
CREATE TABLE plans_second."q""t" (a int);
INSERT INTO plans_second."q""t" VALUES (10);
CREATE TABLE plans_second.tä (a int);
INSERT INTO plans_second.tä VALUES (20);
CREATE TYPE plans_second.kind AS (x int, y int);

SELECT a, b FROM T;
SELECT a FROM "q""t";
SELECT a FROM U&"\0074";
SELECT a FROM tä;
SELECT (ROW(1, 2)::kind).y FROM t;
SELECT 't'::regclass = 'plans_second.t'::regclass FROM t;
CREATE TABLE plans_first.other (c int);
SELECT a, b FROM T;
CREATE TABLE plans_first.t (a int, b text DEFAULT 'first');
CREATE TABLE plans_first."q""t" (a int);
CREATE TABLE plans_first.tä (a int);
CREATE TABLE plans_first.kind (y int, x int);
SELECT a, b FROM T;
SELECT a FROM "q""t";
SELECT a FROM U&"\0074";
SELECT a FROM tä;
SELECT (ROW(1, 2)::kind).y FROM plans_second.t;
SELECT 't'::regclass = 'plans_second.t'::regclass FROM plans_second.t;
DROP TABLE plans_first.t, plans_first."q""t", plans_first.tä, plans_first.kind;
SELECT a, b FROM T;
SELECT (ROW(1, 2)::kind).y FROM t;

-- the same within a transaction, and taken back
BEGIN;
CREATE TABLE plans_first.another (c int);
SELECT a, b FROM t WHERE a = 1;
SELECT a, b FROM t WHERE a = 2;
SELECT a, b FROM t WHERE a = 1;
SAVEPOINT s;
CREATE TABLE plans_first.t (a int, b text DEFAULT 'first');
INSERT INTO t VALUES (2);
SELECT a, b FROM t WHERE a = 2;
ALTER TABLE t ADD c int DEFAULT 5;
SELECT * FROM t WHERE a = 2;
SELECT * FROM t WHERE a = 2;
ALTER TABLE t DROP b;
SELECT * FROM t WHERE a = 2;
SELECT a, b FROM t WHERE a = 2;
ROLLBACK TO s;
SELECT * FROM t WHERE a = 2;
SELECT a, b FROM t WHERE a = 1;
INSERT INTO t VALUES (3);
CREATE INDEX t_a ON t (a);
SELECT a, b FROM t WHERE a = 3;
CREATE VIEW plans_first.v AS SELECT a FROM t;
SELECT a FROM v ORDER BY a;
SELECT count(*) FROM t_a_seq;
ROLLBACK;
SELECT a, b FROM t WHERE a = 3;
SELECT a FROM v;

-- functions in the place of their calls, and views over them, look for names of their own
CREATE FUNCTION plans_second.f() RETURNS int LANGUAGE sql STABLE AS 'SELECT count(*)::int FROM t';
SELECT f() AS n;
SELECT f() AS n;
CREATE TABLE plans_first.t (a int);
SELECT f() AS n;
DROP TABLE plans_first.t;

-- queries of the catalog: relations mean nothing to them, types and functions of users do
CREATE FUNCTION plans_second.g() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TYPE plans_second.mood AS ENUM ('low', 'high');
SELECT g(), 'low'::mood FROM pg_class WHERE relname = 'pg_class';
SELECT g(), 'low'::mood FROM pg_class WHERE relname = 'pg_class';
CREATE OR REPLACE FUNCTION plans_second.g() RETURNS int LANGUAGE sql AS 'SELECT 2';
SELECT g(), 'low'::mood FROM pg_class WHERE relname = 'pg_class';
CREATE FUNCTION plans_first.g() RETURNS int LANGUAGE sql AS 'SELECT 3';
SELECT g(), 'low'::mood FROM pg_class WHERE relname = 'pg_class';
DROP FUNCTION plans_first.g();
SELECT g(), 'low'::mood FROM pg_class WHERE relname = 'pg_class';
DROP TYPE plans_second.mood;
SELECT g(), 'low'::mood FROM pg_class WHERE relname = 'pg_class';
BEGIN;
CREATE TABLE plans_first.mine (a int, b text);
SELECT column_name FROM information_schema.columns WHERE table_name = 'mine' AND table_schema = 'plans_first' ORDER BY 1;
ALTER TABLE mine ADD c int;
SELECT column_name FROM information_schema.columns WHERE table_name = 'mine' AND table_schema = 'plans_first' ORDER BY 1;
ALTER TABLE mine RENAME a TO d;
SELECT column_name FROM information_schema.columns WHERE table_name = 'mine' AND table_schema = 'plans_first' ORDER BY 1;
ROLLBACK;
SELECT column_name FROM information_schema.columns WHERE table_name = 'mine' AND table_schema = 'plans_first' ORDER BY 1;

RESET search_path;
DROP SCHEMA plans_first, plans_second CASCADE;
