-- A client is told of a hundred objects, and of how many more there are.
create role many_owner;
create schema many authorization many_owner;
create table many.base (a int);
do $$ begin for i in 1..101 loop execute format('create view many.v%s as select a from many.base', lpad(i::text, 3, '0')); end loop; end $$;
drop table many.base;
drop schema many;
drop view many.v001;
drop table many.base;
drop schema many;
create schema more authorization many_owner;
do $$ begin for i in 1..104 loop execute format('create table more.t%s (a int)', lpad(i::text, 3, '0')); execute format('alter table more.t%s owner to many_owner', lpad(i::text, 3, '0')); end loop; end $$;
drop role many_owner;
drop schema many, more;
drop schema more cascade;
drop role many_owner;
drop owned by many_owner cascade;
drop role many_owner;
