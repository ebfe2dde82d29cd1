-- One query a line. Order counts where the query ends in ORDER BY.
-- Rows as they are
select * from t order by id
select * from w order by id
select * from x order by a, b
select * from nokey
select * from altered order by id
select * from t where id = 3
select * from t where id in (1, 3, 99) order by id
select * from x where a = 2
select * from x where a > 1 and b <= 2 order by a, b
-- NULL ordering
select id, i4 from t order by i4, id
select id, i4 from t order by i4 desc, id
select id, i4 from t order by i4 nulls first, id
select id, i4 from t order by i4 desc nulls last, id
select id, f from t order by f, id
select id, f from t order by f desc, id
select id, s from t order by s, id
select id, c from t order by c, id
select id, b from t order by b desc, id
select k, v from nokey order by k, v
-- Integers
select i4 + 1 from t where id = 3
select i2 + i2 from t where id = 3
select i8 + 1 from t where id = 3
select i8 - 1 from t where id = 4
select i4 * i4 from t where id = 3
select -i4 from t where id = 4
select abs(i4) from t where id = 4
select i4::smallint from t where id = 3
select id, i4 / 3, i4 % 3, -i4 / 3 from t where id in (1, 2, 6) order by id
select i8 / -1 from t where id = 4
select i8 % -1 from t where id = 4
select i4 / (id - 1) from t
select i4 % (id - id) from t
select id, mod(i4, 7), div(i4::numeric, 7) from t where i4 is not null order by id
select id, i4 & 6, i4 | 1, i4 # 3, ~i4, i4 << 1, i4 >> 1 from t order by id
select sum(i4), sum(i8), avg(i4), min(i2), max(i8), count(i4) from t
select sum(i2), avg(i2), avg(i8) from t
select pg_typeof(sum(i4)), pg_typeof(sum(i8)), pg_typeof(avg(i2)), pg_typeof(sum(f)) from t
select bit_and(i4), bit_or(i4), bool_and(b), bool_or(b), every(b) from t
select gcd(i4, 4), lcm(6, id) from t where id in (1, 2) order by id
-- Numerics
select id, n + d, n - d, n * d from t order by id
select id, n / 3, d / 7, 1 / n from t where n <> 0 order by id
select n / 0 from t
select id, n % 3, -n, abs(n), sign(n) from t order by id
select id, round(n), round(n, 1), round(d, -1), trunc(n, 1), ceil(n), floor(n) from t order by id
select sum(n), avg(n), sum(d), avg(d), min(n), max(d) from t
select b, sum(n), avg(d), count(*) from t group by b
select id, n::numeric(10,1) from t where id < 3 order by id
select n::numeric(5,2) from t where id = 3
select n::int from t where id = 3
select id, n::int, d::int, d::bigint from t where id in (1, 2, 6, 7) order by id
select id, round(f::numeric, 2) from t where id in (1, 2) order by id
select 0.1 + 0.2, 1.10 * 2.0, 10 / 4.0, 2.5::numeric(3,1), 1e3::numeric
select n from t group by n
select distinct n from t
select id from t where n = 2.0 order by id
select stddev(i2), variance(i2), stddev_pop(d), var_samp(n) from t where id in (1, 2, 6)
select sqrt(2.0), power(2, 0.5), power(2.0, 3), exp(1.0), ln(2.0), log(100.0)
select greatest(n, d, 1), least(n, d, 1), id from t order by id
select width_bucket(d, 0, 10, 5), id from t where id in (1, 6) order by id
-- Floats
select id, f, r from t order by id
select id, f + 1, f * 2, f / 2 from t where id <> 3 order by id
select f * 1e300 from t where id = 3
select f / 0 from t where id = 1
select id, f::int from t where id in (1, 2, 7) order by id
select f::int from t where id = 4
select f::int from t where id = 3
select id, round(f), ceil(f), floor(f), trunc(f) from t where id <> 3 order by id
select id, f::text, r::text, f::float4 from t where id <> 3 order by id
select id, r::float8 from t order by id
select f = 'NaN', f > 1e308, id from t order by id
select 0.1::float8 + 0.2::float8, 1e15::float8, 1e16::float8, 123456789.125::float8, 1e-4::float8, 1.1::float4
select round(2.5::float8), round(-2.5::float8), round(0.5::float8), round(1.5::float8)
select sqrt(-1::float8)
select min(f), max(f) from t
select sum(f), avg(f) from t where id in (1, 2, 7)
select f from t group by f
-- Text
select id, upper(s), lower(s), length(s), octet_length(s), reverse(s) from t order by id
select id, initcap(s), left(s, 2), right(s, 2), left(s, -1), right(s, -1) from t order by id
select id, substr(s, 2), substring(s from 2 for 2), substring(s, 0, 3), position('a' in s), strpos(s, 'a') from t order by id
select substring('abc' from 1 for -1)
select id, lpad(s, 7, '*'), rpad(s, 3), repeat(s, 2), replace(s, 'a', 'bb') from t order by id
select id, trim(both 'a' from s), ltrim(s, 'ab'), rtrim(s), btrim(s, 'a!') from t order by id
select id, split_part(s, 'a', 1), split_part(s, 'a', -1), translate(s, 'abc', 'xy') from t order by id
select id, s || v, s || id, concat(s, v, id), concat_ws('-', s, v, b) from t order by id
select id, c || '|', length(c), c = 'ab', c::text || '|' from t order by id
select id, ascii(s), md5(s), starts_with(s, 'a') from t order by id
select chr(228), chr(65), quote_literal('it''s'), quote_ident('Ab'), to_hex(255)
select id, v < 'two', s > 'a', s collate "C" < 'b' from t order by id
select format('%s-%I-%L', s, s, s) from t where id in (1, 2, 5) order by id
select overlay('abcdef' placing 'XX' from 2 for 3), char_length('äöü'), bit_length('ab')
select string_agg(s, ',' order by id), string_agg(distinct v, ';' order by v) from t
select min(s), max(s), min(v), max(c) from t
-- Patterns
select id from t where s like 'a%' order by id
select id from t where s like '%\%' order by id
select id from t where s like 'a\\b' order by id
select id from t where s like '_lpha' order by id
select id from t where s ilike 'BE%' order by id
select id from t where v like 'x!_y' escape '!' order by id
select id from t where s not like '%a%' order by id
select 'a' like 'a\'
select id from t where s ~ '^[a-z]+' order by id
select id from t where s ~* 'BETA' order by id
select id from t where s !~ 'a' order by id
select id from t where s similar to '(a|B)%' order by id
select id, regexp_replace(s, '[aeiou]', '_', 'g'), regexp_replace(s, '(.)(.)', '\2\1') from t order by id
select id, (regexp_match(s, '(.)(a)'))[2], substring(s from 'm+') from t order by id
select regexp_matches('a1b22', '\d+', 'g')
select regexp_split_to_table('a,b;c', '[,;]')
-- Dates and times
select id, da + 1, da - 1, da - date '2000-01-01', da + interval '1 mon' from w order by id
select id, ts + interval '1 mon 1 day', ts - interval '1 us', ts - timestamp '2000-01-01' from w where id <> 4 order by id
select id, extract(year from ts), extract(epoch from ts), extract(dow from da), extract(week from da) from w where id <> 4 order by id
select id, date_part('month', ts), date_part('second', ts), date_trunc('month', ts), date_trunc('week', ts) from w order by id
select id, tz, tz at time zone 'UTC', tz::date, tz::timestamp, ts::timestamptz from w order by id
select id, extract(hour from tz), date_trunc('day', tz), tz + interval '1 day', tz + interval '24 hours' from w order by id
select id, ts at time zone 'America/New_York' from w order by id
select id, iv, -iv, iv * 2, iv / 2, iv + interval '1 hour', extract(day from iv), justify_days(iv) from w order by id
select id from w where iv = interval '1 day' order by id
select iv, count(*) from w group by iv
select id, iv from w order by iv, id
select sum(iv), avg(iv), min(iv), max(iv) from w
select id, age(ts, timestamp '2000-01-01') from w where id <> 4 order by id
select id, tm, tm + interval '1 hour', extract(minute from tm) from w order by id
select id, to_char(ts, 'YYYY-MM-DD HH24:MI:SS.US Day'), to_char(da, 'DD Mon YYYY') from w where id <> 4 order by id
select min(da), max(ts), min(tz), max(tm) from w
select da from w where da > '2000-01-01' order by da
select id from w where ts between '2000-01-01' and '2024-12-31' order by id
select ts + interval '300000 years' from w where id = 1
select make_date(2024, 2, 29), make_timestamp(2024, 1, 2, 3, 4, 5.5), make_interval(days => 3)
select date '2024-02-30'
select to_date('2024-03-05', 'YYYY-MM-DD'), to_timestamp(0), isfinite(timestamp 'infinity')
select extract(year from date '0044-03-15 BC'), date '0044-03-15 BC'
-- CASE and COALESCE guard
select id, case when i4 <> 0 then 10 / i4 end from t order by id
select id, case when id = 1 then 0 else 1 / (id - 1) end from t order by id
select id, coalesce(i4, 1 / (id - 5)) from t where id = 1
select id, nullif(i4, 10), coalesce(s, v, 'none') from t order by id
select id, case c when 'ab' then 1 when 'cd' then 2 end from t order by id
select id, case when s ~ '^[0-9]+$' then s::int else -1 end from t order by id
select s::int from t where id = 1
select 'abc'::int
select ' 12 '::int, '0x10'::text, '1e3'::float8, 't'::bool, 'off'::bool
select '1_000'::text::int
select '1.5'::text::int
select '99999999999'::text::int
-- NULL in sets
select id from t where i4 in (10, 11, null) order by id
select id from t where i4 not in (10, null) order by id
select id from t where i4 not in (10, 11) order by id
select k from nokey where k in (select v from nokey)
select k from nokey where k not in (select v from nokey)
select k from nokey where k not in (select v from nokey where v is not null)
select id, i4 is distinct from 10, i4 is not distinct from null, b is true, b is not false, b is unknown from t order by id
select id, greatest(ar, array[5, null]), least(ar, array[null, 5]), greatest(ar, null) from w order by id
select id, i4 = any(array[10, 3]), i4 <> all(array[10, null]) from t order by id
select null in (select 1 where false), null not in (select 1 where false)
select id, b and null, b or null, not b from t order by id
-- Rows compare
select a, b from x where (a, b) > (2, 2) order by a, b
select a, b from x where (a, b) in ((1, 2), (3, 3)) order by a, b
select (1, null) < (2, null), (1, null::int) < (1, 2), (1, 2) = (1, null::int), row(1, 2) is distinct from row(1, null)
select k, v, (k, v) >= (2, 3) from nokey order by k, v
select (a, b)::text from x order by a, b
select row(1, null) is null, row(null, null) is null, row(1, 2) is not null
-- Joins
select t.id, x.b from t join x on t.id = x.a order by 1, 2
select t.id, x.b from t left join x on t.id = x.a and x.b > 1 order by 1, 2
select t.id, x.a, x.b from t right join x on t.id = x.a order by 2, 3
select t.id, x.a, x.b from t full join x on t.id = x.a and x.b = 1
select count(*) from t cross join x
select t.id, x.c from t, x where t.id = x.a and x.b = t.id order by 1
select * from x join nokey on x.a = nokey.k
select * from (select a k, b from x) q natural join nokey
select * from (select a k, b from x) q full join nokey using (k)
select n1.k, n2.v from nokey n1 join nokey n2 on n1.v is not distinct from n2.v
select t.id, x.a from t left join x on false order by 1
select t.id, l.s from t, lateral (select sum(b) s from x where x.a = t.id) l order by 1
select t.id, l.b from t left join lateral (select b from x where a = t.id order by b desc limit 2) l on true order by 1, 2
select t.id, g from t, lateral generate_series(1, t.id) g where t.id < 4 order by 1, 2
select t.id from t join x on t.id < x.a group by t.id having count(*) > 2 order by 1
-- Sub-selects
select id, (select count(*) from x where x.a = t.id) from t order by id
select id, (select max(c) from x where x.a = t.id and x.b < 3) from t order by id
select id from t where exists (select 1 from x where x.a = t.id and x.b = 3) order by id
select id from t where not exists (select from x where x.a = t.id) order by id
select avg((select max(n) from t where id > null::int)), sum((select max(d) from t where id < 3)) from x order by 1
select a, avg((select max(d) from t where id < 3) + b) from x group by a order by 2, 1
select id, nullif(b, exists (select from x where x.b = 3)), exists (select from x where x.b = 9) = b from t order by id
select id from t where i4 > all (select b from x) order by id
select id from t where i4 = any (select b from x) order by id
select id, i4 > some (select a from x), i4 < all (select v from nokey) from t order by id
select (select b from x)
select id, (select b from x where a = t.id) from t order by id
select id, array(select b from x where a = t.id order by b) from t order by id
select (select sum(t.id) from x where false) from t
select id from t where (id, i2) in (select a, b from x) order by id
select a, (select max(b) from x y where y.a = x.a) - b from x order by 1, 2
-- CTE and sets
with q as (select a, sum(b) s from x group by a) select q.a, q.s, t.s from q left join t on t.id = q.a order by 1
with q as materialized (select * from x) select count(*) from q a join q b on a.a = b.b
with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select n, n * n from r order by 1
with recursive r(n, p) as (select k, v from nokey where k = 1 union select v, k from r, nokey where v = n) select * from r
select k from nokey union select a from x
select k from nokey union all select v from nokey
select k from nokey intersect select v from nokey
select k from nokey intersect all select k from nokey
select k from nokey except select v from nokey
select k from nokey except all select v from nokey
select 1 union select 2.5 union select null order by 1
(select a from x order by a limit 2) union all (select k from nokey order by k limit 2)
select 1 a, 'x' b union all select 2, null order by 1
-- Groups
select g, count(*), count(da), max(id) from w group by g
select a, b, sum(b) from x group by rollup (a, b)
select a, b, count(*), grouping(a, b), grouping(a) from x group by cube (a, b)
select a, b, count(*) from x group by grouping sets ((a), (b), (), (a))
select a, count(*) filter (where b > 1), sum(b) filter (where false) from x group by a order by a
select count(distinct k), count(distinct v), sum(distinct k) from nokey
select k, v, count(*) from nokey group by k, v
select count(*), sum(k), min(v), array_agg(v), string_agg('', '') from nokey where false
select k from nokey where false group by k
select a % 2, sum(b) from x group by a % 2 having sum(b) > 3 order by 1
select id, s from t group by id order by id
select array_agg(v order by v nulls first, k), array_agg(distinct k order by k) from nokey
select percentile_cont(0.5) within group (order by k), percentile_disc(0.5) within group (order by k), mode() within group (order by k) from nokey
select corr(k, v), regr_slope(v, k), covar_pop(k, v) from nokey
select json_agg(k order by k), json_object_agg(coalesce(k, 0), v order by k, v) from nokey
-- Windows
select a, b, row_number() over (partition by a order by b), rank() over (order by a), dense_rank() over (order by a) from x order by 1, 2
select a, b, sum(b) over (partition by a order by b), sum(b) over (partition by a) from x order by 1, 2
select a, b, lag(b) over w, lead(b, 2, -1) over w, first_value(b) over w, last_value(b) over w, nth_value(b, 2) over w from x window w as (partition by a order by b) order by 1, 2
select a, b, sum(b) over (order by a, b rows between 1 preceding and 1 following) from x order by 1, 2
select a, b, sum(b) over (order by a range between 1 preceding and current row) from x order by 1, 2
select a, b, sum(b) over (order by a groups between 1 preceding and 1 following exclude current row) from x order by 1, 2
select a, b, count(*) over (order by a groups between current row and unbounded following exclude ties) from x order by 1, 2
select a, b, sum(b) over (order by a, b rows between 2 preceding and 1 preceding) from x order by 1, 2
select a, b, sum(b) over (order by a range between unbounded preceding and unbounded following exclude group) from x order by 1, 2
select a, b, ntile(3) over (order by a, b), percent_rank() over (order by a), cume_dist() over (order by a) from x order by 1, 2
select id, sum(i4::numeric) over (order by id), avg(n) over (order by id rows 1 preceding) from t order by id
select a, sum(sum(b)) over (order by a) from x group by a order by a
select id, count(*) over (partition by b order by id desc) from t order by id
select k, v, rank() over (order by v desc nulls last) from nokey order by v, k
select id, lag(ts) over (order by id), max(da) over (order by id) from w order by id
-- DISTINCT, LIMIT
select distinct k, v from nokey
select distinct on (a) a, b, c from x order by a, b desc
select distinct b from t
select k from nokey order by k limit 2
select k from nokey order by k offset 2
select a from x order by a fetch first 2 rows with ties
select a, b from x order by a desc, b limit 3 offset 1
select a from x order by a limit 0
select a from x order by a limit null
select a from x limit -1
-- Series
select * from generate_series(1, 10, 3)
select * from generate_series(5, 1, -2)
select * from generate_series(1, 3, 0)
select * from generate_series(timestamp '2024-01-30', '2024-04-01', '1 month')
select g, ordinality from generate_series(10, 12) with ordinality g
select sum(g) from generate_series(1, 1000) g
select * from generate_series(1.0, 2.0, 0.5)
select unnest(array[1, 2, null]), unnest(array['a'])
-- Arrays
select id, ar, ar[1], array_length(ar, 1), cardinality(ar), ar || 9, 0 || ar from w order by id
select id, ar = '{1,2,3}', ar < '{2}', 5 = any(ar), ar @> '{1}', ar && '{5,7}' from w order by id
select id, array_to_string(ar, ',', '*'), array_position(ar, 5), array_remove(ar, 2), ar[2:3] from w order by id
select id, e from w, unnest(ar) e order by 1, 2
select array[1, 2] || array[3], array[[1, 2], [3, 4]], (array[[1, 2], [3, 4]])[2][1], array['a', null]
select string_to_array('a,b,,c', ','), string_to_array(null, ',')
select ar from w order by ar
-- JSON
select id, js -> 'a', js ->> 'a', js #> '{a,2,b}', js #>> '{a,0}' from w order by id
select id, jb, jb -> 'a', jb ->> 0, jb ? 'a', jb @> '{"b": 1}', jsonb_typeof(jb) from w order by id
select id, json_array_length(js) from w where id = 2
select '{"a":1,"a":2}'::jsonb, '{"a" : 1}'::json, to_jsonb(1.50), to_json('x'::text)
select json_build_object('a', 1, 'b', null), jsonb_build_array(1, 'x', true)
select row_to_json(x) from x where a = 1 order by b
select jb from w where jb = '{"a": "x", "b": 1}'
select '{bad'::json
select jsonb_set('{"a": 1}', '{a}', '2'), '{"a": 1}'::jsonb || '{"b": 2}', '{"a": 1, "b": 2}'::jsonb - 'a'
-- Bytes, uuid
select id, by, length(by), encode(by, 'hex'), encode(by, 'base64'), by || '\x01', substring(by from 2) from w order by id
select id, by > '\x00', get_byte('\x0a0b', 1), md5(by) from w order by id
select decode('YWJj', 'base64'), '\x6162'::bytea::text, convert_from('\x6162', 'UTF8')
select id, u from w order by u, id
select id from w where u = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'
select max(by), count(distinct u) from w
select 'nope'::uuid
-- what engines have in another way: minus zero as a key, infinities, ends of ranges, capitals, the total of no rows
select distinct f from t where f = 0
select f from t where f = 0 union select f from t where f = 0
select da + 1, da - 1, ts + interval '1 day', da + interval '1 day' from w where id = 4
select da - date '2000-01-01' from w where id = 4
select ts - timestamp '2000-01-01' from w where id = 4
select date_part('month', ts), date_part('hour', ts), date_trunc('year', ts), ts::date, da::timestamp from w where id = 4
select da + 2147483647 from w where id = 1
select ts - interval '10000 years' from w where id = 1
select a, count(*), grouping(a) from x where a > 100 group by grouping sets ((), (a), ())
select a from x where a > 100 group by grouping sets ((), (a), ())
select y.a from (select count(*) as n from x where a > 100 group by rollup (a)) z, x y order by 1
select upper(s || 'ßŉᾳ'), lower(s || ' ΑΣ İ') from t where id = 1
select ceil(f * 0.1), floor(-f), trunc(f) from t where id = 2
select count(*), sum(g) from generate_series(1, 20001) g
select count(*), min(g), max(g) from generate_series(100000, -7, -3) g
-- ranges
select * from spans order by id
select id, r, d, t, a, x from spans order by r desc, d, t nulls first, x, id
select id, r && int4range(1, 3), r @> int4range(1, 2), r <@ int4range(0, 9), r << int4range(3, 4), r >> int4range(0, 1), r &< int4range(1, 4), r &> int4range(1, 4), r @> 2, r @> e, e <@ r, r && null, r @> null::int from spans order by id
select id, isempty(r), lower_inf(r), upper_inf(r), lower_inc(r), upper_inc(r), upper_inc(d), upper_inc(t), isempty(d), d @> '2020-01-31'::date, t @> '2020-02-01 10:00+00'::timestamptz from spans order by id
select r, count(*), min(e), count(distinct d), count(distinct m) from spans group by r order by r
select distinct m, d from spans order by d, m
select n, m, count(*), count(distinct n), min(id) from spans where n <> 'empty' or n is null group by n, m order by n, m
select a.id, c.id from spans a join spans c on a.r = c.r and a.d = c.d where a.id < c.id order by 1, 2
select count(*), sum(a.id * c.id) from spans a join spans c on a.r && c.r and a.id < c.id
select count(*) from spans where (r && int4range(1, 2)) is null
select count(*) from spans where not r <@ int4range(0, 9) and d <> 'empty'
select id from spans where r > '[1,3)' and m <= '{[1,3),[5,)}' and x > '996' order by id
select id, lower(r), upper(d), r * int4range(1, 4), r::text, range_merge(d, '[2020-01-01,2020-01-02)') from spans order by id
select r from spans union select '[1,3)' order by 1
select r, rank() over (order by r), lag(d) over (order by r, id) from spans order by id
select id from spans where int4range(id, id + 2) && r order by id
select lower(d), upper(d), lower(t), upper(t), min(lower(r)), max(upper(r)), count(*) from spans group by 1, 2, 3, 4 order by 1, 2, 3, 4
select id from spans where upper(t) > '2020-02-01' and lower(r) < e or r @> lower(r) order by upper(r), id
select n / 0, d / 0.0, (select max(q) from (select n / 0 as q from t where id = 5) s) from t where id = 5
SELECT s.id FROM (SELECT id, (SELECT v FROM nokey) AS one FROM t) s ORDER BY id
SELECT s.id FROM (SELECT id, (SELECT v FROM nokey) AS one FROM t ORDER BY id DESC LIMIT 3) s ORDER BY id
SELECT count(*) FROM (SELECT (SELECT v FROM nokey) AS one, 1 / (id - 1) AS two FROM t) s
SELECT s.id FROM (SELECT y.id, y.one FROM (SELECT id, (SELECT v FROM nokey) AS one FROM t) y) s ORDER BY id
SELECT s.id FROM (SELECT id, (SELECT v FROM nokey) AS one FROM t UNION ALL SELECT a, (SELECT v FROM nokey) FROM x) s ORDER BY id
SELECT s.b, s.c FROM (SELECT b, count(*) AS c, (SELECT v FROM nokey) AS one FROM t GROUP BY b) s ORDER BY b
SELECT s.c FROM (SELECT count(*) AS c, sum(1 / (id - 1)) AS n FROM t) s
SELECT o.id FROM (SELECT id, (SELECT v FROM nokey) AS one FROM t) o, LATERAL (SELECT o.one AS z) l ORDER BY o.id
SELECT s.id FROM (SELECT DISTINCT ON (b) id, b, (SELECT v FROM nokey) AS one FROM t ORDER BY b, id) s ORDER BY id
SELECT s.id, (SELECT count(*) FROM x WHERE a = s.i4) FROM (SELECT id, i4, (SELECT v FROM nokey) AS one FROM t) s ORDER BY id
SELECT s.id FROM (SELECT id, (SELECT v FROM nokey) AS one FROM t) s WHERE EXISTS (SELECT 1 FROM x WHERE a = s.one) ORDER BY id
SELECT l.z FROM (SELECT id, (SELECT v FROM nokey) AS one FROM t) o, LATERAL (SELECT o.one AS z) l
SELECT s.id FROM (SELECT DISTINCT id, (SELECT v FROM nokey) AS one FROM t) s
SELECT s.id FROM (SELECT id, (SELECT v FROM nokey) AS one FROM t ORDER BY one LIMIT 2) s
SELECT s.id FROM (SELECT id, (SELECT v FROM nokey) AS one FROM t UNION SELECT a, 1 FROM x) s
SELECT a.id FROM t a JOIN (SELECT id, i4 AS k, (SELECT v FROM nokey) AS one FROM t) b USING (id) ORDER BY a.id
WITH s AS (SELECT id, (SELECT v FROM nokey) AS one FROM t) SELECT id FROM s ORDER BY id
WITH s AS NOT MATERIALIZED (SELECT id, (SELECT v FROM nokey) AS one FROM t) SELECT a.id FROM s a, s b WHERE a.id = b.id ORDER BY 1
WITH s AS (SELECT id, (SELECT v FROM nokey) AS one FROM t), u AS (SELECT id AS k, one FROM s) SELECT k FROM u ORDER BY k
WITH s AS (SELECT id, (SELECT v FROM nokey) AS one FROM t) SELECT (SELECT max(id) FROM s), id FROM t ORDER BY id
