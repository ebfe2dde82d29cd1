-- abbreviations that meant other offsets in other years, and zones as arguments
-- also: local
set timezone = 'UTC';
select timestamptz '2011-03-27 01:59:59 MSK', timestamptz '2011-03-27 02:00:00 MSK', timestamptz '2011-03-27 02:59:59 msk';
select timestamptz '2011-03-27 03:00:00 MSK', timestamptz '2011-03-27 01:00 MSD', timestamptz '2014-10-26 00:59:59 MSK';
select timestamptz '2014-10-26 01:00 MSK', timestamptz '1991-01-01 MSK', timestamptz '2020-07-01 12:00 MSK';
select timestamp '2011-03-27 02:00:00' at time zone 'MSK', timestamp '2014-10-26 01:00' at time zone 'MSK';
select timestamptz '2011-03-26 22:59:59 UTC' at time zone 'MSK', timestamptz '2011-03-26 23:00:00 UTC' at time zone 'MSK';
select timestamptz '2014-10-25 21:59:59 UTC' at time zone 'MSK', timestamptz '2014-10-25 22:00:00 UTC' at time zone 'MSK';
select make_timestamptz(2014, 12, 10, 10, 10, 10, '2');
select make_timestamptz(2014, 12, 10, 10, 10, 10, '+16');
select make_timestamptz(2014, 12, 10, 10, 10, 10, '-15:59');
select make_timestamptz(2014, 12, 10, 10, 10, 10, '+x');
select make_timestamptz(2014, 12, 10, 10, 10, 10, 'Nehwon/Lankhmar');
reset timezone;
select * from pg_timezone_abbrevs where abbrev in ('CET', 'CEST', 'EST', 'EDT', 'MSK', 'MSD', 'IST', 'JST', 'UTC', 'ART', 'Z') order by abbrev;
select count(*) from pg_timezone_abbrevs();
show timezone_abbreviations
