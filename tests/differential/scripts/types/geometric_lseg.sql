-- every operator and function of lseg, over odd values: zero length, NaN, infinite, huge, hardly different
create table points (id int, v point);
insert into points values (1, '(0,0)'), (2, '(-10,0)'), (3, '(-3,4)'), (4, '(5.1,34.5)'), (5, '(1e-300,-1e-300)'), (6, '(1e300,Infinity)'), (7, '(Infinity,-1e300)'), (8, '(NaN,NaN)'), (9, '(10,10)'), (10, '(1.0000001,1)'), (11, '(1,1)'), (12, '(0.5,3)'), (99, null);
create table lsegs (id int, v lseg);
insert into lsegs values (1, '(1,2),(3,4)'), (2, '(0,0),(6,6)'), (3, '(10,-10),(-3,-4)'), (4, '(-1000000,200),(300000,-40)'), (5, '(5,5),(5,5)'), (6, '(0,0),(0,5)'), (7, '(-1,3),(1,3)'), (8, '(NaN,1),(NaN,90)'), (9, '(1e200,0),(0,1e200)'), (99, null);
select id, ?- v from lsegs where id < 99 order by id;
select id, ?| v from lsegs where id < 99 order by id;
select id, @-@ v from lsegs where id < 99 order by id;
select id, @@ v from lsegs where id < 99 order by id;
select id, ishorizontal(v) from lsegs where id < 99 order by id;
select id, isvertical(v) from lsegs where id < 99 order by id;
select id, length(v) from lsegs where id < 99 order by id;
select id, point(v) from lsegs where id < 99 order by id;
select a.id, b.id, a.v # b.v, a.v ## b.v, a.v < b.v, a.v <-> b.v, a.v <= b.v, a.v <> b.v, a.v = b.v, a.v > b.v, a.v >= b.v, a.v ?# b.v, a.v ?-| b.v, a.v ?|| b.v from lsegs a, lsegs b order by a.id, b.id;
select a.id, b.id, a.v <-> b.v from lsegs a, points b order by a.id, b.id;
select a.id, b.id, a.v ## b.v, a.v <-> b.v, a.v <@ b.v from points a, lsegs b order by a.id, b.id;
select a.id, b.id, isparallel(a.v, b.v), isperp(a.v, b.v), close_lseg(a.v, b.v) from lsegs a, lsegs b where a.id < 8 and b.id < 8 order by a.id, b.id;
