-- ARRAY(SELECT ...) of arrays is what array_agg makes of them: alike, or refused.
select array(select g from generate_series(1, 3) g), array(select array[g, g] from generate_series(1, 2) g);
select array(select '{}'::int[]);
select array(select case g when 1 then array[1] else array[1, 2] end from generate_series(1, 2) g);
select array(select case g when 1 then array[1] end from generate_series(1, 2) g);
select array(select null::text[]), 1;
select array(select array[g] from generate_series(1, 0) g), array(select '[2:3]={1,2}'::int[] from generate_series(1, 2));
select array(select array[array[g, g]] from generate_series(1, 2) g), array_ndims(array(select array[array[g]] from generate_series(1, 2) g));
create table ao (a int[], b text[]);
insert into ao values ('{1,2}', '{x}'), ('{3,4}', '{y}');
select array(select a from ao order by a), array(select b from ao order by b), (array(select a from ao order by a))[2][1];
insert into ao values ('{5}', '{z}');
select array(select a from ao order by a);
select array(select b from ao o where o.a = i.a) from ao i order by i.b;
-- what is excluded is no stored row, and an alias of a join hides that of its USING
create table ek (k int primary key, v text);
insert into ek values (1, 'a');
insert into ek values (1, 'b') on conflict (k) do update set v = excluded.ctid::text;
insert into ek values (1, 'b') on conflict (k) do update set v = 'x' where excluded.tableoid > 0;
insert into ek values (1, 'b') on conflict (k) do update set v = ek.tableoid::regclass::text || excluded.v returning v;
select * from (ek join ao on true) as tx where tx.k = 1 order by tx.b;
select * from (ek a join ek b using (k) as x) as tx where x.k = 1;
select x.k, a.v from (ek a join ek b using (k) as x) where x.k = 1;
