-- what goes with a column, a view or a key when its row type is a column's, of the same table too; CHECKs of domains whose functions cannot be inlined
create schema rt; set search_path = rt;
create table t0(a int primary key, b int); create view v4 as select * from t0; alter table t0 add c v4[] default '{}'; create table t2(x v4, y v4[], z int); create view v5 as select x, z from t2; create function f(v4) returns int language sql as 'select 1'; create domain d as v4[]; create table t3(q d);
alter table t0 drop column a;
alter table t0 drop column a cascade;
select attname, attisdropped from pg_attribute where attrelid = 't0'::regclass and attnum > 0 order by attnum;
select attname, attisdropped from pg_attribute where attrelid = 't2'::regclass and attnum > 0 order by attnum;
select * from t0; select * from t2;
create table u0(a int primary key, b int); create view w4 as select * from u0; create table u2(x w4, z int); alter table u0 alter a type bigint; drop view w4; drop view w4 cascade; select attname, attisdropped from pg_attribute where attrelid = 'u2'::regclass and attnum > 0 order by attnum;
create view w6 as select * from u0; create table u3(x w6[], z int); drop table u0 cascade; select attname, attisdropped from pg_attribute where attrelid = 'u3'::regclass and attnum > 0 order by attnum;
create table k0(a int, b int, primary key(a)); create view kv as select a, b, count(*) from k0 group by a; create table k1(x kv); alter table k0 drop constraint k0_pkey cascade; select attname, attisdropped from pg_attribute where attrelid = 'k1'::regclass and attnum > 0 order by attnum;
create type en as enum('a'); create view ev as select 'a'::en e; create table e1(x ev, y int); drop type en cascade; select attname, attisdropped from pg_attribute where attrelid = 'e1'::regclass and attnum > 0 order by attnum;
create function fn() returns int language sql as 'select 1'; create view fv as select fn(); create table f1(x fv, y int); drop function fn() cascade; select attname, attisdropped from pg_attribute where attrelid = 'f1'::regclass and attnum > 0 order by attnum;
create materialized view mv as select 1 a; create table m1(x mv, y int); drop materialized view mv cascade; select attname, attisdropped from pg_attribute where attrelid = 'm1'::regclass and attnum > 0 order by attnum;
create schema sx; create view sx.v as select 1 a; create table s1(x sx.v, y int); drop schema sx cascade; select attname, attisdropped from pg_attribute where attrelid = 's1'::regclass and attnum > 0 order by attnum;
create domain dd as s1; create domain "N x" as dd check (nullif(value, null) is not null); create function pf(x anyelement) returns int language plpgsql as 'begin return 1; end'; create function pg(x int) returns int language plpgsql as 'begin return 1; end'; create domain de as s1 check (pf(value) is not null); create domain df as int check (pg(value) > 0) default pg(5); create table dt(a int check (pg(a) > 0), b int default pg(1), c int generated always as (a + 1) stored); create index on dt((a+1)) where a > 1;
select conname, pg_get_constraintdef(oid) from pg_constraint where contype='c' and conrelid=0 and connamespace='rt'::regnamespace order by 1; select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid='dt'::regclass;
drop schema rt cascade;
