-- also: local
-- What DuckDB answered otherwise, or with words of its own.
create table pe(k int primary key, f float8, s text, iv interval, tt timetz, js json);
insert into pe values (1, 'inf', 'hi', '1 day', '10:00+01', '[{"a":"1","b":"2"}]'), (2, 1.5, '', '25:00', '09:30+00', '[]'), (3, 2.5, null, '-1 mon', '12:00-03', null);
select union select;
select from pe union all select from pe where k = 1;
select from pe except all select from pe where k < 3;
select 0::int2 - (-32768::int2), k from pe;
select k, 1 + (-(-2147483648)::int4) from pe;
select k, 1 / ('x'::text)::int from pe;
select k, lpad(s, 5, ''), rpad(s, 1, ''), lpad(s, -1, ''), rpad(s, 6, 'xy') from pe order by k;
select var_pop(f), var_samp(f), stddev_pop(f), stddev_samp(f), variance(f), stddev(f) from pe;
select k % 2, var_pop(f), var_samp(f), stddev_pop(f) from pe where k <> 3 group by 1 order by 1;
select var_pop(f) filter (where k > 1), var_samp(f) filter (where k = 2), stddev_pop(distinct f) from pe;
select covar_pop(f, k), covar_samp(k, f), corr(f, k), regr_slope(f, k), regr_r2(k, f), regr_intercept(f, k) from pe;
select k, var_pop(f) over (order by k desc rows 1 preceding) from pe order by k;
select k, count(*) over (order by iv range between '1 day' preceding and '2 hours' following) from pe order by k;
select k, count(*) over (order by tt range between '1 hour' preceding and current row) from pe order by k;
select pe.k, q.* from pe, json_populate_recordset(row(0::int, ''::text), js) q (a int, b text) order by 1;
select pe.k, q.* from pe, json_populate_recordset(row(0::int), js) q (a text, b text) order by 1;
select k, (select n from (values (1)) x, (select n from generate_series(1, 9) n order by n limit 1 offset k) y) from pe order by k;
drop table pe;
