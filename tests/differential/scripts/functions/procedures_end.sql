-- COMMIT and ROLLBACK in procedures and DO: what stays, where they are refused, loops, variables, modes and settings of the next transaction
-- also: local
create table t (i int primary key);
create table said (n serial primary key, what text);
create procedure p1() language plpgsql as $$
begin
  for i in 1..4 loop
    insert into t values (i);
    if i % 2 = 0 then commit; else rollback; end if;
  end loop;
end $$;
call p1(); select * from t;
begin; call p1(); rollback;
begin; do $$ begin commit; end $$; rollback;
do $$ begin commit; end $$;
do $$ begin begin commit; exception when others then insert into said (what) values (sqlstate || sqlerrm); end; end $$;
do $$ begin begin rollback; exception when others then insert into said (what) values (sqlstate || sqlerrm); end; end $$;
do $$ begin begin raise exception 'x'; exception when others then insert into said (what) values ('handled'); commit; end; insert into said (what) values ('then'); end $$;
create function f() returns int language plpgsql as $$ begin commit; return 1; end $$;
select f();
do $$ begin perform f(); end $$;
create procedure p2() language plpgsql security definer as $$ begin commit; end $$;
call p2();
create procedure p3() language plpgsql set work_mem = '5MB' as $$ begin commit; end $$;
call p3();
do $$ begin execute 'call p1()'; end $$;
do $$ begin execute 'commit'; end $$;
truncate t;
do $$ begin call p1(); commit; end $$;
select * from t order by 1;
create procedure p4(inout x int) language plpgsql as $$
declare y int := x;
begin insert into t values (y + 100); commit; x := x + 1; insert into t values (y + 200); rollback; end $$;
call p4(3); select * from t order by 1;
do $$ declare n int := 5; begin call p4(n); insert into said (what) values ('n is ' || n); end $$;
do $$ begin begin call p4(4); exception when others then insert into said (what) values (sqlstate || sqlerrm); end; end $$;
do $$ declare r record; begin for r in update t set i = i + 1000 returning i loop commit; end loop; end $$;
do $$ declare r record; begin for r in execute 'delete from t returning i' loop rollback; end loop; end $$;
do $$ declare r record; begin for r in select * from t order by 1 loop insert into said (what) values (r.i); commit; end loop; end $$;
do $$ declare r record; begin for r in select * from t order by 1 loop insert into said (what) values (r.i || ' gone'); rollback; end loop; end $$;
do $$ declare c cursor for select * from t order by 1; x int; begin open c; fetch c into x; commit; fetch c into x; end $$;
do $$ declare c cursor for select * from t order by 1; begin for x in c loop insert into said (what) values (x.i || ' by cursor'); commit; end loop; end $$;
do $$ begin commit work; end $$;
do $$ begin rollback to a; end $$;
do $$ begin commit and; end $$;
do $$ begin commit and chain; commit and no chain; rollback and chain; rollback and no chain; end $$;
do $$ begin savepoint a; end $$;
do $$ begin set transaction isolation level repeatable read; end $$;
do $$ declare a text; b text; begin
  commit; set transaction isolation level serializable, read only; a := current_setting('transaction_isolation') || current_setting('transaction_read_only');
  commit and chain; b := current_setting('transaction_isolation') || current_setting('transaction_read_only');
  rollback; insert into said (what) values (a || b || current_setting('transaction_read_only'));
end $$;
do $$ begin commit; set transaction read only; insert into said (what) values ('never'); end $$;
do $$ begin
  set local work_mem = '7MB'; insert into said (what) values (current_setting('work_mem')); commit;
  insert into said (what) values (current_setting('work_mem')); set work_mem = '8MB'; rollback; insert into said (what) values (current_setting('work_mem'));
end $$;
do $$ declare before timestamptz := now(); at timestamptz := statement_timestamp(); begin
  commit; insert into said (what) values ((now() > before)::text || (statement_timestamp() = at)::text);
end $$;
create table d (i int primary key, j int references d deferrable initially deferred);
do $$ begin insert into d values (1, 2); commit; insert into said (what) values ('never'); end $$;
do $$ begin insert into d values (1, null); commit; insert into d values (2, 9); end $$;
do $$ begin insert into d values (3, null); commit; raise exception 'later'; end $$;
do $$ begin insert into d values (7, null); rollback; insert into d values (8, null); end $$;
select * from d order by 1;
create function trg() returns trigger language plpgsql as $$ begin commit; return new; end $$;
create trigger x before insert on t for each row execute function trg();
insert into t values (55);
do $$ begin insert into t values (66); end $$;
drop trigger x on t;
do $$ begin create table made (i int); insert into made values (1); commit; insert into made values (2); drop table made; rollback; end $$;
select * from made;
select what from said order by n;
