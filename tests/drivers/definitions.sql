-- What users define beside tables: functions and what calls them, types of all kinds, exclusion constraints.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE spot AS (x int, y int, label varchar(10));
CREATE TYPE pair AS (one spot, two spot[]);
CREATE FUNCTION time_diff(x time, y time) RETURNS float8 LANGUAGE sql STRICT IMMUTABLE AS 'SELECT EXTRACT(EPOCH FROM (x - y))';
CREATE TYPE timerange AS RANGE (subtype = time, subtype_diff = time_diff);
CREATE TYPE floatrange AS RANGE (subtype = float8, subtype_diff = float8mi);
CREATE TYPE textrange AS RANGE (subtype = text, collation = "C", multirange_type_name = texts);
CREATE FUNCTION small(a int) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT a < 100';
CREATE FUNCTION twice(a int, b int DEFAULT 2) RETURNS int LANGUAGE sql IMMUTABLE RETURN a * b;
CREATE DOMAIN dm AS int DEFAULT twice(3) CHECK (small(VALUE)) CONSTRAINT pos CHECK (VALUE > 0) NOT NULL;
CREATE DOMAIN high AS spot CHECK ((VALUE).y > 5);
CREATE DOMAIN fr AS floatrange CHECK (NOT isempty(VALUE));
CREATE SEQUENCE nums START 10;
CREATE FUNCTION next_num() RETURNS bigint LANGUAGE sql AS $$SELECT nextval('nums')$$;
CREATE TABLE t (id bigint DEFAULT next_num() PRIMARY KEY, a int DEFAULT twice(4) CHECK (small(a)), m mood, s spot, p pair, d dm, f floatrange DEFAULT floatrange(1, 2), fm floatmultirange, tr timerange, w textrange[], g int GENERATED ALWAYS AS (twice(a)) STORED, EXCLUDE USING gist (tr WITH &&) WHERE (small(a)));
CREATE INDEX t_twice ON t (twice(a), f) WHERE small(a);
CREATE TABLE ex (r int4range, room int, EXCLUDE USING gist (r WITH &&) DEFERRABLE INITIALLY DEFERRED);
CREATE FUNCTION rows_of(n int) RETURNS SETOF t LANGUAGE sql STABLE AS 'SELECT * FROM t WHERE a = n';
CREATE FUNCTION outs(IN a int, OUT b int, OUT c text) LANGUAGE sql AS 'SELECT a, a::text';
CREATE FUNCTION tab(n int) RETURNS TABLE (x int, y spot) LANGUAGE sql ROWS 5 COST 7 PARALLEL SAFE AS 'SELECT n, ROW(n, n, ''z'')::spot';
CREATE FUNCTION vari(VARIADIC xs int[]) RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path TO 'public' AS 'SELECT xs[1]';
CREATE FUNCTION width(r floatrange) RETURNS float8 LANGUAGE sql IMMUTABLE RETURN upper(r) - lower(r);
CREATE FUNCTION total() RETURNS bigint BEGIN ATOMIC SELECT sum(a) FROM t; END;
CREATE PROCEDURE put(n int) LANGUAGE sql AS 'INSERT INTO t (a) VALUES (n)';
CREATE VIEW v AS SELECT id, (s).x, twice(a) AS tw, width(f) AS wd, f * '[1,9)'::floatrange AS c FROM t WHERE small(a) WITH CHECK OPTION;
COMMENT ON TYPE floatrange IS 'floats';
COMMENT ON FUNCTION twice(int, int) IS 'doubles';
COMMENT ON DOMAIN dm IS 'small';
INSERT INTO t (a, m, s, p, d, fm, tr, w) VALUES (5, 'ok', '(1,2,a)', '("(1,2,b)","{""(3,4,c)""}")', 7, '{[1,2),[3,4]}', '[08:00,09:00)', '{"[a,b)",empty}'), (6, 'sad', NULL, NULL, 8, NULL, '[10:00,11:00)', NULL);
CREATE TABLE shapes (id int PRIMARY KEY, p point DEFAULT '(1,2)', b box[], c circle CHECK (c @> point '(0,0)'), g polygon, around box GENERATED ALWAYS AS (box(c)) STORED, EXCLUDE USING gist (c WITH &&));
CREATE INDEX shapes_g ON shapes USING gist (g);
CREATE INDEX shapes_p ON shapes USING spgist (p) WHERE id > 0;
CREATE VIEW corners AS SELECT id, p[0] AS x, b[1] AS first, p <-> '(0,0)'::point AS far FROM shapes;
INSERT INTO shapes (id, p, b, c, g) VALUES (1, '(0.1,NaN)', '{(1,1),(0,0);NULL}', '<(0,0),1e20>', '((1,2),(3,4))'), (2, NULL, NULL, NULL, NULL);
INSERT INTO ex VALUES ('[1,5)', 1), ('[7,9)', 2);
SELECT lo_from_bytea(30001, decode(repeat('0123456789abcdef', 3000), 'hex')), lo_create(30002);
SELECT lo_put(30002, 100000, 'behind a hole');
ALTER LARGE OBJECT 30002 OWNER TO pg_monitor;
GRANT SELECT ON LARGE OBJECT 30001 TO PUBLIC;
COMMENT ON LARGE OBJECT 30001 IS 'pages of it';
-- aggregates: both syntaxes, all options
CREATE FUNCTION step(bigint, integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'select $1 + coalesce($2, 0)';
CREATE FUNCTION step_back(bigint, integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'select $1 - coalesce($2, 0)';
CREATE FUNCTION told(bigint, integer) RETURNS text LANGUAGE plpgsql AS 'begin return ''<'' || $1 || ''>''; end';
CREATE AGGREGATE adding(integer) (
    SFUNC = step, STYPE = bigint, SSPACE = 16, FINALFUNC = told, FINALFUNC_EXTRA, FINALFUNC_MODIFY = SHAREABLE, COMBINEFUNC = int8pl,
    INITCOND = '0', MSFUNC = step, MINVFUNC = step_back, MSTYPE = bigint, MSSPACE = 8, MFINALFUNC = told, MFINALFUNC_EXTRA,
    MFINALFUNC_MODIFY = READ_WRITE, MINITCOND = '5', SORTOP = >, PARALLEL = SAFE
);
CREATE AGGREGATE "of any"(*) (SFUNC = int8inc, STYPE = bigint, INITCOND = '0');
CREATE AGGREGATE collected(anycompatible) (SFUNC = array_append, STYPE = anycompatiblearray, INITCOND = '{}');
CREATE AGGREGATE of_old (BASETYPE = text, SFUNC = textcat, STYPE = text);
CREATE FUNCTION named_step(integer[], integer, VARIADIC integer[]) RETURNS integer[] LANGUAGE sql AS 'select $1 || $2 || $3';
CREATE AGGREGATE named(a integer, VARIADIC rest integer[]) (SFUNC = named_step, STYPE = integer[], INITCOND = '{}');
CREATE AGGREGATE exact(numeric) (
    SFUNC = numeric_avg_accum, STYPE = internal, FINALFUNC = numeric_avg, COMBINEFUNC = numeric_avg_combine, SERIALFUNC = numeric_avg_serialize,
    DESERIALFUNC = numeric_avg_deserialize, PARALLEL = RESTRICTED
);
CREATE AGGREGATE chosen(double precision ORDER BY anyelement) (
    SFUNC = ordered_set_transition, STYPE = internal, FINALFUNC = percentile_disc_final, FINALFUNC_EXTRA
);
CREATE AGGREGATE placed(VARIADIC "any" ORDER BY VARIADIC "any") (
    SFUNC = ordered_set_transition_multi, STYPE = internal, FINALFUNC = rank_final, FINALFUNC_EXTRA, HYPOTHETICAL
);
COMMENT ON AGGREGATE adding(integer) IS 'adds';
COMMENT ON AGGREGATE "of any"(*) IS 'counts';
REVOKE ALL ON FUNCTION collected(anycompatible) FROM PUBLIC;
CREATE VIEW aggregated AS
SELECT adding(g) AS a, "of any"(*) AS n, collected(DISTINCT g) AS c, chosen(0.5) WITHIN GROUP (ORDER BY g DESC) AS m, named(g, VARIADIC ARRAY[g] ORDER BY g) AS v
FROM generate_series(1, 3) AS g;
CREATE TEXT SEARCH DICTIONARY few (TEMPLATE = simple, STOPWORDS = french, ACCEPT = false);
CREATE TEXT SEARCH DICTIONARY "Stems" (TEMPLATE = snowball, LANGUAGE = porter);
CREATE TEXT SEARCH CONFIGURATION seeking (COPY = french);
ALTER TEXT SEARCH CONFIGURATION seeking ALTER MAPPING FOR word, asciiword WITH few, "Stems", simple;
ALTER TEXT SEARCH CONFIGURATION seeking DROP MAPPING FOR url, host;
CREATE TEXT SEARCH CONFIGURATION bare (PARSER = default);
ALTER TEXT SEARCH CONFIGURATION bare OWNER TO pg_monitor;
COMMENT ON TEXT SEARCH CONFIGURATION seeking IS 'mine';
COMMENT ON TEXT SEARCH DICTIONARY few IS 'of French';
CREATE TABLE sought (id int, body text, c regconfig DEFAULT 'seeking', w tsvector GENERATED ALWAYS AS (to_tsvector('seeking', body)) STORED, CHECK (to_tsvector('seeking', body) <> ''));
CREATE INDEX sought_f ON sought USING gin (to_tsvector('seeking', body));
CREATE VIEW seen AS SELECT id, ts_lexize('few', body) AS l, ts_headline('seeking', body, 'x'::tsquery) AS h FROM sought;
INSERT INTO sought (id, body) VALUES (1, 'la maison'), (2, 'le chat');
