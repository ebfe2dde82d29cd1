-- floats in JSON have as many digits as extra_float_digits says
create table fij (i int primary key, x float8, y float4);
insert into fij select g, g/3.0, g/7.0 from generate_series(1,4) g;
set extra_float_digits = 0;
select json_build_object('a', 0.1::float8 + 0.2), json_build_array(0.1::float8+0.2), jsonb_build_object('a', 0.1::float8+0.2);
select to_json(1.1::float4), row_to_json(row(0.1::float8+0.2)), to_jsonb(0.1::float8+0.2), array_to_json(array[0.1::float8+0.2]);
select jsonb_agg(x order by i), json_object_agg(i, y), jsonb_object_agg(x, y) from fij;
select json_build_object(0.1::float8+0.2, 1), json_agg(fij) from fij;
set extra_float_digits = -5;
select to_jsonb(x), to_json(y), row_to_json(fij), array_to_json(array[x]) from fij order by i;
select json_build_object('a', 'NaN'::float8, 'b', 'inf'::float8);
reset extra_float_digits;
select to_jsonb(x), to_json(y), row_to_json(fij) from fij order by i;
drop table fij;
