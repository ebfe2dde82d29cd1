-- CREATE SCHEMA with all kinds of elements, in PostgreSQL's order; named by the role that it is for
create role regress_se superuser;
create function public.noted() returns trigger language plpgsql as $$ begin new.a = new.a + 1; return new; end $$;
create schema authorization regress_se create sequence elsewhere.seq;
create schema authorization regress_se create table elsewhere.tab (id int);
create schema authorization regress_se create view elsewhere.v as select 1;
create schema authorization regress_se create index on elsewhere.tab (id);
create schema authorization regress_se create trigger t before insert on elsewhere.tab execute function no_func();
set role regress_se;
create schema authorization current_role create table elsewhere.tab (id int);
create schema authorization current_user create trigger t before insert on elsewhere.tab execute function no_func();
create schema se1 authorization current_role create trigger t before insert on elsewhere.tab execute function no_func();
create schema authorization current_role create table regress_se.tab (id int);
select nspname, nspowner::regrole from pg_namespace where nspname like 'regress_se%';
create schema authorization current_role;
create schema if not exists authorization current_role;
drop schema regress_se cascade;
reset role;
create schema authorization regress_se create table tab (id int);
drop schema regress_se cascade;
create schema authorization nobody_at_all;
create schema se2 authorization regress_se
  grant select on t2 to public
  create trigger tr before insert on t2 for each row execute function public.noted()
  create index i2 on t2 (a)
  create view v2 as select a, nextval('s2') from t2
  create table t2 (a int default nextval('s2'))
  create sequence s2 start 5;
insert into se2.t2 values (10), (default);
select * from se2.t2 order by a;
select * from se2.v2 order by 1;
select relname, relkind, relowner::regrole from pg_class where relnamespace = 'se2'::regnamespace order by 1;
select relacl from pg_class where oid = 'se2.t2'::regclass;
create schema se3 create table t3 (a int) create trigger tr before insert on nope for each row execute function public.noted();
create schema se3 create table t3 (a int) grant select on nope to public;
create schema se3 create table t3 (a int) grant select on t3 to nobody_at_all;
create schema se3 create table t3 (a int) grant usage on schema se3 to public;
select nspacl is not null from pg_namespace where nspname = 'se3';
create schema se4 select 1;
drop schema se2 cascade;
drop schema se3 cascade;
drop function public.noted();
drop role regress_se;
