"""Clients that do not read, and COPY: what the server holds for them is bounded, and waits."""

from __future__ import annotations

import struct

from tests.hostile.row import Row
from tests.hostile.rows.nesting import long_enum
from tests.hostile.talk import Talk, bind, execute, frame, parse
from tests.support.fields import fields_of

LARGE = "SELECT repeat('x', 1000000) FROM generate_series(1, <n>)"


def copy_in(columns: str, pieces: object) -> object:
    """Return an exchange: COPY of ``pieces(n)`` into a temporary table of these columns."""

    def talk(talk: Talk, n: int) -> None:
        client = talk.client()
        client.run(f"CREATE TEMP TABLE copied ({columns})")
        client.send(b"Q", b"COPY copied FROM STDIN\0")
        talk.send(client, (frame(b"d", piece) for piece in pieces(n)))  # type: ignore[operator]
        talk.send(client, [frame(b"c")])
        states = talk.states(client)
        assert not states or states[0] in ("53200", "54000", "22P04", "08P01"), states

    return talk


def _lines(n: int) -> object:
    return (b"%d\tsome text\n" % i * 1000 for i in range(n // 1000))


def _long_line(n: int) -> object:
    yield b"1\t"
    for _ in range(n // 65536 + 1):
        yield b"x" * 65536
    yield b"\n"


def _beside_an_enum(talk: Talk, n: int) -> None:
    client = talk.client()
    client.run("DROP TYPE IF EXISTS long_enum")
    client.run(long_enum(n))
    copy_in("a int, s text", _long_line)(talk, 20_000_000)  # type: ignore[operator]


def _no_newline(n: int) -> object:
    for _ in range(n // 65536 + 1):
        yield b"1\tx\\n" * 13107


def _tiny(n: int) -> object:
    return (b"1\tx\n" if i % 4 == 3 else b"" for i in range(n))


def _columns(n: int) -> object:
    yield b"\t".join([b"1"] * n) + b"\n"


def two_copies(talk: Talk, n: int) -> None:
    """One binary COPY whose field is longer than what comes."""
    client = talk.client()
    client.run("CREATE TEMP TABLE copied (s text)")
    client.send(b"Q", b"COPY copied FROM STDIN (FORMAT binary)\0")
    head = b"PGCOPY\n\xff\r\n\0" + struct.pack("!II", 0, 0)
    talk.send(client, [frame(b"d", head + struct.pack("!hi", 1, 2**31 - 1))])
    talk.send(client, (frame(b"d", b"x" * 65536) for _ in range(n // 65536)))
    talk.send(client, [frame(b"c")])
    states = talk.states(client)
    assert states != []
    assert states[0] in ("22P04", "53200", "54000"), states


def unread_pipeline(talk: Talk, n: int) -> None:
    """Executes without a Sync, of which nobody reads the answers."""
    client = talk.client()
    client._socket.settimeout(0.2)
    one = parse("SELECT repeat('y', 10000)") + bind() + execute()
    try:
        for _ in range(n):
            client.send_raw(one)
    except TimeoutError:
        pass  # it no longer reads: what it has to say waits for us
    talk.wait()


def unread_copy_out(talk: Talk, n: int) -> None:
    """COPY TO STDOUT that nobody reads, then a client that goes away."""
    client = talk.client()
    client.send(b"Q", f"COPY (SELECT repeat('x', 1000000) FROM generate_series(1, {n})) TO STDOUT\0".encode())
    kind, body = client.answer()
    assert kind == b"H" or fields_of(body)["sqlstate"] == "53200", body
    talk.wait()


def unread_notifications(talk: Talk, n: int) -> None:
    """A listener that does not read, and a sender of payloads."""
    listener, sender = talk.client(), talk.client()
    listener.run("LISTEN heard")
    payload = "x" * 7999
    for _ in range(n // 100):
        one = f"PERFORM pg_notify('heard', i || '{payload[:7900]}')"
        sender.send(b"Q", f"DO $$ BEGIN FOR i IN 1..100 LOOP {one}; END LOOP; END $$\0".encode())
        states = talk.states(sender)
        if states:
            assert states == ["54000"], states  # as PostgreSQL, whose queue is full
            break
    talk.wait()


def unread_notices(talk: Talk, n: int) -> None:
    """RAISE NOTICE in a loop, to a client that does not read."""
    client = talk.client()
    client.send(
        b"Q",
        f"DO $$ BEGIN FOR i IN 1..{n} LOOP RAISE NOTICE '%', repeat('x', 100000); END LOOP; END $$\0".encode(),
    )
    kind, _ = client.answer()
    assert kind == b"N", kind
    talk.wait()


def slow_reader(talk: Talk, n: int) -> None:
    """A result that is read a byte at a time, for a while."""
    client = talk.client()
    client.send(b"Q", LARGE.replace("<n>", str(n)).encode() + b"\0")
    talk.wait()
    for _ in range(200):
        assert client._socket.recv(1)


ROWS = (
    Row(name="a result that is not read", sql=LARGE, short=600, full=100_000, unread=True, expect="57014 53200"),
    Row(name="a result of DuckDB that is not read", sql=lambda n: f"SELECT '{'x' * 50_000}' || a.id FROM numbers a WHERE id <= {n}", short=3000, full=3000,
        executor="local", unread=True, expect="57014 53200"),
    Row(name="small rows that are not read", sql="SELECT a.s, b.s FROM numbers a, numbers b WHERE a.id <= <n>", short=200, full=3000, unread=True,
        expect="57014 53200", executor="index"),
    Row(name="wide rows that are not read", sql=lambda n: "SELECT " + ",".join(["s"] * 1000) + f" FROM numbers WHERE id <= {n}", short=3000,
        full=3000, unread=True, expect="57014 53200"),
    Row(name="large values of a table", sql="SELECT s FROM held", setup=("CREATE TEMP TABLE held (s text)",
        "INSERT INTO held SELECT repeat('x', 1000000) FROM generate_series(1, 40)", "INSERT INTO held SELECT s FROM held",
        "INSERT INTO held SELECT s FROM held"), short=1, full=1, unread=True, expect="57014 53200"),
    Row(name="a prepared result that is not read", sql=LARGE, short=600, full=100_000, unread=True, prepared=True, expect="57014 53200"),
    Row(name="RETURNING that is not read", sql="INSERT INTO held SELECT g FROM generate_series(1, <n>) g RETURNING repeat('x', 1000000)",
        setup=("CREATE TEMP TABLE held (a int)",), short=300, full=20_000, unread=True, expect="57014 53200"),
    Row(name="SHOW ALL and catalogs that are not read", sql="SELECT * FROM pg_proc, generate_series(1, <n>)", short=50, full=1000, unread=True,
        expect="57014 53200"),
    Row(name="notices that are not read", talk=unread_notices, short=2000, full=100_000),
    Row(name="notifications that are not read", talk=unread_notifications, short=2000, full=1_000_000),
    Row(name="COPY TO that is not read", talk=unread_copy_out, short=600, full=100_000),
    Row(name="a result that is read a byte at a time", talk=slow_reader, short=600, full=100_000),
    Row(name="answers of a pipeline that are not read", talk=unread_pipeline, short=3000, full=1_000_000),
    Row(name="a cursor of large rows", sql="BEGIN; DECLARE c CURSOR FOR " + LARGE + "; FETCH ALL FROM c", short=600, full=100_000, unread=True,
        expect="57014 53200"),
    Row(name="a cursor WITH HOLD", sql="BEGIN; DECLARE c CURSOR WITH HOLD FOR " + LARGE + "; COMMIT", short=300, full=100_000,
        expect="done 53200"),
    Row(name="a cursor that scrolls", sql="BEGIN; DECLARE c SCROLL CURSOR FOR " + LARGE + "; MOVE FORWARD ALL FROM c", short=300, full=100_000,
        expect="done 53200"),
    Row(name="COPY TO of many rows", sql="COPY (SELECT a.s, b.s FROM numbers a, numbers b WHERE a.id <= <n>) TO STDOUT", short=20, full=3000),
    Row(name="COPY TO of large values", sql="COPY (SELECT repeat(chr(9), <n>)) TO STDOUT", short=1_000_000, full=100_000_000, expect="done 53200 54000"),
    Row(name="COPY TO in CSV of large values", sql="COPY (SELECT repeat(chr(34), <n>)) TO STDOUT (FORMAT csv)", short=1_000_000, full=100_000_000,
        expect="done 53200 54000"),
    Row(name="COPY TO in binary", sql="COPY (SELECT repeat('x', <n>)) TO STDOUT (FORMAT binary)", short=20_000_000, full=200_000_000,
        expect="done 53200 54000"),
    Row(name="COPY FROM of many lines", talk=copy_in("a int, s text", _lines), short=20_000, full=5_000_000),
    Row(name="COPY FROM beside an enum of many", talk=_beside_an_enum, short=30_000, full=100_000),
    Row(name="COPY FROM of one long line", talk=copy_in("a int, s text", _long_line), short=20_000_000, full=400_000_000),
    Row(name="COPY FROM without a line end", talk=copy_in("a int, s text", _no_newline), short=10_000_000, full=400_000_000),
    Row(name="COPY FROM of empty messages", talk=copy_in("a int, s text", _tiny), short=5000, full=5_000_000),
    Row(name="COPY FROM of too many columns", talk=copy_in("a int, s text", _columns), short=200_000, full=20_000_000),
    Row(name="COPY FROM of jsonb", talk=copy_in("j jsonb", lambda n: ((b'{"a": [1, 2, 3, {"b": "c"}]}\n' * 100) for _ in range(n // 100))),
        short=4000, full=1_000_000),
    Row(name="COPY FROM of one large jsonb", talk=copy_in("j jsonb", lambda n: [b"[" + b"1," * n + b"1]\n"]), short=100_000, full=20_000_000),
    Row(name="COPY FROM of arrays", talk=copy_in("a int[]", lambda n: ((b"{1,2,3,4,5,6,7,8,9}\n" * 100) for _ in range(n // 100))),
        short=4000, full=1_000_000),
    Row(name="COPY FROM with a CHECK", talk=copy_in("s text CHECK (s !~ '^(x+)+$y')", lambda n: [b"x" * 18 + b"\n"] * n), short=8, full=300),
    Row(name="COPY FROM of a binary length that lies", talk=two_copies, short=5_000_000, full=400_000_000),
)  # fmt: skip
