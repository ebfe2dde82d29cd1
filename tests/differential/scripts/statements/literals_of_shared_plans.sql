-- Statements that differ in literals share a plan from the third one on: what a literal means must not have gone into it.
CREATE TABLE lit (id bigint PRIMARY KEY, s int2, n numeric(6,2), f float8, c char(4), v varchar(3), d date);

INSERT INTO lit (id, n, v) VALUES (1, 5, 'a');
INSERT INTO lit (id, n, v) VALUES (2, 12, 'ab');
INSERT INTO lit (id, n, v) VALUES (3, 12345, 'abc');
INSERT INTO lit (id, n, v) VALUES (4, -0, 'abcd');
INSERT INTO lit (id, n, v) VALUES (5, 007, 'abc  ');
INSERT INTO lit (id, n, v) VALUES (3000000000, 7, '');
INSERT INTO lit (id, n, v) VALUES (6, 12.345, 'x');
INSERT INTO lit (id, n, v) VALUES (7, 99.995, 'x');
INSERT INTO lit (id, n, v) VALUES (8, 9999.995, 'x');
INSERT INTO lit (id, n, v) VALUES (9, 1e3, 'x');
INSERT INTO lit (id, s, f) VALUES (20, 1, 1);
INSERT INTO lit (id, s, f) VALUES (21, -2, -0);
INSERT INTO lit (id, s, f) VALUES (22, 70000, 2);
INSERT INTO lit (id, s, f) VALUES (23, -32768, 16777217);
INSERT INTO lit (id, c) VALUES (30, 'a');
INSERT INTO lit (id, c) VALUES (31, 'ab  ');
INSERT INTO lit (id, c) VALUES (32, 'abcd     ');
INSERT INTO lit (id, c) VALUES (33, 'abcde');
SELECT * FROM lit ORDER BY id;

SELECT -5::int2, 1;
SELECT -7::int2, 2;
SELECT -32767::int2, 3;
SELECT -32768::int2, 4;
SELECT 3 -5::int, 'a';
SELECT 3 -6::int, 'b';
SELECT 3 -7::int, 'c';

SELECT '1 day'::interval day, 1;
SELECT '1:00'::interval day, 2;
SELECT '1:30'::interval day, 3;
SELECT '3'::interval day, 4;
SELECT '2 days 4:00'::interval day, 5;

SELECT '2024-01-01'::date, '12'::numeric(4,1);
SELECT '2024-01-02'::date, '12.34'::numeric(4,1);
SELECT '2024-02-30'::date, '1'::numeric(4,1);
SELECT '2024-01-03'::date, '1234.5'::numeric(4,1);
SELECT 'epoch'::date, '1'::numeric(4,2);

SELECT id, v FROM lit WHERE id > 1 ORDER BY 2, 1 LIMIT 2;
SELECT id, v FROM lit WHERE id > 2 ORDER BY 2, 1 LIMIT 3;
SELECT id, v FROM lit WHERE id > 3 ORDER BY 2, 1 LIMIT 4;
SELECT id, v FROM lit WHERE id > 3 ORDER BY 1, 2 LIMIT 4;
SELECT id, v FROM lit WHERE id > 3 ORDER BY 2, 1 LIMIT 4;
SELECT id, v FROM lit WHERE id > 0 ORDER BY 2, 1 LIMIT 1 OFFSET 2;
SELECT id, v FROM lit WHERE id > 0 ORDER BY 2, 1 LIMIT 2 OFFSET 1;
SELECT id, v FROM lit WHERE id > 0 ORDER BY 2, 1 LIMIT -2 OFFSET 1;
SELECT id, v FROM lit WHERE id > 0 ORDER BY 2, 1 LIMIT 2 OFFSET -1;
SELECT id, v FROM lit WHERE id > 0 ORDER BY 3, 1 LIMIT 2 OFFSET 1;

SELECT s, count(*) FROM lit WHERE id > 5 GROUP BY 1 ORDER BY 1 LIMIT 3;
SELECT s, count(*) FROM lit WHERE id > 6 GROUP BY 1 ORDER BY 1 LIMIT 2;
SELECT s, count(*) FROM lit WHERE id > 7 GROUP BY 1 ORDER BY 1 LIMIT 1;

SELECT id FROM lit WHERE 1 = 1 AND id = 1;
SELECT id FROM lit WHERE 1 = 1 AND id = 2;
SELECT id FROM lit WHERE 1 = 1 AND id = 3;
SELECT id FROM lit WHERE 0 = 1 AND id = 3;

UPDATE lit SET n = n + 1, v = 'b' WHERE id = 1 RETURNING n, v;
UPDATE lit SET n = n + 2, v = 'c' WHERE id = 1 RETURNING n, v;
UPDATE lit SET n = n + 3.5, v = 'd' WHERE id = 1 RETURNING n, v;
UPDATE lit SET n = n + 3, v = 'd' WHERE id = 1 RETURNING n, v;
UPDATE lit SET n = n + 99999, v = 'e' WHERE id = 1 RETURNING n, v;
UPDATE lit SET n = n + 4, v = 'too long' WHERE id = 1 RETURNING n, v;

WITH few AS (SELECT id FROM lit WHERE id < 4) SELECT count(*) FROM few WHERE id > 1;
WITH few AS (SELECT id FROM lit WHERE id < 5) SELECT count(*) FROM few WHERE id > 1;
WITH few AS (SELECT id FROM lit WHERE id < 9) SELECT count(*) FROM few WHERE id > 2;

DROP TABLE lit;
