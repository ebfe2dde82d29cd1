-- volatile columns beside set-returning functions: once for each row of theirs and once at their end, before or behind ORDER BY
create sequence s;
create table t (a int, b int);
insert into t values (3, 1), (1, 2), (2, 3);
create table made (n bigint, g int);
select nextval('s') n, generate_series(1, 2) g; select currval('s');
select * from (select nextval('s') n, generate_series(1, 2)) q; select currval('s');
select count(*), count(distinct r) from (select random() r, generate_series(1, 5)) q;
select nextval('s') n, generate_series(1, 2) g, generate_series(1, 3) h from t; select currval('s');
select generate_series(1, 0) g, nextval('s') from t; select currval('s');
select a, nextval('s') n, unnest(array[a, b]) from t where a > 9; select currval('s');

-- behind ORDER BY, unless it looks at them; the sets, too
select nextval('s') n, generate_series(1, 2) g from t order by a; select currval('s');
select nextval('s') n, generate_series(1, 2) g, a from t order by g, a; select currval('s');
select nextval('s') n, generate_series(1, 2) g from t order by n; select currval('s');
select nextval('s') n, generate_series(1, 2) g from t order by n, g; select currval('s');
select nextval('s') n, nextval('s') m, generate_series(1, 2) g from t order by n; select currval('s');
select a, generate_series(1, nextval('s') % 3) g from t order by a; select currval('s');
select distinct generate_series(1, 2) g, nextval('s') n from t order by n; select currval('s');

-- expressions over the sets come behind them
select nextval('s') n, generate_series(1, 2) + 1 g from t order by a; select currval('s');
select nextval('s') + generate_series(1, 2) from t order by a; select currval('s');
select nextval('s') n, generate_series(1, generate_series(1, 2)) g from t order by a; select currval('s');
select nextval('s') n, generate_series(1, generate_series(1, 2)) g, generate_series(1, 2) + 1 h from t order by a; select currval('s');
select nextval('s') n, generate_series(1, 2) + 1 g, generate_series(1, 2) h from t order by a; select currval('s');
select nextval('s') n, (jsonb_each('{"a":1,"b":2}')).* from t order by a; select currval('s');

-- in the order of the select list
select nextval('s') n, generate_series(1, 2) g, generate_series(nextval('s'), nextval('s') + 1) h; select currval('s');
select generate_series(nextval('s'), nextval('s') + 1) h, nextval('s') n, nextval('s') m; select currval('s');

-- only what LIMIT, EXISTS and a scalar sub-select ask for
select nextval('s') n, generate_series(1, 2) g from t limit 3; select currval('s');
select nextval('s') n, generate_series(1, 2) g from t limit 2 offset 1; select currval('s');
select nextval('s') n, generate_series(1, 2) g from t limit 0; select currval('s');
select nextval('s') n, generate_series(1, 2) g from t order by a limit 2; select currval('s');
select nextval('s') n, generate_series(1, 2) g, a from t order by g desc, a limit 2; select currval('s');
select nextval('s') n, generate_series(1, 2) g, a from t order by g desc, a limit 2 offset 1; select currval('s');
select nextval('s') n, generate_series(1, 2) + 1 g from t limit 3; select currval('s');
select nextval('s') n, generate_series(1, 2) + 1 g from t order by a limit 3; select currval('s');
select generate_series(1, nextval('s') % 3) g from t limit 2; select currval('s');
select nextval('s') n, generate_series(1, 2) g from t order by n limit 1; select currval('s');
select nextval('s') n, generate_series(1, 2) g from t order by n limit -1; select currval('s');
select count(*) from (select nextval('s') n, generate_series(1, 2) g from t limit 2) q; select currval('s');
select exists (select nextval('s') n, generate_series(1, 2) g from t); select currval('s');
select exists (select nextval('s') n, generate_series(1, 2) + 1 g from t); select currval('s');
select exists (select generate_series(1, nextval('s')) g from t); select currval('s');
select exists (select nextval('s') n, generate_series(1, 0) g from t); select currval('s');
select (select nextval('s') + generate_series(1, 2) from t); select currval('s');
select (select nextval('s') + generate_series(1, 1) from t limit 1); select currval('s');
select array(select nextval('s') + generate_series(1, 2) from t); select currval('s');

-- in sub-selects, windows, groups, WITH and set operations
select (select nextval('s') + a - a) n, generate_series(1, 2) g from t; select currval('s');
select (select nextval('s') + a - a) n, generate_series(1, 2) g from t order by a; select currval('s');
select (select nextval('s')) n, generate_series(1, 2) g from t order by a; select currval('s');
select (select nextval('s')) n, generate_series(1, 2) g, a from t order by g, a; select currval('s');
select nextval('s') n, array(select generate_series(1, 2)), a from t order by a; select currval('s');
select nextval('s') n, generate_series(1, 2) g, sum(a) over (order by a) from t order by a; select currval('s');
select nextval('s') n, generate_series(1, 2) g, count(*) from t group by a order by a; select currval('s');
select nextval('s') n, generate_series(1, 2) g, count(*) from t group by g order by g; select currval('s');
with q as (select nextval('s') n, generate_series(1, 2) g from t) select count(n) from q; select currval('s');
(select nextval('s') n, generate_series(1, 2) g) union all (select nextval('s') n, generate_series(1, 2) g); select currval('s');
select case when a > 1 then nextval('s') end n, generate_series(1, 2) g from t order by a; select currval('s');

-- what changes rows, and users' functions
insert into made select nextval('s'), generate_series(1, 2) from t;
select * from made order by n, g; select currval('s');
create function f() returns bigint language plpgsql as $$ begin return nextval('s'); end $$;
create function sets(n int) returns setof bigint language plpgsql as $$ begin for i in 1..n loop return next nextval('s'); end loop; end $$;
select f() n, generate_series(1, 2) g from t order by a; select currval('s');
select f() n, sets(2) g from t order by a; select currval('s');
create function seen() returns bigint language plpgsql as $$ begin return (select count(*) from made); end $$;
insert into made select seen(), generate_series(1, 2) from t;
select * from made order by n, g;
create view v as select nextval('s') n, generate_series(1, 2) g from t order by a;
select * from v; select currval('s');
