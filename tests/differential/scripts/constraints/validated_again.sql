-- what loaders of fixtures do: rows are written past the triggers, then each foreign key is validated anew
create table p (id int primary key);
create table c (id int primary key, p int references p, check (id > 0));
create domain positive as int check (value > 0);
alter table c disable trigger all;
insert into c values (1, 7);
alter table c enable trigger all;
do $$ begin
  update pg_catalog.pg_constraint set convalidated = false
    where conname = 'c_p_fkey' and connamespace::regnamespace = current_schema::regnamespace;
  alter table c validate constraint "c_p_fkey";
end $$;
select conname, convalidated from pg_constraint where conrelid = 'c'::regclass order by 1;
begin;
update pg_constraint set convalidated = false where conrelid = 'c'::regclass or contypid = 'positive'::regtype;
select conname, convalidated, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'c'::regclass or contypid = 'positive'::regtype order by 1;
savepoint s;
alter table c validate constraint c_p_fkey;
rollback to s;
alter table c validate constraint c_id_check;
alter domain positive validate constraint positive_check;
select conname, convalidated from pg_constraint where conrelid = 'c'::regclass or contypid = 'positive'::regtype order by 1;
rollback;
select conname, convalidated from pg_constraint where conrelid = 'c'::regclass order by 1;
insert into p values (7);
do $$ declare n int; begin
  update pg_constraint c set convalidated = false from pg_namespace s
    where conname = 'c_p_fkey' and s.oid = connamespace and s.nspname = current_schema;
  get diagnostics n = row_count;
  if n <> 1 or not found then raise exception '% %', n, found; end if;
  alter table c validate constraint c_p_fkey;
end $$;
select conname, convalidated from pg_constraint where conrelid = 'c'::regclass order by 1;
-- it is a word about the rows that are there: new ones are checked all the same
update pg_constraint set convalidated = false where conrelid = 'c'::regclass and contype = 'f';
delete from p;
insert into c values (2, 9);
set session_replication_role = replica;
delete from p;
set session_replication_role = origin;
alter table c validate constraint c_p_fkey;
update pg_constraint set convalidated = true where conrelid = 'c'::regclass and contype = 'f';
alter table c validate constraint c_p_fkey;
prepare mark as update pg_constraint set convalidated = $2 where conrelid = 'c'::regclass and conname = $1;
execute mark ('c_p_fkey', false);
alter table c validate constraint c_p_fkey;
update pg_constraint set convalidated = 3 where conrelid = 'c'::regclass;
update pg_constraint set convalidated = true where nosuch = 1;
begin transaction read only;
update pg_constraint set convalidated = true where conrelid = 'c'::regclass;
rollback;
create role validated_again_nobody;
set role validated_again_nobody;
update pg_constraint set convalidated = true where conname = 'c_p_fkey';
reset role;
drop role validated_again_nobody;
