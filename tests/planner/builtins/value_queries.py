"""Queries over date/time, json, array and bytea functions, to be asked of PostgreSQL and of the row executor."""

from __future__ import annotations

from itertools import product

_TS = ["2020-02-29 12:34:56.789012", "1999-12-31 23:59:59.999999", "2000-01-01", "1970-01-01 00:00:01", "0001-01-01",
       "2021-01-03 05:06:07", "0044-03-15 10:00 BC", "0100-07-01 BC", "2024-03-10 02:30:00", "2024-11-03 01:30:00", "infinity",
       "-infinity", "9999-12-31 23:59:59", "12020-05-06 07:08:09.1"]  # fmt: skip
_IV = ["1 day", "-1 day", "1 mon", "1 mon -1 day 02:03:04", "13 months 40 days 30:00:00.5", "-1 year -2 mons +3 days -04:05:06.789",
       "0", "100:00:00", "-25:00:00", "1.5 years", "29 days", "-45 days 36:00"]  # fmt: skip
_D = [
    "2020-02-29",
    "1999-12-31",
    "2000-01-01",
    "0001-01-01",
    "0044-03-15 BC",
    "infinity",
    "-infinity",
    "2021-01-03",
]
_T = ["00:00:00", "12:34:56.789", "23:59:59.999999", "24:00:00"]
_TZ = ["00:00:00+00", "12:34:56.789-05:30", "23:59:59+14"]
_UNITS = ["microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade",
          "century", "millennium", "epoch", "dow", "isodow", "doy", "isoyear", "julian", "timezone", "timezone_hour",
          "timezone_minute", "foo", "SECS", "mons", "y"]  # fmt: skip
_TRUNC = [*_UNITS[:13], "dow", "timezone", "foo"]


def _values(name: str, texts: list[str]) -> list[str]:
    return [f"{name} '{text}'" for text in texts]


TS, TSTZ = _values("timestamp", _TS), _values("timestamptz", _TS)
IV, D, T, TZ = _values("interval", _IV), _values("date", _D), _values("time", _T), _values("timetz", _TZ)


def time_queries() -> list[str]:
    """Return queries over dates, times and intervals."""
    out: list[str] = []
    for values, types in ((TS, _TS), (TSTZ, _TS), (D, _D), (T, _T), (TZ, _TZ), (IV, _IV)):
        del types
        for value, unit in product(values, _UNITS):
            out.append(
                f"select extract('{unit}' from {value})"
                if unit.isalpha()
                else f"select date_part('{unit}', {value})"
            )
            out.append(f"select date_part('{unit}', {value})")
    for values in (TS, TSTZ, IV):
        out += [f"select date_trunc('{unit}', {value})" for value, unit in product(values, _TRUNC)]
    out += [
        f"select date_trunc('{unit}', {value}, 'Australia/Sydney')" for value, unit in product(TSTZ, _TRUNC)
    ]
    for op in "+-":
        for values in (TS, TSTZ, D, T, TZ, IV):
            out += [f"select {a} {op} {b}" for a, b in product(values, IV)]
        for values in (TS, TSTZ, D, T):
            out += [f"select {a} {'-'} {b}" for a, b in product(values, values) if op == "-"]
        out += [f"select {d} {op} {n}" for d, n in product(D, (1, -400, 2147483647))]
    out += [f"select {d} + {t}, {d} + {tz}" for d, t, tz in product(D, T[:2], TZ[1:2])]
    out += [
        f"select {iv} {op} {f}" for iv, op, f in product(IV, "*/", ("2", "0.5", "-1.3", "0", "1e9", "3.7"))
    ]
    out += [f"select -({iv}), justify_days({iv}), justify_hours({iv}), justify_interval({iv})" for iv in IV]
    finite = [v for v in TS if "infinity" not in v]
    out += [f"select age({a}, {b})" for a, b in product(finite, finite)]
    finite = [v for v in TSTZ if "infinity" not in v]
    out += [f"select age({a}, {b})" for a, b in product(finite[:6], finite[:6])]
    for values in (TS, TSTZ, D, T, TZ, IV):
        for op in ("=", "<", "<=", "<>"):
            out += [f"select {a} {op} {b}" for a, b in product(values[:7], values[:7])]
    for left, right in ((D, TS), (D, TSTZ), (TS, TSTZ)):
        for op in ("=", "<", ">="):
            out += [f"select {a} {op} {b}, {b} {op} {a}" for a, b in product(left[:7], right)]
    for values, targets in (
        (TS, ("date", "time", "timestamptz", "timestamp(1)", "text")), (TSTZ, ("date", "time", "timestamp", "timetz", "timestamptz(2)", "text")),
        (D, ("timestamp", "timestamptz", "text")), (T, ("interval", "time(1)")), (TZ, ("time", "timetz(1)")),
        (IV, ("time", "interval(1)", "interval year to month", "interval day to minute", "interval hour")),
    ):  # fmt: skip
        out += [f"select ({value})::{target}" for value, target in product(values, targets)]
    zones = ["UTC", "america/new_york", "EST", "Europe/Berlin", "MSK", "UTC+3", "nowhere", "<+05>-05"]
    out += [f"select {value} at time zone '{zone}'" for value, zone in product([*TS, *TSTZ], zones)]
    out += [f"select {value} at time zone {iv}" for value, iv in product([TS[0], TSTZ[0], TZ[1]], IV)]
    out += [f"select isfinite({value})" for value in (*TS[8:], *D, *IV[:2])]
    strides = ["15 minutes", "1 day", "2 hours 1 second", "0", "-1 day", "1 month"]
    out += [
        f"select date_bin('{stride}', {value}, timestamp '2001-01-01 00:00:30')"
        for stride, value in product(strides, TS)
    ]
    out += [
        "select make_date(2020,2,29), make_date(-44,3,15)", "select make_date(2020,2,30)", "select make_date(0,1,1)",
        "select make_time(8,15,23.5), make_time(24,0,0)", "select make_time(25,0,0)", "select make_time(1,60,1)",
        "select make_timestamp(2013,7,15,8,15,23.5)", "select make_timestamp(2013,13,15,8,15,23.5)",
        "select make_timestamptz(2013,7,15,8,15,23.5)", "select make_timestamptz(2013,7,15,8,15,23.5,'Europe/Berlin')",
        "select make_timestamptz(2013,7,15,8,15,23.5,'+05:30')", "select make_timestamptz(2013,7,15,8,15,23.5,'EST')",
        "select make_interval(1,2,3,4,5,6,7.5), make_interval(days => 10), make_interval(secs => -0.5)",
        "select to_timestamp(0), to_timestamp(1284352323.5), to_timestamp('-infinity'::float8), to_timestamp(-1e10)",
        "select to_timestamp('nan'::float8)", "select to_timestamp(1e20)",
        "select (timestamp '2001-02-16', timestamp '2001-12-21') overlaps (timestamp '2001-10-30', timestamp '2002-10-30')",
        "select (date '2001-02-16', interval '100 days') overlaps (date '2001-10-30', date '2002-10-30')",
        "select (time '00:00', time '01:00') overlaps (time '01:00', time '02:00'), (time '00:00', null) overlaps (time '00:30', time '02:00')",
        "select (time '01:00', interval '1 hour') overlaps (time '01:30', interval '1 hour')",
        "select (timetz '11:48-07', timetz '20:48-07') overlaps (timetz '18:00-04', timetz '21:00-04')",
        "select * from generate_series(timestamp '2020-01-31', '2020-06-30', '1 month')",
        "select * from generate_series(timestamptz '2024-03-09', '2024-03-12', '1 day')",
        "select * from generate_series(timestamp '2020-01-03', '2020-01-01', '-12 hours')",
        "select * from generate_series(timestamp '2020-01-03', '2020-01-01', '0')",
        "select max(x), min(x) from (values (interval '1 mon'), ('31 days'), ('29 days')) v(x)",
        "select sum(x), avg(x) from (values (interval '1 mon'), ('30 days'), ('29 days 5 hours')) v(x)",
        "select date '5874897-12-31'::timestamp",
        "select timestamp '4714-11-24 BC' - interval '1 day'", "select date '2020-01-01' + 2147483647",
        "select interval '2147483647 days' + interval '1 day'", "select -interval '-2147483648 days'",
    ]  # fmt: skip
    return out


_FORMATS = [
    "YYYY-MM-DD HH24:MI:SS.US", "Day DAY day Dy DY dy", "FMDay, FMDD FMMonth YYYY", "Month MONTH month Mon MON mon|",
    "Y,YYY YYY YY Y", "IYYY-IW-ID IYY IY I IDDD", "HH12:MI:SS AM am A.M. p.m.", "DDD DDDth DDth ddTH D W WW Q CC J", "SSSS SSSSS MS US FF1 FF3 FF6",
    "BC AD b.c. a.d.", "RM rm FMRM|", "TZ tz TZH TZM OF", 'YYYY"y year"MM \\" "q\\"uoted"', "FMHH24:FMMI:FMSS FMYYYY FMDDD", "HH24MISS YYYYMMDD", "",
    "TMDay TMMonth", "plain text xx", "FXYYYY FX", "HHth MIth SSst", "Mi mI", "YYYYth, CCth", "SP DDSP",
]  # fmt: skip
_INTERVAL_FORMATS = [
    "HH24:MI:SS", "DD HH12 MI SS MS US", "YYYY MM DD", "Y,YYY YYY", "CC Q DDD SSSS", "AM HH", "RM|", "FMHH24:FMMI FMYYYY", "Month", "D", "WW W", "FF3", "DDth HH24th",
]  # fmt: skip
_INTS = ["0", "1", "-1", "12", "-12", "485", "-485", "3148", "1234567", "4000", "3999"]
_DECIMALS = [
    "0",
    "0.1",
    "-0.1",
    "0.12",
    "12.34",
    "-12.34",
    "485.8",
    "3148.5",
    "-3148.567",
    "0.0000123",
    "123456.789",
    "99.995",
    "1e10",
    "0.00",
]
_NUMBER_FORMATS = [
    "9", "99", "999", "9999", "999.99", "9.9", "FM9.9", "0.9", "FM0.99", "9990.99", "00999", "FM999.009", "99,999", "9,999,999.99", "FM9,999,999.999",
    "9G999D99", "S999", "999S", "MI999", "999MI", "FM999MI", "PL999", "SG999", "999PL", "999SG", "999PR", "FM999PR", "9 9 9", "999th", "RN", "FMRN", "rn", "L999", '"Good number:"999',
    "999V9", "99V99", "9.99EEEE", "9EEEE", "B999", "FM", "", "0", "000", "0,000.0", ".99", "FM.99", "99.", "S9.9", "9.9S", "FM9.9S", "FMS0.9", "9D9", "0999.9900", "FM0999.9900", "9999999999.99999",
    "x9y9z", "SG9.9", "9.9MI", "TH999", "999TH", "S0999", "0S", "9.9.9", "9V9.9", "S9S", "SMI9", "9PR9", "EEEE9", "FM9EEEE", "FM90.99S", "MI0", "FM0MI", "PL9.9", "9,9", "FM9,999",
]  # fmt: skip
_TO_TIMESTAMP = [
    ("2020-01-02 03:04:05", "YYYY-MM-DD HH24:MI:SS"), ("20200102", "YYYYMMDD"), ("2020 Jan 02", "YYYY Mon DD"), ("2 january 2020", "DD Month YYYY"), ("01/02/20", "MM/DD/YY"), ("1/2/85", "MM/DD/YY"),
    ("12:30 PM", "HH12:MI AM"), ("12:30 am", "HH:MI AM"), ("13:30 pm", "HH12:MI PM"), ("2020-13-01", "YYYY-MM-DD"), ("2020-02-30", "YYYY-MM-DD"), ("2020-060", "YYYY-DDD"), ("2020-366", "YYYY-DDD"), ("2021-366", "YYYY-DDD"),
    ("2006-06-1", "IYYY-IW-ID"), ("2006 06", "IYYY IW"), ("2020 10", "YYYY WW"), ("2020-01-02 +05", "YYYY-MM-DD TZH"), ("2020-01-02 -05:30", "YYYY-MM-DD TZH:TZM"), ("2020-01-02-03", "YYYY-MM-DD-TZH"), ("123", "MS"), ("1.5", "SS.MS"), ("1.25", "SS.US"),
    ("2451545", "J"), ("44-03-15 BC", "YYYY-MM-DD BC"), ("21 20", "CC YY"), ("XII 2020", "RM YYYY"), ("iv 2020", "rm YYYY"), ("foo", "YYYY"), ("2020-xx", "YYYY-MM"), ("20", "YYYYMM"), ("2020 foo", "YYYY Mon"), ("Mon 2020", "Dy YYYY"), ("  2020  01", "YYYY MM"),
    ("2020/01/02", "YYYY-MM-DD"), ("2020abc01", 'YYYY"abc"MM'), ("1,234-01-01", "Y,YYY-MM-DD"), ("3rd 2020", "DDth YYYY"), ("2020-01-02", "FXYYYY-MM-DD"), ("2020 -01", "FXYYYY-MM"), ("", "YYYY"), ("2020", ""), ("5000", "SSSS"), ("86399", "SSSSS"), ("99999", "SSSSS"),
    ("2020-01-02 24:00:00", "YYYY-MM-DD HH24:MI:SS"), ("12:60", "HH24:MI"), ("2020 2021", "YYYY YYYY"), ("2020 01", "IYYY MM"), ("2020-W05-3", 'IYYY-"W"IW-ID'), ("99 ", "YY"), ("5", "Y"), ("123", "YYY"), ("2020-1-2", "YYYY-MM-DD"), ("2020-1-2", "FMYYYY-FMMM-FMDD"), ("20201 2", "YYYYMM DD"),
    ("2011-12-18 11:38:15", "YYYY-MM-DD HH12:MI:SS"), ("2011   12  18", "YYYY MM DD"), ("2000+   JUN", "YYYY/MON"), ("  20000101", "YYYYMMDD"), ("2000..JUN", "YYYY.MON"), ("4711-01-01 b.c.", "YYYY-MM-DD B.C."), ("1 4 1902", "Q MM YYYY"), ("2018-11-02T12:34:56.025", 'YYYY-MM-DD"T"HH24:MI:SS.MS'), ("2018-11-02 12:34:56.025123", "YYYY-MM-DD HH24:MI:SS.FF6"), ("2020-01-01 EST", "YYYY-MM-DD TZ"),
]  # fmt: skip
_TO_NUMBER = [
    ("12,454.8-", "99G999D9S"), ("-34,338,492", "99G999G999"), ("-34,338,492.654,878", "99G999G999D999G999"), ("<564646.654564>", "999999.999999PR"), ("0.00001-", "9.999999S"), ("5.01-", "FM9.999999S"), ("5.01-", "FM9.999999MI"), ("5 4 4 4 4 8 . 7 8", "9 9 9 9 9 9 . 9 9"), (".01", "FM9.99"), (".0", "99999999.99999999"), ("0", "99.99"), (".-01", "S99.99"), (".01-", "99.99S"), (" . 0 1-", " 9 9 . 9 9 S"), ("34,50", "999,99"),
    ("123,000", "999G"), ("123456", "999G999"), ("$1234.56", "L9,999.99"), ("$1,234.56", "L9,999.99"), ("1234.56", "L9,999.99"), ("42nd", "99th"), ("", "9"), ("abc", "999"), ("1234", "99"), ("12.345", "99.9"), ("-12", "99"), ("+12", "S99"), ("12", ""), ("123", "9V99"), ("1e5", "9EEEE"), ("XII", "RN"), ("12-", "99MI"), ("-12", "MI99"), ("12", "9999999999"),
]  # fmt: skip


def format_queries() -> list[str]:
    """Return queries over to_char, to_timestamp, to_date and to_number."""

    def quoted(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    out = [f"select to_char({value}, {quoted(form)})" for value, form in product([*TS, *TSTZ[:9]], _FORMATS)]
    out += [f"select to_char({value}, {quoted(form)})" for value, form in product(IV, _INTERVAL_FORMATS)]
    for form in _NUMBER_FORMATS:
        out += [f"select to_char({value}, {quoted(form)})" for value in _INTS]
        out += [f"select to_char({value}::numeric, {quoted(form)})" for value in [*_DECIMALS, "'NaN'"]]
        out += [
            f"select to_char({value}::float8, {quoted(form)})"
            for value in [*_DECIMALS, "'NaN'", "'-Infinity'"]
        ]
        out += [f"select to_char({value}::float4, {quoted(form)})" for value in [*_DECIMALS[:8], "'inf'"]]
    for text, form in _TO_TIMESTAMP:
        out.append(f"select to_timestamp({quoted(text)}, {quoted(form)})")
        out.append(f"select to_date({quoted(text)}, {quoted(form)})")
    out += [f"select to_number({quoted(text)}, {quoted(form)})" for text, form in _TO_NUMBER]
    return out


_JSON = [
    '{"a":1,"b":[1,2,{"c":"x"}],"d":null,"e":"str","f":{"g":1.50,"h":true}}', "[1,2.0,\"a\",null,true,[3,4],{\"k\":\"v\"}]", '"text"', "12.30", "true", "null", "{}", "[]",
    '{"a":{"b":{"c":[0,1,2]}}}', '[{"a":1},{"a":2}]', '{"a":1,"a":2}', '"\\u00e9\\n"',
]  # fmt: skip
_PATHS = [
    "{a}",
    "{b,2,c}",
    "{f,g}",
    "{0}",
    "{-1}",
    "{5,k}",
    "{6,k}",
    "{a,b,c,-1}",
    "{}",
    "{a,NULL}",
    "{b,x}",
    "{-20}",
    "{20}",
    "{zz}",
]


def json_queries() -> list[str]:
    """Return queries over json and jsonb."""
    out: list[str] = []
    for t in ("json", "jsonb"):
        values = [f"'{text}'::{t}" for text in _JSON]
        for v in values:
            out += [
                f"select {v} -> {key}, {v} ->> {key}"
                for key in ("'a'", "'b'", "'e'", "'zz'", "0", "1", "-1", "9", "5")
            ]
            out += [f"select {v} #> '{path}', {v} #>> '{path}'" for path in _PATHS]
            out += [f"select {t}_typeof({v})", f"select {t}_array_length({v})", f"select {t}_object_keys({v})", f"select * from {t}_each({v})",
                    f"select * from {t}_each_text({v})", f"select * from {t}_array_elements({v})", f"select * from {t}_array_elements_text({v})",
                    f"select {t}_strip_nulls({v})", f"select {t}_extract_path({v}, 'b', '2', 'c')", f"select {t}_extract_path_text({v}, 'f', 'g')", f"select {v}::text"]  # fmt: skip
    values = [f"'{text}'::jsonb" for text in _JSON]
    for a, b in product(values, values):
        out += [f"select {a} @> {b}, {a} || {b}, {a} = {b}, {a} < {b}"]
    for v in values:
        out += [
            f"select {v} ? '{key}', {v} ?| array['{key}','1'], {v} ?& array['{key}']"
            for key in ("a", "text", "b")
        ]
        out += (
            [f"select {v} - '{key}'" for key in ("a", "zz")]
            + [f"select {v} - {n}" for n in (0, -1, 9)]
            + [f"select {v} - array['a','e']"]
        )
        out += [f"select jsonb_pretty({v})"]
        for path in _PATHS:
            out += [f"select {v} #- '{path}'", f"select jsonb_set({v}, '{path}', '\"N\"')", f"select jsonb_set({v}, '{path}', '9', false)",
                    f"select jsonb_insert({v}, '{path}', '[7]')", f"select jsonb_insert({v}, '{path}', '7', true)"]  # fmt: skip
        out += [f"select ({v})::{t}" for t in ("bool", "int4", "numeric", "float8", "int2")]
    for value in ("1", "1.50", "'x\"y'::text", "true", "null::int", "timestamp '2020-01-02 03:04:05.6'", "timestamptz '2020-01-02 03:04:05+00'", "date '2020-01-02'", "'infinity'::timestamp", "time '10:00'",
                  "interval '1 day'", "'{\"a\": 1}'::json", "'{\"a\": 1}'::jsonb", "array[1,2]", "array[[1,2],[3,4]]", "array['a',null]", "'NaN'::float8", "'Infinity'::numeric", "array[]::int[]", "row(1,'a',null)",
                  "'\\xab'::bytea", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "1e20::float8", "array[date '2020-01-01']", "'ab'::bpchar(4)"):  # fmt: skip
        out += [f"select to_json({value}), to_jsonb({value})", f"select json_build_array({value}, 1), jsonb_build_array({value})",
                f"select json_build_object('k', {value}), jsonb_build_object('k', {value})", f"select json_build_object({value}, 1)", f"select jsonb_build_object({value}, 1)"]  # fmt: skip
    out += [
        "select array_to_json(array[[1,2],[3,4]], true)", "select row_to_json(row(1,'x')), row_to_json(row(1,'x'), true)", "select row_to_json(d) from dept d", "select to_jsonb(d) from dept d",
        "select row_to_json(x) from (select 1 as a, 'b' as c) x", "select json_object('{a,1,b,2}'), json_object('{{a,1},{b,null}}'), json_object('{a,b}','{1,2}')", "select json_object('{a,1,b}')", "select json_object('{a,b}','{1}')",
        "select jsonb_object('{b,1,a,2,b,3}'), jsonb_object('{}')", "select json_object('{null,1}')", "select json_object('{{a,b,c}}')", "select json_build_object('a')", "select jsonb_build_object('a',1,'b')", "select json_build_object(), jsonb_build_array()",
        "select json_agg(id), jsonb_agg(title), json_object_agg(id, title) from dept", "select jsonb_set_lax('{\"a\":1}', '{a}', null), jsonb_set_lax('{\"a\":1}', '{a}', null, true, 'delete_key')",
        "select jsonb_set_lax('{\"a\":1}', '{a}', null, true, 'raise_exception')", "select jsonb_set_lax('{\"a\":1}', '{a}', null, true, 'foo')", "select jsonb_set('1', '{a}', '2')", "select jsonb_set('{}', '{a,b}', '2')", "select jsonb_set('[1]', '{x}', '2')",
        "select '[1,2]'::jsonb @> '1', '1'::jsonb @> '[1]', '[[1,2]]'::jsonb @> '[[1]]', '[1,[2]]'::jsonb @> '[2]', '{\"a\":[1,2]}'::jsonb @> '{\"a\":[]}', '[1,1]'::jsonb <@ '[1]'",
        "select x from (values ('1'::jsonb),('\"a\"'),('null'),('[]'),('{}'),('[1]'),('true'),('false'),('{\"a\":1}'),('\"B\"'),('[1,2]'),('0.5')) v(x) order by x",
    ]  # fmt: skip
    return out


def array_queries() -> list[str]:
    """Return queries over arrays."""
    arrays = [
        "array[1,2,3]",
        "array[]::int[]",
        "null::int[]",
        "array[1,null,3,1]",
        "array[[1,2],[3,4]]",
        "array[3]",
    ]
    out: list[str] = []
    for a in arrays:
        out += [f"select array_length({a},1), array_length({a},2), array_length({a},0), array_upper({a},1), array_lower({a},1), array_dims({a}), array_ndims({a}), cardinality({a})",
                f"select array_append({a}, 9)", f"select array_prepend(9, {a})", f"select array_append({a}, null)", f"select {a} || 7, 7 || {a}", f"select array_position({a}, 1), array_positions({a}, 1)",
                f"select array_position({a}, 1, 2)", f"select array_position({a}, null)", f"select array_remove({a}, 1)", f"select array_remove({a}, null)", f"select array_replace({a}, 1, 8)", f"select array_replace({a}, null, 8)",
                f"select array_to_string({a}, ','), array_to_string({a}, ',', '*'), array_to_string({a}, null)", f"select unnest({a})", f"select * from unnest({a}) with ordinality", f"select generate_subscripts({a}, 1)", f"select generate_subscripts({a}, 1, true)",
                f"select trim_array({a}, 1)", f"select trim_array({a}, 5)", f"select ({a})::text, ({a})::text[]", f"select ({a})[2], ({a})[1:2], ({a})[5]"]  # fmt: skip
        for b in arrays:
            out += [
                f"select {a} || {b}",
                f"select {a} @> {b}, {a} <@ {b}, {a} && {b}",
                f"select {a} = {b}, {a} < {b}, {a} >= {b}, {a} <> {b}",
            ]
    out += [
        "select array_fill(7, array[2,3])", "select array_fill(7, array[2], array[1])", "select array_fill(null::int, array[2])", "select array_fill(1, null)", "select array_fill(1, array[null]::int[])", "select array_fill(1, array[]::int[])",
        "select string_to_array('a,b,,c', ','), string_to_array('a,b,,c', ',', ''), string_to_array('abc', null), string_to_array('abc',''), string_to_array('',','), string_to_array(null,',')", "select array['a','b'] || 'c'::text, array['x'] @> array['x','y']",
        "select array[1.0,2.00] = array[1,2]::numeric[], array['NaN'::float8] @> array['NaN'::float8]", "select array_position(array['a ','b']::bpchar(3)[], 'a')", "select array[interval '1 day', interval '24 hours'], array[interval '1 day'] = array[interval '24 hours']",
        "select array_position(array[interval '1 day'], interval '24 hours'), cardinality(array[interval '1 day', null]), array_dims(array[[interval '1 day'],[interval '2 days']])", "select unnest(array[[interval '1 day'],[interval '2 days']])", "select array[row(1,2),row(3,4)]",
        "select array_agg(id order by id desc), array_agg(array[id]) from dept", "select 2 = any(array[1,2]), 2 = all(array[2,2]), 5 = any('{1,null}'::int[])", "select '{1,2}'::int[] || '{3}'::int[], array[[1],[2]] || array[3]", "select array[[1,2]] || array[[1]]", "select array[[[1]]] || array[1]",
        "select * from unnest(array[1,2], array['a','b','c']) as t(a,b)", "select max(x), min(x) from (values (array[1,2]),(array[1,3]),(array[1])) v(x)", "select array_ndims('1 2'::int2vector), array_lower('1 2'::int2vector, 1), array_upper('1 2'::oidvector, 1), ('5 6'::int2vector)[0], unnest('7'::oidvector)",
        "select array_append(array[1,2], 1.5)", "select array[1,2]::numeric(5,1)[], array['a','b']::varchar(1)[]", "select array_to_string(array[timestamp '2020-01-01', null], '|', 'none'), array_to_string(array[true,false], ',')", "select array_length(array[1], null)", "select width_bucket(5, array[1,5,10])",
    ]  # fmt: skip
    return out


def bytea_queries() -> list[str]:
    """Return queries over bytea and uuid."""
    values = ["'\\x'::bytea", "'\\x00ff10'::bytea", "'abcdef'::bytea", "'\\x5c00'::bytea"]
    out: list[str] = []
    for v in values:
        out += [f"select length({v}), octet_length({v}), bit_length({v}), {v} || '\\x01'::bytea, bit_count({v})", f"select substr({v}, 2), substring({v} from 2 for 1), substring({v} from -1 for 3)", f"select substr({v}, 1, -1)",
                f"select overlay({v} placing '\\xaa' from 2), overlay({v} placing '\\xaabb' from 1 for 1)", f"select overlay({v} placing '\\xaa' from 0)", f"select position('\\xff'::bytea in {v}), position(''::bytea in {v})", f"select get_byte({v}, 1)", f"select get_byte({v}, -1)",
                f"select set_byte({v}, 1, 300)", f"select get_bit({v}, 9)", f"select get_bit({v}, 100)", f"select set_bit({v}, 9, 0)", f"select set_bit({v}, 1, 2)", f"select encode({v}, 'hex'), encode({v}, 'base64'), encode({v}, 'escape')", f"select encode({v}, 'foo')", f"select md5({v}), sha224({v}), sha256({v}), sha384({v}), sha512({v})",
                f"select btrim({v}, '\\x00'::bytea), ltrim({v}, 'abf'::bytea), rtrim({v}, 'f'::bytea)", f"select {v} like 'a%'::bytea, {v} not like '_b%'::bytea", f"select {v} = 'abcdef', {v} < '\\x61', {v}::text"]  # fmt: skip
    texts = [
        "00ff",
        "zz",
        "0",
        "YWJj",
        "YWJ",
        "YWJj=",
        "YW Jj\\n",
        "YWI=",
        "YQ==",
        "Y===",
        "a\\\\001b",
        "a\\\\b",
        "!!!!",
        "",
    ]
    out += [
        f"select decode(E'{text}', '{form}')"
        for text, form in product(texts, ("hex", "base64", "escape", "foo"))
    ]
    out += [
        "select encode(repeat('x', 100)::bytea, 'base64')", "select convert_from('\\xc3a9', 'UTF8'), convert_to('é', 'utf-8')", "select convert_from('\\xff', 'UTF8')", "select length('\\xc3a9'::bytea, 'UTF8')", "select int4send(5), int8send(-1), textsend('é'), float8send(1.5), numeric_send(12.5)",
        "select 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid < 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, gen_random_uuid() <> gen_random_uuid()", "select substring(gen_random_uuid()::text from 15 for 1)", "select 'a'::bytea like 'a\\\\'::bytea", "select string_agg(x, ','::bytea) from (values ('a'::bytea),('b')) v(x)",
        "select 'a%c'::bytea like 'a!%c'::bytea escape '!'::bytea",
    ]  # fmt: skip
    return out
