-- Names that the server chooses for keys and indexes: INCLUDEd columns are part of them.
-- also: local
CREATE TABLE t (a int, b int, c int, UNIQUE (a) INCLUDE (b, c), PRIMARY KEY (b) INCLUDE (c));
CREATE INDEX ON t (c) INCLUDE (a);
ALTER TABLE t ADD UNIQUE (c, a) INCLUDE (b);
SELECT conname, contype FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY conname;
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 't' ORDER BY indexname;
DROP TABLE t;
