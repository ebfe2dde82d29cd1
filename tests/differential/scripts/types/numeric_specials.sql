-- NaN, infinities and more than 38 digits in tables that the router gives to DuckDB, which has no type for them
create table big (id int primary key, g int, n numeric, o bool);
insert into big select i, i % 3, nullif(i % 11, 6) * 1.25 - 4, nullif(i % 3, 2) = 1 from generate_series(1, 1500) i;
select sum(n + 'NaN'::numeric) from big;
select g, sum(n * 'NaN'::numeric), avg(n - 'Infinity'::numeric) from big group by 1 order by 1;
select sum(case when id = 3 then 'NaN'::numeric else n end), max(n * 'NaN'), stddev(n * 'NaN'), variance(n + 'Infinity') from big;
select avg(case when id = 3 then 'NaN'::numeric else n end) from big order by 1;
select count(*) from big where n * 'NaN' > 3;
select id, n * 'NaN', abs(n - '-Infinity'), mod(n * 'NaN', 3), round('NaN'::numeric + n, 2) from big order by id limit 20;
select sum(n * 12345678901234567890123456789012345678), sum(n * 1234567890123456789012345678901234567890123) from big;
select id, ('NaN'::numeric * n)::int from big order by 1;
select sum((n * 100)::numeric(4,2)) from big;
create table made as select id, n * 'NaN' as v from big;
select count(*) from made where v = 'NaN';
prepare p(numeric) as select sum(n * $1) from big;
execute p('NaN');
execute p(2);
execute p('Infinity');
