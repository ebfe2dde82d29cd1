-- subscripts of jsonb: texts that are numbers find elements of arrays, numbers find keys of objects
-- also: local
create table j (id int, v jsonb, k text);
insert into j values (1, '{"a": 1, "b": [1, "x", null, {"c": 2.50}], "1": "one"}', 'a'), (2, '[1, 2, [3, 4], {"a": "b"}]', '2'), (3, '"str"', '0'), (4, null, null);
select id, v['a'], v['b'][1], v['b'][-1], v['b']['3']['c'], v[1], v['1'], v[2]['0'], v['2'][1], v['-1']['a'], v[' 1'], v['+1'], v['1x'], v['zz']['y'] from j order by id;
select id, v[k], v[k]['0'], v[null], v[id], v['b'][id], v[id::text] from j order by id;
select v[1.5] from j;
select v[1:2] from j;
select v[id + 1] from j order by id;
