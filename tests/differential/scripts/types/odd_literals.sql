-- addresses as sscanf reads them, and what is wrong with the dimensions of an array
select '[1,2]'::int[];
select '[1'::int[];
select '[]'::int[];
select '[a]={1}'::int[];
select '[1:]={1}'::int[];
select '[1:a]={1}'::int[];
select '[1:2}={1,2}'::int[];
select '[ 1:2]={1,2}'::int[];
select '2024-02-29'::macaddr;
select '20240105'::macaddr;
select ' 08:00:2b:01:02:03 '::macaddr, '8:0:2b:1:2:3'::macaddr, '08002b-010203'::macaddr, '0800.2b01.0203'::macaddr, '0800-2b01-0203'::macaddr, '08002b010203'::macaddr, '08-00-2b-01-02-03'::macaddr;
select '08:00:2b:01:02:03x'::macaddr;
select '08:00:2b:01:02:-3'::macaddr;
select '08:00:2b:01:02:100'::macaddr;
select '294277-01-01'::macaddr;
select '120000'::macaddr;
select '-4713-01-01'::macaddr;
-- NULL is a constant like others; numerics have no -0, and none is too small
select 1 order by null;
select 1 group by null;
select distinct on (null) 1;
select count(*) from (values (2), (1)) x (a) group by rollup (null);
select row_number() over (order by null) from (values (2)) x (a);
create table zeros (f double precision, r real);
insert into zeros values (-0.0, -0.0), (0.0 * -1, 0.0 * -1), ('-0', '-0');
insert into zeros values (1e-400, 1);
table zeros;
select (1e-400)::float8;
