-- pg_identify_object, pg_identify_object_as_address and pg_describe_object of every class of objects, there and not, and back by pg_get_object_address
create table idt (a int primary key, "B" text default 'x', constraint cc check (a > 0));
create index ti on idt ("B");
create view vv as select * from idt;
create sequence "Seq";
create type en as enum ('a', 'b');
create type co as (x int, y text);
create domain dd as int constraint dc check (value > 0);
create type rr as range (subtype = int4);
create function ff(int, text, en[], dd) returns int language sql as 'select 1';
create procedure pr(varchar) language sql as 'select 1';
create aggregate ag(int) (sfunc = int4pl, stype = int);
create schema sch;
create materialized view mm as select * from idt;
create function tf() returns trigger language plpgsql as 'begin return new; end';
create trigger "Trg" before insert on idt for each row execute function tf();
create policy pol on idt;
create text search dictionary tsd (template = simple);
create text search configuration tsc (copy = simple);
create table pt (a int, b int) partition by list (a);
create role diff_identified;
alter default privileges for role diff_identified grant select on tables to public;
alter default privileges for role diff_identified in schema sch grant usage on sequences to public;
create function shown(class oid, object oid, number int default 0) returns table (described text, kind text, schema text, name text, identity text, names text[], args text[], back bool) language sql as $$
 select pg_describe_object(class, object, number), i.type, replace(i.schema, current_schema, 'S'), i.name, replace(i.identity, current_schema, 'S'), array_replace(a.object_names, current_schema::text, 'S'), a.object_args::text[],
  case when i.type like '%view column' or i.type in ('composite type', 'composite type column', 'index column', 'sequence column') then null else (select (g.classid, g.objid, g.objsubid) = (class, object, number) from pg_get_object_address(a.type, a.object_names, a.object_args) g) end
 from pg_identify_object(class, object, number) i, pg_identify_object_as_address(class, object, number) a $$;
select relname, n, s.* from pg_class c, (values (0), (1)) v(n), shown('pg_class'::regclass, c.oid, n) s where relnamespace = current_schema::regnamespace order by relname, n;
select s.described, s.kind, s.name, s.identity = s.names[1] from pg_type t, shown('pg_type'::regclass, t.oid) s where typnamespace = current_schema::regnamespace order by typname;
select s.kind, s.schema, s.name, s.names, s.back, cardinality(s.args) from pg_proc p, shown('pg_proc'::regclass, p.oid) s where pronamespace = current_schema::regnamespace order by proname, pronargs;
select i.identity = current_schema || '.ff(integer,pg_catalog.text,' || current_schema || '.en[],' || current_schema || '.dd)' from pg_identify_object('pg_proc'::regclass, 'ff'::regproc, 0) i;
select s.* from pg_constraint c, shown('pg_constraint'::regclass, c.oid) s where connamespace = current_schema::regnamespace and contype <> 'c' order by conname;
select s.kind, s.name, s.args, s.back from pg_constraint c, shown('pg_constraint'::regclass, c.oid) s where connamespace = current_schema::regnamespace and contype = 'c' order by conname;
select s.* from pg_trigger t, shown('pg_trigger'::regclass, t.oid) s where tgname = 'Trg';
select s.* from pg_policy t, shown('pg_policy'::regclass, t.oid) s where polname = 'pol';
select s.* from pg_attrdef t, shown('pg_attrdef'::regclass, t.oid) s where adrelid = 'idt'::regclass;
select s.* from pg_rewrite t, shown('pg_rewrite'::regclass, t.oid) s where ev_class = 'vv'::regclass;
select s.* from pg_ts_dict t, shown('pg_ts_dict'::regclass, t.oid) s where dictname = 'tsd';
select s.* from pg_ts_config t, shown('pg_ts_config'::regclass, t.oid) s where cfgname = 'tsc';
select s.* from pg_default_acl t, shown('pg_default_acl'::regclass, t.oid) s where defaclrole = 'diff_identified'::regrole order by defaclobjtype;
select s.* from shown('pg_authid'::regclass, 'diff_identified'::regrole) s;
select s.* from shown('pg_namespace'::regclass, 'sch'::regnamespace) s;
select s.* from pg_tablespace t, shown('pg_tablespace'::regclass, t.oid) s order by spcname;
select s.* from pg_am t, shown('pg_am'::regclass, t.oid) s order by amname;
select s.* from pg_language t, shown('pg_language'::regclass, t.oid) s order by lanname;
select s.* from pg_extension t, shown('pg_extension'::regclass, t.oid) s where extname = 'plpgsql';
select s.* from pg_collation t, shown('pg_collation'::regclass, t.oid) s where collname in ('C', 'POSIX') order by collname;
-- PostgreSQL's own, all of them
select count(*), md5(string_agg(i::text || a::text || pg_describe_object(2617, o.oid, 0), ',' order by o.oid)) from pg_operator o, pg_identify_object(2617, o.oid, 0) i, pg_identify_object_as_address(2617, o.oid, 0) a where o.oid < 16384;
select count(*), md5(string_agg(i::text || a::text || pg_describe_object(2605, o.oid, 0), ',' order by o.oid)) from pg_cast o, pg_identify_object(2605, o.oid, 0) i, pg_identify_object_as_address(2605, o.oid, 0) a where o.oid < 16384;
select count(*), md5(string_agg(i::text || a::text || pg_describe_object(2616, o.oid, 0), ',' order by o.oid)) from pg_opclass o, pg_identify_object(2616, o.oid, 0) i, pg_identify_object_as_address(2616, o.oid, 0) a where o.oid < 16384;
select count(*), md5(string_agg(i::text || a::text || pg_describe_object(2602, o.oid, 0), ',' order by o.oid)) from pg_amop o, pg_identify_object(2602, o.oid, 0) i, pg_identify_object_as_address(2602, o.oid, 0) a where o.oid < 16384;
select count(*), md5(string_agg(i::text || a::text || pg_describe_object(2603, o.oid, 0), ',' order by o.oid)) from pg_amproc o, pg_identify_object(2603, o.oid, 0) i, pg_identify_object_as_address(2603, o.oid, 0) a where o.oid < 16384;
-- not there
select c::regclass, pg_describe_object(c, 987654, 0), i::text, a::text from unnest('{826,1213,1247,1255,1259,1260,1262,1417,1418,2328,2601,2602,2603,2604,2605,2606,2607,2612,2615,2616,2617,2618,2620,2753,3079,3256,3381,3456,3466,3576,3600,3601,3602,3764,6100,6104,6106,6237,6243}'::oid[]) c, pg_identify_object(c, 987654, 0) i, pg_identify_object_as_address(c, 987654, 0) a;
select * from pg_identify_object('pg_class'::regclass, 'idt'::regclass, 99);
select * from pg_identify_object_as_address('pg_class'::regclass, 'idt'::regclass, 99);
select * from pg_identify_object(0, 0, 0);
select * from pg_identify_object('pg_attribute'::regclass, 1, 0);
select * from pg_identify_object_as_address('pg_proc'::regclass, 'ff'::regproc, 1);
select pg_identify_object(null, 1, 0), pg_identify_object_as_address(1259, null, 0);
drop owned by diff_identified;
drop role diff_identified;
