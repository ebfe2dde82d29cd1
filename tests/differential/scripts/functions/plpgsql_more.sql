-- PL/pgSQL as applications write it: upserts, walks, dynamic SQL, DDL within, contexts, outputs of procedures
create table said (n serial primary key, what text);
create function say(what text) returns void language plpgsql as $$ begin insert into said (what) values (say.what); end $$;
create table u (id serial primary key, name text unique, updated_at timestamptz, j jsonb, k numeric(6,2), d date default '2020-01-01');
CREATE FUNCTION set_current_timestamp_updated_at() RETURNS TRIGGER AS $$
DECLARE
  _new record;
BEGIN
  _new := NEW;
  _new."updated_at" = '2024-01-01 00:00:00+00';
  RETURN _new;
END;
$$ LANGUAGE plpgsql;
create trigger s before update on u for each row execute procedure set_current_timestamp_updated_at();
insert into u (name, k) values ('a', 1.239);
update u set name = 'b'; select * from u;
CREATE OR REPLACE FUNCTION pg_temp.find_or_create(OUT response "u", OUT sequelize_caught_exception text) RETURNS RECORD AS $$ BEGIN INSERT INTO "u" ("name") VALUES ('b') RETURNING * INTO response; EXCEPTION WHEN unique_violation THEN GET STACKED DIAGNOSTICS sequelize_caught_exception = PG_EXCEPTION_DETAIL; END $$ LANGUAGE plpgsql;
SELECT (find.response)."id", (find.response)."name", find.sequelize_caught_exception FROM pg_temp.find_or_create() find;
create function upsert(nm text, val numeric) returns u language plpgsql as $$
declare r u%rowtype;
begin
  loop
    update u set k = val where name = nm returning * into r;
    if found then return r; end if;
    begin
      insert into u (name, k) values (nm, val) returning * into r;
      return r;
    exception when unique_violation then
    end;
  end loop;
end $$;
select name, k from upsert('zz', 5); select name, k from upsert('zz', 6);
create function jsonb_walk(doc jsonb) returns table (key text, val text) language plpgsql stable as $$
declare k text; v jsonb;
begin
  for k, v in select * from jsonb_each(doc) order by 1 loop
    key := k; val := v::text; return next;
    if jsonb_typeof(v) = 'object' then return query select k || '.' || w.key, w.val from jsonb_walk(v) w; end if;
  end loop;
end $$;
select * from jsonb_walk('{"a": 1, "b": {"c": true, "d": {"e": null}}}');
create function fib(n int) returns int language plpgsql immutable as $$ begin if n < 2 then return n; end if; return fib(n-1) + fib(n-2); end $$;
select fib(12);
create function split(s text, sep text default ',') returns setof text language plpgsql as $$ declare part text; begin foreach part in array string_to_array(s, sep) loop return next trim(part); end loop; end $$;
select * from split('a, b,c'); select split('x;y', ';');
create function dyn(tbl regclass, col text) returns bigint language plpgsql as $$ declare n bigint; begin execute format('select count(%I) from %s', col, tbl) into n; return n; end $$;
select dyn('u', 'name'), dyn('u', 'd');
do $$ declare a text[] := array['x','y']; h int; begin a := a || 'z'; a := array_append(a, 'w'); perform say(array_to_string(a, '-')); h := array_length(a, 1); perform say(h::text); for i in 1 .. array_upper(a, 1) loop perform say(a[i]); end loop; end $$;
do $$ declare r record; s text := ''; begin for r in select g, g * g as sq from generate_series(1, 3) g loop s := s || r.g || '=' || r.sq || ' '; end loop; perform say(s); for r in execute 'select $1 as q' using 5 loop perform say(r.q::text); end loop; perform say(coalesce(r.q::text, 'null')); end $$;
do $$ declare x int; y int; begin select 1, 2 into x, y; perform say(x || ',' || y); select 7 into x, y; perform say(x || ',' || coalesce(y::text, 'null')); select 1, 2, 3 into x; x := (select max(id) from u); perform say((x > 0)::text); end $$;
do $$ declare v_count integer = 3; c_max constant integer := 10; flag boolean default true; ts timestamp := '2020-01-01'; begin if flag and v_count < c_max then v_count = v_count + 1; end if; perform say(v_count::text || ts); end $$;
do $$ begin if not exists (select 1 from pg_type where typname = 'mood') then create type mood as enum ('sad', 'ok'); end if; end $$;
do $$ begin create type mood as enum ('x'); exception when duplicate_object then perform say('dup'); end $$;
do $$ declare m mood := 'ok'; begin perform say(m::text); m := 'nope'; end $$;
do $$ begin alter table u add column extra int; exception when duplicate_column then null; end $$;
do $$ begin begin alter table u add column extra int; exception when duplicate_column then perform say('dupcol'); end; update u set extra = 1; end $$;
select extra from u;
do $$ begin perform set_config('my.var', 'q', false); perform say(current_setting('my.var')); end $$;
do $$ begin begin set local work_mem = '8MB'; raise exception 'x'; exception when others then perform say(current_setting('work_mem')); end; end $$;
do $$ begin begin create table gone (a int); raise exception 'x'; exception when others then null; end; perform say((to_regclass('gone') is null)::text); end $$;
do $$ declare r u; begin select * into r from u where name = 'nobody'; perform say((r is null)::text || found::text || coalesce(r.name, 'nil')); r.name := 'x'; r.k := 12.345; perform say(r.k::text); insert into u values (r.*); exception when others then perform say(sqlstate || sqlerrm); end $$;
do $$ declare r u; begin select * into strict r from u where name = 'b'; r.id := 100; r.name := 'hundred'; insert into u select r.*; update u set (name, k) = (r.name || '!', 3) where id = r.id; delete from u where id = r.id returning name into r.name; perform say(r.name); end $$;
do $$ declare t1 record; t2 record; begin select 1 as a, 'x' as b into t1; t2 := t1; t2.a := 5; perform say((t1 = t2)::text || t2::text || (t1 is distinct from t2)::text); t1 := null; perform say(coalesce(t1::text, 'null')); end $$;
do $$ declare n int := 0; begin loop n := n + 1; continue when n < 5; exit when n > 7; end loop; perform say(n::text); end $$;
do $$ begin execute 'do $x$ begin perform say(''inner do''); end $x$'; end $$;
do $$ declare js jsonb := '{"a": [1,2,{"b": "c"}]}'; x jsonb; begin for x in select jsonb_array_elements(js -> 'a') loop perform say(x::text); end loop; perform say(js #>> '{a,2,b}'); js := jsonb_set(js, '{z}', '1'); perform say(js::text); end $$;
do $$ declare x bigint; begin insert into u (name) select 'n' || g from generate_series(1, 3) g; get diagnostics x = row_count; perform say(x::text); delete from u where name like 'n_'; get diagnostics x = row_count; perform say(x || found::text); end $$;
do $$ declare m text; c text; begin perform 1/0; exception when division_by_zero then get stacked diagnostics m = message_text, c = pg_exception_context; perform say(m || '|' || c); end $$;
create function ctx() returns text language plpgsql as $$ declare c text; begin get diagnostics c = pg_context; return c; end $$;
create function ctx2() returns text language plpgsql as $$ begin return ctx(); end $$;
create function ctx3() returns text language plpgsql as $$ declare r text; begin select ctx2() into r; return r; end $$;
select ctx3();
select what from said order by n;
select upsert('k', 1) is null;
create function lots() returns setof int language plpgsql as $$ begin for i in 1..5 loop return next i; end loop; end $$;
select lots() limit 2; select array_agg(x) from lots() x; select lots(), lots();
create function ov(a int) returns text language plpgsql as $$ begin return 'int'; end $$; create function ov(a text) returns text language plpgsql as $$ begin return 'text'; end $$;
select ov(1), ov('x');
create function nn(a int default 5, b int default 6) returns int language plpgsql as $$ begin return a * b; end $$; select nn(), nn(b => 2), nn(2);
create function inout1(inout a int, out b int) language plpgsql as $$ begin b := a * 2; a := a + 1; end $$; select * from inout1(4);
create function retcase(a int) returns text language plpgsql as $$ begin return case when a > 1 then 'big' else 'small' end; end $$; select retcase(2);
create procedure proc2(a int, inout b text, out c int) language plpgsql as $$ begin b := b || a; c := a; end $$; call proc2(3, 'x', null);
do $$ declare q text := 'y'; w int; begin call proc2(c => w, b => q, a => 8); perform say(q || w); call proc2(1, q, 5); end $$;
create function depth(n int) returns int language plpgsql as $$ begin return depth(n + 1); end $$;
do $$ begin perform depth(1); exception when statement_too_complex then perform say('deep'); when others then perform say('others ' || sqlstate); end $$;
select what from said order by n desc limit 1;
create or replace function pg_temp.once() returns int language plpgsql as $$ begin return 1; end $$;
select pg_temp.once();
drop function if exists pg_temp.once();
drop function pg_temp.once();
select pg_temp.once();
-- as bounds of an index, and as a limit of what it gives
create function one_more(n bigint) returns bigint language plpgsql immutable as $$ begin return n + 1; end $$;
create table bounded (p text, v bigint);
create index on bounded (p, v desc);
create index on bounded (v);
insert into bounded select 'a', g from generate_series(1, 20) g;
select count(*) from bounded where v > one_more(17);
select v from bounded where v = one_more(4);
select v from bounded where p = 'a' and v > one_more(17) order by v;
select v from bounded where v between one_more(1) and one_more(3) order by v limit one_more(1);
select p, max(v) from bounded where v < one_more(9) group by p;
select v from bounded where v > (select one_more(16)) order by v limit (select one_more(1));
select a.v, b.v from bounded a join bounded b on b.v > one_more(a.v) where a.v > 16 order by 1, 2;
select v from bounded where v > one_more(null);
-- what EXCEPTION undoes, however much it is
create table undone (a int primary key);
do $$ begin insert into undone values (0); begin insert into undone select generate_series(1, 9000); raise exception 'x'; exception when others then insert into undone values (-1); end; end $$;
select count(*), min(a), max(a) from undone;
do $$ begin begin for i in 1..6000 loop insert into undone values (i); end loop; update undone set a = a + 100000; insert into undone values (100000); exception when unique_violation then null; end; end $$;
select count(*), min(a), max(a) from undone;
-- a function counts as a transaction block for what needs one, and as none for what cannot be in one
create table held (a int);
do $$ begin lock table held; end $$;
do $$ begin execute 'declare cc cursor for select 7 as n'; execute 'fetch 1 from cc'; end $$;
create function locks() returns int language plpgsql as $$ begin lock table held in share mode nowait; return 1; end $$;
select locks();
create function locks_too() returns int language sql as $$ lock table held; select 2 $$;
select locks_too();
create procedure locks_again() language plpgsql as $$ begin lock table held; commit; lock table held; insert into held values (3); end $$;
call locks_again();
do $$ begin execute 'vacuum held'; end $$;
do $$ begin execute 'create database nothing'; end $$;
do $$ begin execute 'create index concurrently on held (a)'; end $$;
table held;
-- parts of jsonb variables
do $$ declare j jsonb := '{"a": 1}'; begin j['b'] := '2'; j['c'][1] := to_jsonb('x'::text); j['d'] := null; raise exception '%', j; end $$;
do $$ declare j jsonb := '{"a": 1}'; begin j['b'] := 2; raise exception '%', j; end $$;
do $$ declare j jsonb := '{"a": 1}'; begin j['b'] := '2'::text; raise exception '%', j; end $$;
do $$ declare j jsonb; k text := 'kk'; n int := 1; begin j[k] := '"v"'; j['a']['b'] := j; j['a']['c'][n] := n; raise exception '% %', j, j['a']['c']; end $$;
do $$ declare j jsonb := '5'; n int := 2; begin j['b'] := n; end $$;
do $$ declare j jsonb := '{}'; n int; begin j[n] := j; end $$;
create function counted(t text) returns jsonb language plpgsql as $$ declare r jsonb := '{}'; w text; begin foreach w in array string_to_array(t, ' ') loop r[w] := coalesce(r[w]::int, 0) + 1; end loop; return r; end $$;
select counted('a b a c a b');
select counted(x) from (values ('x y x'), (''), (null)) v(x);
drop function counted;
create type plj as (n int, j jsonb);
do $$ declare p plj; a jsonb[] := '{null}'; begin p.j['a'] := '1'; p.n := 2; a[2] := '{}'; raise exception '% %', p, a; end $$;
drop type plj;
-- INTO reads no more than it takes, and STRICT one more
do $$ declare x int; begin with recursive r(n) as (select 1 union all select n + 1 from r) select n into x from r; raise exception '%', x; end $$;
do $$ declare x int; begin with recursive r(n) as (select 1 union all select n + 1 from r) select n into strict x from r; end $$;
do $$ declare x int; n int; begin select g into x from generate_series(7, 100000) g; get diagnostics n = row_count; raise exception '% % %', x, n, found; end $$;
