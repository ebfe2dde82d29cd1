"""Bytes that no client would send, or not so many of them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from tests.hostile.row import Row
from tests.hostile.talk import SYNC, Talk, bind, execute, frame, parse
from tests.support.fields import fields_of

PROTOCOL_3 = 196_608


def startup(*fields: str, version: int = PROTOCOL_3) -> bytes:
    """Return a start-up packet."""
    body = struct.pack("!I", version) + b"".join(f.encode() + b"\0" for f in fields) + b"\0"
    return struct.pack("!I", len(body) + 4) + body


HELLO = startup("user", "postgres", "database", "postgres")


def fatal(talk: Talk, data: bytes, state: str = "08P01") -> None:
    """Say ``data`` on a fresh socket; the server says why it does not like it, and hangs up."""
    sock = talk.raw()
    try:
        sock.sendall(data)
    except ConnectionError:
        return  # it has hung up on what was still being sent
    said = talk.until_closed(sock)
    assert not said or (said[:1] == b"E" and fields_of(said[5:])["sqlstate"] == state), said[:200]


def refused(talk: Talk, data: bytes, state: str = "08P01") -> None:
    """Say ``data`` on an open session, which ends with that state."""
    client = talk.client()
    talk.send(client, [data])
    states = talk.states(client)
    assert states == [state], states


def small_chunks(talk: Talk, n: int) -> None:
    """One message of n bytes, 8,000 at a time."""
    client = talk.client()
    piece = b"x" * 8000
    client.send_raw(b"Q" + struct.pack("!I", n + 4 + len("SELECT length('')") + 1) + b"SELECT length('")
    talk.send(client, (piece for _ in range(n // 8000)))
    talk.send(client, [b"x" * (n % 8000) + b"')\0"])
    states = talk.states(client)
    assert states in ([], ["53200"]), states  # of a statement's share it may take a quarter


def byte_by_byte(talk: Talk, n: int) -> None:
    """A statement of which every byte is a packet."""
    client = talk.client()
    text = b"SELECT '" + b"x" * n + b"'\0"
    data = frame(b"Q", text)
    talk.send(client, (data[i : i + 1] for i in range(len(data))))
    assert not talk.states(client)


def bind_of(values: int, formats: int) -> bytes:
    """Return Bind with so many values and format codes."""
    body = b"\0\0" + struct.pack(f"!H{formats}H", formats, *([0] * formats)) + struct.pack("!H", values)
    return frame(b"B", body + struct.pack("!i", -1) * values + b"\0\0")


def many_values(talk: Talk, n: int) -> None:
    """A Bind of n values for a statement of one."""
    client = talk.client()
    talk.send(client, [parse("SELECT $1::int") + bind_of(n, 0) + SYNC])
    assert talk.states(client) == ["08P01"]


def many_formats(talk: Talk, n: int) -> None:
    """A Bind of n formats for no value."""
    client = talk.client()
    talk.send(client, [parse("SELECT 1") + bind_of(0, n) + SYNC])
    assert talk.states(client) == ["08P01"]


def many_parameters(talk: Talk, n: int) -> None:
    """n parameters, all given."""
    client = talk.client()
    text = "SELECT 1 WHERE 1 IN (" + ",".join(f"${i + 1}::int" for i in range(n)) + ")"
    talk.send(client, [parse(text) + bind([b"1"] * n) + execute() + SYNC])
    assert not talk.states(client)


def many_types(talk: Talk, n: int) -> None:
    """Parse that declares n types."""
    client = talk.client()
    talk.send(client, [parse("SELECT $1", oids=[23] * n) + SYNC])
    states = talk.states(client)
    assert states in ([], ["08P01"], ["54000"]), states


def pipeline(talk: Talk, n: int) -> None:
    """n messages without a Sync, then one."""
    client = talk.client()
    one = parse("SELECT 1") + bind() + execute()
    talk.send(client, [one * 100 for _ in range(n // 300)] + [SYNC])
    assert not talk.states(client)


def pipeline_of_errors(talk: Talk, n: int) -> None:
    """An error, then n messages that are skipped."""
    client = talk.client()
    one = parse("SELECT 1") + bind() + execute()
    talk.send(client, [parse("SELEC")] + [one * 100 for _ in range(n // 300)] + [SYNC])
    assert talk.states(client) == ["42601"]


def errors_in_a_row(one: bytes, state: str) -> Callable[[Talk, int], None]:
    """Return an exchange of ``one``, which fails with ``state`` up to its Sync, n times without waiting."""

    def talk(talk: Talk, n: int) -> None:
        client = talk.client()
        client.send_raw(parse("SELECT $1::int", "p") + SYNC)
        assert not talk.states(client)
        for at in range(0, n, 1000):
            count = min(1000, n - at)
            talk.send(client, [one * count])
            for _ in range(count):
                assert talk.states(client) == [state]

    return talk


def dropped(talk: Talk, n: int) -> None:
    """An error, then n messages of five bytes that are skipped."""
    client = talk.client()
    talk.send(client, [parse("SELEC"), frame(b"H") * n, SYNC])
    assert talk.states(client) == ["42601"]


def dropped_in_copy(talk: Talk, n: int) -> None:
    """Sync and Flush in the middle of COPY FROM STDIN, where they mean nothing."""
    client = talk.client()
    client.run("CREATE TEMP TABLE copied (a int)")
    client.send(b"Q", b"COPY copied FROM STDIN\0")
    talk.send(client, [frame(b"d", b"1\n"), (frame(b"H") + SYNC) * n, frame(b"d", b"2\n"), frame(b"c")])
    assert not talk.states(client)
    assert client.run("SELECT sum(a) FROM copied").rows == [("3",)]


def parses(talk: Talk, n: int) -> None:
    """Statements of their own, prepared one after the other without waiting."""
    client = talk.client()
    one = b"".join(
        parse(f"SELECT a.id + {i}, b.n FROM numbers a JOIN numbers b USING (id) WHERE a.n = {i}")
        for i in range(n)
    )
    with talk.sending(client, one + SYNC):
        assert not talk.states(client)


def syncs(talk: Talk, n: int) -> None:
    """Nothing but Sync."""
    client = talk.client()
    with talk.sending(client, SYNC * n):
        for _ in range(n):
            assert not talk.states(client)


def flushes(talk: Talk, n: int) -> None:
    """Nothing but Flush and Close of what is not there."""
    client = talk.client()
    with talk.sending(client, (frame(b"H") + frame(b"C", b"Sno\0")) * n + SYNC):
        assert not talk.states(client)


def describes(talk: Talk, n: int) -> None:
    """Describe of one statement, again and again."""
    client = talk.client()
    with talk.sending(client, parse("SELECT * FROM pg_class") + frame(b"D", b"S\0") * n + SYNC):
        assert not talk.states(client)


def queries(talk: Talk, n: int) -> None:
    """Queries that do not wait for answers."""
    client = talk.client()
    with talk.sending(client, frame(b"Q", b"SELECT 1\0") * n):
        for _ in range(n):
            assert not talk.states(client)


def startup_flood(talk: Talk, n: int) -> None:
    """Sockets on which nothing is said; whoever comes then is served."""
    for _ in range(n):
        talk.raw()
    assert talk.serves()


def slow_startup(talk: Talk, n: int) -> None:
    """Start-up packets that come a byte at a time."""
    sockets = [talk.raw() for _ in range(n)]
    for at in range(len(HELLO) // 2):
        for sock in sockets:
            try:
                sock.sendall(HELLO[at : at + 1])
            except OSError:
                pass  # others came after it
    assert talk.serves()


def connects(talk: Talk, n: int) -> None:
    """Sessions that are opened and left at once."""
    for _ in range(n):
        sock = talk.raw()
        sock.sendall(HELLO)
        sock.close()
    assert talk.serves()


def cancels(talk: Talk, n: int) -> None:
    """Cancel requests with keys that are nobody's."""
    for i in range(n):
        sock = talk.raw()
        sock.sendall(struct.pack("!IIII", 16, 80877102, i, 12345))
        sock.close()
    assert talk.serves()


def cancels_of_one(talk: Talk, n: int) -> None:
    """Cancel requests while nothing runs and while something does."""
    client = talk.client()
    for _ in range(n):
        client.cancel()
    client.send(b"Q", b"SELECT pg_sleep(60)\0")
    client.cancel()
    states = talk.states(client)
    while not states:  # a cancel that came before its statement
        client.send(b"Q", b"SELECT pg_sleep(60)\0")
        client.cancel()
        states = talk.states(client)
    assert states == ["57014"], states


def half_closed(talk: Talk, n: int) -> None:
    """Clients that have said all they will, and read nothing."""
    for _ in range(n):
        client = talk.client()
        client.send(b"Q", b"SELECT repeat('x', 1000000) FROM generate_series(1, 50)\0")
        client._socket.shutdown(socket.SHUT_WR)
    assert talk.serves()


def cut_off(talk: Talk, n: int) -> None:
    """Clients that reset their connection while something runs."""
    for _ in range(n):
        client = talk.client()
        client.send(b"Q", b"SELECT count(*) FROM numbers a, numbers b WHERE a.n * b.n < 0\0")
        client._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client._socket.close()
    assert talk.serves()


def parameters(n: int) -> bytes:
    """Return a start-up packet of n parameters."""
    return startup("user", "postgres", *(part for i in range(n) for part in (f"a.p{i}", "x")))


def accepted(talk: Talk, data: bytes) -> None:
    """Say ``data``; the session opens, or the server says why not."""
    sock = talk.raw()
    sock.sendall(data)
    assert sock.recv(1) in (b"R", b"E")


def function_call(talk: Talk, n: int) -> None:
    """FunctionCall with n arguments."""
    client = talk.client()
    body = struct.pack("!IHH", 1397, 0, n) + (struct.pack("!i", 1) + b"1") * n + b"\0\0"
    talk.send(client, [frame(b"F", body)])
    states = talk.states(client)
    assert len(states) == 1, states


def encodings(talk: Talk, n: int) -> None:
    """A text that is none in its encoding, at its end."""
    client = talk.client()
    client.run("SET client_encoding = 'SJIS'")
    talk.send(client, [frame(b"Q", b"SELECT length('" + b"\x82\xa0" * n + b"\x82')\0")])
    states = talk.states(client)
    assert states in (["22021"], [], ["53200"]), states


def binary_array(talk: Talk, n: int) -> None:
    """An array in binary that says it has more elements than come."""
    client = talk.client()
    value = struct.pack("!iiiii", 1, 0, 23, n, 1) + struct.pack("!ii", 4, 7) * 1000
    body = b"\0\0" + struct.pack("!HHH", 1, 1, 1) + struct.pack("!i", len(value)) + value + b"\0\0"
    talk.send(client, [parse("SELECT array_length($1::int[], 1)") + frame(b"B", body) + execute() + SYNC])
    states = talk.states(client)
    assert states != []
    assert states[0] in ("22P03", "08P01", "54000"), states


def binary_dimensions(talk: Talk, n: int) -> None:
    """An array in binary with n dimensions."""
    client = talk.client()
    value = struct.pack("!iii", n, 0, 23) + struct.pack("!ii", 1, 1) * min(n, 1000)
    body = b"\0\0" + struct.pack("!HHH", 1, 1, 1) + struct.pack("!i", len(value)) + value + b"\0\0"
    talk.send(client, [parse("SELECT array_length($1::int[], 1)") + frame(b"B", body) + execute() + SYNC])
    states = talk.states(client)
    assert states != []
    assert states[0] in ("22P03", "08P01", "54000"), states


def binary_numeric(talk: Talk, n: int) -> None:
    """A numeric in binary of n digits."""
    client = talk.client()
    value = struct.pack("!HhHH", n, n - 1, 0, 0) + struct.pack("!H", 1234) * n
    body = b"\0\0" + struct.pack("!HHH", 1, 1, 1) + struct.pack("!i", len(value)) + value + b"\0\0"
    talk.send(client, [parse("SELECT length($1::numeric::text)") + frame(b"B", body) + execute() + SYNC])
    states = talk.states(client)
    assert states in ([], ["22003"], ["22P03"]), states


ROWS = (
    Row(name="a message in small chunks", talk=small_chunks, short=1_600_000, full=60_000_000),
    Row(name="a message byte by byte", talk=byte_by_byte, short=20_000, full=200_000),
    Row(name="an unknown message type", talk=lambda talk, n: refused(talk, frame(b"y", b"x" * n)), short=400_000, full=100_000_000),
    Row(name="a length of nothing", talk=lambda talk, n: refused(talk, b"Q\0\0\0\0" + b"x" * n), short=40_000, full=10_000_000),
    Row(name="a length below its own", talk=lambda talk, n: refused(talk, b"Q\0\0\0\3" + b"x" * n), short=40_000, full=10_000_000),
    Row(name="a length that is negative", talk=lambda talk, n: refused(talk, b"Q\xff\xff\xff\xff" + b"x" * n), short=40_000, full=10_000_000),
    Row(name="a length of two gigabytes", talk=lambda talk, n: refused(talk, b"Q\x7f\xff\xff\xff" + b"x" * n), short=40_000, full=10_000_000),
    Row(name="a Sync with a body", talk=lambda talk, n: refused(talk, b"S" + struct.pack("!I", n) + b"x" * n), short=80_000, full=10_000_000),
    Row(name="a password when none is asked for", talk=lambda talk, n: refused(talk, frame(b"p", b"x" * n)), short=4000, full=60_000),
    Row(name="COPY data when nobody copies", talk=lambda talk, n: _copy_data(talk, n), short=1200, full=100_000),
    Row(name="values in Bind", talk=many_values, short=65_535, full=65_535),
    Row(name="formats in Bind", talk=many_formats, short=65_535, full=65_535),
    Row(name="parameters that are all given", talk=many_parameters, short=2000, full=65_535),
    Row(name="types in Parse", talk=many_types, short=60_000, full=65_535),
    Row(name="types in Parse that are not there", talk=lambda talk, n: _short_parse(talk, n), short=60_000, full=65_535),
    Row(name="a pipeline without Sync", talk=pipeline, short=10_000, full=100_000),
    Row(name="a pipeline that has failed", talk=pipeline_of_errors, short=100_000, full=1_000_000),
    Row(name="syntax errors, each with its Sync", talk=errors_in_a_row(parse("SELEC") + SYNC, "42601"), short=1000, full=20_000),
    Row(name="errors of values, each with its Sync", talk=errors_in_a_row(parse("SELECT 1 / 0") + bind() + execute() + SYNC, "22012"), short=1000,
        full=20_000),
    Row(name="parameters that are no values, each with its Sync", talk=errors_in_a_row(bind([b"x"], "p") + SYNC, "22P02"), short=1000, full=20_000),
    Row(name="short messages that are skipped", talk=dropped, short=90_000, full=5_000_000),
    Row(name="Sync and Flush within COPY", talk=dropped_in_copy, short=10_000, full=2_000_000),
    Row(name="a pipeline of Parse", talk=parses, short=120, full=50_000),
    Row(name="Sync and nothing else", talk=syncs, short=30_000, full=1_000_000),
    Row(name="Flush and Close and nothing else", talk=flushes, short=33_000, full=1_000_000),
    Row(name="Describe and nothing else", talk=describes, short=10_000, full=300_000),
    Row(name="queries that do not wait", talk=queries, short=6100, full=200_000),
    Row(name="FunctionCall with many arguments", talk=function_call, short=30_000, full=65_535),
    Row(name="a start-up packet of many parameters", talk=lambda talk, n: accepted(talk, parameters(n)), short=1000, full=1000),
    Row(name="a start-up packet that is too long", talk=lambda talk, n: fatal(talk, startup("user", "x" * n)), short=80_000, full=10_000_000),
    Row(name="a start-up packet of no length", talk=lambda talk, n: fatal(talk, b"\0" * n), short=400, full=1_000_000),
    Row(name="a start-up packet of options", talk=lambda talk, n: accepted(talk, startup("user", "postgres", "options", "-c a.b=c " * n)), short=1000,
        full=1000),
    Row(name="a start-up packet with spaces escaped", talk=lambda talk, n: accepted(talk, startup("user", "postgres", "options", "\\ " * n)), short=4000,
        full=4900),
    Row(name="sockets on which nothing is said", talk=startup_flood, short=150, full=150),
    Row(name="start-up packets that come slowly", talk=slow_startup, short=60, full=60),
    Row(name="sessions left at once", talk=connects, short=100, full=2000),
    Row(name="cancel requests of nobody", talk=cancels, short=260, full=5000),
    Row(name="cancel requests of one", talk=cancels_of_one, short=240, full=2000),
    Row(name="half-closed connections", talk=half_closed, short=4, full=50),
    Row(name="connections that are reset", talk=cut_off, short=4, full=50),
    Row(name="HTTP", talk=lambda talk, n: fatal(talk, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * n), short=4000, full=100_000),
    Row(name="a broken TLS handshake", talk=lambda talk, n: _tls(talk, n), short=4000, full=100_000),
    Row(name="a text that breaks off in its encoding", talk=encodings, short=100_000, full=20_000_000),
    Row(name="an array that lies about its elements", talk=binary_array, short=2**31 - 1, full=2**31 - 1),
    Row(name="an array that lies about its dimensions", talk=binary_dimensions, short=2**31 - 1, full=2**31 - 1),
    Row(name="a numeric of 30,000 digits in binary", talk=binary_numeric, short=30_000, full=30_000),
)  # fmt: skip


def _copy_data(talk: Talk, n: int) -> None:
    client = talk.client()
    talk.send(client, [frame(b"d", b"x" * 10_000)] * n + [frame(b"Q", b"SELECT 1\0")])
    assert not talk.states(client)


def _short_parse(talk: Talk, n: int) -> None:
    client = talk.client()
    talk.send(client, [frame(b"P", b"\0SELECT 1\0" + struct.pack("!H", n)) + SYNC])
    assert talk.states(client) == ["08P01"]


def _tls(talk: Talk, n: int) -> None:
    sock = talk.raw()
    sock.sendall(b"\x16\x03\x01" + b"\xff" * n)
    assert talk.until_closed(sock) == b""
