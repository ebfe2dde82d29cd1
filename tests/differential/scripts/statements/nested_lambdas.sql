-- averages that the local executor divides itself, where arguments, FILTER or ORDER BY of an aggregate need variables of their own
-- also: local
create table t (id int, g int, n numeric, o boolean);
insert into t select i, i % 3, nullif(i % 11, 6) * 1.25 - 4, nullif(i % 3, 2) = 1 from generate_series(1, 24) i;
select avg(round(n, 8)) from t order by 1;
select avg(round(ln(abs(n) + 1), 8)) filter (where o), min(id), avg(n * n) from t order by 1, 2, 3;
select g, avg(round(n * n, 8)) filter (where o) from t group by 1 order by 2, 1;
select g, avg(n) filter (where round(n, 2) > 1) from t group by 1 order by 2, 1;
select id, avg(round(n, 8)) over (partition by g) from t order by 2, 1;
select g, stddev_samp(round(n, 3)), var_pop(round(n, 3)) filter (where round(n, 3) > 0) from t group by 1 order by 2, 1;
select id, (n * n) / (select max(round(n, 2)) from t) from t order by 2, 1;
