-- records in arrays: a record, whatever it holds, is never a dimension
-- also: local
select array[row(1,null)];
select array[row(null,null), row(1,2)];
select array_length(array[row(1,null)],1), array_ndims(array[row(1,null)]);
select array[row(1,row(2))];
select array_agg(row(a,null)) from generate_series(1,3) a;
select array[array[row(1,2)],array[row(null,3)]];
with recursive t(n,p) as (select 1, array[row(1,null::int)] union all select n+1, p||row(n,null::int) from t where n<3) select * from t;
select * from unnest(array[row(1,2),row(3,4)]) as q(a int, b int);
select * from unnest(array[row(1, row(2)), row(3,row(4))]) as q(a int, b record);
select q.a, q.b = row(2) from unnest(array[row(1, row(2)), row(3,row(4))]) as q(a int, b record);
select q.a, q.b = row(2), q.c = array[row(3)], q.d = row(row(4)) from
  unnest(array[row(1, row(2), array[row(3)], row(row(4))), row(2, row(3), array[row(4)], row(row(5)))])
  as q(a int, b record, c record[], d record);
