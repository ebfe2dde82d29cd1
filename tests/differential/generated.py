"""Random queries over a fixed schema, for two servers to answer: a function of a seed.

    Generator(seed).query()  ──>  SELECT text; every query orders by all of its columns, so that LIMIT is determined

Expressions are typed, nest a few levels and meet NULLs, empty strings and arrays, negative numbers, NaN and zeros as divisors
(``generated_forms``). What SQL leaves open is not asked: sums of floats, order among equals, what is evaluated first beside an error.
"""

from __future__ import annotations

import random
import re

from tests.differential.generated_forms import COLUMNS, CONSTANTS, FORMS, GENERAL, KEYS, SCHEMA

__all__ = ["SCHEMA", "Generator"]

_CHOICE = re.compile("«([^«»]*)»")
_PLACE = re.compile(r"\{(\w+)(\.?)\}")
_ALIAS = re.compile(r"@(?=\.)|(?<=gen_b )@")
_FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "ROWS 2 PRECEDING",
    "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING", "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)  # fmt: skip
_OFFSETS = (
    "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING", "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", "RANGE 1 PRECEDING",
    "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "RANGE UNBOUNDED PRECEDING",
)  # fmt: skip
_EXCLUDED = ("", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE TIES", " EXCLUDE GROUP", " EXCLUDE NO OTHERS")
_SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")


class Generator:
    """Makes queries; ``scope``: (alias, column, type) of what expressions may name."""

    schema = SCHEMA
    remove = "DROP TABLE gen_a, gen_b"
    stateful = False

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scope: list[tuple[str, str, str]] = []
        self.total = ""  # what orders the rows of the FROM list, without ties
        self.aliases = 0

    def begin(self) -> None:
        """Queries leave nothing."""

    def pick(self, *options: str) -> str:
        """Return one of some texts."""
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        """Return True as often as that."""
        return self.random.random() < probability

    # -- expressions -----------------------------------------------------------------------------

    def fill(self, form: str, depth: int, kind: str = "") -> str:
        """Return a form with its places filled."""
        shared = kind or self.pick(*CONSTANTS)
        self.aliases += 1
        text = _ALIAS.sub(f"x{self.aliases}", form)
        text = _CHOICE.sub(lambda m: self.pick(*m[1].split("¦")), text)

        def place(match: re.Match[str]) -> str:
            wanted = shared if match[1] in ("any", "T") else match[1]
            return self.leaf(wanted) if match[2] else self.expr(wanted, depth)

        return _PLACE.sub(place, text)

    def expr(self, kind: str, depth: int = 3) -> str:
        """Return an expression of a type."""
        if depth <= 0 or self.chance(0.25):
            return self.leaf(kind)
        forms = GENERAL if self.chance(0.18) else FORMS[kind]
        return self.fill(self.random.choice(forms), depth - 1, kind if forms is GENERAL else "")

    def leaf(self, kind: str) -> str:
        """Return a column or a constant."""
        columns = [f"{alias}.{name}" for alias, name, type_ in self.scope if type_ == kind]
        if columns and self.chance(0.75):
            return self.random.choice(columns)
        return self.random.choice(CONSTANTS[kind])

    # -- FROM ------------------------------------------------------------------------------------

    def source(self) -> str:
        """Return a FROM list and make its columns the scope."""
        self.scope = [("t1", name, kind) for name, kind in COLUMNS["gen_a"].items()]
        self.total = "t1.id"
        shape = self.random.randrange(12)
        if shape <= 3:
            return "FROM gen_a t1"
        if shape == 4:
            return self.lateral()
        if shape == 5:
            return self.derived()
        table = self.pick("gen_a", "gen_b", "gen_b")
        self.scope += [("t2", name, kind) for name, kind in COLUMNS[table].items()]
        self.total += f", t2.{'id' if table == 'gen_a' else 'k'}"
        join = self.pick("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        keys = f"t1.{self.pick('i', 'id')} = t2.{self.pick('i', 'id' if table == 'gen_a' else 'k')}"
        more = "" if join == "FULL JOIN" or self.chance(0.6) else f" AND {self.expr('bool', 1)}"
        return f"FROM gen_a t1 {join} {table} t2 ON {keys}{more}"

    def lateral(self) -> str:
        """Return a FROM list whose second item depends on the first."""
        kind = self.random.randrange(5)
        join = self.pick("CROSS JOIN LATERAL", "LEFT JOIN LATERAL")
        on = " ON true" if join.startswith("LEFT") else ""
        self.total = "t1.id, t2.n"
        if kind == 0:
            item = "unnest(t1.a) WITH ORDINALITY t2(v, n)"
            self.scope += [("t2", "v", "int"), ("t2", "n", "bigint")]
        elif kind == 1:
            item = "generate_series(1, t1.i) t2(n)"
            self.scope += [("t2", "n", "int")]
        elif kind == 2:
            item = "jsonb_array_elements(CASE jsonb_typeof(t1.j) WHEN 'array' THEN t1.j END) WITH ORDINALITY t2(v, n)"
            self.scope += [("t2", "v", "jsonb"), ("t2", "n", "bigint")]
        elif kind == 3:
            limit = self.pick("", f" ORDER BY x0.k {self.pick('', 'DESC')} LIMIT {self.pick('1', '2')}")
            item = f"(SELECT x0.k AS n, x0.s AS v, x0.k + t1.i AS w FROM gen_b x0 WHERE {self.expr('bool', 1)}{limit}) t2"
            self.scope += [("t2", "n", "int"), ("t2", "v", "text"), ("t2", "w", "int")]
        else:
            item = (
                f"(SELECT count(*) AS n, max(x0.s) AS v FROM gen_b x0 WHERE x0.i = {self.expr('int', 1)}) t2"
            )
            self.scope += [("t2", "n", "bigint"), ("t2", "v", "text")]
        return f"FROM gen_a t1 {join} {item}{on}"

    def derived(self) -> str:
        """Return a FROM list with a sub-select: grouped, distinct, limited, or of values."""
        shape = self.random.randrange(4)
        one, other = self.expr("int", 1), self.expr("text", 1)
        if shape == 0:
            item = f"(SELECT t1.id, {one} AS v, {other} AS w FROM gen_a t1 ORDER BY t1.id LIMIT {self.pick('5', '12')} OFFSET 1) t1"
        elif shape == 1:
            item = f"(SELECT min(t1.id) AS id, {one} AS v, max({other}) AS w FROM gen_a t1 GROUP BY 2) t1"
        elif shape == 2:
            item = f"(SELECT t1.id, {one} AS v, {other} AS w FROM gen_a t1 WHERE {self.expr('bool', 2)}) t1"
        else:
            self.scope = []
            rows = [
                f"({n}, {self.leaf('int')}, {self.leaf('text')})" for n in range(self.random.randint(1, 4))
            ]
            item = f"(VALUES {', '.join(rows)}) t1(id, v, w)"
        self.scope = [("t1", "id", "int"), ("t1", "v", "int"), ("t1", "w", "text")]
        return f"FROM {item}"

    # -- outputs ---------------------------------------------------------------------------------

    def aggregate(self) -> str:
        """Return an aggregate call."""
        call = self.fill(self.random.choice(FORMS["aggregate"]), 1).replace(
            "ORDER BY !", f"ORDER BY {self.total}"
        )
        return call if self.chance(0.75) else f"{call} FILTER (WHERE {self.expr('bool', 1)})"

    def window(self) -> str:
        """Return a window function call whose result does not depend on ties."""
        part = self.pick("", f"PARTITION BY {self.expr(self.pick('int', 'text', 'bool'), 1)} ")
        if self.chance(0.35):
            key = self.leaf("int")
            order = f"ORDER BY {key if not key.lstrip('-').isdigit() else f'{key} + 0'}{self.pick('', ' DESC', ' NULLS FIRST')}"
            frame = self.pick("", f" {self.pick(*_OFFSETS)}{self.pick(*_EXCLUDED)}")
            call = self.fill(self.random.choice(FORMS["peers"]), 1)
        else:
            order = f"ORDER BY {self.total}"
            frame = self.pick("", "", f" {self.pick(*_FRAMES)}{self.pick(*_EXCLUDED)}")
            call = self.fill(self.random.choice(FORMS["window"]), 1)
        return call.replace("~", f"({part}{order}{frame})")

    # -- queries ---------------------------------------------------------------------------------

    def query(self) -> str:
        """Return a statement."""
        shape = self.random.randrange(12)
        kinds = [self.pick(*KEYS) for _ in range(self.random.randint(1, 4))]
        if shape <= 1:
            text = self.plain(kinds)
            for _ in range(self.random.randint(1, 2)):
                other = self.plain(kinds)
                text = f"{text} {self.pick(*_SETS)} {self.pick(other, f'({other})')}"
                text = self.pick(text, f"({text})")
        elif shape <= 4:
            return self.grouped()
        else:
            if shape != 5:
                kinds = [self.pick(*CONSTANTS) for _ in kinds]
            text = self.plain(kinds, windows=shape in (6, 7), distinct=shape == 5)
        columns = range(1, len(kinds) + 1 + (shape in (6, 7)))
        text += " ORDER BY " + ", ".join([f"{n}{self.pick('', ' DESC', ' NULLS FIRST')}" for n in columns])
        return text + (
            f" LIMIT {self.random.randrange(6)}{self.pick('', ' OFFSET 2')}" if shape >= 10 else ""
        )

    def plain(self, kinds: list[str], *, windows: bool = False, distinct: bool = False) -> str:
        """Return a query without ORDER BY whose columns have some types."""
        source = self.source()
        output = [self.expr(kind) for kind in kinds] + ([self.window()] if windows else [])
        where = f" WHERE {self.expr('bool')}" if self.chance(0.6) else ""
        return f"SELECT {'DISTINCT ' if distinct else ''}{', '.join(output)} {source}{where}"

    def grouped(self) -> str:
        """Return a query with aggregates."""
        source = self.source()
        keys = [self.expr(self.pick(*KEYS), 2) for _ in range(self.random.randint(0, 2))]
        calls = [self.aggregate() for _ in range(self.random.randint(1, 3))]
        where = f" WHERE {self.expr('bool', 2)}" if self.chance(0.5) else ""
        numbers = ", ".join([str(n) for n in range(1, len(keys) + 1)])
        grouping = f" GROUP BY {numbers}" if keys else ""
        if keys and self.chance(0.25):
            # PostgreSQL 15 takes a constant for the same in all grouping sets when it sorts, and equal keys for different ones
            keys = self.random.sample([f"{a}.{n}" for a, n, kind in self.scope if kind in KEYS], len(keys))
            sets = self.pick(
                f"ROLLUP ({numbers})", f"CUBE ({numbers})", f"GROUPING SETS (({numbers}), (1), ())"
            )
            grouping = f" GROUP BY {sets}"
        having = f" HAVING count(*) > {self.pick('0', '1', '2')}" if keys and self.chance(0.3) else ""
        order = ", ".join([str(n) for n in range(1, len(keys) + len(calls) + 1)])
        return f"SELECT {', '.join(keys + calls)} {source}{where}{grouping}{having} ORDER BY {order}"
