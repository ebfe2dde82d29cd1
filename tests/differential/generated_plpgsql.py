"""Random PL/pgSQL functions over a few tables and types, a function of a seed.

    Programs(seed).program()  ──>  Program(CREATE FUNCTION gp(...), SELECT ... gp(...))

Nested blocks whose variables hide others, handlers, loops with labels, cursors, records, rows and composite values, arrays, domains, dynamic
SQL, changes with RETURNING, diagnostics, RAISE in all forms, results of all shapes. Most programs are right, and some go wrong on their way:
that is compared, too. Every loop ends: it counts in a variable that nothing else sets, and what grows is cut. Rows are read in an order, and
one statement changes one row, or several alike.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

__all__ = ["SCHEMA", "TABLES", "Program", "Programs"]

TABLES = ("gp_t", "gp_log")
SCHEMA = """
CREATE DOMAIN gp_pos AS int CHECK (VALUE > 0);
CREATE TYPE gp_pt AS (x int, y text);
CREATE DOMAIN gp_dpt AS gp_pt CHECK ((VALUE).x > 0);
CREATE TABLE gp_t (id int PRIMARY KEY, n int CHECK (n < 1000), s text NOT NULL DEFAULT 'd', a int[]);
INSERT INTO gp_t VALUES (1, 10, 'one', '{1,2}'), (2, NULL, 'two', NULL), (3, 30, 'three', '{}'), (4, 10, 'four', '{4,NULL,6}');
CREATE TABLE gp_log (at int, what text);
CREATE FUNCTION gp_half(v int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF v % 2 = 1 THEN RAISE EXCEPTION 'odd %', v USING ERRCODE = 'GP001', HINT = 'even ones'; END IF;
  RETURN v / 2;
END $$;
CREATE FUNCTION gp_note(v text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN INSERT INTO gp_log VALUES (length(v), v); END $$;
CREATE PROCEDURE gp_twice(INOUT v int, w text DEFAULT 'w') LANGUAGE plpgsql AS $$
BEGIN v := v * 2; RAISE NOTICE 'twice % %', v, w; END $$
"""

KINDS = {
    "int": "int", "bigint": "int", "smallint": "int", "gp_pos": "int", "gp_t.n%TYPE": "int", "numeric": "num", "numeric(6, 2)": "num",
    "text": "text", "varchar(14)": "text", "char(13)": "text", "varchar(4)": "text", "gp_t.s%TYPE": "text", "boolean": "bool", "date": "date", "int[]": "ints",
    "gp_t.a%TYPE": "ints", "text[]": "texts", "gp_pt": "pt", "gp_dpt": "pt", "gp_pt[]": "pts", "record": "record", "gp_t%ROWTYPE": "row",
    "gp_t": "row",
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
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    """A function, and the statement that calls it."""

    definition: str
    call: str


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    type: str
    kind: str
    fixed: bool = False


@dataclass(slots=True)
class _Scope:
    label: str = ""
    variables: dict[str, _Variable] = field(default_factory=dict)
    cursors: dict[str, str] = field(default_factory=dict)
    loop: bool = False


class Programs:
    """Makes functions, one after another."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scopes: list[_Scope] = []
        self.result = "int"
        self.numbered = 0
        self.handling = 0

    # -- choices -----------------------------------------------------------------------------------

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
        ints, point, row, points = (self.variable(k, settable=True) for k in ("ints", "pt", "row", "pts"))
        made = [
            f"{ints}[{self.place()}]" if ints else "",
            f"{point}.x" if point else "",
            f"{row}.n" if row else "",
            f"{row}.a[{self.place()}]" if row else "",
            f"{points}[{self.place()}].x" if points else "",
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
            f"{self.value('num', less)} > 1",
        )  # fmt: skip

    def _date(self, depth: int) -> str:
        return self.pick(
            "date '2024-02-29'", "'2023-12-31'::date", f"date '2024-01-01' + {self.value('int', 0)}"
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
            f"ARRAY[{self.value('pt', 0)}]::gp_pt[]",
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

    # -- a function --------------------------------------------------------------------------------

    def program(self) -> Program:
        """Return the next function with its call."""
        self.numbered = 0
        self.handling = 0
        self.result = self.pick(*RESULTS)
        base = _Scope("gp")
        base.variables["p1"] = _Variable("p1", "int", "int")
        base.variables["p2"] = _Variable("p2", "text", "text")
        parameters, returns = "p1 int, p2 text", f" RETURNS {self.result}"
        if self.result in ("OUT", "INOUT"):
            parameters = (
                "p1 int, p2 text, OUT o1 int, OUT o2 text"
                if self.result == "OUT"
                else "INOUT p1 int, INOUT p2 text"
            )
            returns = self.pick("", " RETURNS record")
        if self.result == "OUT":
            base.variables["o1"] = _Variable("o1", "int", "int")
            base.variables["o2"] = _Variable("o2", "text", "text")
        if self.result.startswith("TABLE"):
            base.variables["x"] = _Variable("x", "int", "int")
            base.variables["y"] = _Variable("y", "text", "text")
        self.scopes = [base]
        option = self.pick("", "", "", "#variable_conflict use_variable\n", "#variable_conflict use_column\n")
        block = self.block(3, outermost=True)
        body = "\n".join([*block[:-1], "END"])
        columns = (
            " AS f(c1 int, c2 text)" if self.result in ("record", "SETOF record") and self.chance(0.7) else ""
        )
        arguments = f"{self.pick('1', '2', 'NULL', '6')}, {self.pick(chr(39) + 'arg' + chr(39), 'NULL')}"
        call = f"gp({arguments})"
        as_value = not columns and self.result != "SETOF record" and self.chance(0.4)
        return Program(
            f"CREATE FUNCTION gp({parameters}){returns} LANGUAGE plpgsql AS $f$\n{option}{body}\n$f$",
            f"SELECT {call}" if as_value else f"SELECT * FROM {call}{columns}",
        )

    def block(self, depth: int, *, outermost: bool = False) -> list[str]:
        """Return the lines of a block."""
        scope = _Scope(self.fresh("b") if self.chance(0.5) else "")
        lines = [f"<<{scope.label}>>"] if scope.label else []
        declared: list[str] = []
        self.scopes.append(scope)
        if outermost:
            scope.variables["kept"] = _Variable("kept", "int", "int")
            scope.variables["said"] = _Variable("said", "text", "text")
            declared += ["kept int := 3;", "said text := 'said';"]
        for _ in range(self.random.randrange(5) if not outermost else self.random.randint(3, 7)):
            declared.append(self.declaration(scope))
        if self.chance(0.4):
            declared.append(self.cursor(scope))
        if declared:
            lines += ["DECLARE", *(f"  {line}" for line in declared)]
        lines.append("BEGIN")
        lines += self.inside(depth, self.random.randint(2, 5) + (3 if outermost else 0))
        if outermost or self.chance(0.15):
            lines += self.indented(self.last())
        if self.chance(0.65):
            lines += self.handlers(depth)
        self.scopes.pop()
        return [*lines, "END;"]

    def indented(self, lines: Sequence[str]) -> list[str]:
        """Return lines, further in."""
        return [f"  {line}" for line in lines]

    def inside(self, depth: int, count: int) -> list[str]:
        """Return the lines of some statements."""
        return self.indented([line for _ in range(count) for line in self.statement(depth)])

    def declaration(self, scope: _Scope) -> str:
        """Return a declaration; its default may read a variable that it hides."""
        kind_of = [name for name in self.variables("int") if "." not in name]
        type_ = self.pick(*DECLARED)
        kind = KINDS[type_]
        if kind_of and self.chance(0.1):
            type_, kind = f"{self.random.choice(kind_of)}%TYPE", "int"
        left = [name for name in NAMES if name not in scope.variables]
        if not left:
            return f"{self.fresh('x')} int;"
        name = self.random.choice(left)
        fixed = self.chance(0.08)
        default = self.chance(0.6) or fixed
        text = f"{name}{' CONSTANT' if fixed else ''} {type_}"
        if default:
            bound = self.pick(":=", "DEFAULT", "=")
            text += f"{' NOT NULL' if self.chance(0.08) else ''} {bound} {self.value(kind, 1)}"
        scope.variables[name] = _Variable(name, type_, kind, fixed)
        return text + ";"

    def cursor(self, scope: _Scope) -> str:
        """Return the declaration of a cursor."""
        name = self.fresh("c")
        form = self.pick("free", "bound", "given", "bound")
        scope.cursors[name] = form
        if form == "free":
            return f"{name} refcursor{self.pick('', '', f' := {chr(39)}named{chr(39)}')};"
        scroll = self.pick("", "", " SCROLL", " NO SCROLL")
        if form == "given":
            return f"{name}{scroll} CURSOR (lo int, hi int) FOR SELECT t.id, t.n, t.s FROM gp_t t WHERE t.id BETWEEN lo AND hi ORDER BY t.id;"
        return f"{name}{scroll} CURSOR FOR {self.query()};"

    def handlers(self, depth: int) -> list[str]:
        """Return EXCEPTION with its handlers."""
        lines = ["EXCEPTION"]
        self.handling += 1
        for _ in range(self.random.randint(1, 2)):
            lines.append(f"  WHEN {self.pick(*CONDITIONS, *['OTHERS'] * 12)} THEN")
            if self.chance(0.8):
                lines.append(
                    f"    RAISE NOTICE 'caught % %', SQLSTATE, SQLERRM{self.pick('', '', ' USING DETAIL = SQLERRM')};"
                )
            lines += self.indented(self.inside(min(depth - 1, 1), self.random.randint(0, 2)))
            if len(self.scopes) == 2 and self.chance(0.8):
                lines += self.indented(self.indented(self.last()))
        self.handling -= 1
        return lines

    # -- statements --------------------------------------------------------------------------------

    def statement(self, depth: int) -> list[str]:
        """Return the lines of a statement."""
        simple: list[tuple[int, Callable[[], list[str]]]] = [
            (24, self.assignment), (8, self.select_into), (8, self.change), (10, self.notice), (4, self.execute), (3, self.perform),
            (3, self.diagnostics), (4, self.next_row), (6, self.cursors), (2, self.exit), (2, self.failing), (1, self.call), (1, self.leave),
        ]  # fmt: skip
        nested: list[tuple[int, Callable[[], list[str]]]] = [
            (9, lambda: self.branch(depth - 1)), (5, lambda: self.case(depth - 1)), (16, lambda: self.loop(depth - 1)),
            (18, lambda: self.block(depth - 1)),
        ]  # fmt: skip
        options = [*simple, *(nested if depth > 0 else ())]
        (make,) = self.random.choices([m for _, m in options], [w for w, _ in options])
        return make()

    def assignment(self) -> list[str]:
        """Return an assignment to a variable or a part of one."""
        kind = self.pick(
            "int", "int", "text", "num", "bool", "ints", "texts", "pt", "pts", "row", "record", "date"
        )
        if self.variable(kind, settable=True) is None:
            kind = "int"
        target = self.target(kind)
        if kind == "int" and self.chance(0.3):
            target = self.part() or target
        if kind == "ints" and self.chance(0.1):
            target += self.pick("[1:2]", "[:2]", "[1:1]")
            return [f"{target} := {self.pick('ARRAY[8, 9]', self.value('ints', 1))};"]
        if kind == "pt" and self.chance(0.2):
            return [f"{target}.y {self.pick(':=', '=')} {self.value('text')};"]
        if kind == "texts" and self.chance(0.3):
            return [f"{target}[{self.place()}] := {self.value('text')};"]
        if kind == "record" and self.chance(0.3):
            return [
                f"{target}.{self.pick('n', 's', 'f1', 'f2', 'id')} := {self.pick(self.value('int', 1), self.value('text', 1))};"
            ]
        return [f"{target} {self.pick(':=', ':=', '=')} {self.value(kind)};"]

    def select_into(self) -> list[str]:
        """Return SELECT INTO: scalars, a row, a record."""
        strict = self.pick("", "", "STRICT ")
        end = (
            f" FROM gp_t t WHERE {self.one_row()} ORDER BY t.id"
            if self.chance(0.7)
            else " FROM gp_t t ORDER BY t.id"
        )
        whole = self.variable("record", settable=True) or self.variable("row", settable=True)
        row = self.variable("row", settable=True)
        numbers, texts = self.target("int"), self.target("text")
        if self.chance(0.08):
            end = f" FROM gp_t t WHERE id = {self.small()} ORDER BY t.id"  # may be a variable, too
        made = [
            f"SELECT t.n INTO {strict}{numbers}{end};",
            f"SELECT t.n, t.s INTO {strict}{numbers}, {texts}{end};",
            f"SELECT {self.value('int', 1)}, t.s || 'x'{end.replace(' FROM', f' INTO {strict}{numbers}, {texts} FROM', 1)};",
            f"SELECT {self.value('int', 1)}, {self.value('text', 1)} INTO {strict}{numbers}, {texts};",
        ]
        if whole:
            made += [
                f"SELECT * INTO {strict}{whole}{end};",
                f"SELECT t.id, t.n, t.s INTO {strict}{whole}{end};",
                f"SELECT t INTO {whole}{end};",
            ]
        if row:
            made += [f"SELECT t.* INTO {strict}{row}{end};", f"SELECT * INTO {row}{end};"]
        return [self.random.choice(made)]

    def change(self) -> list[str]:
        """Return INSERT, UPDATE or DELETE, often with RETURNING INTO."""
        into = self.pick("", "", " INTO STRICT", " INTO")
        number, text = self.target("int"), self.target("text")
        returning = f" RETURNING t.n, t.s{into} {number}, {text}" if into else ""
        whole = self.variable("record", settable=True) or self.variable("row", settable=True)
        if into and whole and self.chance(0.4):
            returning = f" RETURNING t.*{into} {whole}"
        return [
            self.pick(
                f"INSERT INTO gp_t AS t VALUES ({self.value('int', 1)}, {self.value('int', 1)}, {self.value('text', 1)}, {self.value('ints', 0)}){returning};",
                f"INSERT INTO gp_t AS t (id, n) VALUES ({self.pick('5', '6', '7', '8')}, {self.value('int', 1)}) ON CONFLICT (id) DO UPDATE SET n = t.n + 1{returning};",
                f"UPDATE gp_t t SET n = {self.value('int', 1)} WHERE {self.one_row()}{returning};",
                f"UPDATE gp_t t SET s = left(t.s || {self.value('text', 0)}, 9) WHERE {self.one_row()}{returning};",
                f"UPDATE gp_t t SET a[1] = {self.value('int', 0)} WHERE {self.one_row()}{returning};",
                f"UPDATE gp_t t SET n = t.n + 1{returning};",
                f"DELETE FROM gp_t t WHERE {self.one_row()}{returning};",
                f"INSERT INTO gp_log SELECT {self.value('int', 1)}, {self.value('text', 1)};",
            )
        ]

    def notice(self) -> list[str]:
        """Return RAISE of something less than an error."""
        kind = self.pick("int", "text", "num", "bool", "ints", "pt", "row", "record", "date", "pts", "texts")
        shown = self.variable(kind) or self.value("int", 1)
        if self.chance(0.15):
            return [
                f"RAISE {self.pick('WARNING', 'NOTICE', 'INFO')} USING MESSAGE = {self.value('text', 1)}, DETAIL = {self.value('text', 0)},"
                f" HINT = {self.pick(chr(39) + 'h' + chr(39), 'said')}{self.pick('', ', ERRCODE = ' + chr(39) + '01GP1' + chr(39))};"
            ]
        return [
            f"RAISE {self.pick('NOTICE', 'NOTICE', 'WARNING', 'INFO', 'DEBUG', 'LOG')} '{kind} % % %%', {shown}, {self.value('int', 1)};"
        ]

    def failing(self) -> list[str]:
        """Return what raises an error, in each way."""
        if self.handling and self.chance(0.4):
            return ["RAISE;"]
        text = self.value("text", 1)
        return [
            self.pick(
                f"RAISE EXCEPTION 'no %', {text};", "RAISE division_by_zero;", "RAISE SQLSTATE 'GP001';",
                f"RAISE unique_violation USING MESSAGE = {text}, DETAIL = 'd', HINT = 'h', COLUMN = 'c', TABLE = 't', SCHEMA = 's', CONSTRAINT = 'k', DATATYPE = 'y';",
                f"RAISE USING ERRCODE = 'check_violation', MESSAGE = {text};", f"RAISE 'plain %', {text} USING ERRCODE = '22012';", "RAISE;",
                f"ASSERT {self.value('bool', 1)};", f"ASSERT {self.value('bool', 1)}, {text};", f"PERFORM 1 / {self.value('int', 1)};",
                "RAISE no_data_found USING ERRCODE = 'raise_exception';" if self.chance(0.2) else "RAISE no_data_found;",
            )
        ]  # fmt: skip

    def execute(self) -> list[str]:
        """Return EXECUTE in its forms."""
        number, text, given = self.target("int"), self.target("text"), self.value("int", 1)
        strict = self.pick("", "", "STRICT ")
        whole = self.variable("record", settable=True)
        return [
            self.pick(
                f"EXECUTE 'SELECT t.n, t.s FROM gp_t t WHERE t.id = $1' INTO {strict}{number}, {text} USING {given};",
                f"EXECUTE format('SELECT count(*) FROM %I WHERE n > $1 AND s <> $2', 'gp_t') INTO {number} USING {given}, {self.value('text', 1)};",
                f"EXECUTE 'UPDATE gp_t SET n = $2 WHERE id = $1 RETURNING n' INTO {strict}{number} USING {given}, {self.value('int', 1)};",
                f"EXECUTE 'INSERT INTO gp_log VALUES ($1, $2)' USING {given}, {self.value('text', 1)};",
                f"EXECUTE {self.value('text', 1)};", f"EXECUTE 'SELECT 1/$1' INTO {number} USING {given};",
                f"EXECUTE 'SELECT * FROM gp_t ORDER BY id' INTO {strict}{whole or number};", "EXECUTE 'SELEC 1';", "EXECUTE 'SELECT kept';",
                f"EXECUTE 'SELECT $1.x, ($1).y' INTO {number}, {text} USING {self.value('pt', 1)};" if self.chance(0.3) else "EXECUTE 'SELECT 1';",
            )
        ]  # fmt: skip

    def perform(self) -> list[str]:
        """Return PERFORM."""
        return [
            self.pick(
                f"PERFORM gp_note({self.value('text', 1)});", f"PERFORM FROM gp_t t WHERE t.n > {self.value('int', 1)};", f"PERFORM gp_half({self.value('int', 1)});",
                f"PERFORM {self.value('int', 1)}, {self.value('text', 1)};",
            )
        ]  # fmt: skip

    def call(self) -> list[str]:
        """Return CALL of a procedure that gives its argument back, or NULL."""
        return [
            self.pick(
                f"CALL gp_twice({self.target('int')});",
                f"CALL gp_twice({self.target('int')}, {self.value('text', 1)});",
                "NULL;",
            )
        ]

    def diagnostics(self) -> list[str]:
        """Return GET DIAGNOSTICS, of the error in a handler."""
        text = self.target("text")
        if self.handling:
            item, other = self.random.sample(DIAGNOSTICS, 2)
            return [
                f"GET STACKED DIAGNOSTICS {text} = {item}{self.pick('', f', said := {other}')};",
                f"RAISE NOTICE 'caught % % [%] [%]', SQLSTATE, SQLERRM, {text}, said;",
            ]
        return [
            self.pick(
                f"GET DIAGNOSTICS {self.target('int')} = ROW_COUNT;",
                f"GET CURRENT DIAGNOSTICS {text} = PG_CONTEXT;",
            )
        ]

    def exit(self) -> list[str]:
        """Return EXIT or CONTINUE, out of any loop or block around."""
        labels = [scope.label for scope in self.scopes[1:] if scope.label]
        loops = [scope.label for scope in self.scopes if scope.label and scope.loop]
        inside = any(scope.loop for scope in self.scopes)
        options = [f"EXIT {label}" for label in labels] + [f"CONTINUE {label}" for label in loops]
        options += ["EXIT", "CONTINUE"] if inside else []
        if not options:
            return ["NULL;"]
        return [
            self.random.choice(options)
            + self.pick(f" WHEN {self.value('bool', 1)}", f" WHEN {self.value('bool', 1)}", "")
            + ";"
        ]

    def leave(self) -> list[str]:
        """Return a RETURN in the middle, under a condition."""
        return [f"IF {self.value('bool', 1)} THEN", *self.indented(self.last()), "END IF;"]

    def last(self) -> list[str]:
        """Return RETURN as the function needs it."""
        result = self.result
        if result.startswith(("SETOF", "TABLE")):
            return [*(self.next_row() if self.chance(0.7) else []), "RETURN;"]
        if result in ("OUT", "INOUT", "void"):
            return ["RETURN;"] if self.chance(0.7) else []
        if self.chance(0.03):
            return []
        if result == "record":
            return [f"RETURN {self.pick(self.value('record'), self.value('record'), 'NULL')};"]
        return [f"RETURN {self.value(KINDS[result])};"]

    def next_row(self) -> list[str]:
        """Return RETURN NEXT or RETURN QUERY for a function of several rows, else an assignment."""
        result = self.result
        if result.startswith("TABLE"):
            return [
                self.pick(
                    "RETURN NEXT;", f"x := {self.value('int', 1)}; y := {self.value('text', 1)}; RETURN NEXT;", "RETURN QUERY SELECT t.id, t.s FROM gp_t t ORDER BY t.id;",
                    f"RETURN QUERY EXECUTE 'SELECT id, s FROM gp_t WHERE id < $1 ORDER BY id' USING {self.value('int', 1)};",
                    f"RETURN QUERY SELECT {self.value('int', 1)}, {self.value('text', 1)};",
                )
            ]  # fmt: skip
        if not result.startswith("SETOF"):
            return self.assignment()
        item = result.removeprefix("SETOF ")
        kind = KINDS[item]
        queries = {
            "int": ("SELECT t.n FROM gp_t t ORDER BY t.id", f"SELECT {self.value('int', 1)}", "UPDATE gp_t t SET n = 1 WHERE t.id = 2 RETURNING t.n"),
            "pt": ("SELECT t.n, t.s FROM gp_t t ORDER BY t.id", "SELECT row(1, 'a')::gp_pt", f"SELECT ({self.value('pt', 1)}).*"),
            "row": ("SELECT * FROM gp_t t ORDER BY t.id", "SELECT t.id, t.n, t.s, t.a FROM gp_t t WHERE t.n > 5 ORDER BY t.id"),
            "record": ("SELECT t.id, t.s FROM gp_t t ORDER BY t.id", f"SELECT {self.value('int', 1)}, {self.value('text', 1)}"),
        }[kind]  # fmt: skip
        variable = self.variable(kind) or self.value(kind, 1)
        return [
            self.pick(
                f"RETURN NEXT {variable};",
                f"RETURN NEXT {variable};",
                *(f"RETURN QUERY {q};" for q in queries),
            )
        ]

    def cursors(self) -> list[str]:
        """Return statements over a cursor."""
        found = [(name, form) for scope in self.scopes for name, form in scope.cursors.items()]
        if not found:
            return self.assignment()
        name, form = self.random.choice(found)
        number, text = self.target("int"), self.target("text")
        whole = self.variable("record", settable=True) or self.variable("row", settable=True)
        opened = {
            "free": self.pick(
                f"OPEN {name} FOR {self.query()};",
                f"OPEN {name} SCROLL FOR {self.query()};",
                f"OPEN {name} FOR EXECUTE 'SELECT id, n, s FROM gp_t ORDER BY id';",
            ),
            "bound": f"OPEN {name};",
            "given": self.pick(
                f"OPEN {name}(1, {self.value('int', 0)});", f"OPEN {name}(hi := 3, lo := {self.small()});"
            ),
        }[form]
        direction = self.pick(
            "",
            "",
            "NEXT FROM ",
            "FIRST FROM ",
            "LAST FROM ",
            "PRIOR FROM ",
            "RELATIVE 2 FROM ",
            f"ABSOLUTE {self.small()} FROM ",
        )
        fetch = self.pick(
            f"FETCH {direction}{name} INTO {number};",
            f"FETCH {direction}{name} INTO {number}, {number}, {text};",
            f"FETCH {direction}{name} INTO {whole or number};",
        )
        middle = self.pick(
            fetch,
            fetch,
            f"MOVE {direction}{name};",
            f"UPDATE gp_t SET s = 'cur' WHERE CURRENT OF {name};",
            f"RAISE NOTICE '% %', FOUND, {number};",
        )
        closed = [f"CLOSE {name};"] if self.chance(0.8) else []
        start = [opened] if self.chance(0.9) else []
        return [*start, fetch, middle, f"RAISE NOTICE 'fetched % %', {number}, FOUND;", *closed]

    def branch(self, depth: int) -> list[str]:
        """Return IF."""
        lines = [f"IF {self.value('bool')} THEN", *self.inside(depth, self.random.randint(1, 2))]
        if self.chance(0.3):
            lines += [f"{self.pick('ELSIF', 'ELSEIF')} {self.value('bool')} THEN", *self.inside(depth, 1)]
        if self.chance(0.5):
            lines += ["ELSE", *self.inside(depth, 1)]
        return [*lines, "END IF;"]

    def case(self, depth: int) -> list[str]:
        """Return CASE, with and without ELSE."""
        searched = self.chance(0.5)
        lines = ["CASE" if searched else f"CASE {self.value('int', 1)}"]
        for _ in range(self.random.randint(1, 3)):
            when = (
                self.value("bool", 1)
                if searched
                else self.pick(self.small(), f"{self.small()}, {self.small()}", self.value("int", 1))
            )
            lines += [f"WHEN {when} THEN", *self.inside(depth, 1)]
        if self.chance(0.6):
            lines += ["ELSE", *self.inside(depth, 1)]
        return [*lines, "END CASE;"]

    def loop(self, depth: int) -> list[str]:
        """Return a loop of any kind."""
        scope = _Scope(self.fresh("l") if self.chance(0.5) else "", loop=True)
        lines = [f"<<{scope.label}>>"] if scope.label else []
        kind = self.pick(
            "plain", "while", "range", "query", "execute", "array", "cursor", "query", "range", "slice"
        )
        cursors = [(name, form) for s in self.scopes for name, form in s.cursors.items() if form != "free"]
        if kind == "cursor" and not cursors:
            kind = "query"
        first: list[str] = []
        whole = self.variable("record", settable=True) or self.variable("row", settable=True)
        before: list[str] = []
        if kind in ("plain", "while"):
            count = self.fresh("k")
            before = [f"DECLARE {count} int := 0;", "BEGIN"]
            first = [f"{count} := {count} + 1;"]
            head = f"WHILE {count} < 3 LOOP" if kind == "while" else "LOOP"
            first += [f"EXIT WHEN {count} > 3;"] if kind == "plain" else []
            scope.variables[count] = _Variable(count, "int", "counter", fixed=True)
        elif kind == "range":
            name = self.pick("i", "j", "v")
            low, high = self.pick("1", "0", "2", self.value("int", 0)), self.pick("3", "2", "4")
            step = self.pick(
                "", "", " BY 2", " BY 1", f" BY {self.value('int', 0)}" if self.chance(0.1) else ""
            )
            head = f"FOR {name} IN {low}..{high}{step} LOOP"
            if self.chance(0.3):
                head = f"FOR {name} IN REVERSE {high}..least(greatest({low}, 0), 3){step} LOOP"
            else:
                head = f"FOR {name} IN greatest({low}, -1)..{high}{step} LOOP"
            scope.variables[name] = _Variable(name, "int", "int", fixed=self.chance(0.9))
        elif kind in ("query", "execute"):
            number, text = self.target("int"), self.target("text")
            into = whole if whole and self.chance(0.6) else f"{number}, {text}"
            if "[" in into or into.count(".") > 1:
                into = "kept, said"
            query = (
                "SELECT t.n, t.s FROM gp_t t ORDER BY t.id"
                if into != whole
                else self.pick(self.query(), "SELECT * FROM gp_t t ORDER BY t.id")
            )
            if kind == "execute":
                query = self.pick(
                    "EXECUTE 'SELECT n, s FROM gp_t ORDER BY id'",
                    f"EXECUTE 'SELECT n, s FROM gp_t WHERE id < $1 ORDER BY id' USING {self.value('int', 0)}",
                )
            head = f"FOR {into} IN {query} LOOP"
        elif kind == "cursor":
            name, form = self.random.choice(cursors)
            row = self.pick("i", "r")
            head = f"FOR {row} IN {name}{'(1, 3)' if form == 'given' else ''} LOOP"
            scope.variables[row] = _Variable(row, "record", "record")
            if self.chance(0.4):
                first = [f"UPDATE gp_t SET n = {self.value('int', 0)} WHERE CURRENT OF {name};"]
        elif kind == "slice":
            head = f"FOREACH {self.variable('ints', settable=True) or 'kept'} SLICE 1 IN ARRAY {self.pick(self.value('ints', 1), 'ARRAY[[1,2],[3,4]]')} LOOP"
        else:
            head = f"FOREACH {self.variable('int', settable=True) or 'kept'} IN ARRAY {self.value('ints', 1)} LOOP"
        self.scopes.append(scope)
        lines += [
            head,
            *self.indented(first),
            *self.inside(min(depth, 1), self.random.randint(1, 3)),
            f"END LOOP{' ' + scope.label if scope.label and self.chance(0.5) else ''};",
        ]
        self.scopes.pop()
        if before:
            return [*before, *self.indented(lines), "END;"]
        return lines
