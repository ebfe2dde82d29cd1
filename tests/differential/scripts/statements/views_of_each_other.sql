-- views that use one another's rows go together
create schema cy; set search_path=cy;
create view a as select 1 x; create view b as select (null::a) is null z; create or replace view a as select 1 x, ((null::b) is null) y; create view c as select * from a, b;
create table t(p a, q b, r int); create function f(a) returns b language sql as 'select null::b'; create domain d as a check ((value).y is null); create type ct as (k a, l b); create table u (v ct, w d);
drop view a; drop view a cascade; select attname, attisdropped from pg_attribute where attrelid='t'::regclass and attnum > 0 order by attnum;
select relname from pg_class where relnamespace='cy'::regnamespace order by 1;
create view a as select 1 x; create view b as select (null::a) is null z; create or replace view a as select 1 x, ((null::b) is null) y; create materialized view m as select (null::a) is null w; 
drop schema cy cascade; reset search_path;
create schema cz; create view cz.a as select 1 x; create view b as select (null::cz.a) is null z; create or replace view cz.a as select 1 x, ((null::b) is null) y; drop schema cz cascade;
create temp view ta as select 1 x; create temp view tb as select (null::ta) is null z; create or replace temp view ta as select 1 x, ((null::tb) is null) y; drop view ta cascade;
create table r0(a int); create view rv as select (null::r0) is null q; create table r1(a int default (case when (null::rv) is null then 1 end), b int check ((null::rv) is null or b > 0)); create or replace view rv as select (null::r0) is null q, (null::r1) is null w; drop table r0 cascade; select attname, pg_get_expr(adbin, adrelid) from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum where attrelid = 'r1'::regclass and attnum > 0; drop table r1;
