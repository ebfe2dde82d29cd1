-- constraint triggers: when they are called, with which rows; what they say is in "said"
create table said(n serial, t text);
-- constraint triggers: when they are called, with which rows
create table p(id int primary key, n int);
create table c(id int primary key, p int references p deferrable initially deferred, n int);
create table log(seq serial, what text);
create function told() returns trigger language plpgsql as $$
begin
  insert into said(t) values (format('%s %s %s %s old %s new %s depth %s', tg_name, tg_when, tg_op, tg_level, old, new, pg_trigger_depth()));
  return null;
end$$;
create constraint trigger late after insert or update or delete on c deferrable initially deferred for each row execute function told();
create constraint trigger soon after insert or update or delete on c deferrable for each row when (pg_trigger_depth() < 5) execute function told();
create constraint trigger fixed after insert on c for each row execute function told();
insert into p values (1, 1), (2, 2);
select t from said order by n; delete from said;
insert into c values (1, 1, 10), (2, 2, 20);
select t from said order by n; delete from said;
begin;
insert into c values (3, 1, 30);
select t from said order by n; delete from said;
update c set n = n + 1 where id = 3;
select t from said order by n; delete from said;
update c set n = n + 1 where id in (1, 3);
select t from said order by n; delete from said;
delete from c where id = 3;
select t from said order by n; delete from said;
select 'about to commit';
commit;
select t from said order by n; delete from said;
begin;
insert into c values (4, 1, 30);
select t from said order by n; delete from said;
savepoint a;
insert into c values (5, 1, 30);
select t from said order by n; delete from said;
rollback to a;
savepoint b;
insert into c values (6, 1, 30);
select t from said order by n; delete from said;
release b;
set constraints late immediate;
select t from said order by n; delete from said;
insert into c values (7, 1, 30);
select t from said order by n; delete from said;
set constraints all deferred;
select t from said order by n; delete from said;
insert into c values (8, 1, 30);
select t from said order by n; delete from said;
set constraints fixed deferred;
select t from said order by n; delete from said;
rollback;
begin;
set constraints soon deferred;
select t from said order by n; delete from said;
insert into c values (4, 1, 30);
select t from said order by n; delete from said;
set constraints soon, late immediate;
select t from said order by n; delete from said;
set constraints nope immediate;
select t from said order by n; delete from said;
rollback;
-- the order among deferred foreign keys: as they came
begin;
insert into c values (9, 99, 1);
select t from said order by n; delete from said;
commit;
select t from said order by n; delete from said;
begin;
insert into c values (9, 99, 1);
select t from said order by n; delete from said;
insert into p values (99);
select t from said order by n; delete from said;
commit;
select t from said order by n; delete from said;
-- a function that raises refuses the commit
create function refuse() returns trigger language plpgsql as $$
begin
  if (select sum(n) from c where p = new.p) > 100 then
    raise exception 'too much for %', new.p using errcode = 'check_violation';
  end if;
  return null;
end$$;
create constraint trigger total after insert or update on c deferrable initially deferred for each row execute function refuse();
drop trigger late on c;
drop trigger soon on c;
drop trigger fixed on c;
begin;
insert into c values (20, 2, 200);
select t from said order by n; delete from said;
update c set n = 5 where id = 20;
select t from said order by n; delete from said;
commit;
select t from said order by n; delete from said;
begin;
insert into c values (21, 2, 200);
select t from said order by n; delete from said;
commit;
select t from said order by n; delete from said;
select * from c order by id;
insert into c values (22, 2, 200);
select t from said order by n; delete from said;
begin;
insert into c values (23, 2, 200);
select t from said order by n; delete from said;
set constraints total immediate;
select t from said order by n; delete from said;
rollback;
-- functions that write at the commit, and what that fires
create function chain() returns trigger language plpgsql as $$
begin
  insert into log(what) values (tg_name || ' ' || new.id);
  if new.id < 103 then insert into c values (new.id + 1, new.p, 0); end if;
  return null;
end$$;
create constraint trigger chained after insert on c deferrable initially deferred for each row execute function chain();
begin;
insert into c values (100, 2, 0);
select t from said order by n; delete from said;
select count(*) from log;
commit;
select t from said order by n; delete from said;
select * from log order by seq;
select id from c where id >= 100 order by id;
truncate log;
-- of an action of a foreign key
alter table c drop constraint c_p_fkey, add foreign key (p) references p on delete cascade;
create constraint trigger gone after delete on c deferrable initially deferred for each row execute function told();
begin;
delete from p where id = 99;
select t from said order by n; delete from said;
select 'deleted';
commit;
select t from said order by n; delete from said;
-- tables with events that wait are not altered
begin;
insert into c values (300, 2, 0);
select t from said order by n; delete from said;
alter table c add column x int;
rollback;
begin;
insert into c values (300, 2, 0);
select t from said order by n; delete from said;
drop trigger chained on c;
rollback;
begin;
insert into c values (300, 2, 0);
select t from said order by n; delete from said;
drop table c;
rollback;
-- disabled, renamed
alter table c disable trigger chained;
insert into c values (301, 2, 0);
select t from said order by n; delete from said;
alter table c enable trigger chained;
begin;
insert into c values (302, 2, 0);
select t from said order by n; delete from said;
alter trigger chained on c rename to renamed;
commit;
select t from said order by n; delete from said;
select what from log order by seq;
-- on conflict, copy
create table k(id int primary key, v text);
create constraint trigger ktold after insert or update on k deferrable initially deferred for each row execute function told();
begin;
insert into k values (1, 'a'), (2, 'b') on conflict (id) do update set v = excluded.v;
select t from said order by n; delete from said;
insert into k values (1, 'c'), (3, 'd') on conflict (id) do update set v = k.v || excluded.v;
select t from said order by n; delete from said;
insert into k values (1, 'x') on conflict do nothing;
select t from said order by n; delete from said;
select 1;
commit;
select t from said order by n; delete from said;
-- the function sees what is there at the commit
create function count_k() returns trigger language plpgsql as $$ begin insert into said(t) values (format('%s rows', (select count(*) from k))); return null; end$$;
create constraint trigger kcount after insert on k deferrable initially deferred for each row when (new.id > 10) execute function count_k();
begin;
insert into k values (11), (12);
select t from said order by n; delete from said;
insert into k values (5);
select t from said order by n; delete from said;
commit;
select t from said order by n; delete from said;
do $$ begin
  insert into k values (13);
  begin
    insert into k values (14);
    raise division_by_zero;
  exception when others then insert into said(t) values (format('caught'));
  end;
  set constraints kcount immediate;
end $$;
select t from said order by n; delete from said;
drop table c, p, log, k;
drop function told(), refuse(), chain(), count_k();
drop table said;
