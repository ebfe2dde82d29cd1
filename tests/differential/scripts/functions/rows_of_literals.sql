-- rows made of literals whose type nobody has said, where PL/pgSQL wants rows of a type
create type rt as (a int, b text, c numeric(4,1));
do $$ declare r rt; begin r := ('1', 2, 3.14); raise notice '%', r; end $$;
do $$ declare r rt; begin r := row('1', 2, '3.14'); raise notice '%', r; end $$;
do $$ declare r rt; begin r := (1, 'x'); raise notice '%', r; end $$;
do $$ declare r rt; begin r := ('z', 2, 3); raise notice '%', r; end $$;
do $$ declare r rt; begin r := (null, null, 7); raise notice '% % %', r, r.c, r.a is null; end $$;
do $$ declare r rt; begin select '5', 6, '7.77' into r; raise notice '%', r; end $$;
do $$ declare r rt := ('9', true, 1); begin raise notice '%', r; end $$;
create function g1() returns rt language plpgsql as $$ begin return ('1', 2, '3'); end $$; select g1();
create function g3() returns rt[] language plpgsql as $$ declare a rt[]; begin a[1] := ('1', 2, '3'); a[2] := row(5, 6, 7); return a; end $$; select g3();
create function g4(r rt) returns text language plpgsql as $$ begin r := ('8', '9', 10); return r; end $$; select g4(null);
create function g5() returns table (x int, y text) language plpgsql as $$ begin return query select '1', 2; end $$; select g5();
create function g6() returns record language plpgsql as $$ begin return ('1', 2); end $$; select g6(); select * from g6() as t(a int, b int); select * from g6() as t(a text, b int);
