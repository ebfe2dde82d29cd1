-- cash_words, hash_record, btrecordimagecmp, timeofday: what they answer, and for which arguments they have no answer
select cash_words(v::money) from unnest(array['0', '0.01', '0.10', '0.20', '1', '1.01', '10.10', '19.19', '20', '21', '99.99', '100', '101', '110', '119', '120', '121', '510', '999', '1000', '1010', '100000', '123456.78', '1000000', '12345678.9', '-1', '-0.05', '92233720368547758.07', '-92233720368547758.08', '2000000000000']) v;
select cash_words(null);
create type pair as (a int, b text);
create type mixed as (n numeric, at timestamptz, many int[], inner_one pair, day date);
select hash_record(row(1, 'a'::text)), hash_record(row(1, 'a')::pair), hash_record_extended(row(1, 'a')::pair, 0), hash_record_extended(row(1, 'a')::pair, 42);
select hash_record(row(null, null)::pair), hash_record(null::pair), hash_record(row(1.10, '2026-01-01 00:00+00', '{1,null,3}', null, '2026-01-01')::mixed);
select hash_record(row(1.1)) = hash_record(row(1.10)), hash_record(row(point(1, 2)));
select hash_record_extended(row(1.5::float8, 'x'::name, true, null::int), -7), hash_record(row());
select btrecordimagecmp(row(1), row(2)), btrecordimagecmp(row('b'::text), row('a'::text)), btrecordimagecmp(row(point(1, 2)), row(point(1, 2)));
select timeofday() ~ '^[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d\.\d{6} \d{4} \S+$';
