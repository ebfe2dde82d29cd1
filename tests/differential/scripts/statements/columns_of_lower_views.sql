-- a column that cannot be assigned is told before what is below its view, by the view whose column it is; of UPDATE the rest is looked at before SET
create table low (k int, i int, d date);
create view low0 as select k, count(*) as i from low group by k;
create view low1 as select k, i + 1 as i, k as kk from low0;
create view low2 as select k, i, kk from low1;
update low1 set i = 1;
update low1 set k = 1;
update low1 set kk = 1, i = 2;
update low2 set i = default where k = 4 returning *;
insert into low1 (i) values (1);
insert into low1 (k) values (1);
insert into low2 values (1, 2);
delete from low1;
create view lowt as select k, i + 1 as i, d from low;
create view lowtt as select k, i, d::text as d from lowt;
update lowtt set i = 1;
update lowtt set d = '1';
insert into lowtt (i) values (1);
update low set nope = 1 where nope2 = 1;
update low set nope = 1 returning nope2;
update low set (k, i) = (select nope, 1) where nope2 = 1;
update low set k = 'x' from low0 as o where o.nope = 1;
prepare low_same as update low set d = $1 where k = $1;
prepare low_null as select k from low where $1 is null or k = $1;
prepare low_row as select k from low where ($1, 2) is null or k = $1;
prepare low_any as select num_nulls($1), k = $1 from low;
prepare low_last as select k from low where k = $1 or $1 is null;
execute low_last(null)
