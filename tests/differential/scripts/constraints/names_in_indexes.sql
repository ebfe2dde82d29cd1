-- what an index calls its columns when these get other names, and what is made after it
create schema ni; set search_path = ni;
create table t(a int, b int, c text, primary key (a), unique (b), unique (b, c)); create index on t(a, b) include (c); create index on t((a+b), c); create index on t(b) where c is not null; create index on t using gin (to_tsvector('english', c));
alter table t rename a to x; alter table t rename c to y;
select c.relname, attname from pg_attribute join pg_class c on c.oid=attrelid where c.relkind='i' and c.relnamespace='ni'::regnamespace and relname ~ '^t_' order by 1, attnum;
create table t2 (like t including all);
select c.relname, pg_get_indexdef(c.oid), pg_get_indexdef(c.oid, 1, false), pg_get_indexdef(c.oid, 2, true) from pg_class c where c.relkind='i' and c.relnamespace='ni'::regnamespace and relname ~ '^t2?_' order by 1;
select c.relname, attname from pg_attribute join pg_class c on c.oid=attrelid where c.relkind='i' and c.relnamespace='ni'::regnamespace and relname ~ '^t2_' order by 1, attnum;
alter table t2 rename x to a; alter table t2 rename b to bb; create table t3 (like t2 including indexes); 
select c.relname, attname from pg_attribute join pg_class c on c.oid=attrelid where c.relkind='i' and c.relnamespace='ni'::regnamespace and relname ~ '^t3_' order by 1, attnum;
create table p(a int, b int) partition by list (a); create index on p(b); create table p1 partition of p for values in (1); alter table p rename b to z; create table p2 partition of p for values in (2); create table p3(a int, z int); create index on p3(z); alter table p attach partition p3 for values in (3); alter table p rename z to b;
select c.relname, attname from pg_attribute join pg_class c on c.oid=attrelid where c.relkind in ('i','I') and c.relnamespace='ni'::regnamespace and relname ~ '^p[0-9]?_' order by 1, attnum;
insert into t values (1,2,'x'); insert into t values (1,3,'x'); insert into t values (2,2,'q'); insert into t2 values (1, 2, 'x'), (1, 2, 'x'); insert into t values (5,6,'z') on conflict (b) do update set y='u'; insert into t values (5,6,'z') on conflict (b, y) do update set y='u' returning *; select * from t where y = 'x' and b = 2; alter table t drop column y; select attname from pg_attribute where attrelid = 't'::regclass and attnum > 0;
alter table t alter x type bigint; alter table t2 alter bb type bigint; select attname from pg_attribute where attrelid = 't2'::regclass and attnum > 0;
select conname, pg_get_constraintdef(oid) from pg_constraint where contype in ('p','u') and connamespace='ni'::regnamespace order by 1;

drop schema ni cascade;
create schema nj; set search_path = nj;
create table t(id int primary key, name text, n int); create index on t(name) where n > 1; create index on t using gin (to_tsvector('simple', name)); create index on t(upper(name)); create index on t(name, n);
alter table t rename name to full_name; create table copy (like t including all);
select relname from pg_class where relkind='i' and relnamespace='nj'::regnamespace and relname ~ '^copy' order by 1;
select c.relname, attname from pg_attribute join pg_class c on c.oid=attrelid where c.relkind='i' and c.relnamespace='nj'::regnamespace and relname ~ '^(t|copy)_' order by 1, attnum;
create table t2(id int, name text); alter table t2 rename name to full_name; create index on t2(full_name) where id > 1; create table c2 (like t2 including all); select relname from pg_class where relkind='i' and relnamespace='nj'::regnamespace and relname ~ '^c2' order by 1;
alter table t alter full_name type varchar(50); select c.relname, attname from pg_attribute join pg_class c on c.oid=attrelid where c.relkind='i' and c.relnamespace='nj'::regnamespace and relname ~ '^t_' order by 1, attnum;
create table t4(a int, b int, c int); create index on t4(a,b) include(c); create index on t4((a+b), c); create unique index on t4(b) where c > 0; alter table t4 rename a to x; alter table t4 rename b to y; alter table t4 rename c to z; alter table t4 alter y type bigint; select c.relname, attname from pg_attribute join pg_class c on c.oid=attrelid where c.relkind='i' and c.relnamespace='nj'::regnamespace and relname ~ '^t4_' order by 1, attnum; alter table t4 alter z type bigint; select c.relname, attname from pg_attribute join pg_class c on c.oid=attrelid where c.relkind='i' and c.relnamespace='nj'::regnamespace and relname ~ '^t4_' order by 1, attnum; reindex table t4; select c.relname, attname from pg_attribute join pg_class c on c.oid=attrelid where c.relkind='i' and c.relnamespace='nj'::regnamespace and relname ~ '^t4_' order by 1, attnum;
drop schema nj cascade;
