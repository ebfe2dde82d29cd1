"""Random views over views, asked, printed, changed through and defined anew: a function of a seed (``compare_generated.Source``).

Ten views over two tables, each over any that has a lower number; what is asked of them, their texts and columns in the catalogs, DML
through those that may be changed, and CREATE OR REPLACE, ALTER and DROP … RESTRICT under the ones that read them.
"""

from __future__ import annotations

import random

__all__ = ["Views"]

SCHEMA = """
DROP SCHEMA IF EXISTS over CASCADE; CREATE SCHEMA over; SET search_path = over, public;
CREATE TABLE b0 (k int PRIMARY KEY, i int, t text, n numeric(8,2) DEFAULT 1, d date, a int[]);
CREATE TABLE b1 (k int PRIMARY KEY, i int, t text, n numeric(8,2), d date, a int[]);
INSERT INTO b0 SELECT g, nullif(g % 5, 2), (array['a', '', null, 'Bc'])[g % 4 + 1], g * 1.25, date '2024-02-27' + nullif(g % 6, 3),
 (array['{1,2}', '{}', null])[g % 3 + 1]::int[] FROM generate_series(1, 12) g;
INSERT INTO b1 SELECT g, nullif(g % 3, 1), (array['a', 'x', null])[g % 3 + 1], nullif(g % 4, 1) / 3.0, date '2024-01-01' + g,
 (array['{3}', null])[g % 2 + 1]::int[] FROM generate_series(3, 9) g;
"""
VIEWS = 10
ROWS = ("(3, 1, 'a')", "(20, NULL, 'q')", "(21, 1, NULL)")
CHANGES = ("i = i + 1", "t = coalesce(t, '') || 'z'", "n = n * 2", "d = DEFAULT", "k = k + 30")
ALTERED = ("ALTER t TYPE varchar", "DROP COLUMN d", "ALTER i SET DEFAULT 4", "ADD COLUMN IF NOT EXISTS z int")


class Views:
    """Makes definitions and statements over them; all relations have the same six columns."""

    schema = SCHEMA
    remove = "DROP SCHEMA over CASCADE; RESET search_path"
    stateful = True

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.made = 0

    def begin(self) -> None:
        """Know that only the tables are there."""
        self.made = 0

    def pick(self, *options: str) -> str:
        """Return one of some texts."""
        return self.random.choice(options)

    def below(self, number: int) -> str:
        """Return a relation that the view ``number`` may read."""
        return self.pick("b0", "b1", *[f"v{n}" for n in range(number)] * 2)

    def condition(self, at: str = "") -> str:
        """Return a condition over the columns."""
        return self.pick(
            f"{at}k > {self.pick('2', '5')}", f"{at}i IS NOT NULL", f"{at}t = 'a'", f"{at}n < 9", f"{at}d >= '2024-02-28'",
            f"cardinality({at}a) > 0", f"{at}k % 2 = 0", f"{at}t IS DISTINCT FROM 'x'", f"{at}i IN (1, 3, {at}k)",
            f"{at}k = ANY ({at}a) OR {at}i = 1", f"EXISTS (SELECT FROM b1 e WHERE e.k = {at}k)",
        )  # fmt: skip

    def body(self, number: int) -> str:
        """Return the query of a view."""
        one, other = self.below(number), self.below(number)
        shape = self.random.randrange(14)
        where = self.pick("", f" WHERE {self.condition()}")
        if shape <= 2:
            return f"SELECT * FROM {one}{where}"
        if shape == 3:
            return f"SELECT k, i, t, n, d, a FROM {one}{where}"
        if shape == 4:
            return f"SELECT k, coalesce(i, 0) AS i, upper(t) AS t, n, d + 1 AS d, a FROM {one}{where}"
        if shape == 5:
            join = self.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
            return f"SELECT k, x.i, y.t, coalesce(x.n, y.n) AS n, x.d, y.a FROM {one} x {join} {other} y USING (k)"
        if shape == 6:
            return f"SELECT x.k, y.i, x.t, y.n, x.d, x.a FROM {one} x JOIN {other} y ON x.i = y.i AND {self.condition('y.')}"
        if shape == 7:
            having = self.pick("", " HAVING count(*) > 1")
            return f"SELECT min(k) AS k, i, max(t) AS t, sum(n) AS n, min(d) AS d, array_agg(k ORDER BY k) AS a FROM {one}{where} GROUP BY i{having}"
        if shape == 8:
            kind = self.pick("UNION", "UNION ALL", "EXCEPT", "INTERSECT")
            return f"SELECT * FROM {one}{where} {kind} SELECT * FROM {other}"
        if shape == 9:
            return f"SELECT k, rank() OVER (PARTITION BY i ORDER BY k)::int AS i, lag(t) OVER (ORDER BY k, i, t, n) AS t, n, d, a FROM {one}{where}"
        if shape == 10:
            return f"WITH c AS (SELECT * FROM {one}{where}) SELECT c.k, (SELECT max(i) FROM {other} z WHERE z.k <= c.k) AS i, t, n, d, a FROM c"
        if shape == 11:
            return f"SELECT x.k, u.e AS i, x.t, x.n, x.d, x.a FROM {one} x, unnest(x.a) WITH ORDINALITY AS u(e, o){where}"
        if shape == 12:
            return f"SELECT DISTINCT ON (i) * FROM {one}{where} ORDER BY i, k, t, n, d, a"
        return f"SELECT x.k, l.i, l.t, x.n, x.d, x.a FROM {one} x LEFT JOIN LATERAL (SELECT i, t FROM {other} y WHERE y.k >= x.k ORDER BY y.k, i, t LIMIT 1) l ON true"

    def query(self) -> str:
        """Return a statement: first the views, then what is done to them."""
        if self.made < VIEWS:
            self.made += 1
            return self._view(self.made - 1, "CREATE VIEW")
        shape = self.random.randrange(24)
        number = self.random.randrange(VIEWS)
        view = f"v{number}"
        if shape < 8:
            return f"SELECT * FROM {view} WHERE {self.condition()} ORDER BY 1, 2, 3, 4, 5, 6{self.pick('', ' LIMIT 4')}"
        if shape == 8:
            return f"SELECT count(*), sum(x.k), max(y.n) FROM {view} x JOIN v{self.random.randrange(VIEWS)} y ON x.k = y.k"
        if shape < 11:
            return f"SELECT pg_get_viewdef('{view}'::regclass{self.pick('', ', true')})"
        if shape == 11:
            return (
                "SELECT table_name, is_updatable, is_insertable_into, check_option FROM information_schema.views WHERE table_schema = 'over'"
                f" AND table_name = '{view}'"
            )
        if shape == 12:
            return (
                "SELECT attname, format_type(atttypid, atttypmod), pg_column_is_updatable(attrelid, attnum, false) FROM pg_attribute"
                f" WHERE attrelid = '{view}'::regclass AND attnum > 0 ORDER BY attnum"
            )
        if shape == 13:
            return (
                "SELECT DISTINCT r.ev_class::regclass::text, d.refobjid::regclass::text, d.refobjsubid, d.deptype FROM pg_rewrite r JOIN pg_depend d"
                " ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass"
                f" WHERE r.ev_class = '{view}'::regclass ORDER BY 1, 2, 3, 4"
            )
        if shape == 14:
            return self._view(number, "CREATE OR REPLACE VIEW")
        if shape == 15:
            return f"INSERT INTO {view} (k, i, t) VALUES {self.pick(*ROWS)} RETURNING *"
        if shape == 16:
            return f"UPDATE {view} SET {self.pick(*CHANGES)} WHERE k = {self.pick('4', '6', '9')} RETURNING *"
        if shape == 17:
            return f"DELETE FROM {view} WHERE k = {self.pick('5', '7', '34')} RETURNING *"
        if shape == 18:
            return (
                f"DROP VIEW {view}"  # refused while another one reads it; else made again when it is missed
            )
        if shape == 19:
            return f"ALTER VIEW {view} ALTER COLUMN n {self.pick('SET DEFAULT 7', 'DROP DEFAULT')}"
        if shape == 20:
            return f"ALTER TABLE {self.pick('b0', 'b1')} {self.pick(*ALTERED)}"
        if shape == 21:
            return f"SELECT (SELECT x FROM {view} x ORDER BY x LIMIT 1), row_to_json(y) FROM {view} y ORDER BY y.k, y.i, y.t, y.n LIMIT 1"
        if shape == 22:
            return f"UPDATE {view} x SET i = y.i FROM {self.pick('b0', 'b1')} y WHERE y.k = x.k AND x.k = 6 RETURNING x.k, x.i, y.k"
        return self._view(number, "CREATE VIEW")

    def _view(self, number: int, create: str) -> str:
        body = self.body(number)
        simple = body.startswith(("SELECT * FROM", "SELECT k, i")) and not any(
            w in body for w in ("UNION", "EXCEPT", "INTERSECT")
        )
        check = self.pick("", "", " WITH CHECK OPTION", " WITH LOCAL CHECK OPTION") if simple else ""
        return f"{create} v{number}{self.pick('', '', ' WITH (security_barrier)')} AS {body}{check}"
