-- tests of ranges over rows, as filters, joins and outputs
create table spans (id int, r int4range, e int, d daterange, t tstzrange, b int8range);
insert into spans select row_number() over (order by r::text, e, d::text), r, e, d, t, b from (values (int4range(1, 3)), ('[3,5]'), ('empty'), ('(,2)'), ('[4,)'), ('(,)'), (null), ('[-5,-1)')) x (r), (values (0), (-3), (2), (null), (2147483647)) y (e), (values ('[2020-01-01,2020-02-01)'::daterange, '(2020-01-01,2020-02-01 10:00]'::tstzrange, '[-9223372036854775808,9]'::int8range), ('(-infinity,infinity]', '[infinity,infinity]', '[0,1)')) z (d, t, b);
select a.id, c.id, a.r && c.r, a.r @> c.r, a.r <@ c.r, a.r << c.r, a.r >> c.r, a.r &< c.r, a.r &> c.r, a.r = c.r, a.r < c.r from spans a, spans c where a.id % 10 = 0 and c.id % 10 < 2 order by 1, 2;
select id, r @> e, e <@ r, r @> 2, not r @> -3, isempty(r), lower_inf(r), upper_inf(r), lower_inc(r), upper_inc(r), b @> e::bigint, b @> (-9223372036854775808)::bigint, upper_inc(d), upper_inc(t), lower_inc(d), d @> '2020-01-31'::date, d @> 'infinity'::date, t @> '2020-02-01 10:00'::timestamptz, t @> '2020-01-01'::timestamptz, r @> null::int, r && null from spans order by id;
select count(*) from spans a join spans c on a.r && c.r and a.id < c.id;
select count(*) from spans where r @> 2 and not (r << int4range(3, 4));
select count(*), min(id) from spans where (r && int4range(1, 2)) is null;
select count(*) from spans where not r <@ int4range(0, 9);
select r, count(*) from spans where upper_inf(r) group by r order by r;
select a.id from spans a where not exists (select from spans c where c.r @> a.r and c.r <> a.r and c.e = a.e) order by 1;
select id from spans where d && daterange('2020-01-15', null) and t << tstzrange('2020-03-01', '2020-04-01') order by id;
select id from spans where int4range(e, e + 2) @> 3 order by id;
select count(*), sum(upper(r) - lower(r)), min(lower(r)), max(upper(b)), min(lower(b)) from spans where lower(d) >= '-infinity' and upper(r) is not null;
select lower(d), upper(d), lower(t), upper(t), lower(b), count(*) from spans group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5;
select id from spans where upper(t) > '2020-02-01' and lower(t) < now() and lower(r) < e order by id;
select id from spans where r @> lower(r) and not upper(r) <@ r order by upper(r), id;
