-- What functions return as a domain: over a row in FROM, from PL/pgSQL; LIKE of a composite type; SETOF void.
create type pair as (r float8, i float8);
create domain falling as pair check ((value).r > (value).i);
create function mk(r float8, i float8) returns falling as 'select row(r, i)' language sql;
select mk(2, 1);
select mk(1, 2);
select * from mk(2, 1) m;
select m, m is not null from mk(2, 1) m;
select m.r, (m).i from mk(3, 1) m;
select * from mk(1, 2) m;
create function mks(r float8) returns setof falling as 'select row(r, i) from generate_series(1, 2) i' language sql;
select * from mks(5);
select m.i, m.ordinality from mks(5) with ordinality m;
create function mkp(r float8, i float8) returns falling as $$ begin return row(r, i); end $$ language plpgsql;
select * from mkp(5, 4);
create domain pos_int as int check (value > 0);
create function less_two(p1 pos_int) returns pos_int as $$
declare v pos_int := 1;
begin
    v := p1 - 1;
    return v - 1;
end $$ language plpgsql;
select less_two(3);
select less_two(2);
select less_two(1);
select less_two(0);
create function each(i int) returns setof pos_int as $$ begin return next i; return next i - 1; end $$ language plpgsql;
select * from each(2);
select * from each(1);
create function out_of(i int, out p pos_int) as $$ begin p := i; end $$ language plpgsql;
select * from out_of(0);
create table like_pair (like pair);
create table like_more (id int, like pair including all, x int);
select attname, atttypid::regtype from pg_attribute where attrelid = 'like_more'::regclass and attnum > 0 order by attnum;
create function nothing(a int) returns setof void language sql as 'select generate_series(1, a)';
select * from nothing(3);
select nothing(3);
drop function nothing;
drop table like_pair, like_more
