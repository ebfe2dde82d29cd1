"""The generated cases of the scalar comparison: SQL texts, each a SELECT of one or a few expressions."""

from __future__ import annotations

import itertools


def number_queries() -> list[str]:
    """Return queries over integers, numerics and floats."""
    out: list[str] = []

    def emit(exprs: object) -> None:
        for x in list(exprs):
            out.append("select " + x)

    for a, b in itertools.product(["7", "-7", "2147483647", "-2147483648", "0"], ["2", "-2", "0", "-1", "3"]):
        for op in "+-*/%":
            out.append(f"select ({a})::int4 {op} ({b})::int4")
    emit(
        f"({a})::int8 {op} ({b})::int8"
        for a in ["9223372036854775807", "-9223372036854775808", "5"]
        for b in ["-1", "0", "2"]
        for op in "+-*/%"
    )
    emit(
        f"({a})::int2 {op} ({b})::int2"
        for a in ["32767", "-32768", "5"]
        for b in ["-1", "0", "2"]
        for op in "+-*/%"
    )
    emit(
        [
            "5::int2*70000",
            "1<<33",
            "1::int8<<40",
            "(-1)>>1",
            "5&3,5|3,5#3,~5",
            "abs(-2147483648)",
            "abs(-5),@ -5",
            "- (-2147483648)",
            "gcd(12,18),lcm(4,6),gcd(0,0),lcm(0,5)",
            "gcd(-2147483648,0)",
            "lcm(2147483647,2)",
            "to_hex(255),to_hex(-1),to_hex(-1::int8)",
            "width_bucket(5.35::float8,0.024,10.06,5)",
            "5!=3",
            "mod(7,-3),mod(-7,3)",
            "power(2,10),2^10,2^0.5,(-8)^(1.0/3)",
            "|/ 16, ||/ 27",
            "1.5::int4,2.5::int4,(-2.5)::int4,2.5::float8::int4,3.5::float8::int4",
            "1e10::int4",
            "'NaN'::float8::int4",
            "32768::int2",
            "3000000000::int8::int4",
            "true::int4,1::bool,0::bool",
            "5::oid,(-5)::oid",
            "4294967296::int8::oid",
        ]
    )
    nums = [
        "0",
        "1",
        "-1",
        "1.5",
        "-2.50",
        "100",
        "0.001",
        "123456789.123456789",
        "1e20",
        "1e-20",
        "NaN",
        "Infinity",
        "-Infinity",
        "99999999999999999999.9999",
        "7",
        "3",
    ]
    for a, b in itertools.product(nums, nums):
        out.append(
            f"select '{a}'::numeric+'{b}', '{a}'::numeric-'{b}', '{a}'::numeric*'{b}', '{a}'::numeric<'{b}','{a}'::numeric='{b}','{a}'::numeric>='{b}'"
        )
        for op in ["/", "%"]:
            out.append(f"select '{a}'::numeric {op} '{b}'")
        out.append(f"select div('{a}'::numeric,'{b}')")
    for a in nums:
        for f in [
            "sqrt",
            "ln",
            "exp",
            "log",
            "ceil",
            "floor",
            "round",
            "trunc",
            "abs",
            "sign",
            "-",
            "scale",
            "trim_scale",
            "min_scale",
            "cbrt",
        ]:
            out.append(f"select {f}('{a}'::numeric)")
        for n in [-2, 0, 1, 5]:
            out.append(f"select round('{a}'::numeric,{n}),trunc('{a}'::numeric,{n})")
        for t in ["int2", "int4", "int8", "float8", "float4", "text", "numeric(10,2)"]:
            out.append(f"select '{a}'::numeric::{t}")
    for a, b in itertools.product(
        ["0", "1", "-1", "2", "1.5", "0.5", "10", "-2.5", "NaN", "Infinity", "-Infinity", "123.456", "1e5"],
        ["0", "1", "-1", "2", "3", "0.5", "-2", "-0.5", "10", "2.25", "100", "NaN", "Infinity", "-Infinity"],
    ):
        out.append(f"select '{a}'::numeric ^ '{b}'")
        out.append(f"select '{a}'::float8 ^ '{b}'")
    for a, b in itertools.product(["2", "10", "0.5", "3.7", "1e10"], ["2", "10", "0.001", "123456.789", "1"]):
        out.append(f"select log('{a}'::numeric,'{b}')")
    fl = [
        "0",
        "-0",
        "1",
        "-1.5",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e308",
        "1e-308",
        "2.5",
        "3.5",
        "-2.5",
        "123456.789",
    ]
    for a, b in itertools.product(fl, fl):
        for op in "+-*/":
            out.append(f"select '{a}'::float8 {op} '{b}'::float8")
        out.append(
            f"select '{a}'::float8 < '{b}'::float8,'{a}'::float8 = '{b}'::float8,'{a}'::float8 <> '{b}'::float8,'{a}'::float8 >= '{b}'::float8, '{a}'::float4 <= '{b}'::float8"
        )
    for a in fl:
        for f in [
            "sqrt",
            "cbrt",
            "ln",
            "log",
            "exp",
            "ceil",
            "floor",
            "round",
            "trunc",
            "abs",
            "sign",
            "sin",
            "cos",
            "tan",
            "cot",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "acosh",
            "atanh",
            "sind",
            "cosd",
            "tand",
            "cotd",
            "asind",
            "acosd",
            "atand",
            "degrees",
            "radians",
        ]:
            out.append(f"select {f}('{a}'::float8)")
        for t in ["int2", "int4", "int8", "numeric", "float4", "text"]:
            out.append(f"select '{a}'::float8::{t}")
        for f in "+-*/":
            out.append(f"select '{a}'::float4 {f} 3::float4")
    for d in [0, 30, 45, 60, 90, 120, 135, 150, 180, 210, 270, 300, 330, 360, -30, 17]:
        out.append(f"select sind({d}),cosd({d}),tand({d}),cotd({d})")
    for d in ["0", "0.5", "-0.5", "1", "-1", "0.3"]:
        out.append(f"select asind({d}),acosd({d}),atand({d}),atan2d({d},0.7),atan2({d},0.2)")
    emit(
        [
            "pi()",
            "factorial(0),factorial(30)",
            "factorial(-1)",
            "width_bucket(5.35,0.024,10.06,5),width_bucket(-1,0,10,5),width_bucket(10,0,10,5),width_bucket(3,10,0,4)",
            "width_bucket(1,2,2,5)",
            "width_bucket(1,0,2,0)",
            "gcd(1.5,2.25),lcm(1.5,2.25)",
            "12345.678::numeric(7,2)",
            "123456.78::numeric(5,2)",
            "0.1::float4::float8",
            "1.1::float4",
            "1e15::float8,1e16::float8,123456789012345680::float8",
            "0.1+0.2",
            "0.1::float8+0.2::float8",
            "1.0/3",
            "10.0/4",
            "5/2.0",
            "1/3::float8",
            "1e400::numeric * 2 > 1",
            "3.0 = 3",
            "numeric '3' = 3.00",
            "-5 % 3.5",
            "1.23456e-7",
            "100000000000000000000::numeric",
            "0.0000001::float8",
            "1::float4/3",
        ]
    )
    return out


def text_queries() -> list[str]:
    """Return queries over strings, patterns, casts and session functions."""
    out: list[str] = []

    S = ["''", "'a'", "'Hello World'", "'äöüß'", "'a,b,,c'", "'  pad '", "'xyxy'", "'日本語'"]
    for s in S:
        for f in [
            "length",
            "upper",
            "lower",
            "initcap",
            "reverse",
            "md5",
            "ascii",
            "octet_length",
            "bit_length",
            "char_length",
            "trim",
            "ltrim",
            "rtrim",
            "btrim",
            "quote_ident",
            "quote_literal",
            "quote_nullable",
        ]:
            out.append(f"select {f}({s})")
        for n in ["0", "1", "3", "-2", "100"]:
            out.append(
                f"select left({s},{n}),right({s},{n}),repeat({s},{n}),lpad({s},{n}),rpad({s},{n}),lpad({s},{n},'xy'),rpad({s},{n},'xy'),lpad({s},{n},'')"
            )
            out.append(f"select substr({s},{n}), substring({s} from {n} for 3), split_part({s},',',{n})")
            out.append(f"select overlay({s} placing 'ZZ' from {n}), overlay({s} placing 'Q' from 2 for {n})")
        for u in ["''", "'l'", "'xy'", "','", "'o W'"]:
            out.append(
                f"select position({u} in {s}),strpos({s},{u}),replace({s},{u},'<>'),translate({s},{u},'1'),split_part({s},{u},1),split_part({s},{u},-1),starts_with({s},{u}),trim(both {u} from {s}),trim(leading {u} from {s}),{s}||{u},{s}<{u},{s}={u},{s}>={u}"
            )
            out.append(f"select string_to_table({s},{u})")
    L = ["'abc'", "''", "'a%c'", "'a_c'", "'a\\b'", "'ABC'", "'line1'||chr(10)||'line2'"]
    P = [
        "'abc'",
        "'a%'",
        "'%c'",
        "'%b%'",
        "'a_c'",
        "'_'",
        "'%'",
        "''",
        "'a\\%c'",
        "'a\\_c'",
        "'a\\'",
        "'A%'",
        "'%1_line%'",
        "'a\\\\b'",
    ]
    for s, p in itertools.product(L, P):
        out.append(f"select {s} like {p}, {s} not like {p}, {s} ilike {p}, {s} ~~* {p}")
    out += [
        "select 'a%c' like 'a#%c' escape '#', 'axc' like 'a#%c' escape '#', 'a\\c' like 'a\\c' escape ''",
        "select 'a' like 'a' escape 'xx'",
    ]
    SIM = [
        "'abc'",
        "'%(b|d)%'",
        "'(b|c)%'",
        "'a[bc]+'",
        "'a_c'",
        "'a*'",
        "'abc|xyz'",
        "'[^a]%'",
        "'a{1,2}bc'",
        "'ab?c'",
        "'\\abc'",
        "'a.c'",
    ]
    for s, p in itertools.product(["'abc'", "'aac'", "'xyz'", "''"], SIM):
        out.append(f"select {s} similar to {p}, {s} not similar to {p}")
    out += [
        "select substring('foobar' similar '%#\"o_b#\"%' escape '#')",
        "select substring('foobar' from '%#\"o_b#\"%' for '#')",
        "select substring('foobar' from 'o(.)b'), substring('foobar' from 'o.b'), substring('foobar','z')",
    ]
    RX = [
        "'b+'",
        "'^a'",
        "'c$'",
        "'(a)(b)'",
        "'[[:alpha:]]+'",
        "'[^[:digit:]]'",
        "'\\d+'",
        "'\\w+'",
        "'\\s'",
        "'\\mfoo\\M'",
        "'a|ab|abc'",
        "'(?i)ABC'",
        "'x*'",
        "'a{2,3}'",
        "'a{2}'",
        "'(a|b)*c'",
        "'\\yfoo\\y'",
        "'.'",
        "'(?:ab)+'",
        "'a.?b'",
        "'['",
        "'('",
        "'a**'",
        "'(?=b)'",
        "'[a-c]+'",
        "'[]a]+'",
        "'\\u0061'",
        "'(\\w)\\1'",
        "'***=a.b'",
        "'[[:upper:]]'",
        "'a\\.b'",
        "'[\\d]+'",
        "'^$'",
        "'\\Aa'",
        "'c\\Z'",
        "'a+?'",
        "'{'",
        "'a{'",
        "''",
        "'(?n)^b.*$'",
        "'(?x) a b # c'",
        "'[[:<:]]foo[[:>:]]'",
    ]
    T = ["'abc'", "'aab foo abab 12'", "''", "'ABC'", "'a.b'", "'foo bar'", "'x'||chr(10)||'b1'"]
    for s, p in itertools.product(T, RX):
        out.append(f"select {s} ~ {p}, {s} !~ {p}, {s} ~* {p}")
        out.append(
            f"select regexp_replace({s},{p},'[\\&]'), regexp_replace({s},{p},'<\\1>','g'), regexp_match({s},{p}), regexp_count({s},{p}), regexp_instr({s},{p}), regexp_substr({s},{p}), regexp_like({s},{p},'i')"
        )
        out.append(f"select regexp_split_to_array({s},{p})")
        out.append(f"select regexp_matches({s},{p},'g')")
    out += [
        "select regexp_replace('abcabc','b','X',3)",
        "select regexp_replace('abcabc','b','X',1,2)",
        "select regexp_replace('abcabc','B','X',1,0,'i')",
        "select regexp_instr('abcabcabc','b',1,2,1)",
        "select regexp_instr('abcabcabc','a(b)(c)',1,2,0,'',2)",
        "select regexp_substr('abcabcabc','a(b)(c)',2,1,'i',2)",
        "select regexp_count('abcABC','b',1,'i')",
        "select regexp_match('abc','b','g')",
        "select regexp_replace('a','b','c','z')",
        "select regexp_split_to_table('a1b2c','\\d')",
        "select regexp_replace('abc','','-','g')",
        "select regexp_split_to_array('the quick','\\s*')",
        "select regexp_matches('foobarbequebaz', '(bar)(beque)')",
        "select regexp_count('a','a',0)",
    ]
    out += [
        "select chr(65),chr(8364)",
        "select chr(0)",
        "select chr(-1)",
        "select chr(1114112)",
        "select concat('a',1,null,true,2.50,'2020-01-01'::date), concat_ws(',',1,null,'x'), concat_ws(null,'a')",
        "select concat(variadic array['a','b',null]), concat_ws('-',variadic array[1,2])",
        "select format('Hello %s, %1$s, %I, %L, %%','w','a b','it''s')",
        "select format('%2$s %1$s|%10s|%-10s|%s','a','b','c','d')",
        "select format('%*s|%-*s', 5,'a',4,'b')",
        "select format('%s')",
        "select format('%z',1)",
        "select format('%I',null)",
        "select format('%L %s',null,null)",
        "select format('%', 1)",
        "select format('%s', array[1,2])",
        "select format(null)",
        "select quote_literal(E'a\\\\b'), quote_literal(5), quote_nullable(null), quote_nullable(1.5)",
        "select quote_ident('select'),quote_ident('Foo'),quote_ident('a b'),quote_ident('a\"b'),quote_ident('abc'),quote_ident('1a'),quote_ident('name'),quote_ident('_x')",
    ]
    out += [
        "select 'abc'::varchar(2), 'ab'::char(4)||'|', 'ab   '::char(3)='ab', 'ab '::bpchar = 'ab', 'ab '::text='ab', length('ab  '::char(4))",
        "select 'abcd'::varchar(10)::char(3)",
        "select cast('abc' as varchar(2))",
        "select 'abc'::name, 'x'::\"char\", 'xyz'::\"char\", 65::\"char\", 'A'::\"char\"::int",
        "select repeat('x',70)::name",
        "select 'ab '::char(4)::text||'|', 'ab '::char(4)||'|', concat('ab'::char(4),'|')",
        "select 'true'::bool,'f'::bool,'yes'::bool,'off'::bool,'1'::bool",
        "select 'maybe'::bool",
        "select true::text,false::varchar",
        "select 1::text||2, 1.50::text, 1e3::float8::text",
        "select '12'::int, ' 12 '::int, '-0'::int",
        "select '1x'::int",
        "select '99999999999'::int",
        "select ''::int",
        "select '1.5'::int",
        "select '0x10'::int",
        "select '1e3'::float8, 'inf'::float8",
        "select 'abc'::float8",
        "select '1e400'::float8",
        "select '1e3'::numeric,'.5'::numeric,'5.'::numeric,'1_0'::numeric",
        "select 5::text::int8::numeric::float8::text",
        "select unistr('d\\0061t\\+000061'), unistr('\\u00e4')",
        "select unistr('\\zz')",
        "select normalize('a'||chr(776)), 'ä' is normalized",
        "select B'101' & B'110', B'101' | B'010', B'101' # B'111', ~B'10', B'1011' << 2, B'1011' >> 1, B'10'||B'01', length(B'101'), get_bit(B'101',1), set_bit(B'101',1,1)",
        "select 5::bit(4), (-5)::bit(8), B'1010'::int, B'1010'::int8, 44::bit(10), B'101'::bit(5), B'10111'::varbit(3), bit_count(B'1011')",
        "select B'101' & B'10'",
        "select substring(B'110010' from 2 for 3), position(B'01' in B'1101'), overlay(B'110010' placing B'11' from 3), octet_length(B'101')",
        "select B'101' < B'11', B'101'='101'::bit(3), B'1' < B'10'",
        "select set_bit(B'101',5,1)",
        "select pg_typeof(1), pg_typeof('a'::text), pg_typeof(1.5), pg_typeof(null), pg_typeof(array[1])",
        "select num_nulls(1,null,2), num_nonnulls(1,null), num_nulls(variadic array[1,null])",
        "select pg_size_pretty(0::int8),pg_size_pretty(10239::int8),pg_size_pretty(10240::int8),pg_size_pretty(1048576::int8),pg_size_pretty(123456789012::int8),pg_size_pretty(-123456::int8), pg_size_pretty(12345678901234567890::numeric)",
        "select pg_size_bytes('10kB'),pg_size_bytes('1.5 MB'),pg_size_bytes('7')",
        "select pg_size_bytes('x')",
        "select 'int4'::regtype, 'integer[]'::regtype, 'character varying'::regtype, 23::regtype, 0::regtype, 999999::regtype",
        "select 'nosuch'::regtype",
        "select 'timestamp with time zone'::regtype::oid",
        "select 'abs'::regproc",
        "select 'now'::regproc, 'abs(integer)'::regprocedure, 'upper'::regproc",
        "select to_regtype('int'),to_regtype('nosuch'),to_regclass('nosuch')",
        "select format_type(1043,24),format_type(23,null),format_type(1700,655366),format_type(null,1),format_type(1009,-1)",
        "select parse_ident('\"Foo\".bar')",
        "select parse_ident('a..b')",
        "select version() is not null, current_database(), current_schema(), current_schemas(false), current_schemas(true), current_user, session_user",
        "select 'a' < 'B', 'a' < 'b', 'Z' < 'a', 'ä' > 'z'",
        "select 'abc' ^@ 'ab', 'a' || null",
        "select upper('straße'), lower('ÀÉ'), initcap('hello wORLD foo-bar x1y')",
        "select encode('abc','base64')",
        "select to_hex(255)",
        "select length('a'::\"char\"::text)",
        "select 'a'::text::\"char\" = 'a'",
        "select ascii('é'), ascii('')",
        "select 1 from emp where name like 'a%' and name ilike 'A%' and name ~ '^a'",
        "select '(1,2)'::text",
        "select 5 between 1 and 10, 5 between symmetric 10 and 1, 5 not between 1 and 4",
        "select overlay('abcdef' placing 'x' from 0)",
        "select substring('abc' from -1 for 3), substring('abc' from 2 for -1)",
        "select repeat('ab', 3), repeat('', 5), repeat('a',-1)",
        "select random() between 0 and 1, setseed(0.5)",
        "select setseed(2)",
        "select string_to_table('a,b,*',',','*')",
    ]
    return out


def format_queries() -> list[str]:
    """Return queries over format(): positions, widths, and how templates go wrong."""
    return [
        "select format('%*2$s|', 'a', 5, 'x')",
        "select format('%*s|', 'abc', 'x')",
        "select format('%*s|', '4', 'x')",
        "select format('%*s|', 4.6, 'x')",
        "select format('%*1', 1)",
        "select format('%*1$', 1)",
        "select format('%1$', 1)",
        "select format('%*q', 1)",
        "select format('%*q')",
        "select format('%-*s|', -4, 'x')",
        "select format('%*s|', null, 'x')",
        "select format('%3$s %s', 1,2,3)",
        "select format('%1$*2$s|', 'x', 4)",
        "select format('%2$*1$s|', 4, 'y')",
        "select format('%0$s', 1)",
        "select format('%*0$s', 1)",
        "select format('%99999999999s', 1)",
        "select format('%5', 1)",
        "select format('%-', 1)",
        "select format('%*', 1)",
        "select format('%L|%s|', null, null)",
        "select format('%*s|', true, 'x')",
        "select format('%*s|', -2147483648, 'x')",
        "select format('%s%%%s', 1, 2)",
        "select format('%--5s|', 'x')",
        "select format('%-05s|', 'x')",
        "select format('a%1$sb%sc%sd', 1, 2)",
        "select format('%s %s', variadic array[1,2])",
    ]
