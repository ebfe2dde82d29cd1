-- constants of definitions as the reader's DateStyle, IntervalStyle, TimeZone and bytea_output show them
create table s (
  d date default '2001-02-03' check (d > '2000-01-31'),
  t timestamp default '2001-02-03 04:05:06',
  z timestamptz default '2001-02-03 04:05:06+00',
  i interval default '1 day 02:00',
  b bytea default '\x616200',
  f float8 default 1.1 check (f <> 0.1::float8 * 3),
  r daterange default '[2001-02-03,2001-03-04)',
  a date[] default '{2001-02-03}',
  x text default 'x',
  g interval generated always as (i + '1 day') stored
);
create index s_k on s ((d + '1 day'::interval)) where d > '2001-02-03' and x <> 'a';
create view v as select d - '2001-02-03'::date as n, i + '1 day -1:00' as i from s where z > '2001-02-03 04:05:06+00' and b <> '\x00ff' order by t + '1 mon';
create domain later date default '2001-02-03' check (value > '2001-01-31');
create function one(d date default '2001-02-03', i interval default '1:00') returns boolean language sql return d > '2001-05-06' and i = '2 days';
create function two() returns interval language sql begin atomic select interval '1 year 2 days -3 hours'; end;
create function tr() returns trigger language plpgsql as 'begin return new; end';
create trigger tr before insert on s for each row when (new.d > '2001-02-03') execute function tr();
create table p (d date, i interval) partition by range (d, i);
create table p1 partition of p for values from ('2001-02-03', '1 day') to ('2001-03-04', maxvalue);
create table l (z timestamptz) partition by list (z);
create table l1 partition of l for values in ('2001-02-03 04:05:06+00', null);
create table h (b bool) partition by list (b);
create table h1 partition of h for values in (true);
create policy p on s using (d > '2001-02-03');
create view shown (n, what) as
  select attnum::int, pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum where adrelid = 's'::regclass
  union all select 20, pg_get_constraintdef(oid) from pg_constraint where conrelid = 's'::regclass and conname = 's_d_check'
  union all select 21, pg_get_constraintdef(oid, true) from pg_constraint where conrelid = 's'::regclass and conname = 's_f_check'
  union all select 22, pg_get_constraintdef(oid) from pg_constraint where contypid = 'later'::regtype
  union all select 30, pg_get_indexdef('s_k'::regclass)
  union all select 31, pg_get_indexdef('s_k'::regclass, 1, true)
  union all select 40, pg_get_viewdef('v'::regclass)
  union all select 41, pg_get_viewdef('v'::regclass, true)
  union all select 50, pg_get_functiondef('one'::regproc)
  union all select 51, pg_get_functiondef('two'::regproc)
  union all select 52, pg_get_function_arguments('one'::regproc)
  union all select 60, pg_get_triggerdef(oid) from pg_trigger where tgname = 'tr'
  union all select 61, pg_get_expr(polqual, polrelid) from pg_policy where polrelid = 's'::regclass
  union all select 70, pg_get_expr(relpartbound, oid) from pg_class where oid = 'p1'::regclass
  union all select 71, pg_get_expr(relpartbound, oid) from pg_class where oid = 'l1'::regclass
  union all select 72, pg_get_expr(relpartbound, oid) from pg_class where oid = 'h1'::regclass
  union all select 73, pg_get_partition_constraintdef('p1'::regclass)
  union all select 80, column_default from information_schema.columns where table_name = 's' and column_name = 'd' and table_schema = current_schema;
select * from shown order by 1, 2;
set datestyle = 'postgres, mdy';
set intervalstyle = postgres_verbose;
set timezone = 'America/New_York';
set bytea_output = escape;
select * from shown order by 1, 2;
set datestyle = 'sql, dmy';
set intervalstyle = sql_standard;
set extra_float_digits = 0;
select * from shown order by 1, 2;
set datestyle = german;
set intervalstyle = iso_8601;
select * from shown order by 1, 2;
insert into s default values;
select d, z, i, g from s;
select * from v;
reset datestyle;
reset intervalstyle;
reset timezone;
reset bytea_output;
reset extra_float_digits;
select * from shown order by 1, 2;
