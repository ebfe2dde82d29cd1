-- What || and its kin make of a value: its cast to text, which is not what it prints for inet, booleans and char(n).
-- also: local
create schema tov;
set search_path = tov;
create domain address as inet;
create table t (i inet, c cidr, ch char(5), bo boolean, m macaddr, tx text, d address);
insert into t values ('10.0.0.1', '10.0.0.0/8', 'ab', true, '08:00:2b:01:02:03', 't', '10.0.0.2'), ('::1/64', '::/0', '', false, null, 'u', '::1');
select 'p:' || i, 'p:' || c, 'p:' || ch || ':', 'p:' || bo, 'p:' || m, 'p:' || d from t;
select i || tx, c || tx, ch || tx, bo || tx, tx || i, tx || ch || tx, d || tx from t;
select concat(i, c, ch, bo, d), concat_ws('|', i, ch, bo, d), format('%s %s %s', i, ch, bo) from t;
select quote_literal(i), quote_nullable(i), quote_literal(d), quote_literal(ch), quote_literal(bo), quote_nullable(m) from t;
select i::text, d::text, text(i), i::varchar(6), upper(i::text), string_agg(i::text, ',') from t group by i, d order by i;
select to_json(i), array_to_string(array[i], ','), json_build_object(i, i) from t;
prepare p(inet) as select 'p:' || $1, $1 || 'q';
execute p('1.2.3.4');
deallocate p;
drop schema tov cascade;
