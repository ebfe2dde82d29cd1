-- RAISE without a message says how its condition was named; VARIADIC wants an array.
do $$ begin raise division_by_zero; end $$;
do $$ begin raise using errcode = 'division_by_zero'; end $$;
do $$ begin raise using errcode = '22012'; end $$;
do $$ begin raise using errcode = 'division_by_zero', detail = 'd'; end $$;
do $$ begin raise using errcode = 'unique_violation', message = 'm'; end $$;
do $$ begin raise sqlstate 'AB123'; end $$;
do $$ begin raise using detail = 'd'; end $$;
do $$ begin begin raise using errcode = 'check_violation'; exception when check_violation then raise exception '% %', sqlstate, sqlerrm; end; end $$;
select concat(variadic 1);
select concat(variadic null);
select format('%s', variadic 'x');
select format('%s', variadic 'x'::text);
select concat_ws(',', variadic '1 2'::int2vector);
select json_build_array(variadic 1.5);
select num_nulls(variadic 1);
select jsonb_build_object(variadic row(1, 2));
select concat(variadic array[1, null, 2]), concat_ws(',', variadic null::int[]), format('%s-%s', variadic array['a', 'b']), num_nulls(variadic array[1, null]);
