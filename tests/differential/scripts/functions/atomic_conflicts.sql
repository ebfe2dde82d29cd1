-- ON CONFLICT in bodies by BEGIN ATOMIC: printed, run, renamed, what it depends on
create table t (a int primary key, b text unique, c int);
create procedure p1(x int) begin atomic insert into t values (x, 'q') on conflict (a) do nothing; end;
create procedure p2(x int) begin atomic insert into t as k values (x, 'q', 1) on conflict (a) where a > 0 do update set b = excluded.b || k.b, c = k.c + 1 where k.c < 5; end;
create procedure p3(x int) begin atomic insert into t values (x) on conflict do nothing; insert into t (a) values (x + 1) on conflict on constraint t_b_key do update set (b, c) = (select t.b, 3); end;
create procedure p4(x int) begin atomic insert into t values (x, 'q') on conflict (a) do update set b = default; end;
create function f5(x int) returns setof t begin atomic insert into t (b, a) values ('y', x) on conflict (b) do update set c = coalesce(t.c, 0) + 1, a = excluded.a returning *; end;
create table lo (a text, r int[]); create unique index on lo (lower(a), (a || 'x') collate "C") where a > 'b';
create procedure p6() begin atomic insert into lo as z (a) values ('c') on conflict (lower(a), (a || 'x') collate "C") where a > 'a' and a > 'b' do update set a = z.a || excluded.a, r = (select array[1]) where z.* is not null returning z.a; end;
create procedure bad() begin atomic insert into t values (1) on conflict (a) do update set nosuch = 1; end;
select proname, pg_get_function_sqlbody(oid) from pg_proc where pronamespace = current_schema()::regnamespace order by 1;
call p1(1); call p1(1); call p2(1); call p2(1); call p3(5); call p3(5); call p4(1); select * from f5(7); select * from f5(8); call p6(); call p6(); select * from t order by a; select * from lo;
select p.proname, pg_describe_object(refclassid, refobjid, refobjsubid) from pg_depend d join pg_proc p on p.oid = d.objid where classid = 'pg_proc'::regclass and p.pronamespace = current_schema()::regnamespace and refclassid <> 'pg_namespace'::regclass
 order by 1, pg_describe_object(refclassid, refobjid, refobjsubid) collate "C";
alter table t rename b to bb; alter table t rename constraint t_b_key to tk; alter table t rename to tt; alter table lo rename a to aa;
select proname, pg_get_function_sqlbody(oid) from pg_proc where pronamespace = current_schema()::regnamespace order by 1;
call p2(1); call p3(50); select * from f5(9); call p6(); select * from tt order by a; select * from lo;
alter table tt drop constraint tk; alter table tt drop column bb; begin; alter table tt drop constraint tk cascade; rollback; select count(*) from pg_proc where proname = 'p3' and pronamespace = current_schema()::regnamespace;
alter table tt drop constraint tt_pkey; alter table tt drop constraint tk cascade; call p3(1);
drop table tt cascade; drop table lo cascade;
-- which index decides is looked for when the statement runs
create table late (a int, b int);
create function l1() returns void language sql BEGIN ATOMIC insert into late values (1, 2) on conflict (a) do nothing; END;
create function l2() returns void language sql as 'insert into late values (1, 2) on conflict (a) do update set b = 3';
create function l3() returns void language sql as 'insert into late values (1, 2) on conflict (nope) do nothing';
create function l4() returns void language sql BEGIN ATOMIC insert into late values (1, 2) on conflict (a, (b + 1)) where b > 1 do update set b = 3; END;
select l1();
select l2();
select pg_get_functiondef('l1'::regproc), pg_get_functiondef('l4'::regproc);
create unique index on late (a);
select l1(); select l2(); select l4(); select * from late;
