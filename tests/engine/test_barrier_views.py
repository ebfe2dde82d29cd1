"""Views that are security barriers: a condition from outside meets the rows that the view gives, and no others, on every executor.

Each query runs over a view and over a table that holds the view's rows: the answers, and the errors, are the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import ServerProcess

Connection = psycopg.Connection[tuple[object, ...]]

VIEWS = (
    "SELECT id, n, note FROM row WHERE owner = 'reader'",
    "SELECT r.id, r.n, other.note FROM row r JOIN other USING (id) WHERE r.owner = 'reader'",
    "SELECT other.id, r.n, other.note FROM other LEFT JOIN row r USING (id) WHERE r.owner = 'reader'",
    "SELECT id, n, note FROM row WHERE id = 2 UNION ALL SELECT id, n, note FROM row WHERE owner = 'reader'",
    "SELECT id, n, note FROM row WHERE owner = 'reader' EXCEPT SELECT 0, 0, ''",
    "SELECT max(id) AS id, max(n) AS n, max(note) AS note FROM row GROUP BY owner HAVING owner = 'reader'",
    "SELECT id, n, note FROM row WHERE EXISTS (SELECT FROM other o WHERE o.id = row.id AND o.note = 'o2')",
    "SELECT id, n, note FROM part WHERE a > 1",
    "SELECT DISTINCT id, n, note FROM row WHERE owner = 'reader'",
    "WITH c AS (SELECT * FROM row) SELECT id, n, note FROM c WHERE owner = 'reader'",
    "SELECT id, n, note, rank() OVER (ORDER BY n) FROM row WHERE owner = 'reader'",
    "SELECT id, n, note FROM row WHERE owner = 'reader' ORDER BY id LIMIT 9",
    "SELECT id, n, note FROM row WHERE owner = 'reader' ORDER BY id OFFSET NULL",
    "SELECT id, n, note FROM v0 WHERE n > 1",
)
QUERIES = (
    "SELECT id FROM {v} WHERE note::int > 0",
    "SELECT id FROM {v} WHERE 1 / (n - 101) >= 0",
    "SELECT id FROM {v} WHERE id IN (1, 2) AND 1 / (n - 101) >= 0",
    "SELECT id FROM {v} WHERE CASE WHEN note = 's1' THEN 1 / (n - 101) ELSE 1 END = 1",
    "SELECT v.id FROM {v} v JOIN other o ON 1 / (v.n - 101) = o.id",
    "SELECT o.id, v.id FROM other o LEFT JOIN {v} v ON 1 / (v.n - 101) = o.id ORDER BY 1, 2",
    "SELECT id FROM other o WHERE EXISTS (SELECT FROM {v} v WHERE 1 / (v.n - 101) = o.id) ORDER BY 1",
    "SELECT s.id FROM (SELECT id, n FROM {v} UNION ALL SELECT 7, 7) s WHERE 1 / (n - 101) >= 0 ORDER BY 1",
    "SELECT max(1 / (n - 101)) FROM {v}",
    "SELECT count(*) FROM {v} a, {v} b WHERE a.n / (b.n - 101) > 0",
)
SCHEMA = """
    DROP TABLE IF EXISTS row, other, part CASCADE;
    CREATE TABLE row (id int PRIMARY KEY, owner text, note text, n int);
    INSERT INTO row VALUES (1, 'x', 's1', 101), (2, 'reader', 'mine', 102), (3, 'x', 's3', 103);
    CREATE TABLE other (id int, note text);
    INSERT INTO other VALUES (1, 'o1'), (2, 'o2'), (3, 'o3');
    CREATE TABLE part (a int, id int, note text, n int) PARTITION BY LIST (a);
    CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1);
    CREATE TABLE part2 PARTITION OF part FOR VALUES IN (2);
    INSERT INTO part VALUES (1, 1, 's1', 101), (2, 2, 'mine', 102);
"""


@pytest.fixture(scope="module")
def conn(server: ServerProcess) -> Iterator[Connection]:
    where = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
    with psycopg.connect(where, autocommit=True) as opened:
        opened.execute("CREATE ROLE reader LOGIN")
        opened.execute("GRANT ALL ON SCHEMA public TO reader")
        yield opened


@pytest.fixture(scope="module")
def made(conn: Connection) -> Connection:
    conn.execute(SCHEMA.encode())
    for number, query in enumerate(VIEWS):
        conn.execute(f"CREATE VIEW v{number} WITH (security_barrier) AS {query}".encode())
        conn.execute(f"CREATE TABLE seen{number} AS SELECT * FROM v{number}".encode())
        conn.execute(f"GRANT ALL ON v{number}, seen{number}, other TO reader".encode())
    return conn


@pytest.fixture
def views(made: Connection) -> Iterator[Connection]:
    """A connection that is the reader's, who has rights to views alone, in a block that is rolled back."""
    made.execute("BEGIN")
    made.execute("SET LOCAL ROLE reader")
    yield made
    made.execute("ROLLBACK")


def answer(conn: Connection, sql: str) -> object:
    conn.execute("SAVEPOINT here")
    try:
        return conn.execute(sql.encode()).fetchall()
    except psycopg.Error as error:
        conn.execute("ROLLBACK TO here")
        return error.sqlstate, error.diag.message_primary


@pytest.mark.parametrize("executor", ["auto", "index", "local"])
def test_a_condition_meets_what_the_view_gives(views: Connection, executor: str) -> None:
    views.execute(f"SET LOCAL executor = {executor}".encode())
    for number in range(len(VIEWS)):
        for query in QUERIES:
            wanted = answer(views, query.format(v=f"seen{number}"))
            assert answer(views, query.format(v=f"v{number}")) == wanted, (VIEWS[number], query)


@pytest.mark.parametrize("executor", ["auto", "index", "local"])
def test_changes_through_the_view_meet_no_other_rows(views: Connection, executor: str) -> None:
    views.execute(f"SET LOCAL executor = {executor}".encode())
    for number in (0, 6, 7, 13):
        for change in (
            "UPDATE v{v} SET note = 'x' WHERE 1 / (n - 101) > 0",
            "UPDATE v{v} SET note = 'y' WHERE 1 / (n - 103) < 0 AND id IN (1, 2, 3)",
            "UPDATE v{v} t SET note = 'z' FROM other o WHERE o.id = 1 / (t.n - 101)",
            "UPDATE v{v} t SET note = t.note || t.n FROM v0 o WHERE o.id = t.id AND 1 / (t.n - 101) / (o.n - 101) = 1",
            "DELETE FROM v{v} t USING other o WHERE 1 / (t.n - 101) = o.id",
        ):
            views.execute("SAVEPOINT before")
            assert views.execute(change.format(v=number).encode()).rowcount == 1, (number, change)
            views.execute("ROLLBACK TO before")


def test_what_has_no_place_for_the_views_condition_is_refused(views: Connection) -> None:
    views.execute("RESET ROLE")
    views.execute(
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        "CREATE VIEW low AS SELECT id, n FROM row;"
        "CREATE TRIGGER t INSTEAD OF UPDATE ON low FOR EACH ROW EXECUTE FUNCTION nothing();"
        "CREATE VIEW high WITH (security_barrier) AS SELECT id, n FROM low WHERE n > 101"
    )
    message = (
        "a change through a security_barrier view of a view that has INSTEAD OF triggers is not supported"
    )
    assert answer(views, "UPDATE high SET n = 1 WHERE 1 / (n - 101) > 0") == ("0A000", message)


def test_a_function_with_side_effects_is_told_of_the_views_rows_alone(views: Connection) -> None:
    views.execute(
        "CREATE OR REPLACE FUNCTION tell(text) RETURNS bool LANGUAGE plpgsql COST 0.0001 "
        "AS $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$"
    )
    told: list[str | None] = []
    views.add_notice_handler(lambda note: told.append(note.message_primary))
    for number in (0, 6, 7, 13):
        for statement in (
            f"SELECT FROM v{number} WHERE tell(note)",
            f"UPDATE v{number} SET n = n WHERE tell(note)",
        ):
            told.clear()
            views.execute(statement.encode())
            assert set(told) == {"mine"}, statement


@pytest.mark.parametrize("word", ["t", "TRUE", "'ON'", "ye", "1", '"True"'])
def test_options_of_a_view_are_booleans_however_they_are_written(views: Connection, word: str) -> None:
    views.execute("RESET ROLE")
    views.execute(f"CREATE VIEW asks WITH (security_invoker = {word}) AS SELECT id FROM row".encode())
    barrier = f"WITH (security_barrier = {word}) AS SELECT n FROM row WHERE owner = 'reader'"
    views.execute(f"CREATE VIEW border {barrier}".encode())
    views.execute("GRANT ALL ON asks, border TO reader")
    views.execute("SET LOCAL ROLE reader")
    for statement in ("SELECT id FROM asks", "DELETE FROM asks", "INSERT INTO asks VALUES (4)"):
        assert answer(views, statement) == ("42501", "permission denied for table row")
    for executor in ("index", "local"):
        views.execute(f"SET LOCAL executor = {executor}".encode())
        assert answer(views, "SELECT n FROM border WHERE 1 / (n - 101) = 1") == [(102,)]
