"""Named subscriptions through the wire: nothing is lost over crashes, and an acknowledgement commits with its work (N6)."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.engine.test_subscribe import Clients, bank, connect, run, wait_for
from tests.support.server import ServerProcess

OPTIONS = ("--flush-rows", "200", "--history-retention", "0")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("named"))
    yield running
    assert running.stop() == 0


def follow(c: psycopg.Connection[Any], copy_to: str, most: int, rng: random.Random) -> int:
    """Take some changes of ``feed`` and apply them to a table, acknowledged in the same transaction. Returns how many."""
    taken = 0
    with c.transaction():
        c.execute("DECLARE f CURSOR FOR SUBSCRIBE SUBSCRIPTION feed WITH (progress)")
        upto = None
        changes: list[tuple[int, int, int]] = []
        pending: list[tuple[int, int, int]] = []
        while taken < most:
            rows = c.execute("FETCH 50 FROM f WITH (timeout = '0 s')").fetchall()
            for ts, progressed, diff, key, balance in rows:
                if progressed:
                    upto = ts
                    changes += pending
                    pending = []
                else:
                    pending.append((diff, key, balance))
            taken += len(rows)
            if len(rows) < 50:
                break
        c.execute("CLOSE f")
        if upto is None:
            return taken
        for diff, key, balance in changes:
            c.execute(
                f"INSERT INTO {copy_to} VALUES (%s, %s, %s)"
                " ON CONFLICT (id, balance) DO UPDATE SET n = t.n + excluded.n".replace(
                    "t.n", f"{copy_to}.n"
                ),
                (key, balance, diff),
            )
        c.execute("ALTER SUBSCRIPTION feed ACKNOWLEDGE %s", (upto,))
        if rng.random() < 0.2:
            raise psycopg.Rollback
    return taken


def test_what_is_derived_is_exact_over_crashes(tmp_path: Path) -> None:
    """Transfers go on while the server is killed; the derived table ends up equal to the source, without a snapshot kept."""
    rng = random.Random(7)
    server = ServerProcess(tmp_path, *OPTIONS)
    bank(server, "source")
    with connect(server) as c:
        c.execute("CREATE TABLE derived (id int, balance int, n int, PRIMARY KEY (id, balance))")
        c.execute("CREATE SUBSCRIPTION feed FOR source")
    for _life in range(4):
        clients = Clients(server, "source", 2)
        try:
            with connect(server) as c:
                for _ in range(6):
                    follow(c, "derived", rng.randrange(1, 400), rng)
                    if rng.random() < 0.3:
                        server.sql("CHECKPOINT")
        finally:
            server.kill()
            clients.end()
        server = ServerProcess(tmp_path, *OPTIONS)
        assert server.sql("SELECT state FROM holdfast_subscriptions") == [("idle",)]
    with connect(server) as c:
        while follow(c, "derived", 10_000, rng) > 1:
            pass  # one row says how far it is, and nothing else is left
        differs = """
            (SELECT id, balance FROM derived WHERE n <> 0 EXCEPT SELECT id, balance FROM source)
            UNION ALL (SELECT id, balance FROM source EXCEPT SELECT id, balance FROM derived WHERE n = 1)"""
        assert c.execute(differs).fetchall() == []
        c.execute("DROP SUBSCRIPTION feed")
    wait_for(server, "SELECT count(*) FROM holdfast_holds WHERE holder = 'named subscription'", "0")
    assert server.stop() == 0


def test_a_reader_that_is_gone_makes_room(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TABLE r (a int)")
        c.execute("CREATE SUBSCRIPTION r FOR r WITH (snapshot = false)")
        c.execute("INSERT INTO r VALUES (1)")
    reader = connect(server)
    reader.execute("BEGIN")
    reader.execute("DECLARE f CURSOR FOR SUBSCRIBE SUBSCRIPTION r")
    assert len(reader.execute("FETCH ALL FROM f WITH (timeout = '0 s')").fetchall()) == 1
    with connect(server) as c:
        with pytest.raises(psycopg.errors.ObjectInUse):
            c.execute("DROP SUBSCRIPTION r")
        with pytest.raises(psycopg.errors.ObjectInUse):
            c.execute("SUBSCRIBE SUBSCRIPTION r")
        reader.close()
        wait_for(server, "SELECT state FROM holdfast_subscriptions WHERE name = 'r'", "idle")
        with c.cursor().copy("COPY (SUBSCRIBE SUBSCRIPTION r UP TO '100 ms') TO STDOUT") as copy:
            copy.set_types(["int8", "int8", "int4"])
            assert [row[1:] for row in copy.rows()] == [(1, 1)]
        c.execute("DROP SUBSCRIPTION r")


def test_roles(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TABLE secret (a int)")
        c.execute("CREATE ROLE eve LOGIN")
        c.execute("CREATE SUBSCRIPTION s FOR secret")
        c.execute("SET ROLE eve")
        for sql in (
            "SUBSCRIBE SUBSCRIPTION s",
            "ALTER SUBSCRIPTION s ACKNOWLEDGE now()",
            "DROP SUBSCRIPTION s",
            "CREATE SUBSCRIPTION mine FOR secret",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                c.execute(sql)
        assert c.execute("SELECT name, definition FROM holdfast_subscriptions").fetchall() == [("s", None)]
        c.execute("RESET ROLE")
        c.execute("DROP SUBSCRIPTION s")


def test_there_are_not_too_many(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TABLE many (a int)")
        for i in range(64):
            c.execute(f"CREATE SUBSCRIPTION s{i} FOR many")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
            c.execute("CREATE SUBSCRIPTION s64 FOR many")
        assert c.execute("SELECT count(*) FROM holdfast_subscriptions").fetchone() == (64,)
        for i in range(64):
            c.execute(f"DROP SUBSCRIPTION s{i}")


def test_no_role_takes_all_of_them(server: ServerProcess) -> None:
    roles = [f"subscriber{i}" for i in range(4)]
    with connect(server) as c:
        c.execute("CREATE TABLE taken (a int); GRANT SELECT ON taken TO public")
        for role in roles:
            c.execute(f"CREATE ROLE {role} LOGIN")

    def take(role: str) -> int:
        """Make as many as there may be, from several connections at once; return how many."""
        made: list[str] = []

        def work(number: int) -> None:
            with psycopg.connect(server.url.replace("postgres@", f"{role}@"), autocommit=True) as own:
                for i in range(10):
                    try:
                        own.execute(f"CREATE SUBSCRIPTION {role}_{number}_{i} FOR taken")
                        made.append(f"{role}_{number}_{i}")
                    except psycopg.errors.ConfigurationLimitExceeded:
                        return

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(made)

    assert [take(role) for role in roles] == [16, 16, 16, 8]
    with connect(server) as c:
        for i in range(8):
            c.execute(f"CREATE SUBSCRIPTION of_root{i} FOR taken")
        for (name,) in c.execute(
            "SELECT name FROM holdfast_subscriptions WHERE name ~ '^(of_root|subscriber)'"
        ).fetchall():
            c.execute(f"DROP SUBSCRIPTION {name}")


def test_two_that_make_the_same_one(server: ServerProcess) -> None:
    with connect(server) as c:
        c.execute("CREATE TABLE same (a int)")
    outcomes: list[str] = []

    def make() -> None:
        with connect(server) as c:
            try:
                c.execute("CREATE SUBSCRIPTION same FOR same")
                outcomes.append("made")
            except psycopg.Error as error:
                outcomes.append(error.sqlstate or "")

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["42710", "42710", "42710", "made"]
    assert server.sql("SELECT count(*) FROM holdfast_holds WHERE holder = 'named subscription'") == [("1",)]
    server.sql("DROP SUBSCRIPTION same")


def test_parameters(server: ServerProcess) -> None:
    """``$1`` in the query, in AS OF, UP TO and ACKNOWLEDGE, as drivers send them."""
    with connect(server) as c:
        c.execute("CREATE TABLE p (a int, b text)")
        c.execute("INSERT INTO p VALUES (1, 'x'), (2, 'y'), (3, 'z')")
        at = c.execute("SELECT current_setting('holdfast.commit_ts')::int8").fetchone()
        assert at is not None
        c.execute("UPDATE p SET b = 'w' WHERE a = 3")
        upto = c.execute("SELECT current_setting('holdfast.commit_ts')::int8").fetchone()
        assert upto is not None
        c.execute("CREATE SUBSCRIPTION p FOR p")
        wanted = "SUBSCRIBE (SELECT b FROM p WHERE a > %s) AS OF %s UP TO %s"
        rows = c.execute(wanted, (1, at[0], upto[0] + 1)).fetchall()
        assert sorted(rows) == [
            (at[0], 1, "y"), (at[0], 1, "z"), (upto[0], -1, "z"), (upto[0], 1, "w"),
        ]  # fmt: skip
        rows = c.execute(wanted, (1, str(at[0]), str(upto[0]))).fetchall()
        assert len(rows) == 2
        c.execute("ALTER SUBSCRIPTION p ACKNOWLEDGE %s", (upto[0],))
        c.execute("DROP SUBSCRIPTION p")

    async def body(connection: Any) -> None:
        found = await connection.fetch(
            "SUBSCRIBE (SELECT b FROM p WHERE a > $1) AS OF $2::int8 UP TO $3::int8", 2, at[0], upto[0] + 1
        )
        assert [tuple(r) for r in found] == [(at[0], 1, "z"), (upto[0], -1, "z"), (upto[0], 1, "w")]

    run(server, body)


def test_an_acknowledgement_counts_while_somebody_reads_of_an_earlier_one_of_that_name(
    server: ServerProcess,
) -> None:
    """Both rows are still found under the name; the position that was acknowledged is that of the new one."""
    with connect(server) as c, connect(server) as old:
        c.execute("CREATE TABLE again (a int)")
        c.execute("CREATE SUBSCRIPTION again FOR again WITH (snapshot = false)")
        old.execute("BEGIN")
        old.execute("SELECT * FROM again")
        c.execute("DROP SUBSCRIPTION again")
        c.execute("CREATE SUBSCRIPTION again FOR again WITH (snapshot = false)")
        c.execute("INSERT INTO again VALUES (1)")
        position = "SELECT position FROM holdfast_subscriptions WHERE name = 'again'"
        with c.cursor().copy("COPY (SUBSCRIBE SUBSCRIPTION again UP TO '100 ms') TO STDOUT") as copy:
            copy.set_types(["int8", "int8", "int4"])
            ((ts, _diff, _a),) = copy.rows()
        c.execute(f"ALTER SUBSCRIPTION again ACKNOWLEDGE {ts}")
        assert c.execute(position).fetchone() == (ts,)
        with c.cursor().copy("COPY (SUBSCRIBE SUBSCRIPTION again UP TO '100 ms') TO STDOUT") as copy:
            assert list(copy.rows()) == []
        old.execute("ROLLBACK")
        c.execute("DROP SUBSCRIPTION again")
