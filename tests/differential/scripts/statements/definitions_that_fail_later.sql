-- what is kept and not run is not looked into: bodies that do not fit, WITH NO DATA, conditions of triggers
set check_function_bodies = off;
create function lost(x int) returns int language sql immutable as $$ select count(*)::int from nowhere $$;
create function atomic(x int) returns text language sql return x;
reset check_function_bodies;
create function g() returns trigger language plpgsql as $$ begin return new; end $$;
create table t (a int, b int);
create trigger tr after update of a on t for each row when (lost(new.a) is null) execute function g();
create materialized view m as select lost(a) from t with no data;
create table made as select lost(a) from t with no data;
insert into t values (1, 2);
update t set b = 3;
update t set a = 3;
-- what is there already comes before what its body gives, not before what its body names
create type c0 as (a int, b text);
create domain d0 as text;
create function f(x int) returns int language sql as 'select 1';
create function f(x int) returns c0 language sql return f(x);
create function f(x int) returns c0 language sql return nix(x);
create or replace function f(y int) returns int language sql return 'x'::text;
create or replace function f(x int) returns int language sql return 'x'::text;
create table rows (a int, b d0, c d0[]);
create function f2(x int) returns setof rows language sql begin atomic select 1, now(), 3; end;
create function f2(x int) returns setof rows language sql as $$ select 1, 'x', 3 $$;
create table ungenerated (a timestamptz, b int[] generated always as (now()) stored);
-- types that definitions name: arrays as such, domains that defaults are converted to, rows
create type e0 as enum ('a', 'b');
create domain d1 as e0;
create table kept (a int, b c0[] default '{}', c d1[] default '{}', d e0[] default '{a}', e d1 default null::e0, f d1 default 'a', check (b <> '{}'::c0[]));
create policy p1 on kept using ((case when a is null then null end)::rows is not null);
create policy p2 on kept using (array['(1,2,{})'::rows] is not null);
create policy p3 on kept using (exists (select x from rows x));
create view named as select '{}'::c0[] as a, null::rows[] as b, null::rows as c;
create function f3(x c0[] default '{}') returns int language sql as 'select 1';
create index on kept ((b <> '{}'::c0[])) where b <> '{}'::c0[];
select deptype, pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid) from pg_depend
where refclassid = 'pg_type'::regclass and refobjid >= 16384 and classid in ('pg_attrdef'::regclass, 'pg_policy'::regclass, 'pg_rewrite'::regclass, 'pg_constraint'::regclass, 'pg_proc'::regclass)
order by 2, 3;
select pg_describe_object(classid, objid, objsubid) from pg_depend where refobjid = 'c0[]'::regtype order by 1;
-- rows without columns
create sequence q;
create table empty ();
insert into empty default values;
delete from empty where nextval('q')::int is null;
delete from empty using empty y where nextval('q') < 0;
create table emptied (a int, b int);
insert into emptied values (1, 2);
alter table emptied drop column a, drop column b;
delete from emptied where nextval('q') < 0;
delete from emptied returning *;
insert into empty default values returning *;
merge into empty using (select 1 as k) x on k = 2 when not matched then insert default values;
delete from empty where nextval('q') > 0;
drop table kept, named cascade;
