-- Sub-queries that read the queries around them from below set operations, grouping sets, outer joins, windows and each other.
-- also: local
CREATE TABLE o(a int);
INSERT INTO o VALUES (1), (9);
CREATE TABLE i(x int, y int);
INSERT INTO i VALUES (5, 1), (6, 2);
SELECT o.a, l.m FROM o, LATERAL (SELECT 0 m UNION ALL SELECT max(x) FROM i WHERE x < o.a) l ORDER BY 1, 2;
SELECT o.a, l.* FROM o, LATERAL (SELECT x, count(*) FROM i WHERE y < o.a GROUP BY ROLLUP (x) HAVING count(*) > 1) l ORDER BY 1, 2;
SELECT o.a, (SELECT max(x) FROM i WHERE x < o.a), (SELECT min(x) FROM i WHERE x < o.a) FROM o ORDER BY 1;
SELECT o.a, l.* FROM o, LATERAL (SELECT count(*) c, max(x) m FROM i WHERE x < o.a) l ORDER BY 1;
SELECT o.a, l.* FROM o, LATERAL (SELECT i.x, i2.y FROM i FULL JOIN i i2 ON i.x = i2.x AND i2.y < o.a) l ORDER BY 1, 2, 3;
SELECT o.a FROM o WHERE o.a NOT IN (SELECT x FROM i WHERE y < o.a UNION ALL SELECT y FROM i WHERE x < o.a) ORDER BY 1;
SELECT o.a FROM o WHERE o.a > ANY (WITH c AS (SELECT x FROM i WHERE y < o.a) SELECT x FROM c) ORDER BY 1;
SELECT o.a, (SELECT x FROM i WHERE y < o.a ORDER BY x LIMIT 1 OFFSET 1) FROM o ORDER BY 1;
SELECT o.a, (SELECT sum(x) OVER (ORDER BY y) FROM i WHERE y < o.a ORDER BY 1 DESC LIMIT 1) FROM o ORDER BY 1;
SELECT o.a, (SELECT count(*) FROM i WHERE x > o.a EXCEPT SELECT 2) FROM o ORDER BY 1;
SELECT o.a, l.* FROM o, LATERAL (SELECT GROUPING(x), x, sum(y) FROM i WHERE y < o.a GROUP BY GROUPING SETS ((x), ())) l ORDER BY 1, 2, 3;
SELECT o.a, l.* FROM o, LATERAL (SELECT GROUPING(x, y), x, y, sum(y) FROM i WHERE y < o.a - 8 GROUP BY CUBE (x, y) HAVING GROUPING(x) = 1) l ORDER BY 1, 2, 3, 4;
SELECT o.a, l.* FROM o, LATERAL (SELECT sum(y) FROM i WHERE y < o.a HAVING sum(y) IS NULL) l ORDER BY 1, 2;
SELECT o.a, l.*, k.* FROM o, LATERAL (VALUES (o.a), (1)) l(v), LATERAL (SELECT count(*) FROM i WHERE x > l.v AND y < o.a) k ORDER BY 1, 2, 3;
SELECT o.a, l.x, i.x FROM o, (LATERAL (SELECT x FROM i WHERE x < o.a) l RIGHT JOIN i ON l.x = i.x + 1) ORDER BY 1, 2, 3;
SELECT o.a, l.x, i.x FROM o, (LATERAL (SELECT x FROM i WHERE x < o.a) l FULL JOIN i ON l.x = i.x + 1) ORDER BY 1, 2, 3;
SELECT o.a, (SELECT count(*) FROM i WHERE EXISTS (SELECT x FROM i j WHERE j.y = i.y AND j.x > o.a UNION SELECT o.a WHERE i.y > 1)) FROM o ORDER BY 1;
