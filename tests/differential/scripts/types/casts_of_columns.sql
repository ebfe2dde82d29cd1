-- also: local
-- Casts of values that only the query knows: edges of types, numerics without digits before the point, infinities as parameters.
select v::text, v::varchar(3), v || '', length(v::text) from (values (0.5), (-0.25), (0.00), (null)) s(v) order by v;
create table small (n numeric(2, 2), m numeric(3, 3));
insert into small values (0.5, -0.125), (0, 0);
select n::text, m::text, concat(n, '/', m), n::text::char(4) from small order by 1;
select v::oid, v::oid::bigint from (values (-1), (0), (-2147483648), (2147483647)) s(v) order by 1;
select v::int, v::oid::int from (values (4294967295::oid), (7::oid), (2147483648::oid)) s(v) order by 1;
select v::float8, v::float4 from (values ('0x1F'), (' -0x1p3 '), ('1e3')) s(v) order by 1;
select v::float8 from (values ('0xz')) s(v);
select v::timestamp from (values (date '5874897-12-31')) s(v);
select v::float8 from (values ('1e400'::jsonb)) s(v);
select v::float4 from (values ('1e40'::jsonb)) s(v);
select v::float4, v::float8 from (values ('1.5'::jsonb)) s(v);
select v::"char", v::"char"::int from (values (-1), (0), (65), (127), (-128)) s(v) order by v;
select v::"char", v::"char"::text from (values ('é'), ('abc'), (''), ('\377')) s(v) order by v;
select v::text, v::date from (values (timestamptz 'infinity')) s(v);
select v::text, v::date from (values (timestamptz '-infinity')) s(v);
select v::text, v::date from (values (timestamptz '2024-02-29 12:00+00')) s(v);
select v::text, v::date from (values (timestamp 'infinity')) s(v);
select v::text, v::date from (values (timestamp '-infinity')) s(v);
prepare p(timestamptz, timestamp) as select v < $1, v > $2 from (values (timestamptz '2024-02-29 12:00+00')) s(v);
execute p('infinity', '-infinity');
execute p('-infinity', 'infinity');
execute p(null, '2000-01-01');
-- fields of infinite moments, powers of many digits
select extract(year from v), extract(epoch from v), extract(day from v), date_part('century', v) from (values (timestamp 'infinity')) s(v);
select extract(epoch from v), extract(minute from v) from (values (timestamptz '-infinity')) s(v);
select extract(epoch from v), extract(isoyear from v) from (values (date 'infinity'), ('2024-02-29')) s(v) order by 1;
select power(v, 0.5), power(v, -0.1) from (values (123456789012345678901234567890.12345), (0.00001)) s(v) order by 1;
-- the least and greatest of numerics that no one form of 38 digits holds
create table wide (id int, a numeric(2, 2), b numeric(38, 10), f numeric(38, 0), g numeric(19, 18));
insert into wide values (1, 0.55, 1234567890123456789012345678.0123456789, 99999999999999999999999999999999999999, 1.000000000000000001), (2, -0.01, -0.5, -1, -0.5), (3, 0, 0, 0, 0), (4, null, null, null, null), (5, 0.99, 1e-10, 7, 9.5);
select id, least(a, f), greatest(a, f), least(f, b), greatest(b, f), least(b, g), greatest(id, f, b), least(f, 0.25) from wide order by id;
select to_date(v, 'IYYY-IW-ID') from (values ('2024-02-29'), ('2024-02-7'), ('2024-02-1'), ('2024-53-6')) s(v) order by 1;
