-- also: local
-- Set-returning functions in GROUP BY and in window definitions, which make rows before these see them; equal targets that are grouped by
-- one by one.
create table f (d int, e text);
insert into f values (1, 'a'), (1, 'b'), (2, 'b');
select d, count(*) from f group by d, unnest('{1,1,3}'::int[]) order by 1, 2;
select d, unnest('{1,1,3}'::int[]), count(*) from f group by d, 2 order by 1, 2;
select d, unnest('{1,1,3}'::int[]) u, count(*) from f group by cube (d, u) order by 1, 2, 3;
select d, unnest('{1,1,3}'::int[]), count(*) from f group by rollup (d, 2) order by 1, 2, 3;
select d, unnest('{1,1,3}'::int[]) + 1, unnest('{7,8}'::int[]), count(*) from f group by d, 2 order by 1, 2, 3;
select unnest('{1,2}'::int[]) u, generate_series(1, 3) g, count(*) from f group by u, g order by 1, 2;
select unnest('{1,2}'::int[]) u, generate_series(1, unnest('{1,2}'::int[])) g, count(*) from f group by u, g order by 1, 2;
select unnest('{1,2}'::int[]) u, generate_series(1, unnest('{1,2}'::int[])) g, count(*) from f group by u order by 1, 2;
select count(*) from f group by generate_series(1, d) having count(*) > 1;
select d, generate_series(1, d) from f group by d, generate_series(1, d) order by 1, 2;
select d, generate_series(1, d) from f group by d, generate_series(1, d) + 1 order by 1, 2;
select distinct d, generate_series(1, d) from f group by d, generate_series(1, d) order by generate_series(1, d), d;
select d from f group by grouping sets ((), (d), (d, generate_series(1, d))) order by 1;
select regexp_split_to_table(e || ',x', ',') w, count(*) from f group by w order by 1;
select sum(generate_series(1, d)) from f group by d;
select sum(d), sum(d) over (), count(*) over (partition by generate_series(1, d)) from f group by d, generate_series(1, d) order by 1, 2, 3;
select d, generate_series(1, d), count(*) over (partition by generate_series(1, d)) from f order by 1, 2, 3;
select d, generate_series(1, d) + 1, count(*) over (partition by generate_series(1, d)) from f order by 1, 2, 3;
select d, generate_series(1, d + 1), row_number() over (order by generate_series(1, d)) from (values (1), (2)) v(d) order by 1, 2, 3;
select d, sum(d) over (order by d range between generate_series(1, 2) preceding and current row) from f;
select d, first_value(generate_series(1, 2)) over (order by d) from f;
select * from (select d as a1, d as a2, count(*) from f group by a1, rollup (a2)) s order by 1, 2;
select * from (select d as a1, d as a2, d + 1 as b from f group by a1, rollup (a2)) s order by 1, 2;
select * from (select d as a1, d as a2, grouping(d) from f group by a1, rollup (a2)) s order by 1, 2;
select * from (select d as a1, d as a2 from f group by d, rollup (a2)) s order by 1, 2;
select * from (select d + 1 as a1, d + 1 as a2 from f group by a1, rollup (a2) having d + 1 > 2) s order by 1, 2;
select * from (select d + 1 as a1, d + 1 as a2, d + 1 as a3 from f group by rollup (a2), a1) s order by 1, 2, 3;
select * from (select d + 1 as a1, d + 1 as a2, d + 1 as a3 from f group by rollup (2, 1)) s order by 1, 2, 3;
select * from (select d as a1, d as a2, d as a3 from f group by cube (a3, a2)) s order by 1, 2, 3;
select * from (select d as a1, d as a2, d as a3 from f group by grouping sets ((1), (2, 3), ())) s order by 1, 2, 3;
select * from (select d as a1, d as a2 from f group by a1, a2) s order by 1;
create view grouped as select d as a1, unnest('{1,2,2}'::int[]) as u, count(*) from f group by a1, u;
select * from grouped order by 1, 2;
