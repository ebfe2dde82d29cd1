-- What BEFORE INSERT sees of a row that an UPDATE moves to another partition: generated columns too, which are NULL for a new row.
create table log(n serial, what text);
create function note() returns trigger language plpgsql as $$ begin insert into log(what) values (concat_ws(' ', TG_NAME, TG_TABLE_NAME, TG_OP, old::text, new::text)); return new; end $$;
create table p(k int, v int, g int generated always as (v * 2) stored) partition by range (k);
create table p1 partition of p for values from (0) to (10);
create table p2(v int, k int, g int generated always as (v * 2) stored);
alter table p attach partition p2 for values from (10) to (20);
create trigger seen before insert on p for each row execute function note();
create trigger own before insert or update on p2 for each row execute function note();
insert into p values (1, 3), (12, 4);
update p set k = k + 10, v = 7 where k = 1 returning *;
update p set k = 2 where k = 12 returning tableoid::regclass, *;
update p2 set v = 9;
select what from log order by n;
drop table p; drop table log; drop function note();
