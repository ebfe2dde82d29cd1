-- Views over functions that return bare records, ROWS FROM, unnest of several arrays: as they print, and read again.
-- also: local
create table rf (id int, sub int, name text);
insert into rf values (1,1,'Joe'),(1,2,'Ed'),(2,1,'Mary');
create function g6(int) returns record as 'select * from rf where id = $1' language sql;
create function g7(int) returns setof record as 'select * from rf where id = $1' language sql;
create function g1(int) returns int as 'select $1' language sql;
create function g9(int) returns setof rf as 'select * from rf where id = $1' language sql;
create view v1 as select * from rows from (g6(1) as (id int, sub int, name text)) with ordinality;
create view v2 as select * from rows from (g7(1) as (id int, sub int, name text)) with ordinality;
create view v3 as select * from rows from (g9(1), g7(1) as (id int, sub int, name text), g1(1)) with ordinality as t1(a,b,c,d,e,f,g,n);
create view v4 as select * from rows from (g9(1), generate_series(10,11)) with ordinality;
create view v5 as select * from g7(1) as t(id int, sub int, "Name" varchar(20));
create view v7 as select * from unnest(array[1,2], array['a','b']) with ordinality as z(a,b,o);
create view v8 as select * from json_to_record('{"a":1}') as x(a int, b text);
create view v9 as select * from rows from (json_to_recordset('[{"a":1},{"a":2}]') as (a int, b text), generate_series(1,3)) with ordinality as w(k,l,m,o);
select * from v1;
select * from v2;
select * from v3;
select * from v4;
select * from v5;
select * from v7;
select * from v8;
select * from v9;
select viewname, definition from pg_views where viewname ~ '^v[0-9]$' and schemaname = current_schema() order by 1;
select * from rows from (json_to_recordset('[{"a":1},{"a":2}]') as (a int, b text), generate_series(1,3)) with ordinality as w(k,l,m,o);
select * from json_to_record('{"c":"abcd"}') as x(c varchar(2));
select * from rows from (jsonb_to_record('{"c":"ab"}') as (c varchar(2))) as y(d);
drop view v1, v2, v3, v4, v5, v7, v8, v9;
drop table rf cascade
