"""What a session keeps: prepared statements, portals, cursors, savepoints, channels, locks, temporary tables. And queries of catalogs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from tests.hostile.row import Row
from tests.hostile.talk import SYNC, Talk, bind, execute, parse

BOUNDED = ("53400", "54000", "53200")
"""What a flood of what a session keeps ends with, if it does not fit."""

FLOOD_S: Final = 20.0
"""How long a flood goes on that is not refused: a million small statements take ten minutes, and show no more than the first."""


def _starts(n: int, at_once: int) -> Iterator[int]:
    """Yield where each batch of n things starts, until ``FLOOD_S`` are over."""
    end = time.monotonic() + FLOOD_S
    for at in range(0, n, at_once):
        yield at
        if time.monotonic() > end:
            return


def flood(text: str, before: str = "", at_once: int = 100) -> Callable[[Talk, int], None]:
    """Return an exchange that sends ``text`` n times, ``#`` being the number, some at a time."""

    def talk(talk: Talk, n: int) -> None:
        client = talk.client()
        if before:
            client.run(before)
        for at in _starts(n, at_once):
            batch = "; ".join(text.replace("#", str(i)) for i in range(at, min(n, at + at_once)))
            client.send(b"Q", batch.encode() + b"\0")
            states = talk.states(client)
            if states:
                assert states[0] in BOUNDED, states
                return

    return talk


def prepared_flood(talk: Talk, n: int) -> None:
    """Parse under a name of its own, without end."""
    client = talk.client()
    for at in _starts(n, 500):
        talk.send(
            client,
            [b"".join(parse(f"SELECT {i}, $1::int", f"p{i}") for i in range(at, min(n, at + 500))) + SYNC],
        )
        states = talk.states(client)
        if states:
            assert states[0] in BOUNDED, states
            return


def large_prepared(talk: Talk, n: int) -> None:
    """Statements of a megabyte under names of their own."""
    client = talk.client()
    text = "SELECT length('" + "x" * 1_000_000 + "')"
    for i in _starts(n, 1):
        talk.send(client, [parse(text + f" + {i}", f"p{i}") + SYNC])
        states = talk.states(client)
        if states:
            assert states[0] in BOUNDED, states
            return


def portal_flood(talk: Talk, n: int) -> None:
    """Bind under a name of its own, without end, in a block."""
    client = talk.client()
    client.run("BEGIN")
    talk.send(client, [parse("SELECT $1::text", "p") + SYNC])
    assert not talk.states(client)
    for at in _starts(n, 500):
        talk.send(
            client, [b"".join(bind([b"x" * 1000], "p", f"c{i}") for i in range(at, min(n, at + 500))) + SYNC]
        )
        states = talk.states(client)
        if states:
            assert states[0] in BOUNDED, states
            return


def open_portals(talk: Talk, n: int) -> None:
    """Portals of which each has given one row and keeps its query."""
    client = talk.client()
    client.run("BEGIN")
    talk.send(client, [parse("SELECT id FROM numbers ORDER BY n", "p") + SYNC])
    assert not talk.states(client)
    for at in _starts(n, 50):
        pieces = [bind([], "p", f"c{i}") + execute(f"c{i}", 1) for i in range(at, min(n, at + 50))]
        talk.send(client, [b"".join(pieces) + SYNC])
        states = talk.states(client)
        if states:
            assert states[0] in BOUNDED, states
            return


def locks_flood(talk: Talk, n: int) -> None:
    """Advisory locks, many in one statement."""
    client = talk.client()
    client.send(b"Q", f"SELECT count(pg_advisory_lock(g)) FROM generate_series(1, {n}) g\0".encode())
    states = talk.states(client)
    assert not states or states[0] in BOUNDED, states


def left_behind(text: str) -> Callable[[Talk, int], None]:
    """Return an exchange of n sessions one after the other, each of which says ``text``, ``@`` being ten megabytes, and leaves."""

    def talk(talk: Talk, n: int) -> None:
        for i in _starts(n, 1):
            client = talk.client()
            client.send(b"Q", text.replace("#", str(i)).encode().replace(b"@", b"x" * 10_000_000) + b"\0")
            states = talk.states(client)
            assert not states or states[0] in (*BOUNDED, "42601"), states
            client.close()

    return talk


SCHEMA = "; ".join(
    f"CREATE TEMP TABLE cat{i} (a int PRIMARY KEY, b text DEFAULT 'x', c int CHECK (c > 0))"
    for i in range(60)
)

ROWS = (
    Row(name="prepared statements by messages", talk=prepared_flood, short=400, full=1_000_000),
    Row(name="large prepared statements", talk=large_prepared, short=15, full=2000),
    Row(name="long statements of sessions that have left", talk=left_behind("SELECT #, length('@')"), short=10, full=60),
    Row(name="long prepared statements of sessions that have left", talk=left_behind("PREPARE p AS SELECT #, length('@')"), short=4, full=60),
    Row(name="long settings of sessions that have left", talk=left_behind("SELECT #; SELECT set_config('a.b', '@', false) IS NULL"), short=18, full=60),
    Row(name="PREPARE", talk=flood("PREPARE p# AS SELECT #"), short=120, full=200_000),
    Row(name="portals by messages", talk=portal_flood, short=20_000, full=1_000_000),
    Row(name="portals that keep their queries", talk=open_portals, short=60, full=20_000),
    Row(name="DECLARE", talk=flood("DECLARE c# CURSOR FOR SELECT * FROM numbers", "BEGIN"), short=40, full=100_000),
    Row(name="DECLARE WITH HOLD", talk=flood("DECLARE h# CURSOR WITH HOLD FOR SELECT s FROM numbers"), short=20, full=20_000),
    Row(name="savepoints", talk=flood("SAVEPOINT s#", "BEGIN"), short=740, full=500_000),
    Row(name="savepoints of one name", talk=flood("SAVEPOINT s", "BEGIN"), short=870, full=500_000),
    Row(name="savepoints with writes", talk=flood("SAVEPOINT s#; INSERT INTO saved VALUES (#)", "CREATE TEMP TABLE saved (a int); BEGIN"),
        short=120, full=200_000),
    Row(name="a rollback over savepoints", sql="ROLLBACK TO s0", setup=("BEGIN; CREATE TEMP TABLE saved (a int)",
        "; ".join(f"SAVEPOINT s{i}; INSERT INTO saved VALUES ({i})" for i in range(250))), short=1, full=1),
    Row(name="LISTEN", talk=flood("LISTEN c#"), short=300, full=500_000),
    Row(name="UNLISTEN", talk=flood("LISTEN c#; UNLISTEN c#"), short=200, full=200_000),
    Row(name="NOTIFY", talk=flood("NOTIFY c, 'payload #'", "BEGIN"), short=300, full=1_000_000),
    Row(name="advisory locks", talk=locks_flood, short=5000, full=5_000_000),
    Row(name="an advisory lock taken again", talk=flood("SELECT pg_advisory_lock(1)"), short=60, full=1_000_000),
    Row(name="advisory locks that end with the session", sql="SELECT pg_advisory_unlock_all()",
        setup=("SELECT count(pg_advisory_lock(g)) FROM generate_series(1, <n>) g",), short=5000, full=90_000),
    Row(name="temporary tables", talk=flood("CREATE TEMP TABLE t# (a int)"), short=40, full=20_000),
    Row(name="temporary tables that come and go", talk=flood("CREATE TEMP TABLE t (a int); DROP TABLE t"), short=30, full=10_000),
    Row(name="DISCARD ALL", talk=flood("DISCARD ALL", at_once=1), short=300, full=100_000),
    Row(name="DISCARD of much", sql="DISCARD ALL", setup=("; ".join(f"PREPARE p{i} AS SELECT {i}" for i in range(200)),
        "; ".join(f"CREATE TEMP TABLE t{i} (a int)" for i in range(30))), short=1, full=1),
    Row(name="settings of one's own", talk=flood("SET a.v# = 'x'"), short=550, full=500_000),
    Row(name="SET LOCAL again and again", talk=flood("SET LOCAL application_name = 'a#'", "BEGIN"), short=200, full=500_000),
    Row(name="SET ROLE again and again", talk=flood("SET ROLE postgres"), short=300, full=500_000),
    Row(name="BEGIN and ROLLBACK", talk=flood("BEGIN; ROLLBACK"), short=200, full=500_000),
    Row(name="sequences drawn from", sql="SELECT count(nextval('drawn')) FROM generate_series(1, <n>)", setup=("CREATE TEMP SEQUENCE drawn",),
        short=10_000, full=5_000_000),
    Row(name="large objects", sql="SELECT count(lo_create(0)) FROM generate_series(1, <n>)", setup=("BEGIN",), short=600, full=50_000,
        expect="done 53200 54000 53400"),
    Row(name="a large object of a megabyte", sql="SELECT lo_from_bytea(0, decode(repeat('ab', <n>), 'hex')) > 0", setup=("BEGIN",), short=4_700_000,
        full=100_000_000, answer="t", expect="done 53200"),
    Row(name="locks of many rows", sql="SELECT count(*) FROM (SELECT id FROM numbers WHERE id <= <n> FOR SHARE) s", setup=("BEGIN",), short=3000, full=3000),
    Row(name="LOCK TABLE of many", sql=lambda n: "LOCK TABLE " + ",".join(["numbers"] * n), setup=("BEGIN",), short=7000, full=200_000),
    Row(name="waiting for a lock", talk=lambda talk, n: _wait_for_lock(talk, n), short=47, full=150),
    Row(name="SUBSCRIBE to a costly query", sql="SUBSCRIBE (SELECT count(*) FROM numbers a, numbers b WHERE a.n * b.n < 0 AND a.id <= <n>)",
        short=140, full=3000, expect="57014 0A000 42601 done", limited=False, unread=True),
    Row(name="SUBSCRIBE that is not read", sql="SUBSCRIBE numbers", short=1, full=1, expect="57014 done 0A000", limited=False, unread=True),
    Row(name="\\d of everything", sql="SELECT count(pg_get_indexdef(indexrelid) || <n>) FROM pg_index", setup=(SCHEMA,), short=1, full=1),
    Row(name="definitions of constraints", sql="SELECT count(pg_get_constraintdef(oid)) FROM pg_constraint", setup=(SCHEMA,), short=1, full=1),
    Row(name="definitions of functions", sql="SELECT count(pg_get_function_arguments(oid)) FROM pg_proc", short=1, full=1),
    Row(name="definitions of views", sql="SELECT count(pg_get_viewdef(oid)) FROM pg_class WHERE relkind = 'v'", short=1, full=1),
    Row(name="columns of everything", sql="SELECT count(*) FROM information_schema.columns", setup=(SCHEMA,), short=1, full=1),
    Row(name="catalogs joined without a condition", sql="SELECT count(*) FROM pg_class a, pg_class b WHERE a.relname || b.relname < ''", short=1, full=1),
    Row(name="a nested loop of pg_proc", sql="SELECT count(*) FROM pg_proc a, pg_proc b WHERE a.proname || b.proname = 'x' AND a.oid < <n>", short=100,
        full=10_000, expect="done"),
    Row(name="format_type of everything", sql="SELECT count(format_type(a.oid, -1)) FROM pg_type a, generate_series(1, <n>)", short=80, full=1000),
    Row(name="has_table_privilege of everything", sql="SELECT count(*) FROM pg_class a, pg_class b WHERE has_table_privilege(a.oid, 'SELECT') AND b.oid = 0",
        short=1, full=1),
    Row(name="pg_relation_size of everything", sql="SELECT sum(pg_total_relation_size(oid)) FROM pg_class, generate_series(1, <n>)", setup=(SCHEMA,),
        short=3, full=100),
    Row(name="pg_locks beside many locks", sql="SELECT count(*) FROM pg_locks", setup=("SELECT count(pg_advisory_lock(g)) FROM generate_series(1, <n>) g",),
        short=3000, full=90_000),
    Row(name="pg_stat_activity again and again", sql="SELECT count(*) FROM pg_stat_activity, generate_series(1, <n>)", short=12_000, full=1_000_000),
    Row(name="to_regclass of everything", sql="SELECT count(to_regclass('numbers' || g)) FROM generate_series(1, <n>) g", short=7000, full=1_000_000,
        executor="index", answer="0"),
    Row(name="query_to_xml or its like", sql="SELECT count(current_setting('a.b' || g, true)) FROM generate_series(1, <n>) g", short=8500, full=1_000_000,
        executor="index", answer="0"),
)  # fmt: skip


def _wait_for_lock(talk: Talk, n: int) -> None:
    """Many wait for one advisory lock; all go when its holder does."""
    holder = talk.client()
    holder.run("SELECT pg_advisory_lock(77)")
    waiting = [talk.client() for _ in range(n)]
    for client in waiting:
        client.send(b"Q", b"SELECT pg_advisory_lock(77), pg_advisory_unlock(77)\0")
    holder.run("SELECT pg_advisory_unlock(77)")
    for client in waiting:
        assert talk.states(client) == []
