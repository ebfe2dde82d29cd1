-- conditions of triggers over whole rows, under new names, without columns
-- also: local
create table acc(id int, b text);
create trigger touch before update on acc for each row when (old.* is distinct from new.*) execute function suppress_redundant_updates_trigger();
create trigger touch2 before update on acc for each row when (old is distinct from new and (old.*)::text <> new::text and old.* <> new.*) execute function suppress_redundant_updates_trigger();
create trigger touch3 before update on acc for each row when (old.* is not null and row_to_json(new.*) is not null and (new.b || 'x') like '%' and new.id in (1,2,3) and new.id between 1 and 4) execute function suppress_redundant_updates_trigger();
select pg_get_triggerdef(oid), pg_get_triggerdef(oid, true) from pg_trigger where tgrelid = 'acc'::regclass order by tgname;
insert into acc values (1, 'x');
update acc set b = 'x';
update acc set b = 'y';
alter table acc rename to acc2; alter table acc2 rename b to bb;
select pg_get_triggerdef(oid) from pg_trigger where tgrelid = 'acc2'::regclass order by tgname;
alter table acc2 add c int;
update acc2 set c = 4; update acc2 set c = 4; update acc2 set c = null;
alter table acc2 drop column bb;
alter table acc2 drop column bb cascade;
update acc2 set c = 4; update acc2 set c = 4; update acc2 set c = null;
select pg_get_triggerdef(oid) from pg_trigger where tgrelid = 'acc2'::regclass order by tgname;
