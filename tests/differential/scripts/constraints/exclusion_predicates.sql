-- the condition of an exclusion constraint is its index's; what is of a domain is named as it was declared; arrays of domains that are NULL
create table ex (a int, x int4range, exclude using gist (x with &&) where (a is not null), exclude using gist ((int4range(a, a + 1)) with &&) where (a > 0));
select indexrelid::regclass, pg_get_indexdef(indexrelid), pg_get_expr(indpred, indrelid), pg_get_constraintdef(c.oid) from pg_index join pg_constraint c on conindid = indexrelid where contype = 'x' and indrelid = 'ex'::regclass order by 1;
select pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid), deptype from pg_depend where objid in (select indexrelid from pg_index where indrelid = 'ex'::regclass) order by 1, 2;
insert into ex values (null, '[1,2]'), (null, '[1,2]'), (1, '[1,2]');
insert into ex values (2, '[1,3]');
create table ex_like (like ex including all);
select pg_get_indexdef(conindid) from pg_constraint where conrelid = 'ex_like'::regclass order by 1;
alter table ex rename a to aa;
select pg_get_indexdef(indexrelid) from pg_index where indrelid = 'ex'::regclass order by 1;
alter table ex drop column aa;
select count(*) from pg_constraint where conrelid = 'ex'::regclass;
create type few as enum ('a', 'b');
create domain some as few;
create table of_some (a int, d some[] default null::few[], e some[] default null::some[], f some[] default null);
select attname, pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum where adrelid = 'of_some'::regclass order by 1;
insert into of_some values (1, null, '{a,null}', null::some[]);
select *, pg_typeof(null::some[]) from of_some;
create table by_some (b some) partition by range (b);
create table by_some_1 partition of by_some for values from (10) to (maxvalue);
create table refers (a int primary key);
create table referring (b some references refers);
create index plain on refers (a);
create table whole (a int) partition by range (a);
create table part partition of whole default;
create type typed as (b int);
alter table part of typed
