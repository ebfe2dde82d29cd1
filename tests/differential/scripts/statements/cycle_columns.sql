-- the recursive term may name the columns that SEARCH and CYCLE add; * does not stand for them
with recursive test as (select 0 as x union all select (x + 1) % 10 from test where not is_cycle) cycle x set is_cycle using path select * from test order by x, is_cycle;
with recursive test as (select 0 as x union all select (x + 1) % 10 from test where not test.is_cycle and array_length(path, 1) < 4) cycle x set is_cycle using path select * from test order by x;
with recursive test as (select 0 as x union all select y + 1 from (select x as y from test where not is_cycle) s where y < 3) cycle x set is_cycle using path select * from test order by x;
with recursive test as (select 0 as x union all select t.x + 1 from test as t(x) where t.x < 3 and not t.is_cycle) cycle x set is_cycle using path select * from test order by x;
with recursive test(x, y) as (select 1, 2 union all select y, x from test where array_length(seq, 1) < 3) search depth first by x set seq select * from test order by seq;
with recursive test(x, y) as (select 1, 2 union all select x + 1, y from test where x < 4 and (seq is not null)) search breadth first by x set seq select * from test order by seq;
with recursive test(x, y) as (select 1, 2 union all select * from test where x < 1 and seq is not null) search breadth first by x set seq select * from test order by seq;
with recursive test(x) as (select 1 union all select x + 1 from test where x < 4 and m = 'n') cycle x set m to 'y' default 'n' using p select * from test order by x;
with recursive test(x) as (select 1 union all select x + 1 from test where x < 4 and nope) cycle x set m to 'y' default 'n' using p select * from test order by x;
with recursive test(x) as (select 1 union all select test.* from test where x < 1) cycle x set m using p select * from test order by x;
with recursive test(x) as (select 1 where m union all select x from test where x < 1) cycle x set m using p select * from test order by x;
create view vc as with recursive test as (select 0 as x union all select (x + 1) % 5 from test where not is_cycle) cycle x set is_cycle using path select * from test;
select * from vc order by x, is_cycle;
select pg_get_viewdef('vc');
