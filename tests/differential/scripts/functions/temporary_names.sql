-- what definitions call functions and types of the temporary schema, and parts of domains
create type pg_temp.pair as (a int, b text);
create function pg_temp.f(pair) returns int language sql as 'select 1';
create temp view v as select pg_temp.f(null::pair), null::pair as x, pg_temp.f(x.y) as z from (select row(1, 'a')::pair) x(y);
select pg_get_viewdef('v'::regclass), pg_get_functiondef('pg_temp.f'::regproc), format_type('pair'::regtype, null), pg_get_function_identity_arguments('pg_temp.f'::regproc);
select pg_function_is_visible('pg_temp.f'::regproc), f, z from v;
create temp table t (a int);
create function pg_temp.tr() returns trigger language plpgsql as 'begin return new; end';
create trigger t before insert on t for each row execute function pg_temp.tr();
select pg_get_triggerdef(oid), pg_get_triggerdef(oid, true) from pg_trigger where tgname = 't';
create type part as (r int, i int);
create domain parts as part[] check (value[1].r >= value[1].i);
create domain numbers as int[];
create table d (p parts, n numbers);
insert into d values (array[row(2, 1)::part, row(5, 6)::part], '{1,2,3}');
create view dv as select p[2], p[1].r, p[1].i, p[1:1] as s, n[2], n[2:] as t, (n)[1] + 1 as u from d;
select pg_get_viewdef('dv'::regclass), pg_get_viewdef('dv'::regclass, true);
select * from dv;
