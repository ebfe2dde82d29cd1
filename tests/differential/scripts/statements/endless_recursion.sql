-- a recursive term hands its rows on at once: LIMIT ends what would never end
with recursive q(n) as (
  select 1
  union all
  (with recursive x as (select 2 as n union all (select n from q union all select n from x)) select n from x)
) select * from q limit 5;
with recursive t(n) as (select 1 union all select n + 1 from t) select sum(n) from (select n from t limit 4000) s;
