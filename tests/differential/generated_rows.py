"""Random tables with triggers, foreign keys, partitions and generated columns, and DML over them: a function of a seed.

    Rows(seed).schema     trees of partitions, a parent and a child, triggers that write down in ``fired`` what they saw
    Rows(seed).query()    INSERT, UPDATE that moves rows, DELETE, MERGE, ON CONFLICT, COPY's kin, and looks at rows and firings

Foreign keys may be deferred to the end of their statement, which is a transaction. A statement changes several rows only where all of
its triggers see them in an order that SQL fixes, or tell what does not depend on it: sums of transition tables.
"""

from __future__ import annotations

import random

__all__ = ["Rows"]

ACTIONS = ("", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON DELETE SET DEFAULT", " ON UPDATE CASCADE", " ON DELETE CASCADE ON UPDATE CASCADE",
           " ON UPDATE SET NULL", " ON DELETE RESTRICT", " ON UPDATE RESTRICT ON DELETE SET NULL")  # fmt: skip
GENERATED = ("i * 2", "coalesce(i, 0) + length(t)", "i % 3", "CASE WHEN i > 3 THEN i END", "100 / i")
WHEN = (
    "",
    "",
    " WHEN (NEW.i IS DISTINCT FROM OLD.i)",
    " WHEN (NEW.i > 2)",
    " WHEN (OLD.t = 'a')",
    " WHEN (pg_trigger_depth() = 0)",
)
CHANGED = (
    "NEW.t := coalesce(NEW.t, '') || '+';", "NEW.i := coalesce(NEW.i, 1);", "IF NEW.i = 5 THEN RETURN NULL; END IF;",
    "IF TG_OP = 'UPDATE' THEN NEW.t := OLD.t; END IF;", "IF NEW.t = 'bad' THEN RAISE EXCEPTION 'bad row %', NEW.k; END IF;",
)  # fmt: skip


class Rows:
    """Makes statements; two of three name one row."""

    remove = "DROP SCHEMA fire CASCADE; RESET search_path"
    stateful = True

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.schema = self._schema()

    def begin(self) -> None:
        """Start again over the same definitions."""

    def pick(self, *options: str) -> str:
        """Return one of some texts."""
        return self.random.choice(options)

    # -- definitions -----------------------------------------------------------------------------

    def _schema(self) -> str:
        made = [
            "DROP SCHEMA IF EXISTS fire CASCADE", "CREATE SCHEMA fire", "SET search_path = fire, public",
            "CREATE TABLE fired (n serial, what text)",
            """CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 INSERT INTO fired (what) VALUES (concat_ws(' ', TG_NAME, TG_TABLE_NAME, TG_WHEN, TG_LEVEL, TG_OP,
  CASE WHEN TG_LEVEL = 'ROW' AND TG_OP <> 'INSERT' THEN OLD::text END, CASE WHEN TG_LEVEL = 'ROW' AND TG_OP <> 'DELETE' THEN NEW::text END));
 IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$""",
            """CREATE FUNCTION tell_all() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE o text := ''; w text := ''; BEGIN
 IF TG_OP <> 'INSERT' THEN SELECT 'old ' || count(*) || ' ' || coalesce(sum(k), 0) || coalesce(max(t), '-') INTO o FROM gone; END IF;
 IF TG_OP <> 'DELETE' THEN SELECT ' new ' || count(*) || ' ' || coalesce(sum(k), 0) || coalesce(max(t), '-') INTO w FROM come; END IF;
 INSERT INTO fired (what) VALUES (concat_ws(' ', TG_NAME, TG_TABLE_NAME, TG_OP, o || w)); RETURN NULL; END $$""",
            f"""CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 IF TG_OP = 'DELETE' THEN IF OLD.i = 4 THEN RETURN NULL; END IF; RETURN OLD; END IF;
 {self.pick(*CHANGED)} RETURN NEW; END $$""",
            "CREATE TABLE up (k int PRIMARY KEY, i int, t text)",
            f"CREATE TABLE tree (k int, i int DEFAULT 2, t text{self.pick('', ' DEFAULT $$d$$')}, p int{self.pick('', ' DEFAULT 1')}"
            f"{self.pick('', self.references('up'))}{self.pick('', *[f', g int GENERATED ALWAYS AS ({g}) STORED' for g in GENERATED])},"
            f" PRIMARY KEY (k){self.pick('', ', CHECK (i < 90)')}) PARTITION BY {self.pick('RANGE (k)', 'LIST (k)', 'HASH (k)')}",
            f"CREATE TABLE down (k int PRIMARY KEY, i int DEFAULT 1, t text, m int DEFAULT 3{self.references('tree')},"
            " h text GENERATED ALWAYS AS (upper(t) || i::text) STORED)",
        ]  # fmt: skip
        made += self._partitions(made[8])
        for table in ("up", "tree", "down"):
            made += self._triggers(table)
        made += [
            "INSERT INTO up SELECT g, g % 3, (array['a', null, 'b'])[g % 3 + 1] FROM generate_series(1, 6) g",
            "INSERT INTO tree (k, i, t, p) SELECT g, 1 + g % 6, (array['a', 'c', null])[g % 3 + 1], 1 + g % 4 FROM generate_series(1, 9) g",
            "INSERT INTO down (k, i, t, m) SELECT 10 - k, k % 4, (array['a', null])[k % 2 + 1], k FROM tree",
        ]
        return ";\n".join(made)

    def references(self, table: str) -> str:
        """Return a foreign key of a column."""
        return f" REFERENCES {table}{self.pick(*ACTIONS)}{self.pick('', ' DEFERRABLE INITIALLY DEFERRED')}"

    def _partitions(self, tree: str) -> list[str]:
        if "RANGE" in tree:
            made = ["CREATE TABLE tree_a PARTITION OF tree FOR VALUES FROM (MINVALUE) TO (4)"]
            if self.random.random() < 0.5:
                made += [
                    "CREATE TABLE tree_b PARTITION OF tree FOR VALUES FROM (4) TO (8) PARTITION BY LIST (k)",
                    "CREATE TABLE tree_b1 PARTITION OF tree_b FOR VALUES IN (4, 6)",
                    "CREATE TABLE tree_b2 PARTITION OF tree_b DEFAULT",
                ]
            else:
                made.append("CREATE TABLE tree_b PARTITION OF tree FOR VALUES FROM (4) TO (8)")
            return [*made, "CREATE TABLE tree_c PARTITION OF tree FOR VALUES FROM (8) TO (40)"]
        if "LIST" in tree:
            return [
                "CREATE TABLE tree_a PARTITION OF tree FOR VALUES IN (1, 2, 3, 11)",
                "CREATE TABLE tree_b PARTITION OF tree FOR VALUES IN (4, 5, 6, 7)",
                "CREATE TABLE tree_c PARTITION OF tree DEFAULT",
            ]
        return [
            f"CREATE TABLE tree_{n} PARTITION OF tree FOR VALUES WITH (MODULUS 3, REMAINDER {r})"
            for r, n in enumerate("abc")
        ]

    def _triggers(self, table: str) -> list[str]:
        made = []
        for number in range(self.random.randint(1, 3)):
            events = self.pick(
                "INSERT OR UPDATE OR DELETE", "UPDATE", "INSERT OR UPDATE", "DELETE OR INSERT", "UPDATE OF i"
            )
            when = self.pick(*WHEN) if events.startswith("UPDATE") else ""
            made.append(
                f"CREATE TRIGGER {table}_{number} {self.pick('BEFORE', 'AFTER', 'AFTER')} {events} ON {table} FOR EACH ROW{when} EXECUTE FUNCTION tell()"
            )
        if self.random.random() < 0.4:
            made.append(
                f"CREATE TRIGGER {table}_change BEFORE INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION change()"
            )
        for event, named in (
            ("INSERT", "NEW TABLE AS come"),
            ("UPDATE", "OLD TABLE AS gone NEW TABLE AS come"),
            ("DELETE", "OLD TABLE AS gone"),
        ):
            if self.random.random() < 0.4:
                made.append(
                    f"CREATE TRIGGER {table}_all_{event.lower()} AFTER {event} ON {table} REFERENCING {named} FOR EACH STATEMENT EXECUTE FUNCTION tell_all()"
                )
        if self.random.random() < 0.4:
            made.append(
                f"CREATE TRIGGER {table}_each {self.pick('BEFORE', 'AFTER')} INSERT OR UPDATE OR DELETE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION tell()"
            )
        return made

    # -- statements ------------------------------------------------------------------------------

    def key(self) -> str:
        """Return a key."""
        return str(self.random.randint(1, 12))

    def row(self, table: str) -> str:
        """Return values for k, i, t and the reference."""
        values = [
            self.key(),
            self.pick("NULL", "DEFAULT", "0", "3", "4", "5"),
            self.pick("NULL", "'a'", "'bad'", "DEFAULT"),
        ]
        if table != "up":
            values.append(self.pick("NULL", "DEFAULT", self.key(), self.key()))
        return f"({', '.join(values)})"

    def change(self, table: str) -> str:
        """Return an assignment of SET."""
        forms = [
            "i = i + 1",
            "i = DEFAULT",
            "i = 4",
            "t = coalesce(t, 'z') || k",
            "t = NULL",
            "k = k + 3",
            f"k = {self.key()}",
            "i = 95",
        ]
        if table != "up":
            forms.append(f"{'p' if table == 'tree' else 'm'} = {self.pick('NULL', 'DEFAULT', self.key())}")
            forms.append(f"{'g' if table == 'tree' else 'h'} = {self.pick('DEFAULT', 'NULL')}")
        return self.pick(*forms)

    def query(self) -> str:
        """Return a statement."""
        table = self.pick("up", "tree", "tree", "tree", "down", "down")
        reference = {"up": "", "tree": ", p", "down": ", m"}[table]
        shape = self.random.randrange(24)
        returning = self.pick("", "", " RETURNING *", f" RETURNING {table}.k, i, t")
        if shape < 4:
            return f"INSERT INTO {table} (k, i, t{reference}) VALUES {self.row(table)}{returning}"
        if shape == 4:
            return f"INSERT INTO {table} (k, i, t{reference}) VALUES {self.row(table)}, {self.row(table)}{returning}"
        if shape < 7:
            where = self.pick("", f" WHERE {table}.i > 1")
            value = self.pick("excluded.i", f"{table}.i + 10", "DEFAULT")
            conflict = self.pick("DO NOTHING", f"(k) DO UPDATE SET i = {value}, t = excluded.t{where}")
            return f"INSERT INTO {table} (k, i, t{reference}) VALUES {self.row(table)} ON CONFLICT {conflict}{returning}"
        if shape < 12:
            return f"UPDATE {table} SET {self.change(table)} WHERE k = {self.key()}{returning}"
        if shape == 12:
            return (
                f"UPDATE {table} SET {self.pick('i = i', 'i = i + 1', 't = NULL')} WHERE k IN ({self.key()})"
            )
        if shape < 15:
            return f"DELETE FROM {table} WHERE k = {self.key()}{returning}"
        if shape == 15:
            then = self.pick(
                "DELETE", f"UPDATE SET {self.pick('i = s.x', 't = NULL', 'k = s.x + 12')}", "DO NOTHING"
            )
            return (
                f"MERGE INTO {table} USING (VALUES ({self.key()}, {self.key()})) s(x, y) ON {table}.k = s.x WHEN MATCHED AND i < 5 THEN {then}"
                f" WHEN MATCHED THEN UPDATE SET i = 1 WHEN NOT MATCHED THEN INSERT (k, i) VALUES (s.x, s.y)"
            )
        if shape == 16:
            return f"WITH x AS (DELETE FROM down WHERE k = {self.key()} RETURNING *) SELECT k + 20, i, t, h FROM x"
        if shape == 17:
            return f"UPDATE tree SET t = 'j' || up.k FROM up WHERE up.k = tree.p AND tree.k = {self.key()} RETURNING tree.*, up.t"
        if shape == 18:
            return f"DELETE FROM tree USING up WHERE up.k = tree.p AND tree.k = {self.key()} RETURNING *"
        if shape < 21:
            return "SELECT what FROM fired ORDER BY n"
        if shape == 21:
            return "TRUNCATE fired"
        return f"SELECT *, tableoid::regclass FROM {self.pick('tree', 'down', 'up', 'tree_a', 'tree_b')} ORDER BY k"
