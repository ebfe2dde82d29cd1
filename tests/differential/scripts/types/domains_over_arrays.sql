-- operators, functions and literals of domains over arrays and arrays of domains; counts of FETCH in PL/pgSQL
create domain gp_ints as int[]; create domain gp_txt as text; create domain gp_i as int;
create type gp_pt as (x int, y text);
select pg_typeof(null || '{1}'::gp_ints), pg_typeof('{1}'::gp_ints || null), pg_typeof('{2}' || '{1}'::gp_ints), pg_typeof('{1}'::gp_ints || '{2}');
select null || '{1}'::gp_ints, '{2}' || '{1}'::gp_ints, '{1}'::gp_ints || '{2}', '{1}'::gp_ints || 5, 5 || '{1}'::gp_ints, '{1}'::gp_ints || '{2}'::int[], '{1}'::gp_ints || '{2}'::gp_ints, '{1}'::gp_ints || 2.5, '{1}'::gp_ints || 7::gp_i;
select pg_typeof('{1}'::gp_ints || 2.5), pg_typeof('{1}'::gp_ints || 7::gp_i), pg_typeof(array_append('{1}'::gp_ints, null)), pg_typeof(array_cat(null, '{1}'::gp_ints)), pg_typeof(array_prepend(null, '{1}'::gp_ints));
select (null || '{1}'::gp_ints)[1:4], ('{1}'::gp_ints || null)[1], null || 'a'::gp_txt, null || array['a'::gp_txt];
select null = '{1}'::gp_ints, '{1}' = '{1}'::gp_ints, '{1}' && '{1}'::gp_ints, null @> '{1}'::gp_ints, '{1}'::gp_ints @> '{1}';
select array_position('{1}'::gp_ints, null), array_remove('{1,2}'::gp_ints, '1'), array_replace('{1}'::gp_ints, '1', null), array_length('{1}'::gp_ints, 1), unnest('{1}'::gp_ints), cardinality('{1}'::gp_ints);
select coalesce(null, '{1}'::gp_ints), pg_typeof(coalesce(null, '{1}'::gp_ints)), pg_typeof(coalesce('{2}', '{1}'::gp_ints)), pg_typeof(coalesce('{2}'::int[], '{1}'::gp_ints));
create function pg_temp.f4() returns setof int language plpgsql as $$ begin begin return next 1; return query select generate_series(2,3); return query execute 'select 4'; perform 1/0; exception when others then raise notice '% %', sqlstate, sqlerrm; end; return next 5; end $$;
select * from pg_temp.f4();
do $$ declare c refcursor; x int; begin open c scroll for select generate_series(1,5);   begin fetch relative 'a' from c into x; exception when others then raise notice '%', sqlerrm; end;  begin fetch absolute 99999999999 from c into x; exception when others then raise notice '%', sqlerrm; end;  begin fetch relative upper('empty') from c into x; exception when others then raise notice '%', sqlerrm; end; begin fetch absolute null from c into x; exception when others then raise notice '%', sqlerrm; end;  begin fetch absolute 2.6 from c into x; raise notice '%', x; exception when others then raise notice '%', sqlerrm; end;  begin move forward '2' from c; fetch c into x; raise notice '%', x; exception when others then raise notice '%', sqlerrm; end;  begin fetch absolute (select 1) from c into x; raise notice '%', x; exception when others then raise notice '%', sqlerrm; end; end $$;
drop type gp_pt; drop domain gp_ints, gp_txt, gp_i;
