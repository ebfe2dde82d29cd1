"""Random grants, and random statements of roles that have some of them, beside a PostgreSQL 15: SQLSTATEs have to be equal.

Between statements, which are rolled back, a superuser, an owner or somebody else grants and revokes, changes owners, memberships and policies; after
each of these the access control lists of both servers have to be equal, too. One seed makes one run, whatever the servers answer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import psycopg
from psycopg import pq

from tests.rights.play import OK, run

ROLES: Final = ("q_own", "q_two", "q_a", "q_b", "q_c", "q_d", "q_grp")
TABLES: Final = ("q.t1", "q.t2", "q2.t3", "q.part")
VIEWS: Final = ("q.v1", "q.v2", "q2.v3", "q2.v4")
COLUMNS: Final = {
    "q.t1": ("id", "a", "b", "c"), "q.t2": ("id", "a", "b", "c"), "q2.t3": ("id", "a", "b", "c"), "q.part": ("id", "a"),
    "q.v1": ("id", "a", "b", "d"), "q.v2": ("id", "a", "d", "e"), "q2.v3": ("id", "a", "b"), "q2.v4": ("id", "a"),
}  # fmt: skip
SET: Final = ("a", "c")
SEQUENCES: Final = ("q.s1", "q2.s2")
FUNCTIONS: Final = ("q.f1()", "q.f2()", "q2.f3()")
TYPES: Final = ("q.e1", "q.d1")

SETUP: Final = (
    *(f"CREATE ROLE {role} LOGIN" for role in ROLES),
    "REVOKE CREATE, TEMPORARY ON DATABASE postgres FROM PUBLIC",
    "CREATE SCHEMA q AUTHORIZATION q_own", "CREATE SCHEMA q2 AUTHORIZATION q_two", "GRANT ALL ON SCHEMA q, q2 TO q_own, q_two",
    "SET ROLE q_own",
    "CREATE TABLE q.t1 (id int PRIMARY KEY, a int, b text, c int DEFAULT 1)", "INSERT INTO q.t1 VALUES (1, 1, 'x'), (2, 2, 'y')",
    "CREATE TABLE q.t2 (id int PRIMARY KEY, a int, b text, c int)", "CREATE TABLE q.part (id int, a int) PARTITION BY LIST (a)",
    "CREATE TABLE q.part1 PARTITION OF q.part FOR VALUES IN (1)", "CREATE TABLE q.free (id int, a int)",
    "CREATE VIEW q.v1 AS SELECT id, a, b, a + c AS d FROM q.t1 WHERE a > 0", "CREATE VIEW q.v2 AS SELECT id, a, d, d + 1 AS e FROM q.v1",
    "CREATE SEQUENCE q.s1", "CREATE FUNCTION q.f1() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
    "CREATE FUNCTION q.f2() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM q.t1); END'",
    "CREATE TYPE q.e1 AS ENUM ('x')", "CREATE DOMAIN q.d1 AS int",
    "RESET ROLE", "GRANT SELECT ON q.t1 TO q_two", "SET ROLE q_two",
    "CREATE TABLE q2.t3 (id int PRIMARY KEY, a int, b text, c int)", "CREATE VIEW q2.v3 WITH (security_invoker = true) AS SELECT id, a, b FROM q.t1",
    "CREATE VIEW q2.v4 AS SELECT id, a FROM q2.t3 WHERE a IN (SELECT a FROM q.t1)", "CREATE SEQUENCE q2.s2",
    "CREATE FUNCTION q2.f3() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN (SELECT sum(a) FROM q.t1); END'",
    "RESET ROLE", "REVOKE EXECUTE ON FUNCTION q.f1(), q.f2(), q2.f3() FROM PUBLIC", "REVOKE USAGE ON TYPE q.e1, q.d1 FROM PUBLIC",
    "GRANT USAGE ON SCHEMA q, q2 TO PUBLIC",
)  # fmt: skip
TEARDOWN: Final = (
    "DROP SCHEMA q, q2 CASCADE", f"DROP OWNED BY {', '.join(ROLES)} CASCADE", f"DROP ROLE {', '.join(ROLES)}",
    "GRANT TEMPORARY ON DATABASE postgres TO PUBLIC",
)  # fmt: skip
LISTS: Final = """
SELECT o.name, g.item FROM (
  SELECT c.oid::regclass::text AS name, c.relowner AS owner, c.relacl AS acl FROM pg_class c WHERE c.relnamespace::regnamespace::text IN ('q', 'q2')
  UNION ALL SELECT attrelid::regclass || '.' || attname, 0, attacl FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE c.relnamespace::regnamespace::text IN ('q', 'q2') AND attacl IS NOT NULL
  UNION ALL SELECT nspname, nspowner, nspacl FROM pg_namespace WHERE nspname IN ('q', 'q2')
  UNION ALL SELECT oid::regprocedure::text, proowner, proacl FROM pg_proc WHERE pronamespace::regnamespace::text IN ('q', 'q2')
  UNION ALL SELECT oid::regtype::text, typowner, typacl FROM pg_type WHERE typname IN ('e1', 'd1')
) o, LATERAL (SELECT pg_get_userbyid(o.owner) || ' ' || coalesce(i::text, '') AS item FROM unnest(coalesce(o.acl, '{}') || NULL::aclitem) i) g ORDER BY 1, 2
"""


@dataclass(slots=True)
class Maker:
    """Makes statements up."""

    rng: random.Random

    def _some(self, of: Sequence[str]) -> str:
        return self.rng.choice(of)

    def _columns(self, table: str) -> str:
        columns = COLUMNS[table]
        return ", ".join(
            sorted(self.rng.sample(columns, self.rng.randint(1, len(columns))), key=columns.index)
        )

    def change(self) -> tuple[str, str]:
        """Return who grants, and a statement about rights."""
        by = self._some(("postgres", "postgres", "q_own", "q_two", *ROLES))
        whom = self._some((*ROLES, *ROLES, "PUBLIC"))
        verb, prep = self._some((("GRANT", "TO"), ("GRANT", "TO"), ("REVOKE", "FROM")))  # type: ignore[arg-type]
        table = self._some((*TABLES, *VIEWS))
        words = ", ".join(self.rng.sample(("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"), self.rng.randint(1, 3)))  # fmt: skip
        word = self._some(("SELECT", "INSERT", "UPDATE", "REFERENCES"))
        what = self._some(
            (
                f"{words} ON {table}", f"{words} ON {table}", f"{word} ({self._columns(table)}) ON {table}", f"{word} ({self._columns(table)}) ON {table}", f"ALL ON {table}",
                f"USAGE ON SCHEMA {self._some(('q', 'q2'))}", f"CREATE ON SCHEMA {self._some(('q', 'q2'))}", f"{self._some(('USAGE', 'SELECT', 'UPDATE'))} ON SEQUENCE {self._some(SEQUENCES)}",
                f"EXECUTE ON FUNCTION {self._some(FUNCTIONS)}", f"USAGE ON TYPE {self._some(TYPES)}",
            )
        )  # fmt: skip
        option = (
            " WITH GRANT OPTION" if verb == "GRANT" and whom != "PUBLIC" and self.rng.random() < 0.3 else ""
        )
        if verb == "REVOKE" and self.rng.random() < 0.4:
            option = " CASCADE"
        grant = f"{verb} {what} {prep} {whom}{option}"
        if verb == "REVOKE" and self.rng.random() < 0.2:
            grant = f"REVOKE GRANT OPTION FOR {what} FROM {whom} CASCADE"
        one, other = self.rng.sample(ROLES, 2)
        return by, self._some(
            (*[grant] * 14, f"GRANT {one} TO {other}", f"REVOKE {one} FROM {other}", f"ALTER ROLE {other} {self._some(('INHERIT', 'NOINHERIT'))}",
             f"ALTER TABLE {self._some(TABLES)} OWNER TO {one}", f"ALTER VIEW {self._some(VIEWS)} OWNER TO {one}", f"ALTER FUNCTION {self._some(FUNCTIONS)} OWNER TO {one}")
        )  # fmt: skip

    def statement(self) -> tuple[str, str]:
        """Return who runs it, and a statement."""
        kinds = (
            [self._select] * 5
            + [self._insert] * 3
            + [self._update] * 4
            + [self._delete] * 2
            + [self._merge, self._call]
            + [self._define] * 4
        )
        return self._some(ROLES), self.rng.choice(kinds)()

    def _condition(self, table: str) -> str:
        column, other = self._some(COLUMNS[table]), self._some((*TABLES, *VIEWS))
        return self._some(
            ("", "", f" WHERE {column} IS NULL", f" WHERE {column} IS NOT NULL AND false", f" WHERE EXISTS (SELECT {self._some(COLUMNS[other])} FROM {other})",
             f" WHERE id IN (SELECT {self._some(COLUMNS[other][:2])} FROM {other})")
        )  # fmt: skip

    def _select(self) -> str:
        table, other = self._some((*TABLES, *VIEWS)), self._some((*TABLES, *VIEWS))
        lock = self._some(("", "", "", " FOR UPDATE", " FOR SHARE", " FOR NO KEY UPDATE"))
        return self._some(
            (f"SELECT {self._columns(table)} FROM {table}{self._condition(table)}{lock}", f"SELECT * FROM {table}", f"SELECT count(*) FROM {table}{self._condition(table)}",
             f"SELECT x.{self._some(COLUMNS[table])} FROM {table} x JOIN {other} y ON x.id = y.{self._some(COLUMNS[other][:2])}",
             f"WITH w AS (SELECT {self._columns(table)} FROM {table}) SELECT * FROM w", f"SELECT x FROM {table} x", f"COPY (SELECT {self._columns(table)} FROM {table}) TO STDOUT")
        )  # fmt: skip

    def _returning(self, table: str) -> str:
        return self._some(("", "", f" RETURNING {self._columns(table)}", " RETURNING *", " RETURNING 1"))

    def _insert(self) -> str:
        table = self._some((*TABLES, *VIEWS))
        columns = [c for c in COLUMNS[table] if c in ("id", "a")][: self.rng.randint(1, 2)]
        values = ", ".join("1" if c == "a" else str(self.rng.randint(1, 99)) for c in columns)
        conflict = ""
        if table not in ("q.part",):
            one, seen = self._some(COLUMNS[table]), self._some(COLUMNS[table][:2])
            conflict = self._some(
                ("", "", " ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO NOTHING", " ON CONFLICT (id) DO UPDATE SET a = 1", f" ON CONFLICT (id) DO UPDATE SET a = excluded.{seen}",
                 f" ON CONFLICT (id) DO UPDATE SET a = 1 WHERE {table.split('.')[1]}.{one} IS NOT NULL")
            )  # fmt: skip
        source = self._some((f"VALUES ({values})", f"VALUES ({values})", f"SELECT {', '.join(columns)} FROM {self._some(TABLES)} WHERE false"))  # fmt: skip
        return f"INSERT INTO {table} ({', '.join(columns)}) {source}{conflict}{self._returning(table)}"

    def _update(self) -> str:
        table, other = self._some((*TABLES, *VIEWS)), self._some((*TABLES, *VIEWS))
        column = self._some([c for c in COLUMNS[table] if c in SET] or ["a"])
        value = self._some(("1", "1", f"{self._some([c for c in COLUMNS[table] if c != 'b'])} + 0", f"(SELECT max({self._some(COLUMNS[other][:2])}) FROM {other})"))  # fmt: skip
        if table == "q.part":
            column = "id"
        more = self._some(("", "", f" FROM {other} y WHERE y.id = {table.split('.')[1]}.id"))
        return f"UPDATE {table} SET {column} = {value}{more or self._condition(table)}{'' if more else self._returning(table)}"

    def _delete(self) -> str:
        table = self._some((*TABLES, *VIEWS))
        return f"DELETE FROM {table}{self._condition(table)}{self._returning(table)}"

    def _merge(self) -> str:
        table, other = self._some(TABLES), self._some((*TABLES, *VIEWS))
        name = table.split(".")[1]
        action = self._some(
            ("MATCHED THEN DELETE", f"MATCHED THEN UPDATE SET {'id' if table == 'q.part' else 'a'} = 1", "NOT MATCHED AND false THEN INSERT (id, a) VALUES (7, 1)", "MATCHED THEN DO NOTHING",
             f"MATCHED AND {name}.{self._some(COLUMNS[table])} IS NULL THEN DELETE")
        )  # fmt: skip
        return f"MERGE INTO {table} USING {other} s ON {name}.id = s.{self._some(COLUMNS[other][:2])} WHEN {action}"

    def _call(self) -> str:
        sequence = self._some(SEQUENCES)
        return self._some(
            (f"SELECT {self._some(FUNCTIONS)}", f"SELECT nextval('{sequence}')", f"SELECT setval('{sequence}', 5)", f"SELECT last_value FROM {sequence}",
             f"DO $$ BEGIN PERFORM {self._columns('q.v1')} FROM q.v1; END $$")
        )  # fmt: skip

    def _define(self) -> str:
        table, view, schema = self._some(TABLES), self._some(VIEWS), self._some(("q", "q2"))
        whom = self._some(ROLES)
        return self._some(
            (f"CREATE TABLE {schema}.n (x int)", f"CREATE TABLE {schema}.n (x {self._some(TYPES)})", f"CREATE TABLE {schema}.n AS SELECT {self._columns(table)} FROM {table}",
             f"CREATE VIEW {schema}.n AS SELECT 1 AS x", "CREATE OR REPLACE VIEW q.v1 AS SELECT id, a, b, a AS d FROM q.t2", f"CREATE INDEX ON {table} (a)",
             f"CREATE TABLE {schema}.n (x int REFERENCES {self._some(('q.t1', 'q.t2', 'q2.t3'))} (id))", f"TRUNCATE {table}", f"TRUNCATE {table}, q.t1",
             f"ALTER TABLE {table} ADD COLUMN n int", f"ALTER TABLE {table} OWNER TO {whom}", f"ALTER VIEW {view} OWNER TO {whom}", f"DROP VIEW {view} CASCADE", f"DROP TABLE {table} CASCADE",
             f"COMMENT ON TABLE {table} IS 'x'", f"LOCK {table} IN {self._some(('ACCESS SHARE', 'ROW EXCLUSIVE', 'SHARE'))} MODE", "ALTER TABLE q.part ATTACH PARTITION q.free FOR VALUES IN (2)",
             f"CREATE FUNCTION {schema}.n() RETURNS int LANGUAGE sql AS 'SELECT 1'", f"CREATE OR REPLACE FUNCTION {self._some(FUNCTIONS)} RETURNS {{}} LANGUAGE plpgsql AS 'BEGIN RETURN 5; END'",
             f"DROP FUNCTION {self._some(FUNCTIONS)}", f"ALTER FUNCTION {self._some(FUNCTIONS)} OWNER TO {whom}", f"DROP TYPE {self._some(TYPES)}", f"ALTER TYPE {self._some(TYPES)} RENAME TO n",
             f"ALTER SEQUENCE {self._some(SEQUENCES)} RESTART", f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY", f"CREATE POLICY n ON {table} USING (true)", f"REINDEX TABLE {table}",
             f"GRANT SELECT ON {table} TO {whom}", f"GRANT UPDATE ({self._columns(table)}) ON {table} TO {whom}", f"REVOKE SELECT ON {table} FROM {whom}")
        ).replace("q.f1() RETURNS {}", "q.f1() RETURNS int").replace("RETURNS {}", "RETURNS bigint")  # fmt: skip


@dataclass(slots=True)
class Figures:
    """What a run came to."""

    seed: int
    statements: int = 0
    changes: int = 0
    states: Counter[str] = field(default_factory=Counter)
    different: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Role, statement, PostgreSQL's SQLSTATE (or list), the one here."""


class Server:
    """A session for each role on one server."""

    def __init__(self, dsn: str) -> None:
        """``dsn``: of a superuser."""
        self._dsn = dsn
        self._sessions: dict[str, pq.PGconn] = {}

    def session(self, role: str) -> pq.PGconn:
        """Return the session of a role."""
        found = self._sessions.get(role)
        if found is None:
            found = pq.PGconn.connect(psycopg.conninfo.make_conninfo(self._dsn, user=role).encode())
            if found.status != pq.ConnStatus.OK:
                raise RuntimeError(found.error_message.decode())
            self._sessions[role] = found
        return found

    def lists(self) -> list[tuple[bytes | None, bytes | None]]:
        """Return owners and access control lists."""
        found = self.session("postgres").exec_(LISTS.encode())
        return [(found.get_value(row, 0), found.get_value(row, 1)) for row in range(found.ntuples)]

    def close(self) -> None:
        """End all sessions."""
        for session in self._sessions.values():
            session.finish()
        self._sessions.clear()


def walk(ours: Server, theirs: Server, *, seed: int, statements: int, per_change: int = 12) -> Figures:
    """Run ``statements`` random statements on both servers, with a change of rights before each ``per_change`` of them."""
    figures = Figures(seed)
    maker = Maker(random.Random(seed))
    servers = (theirs, ours)
    for sql in SETUP:
        for server in servers:
            if (state := run(server.session("postgres"), sql)) != OK:
                raise RuntimeError(f"{state} {sql}")
    try:
        while figures.statements < statements and len(figures.different) < 50:
            for role, sql in _changes(maker):
                _compare(figures, servers, role, sql)
                figures.changes += 1
            lists = [server.lists() for server in servers]
            if lists[0] != lists[1]:
                only = [sorted(map(str, set(one) - set(other))) for one, other in (lists, reversed(lists))]
                figures.different.append((role, sql, str(only[0]), str(only[1])))
                return figures
            for _ in range(per_change):
                role, sql = maker.statement()
                for server in servers:
                    run(server.session(role), "BEGIN")
                _compare(figures, servers, role, sql)
                for server in servers:
                    run(server.session(role), "ROLLBACK")
                figures.statements += 1
    finally:
        for server in servers:
            for sql in TEARDOWN:
                run(server.session("postgres"), sql)
            server.close()
    return figures


def _changes(maker: Maker) -> Iterator[tuple[str, str]]:
    for _ in range(3):
        yield maker.change()


def _compare(figures: Figures, servers: Sequence[Server], role: str, sql: str) -> None:
    theirs, ours = (run(server.session(role), sql) for server in servers)
    figures.states[theirs] += 1
    if theirs != ours:
        figures.different.append((role, sql, theirs, ours))
