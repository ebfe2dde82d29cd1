"""Random nested queries: sub-selects and LATERAL items that read the queries around them, a function of a seed.

    Generator(seed).query()  ──>  SELECT text over SCHEMA, ordered by all of its columns

What stands below a correlation: set operations, VALUES, WITH, aggregates with and without groups, grouping sets, HAVING, DISTINCT, windows,
LIMIT, joins of all kinds with conditions that read outward, two levels and more out. Values are small integers and NULL. A LIMIT goes with an
order by all columns; what may fail (a scalar sub-select of two rows) is rare, and whether it is evaluated is left to whoever compares.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["SCHEMA", "Generator"]

TABLES = {"gn_o": ("a", "b"), "gn_i": ("x", "y"), "gn_k": ("u", "v", "w")}
SCHEMA = """
CREATE TABLE gn_o (a int, b int);
INSERT INTO gn_o VALUES (1, 2), (9, 0), (NULL, 3), (3, NULL), (2, 2), (2, 2);
CREATE TABLE gn_i (x int, y int);
INSERT INTO gn_i VALUES (5, 1), (6, 2), (2, NULL), (2, 3), (NULL, 1);
CREATE TABLE gn_k (u int PRIMARY KEY, v int, w int NOT NULL);
INSERT INTO gn_k VALUES (1, 1, 0), (2, NULL, 1), (3, 2, 2), (4, 2, 9)
"""
_SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
_COMPARED = ("=", "<", ">", "<>", "<=", ">=")
_AGGREGATES = ("count(*)", "count({})", "sum({})", "min({})", "max({})", "count(DISTINCT {})")
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN")


class Generator:
    """Makes queries; ``scopes``: names of columns by query level, the innermost last."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scopes: list[list[str]] = []
        self.aliases = 0

    def chance(self, probability: float) -> bool:
        """Return True as often as that."""
        return self.random.random() < probability

    def alias(self) -> str:
        """Return a name that the statement does not have."""
        self.aliases += 1
        return f"t{self.aliases}"

    # -- expressions -----------------------------------------------------------------------------

    def column(self, correlated: float = 0.3) -> str:
        """Return a column of this level or one further out, or a constant where there is none."""
        outer = [name for scope in self.scopes[:-1] for name in scope]
        if outer and self.chance(correlated):
            near = self.scopes[-2] if len(self.scopes) > 1 and self.scopes[-2] else outer
            return self.random.choice(near if self.chance(0.8) else outer)
        if self.scopes and self.scopes[-1]:
            return self.random.choice(self.scopes[-1])
        return str(self.random.randrange(4))

    def value(self, depth: int, correlated: float = 0.25) -> str:
        """Return an integer expression."""
        shape = self.random.randrange(12)
        if depth > 0 and shape == 0:
            return self.scalar(depth - 1)
        if depth > 0 and shape == 1:
            return (
                f"CASE WHEN {self.condition(depth - 1)} THEN {self.value(depth - 1)} ELSE {self.value(0)} END"
            )
        if shape == 2:
            return f"{self.column(correlated)} + {self.column(correlated)}"
        if shape == 3:
            return f"coalesce({self.column(correlated)}, {self.random.randrange(9)})"
        if shape == 4:
            return str(self.random.randrange(6))
        return self.column(correlated)

    def scalar(self, depth: int) -> str:
        """Return a scalar sub-select: mostly of one row at most."""
        shape = self.random.randrange(8)
        self.scopes.append([])
        if shape <= 3:
            text = self.select(1, depth, aggregate=True)
        elif shape <= 6:
            text = f"{self.body(1, depth)} ORDER BY 1 LIMIT 1{self.random.choice(('', ' OFFSET 1'))}"
        else:
            text = self.body(1, depth)
        self.scopes.pop()
        return f"({text})"

    def condition(self, depth: int) -> str:
        """Return a boolean expression."""
        shape = self.random.randrange(14)
        if depth > 0 and shape < 6:
            self.scopes.append([])
            query = self.query(1, depth - 1)
            self.scopes.pop()
            left = self.value(0)
            if shape == 0:
                return f"{self.random.choice(('', 'NOT '))}EXISTS ({query})"
            if shape <= 3:
                return f"{left} {self.random.choice(('', 'NOT '))}IN ({query})"
            return f"{left} {self.random.choice(_COMPARED)} {self.random.choice(('ANY', 'ALL'))} ({query})"
        if shape == 6:
            return f"{self.value(0)} IS {self.random.choice(('', 'NOT '))}NULL"
        if shape == 7 and depth > 0:
            return f"({self.condition(depth - 1)} {self.random.choice(('AND', 'OR'))} {self.condition(depth - 1)})"
        if shape == 8 and depth > 0:
            return f"NOT ({self.condition(depth - 1)})"
        if shape == 9:
            return f"{self.value(0)} IS {self.random.choice(('', 'NOT '))}DISTINCT FROM {self.value(0)}"
        return f"{self.value(depth)} {self.random.choice(_COMPARED)} {self.value(depth, 0.4)}"

    # -- FROM ------------------------------------------------------------------------------------

    def item(self, depth: int) -> tuple[str, list[str]]:
        """Return a FROM item and its columns; a LATERAL one reads the items before it, which the innermost scope has."""
        name = self.alias()
        shape = self.random.randrange(10)
        if depth <= 0 or shape < 5:
            table = self.random.choice(tuple(TABLES))
            return f"{table} {name}", [f"{name}.{c}" for c in TABLES[table]]
        if shape == 5:
            return f"generate_series(1, {self.random.randint(1, 3)}) {name}(n)", [f"{name}.n"]
        width = self.random.randint(1, 2)
        columns = ", ".join(f"c{n}" for n in range(width))
        hidden = shape in (6, 7)
        if hidden:  # not LATERAL: sees the levels around, not its neighbours
            kept, self.scopes[-1] = self.scopes[-1], []
        self.scopes.append([])
        query = self.query(width, depth - 1)
        self.scopes.pop()
        if hidden:
            self.scopes[-1] = kept
        return f"{'' if hidden else 'LATERAL '}({query}) {name}({columns})", [
            f"{name}.c{n}" for n in range(width)
        ]

    def source(self, depth: int) -> str:
        """Return a FROM list and make its columns the innermost scope."""
        self.scopes[-1] = []
        items: list[str] = []
        for _ in range(self.random.choice((1, 1, 1, 2, 2))):
            text, columns = self.item(depth)
            if self.chance(0.3):
                join = self.random.choice(_JOINS)
                before, self.scopes[-1] = self.scopes[-1], [*self.scopes[-1], *columns]
                if join in ("RIGHT JOIN", "FULL JOIN"):
                    hidden, self.scopes[-1] = self.scopes[-1], []
                    other, more = self.item(0)
                    self.scopes[-1] = hidden
                else:
                    other, more = self.item(depth)
                inside = [*columns, *more]
                self.scopes[-1] = inside
                if join == "FULL JOIN":  # PostgreSQL takes hashed or merged ones alone
                    on = f" ON {self.random.choice(columns)} = {self.random.choice(more)}"
                    if len(self.scopes) > 1 and self.chance(0.3):
                        on += f" AND {self.column(1.0)} > {self.random.randrange(4)}"
                elif join == "CROSS JOIN":
                    on = ""
                else:
                    on = f" ON {self.condition(min(depth, 1))}"
                text, columns = f"({text} {join} {other}{on})", inside
                self.scopes[-1] = before
            items.append(text)
            self.scopes[-1] = [*self.scopes[-1], *columns]
        return ", ".join(items)

    # -- queries ---------------------------------------------------------------------------------

    def query(self, width: int, depth: int) -> str:
        """Return a query for the innermost scope's level, which it fills."""
        if depth > 0 and self.chance(0.12):
            name = self.alias()
            self.scopes.append([])
            inner = self.body(width, depth - 1)
            self.scopes.pop()
            columns = [f"c{n}" for n in range(width)]
            once = f"SELECT {', '.join(columns)} FROM {name}"
            more = f" {self.random.choice(_SETS)} {self.body(width, depth - 1)}" if self.chance(0.3) else ""
            return f"WITH {name}({', '.join(columns)}) AS ({inner}) {once}{more}"
        text = self.body(width, depth)
        if self.chance(0.12):
            numbers = ", ".join([f"{n}{self.random.choice(('', ' DESC'))}" for n in range(1, width + 1)])
            limit = f" LIMIT {self.random.randrange(3)}{self.random.choice(('', ' OFFSET 1'))}"
            return f"{text} ORDER BY {numbers}{limit}"
        return text

    def body(self, width: int, depth: int) -> str:
        """Return a query without ORDER BY."""
        shape = self.random.randrange(16)
        if depth > 0 and shape < 3:
            left, right = self.select(width, depth - 1), self.select(width, depth - 1)
            return f"{left} {self.random.choice(_SETS)} {right}"
        if shape == 3 and len(self.scopes) > 1:
            self.scopes[-1] = []
            rows = [
                ", ".join([self.value(depth, 0.5) for _ in range(width)])
                for _ in range(self.random.randint(1, 2))
            ]
            return f"VALUES {', '.join([f'({row})' for row in rows])}"
        return self.select(width, depth)

    def select(self, width: int, depth: int, *, aggregate: bool = False) -> str:
        """Return a SELECT."""
        if not aggregate and len(self.scopes) > 1 and self.chance(0.06):
            self.scopes[-1] = []
            return f"SELECT {', '.join([self.value(depth, 0.7) for _ in range(width)])}"
        source = self.source(depth)
        where = f" WHERE {self.condition(depth)}" if self.chance(0.7) else ""
        shape = self.random.randrange(10)
        if aggregate or shape == 0:
            calls = [self.call() for _ in range(width)]
            having = f" HAVING {self.call()} > {self.random.randrange(3)}" if self.chance(0.2) else ""
            return f"SELECT {', '.join(calls)} FROM {source}{where}{having}"
        if shape <= 2:
            return self.grouped(width, source, where)
        outputs = [self.value(depth) for _ in range(width)]
        if shape == 3:
            outputs[0] = self.window()
        distinct = "DISTINCT " if shape == 4 else ""
        return f"SELECT {distinct}{', '.join(outputs)} FROM {source}{where}"

    def call(self) -> str:
        """Return an aggregate call, at times with a value of a query around in it."""
        argument = self.random.choice(self.scopes[-1])
        if len(self.scopes) > 1 and self.chance(0.3):
            argument = f"{argument} + {self.column(1.0)}"
        text = self.random.choice(_AGGREGATES).format(argument)
        return f"{text} FILTER (WHERE {self.condition(0)})" if self.chance(0.1) else text

    def grouped(self, width: int, source: str, where: str) -> str:
        """Return a SELECT with GROUP BY."""
        columns = self.scopes[-1]
        keys = self.random.sample(columns, min(len(columns), self.random.randint(1, 2)))
        outputs: Sequence[str] = [
            self.random.choice(keys) if self.chance(0.5) else self.call() for _ in range(width)
        ]
        listed = ", ".join(keys)
        by = self.random.choice((listed, listed, f"ROLLUP ({listed})", f"GROUPING SETS (({listed}), ())"))
        having = f" HAVING {self.call()} > {self.random.randrange(3)}" if self.chance(0.3) else ""
        return f"SELECT {', '.join(outputs)} FROM {source}{where} GROUP BY {by}{having}"

    def window(self) -> str:
        """Return a window function whose value does not depend on ties."""
        call = self.random.choice(("rank()", "dense_rank()", "count(*)", f"sum({self.column()})"))
        part = f"PARTITION BY {self.column()} " if self.chance(0.5) else ""
        return f"({call} OVER ({part}ORDER BY {self.random.choice(self.scopes[-1])}))"

    def statement(self) -> str:
        """Return a statement."""
        self.scopes = [[]]
        self.aliases = 0
        width = self.random.randint(1, 3)
        source = self.source(3)
        where = f" WHERE {self.condition(2)}" if self.chance(0.5) else ""
        outputs = [self.value(2) for _ in range(width)]
        numbers = ", ".join([str(n) for n in range(1, width + 1)])
        return f"SELECT {', '.join(outputs)} FROM {source}{where} ORDER BY {numbers}"
