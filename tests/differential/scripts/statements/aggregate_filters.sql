-- What FILTER leaves out is not computed; sort keys of hypothetical sets that are one column twice.
-- also: local
create table g (k int, n int, t text);
insert into g values (1, 0, 'a'), (1, 2, 'b'), (2, 0, null), (2, 5, 'c'), (2, null, 'd');
select sum(1 / n) from g;
select sum(1 / n) filter (where n > 0) from g;
select sum(1 / n) filter (where n >= 0) from g;
select k, array_agg(10 / n order by 100 / n) filter (where n > 0), avg(1.0 / n) filter (where n <> 0) from g group by k order by k;
select k, sum(10 / n) filter (where n > 0) over (partition by k) from g order by k;
select count(distinct 10 / n) filter (where n > 0), string_agg((10 / n)::text, ',' order by n) filter (where n > 0) from g;
select sum(n::numeric(4, 2) / n) filter (where n > 0), max(t::int) filter (where t ~ '^[0-9]+$') from g;
select percentile_cont(0.5) within group (order by 10 / n) filter (where n > 0) from g;
select percentile_cont(0.5) within group (order by 10 / n) from g;
select rank(5, 'AZ', 50) within group (order by n, t desc, n) from g;
select rank(2, 'b', 0) within group (order by n, t, n desc), dense_rank(0, 5) within group (order by n, n) from g;
select cume_dist(0, 0) within group (order by n, n), percent_rank(5, 1) within group (order by n, n desc) from g;
select k, rank(2, 3) within group (order by n, n) from g group by k order by k;
select rank(2, 3) within group (order by n, n) from g where false;
-- what DISTINCT sorts by is an argument as it was written; direct arguments are of the group
select string_agg(distinct t, ',' order by t) from g;
select string_agg(distinct t::varchar, ',' order by t::varchar) from g;
select string_agg(distinct t::varchar, ',' order by t::varchar::text) from g;
select string_agg(distinct t, ',' order by t || '') from g;
select array_agg(distinct n order by n desc, n) from g;
select array_agg(distinct n order by n::int8) from g;
select sum(distinct n order by n::int8) from g;
select rank(n) within group (order by n) from g;
select k, rank(k) within group (order by n) from g group by k order by k;
select k, rank(k) within group (order by n), n from g group by k;
drop table g
