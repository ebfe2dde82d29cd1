-- also: local
-- Values that are equal although their texts differ, or not equal although their bytes order so: documents and shapes.
create table docs (id int, j jsonb);
insert into docs values (1, '{"a": 1}'), (2, '{"a": 1.0}'), (3, '{"a": 1.50, "b": "1.50 \" 2.0"}'), (4, '{"b": "1.50 \" 2.0", "a": 1.5}'), (5, '{"b": "1.5 \" 2.0", "a": 1.5}'), (6, '100'), (7, '100.00'), (8, '[0.10, 1.05]'), (9, '[0.1, 1.050]'), (10, null), (11, '"1.0"'), (12, '"1"');
select a.id, b.id, a.j = b.j, a.j <> b.j, a.j is distinct from b.j, a.j in (b.j), a.j = any (array[b.j]), nullif(a.j, b.j) is null from docs a, docs b order by 1, 2;
select count(*), min(id) from docs group by j order by 2;
select count(*) from (select distinct j from docs) s;
select count(*) from (select j from docs union select j from docs) s;
select count(*) from (select j from docs except select '{"a": 1.00}'::jsonb) s;
select count(*) from (select j from docs intersect select '{"a": 1.00}'::jsonb) s;
select a.id, b.id from docs a join docs b using (j) order by 1, 2;
select id from docs where j in (select j from docs where id = 8) order by 1;
select id from docs where j not in (select j from docs where id = 8) order by 1;
select id, case j when '100.0' then 'hundred' else 'other' end from docs order by 1;
select id, lag(id) over (partition by j order by id) from docs order by 1;
with recursive r(j) as (select '[0.1, 1.05]'::jsonb union select d.j from docs d, r where d.j = r.j) select count(*) from r;
create table shapes (id int, b box, c circle, l lseg, p point, h path);
insert into shapes values (1, '(0,0),(1,1)', '<(0,0),1>', '((0,0),(1,1))', '(1,2)', '[(0,0),(1,1)]'), (2, '(0,0),(2,0.5)', '<(5,5),1>', '((3,3),(4,4))', '(1,2.0000001)', '[(5,5),(6,7)]'), (3, '(9,9),(8,8)', '<(1,1),0.5>', '((0,0),(0,9))', '(2,1)', '[(0,0),(1,1),(2,2)]'), (4, null, null, null, null, null);
select x.id, y.id, x.b = y.b, x.b < y.b, x.b >= y.b, x.c = y.c, x.c <> y.c, x.c > y.c, x.l = y.l, x.l <= y.l, x.l <> y.l, x.p <> y.p, x.h < y.h, x.h = y.h from shapes x, shapes y order by 1, 2;
select x.id, y.id, x.b is distinct from y.b, nullif(x.b, y.b), x.c in (y.c), x.b = any (array[y.b]), case x.c when y.c then 1 end from shapes x, shapes y order by 1, 2;
select id from shapes where b in (select b from shapes where id = 2) order by 1;
select x.id, y.id from shapes x join shapes y using (b) order by 1, 2;
-- errors of constants keep all they say
select decode('x', 'base64') from docs where id = 1;
select int4range(1, 2, '[') from docs where id = 1;
select '08:00:2b:01:02:03:04:05'::macaddr8::macaddr from docs where id = 1;
-- a recursion in another one ends with its reader
with recursive q(n) as (select 1 union all (with recursive x as (select 2 as n union all (select n from q union all select n from x)) select n from x)) select * from q limit 5;
