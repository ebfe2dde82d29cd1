-- offsets of frames that are negative, or that RANGE has no use for
-- also: local
create table w as select i, i % 3 g, i * 1.5 n, i::float8 f, date '2024-01-01' + i d from generate_series(1, 5) i;
select sum(i) over (order by i rows between 1 preceding and -1 following) from w;
select sum(i) over (order by i rows between -1 preceding and 1 following) from w;
select sum(i) over (order by i groups between -3 preceding and 1 following) from w;
select sum(i) over (order by i groups between 3 preceding and -1 following) from w;
select sum(i) over (order by i range between -1 preceding and 1 following) from w;
select sum(i) over (order by i range between 1 preceding and -1 following) from w;
select sum(i) over (order by n range between -1.5 preceding and 1 following) from w;
select sum(i) over (order by f range between 'NaN' preceding and 1 following) from w;
select sum(i) over (order by d range between '-1 day' preceding and '1 day' following) from w;
select sum(i) over (order by i rows between 1 preceding and null following) from w;
