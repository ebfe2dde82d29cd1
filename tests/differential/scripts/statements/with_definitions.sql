-- WITH in definitions: the names an item gives its columns, SEARCH and CYCLE as they were written
create table g (f int, t int, label text);
insert into g values (1, 2, 'a'), (2, 3, 'b'), (3, 1, 'c');
create view v1 as with c(a, b, d) as (select * from g) select * from c;
create view v2 as with c(a) as (select * from g) select * from c;
create view v3 as with c(f, t) as (select f, t from g), d as (select * from c), e(x) as materialized (values (1), (2)) select d.f, e.x from d, e;
create view v4 as with c as (values (1, 'x')) select * from c;
create view v5 as with recursive r(n) as (values (1) union all select n + 1 from r where n < 5) select n from r;
create view v6 as with recursive r as (select 1 as n union select n + 1 from r where n < 5) select n from r;
create view v7 as with c("A b", "order") as not materialized (select 1, 2) select * from c x("y", z), c;
create view v8 as with recursive r(f, t, label) as (
  select * from g where f = 1 union all select g.* from g, r where g.f = r.t and g.label <> 'c'
) search depth first by f, t set seq select * from r order by seq;
create view v9 as with recursive r as (
  select f, t from g where f = 1 union all select g.f, g.t from g, r x where g.f = x.t and g.label <> 'c'
) search breadth first by t set "Seq" select f, "Seq" from r;
create view v10 as with recursive r(f, t) as (
  select f, t from g union all select g.f, g.t from g, r where g.f = r.t
) cycle f, t set is_cycle using path select * from r;
create view v11 as with recursive r(f, t) as (
  select f, t from g union select g.f, g.t from g join r on g.f = r.t
) cycle f set is_cycle to 'Y' default 'N' using path select f, is_cycle from r;
create view v12 as with recursive r(f, t) as (
  select f, t from g union all select g.f, g.t from g, r where g.f = r.t
) search depth first by f set s cycle f, t set m to 1 default 0 using p select f, t, m from r order by s;
create view v13 as with recursive r(f, t) as (
  with i(f, t) as (select f, t from g) select f, t from i union all select i.f, i.t from i, r where i.f = r.t
) cycle f set c to true default false using p select * from r where not c;
create view v14 as select (with recursive r(n) as (
  select o.f union all select n + 1 from r where n < 4
) cycle n set c to false default true using p select count(*) from r where n >= o.f) as n from g o;
create view v15 as with recursive r as (
  select f as n, (select max(t) from g i where i.f = o.f) as t from g o union all select n + r.t, (select max(x.t) from g x where x.f < r.n) from r where n < 4
) search depth first by n, t set s select * from r;
select c.relname, pg_get_viewdef(c.oid) from pg_class c where relname ~ '^v\d+$' and relnamespace = current_schema::regnamespace order by length(relname), relname;
select c.relname, pg_get_viewdef(c.oid, true) from pg_class c where relname ~ '^v\d+$' and relnamespace = current_schema::regnamespace order by length(relname), relname;
alter table g rename column t to tt;
alter table g rename column f to ff;
alter table g rename to gg;
select c.relname, pg_get_viewdef(c.oid) from pg_class c where relname ~ '^v\d+$' and relnamespace = current_schema::regnamespace order by length(relname), relname;
select * from v1 order by 1, 2;
select * from v2 order by 1, 2;
select * from v8;
select * from v9 order by 1;
select * from v10 order by path, is_cycle;
select * from v11 order by 1, 2;
select * from v12;
select * from v13 order by p;
select * from v14;
select n, t from v15 order by s;
create materialized view m as with recursive r(f) as (select ff from gg union all select gg.ff from gg, r where ff = f + 1) search breadth first by f set o select f from r order by o;
select definition from pg_matviews where matviewname = 'm' and schemaname = current_schema;
create function fb() returns setof int language sql begin atomic
  with recursive r(f) as (select ff from gg union all select tt from gg, r where ff = f) cycle f set c using p select f from r;
end;
select pg_get_functiondef('fb'::regproc);
select count(*) from fb();
alter table gg drop column label cascade;
select c.relname, pg_get_viewdef(c.oid) from pg_class c where relname ~ '^v\d+$' and relnamespace = current_schema::regnamespace order by length(relname), relname;
create view v16 as with recursive r(n) as (select 1 union all select n from r) cycle n set c to 1 default 5000000000 using p select * from r;
create view v17 as with recursive r(n) as (select 1 union all select n from r) cycle n set c to date '2001-02-03' default null using p select * from r;
create view v18 as with recursive r(n) as (select 1 union all select n from r) cycle n set c to interval '1' day default interval '2 days' using p select * from r;
create view v19 as with recursive r(n) as (select 1 union all select n from r) cycle n set c to numeric(4,1) '1.5' default 2 using p select * from r;
create view v20 as with recursive r(n) as (select 1 union all select n from r) cycle n set c to 1.5 default '-3' using p select * from r;
create view v21 as with recursive r(n) as (select 1 union all select n from r) cycle n set c to b'101' default b'1' using p select * from r;
create view v22 as with recursive r(n) as (select 1 union all select n from r) cycle n set c to timestamp without time zone '2001-01-01' default null using p select * from r;
create view v23 as with recursive r(n) as (select 1 union all select n from r) cycle n set c to null default false using p select * from r;
select c.relname, pg_get_viewdef(c.oid) from pg_class c where relname ~ '^v(1[6-9]|2\d)$' and relnamespace = current_schema::regnamespace order by length(relname), relname;
