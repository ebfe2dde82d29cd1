-- transition tables, read by functions; what they say is in "said"
create table said(n serial, t text);
-- transition tables
create table t(id int primary key, v text, gone int, n int default 7);
alter table t drop column gone;
insert into t values (1,'a'),(2,'b'),(3,'c');
select t from said order by n; delete from said;
create table audit(what text, tab text, row text);
create function ins() returns trigger language plpgsql as $$
declare r record;
begin
  insert into said(t) values (format('%s %s %s rows: %s sum %s', tg_name, tg_op, tg_level, (select count(*) from n), (select sum(id) from n)));
  for r in select n.id, t.v, n.v as nv from n join t using (id) order by 1 loop insert into said(t) values (format('%s', r)); end loop;
  insert into audit select tg_name, 'n', n::text from n order by id;
  return null;
end$$;
create function upd() returns trigger language plpgsql as $$
declare k int; s text;
begin
  execute 'select count(*) from o' into k;
  execute 'select string_agg(o.v || ''->'' || n.v, '','' order by id) from o join n using (id) where o.id > $1' into s using 0;
  insert into said(t) values (format('%s %s %s old %s new %s depth %s', tg_name, k, s, (select array_agg(o order by id) from o), (select json_agg(n order by id) from n), pg_trigger_depth()));
  with x as (insert into audit select 'upd', o.v, n.v from o, n where o.id = n.id returning *) select count(*) into k from x;
  insert into said(t) values (format('audited %s', k));
  return null;
end$$;
create function del() returns trigger language plpgsql as $$
begin
  insert into said(t) values (format('%s %s old %s rows %s', tg_name, tg_level, old, (select array_agg(id order by id) from o)));
  return null;
end$$;
create trigger i_s after insert on t referencing new table as n for each statement execute function ins();
create trigger u_s after update on t referencing old table as o new table as n for each statement execute function upd();
create trigger d_r after delete on t referencing old table as o for each row when (old.id > 1) execute function del();
create trigger d_s after delete on t referencing old table o for each statement execute function del();
insert into t values (4,'d'),(5,'e');
select t from said order by n; delete from said;
insert into t select 6, 'f' where false;
select t from said order by n; delete from said;
insert into t select g, 'g' || g from generate_series(6, 8) g;
select t from said order by n; delete from said;
update t set v = v || v where id < 4;
select t from said order by n; delete from said;
update t set v = 'none' where false;
select t from said order by n; delete from said;
delete from t where id <= 3;
select t from said order by n; delete from said;
delete from t where id = 1000;
select t from said order by n; delete from said;
insert into t values (4, 'x'), (20, 'y') on conflict (id) do update set v = excluded.v;
select t from said order by n; delete from said;
insert into t values (4, 'z'), (21, 'z') on conflict do nothing;
select t from said order by n; delete from said;
merge into t using (values (4, 'm'), (30, 'mm'), (5, 'del')) s(id, v) on t.id = s.id
 when matched and s.v = 'del' then delete when matched then update set v = s.v when not matched then insert (id, v) values (s.id, s.v);
select t from said order by n; delete from said;
with a as (insert into t values (50, 'p1') returning id), b as (insert into t values (51, 'p2') returning id) select * from a, b;
select t from said order by n; delete from said;
select * from audit order by what, tab, row;
select tgname, tgoldtable, tgnewtable, pg_get_triggerdef(oid) from pg_trigger order by 1;
select trigger_name, action_reference_old_table, action_reference_new_table from information_schema.triggers order by 1;
-- what is refused
create trigger x before insert on t referencing new table as n for each statement execute function ins();
create trigger x after insert or update on t referencing new table as n for each statement execute function ins();
create trigger x after update of v on t referencing new table as n for each statement execute function ins();
create trigger x after truncate on t referencing new table as n for each statement execute function ins();
create trigger x after insert on t referencing old table as n for each statement execute function ins();
create trigger x after delete on t referencing new table as n for each statement execute function ins();
create trigger x after update on t referencing new table as n old table as n for each statement execute function ins();
create trigger x after update on t referencing new table as n new table as m for each statement execute function ins();
create trigger x after update on t referencing new row as n for each row execute function ins();
create trigger x after update on t referencing old as n for each row execute function ins();
create view v as select * from t;
create trigger x after update on v referencing new table as n for each statement execute function ins();
-- names: they hide tables, and nobody else sees them
create table n(hidden int);
insert into n values (-1);
select t from said order by n; delete from said;
create function peek() returns bigint language sql as 'select count(*) from n';
create function peek2() returns bigint language plpgsql as 'begin return (select hidden from n);
end';
create or replace function ins() returns trigger language plpgsql as $$
begin
  insert into said(t) values (format('%s %s %s %s', (select count(*) from n), (select count(*) from public.n), peek(), peek2()));
  insert into said(t) values (format('%s', (with n as (select 1 as one union all select 2) select count(*) from n)));
  begin
    insert into n values (1);
  exception when others then insert into said(t) values (format('%s %s', sqlstate, sqlerrm));
  end;
  begin
    update n set id = 3;
  exception when others then insert into said(t) values (format('%s %s', sqlstate, sqlerrm));
  end;
  begin
    delete from n;
  exception when others then insert into said(t) values (format('%s %s', sqlstate, sqlerrm));
  end;
  begin
    perform * from o;
  exception when others then insert into said(t) values (format('%s %s', sqlstate, sqlerrm));
  end;
  return null;
end$$;
insert into t values (60, 'q');
select t from said order by n; delete from said;
drop table n;
drop function peek(), peek2();
-- nested: a trigger within a trigger has its own
create or replace function ins() returns trigger language plpgsql as $$
begin
  insert into said(t) values (format('before %s %s', pg_trigger_depth(), (select array_agg(id order by id) from n)));
  if (select max(id) from n) < 73 then insert into t select id + 1, v from n; end if;
  insert into said(t) values (format('after %s %s', pg_trigger_depth(), (select array_agg(id order by id) from n)));
  return null;
end$$;
insert into t values (71, 'r');
select t from said order by n; delete from said;
-- the actions of foreign keys
create table p(id int primary key);
create table c(id int, p int references p on delete cascade on update cascade);
insert into p values (1),(2);
select t from said order by n; delete from said;
insert into c values (10, 1),(11, 1),(20, 2);
select t from said order by n; delete from said;
create trigger c_d after delete on c referencing old table as o for each statement execute function del();
create trigger c_dr after delete on c referencing old table as o for each row execute function del();
delete from p;
select t from said order by n; delete from said;
-- both levels;
the same function for several tables
create table t2(id int, v text, extra date);
create or replace function ins() returns trigger language plpgsql as $$
declare r record;
begin
  for r in select * from n loop insert into said(t) values (format('%s %s %s', tg_table_name, tg_level, r)); end loop;
  return null;
end$$;
create trigger i2 after insert on t2 referencing new table as n for each row execute function ins();
create trigger i2s after insert on t2 referencing new table as n for each statement execute function ins();
insert into t2 values (1, 'one', '2020-01-01'), (2, 'two', null);
select t from said order by n; delete from said;
insert into t values (90, 'ninety');
select t from said order by n; delete from said;
create or replace function ins() returns trigger language plpgsql as $$
begin
  insert into said(t) values (format('%s', (select n from n limit 1)));
  insert into said(t) values (format('%s', (select to_jsonb(n) from n limit 1)));
  insert into said(t) values (format('%s', (select pg_typeof(n) from n limit 1)));
  create temp table kept as select * from n;
  return null;
end$$;
drop trigger i2 on t2;
insert into t2 values (3, 'three', null);
select t from said order by n; delete from said;
select * from kept;
drop view v;
drop table t, audit, c, p, t2, kept;
drop function ins(), upd(), del();
drop table said;
