-- hash functions
-- also: local
select hashtext(''), hashtext('a'), hashtext('abc'), hashtext('abcdefghijk'), hashtext('abcdefghijkl'), hashtext('abcdefghijklm'), hashtext(repeat('xyz', 30)), hashtext('é€');
select hashtextextended('', 0), hashtextextended('a', 0), hashtextextended('abc', 1), hashtextextended('abcdefghijklm', -5), hashtextextended(repeat('xyz', 30), 4294967296);
select hashint4(0), hashint4(1), hashint4(-1), hashint4(2147483647), hashint2(7::int2), hashint2(-7::int2), hashint8(1), hashint8(-1), hashint8(5000000000), hashint8(-5000000000);
select hashint4extended(0, 0), hashint4extended(1, 5), hashint8extended(-1, 9), hashint8extended(5000000000, 0), hashint2extended(3::int2, 1);
select hashoid(16384), hashchar('a'), hashname('abc'), hashbpchar('abc  '::char(5)), hashbpcharextended('abc  '::char(5), 3), hashnameextended('abc', 1);
select hashfloat8(0), hashfloat8('-0'), hashfloat8(1.5), hashfloat8('NaN'), hashfloat8('inf'), hashfloat4(1.5::real), hashfloat8extended(0, 7), hashfloat8extended(1.5, 7), hashfloat4extended('NaN', 1);
select uuid_hash('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), uuid_hash_extended('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 2);
select abs(hashtext(n::text)) % 4 as bucket, count(*) from generate_series(1, 100) n group by 1 order by 1;
select pg_try_advisory_lock(hashtext('mine')), pg_advisory_unlock(hashtext('mine'));
