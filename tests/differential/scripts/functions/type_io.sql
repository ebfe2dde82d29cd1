-- also: local
-- Input and output functions of types called by their names, and functions of the server that answer at once.
create type mood as enum ('sad', 'glad');
create table io(k int primary key, t text, n numeric, d date, ts timestamptz, a int[], r int4range, j jsonb, b bytea, m mood, o oid, iv interval, u uuid);
insert into io values (1, '12', 1.50, '2024-02-29', '2024-02-29 12:00+02', '{1,null}', '[1,4)', '{"a": 1}', '\x00ff', 'glad', 7, '1 mon 02:03', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), (2, 'x', null, null, null, null, null, null, null, null, null, null, null);
select int2in('12'), int4in(' -7 '), int8in('9000000000'), float4in('1.5'), float8in('NaN'), boolin('yes'), textin('a b'), namein('n'), charin('ab'), byteain('\x01'), oidin('5');
select numeric_in('1.256', 0, -1), numeric_in('1.256', 0, ((5 << 16) | 2) + 4), varcharin('abc', 0, -1), varcharin('abc  ', 0, 7), bpcharin('ab', 0, 9), bit_in('101', 0, -1), varbit_in('1', 0, -1);
select varcharin('abcdef', 0, 7);
select date_in('2024-02-30');
select date_in('2024-02-29'), time_in('12:30', 0, -1), timestamp_in('2024-02-29 10:00:00.126', 0, 2), timestamptz_in('2024-02-29 10:00+02', 0, -1), interval_in('1 day', 0, -1), timetz_in('10:00+01', 0, -1);
select uuid_in('x');
select uuid_in('A0EEBC999C0B4EF8BB6D6BB9BD380A11'), inet_in('10.0.0.1/8'), cidr_in('10.0.0.0/8'), macaddr_in('08002b010203'), macaddr8_in('08002b0102030405'), pg_lsn_in('0/10'), cash_in('1.5');
select json_in('{"a" : 1}'), jsonb_in('{"a" : 1}'), jsonpath_in('$ . a'), tsvectorin('b a'), tsqueryin('a&b'), json_in('{');
select json_in('{"a" : 1}'), jsonb_in('{"a" : 1}'), jsonpath_in('$ . a'), tsvectorin('b a'), tsqueryin('a&b'), xid8in('5'), tidin('(0,1)'), int2vectorin('1 2'), oidvectorin('3');
select regclassin('pg_class'), regtypein('int4'), regprocin('now'), regroleout(10), regclassout('pg_type'), regtypein('nosuch');
select k, textout(t), numeric_out(n), date_out(d), timestamptz_out(ts), array_out(a), range_out(r), jsonb_out(j), byteaout(b), enum_out(m), oidout(o), interval_out(iv), uuid_out(u) from io order by k;
select textin(null), int4in(null), int4out(null), int4in(textout('12'::text)), int4in(textout(t)) from io where k = 1;
select int4in(textout(t)) from io order by k;
select record_out(row(1, 'a b', null)), pg_typeof(int4out(1)), pg_typeof(timeofday()), timeofday() ~ '^[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2}\.\d{6} \d{4} UTC$';
select pg_stat_clear_snapshot(), pg_stat_force_next_flush(), pg_replication_origin_session_is_setup(), pg_replication_origin_xact_reset();
select pg_replication_origin_session_reset();
select pg_replication_origin_session_progress(true);
select k, ntile(nullif(k, 3)) over (order by k desc), ntile(k) over (order by k) from generate_series(1, 7) k;
select array['1 2'::int2vector], array['1 2'::oidvector, null], pg_typeof(array['1 2'::int2vector, '3']), array_agg(x) from (values ('1'::int2vector), ('2 3')) v(x);
select '25'::text::regclass;
select (t || '')::regclass from io where k = 1;
drop table io; drop type mood;
