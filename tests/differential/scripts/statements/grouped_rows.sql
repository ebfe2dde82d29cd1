-- GROUP BY a whole row: it is used as a value, through its fields, and by functions that take any row
-- also: local
create table gt (id int, v text);
insert into gt values (1, 'a'), (1, 'a'), (2, 'b'), (3, null);
select f, count(*) from gt f group by f order by f;
select row_to_json(f), count(*) from gt f group by f order by 2, (f).id;
select row_to_json(f) from gt f group by f having f is not null order by f;
select (f).id, f.v, to_jsonb(f) - 'v', count(*) from gt f group by f order by 1;
select count(*) filter (where (f).id > 1), to_json(f)->>'v' from gt f group by f order by 2;
select (select row_to_json(f)) from gt f group by f order by f;
select row_to_json(s) from (select id, count(*) c from gt group by id) s group by s order by s.c, s.id;
select row_to_json(f) from gt f group by f.id;
select row_to_json(f), sum(f.id) from gt f group by grouping sets ((f), (f, f.id)) order by f, 2;
