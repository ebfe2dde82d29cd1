"""Random tables and random transactions over them, for two servers to go through: a function of a seed.

    Changes(seed).definitions()   CREATE TABLE chg (...), CREATE INDEX, CREATE VIEW, a table beside it
    Changes(seed).statement()     INSERT, UPDATE, DELETE, MERGE, WITH of changes, SELECT, BEGIN … COMMIT, savepoints, DDL

What SQL leaves open is not asked: which of several rows that break something is told (``Asked.alone``), unique keys that are moved in
one statement, the row among several matches that counts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["Asked", "Changes"]

TYPES = {
    "int": ("0", "1", "-3", "7", "2147483647", "NULL"),
    "smallint": ("0", "5", "-32768", "40000", "NULL"),
    "bigint": ("0", "9000000000", "-1", "NULL"),
    "numeric(6, 2)": ("0", "1.005", "-12.344", "99999", "NULL"),
    "numeric": ("1.50", "-0.0", "'NaN'", "1e20", "NULL"),
    "text": ("'a'", "''", "'Bc é'", "'100%'", "NULL"),
    "varchar(3)": ("'ab'", "'abcd'", "'abc   '", "''", "NULL"),
    "char(3)": ("'a'", "'ab '", "'abcd'", "NULL"),
    "boolean": ("true", "false", "'y'", "NULL"),
    "date": ("'2024-02-29'", "'infinity'", "'2023-02-29'", "NULL"),
    "timestamp": ("'2024-01-01 12:00'", "'-infinity'", "NULL"),
    "timestamptz": ("'2024-03-31 02:30+01'", "'2024-01-01'", "NULL"),
    "interval": ("'1 day'", "'1 mon -1 day'", "NULL"),
    "double precision": ("0.5", "'NaN'", "'-Infinity'", "1e300", "NULL"),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'x'", "NULL"),
    "int[]": ("'{1,2}'", "'{}'", "'{1,null}'", "ARRAY[3]", "NULL"),
    "text[]": ("'{a,\"b c\"}'", "ARRAY['x', NULL]", "NULL"),
    "jsonb": ("'{\"a\": [1, 2.50]}'", "'[]'", "'null'", "'{'", "NULL"),
    "int4range": ("'[1,5)'", "'empty'", "'[5,1]'", "NULL"),
    "bytea": ("'\\x00ff'", "''", "NULL"),
    "bit(3)": ("B'101'", "B'1'", "NULL"),
}
"""For each type constants, some of which it does not take."""

NUMBERS = ("int", "smallint", "bigint", "numeric(6, 2)", "numeric")
KEYED = (
    *NUMBERS,
    "text",
    "varchar(3)",
    "char(3)",
    "boolean",
    "date",
    "timestamp",
    "uuid",
    "int[]",
    "int4range",
    "bytea",
)
CHECKS = {
    **dict.fromkeys(NUMBERS, ("{} <> 5", "{} > -10", "{} % 2 = 0 OR {} < 3")),
    "text": ("length({}) < 4", "{} <> ''", "{} ~ '^[a-z]'"),
    "date": ("{} > '2000-01-01'",),
    "int[]": ("cardinality({}) < 3",),
    "jsonb": ("jsonb_typeof({}) <> 'null'",),
}
CHANGED = {
    **dict.fromkeys(NUMBERS, ("{} + 1", "{} * 2", "-{}", "{} / 2", "coalesce({}, 3)")),
    **dict.fromkeys(("text", "varchar(3)", "char(3)"), ("{} || 'x'", "upper({})", "nullif({}, '')")),
    "boolean": ("NOT {}",),
    "date": ("{} + 1",),
    "timestamp": ("{} + interval '1 mon'",),
    "timestamptz": ("{} + interval '1 day'",),
    "interval": ("{} * 2",),
    "double precision": ("{} / 2",),
    "int[]": ("{} || 9", "{}[2:]"),
    "text[]": ("array_remove({}, 'a')",),
    "jsonb": ("{} || '{{\"k\": 1}}'", "{} -> 'a'"),
    "int4range": ("{} * int4range(2, 9)",),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement. ``alone``: it meets its rows in an order that SQL fixes, so an error has to be the same in all fields."""

    sql: str
    alone: bool = True


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: str
    generated: bool = False
    unique: bool = False


class Changes:
    """Makes definitions, and then statements over them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.columns: list[_Column] = []
        self.added = 0

    def pick(self, *options: str) -> str:
        """Return one of some texts."""
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        """Return True as often as that."""
        return self.random.random() < probability

    # -- definitions -----------------------------------------------------------------------------

    def definitions(self) -> list[str]:
        """Return what makes the tables ``chg`` and ``ref``, indexes over them and the view ``seen``."""
        items = ["id int PRIMARY KEY"]
        for number in range(self.random.randint(3, 6)):
            items.append(self._column(f"c{number}"))
        of_numbers = [c for c in self.columns if c.type in NUMBERS]
        if of_numbers and self.chance(0.6):
            base = self.random.choice(of_numbers).name
            items.append(
                f"g numeric GENERATED ALWAYS AS ({self.pick(f'{base} * 2', f'abs({base})', f'100 / {base}')}) STORED"
            )
            self.columns.append(_Column("g", "numeric", generated=True))
        if self.chance(0.4):
            items.append("r int REFERENCES ref" + self.pick("", " ON DELETE CASCADE", " ON DELETE SET NULL"))
            self.columns.append(_Column("r", "int"))
        made = [
            "CREATE TABLE ref (id int PRIMARY KEY, s text)",
            "INSERT INTO ref VALUES (0, 'zero'), (1, 'one'), (7, 'seven')",
            f"CREATE TABLE chg ({', '.join(items)})",
        ]
        for number in range(self.random.randint(0, 3)):
            made.append(self._index(f"i{number}"))
        shown = self.random.sample(self.columns, min(2, len(self.columns)))
        names = ", ".join(["id", *(c.name for c in shown)])
        check = self.pick("", " WITH CHECK OPTION")
        made.append(f"CREATE VIEW seen AS SELECT {names} FROM chg WHERE id < 6{check}")
        return made

    def _column(self, name: str) -> str:
        kind = self.random.choice(list(TYPES))
        unique = kind in KEYED and self.chance(0.15)
        self.columns.append(_Column(name, kind, unique=unique))
        text = f"{name} {kind}"
        if self.chance(0.3):
            text += f" DEFAULT {self.good(kind)}"
        if self.chance(0.2):
            text += " NOT NULL"
        if unique:
            text += " UNIQUE" + self.pick("", " NULLS NOT DISTINCT")
        if kind in CHECKS and self.chance(0.4):
            text += f" CHECK ({self.pick(*CHECKS[kind]).format(name, name)})"
        return text

    def _index(self, name: str) -> str:
        column = self.random.choice([c for c in self.columns if c.type in KEYED] or [_Column("id", "int")])
        part = self.pick("", "", " WHERE id > 2", f" WHERE {column.name} IS NOT NULL")
        other = self.pick("", ", id", " DESC NULLS LAST")
        if column.type in NUMBERS and self.chance(0.3):
            return f"CREATE INDEX {name} ON chg (({column.name} % 7)){part}"
        return f"CREATE INDEX {name} ON chg ({column.name}{other}){part}"

    # -- parts -----------------------------------------------------------------------------------

    def good(self, kind: str) -> str:
        """Return a constant that a type takes."""
        return TYPES[kind][0]

    def value(self, column: _Column) -> str:
        """Return a constant for a column of a new row, or DEFAULT."""
        if column.generated or self.chance(0.08):
            return "DEFAULT"
        return self.good(column.type) if self.chance(0.4) else self.pick(*TYPES[column.type])

    def other(self, column: _Column) -> str:
        """Return a constant that a column's type takes, NULL or DEFAULT.

        Others PostgreSQL refuses while it plans, whether any row has to change or not.
        """
        return self.pick(self.good(column.type), self.good(column.type), "NULL", "DEFAULT")

    def changed(self, column: _Column, of: str) -> str:
        """Return an expression over the column ``of``, or a constant."""
        if column.type in CHANGED and self.chance(0.6):
            return self.pick(*CHANGED[column.type]).format(of, of)
        return self.other(column)

    def settable(self, *, unique: bool = True) -> _Column:
        """Return a column that a statement may set."""
        found = [c for c in self.columns if not c.generated and (unique or not c.unique)]
        return self.random.choice(found or [_Column("id", "int")])

    def key(self) -> str:
        """Return an id."""
        return str(self.random.randint(0, 9))

    def condition(self, alias: str = "") -> str:
        """Return what chooses rows by their columns."""
        at = f"{alias}." if alias else ""
        column = self.random.choice(self.columns)
        name = at + column.name
        tests = [
            f"{at}id {self.pick('<', '>=', '<>')} {self.key()}",
            f"{name} IS {self.pick('', 'NOT ')}NULL",
        ]
        if column.type in KEYED:
            tests += [f"{name} {self.pick('=', '<', '>=')} {self.good(column.type)}"] * 3
            tests.append(f"{name} IN ({self.good(column.type)}, {TYPES[column.type][-2]})")
        if column.type in NUMBERS:
            tests += [f"{name} % 7 = {self.key()}", f"{name} BETWEEN -5 AND {self.key()}"]
        return self.pick(*tests)

    def query(self) -> str:
        """Return a SELECT of rows in the order of their ids."""
        return f"SELECT * FROM chg WHERE {self.condition()} order by id"

    # -- statements ------------------------------------------------------------------------------

    def statement(self) -> Asked:
        """Return the next statement."""
        makers = (
            (30, self._insert), (8, self._upsert), (14, self._update), (8, self._update_many), (8, self._delete), (5, self._merge),
            (5, self._with), (6, self._view), (8, self._select), (3, self._define), (16, self._control),
        )  # fmt: skip
        (make,) = self.random.choices([m for _, m in makers], [w for w, _ in makers])
        return make()

    def _insert(self) -> Asked:
        columns = (
            self.columns if self.chance(0.6) else self.random.sample(self.columns, len(self.columns) - 1)
        )
        names = ", ".join(["id", *(c.name for c in columns)])
        rows = [
            f"({', '.join([self.key(), *map(self.value, columns)])})"
            for _ in range(self.random.choice((1, 1, 1, 2, 3)))
        ]
        returning = self.pick("", "", " RETURNING *")
        return Asked(f"INSERT INTO chg ({names}) VALUES {', '.join(rows)}{returning}", len(rows) == 1)

    def _upsert(self) -> Asked:
        asked = self._insert()
        inserted = asked.sql.removesuffix(" RETURNING *")
        column = self.settable(unique=False)
        if self.chance(0.3):
            return Asked(f"{inserted} ON CONFLICT {self.pick('', '(id) ')}DO NOTHING", asked.alone)
        value = self.pick(f"excluded.{column.name}", self.changed(column, f"chg.{column.name}"))
        where = self.pick("", f" WHERE {self.condition('chg')}")
        return Asked(
            f"{inserted} ON CONFLICT (id) DO UPDATE SET {column.name} = {value}{where} RETURNING *",
            asked.alone,
        )

    def _update(self) -> Asked:
        column, other = self.settable(), self.settable()
        sets = f"{column.name} = {self.changed(column, column.name)}"
        if other != column and self.chance(0.4):
            sets += f", {other.name} = {self.changed(other, other.name)}"
        return Asked(f"UPDATE chg SET {sets} WHERE id = {self.key()}{self.pick('', ' RETURNING *')}")

    def _update_many(self) -> Asked:
        column = self.settable(unique=False)
        value = self.changed(column, f"t.{column.name}")
        if self.chance(0.3):
            return Asked(
                f"UPDATE chg t SET {column.name} = {value} FROM ref WHERE ref.id = t.id AND {self.condition('t')}",
                False,
            )
        return Asked(f"UPDATE chg t SET {column.name} = {value} WHERE {self.condition('t')}", False)

    def _delete(self) -> Asked:
        if self.chance(0.2):
            return Asked(f"DELETE FROM ref WHERE id = {self.key()}")
        if self.chance(0.3):
            return Asked(
                f"DELETE FROM chg t USING ref WHERE ref.id = t.id AND {self.condition('t')} RETURNING t.id, s",
                False,
            )
        return Asked(
            f"DELETE FROM chg WHERE {self.pick('id = ' + self.key(), self.condition())} RETURNING *", False
        )

    def _merge(self) -> Asked:
        column = self.settable(unique=False)
        one, two = self.random.sample(range(10), 2)
        value = self.good(column.type)
        return Asked(
            f"MERGE INTO chg t USING (VALUES ({one}), ({two})) v(k) ON t.id = v.k"
            f" WHEN MATCHED AND {self.condition('t')} THEN {self.pick('DELETE', f'UPDATE SET {column.name} = {value}')}"
            f" WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id, {column.name}) VALUES (v.k, {value})",
            False,
        )

    def _with(self) -> Asked:
        column = self.settable(unique=False)
        return Asked(
            f"WITH gone AS (DELETE FROM chg WHERE id = {self.key()} RETURNING *) SELECT count(*), (SELECT count(*) FROM chg) FROM gone"
            if self.chance(0.5)
            else f"WITH new AS (UPDATE chg SET {column.name} = {self.good(column.type)} WHERE {self.condition()} RETURNING *)"
            f" SELECT * FROM new ORDER BY id",
            False,
        )

    def _view(self) -> Asked:
        key = self.key()
        return Asked(
            self.pick(
                f"INSERT INTO seen (id) VALUES ({key})",
                f"UPDATE seen SET id = {key} WHERE id = {self.key()}",
                f"DELETE FROM seen WHERE id = {key}",
                "SELECT * FROM seen order by id",
            )
        )

    def _select(self) -> Asked:
        grouped = self.random.choice(self.columns)
        if grouped.type in KEYED and grouped.type not in ("numeric", "char(3)") and self.chance(0.3):
            return Asked(f"SELECT {grouped.name}, count(*), min(id) FROM chg GROUP BY 1 order by 1, 3", False)
        return Asked(self.query(), False)

    def _define(self) -> Asked:
        column = self.random.choice(self.columns)
        self.added += 1
        return Asked(
            self.pick(
                f"CREATE INDEX n{self.added} ON chg ({column.name if column.type in KEYED else 'id'})",
                f"DROP INDEX IF EXISTS i{self.random.randrange(3)}",
                f"ALTER TABLE chg ALTER {self.settable().name} DROP DEFAULT",
                f"ALTER TABLE chg ALTER {self.settable().name} DROP NOT NULL",
                f"ALTER TABLE chg ADD CONSTRAINT k{self.added} CHECK (id < 9) NOT VALID",
                f"ALTER TABLE chg DROP CONSTRAINT IF EXISTS k{self.added - 1}",
            )
        )

    def _control(self) -> Asked:
        return Asked(
            self.pick(
                "BEGIN", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT s", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s", "SAVEPOINT u",
                "ROLLBACK TO u",
            )
        )  # fmt: skip
