-- definitions with literals of reg* types that are left for a dump
create type mood as enum ('a');
create function f(int) returns int language sql immutable as 'select 1';
create table tt (a int);
create view av as select 'mood'::regtype a, 'f'::regproc b, 'f(int)'::regprocedure c, 'tt'::regclass d, '{mood,int}'::regtype[] e, 'public'::regnamespace g, '+(int,int)'::regoperator h;
create table ag (a int, b oid generated always as ('tt'::regclass::oid) stored, c oid default 'mood'::regtype, check (a::oid <> 'f'::regproc));
create index ai on ag ((a::oid = 'mood'::regtype)) where a::oid <> 'tt'::regclass;
create table ak (a int) partition by list ((a::oid = 'tt'::regclass));
create domain ad as oid check (value <> 'f'::regproc::oid);
select pg_get_viewdef('av'), pg_get_indexdef('ai'::regclass), pg_get_partkeydef('ak'::regclass);
select conname, pg_get_constraintdef(oid) from pg_constraint where conname ~ '^a[dg]_' order by 1;
