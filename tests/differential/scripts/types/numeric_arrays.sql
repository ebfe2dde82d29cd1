-- arrays of numerics with a scale: in result columns beside what Python computes, in VALUES, stored
-- also: local
create table v (id int primary key, n numeric(6,2), na numeric(6,2)[]);
insert into v values (1, 1.5, null), (2, 2, null);
update v set na = '{1.5,2}' where id = 1;
insert into v (id, na) values (5, '{1.5,2}'), (6, '{}');
insert into v (id, na) select 7, array[1.5, 2.25];
insert into v (id, na) select 8, array[n, 2.25] from v where id = 1;
insert into v (id, na) select 9, na from v where id = 1;
select na::numeric(5,1)[] from v order by id;
select na, na[1], na || 1.5, n + na[1] from v order by id;
select string_to_array('1.26,2', ',')::numeric(5,1)[], array_append(na, n)::numeric(5,1)[], pg_typeof(n) from v order by id;
select id, array_remove(na::numeric(5,1)[], 2.0), array(select n from v)::numeric(7,3)[] from v order by id;
select array[n, 2.25]::numeric(5,1)[], array[1.555]::numeric(5,2)[], '{1.5,2}'::numeric[]::numeric(4,1)[] from v order by id;
create table fixed (id int, n numeric(8, 2)[]);
insert into fixed values (1, '{1.5,2}'), (2, '{}'), (3, null), (4, '{null,-0.01}');
select id, n @> '{1.50}', n && array[2.0, 7], n || 1.5, n = array[1.5, 2], array_position(n, 2), n[1] + 1, array_length(n, 1) from fixed order by 1;
