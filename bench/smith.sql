-- What make smith asks about beside the tables of TPC-H: each kind of type, relation and function. Taken by PostgreSQL 15 too.
CREATE TYPE mood AS ENUM ('sad', 'calm', 'glad');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN code AS varchar(8) CHECK (VALUE ~ '^[a-z]+[0-9]*$');
CREATE TYPE place AS (street text, number integer, at point);
CREATE TYPE person AS (name text, feels mood, home place);
CREATE TYPE span AS RANGE (subtype = double precision);

CREATE TABLE numbers (
  id integer PRIMARY KEY, a_smallint smallint, a_bigint bigint, a_real real, a_double double precision, a_numeric numeric,
  a_scaled numeric(12,3), a_money money, an_oid oid, a_flag boolean, a_positive positive);
CREATE TABLE strings (
  id integer PRIMARY KEY, a_text text, a_varchar varchar(20), a_char char(6), a_name name, a_letter "char", some_bytes bytea,
  some_bits bit(8), more_bits varbit, a_code code, a_uuid uuid, a_vector tsvector, a_query tsquery);
CREATE TABLE times (
  id integer PRIMARY KEY, a_date date, a_time time, a_timetz timetz, a_timestamp timestamp, a_timestamptz timestamptz(3), an_interval interval);
CREATE TABLE networks (id integer PRIMARY KEY, an_inet inet, a_cidr cidr, a_macaddr macaddr, a_macaddr8 macaddr8);
CREATE TABLE shapes (id integer PRIMARY KEY, a_point point, a_line line, a_lseg lseg, a_box box, a_path path, a_polygon polygon, a_circle circle);
CREATE TABLE documents (id integer PRIMARY KEY, a_json json, a_jsonb jsonb, a_path jsonpath);
CREATE TABLE ranges (
  id integer PRIMARY KEY, an_int4range int4range, an_int8range int8range, a_numrange numrange, a_tsrange tsrange, a_tstzrange tstzrange,
  a_daterange daterange, a_span span, an_int4multirange int4multirange, a_datemultirange datemultirange);
CREATE TABLE made (
  id integer PRIMARY KEY REFERENCES numbers, feels mood NOT NULL, lives place, who person, feelings mood[], places place[], integers integer[],
  texts text[], numerics numeric[], stamps timestamptz[], jsons jsonb[], spans span[], doubled integer GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE counted (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, word text DEFAULT 'none' UNIQUE, feels mood DEFAULT 'calm', CHECK (word <> ''));

CREATE TABLE by_range (k integer NOT NULL, day date NOT NULL, word text, amount numeric(10,2), PRIMARY KEY (k, day)) PARTITION BY RANGE (day);
CREATE TABLE by_range_1 PARTITION OF by_range FOR VALUES FROM (MINVALUE) TO ('2020-01-01');
CREATE TABLE by_range_2 PARTITION OF by_range FOR VALUES FROM ('2020-01-01') TO ('2021-01-01') PARTITION BY LIST (k);
CREATE TABLE by_range_2_few PARTITION OF by_range_2 FOR VALUES IN (1, 2, 3);
CREATE TABLE by_range_2_rest PARTITION OF by_range_2 DEFAULT;
CREATE TABLE by_range_rest PARTITION OF by_range DEFAULT;
CREATE TABLE by_hash (k bigint PRIMARY KEY, word text) PARTITION BY HASH (k);
CREATE TABLE by_hash_0 PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE by_hash_1 PARTITION OF by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX strings_word ON strings (lower(a_text));
CREATE INDEX times_date ON times (a_date) WHERE a_date IS NOT NULL;

INSERT INTO numbers SELECT g, g % 300 - 150, g::bigint * 1000003, g / 3.0, sqrt(g), g / 7.0, g * 1.5, g::numeric::money, g, g % 3 = 0, g FROM generate_series(1, 40) g;
INSERT INTO numbers (id) VALUES (41);
INSERT INTO numbers VALUES (42, 32767, 9223372036854775807, 'NaN', 'Infinity', 1e30, -0.001, '-0.01', 4294967295, NULL, 2147483647);
INSERT INTO strings SELECT g, 'text ' || g, 'varchar ' || g, 'c' || g, 'name' || g, chr(64 + g)::"char", decode(lpad(to_hex(g), 2, '0'), 'hex'), g::bit(8), g::bit(8)::varbit,
  'c' || g, ('00000000-0000-4000-8000-' || lpad(g::text, 12, '0'))::uuid, to_tsvector('simple', 'word number ' || g), to_tsquery('simple', 'word & ' || g) FROM generate_series(1, 30) g;
INSERT INTO strings (id, a_text, some_bytes) VALUES (31, '', ''), (32, NULL, NULL), (33, 'ÄÖ € 𝄞', '\x00ff');
INSERT INTO times SELECT g, date '2020-01-01' + g * 17, time '00:00' + g * interval '37 minutes', (time '00:00' + g * interval '11 minutes')::timetz, timestamp '2020-02-29 12:00' + g * interval '5 days 1 second',
  timestamptz '2020-03-01 00:00+00' + g * interval '1 month', g * interval '1 day 1 hour' - interval '1 month' FROM generate_series(1, 30) g;
INSERT INTO times VALUES (31, 'infinity', '24:00', '00:00+14', '-infinity', 'infinity', '-1 year'), (32, NULL, NULL, NULL, NULL, NULL, NULL), (33, '4713-01-01 BC', NULL, NULL, '294200-01-01', NULL, '100000 years');
INSERT INTO networks SELECT g, ('10.0.' || g || '.1/24')::inet, ('10.' || g || '.0.0/16')::cidr, ('08:00:2b:01:02:' || lpad(to_hex(g), 2, '0'))::macaddr, ('08:00:2b:01:02:03:04:' || lpad(to_hex(g), 2, '0'))::macaddr8 FROM generate_series(1, 20) g;
INSERT INTO networks VALUES (21, '::1', '2001:db8::/32', NULL, NULL);
INSERT INTO shapes SELECT g, point(g, -g), line(point(0, g), point(1, 2 * g)), lseg(point(0, 0), point(g, g)), box(point(0, 0), point(g, g)), path(polygon(box(point(0, 0), point(g, 1)))),
  polygon(box(point(0, 0), point(g, g))), circle(point(g, g), g) FROM generate_series(1, 20) g;
INSERT INTO shapes (id) VALUES (21);
INSERT INTO documents SELECT g, json_build_object('k', g, 'list', json_build_array(1, 'two', NULL)), jsonb_build_object('k', g, 'in', jsonb_build_object('deep', g % 3)), '$.k' FROM generate_series(1, 20) g;
INSERT INTO documents VALUES (21, '"word"', '[1, [2, 3], {"a": null}]', 'strict $[*] ? (@ > 1)'), (22, NULL, NULL, NULL), (23, 'null', 'null', '$.**');
INSERT INTO ranges SELECT g, int4range(g, g + 10), int8range(g, NULL), numrange(g, g + 1, '[]'), tsrange('2020-01-01', timestamp '2020-01-01' + g * interval '1 day'), tstzrange(NULL, timestamptz '2020-01-01 00:00+00' + g * interval '1 day'),
  daterange(date '2020-01-01', date '2020-01-01' + g), span(g, g + 0.5), int4multirange(int4range(g, g + 1), int4range(g + 5, g + 9)), datemultirange(daterange(date '2020-01-01', date '2020-01-01' + g)) FROM generate_series(1, 20) g;
INSERT INTO ranges (id, an_int4range, an_int4multirange) VALUES (21, 'empty', '{}'), (22, NULL, NULL), (23, '(,)', '{(,)}');
INSERT INTO made SELECT g, (enum_range(NULL::mood))[g % 3 + 1], ROW('street ' || g, g, point(g, g))::place, ROW('name ' || g, 'glad', ROW('there', g, NULL))::person, enum_range(NULL::mood), ARRAY[ROW('a', g, NULL)::place, NULL],
  ARRAY[[g, 1], [2, 3]], ARRAY['x', NULL, 'y ' || g], ARRAY[g / 3.0, 1e20], ARRAY[timestamptz '2020-01-01 00:00+00'], ARRAY[jsonb_build_object('k', g)], ARRAY[span(0, g)] FROM generate_series(1, 20) g;
INSERT INTO made (id, feels, integers, texts) VALUES (21, 'calm', '{}', '[0:1]={a,b}'), (22, 'sad', NULL, NULL);
INSERT INTO counted (word, feels) SELECT 'word ' || g, 'sad' FROM generate_series(1, 10) g;
INSERT INTO by_range SELECT g % 9, date '2019-06-01' + g * 13, 'word ' || g, g * 1.25 FROM generate_series(1, 80) g;
INSERT INTO by_hash SELECT g, 'word ' || g FROM generate_series(1, 40) g;

CREATE VIEW felt AS SELECT feels, count(*) AS times, array_agg(id ORDER BY id) AS ids FROM made GROUP BY feels;
CREATE VIEW plain AS SELECT id, a_text, a_code FROM strings WHERE id < 20 WITH CHECK OPTION;
CREATE VIEW over_it AS SELECT p.*, n.a_numeric, rank() OVER (ORDER BY n.a_numeric DESC) AS place FROM plain p LEFT JOIN numbers n USING (id);
CREATE VIEW unnested AS SELECT m.id, u.word, u.position FROM made m, unnest(m.texts) WITH ORDINALITY AS u (word, position);
CREATE VIEW climbing AS WITH RECURSIVE steps (n, sum) AS (SELECT 1, 1::numeric UNION ALL SELECT n + 1, sum + n FROM steps WHERE n < 12) SELECT * FROM steps;
CREATE VIEW documented AS SELECT d.id, j.key, j.value FROM documents d CROSS JOIN LATERAL jsonb_each(CASE jsonb_typeof(d.a_jsonb) WHEN 'object' THEN d.a_jsonb ELSE '{}' END) j;
CREATE MATERIALIZED VIEW kept AS SELECT day, sum(amount) AS amount, max(word) AS word FROM by_range GROUP BY day;

CREATE FUNCTION twice(integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT $1::bigint * 2';
CREATE FUNCTION strict_length(text) RETURNS integer LANGUAGE sql STRICT STABLE RETURN length($1);
CREATE FUNCTION mood_of(positive) RETURNS mood LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT feels FROM made WHERE id = $1); END $$;
CREATE FUNCTION described(place) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN coalesce($1.street, '?') || ' ' || coalesce($1.number::text, '?'); END $$;
CREATE FUNCTION housed(text, integer) RETURNS place LANGUAGE sql IMMUTABLE AS 'SELECT ROW($1, $2, point(0, 0))::place';
CREATE FUNCTION first_of(anyarray) RETURNS anyelement LANGUAGE sql IMMUTABLE AS 'SELECT $1[1]';
CREATE FUNCTION widened(span, double precision) RETURNS span LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN IF isempty($1) THEN RETURN $1; END IF; RETURN span(lower($1), upper($1) + abs($2)); END $$;
CREATE AGGREGATE product(double precision) (SFUNC = float8mul, STYPE = double precision, INITCOND = 1);
