-- volatile columns are computed behind ORDER BY, for the rows that LIMIT and OFFSET let come out (engine/executors/index/late.py)
-- also: local
create sequence sq;
create table tt(id int default nextval('sq'), v int);
select nextval('sq') from generate_series(1, 100) limit 2; select currval('sq');
select nextval('sq') from generate_series(1, 100) offset 1 limit 2; select currval('sq');
select nextval('sq') from generate_series(1, 5) limit 0; select currval('sq');
select nextval('sq') from generate_series(1, 3) limit null; select currval('sq');
select g, nextval('sq') from generate_series(1, 3) g order by g desc;
select g, nextval('sq') from generate_series(1, 9) g order by g desc limit 1; select currval('sq');
select g, nextval('sq') from generate_series(1, 9) g order by g % 4 desc, g limit 2 offset 3; select currval('sq');
select g, nextval('sq') n from generate_series(1, 3) g order by n desc, g;
insert into tt(v) select g from generate_series(1, 3) g order by g desc;
insert into tt select nextval('sq'), g from generate_series(1, 3) g order by g desc;
select * from tt order by id;
select nextval('sq'), sum(v) over (order by id) from tt order by id desc;
select id, nextval('sq') from tt order by id desc limit 2 offset 1;
select v, count(*), nextval('sq') from tt group by v order by v desc;
select v, nextval('sq'), (select max(id) from tt t2 where t2.v = tt.v) from tt order by v desc, id limit 1;
select x.n, x.v from (select v, nextval('sq') n from tt order by v, id limit 4) x order by x.n desc;
select (select nextval('sq') + t.v), t.v from tt t order by t.v desc, t.id limit 2; select currval('sq');
select nextval('sq') from tt order by id limit -1;
select currval('sq');

-- columns of FROM that nobody reads
select id from (select id, (select t2.v from tt t2) as n from tt) s order by id limit 2;
select id from (with c as (select * from tt) select id, (select c.id from c where c.v = tt.v or true) as n from tt) s order by id limit 2;

-- fewer rows than LIMIT asks for, none, as many; a scan, a sort, WITH, and below OFFSET alone
select id, nextval('sq') > 0 from tt limit 1000;
select id, nextval('sq') > 0 from tt order by id limit 1000 offset 2;
select id, nextval('sq') > 0 from tt where v > 99 order by id limit 5;
select count(*) from (select id, nextval('sq') from tt limit (select count(*) from tt)) s;
with b as (select id, nextval('sq') > 0 as drawn from tt order by id limit 1000) select * from b where drawn order by id;
with b as (select id, nextval('sq') > 0 as drawn from tt order by id limit 1000) update tt set v = v + 1 from b where b.id = tt.id returning tt.v;
select id, nextval('sq') > 0 from tt order by id offset 3;
select currval('sq');

-- what equals a value that ORDER BY looks at is that value
select nextval('sq') n, nextval('sq') m, nextval('sq') + 1 as p from generate_series(1, 3) order by n; select currval('sq');
select nextval('sq') n, nextval('sq') m, id from tt order by n desc limit 2; select currval('sq');
