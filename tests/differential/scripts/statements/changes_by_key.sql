-- UPDATE and DELETE whose rows one key finds take a short way from the second time on, with and without RETURNING.
-- also: local
CREATE TABLE keyed (id int PRIMARY KEY, a int NOT NULL CHECK (a < 100), b text, c int GENERATED ALWAYS AS (a * 2) STORED);
CREATE INDEX ON keyed (b);
INSERT INTO keyed (id, a, b) SELECT i, i, 'b' || i % 3 FROM generate_series(1, 30) AS g (i);

UPDATE keyed SET a = a + 1 WHERE id = 1 RETURNING *;
UPDATE keyed SET a = a + 1 WHERE id = 2 RETURNING *;
UPDATE keyed SET a = a + 1 WHERE id = 3 RETURNING *;
UPDATE keyed SET a = a + 1 WHERE id = 99 RETURNING *;
UPDATE keyed SET a = a + 99 WHERE id = 4 RETURNING *;
UPDATE keyed SET a = NULL WHERE id = 4 RETURNING *;
UPDATE keyed SET a = 7, id = 31 WHERE id = 5 RETURNING id, (SELECT count(*) FROM keyed k WHERE k.a = keyed.a);
UPDATE keyed SET a = 8, id = 32 WHERE id = 6 RETURNING id, (SELECT count(*) FROM keyed k WHERE k.a = keyed.a);
UPDATE keyed SET a = 9, id = 31 WHERE id = 7 RETURNING id, (SELECT count(*) FROM keyed k WHERE k.a = keyed.a);
UPDATE keyed SET a = 9, id = 33 WHERE id = 7 RETURNING id, (SELECT count(*) FROM keyed k WHERE k.a = keyed.a);

DELETE FROM keyed WHERE id = 8;
DELETE FROM keyed WHERE id = 9;
DELETE FROM keyed WHERE id = 9;
DELETE FROM keyed WHERE id = 10 RETURNING id, a, c, keyed;
DELETE FROM keyed WHERE id = 11 RETURNING id, a, c, keyed;
DELETE FROM keyed WHERE id = 11 RETURNING id, a, c, keyed;
DELETE FROM keyed WHERE id = 12 AND a = 1 RETURNING id, a, c, keyed;
DELETE FROM keyed WHERE id = 12 AND a = 12 RETURNING id, a, c, keyed;

BEGIN;
UPDATE keyed SET b = 'x' WHERE id = 13 RETURNING id, b;
UPDATE keyed SET b = 'y' WHERE id = 13 RETURNING id, b;
DELETE FROM keyed WHERE id = 13 RETURNING id, b;
DELETE FROM keyed WHERE id = 13 RETURNING id, b;
UPDATE keyed SET b = 'z' WHERE id = 13 RETURNING id, b;
SELECT id, b FROM keyed WHERE id = 13;
SELECT id, b FROM keyed WHERE id = 14;
ROLLBACK;
SELECT id, b FROM keyed WHERE id = 13;
SELECT k.id, o.id FROM keyed k JOIN keyed o ON o.id = k.a WHERE k.id = 13;
SELECT k.id, o.id FROM keyed k JOIN keyed o ON o.id = k.a WHERE k.id = 14;
SELECT k.id, o.id FROM keyed k JOIN keyed o ON o.id = k.a WHERE k.id = 15;
SELECT k.id, 1 / (o.id - 16) FROM keyed k JOIN keyed o ON o.id = k.a WHERE k.id = 15;
SELECT k.id, 1 / (o.id - 16) FROM keyed k JOIN keyed o ON o.id = k.a WHERE k.id = 17;
SELECT k.id, 1 / (o.id - 16) FROM keyed k JOIN keyed o ON o.id = k.a WHERE k.id = 16;
SELECT k.id, 1 / (o.id - 16) FROM keyed k JOIN keyed o ON o.id = k.a WHERE k.id = 18;

-- what follows from a change keeps to the general way
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES keyed ON DELETE CASCADE);
INSERT INTO child VALUES (1, 20), (2, 21), (3, 22);
DELETE FROM keyed WHERE id = 20;
DELETE FROM keyed WHERE id = 21;
DELETE FROM keyed WHERE id = 22 RETURNING id;
SELECT * FROM child;
SELECT * FROM keyed ORDER BY id;

SELECT 1;
SELECT 2;
SELECT 1 / 0;
SELECT 1 WHERE 1 = 2;
SELECT 3, 'x';
SELECT 4, 'y';
SELECT 5, 'z';
DROP TABLE child, keyed;
