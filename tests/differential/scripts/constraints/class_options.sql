-- options of operator classes
create table t (a int, b text, c int[]);
create index on t (a int4_ops(foo=1));
create index on t (b text_pattern_ops(foo=1));
create index on t using hash (a int4_ops(foo=1));
create index on t using gin (c array_ops(foo=1));
create index on t using spgist (b text_ops(foo=1));
create index on t (a pg_catalog.int4_ops(foo=1));
create index on t (a nope(foo=1));
create index on t (b int4_ops(foo=1));
