-- what is wrong with a literal, with HINT, DETAIL and CONTEXT
-- also: local
select e'wrong: \u061';
select e'wrong: \U0061';
select u&'wrong: \061';
select u&'wrong: \+0061';
select 1 as u&"wrong \061";
select e'x', u&'wrong: \061';
select u&'x', e'wrong: \u061';
select '{"abc":1:2}'::json;
select '{"abc":1:2}'::jsonb;
select json '[1,2', 1;
select cast(s as json) from (values ('{"a":')) v(s);
select 1 where '[1,]' = '[]'::jsonb;
select to_json(1)::jsonb = '{1:"abc"}';
select '(-1,0)'::tid, '(4294967295,65535)'::tid, '(-2147483648,1)'::tid;
select '(-2147483649,0)'::tid;
select '(4294967296,0)'::tid;
select 1 fetch first 2 rows with ties;
select 1 from pg_class order by 1 fetch first 1 row with ties for update skip locked;
