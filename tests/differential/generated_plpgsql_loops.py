"""Statements that hold others, and cursors, of random PL/pgSQL functions.

IF, CASE, loops of every kind with labels, EXIT and CONTINUE   ──> lines, in which ``statement`` stands for whatever else there is

Every loop ends: it counts in a variable that nothing else sets.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.differential.generated_plpgsql_values import Scope, Values, Variable

__all__ = ["Loops"]


class Loops(Values):
    """Makes statements around statements."""

    def statement(self, depth: int) -> list[str]:
        """Return the lines of a statement."""
        raise NotImplementedError

    def assignment(self) -> list[str]:
        """Return an assignment."""
        raise NotImplementedError

    def indented(self, lines: Sequence[str]) -> list[str]:
        """Return lines, further in."""
        return [f"  {line}" for line in lines]

    def inside(self, depth: int, count: int) -> list[str]:
        """Return the lines of some statements."""
        return self.indented([line for _ in range(count) for line in self.statement(depth)])

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
        scope = Scope(self.fresh("l") if self.chance(0.5) else "", loop=True)
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
            scope.variables[count] = Variable(count, "int", "counter", fixed=True)
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
            scope.variables[name] = Variable(name, "int", "int", fixed=self.chance(0.9))
        elif kind in ("query", "execute"):
            number, text = self.target("int"), self.target("text")
            into = whole if whole and self.chance(0.6) else f"{number}, {text}"
            if "[" in into or into.count(".") > 1:
                into = "kept, said"
            query = (
                "SELECT t.n, t.s FROM gp_t t ORDER BY t.id"
                if into != whole
                else self.pick(
                    self.query(),
                    "SELECT * FROM gp_t t ORDER BY t.id",
                    "SELECT t.id, row_number() OVER (ORDER BY t.id DESC) n, t.s FROM gp_t t ORDER BY t.id",
                    f"SELECT * FROM gp_rows({self.value('int', 1)})",
                    "UPDATE gp_t t SET n = t.id WHERE t.id = 3 RETURNING t.id, t.n, t.s",
                    "SELECT g AS n, g::text AS s FROM generate_series(1, 3) g ORDER BY g DESC",
                )
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
            scope.variables[row] = Variable(row, "record", "record")
            if self.chance(0.4):
                first = [f"UPDATE gp_t SET n = {self.value('int', 0)} WHERE CURRENT OF {name};"]
        elif kind == "slice":
            head = f"FOREACH {self.variable('ints', settable=True) or 'kept'} SLICE 1 IN ARRAY {self.pick(self.value('ints', 1), 'ARRAY[[1,2],[3,4]]')} LOOP"
        else:
            numbers, points = self.value("ints", 1), self.value("pts", 1)
            head = self.pick(
                f"FOREACH {self.variable('int', settable=True) or 'kept'} IN ARRAY {numbers} LOOP",
                f"FOREACH {self.variable('int', settable=True) or 'kept'} IN ARRAY {numbers} LOOP",
                f"FOREACH {self.variable('pt', settable=True) or whole or 'kept'} IN ARRAY {points} LOOP",
                f"FOREACH {self.variable('text', settable=True) or 'said'} IN ARRAY {self.value('texts', 1)} LOOP",
            )
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

    def cursor(self, scope: Scope) -> str:
        """Return the declaration of a cursor."""
        name = self.fresh("c")
        form = self.pick("free", "bound", "given", "bound")
        scope.cursors[name] = form
        if form == "free":
            return f"{name} refcursor{self.pick('', '', f' := {chr(39)}named{chr(39)}')};"
        scroll = self.pick("", "", " SCROLL", " NO SCROLL")
        if form == "given":
            return f"{name}{scroll} CURSOR (lo int, hi int) FOR SELECT t.id, t.n, t.s FROM gp_t t WHERE t.id BETWEEN lo AND hi ORDER BY t.id;"
        locked = self.pick("", "", "", " FOR UPDATE") if scroll != " SCROLL" else ""
        return f"{name}{scroll} CURSOR FOR {self.query()}{locked};"

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
            "", "", "NEXT FROM ", "FIRST FROM ", "LAST FROM ", "PRIOR FROM ", "RELATIVE 2 FROM ", f"ABSOLUTE {self.small()} FROM ",
            "FORWARD FROM ", "BACKWARD IN ", f"RELATIVE -{self.small()} FROM ", f"ABSOLUTE -{self.small()} FROM ", f"RELATIVE {self.value('int', 1)} FROM ",
        )  # fmt: skip
        far = self.pick(
            direction,
            direction,
            "FORWARD 2 FROM ",
            "BACKWARD 2 FROM ",
            "FORWARD ALL IN ",
            "BACKWARD ALL FROM ",
        )
        fetch = self.pick(
            f"FETCH {direction}{name} INTO {number};",
            f"FETCH {direction}{name} INTO {number}, {number}, {text};",
            f"FETCH {direction}{name} INTO {whole or number};",
        )
        middle = self.pick(
            fetch,
            fetch,
            f"MOVE {far}{name};",
            f"UPDATE gp_t SET s = 'cur' WHERE CURRENT OF {name};",
            f"RAISE NOTICE '% %', FOUND, {number};",
        )
        closed = [f"CLOSE {name};"] if self.chance(0.8) else []
        start = [opened] if self.chance(0.9) else []
        return [*start, fetch, middle, f"RAISE NOTICE 'fetched % %', {number}, FOUND;", *closed]
