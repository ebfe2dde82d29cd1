-- One query per line, run on the row executor and on PostgreSQL; answers (or errors) must be equal.
-- Order counts where the query ends in ORDER BY.
select * from generate_series(1,3) g(x), lateral (select x*2) s(y)
select e.id,d.id from emp e full join dept d on e.dept=d.id and e.id>2
select e.id,d.id from emp e right join dept d on e.dept=d.id
select e.id,d.id from emp e left join dept d on e.dept=d.id and d.title='eng'
select e.id,d.id from emp e left join dept d on e.dept<d.id
select e.id,d.id,m.c from emp e join dept d on e.dept=d.id left join m on m.a=d.id and m.b=e.id where e.id<6
select e.id,x.* from emp e left join lateral (select m.b,m.c from m where m.a=e.dept order by m.b limit 2) x on true
select d.id, b.name from dept d left join emp b on b.id=d.boss where b.name is null
select dept, count(*), sum(salary), avg(salary), min(name), max(hired) from emp group by dept
select dept, tag, count(*) from emp group by rollup(dept,tag)
select dept, tag, grouping(dept,tag), count(*) from emp group by cube(dept,tag)
select dept, tag, count(*) from emp group by grouping sets ((dept),(tag),())
select count(*), count(dept), count(distinct dept), sum(distinct salary) from emp
select count(*) from empty
select count(*) from empty group by a
select sum(a), max(b), count(*), string_agg(b,',') from empty having count(*)=0
select dept, string_agg(name, ',' order by name desc) from emp group by dept
select dept, array_agg(name order by id) filter (where id>1) from emp group by dept
select dept, sum(salary) s from emp group by dept having sum(salary)>200 order by s desc
select d.id, d.title, count(e.id) from dept d left join emp e on e.dept=d.id group by d.id
select percentile_cont(0.5) within group (order by score) from emp
select percentile_disc(array[0.25,0.5,1]) within group (order by salary) from emp
select mode() within group (order by dept) from emp
select dept, tag, rank(tag) within group (order by name), percentile_disc(coalesce(dept, 0) * 0.1) within group (order by id) from emp group by cube (1, 2)
select dept, rank(3) within group (order by id) from emp where false group by grouping sets ((dept), ())
select rank(100) within group (order by salary), dense_rank(100) within group (order by salary desc), cume_dist(150) within group (order by salary), percent_rank(60) within group (order by salary) from emp
select percentile_cont(0.3) within group (order by iv) from nums
select score, count(*) from emp group by score
select distinct tag from emp
select distinct v from nums
select distinct on (dept) dept, name from emp order by dept, salary desc nulls last, id
select tag, count(*) from emp group by tag
select * from nums order by f, k
select * from nums order by v desc nulls last, k
select * from nums order by iv, k
select * from nums order by t
select * from nums order by ts desc, k
select arr, k from nums order by arr desc nulls last
select id, salary, sum(salary) over (order by id), avg(salary) over (partition by dept), row_number() over (partition by dept order by salary, id) from emp
select id, lag(name) over (order by id), lead(name,2,'none') over (order by id), first_value(name) over w, last_value(name) over w, nth_value(name,2) over w from emp window w as (order by dept, id rows between 1 preceding and 1 following)
select id, ntile(3) over (order by id), percent_rank() over (order by dept), cume_dist() over (order by dept), dense_rank() over (order by dept) from emp
select id, sum(id) over (order by id range between 2 preceding and 1 following), count(*) over (order by salary range between 50 preceding and 50 following), sum(id) over (order by dept groups between 1 preceding and current row) from emp
select id, sum(id) over (order by dept rows between unbounded preceding and current row exclude current row), sum(id) over (order by dept range between unbounded preceding and unbounded following exclude ties), sum(id) over (order by dept groups between 1 preceding and 1 following exclude group) from emp
select id, sum(id) over (order by salary desc range between 100 preceding and 0 following) from emp
select dept, sum(sum(salary)) over (order by dept) from emp group by dept
select k, sum(k) over (order by ts range between '1 day' preceding and '1 hour' following) from nums
select id, count(*) filter (where id>2) over (partition by dept) from emp
select id from emp union all select id from dept
select id from emp intersect select id from dept
select dept from emp except select id from dept
select dept from emp except all select id from dept
select dept from emp intersect all select dept from emp
(select id from emp order by id limit 3) union (select 10 union select 11) order by 1
values (1,'a'),(2,null) order by 1 desc
select * from (values (1,'a'),(2,'b')) v(x,y) where x>1
with a as (select * from emp where id<4), b as (select count(*) c from a) select a.id, b.c from a, b
with recursive t(n,p) as (select 1, 'x' union all select n+1, p||'y' from t where n<5) select * from t
with recursive g(a,b) as (values (1,2),(2,3),(3,1)), r(x) as (select 1 union select b from r join g on g.a=r.x) select * from r
select id from emp where exists (select 1 from dept where dept.id=emp.dept and boss is not null)
select id from emp where not exists (select 1 from dept where dept.id=emp.dept)
select id from emp where dept in (select id from dept)
select id from emp where dept not in (select boss from dept)
select id from emp where salary >= all (select salary from emp where salary is not null)
select id from emp where salary > any (select salary from emp where dept=2)
select id from emp where (dept,tag) in (select dept,tag from emp where id=1)
select id, (select count(*) from emp e2 where e2.dept=e.dept and e2.id<e.id) from emp e
select (select id from emp)
select (select id from emp where id=100)
select array(select id from emp where dept=1 order by id)
select id from emp where (select title from dept where id=emp.dept) = 'eng'
select * from emp where id in (1,3,99) order by id
select * from emp where id = any(array[2,4]) order by id
select * from m where a=2 and b in (1,3)
select * from m where a=2
select * from m where a=2 and b>3
select * from m where a>3 and b=1
select * from m where a in (1,2) and b between 2 and 3
select * from m where a=1 and b=2 and c='zz'
select * from m where a=null
select * from m x join m y on x.a=y.b and x.b=y.a where x.a=3
select relname from pc where oid=11
select a.relname, b.relname from pc a join pc b on a.ns=b.ns and a.oid<b.oid
select a.relname from pc a where ns in (1,5)
select unnest(arr), k from nums
select unnest(arr), generate_series(1,2), k from nums where k=1
select generate_series(1,id) from emp where id<3
select generate_series(1, generate_series(1,3))
select * from unnest(array[1,2],array['a','b','c']) with ordinality t(a,b,o)
select * from generate_series(1,10,3) with ordinality
select * from generate_series(5,1,-2) x
select x, x+1 from generate_series(1.1, 3, 0.5) x
select * from rows from (generate_series(1,2), generate_series(1,3)) as t(a,b)
select e from emp e where id=1
select (e).name from emp e where id=1
select count(e) from dept d left join emp e on e.dept=d.id
select e is null, e is not null from dept d left join emp e on e.id=d.boss
select row(1,2)=row(1,2), row(1,null)=row(1,2), row(1,2)<row(1,3), row(1,null) is null, row(null,null) is null
select id from emp order by id limit 2 offset 1
select id from emp order by dept nulls first, id desc
select salary from emp order by salary fetch first 2 rows with ties
select id from emp limit 0
select id from emp limit null offset 5
select id from emp limit -1
select 1/0
select case when id=1 then 1/(id-1) else 0 end from emp where id=2
select coalesce(null,2,1/0)
select 1 where false and 1/0=1
select nullif(1,1), nullif(1,2), greatest(1,null,3), least(2,1,null), greatest('a','B')
select 1 in (1,null), 2 in (1,null), 2 not in (1,null), null in (1), 1 = any('{}'::int[]), null = any('{}'::int[]), 1 <> all('{2,null}'::int[])
select true and null, false and null, true or null, null or false, not null::bool, null is true, false is not true, null is unknown
select 1 is distinct from null, null is distinct from null, 1 is not distinct from 1
select '{1,2,3}'::int[], ('{1,2,3}'::int[])[2], ('{1,2,3}'::int[])[2:3], array[[1,2],[3,4]], (array[[1,2],[3,4]])[2][1], (array[1,2,3])[:2], (array[1,2])[5]
select array[1,2] || 3, array[1]||array[2,3], 0 || array[1]
select count(*) over (), id from emp where id<0
select dept, count(*) from emp group by 1 order by 2 desc, 1
select id % 2 as odd, count(*) from emp group by odd order by odd
select sum(id) from emp group by ()
select max(id)+1, min(salary)*2 from emp
select tag || '|', length(tag), tag = 'ab', tag like 'ab%', tag like 'ab' from emp
select count(*) from emp e1, emp e2, dept
select e.id from emp e natural join (select 1 as id, 'ann' as name) x
select id, title from emp join dept using (id)
select * from emp full join dept using (id) order by id
select x.id from (select id, row_number() over (order by id desc) rn from emp) x where rn<=2
select lower(name), upper(name) from emp
select e.id, (select max(b) from m where a = e.dept and b < (select count(*) from emp where dept=e.dept)) from emp e
select dept, (select count(*) from emp x where x.dept=emp.dept) from emp group by dept
select dept, (select sum(emp.id) ) from emp group by dept
select dept from emp group by dept having exists (select 1 from dept d where d.id=emp.dept and count(emp.id)>1)
select bool_and(bo), bool_or(bo), every(bo), bit_and(k), bit_or(k), bit_xor(k) from nums
select variance(k), stddev(i2), var_pop(v), corr(k,i2), regr_slope(k,i2), regr_count(k,i2), covar_samp(k,i2) from nums where k<>3
select sum(f), avg(f), max(f), min(f), sum(v), max(v), min(v) from nums
select sum(iv), avg(iv), max(iv), min(ts), max(u) is null from nums
select array_agg(arr) from nums where k=1
select json_agg(k), jsonb_agg(t), json_object_agg(k,t), jsonb_object_agg(t,k) from nums
select json_agg(e) from (select id,name from emp where id<3) e
select k, sum(k) over (order by ts range between '1 day' preceding and '1 hour' following) from nums
select id, count(*) over (order by hired range between '1 year' preceding and current row) from emp
select id, count(*) over (order by hired desc range between '1 year' preceding and '1 mon' following) from emp
select k, count(*) over (order by iv range '1 day' preceding) from nums
select k, count(*) over (order by ts range '-1 day' preceding) from nums
select width_bucket(5, array[1,3,7])
select percentile_cont(0.3) within group (order by iv) from nums
select id, sum(salary) over (partition by dept order by hired rows 1 preceding) from emp order by id
select id from emp order by name collate "C"
select lag(id, 1, 0) over (order by id) from emp
select max(name) over (order by id rows between 1 preceding and 1 preceding) from emp
select id, sum(score) over (order by id rows between 1 preceding and current row) from emp
select dept, rank() over (partition by dept order by salary) from emp order by 1,2
select sum(id) over w1, count(*) over w2 from emp window w1 as (partition by dept), w2 as (w1 order by id)
select nth_value(id,0) over (order by id) from emp
select ntile(0) over (order by id) from emp
select sum(id) over (order by id rows -1 preceding) from emp
select count(distinct (dept,tag)) from emp
select dept from emp group by dept order by count(*) desc, dept nulls first limit 2
select (select e.name) from emp e order by e.id
select x from (select 1 as x union select 2) s where exists (select 1 where x=1)
select * from emp e where salary = (select max(salary) from emp where dept is not distinct from e.dept)
select a.x, b.y from (values (1),(2),(null)) a(x) join (values (1),(1),(null)) b(y) on a.x=b.y
select a.x, b.y from (values (1),(2),(null)) a(x) full join (values (1),(3),(null)) b(y) on a.x=b.y
select a.x, b.y from (values ('NaN'::float8),(0)) a(x) join (values ('NaN'::float8),('-0')) b(y) on a.x=b.y
select a.x, b.y from (values (1.0),(2.50)) a(x) join (values (1.00),(2.5)) b(y) on a.x=b.y
select count(*) from emp e join emp f on e.dept=f.dept and e.salary<f.salary
select d.title, s.n from dept d cross join lateral (select count(*) n from emp where dept=d.id) s
select d.title, s.* from dept d left join lateral (select id, name from emp where dept=d.id order by id desc limit 1) s on s.id>2
select d.id, g from dept d, generate_series(1,d.id) g
select d.id, g from dept d left join generate_series(1,2) g on g=d.id
select * from (select id, generate_series(1,2) g from emp where id<3) x where g=2
select id, (select array_agg(b order by b desc) from m where m.a=emp.id) from emp
with x as (select 1 a), y as (select a+1 b from x) select * from y union all select a from x
with x as (select 1 a) select (select a from x), (with z as (select a+5 c from x) select c from z)
with recursive t(n) as (select 1 union all select n+1 from t where n<3), u as (select n*10 m from t) select t.n,u.m from t,u where u.m=t.n*10
with recursive tree(id,path) as (select id, array[id] from dept where boss=1 union all select d.id, path||d.id from dept d join tree t on d.id=t.id+1) select id from tree
select distinct dept, tag from emp order by dept, tag
select distinct on (dept) dept, id from emp order by dept, id desc
select distinct name from emp order by name desc nulls last limit 3
select id from emp where id between 2 and 4 and name like '%o%'
select e.id, (select string_agg(d.title, ',' order by d.id) from dept d where d.id <= e.id) from emp e where e.id<5
select tag, sum(salary) filter (where dept=1), count(*) filter (where dept is null) from emp group by tag having count(*)>=1
select dept, sum(id), grouping(dept) from emp group by rollup(dept) having sum(id)>3 order by grouping(dept), dept
select a, b, count(*) from m group by cube(a,b) having count(*)>5
select count(*) from emp group by grouping sets ((),())
select sum(a) from empty group by grouping sets ((),(a))
select min(id), max(id) from emp where dept=99
select array_agg(distinct dept order by dept desc) from emp
select string_agg(distinct tag, '|') from emp
select count(*) filter (where salary > (select avg(salary) from emp)) from emp
select case when exists (select 1 from emp where id=1) then 'y' else 'n' end
select 1 where (select count(*) from emp) > 3
select id from emp where row(dept,id) < row(1,5) order by id
select id from emp where (dept,id) = (select dept,id from emp where id=2)
select id from emp where (dept, id) > all (select dept, id from emp where id<2)
select not (id in (select boss from dept)) from emp
select e.* from emp e, lateral (select e.id+1) x(y) where y=3
select * from m where (a,b) in ((1,2),(3,4))
select sum(case when dept=1 then 1 else 0 end)::float8/count(*) from emp
select coalesce(dept, -1) as d, count(*) from emp group by d order by d
select name || ' ' || coalesce(tag,'-') as x from emp order by x
select id, rank() over (order by sum(salary)) from emp group by id
select sum(x) from generate_series(1,100000) x
select count(*) from generate_series(1,300) a, generate_series(1,300) b where a=b
select x%10, count(*), sum(x), min(x), max(x), avg(x) from generate_series(1,20000) x group by 1 order by 1
select id from emp where tag='ab' and dept=1
select e1.id from emp e1 where e1.id = (select max(e2.id) from emp e2 where e2.dept = e1.dept and exists (select 1 from dept where id = e2.dept and title = 'eng'))
select * from (select dept, count(*) c from emp group by dept) a full join (select id, title from dept) b on a.dept=b.id
select t.a from (values (1,2)) t(a,b) group by t.a, t.b having t.b=2
select e from (values (row(1,'a'))) v(e)
select (array_agg(id order by id))[2] from emp
select sum(id) from emp having false
select id, id = 1 or null, id=1 and null from emp
select 'a' in (select tag from emp), 'zzzz' in (select name from emp)
select exists(select 1/0)
select avg(id), sum(salary)/count(*), stddev(salary), round(avg(salary),2) from emp
select e from emp e where id=1
select row(1,'a b',null,2.50), (1,2)
select e from (values (row(1,'a'))) v(e)
select json_agg(e) from (select id,name from emp where id<3) e
select row_to_json(e) from emp e where id=2
select to_jsonb(d), d from dept d order by id
select row_to_json(row(1,'x'))
select x.x, (x.x).name from (select e as x from emp e where id<3) x
select array_agg(e) is not null from emp e
select count(distinct e) from emp e
select e = f from emp e, emp f where e.id=1 and f.id=1
select pc from pc where oid=10
select c from (with c as (select 1 a, 'z' b) select c from c) c
select json_agg(json_build_object('id',id,'n',name) order by id) from emp where id<3
select array(select row(id,name) from emp where id<3 order by id)
select 'nosuch'::regtype
select 'int4'::regtype, 'integer[]'::regtype, 'character varying'::regtype, 23::regtype, 0::regtype, 999999::regtype
select 'abs'::regproc
select 'now'::regproc, 'abs(integer)'::regprocedure
select 'emp'::regclass, 'public.emp'::regclass
select 'nosuch'::regclass
select 'no.such'::regclass
select 'postgres'::regrole, 'public'::regnamespace, '='::regoper
select to_regtype('int'),to_regtype('nosuch'),to_regclass('nosuch'), to_regclass('emp')
select 'emp'::text::regclass
select 'emp'::regclass::oid > 0
select 'emp'::regclass = 'emp'::regclass
select id from emp order by id limit 2
select id, name from emp where id > 2 order by id limit 2 offset 1
select id from emp order by id desc limit 3
select id from emp where id < 5 order by id desc limit 2
select a,b from m where a=2 order by b limit 2
select a,b from m where a=2 and b>1 order by a, b desc limit 2
select a,b from m order by a,b limit 7
select a,b from m order by a desc, b desc limit 7
select a,b from m order by a desc, b limit 3
select a,b,c from m where c<>'r00' order by a,b limit 3
select id from emp order by id limit 0
select id from emp order by id limit null
select id from emp order by id limit -1
select id from emp order by id limit 2 offset 100
select x.id from dept d, lateral (select id from emp where id > d.id order by id limit 2) x order by 1
select (select id from emp where id > d.id order by id limit 1) from dept d
select id+1 from emp where id in (3,5,1) order by id limit 2
select name from emp where id = 1 or 2 = id or id = 7 or id = null order by id
select name from emp where (id = 1 or id = 3) and dept = 1
select c from m where a = 1 and (b = 2 or b = 4)
select x, y from (select 1 x) a, lateral (select x+1 y) b, lateral (select y from (select 1) z where x=1) c(q)
select * from emp e left join (dept d join m on m.a=d.id) on d.id=e.dept and m.b=1 order by e.id, m.b
select * from (emp e left join dept d on d.id=e.dept) left join m on m.a=d.id and m.b=e.id order by e.id
select e.id, d.title from emp e left join dept d on d.id=e.dept where d.title is null order by 1
select e.id, g from emp e left join lateral generate_series(1, e.dept) g on g>1 order by 1,2
select e.id, s.c from emp e left join lateral (select count(*) c from m where m.a=e.dept) s on true order by 1
select * from dept d left join (select dept, count(*) n from emp group by dept) c on c.dept = d.id order by d.id
select * from dept d right join lateral (select 1) x on true order by 1
select d.id, (select count(*) from (select * from emp e where e.dept=d.id union all select * from emp e2 where e2.id=d.id) u) from dept d order by 1
select id, (with q as (select dept from emp x where x.id=e.id) select count(*) from emp y, q where y.dept=q.dept) from emp e order by 1
select (select max(n) from (with recursive t(n) as (select e.id union all select n+1 from t where n<5) select n from t) z) from emp e order by e.id
with recursive a as (select 1 x), b(n) as (select x from a union all select n+1 from b where n<3) select * from b order by 1
with recursive t(n) as (select 1 union all select n+1 from t where n<10) select sum(n) from t
with recursive t(n) as ((select 1) union (select n%3+1 from t)) select * from t order by n
with x as (select id from emp), y as (select id from x where id>3) select count(*) from x where id in (select id from y)
select * from (with a as (select 1 v) select v from a) s, (with a as (select 2 v) select v from a) t
select count(*) from (select 1 from emp limit 3) x
select * from (select id from emp order by id desc limit 3) x order by id
select * from (values (1),(2)) v(a) where a = (select min(a) from (values (2),(3)) w(a))
select dept, array_agg(id order by salary desc, id) from emp group by dept order by dept
select json_agg(x order by x desc) from generate_series(1,3) x
select sum(distinct a), count(distinct a), avg(distinct a) from m
select string_agg(c, ',' order by b desc, a) from m where a<2
select (select string_agg(t.c, ',') from (select c from m where m.a=d.id order by b) t) from dept d order by d.id
select a, sum(b) filter (where b>2) from m group by a having bool_or(b>4) order by a
select grouping(a), grouping(b), a, b, sum(1) from m where a<2 and b<2 group by rollup(a,b) order by a,b
select a, rank() over (order by count(*) desc) from m group by a order by a
select a, sum(b), sum(sum(b)) over () from m group by a order by a
select distinct a, count(*) over (partition by a) from m order by 1
select a, b, first_value(b) over (partition by a order by b desc), last_value(b) over (partition by a order by b) from m where a<2 order by 1,2
select a, b, sum(b) over (partition by a order by b rows between 1 following and 2 following) from m where a=1 order by b
select a, row_number() over () from m where a=1 order by 2
select count(*), count(*) over () from m group by a
select unnest(array[1,2,3]) + 1 order by 1
select unnest(array[[1,2],[3,4]]), unnest(array['a'])
select generate_series(1,3) as g, count(*) from emp group by g order by g
select id, generate_series(id, 2) from emp where id<4 order by 1,2
select distinct generate_series(1,2) % 2 from emp order by 1
select generate_series(1,3) limit 2
select * from generate_series('2020-01-01'::timestamp, '2020-01-03', '1 day')
select * from jsonb_each('{"a":1,"b":2}'), jsonb_array_elements('[1,2]') x
select * from regexp_split_to_table('a,b', ',') with ordinality
select a.* from unnest(array[1,2]) a
select t.* from unnest('{1,2}'::int[], '{x,y,z}'::text[]) t
select k from nums where arr @> array[1] order by 1
select k, arr[1], array_length(arr,1), cardinality(arr) from nums order by k
select 1 = any(arr), 1 = all(arr) from nums order by k
select k from nums where k = any(select id from emp) order by 1
select i2, bo from nums where bo order by k
select k from nums where not bo order by 1
select k from nums where bo is not true order by 1
select interval '1 day' > interval '23:00', date '2020-01-31' + interval '1 month', now() is not null
select extract(year from hired), count(*) from emp group by 1 order by 1
select date_trunc('month', hired), max(salary) from emp group by 1 order by 1
select to_char(salary, '999.99') from emp order by id
select * from emp where hired between '2019-01-01' and '2020-12-31' order by id
select current_date - current_date, current_user, current_schema
select cast(null as int) + 1, null || 'a', null = null
select e.ctid is not null, e.tableoid::regclass from emp e where id=1
select id from emp e where e.tag = any(array['ab','x']) order by 1
select 'ab' = any(select tag from emp)
select case dept when 1 then 'one' when 2 then 'two' else 'many' end, count(*) from emp group by 1 order by 1
select count(*) from emp where (id, dept) in (select id, 1 from emp)
select count(*) from emp where (id, dept) not in (select id, dept from emp where dept=1)
select exists(select * from emp where dept = 5), (select 1 where false)
select max(tag), min(tag) from emp
select avg(hired - date '2018-01-01') from emp
select u, count(*) from nums group by u order by u
select * from m natural join (select 1 a, 2 b) z
select least(tag, name), greatest(salary, 150) from emp order by id
select sum(x) from (select 1::int2 x union all select 70000) q
select pg_typeof(sum(id)), pg_typeof(avg(salary)), pg_typeof(count(*)) from emp
select round(stddev(salary),4), round(variance(salary),4) from emp
select nullif(tag,'ab') from emp order by id
select * from emp where name ~ '^[a-c]' order by id
select bool_or(id>6), every(id>0) from emp
select sum(f::float8), sum(v) from nums where k<>2 and k<>3
select d.id, e.id, m.c from dept d, lateral (select id, dept from emp where dept=d.id) e left join m on m.a=e.id and m.b=1 order by 1,2
select d.id, e.id, m.c from dept d, lateral (select id, dept from emp where dept=d.id) e left join m on m.a=e.id and m.b=1 where m.c is null or e.id>1 order by 1,2
select d.id, g, e.name from dept d, generate_series(1,d.id) g left join emp e on e.id=g where d.id<3 order by 1,2
select d.id, g, e.name from dept d, generate_series(1,d.id) g join emp e on e.id=g left join m on m.a=e.id and m.b=g order by 1,2
select d.id, g, h from dept d, generate_series(1,d.id) g left join lateral generate_series(1,g) h on h<>d.boss order by 1,2,3
select d.id, x.n from dept d, lateral (select count(*) n from emp e left join m on m.a=e.id and m.b=d.id where e.dept=d.id) x order by 1
select d.id, v.* from dept d, lateral (values (d.id, d.title), (0, 'z')) v(a,b) order by 1,2
select e.id, u.* from emp e left join lateral (select d.title from dept d where d.id=e.dept union all select 'none' where e.dept is null) u on true order by 1
select regexp_replace('foo', 'o+', E'\\0'), regexp_match('abc','a(x)?c|b')
select 'a' || 1 || true || 2.5 || date '2020-01-01'
select array_to_string(array[1,null,3], ',', '*'), string_to_array('a,b,,c', ',', '')
select sum(x)::int8, sum(x) from (values (9223372036854775807::int8),(1)) v(x)
select sum(x::int8) from generate_series(1,10) x
select avg(x::int2), avg(x::numeric), sum(x::numeric(10,3)) from generate_series(1,3) x
select var_pop(1.0::numeric), stddev(1::int), variance('NaN'::numeric)
select max(x), min(x) from (values ('b'),('A'),('ä')) v(x)
select count(*), count(x), sum(x) from (values (1),(null),(3)) v(x)
select bit_and(x::bit(4)), bit_or(x::bit(4)) from (values (5),(7)) v(x)
select corr(y,x), regr_r2(y,x), regr_intercept(y,x), regr_avgx(y,x), regr_sxx(y,x) from (values (1::float8,2::float8),(2,4.1),(3,5.9)) t(x,y)
select percentile_cont(array[0,0.5,1]) within group (order by x) from (values (1),(2),(10)) v(x)
select percentile_disc(1.5) within group (order by x) from (values (1)) v(x)
select mode() within group (order by x desc) from (values (1),(1),(2),(2)) v(x)
select array_agg(x) from (values (array[1,2]),(array[3,4])) v(x)
select array_agg(x) from (values (array[1,2]),(array[3])) v(x)
select string_agg(x::bytea, '\x2c') from (values ('a'),('b')) v(x)
select jsonb_object_agg(x, y) from (values ('b',1),('a',2),('b',3)) v(x,y)
select json_object_agg(x, y) from (values (null::text,1)) v(x,y)
select current_setting('nosuch.x', true)
select 1 = '1', '2020-01-01' < date '2020-02-01'
select '5'::int + '6', 'x' = 'x'
select numeric(5,2) '1.005', 1.005::numeric(5,2), (-1.005)::numeric(5,2)
select 1e131071 * 10
select 7 / 2 * 2.0, 7 % -3, -7 / 2, 2 ^ 3 ^ 2, -2 ^ 2
select |/ -1
select 5 & 3 | 8 # 1, ~5, 1 << 40
select cast('2020-02-30' as date)
select 'abc' collate "C" < 'abd'
select ('{"a":[1,2]}'::jsonb)->'a'->>1, '{"a":1}'::jsonb @> '{"a":1}'
select trim(leading 'x' from 'xxa'), substring('abcdef' from '#"b_d#"%' for '#'), position('c' in 'abc'), overlay('abc' placing 'X' from 2 for 1)
select greatest(1, 2.5, '3'), least('a', null)
select case when null then 1 end, case 1 when null then 2 else 3 end
select (1,2) in ((1,2),(3,4)), (1,null) in ((1,2)), row(1,2) is distinct from row(1,null)
select 1 between 2 and null, 1 not between 2 and null
select interval '1 year 2 months 3 days 04:05:06.789', justify_hours('30 hours'), extract(epoch from interval '1 day')
select x::text from (values (1.10),(2.000)) v(x) group by x order by 1
select generate_series(1, 0), 1
select * from generate_series(1, 3, 0)
select * from generate_series(1::numeric, 'NaN')
select ntile(2) over (order by x), x from generate_series(1,5) x
select sum(x) over (order by x rows between 2 preceding and 1 preceding) from generate_series(1,4) x
select sum(x) over (order by x rows between 1 following and 1 preceding) from generate_series(1,4) x
select sum(x) over (order by x range between null preceding and current row) from generate_series(1,2) x
select last_value(x) over (order by x range between unbounded preceding and unbounded following exclude current row) from generate_series(1,3) x
select id from (with c as (select * from emp) select id, (select name from c where c.id = e.id) as n from emp e) s
select s.id, s from (select id, (select max(x.id) from emp x where x.dept = e.dept) as n from emp e) s order by s.id
select id from (select id, (select name from emp) as n from emp e order by n) s
select count(*) from (select distinct (select name from emp) as n from emp e) s
select id from (select id, generate_series(1, (select 2)) as n from emp) s order by id
