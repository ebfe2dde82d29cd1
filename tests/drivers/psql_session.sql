\set ECHO all
CREATE TABLE sold (region text, month text, n int);
INSERT INTO sold VALUES ('north','jan',5),('north','feb',7),('south','jan',3),('south','mar',9);
SELECT region, month, sum(n) AS total FROM sold GROUP BY 1, 2 ORDER BY 1, 2 \crosstabview
SELECT region, month, sum(n) FROM sold GROUP BY 1, 2 ORDER BY 1 \crosstabview region month sum month
SELECT region, month, n FROM sold UNION ALL SELECT 'north','jan',1 \crosstabview
SELECT 1 AS a \crosstabview
\set FETCH_COUNT 3
SELECT g, g * g AS square FROM generate_series(1, 8) g;
SELECT 10 / g FROM generate_series(0, 8) g;
INSERT INTO sold SELECT 'east', 'apr', g FROM generate_series(1, 4) g RETURNING n;
SELECT * FROM sold WHERE n > 100;
WITH w AS (SELECT 1 AS x) SELECT * FROM w;
VALUES (1), (2), (3), (4);
\pset format csv
SELECT g, 'x' FROM generate_series(1, 5) g;
\pset format aligned
\unset FETCH_COUNT
SELECT 1 AS one, 'two' AS two, NULL AS three \gset got_
\echo :got_one :'got_two' :{?got_three}
SELECT 1 AS one UNION ALL SELECT 2 \gset
SELECT 1 AS one WHERE false \gset
SELECT format('SELECT %s AS %I;', g, 'Col ' || g) FROM generate_series(1, 3) g \gexec
SELECT 'SELECT 1/0', 'SELECT 2' \gexec
SELECT 1::int2 AS a, 'x'::varchar(5) AS b, now() AS c, ARRAY[1.5] AS d, '{}'::jsonb AS e, interval '1 s' \gdesc
SELECT $1::int + 1 AS p \gdesc
CREATE TABLE IF NOT EXISTS sold (a int) \gdesc
SELECT * FROM nothing_here \gdesc
SELECT 1 AS x \gx
SELECT 3 AS x \g (format=unaligned tuples_only=on)
SELECT 1/0;
\errverbose
INSERT INTO nosuch VALUES (1);
\errverbose
\set VERBOSITY verbose
SELECT 1 +;
\set VERBOSITY sqlstate
SELECT 1/0;
\set VERBOSITY terse
SELECT zz FROM sold;
\set VERBOSITY default
\set SHOW_CONTEXT always
\set ON_ERROR_ROLLBACK on
BEGIN;
INSERT INTO sold VALUES ('west', 'may', 1);
SELECT 1/0;
INSERT INTO sold VALUES ('west', 'may', 2);
\echo :LAST_ERROR_SQLSTATE :SQLSTATE :ROW_COUNT :ERROR
COMMIT;
SELECT count(*) FROM sold WHERE region = 'west';
\set ON_ERROR_ROLLBACK interactive
\set AUTOCOMMIT off
SELECT 1;
\echo after
ROLLBACK;
\set AUTOCOMMIT on
\set SINGLELINE off
\encoding
\encoding SQL_ASCII
\encoding UTF8
\encoding NOSUCH
\set x '''quoted'' "names"'
SELECT :'x' AS lit, :"x";
\if :{?x}
\echo defined
\else
\echo not
\endif
SELECT 1 \; SELECT 2 \; SELECT 3;
\set SHOW_ALL_RESULTS off
SELECT 1 \; SELECT 2;
\set SHOW_ALL_RESULTS on
CREATE SEQUENCE turns;
SELECT 6 / (3 - nextval('turns')) AS left \watch 0.01
\copy sold TO 'FOLDER/out.csv' WITH (FORMAT csv, HEADER, DELIMITER ';', FORCE_QUOTE (region))
TRUNCATE sold;
\copy sold FROM 'FOLDER/out.csv' WITH (FORMAT csv, HEADER MATCH, DELIMITER ';')
\copy (SELECT * FROM sold ORDER BY n, region LIMIT 3) TO STDOUT WITH (FORMAT csv, NULL 'nil')
\copy sold (region, n) FROM STDIN
x	1
y	2
\.
\copy sold FROM STDIN WITH csv
a,b,notanumber
\.
\copy sold FROM PROGRAM 'printf "p\tq\t5\n"'
\copy (SELECT count(*) FROM sold) TO PROGRAM 'cat > FOLDER/counted.txt'
\! cat FOLDER/counted.txt
\copy nosuch TO STDOUT
\copy sold FROM '/nonexistent'
COPY sold TO STDOUT \g FOLDER/out.txt
\copy sold FROM 'FOLDER/out.txt'
SELECT count(*), sum(n) FROM sold;
\sf now
CREATE FUNCTION doubled(a int) RETURNS int LANGUAGE sql AS 'SELECT a * 2';
\sf doubled
\sf+ doubled(int)
\sf nosuch
\ef nosuch
\ef doubled
;
SELECT doubled(21);
CREATE VIEW many_sold AS SELECT * FROM sold WHERE n > 3;
\sv many_sold
\prompt 'say: ' said
hello
\echo :said
SELECT lo_from_bytea(4711, 'of psql');
COMMENT ON LARGE OBJECT 4711 IS 'a comment';
\lo_list
\lo_list+
\dl
\lo_export 4711 'FOLDER/lob.txt'
\lo_unlink 4711
\lo_unlink 4711
\lo_import '/nonexistent'
\lo_export 4711 'FOLDER/lob.txt'
\conninfo
\timing on
SELECT 1 AS timed;
\timing off
\pset
\c - - - 1
\c
