"""A fresh server imports nothing on its event loop, whatever the first statements are: a thread has done it, and sessions begin when it has."""

from __future__ import annotations

from pathlib import Path

from tests.support.server import ServerProcess

STATEMENTS = """
SELECT 1
CREATE TABLE t (id int PRIMARY KEY, a text, j jsonb, v tsvector, d numeric, ts timestamptz DEFAULT now(), arr int[])
CREATE TABLE p (id int, n int) PARTITION BY RANGE (id)
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)
INSERT INTO p SELECT n, n FROM generate_series(0, 19) n
UPDATE p SET id = id + 1 WHERE id < 15
DELETE FROM p WHERE n = 3
MERGE INTO p USING (VALUES (4, 5)) v(a, b) ON p.id = v.a WHEN MATCHED THEN UPDATE SET n = v.b WHEN NOT MATCHED THEN INSERT VALUES (v.a, v.b)
INSERT INTO t VALUES (1, 'a', '{"a": [1]}', to_tsvector('english', 'running dogs'), 1.5) ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING *
CREATE INDEX ON t USING gin (j)
CREATE UNIQUE INDEX ON t (lower(a))
SELECT a ~ '^[[:alpha:]]+$', regexp_replace(a, 'a(b?)', E'\\\\1'), similarity_is FROM t, LATERAL (SELECT a LIKE 'a%' AS similarity_is) s
SELECT jsonb_path_query(j, '$.a[*]'), j @> '{"a": [1]}', to_json(t) FROM t
SELECT ts_headline(a, 'dog'::tsquery), v @@ to_tsquery('german', 'hunde') FROM t
SELECT count(*), sum(d), string_agg(a, ','), percentile_cont(0.5) WITHIN GROUP (ORDER BY d) FROM t GROUP BY GROUPING SETS ((), (a))
SELECT row_number() OVER (ORDER BY id), id, to_char(ts, 'YYYY Mon'), ts AT TIME ZONE 'Asia/Tokyo', age(ts) FROM t
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r
CREATE FUNCTION f(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN FOR i IN 1..n LOOP n := n + i; END LOOP; RETURN n; EXCEPTION WHEN others THEN RETURN 0; END'
CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''%'', new; RETURN new; END'
CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW WHEN (new.id > 0) EXECUTE FUNCTION g()
UPDATE t SET a = a || f(2)
CREATE VIEW w AS SELECT id, upper(a) AS a FROM t
SELECT pg_get_viewdef('w'), pg_get_functiondef('f(int)'::regprocedure), pg_get_indexdef(indexrelid), pg_get_triggerdef(oid) FROM pg_index, pg_trigger LIMIT 1
EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM t JOIN p ON t.id = p.id
CREATE TYPE mood AS ENUM ('a', 'b')
CREATE DOMAIN positive AS int CHECK (VALUE > 0)
CREATE SEQUENCE s
CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM t
GRANT SELECT ON t TO PUBLIC
ALTER TABLE t ADD COLUMN c positive GENERATED ALWAYS AS (id + 1) STORED
COMMENT ON TABLE t IS 'a table'
SET timezone = 'Europe/Berlin'
SET client_encoding = 'LATIN1'
SELECT int4range(1, 5) * int4range(2, 9), '{[1,3)}'::int4multirange, point '(1,2)', inet '10.0.0.1/8', interval '1 day', uuid_in('5e3b5d6e-5b0c-4c8e-9d1b-1f2b3c4d5e6f'), B'101', money '1'
SELECT md5('a'), sha256('a'), encode('abc', 'base64'), convert_to('a', 'UTF8'), format('%s', 1), random() < 2, gen_random_uuid() IS NULL
SELECT * FROM information_schema.columns LIMIT 1
SELECT c.oid, n.nspname, pg_get_userbyid(c.relowner) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' LIMIT 1
SET executor = local
SELECT a, count(*) FROM t, p GROUP BY a ORDER BY 1
SELECT j ->> 'a', d * 2, arr, ts FROM t
RESET executor
DO 'BEGIN PERFORM 1; END'
LISTEN c
NOTIFY c
BEGIN
DECLARE q CURSOR WITH HOLD FOR SELECT * FROM t
FETCH q
SAVEPOINT a
ROLLBACK TO a
COMMIT
PREPARE x AS SELECT $1::int
EXECUTE x(1)
SHOW ALL
ANALYZE t
TRUNCATE p
DROP TABLE p CASCADE
"""


def test_nothing_is_imported_on_the_loop(tmp_path: Path) -> None:
    imported = tmp_path / "imported"
    server = ServerProcess(tmp_path / "data", odd={"HFTEST_IMPORTS": str(imported)}, fresh=True)
    try:
        client = server.connect()
        for statement in STATEMENTS.strip().splitlines():
            client.run(statement)
        client.close()
    finally:
        server.stop()
    imports = " ".join(
        name for name in imported.read_text().split() if name != "tzdata"
    )  # which need not be there
    assert not imports
