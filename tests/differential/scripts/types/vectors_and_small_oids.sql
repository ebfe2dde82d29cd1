-- arrays of int2vector and oidvector, and what smallint becomes as an oid
create table vo (v int2vector, o oidvector, s smallint);
insert into vo values ('1 2', '3 4', -3), (null, null, 5);
select array[v, null], pg_typeof(array[v, null]), array[v]::int2vector[], array[o]::oidvector[], cast(array[v, null] as int2vector[]) from vo order by s;
select pg_typeof(null::int2vector[]), array[v::text]::int2vector[], array['1 2', null]::int2vector[] from vo order by s;
select array[null, v]::oidvector[] from vo;
select cast(array[1, 2] as int2vector);
select s::oid, s::regclass, s::regproc::oid, s::oid::int, s::oid::bigint, array[s, 7::oid], s::oid > 7 from vo order by s;
create view vo_seen as select s::oid as o, s::regtype as r, array[s::oid] as a from vo;
select pg_get_viewdef('vo_seen'::regclass);
select * from vo_seen order by o
