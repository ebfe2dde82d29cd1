"""What random PL/pgSQL functions are about, and expressions of each kind of values in them, a function of a seed.

Scopes of variables ──> expressions that name them, wrong ones now and then

Values that grow are cut, so that no program needs much time or memory.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = [
    "CONDITIONS", "DECLARED", "DIAGNOSTICS", "KINDS", "NAMES", "RESULTS", "ROWS", "SCHEMA", "TABLES", "Scope", "Values", "Variable",
]  # fmt: skip

TABLES = ("gp_t", "gp_log")
SCHEMA = """
CREATE DOMAIN gp_pos AS int CHECK (VALUE > 0);
CREATE TYPE gp_pt AS (x int, y text);
CREATE DOMAIN gp_dpt AS gp_pt CHECK ((VALUE).x > 0);
CREATE TABLE gp_t (id int PRIMARY KEY, n int CHECK (n < 1000), s text NOT NULL DEFAULT 'd', a int[]);
CREATE TABLE gp_log (at int, what text);
CREATE DOMAIN gp_ints AS int[] CHECK (cardinality(VALUE) < 6);
CREATE TYPE gp_seg AS (p gp_pt, ps gp_pt[], m int[]);
CREATE TYPE gp_mood AS ENUM ('low', 'mid', 'high');
CREATE FUNCTION gp_fact(v int) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
  IF v > 9 OR v IS NULL THEN RAISE EXCEPTION USING ERRCODE = 'GP002', MESSAGE = 'too large'; END IF;
  RETURN CASE WHEN v <= 1 THEN 1 ELSE v * gp_fact(v - 1) END;
END $$;
CREATE FUNCTION gp_sum(VARIADIC v int[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  t int := 0;
  e int;
BEGIN
  FOREACH e IN ARRAY v LOOP t := t + coalesce(e, 0); END LOOP;
  RETURN t;
END $$;
CREATE FUNCTION gp_first(v anyarray) RETURNS anyelement LANGUAGE plpgsql AS $$ BEGIN RETURN v[1]; END $$;
CREATE FUNCTION gp_both(INOUT a int, OUT b text, c text DEFAULT 'c') LANGUAGE plpgsql AS $$
BEGIN
  a := a + 1;
  b := c || a;
END $$;
CREATE FUNCTION gp_pair(a anyelement, OUT one anyelement, OUT two anyarray) LANGUAGE plpgsql AS $$
DECLARE x a%TYPE := a;
BEGIN
  one := x;
  two := ARRAY[x, a];
END $$;
CREATE PROCEDURE gp_deep(INOUT v int, OUT w text, n int DEFAULT 2) LANGUAGE plpgsql AS $$
BEGIN
  IF n > 0 THEN
    CALL gp_deep(v, w, n - 1);
    v := v + 1;
  ELSE
    w := 'deep';
  END IF;
END $$;
CREATE FUNCTION gp_half(v int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF v % 2 = 1 THEN RAISE EXCEPTION 'odd %', v USING ERRCODE = 'GP001', HINT = 'even ones'; END IF;
  RETURN v / 2;
END $$;
CREATE FUNCTION gp_sql(v int) RETURNS int LANGUAGE sql AS $$ SELECT gp_half(v) + 1 $$;
CREATE FUNCTION gp_rows(v int) RETURNS TABLE (k int, w text) LANGUAGE sql AS $$ SELECT t.id, t.s FROM gp_t t WHERE t.id <= v ORDER BY t.id $$;
CREATE FUNCTION gp_note(v text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN INSERT INTO gp_log VALUES (length(v), v); END $$;
CREATE PROCEDURE gp_saved(INOUT v int, n int DEFAULT 3) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO gp_log VALUES (n, 'saved');
  BEGIN
    UPDATE gp_t t SET s = 'saved' WHERE t.id = gp_saved.n;
    PERFORM gp_half(v);
    IF n > 0 THEN CALL gp_saved(v, n - 1); END IF;
    v := v / 2;
  EXCEPTION WHEN OTHERS THEN
    INSERT INTO gp_log VALUES (-n, SQLERRM);
    v := v + 1;
    IF n = 2 THEN RAISE; END IF;
  END;
END $$;
CREATE PROCEDURE gp_ends(v int, how text) LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO gp_log VALUES (v, 'before');
  IF how = 'c' THEN COMMIT; ELSIF how = 'r' THEN ROLLBACK; END IF;
  INSERT INTO gp_log VALUES (v, 'after');
  PERFORM gp_half(v);
END $$;
CREATE PROCEDURE gp_twice(INOUT v int, w text DEFAULT 'w') LANGUAGE plpgsql AS $$
BEGIN v := v * 2; RAISE NOTICE 'twice % %', v, w; END $$
"""
ROWS = "INSERT INTO gp_t VALUES (1, 10, 'one', '{1,2}'), (2, NULL, 'two', NULL), (3, 30, 'three', '{}'), (4, 10, 'four', '{4,NULL,6}')"

KINDS = {
    "int": "int", "bigint": "int", "smallint": "int", "gp_pos": "int", "gp_t.n%TYPE": "int", "numeric": "num", "numeric(6, 2)": "num",
    "text": "text", "varchar(14)": "text", "char(13)": "text", "varchar(4)": "text", "gp_t.s%TYPE": "text", "boolean": "bool", "date": "date", "int[]": "ints",
    "gp_t.a%TYPE": "ints", "text[]": "texts", "gp_pt": "pt", "gp_dpt": "pt", "gp_pt[]": "pts", "record": "record", "gp_t%ROWTYPE": "row",
    "gp_t": "row", "gp_ints": "ints", "gp_seg": "seg", "jsonb": "json", "timestamp": "moment", "timestamp(0)": "moment", "interval": "span",
    "gp_mood": "mood", "int4range": "range", "float8": "num", "bytea": "bytes", "gp_pos[]": "ints", "name": "text", "oid": "int",
}  # fmt: skip
"""Declared types, each with what its values are here."""

DECLARED = (
    *KINDS,
    "int",
    "int",
    "text",
    "text",
    "text",
    "int",
    "numeric",
    "int[]",
    "gp_pt",
    "record",
    "gp_t%ROWTYPE",
)
NAMES = ("v", "w", "u", "q", "r", "v", "w", "n", "s")
CONDITIONS = (
    "division_by_zero", "OTHERS", "unique_violation", "not_null_violation", "check_violation", "no_data_found", "too_many_rows",
    "raise_exception", "SQLSTATE 'GP001'", "data_exception", "case_not_found", "assert_failure", "undefined_column", "array_subscript_error",
    "invalid_text_representation OR numeric_value_out_of_range", "null_value_not_allowed", "plpgsql_error", "integrity_constraint_violation",
)  # fmt: skip
DIAGNOSTICS = (
    "RETURNED_SQLSTATE", "MESSAGE_TEXT", "PG_EXCEPTION_DETAIL", "PG_EXCEPTION_HINT", "PG_EXCEPTION_CONTEXT", "COLUMN_NAME", "CONSTRAINT_NAME",
    "TABLE_NAME", "SCHEMA_NAME", "PG_DATATYPE_NAME",
)  # fmt: skip
RESULTS = (
    "int", "int", "text", "numeric", "boolean", "gp_pos", "int[]", "gp_pt", "gp_dpt", "record", "gp_t", "void", "SETOF int", "SETOF gp_pt",
    "SETOF gp_t", "SETOF gp_dpt", "SETOF record", "TABLE (x int, y text)", "OUT", "INOUT", "date", "varchar(4)", "gp_pt[]",
    "gp_seg", "trigger", "trigger", "procedure", "procedure",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that was declared; ``kind``: what its values are here."""

    name: str
    type: str
    kind: str
    fixed: bool = False


@dataclass(slots=True)
class Scope:
    """A block or loop: what can be seen in it."""

    label: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)
    cursors: dict[str, str] = field(default_factory=dict)
    loop: bool = False


class Values:
    """Makes expressions; ``scopes`` holds the variables that can be seen, innermost last."""

    def __init__(self, seed: int) -> None:
        """Begin where the seed says."""
        self.random = random.Random(seed)
        self.scopes: list[Scope] = []
        self.result = "int"
        self.numbered = 0
        self.handling = 0

    def chance(self, probability: float) -> bool:
        """Return True as often as that."""
        return self.random.random() < probability

    def pick(self, *options: str) -> str:
        """Return one of some texts."""
        return self.random.choice(options)

    def small(self) -> str:
        """Return a small number."""
        return str(self.random.randrange(6))

    def fresh(self, prefix: str) -> str:
        """Return a name that the function does not have."""
        self.numbered += 1
        return f"{prefix}{self.numbered}"

    def variables(self, kind: str, *, settable: bool = False) -> list[str]:
        """Return the visible variables of a kind; some of those that are hidden, by the label of their block."""
        found: list[str] = []
        seen: set[str] = set()
        for scope in reversed(self.scopes):
            for variable in scope.variables.values():
                wanted = (kind in ("", variable.kind)) and not (settable and variable.fixed)
                if wanted and (variable.name not in seen):
                    found.append(variable.name)
                elif wanted and scope.label:
                    found.append(f"{scope.label}.{variable.name}")
            seen.update(scope.variables)
        return found

    def variable(self, kind: str, *, settable: bool = False) -> str | None:
        """Return one of ``variables``, None where there is none."""
        found = self.variables(kind, settable=settable)
        return self.random.choice(found) if found else None

    def target(self, kind: str) -> str:
        """Return a variable that takes a value of a kind; ``kept`` and ``said`` are those of every function."""
        return self.variable(kind, settable=not self.chance(0.04)) or {"int": "kept", "text": "said"}.get(
            kind, "kept"
        )

    def part(self) -> str | None:
        """Return a part of a variable that holds a number."""
        ints, point, row, points, seg = (
            self.variable(k, settable=True) for k in ("ints", "pt", "row", "pts", "seg")
        )
        made = [
            f"{ints}[{self.place()}]" if ints else "",
            f"{point}.x" if point else "",
            f"{row}.n" if row else "",
            f"{row}.a[{self.place()}]" if row else "",
            f"{points}[{self.place()}].x" if points else "",
            f"{seg}.p.x" if seg else "",
            f"{seg}.ps[{self.place()}].x" if seg else "",
            f"{seg}.m[{self.place()}]" if seg else "",
            *(("NEW.n", "NEW.n", f"NEW.a[{self.place()}]") if self.result == "trigger" else ()),
        ]
        found = [m for m in made if m]
        return self.random.choice(found) if found else None

    def index(self) -> str:
        """Return a subscript."""
        return self.pick("1", "2", "3", "kept % 3 + 1", "(SELECT min(t.id) FROM gp_t t)", "4")

    def place(self) -> str:
        """Return the subscript of an assignment: further in, an array would begin later than at 1, which is refused."""
        return self.pick("1", "1", "1", "(SELECT min(t.id) FROM gp_t t)", "1 + 0 * kept")

    # -- expressions -------------------------------------------------------------------------------

    def value(self, kind: str, depth: int = 2) -> str:
        """Return an expression of a kind."""
        if self.chance(0.02):
            return "NULL"
        if self.chance(0.003):
            return self.pick("nothing", "1/0", "'x'", "kept.x", "row(1, 'b')", "gp_t")
        name = self.variable(kind)
        if name is not None and self.chance(0.4):
            return name
        made: str = getattr(self, f"_{kind}")(max(depth, 0))
        return made

    def _int(self, depth: int) -> str:
        if depth == 0:
            return self.pick(self.small(), "kept", "7", "-2", "gp_half(4)")
        less = depth - 1
        number = self.value("int", less)
        row, record = self.variable("row") or "NULL::gp_t", self.variable("record")
        return self.pick(
            f"{number} + {self.value('int', less)}", f"{number} * 2", f"{number} - 1", f"coalesce({number}, {self.small()})",
            f"{number} / {self.small()}", f"length({self.value('text', less)})", f"gp_half({number})", f"({self.value('pt', less)}).x",
            f"({self.value('ints', less)})[{self.index()}]", f"cardinality({self.value('ints', less)})", f"({row}).n",
            f"(SELECT t.n FROM gp_t t WHERE t.id = {number})", f"(SELECT count(*) FROM gp_t t WHERE t.n > {number})",
            f"CASE WHEN {self.value('bool', less)} THEN {number} ELSE 3 END", f"{self.value('text', less)}::int", self.small(),
            f"{record}.n" if record else "7", f"abs({number})", f"array_length({self.value('ints', less)}, 1)", f"{row}.n" if row[0] != "N" else "8",
            f"gp_sum({number}, {self.value('int', less)})", f"gp_sum(VARIADIC {self.value('ints', less)})", f"gp_first({self.value('ints', less)})",
            f"(gp_both({number})).a", f"gp_sql({number})", f"gp_fact({number})", f"extract(day FROM {self.value('moment', less)})", f"upper({self.value('range', less)})",
            f"(SELECT max(k) FROM gp_rows({number}))", f"length({self.value('bytes', less)})", f"(({self.value('seg', less)}).m)[1]", "TG_NARGS" if self.result == "trigger" else "5",
        )  # fmt: skip

    def _num(self, depth: int) -> str:
        if depth == 0:
            return self.pick("1.5", "0.005", "-2.25", "100", "kept", "1e3")
        number = self.value("num", depth - 1)
        return self.pick(
            f"{number} + 1.10", f"{number} * 0.5", f"round({number}, 1)", f"{number} / {self.value('int', depth - 1)}", f"trunc({number})"
        )  # fmt: skip

    def _text(self, depth: int) -> str:
        if depth == 0:
            return self.pick("'a'", "'bc'", "'12'", "''", "said", "'ab  '", "'it''s'")
        less = depth - 1
        text = self.value("text", less)
        row, record = self.variable("row"), self.variable("record")
        return self.pick(
            f"left({text} || {self.value('text', less)}, 12)", f"upper({text})", f"left({text} || {self.value('int', less)}, 12)",
            f"({self.value('pt', less)}).y", f"format('%s-%L', {self.value('int', less)}, {text})", f"quote_literal({text})",
            f"{self.value('ints', less)}::text", f"{self.value('pt', less)}::text", f"(SELECT t.s FROM gp_t t WHERE t.id = {self.value('int', less)})",
            f"{row}.s" if row else "'z'", f"{record}.s" if record else "'y'", f"concat({text}, {self.value('num', less)}, NULL)",
            f"{self.value('bool', less)}::text", f"({self.value('texts', less)})[1]", f"{record}::text" if record else "'w'",
            f"gp_first({self.value('texts', less)})", f"({self.value('json', less)})->>'a'", f"{self.value('seg', less)}::text",
            f"(gp_both(c := {text}, a := 1)).b", f"{self.value('moment', less)}::text", f"to_char({self.value('moment', less)}, 'MM-DD HH24')",
            f"{self.value('span', less)}::text", f"{self.value('mood', less)}::text", f"{self.value('range', less)}::text", f"encode({self.value('bytes', less)}, 'hex')",
            f"(SELECT string_agg(w, ',' ORDER BY k) FROM gp_rows({self.value('int', less)}))", "current_setting('gp.kept', true)", self.pick("TG_OP", "TG_NAME", "TG_LEVEL", "TG_ARGV[0]", "NEW.s") if self.result == "trigger" else "'v'",
        )  # fmt: skip

    def _bool(self, depth: int) -> str:
        if depth == 0:
            return self.pick("true", "false", "FOUND", "kept > 2", "said IS NULL")
        less = depth - 1
        row, point = self.variable("row") or self.variable("record"), self.variable("pt")
        return self.pick(
            f"{self.value('int', less)} {self.pick('>', '<', '=', '<>', '>=')} {self.value('int', less)}", f"{self.value('text', less)} = {self.value('text', less)}",
            f"NOT {self.value('bool', 0)}", f"EXISTS (SELECT FROM gp_t t WHERE t.id = {self.value('int', less)})", f"{self.value('pt', less)} IS NULL",
            f"{self.value('int', less)} = ANY ({self.value('ints', less)})", f"{self.value('bool', 0)} AND {self.value('bool', 0)}",
            f"{self.value('int', less)} IN (1, 2, kept)", f"{row} IS NOT NULL" if row else "FOUND", f"{point} = row(1, 'a')::gp_pt" if point else "true",
            f"{self.value('num', less)} > 1", f"{self.value('mood', less)} > 'low'", f"{self.value('range', less)} @> {self.value('int', less)}",
            f"{self.value('moment', less)} < '2024-03-01'", f"{self.value('texts', less)} && ARRAY['a']", f"{self.value('json', less)} ? 'a'",
        )  # fmt: skip

    def _date(self, depth: int) -> str:
        return self.pick(
            "date '2024-02-29'", "'2023-12-31'::date", f"date '2024-01-01' + {self.value('int', 0)}"
        )

    def _moment(self, depth: int) -> str:
        return self.pick(
            "timestamp '2024-02-29 23:59:58.6'", f"'2023-12-31'::timestamp + {self.value('span', 0)}", f"{self.value('date', 0)}",
            "'2024-02-30 10:00'" if self.chance(0.2) else "'2024-02-28 10:00'", f"date_trunc('month', {self.value('moment', depth - 1)})" if depth else "'epoch'::timestamp",
        )  # fmt: skip

    def _span(self, depth: int) -> str:
        return self.pick(
            "interval '1 day 02:03'", "'3 mons'::interval", f"make_interval(days => {self.value('int', 0)})", "interval '1 hour' * 1.5",
            f"{self.value('moment', 0)} - timestamp '2024-01-01'" if depth else "'-1 day'",
        )  # fmt: skip

    def _mood(self, depth: int) -> str:
        return self.pick(
            "'mid'::gp_mood", "'high'", "enum_first(NULL::gp_mood)", f"{self.value('text', 0)}::gp_mood"
        )

    def _range(self, depth: int) -> str:
        return self.pick(
            "int4range(1, 5)", "'[2,4]'::int4range", "'empty'", f"int4range(0, {self.value('int', 0)})", f"int4range({self.value('int', 0)}, 9, '[]') * '[2,7]'"
        )  # fmt: skip

    def _bytes(self, depth: int) -> str:
        return self.pick(
            "'\\x0102'::bytea", f"convert_to({self.value('text', 0)}, 'UTF8')", "''::bytea", "'\\xz1'"
        )

    def _ints(self, depth: int) -> str:
        if depth == 0:
            return self.pick("'{1,2}'::int[]", "ARRAY[3, 4, 5]", "'{}'::int[]", "ARRAY[kept, 2]")
        less = depth - 1
        return self.pick(
            f"ARRAY[{self.value('int', less)}, {self.value('int', less)}]", f"({self.value('ints', less)} || {self.value('int', less)})[1:4]",
            f"({self.value('ints', less)})[2:3]", "ARRAY(SELECT t.id FROM gp_t t ORDER BY t.id)", f"array_remove({self.value('ints', less)}, 2)",
            f"(SELECT t.a FROM gp_t t WHERE t.id = {self.value('int', 0)})", f"({self.value('int', less)} || {self.value('ints', less)})[1:4]",
        )  # fmt: skip

    def _texts(self, depth: int) -> str:
        return self.pick(
            "'{a,b}'::text[]",
            f"ARRAY[{self.value('text', depth - 1)}, 'c']",
            f"string_to_array({self.value('text', depth - 1)}, 'a')",
        )

    def _pt(self, depth: int) -> str:
        number, text = self.value("int", depth - 1), self.value("text", depth - 1)
        points = self.variable("pts")
        return self.pick(
            f"row({number}, {text})::gp_pt", f"row({number}, {text})", "'(2,b)'::gp_pt", "'(3,\"c d\")'", f"({number}, 'q')::gp_dpt", f"({number}, {text})",
            f"(SELECT row(t.n, t.s)::gp_pt FROM gp_t t WHERE t.id = {self.small()})", f"{points}[1]" if points else "row(NULL, NULL)::gp_pt",
            "row(1, 'q', 3)" if self.chance(0.1) else "row(1, 'q')",
        )  # fmt: skip

    def _pts(self, depth: int) -> str:
        return self.pick(
            "ARRAY[row(1, 'a'), row(2, NULL)]::gp_pt[]",
            "'{}'::gp_pt[]",
            f"ARRAY[row({self.value('int', 0)}, {self.value('text', 0)})]",
            "ARRAY(SELECT row(t.id, t.s) FROM gp_t t ORDER BY t.id)",
            f"ARRAY[{self.value('pt', 0)}]::gp_pt[]",
        )

    def _seg(self, depth: int) -> str:
        return self.pick(
            "row(row(1, 'a'), ARRAY[row(2, 'b')]::gp_pt[], '{7}')::gp_seg",
            f"row({self.value('pt', 0)}, {self.value('pts', 0)}, {self.value('ints', 0)})::gp_seg",
            '\'("(4,d)","{}",)\'::gp_seg',
        )

    def _json(self, depth: int) -> str:
        return self.pick(
            "'{}'::jsonb",
            "'{\"a\": [1, 2]}'::jsonb",
            f"to_jsonb({self.value('int', 0)})",
            f"jsonb_build_object('a', {self.value('text', 0)})",
        )

    def _row(self, depth: int) -> str:
        return self.pick(
            f"(SELECT t FROM gp_t t WHERE t.id = {self.small()})", "row(9, 8, 'row', '{5}')::gp_t", "row(9, 8, 'row', ARRAY[1])", "row(9, 8, 'x', NULL)",
            f"row({self.value('int', 0)}, 2, {self.value('text', 0)}, {self.value('ints', 0)})::gp_t",
        )  # fmt: skip

    def _record(self, depth: int) -> str:
        return self.pick(
            "row('q', '3')", "row(1, 'x')", f"(SELECT t FROM gp_t t WHERE t.id = {self.small()})", f"row({self.value('int', 0)}, {self.value('text', 0)}, NULL)",
            self.value("row", 0), self.value("pt", 0), "(SELECT row(t.n, t.s) FROM gp_t t WHERE t.id = 1)",
        )  # fmt: skip

    # -- queries -----------------------------------------------------------------------------------

    def query(self) -> str:
        """Return a query of rows with an id, a number and a text."""
        condition = self.pick(
            "", f" WHERE t.id < {self.value('int', 1)}", f" WHERE t.n = {self.value('int', 1)}"
        )
        return f"SELECT t.id, t.n, t.s FROM gp_t t{condition} ORDER BY t.id" + self.pick("", "", " LIMIT 2")

    def one_row(self) -> str:
        """Return the condition for one row."""
        return self.pick(
            f"t.id = {self.small()}", f"t.id = {self.value('int', 1)}", "t.id = 1", "t.id = 2", "t.id = 3"
        )
