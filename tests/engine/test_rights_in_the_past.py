"""Rights of those who read the past: today's, on today's objects; what has gone is its last owner's (docs/guide/time-travel.md).

Each case: what was there, what has changed since, and what a query AS OF the time between answers to whom: rows, or 42501.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
import pytest

from tests.support.server import ServerProcess

DENIED = "42501"
Answer = list[tuple[object, ...]] | str


@dataclass(frozen=True, kw_only=True)
class Case:
    """``own``, ``ann``: the answers to the owner and to the reader; None: not asked. ``root``: a superuser's, as the owner's if None.

    Statements are separated by ``; ``; ``§`` is a semicolon within one in ``before``, and the schema elsewhere.
    """

    name: str
    before: str
    since: str
    query: str
    own: Answer | None
    ann: Answer | None
    root: Answer | None = field(default=None)


T = "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y'); "
TO_ANN = "GRANT SELECT ON t TO ann; "
ROWS: Answer = [(1, "x"), (2, "y")]
VIEW = T + "CREATE VIEW v AS SELECT a, b FROM t; GRANT SELECT ON v TO ann; "
INQUIRY = T + (
    "ANALYZE t; CREATE SEQUENCE q; SELECT nextval('q'); CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TYPE e AS ENUM ('x'); "
    "GRANT SELECT ON t TO ann; GRANT USAGE, SELECT ON q TO ann"
)
FIGURE = "CREATE FUNCTION figure() RETURNS bigint LANGUAGE plpgsql STABLE SECURITY DEFINER AS 'BEGIN RETURN $§ END'"
SECRET = T + "CREATE TABLE s (a int); INSERT INTO s VALUES (42); "

CASES = (
    Case(name="nothing", before=T + TO_ANN, since="", query="SELECT * FROM t @", own=ROWS, ann=ROWS),
    Case(name="changed rows", before=T + TO_ANN, since="DELETE FROM t", query="SELECT * FROM t @", own=ROWS, ann=ROWS),
    Case(name="granted since", before=T, since=TO_ANN, query="SELECT * FROM t @", own=ROWS, ann=ROWS),
    Case(name="revoked since", before=T + TO_ANN, since="REVOKE SELECT ON t FROM ann", query="SELECT * FROM t @", own=ROWS, ann=DENIED),
    Case(name="dropped", before=T + TO_ANN, since="DROP TABLE t", query="SELECT * FROM t @", own=ROWS, ann=DENIED),
    Case(name="count of dropped", before=T + TO_ANN, since="DROP TABLE t", query="SELECT count(*) FROM t @", own=[(2,)], ann=DENIED),
    Case(name="revoked, then dropped", before=T + TO_ANN, since="REVOKE SELECT ON t FROM ann; DROP TABLE t", query="SELECT * FROM t @",
         own=ROWS, ann=DENIED),
    Case(name="dropped and made again", before=T + TO_ANN, since="DROP TABLE t; CREATE TABLE t (a int, b text); GRANT SELECT ON t TO ann",
         query="SELECT * FROM t @", own=ROWS, ann=DENIED),
    Case(name="given away, then dropped", before=T, since="ALTER TABLE t OWNER TO ann; SET ROLE ann; DROP TABLE t", query="SELECT * FROM t @",
         own=DENIED, ann=ROWS, root=ROWS),
    Case(name="given away", before=T, since="ALTER TABLE t OWNER TO ann", query="SELECT * FROM t @", own=DENIED, ann=ROWS, root=ROWS),
    Case(name="dropped column", before=T + TO_ANN, since="ALTER TABLE t DROP b", query="SELECT * FROM t @", own=ROWS, ann=DENIED),
    Case(name="other columns of it", before=T + TO_ANN, since="ALTER TABLE t DROP b", query="SELECT a FROM t @", own=[(1,), (2,)], ann=[(1,), (2,)]),
    Case(name="whole rows with a dropped column", before=T + TO_ANN, since="ALTER TABLE t DROP b", query="SELECT (t).a FROM (SELECT t FROM t) q @",
         own=[(1,), (2,)], ann=DENIED),
    Case(name="condition on a dropped column", before=T + TO_ANN, since="ALTER TABLE t DROP b", query="SELECT a FROM t @ WHERE b = 'y'",
         own=[(2,)], ann=DENIED),
    Case(name="column dropped and added again", before=T, since="ALTER TABLE t DROP b; ALTER TABLE t ADD b text; GRANT SELECT ON t TO ann",
         query="SELECT b FROM t @", own=[("x",), ("y",)], ann=DENIED),
    Case(name="granted by column", before=T, since="GRANT SELECT (a) ON t TO ann", query="SELECT a FROM t @", own=[(1,), (2,)], ann=[(1,), (2,)]),
    Case(name="not granted by column", before=T + TO_ANN, since="REVOKE SELECT ON t FROM ann; GRANT SELECT (a) ON t TO ann", query="SELECT b FROM t @",
         own=[("x",), ("y",)], ann=DENIED),
    Case(name="renamed", before=T + TO_ANN, since="ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME b TO c", query="SELECT b FROM t @ WHERE a = 1",
         own=[("x",)], ann=[("x",)]),
    Case(name="moved into a closed schema", before=T + TO_ANN, since="CREATE SCHEMA hidden; ALTER TABLE t SET SCHEMA hidden",
         query="SELECT * FROM t @", own=ROWS, ann=DENIED),
    Case(name="schema closed since", before=T + TO_ANN, since="REVOKE USAGE ON SCHEMA § FROM ann", query="SELECT * FROM §.t @", own=ROWS, ann=DENIED),
    Case(name="schema dropped with it", before=T + TO_ANN, since="DROP SCHEMA § CASCADE", query="SELECT * FROM §.t @", own=ROWS, ann=DENIED),
    Case(name="materialized view", before=T + "CREATE MATERIALIZED VIEW m AS SELECT * FROM t; GRANT SELECT ON m TO ann", since="REVOKE SELECT ON m FROM ann",
         query="SELECT * FROM m @", own=ROWS, ann=DENIED),
    Case(name="dropped materialized view", before=T + "CREATE MATERIALIZED VIEW m AS SELECT * FROM t; GRANT SELECT ON m TO ann",
         since="DROP MATERIALIZED VIEW m", query="SELECT * FROM m @", own=ROWS, ann=DENIED),
    # views
    Case(name="view as it was", before=VIEW, since="DELETE FROM t", query="SELECT * FROM v @", own=ROWS, ann=ROWS),
    Case(name="narrowed view", before=VIEW, since="CREATE OR REPLACE VIEW v AS SELECT a, b FROM t WHERE a = 1; DELETE FROM t", query="SELECT * FROM v @",
         own=ROWS, ann=[(1, "x")]),
    Case(name="view with other expressions", before=VIEW, since="CREATE OR REPLACE VIEW v AS SELECT a, 'hidden' AS b FROM t", query="SELECT * FROM v @",
         own=ROWS, ann=[(1, "hidden"), (2, "hidden")]),
    Case(name="view over a view that was narrowed", before=VIEW + "CREATE VIEW w AS SELECT * FROM v; GRANT SELECT ON w TO ann",
         since="CREATE OR REPLACE VIEW v AS SELECT a, b FROM t WHERE a = 2", query="SELECT * FROM w @", own=ROWS, ann=[(2, "y")]),
    Case(name="view that reads what was not there", before=VIEW,
         since="CREATE TABLE u (a int, b text); CREATE OR REPLACE VIEW v AS SELECT a, b FROM u", query="SELECT * FROM v @", own=ROWS, ann=DENIED),
    Case(name="view that reads a column that was not there", before=VIEW,
         since="ALTER TABLE t ADD c text; CREATE OR REPLACE VIEW v AS SELECT a, c AS b FROM t", query="SELECT * FROM v @", own=ROWS, ann=DENIED),
    Case(name="view over what has got another's name", before=SECRET + "CREATE VIEW v AS SELECT a FROM t; GRANT SELECT ON v TO ann",
         since="ALTER TABLE s RENAME TO old; ALTER TABLE t RENAME TO s; CREATE OR REPLACE VIEW v AS SELECT a FROM s WHERE a > 0",
         query="SELECT * FROM v @", own=[(1,), (2,)], ann=DENIED),
    Case(name="view over columns that changed names", before=VIEW,
         since="ALTER TABLE t RENAME a TO x; ALTER TABLE t RENAME b TO c; ALTER TABLE t ADD b text", query="SELECT * FROM v @", own=ROWS, ann=DENIED),
    Case(name="view that shows whole rows", before=T + "CREATE VIEW v AS SELECT row_to_json(t)::text FROM t WHERE a = 1; GRANT SELECT ON v TO ann",
         since="ALTER TABLE t DROP b", query="SELECT * FROM v @", own=[('{"a":1,"b":"x"}',)], ann=DENIED),
    Case(name="dropped view", before=VIEW, since="DROP VIEW v", query="SELECT * FROM v @", own=ROWS, ann=DENIED),
    Case(name="view made again", before=VIEW, since="DROP VIEW v; CREATE VIEW v AS SELECT a, b FROM t WHERE false; GRANT SELECT ON v TO ann",
         query="SELECT * FROM v @", own=ROWS, ann=DENIED),
    Case(name="view with more columns", before=VIEW, since="CREATE OR REPLACE VIEW v AS SELECT a, b, 7 AS c FROM t", query="SELECT * FROM v @",
         own=ROWS, ann=[(1, "x", 7), (2, "y", 7)]),
    Case(name="invoker since", before=VIEW, since="ALTER VIEW v SET (security_invoker = true)", query="SELECT * FROM v @", own=ROWS, ann=DENIED),
    # functions
    Case(name="repaired definer function", before=T + "CREATE FUNCTION f() RETURNS SETOF int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT a FROM t'",
         since="CREATE OR REPLACE FUNCTION f() RETURNS SETOF int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT a FROM t WHERE a = 1'",
         query="SELECT * FROM f() @", own=[(1,), (2,)], ann=[(1,)]),
    Case(name="repaired function in PL/pgSQL",
         before=T + "CREATE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql STABLE SECURITY DEFINER AS 'BEGIN RETURN QUERY SELECT a FROM t;END'",
         since="CREATE OR REPLACE FUNCTION f() RETURNS SETOF int LANGUAGE plpgsql STABLE SECURITY DEFINER AS 'BEGIN RETURN QUERY SELECT a FROM t WHERE a = 2;END'",
         query="SELECT * FROM f() @", own=[(1,), (2,)], ann=[(2,)]),
    Case(name="no definer any more", before=T + "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT count(*) FROM t'",
         since="ALTER FUNCTION f() SECURITY INVOKER", query="SELECT f() @", own=[(2,)], ann=DENIED),
    Case(name="function revoked since", before=T + "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT count(*) FROM t'",
         since="REVOKE EXECUTE ON FUNCTION f() FROM public", query="SELECT f() @", own=[(2,)], ann=DENIED),
    Case(name="dropped function", before=T + "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT count(*) FROM t'",
         since="DROP FUNCTION f()", query="SELECT f() @", own=[(2,)], ann=DENIED),
    Case(name="definer function over a dropped table",
         before=T + "CREATE FUNCTION f() RETURNS SETOF int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT a FROM t'",
         since="DROP TABLE t; CREATE TABLE t (a int)", query="SELECT * FROM f() @", own=[(1,), (2,)], ann=DENIED),
    Case(name="definer function over what had the name", before=SECRET + "CREATE FUNCTION f() RETURNS SETOF int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT a FROM s'",
         since="ALTER TABLE s RENAME TO old; ALTER TABLE t RENAME TO s", query="SELECT * FROM f() @", own=[(42,)], ann=DENIED),
    Case(name="definer function over a narrowed view", before=VIEW + "CREATE FUNCTION f() RETURNS SETOF int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT a FROM v'",
         since="CREATE OR REPLACE VIEW v AS SELECT a, b FROM t WHERE a = 1", query="SELECT * FROM f() @", own=[(1,), (2,)], ann=[(1,)]),
    Case(name="definer function that shows whole rows",
         before=T + "CREATE FUNCTION f() RETURNS SETOF text LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT t::text FROM t WHERE a = 1'",
         since="ALTER TABLE t DROP b", query="SELECT * FROM f() @", own=[("(1,x)",)], ann=DENIED),
    Case(name="definer function given to who may not", before=T + "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT count(*) FROM t'",
         since="ALTER FUNCTION f() OWNER TO ann", query="SELECT f() @", own=DENIED, ann=DENIED, root=DENIED),
    Case(name="definer function given away, in a view of others",
         before=T + "CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER AS 'BEGIN RETURN current_user;END'; "
         "CREATE VIEW v AS SELECT f() AS who; GRANT SELECT ON v TO ann",
         since="ALTER FUNCTION f() OWNER TO ann", query="SELECT who FROM v @", own=[("ann",)], ann=[("ann",)]),
    Case(name="definer function given away, then dropped",
         before=T + "CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER AS 'BEGIN RETURN current_user;END'",
         since="ALTER FUNCTION f() OWNER TO ann; DROP FUNCTION f()", query="SELECT f() @", own=DENIED, ann=[("ann",)],
         root=[("ann",)]),
    # what a query asks about rights
    Case(name="view for members", before=T + "CREATE VIEW v AS SELECT a, b FROM t WHERE has_table_privilege('s', 'SELECT') OR pg_has_role('own', 'MEMBER'); "
         "GRANT SELECT ON v TO ann; CREATE TABLE s (); GRANT SELECT ON s TO ann", since="REVOKE SELECT ON s FROM ann",
         query="SELECT * FROM v @", own=ROWS, ann=[]),
    Case(name="view by columns and functions", before=T + "CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TABLE s (a int); GRANT SELECT (a) ON s TO ann; "
         "CREATE VIEW v AS SELECT a, b FROM t WHERE has_column_privilege('s', 'a', 'SELECT') AND has_function_privilege('g()', 'EXECUTE'); GRANT SELECT ON v TO ann",
         since="REVOKE SELECT (a) ON s FROM ann", query="SELECT * FROM v @", own=ROWS, ann=[]),
    Case(name="policy for members, by a column",
         before="CREATE TABLE t (a int, o name); INSERT INTO t VALUES (1, 'own'), (2, 'ann'); GRANT SELECT ON t TO ann; CREATE TABLE s (); GRANT SELECT ON s TO ann; "
         "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (has_table_privilege(current_user, 's', 'SELECT') OR pg_has_role(o, 'MEMBER'))",
         since="REVOKE SELECT ON s FROM ann", query="SELECT a FROM t @", own=[(1,), (2,)], ann=[(2,)]),
    # row-level security
    Case(name="owner of then is exempt no more",
         before=T + "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (a = 2)",
         since="GRANT SELECT ON t TO own; ALTER TABLE t OWNER TO ann; SET ROLE ann; GRANT SELECT ON t TO own", query="SELECT * FROM t @",
         own=[(2, "y")], ann=ROWS, root=ROWS),
    Case(name="view of the owner of then", before=VIEW + "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (a = 2)",
         since="ALTER TABLE t OWNER TO ann; SET ROLE ann; GRANT SELECT ON t TO own", query="SELECT * FROM v @", own=[(2, "y")], ann=[(2, "y")]),
    Case(name="policies made since", before=T + TO_ANN, since="ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (a = 1)",
         query="SELECT * FROM t @", own=ROWS, ann=[(1, "x")]),
    Case(name="policy narrowed since",
         before=T + TO_ANN + "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (true)", since="ALTER POLICY p ON t USING (a = 2)",
         query="SELECT * FROM t @", own=ROWS, ann=[(2, "y")]),
    Case(name="forced since", before=T + TO_ANN + "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (a = 2)",
         since="ALTER TABLE t FORCE ROW LEVEL SECURITY", query="SELECT * FROM t @", own=[(2, "y")], ann=[(2, "y")], root=ROWS),
    Case(name="policies dropped since",
         before=T + TO_ANN + "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (a = 2)", since="DROP POLICY p ON t",
         query="SELECT * FROM t @", own=ROWS, ann=[]),
    Case(name="policies by a column of today", before=T + TO_ANN,
         since="ALTER TABLE t ADD who text; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (who = current_user)",
         query="SELECT a FROM t @", own=[(1,), (2,)], ann=DENIED),
    Case(name="policies by columns with other names", before=T + TO_ANN,
         since="ALTER TABLE t RENAME a TO c; ALTER TABLE t ADD a int; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (c = 1)",
         query="SELECT b FROM t @", own=[("x",), ("y",)], ann=DENIED),
    Case(name="policy that reads another table", before=SECRET + TO_ANN + "GRANT SELECT ON s TO ann",
         since="ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (EXISTS (SELECT FROM s WHERE s.a = 41 + t.a))",
         query="SELECT * FROM t @", own=ROWS, ann=[(1, "x")]),
    Case(name="policy that reads a table of today", before=T + TO_ANN,
         since="CREATE TABLE u (a int); GRANT SELECT ON u TO ann; ALTER TABLE t ENABLE ROW LEVEL SECURITY;"
         "CREATE POLICY p ON t USING (EXISTS (SELECT FROM u WHERE u.a = t.a))", query="SELECT * FROM t @", own=ROWS, ann=DENIED),
    Case(name="policy that calls a function of today", before=T + TO_ANN,
         since="CREATE FUNCTION ok(int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT $1 > 0'; ALTER TABLE t ENABLE ROW LEVEL SECURITY;"
         "CREATE POLICY p ON t USING (ok(a))", query="SELECT * FROM t @", own=ROWS, ann=DENIED),
    Case(name="function of a policy that was mended",
         before=T + TO_ANN + "CREATE FUNCTION ok(int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT true'; ALTER TABLE t ENABLE ROW LEVEL SECURITY; "
         "CREATE POLICY p ON t USING (ok(a))", since="CREATE OR REPLACE FUNCTION ok(int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT $1 = 1'",
         query="SELECT * FROM t @", own=ROWS, ann=[(1, "x")]),
    # partitions
    Case(name="dropped column of a partitioned table",
         before="CREATE TABLE t (a int, b text) PARTITION BY LIST (a); CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);"
         "CREATE TABLE t2 PARTITION OF t DEFAULT; INSERT INTO t VALUES (1, 'x'), (2, 'y');" + TO_ANN,
         since="ALTER TABLE t DROP b", query="SELECT b FROM t @ ORDER BY b", own=[("x",), ("y",)], ann=DENIED),
    Case(name="dropped partition", before="CREATE TABLE t (a int) PARTITION BY LIST (a); CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);"
         "INSERT INTO t VALUES (1);" + TO_ANN, since="DROP TABLE t1", query="SELECT * FROM t @", own=[(1,)], ann=DENIED),
    Case(name="detached partition", before="CREATE TABLE t (a int) PARTITION BY LIST (a); CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);"
         "INSERT INTO t VALUES (1);" + TO_ANN, since="ALTER TABLE t DETACH PARTITION t1", query="SELECT * FROM t @", own=[(1,)], ann=DENIED),
    Case(name="detached partition that one may read", before="CREATE TABLE t (a int) PARTITION BY LIST (a); CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);"
         "INSERT INTO t VALUES (1); GRANT SELECT ON t1 TO ann;" + TO_ANN, since="ALTER TABLE t DETACH PARTITION t1", query="SELECT * FROM t @",
         own=[(1,)], ann=[(1,)]),
    # values of composite types
    Case(name="dropped attribute", before="CREATE TYPE c AS (x int, y text); CREATE TABLE t (a int, v c); INSERT INTO t VALUES (1, ROW (1, 's'));" + TO_ANN,
         since="ALTER TYPE c DROP ATTRIBUTE y", query="SELECT (v).x FROM t @", own=[(1,)], ann=DENIED),
    Case(name="other columns beside a dropped attribute",
         before="CREATE TYPE c AS (x int, y text); CREATE TABLE t (a int, v c[]); INSERT INTO t VALUES (1, ARRAY[ROW (1, 's')::c]);" + TO_ANN,
         since="ALTER TYPE c DROP ATTRIBUTE y", query="SELECT a FROM t @", own=[(1,)], ann=[(1,)]),
    Case(name="dropped attribute within arrays, rows and domains",
         before="CREATE TYPE c AS (x int, y text); CREATE DOMAIN d AS c; CREATE TYPE r AS (d c[]); CREATE TABLE t (a int, v d, w r);"
         "INSERT INTO t VALUES (1, ROW (1, 's'), ROW (ARRAY[ROW (1, 's')::c]));" + TO_ANN,
         since="ALTER TYPE c DROP ATTRIBUTE y", query="SELECT (w).d[1].x FROM t @", own=[(1,)], ann=DENIED),
    Case(name="row of a table that lost a column, in another", before=T + "CREATE TABLE u (v t); INSERT INTO u SELECT t FROM t WHERE a = 1; GRANT SELECT ON u TO ann",
         since="ALTER TABLE t DROP b CASCADE", query="SELECT (v).a FROM u @", own=[(1,)], ann=DENIED),
    # what is asked about rights on what has gone, and what is shown by the answer
    Case(name="inquiry: dropped objects", before=INQUIRY, since="REVOKE SELECT ON t FROM ann; DROP TABLE t; DROP SEQUENCE q; DROP FUNCTION f; DROP TYPE e",
         query="SELECT has_table_privilege('t', 'SELECT'), has_any_column_privilege('t', 'SELECT'), has_column_privilege('t', 'b', 'SELECT'), "
         "has_sequence_privilege('q', 'USAGE'), has_function_privilege('f()', 'EXECUTE'), has_type_privilege('e', 'USAGE') @",
         own=[(True,) * 6], ann=[(False,) * 6]),
    Case(name="inquiry: granted when it was dropped", before=INQUIRY, since="DROP TABLE t; DROP SEQUENCE q; DROP FUNCTION f; DROP TYPE e",
         query="SELECT has_table_privilege('t', 'SELECT'), has_any_column_privilege('t', 'SELECT'), has_column_privilege('t', 'b', 'SELECT'), "
         "has_sequence_privilege('q', 'USAGE'), has_function_privilege('f()', 'EXECUTE'), has_type_privilege('e', 'USAGE') @",
         own=[(True,) * 6], ann=[(False,) * 6]),
    Case(name="inquiry: a dropped column", before=INQUIRY, since="ALTER TABLE t DROP b",
         query="SELECT has_column_privilege('t', 'a', 'SELECT'), has_column_privilege('t', 'b', 'SELECT'), has_column_privilege('t', 2::int2, 'SELECT') @",
         own=[(True, True, True)], ann=[(True, False, False)]),
    Case(name="inquiry: a schema given away", before="CREATE SCHEMA given", since="ALTER SCHEMA given OWNER TO ann",
         query="SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace @ WHERE nspname = 'given'", own=[(False,)], ann=[(True,)], root=[(True,)]),
    Case(name="statistics of a dropped table", before=INQUIRY, since="REVOKE SELECT ON t FROM ann; DROP TABLE t",
         query="SELECT attname::text FROM pg_stats @ WHERE schemaname = '§'", own=[("a",), ("b",)], ann=[]),
    Case(name="statistics of a dropped column", before=INQUIRY, since="ALTER TABLE t DROP b",
         query="SELECT attname::text FROM pg_stats @ WHERE schemaname = '§'", own=[("a",), ("b",)], ann=[("a",)]),
    Case(name="a dropped sequence's value", before=INQUIRY, since="REVOKE ALL ON SEQUENCE q FROM ann; DROP SEQUENCE q",
         query="SELECT last_value FROM pg_sequences @ WHERE schemaname = '§'", own=[(1,)], ann=[(None,)]),
    Case(name="a dropped sequence's value by its function", before=INQUIRY, since="REVOKE ALL ON SEQUENCE q FROM ann; DROP SEQUENCE q",
         query="SELECT pg_sequence_last_value('q') @", own=[(1,)], ann=DENIED),
    *(
        Case(name=f"{body}, in its owner's function: {since}", before=f"{INQUIRY}; {FIGURE.replace('$', body)}", since=since,
             query="SELECT figure() @", own=own, ann=ann)
        for body, since, own, ann in (
            ("pg_sequence_last_value(''q'')", "DROP SEQUENCE q", [(1,)], DENIED),
            ("pg_sequence_last_value(''q'')", "ALTER SEQUENCE q RENAME TO r", [(1,)], DENIED),
            ("pg_sequence_last_value(''q'')", "REVOKE ALL ON SEQUENCE q FROM ann", [(1,)], [(1,)]),
            ("(SELECT last_value FROM q)", "DROP SEQUENCE q", [(1,)], DENIED),
            ("(SELECT last_value FROM pg_sequences WHERE schemaname = current_schema())", "DROP SEQUENCE q", [(1,)], [(None,)]),
            ("(SELECT count(*) FROM pg_stats WHERE schemaname = current_schema())", "DROP TABLE t", [(2,)], [(0,)]),
            ("(SELECT count(*) FROM pg_stats WHERE schemaname = current_schema())", "ALTER TABLE t DROP b", [(2,)], [(1,)]),
        )
    ),
)  # fmt: skip

_numbers = itertools.count(1)


@contextmanager
def session(
    server: ServerProcess, role: str, schema: str
) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    url = server.url.replace("postgres@", f"{role}@")
    with psycopg.connect(url, autocommit=True, options=f"-c search_path={schema}") as connection:
        yield connection


def answer(connection: psycopg.Connection[tuple[object, ...]], query: str, *, rows: bool = True) -> Answer:
    """Return the rows, in order, or the SQLSTATE."""
    try:
        cursor = connection.execute(query)  # type: ignore[call-overload]
        return sorted(cursor.fetchall(), key=repr) if rows else []
    except psycopg.Error as error:
        return str(error.sqlstate)


@pytest.fixture(scope="module")
def roles(server: ServerProcess) -> Iterator[ServerProcess]:
    for role in ("own", "ann"):
        server.sql(f"CREATE ROLE {role} LOGIN")
    server.sql("GRANT ann TO own")
    server.sql("GRANT CREATE ON DATABASE postgres TO own; REVOKE own FROM ann; REVOKE ann FROM own")
    yield server
    server.sql(
        "DROP SCHEMA IF EXISTS twins CASCADE; DROP ROLE IF EXISTS twin; DROP OWNED BY own, ann CASCADE; DROP ROLE own, ann"
    )


def set_up(server: ServerProcess, case: Case) -> tuple[str, int]:
    """Do what a case says; return its schema and the time between."""
    schema = f"past_{next(_numbers)}"
    server.sql(
        f"CREATE SCHEMA {schema} AUTHORIZATION own; GRANT USAGE ON SCHEMA {schema} TO ann; GRANT CREATE ON SCHEMA {schema} TO ann"
    )
    with session(server, "postgres", schema) as connection:
        connection.execute("SET ROLE own")
        for statement in case.before.split("; "):
            connection.execute(statement.replace("§", ";"))  # type: ignore[call-overload]
        (ts,) = connection.execute("SHOW holdfast.commit_ts").fetchone() or ("",)
        for statement in filter(None, case.since.replace("§", schema).split("; ")):
            if " OWNER TO " in statement:
                connection.execute("RESET ROLE")
            connection.execute(statement)  # type: ignore[call-overload]
    return schema, int(str(ts))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rights_are_todays_and_what_has_gone_is_its_last_owners(roles: ServerProcess, case: Case) -> None:
    schema, ts = set_up(roles, case)
    query = case.query.replace("§", schema)
    root = case.own if case.root is None else case.root
    for role, wanted in (("own", case.own), ("ann", case.ann), ("postgres", root)):
        if wanted is None:
            continue
        with session(roles, role, schema) as connection:
            found = answer(connection, query.replace("@", f"AS OF SYSTEM TIME {ts}"))
            assert found == wanted, f"{role}, by itself"
            connection.execute(f"BEGIN AS OF SYSTEM TIME {ts}")  # type: ignore[call-overload]
            assert answer(connection, query.replace("@", "")) == wanted, f"{role}, in a block"
            connection.execute("ROLLBACK")
            prepared = answer(
                connection, "PREPARE p AS " + query.replace("@", f"AS OF SYSTEM TIME {ts}"), rows=False
            )
            assert (prepared or answer(connection, "EXECUTE p")) == wanted, f"{role}, prepared"


NARROWED = next(case for case in CASES if case.name == "narrowed view")
DROPPED = next(case for case in CASES if case.name == "dropped")


@pytest.mark.parametrize("executor", ["index", "local"])
def test_every_way_of_reading_has_the_same_rights(roles: ServerProcess, executor: str) -> None:
    schema, ts = set_up(roles, NARROWED)
    gone, gone_ts = set_up(roles, DROPPED)
    for role, wanted, dropped in (("ann", [(1, "x")], DENIED), ("own", ROWS, ROWS)):
        with session(roles, role, schema) as c:
            c.execute(f"SET executor = {executor}")  # type: ignore[call-overload]
            for relation, at, expected in ((f"{schema}.v", ts, wanted), (f"{gone}.t", gone_ts, dropped)):
                query, ok = (
                    f"SELECT a, b FROM {relation} AS OF SYSTEM TIME {at}",
                    not isinstance(expected, str),
                )
                lines = ["\t".join(map(str, row)) for row in expected]
                try:
                    with c.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT") as copy:  # type: ignore[arg-type]
                        copied: object = sorted(bytes(part).decode().rstrip("\n") for part in copy)
                except psycopg.Error as error:
                    copied = str(error.sqlstate)
                assert copied == (lines if ok else expected)
                for explain in ("EXPLAIN", "EXPLAIN (ANALYZE, TIMING off)", "EXPLAIN (TIMESTAMP)"):
                    assert answer(c, f"{explain} {query}", rows=False) == ([] if ok else expected)
                c.execute("BEGIN")
                found = answer(c, f"DECLARE c CURSOR FOR {query}", rows=False)
                assert (found or answer(c, "FETCH ALL FROM c")) == expected
                c.execute("ROLLBACK")
                made = answer(c, f"CREATE TABLE {schema}.made AS {query}", rows=False)
                assert (made or answer(c, f"SELECT * FROM {schema}.made")) == expected
                c.execute(f"DROP TABLE IF EXISTS {schema}.made")  # type: ignore[call-overload]
                if relation.endswith(
                    ".v"
                ):  # with a parameter a statement is planned with today's names first
                    by_parameter = f"SELECT a, b FROM {relation} AS OF SYSTEM TIME %s"
                    for _ in range(2):
                        assert (
                            sorted(c.execute(by_parameter, (str(at),), prepare=True).fetchall()) == expected
                        )  # type: ignore[call-overload]


def test_a_transaction_that_is_open_runs_what_has_been_mended(roles: ServerProcess) -> None:
    schema, _ts = set_up(roles, Case(name="", before=VIEW + "CREATE FUNCTION f() RETURNS SETOF int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT a FROM t'",
                                     since="", query="", own=None, ann=None))  # fmt: skip
    with (
        session(roles, "ann", schema) as ann,
        session(roles, "ann", schema) as prepared,
        session(roles, "own", schema) as own,
    ):
        for reader in (ann, prepared, own):
            reader.execute("BEGIN")
            assert sorted(reader.execute("SELECT * FROM v").fetchall()) == ROWS
            assert sorted(reader.execute("SELECT * FROM f()").fetchall()) == [(1,), (2,)]
            reader.execute("PREPARE p AS SELECT * FROM v")
            reader.execute("EXECUTE p")
        snapshot = own.execute("SELECT pg_export_snapshot()").fetchone()
        with session(roles, "own", schema) as c:
            c.execute("CREATE OR REPLACE VIEW v AS SELECT a, b FROM t WHERE a = 1")
            c.execute(
                "CREATE OR REPLACE FUNCTION f() RETURNS SETOF int LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT a FROM t WHERE a = 2'"
            )
            c.execute("DELETE FROM t")
        with session(roles, "ann", schema) as importing:
            importing.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            importing.execute(f"SET TRANSACTION SNAPSHOT '{snapshot[0]}'")  # type: ignore[index]
            for reader in (ann, prepared, importing):
                assert answer(reader, "SELECT * FROM v" if reader is not prepared else "EXECUTE p") == [
                    (1, "x")
                ]
                assert answer(reader, "SELECT * FROM f()") == [(2,)]
            importing.execute("ROLLBACK")
        assert answer(own, "SELECT * FROM v") == ROWS
        assert answer(own, "EXECUTE p") == ROWS
        assert answer(own, "SELECT * FROM f()") == [(1,), (2,)]
        with session(roles, "own", schema) as c:
            c.execute("REVOKE SELECT ON v FROM ann")
        for reader in (ann, prepared, own):
            reader.execute("SAVEPOINT s") if reader is own else None
            assert answer(reader, "SELECT * FROM v") == (ROWS if reader is own else DENIED)
            reader.execute("ROLLBACK")


SECURED = (
    T
    + TO_ANN
    + "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t TO own USING (true); CREATE POLICY q ON t TO public USING (a = 2)"
)


@pytest.mark.parametrize(("given", "taken", "shut"), [
    ("ALTER ROLE ann BYPASSRLS", "ALTER ROLE ann NOBYPASSRLS", [(2, "y")]),
    ("ALTER ROLE ann SUPERUSER", "ALTER ROLE ann NOSUPERUSER", [(2, "y")]),
    ("GRANT own TO ann", "REVOKE own FROM ann", [(2, "y")]),  # a policy's role, and the owner's
    ("ALTER TABLE § OWNER TO ann", "ALTER TABLE § OWNER TO own; GRANT SELECT ON § TO ann", [(2, "y")]),
])  # fmt: skip
def test_who_is_exempt_from_policies_is_as_of_now_in_a_block_that_has_planned(
    roles: ServerProcess, given: str, taken: str, shut: Answer
) -> None:
    schema, _ts = set_up(roles, Case(name="", before=SECURED, since="", query="", own=None, ann=None))
    table = f"{schema}.t"
    roles.sql(given.replace("§", table))
    texts = ("SELECT * FROM t", "SELECT * FROM t WHERE a > 0", "EXECUTE p", "SELECT * FROM t WHERE a < 9")
    with session(roles, "ann", schema) as ann:
        ann.execute("PREPARE p AS SELECT * FROM t")
        ann.execute("BEGIN")
        for text in texts[:3]:
            assert answer(ann, text) == ROWS
        roles.sql(taken.replace("§", table))
        for text in texts:
            assert answer(ann, text) == shut, text


def test_roles_change_within_a_block_and_plans_are_not_shared(roles: ServerProcess) -> None:
    schema, ts = set_up(roles, NARROWED)
    with session(roles, "postgres", schema) as c:
        c.execute(f"BEGIN AS OF SYSTEM TIME {ts}")  # type: ignore[call-overload]
        c.execute("PREPARE p AS SELECT * FROM v")
        for role, wanted in (
            ("own", ROWS),
            ("ann", [(1, "x")]),
            ("postgres", ROWS),
            ("ann", [(1, "x")]),
            ("own", ROWS),
        ) * 2:
            c.execute(f"SET ROLE {role}")  # type: ignore[call-overload]
            assert answer(c, "SELECT * FROM v") == wanted
            assert answer(c, "EXECUTE p") == wanted
        c.execute("ROLLBACK")


DEFINERS = T + (
    "CREATE FUNCTION f() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER AS 'BEGIN RETURN (SELECT max(b) FROM t)§ END'; "
    "CREATE FUNCTION g() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT max(b) FROM t'"
)


@pytest.mark.parametrize("since", ["DROP TABLE t", "ALTER TABLE t DROP b", "ALTER TABLE t RENAME TO u"])
def test_who_asks_counts_in_definers_functions_whoever_asked_before(roles: ServerProcess, since: str) -> None:
    schema, ts = set_up(roles, Case(name="", before=DEFINERS, since=since, query="", own=None, ann=None))
    with session(roles, "postgres", schema) as c:
        c.execute(f"PREPARE p AS SELECT f(), g() AS OF SYSTEM TIME {ts}")  # type: ignore[call-overload]
        for role, wanted in (
            ("postgres", [("y", "y")]),
            ("ann", DENIED),
            ("own", [("y", "y")]),
            ("ann", DENIED),
        ):
            c.execute(f"SET ROLE {role}")  # type: ignore[call-overload]
            assert answer(c, "EXECUTE p") == wanted, role
            c.execute(f"BEGIN AS OF SYSTEM TIME {ts}")  # type: ignore[call-overload]
            for function in ("f", "g"):
                c.execute("SAVEPOINT s")
                assert answer(c, f"SELECT {function}()") == (
                    [("y",)] if isinstance(wanted, list) else wanted
                ), role
                c.execute("ROLLBACK TO s")
            c.execute("ROLLBACK")


def test_nobody_fetches_of_the_past_for_the_owner_of_a_function_what_he_may_not_have(
    roles: ServerProcess,
) -> None:
    """Ann may read t today, not what was dropped of it: her functions do not get it from the owner or a superuser who calls them."""
    schema, _ts = set_up(roles, Case(name="", before=VIEW, since="", query="", own=None, ann=None))
    with session(roles, "ann", schema) as ann:
        for name, query in (("of_table", "SELECT max(b) FROM t"), ("of_view", "SELECT max(b) FROM v")):
            ann.execute(
                f"CREATE FUNCTION {name}() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER "  # type: ignore[call-overload]
                f"AS 'DECLARE r text; BEGIN EXECUTE ''{query}'' INTO r; RETURN r; END'"
            )
        (ts_of_functions,) = ann.execute("SHOW holdfast.commit_ts").fetchone() or ("",)
    roles.sql(
        f"SET ROLE own; CREATE OR REPLACE VIEW {schema}.v AS SELECT a, 'hidden'::text AS b FROM {schema}.t; ALTER TABLE {schema}.t DROP b; "
        f"GRANT SELECT ON {schema}.t TO ann"
    )
    for role in ("ann", "own", "postgres"):
        with session(roles, role, schema) as c:
            for name, wanted in (("of_table", DENIED), ("of_view", [("hidden",)])):
                c.execute(f"BEGIN AS OF SYSTEM TIME {ts_of_functions}")  # type: ignore[call-overload]
                assert answer(c, f"SELECT {name}()") == wanted, (role, name)
                c.execute("ROLLBACK")
    with session(roles, "own", schema) as c:  # the owner by himself
        assert answer(c, f"SELECT max(b) FROM t AS OF SYSTEM TIME {ts_of_functions}") == [("y",)]


def test_a_large_object_that_is_gone_is_its_last_owners_whatever_there_is_under_its_number(
    roles: ServerProcess,
) -> None:
    """7101 is gone, and another ann's; 7102 is gone; 7103 was given to ann; 7104 was, and is gone, and another that own has made."""
    roles.sql(
        "SET ROLE own; CREATE SCHEMA past_lo; GRANT USAGE ON SCHEMA past_lo TO ann; "
        "CREATE FUNCTION past_lo.get(oid) RETURNS bytea LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT lo_get($1)'"
    )
    with session(roles, "own", "past_lo") as own:
        own.execute("SELECT lo_from_bytea(n, 'own') FROM generate_series(7101, 7104) n")
        (ts,) = own.execute("SHOW holdfast.commit_ts").fetchone() or ("",)
        own.execute("SELECT lo_unlink(7101), lo_unlink(7102)")
    with session(roles, "ann", "past_lo") as ann:
        ann.execute("SELECT lo_from_bytea(7101, 'ann')")
        ann.execute("GRANT SELECT ON LARGE OBJECT 7101 TO ann, PUBLIC")
    roles.sql("ALTER LARGE OBJECT 7103 OWNER TO ann; ALTER LARGE OBJECT 7104 OWNER TO ann")
    roles.sql("SET ROLE ann; SELECT lo_unlink(7104); SET ROLE own; SELECT lo_create(7104)")
    there: Answer = [(b"own",)]
    for role, wanted in (
        ("own", (there, there, DENIED, DENIED, there, there, DENIED)),
        ("ann", (DENIED, DENIED, there, there, DENIED, DENIED, DENIED)),
        ("postgres", (there, there, there, there, there, there, DENIED)),
    ):
        with session(roles, role, "past_lo") as c:
            for call, answered in zip(
                (
                    "lo_get(7101)",
                    "lo_get(7102)",
                    "lo_get(7103)",
                    "lo_get(7104)",
                    "get(7101)",
                    "get(7102)",
                    "get(7104)",
                ),
                wanted,
                strict=True,
            ):
                c.execute(f"BEGIN AS OF SYSTEM TIME {ts}")  # type: ignore[call-overload]
                assert answer(c, f"SELECT {call}") == answered, (role, call)
                c.execute("ROLLBACK")
    roles.sql("SELECT lo_unlink(7101), lo_unlink(7103), lo_unlink(7104)")


def test_a_built_in_function_that_was_taken_away_since_is_asked_for(roles: ServerProcess) -> None:
    """In texts, prepared statements, views and functions, of a moment that somebody has read before, too."""
    roles.sql(
        "CREATE SCHEMA past_calls; GRANT USAGE ON SCHEMA past_calls TO ann; SET search_path = past_calls; CREATE TABLE t AS SELECT 'x' AS a; "
        "CREATE VIEW v AS SELECT initcap(a) AS a FROM t; GRANT SELECT ON t, v TO ann; "
        "CREATE FUNCTION f(text) RETURNS text LANGUAGE sql AS 'SELECT initcap($1)'; "
        "CREATE FUNCTION g(text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN initcap($1); END$$"
    )
    with session(roles, "ann", "past_calls") as ann:
        (ts,) = ann.execute("SELECT now()").fetchone() or ("",)
        roles.sql("CREATE TABLE past_calls.later (a int)")  # the catalog of now is another one
        queries = [
            f"SELECT {what} AS OF SYSTEM TIME '{ts}'"
            for what in (
                "initcap('x')",
                "initcap(a) FROM t",
                "a FROM v",
                "f(a) FROM t",
                "g(a) FROM t",
                "a FROM t WHERE initcap(a) > ''",
            )
        ]
        before = [answer(ann, query) for query in queries]
        assert DENIED not in before
        for number, query in enumerate(queries):
            ann.execute(f"PREPARE p{number} AS {query}")  # type: ignore[call-overload]
            assert answer(ann, f"EXECUTE p{number}") == before[number]
        roles.sql("REVOKE EXECUTE ON FUNCTION initcap(text) FROM PUBLIC")
        try:
            for number, query in enumerate(queries):
                assert answer(ann, query) == DENIED, query
                assert answer(ann, f"EXECUTE p{number}") == DENIED, query
        finally:
            roles.sql("GRANT EXECUTE ON FUNCTION initcap(text) TO PUBLIC")
        assert [answer(ann, query) for query in queries] == before


def test_a_role_of_the_same_name_is_another_one(roles: ServerProcess) -> None:
    roles.sql("CREATE ROLE twin LOGIN; CREATE SCHEMA twins; GRANT ALL ON SCHEMA twins TO twin")
    with session(roles, "twin", "twins") as c:
        c.execute("CREATE TABLE t AS SELECT 1 AS a")
        c.execute("CREATE VIEW v AS SELECT a FROM t")
        (ts,) = c.execute("SHOW holdfast.commit_ts").fetchone() or ("",)
        c.execute("DROP VIEW v; DROP TABLE t")
    roles.sql(
        "REVOKE ALL ON SCHEMA twins FROM twin; DROP ROLE twin; CREATE ROLE twin LOGIN; GRANT ALL ON SCHEMA twins TO twin"
    )
    for role, wanted in (("twin", DENIED), ("postgres", [(1,)])):
        with session(roles, role, "twins") as c:
            for relation in ("t", "v") if role == "twin" else ("t",):
                assert answer(c, f"SELECT a FROM {relation} AS OF SYSTEM TIME {ts}") == wanted


def test_a_named_subscription_tells_nothing_of_what_has_been_dropped(roles: ServerProcess) -> None:
    schema, _ts = set_up(roles, Case(name="", before=T + "CREATE TABLE u (a int, b text); GRANT SELECT ON t, u TO ann", since="", query="", own=None, ann=None))  # fmt: skip
    with session(roles, "own", schema) as own, session(roles, "ann", schema) as ann:
        feeds = {
            (reader, relation): f"{role}_{relation}"
            for role, reader in (("own", own), ("ann", ann))
            for relation in "tu"
        }
        for (reader, relation), feed in feeds.items():
            reader.execute(f"CREATE SUBSCRIPTION {feed} FOR {relation}")  # type: ignore[call-overload]
        for change in (
            "INSERT INTO t VALUES (3, 'z')", "INSERT INTO u VALUES (3, 'z')", "ALTER TABLE u DROP b", "DROP TABLE t",
        ):  # fmt: skip
            own.execute(change)
        for (reader, relation), feed in feeds.items():
            for statement in (
                f"DECLARE c CURSOR FOR SUBSCRIBE SUBSCRIPTION {feed}",
                f"SUBSCRIBE SUBSCRIPTION {feed} WITH (progress)",
            ):
                if reader is own and not statement.startswith("DECLARE"):
                    continue  # it would go on for ever
                with reader.transaction(force_rollback=True):
                    found = answer(reader, statement, rows=False)
                    assert found == ([] if reader is own else DENIED), statement
                    if reader is own:
                        told: list[tuple[object, ...]] = []
                        while (3, "z") not in told:  # rows come commit by commit
                            told += [row[-2:] for row in reader.execute("FETCH 10 FROM c").fetchall()]
            reader.execute(f"DROP SUBSCRIPTION {feed}")  # type: ignore[call-overload]
