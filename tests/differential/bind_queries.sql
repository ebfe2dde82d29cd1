# One query a line. PostgreSQL's Describe (columns, types, typmods, origins, parameters) or its error (state, wording,
# detail, hint, position) must be ours. Tables: see test_bind.py.
select 1
select 1 as a, 'x', null, true, 1.5, 1e10, 99999999999, 99999999999999999999, -2147483648, 2147483648, b'101', x'ff'
select id, name from emp where id = $1
select e.name, d.name, count(*) from emp e join dept d on d.id = e.dept group by e.name, d.name having count(*) > 1 order by 3 desc
select * from emp e left join dept d using (id)
select * from emp e full join dept d using (id)
select * from emp natural join dept
select * from emp natural full join dept
select nam from emp
select emp.nam from emp e
select e.nam from emp e
select x.id from emp
select name from emp, dept
select id, count(*) from emp group by dept
select e.*, (select max(salary) from emp where dept = e.dept) from emp e
select * from v
select * from v2
select v.id, v2.dname from v join v2 using (id)
values (1,'a'),(2.5,null) order by column1+1
values (1,2),(3)
select 1 union select 2.5 union all select '3' order by 1
select 1 union select 'x'
select '1' union select '2'
select 1, 2 union select 1
select a from t1 union select b from t1
select n from t1 union select b from t1
select name from dept union select name from dept
select name from dept union all select name::varchar(30) from dept
select salary from emp union select 1
select k from t1 union select k from t1
select k from t1 union all select k from t1
with recursive t(n) as (select 1 union all select n+1 from t where n < 5) select * from t
with recursive t(n) as (select 1 union all select n+1.5 from t where n < 5) select * from t
with recursive t(n) as (select n from t union all select 1) select * from t
with recursive t as (select 1 from t) select * from t
with recursive t(n) as (select 1 union all select (select n from t)) select * from t
with recursive t(n) as (select 1 union all select t.n from emp left join t on true) select * from t
with recursive t(n) as (select 1 union all select t.n from t, t x) select * from t
with recursive t(n) as (select 1 union all select sum(n)::int from t) select * from t
with x as (select 1), x as (select 2) select 1
with x(a,b) as (select 1) select * from x
with x as (select * from y), y as (select 1) select * from x
with recursive x as (select * from y), y as (select 1) select * from x
with recursive x as (select * from y union select 1), y as (select * from x union select 2) select * from x
with x as (select 1 as a) select * from x, x y
with x as (select 1 as a) select * from x join x using (a)
select rank() over (partition by dept order by salary desc), sum(salary) over w from emp window w as (order by id rows 2 preceding)
select case when id = 1 then 'a' else name end, coalesce(null, id), array[1,2], (array[1,2])[1], id in (1,2,3), (id, name) < (1, 'x') from emp
select * from generate_series(1,3) with ordinality as g(x, o), unnest(array[1,2], array['a','b']) as u
select * from generate_series(1,3)
select * from generate_series(1,3) g
select g from generate_series(1,3) g
select string_agg(name, ',' order by id), percentile_cont(0.5) within group (order by salary), count(distinct dept) filter (where id > 1) from emp
select current_date, now(), current_user, extract(year from hired) from emp
select id from emp where id in (select dept from emp) and exists (select 1 from dept d where d.id = emp.dept)
select a.x from (select id as x from emp) a, lateral (select a.x + 1) b(y)
select a.x from (select id as x from emp) a, (select a.x + 1) b(y)
select a.x from (select id as x from emp) a right join lateral (select a.x + 1) b(y) on true
select dept, grouping(dept), sum(salary) from emp group by rollup(dept, name)
select e from emp e
select (e).name from emp e
select (e).nam from emp e
select (e).* from emp e
select e.* from emp e
select x.* from emp e
select *
select distinct on (dept) dept, name from emp order by dept, salary
select distinct on (dept) dept, name from emp order by salary, dept
select distinct name from emp order by id
select id, name, salary from emp group by id
select dept.name, emp.id from emp join dept on true group by emp.id
select sum(sum(id)) from emp
select id from emp where sum(id) > 1
select id from emp where rank() over () > 1
select sum(rank() over ()) from emp
select rank() over (order by rank() over ()) from emp
select rank() from emp
select lower(name) over () from emp
select count(*) over (order by id range between 1 preceding and 1 following) from emp
select count(*) over (order by hired range between '1 day' preceding and '1 day' following) from emp
select count(*) over (order by name range between 1 preceding and current row) from emp
select count(*) over (range between 1 preceding and current row) from emp
select count(*) over (order by id rows between id preceding and current row) from emp
select count(*) over (order by id rows between current row and 1 preceding) from emp
select count(*) over (rows between unbounded following and current row) from emp
select count(*) over w from emp
select count(*) over (w order by id) from emp window w as (order by id)
select count(*) over (w partition by id) from emp window w as (order by id)
select count(*) over (w) from emp window w as (rows 1 preceding)
select 1 from emp window w as (), w as ()
select count(distinct id) over () from emp
select generate_series(1,3), unnest(array[1,2])
select 1 where generate_series(1,3) > 1
select case when true then generate_series(1,3) end
select coalesce(generate_series(1,3), 1)
select sum(generate_series(1,3))
select * from emp limit id
select * from emp limit 'x'
select * from emp limit $1 offset $2
select * from emp order by 7
select * from emp order by 'x'
select name as id, id from emp order by id
select id + 1 as x from emp order by x + 1
select id + 1 as x from emp group by x
select id + 1 as x from emp group by id + 1
select id + 1 from emp group by 1
select id + 2 from emp group by id + 1
select name as dept, count(*) from emp group by dept
select 1 from emp group by 5
select 1 from emp group by k
select k from t1 group by k
select k from t1 order by k
select distinct k from t1
select j from t1 order by j
select count(distinct k) from t1
select a, b from t1 where d
select a from t1 where a
select a from t1 where 'x'
select a from t1 where $1
select not a from t1
select a and b from t1
select $1
select $1 + 1
select $1 + $2
select $1::int, $1::text
select $1 = a, $1 = b from t1
select $2::int
select coalesce($1, 1), case $2 when 1 then 'a' end
select $1 in (1,2), $2 between 1 and 2.5
select array[$1, 1]
select upper($1), substring($2 from $3 for $4)
select a + b from t1
select -b from t1
select foo(1)
select lower(1)
select lower(1,2)
select abs('x')
select abs('1')
select round(1.5, 2), round(c), round(s, 2) from t1
select round(c, 2) from t1
select max(a, b) from t1
select count() from t1
select lower(*) from t1
select lower(distinct b) from t1
select lower(b order by a) from t1
select lower(b) filter (where d) from t1
select count(*) filter (where a) from t1
select string_agg(distinct b, ',' order by a) from t1
select string_agg(distinct b, ',' order by b) from t1
select percentile_cont(0.5) from t1
select sum(a) within group (order by a) from t1
select rank(1) within group (order by a) from t1
select rank(1,2) within group (order by a) from t1
select mode() within group (order by b) from t1
select percentile_disc(array[0.5,0.6]) within group (order by a) from t1
select array[]
select array[]::int[]
select array[1,'2',null], array['a','b'], array[[1,2],[3,4]], array[1.5, 2], array[array[1],o] from t1
select array[1,'x']
select array[1,true]
select o[1], o[1:2], p[$1], o[a], j['a'], j['a'][1] from t1
select a[1] from t1
select (row(1,2)).f1
select row(1,2), (1,'a'), row()
select row(1,2) = row(1,2), (1,2) < (3,'4'), (1,2) <> (3,4), (1,2) = (1,2,3)
select (a,b) = (1,'x'), (a,b) in ((1,'x'),(2,'y')), (a,b) in (select a, b from t2) from t1
select (a,b) in (select a from t2) from t1
select a in (select a, b from t2) from t1
select a in (select b from t2) from t1
select (a,b) = (select a, b from t2) from t1
select (select a, b from t2) from t1
select (select a from t2), array(select a from t2), exists(select 1) from t1
select a = any(o), a <> all('{1,2}'), a = any(p) from t1
select a = any(a) from t1
select a + any(o) from t1
select a is distinct from b from t1
select a is distinct from null, null is not distinct from a from t1
select nullif(a, 1), nullif(1, 2.5), nullif(a, b) from t1
select nullif('a','b'), greatest(1,2.5,'3'), least(a, h), greatest(a,b) from t1
select a between 1 and '2', a not between symmetric 1 and 2 from t1
select b like 'x', b not ilike 'x' escape 'y', b similar to 'x', b ~ 'x', n like 'x', a like 'x' from t1
select e at time zone 'utc', f at time zone 'utc', e + g, e - e, f - f, hired - hired, hired + 1, r + g from t1, emp
select extract(epoch from e), date_part('year', f), date_trunc('day', e), age(f), interval '1' year, interval(3) '1 s', interval '1 day' day, time '10:00', date '2020-01-01', timestamp(3) '2020-01-01 00:00:00' from t1
select position('a' in b), overlay(b placing 'x' from 1 for 2), trim(b), trim(leading 'x' from b), trim(both from b), substring(b from 'x'), substring(b, 1), normalize(b) from t1
select b::int, a::text, a::varchar(3), c::numeric(10,2), b::jsonb, a::bool, d::int, l::text, m::text, n::text, q::float8 from t1
select d::float8 from t1
select e::int from t1
select a::foo from t1
select 'x'::int
select 'x'::date
select 'foo'::bool, 1::bool
select '2020-01-01'::date + '1 day', '2020-01-01'::date - '2019-01-01', '1' + '2'
select 1 || 'x', 'x' || 'y', b || a, a || a, o || 1, o || o, 1 || o from t1
select cast(1 as numeric(5,2)), '12345.678'::numeric(5,2)
select numeric(5,2) '1.5', int4 '1', int4('1'), text(1), float8(1)
select current_date, current_time, current_time(2), current_timestamp, localtime, localtimestamp(1), user, session_user, current_role, current_catalog, current_schema
select b collate "C", b collate "foo", a from t1
select a collate "C" from t1
select t1.a, public.t1.a from t1
select s2.t1.a from t1
select t1.a from s2.t1
select * from t1, t1
select * from t1, s2.t1
select * from t1 a, t2 a
select * from t1 a join t2 b on a.a = b.a and c.x
select * from (select 1 as a, 2 as a) x where a = 1
select x.a from (select 1 as a, 2 as a) x
select * from t1 x(a1, a2)
select * from t2 x(a1, a2, a3, a4)
select * from foo
select * from s2.foo
select * from s9.foo
select * from emp_pkey
select * from a.b.c.d
select * from other.public.emp
select tableoid, ctid, xmin from emp
select tableoid::regclass, 'emp'::regclass from emp
select count(*), count(id), sum(i), sum(a), sum(h), sum(c), sum(q), sum(s), avg(a), avg(c), avg(s), max(b), min(e), sum(g) from t1, emp
select count(*) from emp having count(*) > 1
select id from emp having true
select (select count(*) from emp where emp.id = t1.a) from t1 group by t1.b
select (select count(t1.a)) from t1
select (select t1.a from emp limit 1) from t1 group by t1.b
select (select sum(t1.a + emp.id) from emp) from t1
select t1.a from t1 where exists (select 1 from emp where sum(t1.a) > 1)
select emp.name from t1 join emp on t1.a = emp.id join dept using (id)
select * from t1 join t2 using (a, b)
select * from t1 join t2 using (zz)
select * from t1 join t2 using (c)
select a from t1 join t2 using (a)
select t1.a from t1 join t2 using (a)
select j from (t1 join t2 using (a)) j
select j.a, j.z from (t1 join t2 using (a)) as j
select t1.a from (t1 join t2 using (a)) as j
select ju.a from t1 join t2 using (a) as ju
select ju.b from t1 join t2 using (a) as ju
select * from json_each('{}'), jsonb_array_elements_text('[]') as x
select * from json_to_record('{}') as x(a int, b text)
select * from json_to_record('{}')
select * from generate_series(1,2) as x(a int)
select * from rows from (generate_series(1,2), json_to_record('{}') as (a int, b text)) with ordinality
select json_each('{}'), (json_each('{}')).*
select (json_each('{}')).key
select * from unnest(array[1,2]) with ordinality as u(x)
select * from current_date
select * from upper('x') as u
select pg_typeof(1), version(), format('%s', 1, 'x'), concat(1,'x',null), json_build_object('a', 1), greatest(null, null)
select to_char(now(), 'YYYY'), to_char(1, '9'), to_timestamp(0), make_date(2020,1,1), make_interval(days => 3), make_interval(1, hours => 2)
select make_interval(days => 1, days => 2)
select make_interval(days => 1, 2)
select make_interval(foo => 1)
select concat(variadic array['a','b']), format('%s', variadic array[1,2])
select variadic_foo(variadic array[1])
select name(emp), emp.upper from emp
select id(emp) from emp
select grouping(id) from emp
select grouping(id) from emp group by dept
select dept from emp group by grouping sets ((dept), (name), ()) order by grouping(dept, name)
select name from emp group by cube(dept, name), dept
select id, name from emp group by grouping sets ((id), (name))
select default
select 1 = default
select * from emp where current of c
select a from t1 order by a using <
select a from t1 order by a using ||
select a from t1 order by a using =
select 1 from emp order by sum(id)
select id from emp order by sum(id)
select 1 limit all
select 1 offset 1 fetch first row only
select 1 order by 1 fetch first 1 row with ties
select (1), (select 1 as foo), (select 1), case when true then (select 2 as bar) end, cast((select 1 as z) as text), a.b.c from t1 a
select (select * from t2 limit 1)
select (values (1))
select exists (select * from t2), not exists (select 1)
select e.id, (e.hired).foo from emp e
select emp.id.x from emp
select name.x from emp
select count(e) from emp e group by e
select e is null, e is not null, row(1,null) is null from emp e
select * from t2 where t2 = t2
select t2 from t2 order by t2
select * from (values (1,'a'),(2,'b')) as v(x,y)
select * from (values (1,'a'),(2,'b')) as v(x,y,z)
select * from (values ('1'),(2)) v
select * from (select 1)
select * from (values (1))
select 1 from emp e, dept d where e.id = d.id and emp.id = 1
select 1 from emp as e join dept on emp.id = dept.id
select id from (select id as idd from emp) x
select slary from emp
select salry, nmae from emp join dept using (id)
select t1.*, t2.a from t1 left join t2 on t1.a = t2.a where t2.z is null order by t2.z nulls first, 1 desc nulls last
select a, sum(s) over (partition by b order by a rows between unbounded preceding and 1 following exclude ties) from t1
select lag(a, 1, 0) over (order by a), lead(b) over w, ntile(4) over w, first_value(b) over w, nth_value(a, 2) over w, cume_dist() over w, percent_rank() over w, dense_rank() over w, row_number() over () from t1 window w as (partition by d order by a)
select lag(a, 1, 1.5) over (order by a) from t1
select array_agg(a order by b desc), array_agg(o), json_agg(t1), jsonb_object_agg(b, a), bool_and(d), every(d), bit_or(a), stddev(a), var_pop(c), corr(c,c), regr_slope(a,h) from t1
select min(o), max(n), min(h), max(r), min(g), max(j) from t1
select max(k) from t1
select sum(b) from t1
select avg(b) from t1
select count(a, b) from t1
select count(distinct (a,b)) from t1
select count(*) from t1 group by ()
select 1 group by ()
select a, grouping(a, b) from t1 group by grouping sets (a, b, (a,b))
select a from t1 group by rollup(a), cube(b)
select a + 1 from t1 group by a + 1 having a + 1 > 2
select a + 1 from t1 group by a having b = 'x'
select upper(b) from t1 group by upper(b) order by upper(b)
select b from t1 group by upper(b)
select t1.a, (select max(z) from t2 where t2.a = t1.a) from t1 group by t1.a
select (select t1.b from t2 limit 1) from t1 group by t1.a
select a, count(*) as n from t1 group by a order by n desc, count(*)
select distinct a, b from t1 order by b
select distinct a + 1 from t1 order by a + 1
select distinct a from t1 order by a + 1
select distinct on (a + 1) a from t1 order by a + 1, b
select distinct on (1) a, b from t1
select distinct on (3) a, b from t1
select * from t1 where exists (select 1 from t2 where t2.a = t1.a and exists (select 1 from emp where emp.id = t1.a and emp.id = t2.z))
select * from t1, lateral (select * from t2 where t2.a = t1.a) x
select * from t1 left join lateral (select t1.a as q) x on x.q = t1.a
select * from t1, generate_series(1, t1.a) g
select * from t1, generate_series(1, t1.b) g
select * from generate_series(1, t1.a) g, t1
select * from t1 full join lateral (select t1.a) x on true
select * from t1 join (t2 join emp on t2.a = emp.id) on t1.a = emp.id
select * from t1 join t2 on t1.a = emp.id join emp on true
select * from t1 inner join t2 using (a) inner join emp on emp.id = a
select a from t1 join t2 using (a) join emp on emp.id = t1.a
select * from (t1 join t2 using (a)) join t2 x using (a)
select x.* from t1 x join t2 y using (a, b)
select coalesce(x.a, y.a) from t1 x full join t2 y using (a)
select * from t1 natural left join t2
select * from t1 a(x), t2 b(x) where x = 1
select * from t2 as t(a, a)
select a from t2 as t(a, a)
select * from t1 cross join t2 natural join emp
select with_x.a from (with q as (select 1 as a) select * from q) with_x
with q as (select a from t1), r as (select * from q) select * from r, q
with q(x) as materialized (values (1),(2)) select x from q
with recursive q as (select 1 as a union select a + 1 from q limit 5) select * from q
with recursive q as (select 1 as a union select a + 1 from q order by 1) select * from q
with recursive q as (select 1 as a union all (select a + 1 from q union select 2)) select * from q
with recursive q as (select 1 as a except select a + 1 from q) select * from q
with recursive q as (select 1 as a union select a + 1 from (select * from q) x) select * from q
with recursive q as (select 1 as a union select a + 1 from t1 where a in (select a from q)) select * from q
with recursive q as (select 1::bigint as a union select a + 1 from q) select * from q
with recursive q as (select 'x' as a union select a || 'y' from q) select * from q
with recursive q as (select 'x'::varchar(3) as a union select a || 'y' from q) select * from q
with recursive q(a, b) as (select 1, 2 union select b, a from q) select * from q
with recursive q as (select 1 as a union select null) select * from q
select * from t1 where (select true)
select * from t1 where (select a from t2)
select * from t1 where a = (select b from t2)
select * from t1 where not exists (select * from t2 where a = t1.a)
select * from t1 where a > all (select a from t2) and b = some (select b from t2)
select * from t1 where (a, b) > all (select a, b from t2)
select * from t1 where (a, b) not in (select a, b from t2)
select * from t1 where row(a, b) is distinct from row(1, 'x')
select * from t1 where (a, b, c) >= (1, 'x', 2.5)
select * from t1 where (a, j) < (1, '{}')
select * from t1 where (a, k) = (1, '{}')
select * from t1 where a in (1)
select * from t1 where a in (1, 2.5, '3')
select * from t1 where a in ('x', 'y')
select * from t1 where b in (1, 2)
select * from t1 where a in (a, 1, 2, h)
select * from t1 where a not in (1, null)
select * from t1 where b in ('x', null, b)
select * from t1 where k in ('1', '2')
select * from t1 where $1 in (a, h)
select * from t1 where a in ($1, $2)
select * from t1 where e between '2020-01-01' and now()
select * from t1 where e > '2020-01-01' and f < '2020-01-01 10:00' and g > '1 day' and hired = '2020-01-01' and l = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' and m = '\x00', emp
select * from t1 where l = 'x'
select * from t1 where m = '\xz'
select * from t1 where j = '{bad'
select * from t1 where e = 'foo'
select * from t1 where o = '{1,2'
select * from t1 where o = '{1,x}'
select '{1,2}'::int[], '{"a b",c}'::text[], '{{1,2},{3,4}}'::int[][], array['a']::varchar(3)[], '{1.555}'::numeric(3,1)[]
select 'abc'::char, 'abc'::char(2), 'abc'::varchar(2), 'abc'::"char", 'abc'::name, 'abc'::bpchar, 'x'::bit(3)
select b'101'::bit(2), b'1'::varbit, x'f'::bit(8), '101'::bit(3)
select 1::smallint::bigint::numeric::float8::real::int, 1::oid, 1::oid::int8, 'emp'::regclass::oid, 'int4'::regtype, 25::regtype
select true::int, 1::bool, 't'::bool, true::text, true and null, not null
select null::int + null, null = null, null is null, null || 'x'
select 1 + null, null + null, 'a' || null, null || null
select 1/2, 1.0/2, 1/2.0::float8, 5%3, 2^3, |/4, @ -5, -(-5), +5, 5!=4, 5<>4, ~1, 1&2, 1|2, 1#2, 1<<2
select 2 ^ 0.5, 2::int8 * 2::int2, 2::int2 + 2::int2, 1.5 % 1, 1::real + 1::float8, 1::numeric + 1::real
select 'a' < 'b', 'a' = 'a'::name, 'a'::char(3) = 'a', b = n from t1
select b like n, n || b, n || n, b || n || 1 from t1
select length(n), length(b), char_length('x'), octet_length(m), length(m) from t1
select substr(b, 1, 2), left(b, 1), repeat(b, 2), strpos(b, 'x'), replace(b, 'a', 'b'), split_part(b, ',', 1), regexp_replace(b, 'a', 'b'), regexp_matches(b, 'a'), string_to_array(b, ','), array_to_string(o, ','), chr(1), ascii(b) from t1
select regexp_split_to_table(b, ','), a from t1
select array_length(o, 1), cardinality(o), array_append(o, 1), array_prepend(1, o), array_cat(o, o), array_position(p, 'x'), unnest(o), array_remove(o, null), o @> array[1], o && '{1}', 1 = any(o) from t1
select array_append(o, 'x') from t1
select array_append(o, 1.5) from t1
select array_append(null, 1)
select array_append(p, b), array_append(p, n) from t1
select j -> 'a', j ->> 'a', j #> '{a,b}', j #>> '{a}', j ? 'a', j @> '{}', j || '{}', j - 'a', k -> 0, k ->> 'x', jsonb_typeof(j), to_jsonb(a), row_to_json(t1), jsonb_build_object('a', a) from t1
select jsonb_set(j, '{a}', '1'), jsonb_set(j, '{a}', '1', false) from t1
select * from jsonb_to_recordset('[]') as x(a int, b text)
select * from jsonb_each_text('{}') as kv(k, v) join t1 on t1.b = kv.k
select date '2020-01-01' + time '10:00', date '2020-01-01' + interval '1 day', now() - interval '1 hour', now() - now(), current_date - 1, current_date - current_date, age(now()), extract(dow from current_date), extract(julian from now()), to_char(g, 'HH'), date_bin('1 day', e, e), justify_days(g), g * 2, g / 2.5, g * 1.5, -g, e::date, e::time, f::timestamptz, e::text, r::interval from t1
select interval '1 day' + '1 hour', '1 day'::interval > '1 hour', now() > '2020-01-01', now() + '1 day', current_date + 7, current_date + '7'
select timestamp '2020-01-01' at time zone 'UTC', timezone('UTC', now()), (now() at time zone 'UTC')::date, time with time zone '10:00+01' at time zone 'UTC'
select (date '2020-01-01', date '2020-02-01') overlaps (date '2020-01-15', interval '1 month')
select make_timestamp(2020,1,1,0,0,0.0), make_time(1,2,3.5), to_date('x','y'), to_number('1','9'), isfinite(now()), clock_timestamp(), statement_timestamp(), timeofday()
select generate_series(now(), now() + '1 day', '1 hour'), generate_series(1, 10, 2), generate_series(1.0, 2), generate_series(1::int8, 2)
select generate_series('2020-01-01', '2020-01-02', '1 day')
select width_bucket(5, 1, 10, 3), width_bucket(5.0, 1, 10, 3), width_bucket(a, o) from t1
select random(), setseed(0.5), pi(), sqrt(2), sqrt(2.0), power(2,3), exp(1), ln(2.0), log(10), log(2, 8), mod(5,3), div(5.0,2), gcd(4,6), factorial(5), trunc(1.5), trunc(1.55,1), ceil(1.5), floor(-1.5), sign(-1), abs(-1.5::real), degrees(1), atan2(1,2), scale(1.5), min_scale(1.50), trim_scale(1.50)
select greatest(1, 2.5, 3::int8), greatest('a', 'b'::text), least(now(), '2020-01-01'), coalesce(1, 2.5), coalesce('a', b), coalesce(null, null), nullif(null, 1) from t1
select case when true then 1 when false then 2.5 else '3' end, case a when 1 then 'x' when 2 then null end, case when a then 1 end from t1
select case when true then 1 else 'x' end
select case when true then 1 else true end
select case a when 'x' then 1 end from t1
select case when true then 'a'::varchar(3) else 'b'::varchar(3) end, case when true then 'a'::varchar(3) else 'b'::varchar(4) end, case when true then 1.5::numeric(4,2) end
select pg_sleep(1), pg_typeof(a), pg_typeof('x'), pg_typeof(null), pg_column_size(a) from t1
select unnest(array[1,2]) as u order by u
select unnest(o) from t1 group by unnest(o)
select unnest(o) + 1 from t1
select count(unnest(o)) from t1
select * from unnest(array[[1,2],[3,4]]) u
select * from t1 order by unnest(o)
select a from t1 where unnest(o) = 1
select a from t1 having unnest(o) = 1
select a from t1 limit generate_series(1,2)
select case when a > 1 then sum(a) end from t1
select sum(a) filter (where sum(a) > 1) from t1
select sum(a + (select count(*) from t2)) from t1
select sum((select t1.a)) from t1
select sum((select sum(t1.a))) from t1
select (select sum(t2.a + t1.a) from t2) from t1
select (select count(*) from t2 having sum(t1.a) > 1) from t1
select a, rank() over (order by sum(a)) from t1 group by a
select a, rank() over (order by b) from t1 group by a
select sum(sum(a)) over (order by b) from t1 group by b
select rank() over (order by a range between 1 preceding and '1' following) from t1
select sum(a) over (order by e range between '1 day' preceding and current row), sum(a) over (order by s range between 1 preceding and 1.5 following), sum(a) over (order by c range 1 preceding), sum(a) over (order by h desc range 1 preceding) from t1
select sum(a) over (order by e range between 1 preceding and current row) from t1
select sum(a) over (order by a, b range between 1 preceding and current row) from t1
select sum(a) over (groups 1 preceding) from t1
select sum(a) over (order by a groups 1 preceding) from t1
select sum(a) over (rows 'x' preceding) from t1
select sum(a) over (rows 1.5 preceding) from t1
select sum(a) over (rows $1 preceding) from t1
select sum(a) over (rows between 1 following and 1 preceding) from t1
select sum(a) over (rows between 1 following and current row) from t1
select sum(a) over (order by k) from t1
select sum(a) over (partition by k) from t1
select 1 where rank() over () = 1
select a from t1 group by rank() over ()
select a from t1 having rank() over () = 1
select lower(sum(b)) from t1
select b from t1 limit (select 1) offset (select a from t1 limit 1)
select b from t1 limit sum(a)
select b from t1 limit null
select 1 limit -1
values (1), ('x')
values (1), (2.5), ('3'), (null) order by 1 limit 1
values (default)
values (1,2) order by 3
values (1), (2) union select 3 order by column1
values ($1), (1)
values ('a'), ('b')
values (null), (null)
values ('a'::varchar(3)), ('b'::varchar(3))
values ('a'::varchar(3)), ('b'::varchar(4))
(select 1 limit 1) union all (select 2 order by 1)
select 1 as a union select 2 as b order by b
select 1 as a union select 2 as b order by a + 1
select 1 as a union select 2 as b order by 2
(select a from t1 order by b) union select a from t2
select a from t1 union select a from t2 order by t1.a
select a, a as b from t1 union select a, z from t2 order by a, b
select a, a from t1 union select a, z from t2 order by a
select null union select null
select null union select 1
select null union select null union select 1
select 1 union (select null union select null)
select 'a' union select b from t1
select 'x' union select a from t1
select $1 union select a from t1
select a from t1 union select $1
select a from t1 intersect select 'x'
select 1::int2 union select 1::int4 union select 1::int8
select '1' except select 1
select a from t1 union all select h from t1 union all select c from t1
select n from t1 union select 'x'::char(10)
select b, b from t1 except all select b from t1
select 1 from t1 where a = 1 or a = 2 or b = 'x' and not d
select +b from t1
select a || 1 from t1
select 1 || 2
select d + 1 from t1
select e + 1 from t1
select o + 1 from t1
select a = b from t1
select a = 'b' from t1
select a < d from t1
select a = null::text from t1
select $1 || $2
select $1 = $1
select $1::int + $1
select $1 + 1, $1::text
select upper($1), $1 + 1
select length($1)
select abs($1)
select round($1)
select $1 like 'x', $1 ~ $2
select $1 between $2 and 3
select now() - $1
select current_date + $1
select current_date - $1
select e - $1 from t1
select $1 is null
select $1 is distinct from 1
select coalesce($1, $2)
select case when $1 then $2 else 1 end
select array[$1, $2]
select ($1, 1) = (a, $2) from t1
select (select $1)
select (select $1) + 1
select * from (select $1) x
select * from (select $1 as a) x where a = 1
select $1, $2 from t1 where a = $2
select $1::varchar(10), cast($2 as date)
select $0
select $3
select to_char($1, 'x')
select concat($1, 'x')
select json_build_object('a', $1)
select exists (select $1)
select a from t1 where a = any($1)
select a from t1 where a = any($1::int[])
select a from t1 where $1 = any(o)
select a from t1 where b like any(array['x','y'])
select a from t1 where b = any('{x,y}')
select a from t1 where a = any('{x}')
select a from t1 where a = any(array['1','2'])
select a from t1 where a < all(array[1.5,2])
select foo.bar from t1
select public.foo(1)
select pg_catalog.lower('X'), pg_catalog.count(*) from t1
select foo.lower('x')
select t1.lower from t1
select lower from t1
select b.lower from t1
select (b).lower from t1
select t1.a.b from t1
select (t1).a, (t1).zz from t1
select (select t2 from t2 limit 1).a
select (x.y).a from (select t2 as y from t2) x
select x.y from (select t2 as y from t2) x
select y.* from (select t2 as y from t2) x
select (x.y).* from (select t2 as y from t2) x
select (row(1,'a')).f2, (row(1,'a')).f3
select row(t2.*), row(t2.*, 1) from t2
select t2.* = t2.*, t2 = t2, t2 is distinct from t2 from t2
select t2 = row(1,'a',2), row(1,'a',2) = t2 from t2
select t2::text, (t2).a::text from t2
select e.name.x from emp e
select emp.* from emp e
select e.*, e.id from emp e, e
select "Id" from emp
select ID, "id" from EMP
select 1 as "A b", 2 as select_, 3 "select"
select emp.oid from emp
select cmin, cmax, xmax from emp
select ctid from v
select a as x from t1 where x = 1
select a as x from t1 having x = 1
select a as x from t1 group by x having a = 1
select salary * 1.1, salary / 3, salary + id, sum(salary) / count(*), avg(salary), round(avg(salary), 2), -salary from emp group by id
select name::varchar(5), name || 'x', upper(name), dept.name || 'x', substring(dept.name from 1) from emp join dept using (name, id)
select extract('year' from hired), extract(foo from hired), date_part('x', hired) from emp
select extract(year from name) from emp
select position(1 in 2)
select substring(1 from 2)
select overlay(1 placing 2 from 3)
select trim(1)
select trim(both 'x' 'abc')
select normalize('x', nfc), 'x' is normalized, 'x' is nfc normalized
select collation for ('x')
select cast('1' as int), '1'::int4, int '1', cast(null as date), cast($1 as numeric(3,1))
select interval '1' day to second, interval '1 year 2 months', interval '1-2' year to month, interval(2) '1.234', '1'::interval hour to minute
select time(3) '10:00:00.1234', timestamptz(0) '2020-01-01', timestamp with time zone '2020-01-01', float(10) '1', float(30) '1', dec(5,1) '1', character varying 'x', national character(3) 'x'
select numeric(1001) '1'
select varchar(0) 'x'
select 'x'::foo.bar
select 'x'::int(3)
select 1::text(3)
select 'x'::varchar(a) from t1
select x from (values (1)) x
select x from (select 1 as y) x
select x.x from (select 1 as x) x
select unnest from unnest(array[1]) 
select g.g from generate_series(1,2) g
select generate_series.generate_series from generate_series(1,2)
select a.* from rows from (generate_series(1,2), unnest(array['a'])) as a(x, y)
select * from rows from (now(), current_date) with ordinality
select * from pg_catalog.generate_series(1,2)
select * from now() n
select * from abs(-1)
select * from row(1,2)
select * from sum(1)
select * from t1 where count(*) over () > 1
select * from rank() over ()
select * from lower('x') l where l = 'x'
select l.l from lower('x') l
select * from unnest(array[t2]) u from t2
