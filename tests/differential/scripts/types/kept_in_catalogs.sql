-- what catalogs say of defaults of domains, of alignment, and of the columns of indexes
create schema s; create schema kc; set search_path = kc;
create sequence s.q0;
create domain d2 as numeric(10,2) default nextval('s.q0');
set search_path = s;
create domain kc.d3 as int default nextval('q0');
create type s.color as enum ('red'); create domain kc.d8 as s.color default 'red'; create domain kc.d9 as timestamptz default '2020-01-01 00:00+00';
select typname, typdefault, pg_get_expr(typdefaultbin, 0), pg_get_expr(typdefaultbin, 'pg_type'::regclass) from pg_type where typname in ('d2', 'd3', 'd8') order by 1;
set search_path = kc; set datestyle = german; set timezone = 'Asia/Tokyo';
select typname, typdefault, pg_get_expr(typdefaultbin, 0) from pg_type where typname in ('d2', 'd3', 'd8') order by 1;
alter sequence s.q0 rename to q1; alter type s.color rename to colour;
select typname, typdefault, pg_get_expr(typdefaultbin, 0) from pg_type where typname in ('d2', 'd3', 'd8') order by 1;
select domain_name, domain_default from information_schema.domains where domain_name in ('d2', 'd3', 'd8') order by 1;
alter domain d2 set default 5; alter domain d3 drop default;
create domain d4 as varchar(5) default 'a'; create domain d5 as text default null; create domain d6 as d4; create domain d7 as d2 default (1);
select typname, typdefault, pg_get_expr(typdefaultbin, 0) from pg_type where typname in ('d2', 'd3', 'd4', 'd5', 'd6', 'd7') order by 1;
reset datestyle; reset timezone;
create type comp as (a float8); create type comp2 as (a "char"); create type rr as range (subtype = int8); create type r4 as range (subtype = int4);
create type ee as enum ('a'); create domain dc as comp; create domain dca as comp[]; create domain dcb as dca; create domain dc2 as comp2;
create domain dc2a as dc2[]; create domain drr as rr; create domain drra as drr[]; create domain drm as r4[]; create domain dmm as rr; create domain dee as ee[];
create domain df as float8; create domain dfa as df[]; create domain dt as text; create domain dta as dt[]; create type rf as range (subtype = df); create domain drfa as rf[];
create type rc as range (subtype = "char"); create domain drca as rc[]; create domain ddee as ee; create domain ddeea as ddee[];
select typname, typalign, typstorage, typlen, typbyval from pg_type where typnamespace = 'kc'::regnamespace order by 1;
create table t (a ddee, b dt, c d3, d dta, e drr, f dc, g comp, h ddeea, i rr[], j drfa, k dfa);
create index i1 on t (a, b, c, d, e, f, g); create index i4 on t using gin (d); create index i5 on t using gist (e); create index i6 on t using hash (a);
create index i7 on t using brin (c); create index i8 on t (b) include (a, c); create index i9 on t using gin (h); create index i10 on t using gin (k);
select c.relname, attname, atttypid::regtype, attlen, attbyval, attalign, attstorage, attcollation from pg_attribute join pg_class c on c.oid = attrelid
where relnamespace = 'kc'::regnamespace and attnum > 0 and (c.relname ~ '^i[0-9]' or c.relname = 't') order by 1, attnum;
drop schema kc cascade; drop schema s cascade;
