-- Sub-queries that read the query around them, in forms of which Spark refuses many as they are.
select sum((select max(v) from nokey where k < x.a)) from x
select sum((select sum(y.b * x.b) from x y where y.a < x.a)) from x
select (select max(v) from nokey where k < x.a), count(*) from x group by 1 order by 1
select a, count(*) filter (where exists (select 1 from nokey where k > x.b)) from x group by a order by a
select a, b from x order by (select max(v) from nokey where k < x.a) nulls first, a, b
select a, b, rank() over (order by (select count(*) from nokey where k < x.a)) from x order by 1, 2
select a, b, sum(b) over (partition by (select max(v) from nokey where k < x.a)) from x order by 1, 2
select distinct (select max(v) from nokey where k < x.a) from x order by 1
select x.a, y.b from x left join x y on y.a > (select avg(k) from nokey where v > x.b) and y.b = x.b order by 1, 2
select x.a, y.b from x left join x y on y.a > (select avg(k) from nokey where v > y.b) order by 1, 2
select x.a, y.b from x left join x y on y.a > x.a and exists (select 1 from nokey where k < y.a and v > x.b) order by 1, 2
select x.a, y.b from x join x y on exists (select 1 from nokey where k < y.a and v > x.b) order by 1, 2
select x.a, y.b from x join x y on x.a in (select k from nokey where v > y.b) order by 1, 2
select x.a, y.b from x left join x y on x.a in (select k from nokey where v > y.b) order by 1, 2
select x.a, y.b from x left join x y on x.a not in (select k from nokey where v > y.b and k is not null) order by 1, 2
select x.a, n.k from x full join nokey n on n.k = x.a and x.b > (select min(v) from nokey where k = x.a) order by 1, 2
select a, b, (with q as (select k from nokey where k < x.a) select count(*) from q) from x order by 1, 2
select a, b, (with q as (select k from nokey where k < x.a) select count(*) from q q1, q q2 where q1.k = q2.k) from x order by 1, 2
select x.a, x.b, v.* from x, lateral (values (x.a, x.b), (0, 9)) v(p, q) order by 1, 2, 3, 4
select a, b, (values (x.a + 1)) from x order by 1, 2
select a, b, (select max(p) from (values (x.a), (x.b), (2)) v(p)) from x order by 1, 2
select x.a, x.b, l.c from x, lateral (select count(*) c from nokey n where n.k < x.a and n.v > (select min(y.b) from x y where y.a = x.a)) l order by 1, 2
select x.a, x.b, l.m, z.w from x, lateral (select max(v) as m from nokey where k < x.a) l, lateral (select count(*) as w from nokey where v < l.m and k < x.a) z order by 1, 2
select x.a, x.b, z.w from x, lateral (select w from (select count(*) as w from nokey where v < x.b) i where w > 0) z order by 1, 2
select x.a, x.b, z.w from x left join lateral (select w, row_number() over (order by w) from (select v as w from nokey where v > x.b union all select k from nokey where k > x.a) i) z on z.w > x.b order by 1, 2, 3
select a, b, (select sum(v) over (order by v) from nokey where k < x.a and v is not null order by v desc limit 1) from x order by 1, 2
select a, b, (select max(v) from nokey where k < x.a and v > 0 group by k order by k limit 1) from x order by 1, 2
select a, b, (select string_agg(distinct c, '-') from x y where y.a < x.a and y.b = 1 and y.a = x.a - 1 and exists (select 1 from nokey where k = x.b)) from x order by 1, 2
select a, b from x where (select count(*) from nokey where k < x.a) = (select count(*) from x y where y.a < x.b and exists (select 1 from nokey n where n.k = x.b)) order by 1, 2
select a, b, (select k from nokey where k < x.a) from x where a < 3 order by 1, 2
select a, b, (select k from nokey where k < x.a) from x order by 1, 2
select a, b, x.b in (select n.v from nokey n where n.k < x.a and n.v > (select min(y.b) from x y where y.a < x.a)) from x order by 1, 2
select a, b from x where b > all (select n.v from nokey n where n.k < (select max(y.a) from x y where y.a < x.a)) order by 1, 2
select a, b, (select sum(case when y.b > x.b then 1 else 0 end) from x y) from x order by 1, 2
select a, b, (select count(distinct y.b + x.b) from x y where y.a <> x.a) from x order by 1, 2
select a, max(b), (select sum(y.b * x.a) from x y) from x group by a order by 1
select a, sum(b), (select count(*) from nokey where v > sum(x.b)) from x group by a order by 1
select a, sum(b), (select sum(v * sum(x.b)) from nokey) from x group by a order by 1
select a, sum(b) from x group by a having exists (select 1 from nokey where v > sum(x.b) and k in (select y.a from x y where y.a = x.a)) order by 1
select a, b, (select count(*) from (select 1 from nokey where k < x.a limit 2) z) from x order by 1, 2
select a, b, (select count(*) from nokey n left join x y on y.a = n.k and y.b < x.b) from x order by 1, 2
select a, b, (select count(y.b) from x y right join nokey n on y.a = n.k and n.v < x.b) from x order by 1, 2
select a, b, (select sum(g) from generate_series(1, x.b) g) from x order by 1, 2
select a, b, (select avg(n.v * x.a) from nokey n group by n.k having n.k = 2) from x order by 1, 2
select a, b, (select c from (select k as c from nokey except select y.b from x y where y.a = x.a) z order by c nulls last limit 1) from x order by 1, 2
select id, (select max(u.s || t.s) from t u where u.id < t.id) from t order by id
select id, (select sum(u.n * t.i4) from t u where u.id < t.id and u.id <> 3) from t order by id
select id, (select sum(u.d * t.d) from t u where u.id < t.id and u.id <> 3) from t order by id
select id, (select max(u.f) from t u where u.f < t.f and u.id > (select min(id) from t v where v.f <> t.f)) from t order by id
select id, (select count(*) from t u where u.c = t.c and u.id in (select v.id from t v where v.c = t.c)) from t order by id
select a, b, (select avg(y.b) from x y where y.a < x.a) from x order by 1, 2
select a, b from x where b > (select avg(y.b) from x y where y.a < x.a) order by 1, 2
select a, b from x where b >= (select max(y.b) from x y where y.a < x.a and y.b <= x.b) order by 1, 2
select a, b, (select count(*) from x y where y.a < x.a) from x order by 1, 2
select a, b, (select count(*) + 1 from x y where y.a < x.a) from x order by 1, 2
select a, b, (select coalesce(sum(y.b), 0) from x y where y.a <> x.a) from x order by 1, 2
select a, b from x where exists (select 1 from x y where y.a > x.a and y.b < x.b) order by 1, 2
select a, b from x where not exists (select 1 from x y where y.a > x.a) order by 1, 2
select a, b from x where exists (select 1 from nokey where k < x.a and v is not null) or b = 3 order by 1, 2
select a, b, exists (select 1 from nokey where k > x.a) from x order by 1, 2
select a, b from x where a in (select k from nokey where v > x.b) order by 1, 2
select a, b from x where a not in (select k from nokey where k is not null and v > x.b) order by 1, 2
select a, b, a in (select k from nokey where v > x.b) from x order by 1, 2
select a, b from x where b > all (select v from nokey where k < x.a) order by 1, 2
select a, b from x where b > any (select v from nokey where k < x.a) order by 1, 2
select x.a, x.b, l.m from x, lateral (select max(v) as m from nokey where k < x.a) l order by 1, 2
select x.a, x.b, l.m from x left join lateral (select max(v) as m from nokey where k < x.a group by k) l on true order by 1, 2, 3
select x.a, x.b, l.k, l.v from x, lateral (select k, v from nokey where k < x.a) l order by 1, 2, 3, 4
select x.a, x.b, l.k, l.v from x, lateral (select k, v from nokey where k <= x.a order by k desc, v limit 1) l order by 1, 2, 3, 4
select x.a, x.b, l.k, l.v from x left join lateral (select k, v from nokey where k >= x.a and v is not null order by k, v limit 2) l on true order by 1, 2, 3, 4
select a, b, (select v from nokey where k >= x.a and v is not null order by k, v limit 1) from x order by 1, 2
select a, b, (select v from nokey where k > x.a order by v desc nulls last offset 1 limit 1) from x order by 1, 2
select a, b, (select string_agg(c, ',') from x y where y.a < x.a and y.b = 1 and y.a = x.a - 1) from x order by 1, 2
select a, b, (select sum(y.b) from x y where y.a between x.a - 1 and x.a + 1) from x order by 1, 2
select a, b, (select sum(y.b) from x y, nokey n where y.a < x.a and n.k = y.b) from x order by 1, 2
select a, b, (select max(c) from (select y.a, count(*) c from x y where y.b < x.b group by y.a) z) from x order by 1, 2
select a, b, (select max(z.v) from (select distinct v from nokey where k < x.a) z) from x order by 1, 2
select a, b, (select max(q) from (select k as q from nokey where k < x.a union all select v from nokey where v < x.b) z) from x order by 1, 2
select a, b, (select avg(y.b) filter (where y.b < x.b) from x y) from x order by 1, 2
select a, b, (select sum(y.b * x.b) from x y where y.a < x.a) from x order by 1, 2
select a, b, (select sum(y.b) + x.b from x y where y.a < x.a) from x order by 1, 2
select a, b, (select sum(y.b) from x y where y.a < x.a having count(*) > 3) from x order by 1, 2
select a, b, (select sum(y.b) from x y where y.a < x.a or y.b = x.b) from x order by 1, 2
select id, (select sum(n) from t u where u.id < t.id) from t order by id
select id from t where n > (select avg(n) from t u where u.id < t.id) order by id
select id, (select avg(n) + 1 from t u where u.id < t.id) from t order by id
select id, n + (select max(n) from t u where u.id < t.id) from t order by id
select id, (select max(n) from t u where u.id < t.id) * 2 from t order by id
select id, n / (select max(i2) from t u where u.id > t.id) from t where n is not null order by id
select id from t where d > 0.5 * (select avg(d) from t u where u.id <> t.id) order by id
select a, b, (select max(v) from nokey where k < x.a and v < (select max(y.b) * 3 from x y where y.a > nokey.k)) from x order by 1, 2
select a, b, (select count(*) from nokey n where exists (select 1 from x y where y.a < n.k and y.b < n.v)) from x order by 1, 2
select a, b, (select max(v) from nokey where k < x.a and v < (select max(y.b) * 3 from x y where y.a > x.a)) from x order by 1, 2
select a, b from x where exists (select 1 from nokey n where n.k > x.a and exists (select 1 from x y where y.a < n.k and y.b > x.b)) order by 1, 2
select a, max(b), (select sum(y.b) from x y where y.a < x.a) from x group by a order by 1
select a, max(b) from x group by a having max(b) > (select avg(y.b) from x y where y.a < x.a) order by 1
select a, b, (select row_number() over (order by v) from nokey where k < x.a order by 1 desc limit 1) from x order by 1, 2
select case when (select count(*) from nokey where k < x.a) > 2 then (select max(v) from nokey where k < x.a) else 0 end from x order by 1
select x.a, y.b from x join x y on y.a < (select avg(k) from nokey where v > x.b) order by 1, 2
select x.a, y.b from x left join x y on y.a > x.a and exists (select 1 from nokey where k < y.a) order by 1, 2
select a, b from x where (a, b) in (select k, v from nokey where v > x.b - 10) order by 1, 2
select a, b from x where a = (select distinct k from nokey where v > 4 + x.b) order by 1, 2
select a, b, (select k from nokey where v = 9 and k > x.a - 10) from x order by 1, 2
select a, b, array(select k from nokey where k < x.a order by k) from x order by 1, 2
select a, b, (select max(g) from generate_series(1, 3) g where g < x.a) from x order by 1, 2
select x.a, g from x, lateral generate_series(1, x.a) g where x.b > (select avg(k) from nokey where k <= g) order by 1, 2
select id, (select sum(u.i4 * t.n) from t u where u.id < t.id and u.id <> 3) from t where id <> 3 order by id
select id, (select min(t.n + 0 * u.i2) from t u where u.id > 5) from t order by id
select v.n, (select max(v.n * w.k) from nokey w) from (values (1.0), (1.00), (2.50), (null)) v(n) order by 1, scale(v.n)
select x.a, l.k, l.s from x left join lateral (select n.k, sum(n.v * x.b) s from nokey n group by n.k) l on l.k = x.a order by 1, 2, 3
select x.a, l.m from x left join (nokey n join lateral (select max(y.b * n.v) m from x y where y.a = n.k) l on l.m > 2) on n.k = x.a order by 1, 2
select a, b, (select g from (select distinct on (y.b) y.b + x.b g from x y where y.a > (select min(n.k) from nokey n where n.v > x.b) order by y.b, y.a desc) z order by g desc limit 1) from x order by 1, 2
select a, b, (select count(*) from (select 1 from x y where y.a < (select max(n.k) from nokey n where n.v > x.b) order by y.b fetch first 1 row with ties) z) from x order by 1, 2
select a, b, (select max(r) from (select row_number() over (order by n.v, n.k) * 10 + x.b as r from nokey n where n.k < x.a and exists (select 1 from x y where y.a = x.a)) z) from x order by 1, 2
select x.a, y.b from x left join x y on (x.a in (select k from nokey where v > y.b)) is null order by 1, 2
select x.a, y.b from x left join x y on y.a = 2 and not x.b < all (select v from nokey where k <= y.a) order by 1, 2
select x.a, n.k, y.b from x left join (nokey n join x y on y.a = n.k and y.b >= (select min(k) from nokey m where m.v >= n.v)) on n.k = x.a order by 1, 2, 3
select n.k, n.v, y.b from nokey n left join x y on y.a = n.k and n.v not in (select b from x where b > 1) order by 1, 2, 3
select n.k, n.v, y.b from nokey n full join x y on y.a = n.k and not n.v in (select b from x where b > 5) order by 1, 2, 3
select n.k, n.v, y.b from nokey n left join x y on y.a = n.k and y.b = 1 and (n.v not in (select b from x) or n.k = 1) order by 1, 2, 3
select x.a, x.b, n.k from x left join nokey n on exists (select max(y.b) from x y where y.a = n.k + 100) order by 1, 2, 3
select x.a, x.b, n.k from x right join nokey n on exists (select max(y.b) from x y where y.a = n.k + 100) order by 1, 2, 3
select x.a, x.b, n.k from x full join nokey n on n.k = x.a and exists (select count(*) filter (where y.b > n.k) from x y where y.a = n.k + 1) order by 1, 2, 3
select x.a, n.k from x left join nokey n on not exists (select sum(y.b) from x y where y.a = x.a + n.k) order by 1, 2
select x.a, n.k from x left join nokey n on exists (select sum(y.b) from x y where y.a = x.a + n.k having count(*) = 0) order by 1, 2
select x.a, n.k from x left join nokey n on exists (select sum(y.b) from x y where y.a = x.a + n.k group by y.c) order by 1, 2
select x.a, x.b from x where x.a in (select y.a from x y left join nokey n on x.b < all (select z.v from nokey z where z.k = y.a)) order by 1, 2
select x.a, x.b from x where x.a in (select y.a from x y where x.b >= all (select z.v from nokey z where z.k = y.a)) order by 1, 2
select x.a, x.b from x where x.a in (select y.a from x y where x.b > any (select z.v from nokey z)) order by 1, 2
select x.a, x.b from x where exists (select 1 from x y where (x.b, y.a) > any (select z.v, z.k from nokey z)) order by 1, 2
select x.a, (select count(*) from x y where x.b <> all (select z.v from nokey z where z.v is not null)) from x order by 1, 2
select x.a, l.* from x, lateral (select x.b = all (select z.v from nokey z where z.k = y.a), y.a from x y where y.b = 1) l order by 1, 2, 3
