-- Names that the server chooses for keys and indexes: INCLUDEd columns are part of them.
-- also: local
CREATE TABLE t (a int, b int, c int, UNIQUE (a) INCLUDE (b, c), PRIMARY KEY (b) INCLUDE (c));
CREATE INDEX ON t (c) INCLUDE (a);
ALTER TABLE t ADD UNIQUE (c, a) INCLUDE (b);
SELECT conname, contype FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY conname;
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 't' ORDER BY indexname;
DROP TABLE t;
-- a second primary key has a position where both are written
create table l1 (x int primary key);
create table l2 (a text, like l1 including indexes, primary key (a));
create table l2 (a text primary key, like l1 including indexes);
create table l2 (like l1 including indexes, a text primary key);
create table l2 (a text primary key, b int primary key);
create table l2 (like l1 including all, b int primary key, c int primary key);
create table l3 (y int primary key);
create table l2 (like l1 including all, like l3 including all);
drop table l1, l3;
