-- json_to_record and its kin: objects as rows
-- also: local
select * from jsonb_to_record('{"a": 1, "b": "x", "c": [1, 2], "d": {"e": 1}, "f": null}') as t(a int, b text, c int[], d jsonb, f text, g int);
select * from json_to_record('{"a": 1, "b": "x", "c": [1, 2], "d": {"e": 1}, "f": null}') as t(a int, b text, c int[], d json, f text, g int);
select * from jsonb_to_record('{"a": 1}') as t(a text);
select * from jsonb_to_recordset('[{"a": 1, "b": "x"}, {"b": true, "a": 2.6}]') as t(a numeric(3,1), b text);
select * from json_to_recordset('[{"a": 1, "b": "x"}, {"b": {"x": 1}}, {}]') as t(a int, b text);
select * from jsonb_to_recordset('[]') as t(a int);
select * from jsonb_to_recordset(null) as t(a int);
select * from jsonb_to_record(null) as t(a int, b int);
select t.a + 1, upper(b) from jsonb_to_recordset('[{"a": "3", "b": "x"}, {"b": "yy", "a": 2}]') as t(a int, b text) where a > 1 order by 1;
select * from rows from (jsonb_to_recordset('[{"a": 1}, {"a": 2}]') as (a int), generate_series(1, 3)) as t(a, n) order by n;
select * from jsonb_to_record('[1]') as t(a int);
select * from jsonb_to_record('1') as t(a int);
select * from json_to_record('[1]') as t(a int);
select * from json_to_record('"x"') as t(a int);
select * from jsonb_to_recordset('{"a": 1}') as t(a int);
select * from jsonb_to_recordset('3') as t(a int);
select * from json_to_recordset('{"a": 1}') as t(a int);
select * from json_to_recordset('3') as t(a int);
select * from jsonb_to_recordset('[1]') as t(a int);
select * from json_to_recordset('[1]') as t(a int);
select * from jsonb_to_record('{"a": "x"}') as t(a int);
select * from jsonb_to_record('{"a": {"b": 1}}') as t(a text);
select * from jsonb_to_record('{"a": "2020-01-02", "b": "12:00", "c": "{1,2}", "d": [["a", null], ["c", "d"]]}') as t(a date, b time, c int[], d text[]);
select * from jsonb_to_record('{"a": 5}') as t(a int[]);
select * from json_to_record('{"a": 1, "a": 2}') as t(a int);
select * from jsonb_to_record('{"a": 1}') as t;
select * from jsonb_to_record('{"a": "abcdef"}') as t(a varchar(3));
create table j (id int, v jsonb);
insert into j values (1, '[{"k": "a", "n": 1}, {"k": "b", "n": 2}]'), (2, '[]'), (3, '[{"k": "c"}]');
select id, k, n from j, jsonb_to_recordset(v) as t(k text, n int) order by id, k;
select id, k, n from j left join lateral jsonb_to_recordset(v) as t(k text, n int) on true order by id, k;
select sum(n) from j, jsonb_to_recordset(v) as t(k text, n int);
select t from jsonb_to_record('{"a": 1, "b": "x"}') as t(a int, b text);
select json_populate_recordset(null::record, '[]');
select jsonb_populate_recordset(null::record, '[]');
select json_populate_recordset(null::record, null);
select json_populate_recordset(row(1, 2), '[]');
select * from json_populate_recordset(null::record, '[]') as t(a int);

-- A json is read as a whole, escapes and all, whatever columns are asked for.
select * from json_to_record('{"a":"x","b":"\u0000"}') as t(a text);
select * from json_to_record('{"a":["\u0000"]}') as t(a json);
select * from json_to_record('{"\u0000":1}') as t(a text);
select * from json_to_record('{"a":{"b":"\ud800"}}') as t(a text);
select * from json_to_recordset('[{"a":"\u0000"}]') as t(b text);
select json_populate_record(row('x'::text, 1), '{"c":"\u0000"}');
select json_populate_recordset(row('x'::text, 1), '[{"c":"\u0000"}]');
