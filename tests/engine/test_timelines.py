"""Timelines through the server: an oracle each, one in a transaction, the catalog in all of them (A9, A12, U13)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.server import ServerProcess

Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of its own: what others leave in the shared one has names that are used here too."""
    process = ServerProcess(tmp_path_factory.mktemp("timelines") / "data")
    yield process
    assert process.stop() == 0


def connect(server: ServerProcess) -> Connection:
    return psycopg.connect(server.url, autocommit=True)


def commit_ts(connection: Connection) -> int:
    value = connection.info.parameter_status("holdfast.commit_ts")
    assert value is not None
    return int(value)


def refused(connection: Connection, sql: str) -> psycopg.errors.Diagnostic:
    with pytest.raises(psycopg.Error) as error:
        connection.execute(sql)
    return error.value.diag


def value(connection: Connection, sql: str) -> object:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]


def oracle(connection: Connection, timeline: str) -> tuple[int, int]:
    sql = "SELECT read_ts, write_ts FROM holdfast_oracle WHERE timeline = %s"
    row = connection.execute(sql, (timeline,)).fetchone()
    assert row is not None
    read_ts, write_ts = row
    assert isinstance(read_ts, int)
    assert isinstance(write_ts, int)
    return read_ts, write_ts


def test_a_table_lives_in_the_timeline_it_was_made_in(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TIMELINE sensors")
        c.execute(
            "CREATE TABLE reading (id int PRIMARY KEY, v int) WITH (timeline = 'sensors', fillfactor = 70)"
        )
        c.execute("CREATE TABLE plain (id int PRIMARY KEY, v int)")
        where = dict(c.execute("SELECT relname, timeline FROM holdfast_shards").fetchall())
        assert where["reading"] == "sensors"
        assert where["plain"] == "epoch_ms"
        assert value(c, "SELECT reloptions FROM pg_class WHERE relname = 'reading'") == [
            "timeline=sensors",
            "fillfactor=70",
        ]
        shards = dict(c.execute("SELECT timeline, shards FROM holdfast_timelines").fetchall())
        assert shards["sensors"] == 1
        before = oracle(c, "epoch_ms"), oracle(c, "sensors")
        c.execute("INSERT INTO reading VALUES (1, 10), (2, 20)")
        first = commit_ts(c)
        after = oracle(c, "epoch_ms"), oracle(c, "sensors")
        assert after[0][0] == before[0][0], "a commit in one timeline is none in another"
        assert after[1][0] == first > before[1][0]
        c.execute("INSERT INTO plain VALUES (1, 1)")
        assert oracle(c, "sensors")[0] == first
        assert oracle(c, "epoch_ms")[0] == commit_ts(c)
        for executor in ("auto", "index", "local"):
            c.execute(f"SET executor = {executor}")
            assert c.execute("SELECT * FROM reading ORDER BY id").fetchall() == [(1, 10), (2, 20)]
            assert c.execute("SELECT v FROM reading WHERE id = 2").fetchall() == [(20,)]
        c.execute("RESET executor")
        c.execute("UPDATE reading SET v = v + 1 WHERE id = 1")
        c.execute("DELETE FROM reading WHERE v = 20")
        assert c.execute("TABLE reading").fetchall() == [(1, 11)]
        old = f"SELECT v FROM reading AS OF SYSTEM TIME {first} WHERE id = 1"
        assert c.execute(old).fetchall() == [(10,)]
        c.execute("VACUUM reading")
        c.execute("ALTER TABLE reading ADD COLUMN w text DEFAULT 'w'")
        c.execute("ALTER TABLE reading ALTER COLUMN v TYPE bigint")
        c.execute("CREATE INDEX ON reading (v)")
        assert c.execute("SELECT * FROM reading WHERE v = 11").fetchall() == [(1, 11, "w")]
        assert c.execute(old).fetchall() == [(10,)], "the catalog of then has the table of then"
        c.execute("TRUNCATE reading, plain")
        assert c.execute("TABLE reading").fetchall() == []
        c.execute("DROP TABLE reading, plain")
        c.execute("DROP TIMELINE sensors")
        assert refused(c, old).sqlstate == "42704"


def test_a_statement_over_two_timelines_is_refused_by_their_names(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TIMELINE other")
        c.execute("CREATE TABLE here (id int PRIMARY KEY)")
        c.execute("CREATE VIEW of_here AS SELECT id FROM here")
        c.execute("CREATE TABLE there (id int PRIMARY KEY) WITH (timeline = other)")
        for sql in (
            "SELECT * FROM here JOIN there USING (id)",
            "SELECT * FROM of_here, there",
            "SELECT (SELECT count(*) FROM there) FROM here",
            "INSERT INTO here SELECT id FROM there",
            "INSERT INTO there SELECT id FROM of_here",
            "UPDATE here SET id = id + 1 WHERE id IN (SELECT id FROM there)",
            "DELETE FROM there USING here WHERE here.id = there.id",
            "CREATE VIEW both_of_them AS SELECT * FROM here UNION ALL SELECT * FROM there",
            "CREATE TABLE copied WITH (timeline = other) AS SELECT * FROM here",
            "CREATE TABLE copied AS SELECT * FROM there",
            "CREATE TABLE child (id int REFERENCES here) WITH (timeline = other)",
            "ALTER TABLE there ADD FOREIGN KEY (id) REFERENCES here",
            "EXPLAIN SELECT * FROM here, there",
            "COPY (SELECT * FROM here, there) TO STDOUT",
            "SUBSCRIBE (SELECT here.id FROM here, there)",
            "PREPARE crossing AS SELECT * FROM here, there",
        ):
            found = refused(c, sql)
            assert found.sqlstate == "0A000", sql
            said = f"{found.message_primary} {found.message_detail}"
            assert '"other"' in said, sql
            assert '"epoch_ms"' in said, sql
            assert "public.here" in said or "of_here" in said or "copied" in said or "child" in said, sql
        assert refused(c, "ALTER TABLE here SET (timeline = other)").sqlstate == "0A000"
        assert refused(c, "ALTER TABLE there RESET (timeline)").sqlstate == "0A000"
        assert refused(c, "CREATE TABLE nowhere (a int) WITH (timeline = nothing)").sqlstate == "42704"
        assert refused(c, "CREATE TABLE nowhere (a int) WITH (timeline)").sqlstate == "22023"
        assert refused(c, "DROP TIMELINE other").sqlstate == "2BP01"
        assert refused(c, "DROP TIMELINE epoch_ms").sqlstate == "2BP01"
        assert refused(c, "DROP TIMELINE other CASCADE").sqlstate == "0A000"
        assert refused(c, "CREATE TIMELINE other").sqlstate == "42710"
        assert refused(c, "DROP TIMELINE nothing").sqlstate == "42704"
        c.execute("CREATE TIMELINE IF NOT EXISTS other")
        c.execute("DROP TIMELINE IF EXISTS nothing")
        assert refused(c, "SELECT * FROM here JOIN there USING (id)").sqlstate == "0A000"
        c.execute("DROP TABLE here, there CASCADE")
        c.execute("DROP TIMELINE other")


def test_a_transaction_keeps_to_the_timeline_of_its_first_table(server: ServerProcess) -> None:
    with connect(server) as c, connect(server) as d:
        c.execute("CREATE TIMELINE apart")
        c.execute("CREATE TABLE here (id int PRIMARY KEY)")
        c.execute("CREATE TABLE there (id int PRIMARY KEY) WITH (timeline = apart)")
        c.execute("INSERT INTO there VALUES (1)")
        for first, second in (
            ("SELECT * FROM here", "SELECT * FROM there"),
            ("SELECT * FROM here WHERE id = 1", "INSERT INTO there VALUES (5)"),
            ("INSERT INTO there VALUES (6)", "SELECT * FROM here WHERE id = 6"),
            ("INSERT INTO here VALUES (7)", "INSERT INTO there VALUES (7)"),
            ("LOCK TABLE there", "DELETE FROM here"),
        ):
            for _again in range(2):  # with and without a plan that was made before
                c.execute("BEGIN")
                c.execute("SELECT count(*) FROM pg_class")
                c.execute(first)
                found = refused(c, second)
                assert found.sqlstate == "25000", (first, second)
                said = f"{found.message_primary} {found.message_detail}"
                assert all(w in said for w in ('"apart"', '"epoch_ms"', "public.here", "public.there")), said
                c.execute("ROLLBACK")
        assert c.execute("SELECT * FROM there").fetchall() == [(1,)]
        # what is settled by the first table is read as of the first statement
        c.execute("BEGIN")
        before = value(c, "SELECT count(*) FROM pg_class")
        d.execute("INSERT INTO there VALUES (2)")
        d.execute("CREATE TABLE later (id int) WITH (timeline = apart)")
        assert c.execute("SELECT * FROM there").fetchall() == [(1,)]
        assert value(c, "SELECT count(*) FROM pg_class") == before
        assert refused(c, "SELECT * FROM later").sqlstate == "42P01"
        c.execute("ROLLBACK")
        c.execute("BEGIN")
        c.execute("CREATE TABLE made (id int) WITH (timeline = apart)")
        c.execute("INSERT INTO made SELECT id FROM there")
        c.execute("ALTER TABLE here ADD COLUMN n int")  # a definition is common to all timelines
        c.execute("COMMIT")
        assert c.execute("SELECT * FROM made ORDER BY 1").fetchall() == [(1,), (2,)]
        assert c.execute("SELECT n FROM here").fetchall() == []
        lines = [line for (line,) in c.execute("EXPLAIN (TIMESTAMP) SELECT * FROM there").fetchall()]
        assert "Timeline: apart" in lines
        c.execute("DROP TABLE here, there, made, later")
        c.execute("DROP TIMELINE apart")


def test_a_timeline_comes_and_goes_with_its_transaction(server: ServerProcess) -> None:
    with connect(server) as c, connect(server) as d:
        for end in ("ROLLBACK", "COMMIT"):
            c.execute("BEGIN")
            c.execute("CREATE TIMELINE brief")
            c.execute("CREATE TABLE in_it (a int) WITH (timeline = brief)")
            c.execute("INSERT INTO in_it VALUES (1)")
            assert c.execute("SELECT * FROM in_it").fetchall() == [(1,)]
            c.execute(end)
            names = [name for (name,) in d.execute("SELECT timeline FROM holdfast_timelines").fetchall()]
            assert ("brief" in names) == (end == "COMMIT")
        # dropped and made anew, in one transaction and in two
        d.execute("BEGIN")
        assert d.execute("SELECT * FROM in_it").fetchall() == [(1,)]
        c.execute("BEGIN")
        c.execute("DROP TABLE in_it")
        c.execute("DROP TIMELINE brief")
        c.execute("CREATE TIMELINE brief")
        c.execute("COMMIT")
        c.execute("DROP TIMELINE brief")
        assert d.execute("SELECT * FROM in_it").fetchall() == [(1,)], "who reads in it goes on"
        d.execute("COMMIT")
        assert refused(d, "SELECT * FROM in_it").sqlstate == "42P01"
        c.execute("CREATE TIMELINE brief")
        c.execute("CREATE TABLE in_it (a int) WITH (timeline = brief)")
        assert c.execute("SELECT * FROM in_it").fetchall() == []
        c.execute("DROP TABLE in_it")
        c.execute("DROP TIMELINE brief")


def test_snapshots_subscriptions_and_levels_are_of_a_timeline(server: ServerProcess) -> None:
    with connect(server) as c, connect(server) as d:
        c.execute("CREATE TIMELINE side")
        c.execute("CREATE TABLE here (id int PRIMARY KEY)")
        c.execute("CREATE TABLE there (id int PRIMARY KEY) WITH (timeline = side)")
        c.execute("INSERT INTO there VALUES (1)")
        first = commit_ts(c)
        # a snapshot exported before anything is read may be used in any timeline
        c.execute("BEGIN")
        snapshot = value(c, "SELECT pg_export_snapshot()")
        d.execute("INSERT INTO there VALUES (2)")
        d.execute("INSERT INTO here VALUES (2)")
        second = commit_ts(d)
        for table, rows in (("there", [(1,)]), ("here", [])):
            d.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            d.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
            assert d.execute(f"TABLE {table}").fetchall() == rows
            d.execute("ROLLBACK")
        assert c.execute("TABLE there").fetchall() == [(1,)]
        later = value(c, "SELECT pg_export_snapshot()")
        d.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        d.execute(f"SET TRANSACTION SNAPSHOT '{later}'")
        assert refused(d, "TABLE here").sqlstate == "25000"
        d.execute("ROLLBACK")
        c.execute("ROLLBACK")
        # a token of one timeline, demanded in another, is only a time
        d.execute(f"SET min_read_ts = {second}")
        assert d.execute("TABLE there").fetchall() == [(1,), (2,)]
        d.execute("RESET min_read_ts")
        for level in ("session", "serializable", "strict"):
            d.execute(f"SET consistency = {level}")
            assert d.execute("TABLE there").fetchall() == [(1,), (2,)]
        # the past of one timeline in a block, which any table may settle
        d.execute(f"BEGIN AS OF SYSTEM TIME {first}")
        assert value(d, "SELECT 1") == 1
        assert d.execute("TABLE there").fetchall() == [(1,)]
        d.execute("COMMIT")
        d.execute(f"BEGIN AS OF SYSTEM TIME {second}")
        assert d.execute("TABLE there").fetchall() == [(1,), (2,)]
        assert refused(d, "TABLE here").sqlstate == "25000"
        d.execute("ROLLBACK")
        # an idle timeline is readable above its newest commit, too, once the clock is there
        above = second + (1 << 16)
        assert value(d, f"SELECT count(*) FROM there AS OF SYSTEM TIME {above}") == 2
        d.execute("BEGIN")
        d.execute(f"DECLARE s CURSOR FOR SUBSCRIBE there AS OF {first} WITH (snapshot = false)")
        [(ts, diff, row)] = d.execute("FETCH 1 s WITH (timeout = '10 s')").fetchall()
        assert isinstance(ts, int)
        assert (ts > first, diff, row) == (True, 1, 2)
        d.execute("ROLLBACK")
        d.execute("BEGIN")
        d.execute("DECLARE s CURSOR FOR SUBSCRIBE (SELECT count(*) FROM there)")
        assert [row[1:] for row in d.execute("FETCH 1 s WITH (timeout = '10 s')").fetchall()] == [(1, 2)]
        c.execute("INSERT INTO here VALUES (9)")
        c.execute("INSERT INTO there VALUES (9)")
        got: list[tuple[object, ...]] = []
        while len(got) < 2:
            got += d.execute("FETCH 2 s WITH (timeout = '10 s')").fetchall()
        assert [row[0] for row in got] == [commit_ts(c)] * 2
        assert sorted(row[1:] for row in got) == [(-1, 2), (1, 3)]
        d.execute("ROLLBACK")
        c.execute("DROP TABLE here, there")
        c.execute("DROP TIMELINE side")


def test_only_superusers_make_timelines(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE ROLE clerk LOGIN")
        c.execute("CREATE TIMELINE theirs")
        c.execute("SET ROLE clerk")
        assert refused(c, "CREATE TIMELINE mine").sqlstate == "42501"
        assert refused(c, "DROP TIMELINE theirs").sqlstate == "42501"
        c.execute("CREATE TEMP TABLE notes (a int) WITH (timeline = theirs)")
        c.execute("INSERT INTO notes VALUES (1)")
        c.execute("DROP TABLE notes")
        c.execute("RESET ROLE")
        c.execute("DROP TIMELINE theirs")
        c.execute("DROP ROLE clerk")


def test_readers_of_one_timeline_keep_nothing_of_another(server: ServerProcess) -> None:
    with connect(server) as c, connect(server) as d:
        c.execute("CREATE TIMELINE slow")
        c.execute("CREATE TABLE there (id int PRIMARY KEY) WITH (timeline = slow)")
        d.execute("BEGIN")
        d.execute("TABLE there")
        holders = c.execute(
            "SELECT timeline FROM holdfast_holds WHERE pid = %s", (d.info.backend_pid,)
        ).fetchall()
        assert holders == [("slow",)]
        [(timeline,)] = c.execute(
            "SELECT timeline FROM holdfast_transactions WHERE pid = %s", (d.info.backend_pid,)
        ).fetchall()
        assert timeline == "slow"
        d.execute("COMMIT")
        c.execute("DROP TABLE there")
        c.execute("DROP TIMELINE slow")


def test_both_timelines_come_back_after_a_crash(tmp_path: Path) -> None:
    """Everything acknowledged is there, timestamps go on above all of before, and what was half made is gone."""
    server = ServerProcess(tmp_path / "data")
    try:
        with connect(server) as c:
            c.execute("CREATE TIMELINE one")
            c.execute("CREATE TIMELINE gone")
            c.execute("CREATE TABLE a (id int PRIMARY KEY) WITH (timeline = one)")
            c.execute("CREATE TABLE b (id int PRIMARY KEY)")
            c.execute("CREATE TABLE g (id int PRIMARY KEY) WITH (timeline = gone)")
            c.execute("INSERT INTO g VALUES (1)")
        newest = {"one": 0, "epoch_ms": 0}
        for life in range(3):
            c = connect(server)
            for number in range(5):
                c.execute("INSERT INTO a VALUES (%s)", (life * 10 + number,))
                assert commit_ts(c) > newest["one"]
                newest["one"] = commit_ts(c)
                if number % 2 == 0:
                    c.execute("INSERT INTO b VALUES (%s)", (life * 10 + number,))
                    assert commit_ts(c) > newest["epoch_ms"]
                    newest["epoch_ms"] = commit_ts(c)
            if life == 1:
                c.execute("VACUUM")
                c.execute("DROP TABLE g")
                c.execute("DROP TIMELINE gone")
            c.execute("BEGIN")
            c.execute("CREATE TIMELINE half")
            c.execute("CREATE TABLE h (a int) WITH (timeline = half)")
            server.kill()
            c.close()
            server = ServerProcess(tmp_path / "data")
            with connect(server) as c:
                assert oracle(c, "one")[0] >= newest["one"]
                assert oracle(c, "epoch_ms")[0] >= newest["epoch_ms"]
                names = {name for (name,) in c.execute("SELECT timeline FROM holdfast_timelines").fetchall()}
                assert names == {"epoch_ms", "one"} | ({"gone"} if life == 0 else set())
                assert value(c, "SELECT count(*) FROM a") == 5 * (life + 1)
                assert value(c, "SELECT count(*) FROM b") == 3 * (life + 1)
                at = f"SELECT count(*) FROM a AS OF SYSTEM TIME {newest['one']}"
                assert value(c, at) == 5 * (life + 1)
                if life == 0:
                    assert c.execute("TABLE g").fetchall() == [(1,)]
    finally:
        server.stop()


def test_a_named_subscription_goes_on_in_its_timeline(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        with connect(server) as c:
            c.execute("CREATE TIMELINE one")
            c.execute("CREATE TABLE a (id int PRIMARY KEY) WITH (timeline = one)")
            c.execute("CREATE TABLE b (id int)")
            c.execute("INSERT INTO a VALUES (1)")
            c.execute("CREATE SUBSCRIPTION feed FOR a WITH (snapshot = false)")
            c.execute("INSERT INTO a VALUES (2)")
            first = commit_ts(c)
            c.execute("INSERT INTO a VALUES (3)")
            c.execute("INSERT INTO b SELECT i FROM generate_series(1, 50) i")
            assert refused(c, "CREATE SUBSCRIPTION both FOR (SELECT a.id FROM a, b)").sqlstate == "0A000"
            c.execute("VACUUM")
        server.kill()
        server = ServerProcess(tmp_path / "data")
        with connect(server) as c:
            for until in ((2, 3), (3,)):
                c.execute("BEGIN")
                c.execute("DECLARE s CURSOR FOR SUBSCRIBE SUBSCRIPTION feed")
                got: list[tuple[object, ...]] = []
                while len(got) < len(until):
                    got += c.execute("FETCH 10 s WITH (timeout = '10 s')").fetchall()
                assert [row[-1] for row in got] == list(until)
                c.execute("ROLLBACK")
                c.execute(f"ALTER SUBSCRIPTION feed ACKNOWLEDGE {first}")
            holders = c.execute("SELECT timeline FROM holdfast_holds WHERE ts = %s", (first,)).fetchall()
            assert holders == [("one",)]
            c.execute("DROP TABLE a")
            assert refused(c, "DROP TIMELINE one").sqlstate == "2BP01"
            c.execute("DROP SUBSCRIPTION feed")
            c.execute("DROP TIMELINE one")
    finally:
        server.stop()


def test_constraints_and_copies_within_a_timeline(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TIMELINE side")
        c.execute("CREATE TABLE p (id int PRIMARY KEY) WITH (timeline = side)")
        c.execute("CREATE TABLE f (id int REFERENCES p ON DELETE CASCADE) WITH (timeline = side)")
        c.execute("INSERT INTO p VALUES (1), (2)")
        c.execute("INSERT INTO f VALUES (1), (2), (2)")
        then = commit_ts(c)
        assert refused(c, "INSERT INTO f VALUES (3)").sqlstate == "23503"
        c.execute("DELETE FROM p WHERE id = 2")
        assert c.execute("TABLE f").fetchall() == [(1,)]
        c.execute("ALTER TABLE f ADD CHECK (id < 10) NOT VALID")
        c.execute("ALTER TABLE f VALIDATE CONSTRAINT f_id_check")
        c.execute("CREATE TABLE old WITH (timeline = side) AS SELECT * FROM f AS OF SYSTEM TIME " + str(then))
        assert value(c, "SELECT count(*) FROM old") == 3
        with c.cursor().copy("COPY old FROM STDIN") as copy:
            copy.write("".join(f"{i}\n" for i in range(30_000)))
        assert value(c, "SELECT count(*) FROM old") == 30_003
        assert refused(c, "DELETE FROM old USING plain_missing").sqlstate == "42P01"
        c.execute("DROP TABLE p, f, old")
        c.execute("DROP TIMELINE side")


def test_writers_of_two_timelines_beside_definitions(server: ServerProcess) -> None:
    """Commits of each timeline come in order of their timestamps, whatever happens in the other and in the catalog."""
    with connect(server) as c:
        c.execute("CREATE TIMELINE busy")
        c.execute("CREATE TABLE x (id int PRIMARY KEY, n int) WITH (timeline = busy)")
        c.execute("CREATE TABLE y (id int PRIMARY KEY, n int)")
        for table in ("x", "y"):
            c.execute(f"INSERT INTO {table} SELECT i, 0 FROM generate_series(1, 4) i")

    async def write(table: str, client: int) -> list[int]:
        connection = await psycopg.AsyncConnection.connect(server.url, autocommit=True)
        seen = []
        for turn in range(40):
            await connection.execute(f"UPDATE {table} SET n = n + 1 WHERE id = {1 + (turn + client) % 4}")
            seen.append(int(connection.info.parameter_status("holdfast.commit_ts") or 0))
        await connection.close()
        return seen

    async def define() -> list[int]:
        connection = await psycopg.AsyncConnection.connect(server.url, autocommit=True)
        seen = []
        for turn in range(15):
            await connection.execute(
                f"CREATE TABLE d{turn} (a int) WITH (timeline = {('busy', 'epoch_ms')[turn % 2]})"
            )
            seen.append(int(connection.info.parameter_status("holdfast.commit_ts") or 0))
            await connection.execute(f"DROP TABLE d{turn}")
        await connection.close()
        return seen

    async def everything() -> list[list[int]]:
        return await asyncio.gather(write("x", 0), write("x", 1), write("y", 0), write("y", 1), define())

    x, x2, y, y2, defined = asyncio.run(everything())
    for seen in (x, x2, y, y2, defined):
        assert seen == sorted(set(seen))
    assert len({*x, *x2}) == len({*y, *y2}) == 80, "each commit of a timeline has a timestamp of its own"
    assert not set(defined) & {*x, *x2, *y, *y2}, "a definition has one that no timeline uses otherwise"
    with connect(server) as c:
        assert value(c, "SELECT sum(n) FROM x") == value(c, "SELECT sum(n) FROM y") == 80
        for table, stamps in (("x", sorted([*x, *x2])), ("y", sorted([*y, *y2]))):
            for count in (1, 40, 80):
                at = f"SELECT sum(n) FROM {table} AS OF SYSTEM TIME {stamps[count - 1]}"
                assert value(c, at) == count
        c.execute("DROP TABLE x, y")
        c.execute("DROP TIMELINE busy")
