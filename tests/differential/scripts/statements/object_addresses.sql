-- pg_get_object_address: every kind of object, found and not, and lists that do not fit its kind
create table gentable (a serial primary key, b text default 'hello', constraint a_chk check (a > 0));
create domain gendom as int constraint positive check (value > 0);
create function genf(int, text default 'x') returns int language sql as 'select 1';
create aggregate genagg (int4) (sfunc = int4pl, stype = int4);
create procedure genproc(int4) language sql as '';
create view genview as select * from gentable;
create materialized view genmat as select 1 as one;
create trigger t before insert on gentable for each row execute function suppress_redundant_updates_trigger();
create policy genpol on gentable;
create text search configuration ats (parser = 'default');
create text search dictionary atd (template = simple);
select v.type, pg_describe_object(o.classid, o.objid, o.objsubid), o.classid::regclass, o.objsubid from (values
 ('table', '{gentable}'::text[], '{}'::text[]), ('index', '{gentable_pkey}', '{}'), ('sequence', '{gentable_a_seq}', '{}'),
 ('view', '{genview}', '{}'), ('materialized view', '{genmat}', '{}'), ('table column', '{gentable,b}', '{}'), ('table column', '{genview,a}', '{}'),
 ('aggregate', '{genagg}', '{int4}'), ('aggregate', '{pg_catalog,sum}', '{bigint}'), ('function', '{pg_catalog,pg_identify_object}', '{pg_catalog.oid,pg_catalog.oid,int4}'), ('function', '{genf}', '{int,text}'),
 ('procedure', '{genproc}', '{int4}'), ('type', '{pg_catalog._int4}', '{}'), ('type', '{"character varying(20)"}', '{}'), ('type', '{gendom}', '{}'), ('domain constraint', '{gendom}', '{positive}'),
 ('table constraint', '{gentable,a_chk}', '{}'), ('table constraint', '{gentable,gentable_pkey}', '{}'), ('cast', '{int8}', '{int4}'), ('collation', '{default}', '{}'),
 ('conversion', '{pg_catalog,koi8_r_to_mic}', '{}'), ('default value', '{gentable,b}', '{}'), ('language', '{plpgsql}', '{}'), ('operator', '{+}', '{int4,int4}'), ('operator', '{pg_catalog,||}', '{text,text}'),
 ('operator class', '{btree,int4_ops}', '{}'), ('operator family', '{btree,integer_ops}', '{}'), ('operator family', '{gin,pg_catalog,array_ops}', '{}'),
 ('trigger', '{gentable,t}', '{}'), ('rule', '{genview,_RETURN}', '{}'), ('text search parser', '{default}', '{}'), ('text search dictionary', '{atd}', '{}'), ('text search template', '{simple}', '{}'),
 ('text search configuration', '{ats}', '{}'), ('schema', '{pg_catalog}', '{}'), ('access method', '{btree}', '{}'), ('extension', '{plpgsql}', '{}'), ('policy', '{gentable,genpol}', '{}')
 ) v (type, n, a), lateral pg_get_object_address(v.type, v.n, v.a) o;
select classid, objid, objsubid from pg_get_object_address('tablespace', '{pg_default}', '{}');
select (pg_get_object_address('operator of access method', '{btree,integer_ops,1}', '{integer,int4}')).classid, (pg_get_object_address('function of access method', '{btree,integer_ops,2}', '{integer,integer}')).objsubid;
create function found_or_not() returns setof text language plpgsql as $$
declare t text; n text[]; a text[]; r record;
begin
 for t in values ('table'), ('index'), ('view'), ('foreign table'), ('table column'), ('aggregate'), ('function'), ('procedure'), ('type'), ('cast'), ('table constraint'), ('domain constraint'), ('conversion'), ('default value'),
   ('operator'), ('operator class'), ('operator family'), ('rule'), ('trigger'), ('text search parser'), ('text search dictionary'), ('text search configuration'), ('policy'), ('user mapping'), ('default acl'), ('transform'),
   ('operator of access method'), ('function of access method'), ('publication relation'), ('publication namespace'), ('language'), ('schema'), ('role'), ('database'), ('tablespace'), ('foreign-data wrapper'), ('server'), ('extension'),
   ('event trigger'), ('access method'), ('publication'), ('subscription'), ('collation'), ('statistics object'), ('large object'), ('domain'), ('composite type'), ('parameter acl'), ('toast table'), ('index column'), ('view column') loop
  for n in values ('{eins}'::text[]), ('{gentable,eins}'), ('{eins,zwei,drei}'), ('{eins,zwei,drei,vier}'), ('{nosp,zwei}'), ('{}'), (null), ('{null}') loop
   for a in values ('{}'::text[]), ('{integer}'), ('{integer,nope}'), ('{null}') loop
    begin
     select * into r from pg_get_object_address(t, n, a);
     return next format('%s %s %s: found', t, n, a);
    exception when others then return next format('%s %s %s: %s %s', t, n, a, sqlstate, sqlerrm);
    end;
   end loop;
  end loop;
 end loop;
end $$;
select * from found_or_not();
select pg_get_object_address('table', '{genview}', '{}');
select pg_get_object_address('view', '{gentable}', '{}');
select (pg_get_object_address('function', '{genagg}', '{int4}')).classid;
select pg_get_object_address('table column', '{gentable,nope}', '{}');
select pg_get_object_address('default value', '{gentable,c}', '{}');
select pg_get_object_address('default acl', '{postgres}', '{x}');
select pg_get_object_address('default acl', '{postgres,pg_catalog}', '{r}');
select pg_get_object_address('operator', '{+}', '{nope,int4}');
select pg_get_object_address('operator of access method', '{btree,integer_ops,99}', '{int4,int4}');
select pg_get_object_address('operator of access method', '{btree,integer_ops,x}', '{int4,int4}');
select pg_get_object_address('transform', '{int}', '{sql}');
select pg_get_object_address(null, '{a}', '{}');
select pg_get_object_address('stone', '{}', '{}');
set custom."bad-name" = 1;
set "bad name".x = 1;
select set_config('cu-s.x', '1', false);
set custom.good.name = 1;
show custom.good.name;
select to_regrole('foo.bar');
select to_regnamespace('foo.bar');
select 'foo.bar'::regrole;
select pg_size_bytes('1 B');
select pg_stat_force_next_flush(), pg_stat_clear_snapshot();
select pg_get_object_address('function', '{genproc}', '{int4}');
select pg_get_object_address('procedure', '{genf}', '{int,text}');
select pg_get_object_address('aggregate', '{genf}', '{int,text}');
