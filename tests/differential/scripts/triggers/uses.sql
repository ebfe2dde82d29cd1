-- triggers as applications use them
-- recursion
create table r(id int, n int);
create function again() returns trigger language plpgsql as $$ begin if new.n < 60 then insert into r values (new.id, new.n + 1); end if; return new; end $$;
create trigger r after insert on r for each row execute function again();
insert into r values (1, 1);
select count(*), max(n) from r;
-- audit
create table acc(id int primary key, bal numeric not null, updated timestamptz);
create table audit(id serial primary key, op text, old_row jsonb, new_row jsonb);
create function audit() returns trigger language plpgsql as $$
begin
  if TG_OP = 'INSERT' then insert into audit(op, new_row) values (TG_OP, to_jsonb(new)); return new;
  elsif TG_OP = 'UPDATE' then insert into audit(op, old_row, new_row) values (TG_OP, to_jsonb(old), to_jsonb(new)); return new;
  else insert into audit(op, old_row) values (TG_OP, to_jsonb(old)); return old; end if;
end $$;
create trigger audit after insert or update or delete on acc for each row execute function audit();
create function touch() returns trigger language plpgsql as $$ begin new.updated = '2020-01-01 00:00:00+00'; return new; end $$;
create trigger touch before update on acc for each row when (old.* is distinct from new.*) execute function touch();
set timezone = 'UTC';
insert into acc values (1, 100), (2, 50);
update acc set bal = bal - 10 where id = 1;
update acc set bal = bal;
delete from acc where id = 2;
select * from audit order by id;
select * from acc;
-- counters in another table
create table posts(id int primary key, n int not null default 0);
create table comments(id int primary key, post int references posts on delete cascade);
create function cnt() returns trigger language plpgsql as $$
begin
  if TG_OP in ('INSERT', 'UPDATE') then update posts set n = n + 1 where id = new.post; end if;
  if TG_OP in ('DELETE', 'UPDATE') then update posts set n = n - 1 where id = old.post; end if;
  return null;
end $$;
create trigger cnt after insert or delete or update of post on comments for each row execute function cnt();
insert into posts values (1), (2);
insert into comments select g, 1 + g % 2 from generate_series(1, 9) g;
select * from posts order by 1;
update comments set post = 1 where id < 5;
select * from posts order by 1;
delete from comments where id > 5;
select * from posts order by 1;
delete from posts where id = 1;
select * from posts order by 1; select * from comments order by 1;
-- statement trigger that changes the rows of its statement
create table st(id int primary key, v int);
insert into st values (1, 1), (2, 2);
create function other() returns trigger language plpgsql as $$ begin update st set v = v + 100 where id = 2; return null; end $$;
create trigger st before update on st for each statement when (pg_trigger_depth() = 0) execute function other();
update st set v = 0 where id = 1;
select * from st order by 1;
update st set v = 0;
drop trigger st on st;
create trigger st before delete on st for each statement execute function other();
delete from st;
delete from st where id = 1;
select * from st order by 1;
-- one row's trigger changes another row of the statement
truncate st; insert into st values (1, 1), (2, 2), (3, 3);
drop trigger st on st;
create function next_row() returns trigger language plpgsql as $$ begin update st set v = v + 10 where id = old.id + 1; return new; end $$;
create trigger st before update on st for each row when (pg_trigger_depth() = 0) execute function next_row();
update st set v = 0 where id in (1, 3);
select * from st order by 1;
update st set v = 0;
-- wrong results
create function wrong() returns trigger language plpgsql as $$ begin return row(1, 2, 3); end $$;
create or replace trigger st before update on st for each row execute function wrong();
update st set v = 0;
create or replace function wrong() returns trigger language plpgsql as $$ begin return row(7, 8); end $$;
update st set v = 0 where id = 1;
select * from st order by 1;
create or replace function wrong() returns trigger language plpgsql as $$ begin return row('x', 8); end $$;
update st set v = 0 where id = 2;
create or replace function wrong() returns trigger language plpgsql as $$ begin end $$;
update st set v = 0 where id = 2;
drop trigger st on st;
-- unique keys with BEFORE ROW triggers; constraints behind triggers
create table uq(id int primary key, v int unique, check (v > 0));
create function abs_v() returns trigger language plpgsql as $$ begin new.v := abs(new.v); return new; end $$;
create trigger uq before insert or update on uq for each row execute function abs_v();
insert into uq values (1, -5), (2, -6);
insert into uq values (3, -5);
insert into uq values (3, 0);
insert into uq values (3, -5) on conflict (v) do update set v = -(excluded.v + 10) returning *;
select * from uq order by 1;
-- copy
create function complain() returns trigger language plpgsql as $$ begin if new.v = 3 then raise exception 'three'; end if; return new; end $$;
create trigger c before insert on uq for each row execute function complain();
select * from uq order by 1;
create trigger d after insert on uq for each row when (new.v = 77) execute function wrong();
create table src as select g as id, g * 1000 as v from generate_series(100, 103) g;
insert into uq select * from src;
insert into uq (id, v) select id + 100, v + 1 from src returning *;
-- definer, settings
create table who(a text, b text);
create role trg_r2; grant usage on schema public to trg_r2;
create function whoami() returns trigger language plpgsql security definer as $$ begin new.a := current_user; return new; end $$;
create trigger who before insert on who for each row execute function whoami();
grant insert on who to trg_r2;
set role trg_r2; insert into who(b) values (current_user); reset role;
select b, a = session_user from who;
drop table who; revoke all on schema public from trg_r2; drop role trg_r2;
-- prepared
prepare ins(int, int) as insert into uq values ($1, $2) returning *;
execute ins(50, -50); execute ins(51, -51); alter table uq disable trigger uq; execute ins(52, -52); alter table uq enable trigger uq; execute ins(52, -52);
