-- every operator and function of point, over odd values: zero length, NaN, infinite, huge, hardly different
create table points (id int, v point);
insert into points values (1, '(0,0)'), (2, '(-10,0)'), (3, '(-3,4)'), (4, '(5.1,34.5)'), (5, '(1e-300,-1e-300)'), (6, '(1e300,Infinity)'), (7, '(Infinity,-1e300)'), (8, '(NaN,NaN)'), (9, '(10,10)'), (10, '(1.0000001,1)'), (11, '(1,1)'), (12, '(0.5,3)'), (99, null);
select id, box(v) from points where id < 99 order by id;
select a.id, b.id, a.v + b.v, a.v - b.v, a.v <-> b.v, a.v << b.v, a.v <<| b.v, a.v <> b.v, a.v <^ b.v, a.v >> b.v, a.v >^ b.v, a.v ?- b.v, a.v ?| b.v, a.v |>> b.v, a.v ~= b.v from points a, points b order by a.id, b.id;
select point '(1e-300,-1e-300)' * point '(1e-300,-1e-300)';
select point '(1e300,Infinity)' * point '(1e300,Infinity)';
select a.id, b.id, a.v * b.v from points a, points b where not (a.id = 5 and b.id = 5) and not (a.id = 6 and b.id = 6) and not (a.id = 6 and b.id = 7) and not (a.id = 7 and b.id = 6) and not (a.id = 7 and b.id = 7) order by a.id, b.id;
select point '(0,0)' / point '(0,0)';
select point '(0,0)' / point '(1e-300,-1e-300)';
select a.id, b.id, a.v / b.v from points a, points b where (a.id = 1 and b.id in (2, 3, 4, 8, 9, 10, 11, 12) or a.id = 2 and b.id in (2, 3, 4, 8, 9, 10, 11, 12) or a.id = 3 and b.id in (2, 3, 4, 8, 9, 10, 11, 12) or a.id = 4 and b.id in (2, 3, 4, 8, 9, 10, 11, 12) or a.id = 5 and b.id in (2, 3, 4, 8, 9, 10, 11, 12) or a.id = 6 and b.id in (1, 2, 3, 4, 8, 9, 10, 11, 12) or a.id = 7 and b.id in (1, 2, 3, 4, 8, 9, 10, 11, 12) or a.id = 8 and b.id in (1, 2, 3, 4, 8, 9, 10, 11, 12) or a.id = 9 and b.id in (2, 3, 4, 8, 9, 10, 11, 12) or a.id = 10 and b.id in (2, 3, 4, 8, 9, 10, 11, 12) or a.id = 11 and b.id in (2, 3, 4, 8, 9, 10, 11, 12) or a.id = 12 and b.id in (2, 3, 4, 8, 9, 10, 11, 12)) order by a.id, b.id;
select a.id, b.id, slope(a.v, b.v), isvertical(a.v, b.v), ishorizontal(a.v, b.v), box(a.v, b.v), lseg(a.v, b.v) from points a, points b order by a.id, b.id;
select a.id, b.id, line(a.v, b.v) from points a, points b where not a.v ~= b.v and a.id not in (5, 6) and b.id not in (5, 6) order by a.id, b.id;
