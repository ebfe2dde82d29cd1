"""Partitioned tables: what is read, who may, COPY; after a crash, in a copy of the database, in a dump; beside other sessions."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import psycopg
import pytest

from tests.engine.catalog.test_dump import PG_DUMP, PSQL, needs_pg_dump
from tests.support.server import ServerProcess

SCHEMA = """
    CREATE TABLE m (id int, at date, v text DEFAULT 'd' CHECK (v <> 'bad'), PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
    CREATE TABLE m_1 PARTITION OF m FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
    CREATE TABLE m_2 PARTITION OF m FOR VALUES FROM ('2024-02-01') TO ('2024-03-01') PARTITION BY HASH (id);
    CREATE TABLE m_2a PARTITION OF m_2 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE m_2b PARTITION OF m_2 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
    CREATE TABLE m_d PARTITION OF m DEFAULT;
    CREATE INDEX ON m (v);
"""
FILLS = """
    CREATE FUNCTION filled() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN NEW.id := coalesce(NEW.id, 70); RETURN NEW; END $$;
    CREATE TRIGGER fills BEFORE INSERT ON m FOR EACH ROW EXECUTE FUNCTION filled();
"""
Rows = list[tuple[object, ...]]


def opened(
    server: ServerProcess, database: str = "postgres", user: str = "postgres"
) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        f"host=127.0.0.1 port={server.port} user={user} dbname={database}", autocommit=True
    )


@pytest.fixture
def months(server: ServerProcess) -> ServerProcess:
    server.sql("DROP TABLE IF EXISTS m CASCADE")
    server.sql(SCHEMA)
    return server


def placed(conn: psycopg.Connection[tuple[object, ...]]) -> Rows:
    return conn.execute("SELECT tableoid::regclass::text, id, v FROM m ORDER BY id").fetchall()


def test_copy_brings_rows_to_their_partitions_and_says_which_line_has_none(months: ServerProcess) -> None:
    with opened(months) as conn:
        with conn.cursor().copy("COPY m (id, at) FROM STDIN") as copy:
            copy.write(b"1\t2024-01-05\n2\t2024-02-05\n3\t2030-01-01\n")
        assert [(row[0], row[1]) for row in placed(conn)] == [("m_1", 1), ("m_2a", 2), ("m_d", 3)]
        conn.execute("ALTER TABLE m DETACH PARTITION m_d")
        with (
            pytest.raises(psycopg.errors.CheckViolation) as caught,
            conn.cursor().copy("COPY m (id, at) FROM STDIN") as copy,
        ):
            copy.write(b"4\t2024-01-05\n5\t2031-01-01\n")
        assert caught.value.diag.context == 'COPY m, line 2: "5\t2031-01-01"'
        assert caught.value.diag.message_detail == (
            "Partition key of the failing row contains (at) = (2031-01-01)."
        )
        with (
            pytest.raises(psycopg.errors.CheckViolation) as caught,
            conn.cursor().copy("COPY m (id, at, v) FROM STDIN") as copy,
        ):
            copy.write(b"6\t2024-01-05\tgood\n7\t2024-02-05\tbad\n8\t2024-01-06\tbad\n")
        assert caught.value.diag.context == 'COPY m, line 2: "7\t2024-02-05\tbad"'
        conn.execute(FILLS)
        with (
            pytest.raises(psycopg.errors.CheckViolation) as caught,
            conn.cursor().copy("COPY m (id, at, v) FROM STDIN") as copy,
        ):
            copy.write(b"\\N\t2024-01-05\tbad but filled\n9\t2024-01-06\tgood\n\\N\t2024-01-07\tbad\n")
        assert caught.value.diag.context == 'COPY m, line 3: "\\N\t2024-01-07\tbad"'
        conn.execute("DROP FUNCTION filled CASCADE")
        with pytest.raises(psycopg.errors.WrongObjectType):
            conn.execute("COPY m TO STDOUT")
        conn.execute("DROP TABLE m_d")


@pytest.mark.parametrize("executor", ["index", "local"])
def test_executors_agree(months: ServerProcess, executor: str) -> None:
    with opened(months) as conn:
        conn.execute(
            "INSERT INTO m SELECT g, date '2023-12-20' + g, 'v' || g % 7 FROM generate_series(1, 100) g"
        )
        conn.execute(f"SET executor = {executor}".encode())
        ask = (
            "SELECT count(*), sum(id) FROM m WHERE at >= '2024-01-15' AND at < '2024-02-10'",
            "SELECT count(*), min(x.id) FROM m x JOIN m y ON y.id = x.id + 1 WHERE x.at < '2024-01-25' AND y.v = 'v3'",
            "SELECT count(*), min(id) FROM m WHERE at IN ('2024-01-05', '2024-02-05', '2024-03-05')",
            "SELECT count(*), max(id) FROM m WHERE v = 'v1' AND at < '2024-02-01'",
            "SELECT count(id), count(*) FROM ONLY m",
        )
        found = [conn.execute(sql.encode()).fetchone() for sql in ask]
        assert conn.execute("DELETE FROM ONLY m").rowcount == 0
        assert conn.execute("UPDATE ONLY m SET v = 'x' RETURNING *").fetchall() == []
    assert found == [(26, 1001), (5, 2), (3, 16), (6, 36), (0, 0)]


def test_conditions_leave_out_what_they_exclude(months: ServerProcess) -> None:
    def read(where: str) -> set[str]:
        plan = "\n".join(
            str(row[0]) for row in months.sql(f"SET executor = index; EXPLAIN SELECT * FROM m WHERE {where}")
        )
        return {name for name in ("m_1", "m_2a", "m_2b", "m_d") if name in plan}

    with opened(months) as conn:
        conn.execute("INSERT INTO m SELECT g, date '2024-01-01' + g, 'x' FROM generate_series(0, 50) g")
    for where, tables in (
        ("at = '2024-01-05'", {"m_1"}),
        ("at >= '2024-01-05' AND at < '2024-02-01'", {"m_1"}),
        ("at >= '2024-01-05' AND at <= '2024-02-01'", {"m_1", "m_2a", "m_2b"}),
        ("at > '2024-02-29'", {"m_2a", "m_2b", "m_d"}),
        ("at >= '2024-03-01'", {"m_d"}),
        ("at IS NULL", {"m_d"}),
        ("at = '2024-02-03'", {"m_2a", "m_2b"}),
        ("at = '2024-02-03' AND id = 2", {"m_2a"}),
        ("at IN ('2024-02-03', '2030-01-01') AND id = 2", {"m_2a", "m_d"}),
        ("at < '2024-01-01'", {"m_d"}),
        ("at < '2024-01-02'", {"m_1", "m_d"}),
        ("at = NULL", set()),
    ):
        assert read(where) == tables, where


def test_rights_to_the_table_are_enough(months: ServerProcess) -> None:
    months.sql(
        "DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN; GRANT SELECT, INSERT, UPDATE (v) ON m TO reader"
    )
    with opened(months, user="reader") as conn:
        conn.execute("INSERT INTO m VALUES (1, '2024-01-05', 'x'), (2, '2024-02-05', 'y')")
        assert conn.execute("SELECT count(*) FROM m").fetchone() == (2,)
        assert conn.execute("SELECT v FROM m WHERE at = '2024-01-05'").fetchone() == ("x",)
        assert conn.execute("UPDATE m SET v = 'z' WHERE id = 1").rowcount == 1
        for sql in (
            "SELECT * FROM m_1",
            "DELETE FROM m",
            "UPDATE m SET id = 3",
            "INSERT INTO m_1 VALUES (9, '2024-01-09')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(sql.encode())
    months.sql("DROP OWNED BY reader; DROP ROLE reader")


def works(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    """Use all that the catalog knows of the partitions."""
    with pytest.raises(psycopg.errors.UniqueViolation):
        conn.execute("INSERT INTO m VALUES (1, '2024-01-05', 'again')")
    with pytest.raises(psycopg.errors.CheckViolation):
        conn.execute("INSERT INTO m VALUES (9, '2024-02-05', 'bad')")
    conn.execute("INSERT INTO m VALUES (7, '2024-02-07', 'new')")
    assert conn.execute(
        "UPDATE m SET at = '2024-01-07' WHERE id = 7 RETURNING tableoid::regclass::text"
    ).fetchone() == ("m_1",)
    assert conn.execute("DELETE FROM m WHERE v = 'new'").rowcount == 1
    with pytest.raises(psycopg.errors.InvalidTableDefinition):
        conn.execute("ALTER TABLE m_1 DROP CONSTRAINT m_1_pkey")
    found = conn.execute("SELECT count(*) FROM pg_partition_tree('m_pkey')").fetchone()
    assert found == (6,)


def refers(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    """Use a foreign key to the table, and put it back."""
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        conn.execute("INSERT INTO ref VALUES (1, '2024-02-05')")
    conn.execute("INSERT INTO m VALUES (8, '2024-02-05')")
    conn.execute("INSERT INTO ref VALUES (8, '2024-02-05')")
    conn.execute("DELETE FROM m WHERE id = 8")
    assert conn.execute("SELECT count(*) FROM ref").fetchone() == (0,)


def test_they_outlive_a_crash_and_are_copied(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    with opened(server) as conn:
        conn.execute(SCHEMA.encode())
        conn.execute(
            "CREATE TABLE ref (id int, at date, FOREIGN KEY (id, at) REFERENCES m ON DELETE CASCADE)"
        )
        conn.execute(
            "INSERT INTO m VALUES (1, '2024-01-05', 'x'), (2, '2024-02-05', 'y'), (3, '2030-01-01', 'z')"
        )
        before = placed(conn)
        works(conn)
    server.kill()
    server = ServerProcess(tmp_path)
    try:
        with opened(server) as conn:
            assert placed(conn) == before
            works(conn)
            conn.execute("CREATE DATABASE other TEMPLATE postgres")
        with opened(server, "other") as conn:
            assert placed(conn) == before
            works(conn)
            refers(conn)
            conn.execute("DROP TABLE ref, m")
        with opened(server) as conn:
            refers(conn)
            assert placed(conn) == before
    finally:
        server.stop()


@needs_pg_dump
def test_a_dump_makes_the_same_again(months: ServerProcess) -> None:
    for name in ("parts_a", "parts_b"):
        months.sql(f"DROP DATABASE IF EXISTS {name}")
    dumps = []
    for name in ("parts_a", "parts_b"):
        months.sql(f"CREATE DATABASE {name}")
        with opened(months, name) as conn:
            if not dumps:
                conn.execute(SCHEMA.encode())
                conn.execute("INSERT INTO m VALUES (1, '2024-01-05', 'x'), (2, '2024-02-05', 'y')")
                conn.execute("CREATE INDEX low ON m (lower(v)) WHERE id > 0")
        where = ["-h", "127.0.0.1", "-p", str(months.port), "-U", "postgres"]
        if dumps:
            subprocess.run([PSQL, *where, "-qX", "-v", "ON_ERROR_STOP=1", name], input=dumps[0], check=True)
        dumps.append(subprocess.run([PG_DUMP, *where, name], check=True, capture_output=True).stdout)
    first, second = ([line for line in dump.splitlines() if b"restrict" not in line] for dump in dumps)
    assert first == second
    assert any(b"ATTACH PARTITION" in line for line in first)


def test_a_partition_comes_when_writers_are_done(months: ServerProcess) -> None:
    """An INSERT that has found the default partition is waited for, and the new partition is refused for its row."""
    failed: list[str | None] = []

    def attach() -> None:
        with opened(months) as other:
            try:
                other.execute(
                    "CREATE TABLE m_9 PARTITION OF m FOR VALUES FROM ('2024-09-01') TO ('2024-10-01')"
                )
            except psycopg.Error as error:
                failed.append(error.sqlstate)

    with opened(months) as conn:
        conn.execute("BEGIN")
        conn.execute("INSERT INTO m VALUES (1, '2024-09-05', 'x')")
        thread = threading.Thread(target=attach)
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        conn.execute("COMMIT")
        thread.join(10)
        assert failed == ["23514"]
        conn.execute("DELETE FROM m")
        attach()
        assert failed == ["23514"]
        conn.execute("INSERT INTO m VALUES (1, '2024-09-05', 'x')")
        assert placed(conn) == [("m_9", 1, "x")]


ROWS = "INSERT INTO m SELECT g, date '2024-01-01' + g * 7 % 100, 'v' || g % 7 FROM generate_series(1, 100) g"
NEXT = "SELECT id FROM m WHERE v = 'v3' ORDER BY at, id LIMIT 2 FOR UPDATE SKIP LOCKED"


@pytest.mark.parametrize(
    ("sql", "first", "second"),
    [
        ("SELECT id FROM m ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED", [1, 2], [3, 4]),
        ("SELECT id FROM m WHERE id > 9 ORDER BY id DESC LIMIT 40 FOR UPDATE SKIP LOCKED", [*range(100, 60, -1)], [*range(60, 20, -1)]),
        (NEXT, [87, 73], [59, 45]),
        ("SELECT id FROM m ORDER BY id OFFSET 1 LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED", [2], [4]),
        ("SELECT m.id FROM m JOIN (VALUES (5), (6)) x (n) ON n = id ORDER BY 1 FOR UPDATE OF m SKIP LOCKED", [5, 6], []),
        (f"WITH n AS MATERIALIZED ({NEXT.replace('id FROM', 'id, at FROM')}), u AS (UPDATE m SET v = 'taken' FROM n WHERE m.id = n.id AND m.at = n.at"
         " RETURNING m.id) SELECT id FROM u ORDER BY id", [73, 87], [45, 59]),
    ],
)  # fmt: skip
def test_workers_skip_what_others_have_and_lock_no_more_than_they_take(
    months: ServerProcess, sql: str, first: list[int], second: list[int]
) -> None:
    with opened(months) as one, opened(months) as two:
        one.execute(ROWS.encode())
        two.execute("SET lock_timeout = '2s'")
        with one.transaction():
            assert [row[0] for row in one.execute(sql.encode())] == first
            assert [row[0] for row in two.execute(sql.encode())] == second


@pytest.mark.parametrize("divided", ["", "PARTITION BY LIST (queue)", "PARTITION BY HASH (id)"])
def test_workers_of_one_queue_lock_the_keys_of_their_jobs(server: ServerProcess, divided: str) -> None:
    """Not the range of keys of the queue, by which the table to be changed could be reached, too."""
    take = """WITH next AS (SELECT id FROM job WHERE queue = %s AND state = 'new' ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED)
        UPDATE job j SET state = 'active' FROM next WHERE queue = %s AND j.id = next.id RETURNING j.id"""
    with opened(server) as one, opened(server) as two:
        one.execute("DROP TABLE IF EXISTS job")
        one.execute(
            f"CREATE TABLE job (queue text, id int, state text, PRIMARY KEY (queue, id)) {divided}".encode()
        )
        if "LIST" in divided:
            one.execute("CREATE TABLE job_a PARTITION OF job FOR VALUES IN ('a')")
            one.execute("CREATE TABLE job_b PARTITION OF job DEFAULT")
        for n in range(3 if "HASH" in divided else 0):
            one.execute(
                f"CREATE TABLE job_{n} PARTITION OF job FOR VALUES WITH (MODULUS 3, REMAINDER {n})".encode()
            )
        one.execute(
            "INSERT INTO job SELECT q, g, 'new' FROM generate_series(1, 6) g, (VALUES ('a'), ('b')) x (q)"
        )
        two.execute("SET lock_timeout = '2s'")
        with one.transaction():
            assert sorted(one.execute(take, ("a", "a"))) == [(1,), (2,)]
            assert sorted(two.execute(take, ("a", "a"))) == [(3,), (4,)]
        assert sorted(two.execute(take, ("a", "a"))) == [(5,), (6,)]
        one.execute("DROP TABLE job")


def test_rows_of_several_partitions_are_locked_where_the_clause_stands(months: ServerProcess) -> None:
    """Behind the join and the limit, not all that are read for them."""
    with opened(months) as one, opened(months) as two:
        one.execute(ROWS.encode())
        with one.transaction():
            one.execute("SELECT m.id FROM m JOIN (VALUES (5), (6)) x (n) ON n = id FOR UPDATE")
            free = "SELECT id FROM m WHERE v = '%s' AND id IN (4, 5, 6, 7) ORDER BY id FOR UPDATE NOWAIT"
            assert two.execute((free % "v4").encode()).fetchall() == [(4,)]
            with pytest.raises(psycopg.errors.LockNotAvailable):
                two.execute((free % "v5").encode())
            assert two.execute("UPDATE m SET v = 'x' WHERE id = 7").rowcount == 1
        with one.transaction():
            one.execute("SELECT id FROM m ORDER BY v, id LIMIT 1 FOR UPDATE")  # 14: v0
            assert len(two.execute("SELECT id FROM m WHERE v = 'v1' FOR UPDATE NOWAIT").fetchall()) == 15
            with pytest.raises(psycopg.errors.LockNotAvailable):
                two.execute("SELECT id FROM m WHERE id = 14 FOR UPDATE NOWAIT")


@pytest.mark.parametrize(
    ("where", "values", "partitions"),
    [
        ("id = %s AND at = %s", (1, "2024-01-08"), {"m_1"}),
        ("id = %s AND at = %s", (1, "2030-01-08"), {"m_d"}),
        ("v = %s AND at >= %s AND at < '2024-02-20'", ("v3", "2024-02-03"), {"m_2a", "m_2b"}),
        ("v = %s AND at < now() AND at >= %s", ("v3", "2024-03-03"), {"m_d"}),
        ("v = %s AND at = ANY (%s::date[])", ("v3", ["2024-01-10", None, "2024-03-27"]), {"m_1", "m_d"}),
        ("id = %s AND at = (%s::date + 40)", (6, "2024-01-01"), {"m_2b"}),
    ],
)
def test_values_leave_out_what_they_exclude(
    months: ServerProcess, where: str, values: tuple[object, ...], partitions: set[str]
) -> None:
    """What FOR UPDATE has locked of keys and rows tells which partitions were asked."""
    with opened(months) as one, opened(months) as two:
        one.execute(ROWS.encode())
        for prepare in (False, True):
            with one.transaction():
                one.execute(f"SELECT id FROM m WHERE {where} FOR UPDATE".encode(), values, prepare=prepare)
                found = two.execute(
                    "SELECT DISTINCT relation::regclass::text FROM pg_locks WHERE mode LIKE '%Exclusive%'"
                    " AND relation::regclass::text LIKE 'm_%'"
                )
                assert {row[0] for row in found} == partitions, prepare


def test_rows_joined_before_lead_to_partitions_by_key(months: ServerProcess) -> None:
    with opened(months) as one, opened(months) as two:
        one.execute(ROWS.encode())
        two.execute("SET lock_timeout = '2s'")
        join = "FROM (VALUES (1, date '2024-01-08'), (6, '2024-02-12')) x (n, day) WHERE id = n AND at = day"
        other = "FROM (VALUES (2, date '2024-01-15'), (8, '2024-02-26')) x (n, day) WHERE id = n AND at = day"
        with one.transaction():
            assert one.execute(f"UPDATE m SET v = 'one' {join}".encode()).rowcount == 2
            with two.transaction():  # other keys of the same partitions: nobody waits
                assert two.execute(f"UPDATE m SET v = 'two' {other}".encode()).rowcount == 2
        read = one.execute("SELECT id, v FROM m WHERE id IN (1, 2, 6, 8) ORDER BY id")
        assert read.fetchall() == [(1, "one"), (2, "two"), (6, "one"), (8, "two")]


def test_many_rows_for_one_partition_are_returned(months: ServerProcess) -> None:
    with opened(months) as conn:
        made = conn.execute(
            "INSERT INTO m SELECT n, '2024-01-05' FROM generate_series(1, 20001) n RETURNING id, tableoid::regclass::text"
        )
        rows = made.fetchall()
    assert (len(rows), rows[0], rows[-1]) == (20001, (1, "m_1"), (20001, "m_1"))


def test_partitions_that_are_not_alike_are_read_by_what_they_have(months: ServerProcess) -> None:
    with opened(months) as conn:
        conn.execute(
            "CREATE TABLE m_3 (gone int, v text DEFAULT 'd', id int, at date NOT NULL, PRIMARY KEY (id, at),"
            " CONSTRAINT m_v_check CHECK (v <> 'bad'))"
        )
        conn.execute("ALTER TABLE m_3 DROP COLUMN gone")
        conn.execute("ALTER TABLE m ATTACH PARTITION m_3 FOR VALUES FROM ('2024-03-01') TO ('2024-04-01')")
        conn.execute("CREATE TABLE m_4 PARTITION OF m FOR VALUES FROM ('2024-04-01') TO ('2024-05-01')")
        conn.execute("CREATE INDEX m_4_id ON m_4 (id) WHERE id > 1")
        conn.execute(
            "INSERT INTO m SELECT n, date '2024-01-15' + n * 15, 'v' || n FROM generate_series(0, 7) n"
        )
        chosen = [("m_2a", 2, "v2"), ("m_3", 4, "v4"), ("m_4", 6, "v6")]
        read = "SELECT tableoid::regclass::text, id, v FROM m WHERE"
        assert conn.execute(f"{read} id IN (2, 4, 6) ORDER BY id".encode()).fetchall() == chosen
        assert (
            conn.execute(f"{read} v IN ('v2', 'v4', 'v6') ORDER BY v LIMIT 3".encode()).fetchall() == chosen
        )
        conn.execute("UPDATE m SET v = 'w' || id WHERE id > 1 AND v < 'v7'")
        rows = conn.execute(f"{read} id > 2 ORDER BY id".encode()).fetchall()
        assert [row[2] for row in rows] == ["w3", "w4", "w5", "w6", "v7"]


@pytest.mark.parametrize(
    ("sql", "construct"),
    [
        ("SUBSCRIBE m", "SUBSCRIBE to the partitioned table"),
        ("CREATE TABLE n (a int) INHERITS (m)", "INHERITS"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused_by_name(months: ServerProcess, sql: str, construct: str) -> None:
    with opened(months) as conn, pytest.raises(psycopg.errors.FeatureNotSupported, match=construct):
        conn.execute(sql.encode())


def test_parameters_that_leave_few_rows_lead_to_the_row_executor(server: ServerProcess) -> None:
    server.sql("DROP TABLE IF EXISTS wide CASCADE")
    server.sql("CREATE TABLE wide (n int, v text) PARTITION BY RANGE (n)")
    for low in (0, 10_000, 20_000):
        server.sql(f"CREATE TABLE wide_{low} PARTITION OF wide FOR VALUES FROM ({low}) TO ({low + 10_000})")
    server.sql("INSERT INTO wide SELECT g, 'x' FROM generate_series(0, 9999) g")
    server.sql("INSERT INTO wide VALUES (10000, 'a'), (20000, 'b')")
    with opened(server) as conn:
        conn.execute("PREPARE above AS SELECT count(*) FROM wide WHERE n >= $1")
        conn.execute("PREPARE twice AS SELECT (SELECT count(*) FROM wide WHERE n >= $1) + count(*) FROM wide")

        def route(statement: str) -> str:
            lines = conn.execute(f"EXPLAIN (COSTS off) {statement}").fetchall()
            return next(str(line) for (line,) in lines if str(line).startswith("Reason"))

        assert route("EXECUTE above (10000)").startswith("Reason: 2 rows in 1 tables of 3 partitions")
        assert "10002 rows" in route("EXECUTE above (0)")
        assert "20004 rows" in route("EXECUTE twice (10000)")  # all partitions are read by the other part
        assert conn.execute("EXECUTE above (10000)").fetchall() == [(2,)]
        assert conn.execute("EXECUTE above (0)").fetchall() == [(10002,)]
        assert conn.execute("EXECUTE above (NULL)").fetchall() == [(0,)]
    server.sql("DROP TABLE wide")


def test_a_row_that_moves_and_is_not_let_in_is_gone_for_foreign_keys(server: ServerProcess) -> None:
    """PostgreSQL 15 leaves the referencing row behind."""
    with opened(server) as conn:
        conn.execute("""
            CREATE TABLE k (a int PRIMARY KEY) PARTITION BY RANGE (a);
            CREATE TABLE k1 PARTITION OF k FOR VALUES FROM (0) TO (10);
            CREATE TABLE k2 PARTITION OF k FOR VALUES FROM (10) TO (20);
            CREATE TABLE kr (a int REFERENCES k ON DELETE CASCADE ON UPDATE CASCADE);
            CREATE TABLE kn (a int REFERENCES k);
            INSERT INTO k VALUES (1), (2), (3);
            INSERT INTO kr VALUES (1), (2);
            INSERT INTO kn VALUES (3);
            CREATE FUNCTION not_in() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
            CREATE TRIGGER not_in BEFORE INSERT ON k2 FOR EACH ROW EXECUTE FUNCTION not_in();
            UPDATE k SET a = 12 WHERE a = 2;
        """)
        assert conn.execute("SELECT a FROM kr").fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            conn.execute("UPDATE k SET a = 13 WHERE a = 3")
        assert conn.execute("SELECT a FROM k ORDER BY a").fetchall() == [(1,), (3,)]
        conn.execute("DROP TABLE kn, kr, k; DROP FUNCTION not_in")
