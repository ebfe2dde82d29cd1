"""What random expressions are made of (``generated``): tables, and for each type its columns, constants and forms.

A form is a text with places: ``{type}`` an expression of that type, ``{type.}`` a column or constant, ``«a¦b»`` one of these,
``{any}`` a type that all its places share, ``@`` an alias of its own.
"""

from __future__ import annotations

SCHEMA = """
DROP TABLE IF EXISTS gen_a, gen_b;
CREATE TABLE gen_a (id int PRIMARY KEY, i int, b bigint, n numeric, s text, d date, ts timestamp, o boolean, f float8,
 a int[], ta text[], j jsonb, r int4range, iv interval, tm time);
CREATE TABLE gen_b (k int PRIMARY KEY, i int, s text, n numeric(8, 2), o boolean, a int[], j jsonb);
INSERT INTO gen_a SELECT g, nullif(g % 7, 3) - 2, nullif(g % 5, 4) * 1000000007::bigint,
 nullif(g % 11, 6) * 1.25 - 4, nullif((array['a', '', 'Bc', 'é', 'a%b', 'xyz'])[g % 6 + 1], 'xyz'),
 date '2024-02-27' + nullif(g % 9, 5), timestamp '2024-01-31 23:59:58.5' + nullif(g % 8, 2) * interval '1 day 7 hours',
 nullif(g % 3, 2) = 1, nullif(g % 4, 1) * 0.5,
 (array['{}', '{1}', '{1,2,null}', null, '{2,1}']::text[])[g % 5 + 1]::int[],
 (array['{}', '{a,"b c"}', null, '{a,null,""}']::text[])[g % 4 + 1]::text[],
 (array['{"a": 1, "b": [1, "x", null]}', '[1, 2, 3]', '"s"', null, '{"a": {"b": "é"}, "c": true}', 'null', '{}'])[g % 7 + 1]::jsonb,
 (array['empty', '[1,4)', '(,2)', '[3,)', null])[g % 5 + 1]::int4range,
 (array['1 day 02:03:04', '-3 hours', '1 mon', null, '1 year -2 days 00:00:00.5'])[g % 5 + 1]::interval,
 (array['00:00', '12:30:45.25', null, '23:59:59'])[g % 4 + 1]::time FROM generate_series(1, 24) g;
INSERT INTO gen_b SELECT g, nullif(g % 4, 0), (array['a', 'Bc', null, 'q'])[g % 4 + 1], nullif(g % 5, 2) * 3.33, g % 2 = 0,
 (array['{1,2}', null, '{}', '{3}'])[g % 4 + 1]::int[], (array['{"a": 2}', null, '[0]'])[g % 3 + 1]::jsonb
 FROM generate_series(1, 9) g;
"""

COLUMNS = {
    "gen_a": {
        "id": "int", "i": "int", "b": "bigint", "n": "numeric", "s": "text", "d": "date", "ts": "timestamp",
        "o": "bool", "f": "float", "a": "ints", "ta": "texts", "j": "jsonb", "r": "range", "iv": "interval", "tm": "time",
    },
    "gen_b": {"k": "int", "i": "int", "s": "text", "n": "numeric", "o": "bool", "a": "ints", "j": "jsonb"},
}  # fmt: skip

CONSTANTS = {
    "int": ("0", "1", "2", "-3", "7", "null::int", "2147483647"),
    "bigint": ("0::bigint", "5000000000", "-1::bigint", "9223372036854775807"),
    "numeric": (
        "0.0", "1.5", "-2.25", "100.001", "null::numeric", "'NaN'::numeric", "1e20", "0.000000001", "12345678901234567890.5",
        "-0.5", "2.5",
    ),
    "text": ("'a'", "''", "'Bc'", "'é%'", "null::text", "' x '", "'a,b'", "'12'"),
    "date": ("date '2024-02-29'", "date '1999-12-31'", "null::date"),
    "timestamp": ("timestamp '2024-03-01 12:30:00'", "null::timestamp", "timestamp '2000-02-29 23:59:59.999999'"),
    "bool": ("true", "false", "null::bool"),
    "float": ("0.5::float8", "2::float8", "'NaN'::float8", "'-Infinity'::float8", "1e-5::float8"),
    "ints": ("array[1, 2]", "'{}'::int[]", "null::int[]", "array[null, 3]"),
    "texts": ("array['a', 'b']", "'{}'::text[]", "array[null, '']"),
    "jsonb": (
        """'{"a": 1}'::jsonb""", """'[1, "a"]'::jsonb""", "'null'::jsonb", "null::jsonb", """'"x"'::jsonb""",
    ),
    "range": ("int4range(1, 5)", "'empty'::int4range", "int4range(null, 3)", "'[2,2]'::int4range", "null::int4range"),
    "interval": ("interval '1 day'", "interval '-01:30'", "interval '1 month 3 days'", "null::interval"),
    "time": ("time '12:00'", "time '00:00:00.000001'", "null::time"),
    "zoned": (
        "timestamptz '2024-03-31 00:59:59.5+00'", "timestamptz '2024-10-27 00:30+00'", "timestamptz '1999-12-31 23:00-05'", "null::timestamptz",
    ),
    "bytes": (r"'\x00ff41'::bytea", "''::bytea", "'abc'::bytea", "null::bytea"),
    "bits": ("B'1011'::varbit", "''::varbit", "B'0'::varbit", "null::varbit"),
}  # fmt: skip

# Types whose equal values all print alike: what a group, DISTINCT or a set operation shows is then determined.
KEYS = (
    "int", "int", "bigint", "numeric", "text", "text", "date", "timestamp", "bool", "ints", "texts", "jsonb", "range", "time",
    "zoned", "bytes", "bits",
)  # fmt: skip

FORMS = {
    "int": (
        "({int} «+¦-» {int})", "({int.} * {int.})", "({int} «/¦%» nullif({int}, 0))", "abs({int})", "-{int.}", "length({text})",
        "strpos({text}, {text.})", "({date} - {date})", "{bool}::int", "extract(«year¦month¦dow¦doy¦week» FROM {date})::int",
        "({int} «&¦#» {int})", "({int} | {int})", "sign({numeric.})::int", "round({numeric.})::int", "ascii({text})",
        "array_length(array[{int.}, 1], 1)", "cardinality({ints})", "array_length({ints}, 1)", "array_position({ints}, {int.})",
        "({ints})[«1¦2¦0¦-1»]", "lower({range})", "upper({range})", "extract(«hour¦minute¦day¦month» FROM {interval})::int",
        "({int.} «<<¦>>» «1¦2»)", "gcd({int.}, 12)", "width_bucket({numeric.}, 0, 10, «1¦5»)", "octet_length({text})",
        "bit_length({text.})", "extract(«hour¦minute» FROM {time})::int", "num_nulls({any}, {any.})", "position({text.} IN {text})",
        "(SELECT «count(*)¦max(@.k)¦sum(@.i)» FROM gen_b @ WHERE @.i = {int.})::int", "cardinality({texts})",
        "coalesce(array_upper({ints}, 1), -1)", "mod({int.}, nullif({int.}, 0))", "jsonb_array_length(jsonb_build_array({int.}, 1))",
        "length({bytes})", "length({bits})", "bit_count({«bytes¦bits»})::int", r"position('\xff' in {bytes})", "array_length({ints}, 2)",
        "extract(«hour¦day¦isodow» FROM {zoned})::int", "extract(hour FROM {zoned} AT TIME ZONE 'Europe/Berlin')::int", "regexp_count({text}, '«a¦.»')",
        "jsonb_array_length(jsonb_path_query_array({jsonb}, '«$[*]¦$.b[*]¦$.**¦lax $.a»'))", "(array[[{int.}, 1], [2, {int.}]])[«1¦2¦3»][«1¦2»]",
        "div({numeric.}, 3)::int", "(SELECT @.k FROM gen_b @ WHERE @.k = {int.})",
    ),
    "bigint": (
        "({bigint} «+¦-» {int})", "{int}::bigint", "({bigint.} / 7)", "({bigint.} % 1000)", "abs({bigint.})",
        "({bigint.} & {int.})", "(SELECT count(*) FROM gen_b @ WHERE @.s = {text.})", "({int.}::bigint * {int.})",
    ),
    "numeric": (
        "({numeric} «+¦-» {numeric})", "({numeric.} * {numeric.})", "({numeric} / nullif({numeric.}, 0))",
        "«round¦trunc»({numeric}, «0¦1¦2¦-1»)", "«ceil¦floor¦abs»({numeric})", "{int}::numeric", "({int} * {numeric.})",
        "mod({numeric.}, 0.7)", "extract(epoch FROM {timestamp.})", "{bigint.}::numeric(20, 2)", "power({numeric.}, «2¦3¦0»)",
        "sqrt(abs({numeric.}))", "round(ln(abs({numeric.}) + 1), 8)", "trim_scale({numeric.})", "div({numeric.}, 0.7)",
        "extract(second FROM {timestamp})", "extract(epoch FROM {interval.})", "({numeric.} % 7)", "-{numeric.}",
        "(SELECT «avg¦sum¦max»(@.n) FROM gen_b @ WHERE @.i «¦>»= {int.})", "round({float.}::numeric, 3)", "sign({numeric})",
        "{numeric.}::numeric(30, «0¦1»)", "greatest({numeric.}, {int.})", "extract(julian FROM {date.})",
    ),
    "text": (
        "({text} || {text})", "«upper¦lower¦reverse¦initcap¦btrim»({text})", "substr({text}, «1¦2¦-1¦0», «1¦3»)",
        "«left¦right»({text}, «1¦-1¦2»)", "replace({text}, '«a¦B¦»', {text.})", "{int.}::text", "{numeric.}::text", "{bool.}::text",
        "{date.}::text", "{timestamp.}::text", "concat({text}, {int.}, {bool.})", "«lpad¦rpad»({text}, «0¦3¦5», '«*¦xy»')",
        "to_char({date.}, '«YYYY-MM-DD¦Dy DD Mon¦IYYY-IW¦Q»')", "to_char({numeric.}, '«FM999.00¦S09.9¦999¦9,999.9¦FM0000»')",
        "split_part({text}, 'a', «1¦2¦-1»)", "md5({text.})", "repeat({text.}, «0¦2»)", "translate({text}, 'ab', 'x')",
        "regexp_replace({text.}, '«[aB]¦.¦^x?»', '-', 'g')", "format('%s:%I', {int.}, {text.} || 'z')", "quote_literal({text.})",
        "concat_ws('-', {text}, {text.})", "array_to_string({ints}, ',')", "array_to_string({texts}, '/', '*')", "{ints}::text",
        "({jsonb} ->> '«a¦c»')", "({jsonb} #>> array['b', '0'])", "{jsonb}::text", "jsonb_typeof({jsonb})", "{range}::text",
        "overlay({text} placing 'XY' from «1¦2» for «0¦1»)", "substring({text} from '[a-z]+')", "({texts})[«1¦2»]",
        "to_char({timestamp.}, '«HH24:MI:SS.US¦DDD Day¦FMMonth YYYY AD¦J¦HH12 am»')", "to_char({interval.}, 'DD HH24:MI:SS')",
        "{interval}::text", "{time}::text", "trim(«leading¦trailing¦both» 'a ' from {text})", "encode({text.}::bytea, '«hex¦base64»')",
        "format('%5s|%-4s|%L', {text.}, {int.}, {text.})", "{text.}::varchar(2)", "{float.}::text", "regexp_match({text.}, '(.)b')::text",
        "encode({bytes}, '«hex¦base64¦escape»')", "{bits}::text", "{zoned}::text", "to_char({zoned}, '«YYYY-MM-DD HH24:MI:SS TZ¦OF¦WW FMDDth»')",
        "({zoned} AT TIME ZONE 'Europe/Berlin')::text", "array[[{int.}, 1], [2, {int.}]]::text", "jsonb_path_query_array({jsonb}, '$.**')::text",
        "regexp_substr({text}, '«[a-z]+¦(.)b»')", "to_char({float.}, '«FM990.00¦9.9EEEE¦S999¦FM9,999»')", "{numeric.}::numeric(5, 3)::text",
        "({numeric.} * 1e-12)::text", "(n.v ->> 'x')".replace("n.v", "jsonb_build_object('x', {numeric.})"), "normalize({text}, NFD)",
        "to_hex({int.})", "(SELECT string_agg(@.s, '+' ORDER BY @.k) FROM gen_b @ WHERE @.i = {int.})", "quote_nullable({text.})",
        "(SELECT «min¦max»(@.s) FROM gen_b @ WHERE @.k «<¦>» {int.})", "nullif({text}, '')", "{text.}::char(3)::text",
    ),
    "date": (
        "({date} «+¦-» {int.})", "{timestamp}::date", "date_trunc('«month¦year¦week»', {timestamp.})::date",
        "make_date(2024, «2¦3», «28¦1»)", "to_date(to_char({date.}, 'YYYYMMDD'), 'YYYYMMDD')",
        "to_date(to_char({date.}, 'IYYY-IW-ID'), 'IYYY-IW-ID')", "to_date(to_char({date.}, 'YYYY-DDD'), 'YYYY-DDD')",
        "{zoned}::date", "({date.} + {interval.})::date",
    ),
    "timestamp": (
        "({timestamp} «+¦-» interval '«1 month¦36 hours¦-1 day 1 minute»')", "date_trunc('«hour¦day¦quarter¦minute»', {timestamp})",
        "{date}::timestamp", "({date.} + time '«12:00¦00:00:01»')", "({timestamp} «+¦-» {interval.})", "({date.} + {time.})",
        "({zoned} AT TIME ZONE '«Europe/Berlin¦America/New_York»')", "{zoned}::timestamp", "date_trunc('«week¦century¦milliseconds»', {timestamp.})",
        "date_bin('15 minutes', {timestamp.}, timestamp '2001-01-01')", "{timestamp.}::timestamp(«0¦1»)",
    ),
    "float": (
        "({float.} * 2)", "sqrt(abs({float.}))", "{int}::float8", "{numeric.}::float8", "power({float.}, 2)",
        "round({float.})", "({float.} + {int.})", "floor({float})", "abs({float})",
    ),
    "ints": (
        "array[{int.}, {int.}]", "({ints} || {int.})", "({ints.} || {ints.})", "array_remove({ints}, {int.})",
        "array_replace({ints}, 1, {int.})", "({ints})[«1:2¦2:¦:1»]", "array_prepend({int.}, {ints})",
        "(SELECT array_agg(@.k ORDER BY @.k DESC) FROM gen_b @ WHERE @.i = {int.})",
        "array(SELECT @.k FROM gen_b @ WHERE @.k < {int.} ORDER BY 1)", "string_to_array('1,2,' || {int.}, ',')::int[]",
    ),
    "texts": (
        "array[{text.}, {text.}]", "string_to_array({text}, '«a¦,»')", "regexp_split_to_array({text.}, '[ab]')",
        "array_append({texts}, {text.})", "({texts.} || {texts.})", "string_to_array({text}, null)", "{ints}::text[]",
    ),
    "jsonb": (
        "({jsonb} -> '«a¦b¦c»')", "({jsonb} -> «0¦-1»)", "jsonb_build_object('k', {int.}, 't', {text.})", "to_jsonb({int.})",
        "to_jsonb({text.})", "to_jsonb({ints})", "jsonb_build_array({int.}, {text.}, {bool.})", "jsonb_strip_nulls({jsonb})",
        "jsonb_path_query_first({jsonb}, '«$.b[0]¦$.a¦$[*] ? (@ > 1)»')", "({jsonb} #> array['a', 'b'])", "({jsonb.} || {jsonb.})",
        "jsonb_set(jsonb_build_object('a', {int.}), array['a'], to_jsonb({bool.}))", "to_jsonb({date.})",
        "(SELECT jsonb_agg(@.s ORDER BY @.k) FROM gen_b @ WHERE @.i = {int.})",
    ),
    "range": (
        "({range.} * {range.})", "range_merge({range.}, {range.})", "int4range({int.}, null)", "int4range(least({int.}, 3), 4, '[]')",
    ),
    "interval": (
        "({interval} «+¦-» {interval.})", "({timestamp} - {timestamp.})", "({interval.} * «2¦-1¦0.5»)", "-{interval.}",
        "justify_«days¦hours¦interval»({interval})", "age({timestamp.}, {timestamp.})", "make_interval(hours => {int.} % 50)",
        "({time.} - {time.})", "({zoned} - {zoned.})", "age({zoned.}, {zoned.})", "{time.}::interval", "({interval.} / 2)", "date_trunc('hour', {interval.})",
    ),
    "time": ("{timestamp.}::time", "({time} «+¦-» interval '«1 hour¦90 seconds»')", "{interval.}::time", "date_trunc('hour', {timestamp.})::time"),
    "zoned": (
        "({timestamp} AT TIME ZONE '«Europe/Berlin¦America/New_York¦UTC»')", "({zoned} «+¦-» interval '«1 day¦24 hours¦-1 month¦90 minutes»')",
        "date_trunc('«day¦hour¦month»', {zoned}, '«Europe/Berlin¦Asia/Kolkata»')", "{date.}::timestamptz", "to_timestamp({int.} * 1000)",
        "date_bin('15 minutes', {zoned}, timestamptz '2001-01-01 00:07+00')", "({zoned} + {interval.})", "{timestamp.}::timestamptz(«0¦2»)",
        "to_timestamp(to_char({timestamp.}, 'YYYY-MM-DD HH24:MI:SS'), 'YYYY-MM-DD HH24:MI:SS')",
    ),
    "bytes": (
        "{text}::bytea", "({bytes} || {bytes.})", "substr({bytes}, «1¦2¦0», «0¦2»)", r"overlay({bytes} placing '\x01' from «1¦2»)",
        "decode(encode({bytes}, '«hex¦base64¦escape»'), 'escape')", r"trim('\x41' from {bytes})", "convert_to({text}, 'UTF8')", "sha256({bytes.})",
    ),
    "bits": (
        "({bits} || {bits.})", "substring({bits} from «1¦2» for 2)", "({bits} «<<¦>>» «0¦1¦9»)", "(~ {bits})", "{int.}::bit(6)::varbit",
        "{bits}::varbit(2)",
    ),
    "bool": (
        "({any} «=¦!=» {any})", "({any} < {any})", "({any} >= {any})", "({any} IS «¦NOT »NULL)", "({any} IS «¦NOT »DISTINCT FROM {any})",
        "({bool} «AND¦OR» {bool})", "(NOT {bool})", "({text} «LIKE¦NOT LIKE¦ILIKE» '«a%¦%¦_c¦%\\%%»')", "({text} ~ '«^a¦[bB]c¦x*»')",
        "({int} «¦NOT »IN ({int.}, {int.}, 2))", "({any} BETWEEN {any.} AND {any.})", "({bool} IS «TRUE¦FALSE¦NOT TRUE¦UNKNOWN»)",
        "({int} = ANY (array[0, 1, {int.}]))", "EXISTS (SELECT 1 FROM gen_b @ WHERE @.i = {int.})",
        "NOT EXISTS (SELECT 1 FROM gen_b @ WHERE @.k > {int.} AND @.o)", "({int.} «¦NOT »IN (SELECT @.«i¦k» FROM gen_b @))",
        "({int.} < (SELECT «max¦min¦count»(@.k) FROM gen_b @ WHERE @.i = {int.}))", "({ints} «@>¦<@¦&&» {ints})",
        "({range} «@>¦<@¦&&¦-|-¦<<¦>>» {range})", "({range} @> {int.})", "isempty({range})", "({jsonb} «@>¦<@» {jsonb})", "({jsonb} ? '«a¦x»')",
        "({int.} = ANY ({ints}))", "({int.} «<¦>=» ALL ({ints}))", "(({int.}, {text.}) «<¦=¦>=» ({int.}, {text.}))",
        "(({int.}, {text.}) «¦NOT »IN (SELECT @.i, @.s FROM gen_b @))", "({int.} «<¦=» «ANY¦ALL» (SELECT @.k FROM gen_b @ WHERE @.o))",
        "({any} NOT BETWEEN {any.} AND {any})", "({any} IN ({any.}, {any.}))", "({text} SIMILAR TO '«a%¦(B|x)%»')",
        "starts_with({text}, {text.})", "({date.}, {date.}) OVERLAPS ({date.}, {date.})", "(({bool} IS TRUE) = {bool})",
        "({int.} BETWEEN SYMMETRIC {int.} AND {int.})", "{int.}::bool", "({texts} @> array[{text.}])",
    ),
    "aggregate": (
        "count(*)", "count(«¦DISTINCT »{text.})", "sum({int})", "sum({numeric})", "sum({bigint.})", "avg({int})", "avg({numeric})",
        "«min¦max»({int})", "«min¦max»({text})", "«min¦max»({date})", "«min¦max»({timestamp})", "«min¦max»({numeric})",
        "«bool_and¦bool_or¦every»({bool})", "sum(DISTINCT {int})", "«var_pop¦stddev_samp¦variance»({int})", "«bit_and¦bit_or»({int})",
        "«min¦max»({time})", "«min¦max»({interval.})", "sum({interval.})", "count(DISTINCT {any})", "avg({interval.})",
        "«min¦max»({ints})", "percentile_disc(«0¦0.5¦0.9») WITHIN GROUP (ORDER BY {int})", "mode() WITHIN GROUP (ORDER BY {int.} % 2)",
        "percentile_cont(«0.25¦0.5») WITHIN GROUP (ORDER BY {int.}::float8)", "array_agg(DISTINCT {int})", "jsonb_agg({int.} ORDER BY !)",
        "array_agg({text.} ORDER BY !)", "string_agg({text.}, ',' ORDER BY !)", "jsonb_object_agg(coalesce({text.}, '-'), {int.} ORDER BY !)",
        "«regr_count¦covar_pop»({int.}, {int.})", "string_agg(DISTINCT {text}, ';')", "range_agg({range.})",
        "rank({int.}) WITHIN GROUP (ORDER BY {int.})", "avg({int} * 1.0)", "count({any})",
    ),
    "window": (
        "row_number() OVER ~", "rank() OVER ~", "lag({text.}) OVER ~", "lead({int.}, 2, 0) OVER ~", "first_value({numeric.}) OVER ~",
        "sum({numeric.}) OVER ~", "ntile(3) OVER ~", "max({int.}) OVER ~", "count({text.}) OVER ~", "last_value({int.}) OVER ~",
        "nth_value({text.}, 2) OVER ~", "avg({int.}) OVER ~", "array_agg({int.}) OVER ~", "lag({date.}, «0¦1») OVER ~",
        "string_agg({text.}, ',') OVER ~", "count(*) FILTER (WHERE {bool}) OVER ~", "«min¦max»({timestamp}) OVER ~",
    ),
    # functions of peers and frames only, so that the order among equals does not show
    "peers": (
        "rank() OVER ~", "dense_rank() OVER ~", "cume_dist() OVER ~", "percent_rank() OVER ~", "count(*) OVER ~", "sum({int.}) OVER ~",
        "«min¦max»({any}) OVER ~", "bool_or({bool}) OVER ~", "avg({numeric.}) OVER ~", "sum({bigint.}) OVER ~",
    ),
}  # fmt: skip

GENERAL = (
    "coalesce({T}, {T})", "nullif({T}, {T})", "CASE WHEN {bool} THEN {T} ELSE {T} END", "CASE WHEN {bool} THEN {T} END",
    "«greatest¦least»({T}, {T})", "(CASE {int} WHEN 1 THEN {T} WHEN 0 THEN {T} END)",
)  # fmt: skip
