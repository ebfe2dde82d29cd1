-- what a default of a variable, and a declared cursor's query, may name: what was declared before
do $$ declare t text := 'outer'; begin declare t text := t || '!'; u text := t; begin raise notice '% %', t, u; end; end $$;
do $$ declare x int := x; begin end $$;
do $$ declare x int := y; y int := 1; begin end $$;
do $$ declare x int := 1; y int := x + 1; z int := y * 2; begin raise notice '% % %', x, y, z; end $$;
do $$ declare a int := 1; begin declare b int := a; a int := b + 10; c int := a; begin raise notice '% % %', a, b, c; end; end $$;
do $$ <<l>> declare a int := 1; begin declare a int := l.a + 1; begin raise notice '% %', a, l.a; end; end $$;
do $$ declare n int := 1; begin declare c cursor for select n; n int := 2; r int; begin open c; fetch c into r; raise notice '%', r; close c; end; end $$;
do $$ declare r record; begin r := row(1, 'x'); declare r int := 5; s int := r; begin raise notice '% %', r, s; end; end $$;
create function shows(a int) returns int language plpgsql as $$ declare a int := a + 1; b int := a; begin return b; end $$;
select shows(1);
create function names_itself(a int) returns text language plpgsql as $$ declare b text := b; begin return b; end $$;
select names_itself(1);
