"""Random PL/pgSQL functions over a few tables and types, a function of a seed.

    Programs(seed).program()  ──>  Program(CREATE FUNCTION gp(...), SELECT ... gp(...))

Nested blocks whose variables hide others, handlers, loops with labels, cursors, records, rows and composite values, arrays, domains, dynamic
SQL, changes with RETURNING, diagnostics, RAISE in all forms, results of all shapes; trigger functions, with transition tables, too, procedures
that end transactions and that are called within handlers, tables, views and functions that are made, changed and dropped on the way.
Most programs are right, and some go wrong on their way: that is compared, too. Rows are read in an order, and one statement changes one row,
or several alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.differential.generated_plpgsql_nesting import EVENTS, Nesting
from tests.differential.generated_plpgsql_values import (
    CONDITIONS,
    DECLARED,
    DIAGNOSTICS,
    KINDS,
    NAMES,
    RESULTS,
    ROWS,
    SCHEMA,
    TABLES,
    Scope,
    Variable,
)

__all__ = ["ROWS", "SCHEMA", "TABLES", "Program", "Programs"]


@dataclass(frozen=True, slots=True)
class Program:
    """A function, and the statement that calls it; undone by hand where it ``commits``."""

    definition: str
    call: str
    commits: bool = False


class Programs(Nesting):
    """Makes functions, one after another."""

    def program(self) -> Program:
        """Return the next function with its call."""
        self.numbered = 0
        self.handling = 0
        self.transitions = ()
        self.result = self.pick(*RESULTS)
        if self.result == "trigger":
            return self.trigger()
        base = Scope("gp")
        base.variables["p1"] = Variable("p1", "int", "int")
        base.variables["p2"] = Variable("p2", "text", "text")
        parameters, returns = "p1 int, p2 text", f" RETURNS {self.result}"
        if self.result in ("OUT", "INOUT"):
            parameters = (
                "p1 int, p2 text, OUT o1 int, OUT o2 text"
                if self.result == "OUT"
                else "INOUT p1 int, INOUT p2 text"
            )
            returns = self.pick("", " RETURNS record")
        if self.result == "OUT":
            base.variables["o1"] = Variable("o1", "int", "int")
            base.variables["o2"] = Variable("o2", "text", "text")
        if self.result.startswith("TABLE"):
            base.variables["x"] = Variable("x", "int", "int")
            base.variables["y"] = Variable("y", "text", "text")
        self.scopes = [base]
        body = self.body()
        columns = (
            " AS f(c1 int, c2 text)" if self.result in ("record", "SETOF record") and self.chance(0.7) else ""
        )
        arguments = f"{self.pick('1', '2', 'NULL', '6')}, {self.pick(chr(39) + 'arg' + chr(39), 'NULL')}"
        call = f"gp({arguments})"
        if self.result == "procedure":
            definition = f"CREATE PROCEDURE gp({parameters}) LANGUAGE plpgsql AS $f$\n{body}\n$f$"
            return Program(definition, f"CALL {call}", commits=self.chance(0.8))
        as_value = not columns and self.result != "SETOF record" and self.chance(0.4)
        return Program(
            f"CREATE FUNCTION gp({parameters}){returns} LANGUAGE plpgsql AS $f$\n{body}\n$f$",
            f"SELECT {call}" if as_value else f"SELECT * FROM {call}{columns}",
        )

    def body(self) -> str:
        """Return the text of a function of ``result``."""
        option = self.pick("", "", "", "#variable_conflict use_variable\n", "#variable_conflict use_column\n")
        block = self.block(3, outermost=True)
        return option + "\n".join([*block[:-1], "END"])

    def trigger(self) -> Program:
        """Return a trigger function with its trigger, and a change of one row that fires it."""
        base = Scope("gp")
        for name in ("NEW", "OLD"):
            base.variables[name] = Variable(name, "gp_t", "row", fixed=True)
        self.scopes = [base]
        if self.chance(0.4):
            return self.after_statement()
        body = self.body()
        when, level = self.pick("BEFORE", "BEFORE", "AFTER"), self.pick("ROW", "ROW", "ROW", "STATEMENT")
        change = self.pick(
            "INSERT INTO gp_t VALUES (5, 50, 'five', '{5}')",
            "UPDATE gp_t SET n = 5 WHERE id = 1",
            "UPDATE gp_t SET s = 'new' WHERE id = 2",
            "DELETE FROM gp_t WHERE id = 4",
        )
        return Program(
            f"CREATE FUNCTION gp() RETURNS trigger LANGUAGE plpgsql AS $f$\n{body}\n$f$;\nCREATE TRIGGER gpt {when} INSERT OR UPDATE OR DELETE"
            f" ON gp_t FOR EACH {level} WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION gp('arg', 2)",
            f"{change} RETURNING *",
        )

    def after_statement(self) -> Program:
        """Return a trigger function that reads transition tables, with its trigger, and a change that fires it once."""
        event, self.transitions, change = self.random.choice(EVENTS)
        words = {"fresh": "NEW TABLE AS fresh", "stale": "OLD TABLE AS stale"}
        tables = " ".join(words[name] for name in self.transitions)
        return Program(
            f"CREATE FUNCTION gp() RETURNS trigger LANGUAGE plpgsql AS $f$\n{self.body()}\n$f$;\nCREATE TRIGGER gpt AFTER {event}"
            f" ON gp_t REFERENCING {tables} FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION gp('arg', 2)",
            f"{change} RETURNING *",
        )

    def block(self, depth: int, *, outermost: bool = False) -> list[str]:
        """Return the lines of a block."""
        scope = Scope(self.fresh("b") if self.chance(0.5) else "")
        lines = [f"<<{scope.label}>>"] if scope.label else []
        declared: list[str] = []
        if not outermost and self.chance(0.1) and (of := self.variable("int")) is not None:
            scope.variables["also"] = Variable("also", "int", "int", fixed=True)
            declared.append(f"also ALIAS FOR {of};")
        self.scopes.append(scope)
        if outermost:
            scope.variables["kept"] = Variable("kept", "int", "int")
            scope.variables["said"] = Variable("said", "text", "text")
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

    def declaration(self, scope: Scope) -> str:
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
        scope.variables[name] = Variable(name, type_, kind, fixed)
        return text + ";"

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
            (3, self.diagnostics), (4, self.next_row), (6, self.cursors), (2, self.exit), (2, self.failing), (2, self.call), (1, self.leave), (6, self.wider),
            (3 if self.result == "procedure" else 0, self.ending), (3, self.nested), (9 if self.transitions else 0, self.transition),
            (0 if self.result == "procedure" else 3, self.definition),
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
            "int",
            "int",
            "text",
            "num",
            "bool",
            "ints",
            "texts",
            "pt",
            "pts",
            "row",
            "record",
            "date",
            "seg",
            "json",
            "moment",
            "span",
            "mood",
            "range",
            "bytes",
        )
        if self.variable(kind, settable=True) is None:
            kind = "int"
        target = self.target(kind)
        target = (
            "kept" if target in ("NEW", "OLD") else target
        )  # whole rows of other columns are not what they hold here
        if kind == "json" and self.chance(0.6):
            step = self.pick("['a']", "['a'][0]", "[0]", "['b']['c']", f"[{self.value('text', 0)}]")
            return [f"{target}{step} := to_jsonb({self.value('int', 1)});"]
        if kind == "seg" and self.chance(0.5):
            step, value = self.random.choice((
                ("p", "pt"), ("p.y", "text"), ("ps", "pts"), (f"ps[{self.place()}]", "pt"), ("m", "ints"), ("m[1:2]", "ints"),
            ))  # fmt: skip
            return [f"{target}.{step} := {self.value(value, 1)};"]
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
            f"SELECT * INTO {strict}{numbers}, {texts} FROM gp_both({self.value('int', 1)});",
            f"SELECT p.one, p.two[2] INTO {strict}{numbers}, {texts} FROM gp_pair({self.value('int', 1)}) p;",
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

    def wider(self) -> list[str]:
        """Return a statement of SQL of more parts, or one that is seldom in functions."""
        number, text, less = self.target("int"), self.target("text"), self.value("int", 1)
        into = self.pick("", "", " INTO STRICT", " INTO")
        returning = f" RETURNING t.n, t.s{into} {number}, {text}" if into else ""
        return [
            self.pick(
                f"WITH w AS (SELECT t.id, t.n FROM gp_t t WHERE t.id > {less}) SELECT sum(w.n), max(w.id)::text INTO {number}, {text} FROM w;",
                f"WITH w AS (UPDATE gp_t t SET n = {less} WHERE {self.one_row()} RETURNING t.*) SELECT w.n, w.s{into or ' INTO'} {number}, {text} FROM w;",
                f"MERGE INTO gp_t t USING (VALUES (2, {less}), (7, {self.value('int', 1)})) AS v(k, m) ON t.id = v.k WHEN MATCHED AND v.m > 3 THEN UPDATE SET n = v.m"
                " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, n) VALUES (v.k, v.m);",
                f"SELECT t.n, t.s INTO {number}, {text} FROM gp_t t WHERE {self.one_row()} FOR UPDATE;",
                f"INSERT INTO gp_t AS t (id, n) VALUES ({self.small()}, {less}) ON CONFLICT DO NOTHING{returning};",
                f"UPDATE gp_t t SET (n, s) = (SELECT o.m, {self.value('text', 1)}) FROM (VALUES (1, {less})) AS o(k, m) WHERE t.id = o.k{returning};",
                f"DELETE FROM gp_t t USING gp_t o WHERE o.id = t.id AND {self.one_row()}{returning};",
                f"INSERT INTO gp_log SELECT r.k, r.w FROM gp_rows({less}) r;",
                f"SELECT r.k, r.w INTO {number}, {text} FROM gp_rows({less}) r ORDER BY r.k DESC;",
                f"SELECT count(*) OVER (), first_value(t.s) OVER (ORDER BY t.id DESC) INTO {number}, {text} FROM gp_t t WHERE t.id <= {less} ORDER BY t.id;",
                f"DO 'DECLARE v int := 2; BEGIN RAISE NOTICE ''in do %'', gp_half(v); INSERT INTO gp_log VALUES (v, ''do''); PERFORM 1 / (v - {self.small()}); END';",
                f"PERFORM set_config('gp.kept', {self.value('text', 1)}, true);", "SET LOCAL gp.kept = 'local';",
                f"EXECUTE format('UPDATE %I SET n = %L WHERE id = %s', 'gp_t', {less}, {self.small()});",
                f"{text} := string_agg(t.s, '-' ORDER BY t.id) FROM gp_t t WHERE t.n > {less};", f"{number} := {less}, 2;" if self.chance(0.1) else f"{number} := max(n) FROM gp_t;",
                f"RAISE EXCEPTION USING ERRCODE = {self.pick('said', chr(39) + 'GP009' + chr(39), chr(39) + 'foreign_key_violation' + chr(39))}, MESSAGE = {self.value('text', 1)};",
                f"SELECT * FROM jsonb_to_record({self.value('json', 1)}) AS j(a text, b int) INTO {text}, {number};", "TRUNCATE gp_log;",
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
                f"CALL gp_deep({self.target('int')}, {self.target('text')});",
                f"CALL gp_deep(w => {self.target('text')}, n => {self.small()}, v => {self.target('int')});",
                f"EXECUTE 'CALL gp_twice($1)' INTO {self.target('int')} USING {self.value('int', 1)};",
                "NULL;",
            )
        ]

    def ending(self) -> list[str]:
        """Return COMMIT or ROLLBACK, as procedures may."""
        return [self.pick("COMMIT;", "COMMIT;", "ROLLBACK;", "COMMIT AND CHAIN;", "ROLLBACK AND NO CHAIN;")]

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

    def leave(self) -> list[str]:
        """Return a RETURN in the middle, under a condition."""
        return [f"IF {self.value('bool', 1)} THEN", *self.indented(self.last()), "END IF;"]

    def last(self) -> list[str]:
        """Return RETURN as the function needs it."""
        result = self.result
        if result.startswith(("SETOF", "TABLE")):
            return [*(self.next_row() if self.chance(0.7) else []), "RETURN;"]
        if result == "trigger":
            return [f"RETURN {self.pick('NEW', 'NEW', 'NEW', 'OLD', 'NULL', self.value('row', 1))};"]
        if result in ("OUT", "INOUT", "void", "procedure"):
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
