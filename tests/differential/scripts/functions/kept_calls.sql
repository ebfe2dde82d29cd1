-- Calls of SQL functions in what is kept with tables and domains: defaults, checks, generated columns, indexes.
-- also: local
SET client_min_messages = warning;
CREATE SEQUENCE nums START 10;
CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
CREATE FUNCTION next_num() RETURNS bigint LANGUAGE sql AS $$SELECT nextval('nums')$$;
CREATE FUNCTION tag(a text, b text DEFAULT 'x') RETURNS text LANGUAGE sql IMMUTABLE RETURN lower(a) || ':' || b;
CREATE FUNCTION small(a int) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT a < 100';
CREATE FUNCTION today() RETURNS date LANGUAGE sql STABLE AS 'SELECT date ''2024-05-06''';
CREATE FUNCTION volatile_only(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT $1 + (random() * 0)::int';
CREATE TABLE k (id bigint DEFAULT next_num(), a int DEFAULT twice(4) CHECK (small(a)), b text, d date DEFAULT today(), t text GENERATED ALWAYS AS (tag(b)) STORED, CONSTRAINT sum_small CHECK (small(twice(a))));
INSERT INTO k (b) VALUES ('One'), ('TWO');
INSERT INTO k (id, a, b) VALUES (1, 5, 'Three'), (2, NULL, NULL), (3, DEFAULT, DEFAULT);
SELECT * FROM k ORDER BY id;
INSERT INTO k (a) VALUES (100);
INSERT INTO k (a) VALUES (50);
UPDATE k SET a = 60 WHERE id = 1;
UPDATE k SET a = 7, b = 'Seven' WHERE id = 1 RETURNING *;
INSERT INTO k (id, a) VALUES (4, 1) ON CONFLICT DO NOTHING RETURNING t, d;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'k'::regclass ORDER BY adnum;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'k'::regclass ORDER BY conname;
-- volatility
CREATE TABLE bad (a int, b int GENERATED ALWAYS AS (volatile_only(a)) STORED);
CREATE INDEX ON k (volatile_only(a));
CREATE INDEX ON k (a) WHERE volatile_only(a) > 0;
CREATE TABLE bad (a int DEFAULT volatile_only(3));
INSERT INTO bad DEFAULT VALUES RETURNING a;
DROP TABLE bad;
-- indexes
CREATE INDEX k_tag ON k (tag(b));
CREATE UNIQUE INDEX k_twice ON k (twice(id::int)) WHERE small(id::int);
SELECT indexdef FROM pg_indexes WHERE tablename = 'k' ORDER BY indexname;
SELECT id FROM k WHERE tag(b) = 'two:x' ORDER BY id;
SELECT id FROM k WHERE tag(b, 'x') > 'one' ORDER BY id;
INSERT INTO k (id) VALUES (2);
INSERT INTO k (id, b) VALUES (2, 'Two') ON CONFLICT (twice(id::int)) WHERE small(id::int) DO UPDATE SET b = excluded.b RETURNING id, b, t;
SELECT pg_get_indexdef('k_twice'::regclass, 1, false), pg_get_indexdef('k_tag'::regclass, 1, true);
-- other tables
CREATE TABLE l (LIKE k INCLUDING ALL);
INSERT INTO l (id, b) VALUES (77, 'L') RETURNING *;
DROP TABLE l;
ALTER TABLE k ADD COLUMN n int DEFAULT twice(21);
ALTER TABLE k ADD COLUMN m bigint DEFAULT next_num();
SELECT id, n, m > 0 AS drawn FROM k ORDER BY id;
SELECT count(DISTINCT m) FROM k;
ALTER TABLE k ALTER COLUMN n SET DEFAULT twice(1);
ALTER TABLE k ALTER COLUMN n TYPE bigint USING twice(n) + 1;
ALTER TABLE k ADD CONSTRAINT n_small CHECK (small(n::int) IS NOT FALSE);
ALTER TABLE k ADD CONSTRAINT n_tiny CHECK (small((n * 50)::int));
INSERT INTO k (id) VALUES (200) RETURNING n;
ALTER TABLE k RENAME COLUMN b TO c;
ALTER FUNCTION tag(text, text) RENAME TO label;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'k'::regclass ORDER BY adnum;
UPDATE k SET c = 'Again' WHERE id = 200 RETURNING t;
-- domains
CREATE DOMAIN dm AS int DEFAULT twice(3) CHECK (small(VALUE));
CREATE TABLE ofd (x dm, y int);
INSERT INTO ofd (y) VALUES (1) RETURNING x;
INSERT INTO ofd VALUES (100);
SELECT 100::dm;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contypid = 'dm'::regtype;
SELECT typdefault FROM pg_type WHERE typname = 'dm';
-- exclusion
CREATE TABLE ex (a int, EXCLUDE USING btree (a WITH =) WHERE (small(a)));
INSERT INTO ex VALUES (1), (200), (200);
INSERT INTO ex VALUES (1);
-- views
CREATE VIEW v AS SELECT id, c FROM k WHERE small(id::int) WITH CHECK OPTION;
INSERT INTO v VALUES (150, 'no');
INSERT INTO v VALUES (15, 'yes');
-- what depends on functions
SELECT pg_describe_object(classid, objid, objsubid) AS what, deptype FROM pg_depend WHERE refclassid = 'pg_proc'::regclass AND refobjid = 'small'::regproc ORDER BY 1;
SELECT pg_describe_object(classid, objid, objsubid) AS what, deptype FROM pg_depend WHERE refclassid = 'pg_proc'::regclass AND refobjid IN ('twice'::regproc, 'label'::regproc, 'next_num'::regproc) ORDER BY 1;
DROP FUNCTION small(int);
DROP FUNCTION label(text, text);
ALTER TABLE k ALTER n DROP DEFAULT;
DROP FUNCTION twice(int), next_num();
ALTER TABLE k ALTER n SET DEFAULT twice(1);
CREATE OR REPLACE FUNCTION small(a int) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT a < 1000';
INSERT INTO k (id, a) VALUES (5, 50), (900, 3) RETURNING a;
INSERT INTO k (id, a) VALUES (6, 501);
SELECT 999::dm;
CREATE OR REPLACE FUNCTION next_num() RETURNS bigint LANGUAGE sql AS 'SELECT 3000::bigint';
INSERT INTO k (a) VALUES (9) RETURNING id, n, m;
DROP FUNCTION next_num() CASCADE;
DROP FUNCTION label(text, text) CASCADE;
INSERT INTO k (id, a) VALUES (901, 4) RETURNING *;
SELECT indexdef FROM pg_indexes WHERE tablename = 'k' ORDER BY indexname;
DROP FUNCTION small(int) CASCADE;
SELECT conname FROM pg_constraint WHERE conrelid IN ('k'::regclass, 'ex'::regclass) OR contypid = 'dm'::regtype ORDER BY conname;
DROP FUNCTION twice(int) CASCADE;
INSERT INTO k DEFAULT VALUES RETURNING id, a;
INSERT INTO ofd DEFAULT VALUES RETURNING x;
