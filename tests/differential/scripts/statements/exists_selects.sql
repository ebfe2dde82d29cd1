-- EXISTS asks for rows: what it selects, sorts and tells apart is not computed
-- also: local
create table t(a int, b text);
insert into t values (1,'x');
create view w as select a, 1/(a-1) z from t;
select exists(select z from w);
select exists(select z from w where z is not null);
select exists(select 1/(a-1) from t);
select exists(select z from (select 1/(a-1) z from t) s);
select 1 where exists(select z from w);
select exists(select distinct z from w);
select exists(select z from w limit 1);
select exists(select z from w order by z);
select exists(select z from w group by z);
select a from t where a in (select 1 from w);
create sequence sq;
select exists(select nextval('sq') from t), exists(select nextval('sq'));
select exists(select n from (select nextval('sq') n from t) s);
select last_value, is_called from sq;
select exists(select generate_series(1,0)), exists(select generate_series(1,a) from t);
select exists(select count(*) from t where false), exists(select 1 from t where false group by a), exists(select a from t group by a having a > 5);
select a from t where not exists(select z from w where w.a = t.a);
select a from t o where exists(select o.a, z, (select z from w limit 1) from w where w.a = o.a order by z, o.a);
select exists(with c as (select z from w) select * from c);
