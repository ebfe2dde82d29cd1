"""Tables in plain Python, and statements that change them: what DDL and data in one transaction must leave behind.

Step.next(model) -> "ALTER TABLE t3 ADD COLUMN c9 int DEFAULT 7"      model["t3"] has the column from here on
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

Row = dict[str, str | None]


@dataclass
class Table:
    """Columns in order, rows by id as text, indexed columns by index name. Column ``id`` is the primary key."""

    columns: list[str] = field(default_factory=lambda: ["id", "a"])
    rows: dict[int, Row] = field(default_factory=dict)
    indexes: dict[str, str] = field(default_factory=dict)

    def content(self) -> list[tuple[str | None, ...]]:
        """Return the rows as they are read, sorted."""
        return sorted(tuple(row[c] for c in self.columns) for row in self.rows.values())


Model = dict[str, Table]


class Step:
    """Makes up statements that succeed on a model, and changes the model as they do.

    ``prefix`` begins the names of tables and indexes, so that several clients have names of their own.
    """

    def __init__(self, rng: random.Random, prefix: str = "") -> None:
        self.rng = rng
        self.prefix = prefix
        self.number = 0

    def name(self, kind: str) -> str:
        """Return a name that was not used before."""
        self.number += 1
        return f"{self.prefix}{kind}{self.number}"

    def next(self, model: Model) -> str:
        """Return a statement, and change ``model`` as it would change the tables."""
        rng = self.rng
        if not model or (len(model) < 4 and rng.random() < 0.15):
            name = self.name("t")
            model[name] = Table()
            return f"CREATE TABLE {name} (id int PRIMARY KEY, a int)"
        name = rng.choice(sorted(model))
        table = model[name]
        free = [c for c in table.columns if c != "id"]
        kinds = ["insert"] * 4 + [
            "update",
            "delete",
            "truncate",
            "drop",
            "rename",
            "add",
            "volatile",
            "index",
        ]
        if free:
            kinds += ["drop column", "rename column", "type"]
        if table.indexes:
            kinds += ["drop index"]
        match rng.choice(kinds):
            case "insert":
                ids = [i for i in rng.sample(range(30), 5) if i not in table.rows] or [30 + self.number]
                self.number += 1
                for i in ids:
                    table.rows[i] = {c: str(i) if c == "id" else str(self.number) for c in table.columns}
                values = ", ".join("(" + ", ".join(f"{v}" for v in table.rows[i].values()) + ")" for i in ids)
                return f"INSERT INTO {name} ({', '.join(table.columns)}) VALUES {values}"
            case "update" if free:
                column, bound = rng.choice(free), rng.randrange(30)
                self.number += 1
                for i, row in table.rows.items():
                    if i < bound:
                        row[column] = str(self.number)
                return f"UPDATE {name} SET {column} = {self.number} WHERE id < {bound}"
            case "delete":
                bound = rng.randrange(20)
                table.rows = {i: row for i, row in table.rows.items() if i >= bound}
                return f"DELETE FROM {name} WHERE id < {bound}"
            case "truncate":
                table.rows = {}
                return f"TRUNCATE {name}"
            case "drop":
                del model[name]
                return f"DROP TABLE {name}"
            case "rename":
                new = self.name("t")
                model[new] = model.pop(name)
                return f"ALTER TABLE {name} RENAME TO {new}"
            case "add":
                new = self.name("c")
                table.columns.append(new)
                for row in table.rows.values():
                    row[new] = "7"
                return f"ALTER TABLE {name} ADD COLUMN {new} int DEFAULT 7"
            case "volatile":
                new = self.name("c")
                table.columns.append(new)
                for row in table.rows.values():
                    row[new] = "3"
                return f"ALTER TABLE {name} ADD COLUMN {new} int DEFAULT (3 + floor(random()))::int"
            case "index" if free:
                new = self.name("i")
                table.indexes[new] = rng.choice(free)
                return f"CREATE INDEX {new} ON {name} ({table.indexes[new]})"
            case "drop column":
                gone = rng.choice(free)
                table.columns.remove(gone)
                for row in table.rows.values():
                    del row[gone]
                table.indexes = {i: c for i, c in table.indexes.items() if c != gone}
                return f"ALTER TABLE {name} DROP COLUMN {gone}"
            case "rename column":
                old, new = rng.choice(free), self.name("c")
                table.columns[table.columns.index(old)] = new
                for row in table.rows.values():
                    row[new] = row.pop(old)
                table.indexes = {i: new if c == old else c for i, c in table.indexes.items()}
                return f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}"
            case "type":
                column = rng.choice(free)
                for row in table.rows.values():
                    value = row[column]
                    row[column] = None if value is None else str(int(value) + 1)
                return f"ALTER TABLE {name} ALTER COLUMN {column} TYPE bigint USING {column} + 1"
            case "drop index":
                gone = rng.choice(sorted(table.indexes))
                del table.indexes[gone]
                return f"DROP INDEX {gone}"
        return f"SELECT count(*) FROM {name}"


def expected(model: Model) -> dict[str, object]:
    """Return what is there to read: columns, rows and indexes of each table."""
    return {n: (t.columns, t.content(), sorted(t.indexes)) for n, t in model.items()}
