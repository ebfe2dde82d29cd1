-- Names of encodings, in all spellings.
-- also: local
SELECT n, pg_char_to_encoding(n), pg_encoding_to_char(pg_char_to_encoding(n))
FROM unnest(ARRAY['utf8', 'UTF-8', 'unicode', 'latin1', 'Latin-1', 'ISO_8859-1', 'iso 8859-15', 'iso-8859-5', 'win', 'win1252', 'Windows-1252',
  'windows 932', 'koi8', 'KOI8-R', 'koi8u', 'sjis', 'shift_jis', 'mskanji', 'SHIFT_JIS_2004', 'EUC-JP', 'euc_jis_2004', 'gbk', 'win936', 'gb18030', 'big5', 'win950',
  'uhc', 'win949', 'johab', 'euc_kr', 'euc_cn', 'euc_tw', 'alt', 'tcvn', 'vscii', 'abc', 'tcvn5712', 'sql_ascii', 'mule_internal', 'cp1252', '', 'nope']) n;
SELECT i, pg_encoding_to_char(i), pg_encoding_max_length(i) FROM generate_series(-1, 43) i;
SELECT getdatabaseencoding(), current_setting('server_encoding'), (SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database());

-- The catalog of conversions.
SELECT oid, conname, connamespace::regnamespace, conowner, pg_encoding_to_char(conforencoding), pg_encoding_to_char(contoencoding), conproc, condefault
FROM pg_conversion ORDER BY oid;
SELECT count(*) FROM pg_conversion WHERE pg_conversion_is_visible(oid);

-- From and to each encoding.
SELECT n, convert_to('abc', n), convert_from('abc'::bytea, n) FROM (
  SELECT pg_encoding_to_char(i) n FROM generate_series(0, 41) i WHERE i <> 7) e;
SELECT convert_to('é', 'latin1'), convert_to('€', 'win1252'), convert_to('Ж', 'koi8r'), convert_to('ソ', 'sjis'), convert_to('ソ丂', 'euc_jp');
SELECT convert_from('\xe9', 'latin1'), convert_from('\x80', 'win1252'), convert_from('\xf6', 'koi8r'), convert_from('\x835c', 'sjis');
SELECT convert_from('\x82f5', 'shift_jis_2004'), convert_to(convert_from('\x82f5', 'shift_jis_2004'), 'euc_jis_2004');
SELECT convert_to('¥‾¢', 'sjis'), convert_to('€', 'gbk'), convert_to('😀', 'gb18030'), convert_from('\x9439fc36', 'gb18030');
SELECT convert('\xe9', 'latin1', 'utf8'), convert('\xc3a9', 'utf8', 'latin1'), convert('\xe9', 'latin1', 'latin1');
SELECT convert('\xff', 'sql_ascii', 'sql_ascii'), convert('\xff', 'latin1', 'sql_ascii'), convert('a', 'sql_ascii', 'euc_jp');
SELECT convert(NULL, 'foo', 'bar'), convert('a', NULL, 'utf8'), convert_to(NULL, 'foo');

-- What is no character, what has no equivalent, what is no encoding.
SELECT convert_to('€', 'latin1');
SELECT convert_to('é😀', 'euc_jp');
SELECT convert_from('\x81', 'win1252');
SELECT convert_from('\x83', 'sjis');
SELECT convert_from('\x8320', 'sjis');
SELECT convert_from('\xa040', 'sjis');
SELECT convert_from('\x8d20', 'big5');
SELECT convert_from('\xff40', 'gbk');
SELECT convert_from('\x8fa1', 'euc_jp');
SELECT convert_from('\x8ea8a1a1', 'euc_tw');
SELECT convert_from('\x8862', 'johab');
SELECT convert_from('\x4100', 'latin1');
SELECT convert_from('\x4100', 'utf8');
SELECT convert_from('\xe9', 'sql_ascii');
SELECT convert('\xe9', 'sql_ascii', 'utf8');
SELECT convert('\xff', 'sql_ascii', 'euc_jp');
SELECT convert('\xff', 'utf8', 'latin1');
SELECT convert('\xe9', 'latin1', 'latin2');
SELECT convert('\xff', 'euc_jp', 'latin1');
SELECT convert('a', 'mule_internal', 'utf8');
SELECT convert_to('a', 'mule_internal');
SELECT convert_from('a', 'foo');
SELECT convert_to('a', 'foo');
SELECT convert('a', 'foo', 'utf8');
SELECT convert('a', 'utf8', 'foo');

-- How long bytes are in an encoding.
SELECT length('\x835cb1'::bytea, 'sjis'), length('\xe38182'::bytea, 'utf8'), length('\xe38182'::bytea, 'latin1'), length('\xff'::bytea, 'sql_ascii');
SELECT length('\xa4'::bytea, 'euc_jp');
SELECT length('\xff00'::bytea, 'latin1');
SELECT length('a'::bytea, 'foo');

-- Over the rows of a table.
CREATE TABLE words (n int PRIMARY KEY, w text);
INSERT INTO words VALUES (1, 'déjà'), (2, 'vu'), (3, NULL), (4, 'ÿ');
SELECT n, w, convert_to(w, 'latin1'), length(convert_to(w, 'latin1')), convert_from(convert_to(w, 'latin1'), 'iso-8859-1') = w FROM words ORDER BY n;
SELECT n FROM words WHERE convert_to(w, 'win1252') = '\x64e96ae0';
INSERT INTO words VALUES (5, '€');
SELECT n, convert_to(w, 'latin1') FROM words ORDER BY n;
SELECT n, convert_to(w, 'latin9') FROM words WHERE n > 3 ORDER BY n;

-- The client's encoding as a setting.
SET client_encoding = 'latin1';
SHOW client_encoding;
SELECT * FROM words ORDER BY n;
SELECT textsend(w), namesend(w::name), jsonb_send(to_jsonb(w)) FROM words WHERE n = 1;
BEGIN;
SET LOCAL client_encoding = 'KOI8-R';
SHOW client_encoding;
ROLLBACK;
SHOW client_encoding;
SELECT set_config('client_encoding', 'Windows-1252', false), setting, reset_val FROM pg_settings WHERE name = 'client_encoding';
SET client_encoding = 'foo';
SET client_encoding = 'mule_internal';
SET client_encoding = 3;
RESET client_encoding;
SET NAMES 'sjis';
SELECT name, setting FROM pg_settings WHERE name = 'client_encoding';
SET NAMES DEFAULT;
SHOW client_encoding;
SET server_encoding = 'utf8';
ALTER ROLE CURRENT_USER SET client_encoding = 'nope';
DROP TABLE words;
