-- what pg_prepared_statements and pg_cursors show is what the client sent
-- also: local
prepare p (int) as select $1 + 1;
begin;
declare c scroll cursor for  select 1 as for_x;
declare d no scroll cursor with hold for select 2;
select name, statement, is_holdable, is_scrollable from pg_cursors order by 1;
select name, statement, parameter_types from pg_prepared_statements order by 1;
commit;
select name, statement from pg_cursors;
close all;
deallocate p;
