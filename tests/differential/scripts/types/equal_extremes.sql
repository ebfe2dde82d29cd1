-- of values that compare as equal min and max give the last that they meet, of character(n) the first; plain and over windows
create table eq (g int, iv interval, n numeric, c bpchar, f float8);
insert into eq values (1, '1 day', 1.0, 'a', 0), (2, '24:00', 1.00, 'a  ', '-0'), (3, '1 day', 1.000, 'a ', 0), (4, '-1 day', 0.5, ' ', -1);
select min(iv), max(iv), min(n), max(n), octet_length(min(c)), octet_length(max(c)), min(f), max(f) from (select * from eq where g < 4 order by g) q;
select g, min(iv) over w, max(iv) over w, max(n) over w, octet_length(max(c) over w), max(f) over w from eq window w as (order by g) order by g;
select g, min(iv) over w, max(iv) over w, min(n) over w, octet_length(max(c) over w) from eq window w as (order by g rows between 1 preceding and 1 following exclude current row) order by g;
select max(a) from (values (array[1.0]), (array[1.00])) v (a)
