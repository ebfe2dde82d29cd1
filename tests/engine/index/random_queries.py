"""Random SELECTs over the comparison tables: joins of all kinds, sub-selects, grouping, windows, set operations."""

from __future__ import annotations

import random

TABLES = {
    "emp": {"id": "int", "name": "text", "dept": "int", "salary": "num", "hired": "date", "score": "float"},
    "dept": {"id": "int", "title": "text", "boss": "int"},
    "m": {"a": "int", "b": "int", "c": "text"},
    "nums": {"k": "int", "i2": "int", "v": "num", "t": "text", "bo": "bool"},
}


class Scope:
    """Columns that an expression may use, and those of the query outside."""

    def __init__(self, outer: Scope | None = None, columns: list[tuple[str, str]] | None = None) -> None:
        self.outer = outer
        self.columns = columns or []


class Generator:
    """Makes queries from one seed."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.count = 0

    def column(self, scope: Scope, kind: str) -> list[str]:
        found = [name for name, k in scope.columns if k == kind]
        if scope.outer is not None and self.r.random() < 0.35:
            found += self.column(scope.outer, kind)
        return found

    def ints(self, scope: Scope) -> list[str]:
        return [name for name, k in scope.columns if k == "int"] or ["1"]

    def expr(self, scope: Scope, kind: str, depth: int = 0) -> str:
        r = self.r
        columns = self.column(scope, kind)
        if columns and (depth > 2 or r.random() < 0.5):
            return r.choice(columns)
        n = r.random()
        if kind == "int":
            if depth > 2 or n < 0.3:
                return str(r.randint(0, 6))
            a, b = self.expr(scope, "int", depth + 1), self.expr(scope, "int", depth + 1)
            if n < 0.6:
                return f"({a} {r.choice('+-*')} {b})"
            if n < 0.7:
                return f"coalesce({a}, {r.randint(0, 3)})"
            if n < 0.8:
                return f"CASE WHEN {self.test(scope, depth + 1)} THEN {a} ELSE {b} END"
            if n < 0.9:
                return f"length({self.expr(scope, 'text', depth + 1)})"
            return self.scalar(scope)
        if kind == "num":
            if depth > 2 or n < 0.4:
                return r.choice(["1.5", "100", "0.25", "200.50"])
            a, b = self.expr(scope, "num", depth + 1), self.expr(scope, "num", depth + 1)
            return f"({a} {r.choice('+-*')} {b})" if n < 0.8 else f"round({a}, 1)"
        if kind == "text":
            if depth > 2 or n < 0.4:
                return r.choice(["'eng'", "'ann'", "'r12'", "''", "'b'"])
            a, b = self.expr(scope, "text", depth + 1), self.expr(scope, "text", depth + 1)
            return f"({a} || {b})" if n < 0.7 else f"{r.choice(['upper', 'reverse', 'initcap'])}({a})"
        return self.test(scope, depth + 1)

    def scalar(self, scope: Scope) -> str:
        inner = Scope(scope)
        source = self.source(inner, 1)
        value = self.expr(inner, "int", 2)
        call = self.r.choice(["count(*)", f"max({value})", f"min({value})", f"sum({value})"])
        return f"(SELECT {call} FROM {source} WHERE {self.test(inner, 2)})::int"

    def test(self, scope: Scope, depth: int = 0) -> str:
        r = self.r
        n = r.random()
        if depth < 2 and n < 0.2:
            return f"({self.test(scope, depth + 1)} {r.choice(['AND', 'OR'])} {self.test(scope, depth + 1)})"
        if depth < 2 and n < 0.25:
            return f"(NOT {self.test(scope, depth + 1)})"
        if n < 0.55:
            kind = r.choice(["int", "int", "num", "text"])
            op = r.choice(["=", "<", ">", "<>", "<=", ">=", "IS DISTINCT FROM"])
            return f"({self.expr(scope, kind, depth + 1)} {op} {self.expr(scope, kind, depth + 1)})"
        value = self.expr(scope, "int", depth + 1)
        if n < 0.62:
            return f"({value} IN ({', '.join(str(r.randint(0, 6)) for _ in range(r.randint(1, 4)))}))"
        if n < 0.7:
            kind = r.choice(["int", "text", "num"])
            return f"({self.expr(scope, kind, depth + 1)} IS {r.choice(['', 'NOT '])}NULL)"
        if n < 0.76:
            pattern = r.choice(["%", "a%", "_b%", "%n"])
            return f"({self.expr(scope, 'text', depth + 1)} LIKE '{pattern}')"
        if n < 0.8:
            return f"({value} BETWEEN {r.randint(0, 3)} AND {r.randint(2, 6)})"
        if depth < 2:
            inner = Scope(scope)
            source = self.source(inner, 1)
            if n < 0.9:
                return f"{r.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {source} WHERE {self.test(inner, depth + 1)})"
            quantified = r.choice(["IN", "NOT IN", "= ANY", "< ALL", "> ANY"])
            found = self.expr(inner, "int", 2)
            return (
                f"({value} {quantified} (SELECT {found} FROM {source} WHERE {self.test(inner, depth + 1)}))"
            )
        return r.choice(["true", "false", "NULL"])

    def table(self, scope: Scope, depth: int, lateral: Scope | None) -> str:
        self.count += 1
        alias = f"x{self.count}"
        n = self.r.random()
        if depth == 0 and n < 0.15:
            inner = Scope()
            source = self.source(inner, 1)
            p, q = self.expr(inner, "int", 2), self.expr(inner, "text", 2)
            scope.columns += [(f"{alias}.p", "int"), (f"{alias}.q", "text")]
            group = self.r.choice(["", " GROUP BY 1, 2"])
            return f"(SELECT {p} AS p, {q} AS q FROM {source} WHERE {self.test(inner, 1)}{group}) {alias}"
        if depth == 0 and lateral is not None and n < 0.22:
            inner = Scope(lateral)
            source = self.source(inner, 1)
            p = self.expr(inner, "int", 1)
            scope.columns += [(f"{alias}.p", "int")]
            return f"LATERAL (SELECT {p} AS p FROM {source} WHERE {self.test(inner, 1)}) {alias}"
        if depth == 0 and n < 0.3:
            scope.columns += [(alias, "int")]
            return f"generate_series(1, {self.r.randint(1, 3)}) {alias}"
        name = self.r.choice(list(TABLES))
        scope.columns += [(f"{alias}.{c}", k) for c, k in TABLES[name].items()]
        return f"{name} {alias}"

    def source(self, scope: Scope, depth: int = 0) -> str:
        r = self.r
        text = self.table(scope, depth, None)
        for _ in range(r.choice([0, 1, 1, 2]) if depth == 0 else r.choice([0, 0, 1])):
            kind = r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
            left = Scope(scope.outer, list(scope.columns))
            right = Scope(scope.outer)
            may_refer = depth == 0 and kind in ("JOIN", "LEFT JOIN", "CROSS JOIN")
            joined = self.table(right, depth, left if may_refer else None)
            equal = f"{r.choice(self.ints(left))} = {r.choice(self.ints(right))}"
            scope.columns = left.columns + right.columns
            if kind == "CROSS JOIN":
                text = f"{text} CROSS JOIN {joined}"
            elif kind == "FULL JOIN":
                text = f"{text} FULL JOIN {joined} ON {equal}"
            else:
                on = [equal] if r.random() < 0.8 else []
                if not on or r.random() < 0.4:
                    on.append(self.test(scope, 1))
                text = f"{text} {kind} {joined} ON {' AND '.join(on)}"
        return text

    def query(self) -> str:
        r = self.r
        scope = Scope()
        source = self.source(scope)
        where = f" WHERE {self.test(scope)}" if r.random() < 0.7 else ""
        n = r.random()
        if n < 0.4:
            kinds = [r.choice(["int", "text", "num", "bool"]) for _ in range(r.randint(1, 3))]
            return f"SELECT {', '.join(self.expr(scope, k) for k in kinds)} FROM {source}{where}"
        if n < 0.7:
            group = [self.expr(scope, r.choice(["int", "text"]), 2) for _ in range(r.randint(1, 2))]
            calls = []
            for _ in range(2):
                call = f"{r.choice(['count', 'sum', 'min', 'max', 'avg'])}({r.choice(['', 'DISTINCT '])}"
                call += f"{self.expr(scope, 'int', 1)})"
                calls.append(call + (f" FILTER (WHERE {self.test(scope, 2)})" if r.random() < 0.3 else ""))
            having = r.choice(["", "", " HAVING count(*) > 1"])
            keys = ", ".join(str(i + 1) for i in range(len(group)))
            return f"SELECT {', '.join(group + calls)} FROM {source}{where} GROUP BY {keys}{having}"
        if n < 0.8:
            return f"SELECT DISTINCT {self.expr(scope, 'int')}, {self.expr(scope, 'text', 1)} FROM {source}{where}"
        if n < 0.9:
            p, o = self.expr(scope, "int", 2), self.expr(scope, "int", 2)
            frame = r.choice(["", "GROUPS UNBOUNDED PRECEDING", "RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING"])
            call = r.choice(["count(*)", f"sum({o})", "rank()", "dense_rank()", f"max({o})"])
            return (
                f"SELECT {p}, {o}, {call} OVER (PARTITION BY {p} ORDER BY {o} {frame}) FROM {source}{where}"
            )
        other = Scope()
        second = self.source(other)
        op = r.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"])
        return (
            f"SELECT {self.expr(scope, 'int')}, {self.expr(scope, 'text')} FROM {source}{where} {op}"
            f" SELECT {self.expr(other, 'int')}, {self.expr(other, 'text')} FROM {second}"
        )
