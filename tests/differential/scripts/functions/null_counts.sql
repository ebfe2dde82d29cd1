-- a count or place that is NULL gives NULL, whatever computes it
-- also: local
create table nc (id int, t text);
insert into nc values (1, 'abc'), (null, 'abc'), (-2, 'abc'), (7, null), (0, 'aé');
select id, substr(t, id), substring(t from id), substr(t, id, 2), substr(t, 1, abs(id)), lpad(t, id), rpad(t, id), lpad(t, id, ''), rpad(t, id + 4, 'xy') from nc order by id, t;
select id, repeat(t, id), left(t, id), right(t, id), split_part(t, 'b', 1), overlay(t placing 'x' from abs(id) + 1) from nc order by id, t;
select substr('abc', null), lpad('abc', null), repeat('a', null), substr(null, 1), substr('abc', 2 + null::int)
