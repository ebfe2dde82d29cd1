-- PL/pgSQL: statements, results, records, exceptions; what RAISE tells is in a table
-- also: local
create table t (a int primary key, b text);
create table said (n serial primary key, what text);
create function say(what text) returns void language plpgsql as $$ begin insert into said (what) values (say.what); end $$;
create function inc(i int) returns int language plpgsql as $$ begin return i + 1; end $$;
select inc(3), inc(null), inc(inc(1));
select inc('x');
create function fact(n int) returns numeric language plpgsql as $$
begin
  if n <= 1 then return 1; end if;
  return n * fact(n - 1);
end $$;
select fact(30);
create function ins(i int, s text) returns void language plpgsql as $$ begin insert into t values (i, s); end $$;
select ins(1, 'x'), ins(2, 'y');
select * from t order by a;
create function from_a(i int) returns setof t language plpgsql as $$
declare r t;
begin
  for r in select * from t where a >= i order by a loop return next r; end loop;
  return query select 9, 'nine'::text;
  return query execute 'select $1, $2' using 10, 'ten'::text;
end $$;
select * from from_a(1);
select (from_a(2)).b;
select count(*), max(a) from from_a(1);
create function tries(i int) returns text language plpgsql as $$
declare m text; d text; c text; s text;
begin
  perform ins(i, 'again');
  return 'inserted';
exception
  when unique_violation then
    get stacked diagnostics m = message_text, d = pg_exception_detail, c = constraint_name, s = returned_sqlstate;
    return sqlstate || ' ' || sqlerrm || '|' || m || '|' || d || '|' || c || '|' || s;
end $$;
select tries(1);
select tries(3);
select count(*) from t;
create function parts(n int) returns text language plpgsql as $$
declare done text := '';
begin
  for i in 1 .. n loop
    begin
      insert into t values (100 + i, 'part');
      if i % 2 = 0 then raise exception 'even %', i using errcode = '12345', hint = 'odd'; end if;
      done := done || i || ',';
    exception when sqlstate '12345' then done := done || 'x' || sqlerrm || ',';
    end;
  end loop;
  return done;
end $$;
select parts(5);
select a from t where b = 'part' order by a;
do $$ declare r record; begin for r in select * from t order by a loop perform say(r.a || r.b); perform say(r::text); end loop; end $$;
select what from said order by n;
delete from said;
do $$ declare r record; begin select * into strict r from t where a = 99; end $$;
do $$ declare r record; begin select * into strict r from t; end $$;
do $$ declare r record; begin perform r.x; end $$;
do $$ declare r record; begin select 1 as a into r; perform r.x; end $$;
do $$ declare x int; begin update t set b = b where b = 'part' returning a into x; end $$;
do $$ begin select 1; end $$;
do $$ declare x int; begin insert into t values (50, 'q') into x; end $$;
create procedure p(inout x int, y int) language plpgsql as $$ begin x := x + y; end $$;
call p(1, 2);
do $$ declare q int := 5; begin call p(q, 7); perform say('q ' || q); call p(3, 4); end $$;
create procedure nothing() language plpgsql as $$ begin return; end $$;
call nothing();
do $$ declare v int[] := '{1,2,3}'; x int; m int[][] := '{{1,2},{3,4}}'; y int[]; r t; begin
  v[2] := 20; v[5] := 7;
  foreach x in array v loop perform say(coalesce(x::text, 'null')); end loop;
  foreach y slice 1 in array m loop perform say(y::text); end loop;
  foreach x in array m loop perform say(x::text); end loop;
  m[2][1] := 30; perform say(m::text);
  r.b := 'hey'; r.a := 4; perform say(r::text);
  update t set b = t.b || '!' where t.a = r.a; get diagnostics x = row_count; perform say('rc ' || x || found);
  update t set b = t.b || '!' where t.b = 'part'; get diagnostics x = row_count; perform say('rc ' || x || found);
end $$;
select what from said order by n;
delete from said;
do $$ declare a int := 1; begin perform a from t; end $$;
do $$
#variable_conflict use_variable
declare a int := 77; begin perform say((select a from t limit 1)::text); end $$;
do $$
#variable_conflict use_column
declare a int := 77; begin perform say((select a from t order by 1 limit 1)::text); end $$;
do $$ <<outer>> declare n int := 1; begin declare n int := 2; begin perform say(n || ' ' || outer.n); end; end outer $$;
do $$ begin <<o>> for i in 1..3 loop for j in 1..3 loop continue o when j = 2; exit o when i = 3; perform say(i || '-' || j); end loop; end loop; end $$;
do $$ declare i int := 0; begin while i < 3 loop i := i + 1; if i = 2 then continue; elsif i > 2 then perform say('three'); else perform say('one'); end if; end loop; for k in reverse 10..1 by 4 loop perform say(k::text); end loop; loop exit; end loop; end $$;
do $$ begin case 3 when 1, 2 then perform say('a'); when 3 then perform say('c'); end case; case when 1 = 2 then null; else perform say('else'); end case; end $$;
do $$ begin case 7 when 1 then null; end case; end $$;
select what from said order by n;
delete from said;
do $$ declare c cursor (k int) for select * from t where a >= k order by a; r record; x int; y text; u refcursor; begin
  open c(2); fetch c into r; perform say(r::text); fetch c into x, y; perform say(x || y); move c; fetch c into r; perform say(r::text); close c;
  for z in c(k := 100) loop perform say(z.b || found); end loop;
  open u for execute 'select a from t where a < $1 order by a' using 3; fetch u into x; perform say(x::text); fetch last from u into x; perform say(x::text); close u;
end $$;
select what from said order by n;
do $$ declare c cursor (k int) for select * from t where a >= k; begin open c(k := 1); open c(1); end $$;
do $$ declare x text; n int; begin execute 'select b from t where a = $1' into x using 1; perform say(x); execute format('create table %I (z int)', 'dyn'); insert into dyn values (1), (2); get diagnostics n = row_count; perform say(n::text); execute 'select z from dyn where false' into n; perform say(coalesce(n::text, 'none')); execute 'select 1/0' into n; end $$;
select * from dyn;
do $$ begin execute null; end $$;
do $$ begin execute 'commit'; end $$;
do $$ declare x int; begin execute 'select nope' into x; end $$;
do $$ declare x int; begin x := nope; end $$;
do $$ declare x int; begin select nope into x from t; end $$;
do $$ declare x int := 'abc'; begin end $$;
do $$ declare x int not null := 1; begin x := null; end $$;
do $$ declare x varchar(3); begin x := 'abcdef'; end $$;
do $$ declare x numeric(5,2); begin x := 1.239; perform say(x::text); x := 12345; end $$;
do $$ declare x t.a%type := 5; y x%type; z t%rowtype; begin y := x + 1; z.a := y; select 8, 'eight' into z; perform say(y || z::text); end $$;
do $$ begin raise exception 'no % of %%', 'use' using detail = 'd', hint = 'h', errcode = 'unique_violation', column = 'c', table = 't', schema = 's', constraint = 'k', datatype = 'y'; end $$;
do $$ begin raise division_by_zero; end $$;
do $$ begin raise sqlstate '22012' using message = 'mine'; end $$;
do $$ begin raise using errcode = '22012'; end $$;
do $$ begin raise; end $$;
do $$ begin raise exception using message = null; end $$;
do $$ begin begin raise exception 'inner'; exception when others then raise; end; end $$;
do $$ begin begin raise exception 'inner'; exception when others then raise exception 'outer % %', sqlerrm, sqlstate; end; end $$;
do $$ begin assert 1 = 1; assert 1 = 2, 'differ'; end $$;
do $$ begin assert false; exception when others then null; end $$;
do $$ begin assert false; exception when assert_failure then perform say('asserted'); end $$;
create function no_return() returns int language plpgsql as $$ begin end $$;
select no_return();
create function pair(out a int, out b text) language plpgsql as $$ begin a := 1; b := 'x'; end $$;
select * from pair();
select pair();
select (pair()).b;
create function tab() returns table (a int, b text) language plpgsql as $$ begin for i in 1..3 loop a := i; b := 'n' || i; return next; end loop; return; end $$;
select * from tab();
create function rec() returns record language plpgsql as $$ declare r record; begin select 1 as x, 'y'::text as y into r; return r; end $$;
select * from rec() as (x int, y text);
select rec();
select * from rec() as (x int);
select * from rec() as (x text, y text);
create function twice(anyelement) returns anyarray language plpgsql as $$ begin return array[$1, $1]; end $$;
select twice(3), twice('x'::text);
create function total(variadic v int[]) returns int language plpgsql as $$ declare s int := 0; x int; begin foreach x in array v loop s := s + x; end loop; return s; end $$;
select total(1, 2, 3), total(variadic '{4,5}');
create type pt as (a int, b text);
create function make_pt() returns pt language plpgsql as $$ declare z pt; begin z.a := 3; z.b := 'q'; return z; end $$;
select * from make_pt();
select (make_pt()).a, make_pt();
create function make_pts() returns setof pt language plpgsql as $$ declare z pt; begin z := row(1, 'one'); return next z; z := row(2, 'two'); return next z; return; end $$;
select * from make_pts();
create function stays(i int) returns int language plpgsql stable as $$ begin insert into t values (i, 'no'); return i; end $$;
select stays(1);
begin read only;
select ins(60, 'no');
rollback;
create function strict_one(a int) returns int strict language plpgsql as $$ begin return 7; end $$;
select strict_one(null), strict_one(1);
create function mismatch() returns setof t language plpgsql as $$ begin return query select 1; end $$;
select * from mismatch();
create function mismatch2() returns table (a int, b int) language plpgsql as $$ begin return query select 1, 'x'::text; end $$;
select * from mismatch2();
create function trig() returns trigger language plpgsql as $$ begin return new; end $$;
select trig();
create function trig2(a int) returns trigger language plpgsql as $$ begin return new; end $$;
create function nested(i int) returns int language plpgsql as $$ begin return inner_one(i) + 1; end $$;
create function inner_one(i int) returns int language plpgsql as $$ begin return 10 / i; end $$;
select nested(2);
select nested(0);
create or replace function nested(i int) returns int language plpgsql as $$ declare x int; begin select inner_one(i) into x; return x; end $$;
select nested(0);
create or replace function nested(i int) returns int language plpgsql as $$ begin perform inner_one(i); return 1; end $$;
select nested(0);
create function temp_tables(n int) returns bigint language plpgsql as $$ begin drop table if exists tmp; create table tmp (x int); insert into tmp select generate_series(1, n); return (select sum(x) from tmp); end $$;
select temp_tables(3);
select temp_tables(4);
-- errors of CREATE FUNCTION
create function bad() returns int language plpgsql as $$ begin retrun 1; end $$;
create function bad() returns int language plpgsql as $$ begin return 1 +; end $$;
create function bad() returns int language plpgsql as $$ begin return 1 end $$;
create function bad() returns int language plpgsql as $$ begin return; end $$;
create function bad() returns void language plpgsql as $$ begin return 1; end $$;
create function bad() returns setof int language plpgsql as $$ begin return 1; end $$;
create function bad() returns int language plpgsql as $$ begin return next 1; end $$;
create function bad() returns int language plpgsql as $$ begin x := 1; end $$;
create function bad() returns int language plpgsql as $$ declare x int; x text; begin end $$;
create function bad() returns int language plpgsql as $$ declare x nope; begin end $$;
create function bad() returns int language plpgsql as $$ declare x nope.a%type; begin end $$;
create function bad() returns int language plpgsql as $$ declare x constant int := 1; begin x := 2; end $$;
create function bad() returns int language plpgsql as $$ begin exit; end $$;
create function bad() returns int language plpgsql as $$ begin loop exit nowhere; end loop; end $$;
create function bad() returns int language plpgsql as $$ begin raise notice '% %', 1; end $$;
create function bad() returns int language plpgsql as $$ begin raise no_such_condition; end $$;
create function bad() returns int language plpgsql as $$ begin null; exception when no_such then null; end $$;
create function bad() returns int language plpgsql as $$ begin if true then return 1; end $$;
create function bad() returns int language plpgsql as $$ begin select * frm t; end $$;
create function bad() returns int language plpgsql as $$ <<l>> begin null; end m $$;
create function bad() returns int language plpgsql as $$ begin for i in select 1 loop null; end loop; end $$;
create function bad(x cstring) returns int language plpgsql as $$ begin return 1; end $$;
create function bad() returns int language nope as $$ begin return 1; end $$;
create extension plpgsql;
do language sql $$ select 1 $$;
select l.lanname, p.prosrc from pg_proc p join pg_language l on l.oid = p.prolang where p.proname = 'inc';
select pg_get_functiondef('inc'::regproc);
select routine_body, external_language from information_schema.routines where routine_name = 'inc';
