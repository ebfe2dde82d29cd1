-- classes of the default one's family
create table oc (a inet, c cidr, v varchar(5), t text, b bytea, n int);
create index oc1 on oc (a cidr_ops, a inet_ops, c cidr_ops, c inet_ops);
create index oc2 on oc (v varchar_ops, t varchar_ops, v text_ops, v, t text_pattern_ops);
create index oc3 on oc using hash (a cidr_ops);
create index oc4 on oc using hash (v varchar_ops);
create unique index oc5 on oc (c cidr_ops desc nulls last, v varchar_ops);
create index oc6 on oc (n cidr_ops);
create index oc7 on oc (n record_image_ops);
create index oc8 on oc (t nothing_ops);
select regexp_replace(indexdef, ' ON [^ ]+', '') from pg_indexes where tablename = 'oc' order by indexname;
select c.relname, array(select opcname from unnest(i.indclass) with ordinality u(o, n) join pg_opclass p on p.oid = u.o order by u.n) from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = 'oc'::regclass order by 1;
insert into oc select ('10.0.0.' || g)::inet, ('10.0.' || g || '.0/24')::cidr, 'v' || g % 7, 't', '', g from generate_series(1, 50) g;
select n from oc where a = '10.0.0.7';
select n from oc where c < '10.0.5.0/24' order by c;
select n from oc where a between '10.0.0.48' and '10.0.0.60' order by 1;
insert into oc (c, v) values ('10.0.1.0/24', 'v1');
insert into oc (c, v) values ('10.0.1.0/24', 'v1') on conflict (c, v) do nothing;
drop table oc;
