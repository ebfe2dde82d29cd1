-- statements about types that are a relation's, and types of temporary schemas
create table rt (a int);
create view rv as select 1 as x;
drop type rt;
drop type if exists rv;
alter type rt rename to x;
alter type rt add value 'x';
alter type rt rename value 'x' to 'y';
alter type rt owner to postgres;
alter type rt set schema public;
create type rt as enum ('a');
create type e as enum ('a', 'b');
create table e (a int);
create temp table tt (m e);
create type pg_temp.te as enum ('t');
create temp table t3 (x pg_temp.te default 't');
insert into t3 default values returning *;
drop type e;
drop type e cascade;
create type e as enum ('a', 'b');
prepare p(e) as select $1;
execute p('b');
execute p('c');
-- every relation that can be read has a type of its rows, and an array type over it, the catalog's too
select c.relname from pg_class c left join pg_type t on t.oid = c.reltype and t.typrelid = c.oid and t.typname = c.relname
  left join pg_type a on a.oid = t.typarray and a.typelem = t.oid where c.relkind in ('r', 'v') and a.oid is null;
select t.typname, t.oid, t.typtype, a.typname, a.oid, a.typcategory from pg_class c join pg_type t on t.oid = c.reltype join pg_type a on a.oid = t.typarray
  where c.relnamespace = 'information_schema'::regnamespace order by t.oid;
select typrelid::regclass, typarray::int from pg_type where typname = 'columns';
select typname, typelem::int from pg_type where typname = '_columns';
select relname from pg_class where reltype = 13297;
select relname from pg_class where reltype = 83;
select typname from pg_type where typrelid = 'information_schema.columns'::regclass;
-- vectors are arrays to JSON
select array_to_json('1 2'::int2vector), to_json(''::oidvector), array_to_json('1 2'::int2vector, true), jsonb_build_object('a', '3 4'::oidvector);
select to_jsonb(i.*) -> 'k' from (select '2 1'::int2vector as k) i;
select json_agg('7 8'::oidvector);
select json_object_agg('1 2'::int2vector, 1);
-- keys of objects: scalars only, written as JSON writes them
select json_object_agg(array[1], 1);
select jsonb_object_agg(row(1, 2), 1);
select jsonb_object_agg('{}'::json, 1);
select json_object_agg(true, 1), json_object_agg(1.50, 2), json_object_agg('2020-01-01'::timestamp, 1), jsonb_object_agg('2020-01-01'::date, 1), jsonb_object_agg(true, 1);
create type key_of as (a int, b int);
select json_object_agg(row(1, 2)::key_of, 1);
select json_build_object(row(1, 2)::key_of, 1);
-- plans of tables with columns of another table's rows know that table's columns; name(x) is a function first, then a column
create table full_name (first text, last text);
create table people (id int, fn full_name, old full_name[]);
insert into people values (1, '(Joe,Blow)', array['(a,b)'::full_name]);
select * from people;
select row_to_json(fn) from people;
alter table full_name add column suffix text;
select * from people;
select row_to_json(fn) from people;
update people set fn.suffix = 'Jr';
select * from people;
alter table full_name rename column suffix to tail;
select row_to_json(fn) from people;
create function last_name(full_name) returns text language sql as $$ select 'function ' || $1.last $$;
select last_name(fn), (fn).last_name, last(fn) from people;
alter table full_name add column last_name text;
select last_name(fn), (fn).last_name, last(fn) from people;
select text(fn) from people;
select varchar(fn) from people;
select first(old[1]), missing(fn) from people;
drop table people; drop function last_name; drop table full_name;
-- the type of a table's rows, and the array type over it, as names that are read from text
create table foot (a int);
create view vfoot as select 1 as a;
select 'foot'::regtype, 'foot[]'::regtype, '_foot'::regtype, to_regtype('foot'), to_regtype('vfoot'), to_regtype('_vfoot'), to_regtype('foot[]'), to_regtype('__foot');
create temporary table tfoot (a int);
select 'pg_temp.foot'::regtype;
select 'tfoot'::regtype, 'pg_temp._tfoot'::regtype;
select 'pg_temp.tfoot'::regtype;
create function ff(foot, foot[]) returns int language sql as 'select 1';
select 'ff(foot,foot[])'::regprocedure, 'ff(foot, _foot)'::regprocedure;
select to_regprocedure('ff(foot,foot)');
select has_type_privilege('foot', 'usage');
select has_type_privilege(current_user, 'foot[]', 'usage');
create sequence ssf;
select 'ssf'::regtype;
drop sequence ssf;
drop function ff(foot, foot[]);
create unique index uif on foot(a);
select 'uif'::regtype;
select to_regtype('uif');
drop view vfoot;
drop table foot;
