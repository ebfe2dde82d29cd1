-- functions of built-in aggregates that have a value of SQL for a state, called and as parts of aggregates of one's own
SELECT float8_accum('{4,140,2900}'::float8[], 100), float4_accum('{4,140,2900}'::float8[], 100), float8_avg('{4,140,2900}'), float8_avg('{0,0,0}'), float8_var_pop('{4,140,2900}'),float8_var_samp('{4,140,2900}'),float8_stddev_pop('{4,140,2900}'),float8_stddev_samp('{4,140,2900}');
SELECT float8_accum('{4,140}'::float8[], 100);
SELECT float8_regr_combine('{3,60,200,750,20000,2000}'::float8[], '{2,180,200,740,57800,-3400}'::float8[]), float8_combine('{3,60,200}'::float8[], '{2,180,200}'::float8[]);
SELECT float8_regr_accum('{4,140,2900,1290,83075,15050}'::float8[], 200, 100);
select int4_avg_accum('{2,10}',5), int2_avg_accum('{2,10}',5::int2), int4_avg_accum_inv('{2,10}',5), int8_avg('{3,10}'), int8_avg('{0,0}'), int2int4_sum('{3,10}'),int2int4_sum('{0,10}');
select int4_sum(null,5), int4_sum(3,null), int4_sum(3,4), int2_sum(1,2::int2), int8_sum(null,3), int8_sum(1.5,3), int8inc_any(3,'x'::text), int8dec_any(3,null::int), int8inc_float8_float8(3,1,2);
select interval_accum('{1 day,0 s}', '2 days'), interval_accum_inv('{1 day,00:00:00.000002}', '2 days'), interval_combine('{1 day,00:00:00.000002}','{1 day,00:00:00.000003}'), interval_avg('{3 days,00:00:00.000002}'), interval_avg('{3 days,0 s}');
select float8_corr('{4,140,2900,1290,83075,15050}'),float8_covar_pop('{4,140,2900,1290,83075,15050}'),float8_covar_samp('{4,140,2900,1290,83075,15050}'),float8_regr_avgx('{4,140,2900,1290,83075,15050}'),float8_regr_avgy('{4,140,2900,1290,83075,15050}'),float8_regr_sxx('{4,140,2900,1290,83075,15050}'),float8_regr_syy('{4,140,2900,1290,83075,15050}'),float8_regr_sxy('{4,140,2900,1290,83075,15050}'),float8_regr_slope('{4,140,2900,1290,83075,15050}'),float8_regr_intercept('{4,140,2900,1290,83075,15050}'),float8_regr_r2('{4,140,2900,1290,83075,15050}');
select int8_avg('{1}');
create aggregate myavg(int) (sfunc=int4_avg_accum, stype=int8[], finalfunc=int8_avg, initcond='{0,0}');
create aggregate myvar(float8) (sfunc=float8_accum, stype=float8[], finalfunc=float8_var_samp, initcond='{0,0,0}', combinefunc=float8_combine, parallel=safe);
create aggregate mycorr(float8,float8) (sfunc=float8_regr_accum, stype=float8[], finalfunc=float8_corr, initcond='{0,0,0,0,0,0}');
create aggregate mysum(int) (sfunc=int4_sum, stype=int8, sortop='<');
create aggregate mycnt("any") (sfunc=int8inc_any, stype=int8, initcond='0');
create aggregate mybig(int8) (sfunc=int8_avg_accum, stype=internal, finalfunc=numeric_poly_avg, serialfunc=int8_avg_serialize, deserialfunc=int8_avg_deserialize, combinefunc=int8_avg_combine);
select myavg(x), myvar(x), mycorr(x,y), mysum(x), mycnt(x), mycnt(s), mybig(x) from (values (1,2.5,'a'),(2,3,null),(null,4,'c'),(7,1,'d')) v(x,y,s);
select x, myavg(x) over w, myvar(x) over w, mysum(x) over w, mybig(x) over w from (values (1,2.5,'a'),(2,3,null),(null,4,'c'),(7,1,'d')) v(x,y,s) window w as (order by x rows between 1 preceding and 1 following);
