-- what a view's condition, and the policies of what is changed through it, read is read with the owner's rights
-- also: local
-- as of: 15.20
grant all on schema public to public;
drop role if exists hf_ow; drop role if exists hf_ev; drop role if exists hf_al;
create role hf_ow; create role hf_ev; create role hf_al;
set role hf_ow;
create table t(id int primary key, s text); insert into t values (1,'a'),(2,'b');
create table nop(id int, s text); insert into nop values (1,'hidden');
create view v as select * from t where exists (select from nop where nop.id = t.id);
create view v2 as select * from v where id in (select id from nop);
create view vi with (security_invoker) as select * from t where exists (select from nop where nop.id = t.id);
create view lim as select id, s from nop;
create view v3 as select * from t where exists (select from lim where lim.id = t.id);
grant all on v, v2, v3, vi to hf_ev; 
set role hf_ev;
update v set s = 'x' returning *;
update v2 set s = 'x2' returning *;
update v3 set s = 'x3' returning *;
insert into v values (1,'q') on conflict (id) do update set s = 'ups' returning *;
insert into v values (2,'q') on conflict (id) do update set s = 'ups' returning *;
insert into v2 values (1,'q') on conflict (id) do update set s = 'ups2' returning *;
update vi set s = 'x';
delete from v2 where id = 2;
reset role; grant all on t to hf_ev; set role hf_ev;
update vi set s = 'x';
update v set s = nop.s from nop;
reset role; grant select on nop to hf_al; revoke all on nop from hf_ow; set role hf_ev;
update v set s = 'x';
select * from v;
reset role; grant select on nop to hf_ow; alter table nop owner to postgres; alter table nop enable row level security; create policy a on nop to hf_ow using (id > 1); create policy b on nop to hf_ev using (true); set role hf_ev;
update v set s = 'none'; select * from v;
update vi set s = 'none';
reset role; grant select on nop to hf_ev; set role hf_ev; update vi set s = 'some'; 
reset role; set role hf_ow; create policy p on nop using (true);
-- target's policy reads another table, through view: as the owner
reset role; create table acl(u text, id int); insert into acl values ('hf_ow',1),('hf_ev',2); grant select on acl to hf_ow; alter table t enable row level security; alter table t force row level security;
create policy x on t using (exists (select from acl where acl.id = t.id and u = 'hf_ow')); create view vt as select * from t; alter view vt owner to hf_ow; grant all on vt to hf_ev;
set role hf_ev; update vt set s = 'pol' returning *; insert into vt values (5,'x'); insert into vt values (1,'x') on conflict (id) do update set s = 'polu'; select * from vt; update t set s = 'no';
delete from vt where id = 2; 
reset role; revoke select on acl from hf_ow; set role hf_ev; update vt set s = 'pol2'; select * from vt;
reset role; create materialized view mv as select 1 a; alter materialized view mv owner to hf_ow; grant hf_ow to hf_al; set role hf_al; refresh materialized view mv; reset role;
-- partitions with rls whose policy reads
create table p(id int, s text) partition by range (id); create table p1 partition of p for values from (0) to (10); create table p2 partition of p for values from (10) to (20); insert into p values (1,'a'),(11,'b'); alter table p enable row level security; create policy a on p using (exists (select from priv where a = p.id)); grant select, update on p to hf_ev; set role hf_ev; select * from p; update p set s = 'z'; reset role; grant select on priv to hf_ev; set role hf_ev; select * from p; update p set s = 'z' returning *; select * from p where id = 11;
reset role;
drop table nop, acl, priv, p cascade;
drop owned by hf_ow, hf_ev, hf_al cascade;
drop role hf_ow, hf_ev, hf_al;
