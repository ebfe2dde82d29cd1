-- ON CONFLICT DO UPDATE through a view changes no row that cannot be seen through it
-- also: local
-- as of: 15.20
grant all on schema public to public;
drop role if exists hf_ow; drop role if exists hf_ev; drop role if exists hf_al;
create role hf_ow; create role hf_ev; create role hf_al;
create table t(id int primary key, owner text, v int);
insert into t values (1,'a',1),(2,'b',2),(3,null,3);
create view v1 as select id, owner, v from t where owner = 'a';
create view v2 as select * from v1 where v < 100;
create view v3 as select * from v2 where v > 0 with check option;
create function leak(text) returns bool language plpgsql as $$ begin raise notice 'leak %', $1; return true; end $$;
insert into v1 values (2,'a',1) on conflict do nothing;
insert into v1 values (2,'a',1) on conflict (id) do update set v = 7;
insert into v1 values (3,'a',1) on conflict (id) do update set v = 7;
insert into v1 values (1,'a',1) on conflict (id) do update set v = 7;
insert into v2 values (2,'a',1) on conflict (id) do update set v = 7;
insert into v2 values (2,'a',1) on conflict (id) do update set v = 7 where leak(v2.owner);
insert into v2 values (2,'a',1) on conflict (id) do update set v = 7 where false;
insert into v3 values (2,'a',1) on conflict (id) do update set v = 7;
update t set v = 200 where id = 1;
insert into v2 values (1,'a',1) on conflict (id) do update set v = 7;
insert into v3 values (1,'a',1) on conflict (id) do update set v = 7;
insert into v3 values (2,'b',-1) on conflict (id) do update set v = 7;
insert into v1 values (1,'a',1) on conflict (id) do update set v = 8, owner = 'q';
insert into v1 values (2,'a',1),(1,'a',2) on conflict (id) do update set v = 8;
create view vf as select id, owner, v from t where leak(owner);
insert into vf values (2,'a',1) on conflict (id) do update set v = 11 returning *;
create table p(id int primary key, owner text) partition by range(id); create table p1 partition of p for values from (0) to (10); insert into p values (1,'b');
create view vp as select * from p where owner = 'a';
insert into vp values (1,'a') on conflict (id) do update set owner = 'z';
reset role;
drop table t, p cascade; drop function leak;
drop owned by hf_ow, hf_ev, hf_al cascade;
drop role hf_ow, hf_ev, hf_al;
