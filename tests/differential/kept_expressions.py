"""Expressions, and the definitions in which they are kept: what is printed of each is to be PostgreSQL's text.

Columns are called by what they are: ``c_i4`` is an integer. Where there are no columns (defaults), constants stand for them.
"""

from __future__ import annotations

import re
from typing import Final

COLUMNS: Final = {
    "c_i2": ("smallint", "3::smallint"),
    "c_i4": ("integer", "3"),
    "c_i8": ("bigint", "3::bigint"),
    "c_n": ("numeric(8,2)", "1.50::numeric(8,2)"),
    "c_f": ("double precision", "'1.5'::double precision"),
    "c_s": ("text", "'some text'::text"),
    "c_v": ("varchar(10)", "'ab'::varchar(10)"),
    "c_c": ("char(3)", "'x'::char(3)"),
    "c_b": ("boolean", "true"),
    "c_d": ("date", "'2020-01-31'::date"),
    "c_ts": ("timestamp", "'2020-01-31 10:00'::timestamp"),
    "c_tz": ("timestamptz", "'2020-01-31 10:00+00'::timestamptz"),
    "c_tm": ("time", "'10:11:12'::time"),
    "c_iv": ("interval", "'1 day 02:00'::interval"),
    "c_ar": ("integer[]", "'{1,2}'::integer[]"),
    "c_ta": ("text[]", "'{a,b}'::text[]"),
    "c_j": ("jsonb", """'{"a": [1]}'::jsonb"""),
    "c_js": ("json", """'{"a": [1]}'::json"""),
    "c_u": ("uuid", "'00112233-4455-6677-8899-aabbccddeeff'::uuid"),
    "c_ip": ("inet", "'10.0.0.1/8'::inet"),
    "c_bt": ("bit(4)", "B'1010'"),
    "c_y": ("bytea", "'\\x00ff'::bytea"),
    "c_r": ("int4range", "'[1,5)'::int4range"),
    "c_p": ("point", "'(1,2)'::point"),
    "c_m": ("mood", "'ok'::mood"),
    "c_k": ("pair", "'(1,x)'::pair"),
    "c_g": ("small", "7::small"),
    "c_tv": ("tsvector", "'a b'::tsvector"),
}
"""Types of columns, and the constants that stand for them."""

SETUP: Final = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TYPE pair AS (x int, y text)",
    "CREATE DOMAIN small AS int CHECK (VALUE < 100)",
    "CREATE FUNCTION twice(a int, b int DEFAULT 2) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a * b'",
    "CREATE FUNCTION many(VARIADIC a text[]) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT array_length(a, 1)'",
    f"CREATE TABLE e ({', '.join(f'{name} {type_}' for name, (type_, _) in COLUMNS.items())})",
    "CREATE TABLE o (id int, note text)",
)

EXPRESSIONS: Final = tuple(line for line in r"""
c_i4 + 1
-c_i4
- (- c_i4)
+ c_i4
c_i4 - -1
-1
(-1)::int8
- 9223372036854775808
-(c_i4 + 1) * 2
c_i4 + 1 * 2 - 3
(c_i4 + 1) * (2 - 3)
c_i4 / 2 % 3
c_i4 ^ 2
2 ^ -1
@ c_i4
|/ c_f
||/ c_f
c_i4 & 3 | 4 # 5
~ c_i4 << 2 >> 1
c_i2 + c_i4 + c_i8
c_i4 * 1.5
c_n * 2
c_n::int
c_n::numeric(10,4)
c_n::numeric
c_i4::smallint
c_i4::text
c_s::int
c_s::varchar(5)
c_s::varchar
c_s::char(3)
c_s::bpchar
c_s::name
c_v || 'x'
c_v || c_s
c_v = 'x'
c_c = 'x'
c_c || 'x'
c_s || c_i4
c_i4 || c_s
'a' || c_s || 'b'
c_s COLLATE "C"
c_s COLLATE "C" < 'x'
(c_s || 'x') COLLATE "POSIX"
c_s LIKE 'a%'
c_s NOT LIKE 'a%'
c_s ILIKE 'a%' ESCAPE '!'
c_s NOT ILIKE '%a'
c_s LIKE 'a!%' ESCAPE '!'
c_s SIMILAR TO 'a|b'
c_s NOT SIMILAR TO 'a' ESCAPE '!'
c_s ~ 'a' AND c_s !~* 'b'
c_s ^@ 'a'
c_s BETWEEN 'a' AND 'b'
c_i4 BETWEEN 1 AND 5
c_i4 NOT BETWEEN 1 AND 5
c_i4 BETWEEN SYMMETRIC 5 AND 1
c_i4 NOT BETWEEN SYMMETRIC 5 AND 1
c_i4 IN (1, 2, 3)
c_i4 NOT IN (1, 2, 3)
c_i4 IN (1)
c_i4 IN (c_i2, 5)
c_s IN ('a', 'b')
c_v IN ('a', 'b')
c_v NOT IN ('a', 'b')
c_c IN ('a', 'b')
c_n IN (1, 2.5)
c_m IN ('sad', 'ok')
c_i8 IN (1, 2)
c_d IN ('2020-01-01', '2020-01-02')
c_i4 = ANY (c_ar)
c_i4 <> ALL (c_ar)
c_i4 = ANY ('{1,2}')
c_i4 < ANY (ARRAY[1, 2])
c_s = ANY (ARRAY['a', c_s])
c_b AND NOT c_b OR c_b
NOT (c_b AND c_i4 > 1)
NOT c_b
c_b OR (c_b AND c_i4 = 1)
(c_b OR c_b) AND c_b
c_b IS TRUE
c_b IS NOT FALSE
(c_i4 > 1) IS UNKNOWN
c_b IS NOT UNKNOWN
c_i4 IS NULL
c_i4 IS NOT NULL
(c_i4 + 1) IS NULL
(c_i4 IS NULL) = c_b
c_i4 IS DISTINCT FROM 1
c_i4 IS NOT DISTINCT FROM NULL
c_k IS NULL
ROW(c_i4, c_s) IS NOT NULL
ROW(c_i4, c_s) = ROW(1, 'a')
(c_i4, c_s) < (1, 'a')
(c_i4, c_s) <> (1, 'a')
ROW(c_i4, c_s) IS DISTINCT FROM ROW(1, 'a'::text)
(c_k).x
(c_k).y || 'z'
ROW(1, 'x')::pair
(ROW(1, 'x')::pair).x
c_k = ROW(1, 'x')::pair
ROW(c_i4)
ROW()
CASE WHEN c_b THEN 1 ELSE 2 END
CASE WHEN c_b THEN 1 WHEN c_i4 = 2 THEN 2 END
CASE c_i4 WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END
CASE c_s WHEN 'a' THEN c_n ELSE 0 END
CASE c_v WHEN 'a' THEN 1 END
CASE WHEN c_b THEN NULL ELSE c_d END
(CASE WHEN c_b THEN 1 ELSE 2 END) + 1
coalesce(c_i4, 0)
coalesce(c_s, 'x', 'y')
coalesce(c_n, 1)
coalesce(c_v, 'x')
nullif(c_i4, 0)
nullif(c_v, 'x')
greatest(c_i4, 1, c_i8)
least(c_s, 'x')
ARRAY[1, 2, c_i4]
ARRAY[[1, 2], [3, c_i4]]
ARRAY[]::int[]
ARRAY[c_v, 'x']
ARRAY[c_n, 1]
c_ar[1]
c_ar[1:2]
c_ar[:2]
c_ar[c_i4:]
(ARRAY[1, 2])[c_i4]
(string_to_array(c_s, ','))[1]
c_ar || 1
1 || c_ar
c_ar || ARRAY[1]
c_ar @> ARRAY[1]
c_ar && '{1}'
c_ta @> ARRAY['a']
c_ta[1] = 'x'
c_ar::text
c_ar::bigint[]
array_length(c_ar, 1)
cardinality(c_ar) > 0
c_j -> 'a'
c_j ->> 'a'
c_j #> '{a,0}'
c_j #>> '{a,0}'
c_j['a']
c_j['a'][0]
c_j @> '{"a": 1}'
c_j ? 'a'
c_j ?| ARRAY['a', 'b']
c_j ?& '{a}'
c_j @? '$.a'
c_j @@ '$.a == 1'
(c_j ->> 'a')::int
(c_j -> 'a') ->> 0
c_j - 'a'
c_j || '{"b": 2}'
c_js -> 'a' ->> 0
jsonb_build_object('a', c_i4)
jsonb_path_exists(c_j, '$.a ? (@ > 1)')
to_jsonb(c_s)
lower(c_s)
upper(c_v)
length(c_s)
char_length(c_v)
substring(c_s from 2 for 3)
substring(c_s from 2)
substring(c_s, 2, 3)
substring(c_s from 'a.')
substring(c_s similar 'a' escape '!')
trim(c_s)
trim(both 'x' from c_s)
trim(leading from c_s)
trim(trailing 'y' from c_s)
btrim(c_s, 'x')
position('a' in c_s)
strpos(c_s, 'a')
overlay(c_s placing 'x' from 2 for 1)
overlay(c_s placing 'x' from 2)
c_s IS NORMALIZED
c_s IS NOT NFC NORMALIZED
normalize(c_s)
normalize(c_s, NFD)
replace(c_s, 'a', 'b')
format('%s', c_s)
concat(c_s, c_i4)
concat_ws(',', c_s, 'x')
md5(c_s)
left(c_s, 2)
extract(year from c_d)
extract(epoch from c_iv)
extract(hour from c_tz)
date_part('year', c_ts)
date_trunc('month', c_ts)
date_trunc('month', c_tz, 'UTC')
c_ts AT TIME ZONE 'UTC'
c_tz AT TIME ZONE 'UTC'
c_tz AT TIME ZONE c_iv
timezone('UTC', c_ts)
c_d + 1
c_d - c_d
c_d + c_iv
c_d + c_tm
c_ts - c_ts
c_ts + interval '1 day'
c_iv * 2
c_iv / 2
interval '1' year
interval '1 day 2 hours'
interval '1.5' second(1)
c_iv::interval day to hour
c_iv::interval(3)
c_tm::time(2)
c_tz::timestamptz(0)
c_ts::timestamp(3)
c_ts::date
c_d::timestamp
date '2020-01-01'
timestamp '2020-01-01 10:00'
timestamp with time zone '2020-01-01 10:00+00'
time '10:00'
time with time zone '10:00+02'
c_d > '2020-01-01'
(c_d, c_d) OVERLAPS (c_d, c_d)
(c_ts, c_iv) OVERLAPS (c_ts, c_iv)
CURRENT_DATE
CURRENT_TIMESTAMP
CURRENT_TIMESTAMP(2)
LOCALTIME
LOCALTIMESTAMP(0)
now()
CURRENT_USER
SESSION_USER
CURRENT_CATALOG
CURRENT_SCHEMA
current_setting('x.y', true)
'a'::text
'it''s'
'back\slash'
E'tab\tnew\nline'
U&'\0061'
B'101'
X'1F'
B'101'::bit(5)
c_bt & B'1100'
c_bt::int
c_bt::bit varying(8)
1.0
1.50::numeric
1e10
1e-5
.5
100000000000
'NaN'::numeric
'Infinity'::float8
'1.5'::float4
c_f::real
1::float8
'-1'::int
'-1.5'::float8
true
false
'yes'::bool
NULL
NULL::int
'{1,2}'::int[]
'{"a": 1}'::jsonb
'sad'::mood
c_m > 'sad'
c_m::text
7::small
c_g + 1
c_i4::small
'(1,2)'::point
c_p <-> '(0,0)'
c_p <@ box '((0,0),(1,1))'
c_p[0]
c_r @> 3
c_r && '[1,2)'
c_r * int4range(1, 3)
lower(c_r)
upper_inf(c_r)
c_ip << '10.0.0.0/8'
c_ip::cidr
host(c_ip)
c_ip + 1
c_u::text
c_u = '00112233-4455-6677-8899-aabbccddeeff'
c_y || '\x01'
'\x00ff'::bytea
encode(c_y, 'hex')
to_tsvector('simple', c_s)
to_tsvector('english'::regconfig, c_s) @@ to_tsquery('a & b')
c_tv @@ 'a'
c_tv @@ plainto_tsquery('simple', 'a')
'o'::regclass
'o'::regclass::oid
'int4'::regtype
'pg_catalog.lower(text)'::regprocedure
twice(c_i4)
twice(c_i4, 3)
twice(b => 1, a => c_i4)
twice(a := c_i4)
many('a', c_s)
many(VARIADIC c_ta)
many(VARIADIC ARRAY['a'])
c_i4 OPERATOR(pg_catalog.+) 1
c_i4 = 1 = c_b
(c_i4 = 1) IS TRUE
c_i4 <> 1 AND c_i4 != 2
c_s < c_v
c_i4 > c_i8
c_i4 = 1.5
c_i4 > 2.0::float8
c_i2 = 1
c_f = 1
power(c_f, 2)
round(c_n, 1)
mod(c_i4, 2)
abs(-5)
random()
pg_typeof(c_i4)
width_bucket(c_n, 0, 10, 5)
num_nulls(c_i4, c_s)
GREATEST(c_d, '2020-01-01')
to_char(c_ts, 'YYYY')
c_s::regclass::text
cast(c_i4 as bigint)
c_i4::int8::text
c_s::text
c_v::text::varchar(3)
c_i4::bool
c_b::int
c_iv::text
c_i4::"char"
'a'::"char"
c_s > ALL (ARRAY['a', 'b'])
c_v = ANY (c_ta)
c_v = ANY (ARRAY['a', 'b'])
c_i4 = ANY (ARRAY[1, NULL])
(c_i4 + 1) IN (1, 2)
NOT c_i4 IN (1, 2)
NOT c_s LIKE 'a%'
(c_b)::text || 'x'
-c_i4 + 1
(- c_i4) ^ 2
-(5)
-5::int2
(c_i4)::numeric / 3
""".splitlines() if line)  # fmt: skip

FORMS: Final = {
    "CHECK": ("ALTER TABLE e ADD CONSTRAINT kept CHECK (({0}) IS NOT NULL)", "SELECT pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint WHERE conname = 'kept'"),
    "condition": ("ALTER TABLE e ADD CONSTRAINT kept CHECK ({0})", "SELECT pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint WHERE conname = 'kept'"),
    "index": ("CREATE INDEX kept ON e (({0}), c_i4) WHERE ({0}) IS NOT NULL", "SELECT pg_get_indexdef('kept'::regclass), pg_get_indexdef('kept'::regclass, 1, true)"),
    "call": ("CREATE INDEX kept ON e ({0})", "SELECT pg_get_indexdef('kept'::regclass)"),
    "generated": ("CREATE TABLE kept (LIKE e, kept text GENERATED ALWAYS AS (({0})::text) STORED)", "SELECT pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true) FROM pg_attrdef WHERE adrelid = 'kept'::regclass"),
    "policy": ("CREATE POLICY kept ON e USING (({0}) IS NOT NULL) WITH CHECK (EXISTS (SELECT FROM o WHERE id = c_i4 AND ({0}) IS NULL))", "SELECT qual, with_check FROM pg_policies WHERE policyname = 'kept'"),
    "RETURN": ("CREATE FUNCTION kept({1}) RETURNS text LANGUAGE sql RETURN ({0})::text", "SELECT pg_get_functiondef('kept'::regproc)"),
    "BEGIN ATOMIC": ("CREATE FUNCTION kept() RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT ({0})::text FROM e WHERE c_i4 = 1; END", "SELECT pg_get_functiondef('kept'::regproc)"),
    "view": ("CREATE VIEW kept AS SELECT {0} AS x FROM e ORDER BY 1, ({0})", "SELECT pg_get_viewdef('kept'::regclass), pg_get_viewdef('kept'::regclass, true)"),
    "DEFAULT": ("CREATE TABLE kept (x text DEFAULT ({2})::text)", "SELECT pg_get_expr(adbin, adrelid), column_default FROM pg_attrdef, information_schema.columns WHERE adrelid = 'kept'::regclass AND table_name = 'kept'"),
    "argument": ("CREATE FUNCTION kept(x text DEFAULT ({2})::text) RETURNS int LANGUAGE sql AS 'SELECT 1'", "SELECT pg_get_functiondef('kept'::regproc), pg_get_function_arguments('kept'::regproc)"),
    "WHEN": ("CREATE TRIGGER kept BEFORE INSERT ON e FOR EACH ROW WHEN (({3}) IS NOT NULL) EXECUTE FUNCTION suppress_redundant_updates_trigger()", "SELECT pg_get_triggerdef(oid), pg_get_triggerdef(oid, true) FROM pg_trigger WHERE tgname = 'kept'"),
}  # fmt: skip
"""Definitions by kind, each with a query for what is printed of it."""

_NAME: Final = re.compile(r"\bc_\w+")


def definition(form: str, expression: str) -> str:
    """Return the statement that keeps ``expression`` in a definition."""
    used = list(dict.fromkeys(_NAME.findall(expression)))
    parameters = ", ".join(f"{name} {COLUMNS[name][0]}" for name in used)
    constant = _NAME.sub(lambda name: f"({COLUMNS[name[0]][1]})", expression)
    new = _NAME.sub(lambda name: f"new.{name[0]}", expression)
    text = FORMS[form][0]
    for place, value in enumerate((expression, parameters, constant, new)):
        text = text.replace(f"{{{place}}}", value)
    return text


DIFFERENT: Final = (
    (r"\(ROW\(1, 'x'\)::pair\)\.x|ROW\(1, 'x'\)::pair", "ROW of constants is folded where it is bound"),
    (r"^'o'::regclass", "column_default names what is not in public with its schema"),
    (r"\bjsonb_build_object|concat_ws", 'constants for VARIADIC "any" are shown as text'),
    (r"^NULL$|^'it|^'back|^E'|^U&", "literals without a type are text in an index"),
)
"""Expressions that end or are printed otherwise, and why."""
CONVERSIONS: Final = (
    "conversions of arrays, rows, ranges and enums to text are immutable here, of timetz not: 42P17"
)


def known(form: str, expression: str, answers: tuple[object, object]) -> str:
    """Return why two answers may differ, "" where nothing explains it."""
    if "42P17" in answers and form in ("generated", "index", "call"):
        return CONVERSIONS
    return next((why for pattern, why in DIFFERENT if re.search(pattern, expression)), "")
