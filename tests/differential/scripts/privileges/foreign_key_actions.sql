-- what a foreign key does to the referencing table runs as that table's owner: defaults, checks and BEFORE triggers
-- also: local
grant all on schema public to public;
drop role if exists hf_ow; drop role if exists hf_ev; drop role if exists hf_al;
create role hf_ow; create role hf_ev; create role hf_al;
create table fkp(id int primary key); insert into fkp values (1),(2),(3),(4); grant references on fkp to hf_ev; 
set role hf_ev; 
create function trgc() returns trigger language plpgsql as $$ begin raise notice 'trgc as % % % %', current_user, tg_op, tg_when, tg_level; if tg_op = 'DELETE' then return old; end if; return new; end $$;
create function dflt() returns int language plpgsql as $$ begin raise notice 'default as %', current_user; return 4; end $$;
create function chk(int) returns bool language plpgsql as $$ begin raise notice 'check as %', current_user; return true; end $$;
create table fkc(id int references fkp on delete cascade on update cascade, check (chk(id))); insert into fkc values (1),(2);
create trigger tc1 before delete or update on fkc for each row execute function trgc(); create trigger tc2 after delete or update on fkc for each row execute function trgc();
create table fkd(id int default dflt() references fkp on delete set default); insert into fkd values (3);
create table fkn(id int not null references fkp on delete set null); insert into fkn values (3);
create function bad() returns trigger language plpgsql as $$ begin set role postgres; return old; end $$;
create table fkb(id int references fkp on delete cascade); insert into fkb values (4);
create trigger b before delete on fkb for each row execute function bad();
reset role; 
delete from fkp where id = 1; select current_user; update fkp set id = 5 where id = 2;
delete from fkp where id = 3;
delete from fkp where id = 4; select current_user;
grant select, delete on fkp to hf_al; set role hf_al; delete from fkp where id = 3; reset role; drop table fkn; set role hf_al; delete from fkp where id = 3; select current_user;
reset role; revoke all on fkp from hf_ev; delete from fkp where id = 5;
insert into fkp values (10); alter table fkc owner to hf_al; set role hf_al; insert into fkc values (10); insert into fkc values (11);
reset role; revoke select on fkp from hf_al; set role hf_al; insert into fkc values (10);
reset role;
drop table fkp cascade;
drop owned by hf_ow, hf_ev, hf_al cascade;
drop role hf_ow, hf_ev, hf_al;
