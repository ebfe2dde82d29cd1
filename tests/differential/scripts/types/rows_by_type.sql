-- What a row constructor's field is taken of stays in stored expressions, which hang on the row's type; rows print what reg* values name;
-- domains over enums and ranges are none where an operator is polymorphic.

-- fields of row constructors, in each kind of stored expression
create type t as (q int, w text);
create view v1 as select (row(1, 'a')::t).q;
create view v2 as select (row(g, 'a')::t).*, (row(1, 2)).f2 as k, row(g, 'a')::t is null as n from generate_series(1, 2) g;
create table tb (a int default (row(1, 'x')::t).q, b int check ((row(b, 'x')::t).q > 0), c t default row(2, 'y'), d int default ('(3,)'::t).q);
create index ix on tb (((row(b, 'c')::t).q));
create function fs(x int) returns int language sql begin atomic select (row(x, 's')::t).q; end;
create function fd(x int default (row(4, 's')::t).q) returns int language sql as 'select x';
create domain d as int check ((row(value, 'x')::t).q > 0);
create table gt (a int, g int generated always as ((row(a, 'x')::t).q * 2) stored);
create policy p on gt using ((row(a, 'x')::t).q > 0);
select pg_get_viewdef('v1'), pg_get_viewdef('v2'), pg_get_indexdef('ix'::regclass);
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid in ('tb'::regclass, 'gt'::regclass) order by adrelid, adnum;
select refclassid::regclass, classid::regclass, count(*) from pg_depend where refobjid = 't'::regtype and deptype = 'n' and classid <> 'pg_attrdef'::regclass group by 1, 2 order by 1, 2;
select * from v1;
select * from v2;
insert into tb (b) values (5);
insert into tb (b) values (0);
insert into gt values (4);
select * from tb where (row(b, 'c')::t).q = 5;
select * from gt;
select fs(6), fd();
select (row(1/0, 'x')::t).w;
select (row(b, 'x')::t).q, (row(1/b, 'x')::t).w, (null::t).w, ('(1,b)'::t).w from tb;
drop type t;
alter type t alter attribute q type bigint;
alter type t drop attribute q;
drop function fs;
drop view v1;
alter type t alter attribute q type bigint;
drop view v2;
alter type t alter attribute w type varchar;
drop table tb;
alter type t alter attribute w type varchar;
drop policy p on gt;
alter type t alter attribute w type varchar;
drop table gt;
drop function fd;
alter type t alter attribute w type varchar;
drop domain d;
alter type t alter attribute w type varchar;

-- the type has other attributes later
create view v1 as select row(1, 'a')::t, (row(2, 'b')::t).q;
create table ta (a int default (row(1, 'x')::t).q, c t default row(2, 'y'), check ((row(a, 'z')::t).q > 0));
alter type t add attribute z int;
select * from v1;
insert into ta values (default, default), (0, null);
insert into ta values (default, default);
select * from ta;
alter type t rename attribute q to qq;
select pg_get_viewdef('v1') ~ 'qq', pg_get_expr(adbin, adrelid) ~ 'qq' from pg_attrdef where adrelid = 'ta'::regclass order by adnum;
drop table ta;
alter type t drop attribute w;
select * from v1;
drop type t cascade;

-- what ALTER ATTRIBUTE finds: through domains, arrays, other rows and functions
create type t as (q int, w text);
create type u as (a t);
create domain dt as t;
create function f() returns t language sql as 'select null::t';
create function g(t) returns int language sql as 'select 1';
alter type t alter attribute q type bigint;
create view v as select null::u is null as x;
alter type t alter attribute q type int;
drop view v;
create view v as select null::dt is null as x;
alter type t alter attribute q type int;
drop view v;
create view v as select null::t[] is null as x;
alter type t alter attribute q type int;
drop view v;
create view v as select * from f();
alter type t alter attribute q type int;
drop view v;
create table td (a dt);
alter type t alter attribute q type int;
drop table td;
create table a1 (x int);
create trigger tg before insert on a1 for each row when ((row(new.x, 'x')::t).q > 0) execute function suppress_redundant_updates_trigger();
alter type t alter attribute q type int;
drop table a1;
create table pt (a int) partition by range (((row(a, 'x')::t).q));
alter type t alter attribute q type int;
drop table pt;
alter type t alter attribute q type int;

-- rows of reg* values
create table rg (a regclass, b regtype[], c regproc);
insert into rg values ('rg', '{int4,text}', 'now');
create type rc as (k regclass, l regtype);
create domain dr as regclass;
create table "rg ä" (a int);
select rg, rg::text, row_to_json(rg), array[row(a, b)], array_agg(a) from rg group by rg, a, b;
select row(pg_typeof(1)), row('pg_class'::regclass, 'now'::regproc, 'sum(int4)'::regprocedure), row('rg', 'int4')::rc;
select array[row('rg', 'int4')::rc], (array[row('rg', 'int4')::rc])::text, format('%s', row('rg', 'int4')::rc), row('rg', 'int4')::rc || '';
select 'rg'::dr, array['rg'::dr], row('rg'::dr), row(1, row('"rg ä"'::regclass)), array['"rg ä"'::dr];
select '(rg,int4)'::rc, '{"(rg,int4)"}'::rc[], '{rg}'::dr[], '(4294967295,)'::rc;
select '(nope,)'::rc;
create table kp (r rc, a regclass[], d rc default '(rg,int4)');
insert into kp values ('(rg,int4)', '{rg}');
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'kp'::regclass;
alter table rg rename to rg2;
select r, a, d, row(r), kp, concat(r), quote_literal(r) from kp;
do $$ declare r record; begin select a, b into r from rg2; raise notice '% %', r, (select rg2 from rg2); end $$;

-- columns of records have the collations of their types
create view cv as select * from jsonb_to_record('{"c":"ab"}') as x(c text);
select pg_collation_for(c) from jsonb_to_record('{"c":"ab"}') as x(c text);

-- domains over enums and ranges
create type mood as enum ('a', 'b', 'c');
create domain dm as mood;
create domain dn as dm;
create domain dir as int4range;
create domain dmr as int4multirange;
create domain dpos as int;
select 'a'::dm < 'b'::mood;
select 'a'::mood < 'b'::dm;
select 'a'::dm = 'a'::dm;
select 'a'::dm = 'a';
select 'a'::dm in ('a', 'b');
select nullif('a'::dm, 'b');
select 'a'::mood = any (array['a'::dm]);
select max('a'::dm);
select enum_range('a'::dm);
create domain d3 as dm check (value <> 'c');
select greatest('a'::dm, 'b'), coalesce(null, 'a'::dn), 'a'::dm::mood < 'b', 'a'::dm::text;
select '[1,3)'::dir @> 2, '[1,3)'::dir && '[2,4)'::int4range, '[1,3)'::dir + '[2,4)'::dir, '[1,3)'::dir < '[1,4)', 2 <@ '[1,3)'::dir;
select '{[1,3)}'::dmr @> 2, '{[1,3)}'::dmr @> '[1,2)'::dir, '[1,3)'::dir -|- '{[3,4)}'::dmr, range_merge('[1,2)'::dir, '[3,4)'::dir);
select '[1,3)'::int4range @> 2::dpos;
select 2::dpos <@ '[1,3)'::dir;
select '[1,3)'::dir @> 2::bigint;
select int4range(1::dpos, 3::dpos), 1::dpos = 1, 1::dpos = 1::bigint, 1 = any (array[1::dpos]), array[1] || 2::dpos;
create table de (a dm, b dir, c dn, unique (a), exclude using gist (b with &&));
insert into de values ('a', '[1,3)', 'b'), ('b', '[5,6)', 'a');
select * from de where a > c;
select a, count(*) from de group by a order by a desc;
select a from de union select c from de order by 1;

-- what names a type that is dropped may have gone with a column of it
create type tc as (q int, w text);
create table tp (a int, b tc, c int);
create policy p on tp using ((b).q > (row(a, 'x')::tc).q);
create trigger tg before insert on tp for each row when ((new.b).q > (row(new.c, 'x')::tc).q) execute function suppress_redundant_updates_trigger();
create statistics st on ((b).q + (row(a, 'x')::tc).q), c from tp;
alter table tp add constraint ck check ((b).q > (row(a, 'x')::tc).q);
drop type tc cascade;
select count(*) from pg_policy where polrelid = 'tp'::regclass;
