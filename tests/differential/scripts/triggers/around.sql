-- triggers beside foreign keys, definitions that change, rights
-- also: local
create table log(n serial, what text);
create function note() returns trigger language plpgsql as $$
begin
  insert into log(what) values (concat_ws(' ', TG_NAME, TG_WHEN, TG_OP, TG_LEVEL, TG_TABLE_NAME, pg_trigger_depth(), old, new));
  if TG_OP = 'DELETE' then return old; end if;
  return new;
end $$;
create table p(id int primary key, v int);
create table c(id int primary key, p int references p on delete cascade on update cascade);
create table d(id int primary key, c int default 1 references c on delete set null on update set default);
create trigger p_b before insert or update or delete on p for each row execute function note();
create trigger p_a after insert or update or delete on p for each row execute function note();
create trigger "P_early" after delete on p for each row execute function note();
create trigger c_b before insert or update or delete on c for each row execute function note();
create trigger c_a after insert or update of p or delete on c for each row execute function note();
create trigger c_bs before insert or update or delete on c for each statement execute function note();
create trigger c_as after insert or update or delete on c for each statement execute function note();
create trigger d_b before update on d for each row when (old.c is distinct from new.c) execute function note();
create trigger d_a after update of c on d for each row execute function note();
insert into p values (1, 1);
insert into c values (1, 1);
insert into d values (1, 1);
select what from log order by n; truncate log;
update p set id = 2 where id = 1;
select what from log order by n; truncate log;
delete from p;
select what from log order by n; truncate log;
select * from d;
-- a trigger that keeps children
create function keep() returns trigger language plpgsql as $$ begin return null; end $$;
insert into p values (1, 1); insert into c values (1, 1);
truncate log;
create trigger a_keep before delete on c for each row execute function keep();
delete from p;
select * from c; select what from log order by n; truncate log;
drop trigger a_keep on c; delete from c;
-- errors in actions
create function fails() returns trigger language plpgsql as $$ begin raise exception 'no % of %', TG_OP, TG_TABLE_NAME using errcode = 'P7777', detail = 'd', hint = 'h'; end $$;
insert into p values (1, 1); insert into c values (1, 1);
create trigger z_fails before delete or update on c for each row execute function fails();
delete from p;
update p set id = 5;
select * from p; select * from c;
drop trigger z_fails on c;
-- in use
create function ddl() returns trigger language plpgsql as $$ begin execute TG_ARGV[0]; return new; end $$;
create trigger x before update on p for each row execute function ddl('alter table p add x int');
update p set v = 3;
create or replace trigger x before update on p for each row execute function ddl('truncate c, p, d');
update p set v = 3;
create or replace trigger x before update on p for each row execute function ddl('drop trigger x on p');
update p set v = 3;
create or replace trigger x before update on p for each row execute function ddl('create index on p (v)');
update p set v = 3;
create or replace trigger x before update on p for each row execute function ddl('create table side as select 7 as a');
update p set v = 3;
select * from side;
drop trigger x on p;
-- dependencies
create trigger w1 before update of v on p for each row when (new.v > 3) execute function note();
drop function note();
drop function keep(), fails(), ddl();
alter table p drop column v;
alter table p alter v type bigint;
alter table p rename v to w;
select pg_get_triggerdef(oid) from pg_trigger where tgname = 'w1';
alter table p drop column w cascade;
select tgname from pg_trigger where tgrelid = 'p'::regclass and not tgisinternal order by 1;
create function note2() returns trigger language plpgsql as $$ begin return new; end $$;
create trigger w2 after update on p for each row execute function note2();
alter function note2() rename to note3;
select pg_get_triggerdef(oid) from pg_trigger where tgname = 'w2';
create schema other; alter function note3() set schema other;
select pg_get_triggerdef(oid) from pg_trigger where tgname = 'w2';
drop schema other cascade;
select count(*) from pg_trigger where tgname = 'w2';
create function one() returns int language sql as 'select 1';
create trigger w3 after update on p for each row execute function one();
select note();
create function big(int) returns boolean language sql immutable as 'select $1 > 3';
create trigger w4 before update on p for each row when (big(new.id)) execute function note();
select pg_get_triggerdef(oid) from pg_trigger where tgname = 'w4';
drop function big(int);
drop function big(int) cascade;
drop function note() cascade;
select count(*) from pg_trigger where not tgisinternal;
-- blocks
create function note() returns trigger language plpgsql as $$
begin
  insert into log(what) values (concat_ws(' ', TG_NAME, TG_OP));
  if TG_OP = 'INSERT' and new.v = 13 then raise exception 'thirteen'; end if;
  return new;
end $$;
create table b(id serial primary key, v int unique);
create trigger b after insert or update on b for each row execute function note();
truncate log;
begin; insert into b(v) values (1); savepoint s; insert into b(v) values (13); rollback to s; insert into b(v) values (2); commit;
select v from b order by 1; select what from log order by n;
insert into b(v) select g from generate_series(10, 14) g;
select v from b order by 1;
begin; insert into b(v) values (13); commit;
-- columns
create table k(a int primary key, b int, c int default 5, d int generated always as (b + 1) stored, check (b < 100), e text not null);
create function fill() returns trigger language plpgsql as $$ begin new.e := coalesce(new.e, 'filled'); new.d := 999; if new.b is null then new.b := 7; end if; return new; end $$;
create trigger fill before insert or update on k for each row execute function fill();
insert into k(a) values (1) returning *;
update k set b = 8, e = null returning *;
update k set b = 100;
alter table k drop column c;
insert into k(a, b) values (2, 3) returning *;
update k set a = a + 10 where a = 2 returning *;
create function rekey() returns trigger language plpgsql as $$ begin new.a := 1; return new; end $$;
create trigger zrekey before update on k for each row execute function rekey();
update k set b = 9 where a = 12;
select * from k order by a;
-- generated column in update of
create trigger gen after update of d on k for each row execute function note();
drop trigger zrekey on k;
create or replace function note() returns trigger language plpgsql as $$ begin insert into log(what) values (TG_NAME); return null; end $$;
truncate log; update k set b = 4 where a = 1; update k set e = 'z' where a = 1; select what from log;
-- rights
create role trg_r1; grant usage on schema public to trg_r1; grant select, insert on k to trg_r1; set role trg_r1;
create trigger mine before insert on k for each row execute function fill();
drop trigger fill on k; alter trigger fill on k rename to f2; alter table k disable trigger fill; comment on trigger fill on k is 'x';
reset role; grant trigger on k to trg_r1; revoke execute on function fill() from public; set role trg_r1;
create trigger mine before insert on k for each row execute function fill();
insert into k(a) values (77) returning e;
reset role;
drop table k; revoke all on schema public from trg_r1; drop role trg_r1;
