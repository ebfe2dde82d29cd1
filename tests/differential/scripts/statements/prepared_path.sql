-- A prepared statement means what its names mean under the search path of each EXECUTE; errors show PREPARE's text.
-- also: local
create schema one create table abc (f1 int);
create schema two create table abc (f1 int);
insert into one.abc values (123);
insert into two.abc values (456);
set search_path = one;
prepare p1 as select f1 from abc;
execute p1;
set search_path = two;
execute p1;
alter table one.abc add column f2 float8;
execute p1;
set search_path = one, two;
execute p1;
reset search_path;
execute p1;
drop table one.abc;
set search_path = one;
execute p1;
deallocate p1;
reset search_path;
drop table two.abc;
drop schema one, two
