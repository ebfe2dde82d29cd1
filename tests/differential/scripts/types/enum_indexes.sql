-- enums in the expressions and conditions of indexes
create type mood as enum ('a','b');
create table t (id int, m mood, g text generated always as (id::text) stored);
insert into t values (1,'a'),(2,'b');
create index t_x on t ((m = 'b'));
create index t_p on t (id) where m > 'a';
select pg_get_indexdef(indexrelid) from pg_index where indrelid = 't'::regclass order by 1;
select indexdef from pg_indexes where tablename = 't' order by 1;
alter type mood rename value 'b' to 'c';
select pg_get_indexdef(indexrelid) from pg_index where indrelid = 't'::regclass order by 1;
select id from t where m > 'a' and id = 2;
drop type mood;
drop type mood cascade;
