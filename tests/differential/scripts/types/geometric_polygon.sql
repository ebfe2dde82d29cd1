-- every operator and function of polygon, over odd values: zero length, NaN, infinite, huge, hardly different
create table points (id int, v point);
insert into points values (1, '(0,0)'), (2, '(-10,0)'), (3, '(-3,4)'), (4, '(5.1,34.5)'), (5, '(1e-300,-1e-300)'), (6, '(1e300,Infinity)'), (7, '(Infinity,-1e300)'), (8, '(NaN,NaN)'), (9, '(10,10)'), (10, '(1.0000001,1)'), (11, '(1,1)'), (12, '(0.5,3)'), (99, null);
create table polygons (id int, v polygon);
insert into polygons values (1, '((2,0),(2,4),(0,0))'), (2, '((3,1),(3,3),(1,0))'), (3, '((0,0))'), (4, '((0,1),(0,1))'), (5, '((0,0),(4,0),(4,4),(0,4))'), (6, '((1,1),(2,1),(2,2),(1,2))'), (7, '((0,0),(4,0),(4,4),(2,2),(0,4))'), (8, '((4,4),(0,4),(0,0),(4,0))'), (9, '((NaN,1),(2,2),(1,0))'), (10, '((1,2),(7,8),(5,6),(3,-4))'), (99, null);
select id, # v from polygons where id < 99 order by id;
select id, @@ v from polygons where id < 99 order by id;
select id, box(v) from polygons where id < 99 order by id;
select id, circle(v) from polygons where id < 99 order by id;
select id, npoints(v) from polygons where id < 99 order by id;
select id, path(v) from polygons where id < 99 order by id;
select id, point(v) from polygons where id < 99 order by id;
select a.id, b.id, a.v <-> b.v, a.v <@ b.v from points a, polygons b order by a.id, b.id;
select a.id, b.id, a.v <-> b.v, a.v @> b.v from polygons a, points b order by a.id, b.id;
select a.id, b.id, a.v && b.v, a.v &< b.v, a.v &<| b.v, a.v &> b.v, a.v <-> b.v, a.v << b.v, a.v <<| b.v, a.v <@ b.v, a.v >> b.v, a.v @> b.v, a.v |&> b.v, a.v |>> b.v, a.v ~= b.v from polygons a, polygons b order by a.id, b.id;
