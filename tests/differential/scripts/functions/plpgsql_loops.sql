-- control flow of PL/pgSQL, loops above all: labels across levels, what is left to the interpreter in between, errors and their lines
-- also: local
create table said (n serial primary key, what text);
create function say(what text) returns void language plpgsql as $$ begin insert into said (what) values (say.what); end $$;
create function loops(m int) returns text language plpgsql as $$
declare t text := ''; i int := 0; b bigint; k numeric := 1.5;
begin
  <<outer>> while true loop
    i := i + 1;
    for j in reverse m..1 by 2 loop
      continue outer when j = i;
      exit outer when i > m;
      if j % 2 = 0 then continue; elsif j = 5 then t := t || '!'; else t := t || j; end if;
      t := t || case when found then 'f' else 'n' end;
    end loop;
    t := t || ';'; k := k + i; b := k;
    begin
      if i = 3 then raise exception 'three'; end if;
      perform 1 / (i - 2);
    exception when division_by_zero then t := t || 'z'; continue outer;
      when raise_exception then t := t || 'r';
    end;
    <<inner>> begin
      exit inner when i = 4;
      t := t || '.';
    end;
    case when i = 1 then t := t || 'one'; when i > 4 then exit; else null; end case;
    case i when 2 then t := t || 'two'; when 4 then exit outer; else t := t || 'e'; end case;
  end loop outer;
  return t || ' ' || i || ' ' || b || ' ' || k || found;
end $$;
select loops(5), loops(4), loops(1), loops(0), loops(9);
select loops(n) from generate_series(1, 6) n order by n;
create function nested(out a int, out b text) language plpgsql as $$
begin
  a := 0;
  for x in 1..3 loop
    for y in 1..3 loop
      for z in 1..3 loop
        a := a + x * y * z;
        exit when z = 2 and y = 2;
        if a > 60 then b := x || ' ' || y || ' ' || z; return; end if;
      end loop;
    end loop;
  end loop;
end $$;
select * from nested();
select * from nested();
create function rows_in_loops() returns setof text language plpgsql as $$
declare r record; s text; a int[] := '{}'; e int;
begin
  for i in 1..3 loop
    for r in select g, g * i as p from generate_series(1, 3) g order by g loop
      continue when r.g = 2;
      return next i || '*' || r.g || '=' || r.p;
      if i = 2 then exit; end if;
    end loop;
    a[i] := i * 10; a[i + 1] := 7;
    foreach e in array a loop s := concat_ws(',', s, e); end loop;
    exit when i = 3;
  end loop;
  return next s;
  loop
    return next 'loop'; exit;
  end loop;
end $$;
select * from rows_in_loops();
select * from rows_in_loops();
create function returns_within(n int) returns int language plpgsql as $$
begin
  for i in 1..n loop
    begin
      if i = 3 then return i * 100; end if;
    exception when others then return -1;
    end;
    for r in 1..2 loop if i = 2 and n = 2 then return 42; end if; end loop;
  end loop;
  return null;
end $$;
select returns_within(1), returns_within(2), returns_within(3), returns_within(9);
do $$ declare n int; begin for i in 1..n loop null; end loop; end $$;
do $$ begin for i in 1..10 by 0 loop null; end loop; end $$;
do $$ begin for i in 1..10 by null loop null; end loop; end $$;
do $$ begin for i in 2147483646..2147483647 loop perform say(i::text); end loop; end $$;
do $$ begin for i in reverse -2147483647..-2147483648 loop perform say(i::text); end loop; end $$;
do $$ declare n int := 0; begin for i in 5..1 loop n := 1; end loop; perform say(found::text || n); for i in 1..2 loop i := i + 10; n := n + i; end loop; perform say(found::text || n); end $$;
do $$ declare n int not null := 1; begin loop n := null; end loop; end $$;
do $$ declare n int not null := null; begin loop exit; end loop; end $$;
do $$ declare n int := 1; begin
  while n < 10 loop
    n := n + 1;
    perform 1 / (5 - n);
  end loop; end $$;
do $$ declare n smallint := 1; begin
  loop n := n * 10::smallint; end loop; end $$;
do $$ declare n smallint := 1; begin
  loop n := n * 10; end loop; end $$;
do $$ declare a int[]; begin for i in 1..3 loop a[i] := 'x' || i; end loop; end $$;
do $$ declare a int[]; begin for i in 1..3 loop a[null] := i; end loop; end $$;
do $$ declare a int[]; begin for i in 1..3 loop a[i] := i; end loop; a[2:3] := array[8, 9]; perform say(a::text); end $$;
do $$ declare v varchar(3) := 'abcd'; begin loop exit; end loop; end $$;
do $$ declare v varchar(3); begin for i in 1..5 loop v := v || i; v := coalesce(v, '') || i; end loop; end $$;
do $$ begin for i in 1..3 loop case when i = 1 then null; end case; end loop; end $$;
do $$ begin for i in 1..3 loop case i when 1, 2 then perform say('c' || i); end case; end loop; end $$;
do $$ begin loop if 1 then exit; end if; end loop; end $$;
do $$ begin loop exit when null; exit when true; end loop; end $$;
do $$ begin loop exit when nowhere; end loop; end $$;
do $$ begin if false then loop exit when nowhere; end loop; end if; end $$;
do $$ declare r record; begin loop exit when r.a; end loop; end $$;
do $$ declare r record; n int := 0; begin for i in 1..3 loop select i as a, 'x' as b into r; n := n + r.a; r.a := r.a * 2; n := n + r.a; end loop; perform say(n::text || r); end $$;
create domain pos as int check (value > 0);
do $$ declare p pos := 3; begin loop p := p - 1; end loop; end $$;
do $$ declare p pos; begin loop exit; end loop; perform say(coalesce(p::text, 'null')); end $$;
create function no_return(n int) returns int language plpgsql as $$ begin while n > 0 loop n := n - 1; end loop; end $$;
select no_return(3);
create function fib(n int) returns int language plpgsql as $$ begin if n < 2 then return n; end if; return fib(n - 1) + fib(n - 2); end $$;
select fib(n) from generate_series(1, 9) n;
create function rnd() returns boolean language plpgsql as $$ declare a float := random(); begin for i in 1..20 loop if random() <> a then return true; end if; end loop; return false; end $$;
select rnd();
create function stamp() returns boolean language plpgsql as $$ declare a timestamptz := now(); begin for i in 1..2 loop if now() <> a or clock_timestamp() < a then return false; end if; end loop; return true; end $$;
select stamp();
create function typed(a anyelement) returns anyelement language plpgsql as $$ begin for i in 1..2 loop a := a || a; end loop; return a; end $$;
select typed('x'::text), typed(array[1]);
create function composed(x said) returns text language plpgsql as $$ begin for i in 1..2 loop x.what := x.what || i; end loop; return x.what || x.n; end $$;
select composed(row(5, 'w'));
select what from said order by n;

create table hidden_keys (id int primary key, n int, s text);
insert into hidden_keys values (1, 10, 'one'), (2, null, 'two'), (3, 30, 'three');
create function whole_rows() returns setof record language plpgsql as $$ declare v record; t text := ''; begin for v in execute 'select n, s from hidden_keys where id < $1 order by id' using 3 loop t := t || v::text; return next v; end loop; for v in execute 'delete from hidden_keys where id = 3 returning s' loop t := t || v::text; end loop; v := row(0, t); return next v; end $$;
select * from whole_rows() as f(a int, b text);
create function lengths() returns setof record language plpgsql as $$ declare c char(13) := 'x'; v varchar(14) := 'y'; begin return query select c, v; end $$;
select * from lengths() as f(a text, b text);
create function lengths_kept() returns text language plpgsql as $$ declare c char(5) := 'ab'; v varchar(4) := 'abcd'; n numeric(6,2) := 1.555; w varchar(2); begin w := v::varchar(2); n := n * 2; v := c || '|'; return concat(w, n, v, c = 'ab', n::numeric(4,1), c::char(9), '|'); end $$;
select lengths_kept();
