"""Random queries over a fixed schema, for two servers to answer: a function of a seed.

    Generator(seed).query()  ──>  SELECT text; every query orders by all of its columns, so that LIMIT is determined

Expressions are typed, nest a few levels and meet NULLs, empty strings, negative numbers and zeros as divisors. What SQL leaves open is
not asked: sums of floats, order among equals, what is evaluated first beside an error.
"""

from __future__ import annotations

import random
import re

SCHEMA = """
DROP TABLE IF EXISTS gen_a, gen_b;
CREATE TABLE gen_a (id int PRIMARY KEY, i int, b bigint, n numeric, s text, d date, ts timestamp, o boolean, f float8);
CREATE TABLE gen_b (k int PRIMARY KEY, i int, s text, n numeric(8, 2), o boolean);
INSERT INTO gen_a SELECT g, nullif(g % 7, 3) - 2, nullif(g % 5, 4) * 1000000007::bigint,
 nullif(g % 11, 6) * 1.25 - 4, nullif((array['a', '', 'Bc', 'é', 'a%b', 'xyz'])[g % 6 + 1], 'xyz'),
 date '2024-02-27' + nullif(g % 9, 5), timestamp '2024-01-31 23:59:58.5' + nullif(g % 8, 2) * interval '1 day 7 hours',
 nullif(g % 3, 2) = 1, nullif(g % 4, 1) * 0.5 FROM generate_series(1, 24) g;
INSERT INTO gen_b SELECT g, nullif(g % 4, 0), (array['a', 'Bc', null, 'q'])[g % 4 + 1], nullif(g % 5, 2) * 3.33, g % 2 = 0
 FROM generate_series(1, 9) g;
"""

_COLUMNS = {
    "gen_a": {
        "id": "int", "i": "int", "b": "bigint", "n": "numeric", "s": "text", "d": "date", "ts": "timestamp",
        "o": "bool", "f": "float",
    },
    "gen_b": {"k": "int", "i": "int", "s": "text", "n": "numeric", "o": "bool"},
}  # fmt: skip

# {type}: an expression of that type, {type.}: a column or constant, <a|b>: one of these, {any} a type that all places share
_FORMS = {
    "int": (
        "({int} <+|-> {int})", "({int.} * {int.})", "({int} </|%> nullif({int}, 0))", "abs({int})", "-{int.}", "length({text})",
        "strpos({text}, {text.})", "({date} - {date})", "{bool}::int", "extract(<year|month|dow|doy|week> FROM {date})::int",
        "({int} <&|#> {int})", "({int} | {int})", "sign({numeric.})::int", "round({numeric.})::int", "ascii({text})",
        "array_length(array[{int.}, 1], 1)",
    ),
    "bigint": (
        "({bigint} <+|-> {int})", "{int}::bigint", "({bigint.} / 7)", "({bigint.} % 1000)", "abs({bigint.})",
    ),
    "numeric": (
        "({numeric} <+|-> {numeric})", "({numeric.} * {numeric.})", "({numeric} / nullif({numeric.}, 0))",
        "<round|trunc>({numeric}, <0|1|2>)", "<ceil|floor|abs>({numeric})", "{int}::numeric", "({int} * {numeric.})",
        "mod({numeric.}, 0.7)", "extract(epoch FROM {timestamp.})", "{bigint.}::numeric(20, 2)",
    ),
    "text": (
        "({text} || {text})", "<upper|lower|reverse|initcap|btrim>({text})", "substr({text}, <1|2|-1|0>, <1|3>)",
        "<left|right>({text}, <1|-1|2>)", "replace({text}, '<a|B|>', {text.})", "{int.}::text", "{numeric.}::text", "{bool.}::text",
        "{date.}::text", "{timestamp.}::text", "concat({text}, {int.}, {bool.})", "<lpad|rpad>({text}, <0|3|5>, '<*|xy>')",
        "to_char({date.}, '<YYYY-MM-DD|Dy DD Mon|IYYY-IW|Q>')", "to_char({numeric.}, '<FM999.00|S09.9|999>')",
        "split_part({text}, 'a', <1|2|-1>)", "md5({text.})", "repeat({text.}, <0|2>)", "translate({text}, 'ab', 'x')",
        "regexp_replace({text.}, '<[aB]|.|^x?>', '-', 'g')", "format('%s:%I', {int.}, {text.} || 'z')", "quote_literal({text.})",
        "concat_ws('-', {text}, {text.})",
    ),
    "date": ("({date} <+|-> {int.})", "{timestamp}::date", "date_trunc('<month|year|week>', {timestamp.})::date"),
    "timestamp": (
        "({timestamp} <+|-> interval '<1 month|36 hours|-1 day 1 minute>')", "date_trunc('<hour|day|quarter|minute>', {timestamp})",
        "{date}::timestamp", "({date.} + time '<12:00|00:00:01>')",
    ),
    "float": ("({float.} * 2)", "sqrt(abs({float.}))", "{int}::float8"),
    "bool": (
        "({any} <=|!=> {any})", "({any} < {any})", "({any} >= {any})", "({any} IS <|NOT >NULL)", "({any} IS <|NOT >DISTINCT FROM {any})",
        "({bool} <AND|OR> {bool})", "(NOT {bool})", "({text} <LIKE|NOT LIKE|ILIKE> '<a%|%|_c|%\\%%>')", "({text} ~ '<^a|[bB]c|x*>')",
        "({int} <|NOT >IN ({int.}, {int.}, 2))", "({any} BETWEEN {any.} AND {any.})", "({bool} IS <TRUE|FALSE|NOT TRUE|UNKNOWN>)",
        "({int} = ANY (array[0, 1, {int.}]))", "EXISTS (SELECT 1 FROM gen_b @ WHERE @.i = {int.})",
        "NOT EXISTS (SELECT 1 FROM gen_b @ WHERE @.k > {int.} AND @.o)", "({int.} <|NOT >IN (SELECT @.<i|k> FROM gen_b @))",
        "({int.} < (SELECT <max|min|count>(@.k) FROM gen_b @ WHERE @.i = {int.}))",
    ),
    "aggregate": (
        "count(*)", "count(<|DISTINCT >{text.})", "sum({int})", "sum({numeric})", "sum({bigint})", "avg({int})", "avg({numeric})",
        "<min|max>({int})", "<min|max>({text})", "<min|max>({date})", "<min|max>({timestamp})", "<min|max>({numeric})",
        "<bool_and|bool_or>({bool})", "sum(DISTINCT {int})", "<var_pop|stddev_samp|variance>({int})", "<bit_and|bit_or>({int})",
    ),
    "window": (
        "row_number() OVER ~", "rank() OVER ~", "lag({text.}) OVER ~", "lead({int.}, 2, 0) OVER ~", "first_value({numeric.}) OVER ~",
        "sum({numeric.}) OVER ~", "ntile(3) OVER ~", "max({int.}) OVER ~", "count({text.}) OVER ~",
    ),
}  # fmt: skip
_GENERAL = (
    "coalesce({T}, {T})", "nullif({T}, {T})", "CASE WHEN {bool} THEN {T} ELSE {T} END", "CASE WHEN {bool} THEN {T} END",
    "<greatest|least>({T}, {T})", "(CASE {int} WHEN 1 THEN {T} WHEN 0 THEN {T} END)",
)  # fmt: skip
_CONSTANTS = {
    "int": ("0", "1", "2", "-3", "7", "null::int"), "bigint": ("0::bigint", "5000000000", "-1::bigint"),
    "numeric": ("0.0", "1.5", "-2.25", "100.001", "null::numeric"), "text": ("'a'", "''", "'Bc'", "'é%'", "null::text"),
    "date": ("date '2024-02-29'", "date '1999-12-31'"), "timestamp": ("timestamp '2024-03-01 12:30:00'", "null::timestamp"),
    "bool": ("true", "false", "null::bool"), "float": ("0.5::float8", "2::float8"),
}  # fmt: skip
_CHOICE = re.compile(r"<([^<>]*\|[^<>]*|=\|!=)>")
_PLACE = re.compile(r"\{(\w+)(\.?)\}")


class Generator:
    """Makes queries; ``scope``: (alias, column, type) of what expressions may name."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scope: list[tuple[str, str, str]] = []
        self.total = ""  # what orders the rows of the FROM list, without ties
        self.aliases = 0

    def pick(self, *options: str) -> str:
        """Return one of some texts."""
        return self.random.choice(options)

    # -- expressions -----------------------------------------------------------------------------

    def fill(self, form: str, depth: int, kind: str = "") -> str:
        """Return a form with its places filled."""
        shared = kind or self.pick(*_CONSTANTS)
        self.aliases += 1
        text = _CHOICE.sub(lambda m: self.pick(*m[1].split("|")), form.replace("@", f"x{self.aliases}"))

        def place(match: re.Match[str]) -> str:
            wanted = shared if match[1] in ("any", "T") else match[1]
            return self.leaf(wanted) if match[2] else self.expr(wanted, depth)

        return _PLACE.sub(place, text)

    def expr(self, kind: str, depth: int = 3) -> str:
        """Return an expression of a type."""
        if depth <= 0 or self.random.random() < 0.25:
            return self.leaf(kind)
        forms = _GENERAL if self.random.random() < 0.18 else _FORMS[kind]
        return self.fill(self.random.choice(forms), depth - 1, kind if forms is _GENERAL else "")

    def leaf(self, kind: str) -> str:
        """Return a column or a constant."""
        columns = [f"{alias}.{name}" for alias, name, type_ in self.scope if type_ == kind]
        if columns and self.random.random() < 0.75:
            return self.random.choice(columns)
        return self.random.choice(_CONSTANTS[kind])

    # -- queries ---------------------------------------------------------------------------------

    def source(self) -> str:
        """Return a FROM list and make its columns the scope."""
        self.scope = [("t1", name, kind) for name, kind in _COLUMNS["gen_a"].items()]
        self.total = "t1.id"
        if self.random.random() < 0.35:
            return "FROM gen_a t1"
        table = self.pick("gen_a", "gen_b", "gen_b")
        self.scope += [("t2", name, kind) for name, kind in _COLUMNS[table].items()]
        self.total += f", t2.{'id' if table == 'gen_a' else 'k'}"
        join = self.pick("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        keys = f"t1.{self.pick('i', 'id')} = t2.{self.pick('i', 'id' if table == 'gen_a' else 'k')}"
        more = "" if join == "FULL JOIN" or self.random.random() < 0.6 else f" AND {self.expr('bool', 1)}"
        return f"FROM gen_a t1 {join} {table} t2 ON {keys}{more}"

    def aggregate(self) -> str:
        """Return an aggregate call."""
        if self.random.random() < 0.1:
            return f"string_agg({self.leaf('text')}, ',' ORDER BY {self.total})"
        call = self.fill(self.random.choice(_FORMS["aggregate"]), 1)
        return call if self.random.random() < 0.75 else f"{call} FILTER (WHERE {self.expr('bool', 1)})"

    def window(self) -> str:
        """Return a window function call whose result does not depend on ties."""
        part = self.pick("", f"PARTITION BY {self.leaf('int')} ")
        frame = self.pick("", "", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW")
        call = self.fill(self.random.choice(_FORMS["window"]), 1)
        return call.replace("~", f"({part}ORDER BY {self.total}{frame})")

    def query(self) -> str:
        """Return a statement."""
        shape = self.random.randrange(10)
        kinds = [self.pick(*_CONSTANTS) for _ in range(self.random.randint(1, 4))]
        if shape == 0:
            parts = [self.plain(kinds) for _ in range(2)]
            text = f"{parts[0]} {self.pick('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT')} {parts[1]}"
        elif shape <= 3:
            return self.grouped()
        else:
            text = self.plain(kinds, windows=shape == 4, distinct=shape == 5)
        columns = range(1, len(kinds) + 1 + (shape == 4))
        text += " ORDER BY " + ", ".join([f"{n}{self.pick('', ' DESC', ' NULLS FIRST')}" for n in columns])
        return text + (f" LIMIT {self.random.randrange(6)}{self.pick('', ' OFFSET 2')}" if shape >= 8 else "")

    def plain(self, kinds: list[str], *, windows: bool = False, distinct: bool = False) -> str:
        """Return a query without ORDER BY whose columns have some types."""
        source = self.source()
        output = [self.expr(kind) for kind in kinds] + ([self.window()] if windows else [])
        where = f" WHERE {self.expr('bool')}" if self.random.random() < 0.6 else ""
        return f"SELECT {'DISTINCT ' if distinct else ''}{', '.join(output)} {source}{where}"

    def grouped(self) -> str:
        """Return a query with aggregates."""
        source = self.source()
        keys = [self.expr(self.pick(*_CONSTANTS), 2) for _ in range(self.random.randint(0, 2))]
        calls = [self.aggregate() for _ in range(self.random.randint(1, 3))]
        where = f" WHERE {self.expr('bool', 2)}" if self.random.random() < 0.5 else ""
        numbers = ", ".join([str(n) for n in range(1, len(keys) + 1)])
        grouping = f" GROUP BY {numbers}" if keys else ""
        having = (
            f" HAVING count(*) > {self.pick('0', '1', '2')}" if keys and self.random.random() < 0.3 else ""
        )
        order = ", ".join([str(n) for n in range(1, len(keys) + len(calls) + 1)])
        return f"SELECT {', '.join(keys + calls)} {source}{where}{grouping}{having} ORDER BY {order}"
