"""Statements of random PL/pgSQL functions that nest transactions, read transition tables, and define what the function then uses.

CALL of procedures with handlers of their own, at any depth    ──> changes that a handler takes back, and those that stay
REFERENCING NEW TABLE AS fresh OLD TABLE AS stale              ──> what the trigger's statement changed, as relations
CREATE TEMP TABLE gp_made ... ALTER ... SELECT ... DROP        ──> plans over what has changed since they were made
"""

from __future__ import annotations

from tests.differential.generated_plpgsql_loops import Loops

__all__ = ["EVENTS", "Nesting"]

EVENTS = (
    ("INSERT", ("fresh",), "INSERT INTO gp_t VALUES (5, 50, 'five', '{5}'), (6, NULL, 'six', NULL)"),
    ("INSERT", ("fresh",), "INSERT INTO gp_t SELECT 7, 7, 'none', NULL WHERE false"),
    ("UPDATE", ("fresh", "stale"), "UPDATE gp_t SET n = n + 1, s = 'new' WHERE id > 2"),
    ("UPDATE", ("fresh", "stale"), "UPDATE gp_t SET s = 'none' WHERE id = 9"),
    ("DELETE", ("stale",), "DELETE FROM gp_t WHERE id > 2"),
)
"""Of triggers with transition tables: the event, the tables that it has, and a statement."""


class Nesting(Loops):
    """Makes such statements; ``transitions``: the transition tables that can be read."""

    transitions: tuple[str, ...] = ()

    def nested(self) -> list[str]:
        """Return calls of procedures that take back what they have done, or end transactions."""
        number = self.target("int")
        call = self.pick(
            f"CALL gp_saved({number});",
            f"CALL gp_saved({number}, {self.small()});",
            f"CALL gp_saved(n => {self.small()}, v => {number});",
            f"EXECUTE 'CALL gp_saved($1, 1)' INTO {number} USING {self.value('int', 1)};",
            f"CALL gp_ends({self.small()}, {self.pick(*(chr(39) + how + chr(39) for how in 'cr-'))});",
            f"DO 'BEGIN CALL gp_ends({self.small()}, ''{self.pick('c', 'r', '-')}''); END';",
        )
        if self.chance(0.5):
            return [call]
        return [
            "BEGIN",
            f"  INSERT INTO gp_log VALUES ({self.small()}, 'inside');",
            f"  {call}",
            *self.indented(self.assignment()),
            "EXCEPTION",
            f"  WHEN {self.pick('OTHERS', 'OTHERS', 'invalid_transaction_termination', 'raise_exception')} THEN",
            "    RAISE NOTICE 'undone % %', SQLSTATE, SQLERRM;",
            *self.indented(self.indented([call] if self.chance(0.3) else ["NULL;"])),
            "END;",
        ]

    def transition(self) -> list[str]:
        """Return a statement over a transition table."""
        name = self.random.choice(self.transitions)
        number, text = self.target("int"), self.target("text")
        whole = self.variable("record", settable=True)
        other = (
            "stale o JOIN fresh f USING (id)"
            if len(self.transitions) > 1
            else f"{name} o JOIN {name} f USING (id)"
        )
        return [
            self.pick(
                f"SELECT count(*), max(f.s) INTO {number}, {text} FROM {name} f;",
                f"SELECT f.n, f.s INTO {self.pick('', 'STRICT ')}{number}, {text} FROM {name} f ORDER BY f.id;",
                f"SELECT o.n, f.s INTO {number}, {text} FROM {other} ORDER BY id DESC;",
                f"SELECT * INTO {whole or number} FROM {name} ORDER BY id;",
                f"INSERT INTO gp_log SELECT f.id, f.s FROM {name} f;",
                f"RAISE NOTICE 'rows %', (SELECT array_agg(f ORDER BY f.id) FROM {name} f);",
                f"FOR {whole or number} IN SELECT * FROM {name} f ORDER BY f.id LOOP RAISE NOTICE '%', {whole or number}; END LOOP;",
                f"EXECUTE 'SELECT count(*) FROM {name} f WHERE f.id > $1' INTO {number} USING {self.value('int', 1)};",
                f"{number} := (SELECT sum(f.n) FROM {name} f WHERE f.id <> {self.value('int', 1)});",
                f"UPDATE gp_t t SET n = f.id FROM {name} f WHERE t.id = f.id;" if self.chance(0.5) else f"DELETE FROM {name};",
                f"PERFORM FROM {self.pick('fresh', 'stale')};",
                f"PERFORM gp_note((SELECT string_agg(f.s, '+' ORDER BY f.id) FROM {name} f));",
            )
        ]  # fmt: skip

    def definition(self) -> list[str]:
        """Return DDL, or a statement over what it makes."""
        number, text = self.target("int"), self.target("text")
        whole = self.variable("record", settable=True)
        made = [
            "CREATE TEMP TABLE gp_made (k int, w text) ON COMMIT DROP;",
            "CREATE TEMP TABLE IF NOT EXISTS gp_made AS SELECT t.id AS k, t.s AS w FROM gp_t t ORDER BY t.id;",
            "DROP TABLE IF EXISTS gp_made;",
            "DROP TABLE gp_made;",
            "ALTER TABLE gp_made ADD COLUMN x int DEFAULT 7;",
            "ALTER TABLE gp_made ALTER COLUMN w TYPE varchar(3);",
            "ALTER TABLE gp_made ALTER COLUMN k TYPE bigint;",
            "ALTER TABLE gp_made RENAME COLUMN w TO ww;",
            "ALTER TABLE gp_made DROP COLUMN k;",
            f"INSERT INTO gp_made VALUES ({self.value('int', 1)}, {self.value('text', 1)});",
            f"SELECT m.k, m.w INTO {number}, {text} FROM gp_made m ORDER BY m.k, m.w;",
            f"SELECT * INTO {whole or number} FROM gp_made m ORDER BY 1, 2;",
            f"{number} := (SELECT count(*) FROM gp_made);",
            f"UPDATE gp_made SET w = {text} WHERE k = {self.small()};",
            f"EXECUTE format('SELECT max(w) FROM %I', 'gp_made') INTO {text};",
            "CREATE INDEX ON gp_log (at);",
            "ALTER TABLE gp_log ADD COLUMN IF NOT EXISTS more int;",
            "ALTER TABLE gp_log DROP COLUMN IF EXISTS more;",
            "CREATE OR REPLACE VIEW gp_seen AS SELECT t.id, t.n FROM gp_t t;",
            f"SELECT v.n INTO {number} FROM gp_seen v WHERE v.id = {self.small()};",
            "DROP VIEW IF EXISTS gp_seen;",
            f"CREATE OR REPLACE FUNCTION gp_new(v int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN v + {self.small()}; END';",
            f"{number} := gp_new({self.value('int', 1)});",
            "EXECUTE format('ALTER TABLE %I ADD CHECK (at < 900)', 'gp_log');",
            f"CREATE OR REPLACE FUNCTION gp_half(v int) RETURNS int LANGUAGE sql AS 'SELECT v / {self.pick('2', '3')}';",
        ]
        return self.random.sample(made, self.random.randint(1, 3))
